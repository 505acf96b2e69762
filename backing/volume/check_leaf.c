/* Leaves and records, as pool_check() sees them. */
#include "backing/volume/check.h"

#include <inttypes.h>
#include <stdlib.h>

#include "backing/volume/cache.h"
#include "backing/volume/io.h"
#include "backing/volume/log.h"
#include "backing/volume/region.h"
#include "backing/volume/volumes.h"

/* An entry that names a record. */
struct check_record {
	struct vf_entry entry;
};

/* ---- records ---- */

static int by_addr(const void *a, const void *b)
{
	const struct check_record *x = a, *y = b;

	if (x->entry.addr != y->entry.addr)
		return x->entry.addr < y->entry.addr ? -1 : 1;
	return (x->entry.start > y->entry.start) - (x->entry.start < y->entry.start);
}

static bool same_record(const struct vf_entry *a, const struct vf_entry *b)
{
	return a->stored == b->stored && a->codec == b->codec && a->raw == b->raw &&
	       a->start - a->off == b->start - b->off &&
	       !memcmp(a->check, b->check, sizeof(a->check));
}

/* What was read of a record is what was written, and expands. */
static bool record_right(struct check *check, const struct volume *volume, uint64_t region,
			 const struct vf_entry *entry, const uint8_t *stored)
{
	uint64_t lba = region * VF_REGION_SECTORS + entry->start - entry->off;
	const struct vf_prefix *prefix = (const struct vf_prefix *)stored;
	size_t len = (size_t)entry->stored * VF_UNIT, n;
	uint64_t sum[3];

	vf_record_sum(check->pool->super.salt, volume->id, lba, stored, len, volume->wide, sum,
		      NULL);
	if (memcmp(sum, entry->check, sizeof(sum)) != 0)
		return false;
	if (entry->raw)
		return true;
	n = le16_get(&prefix->nsectors);
	if (n == 0 || n > VF_REGION_SECTORS || prefix->codec != entry->codec ||
	    le32_get(&prefix->len) > len - sizeof(*prefix))
		return false;
	return codec_expand(check->pool->env->workspace, prefix->codec, check->expanded,
			    n * VF_SECTOR, prefix + 1, le32_get(&prefix->len));
}

static void check_payload(struct check *check, const struct volume *volume, uint64_t region,
			  const struct vf_entry *entry)
{
	uint64_t off = entry->addr * VF_UNIT, from = off / VF_BLOCK * VF_BLOCK;
	uint64_t end = off + (uint64_t)entry->stored * VF_UNIT;
	uint64_t len = (end - from + VF_BLOCK - 1) / VF_BLOCK * VF_BLOCK;
	int rc;

	if (len > check->pool->geometry.segment_len)
		return; /* said already: it leaves its segment */
	rc = vdev_do(check->pool->env, VDEV_READ, from, check->buf, len);
	check->report->bytes_read += len;
	if (rc)
		check_say(check, 20, "volume %u sector %" PRIu64 ": %s", volume->id,
			  region * VF_REGION_SECTORS + entry->start, err_name(-rc));
	else if (!record_right(check, volume, region, entry, check->buf + (off - from)))
		check_say(check, 20,
			  "volume %u sector %" PRIu64 ": the record at %" PRIu64 " is damaged",
			  volume->id, region * VF_REGION_SECTORS + entry->start, entry->addr);
}

/* ---- leaves ---- */

static void check_entry(struct check *check, const struct volume *volume, uint64_t region,
			const struct vf_entry *entry, uint32_t end)
{
	uint64_t lba = region * VF_REGION_SECTORS + entry->start;

	if (entry->start < end || entry->nsectors == 0 ||
	    entry->start + entry->nsectors > VF_REGION_SECTORS)
		check_say(check, 2, "volume %u sector %" PRIu64 ": entries overlap", volume->id,
			  lba);
	if (entry->birth > check->pool->epoch)
		check_say(check, 3, "volume %u sector %" PRIu64 ": born in epoch %u, it is %u",
			  volume->id, lba, entry->birth, check->pool->epoch);
	if (lba + entry->nsectors > volume->settings.nsectors)
		check_say(check, 2, "volume %u sector %" PRIu64 ": beyond the volume's end",
			  volume->id, lba);
	if (!(entry->flags & VF_ENTRY_HOLE) && entry->off > entry->start)
		check_say(check, 6,
			  "volume %u sector %" PRIu64 ": its record begins before the region",
			  volume->id, lba);
}

