/*
 * What the stores `file` and `block` have in common: reads and writes, inline
 * where they cannot block and by the ring elsewhere; flushes; punching and
 * zeroing; extents.
 *
 * Ways of a transfer, found out per open file:
 *
 *	file system in memory	a reactor_transfer, it never waits for a disk
 *	page cache		a reactor_transfer with RWF_NOWAIT, what that
 *				does not move by the ring
 *	O_DIRECT		the ring at once; through the page cache when the
 *				buffers are not aligned
 *
 * Threads: struct posix is made on the control thread and shared by all
 * reactors, which change nothing but its atomics.
 *
 * Long flushes: a host gives up on a SYNCHRONIZE CACHE that takes half a minute,
 * which is what gigabytes of dirty page cache on a slow disk take.  So written
 * data is sent to the disk in steps of POSIX_DIRTY_STEP, and a reactor that is
 * POSIX_DIRTY_MAX ahead of the disk holds its writes back.
 *
 * Flushes and lost writes: a failed fsync(2) is reported once for each open
 * file, and the pages it was about count as clean after that, so that the next
 * fsync() succeeds without having written them.  Hence (1) each reactor has an
 * open file of its own to fsync by, since otherwise one would take the error
 * of which the other's flush has to know, and (2) after a failed fsync nothing
 * more is written or flushed until the store is opened again: data that was
 * acknowledged may be lost, and the initiators must not be told otherwise by a
 * later flush.  Reads go on.
 */
#ifndef BACKING_POSIX_IO_H
#define BACKING_POSIX_IO_H

#include <stdatomic.h>

#include "backing/store.h"
#include "backing/worker.h"

/* Linux 6.14; probed before it is used.  glibc has no name for it yet. */
#define POSIX_DONTCACHE 0x80

/* Bytes on one reactor. */
#define POSIX_DIRTY_STEP (32ull << 20)
#define POSIX_DIRTY_MAX	 (256ull << 20)

struct posix {
	struct backing backing;
	int fd;		/* locked; O_DIRECT when direct */
	bool device;	/* no file: the end of it is not to be read past */
	bool in_memory; /* tmpfs, ramfs */
	bool direct;
	bool punches;  /* PUNCH_HOLE works */
	bool discards; /* device: BLKDISCARD does instead */
	bool thin;
	uint32_t direct_mem_align, direct_align; /* bytes */
	uint32_t zero_align;			 /* bytes; of fallocate() */
	struct worker *worker;			 /* NULL when nothing is asked of it */
	atomic_bool nowait_read, nowait_write, zero_range, dont_cache;
	atomic_bool suspect; /* an fsync failed, see above */
};

/* Sends written data to the disk.  It outlives its channel when that goes while
 * the disk is still at it. */
struct cleaner {
	struct reactor_op op;
	struct posix_channel *channel; /* NULL: gone */
	int fd;			       /* of its own: it takes errors away from nobody */
	bool busy;		       /* op is in flight */
	uint64_t dirty;		       /* bytes written since it began */
};

struct posix_channel {
	struct bk_channel channel;
	int fd; /* through the page cache; this reactor's fsync */
	struct reactor_op fsync_op;
	bool fsyncing;
	struct list fsync_now;	/* bk_req.link: done by the fsync in flight */
	struct list fsync_next; /* came later, wait for the next one */

	struct cleaner *cleaner; /* NULL: no page cache to be behind with */
	struct list held;	 /* bk_req.link: writes that wait for the cleaner */
};

static inline struct posix *posix_of(struct backing *backing)
{
	return container_of(backing, struct posix, backing);
}

/*
 * Control thread, with posix->fd open: finds out how it can be read and
 * written, and picks O_DIRECT or the page cache (auto_direct: what `direct-io
 * auto` means).  needs_worker: requests will be given to a thread.
 */
int posix_prepare(struct posix *posix, const struct backing_settings *settings, bool auto_direct,
		  bool needs_worker, struct err *err);
void posix_close(struct backing *backing);

int posix_attach(struct bk_channel *channel, struct err *err);
void posix_detach(struct bk_channel *channel);
void posix_submit(struct bk_channel *channel, struct bk_req *req);
/* On the reactor: the cleaner of a channel that goes. */
void cleaner_release(struct cleaner *cleaner);

/* On the worker: what would block a reactor.  A positive errno or 0. */
int posix_blocking(struct bk_req *req);

/* A number from the queue directory of a block device (or of the one that a
 * partition is on); fallback where there is none. */
uint64_t posix_queue_limit(dev_t device, const char *name, uint64_t fallback);

#endif
