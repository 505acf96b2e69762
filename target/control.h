/*
 * The control socket: where `quintain status` and its like ask the daemon.
 *
 * A stream socket of mode 0600 that answers root and the daemon's own user.
 * Requests and answers are JSON objects, one a line (docs/control.md):
 *
 *	{"command": "status"}
 *	{"ok": true, ...} or {"ok": false, "error": "..."}
 *
 * Commands are rows of a table that the caller gives.  Nothing here waits for a
 * client: clients are few, their lines are bounded, who is slow is dropped.
 *
 * Owner: the daemon (serve.c); control thread.
 */
#ifndef TARGET_CONTROL_H
#define TARGET_CONTROL_H

#include <jansson.h>
#include <stdint.h>

#include "base/err.h"

#define CONTROL_CLIENTS_MAX 16
#define CONTROL_LINE_MAX    4096  /* bytes of a request with its newline */
#define CONTROL_IDLE_MS	    10000 /* without a byte either way, then dropped */

struct control_reply;

/*
 * A command.  run gets the whole request and adds members to answer; 0, or
 * -errno with a text, which becomes {"ok": false, "error": TEXT} with whatever
 * members there are.
 *
 * What takes time has begin instead: 0, and control_reply_end() comes later, on
 * the control thread; or -errno with a text, and reply is not touched any more.
 */
struct control_command {
	const char *name;
	int (*run)(void *owner, const json_t *request, json_t *answer, struct err *err);
	int (*begin)(void *owner, const json_t *request, struct control_reply *reply,
		     struct err *err);
};

/* Answers with the members of answer, which stays the caller's (NULL: none); rc
 * and err as of run.  The client may be gone, and the control too. */
void control_reply_end(struct control_reply *reply, json_t *answer, int rc, const struct err *err);

/* A JSON string of any text; NULL gives null.  Bytes that are no UTF-8 become '?'. */
json_t *control_text(const char *text);

struct control;

/*
 * Listens at path.  A socket that is left over from a dead daemon is replaced;
 * one that answers is left alone: -EADDRINUSE.  commands end with a NULL name.
 */
int control_open(const char *path, const struct control_command *commands, void *owner,
		 struct control **out, struct err *err);
/* Removes the socket, if it is still ours; NULL does nothing. */
void control_close(struct control *control);

/* Becomes readable when control_run() has something to do. */
int control_fd(const struct control *control);
/* Serves what is there, and drops clients that were idle too long. */
void control_run(struct control *control);

#endif
