/* UNMAP, WRITE SAME, GET LBA STATUS. */
#include "tests/scsi/disk.h"

#include <stdlib.h>
#include <string.h>

#include "base/be.h"

#define LIST_MAX (8 + 16 * 300)

struct list_of_blocks {
	uint8_t data[LIST_MAX];
	uint32_t len;
};

static void list_start(struct list_of_blocks *list)
{
	memset(list, 0, sizeof(*list));
	list->len = 8;
}

static void list_put(struct list_of_blocks *list, uint64_t lba, uint32_t n)
{
	be64_store(list->data + list->len, lba);
	be32_store(list->data + list->len + 8, n);
	list->len += 16;
	be16_store(list->data, (uint16_t)(list->len - 2));
	be16_store(list->data + 2, (uint16_t)(list->len - 8));
}

static void unmap(struct disk *d, const struct list_of_blocks *list)
{
	disk_out(d, cdb10(0x42, 0, 0, (uint16_t)list->len), list->data, list->len);
}

static void open_thin(struct disk *d)
{
	disk_open(d);
	if (d->backing->limits.unmap_max > 0)
		return;
	disk_close(d);
	test_skip("this store does not unmap here");
}

static void unmapped_blocks_read_as_zeros(void)
{
	struct disk d;
	struct list_of_blocks list;

	open_thin(&d);
	disk_fill(&d, 0, 64, 0x77);
	list_start(&list);
	list_put(&list, 1, 1);
	list_put(&list, 8, 24);
	list_put(&list, 40, 0);
	unmap(&d, &list);
	CHECK_GOOD(&d);
	if (d.backing->limits.unmapped_reads_zero) {
		CU_ASSERT_TRUE(disk_is(&d, 1, 1, 0));
		CU_ASSERT_TRUE(disk_is(&d, 8, 24, 0));
	}
	CU_ASSERT_TRUE(disk_is(&d, 0, 1, 0x77));
	CU_ASSERT_TRUE(disk_is(&d, 2, 6, 0x77));
	CU_ASSERT_TRUE(disk_is(&d, 32, 32, 0x77));
	disk_close(&d);
}

static void unmap_judges_the_whole_list_first(void)
{
	struct disk d;
	struct list_of_blocks list;

	open_thin(&d);
	disk_fill(&d, 0, 8, 0x77);
	list_start(&list);
	list_put(&list, 0, 8);
	list_put(&list, d.nblocks - 1, 2);
	unmap(&d, &list);
	CHECK_SENSE(&d, 5, 0x21, 0);
	CU_ASSERT_TRUE(disk_is(&d, 0, 8, 0x77));
	list_start(&list);
	list_put(&list, UINT64_MAX, UINT32_MAX);
	unmap(&d, &list);
	CHECK_SENSE(&d, 5, 0x21, 0);
	disk_close(&d);
}

static void unmap_obeys_the_limits_of_b0(void)
{
	struct disk d;
	struct list_of_blocks list;

	open_thin(&d);
	list_start(&list);
	for (unsigned int i = 0; i < 256; i++)
		list_put(&list, i, 1);
	unmap(&d, &list);
	CHECK_GOOD(&d);
	list_put(&list, 0, 1);
	unmap(&d, &list);
	CHECK_SENSE(&d, 5, 0x1a, 0);
	disk_close(&d);
}

static void unmap_judges_its_lengths(void)
{
	struct disk d;
	struct list_of_blocks list;

	open_thin(&d);
	disk_out(&d, cdb10(0x42, 0, 0, 0), NULL, 0);
	CHECK_GOOD(&d);
	list_start(&list);
	be16_store(list.data, 6);
	unmap(&d, &list);
	CHECK_GOOD(&d);
	disk_out(&d, cdb10(0x42, 0, 0, 7), list.data, 7);
	CHECK_SENSE(&d, 5, 0x1a, 0);
	list_put(&list, 0, 1);
	disk_out(&d, cdb10(0x42, 0, 0, (uint16_t)list.len), list.data, list.len - 4);
	CHECK_SENSE(&d, 5, 0x0e, 0x03);
	be16_store(list.data + 2, 64);
	unmap(&d, &list);
	CHECK_SENSE(&d, 5, 0x26, 0);
	disk_out(&d, cdb10(0x42, 1, 0, (uint16_t)list.len), list.data, list.len);
	CHECK_FIELD(&d, 1); /* ANCHOR */
	disk_close(&d);
}

static void write_same_repeats_one_block(void)
{
	struct disk d;
	uint8_t data[4096];

	disk_open(&d);
	disk_fill(&d, 0, 300, 0x77);
	memset(data, 0x42, sizeof(data));
	disk_out(&d, cdb10(0x41, 0, 1, 298), data, d.block_size);
	CHECK_GOOD(&d);
	CU_ASSERT_TRUE(disk_is(&d, 0, 1, 0x77));
	CU_ASSERT_TRUE(disk_is(&d, 1, 298, 0x42));
	CU_ASSERT_TRUE(disk_is(&d, 299, 1, 0x77));
	pattern(data, sizeof(data), 5);
	disk_out(&d, cdb16(0x93, 0, 7, 2), data, d.block_size);
	CHECK_GOOD(&d);
	disk_in(&d, cdb16(0x88, 0, 8, 1), d.block_size);
	CU_ASSERT_EQUAL(memcmp(d.in, data, d.block_size), 0);
	disk_close(&d);
}

