/*
 * The way out of a connection: what waits to be sent, and one gathered send.
 *
 * Whatever has something to send puts its struct iscsi_tx on the connection's
 * queue.  At the end of the reactor's iteration iscsi_conn_flush() builds the
 * PDUs of all of them into one sendmsg(); sequence numbers are given as a PDU
 * is built.  When the socket takes only a part, the PDU that was cut is kept
 * (struct iscsi_tx_cut), what was built behind it is taken back, and the rest
 * waits for the socket.
 *
 * Owner: the connection; its reactor's thread.
 */
#ifndef ISCSI_CONN_TX_H
#define ISCSI_CONN_TX_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/bufpool.h"
#include "base/list.h"
#include "target/iscsi/wire.h"

/* Bounds of one send (SPEED: one gathered send per iteration). */
#define ISCSI_TX_PDUS_MAX  128
#define ISCSI_TX_IOV_MAX   512
#define ISCSI_TX_BYTES_MAX (1u << 20)

struct iscsi_conn;

enum iscsi_tx_kind {
	ISCSI_TX_OUT,  /* struct iscsi_out */
	ISCSI_TX_R2T,  /* struct iscsi_task: requests for data */
	ISCSI_TX_TASK, /* struct iscsi_task: its data and status */
};

struct iscsi_tx {
	struct list link;
	uint8_t kind;
};

enum iscsi_out_flag {
	ISCSI_OUT_STAT_SN = 1u << 0, /* takes a StatSN of its own */
	ISCSI_OUT_CLOSE = 1u << 1,   /* the connection ends behind it */
	ISCSI_OUT_PLAIN = 1u << 2,   /* of the login: digests begin behind it */
};

/* A PDU that is no command's: answers to NOP, text, task management, logout,
 * login; rejects and asynchronous messages. */
struct iscsi_out {
	struct iscsi_tx tx;
	struct iscsi_bhs bhs; /* but for the three SNs */
	uint8_t flags;
	uint32_t data_len;
	struct buf buf; /* holds the data, or nothing */
	uint8_t *heap;	/* holds it when the pool had no buffers to give */
	struct iovec iov[BUFPOOL_IOV_MAX];
	uint8_t small[ISCSI_BHS_LEN]; /* a rejected header */
};

/* One PDU of the batch that is being built. */
struct iscsi_tx_built {
	struct iscsi_tx *tx;   /* of an R2T that was cut it may be gone */
	uint8_t kind;	       /* tx->kind when it was built */
	uint32_t bytes;	       /* of the whole PDU on the wire */
	uint32_t stat_sn;      /* the connection's before it was built */
	uint32_t off, data_sn; /* the task's before it was built */
	uint32_t data_off, data_len;
	uint8_t hdr_len, tail_len;
	bool last;   /* tx has nothing more to send behind it */
	bool status; /* it ended its task: the command window moved */
	uint8_t hdr[ISCSI_BHS_LEN + ISCSI_DIGEST_LEN];
	uint8_t tail[ISCSI_DIGEST_LEN + 3];
};

struct iscsi_tx_batch {
	uint32_t npdus, niov, bytes;
	struct iovec iov[ISCSI_TX_IOV_MAX];
	struct iscsi_tx_built pdu[ISCSI_TX_PDUS_MAX];
};

/* A PDU of which the socket took only the first bytes. */
struct iscsi_tx_cut {
	uint32_t sent; /* bytes of it that are gone; 0: there is none */
	struct iscsi_tx_built built;
};

/* Puts it at the end of the queue, and the connection on the list of those
 * that are flushed in this iteration. */
void iscsi_tx_add(struct iscsi_conn *conn, struct iscsi_tx *tx, enum iscsi_tx_kind kind);
/* Before everything that waits: answers to pings, which must not wait for data. */
void iscsi_tx_add_first(struct iscsi_conn *conn, struct iscsi_tx *tx, enum iscsi_tx_kind kind);
/* A free one of the reactor's; NULL when all are in use: the connection then
 * stops reading (iscsi_conn_pause()). */
struct iscsi_out *iscsi_out_get(struct iscsi_conn *conn);
void iscsi_out_put(struct iscsi_conn *conn, struct iscsi_out *out);
/* Copies its data segment into buffers.  False: there were none; the out is
 * given back and the connection is being closed. */
bool iscsi_out_fill(struct iscsi_conn *conn, struct iscsi_out *out, const char *data, uint32_t len);

struct reactor_work;
void iscsi_conn_flush(struct reactor_work *work);

#endif
