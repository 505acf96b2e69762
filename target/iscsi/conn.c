#include "target/iscsi/conn.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/log.h"
#include "target/iscsi/session.h"
#include "target/iscsi/task.h"
#include "target/iscsi/tmf.h"

/* How long a peer may take to close its side behind our last word. */
#define LINGER_MS 2000
/* How long a PDU waits for buffers before its command is sent away: less than
 * the 5 s in which initiators miss an answer to their ping. */
#define BLOCKED_MS 4000
/* How long a connection may sit on buffers that others wait for: looked at when
 * BLOCKED_MS are over. */
#define STALLED_MS 3000
/* How long the last word itself may take. */
#define LAST_WORD_MS 5000
#define NS_PER_MS    1000000ull
#define NS_PER_S     1000000000ull

/* ---- states: RFC 7143 8.1, with the names of its arrows ---- */

struct conn_transition {
	uint8_t from; /* 1u << enum iscsi_conn_state */
	uint8_t event;
	uint8_t to;
	const char *rfc;
};

#define IN(state) (1u << (state))

static const struct conn_transition conn_transitions[] = {
	{ IN(CONN_S1_FREE), CONN_EV_ACCEPTED, CONN_S3_XPT_UP, "T3" },
	{ IN(CONN_S3_XPT_UP) | IN(CONN_S4_IN_LOGIN), CONN_EV_LOGIN_REQUEST, CONN_S4_IN_LOGIN,
	  "T4" },
	{ IN(CONN_S4_IN_LOGIN), CONN_EV_LOGIN_DONE, CONN_S5_LOGGED_IN, "T5" },
	{ IN(CONN_S4_IN_LOGIN), CONN_EV_LOGIN_FAILED, CONN_S8_CLEANUP_WAIT, "T7" },
	{ IN(CONN_S3_XPT_UP), CONN_EV_CLOSE, CONN_S8_CLEANUP_WAIT, "T6" },
	{ IN(CONN_S4_IN_LOGIN), CONN_EV_CLOSE, CONN_S8_CLEANUP_WAIT, "T7" },
	{ IN(CONN_S5_LOGGED_IN), CONN_EV_CLOSE, CONN_S8_CLEANUP_WAIT, "T15" },
	{ IN(CONN_S5_LOGGED_IN), CONN_EV_LOGOUT, CONN_S6_IN_LOGOUT, "T9" },
	{ IN(CONN_S5_LOGGED_IN), CONN_EV_LOGOUT_REQUESTED, CONN_S7_LOGOUT_REQUESTED, "T11" },
	{ IN(CONN_S7_LOGOUT_REQUESTED), CONN_EV_LOGOUT_REQUESTED, CONN_S7_LOGOUT_REQUESTED, "T12" },
	{ IN(CONN_S7_LOGOUT_REQUESTED), CONN_EV_LOGOUT, CONN_S6_IN_LOGOUT, "T10" },
	{ IN(CONN_S7_LOGOUT_REQUESTED), CONN_EV_CLOSE, CONN_S8_CLEANUP_WAIT, "T18" },
	{ IN(CONN_S6_IN_LOGOUT), CONN_EV_LOGOUT_DONE, CONN_S8_CLEANUP_WAIT, "T13" },
	{ IN(CONN_S6_IN_LOGOUT), CONN_EV_CLOSE, CONN_S8_CLEANUP_WAIT, "T16" },
	{ IN(CONN_S8_CLEANUP_WAIT), CONN_EV_CLOSE, CONN_S8_CLEANUP_WAIT, "M1" },
	{ IN(CONN_S8_CLEANUP_WAIT), CONN_EV_CLEANED, CONN_S1_FREE, "M2" },
};

