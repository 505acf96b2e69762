/*
 * The segment table: how much of each segment lives, and which may be reused.
 *
 * A segment is free when nothing in it lives, nothing pins it, and every crash
 * from now on would not look at it: its own last seq (W) and the seq of what
 * killed its last record are at or before the replay position of the *older*
 * of the two kept checkpoints.  All in memory, 24 bytes a segment; pages of it
 * are a tree (VF_TREE_SEGTAB) and are written by checkpoints.
 */
#ifndef BACKING_VOLUME_SEGMENT_H
#define BACKING_VOLUME_SEGMENT_H

#include "backing/volume/internal.h"

enum segment_state {
	SEGMENT_SUPER,	  /* superblocks; never anything else */
	SEGMENT_FREE,	  /* or full of dead records: see segment_reusable() */
	SEGMENT_RESERVED, /* the log's successor */
	SEGMENT_OPEN,
	SEGMENT_SEALED,
};

struct segment {
	uint32_t live; /* units */
	uint8_t stream;
	uint8_t state;
	uint16_t pins;	   /* readers, victims, bulk not yet named */
	uint64_t last_seq; /* W: its newest group; bulk: log_seq() at sealing */
	uint64_t kill_seq; /* see vf_segrec */
};
static_assert(sizeof(struct segment) == 24, "segment in memory");

int segments_open(struct pool *pool, struct err *err);
void segments_close(struct pool *pool);

struct segment *segment_at(struct pool *pool, uint32_t segno);

/* What a record or page of so many stored units weighs: two more for its
 * descriptor in group and footer. */
static inline uint32_t live_units(uint32_t stored)
{
	return stored + 2;
}

/*
 * A record or page of stored units at addr begins or ends to live, by the
 * descriptor seq (replay skips what the page of the table has applied already;
 * when not recovering seq is log_seq() or the group being laid out).
 */
void segment_born(struct pool *pool, uint64_t addr, uint32_t stored, uint64_t seq);
/* By segment, for changes listed in LEAF_AT and roots: units are signed. */
void segment_change(struct pool *pool, uint32_t segno, int32_t units, uint64_t seq);

void segment_pin(struct pool *pool, uint32_t segno);
void segment_unpin(struct pool *pool, uint32_t segno);

/*
 * A reusable segment becomes OPEN or RESERVED; 0: there is none.  Its cached
 * pages and records are purged.  use says who asks: users' writes leave a
 * reserve to cleaning, cleaning one to merges and checkpoints.
 */
enum segment_use { SEGMENT_FOR_WRITES, SEGMENT_FOR_CLEANING, SEGMENT_FOR_MAP };
uint32_t segment_take(struct pool *pool, enum vf_stream stream, enum segment_use use);
/* An OPEN segment gets no more; seq: its newest (W) or log_seq(). */
void segment_seal(struct pool *pool, uint32_t segno, uint64_t seq);
/* Replay positions changed: who is reusable is found anew. */
void segments_recount(struct pool *pool);
bool segment_reusable(const struct pool *pool, uint32_t segno);
uint64_t segments_reusable(const struct pool *pool); /* how many now */
uint64_t segments_taken(const struct pool *pool);    /* for writes, so far */
/* All but those of superblocks; when the host is full, those that it has given
 * space for. */
uint64_t segments_usable(const struct pool *pool);
/* Segments that users' writes may not count on: two replay windows and room to
 * clean in; less in small pools. */
uint64_t segments_reserve(const struct pool *pool);
/* Reusable ones that are not for this use: a part of the reserve.  What is between
 * writes and cleaning is what a round of cleaning can copy to. */
uint64_t segments_kept(const struct pool *pool, enum segment_use use);
uint64_t segments_live_units(const struct pool *pool);
uint64_t segments_map_units(const struct pool *pool); /* live in M */
/* The page of the table is written anew by the next checkpoint; so are the
 * directory pages above it: its tree, for tree_touch(). */
void segments_touch(struct pool *pool, uint64_t page);
struct tree *segments_tree(struct pool *pool);
/* The table as a checkpoint has it, in a fiber; then a larger pool. */
int segments_load(struct pool *pool, const struct vf_tree *root, struct err *err);
int segments_grow(struct pool *pool, uint64_t nsegments, struct err *err);

#endif
