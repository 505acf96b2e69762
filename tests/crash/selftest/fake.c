/*
 * A store of a few lines behind the functions of backing/volume/pool.h, to test
 * the tester: right by itself, and wrong in known ways as some mutants.
 *
 * A log of operations from 1 MiB on, written one behind the other, replayed from
 * its beginning at open; contents in memory.  Two superblocks hold the
 * incarnation.  The log is as long as the device: lives are short.
 */
#include "backing/volume/pool.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backing/volume/mutant.h"
#include "base/be.h"

#define BLOCK	    4096u
#define LOG_START   (1u << 20)
#define VOLUMES_MAX 16
#define MAGIC	    0x46414b45u

enum { REC_WRITE, REC_ZERO, REC_CREATE, REC_SET, REC_DELETE };

struct rec {
	le32 magic, incarnation;
	le64 seq, prev, sum; /* sum: of all of the record with itself as 0 */
	le32 type, volume, lba, n, data_len, reserved;
	struct volume_settings settings;
	char name[VF_NAME_MAX + 1];
	uint8_t rest[BLOCK - 56 - sizeof(struct volume_settings) - VF_NAME_MAX - 1];
};
static_assert(sizeof(struct rec) == BLOCK, "rec");

struct volume {
	struct pool *pool;
	uint32_t id;
	char name[VF_NAME_MAX + 1];
	struct volume_settings settings;
	uint8_t *data;
};

struct out {
	struct vdev_io io;
	struct iovec iov;
	struct pool *pool;
	uint64_t seq;
	bool done;
	struct list link;
};

struct pool {
	struct venv *env;
	uint32_t mutant, incarnation;
	uint64_t seq, prev, off; /* of the next record */
	uint32_t newest;	 /* incarnation that a superblock has */
	uint64_t end;		 /* last record of those before it */
	uint64_t durable;	 /* all up to it */
	struct volume *volumes[VOLUMES_MAX];
	uint32_t next_volume;
	struct list writing, finished, waiting;
	struct out flush;
	bool flushing;
	uint64_t flush_covers;
};

static bool mutant(const struct pool *pool, enum mutant m)
{
	return pool->mutant == (uint32_t)m;
}

static uint64_t sum_of(const void *data, size_t len, uint64_t h)
{
	const uint8_t *p = data;

	for (size_t i = 0; i + 8 <= len; i += 8)
		h = (h ^ le64_get((const le64 *)(p + i))) * 0x9e3779b97f4a7c15ull, h ^= h >> 29;
	return h;
}

static void io_done(struct vdev_io *io)
{
	container_of(io, struct out, io)->done = true;
}

/* ---- waiting I/O ---- */

static int io_wait(struct venv *env, uint8_t op, uint64_t off, void *buf, size_t len)
{
	struct out out = { .iov = { buf, len } };

	out.io = (struct vdev_io){
		.op = op, .off = off, .len = len, .iov = &out.iov, .iovcnt = 1, .done = io_done
	};
	env->ops->submit(env, &out.io);
	while (!out.done)
		env->ops->wait(env);
	return -out.io.err;
}

/* end: the last record of the incarnations before. */
static int super_write(struct venv *env, uint32_t incarnation, uint64_t end, bool flush)
{
	struct rec *rec = aligned_alloc(BLOCK, BLOCK);
	int rc;

	memset(rec, 0, BLOCK);
	le32_put(&rec->magic, MAGIC);
	le32_put(&rec->incarnation, incarnation);
	le64_put(&rec->seq, end);
	le64_put(&rec->sum, sum_of(rec, BLOCK, 1));
	rc = io_wait(env, VDEV_WRITE, incarnation % 2 * BLOCK, rec, BLOCK);
	free(rec);
	return rc || !flush ? rc : io_wait(env, VDEV_FLUSH, 0, NULL, 0);
}

static uint32_t super_read(struct venv *env, uint64_t *end)
{
	struct rec *rec = aligned_alloc(BLOCK, BLOCK);
	uint32_t best = 0;

	for (unsigned int i = 0; i < 2; i++) {
		uint64_t sum;

		if (io_wait(env, VDEV_READ, i * BLOCK, rec, BLOCK))
			continue;
		sum = le64_get(&rec->sum);
		le64_put(&rec->sum, 0);
		if (le32_get(&rec->magic) == MAGIC && sum == sum_of(rec, BLOCK, 1) &&
		    le32_get(&rec->incarnation) > best) {
			best = le32_get(&rec->incarnation);
			*end = le64_get(&rec->seq);
		}
	}
	free(rec);
	return best;
}

