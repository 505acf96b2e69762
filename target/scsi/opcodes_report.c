/* REPORT SUPPORTED OPERATION CODES (SPC-4 6.35) and TASK MANAGEMENT FUNCTIONS
 * (6.36): loops over the table of commands. */
#include "target/scsi/internal.h"

#define RCTD 0x80

enum reporting_options {
	REPORT_ALL = 0,
	REPORT_OPCODE = 1,
	REPORT_OPCODE_ACTION = 2,
	REPORT_OPCODE_ACTION_ANY = 3, /* one that has no service actions, too */
};

static const struct scsi_opcode *find(uint8_t opcode, uint16_t action)
{
	for (unsigned int i = 0; i < scsi_nopcodes; i++)
		if (scsi_opcodes[i].opcode == opcode && scsi_opcodes[i].action == action)
			return &scsi_opcodes[i];
	return NULL;
}

/* SPC-4 table 285: an option that does not fit the operation code is an error,
 * a command that we do not have is an answer. */
bool report_opcodes_judge(struct scsi_cmd *cmd)
{
	uint8_t option = cmd->cdb[2] & 0x07;
	const struct scsi_opcode *first = scsi_opcode_first(cmd->cdb[3]);

	if (option > REPORT_OPCODE_ACTION_ANY)
		return scsi_refuse_field(cmd, 2, 2);
	if (option == REPORT_OPCODE && first && first->action != SCSI_NO_ACTION)
		return scsi_refuse_field(cmd, 2, 2);
	if (option == REPORT_OPCODE_ACTION && first && first->action == SCSI_NO_ACTION)
		return scsi_refuse_field(cmd, 2, 2);
	return true;
}

/* Command timeouts descriptor, SPC-4 6.35.4: in seconds. */
static void put_timeouts(struct scsi_cmd *cmd, const struct scsi_opcode *op)
{
	uint8_t d[12] = { 0 };

	be16_store(d, 0x0a);
	be32_store(d + 4, op->timeout_s ? op->timeout_s : 1);
	be32_store(d + 8, op->timeout_s ? op->timeout_s : 1);
	scsi_reply_put(cmd, d, sizeof(d));
}

static void report_all(struct scsi_cmd *cmd)
{
	bool timeouts = cmd->cdb[2] & RCTD;
	uint32_t each = timeouts ? 20 : 8;
	uint32_t count = 0;
	uint8_t header[4];

	for (unsigned int i = 0; i < scsi_nopcodes; i++)
		count += scsi_opcode_offered(&scsi_opcodes[i], cmd->lun);
	be32_store(header, count * each);
	scsi_reply_put(cmd, header, sizeof(header));
	for (unsigned int i = 0; i < scsi_nopcodes; i++) {
		const struct scsi_opcode *op = &scsi_opcodes[i];
		uint8_t d[8] = { op->opcode };

		if (!scsi_opcode_offered(op, cmd->lun))
			continue;
		if (op->action != SCSI_NO_ACTION) {
			be16_store(d + 2, op->action);
			d[5] |= 0x01; /* SERVACTV */
		}
		if (timeouts)
			d[5] |= 0x02; /* CTDP */
		be16_store(d + 6, op->cdb_len);
		scsi_reply_put(cmd, d, sizeof(d));
		if (timeouts)
			put_timeouts(cmd, op);
	}
	scsi_reply_end(cmd);
}

static void report_one(struct scsi_cmd *cmd)
{
	const struct scsi_opcode *op = scsi_opcode_first(cmd->cdb[3]);
	bool timeouts = cmd->cdb[2] & RCTD;
	uint8_t d[4 + 16] = { 0 };

	if (op && op->action != SCSI_NO_ACTION)
		op = find(cmd->cdb[3], be16_load(cmd->cdb + 4));
	if (!op || !scsi_opcode_offered(op, cmd->lun)) {
		d[1] = 0x01; /* not supported */
		scsi_reply(cmd, d, 4);
		return;
	}
	d[1] = 0x03; /* as the standard says */
	if (timeouts)
		d[1] |= 0x80; /* CTDP */
	be16_store(d + 2, op->cdb_len);
	memcpy(d + 4, op->usage, op->cdb_len);
	/* The field of a service action shows its value (SPC-4 6.35.3). */
	if (op->action != SCSI_NO_ACTION)
		d[5] = (uint8_t)((d[5] & ~0x1f) | op->action);
	d[5] &= (uint8_t)~scsi_opcode_withheld(op, cmd->lun);
	scsi_reply_put(cmd, d, 4u + op->cdb_len);
	if (timeouts)
		put_timeouts(cmd, op);
	scsi_reply_end(cmd);
}

void report_opcodes_run(struct scsi_cmd *cmd)
{
	if ((cmd->cdb[2] & 0x07) == REPORT_ALL)
		report_all(cmd);
	else
		report_one(cmd);
}

/* ABORT TASK, ABORT TASK SET, CLEAR TASK SET, LOGICAL UNIT RESET, TARGET RESET. */
void report_tmf_run(struct scsi_cmd *cmd)
{
	bool extended = cmd->cdb[2] & 0x80; /* REPD */
	uint8_t d[16] = { 0x80 | 0x40 | 0x10 | 0x08 | 0x02 };

	if (extended)
		d[3] = 0x0c;
	scsi_reply(cmd, d, extended ? 16 : 4);
}
