#include "backing/volume/region.h"

#include <stdlib.h>

#include "backing/volume/buddy.h"
#include "backing/volume/credit.h"
#include "backing/volume/log.h"
#include "backing/volume/merge.h"
#include "backing/volume/segment.h"
#include "backing/volume/stage.h"
#include "backing/volume/volumes.h"
#include "base/slab.h"

#define OVERLAY_PERCENT 35u /* of the pool's memory */
#define OVERLAY_FULL	85u /* percent of the share: nothing more is admitted */
#define OVERLAY_PRESSED 60u /* percent: merges begin */
/* Address space beyond the share, for a replay whose pool had more memory. */
#define OVERLAY_SPACE (1ull << 30)
#define BLOCK_SHIFT   8 /* three deltas */
#define SAMPLES	      16
/* Up to so many deltas each new one looks for those that it covers. */
#define SCAN_MAX 16u

struct regions {
	struct buddy memory; /* deltas and freed */
	struct slab *slab, *pages;
	struct list *buckets, *page_buckets;
	uint64_t mask;
	uint64_t share;
	struct list dirty;
	struct region_page **sample;
	uint32_t npages;
	uint64_t ndirty, ndeltas;
	uint64_t rng;
	bool refused; /* somebody waits for room */
};

/* ---- finding ---- */

static uint64_t hash(const struct regions *regions, const struct volume *volume, uint64_t index)
{
	uint64_t h = (index + ((uint64_t)volume->id << 40)) * 0x9e3779b97f4a7c15u;

	return (h >> 24) & regions->mask;
}

/* Buckets are zeros until they are used, so that opening touches none. */
static struct list *bucket(struct list *buckets, uint64_t i)
{
	if (!buckets[i].next)
		list_init(&buckets[i]);
	return &buckets[i];
}

struct region *region_find(struct pool *pool, struct volume *volume, uint64_t index)
{
	struct regions *regions = pool->regions;

	list_for_each(link, bucket(regions->buckets, hash(regions, volume, index))) {
		struct region *region = container_of(link, struct region, hash_link);

		if (region->index == index && region->volume == volume)
			return region;
	}
	return NULL;
}

static struct region_page *page_get(struct regions *regions, struct volume *volume, uint64_t index)
{
	struct list *head = bucket(regions->page_buckets, hash(regions, volume, index));
	struct region_page *page;

	list_for_each(link, head) {
		page = container_of(link, struct region_page, hash_link);
		if (page->index == index && page->volume == volume)
			return page;
	}
	page = slab_get(regions->pages);
	if (!page)
		return NULL;
	*page = (struct region_page){ .volume = volume, .index = index, .place = regions->npages };
	list_init(&page->regions);
	list_add_head(head, &page->hash_link);
	regions->sample[regions->npages++] = page;
	return page;
}

static void page_put(struct regions *regions, struct region_page *page)
{
	struct region_page *last;

	if (!list_empty(&page->regions))
		return;
	assert(page->ndeltas == 0);
	last = regions->sample[--regions->npages];
	regions->sample[page->place] = last;
	last->place = page->place;
	list_del(&page->hash_link);
	slab_put(regions->pages, page);
}

static bool regions_full(const struct pool *pool)
{
	return regions_memory(pool) > pool->regions->share / 100 * OVERLAY_FULL;
}

struct region *region_need(struct pool *pool, struct volume *volume, uint64_t index)
{
	struct regions *regions = pool->regions;
	struct region *region = region_find(pool, volume, index);
	struct region_page *page;

	if (region)
		return region;
	page = page_get(regions, volume, index / VF_FANOUT);
	region = page ? slab_get(regions->slab) : NULL;
	if (!region) {
		if (page)
			page_put(regions, page);
		return NULL;
	}
	*region = (struct region){ .volume = volume, .index = index, .page = page };
	list_init(&region->staged);
	list_init(&region->dirty_link);
	list_add_tail(&page->regions, &region->page_link);
	list_add_head(bucket(regions->buckets, hash(regions, volume, index)), &region->hash_link);
	return region;
}

struct region *region_get(struct pool *pool, struct volume *volume, uint64_t index)
{
	struct region *region = NULL;