bool iscsi_conn_event(struct iscsi_conn *conn, enum iscsi_conn_event event)
{
	for (size_t i = 0; i < ARRAY_LEN(conn_transitions); i++) {
		const struct conn_transition *row = &conn_transitions[i];

		if (row->event == event && row->from & IN(conn->state)) {
			conn->state = row->to;
			return true;
		}
	}
	log_peer(LOG_LEVEL_WARNING, "%s: event %d has no place in state S%d", conn->peer_text,
		 (int)event, (int)conn->state);
	if (event != CONN_EV_CLOSE)
		iscsi_conn_close(conn, "the protocol was broken");
	return false;
}

/* ---- deadlines: one timer ---- */

static void drop(struct iscsi_conn *conn, const char *why)
{
	conn->ir->stats.connections_dropped++;
	iscsi_conn_close(conn, why);
}

/* Everything that we sent has reached the peer's TCP. */
static bool all_acknowledged(const struct iscsi_conn *conn)
{
	int queued = 0;

	return ioctl(conn->fd, SIOCOUTQ, &queued) == 0 && queued == 0;
}

static void send_ping(struct iscsi_conn *conn)
{
	struct iscsi_out *out = iscsi_out_get(conn);

	if (!out)
		return;
	conn->ping_ttt = ++conn->session->next_ttt;
	if (conn->ping_ttt == 0 || conn->ping_ttt == ISCSI_TAG_RESERVED)
		conn->ping_ttt = conn->session->next_ttt = 1;
	conn->ping_ns = reactor_now_ns(conn->ir->reactor);
	out->flags = 0;
	out->bhs.hdr.opcode = ISCSI_OP_NOP_IN;
	out->bhs.hdr.flags = ISCSI_FINAL;
	be32_put(&out->bhs.hdr.itt, ISCSI_TAG_RESERVED);
	be32_put(&out->bhs.nop_in.ttt, conn->ping_ttt);
	iscsi_tx_add(conn, &out->tx, ISCSI_TX_OUT);
}

/* The keepalive: any byte of the peer counts as life, and while data flows no
 * ping is sent.  The time to look again in ms. */
static uint64_t keepalive(struct iscsi_conn *conn)
{
	const struct iscsi_limits *limits = &conn->session->limits;
	uint64_t now = reactor_now_ns(conn->ir->reactor);
	uint64_t interval = limits->nop_interval * NS_PER_S;
	uint64_t timeout = limits->nop_timeout * NS_PER_S;

	if (interval == 0)
		return 60000;
	if (conn->ping_ttt != 0 && conn->life_ns > conn->ping_ns)
		conn->ping_ttt = 0;
	if (conn->ping_ttt == 0) {
		if (now - conn->life_ns < interval)
			return (interval - (now - conn->life_ns)) / NS_PER_MS + 1;
		send_ping(conn);
		return timeout / NS_PER_MS + 1;
	}
	if (now - conn->ping_ns < timeout)
		return (timeout - (now - conn->ping_ns)) / NS_PER_MS + 1;
	/* Boot ROMs do not answer a ping; their TCP does.  One that never has
	 * answered and takes what we send is left alone. */
	if (!conn->answers_pings && all_acknowledged(conn)) {
		conn->ping_ttt = 0;
		conn->life_ns = now;
		return interval / NS_PER_MS + 1;
	}
	drop(conn, "no answer to a ping");
	return 0;
}

/*
 * It holds buffers until it takes data or sends some, and does neither, while
 * others wait for buffers.
 */
static bool starves_others(const struct iscsi_conn *conn, uint64_t now)
{
	struct bufpool_stats stats;

	if (now - conn->moved_ns < STALLED_MS * NS_PER_MS)
		return false;
	if (!(conn->poll_out && conn->bytes_held > 0) && !iscsi_tasks_await_data(conn))
		return false;
	bufpool_stats(reactor_bufpool(conn->ir->reactor), &stats);
	return stats.waiting > 0;
}

