/* The comparison of two configurations: see diff.h. */
#include "config/diff.h"

#include <stdlib.h>
#include <string.h>

struct differ {
	struct config_diff *diff;
	struct config_change **changes_end;
	struct config_change_key *keys, **keys_end; /* of the object at hand */
	uint8_t reload;
};

static bool text_equal(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

/* ---- gathering ---- */

static void keys_begin(struct differ *d)
{
	d->keys = NULL;
	d->keys_end = &d->keys;
	d->reload = RELOAD_LIVE;
}

static void key_differs(struct differ *d, const char *key, enum option_reload reload)
{
	struct config_change_key *k = arena_alloc(d->diff->arena, sizeof(*k));

	*k = (struct config_change_key){ key, (uint8_t)reload, NULL };
	*d->keys_end = k;
	d->keys_end = &k->next;
	if (reload > d->reload)
		d->reload = (uint8_t)reload;
}

static void compare_rows(struct differ *d, const struct option_spec *rows, const void *a,
			 const void *b)
{
	for (const struct option_spec *row = rows; row->key; row++)
		if (!option_equal(row, a, b))
			key_differs(d, row->key, row->reload);
}

static void compare_text(struct differ *d, const char *key, enum option_reload reload,
			 const char *a, const char *b)
{
	if (!text_equal(a, b))
		key_differs(d, key, reload);
}

static void compare_number(struct differ *d, const char *key, enum option_reload reload,
			   unsigned int a, unsigned int b)
{
	if (a != b)
		key_differs(d, key, reload);
}

static struct config_change *change_add(struct differ *d, enum config_object object,
					enum config_change_kind kind, const char *name)
{
	struct config_change *change = arena_alloc(d->diff->arena, sizeof(*change));

	change->object = (uint8_t)object;
	change->kind = (uint8_t)kind;
	change->name = name;
	if (kind == CONFIG_CHANGED) {
		change->keys = d->keys;
		change->reload = d->reload;
	}
	*d->changes_end = change;
	d->changes_end = &change->next;
	return change;
}

/* ---- what makes each object equal ---- */

static bool words_equal(const struct config_word *a, const struct config_word *b)
{
	for (; a && b; a = a->next, b = b->next)
		if (strcmp(a->text, b->text) != 0)
			return false;
	return a == b;
}

static bool chaps_equal(const struct config_chap *a, const struct config_chap *b)
{
	for (; a && b; a = a->next, b = b->next)
		if (strcmp(a->user, b->user) != 0 || strcmp(a->secret, b->secret) != 0 ||
		    !text_equal(a->mutual_user, b->mutual_user) ||
		    !text_equal(a->mutual_secret, b->mutual_secret))
			return false;
	return a == b;
}

static void compare_auth_groups(struct differ *d, const void *before, const void *after)
{
	const struct config_auth_group *a = before, *b = after;

	compare_number(d, "auth-type", RELOAD_NEW_LOGINS, a->type, b->type);
	if (!chaps_equal(a->chaps, b->chaps))
		key_differs(d, "chap", RELOAD_NEW_LOGINS);
	if (!words_equal(a->initiator_names, b->initiator_names))
		key_differs(d, "initiator-name", RELOAD_NEW_LOGINS);
	if (!words_equal(a->initiator_portals, b->initiator_portals))
		key_differs(d, "initiator-portal", RELOAD_NEW_LOGINS);
}

static void compare_listens(struct differ *d, const struct config_listen *a,
			    const struct config_listen *b)
{
	bool listen = true, advertise = true;

	for (; a && b; a = a->next, b = b->next) {
		listen = listen && strcmp(a->host, b->host) == 0 && strcmp(a->port, b->port) == 0 &&
			 a->v6only == b->v6only;
		advertise = advertise && text_equal(a->advertise, b->advertise);
	}
	if (!listen || a || b)
		key_differs(d, "listen", RELOAD_REOPEN);
	if (!advertise)
		key_differs(d, "advertise", RELOAD_LIVE);
}

static void compare_portal_groups(struct differ *d, const void *before, const void *after)
{
	const struct config_portal_group *a = before, *b = after;

	compare_listens(d, a->listens, b->listens);
	compare_text(d, "discovery-auth-group", RELOAD_NEW_LOGINS, a->discovery_auth->name,
		     b->discovery_auth->name);
	compare_number(d, "discovery-filter", RELOAD_LIVE, a->discovery_filter,
		       b->discovery_filter);
	compare_number(d, "discovery-portals", RELOAD_LIVE, a->discovery_all, b->discovery_all);
	compare_number(d, "tag", RELOAD_NEW_LOGINS, a->tag, b->tag);
	compare_number(d, "dscp", RELOAD_NEW_LOGINS, a->dscp, b->dscp);
}

static void compare_pools(struct differ *d, const void *before, const void *after)
{
	const struct config_pool *a = before, *b = after;

	compare_rows(d, pool_options, &a->settings, &b->settings);
}

static void compare_luns(struct differ *d, const void *before, const void *after)
{
	const struct config_lun *a = before, *b = after;

	compare_rows(d, backing_options, &a->backing, &b->backing);
	compare_rows(d, scsi_lun_options, &a->scsi, &b->scsi);
}

/* The auth group that a port has of its own; that of the target is compared there. */
static const char *port_auth(const struct config_target *target,
			     const struct config_target_port *port)
{
	return port->auth == target->auth ? NULL : port->auth->name;
}

static bool ports_equal(const struct config_target *x, const struct config_target *y)
{
	const struct config_target_port *a = x->ports, *b = y->ports;

	for (; a && b; a = a->next, b = b->next)
		if (strcmp(a->group->name, b->group->name) != 0 ||
		    !text_equal(port_auth(x, a), port_auth(y, b)))
			return false;
	return a == b;
}

static void compare_targets(struct differ *d, const void *before, const void *after)
{
	const struct config_target *a = before, *b = after;

	compare_text(d, "alias", RELOAD_NEW_LOGINS, a->alias, b->alias);
	compare_text(d, "auth-group", RELOAD_NEW_LOGINS, a->auth->name, b->auth->name);
	if (!ports_equal(a, b))
		key_differs(d, "portal-group", RELOAD_NEW_LOGINS);
	compare_rows(d, iscsi_limits_options, &a->limits, &b->limits);
}

/* ---- finding the same object in both ---- */

/* How to walk one kind of object; the walk needs no more than name and next. */
struct object_class {
	enum config_object object;
	const void *(*first)(const struct config *config);
	const void *(*next)(const void *object);
	const char *(*name)(const void *object);
	void (*compare)(struct differ *d, const void *before, const void *after);
};

#define OBJECT_CLASS(type, list)                                     \
	static const void *type##_first(const struct config *config) \
	{                                                            \
		return config->list;                                 \
	}                                                            \
	static const void *type##_next(const void *object)           \
	{                                                            \
		return ((const struct type *)object)->next;          \
	}                                                            \
	static const char *type##_name(const void *object)           \
	{                                                            \
		return ((const struct type *)object)->name;          \
	}
OBJECT_CLASS(config_auth_group, auth_groups)
OBJECT_CLASS(config_portal_group, portal_groups)
OBJECT_CLASS(config_pool, pools)
OBJECT_CLASS(config_lun, luns)
OBJECT_CLASS(config_target, targets)

static const struct object_class object_classes[] = {
	{ CONFIG_OBJECT_AUTH_GROUP, config_auth_group_first, config_auth_group_next,
	  config_auth_group_name, compare_auth_groups },
	{ CONFIG_OBJECT_PORTAL_GROUP, config_portal_group_first, config_portal_group_next,
	  config_portal_group_name, compare_portal_groups },
	{ CONFIG_OBJECT_POOL, config_pool_first, config_pool_next, config_pool_name,
	  compare_pools },
	{ CONFIG_OBJECT_LUN, config_lun_first, config_lun_next, config_lun_name, compare_luns },
	{ CONFIG_OBJECT_TARGET, config_target_first, config_target_next, config_target_name,
	  compare_targets },
};

struct index_entry {
	const char *name;
	const void *object;
};

struct index {
	struct index_entry *entries;
	size_t n;
};

static int index_compare(const void *a, const void *b)
{
	return strcmp(((const struct index_entry *)a)->name, ((const struct index_entry *)b)->name);
}

static struct index index_make(struct differ *d, const struct object_class *class,
			       const struct config *config)
{
	struct index index = { 0 };
	size_t i = 0;

	for (const void *o = class->first(config); o; o = class->next(o))
		index.n++;
	index.entries = arena_alloc(d->diff->arena, (index.n + 1) * sizeof(*index.entries));
	for (const void *o = class->first(config); o; o = class->next(o), i++)
		index.entries[i] = (struct index_entry){ class->name(o), o };
	qsort(index.entries, index.n, sizeof(*index.entries), index_compare);
	return index;
}

static const void *index_find(const struct index *index, const char *name)
{
	const struct index_entry key = { .name = name };
	const struct index_entry *found = bsearch(&key, index->entries, index->n,
						  sizeof(*index->entries), index_compare);

	return found ? found->object : NULL;
}

static void diff_class(struct differ *d, const struct object_class *class,
		       const struct config *before, const struct config *after)
{
	struct index old = index_make(d, class, before), new = index_make(d, class, after);

	for (const void *o = class->first(before); o; o = class->next(o))
		if (!index_find(&new, class->name(o)))
			change_add(d, class->object, CONFIG_REMOVED, class->name(o))->before = o;
	for (const void *o = class->first(after); o; o = class->next(o)) {
		const void *was = index_find(&old, class->name(o));
		struct config_change *change;

		if (!was) {
			change_add(d, class->object, CONFIG_ADDED, class->name(o))->after = o;
			continue;
		}
		keys_begin(d);
		class->compare(d, was, o);
		if (!d->keys)
			continue;
		change = change_add(d, class->object, CONFIG_CHANGED, class->name(o));
		change->before = was;
		change->after = o;
	}
}

/* ---- LUNs of targets ---- */

static void map_change(struct differ *d, enum config_change_kind kind,
		       const struct config_target *before, const struct config_lun_map *old,
		       const struct config_target *after, const struct config_lun_map *new)
{
	struct config_change *change;

	keys_begin(d);
	if (kind == CONFIG_CHANGED)
		key_differs(d, "lun", RELOAD_LIVE);
	change = change_add(d, CONFIG_OBJECT_LUN_MAP, kind, (before ? before : after)->name);
	change->before = old;
	change->after = new;
	change->target_before = before;
	change->target_after = after;
}

/* Both lists ascend; either target may be NULL. */
static void diff_maps(struct differ *d, const struct config_target *before,
		      const struct config_target *after)
{
	const struct config_lun_map *a = before ? before->luns : NULL;
	const struct config_lun_map *b = after ? after->luns : NULL;

	while (a || b) {
		if (a && (!b || a->number < b->number)) {
			map_change(d, CONFIG_REMOVED, before, a, after, NULL);
			a = a->next;
		} else if (!a || b->number < a->number) {
			map_change(d, CONFIG_ADDED, before, NULL, after, b);
			b = b->next;
		} else {
			if (strcmp(a->lun->name, b->lun->name) != 0)
				map_change(d, CONFIG_CHANGED, before, a, after, b);
			a = a->next;
			b = b->next;
		}
	}
}

static void diff_all_maps(struct differ *d, const struct config *before, const struct config *after)
{
	static const struct object_class targets = {
		.first = config_target_first,
		.next = config_target_next,
		.name = config_target_name,
	};
	struct index old = index_make(d, &targets, before), new = index_make(d, &targets, after);

	for (const struct config_target *t = before->targets; t; t = t->next)
		if (!index_find(&new, t->name))
			diff_maps(d, t, NULL);
	for (const struct config_target *t = after->targets; t; t = t->next)
		diff_maps(d, index_find(&old, t->name), t);
}

/* ---- all ---- */

static void diff_global(struct differ *d, const struct config *before, const struct config *after)
{
	struct config_change *change;

	keys_begin(d);
	compare_rows(d, config_global_options, &before->global, &after->global);
	compare_rows(d, iscsi_server_options, &before->server, &after->server);
	compare_rows(d, iscsi_limits_options, &before->limits, &after->limits);
	if (!d->keys)
		return;
	change = change_add(d, CONFIG_OBJECT_GLOBAL, CONFIG_CHANGED, "the top level");
	change->before = before;
	change->after = after;
}

struct config_diff *config_diff(const struct config *before, const struct config *after)
{
	struct arena *arena = arena_create();
	struct config_diff *diff = arena_alloc(arena, sizeof(*diff));
	struct differ d = { .diff = diff, .changes_end = &diff->changes };

	diff->arena = arena;
	diff_global(&d, before, after);
	for (size_t i = 0; i < sizeof(object_classes) / sizeof(object_classes[0]); i++)
		diff_class(&d, &object_classes[i], before, after);
	diff_all_maps(&d, before, after);
	return diff;
}

void config_diff_free(struct config_diff *diff)
{
	if (diff)
		arena_destroy(diff->arena);
}
