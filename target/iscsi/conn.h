/*
 * A connection: a socket, its state, and both ways of bytes.
 *
 * Purpose: frames PDUs (conn_rx.c), hands each to its row in pdu_ops.c, sends
 * what comes back (conn_tx.c).  A connection is made by portal.c on the reactor
 * that accepts, moves at most once, at the end of its login, to the reactor of
 * its session (session.c), and lives there to its end.
 *
 * States and transitions are rows in conn.c, named as in RFC 7143 8.1.  An
 * event that has no row in a state closes that connection and nothing else.
 *
 * Ending: iscsi_conn_close() may be called from anywhere on the reactor, at any
 * time and more than once.  It takes the connection out of everything; the
 * memory goes when the last operation and the last command in a store have
 * ended.
 */
#ifndef ISCSI_CONN_H
#define ISCSI_CONN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/reactor.h"
#include "target/iscsi/conn_tx.h"
#include "target/iscsi/login.h"
#include "target/iscsi/text.h"

struct iscsi_reactor;
struct iscsi_session;
struct iscsi_task;

/* RFC 7143 8.1.3, the target's states */
enum iscsi_conn_state {
	CONN_S1_FREE,
	CONN_S3_XPT_UP,
	CONN_S4_IN_LOGIN,
	CONN_S5_LOGGED_IN,
	CONN_S6_IN_LOGOUT,
	CONN_S7_LOGOUT_REQUESTED,
	CONN_S8_CLEANUP_WAIT,
};

enum iscsi_conn_event {
	CONN_EV_ACCEPTED,      /* the transport is up */
	CONN_EV_LOGIN_REQUEST, /* a login PDU came */
	CONN_EV_LOGIN_DONE,    /* its final response was queued */
	CONN_EV_LOGIN_FAILED,
	CONN_EV_LOGOUT_REQUESTED, /* we asked for it: async event 1 */
	CONN_EV_LOGOUT,		  /* a logout PDU came */
	CONN_EV_LOGOUT_DONE,	  /* its response is on the wire */
	CONN_EV_CLOSE,		  /* transport failed, or we end it */
	CONN_EV_CLEANED,	  /* nothing of it is left in flight */
};

/* Longest additional header segments that we take: an extended CDB of 32 bytes
 * (16 more), with some room for one that we only skip. */
#define ISCSI_AHS_MAX 64

/* A transfer at least so long is received straight into its buffer. */
#define ISCSI_RX_BULK 16384u
/* What is received behind it: the next headers. */
#define ISCSI_RX_BULK_NEXT 1024u

/* Answers that may wait to be sent before the connection stops reading, and
 * those at which a peer that sends on without taking any loses it. */
#define ISCSI_CONN_OUTS_MAX   64
#define ISCSI_CONN_OUTS_LIMIT 2048

/*
 * So many answers that it has not taken show that an initiator is behind: the
 * next receive may wait and bring more commands at once.  How long is learned
 * from what a wait has brought: a command for each answer that it had left, and
 * it had nothing more to work on, so the next wait is shorter; else it is
 * longer.  At most batch-us, which the sessions of a reactor share.
 */
#define ISCSI_UNTAKEN_MIN 8

struct iscsi_gather {
	uint32_t ncmds;	       /* that came in this receive */
	uint32_t exp_stat_sn;  /* of the last of them */
	uint32_t hold_us;      /* what has been learned; 0: nothing yet */
	bool held;	       /* the wait for it was */
	uint32_t held_stat_sn; /* exp_stat_sn when it began */
};

enum iscsi_rx_phase {
	ISCSI_RX_HEADER, /* BHS, then AHS and header digest */
	ISCSI_RX_DATA,
	ISCSI_RX_TAIL, /* padding and data digest */
};

struct iscsi_rx {
	uint8_t phase;
	bool blocked; /* waits for buffers, or for the login's session */
	bool bulk;    /* the last PDU went straight into a buffer */
	uint8_t hdr_have, hdr_need, tail_have, tail_need;
	uint32_t data_len;  /* of the PDU */
	uint32_t data_left; /* not received yet */
	uint32_t crc;	    /* of the data so far */
	/* Where data goes: the next entry, an offset in it; what does not fit is
	 * thrown away. */
	const struct iovec *iov;
	uint32_t iovcnt;
	size_t iov_off;
	/* What is there to parse behind the current position: for a look ahead. */
	const uint8_t *in;
	uint32_t in_len;
	uint32_t leftover_off, leftover_len;
	struct iscsi_task *task; /* the PDU's, or NULL */
	const struct iscsi_pdu_op *op;
	uint8_t hdr[ISCSI_BHS_LEN + ISCSI_AHS_MAX + ISCSI_DIGEST_LEN];
	uint8_t tail[3 + ISCSI_DIGEST_LEN];
};

