#include "target/iscsi/conn_tx.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/crc32c.h"
#include "target/iscsi/session.h"
#include "target/iscsi/task.h"

/* ---- the queue ---- */

static void want_flush(struct iscsi_conn *conn)
{
	if (!conn->poll_out && !conn->closing)
		reactor_at_flush(conn->ir->reactor, &conn->flush);
}

void iscsi_tx_add(struct iscsi_conn *conn, struct iscsi_tx *tx, enum iscsi_tx_kind kind)
{
	tx->kind = (uint8_t)kind;
	list_add_tail(&conn->tx_queue, &tx->link);
	want_flush(conn);
}

void iscsi_tx_add_first(struct iscsi_conn *conn, struct iscsi_tx *tx, enum iscsi_tx_kind kind)
{
	tx->kind = (uint8_t)kind;
	list_add_head(&conn->tx_queue, &tx->link);
	want_flush(conn);
}

struct iscsi_out *iscsi_out_get(struct iscsi_conn *conn)
{
	struct iscsi_out *out = NULL;

	if (conn->nouts < ISCSI_CONN_OUTS_LIMIT)
		out = slab_get(conn->ir->outs);
	if (!out) {
		iscsi_conn_close(conn, "it takes none of its answers");
		return NULL;
	}
	memset(&out->bhs, 0, sizeof(out->bhs));
	out->flags = ISCSI_OUT_STAT_SN;
	out->data_len = 0;
	out->heap = NULL;
	list_init(&out->tx.link);
	buf_init(&out->buf, out->iov);
	if (++conn->nouts >= ISCSI_CONN_OUTS_MAX)
		iscsi_conn_pause(conn);
	return out;
}

void iscsi_out_put(struct iscsi_conn *conn, struct iscsi_out *out)
{
	bufpool_put(reactor_bufpool(conn->ir->reactor), &out->buf);
	free(out->heap);
	slab_put(conn->ir->outs, out);
	if (--conn->nouts < ISCSI_CONN_OUTS_MAX / 2)
		iscsi_conn_unpause(conn);
}

/* ---- building PDUs ---- */

/* Appends the iovecs of bytes off..off+len of a list. */
static void batch_add_data(struct iscsi_tx_batch *batch, const struct iovec *iov, uint32_t iovcnt,
			   uint32_t off, uint32_t len)
{
	while (iovcnt > 0 && off >= iov->iov_len) {
		off -= (uint32_t)iov->iov_len;
		iov++;
		iovcnt--;
	}
	while (len > 0) {
		size_t n = iov->iov_len - off;

		assert(iovcnt > 0);
		if (n > len)
			n = len;
		batch->iov[batch->niov].iov_base = (uint8_t *)iov->iov_base + off;
		batch->iov[batch->niov++].iov_len = n;
		len -= (uint32_t)n;
		off = 0;
		iov++;
		iovcnt--;
	}
}

/* Where the data of a PDU lies; room is for what is no list yet. */
static const struct iovec *tx_data(struct iscsi_tx *tx, uint8_t opcode, struct iovec *room,
				   uint32_t *iovcnt)
{
	if (tx->kind == ISCSI_TX_OUT) {
		struct iscsi_out *out = container_of(tx, struct iscsi_out, tx);

		*iovcnt = out->buf.iovcnt;
		if (out->buf.iovcnt > 0)
			return out->buf.iov;
		room->iov_base = out->heap ? out->heap : out->small;
		room->iov_len = out->data_len;
	} else {
		struct iscsi_task *task = container_of(tx, struct iscsi_task, tx);

		*iovcnt = task->buf.iovcnt;
		if (opcode == ISCSI_OP_DATA_IN)
			return task->iov;
		room->iov_base = task->sense;
		room->iov_len = sizeof(task->sense);
	}
	*iovcnt = 1;
	return room;
}

