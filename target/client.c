/* Asking a running daemon: see client.h. */
#include "target/client.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
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

static int socket_path(const struct client_options *options, char *out, size_t cap, struct err *err)
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

int client_ask(const struct client_options *options, const char *name, json_t **answer,
	       struct err *err)
{
	struct timeval timeout = { .tv_sec = CLIENT_TIMEOUT_S };
	bool guessed = !options->socket && !options->file;
	char path[PATH_MAX], line[128];
	json_error_t why;
	int fd, rc;

	rc = socket_path(options, path, sizeof(path), err);
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
	snprintf(line, sizeof(line), "{\"command\":\"%s\"}\n", name);
	rc = send_whole(fd, line, strlen(line));
	if (rc == 0)
		shutdown(fd, SHUT_WR); /* the daemon hangs up after its answer */
	errno = 0;
	*answer = rc == 0 ? json_load_callback(receive, &fd, 0, &why) : NULL;
	if (rc < 0)
		err_set(err, -rc, "%s: %s", path, err_name(-rc));
	else if (!*answer && errno == EAGAIN)
		rc = err_set(err, ETIMEDOUT, "%s: no answer within %d s", path, CLIENT_TIMEOUT_S);
	else if (!*answer)
		rc = err_set(err, EPROTO, "%s: no valid answer (not our user, or the daemon ended)",
			     path);
	close(fd);
	return rc;
}
