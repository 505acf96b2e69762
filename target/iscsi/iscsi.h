/*
 * The iSCSI server: what the program (target/main.c, apply.c, control.c) calls.
 *
 *	iscsi_server_create -> set_view (portals listen) -> ... set_view again
 *	-> iscsi_server_stop -> iscsi_server_destroy
 *
 * Threads: every function here is for the control thread, which may wait for
 * the reactors; nothing here waits for a peer longer than it says.
 *
 * Where things are: wire.h the PDUs, keys.c the table of keys, login.c the
 * login, conn.c a connection and its transitions, conn_rx.c and conn_tx.c the
 * way of bytes, pdu_ops.c the table of PDUs, session.c sessions and the
 * command window, task.c SCSI commands, tmf.c task management, portal.c the
 * listeners, server.c this.
 */
#ifndef ISCSI_ISCSI_H
#define ISCSI_ISCSI_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/reactor.h"
#include "target/iscsi/view.h"
#include "target/iscsi/wire.h"
#include "target/scsi/scsi.h"

struct iscsi_server;

/* settings: sizes of pools, taken once. */
int iscsi_server_create(const struct iscsi_server_settings *settings,
			struct reactor *const *reactors, unsigned int nreactors,
			struct iscsi_server **out, struct err *err);

/*
 * A target that may be put into views.  It lives on while a session of it is
 * there; iscsi_target_put() gives up the caller's reference.
 */
struct iscsi_target *iscsi_target_create(struct iscsi_server *server, const char *name,
					 struct scsi_target *scsi);
void iscsi_target_put(struct iscsi_target *target);

/*
 * Takes over a view: opens the portals that are new (fails whole, with the
 * address and the reason, and changes nothing, when one cannot be bound),
 * closes those that are gone, and owns the view from then on.  Returns the old
 * view's memory when no reactor uses it.  Sessions are not touched.
 */
int iscsi_server_set_view(struct iscsi_server *server, struct iscsi_view *view, struct err *err);

/*
 * Asks the sessions of a target to log out (async event 1), waits at most
 * timeout_ms for them, then drops those that are left.  False: a session is
 * there still, as its commands do not end in a store; its target must stay.
 */
bool iscsi_server_end_sessions(struct iscsi_server *server, struct iscsi_target *target,
			       unsigned int timeout_ms);

/*
 * Stops accepting, asks all sessions to log out, finishes what is in flight,
 * drops the rest.  0, or -EBUSY when commands are stuck in a store after
 * timeout_ms (named in the log).
 */
int iscsi_server_stop(struct iscsi_server *server, unsigned int timeout_ms);

/* Only after a stop that returned 0. */
void iscsi_server_destroy(struct iscsi_server *server);

/* ---- for status ---- */

struct iscsi_session_info {
	char initiator_name[ISCSI_NAME_MAX + 1];
	char initiator_alias[ISCSI_NAME_MAX + 1];
	char target_name[ISCSI_NAME_MAX + 1]; /* "" for discovery */
	char peer[64];			      /* "ADDR:PORT", "[ADDR]:PORT" */
	char chap_user[64];
	uint8_t isid[6];
	uint16_t tsih, portal_group_tag;
	unsigned int reactor;
	uint64_t age_s, idle_s;
	uint32_t commands_in_flight, window;
	uint64_t commands, read_bytes, write_bytes;
	bool header_digest, data_digest;
};

/* Calls fn for each session, on the control thread, with copies. */
void iscsi_server_sessions(struct iscsi_server *server,
			   void (*fn)(const struct iscsi_session_info *info, void *arg), void *arg);

struct iscsi_server_stats {
	uint64_t connections, logins, logins_failed, sessions, pdus_in, pdus_out;
	uint64_t bytes_in, bytes_out, digest_errors, rejects, connections_dropped;
	uint32_t connections_now, sessions_now, command_slots, command_slots_used;
};
void iscsi_server_stats(struct iscsi_server *server, struct iscsi_server_stats *out);

#endif
