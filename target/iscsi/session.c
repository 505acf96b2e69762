#include "target/iscsi/session.h"

#include <assert.h>
#include <stdlib.h>

#include "base/log.h"
#include "target/iscsi/task.h"

/* ---- the registry: every session by its name ---- */

static struct list *bucket(struct iscsi_server *server, const char *initiator_name)
{
	uint32_t hash = 2166136261u;

	for (; *initiator_name; initiator_name++)
		hash = (hash ^ (uint8_t)*initiator_name) * 16777619u;
	return &server->registry[hash % ISCSI_REGISTRY_BUCKETS];
}

/* RFC 7143 4.4.3.1: InitiatorName + ISID, TargetName + TPGT. */
static bool same_name(const struct iscsi_session *session, const struct iscsi_login_facts *facts,
		      const struct iscsi_target *target, uint16_t tag)
{
	return session->target == target && session->portal_group_tag == tag &&
	       memcmp(session->isid, facts->isid, sizeof(session->isid)) == 0 &&
	       strcmp(session->params.initiator_name, facts->params->initiator_name) == 0;
}

static bool tsih_used(struct iscsi_server *server, uint16_t tsih)
{
	for (int i = 0; i < ISCSI_REGISTRY_BUCKETS; i++) {
		list_for_each(l, &server->registry[i])
			if (container_of(l, struct iscsi_session, registry_link)->tsih == tsih)
				return true;
	}
	return false;
}

/* Not 0 (that means a new session), not in use; the caller has the lock. */
static uint16_t new_tsih(struct iscsi_server *server)
{
	do {
		server->last_tsih++;
	} while (server->last_tsih == 0 ||
		 (server->nsessions > 0 && tsih_used(server, server->last_tsih)));
	return server->last_tsih;
}

/* ---- the window ---- */

/* Promises up to want slots of the reactor's; returns how many. */
static uint32_t promise(struct iscsi_reactor *ir, uint32_t want)
{
	uint32_t free = iscsi_slots_free(ir);

	if (want > free)
		want = free;
	ir->slots_promised += want;
	return want;
}

/* A new session gets less when half of the slots are promised already. */
static uint32_t first_window(struct iscsi_reactor *ir, uint32_t depth)
{
	uint32_t want = ISCSI_WINDOW_START;

	if (ir->slots_promised > slab_count(ir->tasks) / 2)
		want = ISCSI_WINDOW_MIN;
	return promise(ir, want < depth ? want : depth);
}

void iscsi_session_grow(struct iscsi_session *session)
{
	struct iscsi_reactor *ir = session->ir;
	uint32_t depth = session->limits.queue_depth, want;

	if (session->window >= depth || session->in_use * 4 < session->window * 3 ||
	    bufpool_low(reactor_bufpool(ir->reactor)))
		return;
	/* What is left when many have much already is for new sessions. */
	if (ir->slots_promised > slab_count(ir->tasks) / 4 * 3)
		return;
	want = session->window < depth - session->window ? session->window
							 : depth - session->window;
	session->window += promise(ir, want);
}

/* ---- a session begins ---- */

static void session_free(struct iscsi_session *session)
{
	if (session->target)
		iscsi_target_put(session->target);
	free(session);
}

static void unregister(struct iscsi_session *session)
{
	struct iscsi_server *server = session->server;

	pthread_mutex_lock(&server->lock);
	list_del(&session->registry_link);
	server->nsessions--;
	pthread_mutex_unlock(&server->lock);
}

/* The session could not begin on its reactor: the login is refused. */
static void give_up(struct iscsi_conn *conn, enum iscsi_login_status status, const char *why)
{
	iscsi_session_cancel(conn);
	iscsi_login_finish(conn, status, why);
}

