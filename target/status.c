/*
 * What `quintain status` shows, as JSON (docs/control.md lists the members).
 *
 * Everything is copied on the control thread; members are only ever added, so
 * that scripts go on to work.
 */
#include "target/daemon.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "target/clock.h"
#include "target/control.h"
#include "target/pool_run.h"
#include "version.h"

static void add_text(json_t *object, const char *name, const char *text)
{
	json_object_set_new(object, name, control_text(text));
}

static void add_number(json_t *object, const char *name, uint64_t value)
{
	json_object_set_new(object, name, json_integer((json_int_t)value));
}

/* A new array at a name of answer; it belongs to answer. */
static json_t *add_array(json_t *answer, const char *name)
{
	json_t *array = json_array();

	json_object_set_new(answer, name, array);
	return array;
}

static json_t *add_object(json_t *array)
{
	json_t *object = json_object();

	json_array_append_new(array, object);
	return object;
}

static void add_portals(const struct daemon *daemon, json_t *answer)
{
	const struct iscsi_view *view = daemon->running.view;
	json_t *array = add_array(answer, "portals");
	char address[64];

	for (uint32_t i = 0; i < view->ngroups; i++) {
		const struct iscsi_portal_group *group = &view->groups[i];

		for (uint32_t k = 0; k < group->nportals; k++) {
			json_t *portal = add_object(array);

			iscsi_address_text(&group->portals[k].listen, address, sizeof(address));
			add_text(portal, "address", address);
			add_text(portal, "advertise", group->portals[k].advertise);
			add_text(portal, "portal_group", group->name);
			add_number(portal, "tag", group->tag);
		}
	}
}

static void add_targets(const struct daemon *daemon, json_t *answer)
{
	json_t *array = add_array(answer, "targets");

	list_for_each(link, &daemon->running.targets) {
		const struct target_run *run = container_of(link, struct target_run, link);
		json_t *target = add_object(array), *luns, *groups;

		add_text(target, "name", run->config->name);
		add_text(target, "alias", run->config->alias);
		groups = add_array(target, "portal_groups");
		for (const struct config_target_port *p = run->config->ports; p; p = p->next)
			json_array_append_new(groups, control_text(p->group->name));
		luns = add_array(target, "luns");
		for (uint32_t i = 0; i < run->nmap; i++) {
			json_t *lun = add_object(luns);

			add_number(lun, "number", run->map[i].number);
			add_text(lun, "name", run->map[i].lun->config->name);
		}
	}
}

static void add_luns(const struct daemon *daemon, json_t *answer)
{
	json_t *array = add_array(answer, "luns");

	list_for_each(link, &daemon->running.luns) {
		const struct lun_run *run = container_of(link, struct lun_run, link);
		json_t *lun = add_object(array);
		struct scsi_lun_stats stats;

		scsi_lun_stats(run->scsi, &stats);
		add_text(lun, "name", run->config->name);
		add_text(lun, "path", run->config->backing.path);
		add_text(lun, "volume", run->config->backing.volume);
		add_text(lun, "state", stats.ready ? "ready" : "not-ready");
		add_text(lun, "problem", run->problem[0] ? run->problem : NULL);
		add_number(lun, "size_bytes", stats.size_bytes);
		add_number(lun, "block_size", stats.block_size);
		add_number(lun, "reads", stats.reads);
		add_number(lun, "writes", stats.writes);
		add_number(lun, "read_bytes", stats.read_bytes);
		add_number(lun, "write_bytes", stats.write_bytes);
		add_number(lun, "flushes", stats.flushes);
		add_number(lun, "unmaps", stats.unmaps);
		add_number(lun, "others", stats.others);
		add_number(lun, "errors", stats.errors);
		add_number(lun, "read_errors", stats.read_errors);
		add_number(lun, "write_errors", stats.write_errors);
	}
}

static void add_pools(const struct daemon *daemon, json_t *answer)
{
	json_t *array = add_array(answer, "pools");

	list_for_each(link, &daemon->running.pools) {
		const struct pool_run *run = container_of(link, struct pool_run, link);
		const char *problem = pool_run_problem(run);
		struct pool_info info = { .why_read_only = NULL };
		json_t *pool = add_object(array);

		if (!problem)
			bk_pool_info(run->pool, &info);
		add_text(pool, "name", run->name);
		add_text(pool, "path", run->path);
		add_text(pool, "state",
			 problem	  ? "not-open"
			 : info.read_only ? "read-only"
					  : "open");
		add_text(pool, "problem",
			 problem	  ? problem
			 : info.read_only ? info.why_read_only
					  : NULL);
		add_number(pool, "size_bytes", info.len);
		add_number(pool, "used_bytes", info.used);
		add_number(pool, "available_bytes", info.available);
		add_number(pool, "mapped_bytes", info.mapped);
		add_number(pool, "stored_bytes", info.stored);
		add_number(pool, "memory_bytes", info.memory);
		add_number(pool, "volumes", info.nvolumes);
	}
}

