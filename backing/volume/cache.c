/*
 * Eviction is CLOCK: each page has a count that uses raise and the hand lowers;
 * directory pages begin higher, since each leads to 256 leaves.
 */
#include "backing/volume/cache.h"

#include <stdlib.h>

#include "backing/volume/buddy.h"
#include "backing/volume/iobuf.h"
#include "backing/volume/segment.h"
#include "base/slab.h"

#define CACHE_PERCENT 25u /* of the pool's memory */
#define BLOCK_SHIFT   8
#define LOADS_MAX     128u
#define USES_MAX      3u
/* Bytes that the largest page of the map takes as stored. */
#define PAGE_LEN_MAX (96u << 10)

struct page {
	struct cache_page pub;
	struct list hash_link, clock_link; /* clock_link: pending while not loading yet */
	struct cache_key key;
	uint8_t uses;
	bool loading;
	struct list waiters; /* struct tree_waiter */
};

struct load {
	struct vdev_io io;
	struct iovec iov;
	struct pool *pool;
	struct page *page;
};

struct cache {
	struct pool *pool;
	struct buddy memory;
	struct slab *pages, *loads;
	struct list *buckets;
	uint64_t mask;
	struct list clock;
	struct list pending; /* pages to be loaded */
	struct iobuf_waiter waiter;
};

static uint64_t key_addr(const struct cache_key *key)
{
	return vf_where_addr(le64_get(&key->slot.where));
}

static uint32_t key_stored(const struct cache_key *key)
{
	return vf_where_stored(le64_get(&key->slot.where));
}

static struct list *bucket(struct cache *cache, uint64_t addr)
{
	struct list *head = &cache->buckets[(addr * 0x9e3779b97f4a7c15u >> 20) & cache->mask];

	if (!head->next)
		list_init(head);
	return head;
}

static struct page *page_find(struct cache *cache, uint64_t addr)
{
	list_for_each(link, bucket(cache, addr)) {
		struct page *page = container_of(link, struct page, hash_link);

		if (key_addr(&page->key) == addr)
			return page;
	}
	return NULL;
}

static void page_drop(struct cache *cache, struct page *page)
{
	assert(page->pub.pins == 0 && !page->loading && list_empty(&page->waiters));
	if (page->pub.data)
		buddy_put(&cache->memory, (void *)page->pub.data);
	list_del(&page->hash_link);
	list_del(&page->clock_link);
	slab_put(cache->pages, page);
}

/* One page goes; false: none may. */
static bool page_evict(struct cache *cache)
{
	uint64_t left = ((uint64_t)slab_count(cache->pages) - slab_free_count(cache->pages)) *
			(USES_MAX + 2);

	for (; left > 0 && !list_empty(&cache->clock); left--) {
		struct page *page = container_of(cache->clock.next, struct page, clock_link);

		if (page->pub.pins == 0 && !page->loading && page->uses == 0) {
			page_drop(cache, page);
			return true;
		}
		if (page->uses > 0)
			page->uses--;
		list_del(&page->clock_link);
		list_add_tail(&cache->clock, &page->clock_link);
	}
	return false;
}

static struct page *page_new(struct cache *cache, const struct cache_key *key)
{
	struct page *page;

	while ((page = slab_get(cache->pages)) == NULL)
		if (!page_evict(cache))
			return NULL;
	*page = (struct page){ .key = *key, .uses = key->type == VF_LEAF ? 0 : USES_MAX };
	list_init(&page->waiters);
	list_init(&page->clock_link);
	list_add_head(bucket(cache, key_addr(key)), &page->hash_link);
	return page;
}

static bool page_fill(struct cache *cache, struct page *page, const void *data, uint32_t len)
{
	void *block;

	while ((block = buddy_get(&cache->memory, len)) == NULL)
		if (!page_evict(cache))
			return false;
	memcpy(block, data, len);
	page->pub.data = block;
	page->pub.len = len;
	return true;
}

