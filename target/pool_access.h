/*
 * How a command gets at a pool: through the daemon that has it open, or by itself.
 *
 * POOL is a name of the configuration, or a path when there is a / in it; a
 * volume is POOL/NAME, and the last / is the one between them.  A daemon that
 * has the pool open is asked; else the pool's file is opened, which its lock
 * allows only while nobody else has it.
 *
 *	pool_access_find -> pool_access_run | pool_session_open ... -> release
 *
 * Main thread of a command; may block.
 */
#ifndef TARGET_POOL_ACCESS_H
#define TARGET_POOL_ACCESS_H

#include <limits.h>
#include <jansson.h>
#include <stdbool.h>

#include "backing/volume/pool.h"
#include "base/err.h"
#include "config/config.h"
#include "target/client.h"

struct pool_access {
	struct client_options client; /* of the command line */
	struct config *config;	      /* what names pools; NULL: none was read */
	char name[64];		      /* by the configuration, or the daemon; "" */
	char path[PATH_MAX];	      /* "" when only the daemon knows it */
	char volume[64];	      /* of POOL/NAME; "" */
	uint64_t cache_memory;	      /* bytes, for opening it; 0: a share of RAM */
	bool online;		      /* a daemon has it open */
	char why[ERR_TEXT_MAX];	      /* why not, as its daemon or its socket says */
};

/* words: "POOL", or "POOL/NAME" when a volume is meant.  0, or -errno with a
 * text; to be released in any case. */
int pool_access_find(struct pool_access *access, const struct client_options *client,
		     const char *word, bool is_volume, struct err *err);
void pool_access_release(struct pool_access *access);

/* What messages call it. */
const char *pool_access_name(const struct pool_access *access);

/*
 * Does the operation (pool_ops.h) of this name, and of the daemon's command.
 * request gets what names pool and volume.  0 with the answer, which is the
 * caller's, or -errno with a text.
 */
int pool_access_run(struct pool_access *access, const char *op, json_t *request, json_t **answer,
		    struct err *err);

/* What it cannot do for a pool that a daemon has open: -EBUSY with a text. */
int pool_access_refuse(const struct pool_access *access, const char *what, struct err *err);

/* The daemon's list of pools ("pool-status"), a new reference; NULL: no daemon. */
json_t *pool_access_daemon_pools(const struct client_options *client, struct err *err);

/* The configuration of -c or at the default place; NULL: there is none at the
 * default place.  -errno with a text when it cannot be read. */
int pool_access_config(const struct client_options *client, struct config **out, struct err *err);

/* A pool that this process has open. */
struct pool_session {
	int fd;
	struct venv *env;
	struct pool *engine;
	bool writes;
};

int pool_session_open(const struct pool_access *access, bool writes, struct pool_session *session,
		      struct err *err);
/* 0 when all that was written is durable. */
int pool_session_close(struct pool_session *session, struct err *err);

#endif
