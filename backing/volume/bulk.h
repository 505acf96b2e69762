/*
 * Bulk streams: map pages (M) and survivors of cleaning (G1, G2), written in
 * bulk groups that are not ordered with anything.
 *
 * A descriptor may name them in the log only after a flush that was issued when
 * they were written (log_flush()).  Until it has, their segment is pinned.
 */
#ifndef BACKING_VOLUME_BULK_H
#define BACKING_VOLUME_BULK_H

#include "backing/volume/internal.h"
#include "backing/volume/segment.h"

int bulk_open(struct pool *pool, struct err *err);
void bulk_close(struct pool *pool);

struct bulk_item {
	struct vf_desc desc; /* PAGE or DATA; off and stored are filled in here */
	const void *data;    /* a page as it is (padded here to units), or a stored
			      * record, whole units, prefix and all */
	uint32_t len;	     /* bytes */
	uint8_t *digest;     /* wide records: 32 bytes; else NULL */
	/* the result */
	uint64_t addr;
	uint32_t stored;     /* units */
	struct vf_hash hash; /* PAGE: over the stored bytes, for the slot */
};

/*
 * In a fiber: written, not flushed; the segments of all items are pinned.  Copies
 * that must not share a segment with their originals, of M, go in a call of their
 * own with not_in_segment set to that one.  0; -ENOSPC: no segment is to be had
 * for this use; -E2BIG: longer than a group; -EIO: fenced, -EROFS.  After an error
 * none is pinned.
 */
int bulk_write(struct pool *pool, enum vf_stream stream, struct bulk_item *items, uint32_t nitems,
	       enum segment_use use, uint32_t not_in_segment);
/* They are named in the log (or given up): unpins. */
void bulk_named(struct pool *pool, struct bulk_item *items, uint32_t nitems);
/* Blocks that are left in the segments that are open. */
uint64_t bulk_room(const struct pool *pool);
uint64_t bulk_memory(const struct pool *pool);

#endif