	if (pool->recovering || !regions_full(pool))
		region = region_need(pool, volume, index);
	if (!region) {
		assert(!pool->recovering);
		pool->regions->refused = true;
		merger_kick(pool);
	}
	return region;
}

static void arrays_free(struct regions *regions, struct region *region)
{
	if (region->deltas && region->ndeltas == 0) {
		buddy_put(&regions->memory, region->deltas);
		region->deltas = NULL;
		region->room = 0;
	}
	if (region->freed && region->nfreed == 0) {
		buddy_put(&regions->memory, region->freed);
		region->freed = NULL;
		region->freed_room = 0;
	}
}

void region_put(struct pool *pool, struct region *region)
{
	struct regions *regions = pool->regions;

	if (region->first_seq || region->merging || region->holds || !list_empty(&region->staged))
		return;
	arrays_free(regions, region);
	list_del(&region->hash_link);
	list_del(&region->page_link);
	page_put(regions, region->page);
	slab_put(regions->slab, region);
}

/* ---- adding ---- */

static void *grown(struct pool *pool, void *old, size_t size, uint32_t n, uint32_t *room)
{
	struct regions *regions = pool->regions;
	size_t len = buddy_size(&regions->memory, old ? 2 * (size_t)*room * size : size);
	void *block = buddy_get(&regions->memory, len);

	/* Address space is many times what a log to be replayed can hold. */
	assert(block != NULL);
	if (old) {
		memcpy(block, old, n * size);
		buddy_put(&regions->memory, old);
	}
	*room = (uint32_t)(len / size);
	return block;
}

static void count_deltas(struct pool *pool, struct region *region, int change)
{
	pool->regions->ndeltas += (uint64_t)(int64_t)change;
	region->page->ndeltas += (uint32_t)change;
}

/*
 * Puts together what was freed in one segment.  Only where no LEAF_AT can come
 * between them any more: merges take what is durable, so both are in the next
 * one.  Not while a merge runs, which has counted the older ones alone, nor in
 * replay, which does not know what was durable then.
 */
static void freed_compact(struct pool *pool, struct region *region)
{
	uint64_t durable = pool->recovering || region->merging ? 0 : log_durable(pool);
	uint32_t n = 0;

	for (uint32_t i = 0, j; i < region->nfreed; i++) {
		struct freed freed = region->freed[i];

		for (j = 0; freed.seq <= durable && j < n; j++)
			if (region->freed[j].segno == freed.segno &&
			    region->freed[j].seq <= durable)
				break;
		if (freed.seq > durable || j == n) {
			region->freed[n++] = freed;
			continue;
		}
		region->freed[j].units += freed.units;
		if (region->freed[j].seq < freed.seq)
			region->freed[j].seq = freed.seq;
	}
	count_deltas(pool, region, (int)n - (int)region->nfreed);
	region->nfreed = n;
}

static void freed_add(struct pool *pool, struct region *region, const struct delta *delta,
		      uint64_t addr)
{
	if (region->nfreed == region->freed_room) {
		freed_compact(pool, region);
		if (region->nfreed >= region->freed_room / 2)
			region->freed = grown(pool, region->freed, sizeof(*region->freed),
					      region->nfreed, &region->freed_room);
	}
	region->freed[region->nfreed++] = (struct freed){
		.seq = delta->seq,
		.segno = addr_segment(pool, addr),
		.units = live_units(delta->entry.stored),
	};
	count_deltas(pool, region, 1);
}

/* What a delta that goes without a merge leaves to be freed. */
static void delta_drop(struct pool *pool, struct region *region, const struct delta *delta)
{
	if (delta->type == VF_DATA)
		freed_add(pool, region, delta, delta->entry.addr);
	else if (delta->type == VF_MOVE)
		freed_add(pool, region, delta, delta->moved_to);
	count_deltas(pool, region, -1);
}

/* Sectors painted so far, newest delta first. */
struct cover {
	uint64_t bits[VF_REGION_SECTORS / 64];
};

