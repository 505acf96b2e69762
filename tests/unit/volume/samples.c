#include "tests/unit/volume/samples.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/quintain_test.h"

const struct vf_geometry sample_geometry = {
	.uuid = "0123456789abcde",
	.segment_len = 256u << 10,
	.nsegments = 256,
};

static struct sample sample_get(enum vf_type type, size_t len)
{
	struct sample sample = { calloc(1, len), (uint32_t)len, type };

	if (!sample.at)
		abort();
	return sample;
}

static struct sample sealed(struct sample sample)
{
	vf_seal(sample.at, sample.type, sample.len, sample_geometry.uuid);
	return sample;
}

void sample_free(struct sample *sample)
{
	free(sample->at);
	sample->at = NULL;
}

static uint64_t addr(uint32_t segno, uint32_t unit)
{
	return (uint64_t)segno * SAMPLE_UNITS + unit;
}

static void slot_put(struct vf_slot *slot, uint32_t segno, uint32_t stored)
{
	le64_put(&slot->where, vf_where(addr(segno, 128), stored));
	slot->hash = vf_hash("x", 1);
}

static void place_put(struct vf_place *place, uint64_t seq)
{
	le64_put(&place->seq, seq);
	le32_put(&place->segno, 2);
	le32_put(&place->off, 1);
}

struct sample sample_super(void)
{
	struct sample sample = sample_get(VF_SUPER, VF_SUPER_LEN);
	struct vf_super *super = sample.at;

	le64_put(&super->generation, 10);
	le32_put(&super->incarnation, 2);
	le32_put(&super->segment_len, sample_geometry.segment_len);
	le64_put(&super->nsegments, sample_geometry.nsegments);
	place_put(&super->end, 77);
	for (unsigned int i = 0; i < 4; i++) {
		le64_put(&super->root[i / 2][i % 2].addr, addr(5 + i, 64));
		le32_put(&super->root[i / 2][i % 2].stored, 5);
	}
	le32_put(&super->ndevices, 1);
	le32_put(&super->unit_shift, 6);
	le64_put(&super->devices[0].nsegments, sample_geometry.nsegments);
	memcpy(super->label, "two words", 9);
	return sealed(sample);
}

struct sample sample_segment(enum vf_stream stream)
{
	struct sample sample = sample_get(VF_SEGMENT, sizeof(struct vf_segment));
	struct vf_segment *segment = sample.at;

	le32_put(&segment->segno, 2);
	segment->stream = (uint8_t)stream;
	if (stream == VF_W) {
		le64_put(&segment->first_seq, 7);
		le32_put(&segment->before, 1);
		le32_put(&segment->successor, 3);
	}
	return sealed(sample);
}

/* ---- tables ---- */

static uint8_t *desc_put(uint8_t *at, uint8_t type, uint64_t lba, uint64_t nsectors,
			 uint32_t body_len)
{
	struct vf_desc *desc = (struct vf_desc *)at;

	desc->type = type;
	le32_put(&desc->volume, 3);
	le64_put(&desc->lba, lba);
	le64_put(&desc->nsectors, nsectors);
	le32_put(&desc->body_len, body_len);
	return at + sizeof(*desc);
}

static void payload_put(uint8_t *at, uint32_t off, uint32_t stored)
{
	le32_put(&((struct vf_desc *)at)->off, off);
	le32_put(&((struct vf_desc *)at)->stored, stored);
}

static void change_put(struct vf_change *change, uint32_t segno, int32_t units)
{
	le32_put(&change->segno, segno);
	le32_put(&change->units, (uint32_t)units);
}

/* DATA packed, DATA raw and wide, HOLE, MOVE, LEAF_AT, DIR_AT, VOLOP, PAGE. */
#define TABLE_DESCS 8
#define TABLE_LEN                                                             \
	(TABLE_DESCS * sizeof(struct vf_desc) + 32 + sizeof(struct vf_move) + \
	 sizeof(struct vf_leaf_at) + 8 + sizeof(struct vf_dir_at) + sizeof(struct vf_volume))