static uint32_t data_digest(const struct iscsi_tx_batch *batch, uint32_t first, const uint8_t *pad,
			    uint32_t pad_len)
{
	uint32_t crc = CRC32C_INIT;

	for (uint32_t i = first; i < batch->niov; i++)
		crc = crc32c_update(crc, batch->iov[i].iov_base, batch->iov[i].iov_len);
	return crc32c_final(crc32c_update(crc, pad, pad_len));
}

/* The header is filled: digests, padding, and where all of it lies. */
static void built_finish(struct iscsi_conn *conn, struct iscsi_tx_built *built, bool plain)
{
	struct iscsi_tx_batch *batch = &conn->ir->tx;
	uint32_t pad = ISCSI_PAD(built->data_len), iovcnt, first;
	const struct iovec *iov;
	struct iovec room;

	be24_put(&((struct iscsi_bhs *)built->hdr)->hdr.data_segment_len, built->data_len);
	built->hdr_len = ISCSI_BHS_LEN;
	built->tail_len = 0;
	if (conn->header_digest && !plain) {
		uint32_t crc = crc32c_update(CRC32C_INIT, built->hdr, ISCSI_BHS_LEN);

		le32_put((le32 *)(built->hdr + ISCSI_BHS_LEN), crc32c_final(crc));
		built->hdr_len += ISCSI_DIGEST_LEN;
	}
	batch->iov[batch->niov].iov_base = built->hdr;
	batch->iov[batch->niov++].iov_len = built->hdr_len;
	if (built->data_len > 0) {
		first = batch->niov;
		iov = tx_data(built->tx, built->hdr[0], &room, &iovcnt);
		batch_add_data(batch, iov, iovcnt, built->data_off, built->data_len);
		memset(built->tail, 0, pad);
		built->tail_len = (uint8_t)pad;
		if (conn->data_digest && !plain) {
			le32_put((le32 *)(built->tail + pad),
				 data_digest(batch, first, built->tail, pad));
			built->tail_len += ISCSI_DIGEST_LEN;
		}
	}
	if (built->tail_len > 0) {
		batch->iov[batch->niov].iov_base = built->tail;
		batch->iov[batch->niov++].iov_len = built->tail_len;
	}
	built->bytes = built->hdr_len + built->data_len + built->tail_len;
	batch->bytes += built->bytes;
}

/* The three numbers that every PDU of ours carries (RFC 7143 4.2.2).  One that
 * takes no StatSN shows the next one. */
static void put_numbers(struct iscsi_conn *conn, struct iscsi_bhs *bhs, bool takes_stat_sn)
{
	be32_put(&bhs->target.stat_sn, conn->stat_sn);
	if (takes_stat_sn)
		conn->stat_sn++;
	if (conn->session) {
		be32_put(&bhs->target.exp_cmd_sn, conn->session->exp_cmd_sn);
		be32_put(&bhs->target.max_cmd_sn, iscsi_session_max_cmd_sn(conn->session));
	}
}

/* True when it is sent without digests. */
static bool build_out(struct iscsi_conn *conn, struct iscsi_tx_built *built)
{
	struct iscsi_out *out = container_of(built->tx, struct iscsi_out, tx);
	struct iscsi_bhs *bhs = (struct iscsi_bhs *)built->hdr;

	*bhs = out->bhs;
	put_numbers(conn, bhs, out->flags & ISCSI_OUT_STAT_SN);
	built->data_off = 0;
	built->data_len = out->data_len;
	built->last = true;
	return out->flags & ISCSI_OUT_PLAIN;
}

/* Builds the next PDU of tx; the batch has room for one.  True: it has no
 * more. */
