/*
 * The way in: bytes to PDUs.
 *
 * One receive takes what the socket has into the reactor's scratch area, all
 * connections in turn the same, so that an idle connection holds no buffer and
 * the area stays warm.  PDUs are parsed in place.  Data that is there as a
 * whole may be used in place; data that is not goes to the buffer of its task,
 * the rest of it is received straight there, and the next headers behind it in
 * the same call.  So nothing of a connection is in the scratch area when its
 * callback returns, with one exception: a connection that has to wait for
 * buffers in the middle of it.  What it could not parse goes to the reactor's
 * leftover area.  While somebody is there or buffers are low, everybody
 * receives no more than the next header or datum ("careful"), so that a second
 * area is never needed.
 */
#include "target/iscsi/conn.h"

#include <errno.h>
#include <sys/socket.h>

#include "base/crc32c.h"
#include "base/log.h"
#include "target/iscsi/session.h"
#include "target/iscsi/task.h"

/* Receives of one connection until the others have their turn. */
#define RX_ROUNDS_MAX 4

/* The shortest wait that is held: what is learned begins here. */
#define HOLD_MIN_US 10

static void rx_init(struct iscsi_rx *rx)
{
	rx->phase = ISCSI_RX_HEADER;
	rx->hdr_have = 0;
	rx->hdr_need = ISCSI_BHS_LEN;
	rx->task = NULL;
	rx->op = NULL;
	rx->iov = NULL;
	rx->iovcnt = 0;
}

void iscsi_rx_data_to(struct iscsi_conn *conn, const struct iovec *iov, uint32_t iovcnt,
		      uint32_t off)
{
	struct iscsi_rx *rx = &conn->rx;

	while (iovcnt > 0 && off >= iov->iov_len) {
		off -= (uint32_t)iov->iov_len;
		iov++;
		iovcnt--;
	}
	rx->iov = iov;
	rx->iovcnt = iovcnt;
	rx->iov_off = off;
}

bool iscsi_rx_whole(const struct iscsi_conn *conn, const uint8_t **data)
{
	const struct iscsi_rx *rx = &conn->rx;
	uint32_t tail = ISCSI_PAD(rx->data_len) + (conn->data_digest ? ISCSI_DIGEST_LEN : 0);

	*data = rx->in;
	return rx->in_len >= rx->data_len && rx->in_len - rx->data_len >= tail;
}

/* Takes len bytes of data that lie at from; copies them unless they already
 * lie where they belong (received straight). */
static void data_take(struct iscsi_conn *conn, const uint8_t *from, uint32_t len, bool copy)
{
	struct iscsi_rx *rx = &conn->rx;

	rx->data_left -= len;
	if (copy && conn->data_digest)
		rx->crc = crc32c_update(rx->crc, from, len);
	while (len > 0 && rx->iovcnt > 0) {
		size_t room = rx->iov->iov_len - rx->iov_off;
		size_t n = len < room ? len : room;
		uint8_t *to = (uint8_t *)rx->iov->iov_base + rx->iov_off;

		if (copy) {
			memcpy(to, from, n);
			from += n;
		} else if (!copy && conn->data_digest) {
			rx->crc = crc32c_update(rx->crc, to, n);
		}
		len -= (uint32_t)n;
		rx->iov_off += n;
		if (rx->iov_off == rx->iov->iov_len) {
			rx->iov++;
			rx->iovcnt--;
			rx->iov_off = 0;
		}
	}
}

/* The bytes of the data segment that are received straight to where they
 * belong; fills iov and says how many entries. */
static uint32_t direct_iov(const struct iscsi_conn *conn, struct iovec *iov, uint32_t max,
			   uint32_t *bytes)
{
	const struct iscsi_rx *rx = &conn->rx;
	uint32_t n = 0, left = rx->data_left;

	*bytes = 0;
	if (rx->phase != ISCSI_RX_DATA)
		return 0;
	for (uint32_t i = 0; i < rx->iovcnt && n < max && left > 0; i++) {
		size_t skip = i == 0 ? rx->iov_off : 0;
		size_t len = rx->iov[i].iov_len - skip;

		if (len > left)
			len = left;
		iov[n].iov_base = (uint8_t *)rx->iov[i].iov_base + skip;
		iov[n++].iov_len = len;
		left -= (uint32_t)len;
		*bytes += (uint32_t)len;
	}
	return n;
}

/* Header complete: its digest, then its row. */
static bool header_digest_ok(struct iscsi_conn *conn)
{
	struct iscsi_rx *rx = &conn->rx;
	uint32_t len = rx->hdr_have - ISCSI_DIGEST_LEN;
	uint32_t crc = crc32c_final(crc32c_update(CRC32C_INIT, rx->hdr, len));

	if (le32_get((const le32 *)(rx->hdr + len)) == crc)
		return true;
	conn->ir->stats.digest_errors++;
	/* RFC 7143 7.8: nothing in the PDU can be trusted, its length either. */
	iscsi_conn_close(conn, "header digest error");
	return false;
}