/* Adds a run; false: it was covered wholly before. */
static bool cover_add(struct cover *cover, uint32_t start, uint32_t nsectors)
{
	bool news = false;

	for (uint32_t i = start, end = start + nsectors; i < end;) {
		uint32_t n = 64 - i % 64 < end - i ? 64 - i % 64 : end - i;
		uint64_t mask = (n == 64 ? ~0ull : (1ull << n) - 1) << i % 64;

		news = news || (cover->bits[i / 64] & mask) != mask;
		cover->bits[i / 64] |= mask;
		i += n;
	}
	return news;
}

/* The first n go. */
static void deltas_shift(struct region *region, uint32_t n)
{
	region->ndeltas -= n;
	if (n > 0 && region->ndeltas > 0)
		memmove(region->deltas, region->deltas + n,
			region->ndeltas * sizeof(*region->deltas));
}

void region_compact(struct pool *pool, struct region *region)
{
	struct cover cover = { { 0 } };
	uint32_t at = region->ndeltas;

	for (uint32_t i = region->ndeltas; i-- > 0;) {
		struct delta *delta = &region->deltas[i];

		if (delta->type == VF_MOVE ||
		    cover_add(&cover, delta->entry.start, delta->entry.nsectors))
			region->deltas[--at] = *delta;
		else
			delta_drop(pool, region, delta);
	}
	deltas_shift(region, at);
}

static bool covers(const struct vf_entry *a, const struct vf_entry *b)
{
	return a->start <= b->start && a->start + a->nsectors >= b->start + b->nsectors;
}

/* The same for one new delta where there are few. */
static void deltas_scan(struct pool *pool, struct region *region, const struct delta *by)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < region->ndeltas; i++) {
		struct delta *delta = &region->deltas[i];

		if (delta->type == VF_MOVE || !covers(&by->entry, &delta->entry))
			region->deltas[n++] = *delta;
		else
			delta_drop(pool, region, delta);
	}
	region->ndeltas = n;
}

/* Puts it where its first_seq belongs: nearly always last. */
static void dirty_insert(struct regions *regions, struct region *region)
{
	struct list *after = regions->dirty.prev;

	while (after != &regions->dirty &&
	       container_of(after, struct region, dirty_link)->first_seq > region->first_seq)
		after = after->prev;
	list_add_head(after, &region->dirty_link);
}

void region_add(struct pool *pool, struct region *region, const struct delta *delta,
		uint64_t charge)
{
	struct regions *regions = pool->regions;
	const struct vf_entry *entry = &delta->entry;

	if (delta->type == VF_MOVE) {
		segment_born(pool, delta->moved_to, entry->stored, delta->seq);
	} else {
		assert(entry->nsectors >= 1 && entry->start < VF_REGION_SECTORS &&
		       entry->nsectors <= VF_REGION_SECTORS - entry->start);
		if (delta->type == VF_DATA)
			segment_born(pool, entry->addr, entry->stored, delta->seq);
		if (region->ndeltas <= SCAN_MAX)
			deltas_scan(pool, region, delta);
	}
	if (region->ndeltas == region->room) {
		region_compact(pool, region);
		if (region->ndeltas >= region->room - region->room / 4)
			region->deltas = grown(pool, region->deltas, sizeof(*region->deltas),
					       region->ndeltas, &region->room);
	}
	region->deltas[region->ndeltas++] = *delta;
	region->charge += charge;
	count_deltas(pool, region, 1);
	if (!region->first_seq) {
		region->first_seq = delta->seq;
		regions->ndirty++;
		dirty_insert(regions, region);
	}
	if (regions_pressed(pool))
		merger_kick(pool);
}

void region_readdress(struct pool *pool, struct region *region, uint64_t seq, uint32_t index,
		      uint64_t from, uint64_t to)
{
	for (uint32_t i = region->ndeltas; i-- > 0 && region->deltas[i].seq >= seq;) {
		struct delta *delta = &region->deltas[i];

		if (delta->seq != seq || delta->index != index)
			continue;
		assert(delta->type == VF_DATA && delta->entry.addr == from);
		delta->entry.addr = to;
		return;
	}
	/* It was dropped.  All of a group goes from one segment to another, so that any
	 * of its records that is noted there will do. */
	for (uint32_t i = region->nfreed; i-- > 0;) {
		struct freed *freed = &region->freed[i];

		if (freed->seq != seq || freed->segno != addr_segment(pool, from))
			continue;
		freed->segno = addr_segment(pool, to);
		return;
	}
}

