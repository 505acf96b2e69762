/*
 * The store interface: what lies under a LUN.
 *
 * A store knows bytes, not SCSI.  It is opened once (control thread) and
 * serves every reactor at once through a channel per reactor, which holds that
 * reactor's ring registrations, buffers and counters.
 *
 *	backing_open -> backing_attach on each reactor -> backing_submit ...
 *	-> backing_detach on each reactor -> backing_close
 *
 * A request completes exactly once, on the reactor that submitted it, never
 * inside backing_submit(); both are asserted in the wrapper (backing.c).  The
 * wrapper also judges range and alignment against bk_limits, so that no store
 * does, and does for a store what it does not do natively: writes zeros, makes a
 * BK_FUA write durable by a flush behind it, and tells the block status of a
 * store that does not know (all mapped).  `cache write-through` is BK_FUA on
 * everything that changes data, `cache unsafe` drops flushes and BK_FUA; both
 * are the wrapper's, no store looks at them.
 *
 * To add a store: one file with a struct backing_ops, one row in
 * backing_table[] (backing.c), its option rows beside its settings.
 */
#ifndef BACKING_BACKING_H
#define BACKING_BACKING_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/err.h"
#include "base/list.h"
#include "base/reactor.h"
#include "backing/settings.h"

/* ---- what a store is like ---- */

/*
 * The only source of READ CAPACITY and of VPD B0, B1 and B2.  Constant while
 * the store is open, but for size_bytes, which backing_resize() changes.
 */
struct bk_limits {
	uint64_t size_bytes;	      /* a multiple of block_size */
	uint32_t block_size;	      /* bytes */
	uint32_t physical_block_size; /* bytes, 512..4096 */
	uint32_t io_optimal;	      /* bytes; 0: not known */
	uint64_t unmap_max;	      /* bytes in one UNMAP request; 0: no UNMAP */
	uint32_t unmap_granularity;   /* bytes, a power of two <= 1 MiB */
	uint64_t write_zeroes_max;    /* bytes in one request */
	uint32_t atomic_max;	      /* bytes written all or not at all; 0: one block */
	bool unmapped_reads_zero;     /* LBPRZ */
	bool write_zeroes_unmaps;     /* BK_MAY_UNMAP frees space */
	bool volatile_cache;	      /* a completed write may need BK_FLUSH (WCE) */
	bool read_only;
	bool rotational;
	bool knows_status; /* BK_STATUS tells mapped from unmapped */
};

/* ---- requests ---- */

enum bk_op {
	BK_READ,
	BK_WRITE,
	BK_FLUSH,	 /* every write completed before is durable after */
	BK_UNMAP,	 /* afterwards reads give zeros if limits say so */
	BK_WRITE_ZEROES, /* BK_MAY_UNMAP: by freeing, where that reads as zero */
	BK_STATUS,	 /* what of off..off+len is mapped: extents in order, without
			  * gaps, from off on; at least one, as many as there is
			  * room for or as is quick to tell */
	BK_NOPS,
};

enum bk_flag {
	BK_FUA = 1u << 0, /* durable before done */
	BK_MAY_UNMAP = 1u << 1,
	BK_DONT_CACHE = 1u << 2, /* DPO: the data will not be read again soon */
};

enum bk_status {
	BK_MAPPED,
	BK_UNMAPPED,
};

struct bk_extent {
	uint64_t off, len; /* bytes */
	uint8_t status;	   /* enum bk_status */
};

struct bk_channel;

/*
 * A request; embedded in its owner.  The caller fills the first part and may
 * not touch it until done.  The buffers stay valid until done, unless the
 * channel says write_inline and op is BK_WRITE: then they are not looked at
 * after the next reactor_transfers_make() has returned, so that data may be
 * written straight from a receive area.
 *
 * With O_DIRECT the buffers should be page aligned, as those of a bufpool are;
 * others are served through the page cache.
 */
struct bk_req {
	uint8_t op;    /* enum bk_op */
	uint8_t flags; /* enum bk_flag */
	uint16_t iovcnt;
	uint32_t nextents_max;	   /* BK_STATUS: room in extents */
	uint64_t off, len;	   /* bytes, multiples of block_size */
	const struct iovec *iov;   /* covers len bytes (READ, WRITE) */
	struct bk_extent *extents; /* BK_STATUS */
	void (*done)(struct bk_req *req);

