/* REPORT LUNS (SPC-4 6.33): the map of the target, answered on any LUN. */
#include "target/scsi/internal.h"

enum select_report {
	SELECT_LUNS = 0x00,
	SELECT_WELL_KNOWN = 0x01, /* we have none */
	SELECT_ALL = 0x02,
};

bool report_luns_judge(struct scsi_cmd *cmd)
{
	if (cmd->cdb[2] > SELECT_ALL)
		return scsi_refuse_field(cmd, 2, -1);
	return true;
}

/* The next LUN number from on that is mapped; -1: none. */
static int next_lun(const struct scsi_target *target, int from)
{
	for (int number = from; number < SCSI_LUNS_MAX; number++) {
		if (!atomic_load(&target->pages[number / LUN_PAGE])) {
			number |= LUN_PAGE - 1;
			continue;
		}
		if (target_lun(target, number))
			return number;
	}
	return -1;
}

void report_luns_run(struct scsi_cmd *cmd)
{
	const struct scsi_target *target = cmd->nexus->target;
	bool any = cmd->cdb[2] != SELECT_WELL_KNOWN;
	uint8_t header[8] = { 0 };
	uint32_t count = 0;

	/* The inventory that is told is the one that is read now. */
	atomic_store(&cmd->nexus->luns_changed, false);
	for (int n = next_lun(target, 0); any && n >= 0; n = next_lun(target, n + 1))
		count++;
	be32_store(header, count * 8);
	scsi_reply_put(cmd, header, sizeof(header));
	for (int n = next_lun(target, 0); count > 0 && n >= 0; n = next_lun(target, n + 1)) {
		uint8_t field[8];

		scsi_lun_field((uint16_t)n, field);
		scsi_reply_put(cmd, field, sizeof(field));
		count--;
	}
	scsi_reply_end(cmd);
}
