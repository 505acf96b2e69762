/*
 * A session: the nexus between an initiator and a target, its command window
 * and its numbers (RFC 7143 4.2.2, 4.4).
 *
 * CmdSN, the window and the nexus are the session's, StatSN is the
 * connection's, so that a session of several connections needs no other shape.
 * It lives on one reactor; its connections are there too.
 *
 * The registry (mutex of the server) knows every session by its name
 * (initiator name, ISID, target, portal group) and its TSIH: for reinstatement,
 * removal of targets and status.
 */
#ifndef ISCSI_SESSION_H
#define ISCSI_SESSION_H

#include "target/iscsi/conn.h"
#include "target/iscsi/params.h"
#include "target/iscsi/server.h"

/* Slots that a new session is promised; more come with use. */
#define ISCSI_WINDOW_START 32u
/* The same once half of all slots are promised; without any a login is refused
 * (0302). */
#define ISCSI_WINDOW_MIN 2u
/* How long a login waits for the old session's commands to end. */
#define ISCSI_REINSTATE_MS 5000u
/* Task management functions under way in one session. */
#define ISCSI_TMFS_MAX 16u

struct iscsi_session {
	struct list link;	   /* iscsi_reactor.sessions */
	struct list registry_link; /* iscsi_server.registry */
	struct iscsi_server *server;
	struct iscsi_reactor *ir;    /* NULL while it is being made */
	struct iscsi_target *target; /* NULL: discovery */
	struct scsi_nexus *nexus;
	struct iscsi_conn *conn; /* the connection; NULL: ending */
	struct iscsi_params params;
	uint8_t isid[6];
	uint16_t tsih, portal_group_tag, relative_port;
	char chap_user[64];
	struct iscsi_limits limits;

	uint32_t exp_cmd_sn;
	uint32_t window;  /* slots promised to it */
	uint32_t in_use;  /* of them */
	struct list held; /* iscsi_task.wait_link, by CmdSN: came early */
	uint32_t ntmfs;
	uint32_t next_ttt;

	/* registry: who waits for its end (under the server's lock) */
	struct iscsi_conn *successor;
	bool ending;
	bool end_msg_busy;
	uint16_t end_ask_s; /* s that it gets to log out; 0: none */
	struct reactor_msg end_msg;
	uint64_t begin_ns;
	uint64_t commands, read_bytes, write_bytes;
};

/* MaxCmdSN: never goes back, as a slot in use is one less in the window. */
static inline uint32_t iscsi_session_max_cmd_sn(const struct iscsi_session *session)
{
	return session->exp_cmd_sn + session->window - session->in_use - 1;
}

/* Makes the session of a login that is DONE; ends in iscsi_login_finish(). */
void iscsi_session_begin(struct iscsi_conn *conn);

/* The login gave up (its socket closed) while it waited for an old session. */
void iscsi_session_cancel(struct iscsi_conn *conn);

/* Its connection is gone with all its commands. */
void iscsi_session_end(struct iscsi_session *session);

/* More slots when they are used up and there are more. */
void iscsi_session_grow(struct iscsi_session *session);

/* Any thread.  Ends the sessions of a target (NULL: all); ask_s: seconds that
 * the initiators get to log out, 0: at once.  The number of sessions. */
unsigned int iscsi_sessions_end(struct iscsi_server *server, struct iscsi_target *target,
				uint16_t ask_s);

/* Any thread. */
unsigned int iscsi_sessions_count(struct iscsi_server *server, const struct iscsi_target *target);

#endif
