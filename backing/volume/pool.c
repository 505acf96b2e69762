#include "backing/volume/pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backing/volume/bulk.h"
#include "backing/volume/cache.h"
#include "backing/volume/checkpoint.h"
#include "backing/volume/clean.h"
#include "backing/volume/credit.h"
#include "backing/volume/hostspace.h"
#include "backing/volume/io.h"
#include "backing/volume/log.h"
#include "backing/volume/merge.h"
#include "backing/volume/read.h"
#include "backing/volume/region.h"
#include "backing/volume/segment.h"
#include "backing/volume/stage.h"
#include "backing/volume/super.h"
#include "backing/volume/volumes.h"

#define FIBERS_MAX 48 /* merges, checkpoint, cleaning, control calls */
/* While something is under way, and when nothing is. */
#define TICK_NS	     100000000ull
#define TICK_IDLE_NS 5000000000ull

/* ---- parts ---- */

/* In the order in which they need each other; closed the other way round. */
static const struct part {
	int (*open)(struct pool *pool, struct err *err);
	void (*close)(struct pool *pool);
} parts[] = {
	{ segments_open, segments_close },
	{ credit_open, credit_close },
	{ reader_open, reader_close },
	{ cache_open, cache_close },
	{ regions_open, regions_close },
	{ volumes_open, volumes_close },
	{ log_open, log_close },
	{ stage_open, stage_close },
	{ bulk_open, bulk_close },
	{ merger_open, merger_close },
	{ checkpointer_open, checkpointer_close },
	{ cleaner_open, cleaner_close },
};

void pool_parts_close(struct pool *pool)
{
	for (size_t i = ARRAY_LEN(parts); i-- > 0;)
		parts[i].close(pool);
}

int pool_parts_open(struct pool *pool, struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		int rc = parts[i].open(pool, err);

		if (rc) {
			pool_parts_close(pool);
			return rc;
		}
	}
	return 0;
}

static void pool_free(struct pool *pool)
{
	if (pool->env && pool->env->pool == pool)
		pool->env->pool = NULL;
	fiber_set_abandon(pool->fibers);
	free(pool->name);
	free(pool);
}

static struct pool *pool_alloc(struct venv *env, const struct pool_open_args *args)
{
	struct pool *pool = calloc(1, sizeof(*pool));

	if (!pool)
		return NULL;
	pool->env = env;
	pool->name = strdup(args->name);
	pool->cache_memory = args->cache_memory < POOL_MEMORY_MIN ? POOL_MEMORY_MIN
								  : args->cache_memory;
	pool->threshold = args->threshold;
	pool->quiet = args->quiet;
	pool->events = args->events;
	pool->events_arg = args->events_arg;
	pool->mutant = args->mutant;
	pool->epoch = 1;
	pool->recovering = true;
	list_init(&pool->finished);
	pool->fibers = fiber_set_create(FIBERS_MAX);
	if (!pool->name || !pool->fibers) {
		pool_free(pool);
		return NULL;
	}
	env->pool = pool;
	return pool;
}

/* ---- control calls ---- */

struct control {
	struct pool *pool;
	int (*fn)(struct pool *pool, void *arg);
	void *arg;
	int rc;
	bool ended;
};

static void control_fiber(void *arg)
{
	struct control *control = arg;

	control->rc = control->fn(control->pool, control->arg);
	control->ended = true;
}

int pool_control(struct pool *pool, int (*fn)(struct pool *pool, void *arg), void *arg)
{
	struct control control = { .pool = pool, .fn = fn, .arg = arg };

	if (fiber_self())
		return fn(pool, arg);
	assert(pool->env->ops->wait);
	if (!fiber_start(pool->fibers, control_fiber, &control))
		return -EAGAIN;
	pool_run(pool);
	while (!control.ended)
		pool->env->ops->wait(pool->env);
	return control.rc;
}

bool pool_fiber(struct pool *pool, void (*fn)(void *arg), void *arg)
{
	return fiber_start(pool->fibers, fn, arg);
}

/* ---- opening ---- */

