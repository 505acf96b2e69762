#include "backing/volume/leaf_edit.h"

#include <string.h>

void leaf_edit_begin(struct leaf_edit *edit)
{
	edit->nentries = edit->ndead = 0;
	edit->nsources = edit->ncandidates = edit->ndeltas = 0;
	edit->mapped = edit->mapped_before = 0;
	edit->first_slice_frees = edit->by_address = false;
	memset(edit->owner, 0, sizeof(edit->owner));
}

static void candidate_add(struct leaf_edit *edit, uint64_t addr, uint32_t stored)
{
	assert(edit->ncandidates < LEAF_EDIT_SOURCES);
	edit->candidates[edit->ncandidates++] = (struct leaf_record){ .addr = addr,
								      .stored = stored };
}

static void paint(struct leaf_edit *edit, uint32_t start, uint32_t nsectors, uint32_t owner)
{
	assert(nsectors >= 1 && start < VF_REGION_SECTORS && nsectors <= VF_REGION_SECTORS - start);
	for (uint32_t i = start; i < start + nsectors; i++)
		edit->owner[i] = (uint16_t)owner;
}

static void source_add(struct leaf_edit *edit, const struct vf_entry *entry)
{
	assert(edit->nsources < LEAF_EDIT_SOURCES);
	edit->sources[edit->nsources++] = *entry;
	candidate_add(edit, entry->addr, entry->stored);
	paint(edit, entry->start, entry->nsectors, edit->nsources);
}

void leaf_edit_leaf(struct leaf_edit *edit, const struct vf_leaf *leaf)
{
	const uint8_t *at = (const uint8_t *)(leaf + 1);
	bool wide = leaf->entry_len == VF_ENTRY_WIDE_LEN;

	assert(edit->nsources == 0 && edit->ndeltas == 0);
	for (uint32_t i = 0; i < le16_get(&leaf->count); i++, at += leaf->entry_len) {
		struct vf_entry entry;

		vf_entry_get(at, &entry, wide);
		if (entry.flags & VF_ENTRY_HOLE)
			continue;
		source_add(edit, &entry);
		edit->mapped_before += entry.nsectors;
	}
}

void leaf_edit_clear(struct leaf_edit *edit)
{
	memset(edit->owner, 0, sizeof(edit->owner));
}

bool leaf_edit_data(struct leaf_edit *edit, const struct vf_entry *entry)
{
	if (edit->ndeltas == LEAF_EDIT_DELTAS_MAX)
		return false;
	edit->ndeltas++;
	source_add(edit, entry);
	return true;
}

void leaf_edit_hole(struct leaf_edit *edit, uint32_t start, uint32_t nsectors)
{
	paint(edit, start, nsectors, 0);
}

bool leaf_edit_move(struct leaf_edit *edit, const struct vf_entry *old, uint64_t moved_to)
{
	if (edit->ndeltas == LEAF_EDIT_DELTAS_MAX)
		return false;
	edit->ndeltas++;
	for (uint32_t i = 0; i < edit->nsources; i++) {
		struct vf_entry *source = &edit->sources[i];

		if (source->addr == old->addr &&
		    (source->check[0] == old->check[0] || edit->by_address))
			source->addr = moved_to;
	}
	candidate_add(edit, moved_to, old->stored);
	return true;
}

/* Heap sort: the library's may allocate. */
static void records_sift(struct leaf_record *records, uint32_t root, uint32_t n)
{
	struct leaf_record record = records[root];

	for (uint32_t child; (child = 2 * root + 1) < n; root = child) {
		if (child + 1 < n && records[child].addr < records[child + 1].addr)
			child++;
		if (records[child].addr <= record.addr)
			break;
		records[root] = records[child];
	}
	records[root] = record;
}

static bool records_sorted(const struct leaf_record *records, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++)
		if (records[i - 1].addr > records[i].addr)
			return false;
	return true;
}

static void records_sort(struct leaf_record *records, uint32_t n)
{
	if (records_sorted(records, n))
		return;
	for (uint32_t i = n / 2; i-- > 0;)
		records_sift(records, i, n);
	for (uint32_t i = n; i-- > 1;) {
		struct leaf_record last = records[i];

		records[i] = records[0];
		records[0] = last;
		records_sift(records, 0, i);
	}
}

