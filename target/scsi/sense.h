/*
 * Sense data: the list of what this target can say, and its two formats.
 *
 * To add one: a row in SENSE_LIST (name, sense key, ASC, ASCQ, T10's text).
 * A store's errno becomes sense in sense_from_errno() and nowhere else.
 *
 * Pure functions; any thread.
 */
#ifndef SCSI_SENSE_H
#define SCSI_SENSE_H

#include <stdbool.h>
#include <stdint.h>

/* SPC-4 table 48 */
enum sense_key {
	KEY_NO_SENSE = 0x0,
	KEY_NOT_READY = 0x2,
	KEY_MEDIUM_ERROR = 0x3,
	KEY_HARDWARE_ERROR = 0x4,
	KEY_ILLEGAL_REQUEST = 0x5,
	KEY_UNIT_ATTENTION = 0x6,
	KEY_DATA_PROTECT = 0x7,
	KEY_ABORTED_COMMAND = 0xb,
	KEY_MISCOMPARE = 0xe,
};

/* X(name, key, ASC, ASCQ, text), in the order of key, ASC, ASCQ. */
#define SENSE_LIST(X)                                                                              \
	X(NO_SENSE, NO_SENSE, 0x00, 0x00, "NO ADDITIONAL SENSE INFORMATION")                       \
	X(STORE_NOT_READY, NOT_READY, 0x04, 0x00, "LOGICAL UNIT NOT READY, CAUSE NOT REPORTABLE")  \
	X(STOPPED, NOT_READY, 0x04, 0x02, "LOGICAL UNIT NOT READY, INITIALIZING COMMAND REQUIRED") \
	X(NO_MEDIUM, NOT_READY, 0x3a, 0x00, "MEDIUM NOT PRESENT")                                  \
	X(WRITE_ERROR, MEDIUM_ERROR, 0x0c, 0x00, "WRITE ERROR")                                    \
	X(READ_ERROR, MEDIUM_ERROR, 0x11, 0x00, "UNRECOVERED READ ERROR")                          \
	X(TARGET_FAILURE, HARDWARE_ERROR, 0x44, 0x00, "INTERNAL TARGET FAILURE")                   \
	X(PARAMETER_LIST_LENGTH, ILLEGAL_REQUEST, 0x1a, 0x00, "PARAMETER LIST LENGTH ERROR")       \
	X(INVALID_OPCODE, ILLEGAL_REQUEST, 0x20, 0x00, "INVALID COMMAND OPERATION CODE")           \
	X(LBA_RANGE, ILLEGAL_REQUEST, 0x21, 0x00, "LOGICAL BLOCK ADDRESS OUT OF RANGE")            \
	X(INVALID_FIELD_CDB, ILLEGAL_REQUEST, 0x24, 0x00, "INVALID FIELD IN CDB")                  \
	X(NO_LUN, ILLEGAL_REQUEST, 0x25, 0x00, "LOGICAL UNIT NOT SUPPORTED")                       \
	X(INVALID_FIELD_PARAMETER, ILLEGAL_REQUEST, 0x26, 0x00, "INVALID FIELD IN PARAMETER LIST") \
	X(INVALID_INFORMATION_UNIT, ILLEGAL_REQUEST, 0x0e, 0x03,                                   \
	  "INVALID FIELD IN COMMAND INFORMATION UNIT")                                             \
	X(SAVING_NOT_SUPPORTED, ILLEGAL_REQUEST, 0x39, 0x00, "SAVING PARAMETERS NOT SUPPORTED")    \
	X(REMOVAL_PREVENTED, ILLEGAL_REQUEST, 0x53, 0x02, "MEDIUM REMOVAL PREVENTED")              \
	X(UA_MEDIUM_CHANGED, UNIT_ATTENTION, 0x28, 0x00,                                           \
	  "NOT READY TO READY CHANGE, MEDIUM MAY HAVE CHANGED")                                    \
	X(UA_POWER_ON, UNIT_ATTENTION, 0x29, 0x00,                                                 \
	  "POWER ON, RESET, OR BUS DEVICE RESET OCCURRED")                                         \
	X(UA_RESET, UNIT_ATTENTION, 0x29, 0x03, "BUS DEVICE RESET FUNCTION OCCURRED")              \
	X(UA_MODE_CHANGED, UNIT_ATTENTION, 0x2a, 0x01, "MODE PARAMETERS CHANGED")                  \
	X(UA_CAPACITY_CHANGED, UNIT_ATTENTION, 0x2a, 0x09, "CAPACITY DATA HAS CHANGED")            \
	X(UA_COMMANDS_CLEARED, UNIT_ATTENTION, 0x2f, 0x00,                                         \
	  "COMMANDS CLEARED BY ANOTHER INITIATOR")                                                 \
	X(UA_THRESHOLD, UNIT_ATTENTION, 0x38, 0x07, "THIN PROVISIONING SOFT THRESHOLD REACHED")    \
	X(UA_INQUIRY_CHANGED, UNIT_ATTENTION, 0x3f, 0x03, "INQUIRY DATA HAS CHANGED")              \
	X(UA_LUNS_CHANGED, UNIT_ATTENTION, 0x3f, 0x0e, "REPORTED LUNS DATA HAS CHANGED")           \
	X(WRITE_PROTECTED, DATA_PROTECT, 0x27, 0x00, "WRITE PROTECTED")                            \
	X(SOFTWARE_WRITE_PROTECTED, DATA_PROTECT, 0x27, 0x02,                                      \
	  "LOGICAL UNIT SOFTWARE WRITE PROTECTED")                                                 \
	X(SPACE_ALLOCATION_FAILED, DATA_PROTECT, 0x27, 0x07,                                       \
	  "SPACE ALLOCATION FAILED WRITE PROTECT")                                                 \
	X(NOT_ENOUGH_DATA, ABORTED_COMMAND, 0x0c, 0x0d,                                            \
	  "WRITE ERROR - NOT ENOUGH UNSOLICITED DATA")                                             \
	X(DATA_PHASE, ABORTED_COMMAND, 0x4b, 0x00, "DATA PHASE ERROR")                             \
	X(DATA_OFFSET, ABORTED_COMMAND, 0x4b, 0x05, "DATA OFFSET ERROR")                           \
	X(MISCOMPARE, MISCOMPARE, 0x1d, 0x00, "MISCOMPARE DURING VERIFY OPERATION")

