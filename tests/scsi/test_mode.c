/* MODE SENSE and MODE SELECT; the log pages. */
#include "tests/scsi/disk.h"

#include <string.h>

#include "base/be.h"

static void sense6(struct disk *d, uint8_t page, uint8_t subpage)
{
	disk_in(d, cdb6(0x1a, 0x08, page, subpage, 255), 255);
}

/* A page in the data of sense6(), NULL when it is not there. */
static const uint8_t *page_in(const struct disk *d, uint8_t code, uint8_t subcode)
{
	for (uint32_t at = 4; at + 2 <= d->data_len;) {
		const uint8_t *p = d->in + at;
		bool sub = p[0] & 0x40;

		if ((p[0] & 0x3f) == code && (sub ? p[1] : 0) == subcode)
			return p;
		at += sub ? 4u + be16_load(p + 2) : 2u + p[1];
	}
	return NULL;
}

static void mode_sense_returns_all_pages_in_order(void)
{
	static const uint8_t codes[] = { 0x01, 0x02, 0x08, 0x0a, 0x1c };
	struct disk d;
	uint32_t at = 4;

	disk_open(&d);
	sense6(&d, 0x3f, 0);
	CHECK_GOOD(&d);
	CU_ASSERT_EQUAL(d.in[0] + 1u, d.data_len);
	for (size_t i = 0; i < sizeof(codes); i++) {
		CU_ASSERT_EQUAL(d.in[at], codes[i]);
		at += 2u + d.in[at + 1];
	}
	CU_ASSERT_EQUAL(at, d.data_len);
	sense6(&d, 0x3f, 0xff);
	CHECK_GOOD(&d);
	CU_ASSERT_PTR_NOT_NULL(page_in(&d, 0x0a, 0x01));
	sense6(&d, 0x0a, 0xff);
	CU_ASSERT_PTR_NOT_NULL(page_in(&d, 0x0a, 0x00));
	CU_ASSERT_PTR_NOT_NULL(page_in(&d, 0x0a, 0x01));
	CU_ASSERT_PTR_NULL(page_in(&d, 0x08, 0));
	disk_close(&d);
}

static void mode_sense_refuses_unknown_and_saved_pages(void)
{
	struct disk d;

	disk_open(&d);
	sense6(&d, 0x20, 0);
	CHECK_FIELD(&d, 2);
	sense6(&d, 0x08, 0x07);
	CHECK_FIELD(&d, 3);
	sense6(&d, 0x3f, 0x01);
	CHECK_FIELD(&d, 3);
	sense6(&d, 0xc0 | 0x08, 0);
	CHECK_SENSE(&d, 5, 0x39, 0);
	disk_close(&d);
}

static void mode_sense_length_is_cut_not_the_length_in_it(void)
{
	struct disk d;

	disk_open(&d);
	disk_in(&d, cdb6(0x1a, 0x08, 0x3f, 0, 4), 4);
	CHECK_GOOD(&d);
	CU_ASSERT_EQUAL(d.data_len, 4);
	CU_ASSERT_EQUAL(d.residual_len, 4);
	CU_ASSERT_TRUE(d.in[0] > 50);
	disk_close(&d);
}

static void block_descriptor_tells_size_and_blocks(void)
{
	struct disk d;

	disk_open(&d);
	disk_in(&d, cdb6(0x1a, 0, 0x08, 0, 255), 255);
	CU_ASSERT_EQUAL(d.in[3], 8);
	CU_ASSERT_EQUAL(be32_load(d.in + 4), d.nblocks);
	CU_ASSERT_EQUAL(be32_load(d.in + 8), d.block_size);
	disk_in(&d, cdb10(0x5a, 0x10, 0x08000000, 255), 255);
	CHECK_GOOD(&d);
	CU_ASSERT_EQUAL(d.in[4], 1);
	CU_ASSERT_EQUAL(be16_load(d.in + 6), 16);
	CU_ASSERT_EQUAL(be64_load(d.in + 8), d.nblocks);
	CU_ASSERT_EQUAL(be32_load(d.in + 20), d.block_size);
	CU_ASSERT_EQUAL(be16_load(d.in) + 2u, d.data_len);
	disk_close(&d);
}

static void wce_is_true(void)
{
	struct disk d;
	const uint8_t *page;

	for (unsigned int through = 0; through < 2; through++) {
		disk_prepare(&d);
		if (through)
			d.settings.cache = BACKING_CACHE_WRITE_THROUGH;
		disk_start(&d);
		disk_none(&d, cdb6(0, 0, 0, 0, 0));
		sense6(&d, 0x08, 0);
		page = page_in(&d, 0x08, 0);
		CU_ASSERT_PTR_NOT_NULL_FATAL(page);
		CU_ASSERT_EQUAL(page[1], 18);
		CU_ASSERT_EQUAL(page[2] >> 2 & 1, !through);
		CU_ASSERT_EQUAL(page[2] >> 2 & 1, d.backing->limits.volatile_cache);
		sense6(&d, 0x40 | 0x08, 0);
		page = page_in(&d, 0x08, 0);
		/* A host cannot have a cache that is not there. */
		CU_ASSERT_EQUAL(page[2], through ? 0 : 0x04);
		disk_close(&d);
	}
}

