/*
 * Fetching: records that lie near each other are read by one operation, checked
 * and expanded, on a worker where that pays, and copied to the request's buffers.
 *
 * For read.c alone.
 */
#ifndef BACKING_VOLUME_FETCH_H
#define BACKING_VOLUME_FETCH_H

#include "backing/volume/iobuf.h"
#include "backing/volume/lookup.h"

#define FETCH_LEN_MAX (256u << 10) /* bytes read at once, but for longer records */
#define FETCH_GAP_MAX (8u << 10)   /* bytes that are read in vain to join two records */
#define FETCHES_MAX   256u
#define EXPANDERS_MAX 8u

struct fetcher;

struct fetch {
	struct fetcher *fetcher;
	struct vdev_io io;
	struct iovec iov;
	struct venv_job job;
	struct pool *pool;
	void (*done)(struct fetch *fetch); /* on the pool's thread; then it is free */
	void *arg;
	struct vreq *req;
	uint32_t volume; /* id */
	bool wide, unverified;
	bool slow;	      /* an expansion that a worker should do */
	struct piece *pieces; /* RECORD, by address; bad is set where one is */
	uint32_t npieces;
	int err; /* of the device */
	uint8_t *buf;
	uint64_t from; /* bytes: where buf begins on the device */
	uint8_t *expander;
	struct list link;
};

struct fetcher *fetcher_open(struct pool *pool);
void fetcher_close(struct fetcher *fetcher);

/* How many of the pieces, in order of address, one fetch takes; and its range. */
uint32_t fetch_extent(const struct pool *pool, const struct piece *pieces, uint32_t npieces,
		      bool alone, uint64_t *from, uint64_t *end);
/* Begins to read; NULL when there is no buffer or fetch (the waiter is told). */
struct fetch *fetch_get(struct fetcher *fetcher, size_t len, struct iobuf_waiter *waiter);
void fetch_begin(struct fetcher *fetcher, struct fetch *fetch);

/* To and from a request's buffers; off: bytes from its beginning. */
void req_copy(const struct vreq *req, uint64_t off, const void *data, size_t len);
void req_zero(const struct vreq *req, uint64_t off, size_t len);

#endif
