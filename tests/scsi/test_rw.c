/* READ and WRITE: data, ranges near 2^64, lengths that do not agree. */
#include "tests/scsi/disk.h"

#include <stdlib.h>
#include <string.h>

#include "base/be.h"

static void write10_then_read16_returns_the_data(void)
{
	struct disk d;
	uint32_t len;
	uint8_t *data = malloc(1u << 20);

	disk_open(&d);
	len = 64 * d.block_size;
	pattern(data, len, 1);
	disk_out(&d, cdb10(0x2a, 0, 5, 64), data, len);
	CHECK_GOOD(&d);
	CU_ASSERT_EQUAL(d.residual_len, len);
	disk_in(&d, cdb16(0x88, 0, 5, 64), len);
	CHECK_GOOD(&d);
	CU_ASSERT_EQUAL(d.data_len, len);
	CU_ASSERT_EQUAL(d.residual_len, len);
	CU_ASSERT_EQUAL(memcmp(d.in, data, len), 0);
	disk_close(&d);
	free(data);
}

static void read_of_every_size_returns_the_same(void)
{
	struct disk d;
	uint8_t data[4096];

	disk_open(&d);
	pattern(data, d.block_size, 9);
	disk_out(&d, cdb12(0xaa, 0x18, 2, 1), data, d.block_size);
	CHECK_GOOD(&d);
	disk_in(&d, cdb6(0x08, 0, 0, 2, 1), d.block_size);
	CU_ASSERT_EQUAL(memcmp(d.in, data, d.block_size), 0);
	disk_in(&d, cdb10(0x28, 0x18, 2, 1), d.block_size);
	CU_ASSERT_EQUAL(memcmp(d.in, data, d.block_size), 0);
	disk_in(&d, cdb12(0xa8, 0x10, 2, 1), d.block_size);
	CU_ASSERT_EQUAL(memcmp(d.in, data, d.block_size), 0);
	disk_in(&d, cdb16(0x88, 0x08, 2, 1), d.block_size);
	CHECK_GOOD(&d);
	CU_ASSERT_EQUAL(memcmp(d.in, data, d.block_size), 0);
	disk_close(&d);
}

static void read6_of_zero_blocks_reads_256(void)
{
	struct disk d;

	disk_open(&d);
	disk_in(&d, cdb6(0x08, 0, 0, 0, 0), 256 * d.block_size);
	CHECK_GOOD(&d);
	CU_ASSERT_EQUAL(d.data_len, 256 * d.block_size);
	disk_close(&d);
}

static void write6_writes(void)
{
	struct disk d;
	uint8_t data[4096];

	disk_open(&d);
	memset(data, 0x33, sizeof(data));
	disk_out(&d, cdb6(0x0a, 0, 0, 7, 1), data, d.block_size);
	CHECK_GOOD(&d);
	CU_ASSERT_TRUE(disk_is(&d, 7, 1, 0x33));
	disk_close(&d);
}

static void read10_beyond_end(void)
{
	struct disk d;

	disk_open(&d);
	disk_in(&d, cdb10(0x28, 0, (uint32_t)d.nblocks - 1, 1), d.block_size);
	CHECK_GOOD(&d);
	disk_in(&d, cdb10(0x28, 0, (uint32_t)d.nblocks - 1, 2), 2 * d.block_size);
	CHECK_SENSE(&d, 5, 0x21, 0);
	disk_in(&d, cdb10(0x28, 0, (uint32_t)d.nblocks, 1), d.block_size);
	CHECK_SENSE(&d, 5, 0x21, 0);
	CU_ASSERT_EQUAL(d.data_len, 0);
	disk_close(&d);
}

