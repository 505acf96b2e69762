/*
 * Merging: a region's durable deltas go into a new leaf, which a LEAF_AT in the
 * log names.  One merge of a region at a time, several regions at once; those
 * under one directory page together.
 *
 * When: the overlay is over its share of memory, the replay window over its
 * bound, a checkpoint or cleaning asks, the pool is idle.  Deletions of volumes
 * and range operations are worked off here too (the reaper).
 */
#ifndef BACKING_VOLUME_MERGE_H
#define BACKING_VOLUME_MERGE_H

#include "backing/volume/internal.h"

struct region;

int merger_open(struct pool *pool, struct err *err);
void merger_close(struct pool *pool);
void merger_tick(struct pool *pool);
/* LEAF_AT and DIR_AT take effect, laid out or replayed; the directory page above
 * is resident (tree_pin()). */
void leaf_at_apply(struct pool *pool, const struct vf_desc *desc, const struct vf_leaf_at *body,
		   uint64_t seq);
void dir_at_apply(struct pool *pool, const struct vf_desc *desc, const struct vf_dir_at *body,
		  uint64_t seq);
/* Something changed: perhaps there is work. */
void merger_kick(struct pool *pool);

/* In a fiber: merges until every delta up to seq is in a leaf whose LEAF_AT is
 * laid out.  seq <= log_durable(). */
int merge_until(struct pool *pool, uint64_t seq);
/* In a fiber: this region, all durable deltas. */
int merge_region(struct pool *pool, struct volume *volume, uint64_t index);
/* In a fiber: the same, and the leaf is written anew even when there is nothing
 * to merge: the page it has is to be left. */
int merge_rewrite(struct pool *pool, struct volume *volume, uint64_t index);
/* In a fiber: nothing runs any more (quiesce). */
void merger_stop(struct pool *pool);

#endif