int pool_create(struct venv *env, const struct pool_create_args *args, bool force, struct err *err)
{
	(void)args, (void)force, (void)err;
	return super_write(env, 1, 0, true);
}

/* ---- what a record does ---- */

static struct volume *by_id(struct pool *pool, uint32_t id)
{
	for (size_t i = 0; i < VOLUMES_MAX; i++)
		if (pool->volumes[i] && pool->volumes[i]->id == id)
			return pool->volumes[i];
	return NULL;
}

static void volume_free(struct pool *pool, struct volume *volume)
{
	for (size_t i = 0; i < VOLUMES_MAX; i++)
		if (pool->volumes[i] == volume)
			pool->volumes[i] = NULL;
	free(volume->data);
	free(volume);
}

static void volume_make(struct pool *pool, const struct rec *rec)
{
	struct volume *volume = calloc(1, sizeof(*volume));
	size_t i = 0;

	while (pool->volumes[i])
		i++;
	assert(i < VOLUMES_MAX);
	*volume = (struct volume){ .pool = pool,
				   .id = le32_get(&rec->volume),
				   .settings = rec->settings };
	memcpy(volume->name, rec->name, sizeof(volume->name));
	volume->data = calloc(rec->settings.nsectors * 2, 512);
	pool->volumes[i] = volume;
	if (volume->id >= pool->next_volume)
		pool->next_volume = volume->id + 1;
}

static void rec_apply(struct pool *pool, const struct rec *rec, const void *data)
{
	struct volume *volume = by_id(pool, le32_get(&rec->volume));
	size_t off = (size_t)le32_get(&rec->lba) * 512, len = (size_t)le32_get(&rec->n) * 512;

	switch (le32_get(&rec->type)) {
	case REC_WRITE: memcpy(volume->data + off, data, len); break;
	case REC_ZERO: memset(volume->data + off, 0, len); break;
	case REC_CREATE: volume_make(pool, rec); break;
	case REC_SET: volume->settings = rec->settings; break;
	default: volume_free(pool, volume); break;
	}
}

/* ---- the log ---- */

static bool rec_read(struct pool *pool, struct rec *rec, uint8_t **data)
{
	uint64_t room = pool->env->device_len - pool->off, sum;
	size_t len;
	bool good;

	if (room < BLOCK || io_wait(pool->env, VDEV_READ, pool->off, rec, BLOCK))
		return false;
	len = le32_get(&rec->data_len);
	if (le32_get(&rec->magic) != MAGIC || len % BLOCK || len > room - BLOCK ||
	    le64_get(&rec->seq) != pool->seq || le64_get(&rec->prev) != pool->prev ||
	    le32_get(&rec->incarnation) < pool->incarnation)
		return false;
	if (pool->seq > pool->end && le32_get(&rec->incarnation) < pool->newest &&
	    !mutant(pool, MUTANT_NO_END) && !mutant(pool, MUTANT_NO_INCARNATION))
		return false;
	*data = aligned_alloc(BLOCK, len + BLOCK);
	if (len && io_wait(pool->env, VDEV_READ, pool->off + BLOCK, *data, len))
		return false;
	sum = le64_get(&rec->sum);
	le64_put(&rec->sum, 0);
	good = mutant(pool, MUTANT_PAYLOAD_UNVERIFIED) ||
	       sum == sum_of(*data, len, sum_of(rec, BLOCK, 1));
	le64_put(&rec->sum, sum);
	return good;
}

static void replay(struct pool *pool)
{
	struct rec *rec = aligned_alloc(BLOCK, BLOCK);
	uint8_t *data = NULL;

	while (rec_read(pool, rec, &data)) {
		rec_apply(pool, rec, data);
		pool->incarnation = le32_get(&rec->incarnation);
		pool->prev = le64_get(&rec->sum);
		pool->off += BLOCK + le32_get(&rec->data_len);
		pool->seq++;
		free(data);
		data = NULL;
	}
	free(data);
	free(rec);
}

int pool_open(struct venv *env, const struct pool_open_args *args, struct pool **out,
	      struct err *err)
{
	struct pool *pool = calloc(1, sizeof(*pool));
	uint64_t end = 0;
	uint32_t incarnation = super_read(env, &end);

