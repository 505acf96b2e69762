/*
 * What a pool sees of the world: its device, the time, workers, randomness.
 *
 * Purpose: the engine is deterministic.  Under test everything here is
 * simulated (tests/crash), offline commands use the synchronous one (sync.c),
 * the daemon the reactor's (backing/volume.c).  A pool at rest (nothing in
 * flight, no fiber) may change from one environment to another: the daemon
 * opens it synchronously on a thread that may block and hands it to its home
 * reactor.
 *
 * Completions come on the pool's thread, never from within the submit; after
 * each batch of them the environment calls pool_run().
 */
#ifndef BACKING_VOLUME_ENV_H
#define BACKING_VOLUME_ENV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/list.h"

enum vdev_op {
	VDEV_READ,
	VDEV_WRITE,
	VDEV_FLUSH,    /* all writes completed before it was submitted are durable */
	VDEV_ALLOCATE, /* off..len: host space is taken, contents unchanged */
	VDEV_PUNCH,    /* host space is given back; contents undefined or zero */
	VDEV_GROW,     /* off: the new length of a file */
};

/*
 * One operation; embedded in its owner, which may not touch it or its buffers
 * until done.  off and len are multiples of 4 KiB and the buffers aligned to
 * it (VDEV_READ and VDEV_WRITE).  err: 0 or a positive errno; a short transfer
 * is EIO.
 */
struct vdev_io {
	uint8_t op;
	uint64_t off, len;
	struct iovec *iov;
	uint32_t iovcnt;
	void (*done)(struct vdev_io *io);
	int err;
	/* the environment's */
	struct list link;
	uint64_t private[24];
};

/* Work for another thread: run(job) must touch nothing but what it was given;
 * done(job) comes on the pool's thread. */
struct codec_choice;
struct codec_workspace;

struct venv_job {
	void (*run)(struct venv_job *job, struct codec_workspace *workspace);
	void (*done)(struct venv_job *job);
	struct list link;
	/* the environment's */
	void *private[5];
};

struct venv;

struct venv_ops {
	void (*submit)(struct venv *env, struct vdev_io *io);
	void (*run_job)(struct venv *env, struct venv_job *job);
	uint64_t (*now_ns)(struct venv *env);
	/* Seconds of the calendar, for "created"; NULL: 0. */
	uint64_t (*time_s)(struct venv *env);
	/* Have pool_tick() called at that time (one timer; 0: none). */
	void (*set_timer)(struct venv *env, uint64_t at_ns);
	/* pool_run() is wanted soon, from the loop. */
	void (*kick)(struct venv *env);
	void (*random)(struct venv *env, void *out, size_t len);
	/* Every workspace is made ready to compress with the choice; control path.
	 * NULL: they are ready for all.  0 or -ENOMEM. */
	int (*prepare)(struct venv *env, const struct codec_choice *choice);
	/* Sleeps until something completed and handles it; only where the pool has
	 * the thread to itself (tests, offline, opening).  NULL in the daemon. */
	void (*wait)(struct venv *env);
};

struct venv {
	const struct venv_ops *ops;
	uint64_t device_len; /* bytes, as found; changed by VDEV_GROW */
	bool file;	     /* not a block device: can grow, can be punched */
	bool read_only;
	unsigned int nworkers;		   /* jobs that run at once; 0: run_job does it itself */
	struct codec_workspace *workspace; /* of the pool's own thread */
	struct pool *pool;		   /* whose pool_run() and pool_tick() are called */
};

#endif
