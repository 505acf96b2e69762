/*
 * A configuration is made to run, object by object.
 *
 *	match	 each LUN and target finds its running object, or gets one
 *	view	 portals are opened: the last step that can fail, and undo all
 *	commit	 removed targets end, maps and LUNs change, removed LUNs close
 *
 * What is new is complete (stores open, LUNs mapped) before its portals
 * listen: initiators that come back after a restart must not see a LUN that is
 * not ready yet, but for one whose store does not open in time.
 */
#include "target/pool_run.h"
#include "target/running.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "config/diff.h"

/* How long the sessions of a removed target may take to log out. */
#define LOGOUT_TIMEOUT_MS 2000

/* ---- objects found by key ---- */

struct index_entry {
	const char *key;
	void *object;
};

struct index {
	struct index_entry *entries;
	size_t n;
};

static int entry_compare(const void *a, const void *b)
{
	const struct index_entry *x = a, *y = b;

	return strcmp(x->key, y->key);
}

static void *index_find(const struct index *index, const char *key)
{
	struct index_entry wanted = { .key = key }, *found = NULL;

	if (index->n > 0)
		found = bsearch(&wanted, index->entries, index->n, sizeof(wanted), entry_compare);
	return found ? found->object : NULL;
}

/* What a LUN is known by over reloads; lun_same_kind() tells a path from a name. */
static const char *lun_key(const struct config_lun *config)
{
	return config->backing.volume ? config->backing.volume
	       : config->backing.path ? config->backing.path
				      : config->name;
}

static bool lun_same_kind(const struct lun_run *lun, const struct config_lun *config)
{
	return !lun->config->backing.path == !config->backing.path &&
	       !lun->config->backing.volume == !config->backing.volume;
}

static size_t list_length(const struct list *head)
{
	size_t n = 0;

	list_for_each(link, head)
		n++;
	return n;
}

/* Of the LUNs, by what they are configured as now. */
static int luns_index(const struct running *run, bool wanted, struct index *index)
{
	index->n = 0;
	index->entries = calloc(list_length(&run->luns) + 1, sizeof(*index->entries));
	if (!index->entries)
		return -ENOMEM;
	list_for_each(link, &run->luns) {
		struct lun_run *lun = container_of(link, struct lun_run, link);
		const struct config_lun *config = wanted ? lun->wanted : lun->config;

		if (config)
			index->entries[index->n++] = (struct index_entry){ config->name, lun };
		if (config && !wanted)
			index->entries[index->n - 1].key = lun_key(config);
	}
	qsort(index->entries, index->n, sizeof(*index->entries), entry_compare);
	return 0;
}

static int targets_index(const struct running *run, struct index *index)
{
	index->n = 0;
	index->entries = calloc(list_length(&run->targets) + 1, sizeof(*index->entries));
	if (!index->entries)
		return -ENOMEM;
	list_for_each(link, &run->targets) {
		struct target_run *target = container_of(link, struct target_run, link);

		index->entries[index->n++] = (struct index_entry){ target->config->name, target };
	}
	qsort(index->entries, index->n, sizeof(*index->entries), entry_compare);
	return 0;
}

/* ---- LUNs ---- */

static int luns_match(struct running *run, const struct config *config, struct err *err)
{
	struct index index;

	list_for_each(link, &run->luns)
		container_of(link, struct lun_run, link)->wanted = NULL;
	if (luns_index(run, false, &index) < 0)
		return err_set(err, ENOMEM, "no memory");
	for (const struct config_lun *c = config->luns; c; c = c->next) {
		struct lun_run *lun = index_find(&index, lun_key(c));

		if (lun && !lun->wanted && lun_same_kind(lun, c)) {
			lun->wanted = c;
			continue;
		}
		lun = lun_run_create(run, c);
		if (!lun) {
			free(index.entries);
			return err_set(err, ENOMEM, "lun %s: no memory", c->name);
		}
		list_add_tail(&run->luns, &lun->link);
	}
	free(index.entries);
	return 0;
}

/* ---- targets and their maps ---- */

static void mapping_set(struct target_run *target, struct lun_mapping *map, uint32_t nmap)
{
	free(target->map);
	target->map = map;
	target->nmap = nmap;
}