/* The deadlines of a connection that has logged in. */
static void watch(struct iscsi_conn *conn, uint64_t now)
{
	uint64_t next;

	if (starves_others(conn, now)) {
		drop(conn, "it moves no data while others wait for its buffers");
		return;
	}
	if (conn->rx.blocked && conn->rx.task && now - conn->blocked_ns >= BLOCKED_MS * NS_PER_MS)
		iscsi_task_give_up(conn->rx.task);
	if (conn->closing)
		return;
	next = keepalive(conn);
	if (conn->closing)
		return;
	if (next > BLOCKED_MS &&
	    (conn->rx.blocked || conn->poll_out || iscsi_tasks_await_data(conn)))
		next = BLOCKED_MS;
	reactor_timer_arm(conn->ir->reactor, &conn->timer, next);
}

static void timer_fired(struct reactor_timer *timer)
{
	struct iscsi_conn *conn = container_of(timer, struct iscsi_conn, timer);
	uint64_t now = reactor_now_ns(conn->ir->reactor);

	if (conn->lingering) {
		iscsi_conn_close(conn, NULL);
	} else if (conn->deaf && !conn->logout) {
		drop(conn, "it does not take our last word");
	} else if (conn->logging_in) {
		iscsi_session_cancel(conn);
		iscsi_login_finish(conn, ISCSI_LOGIN_UNAVAILABLE,
				   "the old session's commands do not end");
	} else if (!conn->session) {
		drop(conn, "the login takes too long");
	} else {
		watch(conn, now);
	}
}

void iscsi_conn_watch(struct iscsi_conn *conn)
{
	uint64_t at_ns = reactor_now_ns(conn->ir->reactor) + BLOCKED_MS * NS_PER_MS;

	if (!reactor_timer_armed(&conn->timer) || conn->timer.at_ns > at_ns)
		reactor_timer_arm(conn->ir->reactor, &conn->timer, BLOCKED_MS);
}

/* ---- accept ---- */

static void socket_options(int fd)
{
	unsigned int user_timeout_ms = 60000;
	int on = 1;

	/* A failure of these costs speed or patience, not data. */
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &user_timeout_ms, sizeof(user_timeout_ms));
}

static void gone(struct reactor_work *work);

static struct iscsi_conn *conn_create(struct iscsi_reactor *ir, int fd)
{
	struct iscsi_conn *conn = calloc(1, sizeof(*conn));

	if (!conn)
		return NULL;
	if (reactor_timer_reserve(ir->reactor, 1) != 0) {
		free(conn);
		return NULL;
	}
	conn->has_timer = true;
	conn->ir = ir;
	conn->fd = fd;
	list_init(&conn->tasks);
	list_init(&conn->tx_queue);
	list_init(&conn->quota_wait);
	list_init(&conn->tmfs);
	list_init(&conn->link);
	list_init(&conn->login_link);
	buf_init(&conn->control_buf, conn->control_iov);
	reactor_work_init(&conn->flush, iscsi_conn_flush);
	reactor_work_init(&conn->begin, iscsi_login_done);
	reactor_work_init(&conn->gone, gone);
	reactor_timer_init(&conn->timer, timer_fired);
	iscsi_rx_init(conn);
	return conn;
}

/* Too many that have not logged in: the one that has had the longest time for
 * it makes room, so that a flood of half-open connections keeps nobody out. */
static void make_room(struct iscsi_reactor *ir)
{
	struct list *oldest = ir->logins.next;

	if (oldest == &ir->logins)
		return;
	drop(container_of(oldest, struct iscsi_conn, login_link),
	     "too many connections are logging in");
}