static void table_put(uint8_t *at)
{
	struct vf_leaf_at *leaf_at;
	struct vf_dir_at *dir_at;
	uint8_t *next;

	next = desc_put(at, VF_DATA, 2048, 8, 0); /* @0 */
	((struct vf_desc *)at)->codec = 3;
	payload_put(at, 64, 40);
	at = next;
	next = desc_put(at, VF_DATA, 4090, 8 - 2, 0); /* @48 */
	le64_put(&((struct vf_desc *)at)->lba, 4088);
	le64_put(&((struct vf_desc *)at)->nsectors, 8);
	((struct vf_desc *)at)->flags = VF_DESC_RAW | VF_DESC_WIDE;
	payload_put(at, 128, 64);
	at = next + 32;
	at = desc_put(at, VF_HOLE, 100, 5000, 0);				  /* @128 */
	next = desc_put(at, VF_MOVE, 2048, addr(6, 100), sizeof(struct vf_move)); /* @176 */
	payload_put(at, 0, 9);
	le64_put(&((struct vf_move *)next)->addr, addr(7, 200));
	at = next + sizeof(struct vf_move);
	leaf_at = (struct vf_leaf_at *)desc_put(at, VF_LEAF_AT, 9, 6, 56 + 8); /* @232 */
	slot_put(&leaf_at->slot, 9, 4);
	le32_put(&leaf_at->nchanges, 1);
	change_put(&leaf_at->changes[0], 6, -11);
	at = (uint8_t *)(leaf_at + 1) + 8;
	dir_at = (struct vf_dir_at *)desc_put(at, VF_DIR_AT, 5, 6, sizeof(*dir_at)); /* @344 */
	slot_put(&dir_at->slot, 9, 5);
	le64_put(&dir_at->level, 1);
	change_put(&dir_at->changes[0], 9, 7);
	at = (uint8_t *)(dir_at + 1);
	next = desc_put(at, VF_VOLOP, 0, 0, sizeof(struct vf_volume)); /* @456 */
	at = next + sizeof(struct vf_volume);
	desc_put(at, VF_PAGE, 9, VF_LEAF << 8 | 0, 0); /* @856 */
	payload_put(at, 110, 2);
}

struct sample sample_group(uint64_t seq)
{
	struct sample sample = sample_get(VF_GROUP, sizeof(struct vf_group) + TABLE_LEN);
	struct vf_group *group = sample.at;

	le64_put(&group->seq, seq);
	le64_put(&group->durable_seq, 6);
	le32_put(&group->len, 3);
	le32_put(&group->ndescs, TABLE_DESCS);
	if (seq != 0)
		group->prev = vf_hash("before", 6);
	table_put((uint8_t *)(group + 1));
	return sealed(sample);
}

struct sample sample_footer(bool bulk)
{
	size_t each = sizeof(struct vf_footer_group) + TABLE_LEN;
	struct sample sample = sample_get(VF_FOOTER, sizeof(struct vf_footer) + 2 * each);
	struct vf_footer *footer = sample.at;

	le32_put(&footer->segno, 2);
	le64_put(&footer->first_seq, bulk ? 0 : 7);
	le64_put(&footer->last_seq, bulk ? 0 : 8);
	le32_put(&footer->ngroups, 2);
	for (uint32_t i = 0; i < 2; i++) {
		struct vf_footer_group *group =
			(struct vf_footer_group *)((uint8_t *)(footer + 1) + i * each);

		le64_put(&group->seq, bulk ? 0 : 7 + i);
		le32_put(&group->off, 1 + 3 * i);
		le32_put(&group->ndescs, TABLE_DESCS);
		le32_put(&group->table_len, TABLE_LEN);
		group->sum = vf_hash(&i, sizeof(i));
		table_put((uint8_t *)(group + 1));
		footer->last = group->sum;
	}
	return sealed(sample);
}