/* ---- merging ---- */

/* The oldest of what is left. */
static uint64_t first_seq(const struct region *region)
{
	uint64_t seq = region->ndeltas ? region->deltas[0].seq : 0;

	for (uint32_t i = 0; i < region->nfreed; i++)
		if (!seq || region->freed[i].seq < seq)
			seq = region->freed[i].seq;
	return seq;
}

/* What was charged and cannot be needed any more. */
static void charge_give(struct pool *pool, struct region *region)
{
	uint64_t keep = 0;

	if (region->first_seq)
		keep = CREDIT_REGION + (uint64_t)CREDIT_DELTA * (region->ndeltas + region->nfreed);
	if (keep < region->charge) {
		credit_give(pool, region->charge - keep);
		region->charge = keep;
	}
}

void region_merged(struct pool *pool, struct volume *volume, uint64_t index, uint64_t merged_seq)
{
	struct regions *regions = pool->regions;
	struct region *region = region_find(pool, volume, index);
	uint32_t ndeltas = 0, nfreed = 0;

	if (!region || !region->first_seq)
		return;
	while (ndeltas < region->ndeltas && region->deltas[ndeltas].seq <= merged_seq)
		ndeltas++;
	deltas_shift(region, ndeltas);
	for (uint32_t i = 0; i < region->nfreed; i++)
		if (region->freed[i].seq > merged_seq)
			region->freed[nfreed++] = region->freed[i];
	count_deltas(pool, region, -(int)(ndeltas + region->nfreed - nfreed));
	region->nfreed = nfreed;
	list_del(&region->dirty_link);
	region->first_seq = first_seq(region);
	if (region->first_seq)
		dirty_insert(regions, region);
	else
		regions->ndirty--;
	arrays_free(regions, region);
	charge_give(pool, region);
	region_put(pool, region);
	if (regions->refused && !regions_full(pool)) {
		regions->refused = false;
		stage_retry(pool);
	}
}

/* ---- range operations ---- */

static void region_hide(struct pool *pool, struct region *region)
{
	for (uint32_t i = 0; i < region->ndeltas; i++)
		delta_drop(pool, region, &region->deltas[i]);
	region->ndeltas = 0;
	arrays_free(pool->regions, region);
	/* Holes alone: the leaf is hidden as well. */
	if (region->nfreed == 0 && region->first_seq) {
		region->first_seq = 0;
		pool->regions->ndirty--;
		list_del(&region->dirty_link);
		charge_give(pool, region);
	}
}

static void ranges_add(struct volume *volume, uint64_t index, uint64_t nregions, uint64_t seq)
{
	for (uint32_t i = 0; i < volume->nranges; i++) {
		struct volume_range *range = &volume->ranges[i];

		if (range->seq == 0 && range->region == index && range->nregions == nregions) {
			range->seq = seq;
			return;
		}
	}
	assert(volume->nranges < VF_RANGES_MAX);
	volume->ranges[volume->nranges++] =
		(struct volume_range){ .region = index, .nregions = nregions, .seq = seq };
}

void region_range(struct pool *pool, struct volume *volume, uint64_t index, uint64_t nregions,
		  uint64_t seq)
{
	struct list *next;

	for (struct list *link = pool->regions->dirty.next; link != &pool->regions->dirty;
	     link = next) {
		struct region *region = container_of(link, struct region, dirty_link);

		next = link->next;
		if (region->volume != volume || region->index < index ||
		    region->index - index >= nregions)
			continue;
		region_hide(pool, region);
		region_put(pool, region);
	}
	if (seq > volume->applied_seq) {
		ranges_add(volume, index, nregions, seq);
		volume->dirty = true;
	}
	merger_kick(pool);
}

uint64_t region_range_seq(const struct volume *volume, uint64_t index)
{
	uint64_t seq = 0;

	for (uint32_t i = 0; i < volume->nranges; i++) {
		const struct volume_range *range = &volume->ranges[i];

		if (range->seq > seq && index >= range->region &&
		    index - range->region < range->nregions)
			seq = range->seq;
	}
	return seq;
}

/* ---- all of them ---- */