	/* the result */
	/* 0 or a positive errno: ERANGE, EINVAL, EROFS and EOPNOTSUPP of the
	 * judgement; ENOSPC; EIO; EBADMSG: checksum; ESTALE: the store is gone */
	int err;
	uint32_t nextents;
	uint64_t bad_off; /* BK_READ, EIO: bytes from off that could be read */

	/* the wrapper's */
	struct bk_channel *channel;
	struct reactor_work work;  /* calls done outside of submit */
	struct bk_asked {	   /* what the caller filled, while the wrapper has */
		uint64_t off, len; /* other steps done under this request */
		const struct iovec *iov;
		uint16_t iovcnt;
		uint8_t op;
		struct iovec zeros;
	} asked;
	bool in_flight;
	bool writes_zeros; /* a BK_WRITE of zeros: not inline, there is more */
	bool then_flush;
	/* the store's */
	struct reactor_op ring_op;
	struct reactor_transfer transfer;
	struct reactor_msg msg;
	struct list link;
	struct iovec rest;
	uint64_t pos;	   /* bytes done */
	uint32_t mode;	   /* of fallocate(2); volume: the result */
	uint64_t room[24]; /* volume: its own request */
};

/* ---- a store ---- */

struct backing;

/* What a thin store holds, and how much more there is room for (shared with
 * others, perhaps); bytes. */
struct bk_space {
	uint64_t used, available;
};

/* What happens in a store by itself. */
enum bk_event {
	BK_SPACE_SHORT, /* the administrator's threshold has been reached */
};

struct backing_ops {
	const char *name;    /* "file", "block", "memory", "fault" */
	size_t backing_size; /* of the struct that begins with struct backing */
	size_t channel_size; /* of the struct that begins with struct bk_channel */
	uint32_t native;     /* 1u << bk_op that the store does itself; READ, WRITE
				 * and FLUSH must be among them */

	/* BK_FUA on what changes data is done by the store: no flush behind it. */
	bool native_fua;

	/* Serves what the settings name?  type is the S_IFMT of path, S_IFREG
	 * when there is nothing yet, 0 without a path.  NULL: never by settings. */
	bool (*serves)(const struct backing_settings *settings, mode_t type);

	/* Control thread; may block.  0 or -errno with a text.  Finds block sizes
	 * and read_only in backing->limits and fills the rest; size_bytes need
	 * not be a multiple of the block.  On error nothing is left open. */
	int (*open)(struct backing *backing, const struct backing_settings *settings,
		    struct err *err);
	void (*close)(struct backing *backing);
	/* Control thread: look at the size again with these settings; it is left
	 * to the wrapper to take it over. */
	int (*resize)(struct backing *backing, const struct backing_settings *settings,
		      uint64_t *size_bytes, struct err *err);
	/* Control thread.  The store has an identity of its own, which goes where it
	 * goes; NULL: it has not. */
	bool (*identity)(const struct backing *backing, uint8_t uuid[16]);
	/* Any thread; must not block.  False, or NULL: it does not know. */
	bool (*space)(const struct backing *backing, struct bk_space *out);
	/* On the reactor. */
	int (*attach)(struct bk_channel *channel, struct err *err);
	void (*detach)(struct bk_channel *channel);
	/* On the reactor: exactly one bk_complete() for it, here or later. */
	void (*submit)(struct bk_channel *channel, struct bk_req *req);
};

struct bk_stats {
	uint64_t ops[BK_NOPS], bytes[BK_NOPS], errors[BK_NOPS];
	uint64_t inline_ops, ring_ops; /* how requests were served */
	uint64_t unaligned;	       /* writes not aligned to the physical block */
	uint64_t writebacks;	       /* sent from the page cache to the disk unasked */
};

/* One reactor's access to a store.  Stores extend it. */
struct bk_channel {
	struct backing *backing;
	struct reactor *reactor;
	uint32_t in_flight;
	uint32_t submitting; /* depth of backing_submit() */
	bool write_inline;   /* see struct bk_req */
	struct bk_stats stats;
};

