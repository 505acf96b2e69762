/* GET LBA STATUS(16) (SBC-3 5.4): mapped and deallocated extents. */
#include "target/scsi/internal.h"

#define DESCRIPTOR_LEN 16
#define HEADER_LEN     8

enum provisioning_status {
	STATUS_MAPPED = 0,
	STATUS_DEALLOCATED = 1,
};

static void put_descriptor(struct scsi_cmd *cmd, const struct bk_extent *extent)
{
	uint32_t block_size = cmd_limits(cmd)->block_size;
	uint64_t n = extent->len / block_size;
	uint8_t d[DESCRIPTOR_LEN] = { 0 };

	be64_store(d, extent->off / block_size);
	be32_store(d + 8, n > UINT32_MAX ? UINT32_MAX : (uint32_t)n);
	d[12] = extent->status == BK_UNMAPPED ? STATUS_DEALLOCATED : STATUS_MAPPED;
	scsi_reply_put(cmd, d, sizeof(d));
}

static void ask(struct scsi_cmd *cmd);

/* True: the extent does not fit one descriptor, so nothing may follow it. */
static bool too_long(const struct scsi_cmd *cmd, const struct bk_extent *extent)
{
	return extent->len / cmd_limits(cmd)->block_size > UINT32_MAX;
}

static void answered(struct scsi_cmd *cmd)
{
	bool last = cmd->req.nextents == 0;

	for (uint32_t i = 0; i < cmd->req.nextents && !last; i++) {
		const struct bk_extent *extent = &cmd->extents[i];

		put_descriptor(cmd, extent);
		cmd->progress = extent->off + extent->len;
		last = too_long(cmd, extent);
	}
	if (last || cmd->progress >= backing_size(cmd->channel->backing) ||
	    cmd->reply_len + DESCRIPTOR_LEN > cmd->buf_len) {
		uint8_t header[HEADER_LEN] = { 0 };
		uint64_t len = cmd->reply_len;

		be32_store(header, (uint32_t)(len - 4));
		cmd->reply_len = 0;
		scsi_reply_put(cmd, header, sizeof(header));
		cmd->reply_len = len;
		scsi_reply_end(cmd);
		return;
	}
	ask(cmd);
}

static void ask(struct scsi_cmd *cmd)
{
	cmd->req.extents = cmd->extents;
	cmd->req.nextents_max = SCSI_EXTENTS;
	cmd->req.nextents = 0;
	scsi_io(cmd, BK_STATUS, 0, cmd->progress,
		backing_size(cmd->channel->backing) - cmd->progress, NULL, 0, answered);
}

void lba_status_run(struct scsi_cmd *cmd)
{
	static const uint8_t header[HEADER_LEN];

	scsi_reply_put(cmd, header, sizeof(header));
	cmd->progress = cmd->lba * cmd_limits(cmd)->block_size;
	ask(cmd);
}