	if (!incarnation) {
		free(pool);
		return err_set(err, EINVAL, "no superblock");
	}
	*pool = (struct pool){ .env = env,
			       .mutant = args->mutant,
			       .seq = 1,
			       .off = LOG_START,
			       .newest = incarnation,
			       .end = end };
	list_init(&pool->writing);
	list_init(&pool->finished);
	list_init(&pool->waiting);
	replay(pool);
	pool->durable = pool->seq - 1;
	if (!mutant(pool, MUTANT_NO_INCARNATION))
		pool->incarnation = incarnation + 1;
	super_write(env, pool->incarnation + !pool->incarnation, pool->seq - 1,
		    !mutant(pool, MUTANT_BUMP_UNFLUSHED));
	*out = pool;
	return 0;
}

static void flush_done(struct vdev_io *io);

static uint64_t written(const struct pool *pool)
{
	const struct list *first = pool->writing.next;

	return list_empty(&pool->writing) ? pool->seq - 1
					  : container_of(first, struct out, link)->seq - 1;
}

static void look_after(struct pool *pool)
{
	uint64_t done = pool->durable;

	if (mutant(pool, MUTANT_ACK_BEFORE_FLUSH))
		done = written(pool);
	list_for_each_safe(link, &pool->waiting) {
		if (container_of(link, struct vreq, link)->ticket > done)
			continue;
		list_del(link);
		list_add_tail(&pool->finished, link);
		pool->env->ops->kick(pool->env);
	}
	if (list_empty(&pool->waiting) || pool->flushing)
		return;
	pool->flush_covers = written(pool);
	if (pool->flush_covers == pool->durable)
		return;
	pool->flushing = true;
	pool->flush.pool = pool;
	pool->flush.io = (struct vdev_io){ .op = VDEV_FLUSH, .done = flush_done };
	pool->env->ops->submit(pool->env, &pool->flush.io);
}

static void flush_done(struct vdev_io *io)
{
	struct pool *pool = container_of(io, struct out, io)->pool;

	pool->flushing = false;
	pool->durable = mutant(pool, MUTANT_DURABLE_LATE) ? pool->seq - 1 : pool->flush_covers;
	look_after(pool);
}

static void write_done(struct vdev_io *io)
{
	struct out *out = container_of(io, struct out, io);
	struct pool *pool = out->pool;

	list_del(&out->link);
	free(out->iov.iov_base);
	free(out);
	look_after(pool);
}

static uint64_t append(struct pool *pool, struct rec *head, const void *data, size_t data_len)
{
	size_t len = BLOCK + (data_len + BLOCK - 1) / BLOCK * BLOCK;
	uint8_t *buf = aligned_alloc(BLOCK, len);
	struct rec *rec = (struct rec *)buf;
	struct out *out = calloc(1, sizeof(*out));

	if (pool->off + len > pool->env->device_len)
		abort();
	memset(buf, 0, len);
	memcpy(buf, head, BLOCK);
	if (data)
		memcpy(buf + BLOCK, data, data_len);
	le32_put(&rec->magic, MAGIC);
	le32_put(&rec->incarnation, pool->incarnation);
	le64_put(&rec->seq, pool->seq);
	le64_put(&rec->prev, pool->prev);
	le32_put(&rec->data_len, (uint32_t)(len - BLOCK));
	le64_put(&rec->sum, sum_of(buf, len, 1));
	rec_apply(pool, rec, buf + BLOCK);
	pool->prev = le64_get(&rec->sum);
	out->iov = (struct iovec){ buf, len };
	out->seq = pool->seq;
	out->pool = pool;
	out->io = (struct vdev_io){ .op = VDEV_WRITE,
				    .off = pool->off,
				    .len = len,
				    .iov = &out->iov,
				    .iovcnt = 1,
				    .done = write_done };
	list_add_tail(&pool->writing, &out->link);
	pool->off += len;
	pool->env->ops->submit(pool->env, &out->io);
	return pool->seq++;
}

/* ---- requests ---- */

static size_t copy(const struct vreq *req, uint8_t *flat, bool out)
{
	size_t len = 0;

	for (uint32_t i = 0; i < req->iovcnt; i++) {
		if (out)
			memcpy(req->iov[i].iov_base, flat + len, req->iov[i].iov_len);
		else
			memcpy(flat + len, req->iov[i].iov_base, req->iov[i].iov_len);
		len += req->iov[i].iov_len;
	}
	return len;
}