/* Sends a page as MODE SELECT(6). */
static void select6(struct disk *d, const uint8_t *page, uint8_t len)
{
	uint8_t list[64] = { 0 };

	memcpy(list + 4, page, len);
	disk_out(d, cdb6(0x15, 0x10, 0, 0, (uint8_t)(4 + len)), list, 4u + len);
}

static void mode_select_refuses_what_is_not_changeable(void)
{
	struct disk d;
	uint8_t page[20];

	disk_open(&d);
	sense6(&d, 0x08, 0);
	memcpy(page, page_in(&d, 0x08, 0), sizeof(page));
	select6(&d, page, sizeof(page));
	CHECK_GOOD(&d);
	page[2] ^= 0x01; /* RCD */
	select6(&d, page, sizeof(page));
	CHECK_SENSE(&d, 5, 0x26, 0);
	CU_ASSERT_EQUAL(d.sense[15], 0x88); /* in the list, bit 0 */
	CU_ASSERT_EQUAL(be16_load(d.sense + 16), 6);
	page[2] ^= 0x01;
	page[1] = 19;
	select6(&d, page, sizeof(page));
	CHECK_SENSE(&d, 5, 0x26, 0);
	page[1] = 18;
	select6(&d, page, 10);
	CHECK_SENSE(&d, 5, 0x1a, 0);
	page[0] |= 0x80;
	select6(&d, page, sizeof(page));
	CHECK_SENSE(&d, 5, 0x26, 0);
	disk_out(&d, cdb6(0x15, 0x11, 0, 0, 24), page, 24);
	CHECK_FIELD(&d, 1);
	disk_close(&d);
}

static bool wce(struct disk *d)
{
	sense6(d, 0x08, 0);
	return page_in(d, 0x08, 0)[2] & 0x04;
}

static void wce_may_be_turned_off_and_on(void)
{
	struct disk d;
	uint8_t page[20];

	disk_open(&d);
	sense6(&d, 0x08, 0);
	memcpy(page, page_in(&d, 0x08, 0), sizeof(page));
	page[2] &= 0xfb;
	select6(&d, page, sizeof(page));
	CHECK_GOOD(&d);
	CU_ASSERT_FALSE(wce(&d));
	d.who = 1;
	disk_none(&d, cdb6(0, 0, 0, 0, 0));
	CHECK_SENSE(&d, 6, 0x2a, 0x01);
	sense6(&d, 0x80 | 0x08, 0);
	CU_ASSERT_EQUAL(page_in(&d, 0x08, 0)[2] & 0x04, 0x04); /* the default */
	page[2] |= 0x04;
	select6(&d, page, sizeof(page));
	CHECK_GOOD(&d);
	CU_ASSERT_TRUE(wce(&d));
	disk_close(&d);
}

static void wce_cannot_be_turned_on_without_a_cache(void)
{
	struct disk d;
	uint8_t page[20];

	disk_prepare(&d);
	d.settings.cache = BACKING_CACHE_WRITE_THROUGH;
	disk_start(&d);
	disk_none(&d, cdb6(0, 0, 0, 0, 0));
	sense6(&d, 0x08, 0);
	memcpy(page, page_in(&d, 0x08, 0), sizeof(page));
	page[2] |= 0x04;
	select6(&d, page, sizeof(page));
	CHECK_SENSE(&d, 5, 0x26, 0);
	CU_ASSERT_FALSE(wce(&d));
	disk_close(&d);
}

static void d_sense_changes_the_format_for_all_nexuses(void)
{
	struct disk d;
	uint8_t page[12];

	disk_open(&d);
	sense6(&d, 0x0a, 0);
	memcpy(page, page_in(&d, 0x0a, 0), sizeof(page));
	CU_ASSERT_EQUAL(page[2] & 0x04, 0);
	page[2] |= 0x04;
	select6(&d, page, sizeof(page));
	CHECK_GOOD(&d);
	d.who = 1;
	disk_none(&d, cdb6(0, 0, 0, 0, 0));
	CHECK_SENSE(&d, 6, 0x2a, 0x01);
	CU_ASSERT_EQUAL(d.sense[0], 0x72);
	disk_in(&d, cdb16(0x88, 0, 1ull << 40, 1), d.block_size);
	CHECK_SENSE(&d, 5, 0x21, 0);
	CU_ASSERT_EQUAL(d.sense[0], 0x72);
	CU_ASSERT_EQUAL(be64_load(d.sense + 12), 1ull << 40);
	disk_in(&d, cdb10(0x28, 0x20, 0, 1), d.block_size);
	CU_ASSERT_EQUAL(d.sense[8], 0x02);
	CU_ASSERT_EQUAL(be16_load(d.sense + 13), 1);
	disk_close(&d);
}