struct opening {
	struct err *err;
};

static int recover(struct pool *pool, void *arg)
{
	struct opening *opening = arg;

	return pool_recover(pool, opening->err);
}

int pool_open(struct venv *env, const struct pool_open_args *args, struct pool **out,
	      struct err *err)
{
	struct pool *pool = pool_alloc(env, args);
	struct opening opening = { .err = err };
	bool read_only = false;
	int rc;

	if (!pool)
		return err_set(err, ENOMEM, "no memory for a pool");
	rc = super_read(env, &pool->super, &read_only, err);
	if (rc)
		goto fail;
	if (read_only)
		snprintf(pool->why_read_only, sizeof(pool->why_read_only), "%s", err->text);
	else if (args->read_only || env->read_only)
		snprintf(pool->why_read_only, sizeof(pool->why_read_only), "opened read-only");
	pool->read_only_asked = !read_only && pool->why_read_only[0] != '\0';
	pool->read_only = pool->why_read_only[0] != '\0';
	memcpy(pool->geometry.uuid, pool->super.head.uuid, sizeof(pool->geometry.uuid));
	pool->geometry.segment_len = le32_get(&pool->super.segment_len);
	pool->geometry.nsegments = le64_get(&pool->super.nsegments);
	rc = pool_parts_open(pool, err);
	if (rc)
		goto fail;
	pool_prepare_codec(pool, &(struct codec_choice){ CODEC_LZ4, 1 });
	rc = pool_control(pool, recover, &opening);
	if (rc)
		goto fail_parts;
	pool->at_rest = false;
	pool_tick(pool);
	*out = pool;
	return 0;

fail_parts:
	pool_parts_close(pool);
fail:
	pool_free(pool);
	return rc;
}

void pool_close(struct pool *pool)
{
	pool_parts_close(pool);
	pool_free(pool);
}

/* ---- creating ---- */

static bool label_judge(const char *text)
{
	char label[VF_NAME_MAX + 1] = { 0 };

	if (!text)
		return true;
	if (strlen(text) > VF_NAME_MAX)
		return false;
	memcpy(label, text, strlen(text));
	return vf_label_valid(label);
}

static int create_judge(struct venv *env, const struct pool_create_args *args, uint64_t *len,
			struct err *err)
{
	*len = args->len ? args->len : env->device_len;
	if (env->read_only)
		return err_set(err, EROFS, "it cannot be written to");
	if (*len > env->device_len)
		return err_set(err, EINVAL, "the device has %llu bytes, not %llu",
			       (unsigned long long)env->device_len, (unsigned long long)*len);
	if (*len < VF_POOL_LEN_MIN || *len > VF_POOL_LEN_MAX)
		return err_set(err, EINVAL, "a pool has %llu MiB to %llu TiB, not %llu bytes",
			       (unsigned long long)(VF_POOL_LEN_MIN >> 20),
			       (unsigned long long)(VF_POOL_LEN_MAX >> 40),
			       (unsigned long long)*len);
	if (!label_judge(args->label))
		return err_set(err, EINVAL, "the label is not 1 to %u printable characters",
			       VF_NAME_MAX);
	return 0;
}

static void super_fill(struct venv *env, struct vf_super *super, uint64_t len, uint32_t segment_len,
		       const char *label)
{
	*super = (struct vf_super){ .head = { .type = VF_SUPER } };
	env->ops->random(env, super->head.uuid, sizeof(super->head.uuid));
	env->ops->random(env, super->salt, sizeof(super->salt));
	le32_put(&super->incarnation, 1);
	le32_put(&super->segment_len, segment_len);
	le64_put(&super->nsegments, len / segment_len);
	le64_put(&super->created_s, env->ops->time_s ? env->ops->time_s(env) : 0);
	le32_put(&super->ndevices, 1);
	le32_put(&super->unit_shift, 6);
	env->ops->random(env, super->devices[0].uuid, sizeof(super->devices[0].uuid));
	le64_put(&super->devices[0].nsegments, len / segment_len);
	le32_put(&super->devices[0].state, 1);
	if (label)
		memcpy(super->label, label, strlen(label));
}

