/*
 * The table of PDUs, and the short ones: NOP, text, logout.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/log.h"
#include "target/iscsi/session.h"
#include "target/iscsi/task.h"
#include "target/iscsi/tmf.h"

/* A text or NOP PDU's data is kept in one piece of the pool, so that it lies
 * in one place; longer ones are refused. */
#define CONTROL_DATA_MAX 65536u

bool iscsi_cmd_sn_take(struct iscsi_conn *conn, const struct iscsi_bhs *bhs)
{
	struct iscsi_session *session = conn->session;
	uint32_t ahead = be32_get(&bhs->scsi_cmd.cmd_sn) - session->exp_cmd_sn;

	if (bhs->hdr.opcode & ISCSI_IMMEDIATE)
		return true;
	if (ahead >= session->window - session->in_use)
		return false;
	if (ahead > 0) {
		/* RFC 7143 4.2.2.1: an initiator sends in the order of CmdSN on
		 * a connection; one that left a number out will not fill it. */
		iscsi_conn_close(conn, "a CmdSN was left out");
		return false;
	}
	session->exp_cmd_sn++;
	return true;
}

/* ---- data of text and NOP ---- */

static void control_ready(struct buf *buf)
{
	struct iscsi_conn *conn = container_of(buf, struct iscsi_conn, control_buf);

	iscsi_rx_data_to(conn, conn->control_iov, 1, 0);
	iscsi_rx_unblock(conn);
}

/* A place for the data segment; false: it is longer than we take. */
static bool control_data(struct iscsi_conn *conn)
{
	if (conn->rx.data_len == 0)
		return true;
	if (conn->rx.data_len > CONTROL_DATA_MAX) {
		iscsi_conn_reject(conn, ISCSI_REJECT_PROTOCOL_ERROR, "too much data");
		return false;
	}
	if (bufpool_get(reactor_bufpool(conn->ir->reactor), &conn->control_buf, CONTROL_DATA_MAX,
			BUFPOOL_DRAINS, control_ready))
		iscsi_rx_data_to(conn, conn->control_iov, 1, 0);
	else
		iscsi_rx_block(conn);
	return true;
}

static void control_put(struct iscsi_conn *conn)
{
	bufpool_put(reactor_bufpool(conn->ir->reactor), &conn->control_buf);
}

/* Copies data into buffers of out.  A pool whose buffers all wait for peers has
 * none to give; the answers that keep others alive and let them in do not wait
 * for those. */
static bool out_data(struct iscsi_conn *conn, struct iscsi_out *out, const char *data, uint32_t len)
{
	uint32_t done = 0;

	if (len == 0)
		return true;
	if (!bufpool_get(reactor_bufpool(conn->ir->reactor), &out->buf, len, BUFPOOL_DRAINS,
			 NULL)) {
		bufpool_put(reactor_bufpool(conn->ir->reactor), &out->buf);
		out->heap = len <= CONTROL_DATA_MAX ? malloc(len) : NULL;
		if (!out->heap)
			return false;
		memcpy(out->heap, data, len);
		out->data_len = len;
		return true;
	}
	for (uint32_t i = 0; i < out->buf.iovcnt; i++) {
		memcpy(out->iov[i].iov_base, data + done, out->iov[i].iov_len);
		done += (uint32_t)out->iov[i].iov_len;
	}
	out->data_len = len;
	return true;
}

bool iscsi_out_fill(struct iscsi_conn *conn, struct iscsi_out *out, const char *data, uint32_t len)
{
	if (out_data(conn, out, data, len))
		return true;
	iscsi_out_put(conn, out);
	iscsi_conn_close(conn, "no buffers for an answer");
	return false;
}

/* ---- NOP: 11.18, 11.19 ---- */

static bool nop_begin(struct iscsi_conn *conn, const struct iscsi_bhs *bhs)
{
	bool immediate = bhs->hdr.opcode & ISCSI_IMMEDIATE;

	/* Without a tag nobody waits for an answer: it must be immediate. */
	if (be32_get(&bhs->hdr.itt) == ISCSI_TAG_RESERVED && !immediate) {
		iscsi_conn_reject(conn, ISCSI_REJECT_PROTOCOL_ERROR, "NOP-Out without a tag");
		return false;
	}
	return iscsi_cmd_sn_take(conn, bhs) && control_data(conn);
}

