#include "target/iscsi/task.h"

#include <assert.h>

#include "base/log.h"
#include "target/iscsi/session.h"
#include "target/iscsi/tmf.h"

static struct bufpool *pool_of(const struct iscsi_conn *conn)
{
	return reactor_bufpool(conn->ir->reactor);
}

struct iscsi_task *iscsi_task_find(struct iscsi_conn *conn, uint32_t itt)
{
	list_for_each(l, &conn->tasks) {
		struct iscsi_task *task = container_of(l, struct iscsi_task, conn_link);

		if (task->itt == itt && !task->aborted)
			return task;
	}
	return NULL;
}

/* ---- the end of a task ---- */

static void buffers_put(struct iscsi_task *task)
{
	struct iscsi_conn *conn = task->conn;

	bufpool_put(pool_of(conn), &task->buf);
	if (task->quota > 0) {
		conn->bytes_held -= task->quota;
		task->quota = 0;
		iscsi_tasks_release_quota(conn);
	}
}

void iscsi_task_free(struct iscsi_task *task)
{
	struct iscsi_conn *conn = task->conn;
	bool aborted = task->aborted;

	assert(task->state != TASK_EXECUTE);
	list_del(&task->wait_link);
	list_del(&task->tx.link);
	list_del(&task->conn_link);
	buffers_put(task);
	if (task->in_window)
		conn->session->in_use--;
	if (task->immediate)
		conn->ir->nimmediate--;
	conn->ntasks--;
	slab_put(conn->ir->tasks, task);
	if (aborted)
		iscsi_tmf_look(conn->ir);
	iscsi_conn_task_gone(conn);
}

/* The PDU in hand brings data for it: that is thrown away from here on. */
static void rx_forget(struct iscsi_task *task)
{
	struct iscsi_rx *rx = &task->conn->rx;

	if (rx->task != task)
		return;
	rx->task = NULL;
	rx->op = NULL;
	rx->iovcnt = 0;
	iscsi_rx_unblock(task->conn);
}

bool iscsi_task_is_answered(const struct iscsi_task *task)
{
	const struct iscsi_tx_cut *cut = &task->conn->cut;

	return task->state == TASK_SEND &&
	       (task->tx_off > 0 ||
		(cut->sent > 0 && cut->built.kind == ISCSI_TX_TASK && cut->built.tx == &task->tx));
}

void iscsi_task_abort(struct iscsi_task *task)
{
	switch (task->state) {
	case TASK_SEND: return;
	case TASK_EXECUTE:
		task->aborted = true;
		scsi_cmd_abort(&task->cmd);
		return;
	case TASK_HELD:
		/* Its CmdSN still has to be passed. */
		if (!task->conn->closing) {
			rx_forget(task);
			task->aborted = true;
			return;
		}
		iscsi_task_free(task);
		return;
	default:
		rx_forget(task);
		if (task->prepared)
			scsi_cmd_drop(&task->cmd);
		iscsi_task_free(task);
	}
}

/* ---- the response ---- */

static void put_sense(struct iscsi_task *task)
{
	const struct scsi_cmd *cmd = &task->cmd;

	if (cmd->status != SCSI_CHECK_CONDITION || cmd->sense_len == 0)
		return;
	be16_store(task->sense, cmd->sense_len);
	memcpy(task->sense + 2, cmd->sense, cmd->sense_len);
	task->sense_len = (uint8_t)(2 + cmd->sense_len);
}

static void respond(struct iscsi_task *task)
{
	struct iscsi_conn *conn = task->conn;

	task->state = TASK_SEND;
	list_del(&task->wait_link);
	list_del(&task->tx.link); /* R2Ts that are not sent yet */
	put_sense(task);
	/* Written data has gone where it belongs. */
	if (task->cmd.data_in_len == 0)
		buffers_put(task);
	conn->session->read_bytes += task->cmd.data_in_len;
	conn->session->write_bytes += task->have;
	iscsi_tx_add(conn, &task->tx, ISCSI_TX_TASK);
}