uint64_t regions_oldest(const struct pool *pool)
{
	const struct list *dirty = &pool->regions->dirty;

	if (list_empty(dirty))
		return log_seq(pool) + 1;
	return container_of(dirty->next, struct region, dirty_link)->first_seq;
}

uint64_t regions_memory(const struct pool *pool)
{
	const struct regions *regions = pool->regions;

	return regions->memory.used +
	       (uint64_t)(slab_count(regions->slab) - slab_free_count(regions->slab)) *
		       sizeof(struct region) +
	       (uint64_t)regions->npages * sizeof(struct region_page);
}

bool regions_pressed(const struct pool *pool)
{
	return regions_memory(pool) > pool->regions->share / 100 * OVERLAY_PRESSED;
}

bool regions_have(const struct pool *pool, const struct volume *volume)
{
	for (uint32_t i = 0; i < pool->regions->npages; i++)
		if (pool->regions->sample[i]->volume == volume)
			return true;
	return false;
}

struct region *regions_first(struct pool *pool)
{
	struct list *dirty = &pool->regions->dirty;

	return list_empty(dirty) ? NULL : container_of(dirty->next, struct region, dirty_link);
}

struct region *regions_next(struct pool *pool, struct region *region)
{
	struct list *next = region->dirty_link.next;

	return next == &pool->regions->dirty ? NULL : container_of(next, struct region, dirty_link);
}

struct region_page *regions_fullest_page(struct pool *pool)
{
	struct regions *regions = pool->regions;
	struct region_page *best = NULL;

	for (uint32_t i = 0; i < SAMPLES && regions->npages > 0; i++) {
		struct region_page *page;

		regions->rng ^= regions->rng << 13;
		regions->rng ^= regions->rng >> 7;
		regions->rng ^= regions->rng << 17;
		page = regions->sample[regions->rng % regions->npages];
		if (page->ndeltas > 0 && (!best || page->ndeltas > best->ndeltas))
			best = page;
	}
	return best;
}

void regions_count(const struct pool *pool, struct regions_counts *out)
{
	*out = (struct regions_counts){ .nregions = pool->regions->ndirty,
					.ndeltas = pool->regions->ndeltas,
					.npages = pool->regions->npages };
}

int regions_open(struct pool *pool, struct err *err)
{
	struct regions *regions = calloc(1, sizeof(*regions));
	uint32_t nregions, npages;
	uint64_t nbuckets = 1024;

	if (!regions)
		return err_set(err, ENOMEM, "no memory for the overlay of pool \"%s\"", pool->name);
	pool->regions = regions;
	list_init(&regions->dirty);
	regions->share = pool->cache_memory / 100 * OVERLAY_PERCENT;
	regions->rng = 0x853c49e6748fea9bu;
	while (nbuckets * 1024 < regions->share)
		nbuckets *= 2;
	regions->mask = nbuckets - 1;
	/* As many as address space for deltas; touched as they are used. */
	nregions = (uint32_t)((OVERLAY_SPACE + regions->share) >> BLOCK_SHIFT);
	npages = nregions / 4;
	regions->buckets = calloc(nbuckets, sizeof(struct list));
	regions->page_buckets = calloc(nbuckets, sizeof(struct list));
	regions->slab = slab_create(sizeof(struct region), nregions);
	regions->pages = slab_create(sizeof(struct region_page), npages);
	regions->sample = calloc(npages, sizeof(struct region_page *));
	if (!regions->buckets || !regions->page_buckets || !regions->slab || !regions->pages ||
	    !regions->sample ||
	    !buddy_open(&regions->memory, OVERLAY_SPACE + regions->share, BLOCK_SHIFT)) {
		regions_close(pool);
		return err_set(err, ENOMEM, "no memory for the overlay of pool \"%s\"", pool->name);
	}
	return 0;
}

void regions_close(struct pool *pool)
{
	struct regions *regions = pool->regions;

	if (!regions)
		return;
	buddy_close(&regions->memory);
	if (regions->slab)
		slab_destroy(regions->slab);
	if (regions->pages)
		slab_destroy(regions->pages);
	free(regions->buckets);
	free(regions->page_buckets);
	free(regions->sample);
	free(regions);
	pool->regions = NULL;
}
