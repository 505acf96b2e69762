/* REPORT LUNS, REPORT SUPPORTED OPERATION CODES and TASK MANAGEMENT FUNCTIONS. */
#include "tests/scsi/disk.h"

#include <string.h>

#include "base/be.h"

static struct cdb report_luns(uint8_t select, uint32_t len)
{
	struct cdb cdb = cdb12(0xa0, 0, 0, len);

	cdb.b[2] = select;
	return cdb;
}

static struct cdb opcodes(uint8_t options, uint8_t opcode, uint16_t action)
{
	struct cdb cdb = cdb12(0xa3, 0x0c, 0, 65535);

	cdb.b[2] = options;
	cdb.b[3] = opcode;
	be16_store(cdb.b + 4, action);
	return cdb;
}

static void report_luns_lists_the_map_on_any_lun(void)
{
	struct disk d;

	disk_open(&d);
	disk_in(&d, report_luns(0, 1024), 1024);
	CHECK_GOOD(&d);
	CU_ASSERT_EQUAL(be32_load(d.in), 8);
	CU_ASSERT_EQUAL(d.data_len, 16);
	CU_ASSERT_EQUAL(d.in[9], DISK_LUN);
	scsi_lun_field(0, d.lun_field);
	disk_in(&d, report_luns(2, 1024), 1024);
	CHECK_GOOD(&d);
	CU_ASSERT_EQUAL(be32_load(d.in), 8);
	disk_in(&d, report_luns(1, 1024), 1024);
	CHECK_GOOD(&d);
	CU_ASSERT_EQUAL(be32_load(d.in), 0);
	disk_in(&d, report_luns(3, 1024), 1024);
	CHECK_FIELD(&d, 2);
	disk_close(&d);
}

static void report_luns_of_more_than_256_uses_flat_addressing(void)
{
	struct disk d;

	disk_open(&d);
	for (uint16_t n = 0; n < 300; n++)
		if (n != DISK_LUN)
			CU_ASSERT_EQUAL(scsi_target_map(d.target, n, d.lun), 0);
	CU_ASSERT_EQUAL(scsi_target_map(d.target, 16383, d.lun), 0);
	disk_in(&d, report_luns(0, 16), 16);
	CHECK_GOOD(&d);
	CU_ASSERT_EQUAL(be32_load(d.in), 8 * 301);
	disk_in(&d, report_luns(0, 65536), 65536);
	CU_ASSERT_EQUAL(d.data_len, 8 + 8 * 301);
	CU_ASSERT_EQUAL(be16_load(d.in + 8 + 8 * 255), 255);
	CU_ASSERT_EQUAL(be16_load(d.in + 8 + 8 * 256), 0x4100);
	CU_ASSERT_EQUAL(be16_load(d.in + 8 + 8 * 300), 0x7fff);
	scsi_lun_field(256, d.lun_field);
	disk_in(&d, cdb6(0x12, 0, 0, 0, 96), 96);
	CU_ASSERT_EQUAL(d.in[0], 0);
	for (uint16_t n = 0; n < 300; n++)
		if (n != DISK_LUN)
			CU_ASSERT_EQUAL(scsi_target_unmap(d.target, n), 0);
	CU_ASSERT_EQUAL(scsi_target_unmap(d.target, 16383), 0);
	disk_close(&d);
}

static void every_opcode_reported_answers_and_others_do_not(void)
{
	struct disk d;
	bool reported[256] = { false };
	uint32_t end;
	uint8_t list[4096];

	disk_open(&d);
	disk_in(&d, opcodes(0, 0, 0), 65535);
	CHECK_GOOD(&d);
	end = 4 + be32_load(d.in);
	CU_ASSERT_EQUAL(end, d.data_len);
	memcpy(list, d.in, end);
	for (uint32_t at = 4; at < end; at += 8) {
		reported[list[at]] = true;
		disk_in(&d, opcodes(list[at + 5] & 1 ? 2 : 1, list[at], be16_load(list + at + 2)),
			65535);
		CHECK_GOOD(&d);
		CU_ASSERT_EQUAL(d.in[1] & 7, 3);
		CU_ASSERT_EQUAL(be16_load(d.in + 2), be16_load(list + at + 6));
		CU_ASSERT_EQUAL(d.in[4], list[at]);
	}
	for (unsigned int op = 0; op < 256; op++) {
		if (reported[op])
			continue;
		disk_none(&d, cdb6((uint8_t)op, 0, 0, 0, 0));
		CHECK_SENSE(&d, 5, 0x20, 0);
	}
	/* What is offered only as a whole, later. */
	CU_ASSERT_FALSE(reported[0x5e] || reported[0x5f] || reported[0x83] || reported[0x84] ||
			reported[0x89]);
	disk_close(&d);
}