void iscsi_conn_accept(struct iscsi_reactor *ir, int fd, const struct sockaddr_storage *peer,
		       const char *group)
{
	struct iscsi_server *server = ir->server;
	const struct iscsi_server_settings *settings = &iscsi_server_view(server)->server;
	socklen_t len = sizeof(struct sockaddr_storage);
	struct iscsi_conn *conn;

	if (atomic_load(&server->nlogins) >= settings->max_logins)
		make_room(ir);
	if (atomic_load(&server->nconns) >= settings->max_connections ||
	    !(conn = conn_create(ir, fd))) {
		log_peer(LOG_LEVEL_WARNING, "a connection is refused: there are %u already",
			 atomic_load(&server->nconns));
		close(fd);
		return;
	}
	atomic_fetch_add(&server->nconns, 1);
	atomic_fetch_add(&server->nlogins, 1);
	ir->stats.connections++;
	conn->peer = *peer;
	getsockname(fd, (struct sockaddr *)&conn->local, &len);
	iscsi_address_text(peer, conn->peer_text, sizeof(conn->peer_text));
	snprintf(conn->group, sizeof(conn->group), "%s", group);
	socket_options(fd);
	list_add_tail(&ir->conns, &conn->link);
	list_add_tail(&ir->logins, &conn->login_link);
	conn->life_ns = reactor_now_ns(ir->reactor);
	if (!iscsi_conn_event(conn, CONN_EV_ACCEPTED))
		return;
	if (settings->login_timeout > 0)
		reactor_timer_arm(ir->reactor, &conn->timer, settings->login_timeout * 1000ull);
	iscsi_conn_poll_in(conn);
}

/* ---- waiting for input ---- */

static void readable(struct reactor_op *op, int res)
{
	struct iscsi_conn *conn = container_of(op, struct iscsi_conn, op_in);

	(void)res; /* an error shows itself in the receive */
	conn->poll_in = false;
	if (conn->closing)
		iscsi_conn_check_gone(conn);
	else
		iscsi_rx_ready(conn);
}

void iscsi_conn_poll_in(struct iscsi_conn *conn)
{
	if (conn->poll_in || conn->closing)
		return;
	conn->poll_in = true;
	conn->op_in.done = readable;
	io_uring_prep_poll_add(reactor_sqe(conn->ir->reactor, &conn->op_in), conn->fd, POLLIN);
}

void iscsi_conn_pause(struct iscsi_conn *conn)
{
	conn->paused = true;
}

void iscsi_conn_unpause(struct iscsi_conn *conn)
{
	if (!conn->paused)
		return;
	conn->paused = false;
	if (!conn->rx.blocked)
		iscsi_conn_poll_in(conn);
}

/* ---- full feature phase ---- */

void iscsi_conn_logged_in(struct iscsi_conn *conn)
{
	conn->header_digest = conn->session->params.header_digest;
	conn->data_digest = conn->session->params.data_digest;
	list_del(&conn->login_link);
	atomic_fetch_sub(&conn->ir->server->nlogins, 1);
	conn->ir->stats.logins++;
	conn->life_ns = reactor_now_ns(conn->ir->reactor);
	reactor_timer_arm(conn->ir->reactor, &conn->timer,
			  conn->session->limits.nop_interval > 0
				  ? conn->session->limits.nop_interval * 1000ull
				  : 60000);
}

void iscsi_conn_request_logout(struct iscsi_conn *conn, uint16_t seconds)
{
	struct iscsi_out *out;

	if (conn->state != CONN_S5_LOGGED_IN || conn->deaf)
		return;
	out = iscsi_out_get(conn);
	if (!out || !iscsi_conn_event(conn, CONN_EV_LOGOUT_REQUESTED))
		return;
	out->bhs.async.opcode = ISCSI_OP_ASYNC;
	out->bhs.async.flags = ISCSI_FINAL;
	be32_put(&out->bhs.hdr.itt, ISCSI_TAG_RESERVED);
	out->bhs.async.event = ISCSI_ASYNC_LOGOUT_REQUEST;
	be16_put(&out->bhs.async.parameter[2], seconds);
	iscsi_tx_add(conn, &out->tx, ISCSI_TX_OUT);
}

