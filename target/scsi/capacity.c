/* READ CAPACITY (SBC-3 5.12, 5.13): the size and shape of the medium. */
#include "target/scsi/internal.h"

/* PMI and LBA are obsolete since SBC-3; as SBC-2 5.10: LBA is zero without PMI. */
bool read_capacity10_judge(struct scsi_cmd *cmd)
{
	static const uint8_t zeros[4];

	if (!(cmd->cdb[8] & 0x01) && memcmp(cmd->cdb + 2, zeros, 4) != 0)
		return scsi_refuse_field(cmd, 2, -1);
	cmd->transfer_len = 8;
	return true;
}

static uint64_t last_lba(const struct scsi_cmd *cmd)
{
	uint64_t n = backing_size(cmd->channel->backing) / cmd_limits(cmd)->block_size;

	return n > 0 ? n - 1 : 0;
}

void read_capacity10_run(struct scsi_cmd *cmd)
{
	uint64_t last = last_lba(cmd);
	uint8_t data[8];

	/* Too much for 32 bits: the host must use READ CAPACITY(16). */
	be32_store(data, last >= UINT32_MAX ? UINT32_MAX : (uint32_t)last);
	be32_store(data + 4, cmd_limits(cmd)->block_size);
	scsi_reply(cmd, data, sizeof(data));
}

void read_capacity16_run(struct scsi_cmd *cmd)
{
	const struct bk_limits *limits = cmd_limits(cmd);
	uint8_t data[32] = { 0 };

	be64_store(data, last_lba(cmd));
	be32_store(data + 8, limits->block_size);
	/* LOGICAL BLOCKS PER PHYSICAL BLOCK EXPONENT */
	for (uint32_t size = limits->block_size; size < limits->physical_block_size; size *= 2)
		data[13]++;
	if (limits->unmap_max > 0) {
		data[14] |= 0x80; /* LBPME */
		if (limits->unmapped_reads_zero)
			data[14] |= 0x40; /* LBPRZ */
	}
	scsi_reply(cmd, data, sizeof(data));
}