/* Ends a task whose data is not what was asked for. */
static void fail(struct iscsi_task *task, enum scsi_data_fault fault)
{
	rx_forget(task);
	scsi_cmd_data_fault(&task->cmd, fault);
	respond(task);
}

/* What the peer sees of a store that does not answer is a task set that is
 * full: it tries again, as SAM-5 5.3.1 has it. */
void iscsi_task_give_up(struct iscsi_task *task)
{
	if (task->state == TASK_HELD) {
		/* Its CmdSN is not the next one: an answer would leave a gap. */
		iscsi_conn_close(task->conn, "no buffers for a command that came early");
		return;
	}
	log_peer(LOG_LEVEL_WARNING, "%s: no buffers for a command, answered TASK SET FULL",
		 task->conn->peer_text);
	rx_forget(task);
	if (task->prepared)
		scsi_cmd_drop(&task->cmd);
	task->cmd.status = SCSI_TASK_SET_FULL;
	task->cmd.data_in_len = 0;
	respond(task);
}

static void executed(struct scsi_cmd *cmd)
{
	struct iscsi_task *task = container_of(cmd, struct iscsi_task, cmd);

	task->conn->nexecuting--;
	task->state = TASK_SEND;
	if (task->aborted)
		iscsi_task_free(task);
	else
		respond(task);
}

static void execute(struct iscsi_task *task)
{
	task->state = TASK_EXECUTE;
	task->conn->nexecuting++;
	task->cmd.iov = task->iov;
	/* One that was held has got its buffers before it was prepared. */
	if (task->buf.iovcnt > 0)
		task->cmd.iovcnt = task->buf.iovcnt;
	scsi_cmd_execute(&task->cmd, task->want);
}

/* ---- buffers ---- */

/* A connection may have half as much as is free, so that any number of peers
 * that take nothing leaves something for the others. */
/* So much of a transfer is not counted among what waits for its peer: short
 * commands go on while others have filled their half of the pool. */
#define SHORT_MAX 65536u

static enum bufpool_use use_of(uint32_t len)
{
	return len > SHORT_MAX ? BUFPOOL_NEEDS_PEER : BUFPOOL_DRAINS;
}

bool iscsi_tasks_await_data(const struct iscsi_conn *conn)
{
	list_for_each(l, &conn->tasks) {
		const struct iscsi_task *task = container_of(l, struct iscsi_task, conn_link);

		if (task->state == TASK_COLLECT && task->buf.iovcnt > 0)
			return true;
	}
	return false;
}

static bool quota_allows(const struct iscsi_conn *conn, uint32_t len)
{
	uint64_t quota = conn->ir->quota_bytes;
	struct bufpool_stats stats;

	if (conn->bytes_held == 0)
		return true;
	bufpool_stats(pool_of(conn), &stats);
	if (quota > (stats.bytes - stats.bytes_used) / 2)
		quota = (stats.bytes - stats.bytes_used) / 2;
	return conn->bytes_held + len <= quota;
}

static void buffers_ready(struct buf *buf)
{
	struct iscsi_task *task = container_of(buf, struct iscsi_task, buf);

	if (task->want > 0) {
		task->state = TASK_COLLECT;
		task->conn->moved_ns = reactor_now_ns(task->conn->ir->reactor);
		iscsi_conn_watch(task->conn);
		iscsi_tx_add(task->conn, &task->tx, ISCSI_TX_R2T);
	} else {
		execute(task);
	}
}

/* Gets the buffers of a read, or of a write that begins with an R2T: neither
 * keeps the connection from being read. */
static void buffers_get(struct iscsi_task *task)
{
	struct iscsi_conn *conn = task->conn;
	uint32_t len = task->cmd.buf_len;

	task->state = TASK_BUFFERS;
	if (!list_empty(&conn->quota_wait) || !quota_allows(conn, len)) {
		list_add_tail(&conn->quota_wait, &task->wait_link);
		return;
	}
	task->quota = len;
	conn->bytes_held += len;
	if (bufpool_get(pool_of(conn), &task->buf, len, use_of(len), buffers_ready))
		buffers_ready(&task->buf);
}