static uint32_t data_len_max(const struct iscsi_conn *conn)
{
	if (conn->session)
		return conn->session->params.max_recv_data_segment_length;
	return conn->login ? iscsi_login_room(conn->login) : ISCSI_LOGIN_DATA_MAX;
}

/* Judges what every header has; a failure that leaves the stream unusable
 * closes the connection. */
static bool header_judge(struct iscsi_conn *conn, const struct iscsi_bhs *bhs)
{
	struct iscsi_rx *rx = &conn->rx;

	rx->data_len = be24_get(&bhs->hdr.data_segment_len);
	if (rx->data_len > data_len_max(conn)) {
		iscsi_conn_close(conn, "data segment longer than MaxRecvDataSegmentLength");
		return false;
	}
	rx->op = iscsi_pdu_op(bhs->hdr.opcode & ISCSI_OPCODE_MASK);
	if (!conn->session) {
		/* RFC 7143 6.3: nothing but a login request before the login is
		 * done.  Anything else is not answered. */
		if (rx->op && rx->op->phases & 1u << conn->state && bhs->hdr.total_ahs_len == 0)
			return true;
		iscsi_conn_close(conn, "not a login request before the login");
		return false;
	}
	return true;
}

/* Runs the row's begin; what it refuses has its data thrown away. */
static void header_done(struct iscsi_conn *conn)
{
	const struct iscsi_bhs *bhs = (const struct iscsi_bhs *)conn->rx.hdr;
	struct iscsi_rx *rx = &conn->rx;
	bool wanted = false;

	conn->ir->stats.pdus_in++;
	rx->task = NULL;
	rx->iov = NULL;
	rx->iovcnt = 0;
	rx->crc = CRC32C_INIT;
	if (!header_judge(conn, bhs))
		return;
	rx->data_left = rx->data_len;
	rx->tail_have = 0;
	rx->tail_need = 0;
	if (rx->data_len > 0)
		rx->tail_need = (uint8_t)(ISCSI_PAD(rx->data_len) +
					  (conn->data_digest ? ISCSI_DIGEST_LEN : 0));
	rx->phase = ISCSI_RX_DATA;
	if (!rx->op)
		iscsi_conn_reject(conn, ISCSI_REJECT_NOT_SUPPORTED, "unknown opcode");
	else if (!(rx->op->phases & 1u << conn->state))
		iscsi_conn_reject(conn, ISCSI_REJECT_PROTOCOL_ERROR, "not in this phase");
	else if (rx->data_len > 0 && !rx->op->may_have_data)
		iscsi_conn_reject(conn, ISCSI_REJECT_PROTOCOL_ERROR, "a data segment");
	else
		wanted = !rx->op->begin || rx->op->begin(conn, bhs);
	if (!wanted)
		rx->op = NULL;
	rx->bulk = rx->data_len >= ISCSI_RX_BULK && rx->iovcnt > 0;
}

/* Takes header bytes; returns how many. */
static uint32_t feed_header(struct iscsi_conn *conn, const uint8_t *p, uint32_t len)
{
	struct iscsi_rx *rx = &conn->rx;
	uint32_t n = rx->hdr_need - rx->hdr_have;

	if (n > len)
		n = len;
	memcpy(rx->hdr + rx->hdr_have, p, n);
	rx->hdr_have = (uint8_t)(rx->hdr_have + n);
	if (rx->hdr_have < rx->hdr_need)
		return n;
	if (rx->hdr_need == ISCSI_BHS_LEN) {
		const struct iscsi_hdr *hdr = (const struct iscsi_hdr *)rx->hdr;
		uint32_t more = hdr->total_ahs_len * 4u;

		if (more > ISCSI_AHS_MAX) {
			iscsi_conn_close(conn, "additional header segments too long");
			return n;
		}
		if (conn->header_digest)
			more += ISCSI_DIGEST_LEN;
		rx->hdr_need = (uint8_t)(rx->hdr_need + more);
		if (more > 0)
			return n;
	}
	if (conn->header_digest && !header_digest_ok(conn))
		return n;
	rx->in = p + n;
	rx->in_len = len - n;
	header_done(conn);
	return n;
}