static bool build(struct iscsi_conn *conn, struct iscsi_tx *tx)
{
	struct iscsi_tx_batch *batch = &conn->ir->tx;
	struct iscsi_tx_built *built = &batch->pdu[batch->npdus++];
	struct iscsi_bhs *bhs = (struct iscsi_bhs *)built->hdr;
	bool plain = false;

	built->tx = tx;
	built->kind = tx->kind;
	built->stat_sn = conn->stat_sn;
	built->status = false;
	built->data_len = 0;
	if (tx->kind == ISCSI_TX_OUT) {
		plain = build_out(conn, built);
	} else {
		struct iscsi_task *task = container_of(tx, struct iscsi_task, tx);

		memset(bhs, 0, sizeof(*bhs));
		if (tx->kind == ISCSI_TX_R2T)
			iscsi_task_build_r2t(task, built);
		else
			iscsi_task_build(task, built);
		put_numbers(conn, bhs, built->status);
		/* 11.7.4: StatSN of a Data-In is valid only with status. */
		if (bhs->hdr.opcode == ISCSI_OP_DATA_IN && !built->status)
			be32_put(&bhs->target.stat_sn, 0);
	}
	built_finish(conn, built, plain);
	return built->last;
}

static bool batch_has_room(const struct iscsi_tx_batch *batch)
{
	return batch->npdus < ISCSI_TX_PDUS_MAX && batch->bytes < ISCSI_TX_BYTES_MAX &&
	       batch->niov + BUFPOOL_IOV_MAX + 3 <= ISCSI_TX_IOV_MAX;
}

/* Puts the rest of the PDU that was cut at the front of the batch. */
static void batch_add_cut(struct iscsi_conn *conn)
{
	struct iscsi_tx_batch *batch = &conn->ir->tx;
	struct iscsi_tx_built *built = &batch->pdu[batch->npdus++];
	uint32_t skip = conn->cut.sent, iovcnt;
	const struct iovec *iov;
	struct iovec room;

	*built = conn->cut.built;
	if (skip < built->hdr_len) {
		batch->iov[batch->niov].iov_base = built->hdr + skip;
		batch->iov[batch->niov++].iov_len = built->hdr_len - skip;
		skip = built->hdr_len;
	}
	skip -= built->hdr_len;
	if (skip < built->data_len) {
		iov = tx_data(built->tx, built->hdr[0], &room, &iovcnt);
		batch_add_data(batch, iov, iovcnt, built->data_off + skip, built->data_len - skip);
		skip = built->data_len;
	}
	skip -= built->data_len;
	if (skip < built->tail_len) {
		batch->iov[batch->niov].iov_base = built->tail + skip;
		batch->iov[batch->niov++].iov_len = built->tail_len - skip;
	}
	built->bytes -= conn->cut.sent;
	batch->bytes += built->bytes;
}

static void batch_fill(struct iscsi_conn *conn)
{
	struct iscsi_tx_batch *batch = &conn->ir->tx;

	batch->npdus = 0;
	batch->niov = 0;
	batch->bytes = 0;
	if (conn->cut.sent > 0)
		batch_add_cut(conn);
	while (!list_empty(&conn->tx_queue) && batch_has_room(batch)) {
		struct iscsi_tx *tx = container_of(conn->tx_queue.next, struct iscsi_tx, link);

		if (build(conn, tx))
			list_del(&tx->link);
	}
}

/* ---- after the send ---- */

/* The last PDU of its tx is on the wire. */
static void tx_sent(struct iscsi_conn *conn, const struct iscsi_tx_built *built)
{
	struct iscsi_tx *tx = built->tx;
	struct iscsi_out *out;
	uint8_t flags;

	if (built->kind == ISCSI_TX_R2T)
		return;
	if (built->kind == ISCSI_TX_TASK) {
		iscsi_task_free(container_of(tx, struct iscsi_task, tx));
		return;
	}
	out = container_of(tx, struct iscsi_out, tx);
	flags = out->flags;
	iscsi_out_put(conn, out);
	if (flags & ISCSI_OUT_CLOSE)
		iscsi_conn_linger(conn);
}

