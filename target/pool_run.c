#include "target/pool_run.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <time.h>

#include "base/log.h"
#include "target/clock.h"
#include "target/lun_job.h"

/* Memory of all pools that do not say how much: a part of RAM. */
#define MEMORY_SHARE 8

enum pool_work { POOL_OPEN, POOL_UPDATE, POOL_CLOSE };

struct pool_job {
	struct job job;
	struct running *run;
	struct pool_run *owner; /* NULL: it is gone */

	/* the thread's, from jobs_add() until done() */
	enum pool_work work;
	struct state *state;
	char *name;
	struct pool_settings settings;
	struct bk_pool *pool;
	int rc;
	struct err err;
};

/* ---- on the job's thread ---- */

static int open_pool(struct pool_job *job)
{
	struct pool_settings *settings = &job->settings;
	char key[PATH_MAX], file[PATH_MAX];
	struct scsi_identity identity;
	int known, rc = backing_canonical_path(settings->path, key, sizeof(key), &job->err);

	if (rc < 0)
		return rc;
	lun_identity_random(&identity);
	known = state_lun_load(job->state, key, &identity, &job->err);
	if (known < 0)
		return known;
	settings->must_exist = known == 1;
	rc = bk_pool_open(job->name, settings, &job->pool, &job->err);
	if (rc == -ENOENT && known == 1 && settings->size != 0) {
		state_lun_file(job->state, key, file, sizeof(file));
		return err_set(
			&job->err, ENOENT,
			"%s is missing but has been served before: it is lost, or what it "
			"lies on is not mounted; to begin anew with an empty pool, remove %s",
			key, file);
	}
	if (rc < 0 || known == 1)
		return rc;
	rc = backing_canonical_path(settings->path, key, sizeof(key), &job->err);
	if (rc == 0)
		rc = state_lun_keep(job->state, key, &identity, &job->err);
	if (rc < 0) {
		bk_pool_close(job->pool);
		job->pool = NULL;
	}
	return rc;
}

static int update_pool(struct pool_job *job)
{
	struct pool_info info;

	bk_pool_info(job->pool, &info);
	bk_pool_set_threshold(job->pool, job->settings.threshold);
	if (job->settings.size <= info.len)
		return 0;
	return bk_pool_grow(job->pool, job->settings.size, &job->err);
}

/* For as long as it takes: the daemon does not wait for jobs that hang. */
static void close_pool(struct pool_job *job)
{
	struct timespec pause = { .tv_nsec = 10000000 };

	while (!bk_pool_stop(job->pool, UINT_MAX))
		nanosleep(&pause, NULL);
	bk_pool_close(job->pool);
}

static void work_run(struct job *base)
{
	struct pool_job *job = container_of(base, struct pool_job, job);

	switch (job->work) {
	case POOL_OPEN: job->rc = open_pool(job); break;
	case POOL_UPDATE: job->rc = update_pool(job); break;
	case POOL_CLOSE: close_pool(job); break;
	}
}

/* ---- jobs ---- */

static void pool_job_free(struct pool_job *job)
{
	free((char *)job->settings.path);
	free(job->name);
	free(job);
}

/* Of what is left of an eighth of RAM, the part of one pool that is not open. */
static uint64_t memory_share(const struct running *run)
{
	uint64_t left = 0, n = 0, given = 0;
	struct sysinfo info;

	list_for_each(link, &run->pools) {
		const struct pool_run *pool = container_of(link, struct pool_run, link);
		uint64_t memory = pool->memory;

		if (memory == 0 && pool->config)
			memory = pool->config->settings.cache_memory;
		given += memory;
		n += memory == 0;
	}
	if (sysinfo(&info) == 0)
		left = (uint64_t)info.totalram * info.mem_unit / MEMORY_SHARE;
	left = left > given ? (left - given) / (n ? n : 1) : 0;
	return left > POOL_CACHE_MEMORY_MIN ? left : POOL_CACHE_MEMORY_MIN;
}

static void work_done(struct job *base);

