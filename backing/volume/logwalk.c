#include "backing/volume/logwalk.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backing/volume/io.h"
#include "backing/volume/walk.h"

#define AHEAD (1u << 20) /* read at once, in bytes */

struct logwalk {
	struct pool *pool;
	void (*entered)(struct pool *pool, uint32_t segno, uint64_t seq);
	uint32_t nblocks; /* of a segment */

	uint32_t segno;
	struct vf_segment header;
	bool header_read;
	/* The header of the successor, when the log goes on there. */
	struct vf_segment next_header;
	bool goes_on;
	struct vf_place place; /* of the next group */
	bool at_end;
	bool unreadable; /* the device failed where the log may go on */
	struct logwalk_end end;

	/* What was read of the segment. */
	uint8_t *window;
	uint32_t window_cap; /* blocks */
	uint32_t window_at, window_n;
	/* Its footer: where it may stand for the groups, and when one is damaged. */
	uint8_t *footer;
	uint32_t footer_segno; /* 0: none is read */
	uint32_t footer_at;    /* bytes: the footer's group that comes next */
	uint32_t footer_left;  /* groups from there */
	bool by_footer;	       /* it stands for the groups of this segment */
};

struct logwalk *logwalk_open(struct pool *pool, const struct vf_place *from,
			     void (*entered)(struct pool *pool, uint32_t segno, uint64_t seq))
{
	struct logwalk *walk = calloc(1, sizeof(*walk));

	if (!walk)
		return NULL;
	walk->pool = pool;
	walk->entered = entered;
	walk->nblocks = pool->geometry.segment_len / VF_BLOCK;
	walk->window_cap = walk->nblocks / 2;
	walk->window = aligned_alloc(VF_BLOCK, (size_t)walk->window_cap * VF_BLOCK);
	walk->place = *from;
	walk->segno = le32_get(&from->segno);
	if (!walk->window) {
		logwalk_close(walk);
		return NULL;
	}
	return walk;
}

void logwalk_close(struct logwalk *walk)
{
	if (!walk)
		return;
	free(walk->window);
	free(walk->footer);
	free(walk);
}

/* ---- reading ---- */

static int read_at(struct logwalk *walk, uint32_t segno, uint32_t block, uint32_t n, void *to)
{
	uint64_t base = (uint64_t)segno * walk->pool->geometry.segment_len;

	return vdev_do(walk->pool->env, VDEV_READ, base + (uint64_t)block * VF_BLOCK, to,
		       (uint64_t)n * VF_BLOCK);
}

/* n blocks of the current segment; NULL: they cannot be read. */
static const uint8_t *blocks_at(struct logwalk *walk, uint32_t block, uint32_t n)
{
	uint32_t want = AHEAD / VF_BLOCK;

	assert(n <= walk->window_cap && block <= walk->nblocks && n <= walk->nblocks - block);
	if (block >= walk->window_at && block - walk->window_at <= walk->window_n &&
	    n <= walk->window_n - (block - walk->window_at))
		return walk->window + (size_t)(block - walk->window_at) * VF_BLOCK;
	if (want < n)
		want = n;
	if (want > walk->window_cap)
		want = walk->window_cap;
	if (want > walk->nblocks - block)
		want = walk->nblocks - block;
	walk->window_n = 0;
	if (read_at(walk, walk->segno, block, want, walk->window)) {
		want = n; /* perhaps it is what lies behind that is bad */
		if (read_at(walk, walk->segno, block, want, walk->window)) {
			walk->unreadable = true;
			return NULL;
		}
	}
	walk->window_at = block;
	walk->window_n = want;
	return walk->window;
}

/* The header of a segment that is one of the log; false: it is not. */
static bool header_at(struct logwalk *walk, uint32_t segno, struct vf_segment *out)
{
	uint8_t *block;
	bool valid = false;

	if (segno == 0 || segno >= walk->pool->geometry.nsegments ||
	    vf_segment_is_super(walk->pool->geometry.segment_len, segno))
		return false;
	block = aligned_alloc(VF_BLOCK, VF_BLOCK);
	if (block && !read_at(walk, segno, 0, 1, block)) {
		memcpy(out, block, sizeof(*out));
		valid = vf_segment_check(out, &walk->pool->geometry, segno) && out->stream == VF_W;
	} else {
		walk->unreadable = true;
	}
	free(block);
	return valid;
}