/* The first life: an empty log and two checkpoints of nothing. */
static int create_fiber(struct pool *pool, void *arg)
{
	struct opening *opening = arg;
	struct vf_place first = { .prev = { { 0 } } };
	uint32_t segno;
	int rc;

	segments_recount(pool);
	segno = segment_take(pool, VF_W, SEGMENT_FOR_MAP);
	assert(segno != 0);
	segment_at(pool, segno)->state = SEGMENT_RESERVED;
	pool->recovering = false;
	le64_put(&first.seq, 1);
	rc = log_start(pool, &first, 0, segno, opening->err);
	for (int i = 0; i < 2 && !rc; i++)
		rc = checkpoint_run(pool);
	if (!rc)
		rc = log_drain(pool);
	if (rc)
		err_set(opening->err, -rc, "writing the new pool: %s", strerror(-rc));
	return rc;
}

int pool_create(struct venv *env, const struct pool_create_args *args, bool force, struct err *err)
{
	struct pool_open_args open_args = { .name = "new",
					    .cache_memory = POOL_MEMORY_MIN,
					    .quiet = true };
	struct opening opening = { .err = err };
	struct pool *pool;
	uint64_t len, smaller;
	int rc = create_judge(env, args, &len, err);

	if (!rc)
		rc = super_clear(env, force, err);
	if (rc)
		return rc;
	pool = pool_alloc(env, &open_args);
	if (!pool)
		return err_set(err, ENOMEM, "no memory for a pool");
	smaller = args->host_free < len ? args->host_free : len;
	super_fill(env, &pool->super, len,
		   args->segment_len ? args->segment_len : vf_segment_len_for(smaller),
		   args->label);
	memcpy(pool->geometry.uuid, pool->super.head.uuid, sizeof(pool->geometry.uuid));
	pool->geometry.segment_len = le32_get(&pool->super.segment_len);
	pool->geometry.nsegments = le64_get(&pool->super.nsegments);
	pool->incarnation = 1;
	rc = super_write_both(env, &pool->super);
	if (rc) {
		err_set(err, -rc, "writing superblocks: %s", strerror(-rc));
		goto out;
	}
	rc = pool_parts_open(pool, err);
	if (rc)
		goto out;
	rc = pool_control(pool, create_fiber, &opening);
	if (!rc)
		rc = pool_quiesce(pool, err);
	pool_parts_close(pool);
out:
	pool_free(pool);
	return rc;
}

/* ---- coming to rest ---- */

static int quiesce_fiber(struct pool *pool, void *arg)
{
	int rc = 0;

	(void)arg;
	/* What is staged may need segments that cleaning has yet to free. */
	if (!pool->read_only)
		rc = log_settle(pool);
	pool->closing = true;
	cleaner_stop(pool);
	if (!rc && !pool->read_only)
		rc = log_drain(pool);
	if (!rc && !pool->read_only) {
		rc = merge_until(pool, log_durable(pool));
		if (rc == -EUCLEAN || rc == -ENOSPC)
			rc = 0; /* what is left is in the log */
	}
	merger_stop(pool);
	hostspace_stop(pool);
	if (!rc && !pool->read_only)
		rc = checkpoint_run(pool);
	checkpointer_stop(pool);
	if (!rc && !pool->read_only)
		rc = log_drain(pool);
	return rc;
}

int pool_quiesce(struct pool *pool, struct err *err)
{
	int rc;

	rc = pool_control(pool, quiesce_fiber, NULL);
	if (rc) {
		pool->closing = false;
		return err_set(err, -rc, "pool %s: %s", pool->name,
			       pool->read_only ? pool->why_read_only : strerror(-rc));
	}
	pool->env->ops->set_timer(pool->env, 0);
	pool->at_rest = true;
	return 0;
}