struct iscsi_conn {
	struct iscsi_reactor *ir;
	struct iscsi_session *session; /* NULL before the end of the login */
	int fd;
	uint8_t state; /* enum iscsi_conn_state */
	bool header_digest, data_digest;
	bool poll_in, poll_out; /* op_in, op_out are under way */
	bool closing;		/* only its memory is left */
	bool deaf;		/* the last word is on its way: input is thrown away */
	bool lingering;		/* it has been sent: waits for the peer's end */
	bool paused;		/* too many answers wait to be sent */
	bool logging_in;	/* the session is being made */
	bool reinstates;	/* an old session has been ended for this one */
	bool msg_busy;		/* msg is on its way */
	bool has_timer;		/* its reactor has room for timer */
	bool answers_pings;
	uint16_t cid;
	uint32_t stat_sn;  /* the next one */
	uint32_t ping_ttt; /* of the NOP-In that waits for an answer; 0: none */
	uint32_t nouts;	   /* struct iscsi_out in the queue */
	uint64_t life_ns;  /* when a byte last came or went */
	uint64_t ping_ns;
	struct iscsi_rx rx;
	struct iscsi_gather gather;
	struct list link;	/* iscsi_reactor.conns */
	struct list login_link; /* iscsi_reactor.logins */
	struct list tasks;	/* iscsi_task.conn_link: all of this connection */
	struct list tx_queue;
	struct iscsi_tx_cut cut;
	uint32_t ntasks, nexecuting;
	uint64_t moved_ns;		 /* when data last came or went */
	uint64_t bytes_held;		 /* buffers that wait for this peer, against the quota */
	struct list quota_wait;		 /* iscsi_task.wait_link: above the quota */
	struct iscsi_out *logout;	 /* waits for the commands in a store */
	struct list tmfs;		 /* iscsi_tmf.conn_link: answers that are owed */
	struct iscsi_session *making;	 /* its session, registered and not begun yet */
	struct iscsi_session *waits_for; /* an old session; under the server's lock */
	uint64_t blocked_ns;		 /* since when rx.blocked */
	struct reactor_op op_in, op_out;
	struct reactor_work flush, resume, begin, gone;
	struct reactor_timer timer;
	struct reactor_msg msg;
	void (*arrived)(struct iscsi_conn *conn); /* behind a move */
	struct iscsi_login *login;
	struct iscsi_login_reply *login_reply; /* while the session is made */
	char *login_data;		       /* the data segment of a login PDU */
	struct iscsi_text *text;
	struct buf control_buf; /* the data segment of a text or NOP PDU */
	struct iovec control_iov[BUFPOOL_IOV_MAX];
	struct sockaddr_storage peer, local;
	char peer_text[64]; /* "ADDR:PORT" for log lines */
	char group[64];	    /* name of the portal group that it came in by */
};

/* ---- conn.c ---- */

/* On the accepting reactor; takes the socket.  Closes it when there is no room. */
void iscsi_conn_accept(struct iscsi_reactor *ir, int fd, const struct sockaddr_storage *peer,
		       const char *group);

/* Runs the table of transitions; false: there is no such row, and the
 * connection is being closed. */
bool iscsi_conn_event(struct iscsi_conn *conn, enum iscsi_conn_event event);

/* Ends it; why is for the log and may be NULL when that has been said. */
void iscsi_conn_close(struct iscsi_conn *conn, const char *why);

/* out is the last word: nothing more is read, and the connection ends when it
 * has been sent and the peer has closed its side, or did not for a moment (a
 * close at once could let a reset overtake what was sent). */
void iscsi_conn_last_word(struct iscsi_conn *conn, struct iscsi_out *out);
/* For conn_tx.c: it has been sent. */
void iscsi_conn_linger(struct iscsi_conn *conn);