/*
 * Does the log leave this segment for its successor?  Its header then names this
 * one, is of the same incarnation or a later one, and says at which seq.
 */
static void look_on(struct logwalk *walk)
{
	struct pool *pool = walk->pool;
	struct vf_segment *next = &walk->next_header;

	walk->goes_on = header_at(walk, le32_get(&walk->header.successor), next) &&
			le32_get(&next->before) == walk->segno &&
			(le32_get(&next->incarnation) >= le32_get(&walk->header.incarnation) ||
			 pool_mutant(pool, MUTANT_NO_INCARNATION)) &&
			le64_get(&next->first_seq) >= le64_get(&walk->header.first_seq) &&
			le64_get(&next->first_seq) >= le64_get(&walk->place.seq);
}

static void enter(struct logwalk *walk, uint32_t segno, const struct vf_segment *header)
{
	walk->segno = segno;
	walk->header = *header;
	walk->header_read = true;
	walk->window_n = 0;
	walk->entered(walk->pool, segno, le64_get(&walk->place.seq) - 1);
	if (le32_get(&header->incarnation) > walk->end.incarnation)
		walk->end.incarnation = le32_get(&header->incarnation);
	look_on(walk);
}

/* ---- judging a group ---- */

static void saw_durable(struct logwalk *walk, uint64_t seq)
{
	if (seq > walk->end.durable_seq)
		walk->end.durable_seq = seq;
}

/* Is what stands at the place the group that follows, table and all? */
static const struct vf_group *group_here(struct logwalk *walk)
{
	struct pool *pool = walk->pool;
	uint32_t block = le32_get(&walk->place.off);
	const struct vf_group *group;
	uint32_t nblocks, room;

	if (block >= walk->nblocks)
		return NULL;
	room = (walk->nblocks - block) * VF_BLOCK;
	group = (const struct vf_group *)blocks_at(walk, block, 1);
	if (!group || !vf_group_plausible(group, &pool->geometry, room) ||
	    le64_get(&group->seq) != le64_get(&walk->place.seq) ||
	    le64_get(&group->life) != le64_get(&walk->header.life))
		return NULL;
	if (!vf_hash_equal(&group->prev, &walk->place.prev) && !pool_mutant(pool, MUTANT_NO_CHAIN))
		return NULL;
	nblocks = le32_get(&group->len);
	if (nblocks > walk->window_cap || nblocks > walk->nblocks - block)
		return NULL;
	group = (const struct vf_group *)blocks_at(walk, block, nblocks);
	return group && vf_group_check(group, &pool->geometry, room) ? group : NULL;
}

static bool payload_right(struct pool *pool, const struct vf_desc *desc, const uint8_t *stored)
{
	bool wide = desc->flags & VF_DESC_WIDE;
	uint64_t check[3];
	uint8_t digest[32];

	vf_record_sum(pool->super.salt, le32_get(&desc->volume), le64_get(&desc->lba), stored,
		      (size_t)le32_get(&desc->stored) * VF_UNIT, wide, check, wide ? digest : NULL);
	return check[0] == le64_get(&desc->check) &&
	       (!wide ||
		memcmp(digest, ((const struct vf_desc_wide *)desc)->digest, sizeof(digest)) == 0);
}

/* How many payloads of a group in memory are not what their descriptors say. */
static uint32_t bad_payloads(struct pool *pool, const uint8_t *group, struct vf_table table)
{
	uint32_t nbad = 0;

	while (vf_table_next(&table))
		if (table.desc->type == VF_DATA &&
		    !payload_right(pool, table.desc,
				   group + (size_t)le32_get(&table.desc->off) * VF_UNIT))
			nbad++;
	return nbad;
}

static struct vf_table table_of(const struct vf_group *group)
{
	return (struct vf_table){
		.at = (const uint8_t *)group + sizeof(*group),
		.left = le32_get(&group->head.len) - (uint32_t)sizeof(*group),
		.ndescs = le32_get(&group->ndescs),
	};
}

static void group_out(struct logwalk *walk, struct logwalk_group *out, struct vf_table table,
		      uint32_t nblocks, const struct vf_hash *sum)
{
	*out = (struct logwalk_group){
		.place = walk->place,
		.nblocks = nblocks,
		.table = table,
		.segno = walk->segno,
		.base = (uint64_t)walk->segno * pool_segment_units(walk->pool) +
			(uint64_t)le32_get(&walk->place.off) * (VF_BLOCK / VF_UNIT),
	};
	le64_put(&walk->place.seq, le64_get(&walk->place.seq) + 1);
	le32_put(&walk->place.off, le32_get(&walk->place.off) + nblocks);
	walk->place.prev = *sum;
}

