/*
 * Reading: a request becomes pieces (lookup.h), pieces become records that are
 * fetched, checked, expanded and copied.
 *
 * A request is looked up at one moment as far as 1 MiB, so that nobody sees half
 * of an atomic write; longer ones go on from there.  What fails its check is
 * looked up and read once more before it counts as lost.
 *
 * Requests in progress, buffers and fetches are bounded; who finds none waits in
 * order.
 */
#ifndef BACKING_VOLUME_READ_H
#define BACKING_VOLUME_READ_H

#include "backing/volume/internal.h"

/* Opens the buffers of iobuf.h too: before anything is read by cache.h. */
int reader_open(struct pool *pool, struct err *err);
void reader_close(struct pool *pool);

/* READ and STATUS, whose range was judged. */
void read_submit(struct pool *pool, struct vreq *req);
uint64_t reader_memory(const struct pool *pool);

#endif
