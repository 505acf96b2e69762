#include "backing/pool.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "backing/pool_env.h"
#include "backing/pool_internal.h"
#include "backing/store.h"
#include "backing/volume/sync.h"
#include "base/log.h"
#include "base/option.h"

#define REFRESH_MS 1000 /* how old bk_pool_info() may be */

struct bk_pool {
	char *name, *path;
	int fd;
	struct venv *sync; /* what it was opened in */
	struct pool *engine;
	struct crew *crew;
	struct pool_env *env;
	struct reactor *home;
	bool started;
	struct reactor_timer refresh;
	pthread_mutex_t lock; /* what follows */
	struct pool_info info;
	char why_read_only[ERR_TEXT_MAX];
	struct list stores; /* struct volume_store */
};

/* ---- opening ---- */

static void event_threshold(void *arg)
{
	struct bk_pool *pool = arg;

	log_warning("pool %s: the threshold of used space is reached", pool->name);
	pthread_mutex_lock(&pool->lock);
	list_for_each(link, &pool->stores)
		volume_store_event(link, BK_SPACE_SHORT);
	pthread_mutex_unlock(&pool->lock);
}

static const struct pool_events events = { .threshold = event_threshold };

/* Of the engine's thread; the copy is everybody's. */
static void info_refresh(struct bk_pool *pool)
{
	struct pool_info info;

	pool_info(pool->engine, &info);
	pthread_mutex_lock(&pool->lock);
	snprintf(pool->why_read_only, sizeof(pool->why_read_only), "%s",
		 info.read_only ? info.why_read_only : "");
	info.why_read_only = pool->why_read_only;
	pool->info = info;
	list_for_each(link, &pool->stores)
		volume_store_refresh(link, info.available);
	pthread_mutex_unlock(&pool->lock);
}

static int open_engine(struct bk_pool *pool, const struct pool_settings *settings, struct err *err)
{
	struct pool_open_args args = {
		.name = pool->name,
		.cache_memory = settings->cache_memory,
		.threshold = (uint8_t)settings->threshold,
		.events = &events,
		.events_arg = pool,
	};
	int rc;

	pool->sync = sync_env_open(pool->fd, settings->path, false, err);
	if (!pool->sync)
		return -EINVAL;
	rc = pool_open(pool->sync, &args, &pool->engine, err);
	if (rc) {
		char text[ERR_TEXT_MAX / 2];

		snprintf(text, sizeof(text), "%.*s", (int)sizeof(text) - 1, err->text);
		return err_set(err, -rc, "%s: %s", settings->path, text);
	}
	pool_info(pool->engine, &pool->info);
	if (settings->size > pool->info.len && !pool->info.read_only)
		rc = pool_grow(pool->engine, settings->size, err);
	else if (settings->size &&
		 settings->size < pool->info.len / pool->info.segment_len * pool->info.segment_len)
		log_warning("pool %s: size is less than the %" PRIu64
			    " bytes that it has: a pool cannot be made smaller",
			    pool->name, pool->info.len);
	if (!rc)
		rc = pool_quiesce(pool->engine, err);
	return rc;
}

int bk_pool_open(const char *name, const struct pool_settings *settings, struct bk_pool **out,
		 struct err *err)
{
	struct bk_pool *pool = calloc(1, sizeof(*pool));
	struct stat st;
	int rc = -ENOMEM;

	if (!pool)
		return err_set(err, ENOMEM, "no memory");
	pool->fd = -1;
	pool->name = strdup(name);
	pool->path = strdup(settings->path);
	pthread_mutex_init(&pool->lock, NULL);
	list_init(&pool->stores);
	if (!pool->name || !pool->path) {
		err_set(err, ENOMEM, "no memory");
		goto fail;
	}
	rc = stat(settings->path, &st) != 0 && errno == ENOENT ? pool_file_create(settings, err)
							       : 0;
	if (rc)
		goto fail;
	rc = pool_file_open(settings->path, false, &pool->fd, err);
	if (!rc)
		rc = open_engine(pool, settings, err);
	if (rc)
		goto fail;
	info_refresh(pool);
	*out = pool;
	return 0;
fail:
	bk_pool_close(pool);
	return rc;
}