static void pdu_done(struct iscsi_conn *conn)
{
	struct iscsi_rx *rx = &conn->rx;

	if (conn->data_digest && rx->data_len > 0) {
		uint32_t pad = ISCSI_PAD(rx->data_len);
		uint32_t crc = crc32c_final(crc32c_update(rx->crc, rx->tail, pad));

		if (le32_get((const le32 *)(rx->tail + pad)) != crc) {
			conn->ir->stats.digest_errors++;
			/* RFC 7143 7.8; at error recovery level 0 the data
			 * cannot be asked for again, so the session recovers. */
			iscsi_conn_reject_and_close(conn, ISCSI_REJECT_DATA_DIGEST,
						    "data digest error");
			return;
		}
	}
	if (rx->op && rx->op->handle)
		rx->op->handle(conn, (const struct iscsi_bhs *)rx->hdr);
	if (conn->closing)
		return;
	rx_init(rx);
	/* Its CmdSN may be the one that commands which came early wait for. */
	if (conn->session)
		iscsi_tasks_release_held(conn);
}

/* Parses len bytes; stops when the connection is being closed or blocked, and
 * returns what it took. */
static uint32_t parse(struct iscsi_conn *conn, const uint8_t *p, uint32_t len)
{
	struct iscsi_rx *rx = &conn->rx;
	uint32_t taken = 0, n;

	while (!conn->closing && !conn->deaf && !rx->blocked) {
		switch (rx->phase) {
		case ISCSI_RX_HEADER:
			if (taken == len)
				return taken;
			taken += feed_header(conn, p + taken, len - taken);
			break;
		case ISCSI_RX_DATA:
			n = len - taken < rx->data_left ? len - taken : rx->data_left;
			data_take(conn, p + taken, n, true);
			taken += n;
			if (rx->data_left > 0)
				return taken;
			rx->phase = ISCSI_RX_TAIL;
			break;
		default:
			n = rx->tail_need - rx->tail_have;
			if (n > len - taken)
				n = len - taken;
			memcpy(rx->tail + rx->tail_have, p + taken, n);
			rx->tail_have = (uint8_t)(rx->tail_have + n);
			taken += n;
			if (rx->tail_have < rx->tail_need)
				return taken;
			pdu_done(conn);
		}
	}
	return taken;
}

/* The same, and stores have taken what they write from there. */
static uint32_t feed(struct iscsi_conn *conn, const uint8_t *p, uint32_t len)
{
	uint32_t taken = parse(conn, p, len);

	reactor_transfers_make(conn->ir->reactor);
	return taken;
}

/* Keeps what could not be parsed; the areas may be the same. */
static void leftover_keep(struct iscsi_conn *conn, const uint8_t *p, uint32_t len)
{
	struct iscsi_reactor *ir = conn->ir;

	if (len == 0)
		return;
	assert(!ir->leftover_owner || ir->leftover_owner == conn);
	assert(len <= REACTOR_SCRATCH);
	memmove(ir->leftover, p, len);
	ir->leftover_owner = conn;
	conn->rx.leftover_off = 0;
	conn->rx.leftover_len = len;
}

/* True when everything that was left over has been parsed. */
static bool leftover_feed(struct iscsi_conn *conn)
{
	struct iscsi_reactor *ir = conn->ir;
	struct iscsi_rx *rx = &conn->rx;

	if (ir->leftover_owner != conn)
		return true;
	rx->leftover_off += feed(conn, ir->leftover + rx->leftover_off,
				 rx->leftover_len - rx->leftover_off);
	if (rx->leftover_off < rx->leftover_len && !conn->closing && !conn->deaf)
		return false;
	ir->leftover_owner = NULL;
	return true;
}

static bool careful(const struct iscsi_conn *conn)
{
	return conn->ir->leftover_owner || bufpool_low(reactor_bufpool(conn->ir->reactor));
}

/* How much may be received behind the direct part. */
static uint32_t scratch_len(const struct iscsi_conn *conn, uint32_t direct)
{
	const struct iscsi_rx *rx = &conn->rx;

	if (careful(conn)) {
		/* Exactly what is needed next, so that nothing is left over. */
		switch (rx->phase) {
		case ISCSI_RX_HEADER: return rx->hdr_need - rx->hdr_have;
		case ISCSI_RX_DATA:
			return direct > 0			 ? 0
			       : rx->data_left < REACTOR_SCRATCH ? rx->data_left
								 : REACTOR_SCRATCH;
		default: return rx->tail_need - rx->tail_have;
		}
	}
	return rx->bulk ? ISCSI_RX_BULK_NEXT : REACTOR_SCRATCH;
}