/* A command or a message of it has ended: whoever waits for that goes on. */
void iscsi_conn_task_gone(struct iscsi_conn *conn);

/* Frees it when nothing of it is in flight any more. */
void iscsi_conn_check_gone(struct iscsi_conn *conn);

/* Looks at its deadlines (login, keepalive, blocked) in time. */
void iscsi_conn_watch(struct iscsi_conn *conn);

/* Waits for input again. */
void iscsi_conn_poll_in(struct iscsi_conn *conn);

/* Stops reading until answers have been sent; iscsi_conn_unpause() when some have. */
void iscsi_conn_pause(struct iscsi_conn *conn);
void iscsi_conn_unpause(struct iscsi_conn *conn);

/* Leaves its reactor and goes on in arrived on another one. */
void iscsi_conn_move(struct iscsi_conn *conn, struct iscsi_reactor *to,
		     void (*arrived)(struct iscsi_conn *conn));

/* Full feature phase begins: digests, keepalive. */
void iscsi_conn_logged_in(struct iscsi_conn *conn);

/* Asks the initiator to log out within seconds (async event 1). */
void iscsi_conn_request_logout(struct iscsi_conn *conn, uint16_t seconds);

/* A PDU that breaks the protocol: its header back in a Reject (11.17). */
void iscsi_conn_reject(struct iscsi_conn *conn, enum iscsi_reject_reason reason, const char *why);
/* The same as the last word. */
void iscsi_conn_reject_and_close(struct iscsi_conn *conn, enum iscsi_reject_reason reason,
				 const char *why);

/* ---- conn_rx.c ---- */

void iscsi_rx_init(struct iscsi_conn *conn);
/* Reads what the socket has. */
void iscsi_rx_ready(struct iscsi_conn *conn);
/* The PDU in hand has to wait for buffers: nothing more is read. */
void iscsi_rx_block(struct iscsi_conn *conn);
/* They have come. */
void iscsi_rx_unblock(struct iscsi_conn *conn);
/* Data of the current PDU goes here; behind its end it is thrown away. */
void iscsi_rx_data_to(struct iscsi_conn *conn, const struct iovec *iov, uint32_t iovcnt,
		      uint32_t off);
/* True when the whole rest of the PDU has been received already: then *data is
 * where its data segment is, for as long as this callback runs. */
bool iscsi_rx_whole(const struct iscsi_conn *conn, const uint8_t **data);

/* ---- pdu_ops.c ---- */

/* How a PDU is dealt with: begin when its header is there, handle when its
 * data is there and right. */
struct iscsi_pdu_op {
	uint8_t opcode;
	const char *name;
	uint8_t phases; /* 1u << enum iscsi_conn_state */
	bool has_cmd_sn;
	bool may_have_data;
	/* May set rx.blocked.  false: dealt with (rejected, ignored, closed):
	 * the data is thrown away and handle is not called. */
	bool (*begin)(struct iscsi_conn *conn, const struct iscsi_bhs *bhs);
	void (*handle)(struct iscsi_conn *conn, const struct iscsi_bhs *bhs);
};

const struct iscsi_pdu_op *iscsi_pdu_op(uint8_t opcode);

/*
 * Judges CmdSN of a non-immediate PDU that is not a SCSI command and takes it
 * (RFC 7143 4.2.2.1).  False: outside of the window or a repeat, to be ignored.
 */
bool iscsi_cmd_sn_take(struct iscsi_conn *conn, const struct iscsi_bhs *bhs);

/* ---- login_conn.c ---- */

void iscsi_conn_login_begin(struct iscsi_conn *conn);
bool iscsi_login_begin(struct iscsi_conn *conn, const struct iscsi_bhs *bhs);
void iscsi_login_handle(struct iscsi_conn *conn, const struct iscsi_bhs *bhs);
/* The login is DONE: its session is made, outside of the receive, as the
 * connection may belong to another reactor from there on. */
void iscsi_login_done(struct reactor_work *work);
/* The session of DONE has been made, or could not be: answers. */
void iscsi_login_finish(struct iscsi_conn *conn, enum iscsi_login_status status, const char *why);

/* ---- tmf.c ---- */

void iscsi_tmf_handle(struct iscsi_conn *conn, const struct iscsi_bhs *bhs);

#endif