/* ---- damage ---- */

/*
 * Block i of the n in the window, which is `block` of its segment: what a group
 * there says.  Returns how many blocks it takes to judge it, if that is more.
 */
static uint32_t group_says(struct logwalk *walk, uint32_t block, uint32_t i, uint32_t n,
			   uint64_t seq)
{
	const struct vf_geometry *geometry = &walk->pool->geometry;
	const struct vf_group *group =
		(const struct vf_group *)(walk->window + (size_t)i * VF_BLOCK);
	uint32_t room = (walk->nblocks - block) * VF_BLOCK, need;

	if (!vf_group_plausible(group, geometry, room) || le64_get(&group->seq) <= seq ||
	    le64_get(&group->durable_seq) < seq)
		return 0;
	need = (le32_get(&group->head.len) + VF_BLOCK - 1) / VF_BLOCK;
	if (need > n - i)
		return need <= walk->window_cap ? need : 0;
	if (vf_group_check(group, geometry, room))
		saw_durable(walk, le64_get(&group->durable_seq));
	return 0;
}

/*
 * The highest durable_seq that groups standing at or behind a block of a segment
 * say, of those that come after seq.  Groups that were dropped say less than what
 * was dropped, so that only what had been durable is found.
 */
static void scan_durable(struct logwalk *walk, uint32_t segno, uint32_t from, uint64_t seq)
{
	uint32_t block = from, n;

	walk->window_n = 0;
	for (; block < walk->nblocks; block += n) {
		n = walk->nblocks - block < AHEAD / VF_BLOCK ? walk->nblocks - block
							     : AHEAD / VF_BLOCK;
		if (n > walk->window_cap)
			n = walk->window_cap;
		if (read_at(walk, segno, block, n, walk->window)) {
			n = 1; /* where it cannot be read, block by block */
			if (read_at(walk, segno, block, n, walk->window))
				continue;
		}
		for (uint32_t i = 0; i < n; i++) {
			uint32_t more = group_says(walk, block + i, i, n, seq);

			if (more == 0)
				continue;
			/* Its table goes on behind what was read. */
			if (read_at(walk, segno, block + i, more, walk->window) == 0)
				group_says(walk, block + i, 0, more, seq);
			n = i + 1;
		}
	}
}

/* Did the group that is missing count as durable?  Then this is damage. */
static bool was_durable(struct logwalk *walk)
{
	uint64_t seq = le64_get(&walk->place.seq);
	uint32_t segno = walk->segno, successor = le32_get(&walk->header.successor);
	struct vf_segment header;

	if (walk->end.durable_seq < seq) {
		scan_durable(walk, segno, le32_get(&walk->place.off) + 1, seq);
		for (int i = 0; i < 2 && successor != 0; i++) {
			if (successor >= walk->pool->geometry.nsegments)
				break;
			scan_durable(walk, successor, 1, seq);
			successor = header_at(walk, successor, &header)
					    ? le32_get(&header.successor)
					    : 0;
		}
	}
	return walk->end.durable_seq >= seq && !pool_mutant(walk->pool, MUTANT_TRUNCATE_DAMAGE);
}

/* Reads the footer of the current segment; false: it has none that is its own. */
static bool footer_read(struct logwalk *walk)
{
	const struct vf_footer *footer;
	uint32_t cap = walk->window_cap * VF_BLOCK;

	if (walk->footer_segno == walk->segno)
		return true;
	walk->footer_segno = 0;
	if (!walk->footer)
		walk->footer = aligned_alloc(VF_BLOCK, cap);
	if (!walk->footer || walk_footer(walk->pool, &walk->header, walk->footer, cap) != 1)
		return false;
	footer = (const struct vf_footer *)walk->footer;
	walk->footer_segno = walk->segno;
	walk->footer_at = sizeof(*footer);
	walk->footer_left = le32_get(&footer->ngroups);
	return true;
}

