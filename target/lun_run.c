/*
 * One LUN and its store, over the time of the daemon.
 *
 * A LUN exists for its hosts from the first configuration that names it, with
 * or without its store: a disk that comes late (a zvol, a mount) must keep its
 * number and not stop the others.  Until then it is NOT READY.
 *
 * Stores are opened, resized and closed in jobs (lun_job.h): the control thread
 * never waits for a file system that hangs.  There is one job about a path at a
 * time, whatever LUN it was for, so that nothing piles up behind a hang and
 * nobody finds a store locked by its own predecessor.
 *
 * Identity: kept in the state directory under the canonical path of the store,
 * which can be known late (a directory that is not mounted).  Until the store
 * has been opened the LUN has what the state knows of the path as it stands, or
 * a random identity that is not kept; if the opened store has another one, the
 * scsi_lun is made anew under the same number, so that no host takes one disk
 * for another.
 */
#include "target/lun_job.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "target/clock.h"
#include "target/pool_run.h"

static struct scsi_lun *scsi_create(const struct config_lun *config,
				    const struct scsi_identity *identity)
{
	return scsi_lun_create(config->name, &config->scsi, identity);
}

/* A scsi_lun of this identity, in the place of the one there is. */
static int identity_change(struct running *run, struct lun_run *lun,
			   const struct scsi_identity *identity, struct err *err)
{
	struct scsi_lun *fresh = scsi_create(lun->config, identity), *old = lun->scsi;

	if (!fresh)
		return err_set(err, ENOMEM, "no memory");
	targets_remap(run, lun, fresh);
	lun->scsi = fresh;
	lun->identity = *identity;
	scsi_lun_destroy(old);
	return 0;
}

/* ---- why it has no store ---- */

static bool problem_is_new(struct lun_run *lun, const char *problem)
{
	if (strcmp(lun->problem, problem) == 0)
		return false;
	snprintf(lun->problem, sizeof(lun->problem), "%s", problem);
	return true;
}

/* Logs a problem once, not at each try. */
static void problem_set(struct lun_run *lun, const char *problem)
{
	lun->retry_at_ms = clock_ms() + LUN_RETRY_MS;
	if (problem_is_new(lun, problem))
		log_error("LUN %s: NOT READY: %s (tried again every %d s)", lun->config->name,
			  problem, LUN_RETRY_MS / 1000);
}

static void waiting_set(struct lun_run *lun, const char *subject)
{
	struct err text;

	err_set(&text, EAGAIN, "its store does not open (waiting for %s)", subject);
	if (problem_is_new(lun, text.text))
		log_error("LUN %s: NOT READY: %s", lun->config->name, lun->problem);
}

/* What it waits for to get its store: a subject of jobs, its pool first. */
static const char *awaited(const struct running *run, const struct lun_run *lun)
{
	const struct config_pool *pool = lun->config->pool;

	return pool && jobs_has(run->jobs, pool->settings.path) ? pool->settings.path
								: lun->subject;
}

void lun_run_look(struct running *run, struct lun_run *lun)
{
	if (!scsi_lun_backing(lun->scsi) && jobs_is_stuck(run->jobs, awaited(run, lun)))
		waiting_set(lun, awaited(run, lun));
}

void luns_wait(struct running *run, unsigned int *budget_ms)
{
	uint64_t start_ms = clock_ms(), took_ms;

	if (!jobs_wait(run->jobs, *budget_ms))
		list_for_each(link, &run->luns) {
			struct lun_run *lun = container_of(link, struct lun_run, link);

			if (!scsi_lun_backing(lun->scsi) && jobs_has(run->jobs, awaited(run, lun)))
				waiting_set(lun, awaited(run, lun));
		}
	took_ms = clock_ms() - start_ms;
	*budget_ms -= took_ms < *budget_ms ? (unsigned int)took_ms : *budget_ms;
}

/* ---- jobs ---- */

/* What the strictest of the changed rows asks for; -1 when none changed. */
static int change_class(const struct option_spec *table, const void *a, const void *b)
{
	int class = -1;

	for (const struct option_spec *row = table; row->key; row++)
		if (!option_equal(row, a, b) && (int)row->reload > class)
			class = (int)row->reload;
	return class;
}