void pool_prepare_codec(struct pool *pool, const struct codec_choice *choice)
{
	char text[CODEC_TEXT_MAX];

	if (!pool->env->ops->prepare || pool->env->ops->prepare(pool->env, choice) == 0)
		return;
	codec_format(choice, text);
	log_error("pool %s: no memory to compress with %s: it is stored uncompressed", pool->name,
		  text);
}

void pool_resume(struct pool *pool, struct venv *env)
{
	static const struct codec_choice hot = { CODEC_LZ4, 1 };

	assert(pool->at_rest);
	pool->env->pool = NULL;
	pool->env = env;
	env->pool = pool;
	pool_prepare_codec(pool, &hot);
	for (struct volume *v = volume_next(pool, NULL); v; v = volume_next(pool, v))
		pool_prepare_codec(pool, &v->settings.codec);
	pool->closing = false;
	pool->at_rest = false;
	pool_tick(pool);
}

/* ---- running ---- */

/* When pool_tick() is wanted next: soon while something is under way. */
static void set_tick(struct pool *pool, uint64_t now_ns)
{
	bool idle = stage_empty(pool) && fiber_count(pool->fibers) == 0 && log_idle(pool);
	uint64_t at_ns = now_ns + (idle ? TICK_IDLE_NS : TICK_NS);

	if (pool->tick_ns > now_ns && pool->tick_ns <= at_ns)
		return;
	pool->tick_ns = at_ns;
	pool->env->ops->set_timer(pool->env, at_ns);
}

void pool_run(struct pool *pool)
{
	assert(!fiber_self());
	fiber_run(pool->fibers);
	log_run_wanted(pool);
	requests_run(pool);
	if (fiber_ready(pool->fibers) || !list_empty(&pool->finished))
		pool->env->ops->kick(pool->env);
	if (!pool->recovering && !pool->at_rest)
		set_tick(pool, pool->env->ops->now_ns(pool->env));
}

static uint64_t memory_now(const struct pool *pool)
{
	return regions_memory(pool) + cache_memory(pool) + reader_memory(pool) + stage_bytes(pool) +
	       bulk_memory(pool);
}

void pool_tick(struct pool *pool)
{
	pool->tick_ns = 0;
	if (pool->recovering || pool->at_rest)
		return;
	if (memory_now(pool) > pool->memory_max)
		pool->memory_max = memory_now(pool);
	log_tick(pool);
	if (!pool->closing) {
		merger_tick(pool);
		checkpointer_tick(pool);
		cleaner_tick(pool);
	}
	pool_run(pool);
}

void pool_fence(struct pool *pool, const char *why)
{
	if (pool->read_only && !pool->read_only_asked)
		return;
	pool->read_only = true;
	pool->read_only_asked = false; /* there is more to say now */
	snprintf(pool->why_read_only, sizeof(pool->why_read_only), "%s", why);
	if (!pool->quiet)
		log_error("pool %s: read-only from now on: %s", pool->name, why);
	if (pool->events && pool->events->fenced)
		pool->events->fenced(pool->events_arg, why);
	if (!pool->recovering)
		log_kick(pool);
}

/* ---- growing, checkpoints, figures ---- */

struct growing {
	uint64_t nsegments;
	struct err *err;
};

static int grow_fiber(struct pool *pool, void *arg)
{
	struct growing *growing = arg;
	uint64_t old = pool->geometry.nsegments;
	uint64_t len = growing->nsegments * pool->geometry.segment_len;
	int rc;

	if (len > pool->env->device_len) {
		rc = vdev_do(pool->env, VDEV_GROW, len, NULL, 0);
		if (rc)
			return err_set(growing->err, -rc, "pool %s: extending it to %llu bytes: %s",
				       pool->name, (unsigned long long)len, strerror(-rc));
	}
	rc = segments_grow(pool, growing->nsegments, growing->err);
	if (rc)
		return rc;
	pool->geometry.nsegments = growing->nsegments;
	le64_put(&pool->super.nsegments, growing->nsegments);
	le64_put(&pool->super.devices[0].nsegments, growing->nsegments);
	rc = checkpoint_run(pool); /* its superblock has the new geometry */
	if (rc)
		return err_set(growing->err, -rc, "pool %s: growing it: %s", pool->name,
			       strerror(-rc));
	if (!pool->quiet)
		log_info("pool %s: grew from %llu to %llu MiB", pool->name,
			 (unsigned long long)(old * pool->geometry.segment_len >> 20),
			 (unsigned long long)(len >> 20));
	credit_update(pool);
	return 0;
}

