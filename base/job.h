/*
 * Work that may block for ever, off a thread that must not.
 *
 * A file system may hang in any call (its server is gone, its device does not
 * answer), and nothing ends that call.  So what touches one is a job: it runs
 * on a thread that may hang with it, while its owner goes on and hears of it
 * when it ends, if it ever does.
 *
 *	jobs_create -> jobs_add ... -> jobs_wait, or jobs_reap when jobs_fd is
 *	readable -> jobs_destroy
 *
 * The rule: run() touches only what the job itself holds, copies of all that it
 * needs, as everything else may be gone when it goes on.  Who does not want the
 * outcome any more leaves a word in the job for done(), which clears up.
 *
 * Threads: few are enough for jobs that are quick, and they are used again; one
 * that is held up is not counted, so that nobody waits for another's hang.
 *
 * Owner: the control thread.  All functions are its own; run() is on a thread
 * of the jobs, done() on the owner's.  To add a kind of job: a struct that
 * begins with struct job, a run() and a done() that frees it.
 */
#ifndef BASE_JOB_H
#define BASE_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

/* What has not ended by then is stuck: jobs_wait() does not wait for it. */
#define JOB_STUCK_MS 2000

struct job {
	/* Filled by the owner; not touched from jobs_add() until done(). */
	const char *subject; /* what is waited for, in messages: a path */
	void (*run)(struct job *job);
	/* Out of jobs_reap() or jobs_wait(); frees the job, or adds it again. */
	void (*done)(struct job *job);

	/* the jobs' */
	struct list link;
	uint64_t since_ms; /* when it began to run, CLOCK_MONOTONIC; 0: not yet */
};

struct jobs;

/* NULL when there is no memory or no descriptor for it. */
struct jobs *jobs_create(void);
/* Is left in memory when a job is pending: its thread still uses it. */
void jobs_destroy(struct jobs *jobs);

void jobs_add(struct jobs *jobs, struct job *job);

/* Becomes readable when a job has ended. */
int jobs_fd(const struct jobs *jobs);
/* done() of those that have ended. */
void jobs_reap(struct jobs *jobs);
/*
 * Reaps until none is pending but stuck ones, for timeout_ms at most, and no
 * longer than until SIGTERM or SIGINT is pending (blocked, for a signalfd).
 * True when none is pending at all.
 */
bool jobs_wait(struct jobs *jobs, unsigned int timeout_ms);
/* Likewise for stuck ones too: the hang may just be over. */
bool jobs_drain(struct jobs *jobs, unsigned int timeout_ms);

/* Is there a job about this subject?  Another one would hang beside it. */
bool jobs_has(struct jobs *jobs, const char *subject);
/* Is there one that is stuck? */
bool jobs_is_stuck(struct jobs *jobs, const char *subject);
/* Calls fn for the subject of each pending job. */
void jobs_each(struct jobs *jobs, void (*fn)(const char *subject, void *arg), void *arg);

#endif
