/* Groups, their tables, and footers. */
#include "tests/unit/volume/samples.h"

#include <stdlib.h>

#include "tests/unit/quintain_test.h"

/* Where the descriptors of a sample's table are. */
#define TABLE ((uint32_t)sizeof(struct vf_group))
enum {
	PACKED = TABLE,
	RAW = TABLE + 48,
	HOLE = TABLE + 128,
	MOVE = TABLE + 176,
	LEAF_AT = TABLE + 232,
	DIR_AT = TABLE + 344,
	VOLOP = TABLE + 456,
	PAGE = TABLE + 856,
};
#define DESC(at, field, value) WRONG_AT(at, struct vf_desc, field, value)
#define NO_SEGMENT	       256
#define MANY		       UINT64_MAX

static void group_header_is_judged_whole(void)
{
	static const struct wrong wrong[] = {
		WRONG(struct vf_group, len, 0),		WRONG(struct vf_group, len, 17),
		WRONG(struct vf_group, len, MANY),	WRONG(struct vf_group, len, 2),
		WRONG(struct vf_group, ndescs, 0),	WRONG(struct vf_group, ndescs, 7),
		WRONG(struct vf_group, ndescs, 9),	WRONG(struct vf_group, ndescs, MANY),
		WRONG(struct vf_group, seq, 6),		WRONG(struct vf_group, seq, 0),
		WRONG(struct vf_group, durable_seq, 7), WRONG(struct vf_group, durable_seq, MANY),
	};
	struct sample sample = sample_group(7), bulk = sample_group(0);

	expect_rejected(&sample, wrong, ARRAY_LEN(wrong));
	expect_whole(&sample, true);
	expect_bits_matter(&sample);
	CU_ASSERT(sample_valid(&bulk, bulk.at, bulk.len));
	sample_free(&sample);
	sample_free(&bulk);
}

static void group_fits_the_room_and_half_a_segment(void)
{
	struct sample sample = sample_group(7);
	struct vf_group *group = sample.at;

	CU_ASSERT(vf_group_check(group, &sample_geometry, 3 * VF_BLOCK));
	CU_ASSERT(!vf_group_check(group, &sample_geometry, 3 * VF_BLOCK - 1));
	CU_ASSERT(!vf_group_plausible(group, &sample_geometry, 2 * VF_BLOCK));
	CU_ASSERT(!vf_group_plausible(group, &sample_geometry, 0));
	le32_put(&group->len, 32);
	CU_ASSERT(vf_group_plausible(group, &sample_geometry, 256u << 10));
	le32_put(&group->len, 33);
	CU_ASSERT(!vf_group_plausible(group, &sample_geometry, 256u << 10));
	sample_free(&sample);
}

/* What says how much to read is judged before it is there. */
static void group_is_plausible_by_its_header_alone(void)
{
	struct sample sample = sample_group(7);
	struct vf_group group;

	memcpy(&group, sample.at, sizeof(group));
	CU_ASSERT(vf_group_plausible(&group, &sample_geometry, SAMPLE_ROOM));
	le32_put(&group.head.len, 3 * VF_BLOCK + 1);
	CU_ASSERT(!vf_group_plausible(&group, &sample_geometry, SAMPLE_ROOM));
	le32_put(&group.head.len, sizeof(group) - 1);
	CU_ASSERT(!vf_group_plausible(&group, &sample_geometry, SAMPLE_ROOM));
	le32_put(&group.head.len, sizeof(group) + 8 * sizeof(struct vf_desc) - 1);
	CU_ASSERT(!vf_group_plausible(&group, &sample_geometry, SAMPLE_ROOM));
	sample_free(&sample);
}

static void data_descriptors_are_judged(void)
{
	static const struct wrong wrong[] = {
		DESC(PACKED, type, 0),
		DESC(PACKED, type, 11),
		DESC(PACKED, type, VF_SNAP),
		DESC(PACKED, type, VF_ROLLBACK),
		DESC(PACKED, type, VF_META),
		DESC(PACKED, flags, 8),
		DESC(PACKED, codec, 15),
		DESC(PACKED, codec, 0),
		DESC(PACKED, volume, MANY),
		DESC(PACKED, lba, 2048 + 2041),
		DESC(PACKED, nsectors, 0),
		DESC(PACKED, nsectors, 129),
		DESC(PACKED, nsectors, MANY),
		DESC(PACKED, off, 0),
		DESC(PACKED, off, 15),
		DESC(PACKED, off, 153),
		DESC(PACKED, off, MANY),
		DESC(PACKED, stored, 0),
		DESC(PACKED, stored, 66),
		DESC(PACKED, stored, MANY),
		DESC(PACKED, body_len, 8),
		DESC(PACKED, body_len, MANY),
		DESC(RAW, off, 127),
		DESC(RAW, stored, 63),
		DESC(RAW, stored, 128),
		DESC(RAW, codec, 3),
		DESC(RAW, nsectors, 7),
		DESC(RAW, flags, VF_DESC_RAW),
		DESC(RAW, flags, VF_DESC_WIDE),
	};
	struct sample sample = sample_group(7);

	expect_rejected(&sample, wrong, ARRAY_LEN(wrong));
	sample_free(&sample);
}