static bool open_nexus(struct iscsi_session *session, struct iscsi_reactor *ir)
{
	struct scsi_nexus_id id = {
		.portal_group_tag = session->portal_group_tag,
		.relative_port = session->relative_port,
	};

	memcpy(id.initiator_name, session->params.initiator_name, sizeof(id.initiator_name));
	memcpy(id.isid, session->isid, sizeof(id.isid));
	session->nexus = scsi_nexus_open(session->target->scsi, &id, ir->reactor);
	return session->nexus;
}

/* On the session's reactor. */
static void session_arrived(struct iscsi_conn *conn)
{
	struct iscsi_session *session = conn->making;
	struct iscsi_reactor *ir = conn->ir;
	bool ending;

	session->window = session->target ? first_window(ir, session->limits.queue_depth)
					  : ISCSI_WINDOW_START;
	if (session->window == 0) {
		give_up(conn, ISCSI_LOGIN_OUT_OF_RESOURCES, "no command slots are left");
		return;
	}
	if (session->target && !open_nexus(session, ir)) {
		ir->slots_promised -= session->window;
		give_up(conn, ISCSI_LOGIN_OUT_OF_RESOURCES, "no memory for a session");
		return;
	}
	list_add_tail(&ir->sessions, &session->link);
	ir->stats.sessions++;
	session->begin_ns = reactor_now_ns(ir->reactor);
	conn->making = NULL;
	conn->session = session;
	pthread_mutex_lock(&session->server->lock);
	session->ir = ir;
	session->conn = conn;
	ending = session->ending;
	pthread_mutex_unlock(&session->server->lock);
	log_info("%s: %s logged in to %s on reactor %u%s%s", conn->peer_text,
		 session->params.initiator_name,
		 session->target ? session->target->name : "discovery", ir->index,
		 session->params.header_digest ? ", header digest" : "",
		 session->params.data_digest ? ", data digest" : "");
	iscsi_login_finish(conn, ISCSI_LOGIN_OK, NULL);
	if (ending)
		iscsi_conn_close(conn, "the session was ended while it began");
}

static struct iscsi_reactor *least_loaded(struct iscsi_server *server, struct iscsi_reactor *here)
{
	struct iscsi_reactor *best = here;

	for (unsigned int i = 0; i < server->nreactors; i++)
		if (atomic_load(&server->reactor[i]->nsessions) < atomic_load(&best->nsessions))
			best = server->reactor[i];
	return best;
}

/* The session is in the registry: it goes to its reactor. */
static void session_place(struct iscsi_conn *conn)
{
	struct iscsi_session *session = conn->making;
	struct iscsi_reactor *to = conn->ir;

	if (session->target)
		to = least_loaded(session->server, conn->ir);
	if (to != conn->ir &&
	    (!list_empty(&conn->tx_queue) || conn->cut.sent > 0 || conn->poll_out)) {
		/* It sent on without waiting for our last answer; what waits to
		 * be sent belongs to this reactor. */
		to = conn->ir;
	}
	atomic_fetch_add(&to->nsessions, 1);
	if (to == conn->ir)
		session_arrived(conn);
	else
		iscsi_conn_move(conn, to, session_arrived);
}

static struct iscsi_session *session_create(struct iscsi_conn *conn,
					    const struct iscsi_login_facts *facts)
{
	struct iscsi_session *session = calloc(1, sizeof(*session));

	if (!session)
		return NULL;
	list_init(&session->link);
	list_init(&session->registry_link);
	list_init(&session->held);
	session->server = conn->ir->server;
	session->params = *facts->params;
	memcpy(session->isid, facts->isid, sizeof(session->isid));
	session->tsih = facts->tsih;
	session->exp_cmd_sn = facts->cmd_sn;
	snprintf(session->chap_user, sizeof(session->chap_user), "%s", facts->chap_user);
	return session;
}

/* What the view says of the target and the port it came in by. */
static enum iscsi_login_status session_target(struct iscsi_conn *conn,
					      struct iscsi_session *session)
{
	const struct iscsi_view *view = iscsi_server_view(conn->ir->server);
	const struct iscsi_portal_group *group = iscsi_view_group(view, conn->group);
	const struct iscsi_target_view *target;
	const struct iscsi_target_port *port;

