#include "backing/volume/iobuf.h"

#include <stdlib.h>

#include "backing/volume/buddy.h"

#define IOBUF_PERCENT 12u
/* A record of the longest kind with what it must be rounded to, and map pages. */
#define IOBUF_LEN_MIN (2 * VF_RECORD_MAX + (512u << 10))

struct iobufs {
	struct buddy memory;
	struct list waiting;
	bool waking;
};

int iobufs_open(struct pool *pool, struct err *err)
{
	struct iobufs *iobufs = calloc(1, sizeof(*iobufs));
	uint64_t len = pool->cache_memory / 100 * IOBUF_PERCENT;

	if (len < IOBUF_LEN_MIN)
		len = IOBUF_LEN_MIN;
	if (!iobufs || !buddy_open(&iobufs->memory, len, 12)) {
		free(iobufs);
		return err_set(err, ENOMEM, "no memory for reads of pool \"%s\"", pool->name);
	}
	list_init(&iobufs->waiting);
	pool->iobufs = iobufs;
	return 0;
}

void iobufs_close(struct pool *pool)
{
	if (!pool->iobufs)
		return;
	buddy_close(&pool->iobufs->memory);
	free(pool->iobufs);
	pool->iobufs = NULL;
}

void *iobuf_get(struct pool *pool, size_t len, struct iobuf_waiter *waiter)
{
	struct iobufs *iobufs = pool->iobufs;
	void *buf = NULL;

	/* Who comes now does not pass those who wait, unless it is their turn. */
	if (list_empty(&iobufs->waiting) || iobufs->waking)
		buf = buddy_get(&iobufs->memory, len);
	if (!buf && waiter && list_empty(&waiter->link)) {
		if (iobufs->waking)
			list_add_head(&iobufs->waiting, &waiter->link);
		else
			list_add_tail(&iobufs->waiting, &waiter->link);
	}
	return buf;
}

void iobuf_put(struct pool *pool, void *buf)
{
	struct iobufs *iobufs = pool->iobufs;
	struct list *link;

	buddy_put(&iobufs->memory, buf);
	if (iobufs->waking)
		return;
	iobufs->waking = true;
	while ((link = list_pop(&iobufs->waiting)) != NULL) {
		struct iobuf_waiter *waiter = container_of(link, struct iobuf_waiter, link);

		waiter->ready(waiter);
		if (iobufs->waiting.next == link)
			break; /* there still is not enough for the first */
	}
	iobufs->waking = false;
}

uint64_t iobufs_memory(const struct pool *pool)
{
	return pool->iobufs->memory.used;
}
