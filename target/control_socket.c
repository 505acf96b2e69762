/* The control socket's file: see control_socket.h. */
#include "target/control_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 16

static int address_set(const char *path, struct sockaddr_un *addr, struct err *err)
{
	size_t len = strlen(path);

	memset(addr, 0, sizeof(*addr));
	addr->sun_family = AF_UNIX;
	if (len == 0 || len >= sizeof(addr->sun_path))
		return err_set(err, ENAMETOOLONG,
			       "control socket %s: the path must have 1 to %zu characters", path,
			       sizeof(addr->sun_path) - 1);
	memcpy(addr->sun_path, path, len);
	return 0;
}

int control_socket_connect(const char *path, struct err *err)
{
	struct sockaddr_un addr;
	int fd, rc = address_set(path, &addr, err);

	if (rc < 0)
		return rc;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_set(err, errno, "socket: %s", err_name(errno));
	if (connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0) {
		int code = errno;

		close(fd);
		return err_set(err, code, "%s: %s", path,
			       code == ECONNREFUSED || code == ENOENT ? "no daemon answers there"
								      : err_name(code));
	}
	return fd;
}

/* Makes way for a new socket: 0, or -errno when path is somebody's. */
static int path_clear(const char *path, struct err *err)
{
	struct stat st;
	int fd;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0
				       : err_set(err, errno, "control socket %s: %s", path,
						 err_name(errno));
	if (!S_ISSOCK(st.st_mode))
		return err_set(err, EEXIST,
			       "control socket %s: there is a file of this name that is no socket",
			       path);
	fd = control_socket_connect(path, err);
	if (fd >= 0) {
		close(fd);
		return err_set(err, EADDRINUSE,
			       "control socket %s: another daemon serves it, and keeps it", path);
	}
	if (fd != -ECONNREFUSED)
		return fd;
	return unlink(path) < 0
		       ? err_set(err, errno, "control socket %s: %s", path, err_name(errno))
		       : 0;
}

/* One daemon at a time looks and binds in this directory. */
static int directory_lock(const char *path, struct err *err)
{
	char directory[PATH_MAX];
	const char *slash = strrchr(path, '/');
	int fd;

	snprintf(directory, sizeof(directory), "%.*s", slash ? (int)(slash - path) + 1 : 1,
		 slash ? path : ".");
	fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_set(err, errno, "control socket %s: %s: %s", path, directory,
			       err_name(errno));
	if (flock(fd, LOCK_EX) < 0) {
		int code = errno;

		close(fd);
		return err_set(err, code, "control socket %s: %s: %s", path, directory,
			       err_name(code));
	}
	return fd;
}

/* fchmod() before bind(2) gives the file its mode from the start (unix(7)). */
static int bind_and_listen(int fd, const struct sockaddr_un *addr, struct stat *made)
{
	if (fchmod(fd, 0600) < 0 || bind(fd, (const struct sockaddr *)addr, sizeof(*addr)) < 0)
		return -errno;
	if (chmod(addr->sun_path, 0600) < 0 || lstat(addr->sun_path, made) < 0 ||
	    listen(fd, BACKLOG) < 0) {
		int code = errno;

		unlink(addr->sun_path);
		return -code;
	}
	return 0;
}

int control_socket_listen(const char *path, struct stat *made, struct err *err)
{
	struct sockaddr_un addr;
	int lock, fd, rc = address_set(path, &addr, err);

	if (rc < 0)
		return rc;
	lock = directory_lock(path, err);
	if (lock < 0)
		return lock;
	rc = path_clear(path, err);
	if (rc < 0)
		goto out;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	rc = fd < 0 ? -errno : bind_and_listen(fd, &addr, made);
	if (rc == 0) {
		rc = fd;
		goto out;
	}
	if (fd >= 0)
		close(fd);
	rc = err_set(err, -rc, "control socket %s: %s", path, err_name(-rc));
out:
	close(lock);
	return rc;
}

void control_socket_remove(const char *path, const struct stat *made)
{
	struct stat st;

	if (lstat(path, &st) == 0 && st.st_dev == made->st_dev && st.st_ino == made->st_ino)
		unlink(path);
}

bool control_socket_peer_allowed(int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
		return false;
	return cred.uid == 0 || cred.uid == geteuid();
}
