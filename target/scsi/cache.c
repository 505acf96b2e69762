/* SYNCHRONIZE CACHE (SBC-3 5.22, 5.23) and PRE-FETCH (5.6, 5.7). */
#include "target/scsi/internal.h"

static void flushed(struct scsi_cmd *cmd)
{
	scsi_good(cmd);
}

/* The whole store is flushed, whatever the range, and IMMED waits as well: a
 * host that asks for a flush and then loses power has its data either way. */
void synchronize_cache_run(struct scsi_cmd *cmd)
{
	scsi_io(cmd, BK_FLUSH, 0, 0, 0, NULL, 0, flushed);
}

/* Read ahead at most so much for one command; more would only push out what is
 * cached for others. */
#define PREFETCH_MAX (4u << 20)

/* A hint: an error of the medium is told to who reads the blocks. GOOD, not
 * CONDITION MET: we do not promise that they stay in the cache. */
static void prefetch_step(struct scsi_cmd *cmd)
{
	uint32_t block_size = cmd_limits(cmd)->block_size;
	uint64_t total = cmd->nblocks * (uint64_t)block_size;
	uint64_t len;

	if (total > PREFETCH_MAX)
		total = PREFETCH_MAX / block_size * block_size;
	if (cmd->progress >= total) {
		scsi_good(cmd);
		return;
	}
	len = total - cmd->progress;
	if (len > LUN_SCRATCH)
		len = LUN_SCRATCH;
	cmd->rw_iov[0].iov_base = cmd->per->scratch;
	cmd->rw_iov[0].iov_len = len;
	cmd->progress += len;
	scsi_io(cmd, BK_READ, 0, cmd->lba * block_size + cmd->progress - len, len, cmd->rw_iov, 1,
		prefetch_step);
}

void prefetch_run(struct scsi_cmd *cmd)
{
	uint64_t total = backing_size(cmd->channel->backing) / cmd_limits(cmd)->block_size;

	if (cmd->nblocks == 0) /* to the end of the medium */
		cmd->nblocks = total - cmd->lba;
	scsi_scratch(cmd, prefetch_step);
}