static bool page_right(const struct pool *pool, const struct cache_key *key, const void *data,
		       uint32_t len)
{
	const struct vf_geometry *geometry = &pool->geometry;
	struct vf_hash hash = vf_hash(data, len);

	if (!vf_hash_equal(&hash, &key->slot.hash))
		return false;
	switch (key->type) {
	case VF_LEAF: return vf_leaf_check(data, len, geometry, key->tree, key->index);
	case VF_DIR: return vf_dir_check(data, len, geometry, key->tree, key->level, key->index);
	case VF_SEGTAB: return vf_segtab_check(data, len, geometry, key->index);
	case VF_VOLUME: return vf_volume_check(data, len, geometry, (uint32_t)key->index);
	default: return false;
	}
}

/* ---- loading ---- */

static void pump(struct cache *cache);

/* Tells those who wait.  A page that cannot be had is forgotten, so that the next
 * one to ask tries again. */
static void page_loaded(struct cache *cache, struct page *page, int err)
{
	struct list waiters;
	struct list *link;

	list_init(&waiters);
	list_splice(&waiters, &page->waiters);
	page->loading = false;
	if (err)
		page_drop(cache, page);
	else
		list_add_tail(&cache->clock, &page->clock_link);
	while ((link = list_pop(&waiters)) != NULL) {
		struct tree_waiter *waiter = container_of(link, struct tree_waiter, link);

		waiter->err = err;
		waiter->ready(waiter);
	}
}

static void load_done(struct vdev_io *io)
{
	struct load *load = container_of(io, struct load, io);
	struct cache *cache = load->pool->cache;
	struct pool *pool = load->pool;
	struct page *page = load->page;
	uint8_t *buf = load->iov.iov_base;
	const uint8_t *data = buf + key_addr(&page->key) * VF_UNIT % VF_BLOCK;
	uint32_t len = key_stored(&page->key) * VF_UNIT;
	int err = io->err ? EIO : 0;

	if (!err && !page_right(pool, &page->key, data, len))
		err = EUCLEAN;
	if (!err && !page_fill(cache, page, data, len))
		err = EIO;
	slab_put(cache->loads, load);
	segment_unpin(pool, addr_segment(pool, key_addr(&page->key)));
	/* Before the buffer is given away: whoever gets it may need a page again. */
	page_loaded(cache, page, err);
	iobuf_put(pool, buf);
	pump(cache);
}

static void load_begin(struct cache *cache, struct page *page, struct load *load, void *buf)
{
	uint64_t addr = key_addr(&page->key);
	uint64_t from = addr * VF_UNIT & ~(uint64_t)(VF_BLOCK - 1);
	uint64_t end = ((addr + key_stored(&page->key)) * VF_UNIT + VF_BLOCK - 1) &
		       ~(uint64_t)(VF_BLOCK - 1);

	*load = (struct load){ .pool = cache->pool, .page = page };
	load->iov = (struct iovec){ .iov_base = buf, .iov_len = end - from };
	load->io = (struct vdev_io){ .op = VDEV_READ,
				     .off = from,
				     .len = end - from,
				     .iov = &load->iov,
				     .iovcnt = 1,
				     .done = load_done };
	segment_pin(cache->pool, addr_segment(cache->pool, addr));
	cache->pool->env->ops->submit(cache->pool->env, &load->io);
}

static void pump(struct cache *cache)
{
	while (!list_empty(&cache->pending)) {
		struct page *page = container_of(cache->pending.next, struct page, clock_link);
		struct load *load = slab_get(cache->loads);
		void *buf;

		if (!load)
			return;
		buf = iobuf_get(cache->pool, key_stored(&page->key) * VF_UNIT + 2 * VF_BLOCK,
				&cache->waiter);
		if (!buf) {
			slab_put(cache->loads, load);
			return;
		}
		list_del(&page->clock_link);
		load_begin(cache, page, load, buf);
	}
}

static void pump_again(struct iobuf_waiter *waiter)
{
	pump(container_of(waiter, struct cache, waiter));
}

struct cache_page *cache_get(struct pool *pool, const struct cache_key *key,
			     struct tree_waiter *waiter, enum tree_result *result)
{
	struct cache *cache = pool->cache;
	struct page *page = page_find(cache, key_addr(key));