	session->limits = view->limits;
	if (session->params.discovery)
		return ISCSI_LOGIN_OK;
	target = iscsi_view_target(view, session->params.target_name);
	port = target && group ? iscsi_target_port(target, group) : NULL;
	if (!port)
		return ISCSI_LOGIN_NOT_FOUND;
	session->limits = target->limits;
	session->portal_group_tag = group->tag;
	session->relative_port = port->relative_port;
	session->target = iscsi_target_get(target->target);
	return ISCSI_LOGIN_OK;
}

static void end_run(struct reactor_msg *msg);

/* Tells a session's reactor to end it; the caller has the lock. */
static void session_tell(struct iscsi_session *session, uint16_t ask_s)
{
	session->ending = true;
	session->end_ask_s = ask_s;
	if (!session->conn || session->end_msg_busy)
		return;
	session->end_msg_busy = true;
	session->end_msg.run = end_run;
	reactor_send(session->ir->reactor, &session->end_msg);
}

/*
 * Puts the session into the registry, or begins to wait for an older one of
 * the same name.  Returns the status of a refusal; *waits when it waits.
 */
static enum iscsi_login_status session_register(struct iscsi_conn *conn,
						struct iscsi_session *session,
						const struct iscsi_login_facts *facts, bool *waits)
{
	struct iscsi_server *server = session->server;
	struct list *list = bucket(server, facts->params->initiator_name);
	struct iscsi_session *old = NULL;

	*waits = false;
	if (session->target) {
		list_for_each(l, list) {
			old = container_of(l, struct iscsi_session, registry_link);
			if (same_name(old, facts, session->target, session->portal_group_tag))
				break;
			old = NULL;
		}
	}
	/* RFC 7143 6.3.1: a TSIH that is not 0 names a session that is there. */
	if (facts->tsih != 0 && !conn->reinstates) {
		if (!old || old->tsih != facts->tsih)
			return ISCSI_LOGIN_NO_SESSION;
		if (old->conn && old->conn->cid != facts->cid)
			return ISCSI_LOGIN_TOO_MANY_CONNECTIONS;
	}
	if (old) {
		if (old->successor || !old->ir)
			return ISCSI_LOGIN_UNAVAILABLE;
		old->successor = conn;
		conn->reinstates = true;
		conn->waits_for = old;
		session_tell(old, 0);
		*waits = true;
		return ISCSI_LOGIN_OK;
	}
	if (session->tsih == 0 || tsih_used(server, session->tsih))
		session->tsih = new_tsih(server);
	list_add_tail(list, &session->registry_link);
	server->nsessions++;
	return ISCSI_LOGIN_OK;
}

void iscsi_session_begin(struct iscsi_conn *conn)
{
	struct iscsi_server *server = conn->ir->server;
	enum iscsi_login_status status;
	struct iscsi_login_facts facts;
	struct iscsi_session *session;
	bool waits;

	iscsi_login_facts(conn->login, &facts);
	session = session_create(conn, &facts);
	if (!session) {
		iscsi_login_finish(conn, ISCSI_LOGIN_OUT_OF_RESOURCES, "no memory");
		return;
	}
	status = session_target(conn, session);
	if (status == ISCSI_LOGIN_OK) {
		pthread_mutex_lock(&server->lock);
		status = session_register(conn, session, &facts, &waits);
		pthread_mutex_unlock(&server->lock);
	}
	if (status != ISCSI_LOGIN_OK) {
		session_free(session);
		iscsi_login_finish(conn, status, "the session cannot begin");
	} else if (waits) {
		log_info("%s: %s logs in again, its old session ends", conn->peer_text,
			 facts.params->initiator_name);
		session_free(session);
		reactor_timer_arm(conn->ir->reactor, &conn->timer, ISCSI_REINSTATE_MS);
	} else {
		conn->making = session;
		session_place(conn);
	}
}