static void work_done(struct job *base);

/* False: no memory. */
static bool work_start(struct running *run, struct lun_run *lun, enum lun_work work,
		       struct backing *backing)
{
	struct lun_job *job = lun_job_create(run, lun, work, backing, work_done);

	if (!job)
		return false;
	if (work != LUN_CLOSE) {
		job->lun = lun;
		lun->job = job;
	}
	/* What was known of the path need not be that of what it leads to. */
	if (work == LUN_OPEN && lun->guessed)
		lun_identity_random(&job->identity);
	jobs_add(run->jobs, &job->job);
	return true;
}

/* Gives the store to the LUN; false: it is to be closed. */
static bool store_take(struct lun_job *job)
{
	struct running *run = job->run;
	struct lun_run *lun = job->lun;
	struct err err = { "" };
	char size[64];
	int rc = 0;

	if (memcmp(&job->identity, &lun->identity, sizeof(job->identity)) != 0)
		rc = identity_change(run, lun, &job->identity, &err);
	if (rc == 0)
		rc = scsi_lun_set_backing(lun->scsi, job->backing, run->reactors, run->nreactors,
					  &err);
	if (rc < 0) {
		problem_set(lun, err.text);
		return false;
	}
	lun->guessed = lun->resize = false;
	size_format(backing_size(job->backing), size, sizeof(size));
	log_info("LUN %s: serves %s, %s", lun->config->name,
		 lun->config->backing.volume ? lun->config->backing.volume
		 : lun->config->backing.path ? lun->config->backing.path
					     : "memory",
		 size);
	lun->problem[0] = '\0';
	return true;
}

/* True when the store is to be closed. */
static bool open_done(struct lun_job *job)
{
	struct lun_run *lun = job->lun;

	if (job->rc < 0) {
		if (lun)
			problem_set(lun, job->err.text);
		return false;
	}
	if (!lun)
		return true;
	if (change_class(backing_options, &job->settings, &lun->config->backing) >= 0) {
		/* Again, as it is to be now, as soon as it is closed. */
		lun->retry_at_ms = 0;
		return true;
	}
	return !store_take(job);
}

/* Likewise. */
static bool resize_done(struct lun_job *job)
{
	uint64_t now = backing_size(job->backing);
	struct lun_run *lun = job->lun;
	char size[64];

	if (!lun)
		return job->close;
	if (job->rc < 0)
		log_error("LUN %s: keeps its size: %s", lun->config->name, job->err.text);
	if (job->rc > 0) {
		scsi_lun_capacity_changed(lun->scsi);
		size_format(now, size, sizeof(size));
		if (now < job->old_size)
			log_warning("LUN %s: has a new size, %s, and is smaller than before: a "
				    "file system that reaches beyond it is broken until the size "
				    "is raised again",
				    lun->config->name, size);
		else
			log_info("LUN %s: has a new size, %s", lun->config->name, size);
	}
	return false;
}

static void work_done(struct job *base)
{
	struct lun_job *job = container_of(base, struct lun_job, job);
	bool close = false;

	if (job->lun)
		job->lun->job = NULL;
	if (job->work == LUN_OPEN)
		close = open_done(job);
	else if (job->work == LUN_RESIZE)
		close = resize_done(job);
	if (!close) {
		lun_job_free(job);
		return;
	}
	job->lun = NULL;
	job->work = LUN_CLOSE;
	jobs_add(job->run->jobs, base);
}

/* Else the LUN says why. */
static bool pool_is_open(struct running *run, struct lun_run *lun)
{
	const struct pool_run *pool = pool_run_of(run, lun->config);
	const char *problem = pool ? pool_run_problem(pool) : "it is gone";
	struct err text;

	if (!problem)
		return true;
	err_set(&text, ENOENT, "its pool %s is not open: %.900s", lun->config->pool->name, problem);
	if (!jobs_has(run->jobs, lun->config->pool->settings.path))
		problem_set(lun, text.text);
	else if (!lun->problem[0])
		snprintf(lun->problem, sizeof(lun->problem), "%s", text.text);
	return false;
}

