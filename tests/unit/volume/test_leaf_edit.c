/* What a merge makes of a leaf, against a model that knows each sector. */
#include "backing/volume/leaf_edit.h"

#include <stdlib.h>

#include "tests/unit/quintain_test.h"

#define RECORDS_MAX 20000u

static struct leaf_edit edit;
static uint64_t rng_state = 88172645463325252u;

static uint32_t rng(uint32_t below)
{
	rng_state ^= rng_state << 13;
	rng_state ^= rng_state >> 7;
	rng_state ^= rng_state << 17;
	return (uint32_t)(rng_state % below);
}

/* ---- the model: each sector's record and its place in it ---- */

struct record {
	uint64_t addr, check;
	uint16_t stored;
	uint16_t named; /* sectors */
	bool alive;	/* counted as live */
};

static struct record records[RECORDS_MAX];
static uint32_t nrecords;
static uint32_t sector_record[VF_REGION_SECTORS]; /* 1 + record; 0: none */
static uint16_t sector_off[VF_REGION_SECTORS];

static void model_begin(void)
{
	nrecords = 0;
	memset(sector_record, 0, sizeof(sector_record));
}

static uint32_t model_record(void)
{
	struct record *record = &records[nrecords++];

	*record = (struct record){ .addr = 1000 + 64ull * (nrecords * 7919 % 100003),
				   .check = rng_state * 3 + nrecords,
				   .stored = (uint16_t)(1 + rng(200)),
				   .alive = true };
	return nrecords - 1;
}

static struct vf_entry entry_of(const struct record *record, uint32_t start, uint32_t n)
{
	return (struct vf_entry){ .addr = record->addr,
				  .start = (uint16_t)start,
				  .nsectors = (uint16_t)n,
				  .stored = record->stored,
				  .birth = 1,
				  .check = { record->check, record->check + 1,
					     record->check + 2 } };
}

static void range_of(uint32_t *start, uint32_t *n)
{
	*n = 1 + rng(rng(4) ? 32 : VF_REGION_SECTORS);
	*start = rng(VF_REGION_SECTORS - *n + 1);
}

static void data_step(void)
{
	uint32_t start, n, record = model_record();
	struct vf_entry entry;

	range_of(&start, &n);
	entry = entry_of(&records[record], start, n);
	CU_ASSERT_TRUE(leaf_edit_data(&edit, &entry));
	for (uint32_t i = 0; i < n; i++) {
		sector_record[start + i] = record + 1;
		sector_off[start + i] = (uint16_t)i;
	}
}

static void hole_step(void)
{
	uint32_t start, n;

	range_of(&start, &n);
	leaf_edit_hole(&edit, start, n);
	memset(sector_record + start, 0, n * sizeof(sector_record[0]));
}

/* The copy of a record: of one that is named, long dead, or of another check. */
static void move_step(void)
{
	uint32_t from = nrecords ? rng(nrecords) : 0, to = model_record();
	bool matches = rng(8) != 0;
	struct vf_entry old;

	if (to == 0)
		from = 0;
	records[to].check = records[from].check;
	records[to].stored = records[from].stored;
	old = entry_of(&records[from], 0, 1);
	if (!matches)
		old.check[0]++;
	CU_ASSERT_TRUE(leaf_edit_move(&edit, &old, records[to].addr));
	for (uint32_t i = 0; matches && i < VF_REGION_SECTORS; i++)
		if (sector_record[i] == from + 1)
			sector_record[i] = to + 1;
}

static void clear_step(void)
{
	leaf_edit_clear(&edit);
	memset(sector_record, 0, sizeof(sector_record));
}

/* ---- the comparison ---- */

static void compare_entries(void)
{
	uint32_t sector = 0;

	for (uint32_t i = 0; i < edit.nentries; i++) {
		const struct vf_entry *entry = &edit.entries[i];
		const struct record *record;

		for (; sector < entry->start; sector++)
			CU_ASSERT_EQUAL(sector_record[sector], 0);
		CU_ASSERT_FATAL(sector_record[sector] != 0);
		record = &records[sector_record[sector] - 1];
		CU_ASSERT_EQUAL(entry->addr, record->addr);
		CU_ASSERT_EQUAL(entry->stored, record->stored);
		CU_ASSERT_EQUAL(entry->check[0], record->check);
		for (uint32_t j = 0; j < entry->nsectors; j++, sector++) {
			CU_ASSERT_EQUAL(sector_record[sector], (uint32_t)(record - records) + 1);
			CU_ASSERT_EQUAL(sector_off[sector], entry->off + j);
		}
	}
	for (; sector < VF_REGION_SECTORS; sector++)
		CU_ASSERT_EQUAL(sector_record[sector], 0);
}

static void compare_split(void)
{
	for (uint32_t i = 0; i < edit.nentries; i++) {
		uint32_t n = 0;

		for (uint32_t j = 0; j < edit.nentries; j++)
			n += edit.entries[j].addr == edit.entries[i].addr;
		CU_ASSERT_EQUAL((edit.entries[i].flags & VF_ENTRY_SPLIT) != 0, n > 1);
	}
}

