#include "backing/volume/segment.h"

#include <stdlib.h>

#include "backing/volume/cache.h"
#include "backing/volume/checkpoint.h"
#include "backing/volume/clean.h"
#include "backing/volume/credit.h"
#include "backing/volume/hostspace.h"
#include "backing/volume/log.h"
#include "backing/volume/segtab.h"

/*
 * Segments that data may not fill, at least.  Nine of them are never free: two or
 * three of the log, two that survivors go to, and map pages in up to four.  With
 * the rest a round of cleaning copies enough to gain more than its merges and
 * its checkpoints write, where the segments are nine tenths full.
 */
#define RESERVE_SEGMENTS 24u

int segments_open(struct pool *pool, struct err *err)
{
	struct segments *segments = calloc(1, sizeof(*segments));
	uint64_t n = pool->geometry.nsegments;

	if (!segments)
		return err_set(err, ENOMEM, "no memory for the segment table");
	pool->segments = segments;
	fiber_queue_init(&segments->host_stopped);
	tree_init(&segments->tree, pool, VF_TREE_SEGTAB);
	if (!segments_resize(pool, n))
		return err_set(err, ENOMEM,
			       "no memory for the segment table of %llu segments, %llu MiB",
			       (unsigned long long)n,
			       (unsigned long long)(n * sizeof(struct segment) >> 20));
	return 0;
}

void segments_close(struct pool *pool)
{
	struct segments *segments = pool->segments;

	if (!segments)
		return;
	tree_release(&segments->tree);
	free(segments->table);
	free(segments->pages);
	free(segments->free_map);
	free(segments->backed);
	free(segments);
	pool->segments = NULL;
}

struct segment *segment_at(struct pool *pool, uint32_t segno)
{
	assert(segno < pool->segments->n);
	return &pool->segments->table[segno];
}

/* ---- live counts ---- */

void segment_dirty(struct pool *pool, uint32_t segno)
{
	pool->segments->pages[segno / VF_SEGTAB_RECS].dirty = true;
}

void segment_count(struct pool *pool, uint32_t segno, int32_t units)
{
	struct segments *segments = pool->segments;
	struct segment *segment = segment_at(pool, segno);
	int64_t live = (int64_t)segment->live + units;

	if (live < 0) {
		/* Damage that sums do not show, or a fault of ours: no count is to be
		 * trusted.  Nothing is reused any more. */
		if (!segments->wrong && !pool->quiet)
			log_error("pool %s: segment %u: %u units live, %d more: the counts are "
				  "wrong; nothing is reused, run a check",
				  pool->name, segno, segment->live, units);
		segments->wrong = true;
		live = 0;
	}
	segments->live_units += (uint64_t)(live - segment->live);
	if (segment->stream == VF_M)
		segments->map_units += (uint64_t)(live - segment->live);
	segment->live = (uint32_t)live;
	segment_dirty(pool, segno);
}

/* Replay: has the page of the table that was read this already? */
static bool applied(const struct pool *pool, uint32_t segno, uint64_t seq)
{
	return pool->recovering && !pool_mutant(pool, MUTANT_LEAF_TWICE) &&
	       seq <= pool->segments->pages[segno / VF_SEGTAB_RECS].applied_seq;
}

/*
 * Replay finds something in a segment that the table has as free: it was taken
 * after the checkpoint.  One of the log has its last seq already.
 */
static void begin_life(struct pool *pool, uint32_t segno, enum vf_stream stream, uint64_t seq)
{
	struct segment *segment = segment_at(pool, segno);

	if (!pool->recovering || segment->live != 0 || segment->last_seq >= seq)
		return;
	segment->state = SEGMENT_SEALED;
	segment->stream = (uint8_t)stream;
	segment->last_seq = seq;
	segment_backed(pool, segno, true);
}

void segment_change(struct pool *pool, uint32_t segno, int32_t units, uint64_t seq)
{
	struct segment *segment = segment_at(pool, segno);

	if (applied(pool, segno, seq))
		return;
	if (units < 0 && seq > segment->kill_seq)
		segment->kill_seq = seq;
	if (units < 0 && seq > pool->segments->killed_seq)
		pool->segments->killed_seq = seq;
	if (units > 0)
		begin_life(pool, segno, VF_M, seq);
	segment_count(pool, segno, units);
	pool->segments->changed = true;
}

