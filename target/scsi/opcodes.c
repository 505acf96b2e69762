/*
 * The masks are more generous than what we act on in two places: GROUP NUMBER
 * is accepted and ignored (a hint for statistics), as initiators set it without
 * looking at VPD 86 GROUP_SUP; SYNC_NV, obsolete since SBC-4, asks for less than
 * the flush that is done.
 */
#include "target/scsi/opcodes.h"

#include "target/scsi/internal.h"

#define ALL1  0xff
#define ALL2  0xff, 0xff
#define ALL3  0xff, 0xff, 0xff
#define ALL4  0xff, 0xff, 0xff, 0xff
#define ALL8  ALL4, ALL4
#define NIL2  0, 0
#define NIL4  0, 0, 0, 0
#define NIL8  NIL4, NIL4
#define GROUP 0x1f

/* Where LBA and length are in the CDBs of each size (SPC-4 4.2.5). */
#define BLOCKS6		   .cdb_len = 6, .lba = { 1, 3 }, .length = { 4, 1 }
#define BLOCKS10	   .cdb_len = 10, .lba = { 2, 4 }, .length = { 7, 2 }
#define BLOCKS12	   .cdb_len = 12, .lba = { 2, 4 }, .length = { 6, 4 }
#define BLOCKS16	   .cdb_len = 16, .lba = { 2, 8 }, .length = { 10, 4 }
#define USAGE10(op, byte1) .usage = { op, byte1, ALL4, GROUP, ALL2, 0 }
#define USAGE12(op, byte1) .usage = { op, byte1, ALL4, ALL4, GROUP, 0 }
#define USAGE16(op, byte1) .usage = { op, byte1, ALL8, ALL4, GROUP, 0 }

#define READS                                                                             \
	.dir = SCSI_DATA_IN, .reservation = RESERVATION_READ, .length_is = LENGTH_BLOCKS, \
	.group = GROUP_READ, .flags = OP_MEDIUM, .timeout_s = 30, .judge = rw_judge,      \
	.run = read_run
#define WRITES                                                                              \
	.dir = SCSI_DATA_OUT, .reservation = RESERVATION_WRITE, .length_is = LENGTH_BLOCKS, \
	.group = GROUP_WRITE, .flags = OP_MEDIUM | OP_WRITES, .timeout_s = 30
#define VERIFIES                                                                         \
	.dir = SCSI_NO_DATA, .reservation = RESERVATION_READ, .length_is = LENGTH_RANGE, \
	.flags = OP_MEDIUM, .timeout_s = 60, .judge = verify_judge, .run = verify_run
#define WRITE_VERIFIES WRITES, .judge = write_verify_judge, .run = write_verify_run
#define WRITE_SAMES                                                                        \
	.dir = SCSI_DATA_OUT, .reservation = RESERVATION_WRITE, .length_is = LENGTH_RANGE, \
	.flags = OP_MEDIUM | OP_WRITES, .timeout_s = 120, .judge = write_same_judge,       \
	.run = write_same_run
#define SYNCS                                                                             \
	.dir = SCSI_NO_DATA, .reservation = RESERVATION_WRITE, .length_is = LENGTH_RANGE, \
	.group = GROUP_FLUSH, .flags = OP_MEDIUM, .timeout_s = 120, .run = synchronize_cache_run
#define PREFETCHES                                                                       \
	.dir = SCSI_NO_DATA, .reservation = RESERVATION_READ, .length_is = LENGTH_RANGE, \
	.flags = OP_MEDIUM, .timeout_s = 30, .run = prefetch_run
#define REPLY	   .dir = SCSI_DATA_IN, .length_is = LENGTH_BYTES
#define PARAMETERS .dir = SCSI_DATA_OUT, .length_is = LENGTH_BYTES

