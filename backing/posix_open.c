/* How a file or device can be read and written, and its open files: see
 * posix_io.h. */
#include "backing/posix_io.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/log.h"

uint64_t posix_queue_limit(dev_t device, const char *name, uint64_t fallback)
{
	static const char *const where[] = { "queue", "../queue" };
	unsigned long long value;
	char path[128];
	bool found;
	FILE *f;

	for (size_t i = 0; i < sizeof(where) / sizeof(where[0]); i++) {
		snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/%s/%s", major(device),
			 minor(device), where[i], name);
		f = fopen(path, "re");
		if (!f)
			continue;
		found = fscanf(f, "%llu", &value) == 1;
		fclose(f);
		if (found)
			return value;
	}
	return fallback;
}

/* Does a read that asks not to be cached pass?  Any other answer than "not
 * supported" is a yes; whether there is data in the cache does not matter. */
static bool probe_dont_cache(int fd)
{
	char byte;
	struct iovec iov = { &byte, 1 };

	return preadv2(fd, &iov, 1, 0, RWF_NOWAIT | POSIX_DONTCACHE) >= 0 || errno == EAGAIN;
}

/* What O_DIRECT wants of offsets, lengths and buffers; false: refused. */
static bool direct_alignment(struct posix *posix)
{
	struct statx stx;

	posix->direct_align = posix->zero_align > 512 ? posix->zero_align : 512;
	posix->direct_mem_align = 4096;
	if (!posix->device)
		posix->direct_align = 4096; /* unless the kernel knows better */
	if (statx(posix->fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &stx) < 0 ||
	    !(stx.stx_mask & STATX_DIOALIGN))
		return true;
	if (stx.stx_dio_offset_align == 0 || stx.stx_dio_mem_align == 0)
		return false;
	posix->direct_align = stx.stx_dio_offset_align;
	posix->direct_mem_align = stx.stx_dio_mem_align;
	return true;
}

static void pick_direct(struct posix *posix, const struct backing_settings *settings,
			bool auto_direct)
{
	const char *name = posix->backing.name;
	uint32_t block_size = settings->block_size;
	int flags;

	if (settings->direct == BACKING_DIRECT_NO ||
	    (settings->direct == BACKING_DIRECT_AUTO && (!auto_direct || posix->in_memory))) {
		log_info("%s: through the page cache", name);
		return;
	}
	if (posix->in_memory) {
		log_warning("%s: direct-io: it is in memory, there is no cache to bypass", name);
		return;
	}
	flags = fcntl(posix->fd, F_GETFL);
	if (!direct_alignment(posix) || flags < 0 ||
	    fcntl(posix->fd, F_SETFL, flags | O_DIRECT) < 0) {
		log_warning("%s: direct-io: its file system cannot: served through the page cache",
			    name);
		return;
	}
	if (posix->direct_align > block_size) {
		fcntl(posix->fd, F_SETFL, flags);
		log_warning("%s: direct-io: needs blocks of %u bytes and the LUN's are %u: served "
			    "through the page cache",
			    name, posix->direct_align, block_size);
		return;
	}
	posix->direct = true;
	log_info("%s: with O_DIRECT, past the page cache", name);
}

int posix_prepare(struct posix *posix, const struct backing_settings *settings, bool auto_direct,
		  bool needs_worker, struct err *err)
{
	struct statfs fs;

	posix->in_memory = !posix->device && fstatfs(posix->fd, &fs) == 0 &&
			   (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC);
	posix->thin = settings->thin;
	/* Until the first one that is refused. */
	posix->nowait_read = true;
	posix->nowait_write = true;
	posix->zero_range = true;
	posix->dont_cache = !posix->in_memory && probe_dont_cache(posix->fd);
	pick_direct(posix, settings, auto_direct);
	return needs_worker && !posix->in_memory ? worker_start(&posix->worker, posix_blocking, err)
						 : 0;
}

void posix_close(struct backing *backing)
{
	struct posix *posix = posix_of(backing);

	worker_stop(posix->worker);
	close(posix->fd);
}

/* Another open file of what posix->fd is, through the page cache. */
static int open_again(const struct posix *posix, struct err *err)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", posix->fd);
	fd = open(path, (posix->backing.limits.read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC);
	if (fd < 0)
		return err_set(err, errno, "%s: another open file of it: %s", posix->backing.name,
			       err_name(errno));
	return fd;
}

int posix_attach(struct bk_channel *channel, struct err *err)
{
	struct posix *posix = posix_of(channel->backing);
	struct posix_channel *mine = container_of(channel, struct posix_channel, channel);

	list_init(&mine->fsync_now);
	list_init(&mine->fsync_next);
	list_init(&mine->held);
	/* What is written there is a reactor_transfer. */
	channel->write_inline = posix->in_memory;
	mine->fd = open_again(posix, err);
	if (mine->fd < 0)
		return mine->fd;
	if (posix->in_memory || posix->direct || posix->backing.limits.read_only)
		return 0;
	mine->cleaner = calloc(1, sizeof(*mine->cleaner));
	if (!mine->cleaner) {
		close(mine->fd);
		return err_set(err, ENOMEM, "%s: no memory for a channel", posix->backing.name);
	}
	mine->cleaner->channel = mine;
	mine->cleaner->fd = open_again(posix, err);
	if (mine->cleaner->fd < 0) {
		int rc = mine->cleaner->fd;

		free(mine->cleaner);
		close(mine->fd);
		return rc;
	}
	return 0;
}

void posix_detach(struct bk_channel *channel)
{
	struct posix_channel *mine = container_of(channel, struct posix_channel, channel);

	close(mine->fd);
	if (mine->cleaner)
		cleaner_release(mine->cleaner);
}