static void add_session(const struct iscsi_session_info *info, void *arg)
{
	json_t *session = add_object(arg);
	char isid[13];

	for (size_t i = 0; i < 6; i++)
		snprintf(isid + 2 * i, 3, "%02x", info->isid[i]);
	add_text(session, "initiator", info->initiator_name);
	add_text(session, "initiator_alias", info->initiator_alias);
	add_text(session, "target", info->target_name);
	add_text(session, "peer", info->peer);
	add_text(session, "chap_user", info->chap_user);
	add_text(session, "isid", isid);
	add_number(session, "tsih", info->tsih);
	add_number(session, "portal_group_tag", info->portal_group_tag);
	add_number(session, "reactor", info->reactor);
	add_number(session, "age_s", info->age_s);
	add_number(session, "idle_s", info->idle_s);
	add_number(session, "commands_in_flight", info->commands_in_flight);
	add_number(session, "window", info->window);
	add_number(session, "commands", info->commands);
	add_number(session, "read_bytes", info->read_bytes);
	add_number(session, "write_bytes", info->write_bytes);
	json_object_set_new(session, "header_digest", json_boolean(info->header_digest));
	json_object_set_new(session, "data_digest", json_boolean(info->data_digest));
}

struct pool_question {
	struct reactor *reactor;
	struct bufpool_stats stats;
};

/* On the reactor: the pool is its own. */
static void pool_ask(void *arg)
{
	struct pool_question *question = arg;

	bufpool_stats(reactor_bufpool(question->reactor), &question->stats);
}

static void add_reactors(const struct daemon *daemon, json_t *answer)
{
	const struct running *run = &daemon->running;
	json_t *array = add_array(answer, "reactors");

	for (unsigned int i = 0; i < run->nreactors; i++) {
		struct pool_question pool = { .reactor = run->reactors[i] };
		json_t *reactor = add_object(array);
		struct reactor_stats stats;

		reactor_stats(run->reactors[i], &stats);
		reactor_call(run->reactors[i], pool_ask, &pool);
		add_number(reactor, "index", i);
		json_object_set_new(reactor, "cpu", json_integer(run->cpus[i]));
		add_number(reactor, "iterations", stats.iterations);
		add_number(reactor, "enters", stats.enters);
		add_number(reactor, "completions", stats.completions);
		add_number(reactor, "messages", stats.messages);
		add_number(reactor, "timers", stats.timers);
		add_number(reactor, "busy_ns", stats.busy_ns);
		add_number(reactor, "buffer_bytes", pool.stats.bytes);
		add_number(reactor, "buffer_bytes_used", pool.stats.bytes_used);
		add_number(reactor, "buffer_waits", pool.stats.waited);
	}
}

static void add_server(const struct daemon *daemon, json_t *answer)
{
	struct iscsi_server_stats stats;
	json_t *server = json_object();

	json_object_set_new(answer, "server", server);
	iscsi_server_stats(daemon->running.server, &stats);
	add_number(server, "connections", stats.connections);
	add_number(server, "connections_now", stats.connections_now);
	add_number(server, "connections_dropped", stats.connections_dropped);
	add_number(server, "logins", stats.logins);
	add_number(server, "logins_failed", stats.logins_failed);
	add_number(server, "sessions", stats.sessions);
	add_number(server, "sessions_now", stats.sessions_now);
	add_number(server, "pdus_in", stats.pdus_in);
	add_number(server, "pdus_out", stats.pdus_out);
	add_number(server, "bytes_in", stats.bytes_in);
	add_number(server, "bytes_out", stats.bytes_out);
	add_number(server, "digest_errors", stats.digest_errors);
	add_number(server, "rejects", stats.rejects);
	add_number(server, "command_slots", stats.command_slots);
	add_number(server, "command_slots_used", stats.command_slots_used);
}

void daemon_status(struct daemon *daemon, json_t *answer)
{
	add_text(answer, "version", QUINTAIN_VERSION);
	add_number(answer, "pid", (uint64_t)getpid());
	add_number(answer, "uptime_s", (clock_ms() - daemon->start_ms) / 1000);
	add_text(answer, "file", daemon->options->file);
	add_text(answer, "state_dir", state_directory(daemon->running.state));
	add_number(answer, "reloads", daemon->reloads);
	add_number(answer, "reloads_refused", daemon->reloads_refused);
	add_portals(daemon, answer);
	add_targets(daemon, answer);
	add_pools(daemon, answer);
	add_luns(daemon, answer);
	iscsi_server_sessions(daemon->running.server, add_session, add_array(answer, "sessions"));
	add_reactors(daemon, answer);
	add_server(daemon, answer);
}