/* Runs of one source become entries. */
static void entries_make(struct leaf_edit *edit)
{
	for (uint32_t i = 0, end; i < VF_REGION_SECTORS; i = end) {
		uint16_t owner = edit->owner[i];
		const struct vf_entry *source;
		struct vf_entry *entry;

		for (end = i + 1; end < VF_REGION_SECTORS && edit->owner[end] == owner;)
			end++;
		if (owner == 0)
			continue;
		source = &edit->sources[owner - 1];
		entry = &edit->entries[edit->nentries++];
		*entry = *source;
		entry->start = (uint16_t)i;
		entry->nsectors = (uint16_t)(end - i);
		entry->off = (uint16_t)(source->off + (i - source->start));
		entry->flags &= (uint8_t)~VF_ENTRY_SPLIT;
		edit->mapped += entry->nsectors;
	}
	edit->mapped -= edit->mapped_before;
}

/* Entries of one record say so when there are several. */
static void entries_mark_split(struct leaf_edit *edit)
{
	struct leaf_record *named = edit->named;

	for (uint32_t i = 0; i < edit->nentries; i++)
		named[i] = (struct leaf_record){ .addr = edit->entries[i].addr,
						 .stored = edit->entries[i].stored,
						 .entry = i };
	records_sort(named, edit->nentries);
	for (uint32_t i = 1; i < edit->nentries; i++)
		if (named[i].addr == named[i - 1].addr) {
			edit->entries[named[i].entry].flags |= VF_ENTRY_SPLIT;
			edit->entries[named[i - 1].entry].flags |= VF_ENTRY_SPLIT;
		}
}

/* The mutant: a record of which a sector went is dead. */
static bool record_lost_sectors(const struct leaf_edit *edit, uint64_t addr)
{
	for (uint32_t i = 0; i < edit->nsources; i++) {
		const struct vf_entry *source = &edit->sources[i];

		if (source->addr != addr)
			continue;
		for (uint32_t s = source->start; s < (uint32_t)source->start + source->nsectors;
		     s++)
			if (edit->owner[s] != i + 1)
				return true;
	}
	return false;
}

/* Candidates that no entry names; both lists are in order. */
static void dead_find(struct leaf_edit *edit)
{
	uint32_t n = 0, at = 0;

	records_sort(edit->candidates, edit->ncandidates);
	for (uint32_t i = 0; i < edit->ncandidates; i++) {
		struct leaf_record *candidate = &edit->candidates[i];

		if (n > 0 && edit->candidates[n - 1].addr == candidate->addr)
			continue;
		while (at < edit->nentries && edit->named[at].addr < candidate->addr)
			at++;
		if (at < edit->nentries && edit->named[at].addr == candidate->addr &&
		    !(edit->first_slice_frees && record_lost_sectors(edit, candidate->addr)))
			continue;
		edit->candidates[n++] = *candidate;
	}
	edit->dead = edit->candidates;
	edit->ndead = n;
}

void leaf_edit_end(struct leaf_edit *edit)
{
	entries_make(edit);
	entries_mark_split(edit);
	dead_find(edit);
}

void leaf_edit_encode(const struct leaf_edit *edit, struct vf_leaf *leaf, const uint8_t uuid[16],
		      uint32_t volume, uint64_t region, uint64_t merged_seq, bool wide)
{
	uint8_t *at = (uint8_t *)(leaf + 1);
	uint32_t len = wide ? VF_ENTRY_WIDE_LEN : VF_ENTRY_LEN;

	memset(leaf, 0, sizeof(*leaf));
	le32_put(&leaf->volume, volume);
	le16_put(&leaf->count, (uint16_t)edit->nentries);
	leaf->entry_len = (uint8_t)len;
	le64_put(&leaf->region, region);
	le64_put(&leaf->merged_seq, merged_seq);
	for (uint32_t i = 0; i < edit->nentries; i++, at += len)
		vf_entry_put(at, &edit->entries[i], wide);
	vf_seal(leaf, VF_LEAF, leaf_len(edit->nentries, wide), uuid);
}
