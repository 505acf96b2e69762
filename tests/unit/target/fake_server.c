#include "tests/unit/target/fake_server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const struct iscsi_view *fake_view;
bool fake_view_refused, fake_sessions_stay;
unsigned int fake_targets, fake_sessions_ended;

struct iscsi_server {
	struct iscsi_view *view;
};

struct iscsi_target {
	struct scsi_target *scsi;
};

int iscsi_server_create(const struct iscsi_server_settings *settings,
			struct reactor *const *reactors, unsigned int nreactors,
			struct iscsi_server **out, struct err *err)
{
	(void)settings;
	(void)reactors;
	(void)nreactors;
	(void)err;
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -ENOMEM;
}

struct iscsi_target *iscsi_target_create(struct iscsi_server *server, const char *name,
					 struct scsi_target *scsi)
{
	struct iscsi_target *target = calloc(1, sizeof(*target));

	(void)server;
	(void)name;
	target->scsi = scsi;
	fake_targets++;
	return target;
}

void iscsi_target_put(struct iscsi_target *target)
{
	fake_targets--;
	free(target);
}

int iscsi_server_set_view(struct iscsi_server *server, struct iscsi_view *view, struct err *err)
{
	if (fake_view_refused)
		return err_set(err, EADDRINUSE, "refused by the test");
	if (server->view)
		arena_destroy(server->view->arena);
	fake_view = server->view = view;
	return 0;
}

bool iscsi_server_end_sessions(struct iscsi_server *server, struct iscsi_target *target,
			       unsigned int timeout_ms)
{
	(void)server;
	(void)target;
	(void)timeout_ms;
	fake_sessions_ended++;
	return !fake_sessions_stay;
}

int iscsi_server_stop(struct iscsi_server *server, unsigned int timeout_ms)
{
	(void)server;
	(void)timeout_ms;
	return 0;
}

void iscsi_server_destroy(struct iscsi_server *server)
{
	if (server->view)
		arena_destroy(server->view->arena);
	fake_view = NULL;
	free(server);
}

void iscsi_server_sessions(struct iscsi_server *server,
			   void (*fn)(const struct iscsi_session_info *info, void *arg), void *arg)
{
	(void)server;
	(void)fn;
	(void)arg;
}

void iscsi_server_stats(struct iscsi_server *server, struct iscsi_server_stats *out)
{
	(void)server;
	memset(out, 0, sizeof(*out));
}