const struct scsi_opcode scsi_opcodes[] = {
	{ 0x00, SCSI_NO_ACTION, .cdb_len = 6, .name = "TEST UNIT READY",
	  .reservation = RESERVATION_READ, .flags = OP_MEDIUM, .usage = { 0x00, NIL4, 0 },
	  .run = test_unit_ready_run },
	{ 0x03, SCSI_NO_ACTION, .cdb_len = 6, .name = "REQUEST SENSE", REPLY, .length = { 4, 1 },
	  .reply_max = 252, .flags = OP_ANY_LUN | OP_NO_UA, .usage = { 0x03, 0x01, NIL2, ALL1, 0 },
	  .run = request_sense_run },
	{ 0x08, SCSI_NO_ACTION, .name = "READ(6)", BLOCKS6, READS,
	  .usage = { 0x08, 0x1f, ALL3, 0 } },
	{ 0x0a, SCSI_NO_ACTION, .name = "WRITE(6)", BLOCKS6, WRITES, .judge = rw_judge,
	  .run = write_run, .usage = { 0x0a, 0x1f, ALL3, 0 } },
	{ 0x12, SCSI_NO_ACTION, .cdb_len = 6, .name = "INQUIRY", REPLY, .length = { 3, 2 },
	  .flags = OP_ANY_LUN | OP_NO_UA, .usage = { 0x12, 0x01, ALL3, 0 }, .judge = inquiry_judge,
	  .run = inquiry_run },
	{ 0x15, SCSI_NO_ACTION, .cdb_len = 6, .name = "MODE SELECT(6)", PARAMETERS,
	  .length = { 4, 1 }, .reservation = RESERVATION_WRITE, .flags = OP_STORE, .timeout_s = 120,
	  .usage = { 0x15, 0x11, NIL2, ALL1, 0 }, .judge = mode_select_judge,
	  .run = mode_select_run },
	{ 0x16, SCSI_NO_ACTION, .cdb_len = 6, .name = "RESERVE(6)",
	  .reservation = RESERVATION_WRITE, .usage = { 0x16, NIL4, 0 }, .run = reserve_run },
	{ 0x17, SCSI_NO_ACTION, .cdb_len = 6, .name = "RELEASE(6)", .usage = { 0x17, NIL4, 0 },
	  .run = release_run },
	{ 0x1a, SCSI_NO_ACTION, .cdb_len = 6, .name = "MODE SENSE(6)", REPLY, .length = { 4, 1 },
	  .reservation = RESERVATION_READ, .usage = { 0x1a, 0x08, ALL3, 0 },
	  .judge = mode_sense_judge, .run = mode_sense_run },
	{ 0x1b, SCSI_NO_ACTION, .cdb_len = 6, .name = "START STOP UNIT",
	  .reservation = RESERVATION_BY_CDB, .flags = OP_STORE, .timeout_s = 120,
	  .usage = { 0x1b, 0x01, 0, 0x0f, 0xf7, 0 }, .judge = start_stop_judge,
	  .run = start_stop_run },
	{ 0x1c, SCSI_NO_ACTION, .cdb_len = 6, .name = "RECEIVE DIAGNOSTIC RESULTS", REPLY,
	  .length = { 3, 2 }, .reservation = RESERVATION_READ,
	  .usage = { 0x1c, 0x01, ALL1, ALL2, 0 }, .judge = diagnostic_judge,
	  .run = receive_diagnostic_run },
	{ 0x1d, SCSI_NO_ACTION, .cdb_len = 6, .name = "SEND DIAGNOSTIC",
	  .reservation = RESERVATION_WRITE, .usage = { 0x1d, 0x17, NIL4 },
	  .judge = diagnostic_judge, .run = diagnostic_run },
	{ 0x1e, SCSI_NO_ACTION, .cdb_len = 6, .name = "PREVENT ALLOW MEDIUM REMOVAL",
	  .reservation = RESERVATION_BY_CDB, .usage = { 0x1e, 0, NIL2, 0x01, 0 },
	  .run = prevent_allow_run },
	{ 0x25, SCSI_NO_ACTION, .cdb_len = 10, .name = "READ CAPACITY(10)", .dir = SCSI_DATA_IN,
	  .flags = OP_MEDIUM, .usage = { 0x25, 0, ALL4, NIL2, 0x01, 0 },
	  .judge = read_capacity10_judge, .run = read_capacity10_run },
	{ 0x28, SCSI_NO_ACTION, .name = "READ(10)", BLOCKS10, READS, USAGE10(0x28, 0x18) },
	{ 0x2a, SCSI_NO_ACTION, .name = "WRITE(10)", BLOCKS10, WRITES, .judge = rw_judge,
	  .run = write_run, USAGE10(0x2a, 0x18) },
	{ 0x2e, SCSI_NO_ACTION, .name = "WRITE AND VERIFY(10)", BLOCKS10, WRITE_VERIFIES,
	  USAGE10(0x2e, 0x16) },
	{ 0x2f, SCSI_NO_ACTION, .name = "VERIFY(10)", BLOCKS10, VERIFIES, USAGE10(0x2f, 0x16) },
	{ 0x34, SCSI_NO_ACTION, .name = "PRE-FETCH(10)", BLOCKS10, PREFETCHES,
	  USAGE10(0x34, 0x02) },
	{ 0x35, SCSI_NO_ACTION, .name = "SYNCHRONIZE CACHE(10)", BLOCKS10, SYNCS,
	  USAGE10(0x35, 0x06) },
	{ 0x41, SCSI_NO_ACTION, .name = "WRITE SAME(10)", BLOCKS10, WRITE_SAMES,
	  USAGE10(0x41, 0x08) },
	{ 0x42, SCSI_NO_ACTION, .cdb_len = 10, .name = "UNMAP", PARAMETERS, .length = { 7, 2 },
	  .reservation = RESERVATION_WRITE, .group = GROUP_UNMAP,
	  .flags = OP_MEDIUM | OP_WRITES | OP_UNMAP, .timeout_s = 120,
	  .usage = { 0x42, 0, NIL4, GROUP, ALL2, 0 }, .judge = unmap_judge, .run = unmap_run },
	{ 0x4d, SCSI_NO_ACTION, .cdb_len = 10, .name = "LOG SENSE", REPLY, .length = { 7, 2 },
	  .usage = { 0x4d, 0, ALL2, 0, ALL2, ALL2, 0 }, .judge = log_sense_judge,
	  .run = log_sense_run },
	{ 0x55, SCSI_NO_ACTION, .cdb_len = 10, .name = "MODE SELECT(10)", PARAMETERS,
	  .length = { 7, 2 }, .reservation = RESERVATION_WRITE, .flags = OP_STORE, .timeout_s = 120,
	  .usage = { 0x55, 0x11, NIL4, 0, ALL2, 0 }, .judge = mode_select_judge,
	  .run = mode_select_run },
	{ 0x56, SCSI_NO_ACTION, .cdb_len = 10, .name = "RESERVE(10)",
	  .reservation = RESERVATION_WRITE, .usage = { 0x56, NIL8, 0 }, .run = reserve_run },
	{ 0x57, SCSI_NO_ACTION, .cdb_len = 10, .name = "RELEASE(10)", .usage = { 0x57, NIL8, 0 },
	  .run = release_run },
	{ 0x5a, SCSI_NO_ACTION, .cdb_len = 10, .name = "MODE SENSE(10)", REPLY, .length = { 7, 2 },
	  .reservation = RESERVATION_READ, .usage = { 0x5a, 0x18, ALL2, 0, NIL2, ALL2, 0 },
	  .judge = mode_sense_judge, .run = mode_sense_run },
	{ 0x88, SCSI_NO_ACTION, .name = "READ(16)", BLOCKS16, READS, USAGE16(0x88, 0x18) },
	{ 0x8a, SCSI_NO_ACTION, .name = "WRITE(16)", BLOCKS16, WRITES, .judge = rw_judge,
	  .run = write_run, USAGE16(0x8a, 0x18) },
	{ 0x8b, SCSI_NO_ACTION, .name = "ORWRITE(16)", BLOCKS16, WRITES, .judge = rw_judge,
	  .run = orwrite_run, USAGE16(0x8b, 0x18) },
	{ 0x8e, SCSI_NO_ACTION, .name = "WRITE AND VERIFY(16)", BLOCKS16, WRITE_VERIFIES,
	  USAGE16(0x8e, 0x16) },
	{ 0x8f, SCSI_NO_ACTION, .name = "VERIFY(16)", BLOCKS16, VERIFIES, USAGE16(0x8f, 0x16) },
	{ 0x90, SCSI_NO_ACTION, .name = "PRE-FETCH(16)", BLOCKS16, PREFETCHES,
	  USAGE16(0x90, 0x02) },
	{ 0x91, SCSI_NO_ACTION, .name = "SYNCHRONIZE CACHE(16)", BLOCKS16, SYNCS,
	  USAGE16(0x91, 0x06) },
	{ 0x93, SCSI_NO_ACTION, .name = "WRITE SAME(16)", BLOCKS16, WRITE_SAMES,
	  USAGE16(0x93, 0x09) },
	{ 0x9e, 0x10, .cdb_len = 16, .name = "READ CAPACITY(16)", REPLY, .length = { 10, 4 },
	  .flags = OP_MEDIUM, .usage = { 0x9e, 0x1f, NIL8, ALL4, 0, 0 },
	  .run = read_capacity16_run },
	{ 0x9e, 0x12, .cdb_len = 16, .name = "GET LBA STATUS(16)", REPLY, .lba = { 2, 8 },
	  .length = { 10, 4 }, .reservation = RESERVATION_READ, .flags = OP_MEDIUM, .timeout_s = 30,
	  .usage = { 0x9e, 0x1f, ALL8, ALL4, 0, 0 }, .run = lba_status_run },
	{ 0xa0, SCSI_NO_ACTION, .cdb_len = 12, .name = "REPORT LUNS", REPLY, .length = { 6, 4 },
	  .reply_max = 8 + 8 * SCSI_LUNS_MAX, .flags = OP_ANY_LUN | OP_NO_UA,
	  .usage = { 0xa0, 0, ALL1, 0, NIL2, ALL4, 0, 0 }, .judge = report_luns_judge,
	  .run = report_luns_run },
	{ 0xa3, 0x0c, .cdb_len = 12, .name = "REPORT SUPPORTED OPERATION CODES", REPLY,
	  .length = { 6, 4 }, .usage = { 0xa3, 0x1f, 0x87, ALL3, ALL4, 0, 0 },
	  .judge = report_opcodes_judge, .run = report_opcodes_run },
	{ 0xa3, 0x0d, .cdb_len = 12, .name = "REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS", REPLY,
	  .length = { 6, 4 }, .usage = { 0xa3, 0x1f, 0x80, 0, NIL2, ALL4, 0, 0 },
	  .run = report_tmf_run },
	{ 0xa8, SCSI_NO_ACTION, .name = "READ(12)", BLOCKS12, READS, USAGE12(0xa8, 0x18) },
	{ 0xaa, SCSI_NO_ACTION, .name = "WRITE(12)", BLOCKS12, WRITES, .judge = rw_judge,
	  .run = write_run, USAGE12(0xaa, 0x18) },
	{ 0xae, SCSI_NO_ACTION, .name = "WRITE AND VERIFY(12)", BLOCKS12, WRITE_VERIFIES,
	  USAGE12(0xae, 0x16) },
	{ 0xaf, SCSI_NO_ACTION, .name = "VERIFY(12)", BLOCKS12, VERIFIES, USAGE12(0xaf, 0x16) },
};

