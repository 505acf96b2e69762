/*
 * What a reload has to do: the running configuration against the new one,
 * object by object.
 *
 * Objects are the same when their names are: a portal group and an auth group by
 * name, a target by its iSCSI name, a lun by its name (of one within a target
 * "IQN,lun,N"), a LUN of a target by target and number.  What is in both and
 * equal is not in the list and is not to be touched.
 *
 * What a change of an auth group means for the sessions of a target is the
 * group's change: the target itself has changed only when it names another
 * group.  A lun that got another name is one removed and one added, though their
 * store may be the same: what is removed is closed before what is added opens.
 *
 * Control thread.
 */
#ifndef CONFIG_DIFF_H
#define CONFIG_DIFF_H

#include "config/config.h"

/* In the order in which the list has them. */
enum config_object {
	CONFIG_OBJECT_GLOBAL,	    /* settings of the top level; only changed */
	CONFIG_OBJECT_AUTH_GROUP,   /* struct config_auth_group */
	CONFIG_OBJECT_PORTAL_GROUP, /* struct config_portal_group */
	CONFIG_OBJECT_POOL,	    /* struct config_pool */
	CONFIG_OBJECT_LUN,	    /* struct config_lun */
	CONFIG_OBJECT_TARGET,	    /* struct config_target, without its LUNs */
	CONFIG_OBJECT_LUN_MAP,	    /* struct config_lun_map */
};

enum config_change_kind {
	CONFIG_REMOVED,
	CONFIG_ADDED,
	CONFIG_CHANGED,
};

struct config_change_key {
	const char *key; /* as in the file: "size", "auth-group" */
	uint8_t reload;	 /* enum option_reload */
	struct config_change_key *next;
};

struct config_change {
	uint8_t object;		    /* enum config_object */
	uint8_t kind;		    /* enum config_change_kind */
	uint8_t reload;		    /* CHANGED: the strongest class of keys */
	const char *name;	    /* of the object; of the target for a LUN_MAP */
	const void *before, *after; /* the objects; NULL where there is none */
	/* LUN_MAP: the targets that have it, NULL likewise */
	const struct config_target *target_before, *target_after;
	struct config_change_key *keys; /* CHANGED: which settings, in the order of
					 * the tables */
	struct config_change *next;
};

struct config_diff {
	struct arena *arena;
	struct config_change *changes; /* by object, then in the order of the files */
};

/* Both without errors; both must live as long as the result. */
struct config_diff *config_diff(const struct config *before, const struct config *after);
void config_diff_free(struct config_diff *diff);

#endif