void iscsi_tasks_release_quota(struct iscsi_conn *conn)
{
	while (!conn->closing && !list_empty(&conn->quota_wait)) {
		struct iscsi_task *task = container_of(conn->quota_wait.next, struct iscsi_task,
						       wait_link);
		struct list rest;

		if (!quota_allows(conn, task->cmd.buf_len))
			return;
		/* buffers_get() queues behind whoever waits; this one is first. */
		list_del(&task->wait_link);
		list_init(&rest);
		list_splice(&rest, &conn->quota_wait);
		buffers_get(task);
		list_splice(&conn->quota_wait, &rest);
	}
}

static void rx_buffers_ready(struct buf *buf)
{
	struct iscsi_task *task = container_of(buf, struct iscsi_task, buf);
	struct iscsi_conn *conn = task->conn;

	iscsi_rx_data_to(conn, task->iov, buf->iovcnt, 0);
	iscsi_rx_unblock(conn);
}

/* Gets the buffers for data that is being received now; reading stops until
 * they are there. */
static void rx_buffers_get(struct iscsi_task *task, bool all_here)
{
	struct iscsi_conn *conn = task->conn;
	uint32_t len = task->prepared ? task->cmd.buf_len : task->want;

	if (bufpool_get(pool_of(conn), &task->buf, len, all_here ? BUFPOOL_DRAINS : use_of(len),
			rx_buffers_ready)) {
		iscsi_rx_data_to(conn, task->iov, task->buf.iovcnt, 0);
	} else {
		iscsi_rx_block(conn);
	}
}

/* ---- on with it ---- */

/* The next step of a task that is in order and whose current PDU is dealt with. */
static void advance(struct iscsi_task *task)
{
	if (task->early) {
		respond(task);
	} else if (task->have < task->want) {
		if (!task->final_seen)
			return;
		if (task->buf.iovcnt == 0)
			buffers_get(task);
		else if (list_empty(&task->tx.link) && iscsi_task_wants_r2t(task))
			iscsi_tx_add(task->conn, &task->tx, ISCSI_TX_R2T);
	} else if (task->want == 0 && task->cmd.buf_len > 0) {
		buffers_get(task);
	} else {
		execute(task);
	}
}

/* Its turn by CmdSN has come.  The number is used up as the slot of the window
 * is, so that MaxCmdSN stays where it is. */
static void prepare(struct iscsi_task *task)
{
	struct iscsi_session *session = task->conn->session;

	session->commands++;
	if (!task->immediate) {
		session->exp_cmd_sn++;
		session->in_use++;
		task->in_window = true;
		iscsi_session_grow(session);
	}
	task->prepared = scsi_cmd_prepare(&task->cmd);
	task->early = !task->prepared;
	task->state = TASK_COLLECT;
	if (task->prepared)
		task->want = task->cmd.data_out_len;
}

void iscsi_tasks_release_held(struct iscsi_conn *conn)
{
	struct iscsi_session *session = conn->session;

	while (!conn->closing && !list_empty(&session->held)) {
		struct iscsi_task *task = container_of(session->held.next, struct iscsi_task,
						       wait_link);

		if (task->cmd_sn != session->exp_cmd_sn)
			return;
		list_del(&task->wait_link);
		if (task->aborted) {
			/* All that is left of it is its number. */
			session->exp_cmd_sn++;
			iscsi_task_free(task);
			continue;
		}
		prepare(task);
		if (task->have > task->want)
			task->have = task->want;
		if (task->buf.iovcnt > 0 && task->buf.len != task->want && !task->early) {
			/* It came early, and its CDB wants another length than
			 * its header said: not worth a second buffer. */
			iscsi_task_give_up(task);
			continue;
		}
		advance(task);
	}
}

/* ---- the command's PDU ---- */

/* 11.2.2.3: the rest of a CDB of more than 16 bytes.  False: not one that we
 * can take. */
