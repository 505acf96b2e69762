/*
 * A pool in the daemon: opened once, shared by the LUNs of its volumes.
 *
 *	bk_pool_open (a job: it may block) -> bk_pool_start -> backing_open() of
 *	volumes ... backing_close() -> bk_pool_stop -> bk_pool_close
 *
 * It is opened and recovered synchronously on the job's thread, comes to rest,
 * and is handed to its home reactor, which from then on is the only one to touch
 * it.  What control calls want of it they have done there: bk_pool_call().
 *
 * Owner: target/pool_run.c.  The engine itself is backing/volume/pool.h.
 */
#ifndef BACKING_POOL_H
#define BACKING_POOL_H

#include "backing/settings.h"
#include "backing/volume/pool.h"
#include "base/err.h"
#include "base/reactor.h"

struct bk_pool;

/*
 * Opens the pool at settings->path, makes it where that is allowed (size given,
 * nothing there, not must_exist), grows it to size.  May block for long.  0 or
 * -errno: -ENOENT nothing is there, -EBUSY somebody else has it, -EINVAL it is
 * no pool, -EUCLEAN it is damaged; with a text.  A pool that may only be read is
 * opened: see bk_pool_info().
 */
int bk_pool_open(const char *name, const struct pool_settings *settings, struct bk_pool **out,
		 struct err *err);

/* Control thread: home has it from now on. */
int bk_pool_start(struct bk_pool *pool, struct reactor *home, struct err *err);

/*
 * Control thread or a job's: runs fn in a fiber of the pool, on its home, and
 * waits for it as long as it takes; what fn returns.
 */
int bk_pool_call(struct bk_pool *pool, int (*fn)(struct pool *engine, void *arg), void *arg);

/* A job. */
void bk_pool_set_threshold(struct bk_pool *pool, uint32_t percent);
/* Control thread: are volumes of it open? */
bool bk_pool_in_use(struct bk_pool *pool);
/* A job: raises it to size bytes.  0 or -errno with a text. */
int bk_pool_grow(struct bk_pool *pool, uint64_t size, struct err *err);

/* Any thread: as it was a second ago at most. */
void bk_pool_info(struct bk_pool *pool, struct pool_info *out);
const char *bk_pool_name(const struct bk_pool *pool);

/*
 * A job; no volume is in use.  Brings the pool to rest: false when that
 * takes longer than timeout_ms (its device does not answer); then it must be
 * left as it is.
 */
bool bk_pool_stop(struct bk_pool *pool, unsigned int timeout_ms);
/* Stopped, or never started. */
void bk_pool_close(struct bk_pool *pool);

#endif