static void read16_near_two_to_the_64(void)
{
	static const uint64_t lbas[] = { UINT64_MAX, UINT64_MAX - 1, 1ull << 63, UINT64_MAX / 512,
					 UINT64_MAX / 4096 };
	struct disk d;

	disk_open(&d);
	for (size_t i = 0; i < ARRAY_LEN(lbas); i++) {
		disk_in(&d, cdb16(0x88, 0, lbas[i], 2), 2 * d.block_size);
		CHECK_SENSE(&d, 5, 0x21, 0);
		disk_in(&d, cdb16(0x88, 0, 0, UINT32_MAX), UINT32_MAX);
		CHECK_SENSE(&d, 5, 0x21, 0);
	}
	disk_close(&d);
}

static void range_is_judged_at_transfer_length_zero(void)
{
	struct disk d;

	disk_open(&d);
	disk_in(&d, cdb10(0x28, 0, 0, 0), 0);
	CHECK_GOOD(&d);
	disk_in(&d, cdb10(0x28, 0, (uint32_t)d.nblocks, 0), 0);
	CHECK_SENSE(&d, 5, 0x21, 0);
	disk_in(&d, cdb16(0x88, 0, UINT64_MAX, 0), 0);
	CHECK_SENSE(&d, 5, 0x21, 0);
	disk_out(&d, cdb16(0x8a, 0, d.nblocks + 1, 0), NULL, 0);
	CHECK_SENSE(&d, 5, 0x21, 0);
	disk_out(&d, cdb10(0x2a, 0, 1, 0), NULL, 0);
	CHECK_GOOD(&d);
	disk_close(&d);
}

static void information_of_a_range_error_is_in_descriptor_sense_beyond_32_bits(void)
{
	struct disk d;

	disk_open(&d);
	disk_in(&d, cdb16(0x88, 0, 1ull << 40, 1), d.block_size);
	CHECK_SENSE(&d, 5, 0x21, 0);
	CU_ASSERT_EQUAL(d.sense[0], 0x70);
	disk_in(&d, cdb16(0x88, 0, 1u << 30, 1), d.block_size);
	CU_ASSERT_EQUAL(d.sense[0], 0xf0);
	CU_ASSERT_EQUAL(be32_load(d.sense + 3), 1u << 30);
	disk_close(&d);
}

static void protection_bits_are_refused(void)
{
	struct disk d;

	disk_open(&d);
	for (uint8_t protect = 1; protect < 8; protect++) {
		disk_in(&d, cdb10(0x28, (uint8_t)(protect << 5), 0, 1), d.block_size);
		CHECK_FIELD(&d, 1);
	}
	disk_close(&d);
}

static void control_byte_is_refused(void)
{
	struct disk d;
	struct cdb cdb = cdb10(0x28, 0, 0, 1);

	disk_open(&d);
	cdb.b[9] = 0x04; /* NACA */
	disk_in(&d, cdb, d.block_size);
	CHECK_FIELD(&d, 9);
	CU_ASSERT_EQUAL(d.sense[15], 0xca); /* C/D, BPV, bit 2 */
	disk_close(&d);
}

static void transfer_above_the_limit_is_refused(void)
{
	struct disk d;
	uint32_t n;

	disk_open(&d);
	n = (16u << 20) / d.block_size;
	disk_in(&d, cdb16(0x88, 0, 0, n), 16u << 20);
	CHECK_GOOD(&d);
	disk_close(&d);

	disk_prepare(&d);
	d.settings.size = 64u << 20;
	disk_start(&d);
	disk_none(&d, cdb6(0, 0, 0, 0, 0));
	disk_in(&d, cdb16(0x88, 0, 0, n + 1), 17u << 20);
	CHECK_FIELD(&d, 10);
	disk_close(&d);
}

/* ---- EDTL and CDB do not agree (libiscsi's iSCSIResiduals) ---- */