/* ---- map ---- */

struct sample sample_leaf(bool wide)
{
	uint32_t entry_len = wide ? VF_ENTRY_WIDE_LEN : VF_ENTRY_LEN;
	struct sample sample = sample_get(VF_LEAF, sizeof(struct vf_leaf) + 4 * entry_len);
	struct vf_leaf *leaf = sample.at;
	uint8_t *at = (uint8_t *)(leaf + 1);
	const struct vf_entry entries[4] = {
		{ .addr = addr(5, 70), .nsectors = 8, .stored = 20, .codec = 3, .birth = 1 },
		{ .addr = addr(5, 90),
		  .start = 8,
		  .nsectors = 1,
		  .off = 1,
		  .stored = 17,
		  .flags = VF_ENTRY_SPLIT },
		{ .start = 16, .nsectors = 16, .flags = VF_ENTRY_HOLE },
		{ .addr = addr(6, 128), .start = 2040, .nsectors = 8, .stored = 64, .raw = true },
	};

	le32_put(&leaf->volume, 3);
	le16_put(&leaf->count, 4);
	leaf->entry_len = (uint8_t)entry_len;
	le64_put(&leaf->region, 9);
	for (unsigned int i = 0; i < 4; i++)
		vf_entry_put(at + i * entry_len, &entries[i], wide);
	return sealed(sample);
}

struct sample sample_dir(void)
{
	struct sample sample = sample_get(VF_DIR,
					  sizeof(struct vf_dir) + 3 * sizeof(struct vf_slot));
	struct vf_dir *dir = sample.at;
	struct vf_slot *slots = (struct vf_slot *)(dir + 1);

	le32_put(&dir->tree, 3);
	dir->level = 2;
	le16_put(&dir->nslots, 3);
	le64_put(&dir->index, 5);
	dir->present[0] = 0x81;
	dir->present[31] = 0x80;
	for (unsigned int i = 0; i < 3; i++)
		slot_put(&slots[i], 5 + i, 10);
	return sealed(sample);
}

struct sample sample_segtab(void)
{
	struct sample sample = sample_get(VF_SEGTAB, sizeof(struct vf_segtab));
	struct vf_segtab *page = sample.at;

	le64_put(&page->index, 1);
	le32_put(&page->recs[0].live, 2 * SAMPLE_UNITS);
	page->recs[0].stream = VF_M;
	return sealed(sample);
}

static void tree_put(struct vf_tree *tree, uint32_t segno, uint8_t level)
{
	slot_put(&tree->slot, segno, 4);
	tree->level = level;
}

struct sample sample_volume(void)
{
	struct sample sample = sample_get(VF_VOLUME,
					  sizeof(struct vf_volume) + 2 * sizeof(struct vf_range));
	struct vf_volume *volume = sample.at;

	le32_put(&volume->id, 3);
	memcpy(volume->name, "disk0", 5);
	le64_put(&volume->nsectors, 10 * VF_REGION_SECTORS + 8);
	le32_put(&volume->block_len, 4096);
	le32_put(&volume->record_len, 16384);
	volume->codec = 3;
	volume->level = 1;
	le32_put(&volume->nranges, 2);
	tree_put(&volume->head_tree, 5, 1);
	le64_put(&volume->ranges[0].nregions, 11);
	le64_put(&volume->ranges[1].region, 10);
	le64_put(&volume->ranges[1].nregions, 1);
	return sealed(sample);
}

struct sample sample_root(void)
{
	struct sample sample =
		sample_get(VF_ROOT, sizeof(struct vf_root) + 2 * sizeof(struct vf_root_change));
	struct vf_root *root = sample.at;

