/*
 * SPC-2 RESERVE and RELEASE (SPC-2 7.21-7.24, 5.5.1), which ESXi and Windows
 * use while they format.
 *
 * A reservation is of one nexus and of a whole LUN; it ends with RELEASE, with
 * the nexus and with a reset.  lun->holder is read by every command.
 */
#include "target/scsi/internal.h"

/* SPC-2 table 10 and SBC-2 table 5: what other nexuses may still do. */
static bool exempt(const struct scsi_cmd *cmd)
{
	switch (cmd->cdb[0]) {
	case 0x1b: /* START STOP UNIT that starts */ return (cmd->cdb[4] & 0xf1) == 0x01;
	case 0x1e: /* PREVENT ALLOW MEDIUM REMOVAL that allows */ return (cmd->cdb[4] & 0x03) == 0;
	default: return false;
	}
}

bool reservation_allows(const struct scsi_cmd *cmd)
{
	const struct scsi_nexus *holder = atomic_load_explicit(&cmd->lun->holder,
							       memory_order_acquire);

	if (!holder || holder == cmd->nexus)
		return true;
	return cmd->op->reservation == RESERVATION_BY_CDB && exempt(cmd);
}

void reservation_release(struct scsi_lun *lun, const struct scsi_nexus *nexus)
{
	if (atomic_load(&lun->holder) == nexus)
		atomic_store(&lun->holder, NULL);
}

void reserve_run(struct scsi_cmd *cmd)
{
	struct scsi_lun *lun = cmd->lun;
	struct scsi_nexus *holder;

	pthread_mutex_lock(&lun->lock);
	/* Unmapped meanwhile: nobody would release it. */
	if (target_lun(cmd->nexus->target, cmd->lun_number) != lun) {
		pthread_mutex_unlock(&lun->lock);
		scsi_fail(cmd, SENSE_NO_LUN);
		return;
	}
	holder = atomic_load(&lun->holder);
	if (!holder || holder == cmd->nexus) {
		atomic_store(&lun->holder, cmd->nexus);
		cmd->nexus->holds = true;
		holder = cmd->nexus;
	}
	pthread_mutex_unlock(&lun->lock);
	if (holder != cmd->nexus)
		scsi_status_end(cmd, SCSI_RESERVATION_CONFLICT);
	else
		scsi_good(cmd);
}

/* By one who does not hold it: GOOD, and nothing changes (SPC-2 7.22). */
void release_run(struct scsi_cmd *cmd)
{
	pthread_mutex_lock(&cmd->lun->lock);
	reservation_release(cmd->lun, cmd->nexus);
	pthread_mutex_unlock(&cmd->lun->lock);
	scsi_good(cmd);
}