/* A payload of a group whose header or table is lost, by its footer's copy. */
static bool payload_on_disk(struct logwalk *walk, const struct vf_desc *desc, uint64_t base)
{
	uint64_t at = (base + le32_get(&desc->off)) * VF_UNIT;
	uint64_t from = at / VF_BLOCK * VF_BLOCK;
	uint64_t len = (uint64_t)le32_get(&desc->stored) * VF_UNIT;
	uint64_t to = (at + len + VF_BLOCK - 1) / VF_BLOCK * VF_BLOCK;

	walk->window_n = 0;
	if (to - from > (uint64_t)walk->window_cap * VF_BLOCK ||
	    vdev_do(walk->pool->env, VDEV_READ, from, walk->window, to - from))
		return false;
	return payload_right(walk->pool, desc, walk->window + (at - from));
}

/* The footer's group that is to come at the walk's place; NULL: it has none. */
static const struct vf_footer_group *footer_group(struct logwalk *walk)
{
	uint64_t seq = le64_get(&walk->place.seq);

	while (walk->footer_left > 0) {
		const struct vf_footer_group *group =
			(const struct vf_footer_group *)(walk->footer + walk->footer_at);

		if (le64_get(&group->seq) > seq)
			return NULL;
		walk->footer_at += (uint32_t)sizeof(*group) + le32_get(&group->table_len);
		walk->footer_left--;
		if (le64_get(&group->seq) == seq)
			return le32_get(&group->off) == le32_get(&walk->place.off) ? group : NULL;
	}
	return NULL;
}

/* The group as the footer has it. */
static bool group_by_footer(struct logwalk *walk, struct logwalk_group *out)
{
	const struct vf_footer_group *group = footer_group(walk), *next;
	uint32_t end = walk->nblocks;

	if (!group)
		return false;
	next = (const struct vf_footer_group *)(walk->footer + walk->footer_at);
	if (walk->footer_left > 0)
		end = le32_get(&next->off);
	group_out(walk, out,
		  (struct vf_table){ .at = (const uint8_t *)(group + 1),
				     .left = le32_get(&group->table_len),
				     .ndescs = le32_get(&group->ndescs) },
		  end - le32_get(&group->off), &group->sum);
	return true;
}

/* The same for one that is durable and damaged. */
static bool group_rescued(struct logwalk *walk, struct logwalk_group *out)
{
	walk->footer_segno = 0;
	if (!footer_read(walk) || !group_by_footer(walk, out))
		return false;
	for (struct vf_table table = out->table; vf_table_next(&table);)
		if (table.desc->type == VF_DATA && !payload_on_disk(walk, table.desc, out->base))
			out->nbad++;
	return true;
}

/*
 * May the footer stand for all groups of the segment that was entered?  Only if
 * everything in it had been durable: a footer may be there and what it tells of
 * not, where it was not flushed.
 */
static void use_footer(struct logwalk *walk)
{
	const struct vf_footer *footer;

	walk->by_footer = false;
	if (!footer_read(walk))
		return;
	footer = (const struct vf_footer *)walk->footer;
	if ((le32_get(&footer->incarnation) != le32_get(&walk->header.incarnation) ||
	     le64_get(&footer->first_seq) != le64_get(&walk->header.first_seq)) &&
	    !pool_mutant(walk->pool, MUTANT_STALE_FOOTER))
		return;
	walk->by_footer = le64_get(&footer->last_seq) <= walk->end.durable_seq ||
			  pool_mutant(walk->pool, MUTANT_UNFLUSHED_FOOTER);
}

/*
 * Follows the chain by its headers: what the first group of each segment says is
 * durable, so that footers before it can be trusted.
 */
static void look_ahead(struct logwalk *walk)
{
	struct pool *pool = walk->pool;
	struct vf_segment header = walk->header, next;
	uint32_t segno = walk->segno;

	for (uint64_t n = 0; n < pool->geometry.nsegments; n++) {
		uint32_t successor = le32_get(&header.successor), need;

		if (read_at(walk, successor, 0, 2, walk->window))
			break;
		memcpy(&next, walk->window, sizeof(next));
		if (!vf_segment_check(&next, &pool->geometry, successor) || next.stream != VF_W ||
		    le32_get(&next.before) != segno ||
		    le64_get(&next.first_seq) <= le64_get(&header.first_seq))
			break;
		need = group_says(walk, 1, 1, 2, 0);
		if (need && !read_at(walk, successor, 1, need, walk->window))
			group_says(walk, 1, 0, need, 0);
		header = next;
		segno = successor;
	}
	walk->window_n = 0;
}

