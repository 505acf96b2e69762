/*
 * Portal group tags and relative port identifiers that survive restarts.
 *
 *	{ "version": 1, "tags": { "GROUP": 1 }, "ports": { "TARGET GROUP": 1 } }
 *
 * Hosts know a path by them (VPD 83, TargetPortalGroupTag), so that one that
 * changed would be another path.  Names hold no spaces.
 */
#include "target/state.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "target/state_file.h"

#define ID_MAX 65535

/* Which of 1..ID_MAX are taken. */
struct ids {
	bool taken[ID_MAX + 1];
	unsigned int next; /* the lowest that may be free */
};

static uint16_t id_value(const json_t *value)
{
	json_int_t id = json_integer_value(value);

	return id >= 1 && id <= ID_MAX ? (uint16_t)id : 0;
}

/* The lowest free one, which is taken then; 0 when there is none. */
static uint16_t id_choose(struct ids *ids)
{
	for (; ids->next <= ID_MAX; ids->next++)
		if (!ids->taken[ids->next]) {
			ids->taken[ids->next] = true;
			return (uint16_t)ids->next;
		}
	return 0;
}

/* The member that holds a table of numbers, made when missing. */
static json_t *table_of(json_t *object, const char *name)
{
	json_t *table = json_object_get(object, name);

	if (table)
		return table;
	json_object_set_new(object, name, json_object());
	return json_object_get(object, name);
}

static bool table_sane(const json_t *table)
{
	const char *name;
	json_t *value;

	if (!json_is_object(table))
		return false;
	json_object_foreach((json_t *)table, name, value) if (id_value(value) == 0) return false;
	return true;
}

/* Tags that are configured first, then those kept that clash with none. */
static int tags_assign(json_t *tags, struct state_group *groups, size_t n, struct ids *ids,
		       bool *changed, struct err *err)
{
	const char *name;
	json_t *value;

	for (size_t i = 0; i < n; i++)
		ids->taken[groups[i].tag] = true;
	for (size_t i = 0; i < n; i++) {
		uint16_t kept = id_value(json_object_get(tags, groups[i].name));

		if (groups[i].tag != 0 || kept == 0 || ids->taken[kept])
			continue;
		groups[i].tag = kept;
		ids->taken[kept] = true;
	}
	/* Those of groups that are not here now, or are another daemon's. */
	json_object_foreach(tags, name, value) ids->taken[id_value(value)] = true;
	for (size_t i = 0; i < n; i++) {
		if (groups[i].tag != 0)
			continue;
		groups[i].tag = id_choose(ids);
		if (groups[i].tag == 0)
			return err_set(err, ENOSPC, "portal-group %s: all %d tags are taken",
				       groups[i].name, ID_MAX);
		json_object_set_new(tags, groups[i].name, json_integer(groups[i].tag));
		*changed = true;
	}
	return 0;
}

static int ports_assign(json_t *table, struct state_port *ports, size_t n, struct ids *ids,
			bool *changed, struct err *err)
{
	char key[512];
	const char *name;
	json_t *value;

	json_object_foreach(table, name, value) ids->taken[id_value(value)] = true;
	for (size_t i = 0; i < n; i++) {
		int len = snprintf(key, sizeof(key), "%s %s", ports[i].target, ports[i].group);

		if (len < 0 || (size_t)len >= sizeof(key))
			return err_set(err, ENAMETOOLONG,
				       "target %s: the name of portal-group %s is too long",
				       ports[i].target, ports[i].group);
		ports[i].id = id_value(json_object_get(table, key));
		if (ports[i].id != 0)
			continue;
		ports[i].id = id_choose(ids);
		if (ports[i].id == 0)
			return err_set(
				err, ENOSPC,
				"target %s, portal-group %s: all %d relative port identifiers "
				"are taken by ports that were served before",
				ports[i].target, ports[i].group, ID_MAX);
		json_object_set_new(table, key, json_integer(ports[i].id));
		*changed = true;
	}
	return 0;
}

static struct ids *ids_create(void)
{
	struct ids *ids = calloc(1, sizeof(*ids));

	if (ids)
		ids->next = 1;
	return ids;
}

static int assign(json_t *object, struct state_group *groups, size_t ngroups,
		  struct state_port *ports, size_t nports, bool *changed, struct err *err)
{
	json_t *tags = table_of(object, "tags"), *table = table_of(object, "ports");
	struct ids *tag_ids = ids_create(), *port_ids = ids_create();
	int rc;

	if (!tag_ids || !port_ids)
		rc = err_set(err, ENOMEM, "no memory");
	else if (!table_sane(tags) || !table_sane(table))
		rc = err_set(err, EBADMSG,
			     "it is damaged (a number is not 1..%d); restore it from a backup, or "
			     "remove it to have ports numbered anew",
			     ID_MAX);
	else
		rc = tags_assign(tags, groups, ngroups, tag_ids, changed, err);
	if (rc == 0)
		rc = ports_assign(table, ports, nports, port_ids, changed, err);
	free(tag_ids);
	free(port_ids);
	return rc;
}

int state_ports_assign(struct state *state, struct state_group *groups, size_t ngroups,
		       struct state_port *ports, size_t nports, struct err *err)
{
	char file[PATH_MAX];
	json_t *object = NULL;
	bool changed = false;
	int lock, rc;

	lock = state_lock(state_directory(state), err);
	if (lock < 0)
		return lock;
	snprintf(file, sizeof(file), "%s/ports.json", state_directory(state));
	rc = state_file_read(file, &object, err);
	if (rc < 0)
		goto out;
	if (rc == 0)
		object = json_pack("{s:i}", "version", STATE_VERSION);
	rc = assign(object, groups, ngroups, ports, nports, &changed, err);
	if (rc < 0)
		err_prefix(err, "%s", file);
	else if (changed)
		rc = state_file_write(file, object, err);
out:
	json_decref(object);
	close(lock);
	return rc;
}