static struct lun_run *mapping_find(const struct lun_mapping *map, uint32_t n, uint16_t number)
{
	uint32_t low = 0, high = n;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (map[middle].number == number)
			return map[middle].lun;
		if (map[middle].number < number)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

/* True when nothing uses the LUN under this number any more. */
static bool number_unmap(struct target_run *target, const struct lun_mapping *mapping)
{
	if (scsi_target_unmap(target->scsi, mapping->number) != -EBUSY)
		return true;
	log_error("target %s: LUN %u is removed, but its store does not end commands",
		  target->config->name, mapping->number);
	return false;
}

/*
 * Makes the target map what it should.  A number that is given to another LUN
 * is taken away first: its commands end before the other disk is there.
 */
static int target_map(struct target_run *target, const struct index *luns, struct err *err)
{
	const struct config_target *config = target->wanted;
	struct lun_mapping *map;
	uint32_t n = 0;
	int rc = 0;

	for (const struct config_lun_map *m = config->luns; m; m = m->next)
		n++;
	map = calloc(n + 1, sizeof(*map));
	if (!map)
		return err_set(err, ENOMEM, "target %s: no memory", config->name);
	n = 0;
	for (const struct config_lun_map *m = config->luns; m; m = m->next)
		map[n++] = (struct lun_mapping){ m->number, index_find(luns, m->lun->name) };
	for (uint32_t i = 0; i < target->nmap; i++)
		if (mapping_find(map, n, target->map[i].number) != target->map[i].lun)
			number_unmap(target, &target->map[i]);
	for (uint32_t i = 0; i < n && rc == 0; i++) {
		assert(map[i].lun);
		if (scsi_target_lun(target->scsi, map[i].number))
			continue;
		rc = scsi_target_map(target->scsi, map[i].number, map[i].lun->scsi);
	}
	mapping_set(target, map, n);
	if (rc < 0)
		err_set(err, -rc, "target %s: LUNs cannot be mapped: %s", config->name,
			err_name(-rc));
	return rc;
}

void targets_remap(struct running *run, struct lun_run *lun, struct scsi_lun *fresh)
{
	list_for_each(link, &run->targets) {
		struct target_run *target = container_of(link, struct target_run, link);

		for (uint32_t i = 0; i < target->nmap; i++) {
			int rc;

			if (target->map[i].lun != lun)
				continue;
			number_unmap(target, &target->map[i]);
			rc = scsi_target_map(target->scsi, target->map[i].number, fresh);
			if (rc < 0)
				log_error("target %s: LUN %u cannot be mapped: %s",
					  target->config->name, target->map[i].number,
					  err_name(-rc));
		}
	}
}

static struct target_run *target_run_create(struct running *run, const struct config_target *config)
{
	struct target_run *target = calloc(1, sizeof(*target));

	if (!target)
		return NULL;
	list_init(&target->link);
	target->config = target->wanted = config;
	target->fresh = true;
	target->scsi = scsi_target_create(config->name);
	if (target->scsi)
		target->iscsi = iscsi_target_create(run->server, config->name, target->scsi);
	if (!target->iscsi) {
		if (target->scsi)
			scsi_target_destroy(target->scsi);
		free(target);
		return NULL;
	}
	return target;
}

void target_run_destroy(struct running *run, struct target_run *target)
{
	bool unused = iscsi_server_end_sessions(run->server, target->iscsi, LOGOUT_TIMEOUT_MS);

	for (uint32_t i = 0; i < target->nmap; i++)
		unused = number_unmap(target, &target->map[i]) && unused;
	iscsi_target_put(target->iscsi);
	/* The sessions of commands that do not end are still there. */
	if (unused)
		scsi_target_destroy(target->scsi);
	else
		run->nstuck++;
	list_del(&target->link);
	free(target->map);
	free(target);
}

/* New targets are made and mapped; those that stay are found. */
static int targets_match(struct running *run, const struct config *config, const struct index *luns,
			 struct err *err)
{
	struct index index;
	int rc = 0;