const unsigned int scsi_nopcodes = ARRAY_LEN(scsi_opcodes);

_Static_assert(ARRAY_LEN(scsi_opcodes) <= SCSI_OPCODES_MAX, "raise SCSI_OPCODES_MAX");

const struct scsi_opcode *scsi_opcode_first(uint8_t opcode)
{
	unsigned int low = 0, high = scsi_nopcodes;

	while (low < high) {
		unsigned int mid = (low + high) / 2;

		if (scsi_opcodes[mid].opcode < opcode)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == scsi_nopcodes || scsi_opcodes[low].opcode != opcode)
		return NULL;
	return &scsi_opcodes[low];
}

const struct scsi_opcode *scsi_opcode_find(const uint8_t *cdb, bool *known_opcode)
{
	const struct scsi_opcode *op = scsi_opcode_first(cdb[0]);
	const struct scsi_opcode *end = scsi_opcodes + scsi_nopcodes;

	*known_opcode = op != NULL;
	if (!op || op->action == SCSI_NO_ACTION)
		return op;
	for (; op < end && op->opcode == cdb[0]; op++)
		if (op->action == (cdb[1] & 0x1f))
			return op;
	return NULL;
}

bool scsi_opcode_offered(const struct scsi_opcode *op, const struct scsi_lun *lun)
{
	if (!(op->flags & OP_UNMAP))
		return true;
	return atomic_load_explicit(&lun->state, memory_order_relaxed) & LUN_UNMAPS;
}

uint8_t scsi_opcode_withheld(const struct scsi_opcode *op, const struct scsi_lun *lun)
{
	uint32_t state = atomic_load_explicit(&lun->state, memory_order_relaxed);

	if (op->run == write_same_run && !(state & LUN_ZEROES_UNMAP))
		return 0x08;
	return 0;
}

uint64_t cdb_field_get(const uint8_t *cdb, struct cdb_field field)
{
	uint64_t value = 0;

	for (uint8_t i = 0; i < field.len; i++)
		value = value << 8 | cdb[field.byte + i];
	return value;
}
