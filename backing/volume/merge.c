/* When to merge what: pressure on the overlay, callers, and the reaper. */
#include "backing/volume/merge.h"

#include <stdlib.h>

#include "backing/volume/checkpoint.h"
#include "backing/volume/merge_batch.h"
#include "base/slab.h"

/* Of the pool's memory: directory pages that wait for a checkpoint. */
#define DIRS_PERCENT 5u
#define DIR_PAGE_LEN 10496u

static bool region_ready(const struct region *region, uint64_t seq)
{
	return !region->merging && !region->damaged && region->first_seq != 0 &&
	       region->first_seq <= seq;
}

/* Regions of a page that have something up to seq. */
static void page_add(struct merge_batch *batch, const struct region_page *page, uint64_t seq)
{
	list_for_each(link, &page->regions) {
		struct region *region = container_of(link, struct region, page_link);

		if (region_ready(region, seq) && !merge_batch_add(batch, region, false))
			return;
	}
}

static uint64_t mergeable(const struct pool *pool)
{
	return pool_mutant(pool, MUTANT_MERGE_NOT_DURABLE) ? log_seq(pool) : log_durable(pool);
}

/* Fills a batch, the oldest first; true: it is empty, since others merge them. */
static bool until_add(struct merge_batch *batch, uint64_t seq)
{
	struct pool *pool = batch->pool;
	bool others = false;

	for (struct region *region = regions_first(pool);
	     region && region->first_seq <= seq && batch->n < BATCH_MAX;
	     region = regions_next(pool, region)) {
		if (region_ready(region, seq))
			page_add(batch, region->page, mergeable(pool));
		else if (region->merging)
			others = true;
	}
	return others && batch->n == 0;
}

int merge_until(struct pool *pool, uint64_t seq)
{
	struct merger *merger = pool->merger;

	for (;;) {
		struct merge_batch *batch = merge_batch_get(pool);
		bool others = until_add(batch, seq);
		int rc = 0;

		if (batch->n > 0)
			rc = merge_batch_run(batch);
		else if (!others)
			rc = regions_oldest(pool) <= seq ? -EUCLEAN : 1;
		merge_batch_put(batch);
		if (rc)
			return rc < 0 ? rc : 0;
		if (others)
			fiber_queue_wait(&merger->changed);
	}
}

static int merge_one(struct pool *pool, struct volume *volume, uint64_t index, bool rewrite)
{
	uint64_t seq = mergeable(pool);
	struct region *region;
	int rc = 0;

	while (!rc && ((region = region_find(pool, volume, index)) || rewrite)) {
		struct merge_batch *batch;

		if (region && region->merging) {
			fiber_queue_wait(&pool->merger->changed);
			continue;
		}
		if (!rewrite && !region_ready(region, seq))
			return region->damaged ? -EUCLEAN : 0;
		batch = merge_batch_get(pool);
		region = region_need(pool, volume, index);
		if (!region)
			rc = -ENOMEM;
		else if (merge_batch_add(batch, region, rewrite)) {
			rewrite = false;
			rc = merge_batch_run(batch);
		}
		merge_batch_put(batch);
	}
	return rc;
}

int merge_region(struct pool *pool, struct volume *volume, uint64_t index)
{
	return merge_one(pool, volume, index, false);
}

int merge_rewrite(struct pool *pool, struct volume *volume, uint64_t index)
{
	return merge_one(pool, volume, index, true);
}

/* ---- by itself ---- */

/* The page with most deltas; false: nothing could be done now. */
static bool relieve(struct pool *pool)
{
	struct merge_batch *batch = merge_batch_get(pool);
	struct region_page *page = regions_fullest_page(pool);
	int rc = 0;

	if (page)
		page_add(batch, page, mergeable(pool));
	if (batch->n == 0) {
		struct region *oldest = regions_first(pool);

		if (oldest && region_ready(oldest, mergeable(pool)))
			page_add(batch, oldest->page, mergeable(pool));
	}
	if (batch->n > 0) {
		rc = merge_batch_run(batch);
		merge_batch_put(batch);
		return rc == 0;
	}
	merge_batch_put(batch);
	/* What there is, is not durable, or others merge it. */
	return log_durable(pool) < log_seq(pool) && log_wait_durable(pool, log_seq(pool)) == 0;
}

static bool dirs_full(const struct pool *pool)
{
	return (uint64_t)pool->ndir_pages * DIR_PAGE_LEN > pool->cache_memory / 100 * DIRS_PERCENT;
}

static bool merger_may(const struct pool *pool)
{
	return !pool->merger->stopping && !pool->closing && !pool->read_only && !pool->recovering;
}

static void merger_run(void *arg)
{
	struct pool *pool = arg;
	struct merger *merger = pool->merger;

	while (merger_may(pool)) {
		if (dirs_full(pool) && checkpoint_run(pool) != 0)
			break;
		if (regions_pressed(pool) ? !relieve(pool) : !reap(pool))
			break;
	}
	merger->running = false;
	fiber_queue_wake_all(&merger->stopped);
}

void merger_kick(struct pool *pool)
{
	struct merger *merger = pool->merger;

	if (!merger || merger->running || !merger_may(pool))
		return;
	merger->running = fiber_start(pool->fibers, merger_run, pool);
}

void merger_tick(struct pool *pool)
{
	merger_kick(pool);
}

void merger_stop(struct pool *pool)
{
	struct merger *merger = pool->merger;

	merger->stopping = true;
	while (merger->running)
		fiber_queue_wait(&merger->stopped);
	merge_batches_drain(pool);
	merger->stopping = false;
}

int merger_open(struct pool *pool, struct err *err)
{
	struct merger *merger = calloc(1, sizeof(*merger));
	size_t share = pool->cache_memory / 100 * MERGE_PERCENT, len = BATCH_LEN_MIN;
	bool all;

	if (!merger)
		return err_set(err, ENOMEM, "no memory for merges of pool \"%s\"", pool->name);
	pool->merger = merger;
	merger->pool = pool;
	fiber_queue_init(&merger->idle);
	fiber_queue_init(&merger->changed);
	fiber_queue_init(&merger->stopped);
	if (share > sizeof(struct leaf_edit) && (share - sizeof(struct leaf_edit)) / BATCHES > len)
		len = (share - sizeof(struct leaf_edit)) / BATCHES;
	if (len > pool->geometry.segment_len)
		len = pool->geometry.segment_len;
	merger->edit = malloc(sizeof(*merger->edit));
	merger->changes = malloc(MERGE_CHANGES_MAX * sizeof(*merger->changes));
	merger->posts = slab_create(sizeof(struct merge_post), 16 * BATCH_MAX);
	all = merger->edit && merger->changes && merger->posts;
	for (uint32_t i = 0; i < BATCHES; i++) {
		merger->batches[i].pool = pool;
		merger->batches[i].len = len;
		merger->batches[i].mem = malloc(len);
		all = all && merger->batches[i].mem;
	}
	if (!all) {
		merger_close(pool);
		return err_set(err, ENOMEM, "no memory for merges of pool \"%s\"", pool->name);
	}
	return 0;
}

void merger_close(struct pool *pool)
{
	struct merger *merger = pool->merger;

	if (!merger)
		return;
	for (uint32_t i = 0; i < BATCHES; i++)
		free(merger->batches[i].mem);
	if (merger->posts)
		slab_destroy(merger->posts);
	free(merger->changes);
	free(merger->edit);
	free(merger);
	pool->merger = NULL;
}