/* One receive.  False: the socket has no more now, or the connection ends. */
static bool receive(struct iscsi_conn *conn)
{
	uint8_t *scratch = reactor_scratch(conn->ir->reactor);
	struct iovec iov[BUFPOOL_IOV_MAX + 1];
	uint32_t direct, room, taken;
	struct msghdr msg = { .msg_iov = iov };
	ssize_t n;

	msg.msg_iovlen = direct_iov(conn, iov, BUFPOOL_IOV_MAX, &direct);
	room = scratch_len(conn, direct);
	if (room > 0) {
		iov[msg.msg_iovlen].iov_base = scratch;
		iov[msg.msg_iovlen++].iov_len = room;
	}
	n = recvmsg(conn->fd, &msg, MSG_DONTWAIT);
	if (n < 0) {
		if (errno == EAGAIN || errno == EINTR)
			return false;
		iscsi_conn_close(conn, err_name(errno));
		return false;
	}
	if (n == 0) {
		iscsi_conn_close(conn, "the peer closed the connection");
		return false;
	}
	conn->life_ns = reactor_now_ns(conn->ir->reactor);
	conn->ir->stats.bytes_in += (uint64_t)n;
	if (direct > 0) {
		uint32_t got = (uint32_t)n < direct ? (uint32_t)n : direct;

		conn->moved_ns = conn->life_ns;
		data_take(conn, NULL, got, false);
		n -= got;
	}
	taken = feed(conn, scratch, (uint32_t)n);
	if (conn->closing || conn->deaf)
		return false;
	if (conn->logging_in && (uint32_t)n > taken) {
		/* It may change its reactor now, and has nothing to say before
		 * it has our answer. */
		iscsi_conn_close(conn, "data behind the last login request");
		return false;
	}
	if (conn->rx.blocked)
		leftover_keep(conn, scratch + taken, (uint32_t)n - taken);
	return (uint32_t)n == room || room == 0;
}

/* The last word has been said: what comes is thrown away until the end comes. */
static void receive_deaf(struct iscsi_conn *conn)
{
	uint8_t *scratch = reactor_scratch(conn->ir->reactor);
	ssize_t n = recv(conn->fd, scratch, REACTOR_SCRATCH, MSG_DONTWAIT);

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		iscsi_conn_close(conn, NULL);
	else
		iscsi_conn_poll_in(conn);
}

/* A receive is over: whether the next one waits for more, and how long. */
static void gather(struct iscsi_conn *conn)
{
	struct iscsi_gather *g = &conn->gather;
	uint32_t nsessions, untaken, max;

	if (g->ncmds == 0 || conn->closing)
		return;
	nsessions = atomic_load_explicit(&conn->ir->nsessions, memory_order_relaxed);
	max = iscsi_server_view(conn->ir->server)->server.batch_us / (nsessions ? nsessions : 1);
	/* None of these commands has been answered yet, so that StatSN tells
	 * how many answers the initiator had left when the wait began. */
	if (g->held && g->ncmds >= conn->stat_sn - g->held_stat_sn)
		g->hold_us -= g->hold_us / 4;
	else if (g->held)
		g->hold_us += g->hold_us / 4;
	if (g->hold_us < HOLD_MIN_US)
		g->hold_us = HOLD_MIN_US;
	if (g->hold_us > max)
		g->hold_us = max;
	untaken = conn->stat_sn - g->exp_stat_sn;
	g->held = untaken >= ISCSI_UNTAKEN_MIN && untaken <= conn->session->window;
	g->held_stat_sn = g->exp_stat_sn;
	if (g->held)
		reactor_hold(conn->ir->reactor, g->hold_us);
	g->ncmds = 0;
}

void iscsi_rx_ready(struct iscsi_conn *conn)
{
	for (int i = 0; i < RX_ROUNDS_MAX && !conn->deaf; i++) {
		if (conn->rx.blocked || conn->paused || conn->closing)
			return;
		if (!receive(conn))
			break;
	}
	gather(conn);
	if (conn->deaf && !conn->closing)
		receive_deaf(conn);
	else if (!conn->rx.blocked && !conn->paused)
		iscsi_conn_poll_in(conn);
}

static void resume(struct reactor_work *work)
{
	struct iscsi_conn *conn = container_of(work, struct iscsi_conn, resume);

	if (conn->closing || conn->rx.blocked)
		return;
	/* A PDU without data that was blocked has no byte to come. */
	feed(conn, conn->rx.hdr, 0);
	if (!conn->closing && !conn->rx.blocked && leftover_feed(conn))
		iscsi_rx_ready(conn);
}

void iscsi_rx_init(struct iscsi_conn *conn)
{
	reactor_work_init(&conn->resume, resume);
	rx_init(&conn->rx);
}

void iscsi_rx_block(struct iscsi_conn *conn)
{
	conn->rx.blocked = true;
	conn->blocked_ns = reactor_now_ns(conn->ir->reactor);
	iscsi_conn_watch(conn);
}

void iscsi_rx_unblock(struct iscsi_conn *conn)
{
	if (!conn->rx.blocked)
		return;
	conn->rx.blocked = false;
	reactor_defer(conn->ir->reactor, &conn->resume);
}
