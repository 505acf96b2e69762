/*
 * The reaper: works off range operations and deleted volumes, a batch at a time.
 *
 * It walks the leaves there are; a merge of each obeys the range, or the
 * deletion.  When the walk finds none, what it was for is done.  It begins anew
 * after a crash, and finds less.
 */
#include "backing/volume/checkpoint.h"
#include "backing/volume/merge_batch.h"
#include "backing/volume/stage.h"

/* Leaves merged up to less than seq, from first on; the batch's share of them.
 * 0: there was none; 1: some; -errno. */
static int reap_some(struct pool *pool, struct volume *volume, uint64_t first, uint64_t nregions,
		     uint64_t seq)
{
	struct merge_batch *batch = merge_batch_get(pool);
	uint64_t index = first;
	bool found = false;
	int rc = 0;

	while (batch->n < BATCH_MAX) {
		struct region *region;
		struct vf_slot slot;

		rc = tree_next(&volume->head, &index, &slot);
		if (rc || index - first >= nregions)
			break;
		if (le64_get(&slot.merged_seq) < seq) {
			found = true;
			region = region_need(pool, volume, index);
			if (region && !merge_batch_add(batch, region, false))
				region_put(pool, region);
		}
		index++;
	}
	if (rc == -ENOENT)
		rc = 0;
	if (batch->n > 0) {
		int err = merge_batch_run(batch);

		rc = rc ? rc : err;
	} else if (found && !rc) {
		/* Others merge them. */
		fiber_queue_wait(&pool->merger->changed);
	}
	merge_batch_put(batch);
	return rc ? rc : found;
}

static void range_remove(struct volume *volume, uint64_t seq)
{
	for (uint32_t i = 0; i < volume->nranges; i++) {
		if (volume->ranges[i].seq != seq)
			continue;
		volume->nranges--;
		memmove(&volume->ranges[i], &volume->ranges[i + 1],
			(volume->nranges - i) * sizeof(volume->ranges[i]));
		break;
	}
	volume->dirty = true;
	stage_retry(volume->pool);
}

/* 1: something was done; 0: no; -errno. */
static int reap_range(struct pool *pool, struct volume *volume)
{
	for (uint32_t i = 0; i < volume->nranges; i++) {
		struct volume_range range = volume->ranges[i];
		int rc;

		if (range.seq == 0 || range.ticket != 0 || range.seq > log_durable(pool))
			continue;
		/* A merge begun before may still make a leaf that does not obey it. */
		merge_batches_drain(pool);
		rc = reap_some(pool, volume, range.region, range.nregions, range.seq);
		if (rc)
			return rc;
		range_remove(volume, range.seq);
		return 1;
	}
	return 0;
}

/* A region of the volume that is in memory; NULL: none. */
static struct region *region_left(struct pool *pool, const struct volume *volume)
{
	for (struct region *region = regions_first(pool); region;
	     region = regions_next(pool, region))
		if (region->volume == volume)
			return region;
	return NULL;
}

static int reap_volume(struct pool *pool, struct volume *volume)
{
	struct region *region;
	int rc;

	merge_batches_drain(pool);
	rc = reap_some(pool, volume, 0, UINT64_MAX, UINT64_MAX);
	if (rc)
		return rc;
	region = region_left(pool, volume);
	if (region) {
		if (region->first_seq > log_durable(pool))
			rc = log_wait_durable(pool, region->first_seq);
		if (!rc)
			rc = merge_region(pool, volume, region->index);
		return rc ? rc : 1;
	}
	/* Its directories go with the next checkpoint. */
	if (volume->head.level > 0 || volume->head.dirty) {
		checkpoint_want(pool);
		return 0;
	}
	if (regions_have(pool, volume))
		return 0;
	volume_forget(volume);
	return 1;
}

bool reap(struct pool *pool)
{
	struct volume *next;

	for (struct volume *volume = volumes_each(pool, NULL); volume; volume = next) {
		int rc;

		next = volumes_each(pool, volume);
		rc = volume->deleting ? reap_volume(pool, volume) : reap_range(pool, volume);
		if (rc)
			return rc > 0;
	}
	return false;
}