static void other_descriptors_are_judged(void)
{
	static const struct wrong wrong[] = {
		DESC(HOLE, nsectors, 0),
		DESC(HOLE, lba, MANY),
		DESC(HOLE, nsectors, MANY),
		DESC(HOLE, lba, VF_VOLUME_SECTORS_MAX - 4999),
		DESC(HOLE, flags, VF_DESC_RANGE),
		DESC(HOLE, body_len, 48),
		DESC(MOVE, nsectors, 0),
		DESC(MOVE, nsectors, 7 * SAMPLE_UNITS - 8),
		DESC(MOVE, stored, 0),
		DESC(MOVE, stored, 0x8000),
		DESC(MOVE, body_len, 0),
		DESC(MOVE, body_len, 4),
		WRONG_AT(MOVE + 48, struct vf_move, addr, 4 * SAMPLE_UNITS + 100),
		WRONG_AT(MOVE + 48, struct vf_move, addr, MANY),
		DESC(LEAF_AT, lba, VF_VOLUME_SECTORS_MAX / VF_REGION_SECTORS),
		DESC(LEAF_AT, body_len, 56),
		DESC(LEAF_AT, body_len, 48),
		WRONG_AT(LEAF_AT + 48, struct vf_leaf_at, slot.where, 5),
		WRONG_AT(LEAF_AT + 48, struct vf_leaf_at, nchanges, 0),
		WRONG_AT(LEAF_AT + 48, struct vf_leaf_at, nchanges, 2),
		WRONG_AT(LEAF_AT + 48, struct vf_leaf_at, nchanges, 0x20000001),
		WRONG_AT(LEAF_AT + 48 + 56, struct vf_change, segno, 0),
		WRONG_AT(LEAF_AT + 48 + 56, struct vf_change, units, 0x80000000),
		DESC(DIR_AT, body_len, 56),
		WRONG_AT(DIR_AT + 48, struct vf_dir_at, level, 0),
		WRONG_AT(DIR_AT + 48, struct vf_dir_at, level, 5),
		WRONG_AT(DIR_AT + 48, struct vf_dir_at, slot.where, 0),
		WRONG_AT(DIR_AT + 48, struct vf_dir_at, changes[0].segno, NO_SEGMENT),
		WRONG_AT(DIR_AT + 48, struct vf_dir_at, changes[1].units, 1),
		DESC(VOLOP, body_len, 344),
		DESC(VOLOP, body_len, 353),
		DESC(PAGE, off, 191),
		DESC(PAGE, stored, 0),
		DESC(PAGE, nsectors, VF_GROUP << 8),
		DESC(PAGE, nsectors, VF_DIR << 8 | 5),
		DESC(PAGE, nsectors, MANY),
	};
	struct sample sample = sample_group(7);

	expect_rejected(&sample, wrong, ARRAY_LEN(wrong));
	sample_free(&sample);
}

static void leaf_at_of_an_empty_region_names_no_leaf(void)
{
	struct sample sample = sample_group(7);
	struct vf_leaf_at *leaf_at = (void *)((uint8_t *)sample.at + LEAF_AT + 48);

	le64_put(&leaf_at->slot.where, 0);
	vf_seal(sample.at, VF_GROUP, sample.len, sample_geometry.uuid);
	CU_ASSERT(sample_valid(&sample, sample.at, sample.len));
	sample_free(&sample);
}

static void table_is_walked_descriptor_by_descriptor(void)
{
	static const uint8_t types[] = { VF_DATA,    VF_DATA,	VF_HOLE,  VF_MOVE,
					 VF_LEAF_AT, VF_DIR_AT, VF_VOLOP, VF_PAGE };
	static const uint32_t bodies[] = { 0, 0, 0, 8, 64, 64, 352, 0 };
	struct sample sample = sample_group(7);
	struct vf_table table = {
		.at = (uint8_t *)sample.at + TABLE,
		.left = sample.len - TABLE,
		.ndescs = 8,
	};

	for (unsigned int i = 0; i < 8; i++) {
		CU_ASSERT_FATAL(vf_table_next(&table));
		CU_ASSERT_EQUAL(table.desc->type, types[i]);
		CU_ASSERT_EQUAL(le32_get(&table.desc->body_len), bodies[i]);
	}
	CU_ASSERT(!vf_table_next(&table));
	CU_ASSERT_EQUAL(table.left, 0);
	sample_free(&sample);
}

