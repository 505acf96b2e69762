/*
 * What operators do with pools and volumes, as rows: one function for the
 * command that opened the pool itself, and for the daemon that has it open.
 *
 * A request is a JSON object, its answer another, both as on the control socket
 * (docs/control.md).  To add one: a row of pool_ops[], a row of daemon_commands[]
 * (daemon.c) and of docs/control.md.
 *
 * Pure but for the engine: run() is on the thread that has the pool, in the
 * daemon in a fiber of it.  A request is judged there, whole, before it is done.
 */
#ifndef TARGET_POOL_OPS_H
#define TARGET_POOL_OPS_H

#include <jansson.h>
#include <stdbool.h>

#include "backing/volume/pool.h"
#include "base/err.h"
#include "config/config.h"

struct pool_op {
	const char *name; /* of the control command */
	bool writes;
	/* 0, or -errno with a text */
	int (*run)(struct pool *engine, const json_t *request, json_t *answer, struct err *err);
	/* The configuration has the last word on it for volumes that are LUNs. */
	bool (*settled_by)(const struct config_lun *lun);
	const char *instead; /* what to do there */
};

/* NULL: there is none. */
const struct pool_op *pool_op_find(const char *name);

/*
 * May it be done to the volume, by the configuration?  0, or -EBUSY and which
 * LUN says otherwise.  volume may be NULL: the operation is the pool's.
 */
int pool_op_judge(const struct pool_op *op, const struct config *config, const char *pool,
		  const char *volume, struct err *err);

/* The LUN of POOL/VOLUME, or NULL. */
const struct config_lun *pool_op_lun(const struct config *config, const char *pool,
				     const char *volume);

/* Adds the members of a pool's status to answer. */
void pool_info_tell(const struct pool_info *info, json_t *answer);

/* A string of the request; NULL when it is not there. */
const char *pool_request_text(const json_t *request, const char *member);

/* A new volume's settings as the request says and by default elsewhere. */
int pool_request_settings(const json_t *request, struct volume_settings *settings, struct err *err);

#endif