static void swp_protects_against_writes(void)
{
	struct disk d;
	uint8_t page[12], data[4096] = { 0 };

	disk_open(&d);
	sense6(&d, 0x0a, 0);
	CU_ASSERT_EQUAL(d.in[2], 0x10);
	memcpy(page, page_in(&d, 0x0a, 0), sizeof(page));
	page[4] |= 0x08;
	select6(&d, page, sizeof(page));
	CHECK_GOOD(&d);
	sense6(&d, 0x0a, 0);
	CU_ASSERT_EQUAL(d.in[2], 0x90);
	CU_ASSERT_EQUAL(page_in(&d, 0x0a, 0)[4] & 0x08, 0x08);
	disk_out(&d, cdb10(0x2a, 0, 0, 1), data, d.block_size);
	CHECK_SENSE(&d, 7, 0x27, 0x02);
	disk_in(&d, cdb10(0x28, 0, 0, 1), d.block_size);
	CHECK_GOOD(&d);
	page[4] &= 0xf7;
	select6(&d, page, sizeof(page));
	CHECK_GOOD(&d);
	disk_out(&d, cdb10(0x2a, 0, 0, 1), data, d.block_size);
	CHECK_GOOD(&d);
	disk_close(&d);
}

static void read_only_disk_is_write_protected(void)
{
	struct disk d;
	uint8_t data[4096] = { 0 };

	disk_prepare(&d);
	if (d.path[0]) {
		struct backing *made;
		struct err err;

		CU_ASSERT_EQUAL_FATAL(backing_open(&d.settings, &made, &err), 0);
		backing_close(made);
	}
	d.settings.read_only = true;
	disk_start(&d);
	disk_none(&d, cdb6(0, 0, 0, 0, 0));
	sense6(&d, 0x08, 0);
	CU_ASSERT_EQUAL(d.in[2], 0x90);
	disk_out(&d, cdb10(0x2a, 0, 0, 1), data, d.block_size);
	CHECK_SENSE(&d, 7, 0x27, 0x00);
	disk_out(&d, cdb16(0x93, 0, 0, 1), data, d.block_size);
	CHECK_SENSE(&d, 7, 0x27, 0x00);
	disk_in(&d, cdb10(0x28, 0, 0, 1), d.block_size);
	CHECK_GOOD(&d);
	disk_close(&d);
}

static void log_pages_are_those_that_answer(void)
{
	struct bk_space space;
	struct disk d;
	bool provisioning;

	disk_open(&d);
	provisioning = backing_space(d.backing, &space);
	disk_in(&d, cdb10(0x4d, 0, 0x40000000, 255), 255);
	CHECK_GOOD(&d);
	CU_ASSERT_EQUAL(be16_load(d.in + 2) + 4u, d.data_len);
	CU_ASSERT_EQUAL(memcmp(d.in + 4, "\0\2\3", 3), 0);
	disk_in(&d, cdb10(0x4d, 0, 0x40ff0000, 255), 255);
	CHECK_GOOD(&d);
	CU_ASSERT_EQUAL(d.in[0], 0x40);
	/* Pages and subpages of two bytes; 0Ch where the space is known. */
	CU_ASSERT_EQUAL(be16_load(d.in + 2), provisioning ? 10 : 8);
	disk_in(&d, cdb10(0x4d, 0, 0x6f000000, 255), 255);
	CHECK_FIELD(&d, 2);
	disk_fill(&d, 0, 4, 1);
	disk_in(&d, cdb10(0x4d, 0, 0x42000000, 255), 255);
	CHECK_GOOD(&d);
	CU_ASSERT_EQUAL(be64_load(d.in + 8), 4 * d.block_size);
	disk_close(&d);
}

const struct scsi_test tests_mode[] = {
	SCSI_TEST(mode_sense_returns_all_pages_in_order),
	SCSI_TEST(mode_sense_refuses_unknown_and_saved_pages),
	SCSI_TEST(mode_sense_length_is_cut_not_the_length_in_it),
	SCSI_TEST(block_descriptor_tells_size_and_blocks),
	SCSI_TEST(wce_is_true),
	SCSI_TEST(mode_select_refuses_what_is_not_changeable),
	SCSI_TEST(wce_may_be_turned_off_and_on),
	SCSI_TEST(wce_cannot_be_turned_on_without_a_cache),
	SCSI_TEST(d_sense_changes_the_format_for_all_nexuses),
	SCSI_TEST(swp_protects_against_writes),
	SCSI_TEST(read_only_disk_is_write_protected),
	SCSI_TEST(log_pages_are_those_that_answer),
	{ NULL, NULL },
};
