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

static void write_done(struct scsi_cmd *cmd)
{
	counter_add(&cmd->per->write_bytes, cmd->req.len);
	scsi_good(cmd);
}

void write_run(struct scsi_cmd *cmd)
{
	uint32_t block_size = cmd_limits(cmd)->block_size;
	uint64_t len = cmd->out_len / block_size * block_size;
	const struct iovec *iov;
	uint16_t iovcnt;

	if (len == 0) {
		scsi_good(cmd);
		return;
	}
	iov = scsi_cmd_iov(cmd, len, &iovcnt);
	scsi_io(cmd, BK_WRITE, scsi_cache_flags(cmd), cmd->lba * block_size, len, iov, iovcnt,
		write_done);
}
