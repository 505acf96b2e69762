/*
 * The crew: threads that compress and check records for pools.
 *
 * One for the process, as large as it has CPUs, made by the first pool that
 * starts and gone with the last.  Each thread has a codec workspace, which is
 * made ready for a choice before a volume uses it.
 *
 * Jobs of one pool may run at the same time and end in any order; each completes
 * on the pool's reactor.  The queue needs no bound of its own: a job is part of
 * a group or a fetch of a pool, and those are bounded.
 */
#ifndef BACKING_CREW_H
#define BACKING_CREW_H

#include "backing/volume/env.h"
#include "base/err.h"
#include "base/reactor.h"

struct crew;

/* Control thread or a job's: counted. */
struct crew *crew_get(struct err *err);
void crew_put(struct crew *crew);
unsigned int crew_size(const struct crew *crew);

/* On a reactor: run on one of the threads; then done(job, arg) on the reactor. */
void crew_run(struct crew *crew, struct venv_job *job, struct reactor *reactor,
	      void (*done)(struct venv_job *job, void *arg), void *arg);
/* Any thread: every workspace is ready for the choice afterwards; 0 or -ENOMEM. */
int crew_prepare(struct crew *crew, const struct codec_choice *choice);

#endif
