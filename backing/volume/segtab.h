/*
 * The segment table's insides, and its pages on disk.
 *
 * Purpose: what segment.c, segtab.c, checkpoint.c and recover.c share.  Others
 * use segment.h.
 */
#ifndef BACKING_VOLUME_SEGTAB_H
#define BACKING_VOLUME_SEGTAB_H

#include "backing/volume/segment.h"
#include "backing/volume/tree.h"

struct segtab_page {
	uint64_t applied_seq; /* as it was read; 0: never written */
	bool dirty;
};

struct segments {
	struct segment *table;
	uint64_t n, usable;
	struct segtab_page *pages;
	uint64_t npages;
	struct tree tree;
	uint64_t *free_map;	/* a bit for each reusable segment */
	uint64_t *backed;	/* and for each that the host has given space for */
	uint64_t nfree, nready; /* reusable; of these, backed */
	uint64_t ntaken;	/* SEGMENT_FOR_WRITES, so far */
	uint64_t nbacked;
	uint64_t hint; /* no bit is set in words before it */
	uint64_t live_units, map_units;
	bool changed;	     /* by a descriptor, since the checkpoint that was begun last */
	uint64_t killed_seq; /* of the newest descriptor by which something died */
	bool wrong;	     /* a count was found to be: nothing is reused */
	/* hostspace.c */
	bool host_running, host_full;
	uint64_t host_retry_ns;
	struct fiber_queue host_stopped;
};

static inline uint64_t segtab_npages(uint64_t nsegments)
{
	return (nsegments + VF_SEGTAB_RECS - 1) / VF_SEGTAB_RECS;
}

/* The pool has n segments from now on; false: no memory. */
bool segments_resize(struct pool *pool, uint64_t n);
/* A count changes, whatever was applied. */
void segment_count(struct pool *pool, uint32_t segno, int32_t units);
void segment_dirty(struct pool *pool, uint32_t segno);
/* The host has given space for it, or has it back. */
void segment_backed(struct pool *pool, uint32_t segno, bool backed);
/* A reusable segment is as if it had never been used. */
void segment_forget(struct pool *pool, uint32_t segno);

/* In a fiber, from a checkpoint: writes the pages that changed, then the tree
 * above them, as tree_checkpoint(). */
int segtab_checkpoint(struct pool *pool, struct vf_tree *out, uint64_t *applied);

#endif