static void read_with_small_edtl_sends_what_fits(void)
{
	struct disk d;

	disk_open(&d);
	disk_fill(&d, 0, 2, 0x5a);
	disk_in(&d, cdb10(0x28, 0, 0, 2), d.block_size);
	CHECK_GOOD(&d);
	CU_ASSERT_EQUAL(d.data_len, d.block_size);
	CU_ASSERT_EQUAL(d.residual_len, 2 * d.block_size);
	disk_in(&d, cdb10(0x28, 0, 0, 1), 200);
	CHECK_GOOD(&d);
	CU_ASSERT_EQUAL(d.data_len, 200);
	CU_ASSERT_EQUAL(d.residual_len, d.block_size);
	CU_ASSERT_EQUAL(d.in[199], 0x5a);
	disk_in(&d, cdb10(0x28, 0, 0, 1), 0);
	CHECK_GOOD(&d);
	CU_ASSERT_EQUAL(d.data_len, 0);
	CU_ASSERT_EQUAL(d.residual_len, d.block_size);
	disk_close(&d);
}

static void read_with_large_edtl_sends_what_there_is(void)
{
	struct disk d;

	disk_open(&d);
	disk_in(&d, cdb10(0x28, 0, 0, 1), 10000);
	CHECK_GOOD(&d);
	CU_ASSERT_EQUAL(d.data_len, d.block_size);
	CU_ASSERT_EQUAL(d.residual_len, d.block_size);
	disk_close(&d);
}

static void write_with_small_edtl_writes_what_came(void)
{
	struct disk d;
	uint8_t data[8192];

	disk_open(&d);
	disk_fill(&d, 0, 2, 'a');
	memset(data, 'b', sizeof(data));
	disk_out(&d, cdb10(0x2a, 0, 0, 2), data, d.block_size);
	CHECK_GOOD(&d);
	CU_ASSERT_EQUAL(d.residual_len, 2 * d.block_size);
	CU_ASSERT_TRUE(disk_is(&d, 0, 1, 'b'));
	CU_ASSERT_TRUE(disk_is(&d, 1, 1, 'a'));
	disk_out(&d, cdb10(0x2a, 0, 0, 1), NULL, 0);
	CHECK_GOOD(&d);
	CU_ASSERT_TRUE(disk_is(&d, 0, 1, 'b'));
	disk_close(&d);
}

static void write_of_part_of_a_block_keeps_the_rest(void)
{
	struct disk d;
	uint8_t data[8192];

	disk_open(&d);
	disk_fill(&d, 0, 2, 'a');
	memset(data, 'b', sizeof(data));
	disk_out(&d, cdb10(0x2a, 0, 0, 2), data, d.block_size + 200);
	CHECK_GOOD(&d);
	CU_ASSERT_EQUAL(d.residual_len, 2 * d.block_size);
	disk_in(&d, cdb10(0x28, 0, 0, 2), 2 * d.block_size);
	CU_ASSERT_EQUAL(d.in[d.block_size + 199], 'b');
	CU_ASSERT_EQUAL(d.in[d.block_size + 200], 'a');
	CU_ASSERT_EQUAL(d.in[2 * d.block_size - 1], 'a');
	disk_close(&d);
}

static void write_with_large_edtl_writes_what_the_cdb_says(void)
{
	struct disk d;
	uint8_t data[8192];

	disk_open(&d);
	disk_fill(&d, 0, 2, 'a');
	memset(data, 'b', sizeof(data));
	disk_out(&d, cdb10(0x2a, 0, 0, 1), data, 2 * d.block_size);
	CHECK_GOOD(&d);
	CU_ASSERT_EQUAL(d.residual_len, d.block_size);
	CU_ASSERT_TRUE(disk_is(&d, 0, 1, 'b'));
	CU_ASSERT_TRUE(disk_is(&d, 1, 1, 'a'));
	disk_close(&d);
}

static void read_announced_as_a_write_moves_nothing(void)
{
	struct disk d;
	uint8_t data[4096] = { 0 };

	disk_open(&d);
	disk_out(&d, cdb10(0x28, 0, 0, 1), data, d.block_size);
	CHECK_GOOD(&d);
	CU_ASSERT_EQUAL(d.data_len, 0);
	disk_close(&d);
}

