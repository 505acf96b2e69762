/* Files that survive a crash: see state_file.h. */
#include "target/state_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* The JSON object of the text, judged; NULL with a text. */
static json_t *object_parse(const char *path, const char *text, size_t len, struct err *err)
{
	json_error_t why;
	json_t *object = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);
	const json_t *version = json_object_get(object, "version");

	if (!object) {
		err_set(err, EBADMSG, "%s is damaged (line %d: %s)", path, why.line, why.text);
		return NULL;
	}
	if (json_integer_value(version) == STATE_VERSION)
		return object;
	if (json_is_integer(version))
		err_set(err, EBADMSG, "%s has format version %lld, this program knows %d", path,
			(long long)json_integer_value(version), STATE_VERSION);
	else
		err_set(err, EBADMSG, "%s is damaged (no format version)", path);
	json_decref(object);
	return NULL;
}

/* Reads at most cap bytes; the length, or -errno. */
static ssize_t read_whole(int fd, char *buf, size_t cap)
{
	size_t len = 0;

	while (len < cap) {
		ssize_t n = read(fd, buf + len, cap - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		len += (size_t)n;
	}
	return (ssize_t)len;
}

int state_file_read(const char *path, json_t **out, struct err *err)
{
	struct stat st;
	char *text = NULL;
	ssize_t len;
	int fd, rc = 0;

	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0)
		return err_set(err, errno, "%s: %s", path, err_name(errno));
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > STATE_FILE_MAX) {
		rc = err_set(err, EBADMSG, "%s is not a file of this program's state", path);
		goto out;
	}
	text = malloc((size_t)st.st_size + 1);
	if (!text) {
		rc = err_set(err, ENOMEM, "%s: no memory to read it", path);
		goto out;
	}
	len = read_whole(fd, text, (size_t)st.st_size);
	if (len < 0) {
		rc = err_set(err, (int)-len, "%s: %s", path, err_name((int)-len));
		goto out;
	}
	*out = object_parse(path, text, (size_t)len, err);
	rc = *out ? 1 : -EBADMSG;
out:
	free(text);
	close(fd);
	return rc;
}

static int write_whole(int fd, const char *text, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, text, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		text += n;
		len -= (size_t)n;
	}
	return fsync(fd) < 0 ? -errno : 0;
}

/* A rename is durable when its directory is. */
static int directory_sync(const char *path)
{
	char directory[PATH_MAX];
	const char *slash = strrchr(path, '/');
	int fd, rc;

	snprintf(directory, sizeof(directory), "%.*s", slash ? (int)(slash - path) + 1 : 1,
		 slash ? path : ".");
	fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	rc = fsync(fd) < 0 ? -errno : 0;
	close(fd);
	return rc;
}

static int replace(const char *path, const char *text, size_t len)
{
	char fresh[PATH_MAX];
	int fd, rc;

	if ((size_t)snprintf(fresh, sizeof(fresh), "%s.%ld", path, (long)getpid()) >= sizeof(fresh))
		return -ENAMETOOLONG;
	fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	rc = write_whole(fd, text, len);
	if (close(fd) < 0 && rc == 0)
		rc = -errno;
	if (rc == 0 && rename(fresh, path) < 0)
		rc = -errno;
	if (rc < 0)
		unlink(fresh);
	return rc < 0 ? rc : directory_sync(path);
}

int state_file_write(const char *path, const json_t *object, struct err *err)
{
	char *text = json_dumps(object, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
	int rc = -ENOMEM;

	if (text)
		rc = replace(path, text, strlen(text));
	free(text);
	return rc < 0 ? err_set(err, -rc, "%s cannot be written: %s", path, err_name(-rc)) : 0;
}

int state_directory_make(const char *path, struct err *err)
{
	char part[PATH_MAX];
	struct stat st;
	size_t len = strlen(path);

	if (len == 0 || len >= sizeof(part))
		return err_set(err, ENAMETOOLONG, "%s: not a path of 1 to %d characters", path,
			       PATH_MAX - 1);
	for (size_t i = 1; i <= len; i++) {
		if (path[i] != '/' && path[i] != '\0')
			continue;
		snprintf(part, sizeof(part), "%.*s", (int)i, path);
		if (mkdir(part, 0700) < 0 && errno != EEXIST)
			return err_set(err, errno, "directory %s cannot be made: %s", part,
				       err_name(errno));
	}
	if (stat(path, &st) < 0)
		return err_set(err, errno, "directory %s: %s", path, err_name(errno));
	if (!S_ISDIR(st.st_mode))
		return err_set(err, ENOTDIR, "%s is not a directory", path);
	return 0;
}

int state_lock(const char *directory, struct err *err)
{
	char path[PATH_MAX];
	int fd;

	if ((size_t)snprintf(path, sizeof(path), "%s/lock", directory) >= sizeof(path))
		return err_set(err, ENAMETOOLONG, "%s: too long", directory);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_set(err, errno, "%s: %s", path, err_name(errno));
	while (flock(fd, LOCK_EX) < 0) {
		int code = errno;

		if (code == EINTR)
			continue;
		close(fd);
		return err_set(err, code, "%s cannot be locked: %s", path, err_name(code));
	}
	return fd;
}
