/* Transfers, flushes and holes of files and devices: see posix_io.h. */
#include "backing/posix_io.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/log.h"

/* One fallocate() in the ring; a longer request is several, one after the
 * other, so that it holds up nobody who wants the file meanwhile. */
#define HOLE_PIECE (128ull << 20)

static struct posix_channel *channel_of(struct bk_req *req)
{
	return container_of(req->channel, struct posix_channel, channel);
}

static struct posix *posix_by(const struct bk_req *req)
{
	return posix_of(req->channel->backing);
}

/* ---- reads and writes ---- */

static bool is_aligned(const struct posix *posix, const struct bk_req *req)
{
	if (req->pos % posix->direct_align != 0)
		return false;
	for (unsigned int i = 0; i < req->iovcnt; i++)
		if ((uintptr_t)req->iov[i].iov_base % posix->direct_mem_align != 0 ||
		    req->iov[i].iov_len % posix->direct_align != 0)
			return false;
	return true;
}

/* The buffers that are left to move, from req->pos on: the rest of one that
 * was begun, else all that follow. */
static unsigned int rest_of(struct bk_req *req, const struct iovec **iov)
{
	uint64_t skip = req->pos;
	unsigned int i = 0;

	while (skip >= req->iov[i].iov_len)
		skip -= req->iov[i++].iov_len;
	assert(i < req->iovcnt);
	if (skip == 0) {
		*iov = &req->iov[i];
		return req->iovcnt - i;
	}
	req->rest.iov_base = (uint8_t *)req->iov[i].iov_base + skip;
	req->rest.iov_len = req->iov[i].iov_len - skip;
	*iov = &req->rest;
	return 1;
}

/* A file that somebody has cut below the size of the LUN: what is gone reads
 * as zeros, like the hole that it is, and the LUN keeps its size. */
static void zero_fill(struct bk_req *req)
{
	log_peer(LOG_LEVEL_ERROR,
		 "%s: the file ends before byte %llu: somebody has cut it while it is served; "
		 "what is missing reads as zeros",
		 req->channel->backing->name, (unsigned long long)(req->off + req->pos));
	while (req->pos < req->len) {
		const struct iovec *iov;

		rest_of(req, &iov);
		memset(iov->iov_base, 0, iov->iov_len);
		req->pos += iov->iov_len;
	}
}

static void cleaned(struct reactor_op *op, int res);

