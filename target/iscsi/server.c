#include "target/iscsi/server.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "target/iscsi/session.h"
#include "target/iscsi/task.h"

/* How often the control thread looks whether sessions have gone. */
#define LOOK_MS 10
/* Answers that may wait in all connections of a reactor beside two each. */
#define OUTS_EXTRA 4096u

/* ---- life ---- */

static void reactor_free(struct iscsi_reactor *ir)
{
	if (!ir)
		return;
	slab_destroy(ir->tasks);
	slab_destroy(ir->outs);
	free(ir->leftover);
	free(ir);
}

static struct iscsi_reactor *reactor_create(struct iscsi_server *server, struct reactor *reactor)
{
	struct iscsi_reactor *ir = calloc(1, sizeof(*ir));
	uint32_t nouts = server->settings.max_connections * 2 + OUTS_EXTRA;

	if (!ir)
		return NULL;
	ir->server = server;
	ir->reactor = reactor;
	ir->index = reactor_index(reactor);
	list_init(&ir->conns);
	list_init(&ir->logins);
	list_init(&ir->sessions);
	list_init(&ir->tmf_parts);
	ir->tasks = slab_create(sizeof(struct iscsi_task), server->settings.command_slots);
	ir->outs = slab_create(sizeof(struct iscsi_out), nouts);
	ir->leftover = malloc(REACTOR_SCRATCH);
	if (ir->tasks && ir->outs && ir->leftover)
		return ir;
	reactor_free(ir);
	return NULL;
}

static void quota_set(void *arg)
{
	struct iscsi_reactor *ir = arg;
	struct bufpool_stats stats;

	bufpool_stats(reactor_bufpool(ir->reactor), &stats);
	/* A quarter: several peers that take nothing leave room for the others. */
	ir->quota_bytes = stats.bytes / 4;
}

int iscsi_server_create(const struct iscsi_server_settings *settings,
			struct reactor *const *reactors, unsigned int nreactors,
			struct iscsi_server **out, struct err *err)
{
	struct iscsi_server *server = calloc(1, sizeof(*server));

	assert(nreactors > 0 && nreactors <= REACTORS_MAX);
	if (!server)
		return err_set(err, ENOMEM, "no memory for the server");
	server->settings = *settings;
	list_init(&server->listeners);
	pthread_mutex_init(&server->lock, NULL);
	for (int i = 0; i < ISCSI_REGISTRY_BUCKETS; i++)
		list_init(&server->registry[i]);
	for (unsigned int i = 0; i < nreactors; i++) {
		server->reactor[i] = reactor_create(server, reactors[i]);
		if (!server->reactor[i]) {
			iscsi_server_destroy(server);
			return err_set(err, ENOMEM,
				       "no memory for %u command slots on each reactor",
				       settings->command_slots);
		}
		server->nreactors++;
		reactor_call(reactors[i], quota_set, server->reactor[i]);
	}
	*out = server;
	return 0;
}

static void view_free(struct iscsi_view *view)
{
	if (!view)
		return;
	for (uint32_t i = 0; i < view->ntargets; i++)
		iscsi_target_put(view->targets[i].target);
	arena_destroy(view->arena);
}

static void on_all(struct iscsi_server *server, void (*fn)(void *arg))
{
	for (unsigned int i = 0; i < server->nreactors; i++)
		reactor_call(server->reactor[i]->reactor, fn, server->reactor[i]);
}

static void nothing(void *arg)
{
	(void)arg;
}

void iscsi_server_destroy(struct iscsi_server *server)
{
	/* Messages of sessions that are gone may be on their way, there and back. */
	for (int i = 0; i < 2; i++)
		on_all(server, nothing);
	iscsi_portals_close(server);
	view_free(atomic_load(&server->view));
	for (unsigned int i = 0; i < server->nreactors; i++)
		reactor_free(server->reactor[i]);
	pthread_mutex_destroy(&server->lock);
	free(server);
}

/* ---- targets and the view ---- */

