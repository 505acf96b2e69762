/* Loading, reloading, and the commands of the control socket: see daemon.h. */
#include "target/daemon.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "target/notify.h"
#include "version.h"

struct config *daemon_load(const struct daemon *daemon, struct err *err)
{
	const struct serve_options *options = daemon->options;
	struct config *config;

	if (options->file)
		return config_load(options->file, daemon->jobs);
	config = config_from_images(&options->simple, daemon->jobs, err);
	if (config && options->state_dir)
		config->global.state_dir = options->state_dir;
	return config;
}

void daemon_summary(const struct daemon *daemon, char *out, size_t cap)
{
	const struct running *run = &daemon->running;
	const struct target_run *target = NULL;
	size_t targets = 0, luns = 0, not_ready = 0, len;
	char address[64];

	list_for_each(link, &run->targets) {
		target = container_of(link, struct target_run, link);
		targets++;
	}
	list_for_each(link, &run->luns) {
		luns++;
		not_ready += !scsi_lun_backing(container_of(link, struct lun_run, link)->scsi);
	}
	if (targets == 1) /* the name is what to connect to */
		len = (size_t)snprintf(out, cap, "1 target %s", target->config->name);
	else
		len = (size_t)snprintf(out, cap, "%zu targets", targets);
	if (len < cap)
		len += (size_t)snprintf(out + len, cap - len, ", %zu LUN%s", luns,
					luns == 1 ? "" : "s");
	if (not_ready > 0 && len < cap)
		len += (size_t)snprintf(out + len, cap - len, " (%zu NOT READY)", not_ready);
	for (uint32_t i = 0; i < run->view->ngroups; i++)
		for (uint32_t k = 0; k < run->view->groups[i].nportals && len < cap; k++) {
			iscsi_address_text(&run->view->groups[i].portals[k].listen, address,
					   sizeof(address));
			len += (size_t)snprintf(out + len, cap - len, ", %s", address);
		}
}

/* To the log, and as "FILE:LINE:COLUMN: TEXT" to the one who asked. */
static void messages_tell(const struct config *config, json_t *messages)
{
	char text[1024];

	for (const struct config_message *m = config->messages; m; m = m->next) {
		const char *kind = m->severity == CONFIG_ERROR ? "error" : "warning";

		snprintf(text, sizeof(text), "%s:%u:%u: %s: %s", m->pos.file, m->pos.line,
			 m->pos.column, kind, m->text);
		if (m->severity == CONFIG_ERROR)
			log_error("%s", text);
		else
			log_warning("%s", text);
		if (messages)
			json_array_append_new(messages, control_text(text));
	}
}

static int reload(struct daemon *daemon, json_t *messages, struct err *err)
{
	struct config *config = daemon_load(daemon, err);
	int rc;

	if (!config)
		return -EINVAL;
	messages_tell(config, messages);
	if (config->nerrors > 0)
		rc = err_set(err, EINVAL, "%s has %u error%s", config->file, config->nerrors,
			     config->nerrors == 1 ? "" : "s");
	else
		rc = running_apply(&daemon->running, config, err);
	if (rc < 0)
		config_free(config);
	return rc;
}

int daemon_reload(struct daemon *daemon, json_t *messages, struct err *err)
{
	char summary[512];
	int rc;

	notify_reloading();
	rc = reload(daemon, messages, err);
	daemon_summary(daemon, summary, sizeof(summary));
	if (rc < 0) {
		daemon->reloads_refused++;
		log_error("reload refused, nothing has changed: %s", err->text);
	} else {
		daemon->reloads++;
		log_info("reloaded: %s", summary);
	}
	notify_ready(summary);
	return rc;
}

/* ---- the control socket ---- */

static int run_status(void *owner, const json_t *request, json_t *answer, struct err *err)
{
	(void)request;
	(void)err;
	daemon_status(owner, answer);
	return 0;
}

static int run_reload(void *owner, const json_t *request, json_t *answer, struct err *err)
{
	json_t *messages = json_array();

	(void)request;
	json_object_set_new(answer, "messages", messages);
	return daemon_reload(owner, messages, err);
}

static int run_version(void *owner, const json_t *request, json_t *answer, struct err *err)
{
	(void)owner;
	(void)request;
	(void)err;
	json_object_set_new(answer, "version", json_string(QUINTAIN_VERSION));
	return 0;
}

const struct control_command daemon_commands[] = {
	{ .name = "status", .run = run_status },
	{ .name = "reload", .run = run_reload },
	{ .name = "version", .run = run_version },
	{ .name = "pool-status", .run = daemon_pool_status },
	{ .name = "pool-info", .begin = daemon_pool_begin },
	{ .name = "pool-grow", .begin = daemon_pool_begin },
	{ .name = "volume-list", .begin = daemon_pool_begin },
	{ .name = "volume-info", .begin = daemon_pool_begin },
	{ .name = "volume-create", .begin = daemon_pool_begin },
	{ .name = "volume-set", .begin = daemon_pool_begin },
	{ .name = "volume-grow", .begin = daemon_pool_begin },
	{ .name = "volume-delete", .begin = daemon_pool_begin },
	{ .name = NULL },
};