enum sense {
#define X(name, key, asc, ascq, text) SENSE_##name,
	SENSE_LIST(X)
#undef X
		SENSE_COUNT,
};

struct sense_row {
	uint8_t key, asc, ascq;
	const char *text;
};

const struct sense_row *sense_row(enum sense sense);

/* What goes beside key, ASC and ASCQ. */
struct sense_detail {
	bool has_info; /* INFORMATION is valid */
	uint64_t info;
	bool has_field;	   /* sense-key specific: field pointer, SPC-4 4.5.2.4.2 */
	bool field_in_cdb; /* else in the parameter list */
	uint16_t field_byte;
	int8_t field_bit; /* the most significant bit of the field; -1: the whole byte */
};

#define SENSE_FIXED_LEN 18

/*
 * Writes sense data in fixed (SPC-4 4.5.3) or descriptor format (4.5.2) and
 * returns its length.  An INFORMATION that needs more than 32 bits is only in
 * the descriptor format: the fixed one leaves VALID clear.
 */
uint8_t sense_write(uint8_t *out, enum sense sense, const struct sense_detail *detail,
		    bool descriptor_format);

/*
 * What a store's error (positive errno) means to an initiator.  SENSE_COUNT:
 * nothing is wrong with the disk, the initiator may try again (BUSY status).
 */
enum sense sense_from_errno(int code, bool writing);

#endif