static void nop_handle(struct iscsi_conn *conn, const struct iscsi_bhs *bhs)
{
	uint32_t len = conn->rx.data_len, xmit;
	struct iscsi_out *out;

	if (be32_get(&bhs->nop_out.ttt) != ISCSI_TAG_RESERVED) {
		conn->answers_pings = true;
		conn->ping_ttt = 0;
	}
	if (be32_get(&bhs->hdr.itt) != ISCSI_TAG_RESERVED) {
		out = iscsi_out_get(conn);
		if (!out)
			return;
		xmit = conn->session->params.max_xmit_data_segment_length;
		out->bhs.hdr.opcode = ISCSI_OP_NOP_IN;
		out->bhs.hdr.flags = ISCSI_FINAL;
		memcpy(out->bhs.hdr.lun, bhs->hdr.lun, sizeof(bhs->hdr.lun));
		out->bhs.hdr.itt = bhs->hdr.itt;
		be32_put(&out->bhs.nop_in.ttt, ISCSI_TAG_RESERVED);
		if (iscsi_out_fill(conn, out, conn->control_iov[0].iov_base,
				   len < xmit ? len : xmit))
			iscsi_tx_add_first(conn, &out->tx, ISCSI_TX_OUT);
	}
	control_put(conn);
}

/* ---- text: 11.10 ---- */

static bool text_begin(struct iscsi_conn *conn, const struct iscsi_bhs *bhs)
{
	return iscsi_cmd_sn_take(conn, bhs) && control_data(conn);
}

static struct iscsi_text *text_of(struct iscsi_conn *conn)
{
	struct iscsi_session *session = conn->session;
	struct iscsi_text_peer peer = {
		.peer = conn->peer,
		.local = conn->local,
		.portal_group = conn->group,
		.chap_user = session->chap_user,
		.params = &session->params,
	};

	if (!conn->text)
		conn->text = iscsi_text_create(&peer);
	return conn->text;
}

static void text_handle(struct iscsi_conn *conn, const struct iscsi_bhs *bhs)
{
	struct iscsi_text *text = text_of(conn);
	struct iscsi_text_reply reply;
	struct iscsi_out *out;

	if (!text) {
		iscsi_conn_close(conn, "no memory for a text exchange");
		return;
	}
	memset(&reply, 0, sizeof(reply));
	iscsi_text_input(text, iscsi_server_view(conn->ir->server), bhs,
			 conn->rx.data_len > 0 ? conn->control_iov[0].iov_base : NULL,
			 conn->rx.data_len, &reply);
	if (reply.reject) {
		iscsi_conn_reject(conn, reply.reject, "text request");
	} else {
		out = iscsi_out_get(conn);
		if (out) {
			out->bhs = reply.bhs;
			if (iscsi_out_fill(conn, out, reply.data, reply.data_len))
				iscsi_tx_add(conn, &out->tx, ISCSI_TX_OUT);
		}
	}
	control_put(conn);
}

/* ---- logout: 11.14, 11.15 ---- */

static bool logout_begin(struct iscsi_conn *conn, const struct iscsi_bhs *bhs)
{
	return iscsi_cmd_sn_take(conn, bhs);
}

static uint8_t logout_judge(const struct iscsi_conn *conn, const struct iscsi_bhs *bhs)
{
	uint8_t reason = bhs->logout_req.reason & 0x7f;

	if (reason == ISCSI_LOGOUT_SESSION)
		return ISCSI_LOGOUT_CLOSED;
	if (reason == ISCSI_LOGOUT_RECOVERY)
		return ISCSI_LOGOUT_NO_RECOVERY;
	if (reason != ISCSI_LOGOUT_CONNECTION)
		return ISCSI_LOGOUT_FAILED;
	return be16_get(&bhs->logout_req.cid) == conn->cid ? ISCSI_LOGOUT_CLOSED
							   : ISCSI_LOGOUT_NO_CID;
}