static bool take_ahs(struct iscsi_task *task, const struct iscsi_bhs *bhs)
{
	const uint8_t *p = bhs->bytes + ISCSI_BHS_LEN;
	uint32_t left = bhs->hdr.total_ahs_len * 4u;

	while (left >= sizeof(struct iscsi_ahs)) {
		const struct iscsi_ahs *ahs = (const struct iscsi_ahs *)p;
		uint32_t len = be16_get(&ahs->ahs_len), whole = 3 + len + ISCSI_PAD(3 + len);

		if (len == 0 || whole > left)
			return false;
		if (ahs->type == ISCSI_AHS_EXTENDED_CDB) {
			if (len - 1 > SCSI_CDB_MAX - 16 || task->cmd.cdb_len > 16)
				return false;
			memcpy(task->cmd.cdb + 16, p + sizeof(*ahs), len - 1);
			task->cmd.cdb_len = (uint8_t)(16 + len - 1);
		}
		p += whole;
		left -= whole;
	}
	return left == 0;
}

static enum scsi_dir initiator_dir(const struct iscsi_bhs *bhs)
{
	if (bhs->hdr.flags & ISCSI_CMD_WRITE)
		return SCSI_DATA_OUT;
	return bhs->hdr.flags & ISCSI_CMD_READ ? SCSI_DATA_IN : SCSI_NO_DATA;
}

static void task_init(struct iscsi_task *task, struct iscsi_conn *conn, const struct iscsi_bhs *bhs)
{
	const struct iscsi_scsi_cmd *req = &bhs->scsi_cmd;
	struct scsi_cmd *cmd = &task->cmd;

	memset(task, 0, offsetof(struct iscsi_task, iov));
	task->conn = conn;
	list_init(&task->tx.link);
	list_init(&task->wait_link);
	list_add_tail(&conn->tasks, &task->conn_link);
	conn->ntasks++;
	task->itt = be32_get(&req->itt);
	task->cmd_sn = be32_get(&req->cmd_sn);
	task->final_seen = bhs->hdr.flags & ISCSI_FINAL;
	buf_init(&task->buf, task->iov);
	cmd->nexus = conn->session->nexus;
	memcpy(cmd->lun_field, req->lun, sizeof(cmd->lun_field));
	memcpy(cmd->cdb, req->cdb, sizeof(req->cdb));
	cmd->cdb_len = sizeof(req->cdb);
	cmd->attr = bhs->hdr.flags & ISCSI_CMD_ATTR_MASK;
	cmd->initiator_dir = (uint8_t)initiator_dir(bhs);
	cmd->edtl = cmd->initiator_dir == SCSI_NO_DATA ? 0 : be32_get(&req->edtl);
	cmd->done = executed;
}

/* What RFC 7143 11.3 demands of the header beside CmdSN; NULL when it is right. */
static const char *command_judge(const struct iscsi_conn *conn, const struct iscsi_bhs *bhs)
{
	const struct iscsi_params *params = &conn->session->params;
	uint32_t len = conn->rx.data_len;

	if (!conn->session->nexus)
		return "a SCSI command in a discovery session";
	if (bhs->hdr.flags & ISCSI_CMD_WRITE && bhs->hdr.flags & ISCSI_CMD_READ)
		return "a bidirectional command";
	if (be32_get(&bhs->hdr.itt) == ISCSI_TAG_RESERVED)
		return "the reserved task tag";
	if (len > 0 && !(bhs->hdr.flags & ISCSI_CMD_WRITE))
		return "data in a command that writes none";
	if (len > 0 && !params->immediate_data)
		return "immediate data with ImmediateData=No";
	if (len > params->first_burst_length || len > be32_get(&bhs->scsi_cmd.edtl))
		return "more immediate data than allowed";
	if (!(bhs->hdr.flags & ISCSI_FINAL) &&
	    (params->initial_r2t || !(bhs->hdr.flags & ISCSI_CMD_WRITE)))
		return "unsolicited data announced with InitialR2T=Yes";
	return NULL;
}

/* Puts a command that came before an earlier one in its place; false: it is
 * there already. */