struct iscsi_target *iscsi_target_create(struct iscsi_server *server, const char *name,
					 struct scsi_target *scsi)
{
	struct iscsi_target *target = calloc(1, sizeof(*target));

	if (!target)
		return NULL;
	atomic_store(&target->refs, 1);
	target->server = server;
	target->scsi = scsi;
	snprintf(target->name, sizeof(target->name), "%s", name);
	return target;
}

void iscsi_target_put(struct iscsi_target *target)
{
	if (atomic_fetch_sub(&target->refs, 1) == 1)
		free(target);
}

int iscsi_server_set_view(struct iscsi_server *server, struct iscsi_view *view, struct err *err)
{
	struct iscsi_view *old;
	int ret = iscsi_portals_prepare(server, view, err);

	if (ret < 0)
		return ret;
	for (uint32_t i = 0; i < view->ntargets; i++)
		iscsi_target_get(view->targets[i].target);
	old = atomic_exchange(&server->view, view);
	iscsi_portals_commit(server);
	/* A reactor uses a view within one callback: when each has run another
	 * one, nobody uses the old view. */
	on_all(server, nothing);
	view_free(old);
	return 0;
}

/* ---- ends ---- */

static void sleep_ms(unsigned int ms)
{
	struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };

	nanosleep(&t, NULL);
}

/* Waits until no session of the target is left; false: timeout_ms are over. */
static bool wait_sessions(struct iscsi_server *server, struct iscsi_target *target,
			  unsigned int timeout_ms)
{
	for (unsigned int t = 0; iscsi_sessions_count(server, target) > 0; t += LOOK_MS) {
		if (t >= timeout_ms)
			return false;
		sleep_ms(LOOK_MS);
	}
	return true;
}

bool iscsi_server_end_sessions(struct iscsi_server *server, struct iscsi_target *target,
			       unsigned int timeout_ms)
{
	if (iscsi_sessions_end(server, target, (uint16_t)((timeout_ms + 999) / 1000)) == 0 ||
	    wait_sessions(server, target, timeout_ms))
		return true;
	iscsi_sessions_end(server, target, 0);
	if (wait_sessions(server, target, ISCSI_REINSTATE_MS))
		return true;
	log_warning("%s: a session does not end, its commands are stuck in a store", target->name);
	return false;
}

/* Ends every connection of a reactor that has no session. */
static void end_logins(void *arg)
{
	struct iscsi_reactor *ir = arg;

	list_for_each_safe(l, &ir->conns) {
		struct iscsi_conn *conn = container_of(l, struct iscsi_conn, link);

		if (!conn->session && !conn->logging_in)
			iscsi_conn_close(conn, "the target stops");
	}
}

static void end_all(void *arg)
{
	struct iscsi_reactor *ir = arg;

	list_for_each_safe(l, &ir->conns)
		iscsi_conn_close(container_of(l, struct iscsi_conn, link), "the target stops");
}

static void name_stuck(void *arg)
{
	struct iscsi_reactor *ir = arg;

	list_for_each(l, &ir->conns) {
		struct iscsi_conn *conn = container_of(l, struct iscsi_conn, link);

		list_for_each(tl, &conn->tasks) {
			struct iscsi_task *task = container_of(tl, struct iscsi_task, conn_link);
			char room[32];

			log_error("%s: %s of LUN %d does not end in its store", conn->peer_text,
				  scsi_cmd_name(&task->cmd, room, sizeof(room)),
				  scsi_lun_number(task->cmd.lun_field));
		}
	}
}

int iscsi_server_stop(struct iscsi_server *server, unsigned int timeout_ms)
{
	unsigned int ask_ms = timeout_ms / 2;

	atomic_store(&server->stopping, true);
	iscsi_portals_close(server);
	on_all(server, end_logins);
	if (iscsi_sessions_end(server, NULL, (uint16_t)((ask_ms + 999) / 1000)) > 0)
		wait_sessions(server, NULL, ask_ms);
	for (unsigned int t = 0; t < timeout_ms - ask_ms; t += LOOK_MS) {
		/* Again each time: one may have been between two reactors. */
		on_all(server, end_all);
		if (atomic_load(&server->nconns) == 0)
			return 0;
		sleep_ms(LOOK_MS);
	}
	on_all(server, name_stuck);
	return -EBUSY;
}

