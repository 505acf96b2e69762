/*
 * One LUN and its store, over the time of the daemon.
 *
 * A LUN exists for its hosts from the first configuration that names it, with
 * or without its store: a disk that comes late (a zvol, a mount) must keep its
 * number and not stop the others.  Until then it is NOT READY.
 *
 * Identity: kept in the state directory under the canonical path of the store,
 * which can be known late (a directory that is not mounted).  Until the store
 * has been opened the LUN has what the state knows, or a random identity that
 * is not kept; if the opened store has another one, the scsi_lun is made anew
 * under the same number, so that no host takes one disk for another.
 */
#include "target/running.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/log.h"
#include "target/clock.h"

/* The key of the LUN in the state directory. */
static int state_key(const struct config_lun *config, char *out, size_t cap, struct err *err)
{
	if (config->backing.path)
		return backing_canonical_path(config->backing.path, out, cap, err);
	if ((size_t)snprintf(out, cap, "ramdisk:%s", config->name) >= cap)
		return err_set(err, ENAMETOOLONG, "lun name: too long");
	return 0;
}

static void identity_random(struct scsi_identity *identity)
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

/* Opens the store; *known says whether it has been served before. */
static int store_open(struct running *run, const struct config_lun *config,
		      struct scsi_identity *identity, struct backing **out, struct err *err)
{
	struct backing_settings settings = config->backing;
	char key[PATH_MAX], file[PATH_MAX];
	int known, rc;

	rc = state_key(config, key, sizeof(key), err);
	if (rc < 0)
		return rc;
	known = state_lun_load(run->state, key, identity, err);
	if (known < 0)
		return known;
	settings.must_exist = known == 1 && settings.path;
	rc = backing_open(&settings, out, err);
	if (rc == -ENOENT && settings.must_exist && settings.size != 0) {
		state_lun_file(run->state, key, file, sizeof(file));
		return err_set(
			err, ENOENT,
			"%s is missing but has been served before: it is lost, or what it "
			"lies on is not mounted; to begin anew with an empty disk, remove %s",
			key, file);
	}
	if (rc < 0 || known == 1)
		return rc;
	/* The path leads elsewhere once the file is there: a symbolic link. */
	rc = state_key(config, key, sizeof(key), err);
	if (rc == 0)
		rc = state_lun_keep(run->state, key, identity, err);
	if (rc < 0)
		backing_close(*out);
	return rc;
}

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

static int lun_open(struct running *run, struct lun_run *lun, struct err *err)
{
	struct scsi_identity identity = lun->identity;
	struct backing *backing = NULL;
	int rc;

	rc = store_open(run, lun->config, &identity, &backing, err);
	if (rc < 0)
		return rc;
	if (memcmp(&identity, &lun->identity, sizeof(identity)) != 0)
		rc = identity_change(run, lun, &identity, err);
	if (rc == 0)
		rc = scsi_lun_set_backing(lun->scsi, backing, run->reactors, run->nreactors, err);
	if (rc < 0)
		backing_close(backing);
	return rc;
}

/* Logs a problem once, not at each try. */
static void problem_set(struct lun_run *lun, const char *problem)
{
	lun->retry_at_ms = clock_ms() + LUN_RETRY_MS;
	if (strcmp(lun->problem, problem) == 0)
		return;
	snprintf(lun->problem, sizeof(lun->problem), "%s", problem);
	log_error("LUN %s: NOT READY: %s (tried again every %d s)", lun->config->name, problem,
		  LUN_RETRY_MS / 1000);
}

bool lun_run_try(struct running *run, struct lun_run *lun)
{
	struct err err = { "" };
	char size[64];

	if (scsi_lun_backing(lun->scsi))
		return true;
	if (lun_open(run, lun, &err) < 0) {
		problem_set(lun, err.text);
		return false;
	}
	size_format(backing_size(scsi_lun_backing(lun->scsi)), size, sizeof(size));
	log_info("LUN %s: serves %s, %s", lun->config->name,
		 lun->config->backing.path ? lun->config->backing.path : "memory", size);
	lun->problem[0] = '\0';
	return true;
}

struct lun_run *lun_run_create(struct running *run, const struct config_lun *config)
{
	struct lun_run *lun = calloc(1, sizeof(*lun));
	char key[PATH_MAX];

	if (!lun)
		return NULL;
	list_init(&lun->link);
	lun->config = lun->wanted = config;
	lun->fresh = true;
	if (state_key(config, key, sizeof(key), NULL) < 0 ||
	    state_lun_load(run->state, key, &lun->identity, NULL) != 1)
		identity_random(&lun->identity);
	lun->scsi = scsi_create(config, &lun->identity);
	if (!lun->scsi) {
		free(lun);
		return NULL;
	}
	lun_run_try(run, lun);
	return lun;
}

/* Takes the store away from the LUN, and closes it. */
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
	backing_close(backing);
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
	list_del(&lun->link);
	if (scsi_lun_backing(lun->scsi))
		run->nstuck++;
	else
		scsi_lun_destroy(lun->scsi);
	free(lun);
}

/* What the strictest of the changed rows asks for; -1 when none changed. */
static int change_class(const struct option_spec *table, const void *a, const void *b)
{
	int class = -1;

	for (const struct option_spec *row = table; row->key; row++)
		if (!option_equal(row, a, b) && (int)row->reload > class)
			class = (int)row->reload;
	return class;
}

static void size_update(struct lun_run *lun)
{
	struct backing *backing = scsi_lun_backing(lun->scsi);
	struct err err = { "" };
	uint64_t old = backing_size(backing);
	char size[64];
	int rc = backing_resize(backing, &lun->config->backing, &err);

	if (rc < 0)
		log_error("LUN %s: keeps its size: %s", lun->config->name, err.text);
	if (rc <= 0)
		return;
	scsi_lun_capacity_changed(lun->scsi);
	size_format(backing_size(backing), size, sizeof(size));
	if (backing_size(backing) < old)
		log_warning("LUN %s: has a new size, %s, and is smaller than before: a file system "
			    "that reaches beyond it is broken until the size is raised again",
			    lun->config->name, size);
	else
		log_info("LUN %s: has a new size, %s", lun->config->name, size);
}

void lun_run_update(struct running *run, struct lun_run *lun)
{
	const struct config_lun *old = lun->config, *wanted = lun->wanted;
	bool reopen = change_class(backing_options, &old->backing, &wanted->backing) >
		      (int)RELOAD_LIVE;

	lun->config = wanted;
	if (change_class(scsi_lun_options, &old->scsi, &wanted->scsi) >= 0)
		scsi_lun_set_settings(lun->scsi, &wanted->scsi);
	if (reopen && scsi_lun_backing(lun->scsi)) {
		log_info("LUN %s: opens its store again, with new settings", wanted->name);
		store_close(run, lun);
	}
	/* The size is read again on every reload, for files that grew. */
	if (scsi_lun_backing(lun->scsi))
		size_update(lun);
	else
		lun_run_try(run, lun);
}