void volume_submit(struct volume *volume, struct vreq *req)
{
	struct pool *pool = volume->pool;
	struct rec rec = { 0 };
	uint8_t *flat;

	req->err = 0;
	req->ticket = 0;
	le32_put(&rec.volume, volume->id);
	le32_put(&rec.lba, (uint32_t)req->lba);
	le32_put(&rec.n, (uint32_t)req->nsectors);
	if (req->op == VREQ_READ) {
		copy(req, volume->data + req->lba * 512, true);
	} else if (req->op == VREQ_FLUSH) {
		req->ticket = pool->seq - 1;
	} else if (req->op == VREQ_WRITE) {
		flat = malloc(req->nsectors * 512);
		le32_put(&rec.type, REC_WRITE);
		req->ticket = append(pool, &rec, flat, copy(req, flat, false));
		free(flat);
	} else {
		le32_put(&rec.type, REC_ZERO);
		req->ticket = append(pool, &rec, NULL, 0);
	}
	if (!(req->flags & VREQ_FUA) && req->op != VREQ_FLUSH)
		req->ticket = 0;
	list_add_tail(&pool->waiting, &req->link);
	look_after(pool);
}

void pool_run(struct pool *pool)
{
	struct list *link;

	while ((link = list_pop(&pool->finished))) {
		struct vreq *req = container_of(link, struct vreq, link);

		req->done(req);
	}
}

void pool_tick(struct pool *pool)
{
	(void)pool;
}

/* ---- control ---- */

static void settle(struct pool *pool)
{
	while (!list_empty(&pool->writing) || pool->flushing)
		pool->env->ops->wait(pool->env);
	io_wait(pool->env, VDEV_FLUSH, 0, NULL, 0);
	pool->durable = pool->seq - 1;
}

int volume_create(struct pool *pool, const char *name, const struct volume_settings *settings,
		  struct volume **out, struct err *err)
{
	struct rec rec = { .settings = *settings };

	(void)err;
	le32_put(&rec.type, REC_CREATE);
	le32_put(&rec.volume, pool->next_volume);
	memcpy(rec.name, name, strlen(name));
	append(pool, &rec, NULL, 0);
	settle(pool);
	*out = volume_find(pool, name);
	return 0;
}

int volume_set(struct volume *volume, const struct volume_settings *settings, struct err *err)
{
	struct rec rec = { .settings = *settings };

	(void)err;
	le32_put(&rec.type, REC_SET);
	le32_put(&rec.volume, volume->id);
	append(volume->pool, &rec, NULL, 0);
	settle(volume->pool);
	return 0;
}

int volume_delete(struct volume *volume, struct err *err)
{
	struct pool *pool = volume->pool;
	struct rec rec = { 0 };

	(void)err;
	le32_put(&rec.type, REC_DELETE);
	le32_put(&rec.volume, volume->id);
	append(pool, &rec, NULL, 0);
	settle(pool);
	return 0;
}

struct volume *volume_find(struct pool *pool, const char *name)
{
	for (size_t i = 0; i < VOLUMES_MAX; i++)
		if (pool->volumes[i] && !strcmp(pool->volumes[i]->name, name))
			return pool->volumes[i];
	return NULL;
}

struct volume *volume_next(struct pool *pool, struct volume *after)
{
	bool found = !after;

	for (size_t i = 0; i < VOLUMES_MAX; i++) {
		if (pool->volumes[i] && found)
			return pool->volumes[i];
		found |= pool->volumes[i] == after;
	}
	return NULL;
}

void volume_info(const struct volume *volume, struct volume_info *out)
{
	*out = (struct volume_info){ .id = volume->id, .settings = volume->settings };
}

int pool_quiesce(struct pool *pool, struct err *err)
{
	(void)err;
	settle(pool);
	return 0;
}

void pool_resume(struct pool *pool, struct venv *env)
{
	pool->env = env;
}

void pool_close(struct pool *pool)
{
	while (!list_empty(&pool->writing)) {
		struct out *out = container_of(list_pop(&pool->writing), struct out, link);

		free(out->iov.iov_base);
		free(out);
	}
	for (size_t i = 0; i < VOLUMES_MAX; i++)
		if (pool->volumes[i])
			volume_free(pool, pool->volumes[i]);
	free(pool);
}

int pool_checkpoint(struct pool *pool, struct err *err)
{
	return pool_quiesce(pool, err);
}

void pool_info(const struct pool *pool, struct pool_info *out)
{
	*out = (struct pool_info){ .incarnation = pool->incarnation };
}

int pool_check(struct pool *pool, enum pool_check_depth depth, struct pool_check_report *report,
	       struct err *err)
{
	(void)pool, (void)depth, (void)err;
	report->nerrors = 0;
	return 0;
}