static bool hold(struct iscsi_session *session, struct iscsi_task *task)
{
	struct list *at = &session->held;

	list_for_each(l, &session->held) {
		struct iscsi_task *other = container_of(l, struct iscsi_task, wait_link);

		if (other->cmd_sn == task->cmd_sn)
			return false;
		if ((int32_t)(other->cmd_sn - task->cmd_sn) > 0) {
			at = l;
			break;
		}
	}
	list_add_tail(at, &task->wait_link);
	task->state = TASK_HELD;
	task->want = task->cmd.initiator_dir != SCSI_DATA_OUT ? 0
		     : task->cmd.edtl < BUFPOOL_TRANSFER_MAX  ? task->cmd.edtl
							      : BUFPOOL_TRANSFER_MAX;
	return true;
}

/* Where the immediate data goes. */
static void immediate_data_to(struct iscsi_task *task)
{
	struct iscsi_conn *conn = task->conn;
	uint32_t len = conn->rx.data_len;
	bool all_here = len >= task->want;
	const uint8_t *data;

	if (task->early || task->want == 0 || (len == 0 && task->final_seen))
		return;
	if (task->prepared && all_here && task->cmd.write_inline && iscsi_rx_whole(conn, &data)) {
		/* The store takes it from the receive area while it executes. */
		task->iov[0].iov_base = (void *)(uintptr_t)data;
		task->iov[0].iov_len = task->want;
		task->cmd.iovcnt = 1;
		return;
	}
	rx_buffers_get(task, all_here);
}

bool iscsi_task_begin(struct iscsi_conn *conn, const struct iscsi_bhs *bhs)
{
	struct iscsi_session *session = conn->session;
	bool immediate = bhs->hdr.opcode & ISCSI_IMMEDIATE;
	uint32_t ahead = be32_get(&bhs->scsi_cmd.cmd_sn) - session->exp_cmd_sn;
	const char *wrong = command_judge(conn, bhs);
	struct iscsi_task *task;

	/* 4.2.2.1: outside of the window, or a repeat: silently ignored. */
	if (!immediate && ahead >= session->window - session->in_use)
		return false;
	if (wrong) {
		iscsi_conn_reject(conn, ISCSI_REJECT_PROTOCOL_ERROR, wrong);
		if (!immediate && ahead == 0)
			session->exp_cmd_sn++;
		return false;
	}
	if (immediate && iscsi_slots_free(conn->ir) == 0) {
		iscsi_conn_reject(conn, ISCSI_REJECT_TOO_MANY_IMMEDIATE,
				  "too many immediate commands");
		return false;
	}
	task = slab_get(conn->ir->tasks);
	assert(task);
	task_init(task, conn, bhs);
	task->immediate = immediate;
	if (immediate)
		conn->ir->nimmediate++;
	conn->gather.ncmds++;
	/* What the initiator had taken when it sent the command. */
	conn->gather.exp_stat_sn = be32_get(&bhs->scsi_cmd.exp_stat_sn);
	conn->rx.task = task;
	if (!take_ahs(task, bhs)) {
		iscsi_conn_reject_and_close(conn, ISCSI_REJECT_INVALID_PDU_FIELD,
					    "additional header segments");
		return false;
	}
	if (!immediate && ahead > 0) {
		if (!hold(session, task)) {
			conn->rx.task = NULL;
			iscsi_task_free(task);
			return false;
		}
	} else {
		prepare(task);
	}
	immediate_data_to(task);
	return true;
}

void iscsi_task_handle(struct iscsi_conn *conn, const struct iscsi_bhs *bhs)
{
	struct iscsi_task *task = conn->rx.task;

	(void)bhs;
	conn->rx.task = NULL;
	task->have = conn->rx.data_len < task->want ? conn->rx.data_len : task->want;
	task->unsolicited = conn->rx.data_len;
	task->r2t_next = task->have;
	if (task->state != TASK_HELD)
		advance(task);
}

/* ---- Data-Out ---- */

static struct iscsi_task *find_ttt(struct iscsi_conn *conn, uint32_t ttt,
				   struct iscsi_r2t_slot **slot)
{
	/* 0 is that of a free slot. */
	if (ttt == 0)
		return NULL;
	list_for_each(l, &conn->tasks) {
		struct iscsi_task *task = container_of(l, struct iscsi_task, conn_link);

		if (task->r2ts_out == 0 || task->state != TASK_COLLECT)
			continue;
		for (int i = 0; i < ISCSI_TASK_R2TS; i++) {
			if (task->r2t[i].ttt == ttt) {
				*slot = &task->r2t[i];
				return task;
			}
		}
	}
	return NULL;
}

