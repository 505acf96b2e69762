/* Heads, sums, packed entries, names and numbers of the format. */
#include "backing/volume/format.h"

#include <stdlib.h>

#include "tests/unit/quintain_test.h"

static const uint8_t uuid[16] = "0123456789abcde", other[16] = "0123456789abcdf";

struct thing {
	struct vf_head head;
	uint8_t rest[100];
};

static void seal_fills_the_head(void)
{
	struct thing thing = { .rest = { 1, 2, 3 } };

	vf_seal(&thing, VF_ROOT, sizeof(thing), uuid);
	CU_ASSERT_EQUAL(le32_get(&thing.head.magic), VF_MAGIC);
	CU_ASSERT_EQUAL(memcmp(&thing, "QUIN", 4), 0);
	CU_ASSERT_EQUAL(le32_get(&thing.head.len), sizeof(thing));
	CU_ASSERT(vf_check(&thing, VF_ROOT, sizeof(thing), sizeof(thing), uuid));
	CU_ASSERT(vf_check(&thing, VF_ROOT, sizeof(thing.head), 4096, NULL));
}

static void check_rejects_another_type_length_and_pool(void)
{
	struct thing thing = { .rest = { 1, 2, 3 } };

	vf_seal(&thing, VF_ROOT, sizeof(thing), uuid);
	CU_ASSERT(!vf_check(&thing, VF_DIR, sizeof(thing), sizeof(thing), uuid));
	CU_ASSERT(!vf_check(&thing, VF_ROOT, sizeof(thing) + 1, 4096, uuid));
	CU_ASSERT(!vf_check(&thing, VF_ROOT, sizeof(thing.head), sizeof(thing) - 1, uuid));
	CU_ASSERT(!vf_check(&thing, VF_ROOT, sizeof(thing), sizeof(thing), other));
}