/* False: no memory. */
static bool work_start(struct running *run, struct pool_run *owner, enum pool_work work)
{
	struct pool_job *job = calloc(1, sizeof(*job));

	if (!job)
		return false;
	job->run = run;
	job->owner = owner;
	job->work = work;
	job->state = run->state;
	job->pool = owner->pool;
	if (owner->config)
		job->settings = owner->config->settings;
	if (job->settings.cache_memory == 0)
		job->settings.cache_memory = memory_share(run);
	job->name = strdup(owner->name);
	job->settings.path = strdup(owner->path);
	if (!job->name || !job->settings.path) {
		pool_job_free(job);
		return false;
	}
	if (work == POOL_OPEN)
		owner->memory = job->settings.cache_memory;
	job->job =
		(struct job){ .subject = job->settings.path, .run = work_run, .done = work_done };
	owner->job = job;
	jobs_add(run->jobs, &job->job);
	return true;
}

static void problem_set(struct pool_run *pool, const char *problem)
{
	pool->memory = 0;
	pool->retry_at_ms = clock_ms() + LUN_RETRY_MS;
	if (strcmp(pool->problem, problem) == 0)
		return;
	snprintf(pool->problem, sizeof(pool->problem), "%s", problem);
	log_error("pool %s: not open: %s (tried again every %d s)", pool->name, problem,
		  LUN_RETRY_MS / 1000);
}

static struct reactor *home_of(const struct running *run, const struct pool_run *pool)
{
	unsigned int n = 0;

	list_for_each(link, &run->pools) {
		if (link == &pool->link)
			break;
		n++;
	}
	return run->reactors[n % run->nreactors];
}

static void luns_try(struct running *run, const struct pool_run *pool)
{
	list_for_each(link, &run->luns) {
		struct lun_run *lun = container_of(link, struct lun_run, link);

		if (lun->config && pool_run_of(run, lun->config) == pool)
			lun_run_try(run, lun);
	}
}

static void open_done(struct pool_job *job)
{
	struct pool_run *owner = job->owner;
	struct pool_info info;
	struct err err;

	if (job->rc == 0 && bk_pool_start(job->pool, home_of(job->run, owner), &err) < 0) {
		bk_pool_close(job->pool);
		job->rc = err_set(&job->err, ENOMEM, "%.900s", err.text);
	}
	if (job->rc < 0) {
		problem_set(owner, job->err.text);
		luns_try(job->run, owner);
		return;
	}
	owner->pool = job->pool;
	owner->problem[0] = '\0';
	bk_pool_info(job->pool, &info);
	log_info("pool %s: open, %s, %llu MiB, %llu MiB for writes%s%s", owner->name, owner->path,
		 (unsigned long long)(info.len >> 20), (unsigned long long)(info.available >> 20),
		 info.read_only ? ", read-only: " : "", info.read_only ? info.why_read_only : "");
	luns_try(job->run, owner);
}

static void pool_run_free(struct pool_run *pool)
{
	list_del(&pool->link);
	free(pool->name);
	free(pool->path);
	free(pool);
}

static void work_done(struct job *base)
{
	struct pool_job *job = container_of(base, struct pool_job, job);
	struct pool_run *owner = job->owner;

	owner->job = NULL;
	switch (job->work) {
	case POOL_OPEN: open_done(job); break;
	case POOL_UPDATE:
		if (job->rc < 0)
			log_error("pool %s: keeps its size: %s", owner->name, job->err.text);
		break;
	case POOL_CLOSE:
		owner->pool = NULL;
		owner->memory = 0;
		log_info("pool %s: closed", owner->name);
		if (!owner->config)
			pool_run_free(owner);
	}
	pool_job_free(job);
}

static void pool_try(struct running *run, struct pool_run *pool)
{
	if (pool->pool || pool->job || jobs_has(run->jobs, pool->path))
		return;
	if (!work_start(run, pool, POOL_OPEN))
		problem_set(pool, "no memory to open it");
}

/* ---- for LUNs ---- */

const char *pool_run_problem(const struct pool_run *pool)
{
	if (pool->pool && pool->job && pool->job->work == POOL_CLOSE)
		return "it is being closed";
	if (pool->pool)
		return NULL;
	return pool->problem[0] ? pool->problem : "it is being opened";
}