	list_for_each(link, &run->targets)
		container_of(link, struct target_run, link)->wanted = NULL;
	if (targets_index(run, &index) < 0)
		return err_set(err, ENOMEM, "no memory");
	for (const struct config_target *c = config->targets; c && rc == 0; c = c->next) {
		struct target_run *target = index_find(&index, c->name);

		if (target) {
			target->wanted = c;
			continue;
		}
		target = target_run_create(run, c);
		if (!target) {
			rc = err_set(err, ENOMEM, "target %s: no memory", c->name);
			break;
		}
		list_add_tail(&run->targets, &target->link);
		rc = target_map(target, luns, err);
	}
	free(index.entries);
	return rc;
}

/* ---- undo and commit ---- */

static void undo(struct running *run)
{
	list_for_each_safe(link, &run->targets) {
		struct target_run *target = container_of(link, struct target_run, link);

		if (target->fresh)
			target_run_destroy(run, target);
	}
	list_for_each_safe(link, &run->luns) {
		struct lun_run *lun = container_of(link, struct lun_run, link);

		if (lun->fresh)
			lun_run_destroy(run, lun);
	}
	pools_undo(run);
}

static void targets_commit(struct running *run, const struct index *luns)
{
	struct err err;

	list_for_each_safe(link, &run->targets) {
		struct target_run *target = container_of(link, struct target_run, link);

		if (!target->wanted) {
			log_info("target %s: removed, its sessions are ended",
				 target->config->name);
			target_run_destroy(run, target);
			continue;
		}
		if (!target->fresh && target_map(target, luns, &err) < 0)
			log_error("%s", err.text);
		target->config = target->wanted;
		target->fresh = false;
	}
}

static void luns_commit(struct running *run, unsigned int *budget_ms)
{
	list_for_each_safe(link, &run->luns) {
		struct lun_run *lun = container_of(link, struct lun_run, link);

		if (!lun->wanted)
			lun_run_destroy(run, lun);
	}
	/* After the removed ones let go of their stores: a new path may lead to
	 * the same file. */
	luns_wait(run, budget_ms);
	list_for_each(link, &run->luns) {
		struct lun_run *lun = container_of(link, struct lun_run, link);

		if (lun->fresh)
			lun_run_try(run, lun);
		else
			lun_run_update(run, lun);
		lun->fresh = false;
	}
	luns_wait(run, budget_ms);
	/* Those that were closed to be opened with new settings. */
	list_for_each(link, &run->luns) {
		struct lun_run *lun = container_of(link, struct lun_run, link);

		if (lun->retry_at_ms == 0)
			lun_run_try(run, lun);
	}
	luns_wait(run, budget_ms);
}

static void log_level_commit(const struct config *config)
{
	static const enum log_level levels[] = { LOG_LEVEL_INFO, LOG_LEVEL_DEBUG, LOG_LEVEL_TRACE };
	unsigned int debug = config->global.debug;

	log_set_level(levels[debug < ARRAY_LEN(levels) ? debug : ARRAY_LEN(levels) - 1]);
}

static void change_log(const struct config_change *change)
{
	static const char *const objects[] = {
		[CONFIG_OBJECT_GLOBAL] = "global",
		[CONFIG_OBJECT_AUTH_GROUP] = "auth-group",
		[CONFIG_OBJECT_PORTAL_GROUP] = "portal-group",
		[CONFIG_OBJECT_POOL] = "pool",
		[CONFIG_OBJECT_LUN] = "LUN",
		[CONFIG_OBJECT_TARGET] = "target",
		[CONFIG_OBJECT_LUN_MAP] = "LUNs of target",
	};
	static const char *const kinds[] = {
		[CONFIG_REMOVED] = "removed",
		[CONFIG_ADDED] = "added",
		[CONFIG_CHANGED] = "changed",
	};
	const struct config_lun_map *map = change->after ? change->after : change->before;

	if (change->object == CONFIG_OBJECT_LUN_MAP)
		log_info("target %s: LUN %u: %s", change->name, map->number, kinds[change->kind]);
	else if (change->kind != CONFIG_CHANGED)
		log_info("%s %s: %s", objects[change->object], change->name, kinds[change->kind]);
	for (const struct config_change_key *k = change->keys; k; k = k->next) {
		if (change->object != CONFIG_OBJECT_GLOBAL)
			log_info("%s %s: %s changed", objects[change->object], change->name,
				 k->key);
		else if (k->reload == RELOAD_RESTART)
			log_warning("%s changed: this takes effect when the daemon is restarted",
				    k->key);
		else
			log_info("%s changed", k->key);
	}
}

static void changes_log(const struct config *before, const struct config *after)
{
	struct config_diff *diff;

	if (!before)
		return;
	diff = config_diff(before, after);
	for (const struct config_change *c = diff->changes; c; c = c->next)
		change_log(c);
	config_diff_free(diff);
}

int running_apply(struct running *run, struct config *config, struct err *err)
{
	unsigned int budget_ms = LUNS_WAIT_MS;
	struct index luns = { NULL, 0 };
	struct iscsi_view *view = NULL;
	int rc;

	assert(config->nerrors == 0);
	rc = pools_match(run, config, err);
	if (rc == 0)
		rc = luns_match(run, config, err);
	if (rc == 0)
		luns_wait(run, &budget_ms);
	if (rc == 0 && luns_index(run, true, &luns) < 0)
		rc = err_set(err, ENOMEM, "no memory");
	if (rc == 0)
		rc = targets_match(run, config, &luns, err);
	if (rc == 0)
		rc = view_build(run, config, &view, err);
	if (rc == 0) {
		rc = iscsi_server_set_view(run->server, view, err);
		if (rc < 0)
			arena_destroy(view->arena);
	}
	if (rc < 0) {
		undo(run);
		goto out;
	}
	run->view = view;
	changes_log(run->config, config);
	log_level_commit(config);
	targets_commit(run, &luns);
	luns_commit(run, &budget_ms);
	pools_commit(run);
	config_free(run->config);
	run->config = config;
out:
	free(luns.entries);
	return rc;
}
