/* The unit as a device: TEST UNIT READY, START STOP UNIT, PREVENT ALLOW. */
#include "target/scsi/internal.h"

/* The row's OP_MEDIUM has asked everything. */
void test_unit_ready_run(struct scsi_cmd *cmd)
{
	scsi_good(cmd);
}

/* ---- START STOP UNIT (SBC-3 5.20) ---- */

#define START		0x01
#define LOEJ		0x02
#define NO_FLUSH	0x04
#define POWER_CONDITION 0xf0

static bool removable(struct scsi_lun *lun)
{
	bool value;

	pthread_mutex_lock(&lun->lock);
	value = lun->settings.removable;
	pthread_mutex_unlock(&lun->lock);
	return value;
}

bool start_stop_judge(struct scsi_cmd *cmd)
{
	if ((cmd->cdb[4] & POWER_CONDITION) == 0 && (cmd->cdb[4] & LOEJ) && !removable(cmd->lun))
		return scsi_refuse_field(cmd, 4, 1);
	return true;
}

/* START with LOEJ loads: no medium moves while a nexus prevents it, whichever
 * way.  START alone starts what is there. */
static void unit_start(struct scsi_cmd *cmd)
{
	struct scsi_lun *lun = cmd->lun;
	bool load, prevented = false;

	pthread_mutex_lock(&lun->lock);
	load = (cmd->cdb[4] & LOEJ) && (atomic_load(&lun->state) & LUN_EJECTED);
	prevented = load && lun->nprevent > 0;
	if (load && !prevented) {
		lun_state_clear(lun, LUN_EJECTED);
		ua_raise(lun, cmd->nexus, UA_MEDIUM_CHANGED);
	}
	if (!prevented)
		lun_state_clear(lun, LUN_STOPPED);
	pthread_mutex_unlock(&lun->lock);
	if (prevented)
		scsi_fail(cmd, SENSE_REMOVAL_PREVENTED);
	else if (atomic_load(&lun->state) & LUN_EJECTED)
		scsi_fail(cmd, SENSE_NO_MEDIUM);
	else
		scsi_good(cmd);
}

static void unit_stop(struct scsi_cmd *cmd)
{
	struct scsi_lun *lun = cmd->lun;
	bool prevented = false;

	if (cmd->cdb[4] & LOEJ) {
		pthread_mutex_lock(&lun->lock);
		prevented = lun->nprevent > 0;
		if (!prevented)
			lun_state_set(lun, LUN_EJECTED);
		pthread_mutex_unlock(&lun->lock);
	} else if (!removable(lun)) {
		lun_state_set(lun, LUN_STOPPED);
	}
	if (prevented)
		scsi_fail(cmd, SENSE_REMOVAL_PREVENTED);
	else
		scsi_good(cmd);
}

/*
 * A fixed disk that is stopped answers NOT READY until it is started; a
 * removable one keeps turning, as a host that is done with it ejects it.  The
 * one power condition that we have is active, so that the requests for others
 * succeed and change nothing.
 */
void start_stop_run(struct scsi_cmd *cmd)
{
	uint8_t flags = cmd->cdb[4];

	if (flags & POWER_CONDITION)
		scsi_good(cmd);
	else if (flags & START)
		unit_start(cmd);
	else if (flags & NO_FLUSH)
		unit_stop(cmd);
	else
		scsi_io(cmd, BK_FLUSH, 0, 0, 0, NULL, 0, unit_stop);
}

/* ---- PREVENT ALLOW MEDIUM REMOVAL (SBC-3 5.15) ---- */

void prevent_allow_run(struct scsi_cmd *cmd)
{
	struct scsi_lun *lun = cmd->lun;
	struct nexus_lun *nl = nexus_lun(cmd->nexus, cmd->lun_number);
	bool prevent = cmd->cdb[4] & 0x01;
	bool mapped;

	pthread_mutex_lock(&lun->lock);
	mapped = target_lun(cmd->nexus->target, cmd->lun_number) == lun;
	if (mapped && nl->prevent != prevent) {
		nl->prevent = prevent;
		lun->nprevent += prevent ? 1 : -1u;
		cmd->nexus->holds = true;
	}
	pthread_mutex_unlock(&lun->lock);
	if (mapped)
		scsi_good(cmd);
	else
		scsi_fail(cmd, SENSE_NO_LUN);
}
