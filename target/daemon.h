/*
 * The daemon: what runs between "ready" and the end.
 *
 * Owner: command_serve(); control thread, which is the main thread.
 */
#ifndef TARGET_DAEMON_H
#define TARGET_DAEMON_H

#include <stdint.h>
#include <jansson.h>

#include "config/config.h"
#include "target/control.h"
#include "target/running.h"

/* What was asked for on the command line. */
struct serve_options {
	const char *file; /* -c; NULL: images */
	struct config_simple simple;
	const char *state_dir; /* with images; or NULL */
};

struct daemon {
	const struct serve_options *options;
	struct jobs *jobs; /* what may hang */
	struct running running;
	struct control *control; /* NULL: another daemon has our socket */
	uint64_t start_ms;	 /* CLOCK_MONOTONIC */
	uint64_t reloads, reloads_refused;
};

/* The configuration as it is now; NULL with a text when there is none.  It may
 * have errors (nerrors). */
struct config *daemon_load(const struct daemon *daemon, struct err *err);

/*
 * SIGHUP and the control command: 0, or -errno with a text and nothing changed.
 * messages, if not NULL, gets those of the file as JSON strings.
 */
int daemon_reload(struct daemon *daemon, json_t *messages, struct err *err);

/* The line of "ready" and of the service manager: what is served. */
void daemon_summary(const struct daemon *daemon, char *out, size_t cap);

/* The rows of the control socket; their owner is a struct daemon (daemon_control.c). */
extern const struct control_command daemon_commands[];

/* Operations on pools (pool_ops.h), and the list of them (pool_control.c). */
int daemon_pool_begin(void *daemon, const json_t *request, struct control_reply *reply,
		      struct err *err);
int daemon_pool_status(void *daemon, const json_t *request, json_t *answer, struct err *err);

/* All that `quintain status` shows, added to answer (status.c). */
void daemon_status(struct daemon *daemon, json_t *answer);

#endif