/* The old session is gone: once more from the beginning. */
static void again(struct reactor_msg *msg)
{
	struct iscsi_conn *conn = container_of(msg, struct iscsi_conn, msg);

	conn->msg_busy = false;
	if (conn->closing) {
		iscsi_conn_check_gone(conn);
	} else if (conn->logging_in) {
		reactor_timer_cancel(conn->ir->reactor, &conn->timer);
		iscsi_session_begin(conn);
	}
}

void iscsi_session_cancel(struct iscsi_conn *conn)
{
	struct iscsi_server *server = conn->ir->server;

	pthread_mutex_lock(&server->lock);
	if (conn->waits_for)
		conn->waits_for->successor = NULL;
	conn->waits_for = NULL;
	pthread_mutex_unlock(&server->lock);
	if (conn->making) {
		unregister(conn->making);
		session_free(conn->making);
		conn->making = NULL;
		atomic_fetch_sub(&conn->ir->nsessions, 1);
	}
}

/* ---- a session ends ---- */

static void end_run(struct reactor_msg *msg)
{
	struct iscsi_session *session = container_of(msg, struct iscsi_session, end_msg);
	struct iscsi_server *server = session->server;
	struct iscsi_conn *conn;
	uint16_t ask_s;
	bool reinstated;

	pthread_mutex_lock(&server->lock);
	session->end_msg_busy = false;
	conn = session->conn;
	ask_s = session->end_ask_s;
	reinstated = session->successor;
	pthread_mutex_unlock(&server->lock);
	if (!conn)
		session_free(session);
	else if (ask_s > 0)
		iscsi_conn_request_logout(conn, ask_s);
	else
		iscsi_conn_close(conn, reinstated ? "the initiator logs in again"
						  : "the target ends the session");
}

void iscsi_session_end(struct iscsi_session *session)
{
	struct iscsi_server *server = session->server;
	struct iscsi_reactor *ir = session->ir;
	struct iscsi_conn *successor;
	bool busy;

	assert(session->in_use == 0);
	if (session->nexus)
		scsi_nexus_close(session->nexus);
	list_del(&session->link);
	if (session->target)
		ir->slots_promised -= session->window;
	atomic_fetch_sub(&ir->nsessions, 1);
	pthread_mutex_lock(&server->lock);
	list_del(&session->registry_link);
	server->nsessions--;
	session->conn = NULL;
	successor = session->successor;
	if (successor) {
		successor->waits_for = NULL;
		successor->msg_busy = true;
		successor->msg.run = again;
		reactor_send(successor->ir->reactor, &successor->msg);
	}
	busy = session->end_msg_busy;
	pthread_mutex_unlock(&server->lock);
	/* A message that is on its way finds it without a connection. */
	if (!busy)
		session_free(session);
}

unsigned int iscsi_sessions_end(struct iscsi_server *server, struct iscsi_target *target,
				uint16_t ask_s)
{
	unsigned int n = 0;

	pthread_mutex_lock(&server->lock);
	for (int i = 0; i < ISCSI_REGISTRY_BUCKETS; i++) {
		list_for_each(l, &server->registry[i]) {
			struct iscsi_session *session = container_of(l, struct iscsi_session,
								     registry_link);

			if (target && session->target != target)
				continue;
			session_tell(session, ask_s);
			n++;
		}
	}
	pthread_mutex_unlock(&server->lock);
	return n;
}

unsigned int iscsi_sessions_count(struct iscsi_server *server, const struct iscsi_target *target)
{
	unsigned int n = 0;

	pthread_mutex_lock(&server->lock);
	for (int i = 0; i < ISCSI_REGISTRY_BUCKETS; i++) {
		list_for_each(l, &server->registry[i]) {
			const struct iscsi_session *session = container_of(l, struct iscsi_session,
									   registry_link);

			if (!target || session->target == target)
				n++;
		}
	}
	pthread_mutex_unlock(&server->lock);
	return n;
}