/* ---- walking ---- */

static int finish(struct logwalk *walk, const char *why)
{
	walk->at_end = true;
	walk->end.next = walk->place;
	walk->end.segno = walk->segno;
	walk->end.successor = le32_get(&walk->header.successor);
	if (why) {
		walk->end.damaged = true;
		snprintf(walk->end.why, sizeof(walk->end.why),
			 "%s (group %" PRIu64 " in segment %" PRIu32 ", %" PRIu64 " was durable)",
			 why, le64_get(&walk->place.seq), walk->segno, walk->end.durable_seq);
	}
	return 0;
}

/* Nothing at or behind the end that an earlier recovery found counts. */
static bool at_former_end(const struct logwalk *walk)
{
	const struct vf_place *end = &walk->pool->super.end;

	return le64_get(&end->seq) != 0 && !pool_mutant(walk->pool, MUTANT_NO_END) &&
	       le64_get(&end->seq) == le64_get(&walk->place.seq) &&
	       le32_get(&end->segno) == walk->segno;
}

/* The group at the place does not count: the end, damage, or the footer's copy. */
static int group_missing(struct logwalk *walk, struct logwalk_group *out)
{
	if (!was_durable(walk))
		return finish(walk, NULL);
	if (!at_former_end(walk) && group_rescued(walk, out))
		return 1;
	return finish(walk, "the log is damaged");
}

static int group_found(struct logwalk *walk, const struct vf_group *group,
		       struct logwalk_group *out)
{
	struct vf_table table = table_of(group);
	uint32_t nblocks = le32_get(&group->len);
	struct vf_hash sum = group->head.sum;
	uint32_t nbad = 0;

	saw_durable(walk, le64_get(&group->durable_seq));
	if (!pool_mutant(walk->pool, MUTANT_PAYLOAD_UNVERIFIED))
		nbad = bad_payloads(walk->pool, (const uint8_t *)group, table);
	if (nbad) {
		uint32_t block = le32_get(&walk->place.off);

		if (!was_durable(walk))
			return finish(walk, NULL);
		/* The look for it has used the window. */
		group = (const struct vf_group *)blocks_at(walk, block, nblocks);
		if (!group)
			return finish(walk, "the log cannot be read");
		table = table_of(group);
	}
	group_out(walk, out, table, nblocks, &sum);
	out->nbad = nbad;
	return 1;
}

static int next(struct logwalk *walk, struct logwalk_group *out)
{
	const struct vf_group *group;
	struct vf_segment header;

	if (walk->at_end)
		return 0;
	if (!walk->header_read) {
		if (!header_at(walk, walk->segno, &header))
			return -EUCLEAN;
		saw_durable(walk, le64_get(&walk->pool->super.durable_seq));
		enter(walk, walk->segno, &header);
		look_ahead(walk);
		use_footer(walk);
	}
	while (walk->goes_on &&
	       le64_get(&walk->next_header.first_seq) == le64_get(&walk->place.seq)) {
		if (at_former_end(walk) && le32_get(&walk->next_header.incarnation) <
						   le32_get(&walk->pool->super.incarnation))
			break; /* of the life that ended here: read late, but dropped */
		if (!vf_hash_equal(&walk->next_header.prev, &walk->place.prev) &&
		    !pool_mutant(walk->pool, MUTANT_NO_CHAIN))
			break; /* of another chain: it does not carry on from here */
		header = walk->next_header;
		le32_put(&walk->place.segno, le32_get(&header.segno));
		le32_put(&walk->place.off, 1);
		enter(walk, le32_get(&header.segno), &header);
		use_footer(walk);
	}
	if (walk->by_footer && !at_former_end(walk) && group_by_footer(walk, out))
		return 1;
	walk->by_footer = false;
	group = at_former_end(walk) ? NULL : group_here(walk);
	return group ? group_found(walk, group, out) : group_missing(walk, out);
}

int logwalk_next(struct logwalk *walk, struct logwalk_group *out)
{
	int rc = next(walk, out);

	/* What cannot be read may be what was flushed last: it is not the end. */
	return walk->unreadable ? -EIO : rc;
}

void logwalk_end(const struct logwalk *walk, struct logwalk_end *out)
{
	assert(walk->at_end);
	*out = walk->end;
}
