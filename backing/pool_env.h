/*
 * The environment of a pool in the daemon: its home reactor's ring, clock and
 * timer, and the crew (crew.h) for jobs.
 *
 * Everything of it is called on the home reactor, but for making and freeing it.
 */
#ifndef BACKING_POOL_ENV_H
#define BACKING_POOL_ENV_H

#include "backing/crew.h"
#include "backing/volume/env.h"
#include "base/err.h"
#include "base/reactor.h"

struct pool_env;

/*
 * like: what the pool was opened in (sync.h), for what is known of the device.
 * fd is the very open file that is locked; it stays the caller's.  NULL with a
 * text.
 */
struct pool_env *pool_env_create(int fd, const struct venv *like, struct reactor *home,
				 struct crew *crew, struct err *err);
/* Nothing is in flight. */
void pool_env_destroy(struct pool_env *env);

struct venv *pool_env_venv(struct pool_env *env);
/* On the home reactor, before the pool is resumed; and after it came to rest. */
int pool_env_attach(struct pool_env *env);
void pool_env_detach(struct pool_env *env);
/* On the home reactor: operations and jobs that have not ended. */
uint32_t pool_env_in_flight(const struct pool_env *env);
/* On the home reactor: pool_run() soon, as something was submitted. */
void pool_env_kick(struct pool_env *env);

#endif
