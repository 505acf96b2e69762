/*
 * What is done to the store of a LUN in a job (base/job.h), as its file system
 * may hang: opening with its identity, resizing, closing.
 *
 * The job has copies of all that its thread needs; the LUN may be renamed, be
 * resized again or be gone when the job ends.  What is opened for several LUNs
 * at once gets a job of its own kind beside this one.
 *
 * Owner: lun_run.c.  Control thread, but for what a thread of the jobs does.
 */
#ifndef TARGET_LUN_JOB_H
#define TARGET_LUN_JOB_H

#include "base/job.h"
#include "target/running.h"

enum lun_work {
	LUN_OPEN,   /* backing and identity are filled when rc is 0 */
	LUN_RESIZE, /* of backing; rc as that of backing_resize() */
	LUN_CLOSE,  /* of backing */
};

struct lun_job {
	struct job job;
	struct running *run;
	struct lun_run *lun;   /* NULL: it is gone, or does not want the outcome */
	struct pool_run *pool; /* settings.pool is its: kept open; or NULL */
	bool close;	       /* LUN_RESIZE: the LUN has let go of backing */

	/* the thread's, from jobs_add() until done() */
	enum lun_work work;
	struct state *state;
	char *subject; /* as lun_run.subject */
	struct backing_settings settings;
	/* in: for a store that was never served; out: the one it has */
	struct scsi_identity identity;
	struct backing *backing;
	uint64_t old_size; /* LUN_RESIZE: bytes */
	int rc;
	struct err err;
};

/* With the settings that lun is configured with; NULL: no memory. */
struct lun_job *lun_job_create(struct running *run, struct lun_run *lun, enum lun_work work,
			       struct backing *backing, void (*done)(struct job *job));
void lun_job_free(struct lun_job *job);

/* A new one. */
void lun_identity_random(struct scsi_identity *identity);

#endif
