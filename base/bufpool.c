/*
 * Data buffers of a reactor: see bufpool.h.
 *
 * The arena is cut into chunks of 512 KiB.  A chunk is free, or cut into
 * pieces of one class for one use; when its last piece comes back it is free
 * again, for any class.  So no class starves another.  A use has chunks of its
 * own, and BUFPOOL_NEEDS_PEER never more than half of them: a few small pieces
 * that wait for a peer can not pin every chunk of the arena.
 *
 * Waiters are served in the order in which they came; the head waits until
 * its whole transfer fits.  Only one that waits for the half of NEEDS_PEER is
 * overtaken, by those who drain.
 */
#include "base/bufpool.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>

#define CHUNK_LEN  (512u << 10)
#define PIECES_MAX 128 /* of a chunk */

static const struct {
	uint32_t transfer_max; /* longest transfer that uses this class */
	uint32_t piece_len;
	uint32_t per_chunk;
} classes[] = {
	{ 32u << 10, 4u << 10, 128 },
	{ 512u << 10, 64u << 10, 8 },
	{ BUFPOOL_TRANSFER_MAX, CHUNK_LEN, 1 },
};
#define NCLASSES ARRAY_LEN(classes)

_Static_assert(BUFPOOL_TRANSFER_MAX / CHUNK_LEN == BUFPOOL_IOV_MAX, "the longest transfer fits");
/* Half of the smallest pool serves the longest transfer. */
_Static_assert(BUFPOOL_BYTES_MIN / 2 >= BUFPOOL_TRANSFER_MAX, "a waiter's turn comes");

struct chunk {
	struct list link; /* on partial[use][class] while it has free pieces */
	uint8_t class, use;
	bool cut; /* pieces are given out */
	uint8_t nfree;
	uint8_t free[PIECES_MAX]; /* stack of piece numbers */
};

struct bufpool {
	char *memory;
	struct chunk *chunks;
	uint32_t nchunks;
	uint32_t *free_chunks; /* stack of chunk numbers: last freed first */
	uint32_t nfree_chunks;
	uint32_t peer_chunks; /* cut for BUFPOOL_NEEDS_PEER */

	/* Chunks in use with free pieces, and how many pieces those have. */
	struct list partial[BUFPOOL_USES][NCLASSES];
	uint32_t nfree_pieces[BUFPOOL_USES][NCLASSES];

	struct list waiters[BUFPOOL_USES];
	uint64_t next_ticket;
	bool serving; /* ready callbacks are being called */

	uint64_t bytes_used, waiting, waited;
};

static void chunk_fill(struct chunk *chunk, unsigned int class)
{
	uint32_t n = classes[class].per_chunk;

	chunk->class = (uint8_t) class;
	chunk->nfree = (uint8_t)n;
	for (uint32_t i = 0; i < n; i++)
		chunk->free[i] = (uint8_t)(n - 1 - i);
}

