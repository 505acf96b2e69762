/* The control socket: see control.h. */
#include "target/control.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/list.h"
#include "base/log.h"
#include "base/option.h"
#include "target/clock.h"
#include "target/control_socket.h"

/* A client has one request at a time: while its answer goes out, nothing more
 * is read from it. */
struct client {
	struct list link;
	struct control *control;
	struct control_reply *reply; /* its answer comes later; or NULL */
	int fd;
	bool eof;	  /* it will send no more */
	uint64_t last_ms; /* when a byte last moved */
	char line[CONTROL_LINE_MAX];
	size_t line_len;
	char *out; /* the answer, or NULL */
	size_t out_len, out_pos;
};

/* Outlives its client. */
struct control_reply {
	struct client *client; /* NULL: gone */
};

struct control {
	int epoll, listener;
	char *path;
	struct stat made;
	const struct control_command *commands;
	void *owner;
	struct list clients;
	unsigned int nclients;
};

static int watch(struct control *control, int op, int fd, uint32_t events, void *ptr)
{
	struct epoll_event event = { .events = events, .data.ptr = ptr };

	return epoll_ctl(control->epoll, op, fd, &event) < 0 ? -errno : 0;
}

static void client_drop(struct control *control, struct client *client)
{
	list_del(&client->link);
	if (client->reply)
		client->reply->client = NULL;
	close(client->fd);
	free(client->out);
	free(client);
	/* Accepting was stopped at the limit. */
	if (control->nclients-- == CONTROL_CLIENTS_MAX)
		watch(control, EPOLL_CTL_MOD, control->listener, EPOLLIN, NULL);
}

