#include "backing/volume/walk.h"

#include <stdlib.h>
#include <string.h>

#include "backing/volume/io.h"

struct walk {
	struct pool *pool;
	uint8_t *buf; /* the footer, or the table of one group */
	uint32_t cap; /* bytes of buf */
	struct vf_segment *header;
	uint32_t segno;
	uint32_t nblocks; /* of a segment */
	bool footer;
	uint32_t footer_at;   /* bytes into buf: the next group of the footer */
	uint32_t groups_left; /* of the footer */
	uint32_t next;	      /* without footer: block of the next group */
	struct vf_table table;
	uint64_t seq;
	uint64_t base; /* units: where the group begins */
};

struct walk *walk_open(struct pool *pool)
{
	struct walk *walk = calloc(1, sizeof(*walk));

	if (!walk)
		return NULL;
	walk->pool = pool;
	walk->cap = pool->geometry.segment_len / 2;
	walk->nblocks = pool->geometry.segment_len / VF_BLOCK;
	walk->buf = aligned_alloc(VF_BLOCK, walk->cap);
	walk->header = aligned_alloc(VF_BLOCK, VF_BLOCK);
	if (!walk->buf || !walk->header) {
		walk_close(walk);
		return NULL;
	}
	return walk;
}

void walk_close(struct walk *walk)
{
	if (!walk)
		return;
	free(walk->buf);
	free(walk->header);
	free(walk);
}

static int read_blocks(struct walk *walk, uint32_t block, uint32_t nblocks, void *to)
{
	uint64_t base = (uint64_t)walk->segno * walk->pool->geometry.segment_len;

	return vdev_do(walk->pool->env, VDEV_READ, base + (uint64_t)block * VF_BLOCK, to,
		       (uint64_t)nblocks * VF_BLOCK);
}

static bool footer_fits(const struct pool *pool, const struct vf_segment *header,
			const struct vf_footer *footer, uint32_t len)
{
	if (!vf_footer_check(footer, len, &pool->geometry) ||
	    le32_get(&footer->segno) != le32_get(&header->segno))
		return false;
	return pool_mutant(pool, MUTANT_STALE_FOOTER) ||
	       (le64_get(&footer->life) == le64_get(&header->life) &&
		le32_get(&footer->incarnation) == le32_get(&header->incarnation));
}

/* The tail at the end of the segment says where it begins. */
int walk_footer(struct pool *pool, const struct vf_segment *header, uint8_t *buf, uint32_t cap)
{
	uint64_t len = pool->geometry.segment_len, base = le32_get(&header->segno) * len;
	uint32_t nblocks = (uint32_t)(len / VF_BLOCK), off;
	struct vf_tail tail;
	int rc = vdev_do(pool->env, VDEV_READ, base + len - VF_BLOCK, buf, VF_BLOCK);

	if (rc)
		return rc;
	memcpy(&tail, buf + VF_BLOCK - sizeof(tail), sizeof(tail));
	off = le32_get(&tail.off);
	if (le32_get(&tail.magic) != VF_MAGIC || off == 0 || off >= nblocks ||
	    (nblocks - off) > cap / VF_BLOCK)
		return 0;
	len = (uint64_t)(nblocks - off) * VF_BLOCK;
	rc = vdev_do(pool->env, VDEV_READ, base + (uint64_t)off * VF_BLOCK, buf, len);
	if (rc)
		return rc;
	return footer_fits(pool, header, (const struct vf_footer *)buf, (uint32_t)len);
}

/* No footer is no error. */
static int find_footer(struct walk *walk)
{
	int rc = walk_footer(walk->pool, walk->header, walk->buf, walk->cap);

	walk->footer = rc == 1;
	if (rc != 1)
		return rc;
	walk->footer_at = sizeof(struct vf_footer);
	walk->groups_left = le32_get(&((const struct vf_footer *)walk->buf)->ngroups);
	return 0;
}

int walk_begin(struct walk *walk, uint32_t segno)
{
	static const struct vf_head never;
	int rc;

	walk->segno = segno;
	walk->table = (struct vf_table){ .ndescs = 0 };
	walk->next = 1;
	rc = read_blocks(walk, 0, 1, walk->header);
	if (rc)
		return rc;
	if (memcmp(&walk->header->head, &never, sizeof(never)) == 0)
		return -ENOENT;
	if (!vf_segment_check(walk->header, &walk->pool->geometry, segno))
		return -EUCLEAN;
	return find_footer(walk);
}

/* The next group of the footer: vf_footer_check() has judged them all. */
static int footer_group(struct walk *walk)
{
	const struct vf_footer_group *group;

	if (walk->groups_left == 0)
		return 0;
	walk->groups_left--;
	group = (const struct vf_footer_group *)(walk->buf + walk->footer_at);
	walk->footer_at += (uint32_t)sizeof(*group);
	walk->table = (struct vf_table){
		.at = walk->buf + walk->footer_at,
		.left = le32_get(&group->table_len),
		.ndescs = le32_get(&group->ndescs),
	};
	walk->footer_at += le32_get(&group->table_len);
	walk->seq = le64_get(&group->seq);
	walk->base = (uint64_t)walk->segno * pool_segment_units(walk->pool) +
		     (uint64_t)le32_get(&group->off) * (VF_BLOCK / VF_UNIT);
	return 1;
}

/* The next group as it stands: 1, 0 when what is there is none of this opening. */
static int own_group(struct walk *walk)
{
	const struct vf_group *group = (const struct vf_group *)walk->buf;
	uint32_t room, nblocks;
	int rc;

	if (walk->next >= walk->nblocks)
		return 0;
	room = (walk->nblocks - walk->next) * VF_BLOCK;
	rc = read_blocks(walk, walk->next, 1, walk->buf);
	if (rc)
		return rc;
	if (!vf_group_plausible(group, &walk->pool->geometry, room) ||
	    le64_get(&group->life) != le64_get(&walk->header->life))
		return 0;
	nblocks = (le32_get(&group->head.len) + VF_BLOCK - 1) / VF_BLOCK;
	if (nblocks > walk->cap / VF_BLOCK)
		return 0;
	rc = nblocks > 1 ? read_blocks(walk, walk->next, nblocks, walk->buf) : 0;
	if (rc)
		return rc;
	if (!vf_group_check(group, &walk->pool->geometry, room))
		return 0;
	walk->table = (struct vf_table){
		.at = walk->buf + sizeof(*group),
		.left = le32_get(&group->head.len) - (uint32_t)sizeof(*group),
		.ndescs = le32_get(&group->ndescs),
	};
	walk->seq = le64_get(&group->seq);
	walk->base = (uint64_t)walk->segno * pool_segment_units(walk->pool) +
		     (uint64_t)walk->next * (VF_BLOCK / VF_UNIT);
	walk->next += le32_get(&group->len);
	return 1;
}

int walk_next(struct walk *walk, struct walk_desc *out)
{
	const struct vf_desc *desc;

	while (!vf_table_next(&walk->table)) {
		int rc = walk->footer ? footer_group(walk) : own_group(walk);

		if (rc <= 0)
			return rc;
	}
	desc = walk->table.desc;
	*out = (struct walk_desc){
		.desc = desc,
		.body = walk->table.body,
		.seq = walk->seq,
	};
	if (desc->type == VF_DATA || desc->type == VF_PAGE)
		out->addr = walk->base + le32_get(&desc->off);
	if (desc->flags & VF_DESC_WIDE)
		out->digest = ((const struct vf_desc_wide *)desc)->digest;
	return 1;
}

enum vf_stream walk_stream(const struct walk *walk)
{
	return walk->header->stream;
}
