/* Leaves are judged entry by entry. */
#include "tests/unit/volume/samples.h"

#include "tests/unit/quintain_test.h"

static struct sample sample;
static struct vf_entry entries[4];

static void setup(void)
{
	const uint8_t *at;

	sample = sample_leaf(false);
	at = (const uint8_t *)sample.at + sizeof(struct vf_leaf);
	for (unsigned int i = 0; i < 4; i++)
		vf_entry_get(at + i * VF_ENTRY_LEN, &entries[i], false);
}

/* Is the leaf of these entries valid?  Then all is as it was. */
static bool valid(void)
{
	uint8_t *at = (uint8_t *)sample.at + sizeof(struct vf_leaf);
	bool result;

	for (unsigned int i = 0; i < 4; i++)
		vf_entry_put(at + i * VF_ENTRY_LEN, &entries[i], false);
	vf_seal(sample.at, VF_LEAF, sample.len, sample_geometry.uuid);
	result = sample_valid(&sample, sample.at, sample.len);
	sample_free(&sample);
	setup();
	return result;
}

static void leaf_header_is_judged_whole(void)
{
	static const struct wrong wrong[] = {
		WRONG(struct vf_leaf, volume, 4),	   WRONG(struct vf_leaf, count, 3),
		WRONG(struct vf_leaf, count, 5),	   WRONG(struct vf_leaf, count, 0xffff),
		WRONG(struct vf_leaf, entry_len, 0),	   WRONG(struct vf_leaf, entry_len, 23),
		WRONG(struct vf_leaf, entry_len, 40),	   WRONG(struct vf_leaf, region, 8),
		WRONG(struct vf_leaf, region, UINT64_MAX),
	};
	struct sample wide = sample_leaf(true);

	setup();
	expect_rejected(&sample, wrong, ARRAY_LEN(wrong));
	expect_whole(&sample, true);
	expect_bits_matter(&sample);
	CU_ASSERT(!vf_leaf_check(sample.at, sample.len, &sample_geometry, 2, 9));
	CU_ASSERT(!vf_leaf_check(sample.at, sample.len, &sample_geometry, 3, 10));
	sample_free(&sample);
	CU_ASSERT(sample_valid(&wide, wide.at, wide.len));
	expect_whole(&wide, true);
	sample_free(&wide);
}

static void leaf_of_nothing_is_valid(void)
{
	struct vf_leaf leaf = { 0 };

	le32_put(&leaf.volume, 3);
	leaf.entry_len = VF_ENTRY_LEN;
	le64_put(&leaf.region, 9);
	vf_seal(&leaf, VF_LEAF, sizeof(leaf), sample_geometry.uuid);
	CU_ASSERT(vf_leaf_check(&leaf, sizeof(leaf), &sample_geometry, 3, 9));
	CU_ASSERT(vf_leaf_check(&leaf, 128, &sample_geometry, 3, 9));
}

static void leaf_entries_are_sorted_and_disjoint(void)
{
	setup();
	CU_ASSERT(valid());
	entries[0].nsectors = 9;
	CU_ASSERT(!valid());
	entries[1].start = 7;
	CU_ASSERT(!valid());
	entries[2].start = 2000;
	entries[2].nsectors = 48;
	CU_ASSERT(!valid());
	entries[0].start = entries[3].start;
	CU_ASSERT(!valid());
	sample_free(&sample);
}

static void leaf_entries_end_with_region_and_record(void)
{
	setup();
	entries[3].start = 2041;
	CU_ASSERT(!valid());
	entries[2].nsectors = 2033;
	CU_ASSERT(!valid());
	entries[0].off = 1; /* the record would begin before the region */
	CU_ASSERT(!valid());
	/* A raw record of 4 KiB has eight sectors, no more. */
	entries[3].off = 1;
	CU_ASSERT(!valid());
	entries[3].off = 1;
	entries[3].nsectors = 7;
	CU_ASSERT(valid());
	/* A packed one without codec of 17 units has two. */
	entries[1].off = 2;
	CU_ASSERT(!valid());
	entries[1].stored = 16;
	CU_ASSERT(!valid());
	sample_free(&sample);
}

static void leaf_entries_name_records_in_the_pool(void)
{
	setup();
	entries[0].addr = 0;
	CU_ASSERT(!valid());
	entries[0].addr = 5 * SAMPLE_UNITS + 63;
	CU_ASSERT(!valid());
	entries[0].addr = 6 * SAMPLE_UNITS - 19;
	CU_ASSERT(!valid());
	entries[0].addr = 6 * SAMPLE_UNITS - 20;
	CU_ASSERT(valid());
	entries[0].addr = 4 * SAMPLE_UNITS + 70;
	CU_ASSERT(!valid());
	entries[0].addr = 256 * SAMPLE_UNITS + 70;
	CU_ASSERT(!valid());
	entries[0].addr = (1ull << 40) - 20;
	CU_ASSERT(!valid());
	entries[0].stored = 0;
	CU_ASSERT(!valid());
	/* The longest record here has 64 KiB, prefix and padding. */
	entries[0].stored = 1025;
	CU_ASSERT(valid());
	entries[0].stored = 1026;
	CU_ASSERT(!valid());
	sample_free(&sample);
}

static void leaf_entries_of_raw_records_are_whole_blocks(void)
{
	setup();
	entries[3].addr++;
	CU_ASSERT(!valid());
	entries[3].stored = 65;
	CU_ASSERT(!valid());
	entries[3].stored = 1024;
	CU_ASSERT(valid());
	entries[3].stored = 1088;
	CU_ASSERT(!valid());
	sample_free(&sample);
}

static void leaf_entries_of_holes_have_no_record(void)
{
	setup();
	entries[2].addr = 5 * SAMPLE_UNITS + 70;
	CU_ASSERT(!valid());
	entries[2].stored = 1;
	CU_ASSERT(!valid());
	entries[2].codec = 3;
	CU_ASSERT(!valid());
	entries[2].raw = true;
	CU_ASSERT(!valid());
	entries[2].flags |= VF_ENTRY_SPLIT;
	CU_ASSERT(!valid());
	sample_free(&sample);
}

/* A program without dedup and clones would read wrong data from them. */
static void leaf_entries_of_unknown_kinds_are_rejected(void)
{
	setup();
	entries[0].flags = VF_ENTRY_REF;
	CU_ASSERT(!valid());
	entries[0].flags = VF_ENTRY_THROUGH;
	CU_ASSERT(!valid());
	sample_free(&sample);
}

static const struct test tests[] = {
	TEST(leaf_header_is_judged_whole),
	TEST(leaf_of_nothing_is_valid),
	TEST(leaf_entries_are_sorted_and_disjoint),
	TEST(leaf_entries_end_with_region_and_record),
	TEST(leaf_entries_name_records_in_the_pool),
	TEST(leaf_entries_of_raw_records_are_whole_blocks),
	TEST(leaf_entries_of_holes_have_no_record),
	TEST(leaf_entries_of_unknown_kinds_are_rejected),
};

TEST_MAIN(tests)