static struct iscsi_out *reject(struct iscsi_conn *conn, enum iscsi_reject_reason reason,
				const char *why)
{
	struct iscsi_out *out;

	conn->ir->stats.rejects++;
	log_peer(LOG_LEVEL_WARNING, "%s: PDU with opcode %02x rejected (%02x): %s", conn->peer_text,
		 conn->rx.hdr[0], (unsigned int)reason, why);
	out = iscsi_out_get(conn);
	if (!out)
		return NULL;
	out->bhs.reject.opcode = ISCSI_OP_REJECT;
	out->bhs.reject.flags = ISCSI_FINAL;
	out->bhs.reject.reason = (uint8_t)reason;
	be32_put(&out->bhs.hdr.itt, ISCSI_TAG_RESERVED);
	memcpy(out->small, conn->rx.hdr, sizeof(out->small));
	out->data_len = sizeof(out->small);
	return out;
}

void iscsi_conn_reject(struct iscsi_conn *conn, enum iscsi_reject_reason reason, const char *why)
{
	struct iscsi_out *out = reject(conn, reason, why);

	if (out)
		iscsi_tx_add(conn, &out->tx, ISCSI_TX_OUT);
}

void iscsi_conn_reject_and_close(struct iscsi_conn *conn, enum iscsi_reject_reason reason,
				 const char *why)
{
	struct iscsi_out *out = reject(conn, reason, why);

	if (out)
		iscsi_conn_last_word(conn, out);
}

/* ---- the end ---- */

void iscsi_conn_last_word(struct iscsi_conn *conn, struct iscsi_out *out)
{
	conn->deaf = true;
	out->flags |= ISCSI_OUT_CLOSE;
	reactor_timer_arm(conn->ir->reactor, &conn->timer, LAST_WORD_MS);
	iscsi_tx_add(conn, &out->tx, ISCSI_TX_OUT);
}

void iscsi_conn_linger(struct iscsi_conn *conn)
{
	if (conn->closing)
		return;
	if (conn->state == CONN_S6_IN_LOGOUT && !iscsi_conn_event(conn, CONN_EV_LOGOUT_DONE))
		return;
	conn->lingering = true;
	shutdown(conn->fd, SHUT_WR);
	reactor_timer_arm(conn->ir->reactor, &conn->timer, LINGER_MS);
	iscsi_conn_poll_in(conn);
}

void iscsi_conn_task_gone(struct iscsi_conn *conn)
{
	struct iscsi_out *out = conn->logout;

	if (conn->closing) {
		iscsi_conn_check_gone(conn);
	} else if (out && conn->nexecuting == 0) {
		conn->logout = NULL;
		iscsi_conn_last_word(conn, out);
	}
}

static void outs_drop(struct iscsi_conn *conn)
{
	struct list *l;

	if (conn->cut.sent > 0 && conn->cut.built.last && conn->cut.built.kind == ISCSI_TX_OUT)
		iscsi_out_put(conn, container_of(conn->cut.built.tx, struct iscsi_out, tx));
	conn->cut.sent = 0;
	while ((l = list_pop(&conn->tx_queue))) {
		struct iscsi_tx *tx = container_of(l, struct iscsi_tx, link);

		if (tx->kind == ISCSI_TX_OUT)
			iscsi_out_put(conn, container_of(tx, struct iscsi_out, tx));
	}
	if (conn->logout)
		iscsi_out_put(conn, conn->logout);
	conn->logout = NULL;
}

/* Commands in a store are waited for, the others go. */
static void tasks_drop(struct iscsi_conn *conn)
{
	list_for_each_safe(l, &conn->tasks) {
		struct iscsi_task *task = container_of(l, struct iscsi_task, conn_link);

		if (task->state == TASK_SEND)
			iscsi_task_free(task);
		else
			iscsi_task_abort(task);
	}
}