	place_put(&root->replay, 7);
	le32_put(&root->next_volume, 4);
	le32_put(&root->nchanges, 2);
	tree_put(&root->segtab, 6, 1);
	tree_put(&root->voltab, 7, 2);
	for (unsigned int i = 0; i < 2; i++) {
		le32_put(&root->changes[i].segno, 5 + i);
		le32_put(&root->changes[i].units, (uint32_t) - (int)i);
	}
	return sealed(sample);
}

/* ---- breaking ---- */

/* As its reader does: the header first, then as much as it says. */
static bool group_valid(const struct vf_group *group, uint32_t len)
{
	return len >= sizeof(*group) && vf_group_plausible(group, &sample_geometry, SAMPLE_ROOM) &&
	       le32_get(&group->head.len) <= len &&
	       vf_group_check(group, &sample_geometry, SAMPLE_ROOM);
}

bool sample_valid(const struct sample *sample, const void *at, uint32_t len)
{
	const struct vf_geometry *geometry = &sample_geometry;

	switch (sample->type) {
	case VF_SUPER: return len == VF_SUPER_LEN && vf_super_check(at);
	case VF_SEGMENT:
		return len == sizeof(struct vf_segment) && vf_segment_check(at, geometry, 2);
	case VF_GROUP: return group_valid(at, len);
	case VF_FOOTER: return vf_footer_check(at, len, geometry);
	case VF_ROOT: return vf_root_check(at, len, geometry);
	case VF_DIR: return vf_dir_check(at, len, geometry, 3, 2, 5);
	case VF_LEAF: return vf_leaf_check(at, len, geometry, 3, 9);
	case VF_SEGTAB: return vf_segtab_check(at, len, geometry, 1);
	case VF_VOLUME: return vf_volume_check(at, len, geometry, 3);
	}
	abort();
}

static uint8_t *copy_of(const struct sample *sample, uint32_t len)
{
	uint8_t *copy = malloc(len > 0 ? len : 1);

	if (!copy)
		abort();
	memcpy(copy, sample->at, len);
	return copy;
}

void expect_rejected(const struct sample *sample, const struct wrong *wrong, size_t n)
{
	CU_ASSERT(sample_valid(sample, sample->at, sample->len));
	for (size_t i = 0; i < n; i++) {
		uint8_t *copy = copy_of(sample, sample->len);

		CU_ASSERT_FATAL(wrong[i].off + wrong[i].width <= sample->len);
		for (uint32_t b = 0; b < wrong[i].width; b++)
			copy[wrong[i].off + b] = b < 8 ? (uint8_t)(wrong[i].value >> 8 * b)
						       : (uint8_t)0;
		vf_seal(copy, sample->type, sample->len, sample_geometry.uuid);
		if (sample_valid(sample, copy, sample->len)) {
			printf("accepted: %s = %#llx\n", wrong[i].field,
			       (unsigned long long)wrong[i].value);
			CU_FAIL("a wrong field was accepted");
		}
		free(copy);
	}
}

void expect_whole(const struct sample *sample, bool reseal)
{
	for (uint32_t len = sizeof(struct vf_head); len < sample->len; len++) {
		uint8_t *copy = copy_of(sample, len);

		CU_ASSERT(!sample_valid(sample, copy, len));
		if (reseal) {
			vf_seal(copy, sample->type, len, sample_geometry.uuid);
			CU_ASSERT(!sample_valid(sample, copy, len));
		}
		free(copy);
	}
}

void expect_bits_matter(const struct sample *sample)
{
	for (uint32_t bit = 0; bit < 8 * sample->len; bit++) {
		uint8_t *copy = copy_of(sample, sample->len);

		copy[bit / 8] ^= (uint8_t)(1u << bit % 8);
		if (sample_valid(sample, copy, sample->len)) {
			printf("bit %u of byte %u does not matter\n", bit % 8, bit / 8);
			CU_FAIL("a flipped bit was overlooked");
		}
		free(copy);
	}
}
