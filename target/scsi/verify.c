/*
 * VERIFY (SBC-3 5.24-5.26), WRITE AND VERIFY (5.34-5.36) and ORWRITE (5.5).
 *
 * They read the medium beside the data that came: through the LUN's scratch on
 * this reactor, a step of LUN_SCRATCH at a time.
 */
#include "target/scsi/internal.h"

/* BYTCHK, byte 1 bits 2-1 (SBC-3 table 102) */
enum bytchk {
	BYTCHK_MEDIUM = 0, /* nothing comes: can the blocks be read? */
	BYTCHK_ALL = 1,	   /* each block with its own data */
	BYTCHK_RESERVED = 2,
	BYTCHK_ONE = 3, /* each block with the one that came */
};

static enum bytchk bytchk(const struct scsi_cmd *cmd)
{
	return (enum bytchk)(cmd->cdb[1] >> 1 & 0x03);
}

bool verify_judge(struct scsi_cmd *cmd)
{
	uint32_t block_size = cmd_limits(cmd)->block_size;

	switch (bytchk(cmd)) {
	case BYTCHK_MEDIUM: return true;
	case BYTCHK_ALL:
		if (cmd->nblocks > SCSI_TRANSFER_MAX / block_size)
			return scsi_refuse_field(cmd, cmd->op->length.byte, -1);
		cmd->dir = SCSI_DATA_OUT;
		cmd->transfer_len = (uint32_t)cmd->nblocks * block_size;
		return true;
	case BYTCHK_ONE:
		cmd->dir = SCSI_DATA_OUT;
		cmd->transfer_len = cmd->nblocks ? block_size : 0;
		return true;
	default: return scsi_refuse_field(cmd, 1, 2);
	}
}

/* In WRITE AND VERIFY only 0 and 1 (SBC-3 5.34). */
bool write_verify_judge(struct scsi_cmd *cmd)
{
	if (bytchk(cmd) > BYTCHK_ALL)
		return scsi_refuse_field(cmd, 1, 2);
	return rw_judge(cmd);
}

/* ---- reading step by step ---- */

static uint64_t range_len(const struct scsi_cmd *cmd)
{
	uint32_t block_size = cmd_limits(cmd)->block_size;

	/* Of a transfer only the whole blocks that came. */
	if (cmd->dir == SCSI_DATA_OUT && cmd->op->length_is == LENGTH_BLOCKS)
		return cmd->out_len / block_size * block_size;
	if (cmd->dir == SCSI_DATA_OUT && bytchk(cmd) == BYTCHK_ALL)
		return cmd->out_len / block_size * block_size;
	return cmd->nblocks * block_size;
}

/* Reads the next step into the scratch; at the end: end. */
static void step_read(struct scsi_cmd *cmd, void (*got)(struct scsi_cmd *))
{
	uint64_t len = range_len(cmd) - cmd->progress;

	if (len > LUN_SCRATCH)
		len = LUN_SCRATCH;
	cmd->rw_iov[0].iov_base = cmd->per->scratch;
	cmd->rw_iov[0].iov_len = len;
	scsi_io(cmd, BK_READ, BK_DONT_CACHE, cmd->lba * cmd_limits(cmd)->block_size + cmd->progress,
		len, cmd->rw_iov, 1, got);
}

/* The first byte of the step that differs from the data; len: none. */
static uint64_t step_differs(const struct scsi_cmd *cmd, uint64_t len)
{
	uint32_t block_size = cmd_limits(cmd)->block_size;
	uint8_t data[4096];

	for (uint64_t at = 0; at < len; at += block_size) {
		uint64_t from = bytchk(cmd) == BYTCHK_ONE ? 0 : cmd->progress + at;

		scsi_data_out(cmd, from, data, block_size);
		if (memcmp(data, cmd->per->scratch + at, block_size) == 0)
			continue;
		for (uint32_t i = 0; i < block_size; i++)
			if (data[i] != cmd->per->scratch[at + i])
				return at + i;
	}
	return len;
}

static void verify_step(struct scsi_cmd *cmd);

static void verify_got(struct scsi_cmd *cmd)
{
	uint64_t len = cmd->req.len;

	if (bytchk(cmd) != BYTCHK_MEDIUM) {
		uint64_t differs = step_differs(cmd, len);

		if (differs < len) {
			struct sense_detail detail = {
				.has_info = true,
				.info = cmd->progress + differs,
			};

			scsi_fail_detail(cmd, SENSE_MISCOMPARE, &detail);
			return;
		}
	}
	cmd->progress += len;
	verify_step(cmd);
}

static void verify_step(struct scsi_cmd *cmd)
{
	if (cmd->progress == range_len(cmd))
		scsi_good(cmd);
	else
		step_read(cmd, verify_got);
}

void verify_run(struct scsi_cmd *cmd)
{
	/* Data that are compared must all be there: nothing is done otherwise. */
	if (cmd->out_len < cmd->transfer_len) {
		scsi_fail(cmd, SENSE_INVALID_INFORMATION_UNIT);
		return;
	}
	scsi_scratch(cmd, verify_step);
}

/* ---- WRITE AND VERIFY ---- */

static void written(struct scsi_cmd *cmd)
{
	counter_add(&cmd->per->write_bytes, cmd->req.len);
	scsi_scratch(cmd, verify_step);
}

/* On the medium before it is read back: FUA is implied (SBC-3 5.34). */
void write_verify_run(struct scsi_cmd *cmd)
{
	uint64_t len = range_len(cmd);
	const struct iovec *iov;
	uint16_t iovcnt;

	if (len == 0) {
		scsi_good(cmd);
		return;
	}
	iov = scsi_cmd_iov(cmd, len, &iovcnt);
	scsi_io(cmd, BK_WRITE, scsi_cache_flags(cmd) | BK_FUA,
		cmd->lba * cmd_limits(cmd)->block_size, len, iov, iovcnt, written);
}

/* ---- ORWRITE ---- */

static void orwrite_step(struct scsi_cmd *cmd);

static void or_written(struct scsi_cmd *cmd)
{
	counter_add(&cmd->per->write_bytes, cmd->req.len);
	cmd->progress += cmd->req.len;
	orwrite_step(cmd);
}

static void or_got(struct scsi_cmd *cmd)
{
	uint32_t block_size = cmd_limits(cmd)->block_size;
	uint64_t len = cmd->req.len;
	uint8_t data[4096];

	for (uint64_t at = 0; at < len; at += block_size) {
		scsi_data_out(cmd, cmd->progress + at, data, block_size);
		for (uint32_t i = 0; i < block_size; i++)
			cmd->per->scratch[at + i] |= data[i];
	}
	scsi_io(cmd, BK_WRITE, scsi_cache_flags(cmd), cmd->lba * block_size + cmd->progress, len,
		cmd->rw_iov, 1, or_written);
}

static void orwrite_step(struct scsi_cmd *cmd)
{
	if (cmd->progress == range_len(cmd))
		scsi_good(cmd);
	else
		step_read(cmd, or_got);
}

void orwrite_run(struct scsi_cmd *cmd)
{
	if (cmd->out_len < cmd->transfer_len) {
		scsi_fail(cmd, SENSE_INVALID_INFORMATION_UNIT);
		return;
	}
	scsi_scratch(cmd, orwrite_step);
}
