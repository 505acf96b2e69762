/* REQUEST SENSE (SPC-4 6.39). */
#include "target/scsi/internal.h"

/* What is wrong with the unit as it is now. */
static enum sense current(const struct scsi_cmd *cmd)
{
	uint32_t state = atomic_load(&cmd->lun->state);

	if ((state & LUN_NO_STORE) || !cmd->channel)
		return SENSE_STORE_NOT_READY;
	if (state & LUN_EJECTED)
		return SENSE_NO_MEDIUM;
	if (state & LUN_STOPPED)
		return SENSE_STOPPED;
	return SENSE_NO_SENSE;
}

/* Returns a pending unit attention and clears it; with GOOD, always. */
void request_sense_run(struct scsi_cmd *cmd)
{
	uint8_t data[SCSI_SENSE_MAX];
	enum sense sense = SENSE_NO_LUN;
	uint8_t len;

	if (cmd->lun) {
		sense = ua_take(cmd->nexus, nexus_lun(cmd->nexus, cmd->lun_number));
		if (sense == SENSE_COUNT)
			sense = current(cmd);
	}
	len = sense_write(data, sense, NULL, cmd->cdb[1] & 0x01);
	scsi_reply(cmd, data, len);
}