int bufpool_create(uint64_t bytes, struct bufpool **out, struct err *err)
{
	uint64_t nchunks = bytes / CHUNK_LEN;
	struct bufpool *pool;

	if (bytes < BUFPOOL_BYTES_MIN || nchunks > UINT32_MAX)
		return err_set(err, EINVAL,
			       "a buffer pool of %" PRIu64 " MiB is too %s: at least %u MiB",
			       bytes >> 20, bytes < BUFPOOL_BYTES_MIN ? "small" : "large",
			       BUFPOOL_BYTES_MIN >> 20);
	pool = calloc(1, sizeof(*pool));
	if (!pool)
		return err_set(err, ENOMEM, "no memory for a buffer pool");
	pool->nchunks = (uint32_t)nchunks;
	pool->chunks = calloc(nchunks, sizeof(*pool->chunks));
	pool->free_chunks = calloc(nchunks, sizeof(*pool->free_chunks));
	pool->memory = mmap(NULL, nchunks * CHUNK_LEN, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (!pool->chunks || !pool->free_chunks || pool->memory == MAP_FAILED) {
		bufpool_destroy(pool);
		return err_set(err, ENOMEM,
			       "no address space for a buffer pool of %" PRIu64 " MiB (ulimit -v?)",
			       bytes >> 20);
	}
	/* Fewer misses of the TLB; where there are no huge pages nothing is lost. */
	madvise(pool->memory, nchunks * CHUNK_LEN, MADV_HUGEPAGE);
	for (uint32_t i = 0; i < pool->nchunks; i++) {
		list_init(&pool->chunks[i].link);
		chunk_fill(&pool->chunks[i], 0);
		pool->free_chunks[i] = pool->nchunks - 1 - i;
	}
	pool->nfree_chunks = pool->nchunks;
	for (unsigned int use = 0; use < BUFPOOL_USES; use++) {
		list_init(&pool->waiters[use]);
		for (unsigned int class = 0; class < NCLASSES; class ++)
			list_init(&pool->partial[use][class]);
	}
	*out = pool;
	return 0;
}

void bufpool_destroy(struct bufpool *pool)
{
	if (!pool)
		return;
	if (pool->memory && pool->memory != MAP_FAILED)
		munmap(pool->memory, (size_t)pool->nchunks * CHUNK_LEN);
	free(pool->free_chunks);
	free(pool->chunks);
	free(pool);
}

void buf_init(struct buf *buf, struct iovec *iov)
{
	*buf = (struct buf){ .iov = iov };
	list_init(&buf->wait_link);
}

static unsigned int class_of(uint32_t len)
{
	unsigned int class = 0;

	while (len > classes[class].transfer_max)
		class ++;
	return class;
}

static uint32_t npieces(const struct buf *buf)
{
	uint32_t piece_len = classes[buf->class].piece_len;

	return (buf->len + piece_len - 1) / piece_len;
}

/* Chunks that the transfer needs beyond the pieces of its class and use that
 * are free in chunks already cut. */
static uint32_t chunks_needed(const struct bufpool *pool, const struct buf *buf)
{
	uint32_t n = npieces(buf), have = pool->nfree_pieces[buf->use][buf->class];
	uint32_t per_chunk = classes[buf->class].per_chunk;

	return n <= have ? 0 : (n - have + per_chunk - 1) / per_chunk;
}

/* Whether the half of those that need their peer has room for the transfer. */
static bool in_share(const struct bufpool *pool, const struct buf *buf)
{
	return buf->use != BUFPOOL_NEEDS_PEER ||
	       chunks_needed(pool, buf) <= pool->nchunks / 2 - pool->peer_chunks;
}

static bool fits(const struct bufpool *pool, const struct buf *buf)
{
	return in_share(pool, buf) && chunks_needed(pool, buf) <= pool->nfree_chunks;
}

static struct chunk *chunk_cut(struct bufpool *pool, unsigned int use, unsigned int class)
{
	struct chunk *chunk;

	assert(pool->nfree_chunks > 0);
	chunk = &pool->chunks[pool->free_chunks[--pool->nfree_chunks]];
	assert(!chunk->cut && chunk->nfree == classes[chunk->class].per_chunk);
	/* The stack of an equal cut still knows the warm pieces. */
	if (chunk->class != class)
		chunk_fill(chunk, class);
	chunk->use = (uint8_t)use;
	chunk->cut = true;
	if (use == BUFPOOL_NEEDS_PEER)
		pool->peer_chunks++;
	pool->nfree_pieces[use][class] += chunk->nfree;
	list_add_head(&pool->partial[use][class], &chunk->link);
	return chunk;
}

static void piece_get(struct bufpool *pool, struct buf *buf, struct iovec *iov)
{
	struct list *partial = &pool->partial[buf->use][buf->class];
	uint32_t piece_len = classes[buf->class].piece_len;
	struct chunk *chunk;
	size_t off;

	if (list_empty(partial))
		chunk = chunk_cut(pool, buf->use, buf->class);
	else
		chunk = container_of(partial->next, struct chunk, link);
	off = (size_t)(chunk - pool->chunks) * CHUNK_LEN;
	off += (size_t)chunk->free[--chunk->nfree] * piece_len;
	if (chunk->nfree == 0)
		list_del(&chunk->link);
	pool->nfree_pieces[buf->use][buf->class]--;
	iov->iov_base = pool->memory + off;
	iov->iov_len = piece_len;
}

static void piece_put(struct bufpool *pool, const struct buf *buf, const struct iovec *iov)
{
	size_t off = (size_t)((char *)iov->iov_base - pool->memory);
	struct chunk *chunk;

	assert(off < (size_t)pool->nchunks * CHUNK_LEN);
	chunk = &pool->chunks[off / CHUNK_LEN];
	assert(chunk->cut && chunk->class == buf->class && chunk->use == buf->use);
	assert(chunk->nfree < classes[chunk->class].per_chunk);
	if (chunk->nfree == 0)
		list_add_head(&pool->partial[chunk->use][chunk->class], &chunk->link);
	chunk->free[chunk->nfree++] = (uint8_t)(off % CHUNK_LEN / classes[chunk->class].piece_len);
	pool->nfree_pieces[chunk->use][chunk->class]++;
	if (chunk->nfree < classes[chunk->class].per_chunk)
		return;
	list_del(&chunk->link);
	chunk->cut = false;
	pool->nfree_pieces[chunk->use][chunk->class] -= chunk->nfree;
	if (chunk->use == BUFPOOL_NEEDS_PEER)
		pool->peer_chunks--;
	pool->free_chunks[pool->nfree_chunks++] = (uint32_t)(chunk - pool->chunks);
}

static void take(struct bufpool *pool, struct buf *buf)
{
	uint32_t n = npieces(buf), piece_len = classes[buf->class].piece_len;

	assert(n <= BUFPOOL_IOV_MAX);
	for (uint32_t i = 0; i < n; i++)
		piece_get(pool, buf, &buf->iov[i]);
	buf->iov[n - 1].iov_len = buf->len - (n - 1) * piece_len;
	buf->iovcnt = n;
	pool->bytes_used += (uint64_t)n * piece_len;
}

static struct buf *first_waiter(struct bufpool *pool, enum bufpool_use use)
{
	struct list *waiters = &pool->waiters[use];

	return list_empty(waiters) ? NULL : container_of(waiters->next, struct buf, wait_link);
}

/* Whose turn it is, fitting or not; NULL when nobody may be served. */
static struct buf *next_in_turn(struct bufpool *pool)
{
	struct buf *drains = first_waiter(pool, BUFPOOL_DRAINS);
	struct buf *peer = first_waiter(pool, BUFPOOL_NEEDS_PEER);

	if (peer && in_share(pool, peer) && (!drains || peer->ticket < drains->ticket))
		return peer;
	return drains;
}

static void leave_queue(struct bufpool *pool, struct buf *buf)
{
	list_del(&buf->wait_link);
	pool->waiting--;
}

bool bufpool_get(struct bufpool *pool, struct buf *buf, uint32_t len, enum bufpool_use use,
		 void (*ready)(struct buf *buf))
{
	assert(len > 0 && len <= BUFPOOL_TRANSFER_MAX);
	assert(buf->iovcnt == 0 && list_empty(&buf->wait_link));
	buf->len = len;
	buf->class = (uint8_t)class_of(len);
	buf->use = (uint8_t)use;
	buf->ready = ready;
	if (list_empty(&pool->waiters[use]) && !next_in_turn(pool) && fits(pool, buf)) {
		take(pool, buf);
		return true;
	}
	buf->ticket = pool->next_ticket++;
	list_add_tail(&pool->waiters[use], &buf->wait_link);
	pool->waiting++;
	pool->waited++;
	return false;
}

/* Serves those whose turn has come.  A ready callback may get and put: what it
 * gives back is seen by the loop that called it, not by a second one within. */
static void serve(struct bufpool *pool)
{
	struct buf *buf;

	if (pool->serving)
		return;
	pool->serving = true;
	while ((buf = next_in_turn(pool)) && fits(pool, buf)) {
		leave_queue(pool, buf);
		take(pool, buf);
		buf->ready(buf);
	}
	pool->serving = false;
}

void bufpool_put(struct bufpool *pool, struct buf *buf)
{
	if (!list_empty(&buf->wait_link)) {
		leave_queue(pool, buf);
	} else if (buf->iovcnt > 0) {
		/* The last piece taken was the coldest: give it back first. */
		for (uint32_t i = buf->iovcnt; i-- > 0;)
			piece_put(pool, buf, &buf->iov[i]);
		pool->bytes_used -= (uint64_t)buf->iovcnt * classes[buf->class].piece_len;
		buf->iovcnt = 0;
	} else {
		return;
	}
	if (pool->waiting > 0)
		serve(pool);
}

bool bufpool_low(const struct bufpool *pool)
{
	uint64_t bytes = (uint64_t)pool->nchunks * CHUNK_LEN;

	return pool->waiting > 0 || pool->bytes_used > bytes - bytes / 4;
}

void bufpool_stats(const struct bufpool *pool, struct bufpool_stats *out)
{
	*out = (struct bufpool_stats){
		.bytes = (uint64_t)pool->nchunks * CHUNK_LEN,
		.bytes_used = pool->bytes_used,
		.waiting = pool->waiting,
		.waited = pool->waited,
	};
}