/* Each record that was live and is named nowhere dies, once; no other does. */
static void compare_dead(void)
{
	for (uint32_t i = 0; i < nrecords; i++)
		records[i].named = 0;
	for (uint32_t i = 0; i < VF_REGION_SECTORS; i++)
		if (sector_record[i])
			records[sector_record[i] - 1].named++;
	for (uint32_t i = 0; i < edit.ndead; i++) {
		uint32_t r = 0;

		while (r < nrecords && records[r].addr != edit.dead[i].addr)
			r++;
		CU_ASSERT_FATAL(r < nrecords);
		CU_ASSERT_EQUAL(records[r].stored, edit.dead[i].stored);
		CU_ASSERT_EQUAL(records[r].named, 0);
		CU_ASSERT_TRUE(records[r].alive);
		records[r].alive = false;
	}
	for (uint32_t i = 0; i < nrecords; i++)
		CU_ASSERT_TRUE(records[i].alive == (records[i].named > 0));
}

static uint32_t mapped_now(void)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < VF_REGION_SECTORS; i++)
		n += sector_record[i] != 0;
	return n;
}

static uint8_t leaf_mem[128u << 10];

/* Some merges of one region, one upon the other. */
static void run(uint32_t nmerges, uint32_t nsteps, bool wide)
{
	struct vf_leaf *leaf = (struct vf_leaf *)leaf_mem;
	static const uint8_t uuid[16] = { 1 };

	model_begin();
	for (uint32_t m = 0; m < nmerges; m++) {
		uint32_t before = mapped_now();

		leaf_edit_begin(&edit);
		if (m > 0)
			leaf_edit_leaf(&edit, leaf);
		for (uint32_t i = 0; i < nsteps; i++) {
			uint32_t what = rng(100);

			if (what < 60)
				data_step();
			else if (what < 75)
				hole_step();
			else if (what < 98)
				move_step();
			else if (rng(4) == 0)
				clear_step();
		}
		leaf_edit_end(&edit);
		compare_entries();
		compare_split();
		compare_dead();
		CU_ASSERT_EQUAL(edit.mapped, (int64_t)mapped_now() - before);
		leaf_edit_encode(&edit, leaf, uuid, 7, 9, m + 1, wide);
		CU_ASSERT_EQUAL(le64_get(&leaf->merged_seq), m + 1);
	}
}

static void merges_agree_with_a_model_of_each_sector(void)
{
	for (uint32_t i = 0; i < 200; i++)
		run(6, 1 + rng(60), false);
}

static void merges_of_many_deltas_agree_with_the_model(void)
{
	run(3, 3000, false);
}

static void merges_of_wide_entries_agree_with_the_model(void)
{
	for (uint32_t i = 0; i < 50; i++)
		run(4, 1 + rng(60), true);
}

static void a_wide_leaf_keeps_its_long_checks(void)
{
	struct vf_leaf *leaf = (struct vf_leaf *)leaf_mem;
	static const uint8_t uuid[16] = { 1 };
	struct vf_entry entry = { .addr = 640, .nsectors = 8, .stored = 10, .check = { 5, 6, 7 } };

	leaf_edit_begin(&edit);
	leaf_edit_data(&edit, &entry);
	leaf_edit_end(&edit);
	leaf_edit_encode(&edit, leaf, uuid, 1, 1, 1, true);
	leaf_edit_begin(&edit);
	leaf_edit_leaf(&edit, leaf);
	leaf_edit_end(&edit);
	CU_ASSERT_EQUAL_FATAL(edit.nentries, 1);
	CU_ASSERT_EQUAL(memcmp(edit.entries[0].check, entry.check, sizeof(entry.check)), 0);
}

static void an_edit_says_when_no_more_deltas_fit(void)
{
	struct vf_entry entry = { .addr = 64, .nsectors = 1, .stored = 1 };

	leaf_edit_begin(&edit);
	for (uint32_t i = 0; i < LEAF_EDIT_DELTAS_MAX; i++, entry.addr++)
		CU_ASSERT_TRUE_FATAL(leaf_edit_data(&edit, &entry));
	CU_ASSERT_FALSE(leaf_edit_data(&edit, &entry));
	CU_ASSERT_FALSE(leaf_edit_move(&edit, &entry, 5));
	leaf_edit_end(&edit);
	CU_ASSERT_EQUAL(edit.ndead, LEAF_EDIT_DELTAS_MAX - 1);
}

static void a_slice_keeps_its_record(void)
{
	struct vf_entry entry = { .addr = 640, .nsectors = 8, .stored = 10 };

	leaf_edit_begin(&edit);
	leaf_edit_data(&edit, &entry);
	leaf_edit_hole(&edit, 1, 7);
	leaf_edit_end(&edit);
	CU_ASSERT_EQUAL(edit.ndead, 0);
	leaf_edit_begin(&edit);
	leaf_edit_data(&edit, &entry);
	leaf_edit_hole(&edit, 0, 8);
	leaf_edit_end(&edit);
	CU_ASSERT_EQUAL(edit.ndead, 1);
}

static const struct test tests[] = {
	TEST(merges_agree_with_a_model_of_each_sector),
	TEST(merges_of_many_deltas_agree_with_the_model),
	TEST(merges_of_wide_entries_agree_with_the_model),
	TEST(a_wide_leaf_keeps_its_long_checks),
	TEST(an_edit_says_when_no_more_deltas_fit),
	TEST(a_slice_keeps_its_record),
};
TEST_MAIN(tests)
