/*
 * The login phase of a connection: login.c judges, this frames, sends and asks
 * session.c for the session.
 */
#include <assert.h>

#include "base/log.h"
#include "target/iscsi/session.h"

void iscsi_conn_login_begin(struct iscsi_conn *conn)
{
	struct iscsi_login_peer peer = {
		.peer = conn->peer,
		.local = conn->local,
		.portal_group = conn->group,
	};

	conn->login = iscsi_login_create(&peer);
	if (!conn->login)
		iscsi_conn_close(conn, "no memory for a login");
}

bool iscsi_login_begin(struct iscsi_conn *conn, const struct iscsi_bhs *bhs)
{
	static const struct iovec none;

	/* 11.12.9: the first one says where to begin. */
	if (conn->state == CONN_S3_XPT_UP)
		conn->stat_sn = be32_get(&bhs->login_req.exp_stat_sn);
	if (!iscsi_conn_event(conn, CONN_EV_LOGIN_REQUEST))
		return false;
	if (!conn->login)
		iscsi_conn_login_begin(conn);
	if (conn->closing)
		return false;
	conn->control_iov[0] = none;
	if (conn->rx.data_len == 0)
		return true;
	conn->login_data = malloc(conn->rx.data_len);
	if (!conn->login_data) {
		iscsi_conn_close(conn, "no memory for a login");
		return false;
	}
	conn->control_iov[0].iov_base = conn->login_data;
	conn->control_iov[0].iov_len = conn->rx.data_len;
	iscsi_rx_data_to(conn, conn->control_iov, 1, 0);
	return true;
}

/* Sends the reply; as the last word when the login has failed. */
static void send_reply(struct iscsi_conn *conn, const struct iscsi_login_reply *reply, bool last)
{
	struct iscsi_out *out = iscsi_out_get(conn);
	struct iscsi_login_facts facts;

	if (!out)
		return;
	iscsi_login_facts(conn->login, &facts);
	out->bhs = reply->bhs;
	if (!iscsi_out_fill(conn, out, reply->data, reply->data_len))
		return;
	/* 11.13.4: only a response that is no refusal counts in StatSN. A login
	 * request is immediate: its CmdSN is still the next one. */
	out->flags = ISCSI_OUT_PLAIN;
	if (reply->status == ISCSI_LOGIN_OK)
		out->flags |= ISCSI_OUT_STAT_SN;
	be32_put(&out->bhs.target.exp_cmd_sn, facts.cmd_sn);
	be32_put(&out->bhs.target.max_cmd_sn, facts.cmd_sn);
	if (last)
		iscsi_conn_last_word(conn, out);
	else
		iscsi_tx_add(conn, &out->tx, ISCSI_TX_OUT);
}

static void login_failed(struct iscsi_conn *conn, const struct iscsi_login_reply *reply)
{
	struct iscsi_login_facts facts;

	conn->ir->stats.logins_failed++;
	iscsi_login_facts(conn->login, &facts);
	log_peer(LOG_LEVEL_WARNING, "%s: login of %s to %s refused (%04x): %s", conn->peer_text,
		 facts.params->initiator_name[0] ? facts.params->initiator_name : "an initiator",
		 facts.params->target_name[0] ? facts.params->target_name : "discovery",
		 (unsigned int)reply->status, reply->why);
	if (!iscsi_conn_event(conn, CONN_EV_LOGIN_FAILED))
		return;
	if (reply->has_response)
		send_reply(conn, reply, true);
	else
		iscsi_conn_close(conn, NULL);
}

void iscsi_login_handle(struct iscsi_conn *conn, const struct iscsi_bhs *bhs)
{
	struct iscsi_login_reply reply;
	struct iscsi_login_facts facts;
	enum iscsi_login_result result;

	memset(&reply, 0, sizeof(reply));
	result = iscsi_login_input(conn->login, iscsi_server_view(conn->ir->server), bhs,
				   conn->login_data, conn->rx.data_len, &reply);
	free(conn->login_data);
	conn->login_data = NULL;
	iscsi_login_facts(conn->login, &facts);
	conn->cid = facts.cid;
	if (conn->state == CONN_S4_IN_LOGIN && conn->ir->server->stopping &&
	    result != ISCSI_LOGIN_FAILED) {
		iscsi_login_refuse(conn->login, ISCSI_LOGIN_UNAVAILABLE, "the target is stopping",
				   &reply);
		result = ISCSI_LOGIN_FAILED;
	}
	if (result == ISCSI_LOGIN_FAILED) {
		login_failed(conn, &reply);
	} else if (result == ISCSI_LOGIN_CONTINUE) {
		send_reply(conn, &reply, false);
	} else {
		conn->login_reply = malloc(sizeof(reply));
		if (!conn->login_reply) {
			iscsi_conn_close(conn, "no memory for a login");
			return;
		}
		*conn->login_reply = reply;
		conn->logging_in = true;
		conn->rx.blocked = true;
		reactor_defer(conn->ir->reactor, &conn->begin);
	}
}

void iscsi_login_done(struct reactor_work *work)
{
	iscsi_session_begin(container_of(work, struct iscsi_conn, begin));
}

void iscsi_login_finish(struct iscsi_conn *conn, enum iscsi_login_status status, const char *why)
{
	struct iscsi_login_reply *reply = conn->login_reply;

	assert(conn->logging_in && reply);
	conn->logging_in = false;
	if (status != ISCSI_LOGIN_OK) {
		iscsi_login_refuse(conn->login, status, why, reply);
		login_failed(conn, reply);
	} else {
		be16_put(&reply->bhs.login_rsp.tsih, conn->session->tsih);
		send_reply(conn, reply, false);
		/* RFC 7143 6: from here on the next PDU is of the full feature
		 * phase, whether the answer has left already or not. */
		if (!conn->closing && iscsi_conn_event(conn, CONN_EV_LOGIN_DONE))
			iscsi_conn_logged_in(conn);
	}
	free(conn->login_reply);
	conn->login_reply = NULL;
	if (!conn->closing) {
		iscsi_login_destroy(conn->login);
		conn->login = NULL;
		iscsi_rx_unblock(conn);
	}
}
