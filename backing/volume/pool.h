/*
 * A pool: one device that holds many compressed, checksummed, thin volumes.
 *
 * VOLUME design in short: everything is appended to segments; the log is the
 * data; the map (tree.h, region.h) says where the newest record of each sector
 * is; what was not merged into the map yet is redone from the log at open.
 * docs/volume-format.md is the format, docs/ARCHITECTURE.md where things are.
 *
 * Thread: a pool and all its volumes belong to one thread at a time, that of
 * its environment (env.h); none of this may be called from another.  Fibers
 * (base/fiber.h) do what takes several steps.
 *
 * Control calls (pool_open, volume_create, ...) are for a fiber or, where
 * env->wait is set, for the thread itself: they wait.  Requests
 * (volume_submit) never wait.
 */
#ifndef BACKING_VOLUME_POOL_H
#define BACKING_VOLUME_POOL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "backing/volume/env.h"
#include "backing/volume/format.h"
#include "base/err.h"
#include "base/list.h"
#include "compress/codec.h"

struct pool;
struct volume;

/* ---- life ---- */

struct pool_create_args {
	uint64_t len;	      /* bytes of the device to use; 0: all */
	uint32_t segment_len; /* 0: by len and host_free */
	uint64_t host_free;   /* bytes; UINT64_MAX: not thin */
	const char *label;
};

struct pool_open_args {
	const char *name;      /* for messages and log lines */
	uint64_t cache_memory; /* bytes; all of the pool's memory; >= POOL_MEMORY_MIN */
	uint8_t threshold;     /* percent used at which pool_events.threshold comes */
	bool read_only;
	bool quiet;			  /* no log lines (tests) */
	const struct pool_events *events; /* may be NULL */
	void *events_arg;
	uint32_t mutant; /* tests/crash: a forbidden shortcut to take; 0: none */
};
#define POOL_MEMORY_MIN (24ull << 20)

/* Called on the pool's thread. */
struct pool_events {
	void (*threshold)(void *arg);		    /* used rose above it */
	void (*fenced)(void *arg, const char *why); /* read-only from now on */
};

/* Makes a pool on an environment's device, which holds nothing that is known:
 * -EEXIST when a superblock of a pool is found there and !force. */
int pool_create(struct venv *env, const struct pool_create_args *args, bool force, struct err *err);

/*
 * Recovers and opens.  0 or -errno with a text: -EINVAL not a pool, -EUCLEAN
 * damaged, -EOPNOTSUPP unknown features, -EIO.  A pool whose log is damaged
 * before its end opens read-only (pool_read_only() says why); what a torn tail
 * is, is in recover.c.
 */
int pool_open(struct venv *env, const struct pool_open_args *args, struct pool **out,
	      struct err *err);
/* Makes everything durable, writes a checkpoint, and brings the pool to rest:
 * nothing in flight, no fiber; -errno when that failed (fenced, stuck). */
int pool_quiesce(struct pool *pool, struct err *err);
/* Leaves quiescence, in the environment given (which may be the same). */
void pool_resume(struct pool *pool, struct venv *env);
/* Frees it; at rest, or given up (its device failed): no I/O is begun. */
void pool_close(struct pool *pool);

/* The environment's calls. */
void pool_run(struct pool *pool);  /* after completions: runs what became ready */
void pool_tick(struct pool *pool); /* the timer */

/* fn(arg) in a fiber of the pool, from pool_run() on; false: too many. */
bool pool_fiber(struct pool *pool, void (*fn)(void *arg), void *arg);

/* Percent used at which events->threshold comes. */
void pool_set_threshold(struct pool *pool, uint32_t percent);
/* Larger device: takes it into use.  0 or -errno. */
int pool_grow(struct pool *pool, uint64_t len, struct err *err);
/* Forces a checkpoint. */
int pool_checkpoint(struct pool *pool, struct err *err);

