/* The store of a LUN, on a thread that may hang: see lun_job.h. */
#include "target/lun_job.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "target/pool_run.h"

void lun_identity_random(struct scsi_identity *identity)
{
	size_t len = 0;

	/* Interrupted calls give less; it cannot fail otherwise. */
	while (len < sizeof(identity->uuid)) {
		ssize_t n = getrandom(identity->uuid + len, sizeof(identity->uuid) - len, 0);

		if (n > 0)
			len += (size_t)n;
	}
	/* RFC 9562 5.4: version 4, variant 10 */
	identity->uuid[6] = (uint8_t)((identity->uuid[6] & 0x0f) | 0x40);
	identity->uuid[8] = (uint8_t)((identity->uuid[8] & 0x3f) | 0x80);
}

/* ---- on the job's thread ---- */

/* The key of the LUN in the state directory. */
static int state_key(const struct lun_job *job, char *out, size_t cap, struct err *err)
{
	if (job->settings.path)
		return backing_canonical_path(job->settings.path, out, cap, err);
	if ((size_t)snprintf(out, cap, "%s", job->subject) >= cap)
		return err_set(err, ENAMETOOLONG, "lun name: too long");
	return 0;
}

/* A volume has its identity with it, in the pool. */
static int volume_open(struct lun_job *job, struct err *err)
{
	int rc = backing_open(&job->settings, &job->backing, err);

	if (!rc)
		backing_identity(job->backing, job->identity.uuid);
	return rc;
}

static int store_open(struct lun_job *job, struct err *err)
{
	struct backing_settings *settings = &job->settings;
	char key[PATH_MAX], file[PATH_MAX];
	int known, rc;

	if (settings->volume)
		return volume_open(job, err);
	rc = state_key(job, key, sizeof(key), err);
	if (rc < 0)
		return rc;
	known = state_lun_load(job->state, key, &job->identity, err);
	if (known < 0)
		return known;
	settings->must_exist = known == 1 && settings->path;
	rc = backing_open(settings, &job->backing, err);
	if (rc == -ENOENT && settings->must_exist && settings->size != 0) {
		state_lun_file(job->state, key, file, sizeof(file));
		return err_set(
			err, ENOENT,
			"%s is missing but has been served before: it is lost, or what it "
			"lies on is not mounted; to begin anew with an empty disk, remove %s",
			key, file);
	}
	if (rc < 0 || known == 1)
		return rc;
	/* The path leads elsewhere once the file is there: a symbolic link. */
	rc = state_key(job, key, sizeof(key), err);
	if (rc == 0)
		rc = state_lun_keep(job->state, key, &job->identity, err);
	if (rc < 0)
		backing_close(job->backing);
	return rc;
}

static void work_run(struct job *base)
{
	struct lun_job *job = container_of(base, struct lun_job, job);

	switch (job->work) {
	case LUN_OPEN: job->rc = store_open(job, &job->err); break;
	case LUN_RESIZE: job->rc = backing_resize(job->backing, &job->settings, &job->err); break;
	case LUN_CLOSE: backing_close(job->backing); break;
	}
}

/* ---- on the control thread ---- */

static char *copy_of(const char *text, bool *copied)
{
	char *copy = text ? strdup(text) : NULL;

	*copied = *copied && (copy || !text);
	return copy;
}

struct lun_job *lun_job_create(struct running *run, struct lun_run *lun, enum lun_work work,
			       struct backing *backing, void (*done)(struct job *job))
{
	struct lun_job *job = calloc(1, sizeof(*job));
	bool copied = true;

	if (!job)
		return NULL;
	job->run = run;
	job->work = work;
	job->state = run->state;
	job->settings = lun->config->backing;
	job->identity = lun->identity;
	job->backing = backing;
	job->old_size = backing ? backing_size(backing) : 0;
	job->subject = strdup(lun->subject);
	job->settings.path = copy_of(lun->config->backing.path, &copied);
	job->settings.volume = copy_of(lun->config->backing.volume, &copied);
	job->settings.compression = copy_of(lun->config->backing.compression, &copied);
	job->pool = pool_run_of(run, lun->config);
	if (job->pool) {
		job->pool->nusers++;
		job->settings.pool = job->pool->pool;
	}
	if (!job->subject || !copied) {
		lun_job_free(job);
		return NULL;
	}
	job->job = (struct job){ .subject = job->subject, .run = work_run, .done = done };
	return job;
}

void lun_job_free(struct lun_job *job)
{
	if (job->pool)
		job->pool->nusers--;
	free((char *)job->settings.path);
	free((char *)job->settings.volume);
	free((char *)job->settings.compression);
	free(job->subject);
	free(job);
}
