/*
 * UNMAP (SBC-3 5.28).
 *
 * The list is judged whole before its first block is unmapped.  A store may do
 * less at a time than one descriptor asks for; GOOD does not mean durable: what
 * is freed reads as the store says until it is written or flushed.
 */
#include "target/scsi/internal.h"

#define LIST_HEADER 8
#define DESCRIPTOR  16

bool unmap_judge(struct scsi_cmd *cmd)
{
	if (cmd->transfer_len > LIST_HEADER + DESCRIPTOR * SCSI_UNMAP_DESCRIPTORS_MAX)
		return scsi_refuse(cmd, SENSE_PARAMETER_LIST_LENGTH);
	return true;
}

static void get_descriptor(const struct scsi_cmd *cmd, uint32_t index, uint64_t *lba,
			   uint64_t *nblocks)
{
	uint8_t d[DESCRIPTOR];

	scsi_data_out(cmd, LIST_HEADER + (uint64_t)index * DESCRIPTOR, d, sizeof(d));
	*lba = be64_load(d);
	*nblocks = be32_load(d + 8);
}

/* False: it has ended the command. */
static bool judge_list(struct scsi_cmd *cmd)
{
	uint64_t size = backing_size(cmd->channel->backing) / cmd_limits(cmd)->block_size;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < cmd->nblocks; i++) {
		uint64_t lba, n;

		get_descriptor(cmd, i, &lba, &n);
		if (lba > size || n > size - lba) {
			struct sense_detail detail = { .has_info = true, .info = lba };

			scsi_fail_detail(cmd, SENSE_LBA_RANGE, &detail);
			return false;
		}
		sum += n;
		if (sum > SCSI_UNMAP_BLOCKS_MAX) {
			scsi_fail_parameter(cmd, (uint16_t)(LIST_HEADER + i * DESCRIPTOR + 8), -1);
			return false;
		}
	}
	return true;
}

/* cmd->step: the descriptor; cmd->progress: bytes of it that are done. */
static void unmap_step(struct scsi_cmd *cmd)
{
	const struct bk_limits *limits = cmd_limits(cmd);
	uint64_t max = limits->unmap_max / limits->block_size * limits->block_size;

	for (; cmd->step < cmd->nblocks; cmd->step++, cmd->progress = 0) {
		uint64_t lba, n, left;

		get_descriptor(cmd, cmd->step, &lba, &n);
		left = n * limits->block_size - cmd->progress;
		if (left == 0)
			continue;
		if (left > max)
			left = max;
		cmd->progress += left;
		scsi_io(cmd, BK_UNMAP, 0, lba * limits->block_size + cmd->progress - left, left,
			NULL, 0, unmap_step);
		return;
	}
	scsi_good(cmd);
}

void unmap_run(struct scsi_cmd *cmd)
{
	uint8_t header[LIST_HEADER];
	uint32_t data_len, descriptors_len;

	if (cmd->out_len < cmd->transfer_len) {
		scsi_fail(cmd, SENSE_INVALID_INFORMATION_UNIT);
		return;
	}
	if (cmd->transfer_len == 0) { /* SBC-3 5.28.1: not an error */
		scsi_good(cmd);
		return;
	}
	if (cmd->out_len < LIST_HEADER) {
		scsi_fail(cmd, SENSE_PARAMETER_LIST_LENGTH);
		return;
	}
	scsi_data_out(cmd, 0, header, sizeof(header));
	data_len = be16_load(header);
	descriptors_len = be16_load(header + 2);
	/* UNMAP DATA LENGTH counts what follows it and may say more than came; a
	 * last descriptor that is not whole is ignored (SBC-3 5.28.2). */
	if (data_len > cmd->out_len - 2 || data_len < LIST_HEADER - 2 ||
	    descriptors_len > data_len - (LIST_HEADER - 2)) {
		scsi_fail_parameter(cmd, data_len > cmd->out_len - 2 ? 0 : 2, -1);
		return;
	}
	cmd->nblocks = descriptors_len / DESCRIPTOR;
	if (judge_list(cmd))
		unmap_step(cmd);
}