/* Takes back what was built and not sent at all, last first. */
static void batch_rollback(struct iscsi_conn *conn, uint32_t from)
{
	struct iscsi_tx_batch *batch = &conn->ir->tx;

	for (uint32_t i = batch->npdus; i-- > from;) {
		struct iscsi_tx_built *built = &batch->pdu[i];

		conn->stat_sn = built->stat_sn;
		if (list_empty(&built->tx->link))
			list_add_head(&conn->tx_queue, &built->tx->link);
		if (built->kind == ISCSI_TX_R2T)
			iscsi_task_unbuild_r2t(container_of(built->tx, struct iscsi_task, tx),
					       built);
		else if (built->kind == ISCSI_TX_TASK)
			iscsi_task_unbuild(container_of(built->tx, struct iscsi_task, tx), built);
	}
}

/* sent bytes of the batch are gone. */
static void batch_sent(struct iscsi_conn *conn, size_t sent)
{
	struct iscsi_tx_batch *batch = &conn->ir->tx;
	bool first_is_cut = conn->cut.sent > 0;
	uint32_t whole = 0;

	while (whole < batch->npdus && sent >= batch->pdu[whole].bytes)
		sent -= batch->pdu[whole++].bytes;
	if (whole < batch->npdus) {
		struct iscsi_tx_built *built = &batch->pdu[whole];
		bool is_cut = first_is_cut && whole == 0;

		batch_rollback(conn, sent > 0 || is_cut ? whole + 1 : whole);
		if (is_cut) {
			conn->cut.sent += (uint32_t)sent;
		} else if (sent > 0) {
			conn->cut.built = *built;
			conn->cut.sent = (uint32_t)sent;
		} else {
			conn->cut.sent = 0;
		}
	} else {
		conn->cut.sent = 0;
	}
	conn->ir->stats.pdus_out += whole;
	for (uint32_t i = 0; i < whole; i++)
		if (batch->pdu[i].last)
			tx_sent(conn, &batch->pdu[i]);
}

static void writable(struct reactor_op *op, int res)
{
	struct iscsi_conn *conn = container_of(op, struct iscsi_conn, op_out);

	(void)res; /* an error shows itself in the next send */
	conn->poll_out = false;
	if (conn->closing)
		iscsi_conn_check_gone(conn);
	else
		iscsi_conn_flush(&conn->flush);
}

static void wait_writable(struct iscsi_conn *conn)
{
	conn->poll_out = true;
	conn->op_out.done = writable;
	io_uring_prep_poll_add(reactor_sqe(conn->ir->reactor, &conn->op_out), conn->fd, POLLOUT);
	if (conn->bytes_held > 0)
		iscsi_conn_watch(conn);
}

/* One send.  False: the socket is full, or the connection ends. */
static bool flush_once(struct iscsi_conn *conn)
{
	struct iscsi_tx_batch *batch = &conn->ir->tx;
	struct msghdr msg = { .msg_iov = batch->iov };
	ssize_t n;
	bool all;

	batch_fill(conn);
	msg.msg_iovlen = batch->niov;
	n = sendmsg(conn->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		const char *why = err_name(errno);

		batch_rollback(conn, conn->cut.sent > 0 ? 1 : 0);
		iscsi_conn_close(conn, why);
		return false;
	}
	if (n < 0)
		n = 0;
	if (n > 0)
		conn->life_ns = conn->moved_ns = reactor_now_ns(conn->ir->reactor);
	conn->ir->stats.bytes_out += (uint64_t)n;
	all = (uint32_t)n == batch->bytes;
	batch_sent(conn, (size_t)n);
	if (conn->closing)
		return false;
	if (!all)
		wait_writable(conn);
	return all;
}

/* Sends of one connection until the others have their turn. */
#define FLUSH_ROUNDS_MAX 8

void iscsi_conn_flush(struct reactor_work *work)
{
	struct iscsi_conn *conn = container_of(work, struct iscsi_conn, flush);

	if (conn->closing || conn->poll_out)
		return;
	for (int i = 0; i < FLUSH_ROUNDS_MAX; i++) {
		if (list_empty(&conn->tx_queue) && conn->cut.sent == 0)
			return;
		if (!flush_once(conn))
			return;
	}
	reactor_at_flush(conn->ir->reactor, &conn->flush);
}
