/* The file of our process number: see pidfile.h. */
#include "target/pidfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* True when path still leads to the open file: it may have been removed by its
 * owner between our open() and our lock. */
static bool same_file(int fd, const char *path)
{
	struct stat a, b;

	return fstat(fd, &a) == 0 && stat(path, &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

static int in_use(int fd, const char *path, struct err *err)
{
	char text[32];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return err_set(err, EEXIST, "pidfile: %s belongs to process %s, which is alive", path,
		       text[0] ? text : "(unknown)");
}

int pidfile_create(const char *path, struct err *err)
{
	char text[32];
	int fd, len;

	for (;;) {
		fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
		if (fd < 0)
			return err_set(err, errno, "pidfile: %s: %s", path, err_name(errno));
		if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
			int rc = in_use(fd, path, err);

			close(fd);
			return rc;
		}
		if (same_file(fd, path))
			break;
		close(fd);
	}
	len = snprintf(text, sizeof(text), "%ld\n", (long)getpid());
	if (ftruncate(fd, 0) < 0 || pwrite(fd, text, (size_t)len, 0) != len) {
		int code = errno ? errno : EIO;

		close(fd);
		return err_set(err, code, "pidfile: %s cannot be written: %s", path,
			       err_name(code));
	}
	return fd;
}

void pidfile_remove(const char *path, int fd)
{
	if (fd < 0)
		return;
	if (same_file(fd, path))
		unlink(path);
	close(fd);
}