struct pool_run *pool_run_of(struct running *run, const struct config_lun *config)
{
	list_for_each(link, &run->pools) {
		struct pool_run *pool = container_of(link, struct pool_run, link);

		if (config->pool && strcmp(pool->path, config->pool->settings.path) == 0)
			return pool;
	}
	return NULL;
}

static struct pool_run *pool_run_create(const struct config_pool *config)
{
	struct pool_run *pool = calloc(1, sizeof(*pool));

	if (!pool)
		return NULL;
	list_init(&pool->link);
	pool->config = pool->wanted = config;
	pool->fresh = true;
	pool->name = strdup(config->name);
	pool->path = strdup(config->settings.path);
	if (pool->name && pool->path)
		return pool;
	pool_run_free(pool);
	return NULL;
}

/* ---- apply ---- */

int pools_match(struct running *run, const struct config *config, struct err *err)
{
	list_for_each(link, &run->pools)
		container_of(link, struct pool_run, link)->wanted = NULL;
	for (const struct config_pool *c = config->pools; c; c = c->next) {
		struct pool_run *found = NULL;

		list_for_each(link, &run->pools) {
			struct pool_run *pool = container_of(link, struct pool_run, link);

			if (strcmp(pool->path, c->settings.path) == 0)
				found = pool;
		}
		if (!found) {
			found = pool_run_create(c);
			if (!found)
				return err_set(err, ENOMEM, "pool %s: no memory", c->name);
			list_add_tail(&run->pools, &found->link);
		}
		found->wanted = c;
	}
	/* After all are known, as those without cache-memory share it. */
	list_for_each(link, &run->pools) {
		struct pool_run *pool = container_of(link, struct pool_run, link);

		if (pool->fresh)
			pool_try(run, pool);
	}
	return 0;
}

static void pool_update(struct pool_run *pool)
{
	const struct pool_settings *old = &pool->config->settings, *now = &pool->wanted->settings;

	if (old->size != now->size || old->threshold != now->threshold)
		pool->update = true;
	if (old->cache_memory != now->cache_memory)
		log_warning("pool %s: cache-memory changed: this takes effect when the daemon is "
			    "restarted",
			    pool->name);
}

static void update_try(struct running *run, struct pool_run *pool)
{
	if (pool->update && pool->pool && !pool->job)
		pool->update = !work_start(run, pool, POOL_UPDATE);
}

/* Closes it when nothing of it is in use; it may take several tries. */
static void pool_leave(struct running *run, struct pool_run *pool)
{
	if (pool->job || pool->nusers > 0)
		return;
	if (!pool->pool) {
		pool_run_free(pool);
		return;
	}
	if (!bk_pool_in_use(pool->pool))
		work_start(run, pool, POOL_CLOSE);
}

void pools_commit(struct running *run)
{
	list_for_each_safe(link, &run->pools) {
		struct pool_run *pool = container_of(link, struct pool_run, link);

		if (pool->wanted) {
			if (pool->config && !pool->fresh)
				pool_update(pool);
			pool->config = pool->wanted;
			pool->fresh = false;
			update_try(run, pool);
		} else {
			pool->config = NULL;
			pool_leave(run, pool);
		}
	}
}

void pools_undo(struct running *run)
{
	list_for_each_safe(link, &run->pools) {
		struct pool_run *pool = container_of(link, struct pool_run, link);

		if (pool->fresh) {
			pool->config = NULL;
			pool_leave(run, pool);
		}
	}
}

void pools_tick(struct running *run)
{
	uint64_t now = clock_ms();

	list_for_each_safe(link, &run->pools) {
		struct pool_run *pool = container_of(link, struct pool_run, link);

		if (!pool->config)
			pool_leave(run, pool);
		else if (!pool->pool && now >= pool->retry_at_ms)
			pool_try(run, pool);
		else
			update_try(run, pool);
	}
}

void pools_stop(struct running *run)
{
	list_for_each_safe(link, &run->pools) {
		struct pool_run *pool = container_of(link, struct pool_run, link);

		pool->config = NULL;
		pool_leave(run, pool);
	}
}