/* ---- status ---- */

struct collect {
	struct iscsi_reactor *ir;
	struct iscsi_session_info *info;
	uint32_t n, max;
	struct iscsi_server_stats stats;
};

static void session_info(const struct iscsi_session *session, struct iscsi_session_info *info)
{
	const struct iscsi_conn *conn = session->conn;
	uint64_t now = reactor_now_ns(session->ir->reactor);

	memset(info, 0, sizeof(*info));
	memcpy(info->initiator_name, session->params.initiator_name, sizeof(info->initiator_name));
	memcpy(info->initiator_alias, session->params.initiator_alias,
	       sizeof(info->initiator_alias));
	memcpy(info->target_name, session->params.target_name, sizeof(info->target_name));
	memcpy(info->chap_user, session->chap_user, sizeof(info->chap_user));
	memcpy(info->isid, session->isid, sizeof(info->isid));
	info->tsih = session->tsih;
	info->portal_group_tag = session->portal_group_tag;
	info->reactor = session->ir->index;
	info->age_s = (now - session->begin_ns) / 1000000000u;
	info->window = session->window;
	info->commands_in_flight = session->in_use;
	info->commands = session->commands;
	info->read_bytes = session->read_bytes;
	info->write_bytes = session->write_bytes;
	info->header_digest = session->params.header_digest;
	info->data_digest = session->params.data_digest;
	if (!conn)
		return;
	memcpy(info->peer, conn->peer_text, sizeof(info->peer));
	info->idle_s = now > conn->life_ns ? (now - conn->life_ns) / 1000000000u : 0;
}

static void collect_sessions(void *arg)
{
	struct collect *c = arg;

	list_for_each(l, &c->ir->sessions) {
		if (c->n == c->max)
			return;
		session_info(container_of(l, struct iscsi_session, link), &c->info[c->n++]);
	}
}

void iscsi_server_sessions(struct iscsi_server *server,
			   void (*fn)(const struct iscsi_session_info *info, void *arg), void *arg)
{
	struct collect c = { .max = iscsi_sessions_count(server, NULL) };

	c.info = calloc(c.max ? c.max : 1, sizeof(*c.info));
	if (!c.info)
		return;
	for (unsigned int i = 0; i < server->nreactors; i++) {
		c.ir = server->reactor[i];
		reactor_call(c.ir->reactor, collect_sessions, &c);
	}
	for (uint32_t i = 0; i < c.n; i++)
		fn(&c.info[i], arg);
	free(c.info);
}

static void collect_stats(void *arg)
{
	struct collect *c = arg;
	const struct iscsi_reactor_stats *from = &c->ir->stats;
	struct iscsi_server_stats *to = &c->stats;

	to->connections += from->connections;
	to->logins += from->logins;
	to->logins_failed += from->logins_failed;
	to->sessions += from->sessions;
	to->pdus_in += from->pdus_in;
	to->pdus_out += from->pdus_out;
	to->bytes_in += from->bytes_in;
	to->bytes_out += from->bytes_out;
	to->digest_errors += from->digest_errors;
	to->rejects += from->rejects;
	to->connections_dropped += from->connections_dropped;
	to->command_slots += slab_count(c->ir->tasks);
	to->command_slots_used += slab_count(c->ir->tasks) - slab_free_count(c->ir->tasks);
}

void iscsi_server_stats(struct iscsi_server *server, struct iscsi_server_stats *out)
{
	struct collect c = { .n = 0 };

	for (unsigned int i = 0; i < server->nreactors; i++) {
		c.ir = server->reactor[i];
		reactor_call(c.ir->reactor, collect_stats, &c);
	}
	*out = c.stats;
	out->connections_now = atomic_load(&server->nconns);
	out->sessions_now = iscsi_sessions_count(server, NULL);
}