void iscsi_conn_close(struct iscsi_conn *conn, const char *why)
{
	struct iscsi_reactor *ir = conn->ir;

	if (conn->closing)
		return;
	if (why)
		log_peer(LOG_LEVEL_INFO, "%s: connection%s%s ends: %s", conn->peer_text,
			 conn->session ? " of " : "",
			 conn->session ? conn->session->params.initiator_name : "", why);
	iscsi_conn_event(conn, CONN_EV_CLOSE);
	conn->closing = true;
	if (conn->logging_in)
		iscsi_session_cancel(conn);
	if (!list_empty(&conn->login_link)) {
		list_del(&conn->login_link);
		atomic_fetch_sub(&ir->server->nlogins, 1);
	}
	reactor_timer_cancel(ir->reactor, &conn->timer);
	reactor_work_cancel(&conn->flush);
	reactor_work_cancel(&conn->resume);
	reactor_work_cancel(&conn->begin);
	shutdown(conn->fd, SHUT_RDWR);
	if (conn->poll_in)
		reactor_cancel(ir->reactor, &conn->op_in);
	if (conn->poll_out)
		reactor_cancel(ir->reactor, &conn->op_out);
	iscsi_tmf_forget(conn);
	outs_drop(conn);
	tasks_drop(conn);
	bufpool_put(reactor_bufpool(ir->reactor), &conn->control_buf);
	if (ir->leftover_owner == conn)
		ir->leftover_owner = NULL;
	iscsi_conn_check_gone(conn);
}

void iscsi_conn_check_gone(struct iscsi_conn *conn)
{
	if (conn->closing && !conn->poll_in && !conn->poll_out && conn->ntasks == 0 &&
	    !conn->msg_busy)
		reactor_defer(conn->ir->reactor, &conn->gone);
}

/* Nothing refers to it any more but its lists. */
static void gone(struct reactor_work *work)
{
	struct iscsi_conn *conn = container_of(work, struct iscsi_conn, gone);
	struct iscsi_reactor *ir = conn->ir;

	iscsi_conn_event(conn, CONN_EV_CLEANED);
	if (conn->session)
		iscsi_session_end(conn->session);
	list_del(&conn->link);
	if (conn->has_timer)
		reactor_timer_release(ir->reactor, 1);
	close(conn->fd);
	if (conn->login)
		iscsi_login_destroy(conn->login);
	if (conn->text)
		iscsi_text_destroy(conn->text);
	free(conn->login_reply);
	free(conn->login_data);
	atomic_fetch_sub(&ir->server->nconns, 1);
	free(conn);
}

/* ---- to another reactor ---- */

static void move_run(struct reactor_msg *msg)
{
	struct iscsi_conn *conn = container_of(msg, struct iscsi_conn, msg);

	conn->msg_busy = false;
	list_add_tail(&conn->ir->conns, &conn->link);
	list_add_tail(&conn->ir->logins, &conn->login_link);
	conn->has_timer = reactor_timer_reserve(conn->ir->reactor, 1) == 0;
	if (conn->has_timer)
		conn->arrived(conn);
	else
		iscsi_conn_close(conn, "no memory for a timer");
}

void iscsi_conn_move(struct iscsi_conn *conn, struct iscsi_reactor *to,
		     void (*arrived)(struct iscsi_conn *conn))
{
	struct iscsi_reactor *from = conn->ir;

	assert(!conn->poll_in && !conn->poll_out && list_empty(&conn->tx_queue));
	assert(conn->ntasks == 0 && from->leftover_owner != conn);
	list_del(&conn->link);
	list_del(&conn->login_link);
	reactor_timer_cancel(from->reactor, &conn->timer);
	reactor_timer_release(from->reactor, 1);
	reactor_work_cancel(&conn->flush);
	reactor_work_cancel(&conn->resume);
	conn->ir = to;
	conn->arrived = arrived;
	conn->msg_busy = true;
	conn->msg.run = move_run;
	reactor_send(to->reactor, &conn->msg);
}
