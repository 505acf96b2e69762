/*
 * Buffers for reads of the device: the share of a pool's memory that reads have.
 *
 * Whoever finds none waits in order.  A buffer is held only while its own read
 * is in flight or is being judged, so that those who wait always get on.
 */
#ifndef BACKING_VOLUME_IOBUF_H
#define BACKING_VOLUME_IOBUF_H

#include "backing/volume/internal.h"

struct iobuf_waiter {
	void (*ready)(struct iobuf_waiter *waiter); /* try again */
	struct list link;			    /* initialised; on no list: not waiting */
};

int iobufs_open(struct pool *pool, struct err *err);
void iobufs_close(struct pool *pool);

/* Aligned to 4 KiB; NULL: there is none, and the waiter (may be NULL) is told. */
void *iobuf_get(struct pool *pool, size_t len, struct iobuf_waiter *waiter);
void iobuf_put(struct pool *pool, void *buf);
uint64_t iobufs_memory(const struct pool *pool);

#endif