static void one_opcode_with_the_wrong_option_is_refused(void)
{
	struct disk d;

	disk_open(&d);
	disk_in(&d, opcodes(1, 0x9e, 0), 255);
	CHECK_FIELD(&d, 2);
	disk_in(&d, opcodes(2, 0x28, 0), 255);
	CHECK_FIELD(&d, 2);
	disk_in(&d, opcodes(4, 0x28, 0), 255);
	CHECK_FIELD(&d, 2);
	disk_in(&d, opcodes(3, 0x28, 0), 255);
	CHECK_GOOD(&d);
	CU_ASSERT_EQUAL(d.in[1], 3);
	disk_in(&d, opcodes(2, 0x9e, 0xffff), 255);
	CHECK_GOOD(&d);
	CU_ASSERT_EQUAL(d.in[1], 1);
	CU_ASSERT_EQUAL(d.data_len, 4);
	disk_in(&d, opcodes(1, 0x89, 0), 255);
	CU_ASSERT_EQUAL(d.in[1], 1);
	disk_close(&d);
}

static void timeouts_are_reported_on_request(void)
{
	struct disk d;

	disk_open(&d);
	disk_in(&d, opcodes(0x80, 0, 0), 65535);
	CHECK_GOOD(&d);
	for (uint32_t at = 4; at < d.data_len; at += 20) {
		CU_ASSERT_EQUAL(d.in[at + 5] & 2, 2);
		CU_ASSERT_EQUAL(be16_load(d.in + at + 8), 0x0a);
		CU_ASSERT_TRUE(be32_load(d.in + at + 16) > 0);
	}
	disk_in(&d, opcodes(0x81, 0x28, 0), 65535);
	CU_ASSERT_EQUAL(d.in[1], 0x83);
	CU_ASSERT_EQUAL(d.data_len, 4 + 10 + 12);
	disk_close(&d);
}

static void usage_data_show_service_action_and_mask(void)
{
	struct disk d;

	disk_open(&d);
	disk_in(&d, opcodes(2, 0x9e, 0x12), 255);
	CU_ASSERT_EQUAL(d.in[5], 0x12);
	disk_in(&d, opcodes(1, 0x28, 0), 255);
	CU_ASSERT_EQUAL(d.in[5], 0x18);
	disk_in(&d, opcodes(1, 0x93, 0), 255);
	CU_ASSERT_EQUAL(d.in[5] & 0x08, d.backing->limits.write_zeroes_unmaps ? 8 : 0);
	disk_close(&d);
}

static void task_management_functions_are_reported(void)
{
	struct disk d;

	disk_open(&d);
	disk_in(&d, cdb12(0xa3, 0x0d, 0, 255), 255);
	CHECK_GOOD(&d);
	CU_ASSERT_EQUAL(d.data_len, 4);
	CU_ASSERT_EQUAL(d.in[0], 0xda);
	disk_in(&d, cdb12(0xa3, 0x0d, 0x80000000, 255), 255);
	CU_ASSERT_EQUAL(d.data_len, 16);
	CU_ASSERT_EQUAL(d.in[3], 12);
	disk_close(&d);
}

const struct scsi_test tests_report[] = {
	SCSI_TEST(report_luns_lists_the_map_on_any_lun),
	SCSI_TEST(report_luns_of_more_than_256_uses_flat_addressing),
	SCSI_TEST(every_opcode_reported_answers_and_others_do_not),
	SCSI_TEST(one_opcode_with_the_wrong_option_is_refused),
	SCSI_TEST(timeouts_are_reported_on_request),
	SCSI_TEST(usage_data_show_service_action_and_mask),
	SCSI_TEST(task_management_functions_are_reported),
	{ NULL, NULL },
};
