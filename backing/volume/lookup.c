#include "backing/volume/lookup.h"

#include "backing/volume/cache.h"
#include "backing/volume/region.h"
#include "backing/volume/stage.h"

/* Sectors that nothing newer has given yet. */
struct wanted {
	uint64_t bits[VF_REGION_SECTORS / 64];
	uint32_t left;
};

static void wanted_set(struct wanted *wanted, uint32_t start, uint32_t nsectors)
{
	memset(wanted->bits, 0, sizeof(wanted->bits));
	wanted->left = nsectors;
	for (uint32_t i = start, end = start + nsectors; i < end;) {
		uint32_t n = 64 - i % 64 < end - i ? 64 - i % 64 : end - i;

		wanted->bits[i / 64] |= (n == 64 ? ~0ull : (1ull << n) - 1) << i % 64;
		i += n;
	}
}

/* The first run wanted at or behind *start, before end; it is not wanted any more. */
static bool wanted_take(struct wanted *wanted, uint32_t *start, uint32_t end, uint32_t *n)
{
	uint32_t i = *start;

	while (i < end && !(wanted->bits[i / 64] >> i % 64)) /* none left in this word */
		i = (i | 63) + 1;
	if (i < end)
		i += (uint32_t)__builtin_ctzll(wanted->bits[i / 64] >> i % 64);
	if (i >= end)
		return false;
	*start = i;
	for (; i < end && wanted->bits[i / 64] >> i % 64 & 1; i++)
		wanted->bits[i / 64] &= ~(1ull << i % 64);
	*n = i - *start;
	wanted->left -= *n;
	return true;
}

/* What to give for a run. */
struct source {
	enum vpiece_kind kind;
	uint32_t start, nsectors;
	const uint8_t *data;
	const struct vf_entry *entry;
};

static void give(struct lookup *lookup, struct wanted *wanted, uint64_t region,
		 const struct source *source)
{
	uint32_t start = source->start, end = start + source->nsectors, n;

	for (; wanted->left > 0 && wanted_take(wanted, &start, end, &n); start += n) {
		struct piece *piece = &lookup->pieces[lookup->npieces++];

		*piece = (struct piece){ .kind = (uint8_t)source->kind,
					 .start = (uint16_t)start,
					 .nsectors = (uint16_t)n,
					 .region_lba = region * VF_REGION_SECTORS };
		if (source->data)
			piece->data = source->data + (start - source->start) * VF_SECTOR;
		if (!source->entry)
			continue;
		piece->entry = *source->entry;
		piece->entry.off = (uint16_t)(piece->entry.off + (start - source->start));
		piece->entry.start = (uint16_t)start;
		piece->entry.nsectors = (uint16_t)n;
	}
}

static void give_entry(struct lookup *lookup, struct wanted *wanted, uint64_t region,
		       const struct vf_entry *entry, bool hole)
{
	struct source source = { .kind = hole ? VPIECE_ZERO : VPIECE_RECORD,
				 .start = entry->start,
				 .nsectors = entry->nsectors,
				 .entry = hole ? NULL : entry };

	give(lookup, wanted, region, &source);
}

static void give_rest(struct lookup *lookup, struct wanted *wanted, uint64_t region,
		      enum vpiece_kind kind)
{
	struct source source = { .kind = kind, .nsectors = VF_REGION_SECTORS };

	give(lookup, wanted, region, &source);
}

/* What range operations hide of a region. */
struct hidden {
	uint64_t ticket; /* staged items before it */
	bool all;	 /* deltas and leaf */
	uint64_t seq;	 /* a leaf merged up to less */
};

static struct hidden hidden_by_ranges(const struct lookup *lookup, uint64_t region)
{
	const struct volume *volume = lookup->volume;
	struct hidden hidden = { .seq = region_range_seq(volume, region) };

	for (uint32_t i = 0; i < volume->nranges; i++) {
		const struct volume_range *range = &volume->ranges[i];

		if (region < range->region || region - range->region >= range->nregions)
			continue;
		if (range->ticket > hidden.ticket)
			hidden.ticket = range->ticket;
		if (range->seq == 0 || pool_mutant(lookup->pool, MUTANT_RANGE_HIDES_ALL))
			hidden.all = true;
	}
	return hidden;
}

static void give_memory(struct lookup *lookup, struct wanted *wanted, struct region *region,
			const struct hidden *hidden)
{
	list_for_each(link, &region->staged) {
		struct stage_item *item = container_of(link, struct stage_item, region_link);
		struct source source = { .kind = item->hole ? VPIECE_ZERO : VPIECE_MEMORY,
					 .start = item->start,
					 .nsectors = item->nsectors,
					 .data = item->hole ? NULL : item->data };

		if (item->ticket >= hidden->ticket)
			give(lookup, wanted, region->index, &source);
	}
	for (uint32_t i = region->ndeltas; !hidden->all && wanted->left > 0 && i-- > 0;) {
		const struct delta *delta = &region->deltas[i];

		if (delta->type != VF_MOVE)
			give_entry(lookup, wanted, region->index, &delta->entry,
				   delta->type == VF_HOLE);
	}
}

