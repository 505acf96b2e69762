/*
 * Merging some regions at once: their leaves share writes, a flush and a group.
 *
 * For merge.c and reap.c.  In a fiber; as many batches run at once as there are.
 */
#ifndef BACKING_VOLUME_MERGE_BATCH_H
#define BACKING_VOLUME_MERGE_BATCH_H

#include "backing/volume/bulk.h"
#include "backing/volume/leaf_edit.h"
#include "backing/volume/log.h"
#include "backing/volume/merge.h"
#include "backing/volume/region.h"
#include "backing/volume/volumes.h"

#define BATCHES	      2u
#define BATCH_MAX     256u /* regions */
#define MERGE_PERCENT 8u   /* of the pool's memory */
/* A leaf with the body that names it, at worst. */
#define BATCH_LEN_MIN (256u << 10)
/* Segments that one LEAF_AT may name. */
#define MERGE_CHANGES_MAX (LEAF_EDIT_SOURCES + 2048u)

struct merge_item {
	struct region *region;
	bool rewrite; /* even if there is nothing to merge */
	bool pinned;  /* its directory page is */
	bool settled; /* LEAF_AT took effect, or never will */
	uint64_t merged_seq;
	struct vf_leaf *leaf;	 /* NULL: the region is empty */
	struct vf_leaf_at *body; /* NULL: nothing is to be done */
	uint32_t bulk;		 /* of batch->bulk: its leaf */
	uint32_t max_birth;
};

struct merge_batch {
	struct pool *pool;
	struct fiber *fiber;
	bool busy;
	uint64_t generation; /* raised when it ends */
	uint8_t *mem;	     /* leaves and bodies */
	size_t len, used;
	uint32_t n, nbulk, nsettled, nposted;
	int err;
	struct merge_item items[BATCH_MAX];
	struct bulk_item bulk[BATCH_MAX];
};

struct merge_post {
	struct log_post post;
	struct merge_batch *batch;
	struct merge_item *item; /* NULL: it took effect */
};

struct merger {
	struct pool *pool;
	struct leaf_edit *edit;
	struct vf_change *changes;
	struct slab *posts;
	struct merge_batch batches[BATCHES];
	struct fiber_queue idle;    /* for a batch */
	struct fiber_queue changed; /* a batch ended */
	struct fiber_queue stopped;
	bool running; /* merger_run() */
	bool stopping;
	uint64_t reap_after; /* reap.c */
};

/* One that is not busy: waits for it. */
struct merge_batch *merge_batch_get(struct pool *pool);
void merge_batch_put(struct merge_batch *batch);
/* False: the batch is full, or a merge of the region runs. */
bool merge_batch_add(struct merge_batch *batch, struct region *region, bool rewrite);
/* Merges what was added; 0 or -errno.  Regions that did not fit have to be added
 * again.  The batch is empty then. */
int merge_batch_run(struct merge_batch *batch);
/* Until every batch that runs now has ended. */
void merge_batches_drain(struct pool *pool);

/* Ranges and deleted volumes: does a piece of the work.  True: there was some. */
bool reap(struct pool *pool);

#endif