static void write_same_of_zeros_reads_as_zeros(void)
{
	struct disk d;
	uint8_t data[4096] = { 0 };

	disk_open(&d);
	disk_fill(&d, 0, 300, 0x77);
	disk_out(&d, cdb10(0x41, 0, 1, 298), data, d.block_size);
	CHECK_GOOD(&d);
	CU_ASSERT_TRUE(disk_is(&d, 0, 1, 0x77));
	CU_ASSERT_TRUE(disk_is(&d, 1, 298, 0));
	CU_ASSERT_TRUE(disk_is(&d, 299, 1, 0x77));
	disk_fill(&d, 0, 300, 0x77);
	disk_none(&d, cdb16(0x93, 0x01, 3, 9)); /* NDOB */
	CHECK_GOOD(&d);
	CU_ASSERT_TRUE(disk_is(&d, 3, 9, 0));
	CU_ASSERT_TRUE(disk_is(&d, 12, 1, 0x77));
	disk_close(&d);
}

/* UNMAP with data that are not zeros: the blocks hold the data. */
static void write_same_with_unmap_ends_as_without(void)
{
	struct disk d;
	uint8_t data[4096] = { 0 };

	open_thin(&d);
	if (!d.backing->limits.write_zeroes_unmaps) {
		disk_close(&d);
		test_skip("WRITE SAME does not unmap here");
	}
	disk_fill(&d, 0, 64, 0x77);
	disk_out(&d, cdb16(0x93, 0x08, 1, 62), data, d.block_size);
	CHECK_GOOD(&d);
	CU_ASSERT_TRUE(disk_is(&d, 1, 62, 0));
	CU_ASSERT_TRUE(disk_is(&d, 63, 1, 0x77));
	memset(data, 0x42, sizeof(data));
	disk_out(&d, cdb10(0x41, 0x08, 1, 62), data, d.block_size);
	CHECK_GOOD(&d);
	CU_ASSERT_TRUE(disk_is(&d, 1, 62, 0x42));
	disk_close(&d);
}

static void write_same_obeys_b0_and_the_range(void)
{
	struct disk d;
	uint8_t data[8192] = { 0 };

	disk_prepare(&d);
	d.settings.size = 32769ull * 4096;
	disk_start(&d);
	disk_none(&d, cdb6(0, 0, 0, 0, 0));
	disk_out(&d, cdb10(0x41, 0, 0, 0), data, d.block_size);
	CHECK_FIELD(&d, 7);
	disk_out(&d, cdb16(0x93, 0, 0, 0), data, d.block_size);
	CHECK_FIELD(&d, 10);
	disk_none(&d, cdb16(0x93, 0x01, 0, 32769));
	CHECK_FIELD(&d, 10);
	disk_out(&d, cdb16(0x93, 0, d.nblocks - 1, 2), data, d.block_size);
	CHECK_SENSE(&d, 5, 0x21, 0);
	disk_out(&d, cdb16(0x93, 0x10, 0, 1), data, d.block_size);
	CHECK_FIELD(&d, 1); /* ANCHOR */
	disk_out(&d, cdb16(0x93, 0, 0, 1), data, d.block_size / 2);
	CHECK_SENSE(&d, 5, 0x0e, 0x03);
	disk_out(&d, cdb16(0x93, 0, 0, 1), data, 2 * d.block_size);
	CHECK_SENSE(&d, 5, 0x0e, 0x03);
	disk_close(&d);
}

static void lba_status_starts_at_the_block_asked_for(void)
{
	struct disk d;

	disk_open(&d);
	disk_fill(&d, 0, 64, 1);
	disk_in(&d, cdb16(0x9e, 0x12, 3, 24), 24);
	CHECK_GOOD(&d);
	CU_ASSERT_EQUAL(d.data_len, 24);
	CU_ASSERT_EQUAL(be64_load(d.in + 8), 3);
	CU_ASSERT_TRUE(be32_load(d.in + 16) >= 1);
	CU_ASSERT_EQUAL(d.in[20], 0);
	CU_ASSERT_TRUE(be32_load(d.in) >= 20);
	disk_in(&d, cdb16(0x9e, 0x12, d.nblocks - 1, 24), 24);
	CHECK_GOOD(&d);
	CU_ASSERT_EQUAL(be32_load(d.in + 16), 1);
	disk_in(&d, cdb16(0x9e, 0x12, d.nblocks, 24), 24);
	CHECK_SENSE(&d, 5, 0x21, 0);
	disk_in(&d, cdb16(0x9e, 0x12, UINT64_MAX, 24), 24);
	CHECK_SENSE(&d, 5, 0x21, 0);
	disk_in(&d, cdb16(0x9e, 0x12, 0, 0), 0);
	CHECK_GOOD(&d);
	disk_close(&d);
}