void bk_pool_close(struct bk_pool *pool)
{
	assert(list_empty(&pool->stores) && !pool->started);
	if (pool->engine)
		pool_close(pool->engine);
	pool_env_destroy(pool->env);
	sync_env_close(pool->sync);
	if (pool->crew)
		crew_put(pool->crew);
	if (pool->fd >= 0)
		close(pool->fd);
	pthread_mutex_destroy(&pool->lock);
	free(pool->name);
	free(pool->path);
	free(pool);
}

/* ---- on its home ---- */

struct home_call {
	struct bk_pool *pool;
	int rc;
};

static void refresh_fired(struct reactor_timer *timer)
{
	struct bk_pool *pool = container_of(timer, struct bk_pool, refresh);

	info_refresh(pool);
	reactor_timer_arm(pool->home, &pool->refresh, REFRESH_MS);
}

static void start_at_home(void *arg)
{
	struct home_call *call = arg;
	struct bk_pool *pool = call->pool;

	call->rc = reactor_timer_reserve(pool->home, 1);
	if (call->rc)
		return;
	call->rc = pool_env_attach(pool->env);
	if (call->rc) {
		reactor_timer_release(pool->home, 1);
		return;
	}
	reactor_timer_init(&pool->refresh, refresh_fired);
	pool_resume(pool->engine, pool_env_venv(pool->env));
	refresh_fired(&pool->refresh);
}

int bk_pool_start(struct bk_pool *pool, struct reactor *home, struct err *err)
{
	struct home_call call = { .pool = pool };

	pool->crew = crew_get(err);
	if (!pool->crew)
		return -ENOMEM;
	pool->home = home;
	pool->env = pool_env_create(pool->fd, pool->sync, home, pool->crew, err);
	if (!pool->env)
		return -ENOMEM;
	reactor_call(home, start_at_home, &call);
	if (call.rc)
		return err_set(err, -call.rc, "pool %s: %s", pool->name, err_name(-call.rc));
	pool->started = true;
	return 0;
}

/* ---- calls ---- */

struct bk_call {
	struct reactor_msg msg;
	struct bk_pool *pool;
	int (*fn)(struct pool *engine, void *arg);
	void *arg;
	int rc;
	pthread_mutex_t lock;
	pthread_cond_t ended;
	bool has_ended;
	bool left; /* nobody waits any more: the fiber frees it */
};

static void call_free(struct bk_call *call)
{
	pthread_mutex_destroy(&call->lock);
	pthread_cond_destroy(&call->ended);
	free(call);
}

static void call_end(struct bk_call *call, int rc)
{
	bool left;

	pthread_mutex_lock(&call->lock);
	call->rc = rc;
	call->has_ended = true;
	left = call->left;
	pthread_cond_signal(&call->ended);
	pthread_mutex_unlock(&call->lock);
	if (left)
		call_free(call);
}

static void call_fiber(void *arg)
{
	struct bk_call *call = arg;

	call_end(call, call->fn(call->pool->engine, call->arg));
}

static void call_at_home(struct reactor_msg *msg)
{
	struct bk_call *call = container_of(msg, struct bk_call, msg);

	if (!pool_fiber(call->pool->engine, call_fiber, call))
		call_end(call, -EAGAIN);
	pool_env_kick(call->pool->env);
}

static struct bk_call *call_begin(struct bk_pool *pool, int (*fn)(struct pool *engine, void *arg),
				  void *arg)
{
	struct bk_call *call = calloc(1, sizeof(*call));
	pthread_condattr_t attr;

	if (!call)
		return NULL;
	call->msg.run = call_at_home;
	call->pool = pool;
	call->fn = fn;
	call->arg = arg;
	pthread_mutex_init(&call->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&call->ended, &attr);
	pthread_condattr_destroy(&attr);
	reactor_send(pool->home, &call->msg);
	return call;
}