void segment_born(struct pool *pool, uint64_t addr, uint32_t stored, uint64_t seq)
{
	uint32_t segno = addr_segment(pool, addr);

	/* A record that is not in the log was moved. */
	if (!applied(pool, segno, seq))
		begin_life(pool, segno, VF_G1, seq);
	segment_change(pool, segno, (int32_t)live_units(stored), seq);
}

/* ---- reuse ---- */

static bool seqs_allow(const struct pool *pool, const struct segment *segment)
{
	uint64_t replay = pool_mutant(pool, MUTANT_EARLY_REUSE) ? log_seq(pool) + 1
			  : pool_mutant(pool, MUTANT_ONE_CHECKPOINT)
				  ? checkpoint_replay(pool)
				  : checkpoint_older_replay(pool);

	/* The group at the replay position itself is still to be read. */
	if (segment->stream == VF_W && segment->last_seq != 0 && segment->last_seq >= replay)
		return false;
	return segment->kill_seq <= replay;
}

bool segment_reusable(const struct pool *pool, uint32_t segno)
{
	const struct segment *segment = &pool->segments->table[segno];

	if (segment->live != 0 ||
	    (segment->pins != 0 && !pool_mutant(pool, MUTANT_UNPINNED_VICTIM)))
		return false;
	if (segment->state != SEGMENT_FREE && segment->state != SEGMENT_SEALED)
		return false;
	return !pool->segments->wrong && seqs_allow(pool, segment);
}

static bool is_free(const struct segments *segments, uint32_t segno)
{
	return segments->free_map[segno / 64] >> segno % 64 & 1;
}

static bool is_backed(const struct segments *segments, uint32_t segno)
{
	return segments->backed[segno / 64] >> segno % 64 & 1;
}

static void free_map_set(struct pool *pool, uint32_t segno, bool free)
{
	struct segments *segments = pool->segments;

	if (free == is_free(segments, segno))
		return;
	segments->free_map[segno / 64] ^= 1ull << segno % 64;
	segments->nfree += free ? 1 : (uint64_t)-1;
	if (is_backed(segments, segno))
		segments->nready += free ? 1 : (uint64_t)-1;
	if (free && segno / 64 < segments->hint)
		segments->hint = segno / 64;
}

void segment_backed(struct pool *pool, uint32_t segno, bool backed)
{
	struct segments *segments = pool->segments;

	if (backed == is_backed(segments, segno))
		return;
	segments->backed[segno / 64] ^= 1ull << segno % 64;
	segments->nbacked += backed ? 1 : (uint64_t)-1;
	if (is_free(segments, segno))
		segments->nready += backed ? 1 : (uint64_t)-1;
}

void segment_forget(struct pool *pool, uint32_t segno)
{
	struct segment *segment = segment_at(pool, segno);

	if (segment->live != 0)
		return;
	segment->last_seq = segment->kill_seq = 0;
	segment->state = SEGMENT_FREE;
	segment_dirty(pool, segno);
}

/* realloc() whose new part is zeroed. */
static bool grow_array(void *array_ptr, size_t size, uint64_t old, uint64_t new)
{
	void **array = array_ptr;
	void *p = realloc(*array, size * new);

	if (!p)
		return false;
	memset((char *)p + size * old, 0, size * (new - old));
	*array = p;
	return true;
}

bool segments_resize(struct pool *pool, uint64_t n)
{
	struct segments *segments = pool->segments;
	uint64_t old = segments->n, npages = segtab_npages(n);

	assert(n >= old);
	if (!grow_array(&segments->table, sizeof(struct segment), old, n) ||
	    !grow_array(&segments->pages, sizeof(struct segtab_page), segments->npages, npages) ||
	    !grow_array(&segments->free_map, sizeof(uint64_t), (old + 63) / 64, (n + 63) / 64) ||
	    !grow_array(&segments->backed, sizeof(uint64_t), (old + 63) / 64, (n + 63) / 64))
		return false;
	segments->n = n;
	segments->npages = npages;
	for (uint64_t i = old; i < n; i++) {
		bool super = vf_segment_is_super(pool->geometry.segment_len, i);

		segments->table[i].state = super ? SEGMENT_SUPER : SEGMENT_FREE;
		segments->usable += !super;
		if (!super && !pool->env->file)
			segment_backed(pool, (uint32_t)i, true);
		if (!super)
			free_map_set(pool, (uint32_t)i, true);
	}
	return true;
}

