/*
 * The store `file`: a regular file.
 *
 * What is in a file is somebody's only copy: it is created with O_EXCL only,
 * grown, and never cut.  How it is read and written: posix_io.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/falloc.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "backing/posix_io.h"
#include "base/log.h"
#include "base/option.h"

/* In one request. */
#define UNMAP_MAX  (1ull << 30)
#define ZEROES_MAX (256ull << 20)
/* Where zeros have to be written. */
#define WRITTEN_ZEROES_MAX (32ull << 20)

static bool file_serves(const struct backing_settings *settings, mode_t type)
{
	return settings->backend == BACKING_KIND_BLOCK && type == S_IFREG;
}

/* ---- create and grow ---- */

static int no_space(int fd, int code, const char *what, uint64_t size, const char *path,
		    struct err *err)
{
	char need[32], have[32] = "?";
	struct statvfs fs;

	size_format(size, need, sizeof(need));
	if (fstatvfs(fd, &fs) == 0)
		size_format((uint64_t)fs.f_bavail * fs.f_frsize, have, sizeof(have));
	return err_set(err, code, "%s cannot be %s %s: %s (%s free on its file system)", path, what,
		       need, err_name(code), have);
}

/* Makes the file size bytes long if it is shorter, and with `thin no` sees
 * that all of it is allocated. */
static int file_reserve(int fd, const struct backing_settings *settings, uint64_t have,
			struct err *err)
{
	uint64_t size = settings->size ? settings->size : have;
	int rc;

	if (size > have && ftruncate(fd, (off_t)size) < 0)
		return no_space(fd, errno, "extended to", size, settings->path, err);
	if (settings->thin || size == 0)
		return 0;
	do
		rc = fallocate(fd, 0, 0, (off_t)size);
	while (rc < 0 && errno == EINTR);
	if (rc == 0)
		return 0;
	rc = errno;
	if (rc == EOPNOTSUPP)
		return err_set(err, rc,
			       "%s: thin no: its file system cannot reserve space for a file; say "
			       "thin yes",
			       settings->path);
	/* Not half of it: what was taken is given back, what was there stays. */
	if (size > have && ftruncate(fd, (off_t)have) < 0)
		log_warning("%s: stays extended: %s", settings->path, err_name(errno));
	return no_space(fd, rc, "allocated in full (thin no),", size, settings->path, err);
}

/* May the missing file be made?  If not, says why. */
static int may_create(const struct backing_settings *settings, struct err *err)
{
	if (settings->size == 0)
		return err_set(err, ENOENT,
			       "%s does not exist; a file is created when the LUN has a size",
			       settings->path);
	if (settings->read_only)
		return err_set(err, ENOENT,
			       "%s does not exist, and none is created for read-only yes",
			       settings->path);
	return store_may_create(settings->path, settings->must_exist, err);
}