static void lba_status_covers_the_disk_without_gaps(void)
{
	struct disk d;
	struct list_of_blocks list;
	uint64_t next = 0;
	unsigned int n = 0;

	open_thin(&d);
	if (!d.backing->limits.knows_status) {
		disk_close(&d);
		test_skip("this store does not know what is mapped");
	}
	disk_fill(&d, 0, 256, 1);
	list_start(&list);
	list_put(&list, 64, 64);
	unmap(&d, &list);
	disk_in(&d, cdb16(0x9e, 0x12, 0, 4096), 4096);
	CHECK_GOOD(&d);
	for (uint32_t at = 8; at + 16 <= d.data_len; at += 16, n++) {
		CU_ASSERT_EQUAL(be64_load(d.in + at), next);
		next += be32_load(d.in + at + 8);
		if (be64_load(d.in + at) == 64)
			CU_ASSERT_EQUAL(d.in[at + 12], 1);
	}
	CU_ASSERT_EQUAL(next, d.nblocks);
	CU_ASSERT_TRUE(n >= 4);
	disk_close(&d);
}

static void space_that_gets_short_is_told_once(void)
{
	struct bk_space space = { .used = 5u << 20, .available = 3u << 20 };
	struct disk d;

	disk_open(&d);
	if (!d.store->fault) { /* nobody else pretends */
		disk_none(&d, cdb6(0, 0, 0, 0, 0));
		CHECK_GOOD(&d);
		disk_close(&d);
		return;
	}
	fault_space_short(d.backing, &space);
	disk_none(&d, cdb6(0, 0, 0, 0, 0));
	CHECK_SENSE(&d, 6, 0x38, 0x07);
	disk_none(&d, cdb6(0, 0, 0, 0, 0));
	CHECK_GOOD(&d);
	d.who = 1;
	disk_none(&d, cdb6(0, 0, 0, 0, 0));
	CHECK_SENSE(&d, 6, 0x38, 0x07);
	disk_close(&d);
}

static void space_is_told_by_those_that_know_it(void)
{
	struct bk_space space = { .used = 5u << 20, .available = 3u << 20 }, unknown;
	struct disk d;

	disk_open(&d);
	if (!backing_space(d.backing, &unknown)) {
		disk_in(&d, cdb10(0x4d, 0, 0x4c000000, 255), 255);
		CHECK_FIELD(&d, 2);
		disk_in(&d, cdb6(0x12, 1, 0xb2, 0, 255), 255);
		CU_ASSERT_EQUAL(d.in[4], 0);
	}
	if (!d.store->fault || d.backing->limits.unmap_max == 0) {
		disk_close(&d);
		return;
	}
	fault_space_short(d.backing, &space);
	disk_none(&d, cdb6(0, 0, 0, 0, 0));
	disk_in(&d, cdb6(0x12, 1, 0xb2, 0, 255), 255);
	CHECK_GOOD(&d);
	CU_ASSERT_EQUAL((uint64_t)d.block_size << d.in[4], 1u << 20);
	disk_in(&d, cdb10(0x4d, 0, 0x4c000000, 255), 255);
	CHECK_GOOD(&d);
	CU_ASSERT_EQUAL(d.data_len, 28);
	CU_ASSERT_EQUAL(be16_load(d.in + 4), 1);
	CU_ASSERT_EQUAL(be32_load(d.in + 8), 3);
	CU_ASSERT_EQUAL(d.in[12], 2);
	CU_ASSERT_EQUAL(be16_load(d.in + 16), 2);
	CU_ASSERT_EQUAL(be32_load(d.in + 20), 5);
	CU_ASSERT_EQUAL(d.in[24], 1);
	disk_close(&d);
}

const struct scsi_test tests_provisioning[] = {
	SCSI_TEST(space_that_gets_short_is_told_once),
	SCSI_TEST(space_is_told_by_those_that_know_it),
	SCSI_TEST(unmapped_blocks_read_as_zeros),
	SCSI_TEST(unmap_judges_the_whole_list_first),
	SCSI_TEST(unmap_obeys_the_limits_of_b0),
	SCSI_TEST(unmap_judges_its_lengths),
	SCSI_TEST(write_same_repeats_one_block),
	SCSI_TEST(write_same_of_zeros_reads_as_zeros),
	SCSI_TEST(write_same_with_unmap_ends_as_without),
	SCSI_TEST(write_same_obeys_b0_and_the_range),
	SCSI_TEST(lba_status_starts_at_the_block_asked_for),
	SCSI_TEST(lba_status_covers_the_disk_without_gaps),
	{ NULL, NULL },
};
