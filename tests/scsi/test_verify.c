/* VERIFY, WRITE AND VERIFY, ORWRITE. */
#include "tests/scsi/disk.h"

#include <stdlib.h>
#include <string.h>

#include "base/be.h"

#define N 200 /* blocks: more than one step of the scratch */

static void verify_without_data_reads_the_medium(void)
{
	struct disk d;

	disk_open(&d);
	disk_none(&d, cdb10(0x2f, 0, 0, N));
	CHECK_GOOD(&d);
	disk_none(&d, cdb12(0xaf, 0x10, 0, (uint32_t)d.nblocks));
	CHECK_GOOD(&d);
	disk_none(&d, cdb16(0x8f, 0, 0, 0));
	CHECK_GOOD(&d);
	disk_close(&d);
}

static void verify_beyond_end(void)
{
	struct disk d;

	disk_open(&d);
	disk_none(&d, cdb10(0x2f, 0, (uint32_t)d.nblocks - 1, 2));
	CHECK_SENSE(&d, 5, 0x21, 0);
	disk_none(&d, cdb16(0x8f, 0, d.nblocks, 0));
	CHECK_SENSE(&d, 5, 0x21, 0);
	disk_close(&d);
}

static void verify_compares_all_blocks(void)
{
	struct disk d;
	uint32_t len;
	uint8_t *data = malloc(N * 4096);

	disk_open(&d);
	len = N * d.block_size;
	pattern(data, len, 3);
	disk_out(&d, cdb16(0x8a, 0, 10, N), data, len);
	disk_out(&d, cdb16(0x8f, 0x02, 10, N), data, len);
	CHECK_GOOD(&d);
	data[len - 5] ^= 1;
	disk_out(&d, cdb10(0x2f, 0x02, 10, N), data, len);
	CHECK_SENSE(&d, 0xe, 0x1d, 0);
	CU_ASSERT_EQUAL(d.sense[0], 0xf0);
	CU_ASSERT_EQUAL(be32_load(d.sense + 3), len - 5);
	disk_close(&d);
	free(data);
}

static void verify_compares_each_block_with_one(void)
{
	struct disk d;
	uint8_t data[4096];

	disk_open(&d);
	disk_fill(&d, 0, N, 0x11);
	memset(data, 0x11, sizeof(data));
	disk_out(&d, cdb10(0x2f, 0x06, 0, N), data, d.block_size);
	CHECK_GOOD(&d);
	disk_fill(&d, N - 1, 1, 0x12);
	disk_out(&d, cdb10(0x2f, 0x06, 0, N), data, d.block_size);
	CHECK_SENSE(&d, 0xe, 0x1d, 0);
	CU_ASSERT_EQUAL(be32_load(d.sense + 3), (N - 1) * d.block_size);
	disk_close(&d);
}

static void verify_refuses_reserved_bytchk(void)
{
	struct disk d;

	disk_open(&d);
	disk_none(&d, cdb10(0x2f, 0x04, 0, 1));
	CHECK_FIELD(&d, 1);
	disk_close(&d);
}

static void verify_with_too_little_data_compares_nothing(void)
{
	struct disk d;
	uint8_t data[8192] = { 0 };

	disk_open(&d);
	disk_out(&d, cdb10(0x2f, 0x02, 0, 2), data, d.block_size);
	CHECK_SENSE(&d, 5, 0x0e, 0x03);
	disk_close(&d);
}

static void write_and_verify_writes(void)
{
	struct disk d;
	uint32_t len;
	uint8_t *data = malloc(N * 4096);

	disk_open(&d);
	len = N * d.block_size;
	pattern(data, len, 77);
	disk_out(&d, cdb10(0x2e, 0x02, 3, N), data, len);
	CHECK_GOOD(&d);
	disk_in(&d, cdb10(0x28, 0, 3, N), len);
	CU_ASSERT_EQUAL(memcmp(d.in, data, len), 0);
	disk_out(&d, cdb12(0xae, 0x10, 0, 1), data, d.block_size);
	CHECK_GOOD(&d);
	disk_out(&d, cdb16(0x8e, 0, d.nblocks - 1, 2), data, 2 * d.block_size);
	CHECK_SENSE(&d, 5, 0x21, 0);
	disk_out(&d, cdb16(0x8e, 0x04, 0, 1), data, d.block_size);
	CHECK_FIELD(&d, 1);
	disk_close(&d);
	free(data);
}

static void orwrite_sets_bits(void)
{
	struct disk d;
	uint8_t *data = malloc(N * 4096);

	disk_open(&d);
	disk_fill(&d, 1, N, 0xa5);
	memset(data, 0x5a, N * d.block_size);
	disk_out(&d, cdb16(0x8b, 0x08, 1, N - 1), data, (N - 1) * d.block_size);
	CHECK_GOOD(&d);
	CU_ASSERT_TRUE(disk_is(&d, 1, N - 1, 0xff));
	CU_ASSERT_TRUE(disk_is(&d, N, 1, 0xa5));
	disk_out(&d, cdb16(0x8b, 0, 0, 2), data, d.block_size);
	CHECK_SENSE(&d, 5, 0x0e, 0x03);
	disk_close(&d);
	free(data);
}

/* All of them share the reactor's scratch. */
static void verifies_at_once_do_not_mix(void)
{
	struct disk d;
	struct disk_call *calls[8];
	uint8_t *data[8];

	disk_open(&d);
	for (uint32_t i = 0; i < 8; i++) {
		uint32_t len = N * d.block_size;

		data[i] = malloc(len);
		memset(data[i], (int)i + 1, len);
		disk_fill(&d, i * N, N, (uint8_t)(i + 1));
	}
	for (uint32_t i = 0; i < 8; i++)
		calls[i] = disk_send(&d, d.nexus[i & 1], d.reactor, cdb16(0x8f, 0x02, i * N, N),
				     SCSI_DATA_OUT, data[i], N * d.block_size);
	for (uint32_t i = 0; i < 8; i++) {
		disk_wait(&d, calls[i]);
		CHECK_GOOD(&d);
		free(data[i]);
	}
	disk_close(&d);
}

const struct scsi_test tests_verify[] = {
	SCSI_TEST(verify_without_data_reads_the_medium),
	SCSI_TEST(verify_beyond_end),
	SCSI_TEST(verify_compares_all_blocks),
	SCSI_TEST(verify_compares_each_block_with_one),
	SCSI_TEST(verify_refuses_reserved_bytchk),
	SCSI_TEST(verify_with_too_little_data_compares_nothing),
	SCSI_TEST(write_and_verify_writes),
	SCSI_TEST(orwrite_sets_bits),
	SCSI_TEST(verifies_at_once_do_not_mix),
	{ NULL, NULL },
};
