/* The log's chain, as pool_check() sees it. */
#include "backing/volume/check.h"

#include <inttypes.h>
#include <stdlib.h>

#include "backing/volume/io.h"
#include "backing/volume/log.h"

/* Where the walk is. */
struct chain {
	uint32_t segno, off; /* off: bytes */
	uint64_t seq;	     /* of the group that is to stand there */
	struct vf_hash prev;
	uint32_t incarnation;
	uint64_t leave_at; /* the log goes on in the successor with this seq */
	uint8_t *buf;	   /* the segment, whole, and one block */
};

/* The older checkpoint's replay position; -ENOENT: there is no such checkpoint. */
static int begin(struct check *check, struct chain *chain)
{
	const struct vf_super *super = &check->pool->super;
	struct vf_root *root = (struct vf_root *)chain->buf;
	int rc = -ENOENT;

	for (unsigned int copy = 0; copy < 2; copy++) {
		const struct vf_ptr *ptr = &super->root[1][copy];
		uint64_t off = le64_get(&ptr->addr) * VF_UNIT;
		uint64_t len = (uint64_t)le32_get(&ptr->stored) * VF_UNIT, from = off % VF_BLOCK;
		uint64_t cover = (from + len + VF_BLOCK - 1) / VF_BLOCK * VF_BLOCK;
		struct vf_hash hash;

		if (!off)
			continue;
		rc = -EUCLEAN;
		if (cover > check->pool->geometry.segment_len ||
		    vdev_do(check->pool->env, VDEV_READ, off - from, chain->buf, cover))
			continue;
		memmove(chain->buf, chain->buf + from, len);
		hash = vf_hash(chain->buf, len);
		if (!vf_hash_equal(&hash, &ptr->hash) ||
		    !vf_root_check(root, (uint32_t)len, &check->pool->geometry))
			continue;
		chain->segno = le32_get(&root->replay.segno);
		chain->off = le32_get(&root->replay.off) * VF_BLOCK;
		chain->seq = le64_get(&root->replay.seq);
		chain->prev = root->replay.prev;
		return 0;
	}
	return rc;
}

/*
 * Where the log leaves the segment: a life that ended in it left groups behind its
 * end, which are none any more, and the next one began in the successor.
 */
static uint64_t successor_seq(struct check *check, struct chain *chain)
{
	uint32_t len = check->pool->geometry.segment_len;
	const struct vf_segment *header = (const struct vf_segment *)chain->buf;
	const struct vf_segment *next = (const struct vf_segment *)(chain->buf + len);
	uint32_t segno = le32_get(&header->successor);

	if (segno == 0 || segno >= check->pool->geometry.nsegments ||
	    vdev_do(check->pool->env, VDEV_READ, (uint64_t)segno * len, chain->buf + len,
		    VF_BLOCK) ||
	    !vf_segment_check(next, &check->pool->geometry, segno) || next->stream != VF_W ||
	    le32_get(&next->before) != chain->segno ||
	    le32_get(&next->incarnation) < le32_get(&header->incarnation) ||
	    le64_get(&next->first_seq) < chain->seq)
		return UINT64_MAX;
	return le64_get(&next->first_seq);
}

static int segment_read(struct check *check, struct chain *chain)
{
	uint32_t len = check->pool->geometry.segment_len;
	const struct vf_segment *header = (const struct vf_segment *)chain->buf;
	int rc = vdev_do(check->pool->env, VDEV_READ, (uint64_t)chain->segno * len, chain->buf,
			 len);

	check->report->bytes_read += len;
	if (rc)
		return rc;
	if (!vf_segment_check(header, &check->pool->geometry, chain->segno) ||
	    header->stream != VF_W)
		return -EUCLEAN;
	if (le32_get(&header->incarnation) < chain->incarnation)
		check_say(check, 8, "segment %u: the incarnation falls from %u to %u", chain->segno,
			  chain->incarnation, le32_get(&header->incarnation));
	chain->incarnation = le32_get(&header->incarnation);
	chain->leave_at = successor_seq(check, chain);
	return 0;
}

/* A group where the next one is to be; false: there is none. */
static bool group_next(struct check *check, struct chain *chain)
{
	const struct vf_segment *header = (const struct vf_segment *)chain->buf;
	const struct vf_group *group = (const struct vf_group *)(chain->buf + chain->off);
	uint32_t room = check->pool->geometry.segment_len - chain->off;

	if (room < VF_BLOCK || !vf_group_plausible(group, &check->pool->geometry, room) ||
	    !vf_group_check(group, &check->pool->geometry, room) ||
	    le64_get(&group->life) != le64_get(&header->life) ||
	    le64_get(&group->seq) != chain->seq)
		return false;
	/* A replay position may come without a hash: the first group has it. */
	if (!vf_hash_zero(&chain->prev) && !vf_hash_equal(&group->prev, &chain->prev))
		check_say(check, 8, "group %" PRIu64 " in segment %u does not name the one before",
			  chain->seq, chain->segno);
	chain->prev = group->head.sum;
	chain->off += le32_get(&group->len) * VF_BLOCK;
	chain->seq++;
	return true;
}

static int walk(struct check *check, struct chain *chain)
{
	uint64_t last = log_seq(check->pool), nsegments = 0;
	int rc = segment_read(check, chain);

	if (chain->off < VF_BLOCK)
		chain->off = VF_BLOCK;
	while (!rc && chain->seq <= last) {
		if (chain->seq < chain->leave_at && group_next(check, chain))
			continue;
		if (++nsegments > check->pool->geometry.nsegments)
			break;
		chain->segno = le32_get(&((struct vf_segment *)chain->buf)->successor);
		chain->off = VF_BLOCK;
		if (chain->segno == 0 || chain->segno >= check->pool->geometry.nsegments)
			break;
		rc = segment_read(check, chain);
		if (!rc && le64_get(&((struct vf_segment *)chain->buf)->first_seq) != chain->seq)
			break;
	}
	if (rc && rc != -EUCLEAN)
		return rc;
	if (chain->seq <= last)
		check_say(check, 8,
			  "the log ends at group %" PRIu64 " of %" PRIu64 ", in segment %u",
			  chain->seq, last, chain->segno);
	return 0;
}

int check_chain(struct check *check)
{
	uint32_t len = check->pool->geometry.segment_len;
	struct chain chain = { .buf = aligned_alloc(VF_BLOCK, len + VF_BLOCK) };
	int rc;

	if (!chain.buf)
		return -ENOMEM;
	rc = begin(check, &chain);
	if (!rc)
		rc = walk(check, &chain);
	else if (rc == -EUCLEAN)
		check_say(check, 8, "the older checkpoint cannot be read");
	free(chain.buf);
	return rc == -ENOENT || rc == -EUCLEAN ? 0 : rc;
}
