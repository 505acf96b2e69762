/*
 * The other side of the control socket: asks a running daemon.
 *
 * Main thread of a command; may block for CLIENT_TIMEOUT_S.
 */
#ifndef TARGET_CLIENT_H
#define TARGET_CLIENT_H

#include <stddef.h>
#include <jansson.h>

#include "base/err.h"
#include "target/command.h"

/* A reload waits for sessions that log out, and for stores that open. */
#define CLIENT_TIMEOUT_S 120

/* --socket and -c, which every command has that asks the daemon. */
struct client_options {
	const char *socket;
	const char *file;
};

#define CLIENT_OPTION_SOCKET 256
#define CLIENT_OPTIONS                                               \
	{ "socket", required_argument, NULL, CLIENT_OPTION_SOCKET }, \
	{                                                            \
		"config", required_argument, NULL, 'c'               \
	}

/* Takes an option of these two; 0 when it was none of them. */
int client_option(int option, struct client_options *options);

/*
 * Sends {"command": NAME} and waits for the answer, which is the caller's.
 * The socket is that of --socket; what the configuration names; without both,
 * and without a configuration at the default place, that of the default state
 * directory.  0, or -errno with a text when there is no answer; one of
 * "ok": false is one.
 */
int client_ask(const struct client_options *options, const char *name, json_t **answer,
	       struct err *err);

/* The same with a whole request, which stays the caller's. */
int client_request(const struct client_options *options, const json_t *request, json_t **answer,
		   struct err *err);

/* The socket's path, found as above. */
int client_socket(const struct client_options *options, char *out, size_t cap, struct err *err);

#endif