	if (page && !page->loading) {
		if (page->uses < USES_MAX)
			page->uses++;
		page->pub.pins++;
		*result = TREE_FOUND;
		return &page->pub;
	}
	*result = TREE_DAMAGED;
	if (!page) {
		if (key_stored(key) * VF_UNIT > PAGE_LEN_MAX)
			return NULL;
		page = page_new(cache, key);
		if (!page)
			return NULL;
		page->loading = true;
		list_add_tail(&cache->pending, &page->clock_link);
	}
	if (waiter) {
		waiter->err = 0;
		list_add_tail(&page->waiters, &waiter->link);
	}
	*result = TREE_LOADING;
	pump(cache);
	return NULL;
}

struct fiber_waiter {
	struct tree_waiter waiter;
	struct fiber *fiber;
	bool ready;
};

static void fiber_ready_again(struct tree_waiter *waiter)
{
	struct fiber_waiter *w = container_of(waiter, struct fiber_waiter, waiter);

	w->ready = true;
	fiber_wake(w->fiber);
}

int cache_get_wait(struct pool *pool, const struct cache_key *key, struct cache_page **out)
{
	for (;;) {
		struct fiber_waiter w = { .waiter.ready = fiber_ready_again,
					  .fiber = fiber_self() };
		enum tree_result result;

		*out = cache_get(pool, key, &w.waiter, &result);
		if (*out)
			return 0;
		if (result == TREE_DAMAGED)
			return -EUCLEAN;
		while (!w.ready)
			fiber_wait();
		if (w.waiter.err)
			return -w.waiter.err;
	}
}

void cache_put(struct pool *pool, struct cache_page *pub)
{
	(void)pool;
	assert(pub->pins > 0);
	pub->pins--;
}

void cache_insert(struct pool *pool, const struct cache_key *key, const void *data, uint32_t len)
{
	struct cache *cache = pool->cache;
	struct page *page = page_find(cache, key_addr(key));

	if (page && (page->loading || page->pub.pins > 0))
		return;
	if (page)
		page_drop(cache, page);
	page = page_new(cache, key);
	if (!page)
		return;
	if (page_fill(cache, page, data, len))
		list_add_tail(&cache->clock, &page->clock_link);
	else
		page_drop(cache, page);
}

void cache_purge_segment(struct pool *pool, uint32_t segno)
{
	struct cache *cache = pool->cache;

	if (pool_mutant(pool, MUTANT_NO_PURGE))
		return;
	list_for_each_safe(link, &cache->clock) {
		struct page *page = container_of(link, struct page, clock_link);

		if (addr_segment(pool, key_addr(&page->key)) == segno)
			page_drop(cache, page);
	}
}

uint64_t cache_memory(const struct pool *pool)
{
	const struct cache *cache = pool->cache;

	return cache->memory.used +
	       (uint64_t)(slab_count(cache->pages) - slab_free_count(cache->pages)) *
		       sizeof(struct page);
}

int cache_open(struct pool *pool, struct err *err)
{
	struct cache *cache = calloc(1, sizeof(*cache));
	uint64_t share = pool->cache_memory / 100 * CACHE_PERCENT, nbuckets = 256;

	if (!cache)
		return err_set(err, ENOMEM, "no memory for the cache of pool \"%s\"", pool->name);
	pool->cache = cache;
	cache->pool = pool;
	list_init(&cache->clock);
	list_init(&cache->pending);
	list_init(&cache->waiter.link);
	cache->waiter.ready = pump_again;
	while (nbuckets * 4096 < share)
		nbuckets *= 2;
	cache->mask = nbuckets - 1;
	cache->buckets = calloc(nbuckets, sizeof(struct list));
	/* A sixth for what describes the pages. */
	cache->pages = slab_create(sizeof(struct page),
				   (uint32_t)(share / 6 / sizeof(struct page)));
	cache->loads = slab_create(sizeof(struct load), LOADS_MAX);
	if (!cache->buckets || !cache->pages || !cache->loads ||
	    !buddy_open(&cache->memory, share - share / 6, BLOCK_SHIFT)) {
		cache_close(pool);
		return err_set(err, ENOMEM, "no memory for the cache of pool \"%s\"", pool->name);
	}
	return 0;
}

void cache_close(struct pool *pool)
{
	struct cache *cache = pool->cache;

	if (!cache)
		return;
	buddy_close(&cache->memory);
	if (cache->pages)
		slab_destroy(cache->pages);
	if (cache->loads)
		slab_destroy(cache->loads);
	free(cache->buckets);
	free(cache);
	pool->cache = NULL;
}