struct pool_info {
	uint8_t uuid[16];
	char label[VF_NAME_MAX + 1];
	uint64_t len, host_len;		   /* bytes: geometry, allocated by the host */
	uint64_t used, charged, available; /* bytes: live records; promised; for writes */
	uint64_t map_bytes;		   /* of used: map pages */
	uint64_t mapped, stored;	   /* bytes: logical data, and what holds it */
	uint32_t segment_len, nvolumes, incarnation;
	uint64_t nsegments, segments_free;
	uint64_t checkpoints, durable_seq, replay_bytes;
	uint64_t user_bytes, log_bytes, moved_bytes, bulk_map_bytes; /* written since open */
	uint64_t memory, memory_max;				     /* bytes in use, highest */
	bool read_only;
	bool read_only_asked; /* it was opened so: nothing is wrong with it */
	const char *why_read_only;
};
void pool_info(const struct pool *pool, struct pool_info *out);

/* ---- volumes ---- */

struct volume_settings {
	uint64_t nsectors;   /* of 512 bytes */
	uint32_t block_len;  /* 512 or 4096 */
	uint32_t record_len; /* 4 KiB..1 MiB */
	struct codec_choice codec;
	uint8_t checksum; /* enum vf_checksum */
};

struct volume_info {
	uint32_t id;
	uint8_t uuid[16];
	char name[VF_NAME_MAX + 1];
	struct volume_settings settings;
	uint64_t created_s;
	uint64_t mapped, stored; /* bytes: logical, and records that hold it */
	bool deleting;
};

/* All wait until durable.  -EEXIST, -ENOENT, -EINVAL, -ENOSPC, -EROFS, -EBUSY. */
int volume_create(struct pool *pool, const char *name, const struct volume_settings *settings,
		  struct volume **out, struct err *err);
struct volume *volume_find(struct pool *pool, const char *name);
struct volume *volume_next(struct pool *pool,
			   struct volume *after); /* NULL: first; in order of name */
/* Raises nsectors, changes codec, level and record_len for what is written from
 * now on; another block_len or checksum or a smaller nsectors is -EINVAL. */
int volume_set(struct volume *volume, const struct volume_settings *settings, struct err *err);
/* Gone at once and durably; its space comes back in the background.  -EBUSY
 * while it is in use. */
int volume_delete(struct volume *volume, struct err *err);
void volume_info(const struct volume *volume, struct volume_info *out);
/* Counts its users: a LUN, an export. */
int volume_get(struct volume *volume, struct err *err);
void volume_put(struct volume *volume);

/* ---- requests ---- */

enum vreq_op {
	VREQ_READ,
	VREQ_WRITE,
	VREQ_FLUSH,
	VREQ_TRIM,   /* a hint: reads zeros after; parts may stay when space is short */
	VREQ_ZERO,   /* reads zeros after; charged as a write of metadata */
	VREQ_STATUS, /* the first extent at lba: mapped or not */
};

enum vreq_flag {
	VREQ_FUA = 1u << 0,
};

/* A part of a read: where it is to be had. */
enum vpiece_kind { VPIECE_ZERO, VPIECE_MEMORY, VPIECE_RECORD, VPIECE_DAMAGED };

/*
 * Embedded in its owner; the iovs stay valid until done.  done comes once, from
 * pool_run() or later, never from within volume_submit().
 */
struct vreq {
	uint8_t op, flags;
	uint64_t lba, nsectors;
	const struct iovec *iov; /* READ, WRITE: covers nsectors */
	uint32_t iovcnt;
	void (*done)(struct vreq *req);
	/* the result */
	int err;	  /* positive errno: ENOSPC, EIO, EBADMSG, EROFS */
	uint64_t bad_lba; /* READ with EBADMSG or EIO: first sector that cannot be had */
	uint64_t extent;  /* STATUS: sectors */
	bool mapped;	  /* STATUS */
	/* the engine's */
	struct list link;
	struct volume *volume;
	uint64_t ticket;
};

void volume_submit(struct volume *volume, struct vreq *req);

/* ---- check ---- */

enum pool_check_depth { POOL_CHECK_QUICK, POOL_CHECK_FULL, POOL_CHECK_DEEP };

struct pool_check_report {
	uint64_t nerrors;
	uint64_t nleaves, nentries, nrecords, bytes_read;
	/* Each fault in one line: what, where, and the number of its invariant. */
	void (*say)(void *arg, const char *line);
	void *arg;
};

/* On an open pool at rest; reads only. */
int pool_check(struct pool *pool, enum pool_check_depth depth, struct pool_check_report *report,
	       struct err *err);

#endif
