/* Asking a running daemon: see client.h. */
#include "target/client.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "config/config.h"
#include "target/control_socket.h"

int client_option(int option, struct client_options *options)
{
	if (option == CLIENT_OPTION_SOCKET)
		options->socket = optarg;
	else if (option == 'c')
		options->file = optarg;
	else
		return 0;
	return 1;
}

/* A file with errors still says where its socket is: `reload` must be able to
 * show what is wrong with it. */
static int path_of(const struct config *config, char *out, size_t cap, struct err *err)
{
	char directory[PATH_MAX];
	int rc;

	if (config->global.control_socket) {
		snprintf(out, cap, "%s", config->global.control_socket);
		return 0;
	}
	rc = config_state_dir(config, directory, sizeof(directory), err);
	if (rc == 0 && (size_t)snprintf(out, cap, "%s/control.sock", directory) >= cap)
		rc = err_set(err, ENAMETOOLONG, "%s: the path is too long", directory);
	return rc;
}

int client_socket(const struct client_options *options, char *out, size_t cap, struct err *err)
{
	const char *file = options->file ? options->file : CONFIG_FILE_DEFAULT;
	struct config *config;
	int rc;

	if (options->socket) {
		snprintf(out, cap, "%s", options->socket);
		return 0;
	}
	if (access(file, R_OK) == 0)
		config = config_load(file, NULL);
	else if (!options->file && errno == ENOENT)
		config = config_parse("defaults", "", 0, true);
	else
		return err_set(err, errno, "%s: %s; --socket PATH names the socket itself", file,
			       err_name(errno));
	rc = path_of(config, out, cap, err);
	config_free(config);
	return rc;
}

static int send_whole(int fd, const char *text, size_t len)
{
	while (len > 0) {
		ssize_t n = send(fd, text, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		text += n;
		len -= (size_t)n;
	}
	return 0;
}

/* jansson's reader: 0 at the end, (size_t)-1 on errors. */
static size_t receive(void *buf, size_t len, void *arg)
{
	ssize_t n;

	do
		n = recv(*(const int *)arg, buf, len, 0);
	while (n < 0 && errno == EINTR);
	return n < 0 ? (size_t)-1 : (size_t)n;
}

static bool no_daemon(int rc)
{
	return rc == -ENOENT || rc == -ECONNREFUSED;
}

/* The request as a line, which is the caller's. */
static char *line_of(const json_t *request)
{
	char *text = json_dumps(request, JSON_COMPACT), *line = NULL;

	if (text && asprintf(&line, "%s\n", text) < 0)
		line = NULL;
	free(text);
	return line;
}

/* Over the connection: 0 or -errno with a text. */
static int exchange(int fd, const char *path, const char *line, json_t **answer, struct err *err)
{
	json_error_t why;
	int rc = send_whole(fd, line, strlen(line));

	if (rc < 0)
		return err_set(err, -rc, "%s: %s", path, err_name(-rc));
	shutdown(fd, SHUT_WR); /* the daemon hangs up after its answer */
	errno = 0;
	*answer = json_load_callback(receive, &fd, 0, &why);
	if (*answer)
		return 0;
	if (errno == EAGAIN)
		return err_set(err, ETIMEDOUT, "%s: no answer within %d s", path, CLIENT_TIMEOUT_S);
	return err_set(err, EPROTO, "%s: no valid answer (not our user, or the daemon ended)",
		       path);
}

int client_request(const struct client_options *options, const json_t *request, json_t **answer,
		   struct err *err)
{
	struct timeval timeout = { .tv_sec = CLIENT_TIMEOUT_S };
	bool guessed = !options->socket && !options->file;
	char path[PATH_MAX], *line;
	int fd, rc;

	*answer = NULL;
	rc = client_socket(options, path, sizeof(path), err);
	if (rc < 0)
		return rc;
	fd = control_socket_connect(path, err);
	if (no_daemon(fd) && guessed)
		err_set(err, -fd,
			"%s: no daemon answers there; -c FILE names the configuration of another "
			"one, --socket PATH its socket",
			path);
	if (fd < 0)
		return fd;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	line = line_of(request);
	rc = line ? exchange(fd, path, line, answer, err) : err_set(err, ENOMEM, "no memory");
	free(line);
	close(fd);
	return rc;
}

int client_ask(const struct client_options *options, const char *name, json_t **answer,
	       struct err *err)
{
	json_t *request = json_pack("{s:s}", "command", name);
	int rc = request ? client_request(options, request, answer, err)
			 : err_set(err, ENOMEM, "no memory");

	json_decref(request);
	return rc;
}
