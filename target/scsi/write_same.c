/*
 * WRITE SAME(10) and (16) (SBC-3 5.39-5.41).
 *
 * Zeros, also those of NDOB, become BK_WRITE_ZEROES, with BK_MAY_UNMAP where
 * UNMAP is set; another pattern is repeated in the scratch and written a step
 * at a time.
 */
#include "target/scsi/internal.h"

#define UNMAP 0x08
#define NDOB  0x01

bool write_same_judge(struct scsi_cmd *cmd)
{
	const struct bk_limits *limits = cmd_limits(cmd);
	bool ndob = cmd->op->cdb_len == 16 && (cmd->cdb[1] & NDOB);

	if (cmd->cdb[1] & scsi_opcode_withheld(cmd->op, cmd->lun))
		return scsi_refuse_field(cmd, 1, 3);
	if (cmd->nblocks == 0) /* WSNZ in VPD B0 */
		return scsi_refuse_field(cmd, cmd->op->length.byte, -1);
	if (cmd->nblocks > SCSI_WRITE_SAME_BLOCKS_MAX)
		return scsi_refuse_field(cmd, cmd->op->length.byte, -1);
	if (ndob)
		cmd->dir = SCSI_NO_DATA;
	else
		cmd->transfer_len = limits->block_size;
	return true;
}

static uint64_t total(const struct scsi_cmd *cmd)
{
	return cmd->nblocks * cmd_limits(cmd)->block_size;
}

static void same_step(struct scsi_cmd *cmd);

static void same_done(struct scsi_cmd *cmd)
{
	counter_add(&cmd->per->write_bytes, cmd->req.len);
	cmd->progress += cmd->req.len;
	same_step(cmd);
}

static void zeroes_step(struct scsi_cmd *cmd);

static void zeroes_done(struct scsi_cmd *cmd)
{
	cmd->progress += cmd->req.len;
	zeroes_step(cmd);
}

static void zeroes_step(struct scsi_cmd *cmd)
{
	const struct bk_limits *limits = cmd_limits(cmd);
	uint64_t len = total(cmd) - cmd->progress;
	uint64_t max = limits->write_zeroes_max / limits->block_size * limits->block_size;

	if (len == 0) {
		scsi_good(cmd);
		return;
	}
	if (max > 0 && len > max)
		len = max;
	scsi_io(cmd, BK_WRITE_ZEROES, cmd->cdb[1] & UNMAP ? BK_MAY_UNMAP : 0,
		cmd->lba * limits->block_size + cmd->progress, len, NULL, 0, zeroes_done);
}

/* The scratch holds the pattern, repeated, from the first step on. */
static void same_step(struct scsi_cmd *cmd)
{
	uint64_t len = total(cmd) - cmd->progress;

	if (len == 0) {
		scsi_good(cmd);
		return;
	}
	if (len > LUN_SCRATCH)
		len = LUN_SCRATCH;
	cmd->rw_iov[0].iov_base = cmd->per->scratch;
	cmd->rw_iov[0].iov_len = len;
	scsi_io(cmd, BK_WRITE, 0, cmd->lba * cmd_limits(cmd)->block_size + cmd->progress, len,
		cmd->rw_iov, 1, same_done);
}

static void fill_scratch(struct scsi_cmd *cmd)
{
	uint32_t block_size = cmd_limits(cmd)->block_size;
	uint64_t len = total(cmd) < LUN_SCRATCH ? total(cmd) : LUN_SCRATCH;

	for (uint64_t at = 0; at < len; at += block_size)
		scsi_data_out(cmd, 0, cmd->per->scratch + at, block_size);
	same_step(cmd);
}

void write_same_run(struct scsi_cmd *cmd)
{
	uint8_t block[4096] = { 0 };

	if (cmd->dir == SCSI_DATA_OUT) {
		uint32_t block_size = cmd_limits(cmd)->block_size;

		/* One block, not less and not more: a host that sends a
		 * different size means another command. */
		if (cmd->edtl != block_size || cmd->out_len != block_size) {
			scsi_fail(cmd, SENSE_INVALID_INFORMATION_UNIT);
			return;
		}
		scsi_data_out(cmd, 0, block, block_size);
		if (block[0] != 0 || memcmp(block, block + 1, block_size - 1) != 0) {
			scsi_scratch(cmd, fill_scratch);
			return;
		}
	}
	zeroes_step(cmd);
}
