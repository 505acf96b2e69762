/*
 * The store `block`: a block device, zvols and logical volumes among them.
 *
 * O_DIRECT by default: the hosts cache, and a page cache that takes seconds
 * to flush makes their SYNCHRONIZE CACHE time out.  Unmapping and zeroing are
 * fallocate()'s, which the kernel turns into WRITE ZEROES with and without
 * unmapping: both leave zeros.  A device that can only discard leaves anything
 * behind, and BLKDISCARD blocks: it is done on a thread, and reads of what was
 * unmapped are not promised to be zeros.  A device does not tell mapped from
 * unmapped.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backing/posix_io.h"
#include "base/log.h"
#include "base/option.h"

/* In one request; more is split by the initiator (VPD B0), so that a slow
 * device does not keep one command for minutes. */
#define UNMAP_MAX	   (128ull << 20)
#define ZEROES_MAX	   (128ull << 20)
#define WRITTEN_ZEROES_MAX (32ull << 20)

static bool block_serves(const struct backing_settings *settings, mode_t type)
{
	return settings->backend == BACKING_KIND_BLOCK && type == S_IFBLK;
}

static int block_size(int fd, const struct backing_settings *settings, uint64_t *size,
		      struct err *err)
{
	char text[32];

	if (ioctl(fd, BLKGETSIZE64, size) < 0)
		return err_set(err, errno, "%s: its size: %s", settings->path, err_name(errno));
	size_format(*size, text, sizeof(text));
	if (settings->size > *size)
		return err_set(err, EINVAL,
			       "%s has %s (%llu bytes), less than size: a device does not grow by "
			       "it",
			       settings->path, text, (unsigned long long)*size);
	if (settings->size)
		*size = settings->size;
	return 0;
}

static int block_open_fd(const struct backing_settings *settings, int *out, struct err *err)
{
	/* O_EXCL on a block device: refused while it is mounted or part of
	 * something else (open(2)).  A reader does not mind. */
	int flags = settings->read_only ? O_RDONLY : O_RDWR | O_EXCL;
	int fd = open(settings->path, flags | O_CLOEXEC), protected = 0, rc = 0;
	struct stat st;

	if (fd < 0 && errno == EBUSY)
		return lock_device_busy(settings->path, err);
	if (fd < 0 && !settings->read_only && (errno == EPERM || errno == EACCES || errno == EROFS))
		return lock_not_writable(settings->path, errno, err);
	if (fd < 0)
		return err_set(err, errno, "%s: %s", settings->path, err_name(errno));
	if (fstat(fd, &st) < 0 || !S_ISBLK(st.st_mode))
		rc = err_set(err, EINVAL, "%s is not a block device any more", settings->path);
	else if (!settings->read_only && ioctl(fd, BLKROGET, &protected) == 0 && protected)
		rc = lock_not_writable(settings->path, EROFS, err);
	if (rc < 0)
		close(fd);
	else
		*out = fd;
	return rc;
}

/* A power of two of at least a block and at most 1 MiB, to which ESXi's
 * automatic UNMAP is bound. */
static uint32_t granularity(uint64_t bytes, uint32_t block)
{
	uint32_t fit = block;

	while (fit < bytes && fit < 1u << 20)
		fit <<= 1;
	return fit;
}

static void block_limits(struct posix *posix, dev_t device)
{
	struct bk_limits *limits = &posix->backing.limits;
	bool discards = posix_queue_limit(device, "discard_max_bytes", 0) != 0;
	bool zeroes = posix_queue_limit(device, "write_zeroes_max_bytes", 0) != 0;

	limits->rotational = posix_queue_limit(device, "rotational", 0) != 0;
	limits->io_optimal = (uint32_t)posix_queue_limit(device, "optimal_io_size", 0);
	if (limits->read_only)
		return;
	limits->write_zeroes_max = zeroes ? ZEROES_MAX : WRITTEN_ZEROES_MAX;
	if (!posix->thin || !discards)
		return;
	/* PUNCH_HOLE wants a device that writes zeroes by itself. */
	posix->punches = zeroes;
	posix->discards = !zeroes;
	limits->unmap_max = UNMAP_MAX;
	limits->unmap_granularity = granularity(
		posix_queue_limit(device, "discard_granularity", 0),
		posix->zero_align > limits->block_size ? posix->zero_align : limits->block_size);
	limits->unmapped_reads_zero = zeroes;
	limits->write_zeroes_unmaps = zeroes;
	if (!zeroes)
		log_info("%s: the device discards but does not promise zeros afterwards",
			 posix->backing.name);
}

static int block_open(struct backing *backing, const struct backing_settings *settings,
		      struct err *err)
{
	struct posix *posix = posix_of(backing);
	int rc, sector = 512;
	struct stat st;

	rc = block_open_fd(settings, &posix->fd, err);
	if (rc < 0)
		return rc;
	posix->device = true;
	rc = lock_file(posix->fd, settings->path, settings->read_only, err);
	if (rc == 0)
		rc = block_size(posix->fd, settings, &backing->limits.size_bytes, err);
	if (rc == 0 && (fstat(posix->fd, &st) < 0 || ioctl(posix->fd, BLKSSZGET, &sector) < 0))
		rc = err_set(err, errno, "%s: its block size: %s", settings->path, err_name(errno));
	if (rc < 0)
		goto fail;
	posix->zero_align = (uint32_t)sector;
	posix->thin = settings->thin;
	block_limits(posix, st.st_rdev);
	rc = posix_prepare(posix, settings, true, posix->discards, err);
	if (rc < 0)
		goto fail;
	return 0;
fail:
	close(posix->fd);
	return rc;
}

static int block_resize(struct backing *backing, const struct backing_settings *settings,
			uint64_t *size_bytes, struct err *err)
{
	return block_size(posix_of(backing)->fd, settings, size_bytes, err);
}

const struct backing_ops block_ops = {
	.name = "block",
	.backing_size = sizeof(struct posix),
	.channel_size = sizeof(struct posix_channel),
	.native = 1u << BK_READ | 1u << BK_WRITE | 1u << BK_FLUSH | 1u << BK_UNMAP |
		  1u << BK_WRITE_ZEROES,
	.serves = block_serves,
	.open = block_open,
	.close = posix_close,
	.resize = block_resize,
	.attach = posix_attach,
	.detach = posix_detach,
	.submit = posix_submit,
};