static void look_again(struct pool *pool, uint32_t segno)
{
	free_map_set(pool, segno, segment_reusable(pool, segno));
}

void segments_recount(struct pool *pool)
{
	struct segments *segments = pool->segments;

	for (uint32_t i = 0; i < segments->n; i++)
		free_map_set(pool, i, segment_reusable(pool, i));
	credit_update(pool);
	hostspace_kick(pool);
}

void segment_pin(struct pool *pool, uint32_t segno)
{
	struct segment *segment = segment_at(pool, segno);

	assert(segment->pins < UINT16_MAX);
	segment->pins++;
	if (segment->pins == 1)
		free_map_set(pool, segno, false);
}

void segment_unpin(struct pool *pool, uint32_t segno)
{
	struct segment *segment = segment_at(pool, segno);

	assert(segment->pins > 0);
	if (--segment->pins == 0)
		look_again(pool, segno);
}

void segment_seal(struct pool *pool, uint32_t segno, uint64_t seq)
{
	struct segment *segment = segment_at(pool, segno);

	assert(segment->state == SEGMENT_OPEN);
	segment->state = SEGMENT_SEALED;
	segment_backed(pool, segno, true);
	if (seq > segment->last_seq)
		segment->last_seq = seq;
	segment_dirty(pool, segno);
	look_again(pool, segno);
	checkpointer_tick(pool);
	cleaner_kick(pool);
}

uint64_t segments_reserve(const struct pool *pool)
{
	uint64_t part = pool->segments->usable * 2 / 5, most = RESERVE_SEGMENTS;
	uint64_t windows = 2 * checkpoint_window(pool) / pool->geometry.segment_len;

	if (windows > most)
		most = windows;
	return part < most ? part : most;
}

uint64_t segments_kept(const struct pool *pool, enum segment_use use)
{
	uint64_t reserve = segments_reserve(pool);

	switch (use) {
	case SEGMENT_FOR_WRITES: return reserve * 7 / 12;
	case SEGMENT_FOR_CLEANING: return reserve / 6;
	default: return 0;
	}
}

/* The lowest one, so that the host's file stays short, of those that are backed
 * while there are any; 0: none. */
static uint32_t find_free(struct segments *segments)
{
	uint64_t nwords = (segments->n + 63) / 64;

	while (segments->hint < nwords && segments->free_map[segments->hint] == 0)
		segments->hint++;
	for (uint64_t i = segments->hint; i < nwords; i++) {
		uint64_t word = segments->free_map[i];

		if (segments->nready)
			word &= segments->backed[i];
		if (word != 0)
			return (uint32_t)(i * 64 + (uint64_t)__builtin_ctzll(word));
	}
	return 0;
}

uint32_t segment_take(struct pool *pool, enum vf_stream stream, enum segment_use use)
{
	struct segments *segments = pool->segments;
	struct segment *segment;
	uint32_t segno;

	if (segments_reusable(pool) <= segments_kept(pool, use))
		return 0;
	segno = find_free(segments);
	if (segno == 0)
		return 0;
	segment = segment_at(pool, segno);
	free_map_set(pool, segno, false);
	if (!pool_mutant(pool, MUTANT_NO_PURGE))
		cache_purge_segment(pool, segno);
	segment->stream = (uint8_t)stream;
	segment->state = SEGMENT_OPEN;
	segment->last_seq = segment->kill_seq = 0;
	segments->ntaken += use == SEGMENT_FOR_WRITES;
	segment_dirty(pool, segno);
	segment_backed(pool, segno, true);
	hostspace_kick(pool);
	return segno;
}

uint64_t segments_reusable(const struct pool *pool)
{
	const struct segments *segments = pool->segments;

	return segments->host_full ? segments->nready : segments->nfree;
}

uint64_t segments_taken(const struct pool *pool)
{
	return pool->segments->ntaken;
}

uint64_t segments_usable(const struct pool *pool)
{
	const struct segments *segments = pool->segments;

	return segments->host_full ? segments->nbacked : segments->usable;
}

uint64_t segments_live_units(const struct pool *pool)
{
	return pool->segments->live_units;
}

uint64_t segments_map_units(const struct pool *pool)
{
	return pool->segments->map_units;
}