static int file_create(const struct backing_settings *settings, int *out, struct err *err)
{
	char text[32];
	int fd, rc;

	rc = may_create(settings, err);
	if (rc < 0)
		return rc;
	fd = open(settings->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_set(err, errno, "%s cannot be created: %s", settings->path,
			       err_name(errno));
	rc = file_reserve(fd, settings, 0, err);
	if (rc == 0 && fsync(fd) < 0)
		rc = err_set(err, errno, "%s: %s", settings->path, err_name(errno));
	if (rc == 0)
		rc = store_sync_directory(settings->path, err);
	if (rc < 0) {
		unlink(settings->path);
		close(fd);
		return rc;
	}
	size_format(settings->size, text, sizeof(text));
	log_info("%s: created, %s%s", settings->path, text, settings->thin ? "" : ", allocated");
	*out = fd;
	return 0;
}

/* ---- open ---- */

static int file_open_fd(const struct backing_settings *settings, int *out, bool *created,
			struct err *err)
{
	int fd = open(settings->path, (settings->read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC);

	*created = false;
	if (fd < 0 && errno == ENOENT) {
		int rc = file_create(settings, out, err);

		*created = rc == 0;
		return rc;
	}
	if (fd < 0 && !settings->read_only && (errno == EACCES || errno == EPERM || errno == EROFS))
		return lock_not_writable(settings->path, errno, err);
	if (fd < 0)
		return err_set(err, errno, "%s: %s", settings->path, err_name(errno));
	*out = fd;
	return 0;
}

/* The file's length; what `size` makes of it is in *serve. */
static int file_size(int fd, const struct backing_settings *settings, uint64_t *serve,
		     struct err *err)
{
	struct stat st;
	uint64_t have;
	int rc;

	if (fstat(fd, &st) < 0)
		return err_set(err, errno, "%s: %s", settings->path, err_name(errno));
	if (!S_ISREG(st.st_mode))
		return err_set(err, EINVAL, "%s is not a regular file any more", settings->path);
	have = (uint64_t)st.st_size;
	*serve = settings->size ? settings->size : have;
	if (*serve > INT64_MAX)
		return err_set(err, EFBIG, "size: more than a file can have");
	if (settings->read_only) {
		if (*serve > have)
			return err_set(
				err, EINVAL,
				"%s has %llu bytes, less than size: with read-only yes it is "
				"not extended",
				settings->path, (unsigned long long)have);
		return 0;
	}
	rc = file_reserve(fd, settings, have, err);
	if (rc == 0 && *serve > have && fsync(fd) < 0)
		rc = err_set(err, errno, "%s: %s", settings->path, err_name(errno));
	return rc;
}

/* A hole beyond the end of the file: no data is there, and the answer is the
 * same. */
static bool probe_punch(int fd, uint64_t size)
{
	off_t off = (off_t)((size | 0xfffff) + 1);

	return fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off, 4096) == 0;
}

static void file_limits(struct posix *posix, dev_t device, uint32_t fs_block)
{
	struct bk_limits *limits = &posix->backing.limits;
	bool unmaps = posix->punches && posix->thin && !limits->read_only;

	limits->rotational = posix_queue_limit(device, "rotational", 0) != 0;
	limits->knows_status = true;
	limits->unmap_granularity = fs_block >= limits->block_size && fs_block <= 1u << 20 &&
						    (fs_block & (fs_block - 1)) == 0
					    ? fs_block
					    : 4096;
	if (limits->read_only)
		return;
	limits->unmap_max = unmaps ? UNMAP_MAX : 0;
	limits->unmapped_reads_zero = unmaps;
	limits->write_zeroes_unmaps = unmaps;
	limits->write_zeroes_max = unmaps || !posix->in_memory ? ZEROES_MAX : WRITTEN_ZEROES_MAX;
	if (!unmaps && posix->thin)
		log_info("%s: its file system cannot punch holes: UNMAP is not offered",
			 posix->backing.name);
}

static int file_open(struct backing *backing, const struct backing_settings *settings,
		     struct err *err)
{
	struct posix *posix = posix_of(backing);
	struct stat st;
	bool created;
	int rc;

	rc = file_open_fd(settings, &posix->fd, &created, err);
	if (rc < 0)
		return rc;
	rc = lock_file(posix->fd, settings->path, settings->read_only, err);
	if (rc == 0)
		rc = file_size(posix->fd, settings, &backing->limits.size_bytes, err);
	if (rc == 0 && fstat(posix->fd, &st) < 0)
		rc = err_set(err, errno, "%s: %s", settings->path, err_name(errno));
	posix->zero_align = 1;
	if (rc == 0)
		rc = posix_prepare(posix, settings, false, true, err);
	if (rc < 0) {
		if (created)
			unlink(settings->path);
		close(posix->fd);
		return rc;
	}
	posix->punches = !settings->read_only && probe_punch(posix->fd, (uint64_t)st.st_size);
	file_limits(posix, st.st_dev, (uint32_t)st.st_blksize);
	return 0;
}

static int file_resize(struct backing *backing, const struct backing_settings *settings,
		       uint64_t *size_bytes, struct err *err)
{
	struct stat st;
	int fd = posix_of(backing)->fd;

	if (fstat(fd, &st) == 0 && st.st_nlink == 0)
		log_warning("%s: the file has been deleted; what is written to it is lost when the "
			    "daemon ends",
			    backing->name);
	return file_size(fd, settings, size_bytes, err);
}

const struct backing_ops file_ops = {
	.name = "file",
	.backing_size = sizeof(struct posix),
	.channel_size = sizeof(struct posix_channel),
	.native = 1u << BK_READ | 1u << BK_WRITE | 1u << BK_FLUSH | 1u << BK_UNMAP |
		  1u << BK_WRITE_ZEROES | 1u << BK_STATUS,
	.serves = file_serves,
	.open = file_open,
	.close = posix_close,
	.resize = file_resize,
	.attach = posix_attach,
	.detach = posix_detach,
	.submit = posix_submit,
};