struct backing {
	const struct backing_ops *ops;
	struct bk_limits limits; /* size_bytes: read by __atomic, see below */
	char *name;		 /* for log lines: the path, or "memory" */
	uint8_t cache;		 /* enum backing_cache */
	bool broken;		 /* the store died: everything fails with ESTALE; atomic */
	struct bk_stats past;	 /* of channels that are gone */
	struct bk_channel *channel[REACTORS_MAX];
	pthread_mutex_t watch_lock;
	void (*watch)(void *arg, enum bk_event event); /* under watch_lock */
	void *watch_arg;
};

/* Control thread.  Opens what the settings name: a path of a regular file or a
 * block device by what it is, no path: memory. */
int backing_open(const struct backing_settings *settings, struct backing **out, struct err *err);
/* Control thread.  All channels must be detached; the reactors must still run,
 * as a thread of the store may be on its way out of reactor_send(). */
void backing_close(struct backing *backing);
/* Control thread.  Takes over a new size (raised `size`, grown file); 1 when
 * the capacity changed, 0 when not, -errno when refused. */
int backing_resize(struct backing *backing, const struct backing_settings *settings,
		   struct err *err);

/* Control thread.  False: it has none of its own. */
bool backing_identity(const struct backing *backing, uint8_t uuid[16]);
/* Any thread.  False: the store does not know. */
bool backing_space(const struct backing *backing, struct bk_space *out);
/* Any thread but within watch.  watch (NULL: nobody) is called on a thread of the
 * store's, which it must not block; after the next backing_watch() no more. */
void backing_watch(struct backing *backing, void (*watch)(void *arg, enum bk_event event),
		   void *arg);

/* On the reactor. */
struct bk_channel *backing_attach(struct backing *backing, struct reactor *reactor,
				  struct err *err);
void backing_detach(struct bk_channel *channel); /* nothing in flight */

/* Control thread, as attach and detach are called from there: the sum. */
void backing_stats(const struct backing *backing, struct bk_stats *out);

/* Any thread. */
static inline bool backing_broken(const struct backing *backing)
{
	return __atomic_load_n(&backing->broken, __ATOMIC_RELAXED);
}

static inline uint64_t backing_size(const struct backing *backing)
{
	return __atomic_load_n(&backing->limits.size_bytes, __ATOMIC_RELAXED);
}

/*
 * On the channel's reactor.  Everything is judged first: a request outside of
 * the store ends with ERANGE, one that a read-only store cannot do with EROFS.
 */
void backing_submit(struct bk_channel *channel, struct bk_req *req);

/* For stores: the request is done; may be called in submit (the wrapper defers
 * the caller's done) or later.  err is a positive errno. */
void bk_complete(struct bk_req *req, int err);

/* For stores, instead of bk_complete(): the wrapper does this BK_WRITE_ZEROES
 * or BK_UNMAP by writes of zeros, one BK_WRITE after the other. */
void bk_write_zeros(struct bk_req *req);

/*
 * The path of a store without symbolic links and "..", the key of its
 * identity.  The file itself may be missing, its directory may not.
 */
int backing_canonical_path(const char *path, char *out, size_t cap, struct err *err);

/* ---- the fault filter, for tests ---- */

enum fault_kind {
	FAULT_ERROR,	  /* complete with err instead of doing it */
	FAULT_DELAY,	  /* do it after delay_ms */
	FAULT_STUCK,	  /* never complete until fault_release() */
	FAULT_TORN_WRITE, /* the first half of a write, then err */
	FAULT_LOST_WRITE, /* acknowledge and do nothing */
	FAULT_POWER_CUT,  /* from here on all fails; unflushed writes are undone */
};

struct fault_rule {
	uint32_t ops; /* 1u << bk_op it is about */
	uint8_t kind;
	uint64_t nth;  /* the nth such operation, from 1 */
	bool for_ever; /* and each one after it */
	int err;
	uint32_t delay_ms;
	uint64_t off, len; /* only those that touch this range; len 0: all */
};

#define FAULT_RULES_MAX 16

/* Puts the filter in front of inner, which it then owns. */
int fault_open(struct backing *inner, const struct fault_rule *rules, unsigned int nrules,
	       struct backing **out, struct err *err);
/* Replaces the rules, counts from 1 again, brings power back; any thread. */
void fault_set(struct backing *fault, const struct fault_rule *rules, unsigned int nrules);
/* From now on the store says that it has this space, and that it is short; any
 * thread. */
void fault_space_short(struct backing *fault, const struct bk_space *space);
/* Lets every stuck request go on; any thread. */
void fault_release(struct backing *fault);

#endif