/* The first entry that ends behind a sector. */
static uint32_t leaf_find(const struct vf_leaf *leaf, bool wide, uint32_t sector)
{
	const uint8_t *at = (const uint8_t *)(leaf + 1);
	uint32_t low = 0, high = le16_get(&leaf->count);

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;
		struct vf_entry entry;

		vf_entry_get(at + (size_t)mid * leaf->entry_len, &entry, wide);
		if ((uint32_t)entry.start + entry.nsectors <= sector)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static void give_leaf(struct lookup *lookup, struct wanted *wanted, uint64_t region,
		      const struct vf_leaf *leaf, uint32_t start, uint32_t end)
{
	const uint8_t *at = (const uint8_t *)(leaf + 1);
	bool wide = leaf->entry_len == VF_ENTRY_WIDE_LEN;

	for (uint32_t i = leaf_find(leaf, wide, start);
	     wanted->left > 0 && i < le16_get(&leaf->count); i++) {
		struct vf_entry entry;

		vf_entry_get(at + (size_t)i * leaf->entry_len, &entry, wide);
		if (entry.start >= end)
			break;
		give_entry(lookup, wanted, region, &entry, entry.flags & VF_ENTRY_HOLE);
	}
}

/* The leaf of a region, pinned; NULL: none is wanted (FOUND), or *result. */
static struct cache_page *leaf_get(struct lookup *lookup, uint64_t region, uint64_t hidden_seq,
				   enum tree_result *result)
{
	struct volume *volume = lookup->volume;
	struct cache_key key = { .type = VF_LEAF, .tree = volume->id, .index = region };

	*result = tree_get(&volume->head, region, &key.slot, lookup->waiter);
	if (*result != TREE_FOUND || le64_get(&key.slot.merged_seq) < hidden_seq)
		return NULL;
	return cache_get(lookup->pool, &key, lookup->waiter, result);
}

bool lookup_region(struct lookup *lookup, uint64_t region, uint32_t start, uint32_t nsectors,
		   bool damaged)
{
	struct hidden hidden = hidden_by_ranges(lookup, region);
	struct region *overlay = region_find(lookup->pool, lookup->volume, region);
	struct tree_waiter *waiter = lookup->waiter;
	enum vpiece_kind rest = VPIECE_ZERO;
	uint32_t npieces = lookup->npieces;
	struct wanted wanted;

	wanted_set(&wanted, start, nsectors);
	if (overlay)
		give_memory(lookup, &wanted, overlay, &hidden);
	if (wanted.left > 0 && !hidden.all) {
		enum tree_result result;
		struct cache_page *leaf;

		if (damaged)
			lookup->waiter = NULL;
		leaf = leaf_get(lookup, region, hidden.seq, &result);
		lookup->waiter = waiter;
		if (result == TREE_LOADING && !damaged) {
			lookup->npieces = npieces;
			return false;
		}
		if (result == TREE_LOADING || result == TREE_DAMAGED)
			rest = VPIECE_DAMAGED;
		if (leaf) {
			give_leaf(lookup, &wanted, region, leaf->data, start, start + nsectors);
			cache_put(lookup->pool, leaf);
		}
	}
	give_rest(lookup, &wanted, region, rest);
	assert(wanted.left == 0);
	return true;
}

/* ---- cleaning ---- */

static bool leaf_names(const struct vf_leaf *leaf, uint64_t addr, uint64_t check)
{
	const uint8_t *at = (const uint8_t *)(leaf + 1);

	for (uint32_t i = 0; i < le16_get(&leaf->count); i++, at += leaf->entry_len) {
		struct vf_entry entry;

		vf_entry_get(at, &entry, leaf->entry_len == VF_ENTRY_WIDE_LEN);
		if (entry.addr == addr && entry.check[0] == check)
			return true;
	}
	return false;
}

static bool deltas_name(const struct region *region, uint64_t addr, uint64_t check)
{
	for (uint32_t i = 0; region && i < region->ndeltas; i++) {
		const struct delta *delta = &region->deltas[i];

		if (delta->type == VF_DATA && delta->entry.addr == addr &&
		    delta->entry.check[0] == check)
			return true;
	}
	return false;
}

int region_names(struct pool *pool, struct volume *volume, uint64_t index, uint64_t addr,
		 uint64_t check, bool *named)
{
	struct cache_key key = { .type = VF_LEAF, .tree = volume->id, .index = index };
	struct cache_page *leaf;
	int rc;

	*named = deltas_name(region_find(pool, volume, index), addr, check);
	if (*named)
		return 0;
	rc = tree_get_wait(&volume->head, index, &key.slot);
	if (rc == -ENOENT ||
	    (!rc && le64_get(&key.slot.merged_seq) < region_range_seq(volume, index)))
		return 0;
	if (!rc)
		rc = cache_get_wait(pool, &key, &leaf);
	if (rc)
		return rc;
	/* A merge may have come between: what it dropped from the overlay is in the next
	 * leaf, or in none. */
	*named = leaf_names(leaf->data, addr, check) ||
		 deltas_name(region_find(pool, volume, index), addr, check);
	cache_put(pool, leaf);
	return 0;
}
