/*
 * Map pages in memory: leaves and directory pages of level 1, by address.
 *
 * Bounded by its share of cache_memory.  A page is loaded once, however many
 * wait for it, and verified against its slot's hash and by vf_*_check() before
 * anybody sees it.  Pages of a segment are purged when it is reused.
 */
#ifndef BACKING_VOLUME_CACHE_H
#define BACKING_VOLUME_CACHE_H

#include "backing/volume/internal.h"
#include "backing/volume/tree.h"

struct cache_page {
	const void *data; /* the structure, checked */
	uint32_t len;
	uint32_t pins;
};

int cache_open(struct pool *pool, struct err *err);
void cache_close(struct pool *pool);

/* Which page: what its check needs. */
struct cache_key {
	struct vf_slot slot;
	enum vf_type type; /* VF_LEAF, VF_DIR, ... */
	uint32_t tree;
	uint8_t level;
	uint64_t index;
};

/* Pinned, or NULL with *result LOADING or DAMAGED. */
struct cache_page *cache_get(struct pool *pool, const struct cache_key *key,
			     struct tree_waiter *waiter, enum tree_result *result);
/* In a fiber: 0, -EIO, -EUCLEAN. */
int cache_get_wait(struct pool *pool, const struct cache_key *key, struct cache_page **out);
void cache_put(struct pool *pool, struct cache_page *page);
/* A page that was just made, so that it need not be read. */
void cache_insert(struct pool *pool, const struct cache_key *key, const void *data, uint32_t len);
void cache_purge_segment(struct pool *pool, uint32_t segno);
uint64_t cache_memory(const struct pool *pool);

#endif