/* Counts written data and sends it to the disk when there is much of it. */
static void dirtied(struct posix_channel *channel, uint64_t len)
{
	struct cleaner *cleaner = channel->cleaner;
	struct io_uring_sqe *sqe;

	cleaner->dirty += len;
	if (cleaner->busy || cleaner->dirty < POSIX_DIRTY_STEP)
		return;
	cleaner->busy = true;
	cleaner->dirty = 0;
	cleaner->op.done = cleaned;
	bk_count(&channel->channel.stats.writebacks, 1);
	sqe = reactor_sqe(channel->channel.reactor, &cleaner->op);
	io_uring_prep_sync_file_range(sqe, cleaner->fd, 0, 0,
				      SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
}

/* What failed is for the fsync to report. */
static void cleaned(struct reactor_op *op, int res)
{
	struct cleaner *cleaner = container_of(op, struct cleaner, op);
	struct posix_channel *channel = cleaner->channel;
	struct list *link, held;

	(void)res;
	cleaner->busy = false;
	if (!channel) {
		cleaner_release(cleaner);
		return;
	}
	dirtied(channel, 0);
	list_init(&held);
	list_splice(&held, &channel->held);
	while ((link = list_pop(&held)) != NULL)
		posix_submit(&channel->channel, container_of(link, struct bk_req, link));
}

void cleaner_release(struct cleaner *cleaner)
{
	cleaner->channel = NULL;
	if (cleaner->busy)
		return;
	close(cleaner->fd);
	free(cleaner);
}

/* Is the disk so far behind that this write has to wait for it? */
static bool held_back(const struct posix_channel *channel, const struct bk_req *req)
{
	return req->op == BK_WRITE && channel->cleaner && channel->cleaner->busy &&
	       channel->cleaner->dirty >= POSIX_DIRTY_MAX;
}

/* Takes over what a call has moved or -errno; true when there is more to do,
 * else the request is complete. */
static bool advance(struct bk_req *req, ssize_t res)
{
	if (res == -EINTR || res == -EAGAIN)
		return true;
	if (res < 0 || (res == 0 && (req->op == BK_WRITE || posix_by(req)->device))) {
		req->bad_off = req->pos;
		bk_complete(req, res < 0 ? (int)-res : EIO);
		return false;
	}
	if (res == 0)
		zero_fill(req);
	else
		req->pos += (uint64_t)res;
	assert(req->pos <= req->len);
	if (req->pos < req->len)
		return true;
	if (req->op == BK_WRITE && channel_of(req)->cleaner)
		dirtied(channel_of(req), req->len);
	bk_complete(req, 0);
	return false;
}

static int rw_flags(const struct bk_req *req)
{
	return req->flags & BK_DONT_CACHE && posix_by(req)->dont_cache ? POSIX_DONTCACHE : 0;
}

static void by_ring(struct bk_req *req);

static void ring_done(struct reactor_op *op, int res)
{
	struct bk_req *req = container_of(op, struct bk_req, ring_op);

	if (advance(req, res))
		by_ring(req);
}

static void by_ring(struct bk_req *req)
{
	struct posix *posix = posix_by(req);
	bool direct = posix->direct && is_aligned(posix, req);
	int fd = direct ? posix->fd : channel_of(req)->fd;
	int flags = direct ? 0 : rw_flags(req);
	const struct iovec *iov;
	unsigned int n = rest_of(req, &iov);
	struct io_uring_sqe *sqe;

	req->ring_op.done = ring_done;
	sqe = reactor_sqe(req->channel->reactor, &req->ring_op);
	if (req->op == BK_READ)
		io_uring_prep_readv2(sqe, fd, iov, n, req->off + req->pos, flags);
	else
		io_uring_prep_writev2(sqe, fd, iov, n, req->off + req->pos, flags);
}

static void at_once(struct bk_req *req, int flags);

/* It did not wait for a disk; what that has not moved does, by the ring. */
static void at_once_done(struct reactor_transfer *transfer, ssize_t res)
{
	struct bk_req *req = container_of(transfer, struct bk_req, transfer);
	struct bk_channel *channel = req->channel;
	struct posix *posix = posix_by(req);

	/* Whoever makes the transfers is not to be called from here. */
	channel->submitting++;
	if (posix->in_memory) {
		if (advance(req, res))
			at_once(req, 0);
		else
			bk_count(&channel->stats.inline_ops, 1);
	} else if (res != -EOPNOTSUPP && res != 0 && !advance(req, res)) {
		bk_count(&channel->stats.inline_ops, 1);
	} else {
		if (res == -EOPNOTSUPP)
			atomic_store_explicit(req->op == BK_READ ? &posix->nowait_read
								 : &posix->nowait_write,
					      false, memory_order_relaxed);
		bk_count(&channel->stats.ring_ops, 1);
		by_ring(req);
	}
	channel->submitting--;
}

static void at_once(struct bk_req *req, int flags)
{
	struct reactor_transfer *transfer = &req->transfer;

	transfer->done = at_once_done;
	transfer->iovcnt = (int)rest_of(req, &transfer->iov);
	transfer->fd = channel_of(req)->fd;
	transfer->flags = flags;
	transfer->write = req->op == BK_WRITE;
	transfer->off = (int64_t)(req->off + req->pos);
	reactor_transfer(req->channel->reactor, transfer);
}

static bool is_nowait(const struct posix *posix, const struct bk_req *req)
{
	const atomic_bool *nowait = req->op == BK_READ ? &posix->nowait_read : &posix->nowait_write;

	return !posix->direct && atomic_load_explicit(nowait, memory_order_relaxed);
}

static void transfer(struct posix *posix, struct bk_req *req)
{
	if (held_back(channel_of(req), req)) {
		list_add_tail(&channel_of(req)->held, &req->link);
	} else if (req->writes_zeros) {
		/* Zeros are long, and there is more behind them. */
		bk_count(&req->channel->stats.ring_ops, 1);
		by_ring(req);
	} else if (posix->in_memory) {
		at_once(req, 0);
	} else if (is_nowait(posix, req)) {
		at_once(req, RWF_NOWAIT | rw_flags(req));
	} else {
		bk_count(&req->channel->stats.ring_ops, 1);
		by_ring(req);
	}
}

/* ---- flushes ---- */

static void fsync_done(struct reactor_op *op, int res);

/* One fsync for all that wait: it begins after every write that completed
 * before they were submitted. */
static void fsync_start(struct posix_channel *channel)
{
	struct io_uring_sqe *sqe;

	list_splice(&channel->fsync_now, &channel->fsync_next);
	channel->fsyncing = true;
	channel->fsync_op.done = fsync_done;
	sqe = reactor_sqe(channel->channel.reactor, &channel->fsync_op);
	io_uring_prep_fsync(sqe, channel->fd, IORING_FSYNC_DATASYNC);
}

static void fsync_done(struct reactor_op *op, int res)
{
	struct posix_channel *channel = container_of(op, struct posix_channel, fsync_op);
	struct posix *posix = posix_of(channel->channel.backing);
	struct list *link, waited;

	if (res < 0 && !atomic_exchange(&posix->suspect, true))
		log_error("%s: flushing failed (%s): data that was written since the last flush "
			  "may be lost; reads go on, nothing is written until the disk is opened "
			  "again",
			  posix->backing.name, err_name(-res));
	list_init(&waited);
	list_splice(&waited, &channel->fsync_now);
	channel->fsyncing = false;
	if (!list_empty(&channel->fsync_next))
		fsync_start(channel);
	while ((link = list_pop(&waited)) != NULL)
		bk_complete(container_of(link, struct bk_req, link), res < 0 ? -res : 0);
}

static void flush(struct posix *posix, struct bk_req *req)
{
	struct posix_channel *channel = channel_of(req);

	if (posix->in_memory) {
		bk_complete(req, 0);
		return;
	}
	list_add_tail(&channel->fsync_next, &req->link);
	if (!channel->fsyncing)
		fsync_start(channel);
}

/* ---- holes and zeros ---- */

#define PUNCH (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE)
#define ZERO  (FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE)

static void hole_next(struct bk_req *req);

static uint64_t hole_piece(const struct bk_req *req)
{
	uint64_t left = req->len - req->pos;

	return left < HOLE_PIECE ? left : HOLE_PIECE;
}

/* The next way when the file system refuses this one. */
static void hole_refused(struct bk_req *req)
{
	struct posix *posix = posix_by(req);

	if (req->mode == ZERO)
		atomic_store_explicit(&posix->zero_range, false, memory_order_relaxed);
	else if (req->op == BK_WRITE_ZEROES && posix->zero_range) {
		req->mode = ZERO;
		hole_next(req);
		return;
	}
	bk_write_zeros(req);
}

static void hole_done(struct reactor_op *op, int res)
{
	struct bk_req *req = container_of(op, struct bk_req, ring_op);

	if (res == -EOPNOTSUPP) {
		hole_refused(req);
		return;
	}
	if (res == 0)
		req->pos += hole_piece(req);
	if (res != 0 && res != -EINTR)
		bk_complete(req, -res);
	else if (req->pos == req->len)
		bk_complete(req, 0);
	else
		hole_next(req);
}

static void hole_next(struct bk_req *req)
{
	struct io_uring_sqe *sqe;

	req->ring_op.done = hole_done;
	sqe = reactor_sqe(req->channel->reactor, &req->ring_op);
	/* By the open file that holds a device exclusively: by another one the
	 * kernel refuses it (EBUSY) while the page cache holds written data. */
	io_uring_prep_fallocate(sqe, posix_by(req)->fd, (int)req->mode,
				(off_t)(req->off + req->pos), (off_t)hole_piece(req));
}

static void unmap(struct posix *posix, struct bk_req *req)
{
	uint64_t align = posix->zero_align;
	uint64_t end = (req->off + req->len) / align * align;
	uint64_t start = (req->off + align - 1) / align * align;

	/* A device of larger blocks than the LUN's cannot unmap a part of one:
	 * that part stays mapped, with what is in it (SBC-4 4.7.3.4). */
	if (start >= end) {
		bk_complete(req, 0);
		return;
	}
	req->off = start;
	req->len = end - start;
	bk_count(&req->channel->stats.ring_ops, 1);
	if (!posix->punches) {
		worker_submit(posix->worker, req);
		return;
	}
	req->mode = PUNCH;
	hole_next(req);
}

static void write_zeroes(struct posix *posix, struct bk_req *req)
{
	if (posix->thin && posix->punches && req->flags & BK_MAY_UNMAP)
		req->mode = PUNCH;
	else if (posix->zero_range)
		req->mode = ZERO;
	else
		req->mode = 0;
	if (req->mode == 0 || (req->off | req->len) % posix->zero_align != 0) {
		bk_write_zeros(req);
		return;
	}
	bk_count(&req->channel->stats.ring_ops, 1);
	hole_next(req);
}

/* ---- what may block: on the thread, or inline on a file system in memory ---- */

/* Adds off..end to the extents; false when there is no room. */
static bool extent_add(struct bk_req *req, uint64_t off, uint64_t end, uint8_t status)
{
	struct bk_extent *last = req->nextents ? &req->extents[req->nextents - 1] : NULL;

	if (off == end)
		return true;
	if (last && last->status == status) {
		last->len += end - off;
		return true;
	}
	if (req->nextents == req->nextents_max)
		return false;
	req->extents[req->nextents++] = (struct bk_extent){ off, end - off, status };
	return true;
}

/* Data is counted in whole blocks: a block that is partly a hole is mapped. */
static int seek_extents(struct bk_req *req)
{
	int fd = posix_by(req)->fd;
	uint64_t block = req->channel->backing->limits.block_size;
	uint64_t off = req->off, end = req->off + req->len, next;

	while (off < end) {
		off_t at = lseek(fd, (off_t)off, SEEK_DATA);

		/* ENXIO: no data from here to the end of the file. */
		if (at < 0 && errno != ENXIO)
			return errno;
		next = at < 0 ? end : (uint64_t)at / block * block;
		if (next < off)
			next = off;
		if (next > end)
			next = end;
		if (!extent_add(req, off, next, BK_UNMAPPED) || next == end)
			break;
		off = next;
		at = lseek(fd, at, SEEK_HOLE);
		if (at < 0 && errno != ENXIO)
			return errno;
		/* ENXIO: cut in between. */
		next = at < 0 ? off + block : ((uint64_t)at + block - 1) / block * block;
		if (next > end)
			next = end;
		if (!extent_add(req, off, next, BK_MAPPED))
			break;
		off = next;
	}
	return 0;
}

static int discard(struct bk_req *req)
{
	uint64_t range[2];

	while (req->pos < req->len) {
		range[0] = req->off + req->pos;
		range[1] = hole_piece(req);
		if (ioctl(posix_by(req)->fd, BLKDISCARD, range) < 0)
			return errno;
		req->pos += range[1];
	}
	return 0;
}

int posix_blocking(struct bk_req *req)
{
	return req->op == BK_STATUS ? seek_extents(req) : discard(req);
}

static void status(struct posix *posix, struct bk_req *req)
{
	if (posix->in_memory)
		bk_complete(req, seek_extents(req));
	else
		worker_submit(posix->worker, req);
}

/* ---- */

void posix_submit(struct bk_channel *channel, struct bk_req *req)
{
	struct posix *posix = posix_of(channel->backing);

	if (req->op != BK_READ && req->op != BK_STATUS &&
	    atomic_load_explicit(&posix->suspect, memory_order_relaxed)) {
		bk_complete(req, EIO);
		return;
	}
	switch (req->op) {
	case BK_READ:
	case BK_WRITE: transfer(posix, req); break;
	case BK_FLUSH: flush(posix, req); break;
	case BK_UNMAP: unmap(posix, req); break;
	case BK_WRITE_ZEROES: write_zeroes(posix, req); break;
	case BK_STATUS: status(posix, req); break;
	default: assert(!"not one of ours");
	}
}