/* Commands that wait for data or buffers will not get them any more. */
static void abandon_waiting(struct iscsi_conn *conn)
{
	list_for_each_safe(l, &conn->tasks) {
		struct iscsi_task *task = container_of(l, struct iscsi_task, conn_link);

		if (task->state != TASK_EXECUTE && task->state != TASK_SEND)
			iscsi_task_abort(task);
	}
}

static void logout_handle(struct iscsi_conn *conn, const struct iscsi_bhs *bhs)
{
	uint8_t response = logout_judge(conn, bhs);
	struct iscsi_out *out = iscsi_out_get(conn);

	if (!out)
		return;
	out->bhs.logout_rsp.opcode = ISCSI_OP_LOGOUT_RSP;
	out->bhs.logout_rsp.flags = ISCSI_FINAL;
	out->bhs.logout_rsp.response = response;
	out->bhs.hdr.itt = bhs->hdr.itt;
	be16_put(&out->bhs.logout_rsp.time2wait, (uint16_t)conn->session->params.default_time2wait);
	if (response != ISCSI_LOGOUT_CLOSED) {
		iscsi_tx_add(conn, &out->tx, ISCSI_TX_OUT);
		return;
	}
	if (!iscsi_conn_event(conn, CONN_EV_LOGOUT)) {
		iscsi_out_put(conn, out);
		return;
	}
	log_info("%s: %s logs out", conn->peer_text, conn->session->params.initiator_name);
	abandon_waiting(conn);
	conn->deaf = true;
	conn->logout = out;
	iscsi_conn_task_gone(conn);
}

/* ---- task management: tmf.c ---- */

static bool tmf_begin(struct iscsi_conn *conn, const struct iscsi_bhs *bhs)
{
	return iscsi_cmd_sn_take(conn, bhs);
}

/* ---- SNACK: 11.16, of error recovery levels above 0 ---- */

static bool snack_begin(struct iscsi_conn *conn, const struct iscsi_bhs *bhs)
{
	(void)bhs;
	iscsi_conn_reject(conn, ISCSI_REJECT_SNACK, "SNACK at error recovery level 0");
	return false;
}

/* ---- the table ---- */

#define PHASE(state) (1u << (state))
#define LOGIN_PHASES (PHASE(CONN_S3_XPT_UP) | PHASE(CONN_S4_IN_LOGIN))
#define FULL_PHASES  (PHASE(CONN_S5_LOGGED_IN) | PHASE(CONN_S7_LOGOUT_REQUESTED))

static const struct iscsi_pdu_op pdu_ops[] = {
	{ ISCSI_OP_NOP_OUT, "NOP-Out", FULL_PHASES, true, true, nop_begin, nop_handle },
	{ ISCSI_OP_SCSI_CMD, "SCSI Command", FULL_PHASES, true, true, iscsi_task_begin,
	  iscsi_task_handle },
	{ ISCSI_OP_TMF_REQ, "Task Management", FULL_PHASES, true, false, tmf_begin,
	  iscsi_tmf_handle },
	{ ISCSI_OP_LOGIN_REQ, "Login", LOGIN_PHASES, false, true, iscsi_login_begin,
	  iscsi_login_handle },
	{ ISCSI_OP_TEXT_REQ, "Text", FULL_PHASES, true, true, text_begin, text_handle },
	{ ISCSI_OP_DATA_OUT, "Data-Out", FULL_PHASES, false, true, iscsi_data_out_begin,
	  iscsi_data_out_handle },
	{ ISCSI_OP_LOGOUT_REQ, "Logout", FULL_PHASES, true, false, logout_begin, logout_handle },
	{ ISCSI_OP_SNACK, "SNACK", FULL_PHASES, false, false, snack_begin, NULL },
};

const struct iscsi_pdu_op *iscsi_pdu_op(uint8_t opcode)
{
	/* Those that carry data come first, where it counts. */
	if (opcode == ISCSI_OP_SCSI_CMD)
		return &pdu_ops[1];
	for (size_t i = 0; i < ARRAY_LEN(pdu_ops); i++)
		if (pdu_ops[i].opcode == opcode)
			return &pdu_ops[i];
	return NULL;
}