void lun_run_try(struct running *run, struct lun_run *lun)
{
	if (scsi_lun_backing(lun->scsi) || lun->job || jobs_has(run->jobs, lun->subject))
		return;
	if (lun->config->pool && !pool_is_open(run, lun))
		return;
	if (!work_start(run, lun, LUN_OPEN, NULL))
		problem_set(lun, "no memory to open its store");
}

/* ---- life ---- */

static char *subject_of(const struct config_lun *config)
{
	char *subject;

	if (config->backing.volume)
		return strdup(config->backing.volume);
	if (config->backing.path)
		return strdup(config->backing.path);
	return asprintf(&subject, "ramdisk:%s", config->name) < 0 ? NULL : subject;
}

struct lun_run *lun_run_create(struct running *run, const struct config_lun *config)
{
	struct lun_run *lun = calloc(1, sizeof(*lun));

	if (!lun)
		return NULL;
	list_init(&lun->link);
	lun->config = lun->wanted = config;
	lun->fresh = true;
	lun->subject = subject_of(config);
	if (!lun->subject)
		goto fail;
	lun->guessed = state_lun_load(run->state, lun->subject, &lun->identity, NULL) == 1;
	if (!lun->guessed)
		lun_identity_random(&lun->identity);
	lun->scsi = scsi_create(config, &lun->identity);
	if (!lun->scsi)
		goto fail;
	lun_run_try(run, lun);
	return lun;
fail:
	free(lun->subject);
	free(lun);
	return NULL;
}

/* Takes the store away from the LUN, and has it closed. */
static void store_close(struct running *run, struct lun_run *lun)
{
	struct backing *backing = scsi_lun_backing(lun->scsi);
	struct err err;

	if (!backing)
		return;
	if (scsi_lun_set_backing(lun->scsi, NULL, run->reactors, run->nreactors, &err) < 0) {
		log_error("LUN %s: %s", lun->config->name, err.text);
		return;
	}
	if (lun->job) {
		/* It is being resized: closed when that ends. */
		lun->job->close = true;
		lun->job->lun = NULL;
		lun->job = NULL;
	} else if (!work_start(run, lun, LUN_CLOSE, backing)) {
		backing_close(backing);
	}
}

void lun_run_close(struct running *run, struct lun_run *lun, const char *problem)
{
	store_close(run, lun);
	problem_set(lun, problem);
	if (scsi_lun_backing(lun->scsi))
		lun->retry_at_ms = clock_ms() + LUN_STUCK_RETRY_MS;
}

void lun_run_destroy(struct running *run, struct lun_run *lun)
{
	store_close(run, lun);
	if (lun->job)
		lun->job->lun = NULL;
	list_del(&lun->link);
	if (scsi_lun_backing(lun->scsi))
		run->nstuck++;
	else
		scsi_lun_destroy(lun->scsi);
	free(lun->subject);
	free(lun);
}

static bool pool_is_another(const struct config_lun *a, const struct config_lun *b)
{
	return a->pool && b->pool && strcmp(a->pool->settings.path, b->pool->settings.path) != 0;
}

void lun_run_update(struct running *run, struct lun_run *lun)
{
	const struct config_lun *old = lun->config, *wanted = lun->wanted;
	bool reopen = change_class(backing_options, &old->backing, &wanted->backing) >
			      (int)RELOAD_LIVE ||
		      pool_is_another(old, wanted);

	lun->config = wanted;
	if (change_class(scsi_lun_options, &old->scsi, &wanted->scsi) >= 0)
		scsi_lun_set_settings(lun->scsi, &wanted->scsi);
	if (reopen && scsi_lun_backing(lun->scsi)) {
		log_info("LUN %s: opens its store again, with new settings", wanted->name);
		store_close(run, lun);
		lun->retry_at_ms = 0;
	}
	if (!scsi_lun_backing(lun->scsi))
		lun_run_try(run, lun);
	/* The size is read again on every reload, for files that grew. */
	lun->resize = true;
	lun_run_resize(run, lun);
}

void lun_run_resize(struct running *run, struct lun_run *lun)
{
	struct backing *backing = scsi_lun_backing(lun->scsi);

	if (!lun->resize || !backing || jobs_has(run->jobs, lun->subject))
		return;
	lun->resize = false;
	if (!work_start(run, lun, LUN_RESIZE, backing))
		log_error("LUN %s: keeps its size: no memory", lun->config->name);
}
