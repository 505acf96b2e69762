/* The rows of the table of commands agree with themselves. */
#include <string.h>

#include "base/list.h"
#include "target/scsi/opcodes.h"
#include "tests/unit/quintain_test.h"

static void rows_are_sorted_and_differ(void)
{
	for (unsigned int i = 1; i < scsi_nopcodes; i++) {
		const struct scsi_opcode *a = &scsi_opcodes[i - 1], *b = &scsi_opcodes[i];

		CU_ASSERT_TRUE(a->opcode < b->opcode ||
			       (a->opcode == b->opcode && a->action < b->action));
		CU_ASSERT_STRING_NOT_EQUAL(a->name, b->name);
	}
}

/* SPC-4 4.2.5.1: the group code says how long a CDB is. */
static void cdb_lengths_follow_the_group_code(void)
{
	static const uint8_t lengths[8] = { 6, 10, 10, 0, 16, 12, 0, 0 };

	for (unsigned int i = 0; i < scsi_nopcodes; i++)
		CU_ASSERT_EQUAL(scsi_opcodes[i].cdb_len, lengths[scsi_opcodes[i].opcode >> 5]);
}

static void masks_begin_with_the_opcode_and_refuse_the_control_byte(void)
{
	for (unsigned int i = 0; i < scsi_nopcodes; i++) {
		const struct scsi_opcode *op = &scsi_opcodes[i];

		CU_ASSERT_EQUAL(op->usage[0], op->opcode);
		CU_ASSERT_EQUAL(op->usage[op->cdb_len - 1], 0);
		for (unsigned int b = op->cdb_len; b < sizeof(op->usage); b++)
			CU_ASSERT_EQUAL(op->usage[b], 0);
		if (op->action != SCSI_NO_ACTION)
			CU_ASSERT_EQUAL(op->usage[1] & 0x1f, 0x1f);
	}
}

static bool masked(const struct scsi_opcode *op, struct cdb_field field)
{
	bool is_6_byte_lba = op->cdb_len == 6 && field.byte == 1;

	for (uint8_t i = 0; i < field.len; i++)
		if (op->usage[field.byte + i] != (is_6_byte_lba && i == 0 ? 0x1f : 0xff))
			return false;
	return field.byte + field.len < op->cdb_len;
}

static void fields_lie_within_the_mask(void)
{
	for (unsigned int i = 0; i < scsi_nopcodes; i++) {
		const struct scsi_opcode *op = &scsi_opcodes[i];

		CU_ASSERT_TRUE(masked(op, op->lba));
		CU_ASSERT_TRUE(masked(op, op->length));
		CU_ASSERT_PTR_NOT_NULL(op->run);
		CU_ASSERT_TRUE(op->lba.len == 0 || (op->flags & OP_MEDIUM));
	}
}

static void find_needs_the_right_service_action(void)
{
	uint8_t cdb[SCSI_CDB_MAX] = { 0x9e, 0x10 };
	bool known;

	CU_ASSERT_STRING_EQUAL(scsi_opcode_find(cdb, &known)->name, "READ CAPACITY(16)");
	cdb[1] = 0x1f;
	CU_ASSERT_PTR_NULL(scsi_opcode_find(cdb, &known));
	CU_ASSERT_TRUE(known);
	cdb[0] = 0xff;
	CU_ASSERT_PTR_NULL(scsi_opcode_find(cdb, &known));
	CU_ASSERT_FALSE(known);
	for (unsigned int i = 0; i < scsi_nopcodes; i++)
		CU_ASSERT_EQUAL(scsi_opcode_first(scsi_opcodes[i].opcode)->opcode,
				scsi_opcodes[i].opcode);
}

static void field_is_read_big_endian(void)
{
	static const uint8_t cdb[16] = { 0, 1, 2, 3 };

	CU_ASSERT_EQUAL(cdb_field_get(cdb, (struct cdb_field){ 1, 3 }), 0x010203);
	CU_ASSERT_EQUAL(cdb_field_get(cdb, (struct cdb_field){ 1, 0 }), 0);
}

static void lun_fields_go_both_ways(void)
{
	static const uint8_t others[][8] = {
		{ 0x00, 0x01, 0x00, 0x01 },
		{ 0x01, 0x00 },
		{ 0xc1, 0x01 },
		{ 0x80, 0x01 },
	};
	uint8_t field[8];

	for (int n = 0; n < SCSI_LUNS_MAX; n++) {
		scsi_lun_field((uint16_t)n, field);
		CU_ASSERT_EQUAL(scsi_lun_number(field), n);
	}
	memset(field, 0, sizeof(field));
	field[0] = 0x40;
	field[1] = 5;
	CU_ASSERT_EQUAL(scsi_lun_number(field), 5);
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		CU_ASSERT_EQUAL(scsi_lun_number(others[i]), -1);
}

static const struct test tests[] = {
	TEST(rows_are_sorted_and_differ),
	TEST(cdb_lengths_follow_the_group_code),
	TEST(masks_begin_with_the_opcode_and_refuse_the_control_byte),
	TEST(fields_lie_within_the_mask),
	TEST(find_needs_the_right_service_action),
	TEST(field_is_read_big_endian),
	TEST(lun_fields_go_both_ways),
};
TEST_MAIN(tests)
