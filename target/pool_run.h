/*
 * One pool and what is done to it, over the time of the daemon.
 *
 * A pool is known by its path.  It is opened, grown and closed in jobs
 * (base/job.h), as its device may hang and a recovery takes its time.  Until it
 * is open its LUNs are NOT READY and say why; one that cannot be opened is tried
 * again every few seconds.  It is closed when the configuration has it no more
 * and none of its volumes is in use.
 *
 * Owner: struct running.  Control thread, but for what a thread of the jobs does.
 */
#ifndef TARGET_POOL_RUN_H
#define TARGET_POOL_RUN_H

#include "backing/pool.h"
#include "target/running.h"

struct pool_job;

struct pool_run {
	struct list link;		  /* running.pools */
	const struct config_pool *config; /* in running.config, NULL: leaving */
	const struct config_pool *wanted; /* in apply: the new one, NULL: removed */
	bool fresh;
	bool update;	      /* size or threshold are to be looked at again */
	char *name, *path;    /* as configured when it was made */
	struct bk_pool *pool; /* started; NULL: not open */
	uint64_t memory;      /* bytes: what the open pool was given */
	struct pool_job *job;
	unsigned int ncalls; /* of operators (pool_control.c): not closed meanwhile */
	unsigned int nusers; /* jobs of LUNs that may look at pool */
	uint64_t retry_at_ms;
	char problem[ERR_TEXT_MAX]; /* why it is not open; "" when it is */
};

/* Finds or makes what config names, and begins to open it; in apply. */
int pools_match(struct running *run, const struct config *config, struct err *err);
/* What is not wanted any more is left to be closed; the others are updated. */
void pools_commit(struct running *run);
/* Those that were made for a configuration that is not taken. */
void pools_undo(struct running *run);
/* Tries again, closes what is leaving. */
void pools_tick(struct running *run);
/* Begins to close all; what does not end is stuck, as other jobs. */
void pools_stop(struct running *run);

/* Why the LUNs of it have to wait; NULL: they need not. */
const char *pool_run_problem(const struct pool_run *pool);

/* The pool of a LUN's volume, by what it is configured as; NULL: none. */
struct pool_run *pool_run_of(struct running *run, const struct config_lun *config);

#endif
