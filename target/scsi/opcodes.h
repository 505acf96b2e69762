/*
 * The table of commands and of the pages that they return.
 *
 * CDB checks, range and reservation checks, REPORT SUPPORTED OPERATION CODES,
 * the counters and docs/commands.md come from its rows.  To add a command: a row
 * in scsi_opcodes[] (opcodes.c, in order), its handler in the file of its noun.
 *
 * Constant; any thread.
 */
#ifndef SCSI_OPCODES_H
#define SCSI_OPCODES_H

#include <stdbool.h>
#include <stdint.h>

#include "target/scsi/scsi.h"

#define SCSI_NO_ACTION 0xffff /* the operation code has no service actions */

struct cdb_field {
	uint8_t byte, len; /* len 0: the CDB has no such field */
};

/* What the length field of a CDB counts. */
enum cdb_length {
	LENGTH_NONE,
	LENGTH_BLOCKS, /* logical blocks that are transferred */
	LENGTH_RANGE,  /* logical blocks that are worked on; judge sets transfer_len */
	LENGTH_BYTES,  /* allocation length or parameter list length */
};

/* When another nexus holds a reservation.  Persistent reservations will need
 * to tell reads from writes (SPC-4 table 65). */
enum reservation_class {
	RESERVATION_ALLOWED,
	RESERVATION_READ,
	RESERVATION_WRITE,
	RESERVATION_BY_CDB, /* reserve.c looks at the CDB */
};

enum opcode_flag {
	OP_ANY_LUN = 1u << 0, /* answered where there is no logical unit */
	OP_NO_UA = 1u << 1,   /* never ends with a unit attention */
	OP_MEDIUM = 1u << 2,  /* needs a store and a started unit */
	OP_WRITES = 1u << 3,  /* refused when write protected */
	OP_UNMAP = 1u << 4,   /* offered only where the store unmaps */
	OP_STORE = 1u << 5,   /* needs a store, started or not */
};

/* What scsi_lun_stats() counts a command as. */
enum opcode_group {
	GROUP_OTHER,
	GROUP_READ,
	GROUP_WRITE,
	GROUP_FLUSH,
	GROUP_UNMAP,
};

struct scsi_opcode {
	uint8_t opcode;
	uint16_t action; /* service action (byte 1, bits 4-0) or SCSI_NO_ACTION */
	uint8_t cdb_len;
	uint8_t dir;	      /* enum scsi_dir */
	uint8_t reservation;  /* enum reservation_class */
	uint8_t length_is;    /* enum cdb_length */
	uint8_t group;	      /* enum opcode_group */
	uint8_t flags;	      /* enum opcode_flag */
	struct cdb_field lba; /* logical blocks */
	struct cdb_field length;
	uint32_t reply_max; /* bytes of data-in at most; 0: 4096 (LENGTH_BYTES) */
	uint8_t timeout_s;  /* recommended command timeout, 0: 1 s (RCTD) */
	uint8_t usage[16];  /* CDB usage mask; byte 0 is the operation code */
	const char *name;
	/* Checks what only this command knows and corrects transfer_len; false:
	 * it has called scsi_refuse*().  NULL: nothing to check. */
	bool (*judge)(struct scsi_cmd *cmd);
	void (*run)(struct scsi_cmd *cmd);
};

/* Sorted by operation code and service action. */
extern const struct scsi_opcode scsi_opcodes[];
extern const unsigned int scsi_nopcodes;
#define SCSI_OPCODES_MAX 80 /* room in per-reactor counters */

/* The row of a CDB, NULL when there is none.  *known_opcode tells whether the
 * operation code has any row (a wrong service action is a wrong field). */
const struct scsi_opcode *scsi_opcode_find(const uint8_t *cdb, bool *known_opcode);
/* The first row of an operation code, NULL when there is none. */
const struct scsi_opcode *scsi_opcode_first(uint8_t opcode);
/* Offered on this LUN as it is. */
bool scsi_opcode_offered(const struct scsi_opcode *op, const struct scsi_lun *lun);
/* Bits of byte 1 that the LUN's store cannot do: UNMAP in WRITE SAME. */
uint8_t scsi_opcode_withheld(const struct scsi_opcode *op, const struct scsi_lun *lun);
uint64_t cdb_field_get(const uint8_t *cdb, struct cdb_field field);

/* The pages that there are: the name of a row, from 0 on, with its codes; NULL:
 * there is no such row. */
const char *scsi_vpd_page_name(unsigned int row, uint8_t *code);
const char *scsi_mode_page_name(unsigned int row, uint8_t *code, uint8_t *subcode);
const char *scsi_log_page_name(unsigned int row, uint8_t *code, uint8_t *subcode);

#endif
