/*
 * Data buffers of one reactor, from one arena that is sized at start.
 *
 * Purpose: the data path allocates nothing.  A transfer takes the pieces for
 * its length at once or waits its turn in a queue; when the pool runs low the
 * connections stop reading, no command fails.
 *
 * Pieces come in three sizes (4, 64 and 512 KiB), each page aligned, so that
 * they serve O_DIRECT; a transfer uses pieces of one size.  The memory is
 * touched only when used; a piece that was freed last is taken first, as it is
 * warm in the cache.
 *
 * Owner: the reactor; its thread only.
 */
#ifndef BASE_BUFPOOL_H
#define BASE_BUFPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/err.h"
#include "base/list.h"

/* The longest transfer that one command may have (VPD B0 reports it). */
#define BUFPOOL_TRANSFER_MAX (16u << 20)
/* Pieces of the longest transfer. */
#define BUFPOOL_IOV_MAX 32
/* Below this a pool cannot serve the longest transfer. */
#define BUFPOOL_BYTES_MIN (64u << 20)

struct bufpool;

/*
 * What a transfer holds; embedded in its owner.  iov[0..iovcnt) covers exactly
 * len bytes while held.
 */
struct buf {
	struct iovec *iov; /* the owner's array of BUFPOOL_IOV_MAX entries */
	uint32_t iovcnt;   /* 0: holds nothing */
	uint32_t len;	   /* bytes */
	uint8_t class;
	uint8_t use;	       /* enum bufpool_use */
	struct list wait_link; /* on no list: does not wait */
	uint64_t ticket;       /* place in the queue */
	void (*ready)(struct buf *buf);
};

/* Who asks: data that must be taken from the socket now drains by itself; a
 * long transfer that needs its peer before it can end (to send more, or to take
 * it) may use no more than half of the pool, so that the two never dead-lock. */
enum bufpool_use { BUFPOOL_DRAINS, BUFPOOL_NEEDS_PEER, BUFPOOL_USES };

int bufpool_create(uint64_t bytes, struct bufpool **out, struct err *err);
void bufpool_destroy(struct bufpool *pool);

void buf_init(struct buf *buf, struct iovec *iov);

/*
 * Takes pieces for len (1..BUFPOOL_TRANSFER_MAX) bytes.  True: held.  False:
 * queued; ready is called (from bufpool_put() of another) when they are held.
 */
bool bufpool_get(struct bufpool *pool, struct buf *buf, uint32_t len, enum bufpool_use use,
		 void (*ready)(struct buf *buf));

/* Gives the pieces back, or leaves the queue; no effect when neither.  Calls
 * ready of those whose turn has come. */
void bufpool_put(struct bufpool *pool, struct buf *buf);

/* True while somebody waits or less than a quarter is free: command windows
 * stop growing. */
bool bufpool_low(const struct bufpool *pool);

struct bufpool_stats {
	uint64_t bytes, bytes_used, waiting, waited;
};
void bufpool_stats(const struct bufpool *pool, struct bufpool_stats *out);

#endif
