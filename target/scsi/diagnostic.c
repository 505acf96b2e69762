/* SEND DIAGNOSTIC (SPC-4 6.42) and RECEIVE DIAGNOSTIC RESULTS (6.22): the
 * default self-test, and the list of diagnostic pages, which is of one. */
#include "target/scsi/internal.h"

bool diagnostic_judge(struct scsi_cmd *cmd)
{
	if (cmd->cdb[0] == 0x1c) {
		if (!(cmd->cdb[1] & 0x01)) /* PCV: no earlier SEND DIAGNOSTIC asked */
			return scsi_refuse_field(cmd, 1, 0);
		if (cmd->cdb[2] != 0)
			return scsi_refuse_field(cmd, 2, -1);
	}
	return true;
}

/* The self-test is that the store is there. */
void diagnostic_run(struct scsi_cmd *cmd)
{
	bool self_test = cmd->cdb[1] & 0x04;

	if (self_test && (atomic_load(&cmd->lun->state) & (LUN_NO_STORE | LUN_SWAPPING)))
		scsi_fail(cmd, SENSE_STORE_NOT_READY);
	else
		scsi_good(cmd);
}

void receive_diagnostic_run(struct scsi_cmd *cmd)
{
	static const uint8_t pages[] = { 0x00, 0x00, 0x00, 0x01, 0x00 };

	scsi_reply(cmd, pages, sizeof(pages));
}