static void client_accept(struct control *control)
{
	int fd = accept4(control->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct client *client;

	if (fd < 0)
		return;
	if (!control_socket_peer_allowed(fd)) {
		log_peer(LOG_LEVEL_WARNING, "control socket: a user that is neither root nor ours "
					    "was turned away");
		close(fd);
		return;
	}
	client = calloc(1, sizeof(*client));
	if (!client || watch(control, EPOLL_CTL_ADD, fd, EPOLLIN, client) < 0) {
		free(client);
		close(fd);
		return;
	}
	client->control = control;
	client->fd = fd;
	client->last_ms = clock_ms();
	list_add_tail(&control->clients, &client->link);
	if (++control->nclients == CONTROL_CLIENTS_MAX)
		watch(control, EPOLL_CTL_MOD, control->listener, 0, NULL);
}

/* ---- requests ---- */

json_t *control_text(const char *text)
{
	json_t *string = text ? json_string(text) : json_null();
	char *plain;

	if (string)
		return string;
	plain = strdup(text);
	for (char *c = plain; c && *c; c++)
		if ((unsigned char)*c >= 0x80)
			*c = '?';
	string = json_string(plain ? plain : "?");
	free(plain);
	return string;
}

static int unknown_command(const struct control *control, const char *name, struct err *err)
{
	const char *names[64], *near;
	size_t n = 0;

	for (const struct control_command *c = control->commands; c->name && n < 64; c++)
		names[n++] = c->name;
	near = option_nearest(name, names, n);
	return err_set(err, EINVAL, "unknown command %s%s%s", name, near ? "; did you mean " : "",
		       near ? near : "");
}

static int begin(const struct control_command *command, struct client *client,
		 const json_t *request, struct err *err)
{
	int rc;

	client->reply = calloc(1, sizeof(*client->reply));
	if (!client->reply)
		return err_set(err, ENOMEM, "no memory");
	client->reply->client = client;
	rc = command->begin(client->control->owner, request, client->reply, err);
	if (rc < 0) {
		free(client->reply);
		client->reply = NULL;
	}
	return rc;
}

static int request_run(struct client *client, const char *line, size_t len, json_t *answer,
		       struct err *err)
{
	const struct control *control = client->control;
	json_error_t why;
	json_t *request = json_loadb(line, len, JSON_REJECT_DUPLICATES, &why);
	const char *name = json_string_value(json_object_get(request, "command"));
	int rc = 0;

	if (!request) {
		rc = err_set(err, EINVAL, "not JSON: %s", why.text);
	} else if (!name) {
		rc = err_set(err, EINVAL, "an object with a string \"command\" is expected");
	} else {
		const struct control_command *c = control->commands;

		while (c->name && strcmp(c->name, name) != 0)
			c++;
		if (!c->name)
			rc = unknown_command(control, name, err);
		else if (c->begin)
			rc = begin(c, client, request, err);
		else
			rc = c->run(control->owner, request, answer, err);
	}
	json_decref(request);
	return rc;
}

/* The answer as a line; NULL without memory. */
static char *answer_text(json_t *members, int rc, const struct err *err)
{
	json_t *answer = json_object();
	char *text, *whole = NULL;

	json_object_set_new(answer, "ok", json_boolean(rc >= 0));
	if (members)
		json_object_update(answer, members);
	if (rc < 0)
		json_object_set_new(answer, "error", control_text(err->text));
	text = json_dumps(answer, JSON_COMPACT | JSON_PRESERVE_ORDER);
	json_decref(answer);
	if (text && asprintf(&whole, "%s\n", text) < 0)
		whole = NULL;
	free(text);
	return whole;
}

/* ---- bytes ---- */

/* Sends text, which is the client's from now on.  False: drop the client. */
static bool client_send(struct client *client, char *text)
{
	client->out = text;
	if (!client->out)
		return false;
	client->out_len = strlen(client->out);
	client->out_pos = 0;
	client->last_ms = clock_ms();
	return watch(client->control, EPOLL_CTL_MOD, client->fd, EPOLLOUT, client) == 0;
}

/* False: drop the client. */
static bool client_answer(struct control *control, struct client *client, size_t line_len)
{
	json_t *members = json_object();
	struct err err = { "" };
	int rc = request_run(client, client->line, line_len, members, &err);
	char *text = client->reply ? NULL : answer_text(members, rc, &err);

	json_decref(members);
	client->line_len -= line_len;
	memmove(client->line, client->line + line_len, client->line_len);
	/* Until then only its end is heard of. */
	if (client->reply)
		return watch(control, EPOLL_CTL_MOD, client->fd, 0, client) == 0;
	return client_send(client, text);
}

void control_reply_end(struct control_reply *reply, json_t *answer, int rc, const struct err *err)
{
	struct client *client = reply->client;

	free(reply);
	if (!client)
		return;
	client->reply = NULL;
	if (!client_send(client, answer_text(answer, rc, err)))
		client_drop(client->control, client);
}

/* Answers the first whole line, if there is one. */
static bool client_next(struct control *control, struct client *client)
{
	const char *end = memchr(client->line, '\n', client->line_len);

	if (end)
		return client_answer(control, client, (size_t)(end - client->line) + 1);
	if (client->eof || client->line_len == sizeof(client->line))
		return false;
	return watch(control, EPOLL_CTL_MOD, client->fd, EPOLLIN, client) == 0;
}

static bool client_read(struct control *control, struct client *client)
{
	ssize_t n = recv(client->fd, client->line + client->line_len,
			 sizeof(client->line) - client->line_len, 0);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	if (n == 0)
		client->eof = true;
	client->line_len += (size_t)n;
	client->last_ms = clock_ms();
	return client_next(control, client);
}

static bool client_write(struct control *control, struct client *client)
{
	ssize_t n = send(client->fd, client->out + client->out_pos,
			 client->out_len - client->out_pos, MSG_NOSIGNAL);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	client->out_pos += (size_t)n;
	client->last_ms = clock_ms();
	if (client->out_pos < client->out_len)
		return true;
	free(client->out);
	client->out = NULL;
	return client_next(control, client);
}

static void client_event(struct control *control, struct client *client)
{
	bool stays = false; /* it hung up while its answer was awaited */

	if (client->out)
		stays = client_write(control, client);
	else if (!client->reply)
		stays = client_read(control, client);

	if (!stays)
		client_drop(control, client);
}

/* ---- outside ---- */

int control_open(const char *path, const struct control_command *commands, void *owner,
		 struct control **out, struct err *err)
{
	struct control *control = calloc(1, sizeof(*control));
	int rc;

	if (!control)
		return err_set(err, ENOMEM, "control socket: no memory");
	list_init(&control->clients);
	control->commands = commands;
	control->owner = owner;
	control->path = strdup(path);
	control->epoll = epoll_create1(EPOLL_CLOEXEC);
	control->listener = -1;
	if (!control->path || control->epoll < 0) {
		rc = err_set(err, errno, "control socket: %s", err_name(errno));
		goto fail;
	}
	rc = control_socket_listen(path, &control->made, err);
	if (rc < 0)
		goto fail;
	control->listener = rc;
	rc = watch(control, EPOLL_CTL_ADD, control->listener, EPOLLIN, NULL);
	if (rc < 0) {
		err_set(err, -rc, "control socket: %s", err_name(-rc));
		goto fail;
	}
	*out = control;
	return 0;
fail:
	if (control->listener < 0)
		memset(&control->made, 0, sizeof(control->made));
	control_close(control);
	return rc;
}

void control_close(struct control *control)
{
	if (!control)
		return;
	if (control->listener >= 0) {
		control_socket_remove(control->path, &control->made);
		while (!list_empty(&control->clients))
			client_drop(control,
				    container_of(control->clients.next, struct client, link));
		close(control->listener);
	}
	if (control->epoll >= 0)
		close(control->epoll);
	free(control->path);
	free(control);
}

int control_fd(const struct control *control)
{
	return control->epoll;
}

void control_run(struct control *control)
{
	struct epoll_event events[CONTROL_CLIENTS_MAX + 1];
	uint64_t now;
	int n = epoll_wait(control->epoll, events, ARRAY_LEN(events), 0);

	for (int i = 0; i < n; i++) {
		if (events[i].data.ptr)
			client_event(control, events[i].data.ptr);
		else
			client_accept(control);
	}
	now = clock_ms();
	list_for_each_safe(link, &control->clients) {
		struct client *client = container_of(link, struct client, link);

		if (!client->reply && now - client->last_ms > CONTROL_IDLE_MS)
			client_drop(control, client);
	}
}