static void write_announced_as_a_read_writes_nothing(void)
{
	struct disk d;

	disk_open(&d);
	disk_fill(&d, 0, 1, 'a');
	disk_in(&d, cdb10(0x2a, 0, 0, 1), d.block_size);
	CHECK_SENSE(&d, 5, 0x0e, 0x03);
	CU_ASSERT_TRUE(disk_is(&d, 0, 1, 'a'));
	disk_close(&d);
}

static void write_whose_data_do_not_come_fails(void)
{
	struct disk d;
	uint8_t data[4096] = { 1 };

	disk_open(&d);
	disk_fill(&d, 0, 1, 'a');
	disk_any(&d, cdb10(0x2a, 0, 0, 1), SCSI_DATA_OUT, d.block_size, data, 100);
	CHECK_SENSE(&d, 0xb, 0x0c, 0x0d);
	CU_ASSERT_TRUE(disk_is(&d, 0, 1, 'a'));
	disk_close(&d);
}

static void synchronize_cache_flushes_and_judges_the_range(void)
{
	struct disk d;
	struct scsi_lun_stats stats;

	disk_open(&d);
	disk_none(&d, cdb10(0x35, 0x02, 0, 0));
	CHECK_GOOD(&d);
	disk_none(&d, cdb16(0x91, 0, 1, 8));
	CHECK_GOOD(&d);
	disk_none(&d, cdb16(0x91, 0, d.nblocks, 1));
	CHECK_SENSE(&d, 5, 0x21, 0);
	scsi_lun_stats(d.lun, &stats);
	CU_ASSERT_EQUAL(stats.flushes, 3);
	disk_close(&d);
}

static void prefetch_is_a_hint_within_the_medium(void)
{
	struct disk d;
	struct cdb cdb = cdb10(0x34, 0x02, 0, 1);

	disk_open(&d);
	cdb.b[6] = 3; /* a group number is no error */
	disk_none(&d, cdb);
	CHECK_GOOD(&d);
	disk_none(&d, cdb16(0x90, 0, 0, 0));
	CHECK_GOOD(&d);
	disk_none(&d, cdb10(0x34, 0, (uint32_t)d.nblocks, 1));
	CHECK_SENSE(&d, 5, 0x21, 0);
	disk_close(&d);
}

const struct scsi_test tests_rw[] = {
	SCSI_TEST(write10_then_read16_returns_the_data),
	SCSI_TEST(read_of_every_size_returns_the_same),
	SCSI_TEST(read6_of_zero_blocks_reads_256),
	SCSI_TEST(write6_writes),
	SCSI_TEST(read10_beyond_end),
	SCSI_TEST(read16_near_two_to_the_64),
	SCSI_TEST(range_is_judged_at_transfer_length_zero),
	SCSI_TEST(information_of_a_range_error_is_in_descriptor_sense_beyond_32_bits),
	SCSI_TEST(protection_bits_are_refused),
	SCSI_TEST(control_byte_is_refused),
	SCSI_TEST(transfer_above_the_limit_is_refused),
	SCSI_TEST(read_with_small_edtl_sends_what_fits),
	SCSI_TEST(read_with_large_edtl_sends_what_there_is),
	SCSI_TEST(write_with_small_edtl_writes_what_came),
	SCSI_TEST(write_of_part_of_a_block_keeps_the_rest),
	SCSI_TEST(write_with_large_edtl_writes_what_the_cdb_says),
	SCSI_TEST(read_announced_as_a_write_moves_nothing),
	SCSI_TEST(write_announced_as_a_read_writes_nothing),
	SCSI_TEST(write_whose_data_do_not_come_fails),
	SCSI_TEST(synchronize_cache_flushes_and_judges_the_range),
	SCSI_TEST(prefetch_is_a_hint_within_the_medium),
	{ NULL, NULL },
};