static void check_sees_every_flipped_bit(void)
{
	struct thing thing = { .rest = { 1, 2, 3 } };
	uint8_t *bytes = (uint8_t *)&thing;

	vf_seal(&thing, VF_ROOT, sizeof(thing), uuid);
	for (size_t bit = 0; bit < 8 * sizeof(thing); bit++) {
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		CU_ASSERT(!vf_check(&thing, VF_ROOT, sizeof(thing.head), sizeof(thing), NULL));
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
}

/* A reader of another make must come to the same; docs/volume-format.md. */
static void sums_are_as_documented(void)
{
	static const uint8_t empty[16] = { 0x99, 0xaa, 0x06, 0xd3, 0x01, 0x47, 0x98, 0xd8,
					   0x60, 0x01, 0xc3, 0x24, 0x46, 0x8d, 0x49, 0x7f };
	struct vf_hash hash = vf_hash("", 0);

	CU_ASSERT_EQUAL(memcmp(&hash, empty, sizeof(hash)), 0);
	CU_ASSERT(vf_hash_equal(&hash, &hash));
	CU_ASSERT(!vf_hash_zero(&hash));
	CU_ASSERT(vf_hash_zero(&(struct vf_hash){ { 0 } }));
}

static void expect_round_trip(const struct vf_entry *entry, bool wide)
{
	size_t len = wide ? VF_ENTRY_WIDE_LEN : VF_ENTRY_LEN;
	uint8_t *disk = malloc(len);
	struct vf_entry back;

	CU_ASSERT_PTR_NOT_NULL_FATAL(disk);
	vf_entry_put(disk, entry, wide);
	vf_entry_get(disk, &back, wide);
	free(disk);
	CU_ASSERT_EQUAL(back.addr, entry->addr);
	CU_ASSERT_EQUAL(back.start, entry->start);
	CU_ASSERT_EQUAL(back.nsectors, entry->nsectors);
	CU_ASSERT_EQUAL(back.off, entry->off);
	CU_ASSERT_EQUAL(back.stored, entry->stored);
	CU_ASSERT_EQUAL(back.codec, entry->codec);
	CU_ASSERT_EQUAL(back.flags, entry->flags);
	CU_ASSERT_EQUAL(back.raw, entry->raw);
	CU_ASSERT_EQUAL(back.birth, entry->birth);
	CU_ASSERT_EQUAL(back.check[0], entry->check[0]);
	CU_ASSERT_EQUAL(back.check[1], wide ? entry->check[1] : 0);
	CU_ASSERT_EQUAL(back.check[2], wide ? entry->check[2] : 0);
}

/* Each field at its least and its most, the others at the opposite. */
static void entries_come_back_at_the_extremes(void)
{
	const struct vf_entry least = { .nsectors = 1 };
	const struct vf_entry most = {
		.addr = (1ull << 40) - 1,
		.start = 2047,
		.nsectors = 2048,
		.off = 2047,
		.stored = 0x7fff,
		.codec = 14,
		.flags = 15,
		.birth = UINT32_MAX,
		.check = { UINT64_MAX, UINT64_MAX, UINT64_MAX },
	};

	for (unsigned int wide = 0; wide < 2; wide++)
		for (unsigned int fields = 0; fields < 1u << 10; fields++) {
			struct vf_entry entry = least;

			entry.addr = fields & 1 ? most.addr : least.addr;
			entry.start = fields & 2 ? most.start : least.start;
			entry.nsectors = fields & 4 ? most.nsectors : least.nsectors;
			entry.off = fields & 8 ? most.off : least.off;
			entry.stored = fields & 16 ? most.stored : least.stored;
			entry.codec = fields & 32 ? most.codec : least.codec;
			entry.flags = fields & 64 ? most.flags : least.flags;
			entry.birth = fields & 128 ? most.birth : least.birth;
			entry.raw = fields & 256 && entry.codec == 0;
			if (fields & 512)
				memcpy(entry.check, most.check, sizeof(entry.check));
			expect_round_trip(&entry, wide);
		}
}

static void record_sums_differ_by_owner(void)
{
	uint8_t salt[16] = { 1 }, salt2[16] = { 2 }, data[64] = { 0 }, digest[32];
	uint64_t first[3], again[3];

	for (unsigned int wide = 0; wide < 2; wide++) {
		vf_record_sum(salt, 1, 8, data, sizeof(data), wide, first, NULL);
		vf_record_sum(salt, 1, 8, data, sizeof(data), wide, again, wide ? digest : NULL);
		CU_ASSERT_EQUAL(memcmp(first, again, sizeof(first)), 0);
		CU_ASSERT_EQUAL(first[1] != 0 || first[2] != 0, wide);
		vf_record_sum(salt2, 1, 8, data, sizeof(data), wide, again, NULL);
		CU_ASSERT_NOT_EQUAL(first[0], again[0]);
		vf_record_sum(salt, 2, 8, data, sizeof(data), wide, again, NULL);
		CU_ASSERT_NOT_EQUAL(first[0], again[0]);
		vf_record_sum(salt, 1, 9, data, sizeof(data), wide, again, NULL);
		CU_ASSERT_NOT_EQUAL(first[0], again[0]);
		data[63] ^= 1;
		vf_record_sum(salt, 1, 8, data, sizeof(data), wide, again, NULL);
		data[63] ^= 1;
		CU_ASSERT_NOT_EQUAL(first[0], again[0]);
	}
	/* The entry has the first 24 bytes of the digest, in the order of the disk. */
	for (unsigned int i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(le64_get((le64 *)(digest + 8 * i)), first[i]);
}

static void segments_of_superblocks_are_known(void)
{
	CU_ASSERT(vf_segment_is_super(256u << 10, 0));
	CU_ASSERT(vf_segment_is_super(256u << 10, 4));
	CU_ASSERT(!vf_segment_is_super(256u << 10, 1));
	CU_ASSERT(!vf_segment_is_super(256u << 10, 5));
	CU_ASSERT(vf_segment_is_super(1u << 20, 1));
	CU_ASSERT(!vf_segment_is_super(1u << 20, 2));
	CU_ASSERT(vf_segment_is_super(4u << 20, 0));
	CU_ASSERT(!vf_segment_is_super(4u << 20, 1));
}

static void segment_length_goes_by_the_size_of_the_pool(void)
{
	CU_ASSERT_EQUAL(vf_segment_len_for(16ull << 20), 256u << 10);
	CU_ASSERT_EQUAL(vf_segment_len_for((256ull << 20) - 1), 256u << 10);
	CU_ASSERT_EQUAL(vf_segment_len_for(256ull << 20), 1u << 20);
	CU_ASSERT_EQUAL(vf_segment_len_for((4ull << 30) - 1), 1u << 20);
	CU_ASSERT_EQUAL(vf_segment_len_for(4ull << 30), 4u << 20);
	CU_ASSERT_EQUAL(vf_record_len_max(256u << 10), 64u << 10);
	CU_ASSERT_EQUAL(vf_record_len_max(1u << 20), 256u << 10);
	CU_ASSERT_EQUAL(vf_record_len_max(4u << 20), 1u << 20);
}

static void where_holds_address_and_length(void)
{
	uint64_t where = vf_where((1ull << 40) - 1, 0x7fff);

	CU_ASSERT_EQUAL(vf_where_addr(where), (1ull << 40) - 1);
	CU_ASSERT_EQUAL(vf_where_stored(where), 0x7fff);
	CU_ASSERT_EQUAL(where >> 55, 0);
	CU_ASSERT_EQUAL(vf_where(0, 0), 0);
}

static bool name_valid(const char *text, bool label)
{
	char name[VF_NAME_MAX + 1] = { 0 };

	memcpy(name, text, strnlen(text, sizeof(name)));
	return label ? vf_label_valid(name) : vf_name_valid(name);
}

static void names_are_printable_and_ended(void)
{
	static const char longest[] =
		"123456789012345678901234567890123456789012345678901234567890123";
	char padded[VF_NAME_MAX + 1] = "ab";

	CU_ASSERT(name_valid("disk-0.img", false));
	CU_ASSERT(name_valid(longest, false));
	CU_ASSERT(!name_valid("1234567890123456789012345678901234567890123456789012345678901234",
			      false));
	CU_ASSERT(!name_valid("", false));
	CU_ASSERT(!name_valid("a b", false));
	CU_ASSERT(!name_valid("a/b", false));
	CU_ASSERT(!name_valid("a\x1b", false));
	CU_ASSERT(!name_valid("a\xff", false));
	CU_ASSERT(name_valid("", true));
	CU_ASSERT(name_valid("my pool / 2", true));
	CU_ASSERT(!name_valid("a\n", true));
	padded[5] = 'x';
	CU_ASSERT(!vf_name_valid(padded));
}

static void features_are_named(void)
{
	char text[64], little[8];

	vf_features_name(VF_INCOMPAT, 1ull << 0 | 1ull << 63, text, sizeof(text));
	CU_ASSERT_STRING_EQUAL(text, "snapshots, number 63");
	vf_features_name(VF_COMPAT, 1ull << 0, text, sizeof(text));
	CU_ASSERT_STRING_EQUAL(text, "number 0");
	vf_features_name(VF_INCOMPAT, 0, text, sizeof(text));
	CU_ASSERT_STRING_EQUAL(text, "");
	vf_features_name(VF_INCOMPAT, UINT64_MAX, little, sizeof(little));
	CU_ASSERT_EQUAL(strlen(little), sizeof(little) - 1);
}

static const struct test tests[] = {
	TEST(seal_fills_the_head),
	TEST(check_rejects_another_type_length_and_pool),
	TEST(check_sees_every_flipped_bit),
	TEST(sums_are_as_documented),
	TEST(entries_come_back_at_the_extremes),
	TEST(record_sums_differ_by_owner),
	TEST(segments_of_superblocks_are_known),
	TEST(segment_length_goes_by_the_size_of_the_pool),
	TEST(where_holds_address_and_length),
	TEST(names_are_printable_and_ended),
	TEST(features_are_named),
};

TEST_MAIN(tests)