/* Whatever the bytes are, nothing beyond them is read (sanitizers tell). */
static void hostile_tables_are_walked_within_their_bytes(void)
{
	uint32_t state = 1;

	for (uint32_t round = 0; round < 20000; round++) {
		uint32_t len = round % 301;
		uint8_t *bytes = malloc(len + 1);
		struct vf_table table = { .at = bytes, .left = len, .ndescs = UINT32_MAX };

		CU_ASSERT_PTR_NOT_NULL_FATAL(bytes);
		for (uint32_t i = 0; i < len; i++) {
			state = state * 1664525u + 1013904223u;
			bytes[i] = state >> 30 ? 0 : (uint8_t)(state >> 16);
		}
		vf_table_check(bytes, len, round % 8);
		while (vf_table_next(&table))
			CU_ASSERT((const uint8_t *)table.body + le32_get(&table.desc->body_len) <=
				  bytes + len);
		free(bytes);
	}
}

static void tables_are_judged_without_a_pool(void)
{
	struct sample sample = sample_group(7);
	const uint8_t *table = (uint8_t *)sample.at + TABLE;
	uint32_t len = sample.len - TABLE;

	CU_ASSERT(vf_table_check(table, len, 8));
	CU_ASSERT(!vf_table_check(table, len, 7));
	CU_ASSERT(!vf_table_check(table, len, 9));
	CU_ASSERT(vf_table_check(table, 0, 0));
	for (uint32_t shorter = 0; shorter < len; shorter++)
		CU_ASSERT(!vf_table_check(table, shorter, 8));
	sample_free(&sample);
}

static void footer_is_judged_whole(void)
{
	enum {
		FIRST = sizeof(struct vf_footer),
		SECOND = FIRST + sizeof(struct vf_footer_group) + 904,
		BEHIND = FIRST + sizeof(struct vf_footer_group) - sizeof(struct vf_group),
	};
	static const struct wrong wrong[] = {
		WRONG(struct vf_footer, segno, 0),
		WRONG(struct vf_footer, segno, NO_SEGMENT),
		WRONG(struct vf_footer, first_seq, 0),
		WRONG(struct vf_footer, first_seq, 6),
		WRONG(struct vf_footer, first_seq, 8),
		WRONG(struct vf_footer, last_seq, 7),
		WRONG(struct vf_footer, last_seq, MANY),
		WRONG(struct vf_footer, last, 0),
		WRONG(struct vf_footer, ngroups, 0),
		WRONG(struct vf_footer, ngroups, 1),
		WRONG(struct vf_footer, ngroups, 3),
		WRONG(struct vf_footer, ngroups, MANY),
		WRONG_AT(FIRST, struct vf_footer_group, seq, 8),
		WRONG_AT(FIRST, struct vf_footer_group, off, 0),
		WRONG_AT(FIRST, struct vf_footer_group, ndescs, 7),
		WRONG_AT(FIRST, struct vf_footer_group, table_len, 912),
		WRONG_AT(FIRST, struct vf_footer_group, table_len, MANY),
		WRONG_AT(SECOND, struct vf_footer_group, off, 1),
		WRONG_AT(SECOND, struct vf_footer_group, off, 64),
		WRONG_AT(SECOND, struct vf_footer_group, seq, 9),
		WRONG_AT(SECOND, struct vf_footer_group, sum, 0),
		DESC(BEHIND + PACKED, type, 0),
		DESC(BEHIND + MOVE, nsectors, 5),
		DESC(BEHIND + PACKED, off, MANY),
	};
	struct sample sample = sample_footer(false), bulk = sample_footer(true);

	CU_ASSERT_EQUAL(sample.len, SECOND + sizeof(struct vf_footer_group) + 904);
	expect_rejected(&sample, wrong, ARRAY_LEN(wrong));
	expect_whole(&sample, true);
	expect_bits_matter(&sample);
	CU_ASSERT(sample_valid(&bulk, bulk.at, bulk.len));
	sample_free(&sample);
	sample_free(&bulk);
}

static const struct test tests[] = {
	TEST(group_header_is_judged_whole),
	TEST(group_fits_the_room_and_half_a_segment),
	TEST(group_is_plausible_by_its_header_alone),
	TEST(data_descriptors_are_judged),
	TEST(other_descriptors_are_judged),
	TEST(leaf_at_of_an_empty_region_names_no_leaf),
	TEST(table_is_walked_descriptor_by_descriptor),
	TEST(hostile_tables_are_walked_within_their_bytes),
	TEST(tables_are_judged_without_a_pool),
	TEST(footer_is_judged_whole),
};

TEST_MAIN(tests)
