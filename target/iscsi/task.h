/*
 * A SCSI command of an initiator: from its PDU to its last response.
 *
 * A task holds a command slot.  Its life (state):
 *
 *	HELD      came before an earlier CmdSN; waits in session->held
 *	COLLECT   gets its data: immediate, unsolicited, by R2T
 *	BUFFERS   waits for buffers (not for a peer)
 *	EXECUTE   is in scsi_cmd_execute(); ends in scsi_cmd.done
 *	SEND      data and status are on the connection's queue
 *
 * Aborting (task management, the connection's end): a task that executes is
 * waited for and ends silently; any other goes at once.
 *
 * Owner: its connection; its reactor's thread.  Slots come from the reactor's
 * slab and are covered by the session's window.
 */
#ifndef ISCSI_TASK_H
#define ISCSI_TASK_H

#include "target/iscsi/conn.h"
#include "target/scsi/scsi.h"

/* R2Ts of one task that are under way; more may be negotiated, not used. */
#define ISCSI_TASK_R2TS 8

enum iscsi_task_state {
	TASK_HELD,
	TASK_COLLECT,
	TASK_BUFFERS,
	TASK_EXECUTE,
	TASK_SEND,
};

/* A sequence of Data-Out that was asked for. */
struct iscsi_r2t_slot {
	uint32_t ttt;	   /* 0: free */
	uint32_t off, end; /* bytes: the next expected, the end */
	uint32_t data_sn;  /* the next expected */
};

struct iscsi_task {
	struct scsi_cmd cmd;
	struct iscsi_tx tx;
	struct iscsi_conn *conn;
	struct list conn_link; /* iscsi_conn.tasks */
	struct list wait_link; /* iscsi_session.held, iscsi_conn.quota_wait */
	uint32_t itt, cmd_sn;
	uint8_t state;	/* enum iscsi_task_state */
	bool immediate; /* not counted in the window */
	bool in_window;
	bool prepared;
	bool aborted;
	bool early;	 /* prepare has ended it: no data is looked at */
	bool final_seen; /* no unsolicited data any more */
	/* data from the initiator */
	uint32_t want;	      /* bytes to collect */
	uint32_t have;	      /* contiguous from 0, all that has come */
	uint32_t unsolicited; /* the next offset of unsolicited data */
	uint32_t unsolicited_sn;
	struct iscsi_r2t_slot *rx_slot; /* of the Data-Out in hand; NULL: unsolicited */
	uint32_t r2t_next;		/* the next offset to ask for */
	uint32_t r2t_sn;
	uint32_t r2ts_out;
	struct iscsi_r2t_slot r2t[ISCSI_TASK_R2TS];
	/* data to the initiator */
	uint32_t tx_off; /* sent or built so far */
	uint32_t tx_data_sn;
	uint8_t sense[2 + SCSI_SENSE_MAX]; /* 11.4.7.2: its length in front */
	uint8_t sense_len;		   /* of all that; 0: none */
	uint32_t quota;			   /* bytes counted in iscsi_conn.bytes_held */
	struct buf buf;
	struct iovec iov[BUFPOOL_IOV_MAX]; /* last: not cleared for each command */
};

/* ---- for conn_tx.c: the next PDU of a task, but for the numbers ---- */

void iscsi_task_build(struct iscsi_task *task, struct iscsi_tx_built *built);
void iscsi_task_unbuild(struct iscsi_task *task, const struct iscsi_tx_built *built);
bool iscsi_task_wants_r2t(const struct iscsi_task *task);
void iscsi_task_build_r2t(struct iscsi_task *task, struct iscsi_tx_built *built);
void iscsi_task_unbuild_r2t(struct iscsi_task *task, const struct iscsi_tx_built *built);

/* ---- for pdu_ops.c ---- */

bool iscsi_task_begin(struct iscsi_conn *conn, const struct iscsi_bhs *bhs);
void iscsi_task_handle(struct iscsi_conn *conn, const struct iscsi_bhs *bhs);
bool iscsi_data_out_begin(struct iscsi_conn *conn, const struct iscsi_bhs *bhs);
void iscsi_data_out_handle(struct iscsi_conn *conn, const struct iscsi_bhs *bhs);

/* The tasks that came early and whose turn it is now. */
void iscsi_tasks_release_held(struct iscsi_conn *conn);

/* Its last byte is on the wire, or nothing of it will be: gives the slot back. */
void iscsi_task_free(struct iscsi_task *task);

/* Ends it without a response: at once, or, when it executes, as soon as its
 * store is done with it.  One that is answered already is left alone. */
void iscsi_task_abort(struct iscsi_task *task);

/* A part of its response has left: it can only be sent to its end. */
bool iscsi_task_is_answered(const struct iscsi_task *task);

/* It has waited too long for buffers: TASK SET FULL. */
void iscsi_task_give_up(struct iscsi_task *task);

struct iscsi_task *iscsi_task_find(struct iscsi_conn *conn, uint32_t itt);

/* True when one holds buffers for data that the initiator has not sent. */
bool iscsi_tasks_await_data(const struct iscsi_conn *conn);

/* Those that wait for the connection's quota of buffers may go on. */
void iscsi_tasks_release_quota(struct iscsi_conn *conn);

#endif