static uint64_t len_max(uint32_t segment_len)
{
	return segment_len <= 256u << 10 ? 512ull << 30
	       : segment_len <= 1u << 20 ? 2ull << 40
					 : VF_POOL_LEN_MAX;
}

int pool_grow(struct pool *pool, uint64_t len, struct err *err)
{
	uint32_t segment_len = pool->geometry.segment_len;
	struct growing growing = { .nsegments = len / segment_len, .err = err };

	if (pool->read_only)
		return err_set(err, EROFS, "pool %s is read-only: %s", pool->name,
			       pool->why_read_only);
	if (growing.nsegments < pool->geometry.nsegments)
		return err_set(err, EINVAL, "pool %s has %llu bytes and cannot be made smaller",
			       pool->name,
			       (unsigned long long)pool->geometry.nsegments * segment_len);
	if (len > len_max(segment_len))
		return err_set(err, EINVAL,
			       "pool %s can grow to %llu GiB at most: it was made small",
			       pool->name, (unsigned long long)(len_max(segment_len) >> 30));
	if (len > pool->env->device_len && !pool->env->file)
		return err_set(err, EINVAL, "pool %s: the device has %llu bytes", pool->name,
			       (unsigned long long)pool->env->device_len);
	if (growing.nsegments == pool->geometry.nsegments)
		return 0;
	return pool_control(pool, grow_fiber, &growing);
}

void pool_set_threshold(struct pool *pool, uint32_t percent)
{
	pool->threshold = (uint8_t)percent;
	credit_update(pool);
}

static int checkpoint_fiber(struct pool *pool, void *arg)
{
	(void)arg;
	return checkpoint_run(pool);
}

int pool_checkpoint(struct pool *pool, struct err *err)
{
	int rc = pool_control(pool, checkpoint_fiber, NULL);

	return rc ? err_set(err, -rc, "pool %s: checkpoint: %s", pool->name, strerror(-rc)) : 0;
}

void pool_info(const struct pool *pool, struct pool_info *out)
{
	uint64_t units = segments_live_units(pool);

	*out = (struct pool_info){
		.len = pool->geometry.nsegments * pool->geometry.segment_len,
		.host_len = pool->env->device_len,
		.used = units * VF_UNIT,
		.charged = credit_charged(pool),
		.available = credit_available(pool),
		.map_bytes = segments_map_units(pool) * VF_UNIT,
		.segment_len = pool->geometry.segment_len,
		.incarnation = pool->incarnation,
		.nsegments = pool->geometry.nsegments,
		.segments_free = segments_reusable(pool),
		.checkpoints = checkpoint_number(pool),
		.durable_seq = log_durable(pool),
		.replay_bytes = log_window(pool, checkpoint_replay(pool)),
		.user_bytes = pool->counters.user_bytes,
		.log_bytes = pool->counters.log_bytes,
		.moved_bytes = pool->counters.moved_bytes,
		.bulk_map_bytes = pool->counters.bulk_map_bytes,
		.memory = memory_now(pool),
		.read_only = pool->read_only,
		.read_only_asked = pool->read_only_asked,
		.why_read_only = pool->why_read_only,
	};
	memcpy(out->uuid, pool->geometry.uuid, sizeof(out->uuid));
	memcpy(out->label, pool->super.label, sizeof(out->label));
	for (struct volume *volume = volume_next((struct pool *)pool, NULL); volume;
	     volume = volume_next((struct pool *)pool, volume)) {
		out->nvolumes++;
		out->mapped += volume->mapped * VF_SECTOR;
	}
	out->stored = out->used - out->map_bytes;
	out->memory_max = out->memory > pool->memory_max ? out->memory : pool->memory_max;
}