static struct iscsi_task *find_unsolicited(struct iscsi_conn *conn, uint32_t itt)
{
	struct iscsi_task *task = iscsi_task_find(conn, itt);

	if (!task || task->final_seen || (task->state != TASK_COLLECT && task->state != TASK_HELD))
		return NULL;
	return task;
}

/* Judges a Data-Out against what is expected (11.7); a wrong one ends the
 * command, not the connection. */
static bool data_out_judge(struct iscsi_conn *conn, struct iscsi_task *task,
			   const struct iscsi_bhs *bhs, uint32_t off, uint32_t end,
			   uint32_t data_sn)
{
	const struct iscsi_data_out *pdu = &bhs->data_out;
	uint32_t len = conn->rx.data_len;
	enum scsi_data_fault fault = SCSI_DATA_OUT_OF_SEQUENCE;

	if (be32_get(&pdu->itt) == task->itt && be32_get(&pdu->data_sn) == data_sn &&
	    be32_get(&pdu->buffer_off) == off && len <= end - off)
		return true;
	if (be32_get(&pdu->buffer_off) != off)
		fault = SCSI_DATA_AT_WRONG_OFFSET;
	else if (len > end - off)
		fault = SCSI_DATA_AMOUNT_WRONG;
	iscsi_conn_reject(conn, ISCSI_REJECT_PROTOCOL_ERROR, "Data-Out out of sequence");
	/* There may be no room for that answer: then the task is gone as well. */
	if (conn->closing)
		return false;
	if (task->state == TASK_HELD)
		iscsi_conn_close(conn, "Data-Out out of sequence");
	else
		fail(task, fault);
	return false;
}

bool iscsi_data_out_begin(struct iscsi_conn *conn, const struct iscsi_bhs *bhs)
{
	uint32_t ttt = be32_get(&bhs->data_out.ttt), off, end, data_sn;
	struct iscsi_r2t_slot *slot = NULL;
	struct iscsi_task *task;

	if (ttt != ISCSI_TAG_RESERVED)
		task = find_ttt(conn, ttt, &slot);
	else
		task = find_unsolicited(conn, be32_get(&bhs->data_out.itt));
	/* That of a task that has ended may still be under way. */
	if (!task)
		return false;
	if (slot) {
		off = slot->off;
		end = slot->end;
		data_sn = slot->data_sn;
	} else {
		off = task->unsolicited;
		end = conn->session->params.first_burst_length;
		if (end > task->cmd.edtl)
			end = task->cmd.edtl;
		data_sn = task->unsolicited_sn;
	}
	if (!data_out_judge(conn, task, bhs, off, end, data_sn))
		return false;
	conn->rx.task = task;
	task->rx_slot = slot;
	iscsi_rx_data_to(conn, task->iov, task->buf.iovcnt, off);
	return true;
}

void iscsi_data_out_handle(struct iscsi_conn *conn, const struct iscsi_bhs *bhs)
{
	struct iscsi_task *task = conn->rx.task;
	struct iscsi_r2t_slot *slot = task->rx_slot;
	uint32_t len = conn->rx.data_len;
	bool final = bhs->hdr.flags & ISCSI_FINAL;

	conn->moved_ns = conn->life_ns;
	conn->rx.task = NULL;
	if (slot) {
		slot->off += len;
		slot->data_sn++;
		task->have += len;
		if (slot->off == slot->end) {
			slot->ttt = 0;
			task->r2ts_out--;
		} else if (final) {
			/* 11.8: the whole length has to be answered. */
			fail(task, SCSI_DATA_AMOUNT_WRONG);
			return;
		}
	} else {
		task->unsolicited += len;
		task->unsolicited_sn++;
		task->have = task->unsolicited < task->want ? task->unsolicited : task->want;
		task->r2t_next = task->have;
		if (final)
			task->final_seen = true;
	}
	if (task->state == TASK_COLLECT)
		advance(task);
}
