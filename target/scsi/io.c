/*
 * Data between a command and its buffers, and between a command and its store.
 */
#include "target/scsi/internal.h"

#include <assert.h>

/* Copies between a flat buffer and the iovecs at off; returns what fitted. */
static size_t iov_copy(const struct iovec *iov, uint32_t iovcnt, uint64_t off, void *flat,
		       size_t len, bool to_iov)
{
	size_t done = 0;

	for (uint32_t i = 0; i < iovcnt && done < len; i++) {
		uint8_t *base = iov[i].iov_base;
		size_t n;

		if (off >= iov[i].iov_len) {
			off -= iov[i].iov_len;
			continue;
		}
		n = iov[i].iov_len - off;
		if (n > len - done)
			n = len - done;
		if (to_iov)
			memcpy(base + off, (uint8_t *)flat + done, n);
		else
			memcpy((uint8_t *)flat + done, base + off, n);
		done += n;
		off = 0;
	}
	return done;
}

void scsi_reply_put(struct scsi_cmd *cmd, const void *data, size_t len)
{
	if (cmd->reply_len < cmd->buf_len) {
		size_t room = cmd->buf_len - cmd->reply_len;
		size_t n = len < room ? len : room;
		size_t done = iov_copy(cmd->iov, cmd->iovcnt, cmd->reply_len,
				       (void *)(uintptr_t)data, n, true);

		assert(done == n);
	}
	cmd->reply_len += len;
}

/* The allocation length cuts the data, not the lengths in them (SPC-4 4.2.5.6);
 * a residual compares what the CDB would have moved with EDTL. */
void scsi_reply_end(struct scsi_cmd *cmd)
{
	uint64_t moved = cmd->reply_len < cmd->transfer_len ? cmd->reply_len : cmd->transfer_len;

	cmd->residual_len = (uint32_t)moved;
	cmd->data_in_len = moved < cmd->buf_len ? (uint32_t)moved : cmd->buf_len;
	scsi_good(cmd);
}

void scsi_reply(struct scsi_cmd *cmd, const void *data, size_t len)
{
	scsi_reply_put(cmd, data, len);
	scsi_reply_end(cmd);
}

void scsi_data_out(const struct scsi_cmd *cmd, uint64_t off, void *to, size_t len)
{
	size_t done;

	assert(off <= cmd->out_len && len <= cmd->out_len - off);
	done = iov_copy(cmd->iov, cmd->iovcnt, off, to, len, false);
	assert(done == len);
}

const struct iovec *scsi_cmd_iov(struct scsi_cmd *cmd, uint64_t len, uint16_t *count)
{
	uint64_t sum = 0;
	uint32_t i;

	assert(cmd->cut_len == 0 && len > 0);
	for (i = 0; i < cmd->iovcnt; i++) {
		if (len - sum <= cmd->iov[i].iov_len)
			break;
		sum += cmd->iov[i].iov_len;
	}
	assert(i < cmd->iovcnt && i < UINT16_MAX);
	if (cmd->iov[i].iov_len != len - sum) {
		cmd->cut_index = i;
		cmd->cut_len = cmd->iov[i].iov_len;
		cmd->iov[i].iov_len = len - sum;
	}
	*count = (uint16_t)(i + 1);
	return cmd->iov;
}

static void io_done(struct bk_req *req)
{
	struct scsi_cmd *cmd = container_of(req, struct scsi_cmd, req);
	void (*next)(struct scsi_cmd *) = cmd->next;

	if (req->err != 0) {
		scsi_fail_errno(cmd, req->err, req->off + req->bad_off);
		return;
	}
	if (cmd->aborted) {
		scsi_status_end(cmd, SCSI_TASK_ABORTED);
		return;
	}
	cmd->next = NULL;
	next(cmd);
}

void scsi_io(struct scsi_cmd *cmd, enum bk_op op, uint8_t flags, uint64_t off, uint64_t len,
	     const struct iovec *iov, uint16_t iovcnt, void (*next)(struct scsi_cmd *cmd))
{
	struct bk_req *req = &cmd->req;

	/* Without WCE whatever is changed is durable before its status. */
	if ((cmd->op->flags & OP_WRITES) &&
	    (atomic_load_explicit(&cmd->lun->state, memory_order_relaxed) & LUN_WCE_OFF))
		flags |= BK_FUA;
	req->op = (uint8_t)op;
	req->flags = flags;
	req->iov = iov;
	req->iovcnt = iovcnt;
	req->off = off;
	req->len = len;
	req->done = io_done;
	cmd->next = next;
	backing_submit(cmd->channel, req);
}

void scsi_scratch(struct scsi_cmd *cmd, void (*next)(struct scsi_cmd *cmd))
{
	struct lun_reactor *per = cmd->per;

	assert(per->scratch);
	if (!per->scratch_owner) {
		per->scratch_owner = cmd;
		next(cmd);
		return;
	}
	assert(per->scratch_owner != cmd);
	cmd->next = next;
	list_add_tail(&per->scratch_waiters, &cmd->wait_link);
}

uint8_t scsi_cache_flags(const struct scsi_cmd *cmd)
{
	uint8_t flags = 0;

	if (cmd->op->cdb_len == 6)
		return 0;
	if (cmd->cdb[1] & 0x10)
		flags |= BK_DONT_CACHE;
	if ((cmd->op->usage[1] & 0x08) && (cmd->cdb[1] & 0x08))
		flags |= BK_FUA;
	return flags;
}