/* Each record once, its entries alike. */
static void check_records(struct check *check, const struct volume *volume, uint64_t region,
			  struct check_record *records, uint32_t n)
{
	qsort(records, n, sizeof(*records), by_addr);
	for (uint32_t i = 0, next; i < n; i = next) {
		const struct vf_entry *first = &records[i].entry;

		for (next = i + 1; next < n && records[next].entry.addr == first->addr; next++) {
			const struct vf_entry *entry = &records[next].entry;

			if (!same_record(first, entry) ||
			    !(first->flags & entry->flags & VF_ENTRY_SPLIT))
				check_say(check, 6,
					  "volume %u region %" PRIu64
					  ": entries of the record at %" PRIu64 " differ",
					  volume->id, region, first->addr);
		}
		check_named(check, first->addr, first->stored, "a record");
		if (!check->first_window)
			continue;
		check->report->nrecords++;
		if (check->depth == POOL_CHECK_DEEP)
			check_payload(check, volume, region, first);
	}
}

/* Returns the sectors that the leaf maps. */
static uint64_t check_leaf(struct check *check, struct volume *volume, uint64_t region,
			   const struct vf_leaf *leaf)
{
	const uint8_t *at = (const uint8_t *)(leaf + 1);
	uint32_t count = le16_get(&leaf->count), n = 0, end = 0;
	uint64_t mapped = 0;

	for (uint32_t i = 0; i < count; i++, at += leaf->entry_len) {
		struct vf_entry *entry = &check->records[n].entry;

		vf_entry_get(at, entry, volume->wide);
		if (check->first_window)
			check_entry(check, volume, region, entry, end);
		end = (uint32_t)entry->start + entry->nsectors;
		if (entry->flags & VF_ENTRY_HOLE)
			continue;
		mapped += entry->nsectors;
		n++;
	}
	if (check->first_window) {
		check->report->nleaves++;
		check->report->nentries += count;
	}
	check_records(check, volume, region, check->records, n);
	return mapped;
}

static int check_volume(struct check *check, struct volume *volume)
{
	struct cache_key key = { .type = VF_LEAF, .tree = volume->id };
	struct cache_page *page;
	uint64_t mapped = 0;
	bool whole = true;
	int rc;

	while ((rc = tree_next(&volume->head, &key.index, &key.slot)) != -ENOENT) {
		uint64_t where = le64_get(&key.slot.where);

		if (rc == -ENOMEM)
			return rc;
		if (rc) { /* said already; what is below it is not known */
			whole = false;
			key.index = (key.index / VF_FANOUT + 1) * VF_FANOUT;
			continue;
		}
		check_named(check, vf_where_addr(where), vf_where_stored(where), "a leaf");
		rc = cache_get_wait(check->pool, &key, &page);
		if (rc) {
			whole = false;
			check_say(check, 5,
				  "volume %u: the leaf of region %" PRIu64 " cannot be read: %s",
				  volume->id, key.index, err_name(-rc));
		} else {
			mapped += check_leaf(check, volume, key.index, page->data);
			cache_put(check->pool, page);
		}
		if (le64_get(&key.slot.merged_seq) > log_durable(check->pool))
			check_say(check, 7,
				  "volume %u: region %" PRIu64 " is merged beyond the log",
				  volume->id, key.index);
		key.index++;
	}
	if (whole && check->first_window && mapped != volume->mapped)
		check_say(check, 4,
			  "volume %u: %" PRIu64 " sectors mapped by its record, %" PRIu64
			  " in truth",
			  volume->id, volume->mapped, mapped);
	return 0;
}

/* ---- the overlay ---- */

static void check_region(struct check *check, const struct region *region)
{
	for (uint32_t i = 0; i < region->ndeltas; i++) {
		const struct delta *delta = &region->deltas[i];

		if (delta->type == VF_DATA)
			check_named(check, delta->entry.addr, delta->entry.stored, "a write");
		else if (delta->type == VF_MOVE)
			check_named(check, delta->moved_to, delta->entry.stored, "a moved record");
	}
	for (uint32_t i = 0; check->first_window && i < region->nfreed; i++)
		check->live[region->freed[i].segno] += region->freed[i].units;
}

int check_leaves(struct check *check)
{
	struct volume *volume = NULL;
	int rc = 0;

	check->records = calloc(VF_LEAF_ENTRIES_MAX, sizeof(*check->records));
	if (!check->records)
		return -ENOMEM;
	while (!rc && (volume = volumes_each(check->pool, volume)))
		rc = check_volume(check, volume);
	for (struct region *region = regions_first(check->pool); region;
	     region = regions_next(check->pool, region))
		check_region(check, region);
	free(check->records);
	check->records = NULL;
	return rc;
}