/* timeout_ms 0: for ever.  -ETIMEDOUT: it goes on without anybody waiting. */
static int call_wait(struct bk_call *call, unsigned int timeout_ms)
{
	struct timespec until;
	int rc = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += timeout_ms / 1000;
	until.tv_nsec += timeout_ms % 1000 * 1000000L;
	if (until.tv_nsec >= 1000000000L) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000L;
	}
	pthread_mutex_lock(&call->lock);
	while (!call->has_ended && rc == 0)
		rc = timeout_ms ? pthread_cond_timedwait(&call->ended, &call->lock, &until)
				: pthread_cond_wait(&call->ended, &call->lock);
	if (!call->has_ended) {
		call->left = true;
		pthread_mutex_unlock(&call->lock);
		return -ETIMEDOUT;
	}
	rc = call->rc;
	pthread_mutex_unlock(&call->lock);
	call_free(call);
	return rc;
}

int bk_pool_call(struct bk_pool *pool, int (*fn)(struct pool *engine, void *arg), void *arg)
{
	struct bk_call *call;

	assert(pool->started && !reactor_self());
	call = call_begin(pool, fn, arg);
	return call ? call_wait(call, 0) : -ENOMEM;
}

struct growing {
	uint64_t size;
	struct err *err;
};

static int grow(struct pool *engine, void *arg)
{
	struct growing *growing = arg;

	return pool_grow(engine, growing->size, growing->err);
}

int bk_pool_grow(struct bk_pool *pool, uint64_t size, struct err *err)
{
	struct growing growing = { .size = size, .err = err };

	return bk_pool_call(pool, grow, &growing);
}

static int set_threshold(struct pool *engine, void *arg)
{
	pool_set_threshold(engine, *(const uint32_t *)arg);
	return 0;
}

void bk_pool_set_threshold(struct bk_pool *pool, uint32_t percent)
{
	bk_pool_call(pool, set_threshold, &percent);
}

bool bk_pool_in_use(struct bk_pool *pool)
{
	bool used;

	pthread_mutex_lock(&pool->lock);
	used = !list_empty(&pool->stores);
	pthread_mutex_unlock(&pool->lock);
	return used;
}

/* ---- stopping ---- */

static int quiesce(struct pool *engine, void *arg)
{
	struct err err;
	int rc = pool_quiesce(engine, &err);

	(void)arg;
	if (rc)
		log_error("%s", err.text);
	return rc;
}

static void stop_at_home(void *arg)
{
	struct home_call *call = arg;
	struct bk_pool *pool = call->pool;

	call->rc = pool_env_in_flight(pool->env) ? -EBUSY : 0;
	if (call->rc)
		return;
	reactor_timer_cancel(pool->home, &pool->refresh);
	reactor_timer_release(pool->home, 1);
	pool_env_detach(pool->env);
}

bool bk_pool_stop(struct bk_pool *pool, unsigned int timeout_ms)
{
	struct home_call call = { .pool = pool };
	struct bk_call *quiescing;

	if (!pool->started)
		return true;
	quiescing = call_begin(pool, quiesce, NULL);
	if (!quiescing || call_wait(quiescing, timeout_ms ? timeout_ms : 1) == -ETIMEDOUT)
		return false;
	reactor_call(pool->home, stop_at_home, &call);
	if (call.rc)
		return false;
	pool->started = false;
	return true;
}

/* ---- what others ask ---- */

void bk_pool_info(struct bk_pool *pool, struct pool_info *out)
{
	pthread_mutex_lock(&pool->lock);
	*out = pool->info;
	pthread_mutex_unlock(&pool->lock);
}

const char *bk_pool_name(const struct bk_pool *pool)
{
	return pool->name;
}

struct reactor *bk_pool_home(const struct bk_pool *pool)
{
	return pool->home;
}

void bk_pool_kick(struct bk_pool *pool)
{
	pool_env_kick(pool->env);
}

void bk_pool_join(struct bk_pool *pool, struct list *store)
{
	pthread_mutex_lock(&pool->lock);
	list_add_tail(&pool->stores, store);
	pthread_mutex_unlock(&pool->lock);
}

void bk_pool_leave(struct bk_pool *pool, struct list *store)
{
	pthread_mutex_lock(&pool->lock);
	list_del(store);
	pthread_mutex_unlock(&pool->lock);
}
