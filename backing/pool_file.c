/* The file or device of a pool: made, taken, locked. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "backing/pool_internal.h"
#include "backing/store.h"
#include "backing/volume/sync.h"

/* Of a device that is to be taken: where what is in use shows. */
#define LOOK_LEN (1u << 20)

/* May the missing file be made?  If not, says why. */
static int may_create(const struct pool_settings *settings, struct err *err)
{
	if (settings->size == 0)
		return err_set(err, ENOENT,
			       "%s does not exist; a pool is created when it has a size",
			       settings->path);
	return store_may_create(settings->path, settings->must_exist, err);
}

static int lock_and_judge(int fd, const char *path, bool read_only, struct err *err)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return err_set(err, errno, "%s: %s", path, err_name(errno));
	if (!S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode))
		return err_set(err, EINVAL, "%s: a pool needs a regular file or a block device",
			       path);
	return lock_file(fd, path, read_only, err);
}

static uint64_t host_free(int fd)
{
	struct statvfs fs;

	return fstatvfs(fd, &fs) == 0 ? (uint64_t)fs.f_bavail * fs.f_frsize : UINT64_MAX;
}

/* Makes a pool in the open and locked file. */
static int pool_make(int fd, const char *path, const struct pool_create_args *args, bool force,
		     struct err *err)
{
	struct venv *env = sync_env_open(fd, path, false, err);
	int rc;

	if (!env)
		return -EINVAL;
	rc = pool_create(env, args, force, err);
	sync_env_close(env);
	return rc;
}

/*
 * A new file gets its name when there is a whole pool in it: a crash before that
 * leaves PATH.new, which is begun anew.
 */
int pool_file_create(const struct pool_settings *settings, struct err *err)
{
	struct pool_create_args args = { .len = settings->size };
	char path[PATH_MAX];
	int fd, rc = may_create(settings, err);

	if (rc)
		return rc;
	if (snprintf(path, sizeof(path), "%s.new", settings->path) >= (int)sizeof(path))
		return err_set(err, ENAMETOOLONG, "%s: the path is too long", settings->path);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_set(err, errno, "%s cannot be created: %s", path, err_name(errno));
	rc = lock_and_judge(fd, path, false, err);
	if (rc)
		goto out;
	if (ftruncate(fd, 0) != 0 || ftruncate(fd, (off_t)settings->size) != 0)
		rc = err_set(err, errno, "%s cannot be extended: %s", path, err_name(errno));
	args.host_free = host_free(fd);
	if (!rc)
		rc = pool_make(fd, path, &args, false, err);
	if (!rc && fsync(fd) != 0)
		rc = err_set(err, errno, "%s: %s", path, err_name(errno));
	/* Never over a file that came meanwhile. */
	if (!rc && linkat(AT_FDCWD, path, AT_FDCWD, settings->path, 0) != 0)
		rc = err_set(err, errno, "%s cannot be created: %s", settings->path,
			     err_name(errno));
	unlink(path);
	if (!rc)
		rc = store_sync_directory(settings->path, err);
out:
	close(fd);
	return rc;
}

int pool_file_open(const char *path, bool read_only, int *fd, struct err *err)
{
	struct stat st;
	int flags = (read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC, rc;

	if (stat(path, &st) != 0)
		return err_set(err, errno, "%s: %s", path, err_name(errno));
	if (S_ISBLK(st.st_mode) && !read_only)
		flags |= O_EXCL;
	*fd = open(path, flags);
	if (*fd < 0 && errno == EBUSY)
		return lock_device_busy(path, err);
	if (*fd < 0)
		return err_set(err, errno, "%s: %s", path, err_name(errno));
	rc = lock_and_judge(*fd, path, read_only, err);
	if (rc) {
		close(*fd);
		*fd = -1;
	}
	return rc;
}

/* ---- one that is there ---- */

/* 0, or -EEXIST: there is something in len bytes at off. */
static int judge_blank(int fd, const char *path, uint64_t off, uint64_t len, struct err *err)
{
	uint8_t *bytes = aligned_alloc(VF_BLOCK, len);
	ssize_t n;
	int rc = 0;

	if (!bytes)
		return err_set(err, ENOMEM, "%s: no memory to look at it", path);
	n = pread(fd, bytes, len, (off_t)off);
	if (n < 0)
		rc = err_set(err, errno, "%s: %s", path, err_name(errno));
	for (ssize_t i = 0; i < n && !rc; i++)
		if (bytes[i])
			rc = err_set(err, EEXIST,
				     "%s holds something already (at byte %llu): a pool in its "
				     "place would destroy it",
				     path, (unsigned long long)off + (unsigned long long)i);
	free(bytes);
	return rc;
}

static int judge_ends(int fd, const char *path, struct err *err)
{
	off_t end = lseek(fd, 0, SEEK_END);
	uint64_t len = end < 0 ? 0 : (uint64_t)end / VF_BLOCK * VF_BLOCK;
	uint64_t part = len < LOOK_LEN ? len : LOOK_LEN;
	int rc = 0;

	if (end < 0)
		return err_set(err, errno, "%s: its size: %s", path, err_name(errno));
	if (part > 0)
		rc = judge_blank(fd, path, 0, part, err);
	if (!rc && part > 0)
		rc = judge_blank(fd, path, len - part, part, err);
	return rc;
}

static int lengthen(int fd, const char *path, uint64_t size, struct err *err)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return err_set(err, errno, "%s: %s", path, err_name(errno));
	if (S_ISREG(st.st_mode) && (uint64_t)st.st_size < size && ftruncate(fd, (off_t)size) != 0)
		return err_set(err, errno, "%s cannot be extended: %s", path, err_name(errno));
	return 0;
}

static bool is_file(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

int pool_file_take(const char *path, uint64_t size, bool force, struct err *err)
{
	struct pool_create_args args = { .len = size };
	int fd, rc = pool_file_open(path, false, &fd, err);

	if (rc)
		return rc;
	if (!force)
		rc = judge_ends(fd, path, err);
	if (!rc)
		rc = lengthen(fd, path, size, err);
	args.host_free = is_file(fd) ? host_free(fd) : UINT64_MAX;
	if (!rc)
		rc = pool_make(fd, path, &args, force, err);
	if (!rc && fsync(fd) != 0)
		rc = err_set(err, errno, "%s: %s", path, err_name(errno));
	close(fd);
	return rc;
}
