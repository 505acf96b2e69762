/* READ and WRITE (SBC-3 5.8-5.11, 5.30-5.33). */
#include "target/scsi/internal.h"

bool rw_judge(struct scsi_cmd *cmd)
{
	if (cmd->transfer_len > SCSI_TRANSFER_MAX)
		return scsi_refuse_field(cmd, cmd->op->length.byte, -1);
	return true;
}

static void read_done(struct scsi_cmd *cmd)
{
	uint32_t room = cmd->initiator_dir == SCSI_DATA_IN ? cmd->edtl : 0;

	cmd->data_in_len = cmd->transfer_len < room ? cmd->transfer_len : room;
	cmd->residual_len = cmd->transfer_len;
	counter_add(&cmd->per->read_bytes, cmd->req.len);
	scsi_good(cmd);
}

/* Blocks that the initiator has no room for are not read; the last one may go
 * out in part. */
void read_run(struct scsi_cmd *cmd)
{
	uint32_t block_size = cmd_limits(cmd)->block_size;
	const struct iovec *iov;
	uint16_t iovcnt;

	if (cmd->buf_len == 0) {
		cmd->residual_len = cmd->transfer_len;
		scsi_good(cmd);
		return;
	}
	iov = scsi_cmd_iov(cmd, cmd->buf_len, &iovcnt);
	scsi_io(cmd, BK_READ, scsi_cache_flags(cmd), cmd->lba * block_size, cmd->buf_len, iov,
		iovcnt, read_done);
}

/* ---- WRITE ---- */

static uint64_t write_off(const struct scsi_cmd *cmd)
{
	return cmd->lba * cmd_limits(cmd)->block_size;
}

/* The whole blocks that came. */
static uint64_t write_whole(const struct scsi_cmd *cmd)
{
	uint32_t block_size = cmd_limits(cmd)->block_size;

	return cmd->out_len / block_size * block_size;
}

static void write_done(struct scsi_cmd *cmd)
{
	counter_add(&cmd->per->write_bytes, cmd->req.len);
	scsi_good(cmd);
}

static void write_blocks(struct scsi_cmd *cmd)
{
	uint64_t len = write_whole(cmd);
	const struct iovec *iov;
	uint16_t iovcnt;

	if (len == 0) {
		scsi_good(cmd);
		return;
	}
	iov = scsi_cmd_iov(cmd, len, &iovcnt);
	scsi_io(cmd, BK_WRITE, scsi_cache_flags(cmd), write_off(cmd), len, iov, iovcnt, write_done);
}

/*
 * An EDTL that ends within a block: what came of it is processed, the rest of
 * the block is kept (FCP-4 9.4.2 a, which iSCSI's residuals follow).
 */
static void tail_read(struct scsi_cmd *cmd)
{
	uint64_t whole = write_whole(cmd);

	scsi_data_out(cmd, whole, cmd->per->scratch, cmd->out_len - whole);
	scsi_io(cmd, BK_WRITE, scsi_cache_flags(cmd), write_off(cmd) + whole,
		cmd_limits(cmd)->block_size, cmd->rw_iov, 1, write_blocks);
}

static void tail_start(struct scsi_cmd *cmd)
{
	uint32_t block_size = cmd_limits(cmd)->block_size;

	cmd->rw_iov[0].iov_base = cmd->per->scratch;
	cmd->rw_iov[0].iov_len = block_size;
	scsi_io(cmd, BK_READ, 0, write_off(cmd) + write_whole(cmd), block_size, cmd->rw_iov, 1,
		tail_read);
}

void write_run(struct scsi_cmd *cmd)
{
	if (cmd->out_len != write_whole(cmd))
		scsi_scratch(cmd, tail_start);
	else
		write_blocks(cmd);
}
