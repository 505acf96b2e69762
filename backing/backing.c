/*
 * The wrapper around every store: judges requests, does for a store what it
 * does not do itself, and sees that each request is done once and outside of
 * submit.
 *
 * A request may take several steps under the same struct bk_req: the fields
 * that the caller filled are kept in req->asked and put back before done.
 *
 *	BK_WRITE with BK_FUA	-> the store's BK_WRITE, then its BK_FLUSH
 *	BK_WRITE_ZEROES		-> BK_WRITE of zeros, piece by piece [-> BK_FLUSH]
 */
#include "backing/backing.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "backing/store.h"
#include "base/log.h"
#include "base/option.h"

/* What settings can name; the filter `fault` is put in front by fault_open(). */
static const struct backing_ops *const backing_table[] = {
	&volume_ops,
	&file_ops,
	&block_ops,
	&memory_ops,
};

/* ---- open and close ---- */

struct backing *backing_alloc(const struct backing_ops *ops, const char *name)
{
	struct backing *backing = calloc(1, ops->backing_size);

	if (!backing)
		return NULL;
	backing->ops = ops;
	backing->name = strdup(name);
	if (!backing->name) {
		free(backing);
		return NULL;
	}
	pthread_mutex_init(&backing->watch_lock, NULL);
	return backing;
}

void backing_free(struct backing *backing)
{
	pthread_mutex_destroy(&backing->watch_lock);
	free(backing->name);
	free(backing);
}

bool backing_identity(const struct backing *backing, uint8_t uuid[16])
{
	return backing->ops->identity && backing->ops->identity(backing, uuid);
}

bool backing_space(const struct backing *backing, struct bk_space *out)
{
	return backing->ops->space && backing->ops->space(backing, out);
}

void backing_watch(struct backing *backing, void (*watch)(void *arg, enum bk_event event),
		   void *arg)
{
	pthread_mutex_lock(&backing->watch_lock);
	backing->watch = watch;
	backing->watch_arg = arg;
	pthread_mutex_unlock(&backing->watch_lock);
}

void backing_event(struct backing *backing, enum bk_event event)
{
	pthread_mutex_lock(&backing->watch_lock);
	if (backing->watch)
		backing->watch(backing->watch_arg, event);
	pthread_mutex_unlock(&backing->watch_lock);
}

static int settings_check(const struct backing_settings *settings, struct err *err)
{
	uint32_t physical = settings->physical_block_size;

	if (settings->block_size != 512 && settings->block_size != 4096)
		return err_set(err, EINVAL, "blocksize: %u is not valid: 512 or 4096",
			       settings->block_size);
	if (physical < settings->block_size || (physical & (physical - 1)) != 0)
		return err_set(err, EINVAL,
			       "physical-blocksize: %u is not valid: a power of two, not less than "
			       "the blocksize of %u",
			       physical, settings->block_size);
	if (settings->size && settings->size < settings->block_size)
		return err_set(err, EINVAL, "size: %llu is less than one block of %u",
			       (unsigned long long)settings->size, settings->block_size);
	if (settings->backend == BACKING_KIND_BLOCK && !settings->path && !settings->volume)
		return err_set(err, EINVAL, "path: a LUN with backend block needs one");
	return 0;
}

static const char *settings_name(const struct backing_settings *settings,
				 const struct backing_ops *ops)
{
	return settings->volume ? settings->volume : settings->path ? settings->path : ops->name;
}

static const struct backing_ops *table_find(const struct backing_settings *settings,
					    struct err *err)
{
	mode_t type = 0;
	struct stat st;

	if (settings->backend == BACKING_KIND_BLOCK && settings->path) {
		type = S_IFREG;
		if (stat(settings->path, &st) == 0)
			type = st.st_mode & S_IFMT;
		else if (errno != ENOENT) {
			err_set(err, errno, "%s: %s", settings->path, err_name(errno));
			return NULL;
		}
	}
	for (size_t i = 0; i < sizeof(backing_table) / sizeof(backing_table[0]); i++)
		if (backing_table[i]->serves && backing_table[i]->serves(settings, type))
			return backing_table[i];
	errno = EINVAL;
	err_set(err, EINVAL, "%s is %s: a LUN needs a regular file or a block device",
		settings->path,
		type == S_IFDIR	  ? "a directory"
		: type == S_IFCHR ? "a character device"
				  : "of another kind");
	return NULL;
}

/* The capacity in whole blocks; 0 or -EINVAL when there is not one. */
static int size_in_blocks(const struct backing *backing, uint64_t *size, struct err *err)
{
	uint32_t block_size = backing->limits.block_size;
	uint64_t whole = *size - *size % block_size;

	if (whole == 0)
		return err_set(err, EINVAL,
			       "%s has %llu bytes, less than one block of %u: give it a size",
			       backing->name, (unsigned long long)*size, block_size);
	if (whole != *size)
		log_warning("%s: %llu bytes are not a multiple of the blocksize %u: the last %llu "
			    "bytes are not served",
			    backing->name, (unsigned long long)*size, block_size,
			    (unsigned long long)(*size - whole));
	*size = whole;
	return 0;
}

static void limits_check(const struct bk_limits *limits)
{
	assert(limits->size_bytes % limits->block_size == 0);
	assert(limits->unmap_max == 0 ||
	       (limits->unmap_granularity && limits->unmap_granularity <= 1u << 20));
	assert(limits->read_only || limits->write_zeroes_max >= limits->block_size);
	assert(!limits->write_zeroes_unmaps || limits->unmap_max);
}

int backing_open(const struct backing_settings *settings, struct backing **out, struct err *err)
{
	const struct backing_ops *ops;
	struct backing *backing;
	struct bk_limits *limits;
	int rc;

	rc = settings_check(settings, err);
	if (rc < 0)
		return rc;
	ops = table_find(settings, err);
	if (!ops)
		return -errno;
	backing = backing_alloc(ops, settings_name(settings, ops));
	if (!backing)
		return err_set(err, ENOMEM, "no memory for the store of %s",
			       settings_name(settings, ops));
	backing->cache = settings->cache;
	limits = &backing->limits;
	limits->block_size = settings->block_size;
	limits->physical_block_size = settings->physical_block_size < 4096
					      ? settings->physical_block_size
					      : 4096;
	limits->read_only = settings->read_only;
	/* `unsafe` has a volatile cache too, and one that is never flushed. */
	limits->volatile_cache = settings->cache != BACKING_CACHE_WRITE_THROUGH;
	rc = ops->open(backing, settings, err);
	if (rc < 0) {
		backing_free(backing);
		return rc;
	}
	rc = size_in_blocks(backing, &limits->size_bytes, err);
	if (rc < 0) {
		backing_close(backing);
		return rc;
	}
	limits_check(limits);
	if (settings->cache == BACKING_CACHE_UNSAFE && !limits->read_only)
		log_warning("%s: cache unsafe: flushes are acknowledged and not done; a crash of "
			    "this machine loses data",
			    backing->name);
	*out = backing;
	return 0;
}

void backing_close(struct backing *backing)
{
	for (unsigned int i = 0; i < REACTORS_MAX; i++)
		assert(!backing->channel[i]);
	backing->ops->close(backing);
	backing_free(backing);
}

int backing_resize(struct backing *backing, const struct backing_settings *settings,
		   struct err *err)
{
	uint64_t old = backing_size(backing), size = old;
	char from[32], to[32];
	int rc;

	rc = backing->ops->resize(backing, settings, &size, err);
	if (rc == 0)
		rc = size_in_blocks(backing, &size, err);
	if (rc < 0 || size == old)
		return rc;
	__atomic_store_n(&backing->limits.size_bytes, size, __ATOMIC_RELAXED);
	size_format(old, from, sizeof(from));
	size_format(size, to, sizeof(to));
	log_info("%s: the capacity is now %s, it was %s", backing->name, to, from);
	return 1;
}

bool backing_err_is_gone(int err)
{
	return err == ENODEV || err == ENXIO || err == ESTALE || err == ESHUTDOWN ||
	       err == ENOMEDIUM;
}

void backing_set_broken(struct backing *backing, int err)
{
	if (!__atomic_exchange_n(&backing->broken, true, __ATOMIC_RELAXED))
		log_error("%s: the store is gone (%s): its LUN is not ready until it is opened "
			  "again",
			  backing->name, err_name(err));
}

/* ---- channels ---- */

struct bk_channel *backing_attach(struct backing *backing, struct reactor *reactor, struct err *err)
{
	unsigned int index = reactor_index(reactor);
	struct bk_channel *channel;

	assert(reactor_self() == reactor);
	assert(!backing->channel[index]);
	channel = calloc(1, backing->ops->channel_size);
	if (!channel) {
		err_set(err, ENOMEM, "%s: no memory for a channel", backing->name);
		return NULL;
	}
	channel->backing = backing;
	channel->reactor = reactor;
	if (backing->ops->attach && backing->ops->attach(channel, err) < 0) {
		free(channel);
		return NULL;
	}
	backing->channel[index] = channel;
	return channel;
}

static void stats_add(struct bk_stats *sum, const struct bk_stats *one)
{
	for (int op = 0; op < BK_NOPS; op++) {
		sum->ops[op] += __atomic_load_n(&one->ops[op], __ATOMIC_RELAXED);
		sum->bytes[op] += __atomic_load_n(&one->bytes[op], __ATOMIC_RELAXED);
		sum->errors[op] += __atomic_load_n(&one->errors[op], __ATOMIC_RELAXED);
	}
	sum->inline_ops += __atomic_load_n(&one->inline_ops, __ATOMIC_RELAXED);
	sum->ring_ops += __atomic_load_n(&one->ring_ops, __ATOMIC_RELAXED);
	sum->unaligned += __atomic_load_n(&one->unaligned, __ATOMIC_RELAXED);
	sum->writebacks += __atomic_load_n(&one->writebacks, __ATOMIC_RELAXED);
}

void backing_detach(struct bk_channel *channel)
{
	struct backing *backing = channel->backing;

	assert(reactor_self() == channel->reactor);
	assert(channel->in_flight == 0);
	if (backing->ops->detach)
		backing->ops->detach(channel);
	stats_add(&backing->past, &channel->stats);
	backing->channel[reactor_index(channel->reactor)] = NULL;
	free(channel);
}

void backing_stats(const struct backing *backing, struct bk_stats *out)
{
	memset(out, 0, sizeof(*out));
	stats_add(out, &backing->past);
	for (unsigned int i = 0; i < REACTORS_MAX; i++)
		if (backing->channel[i])
			stats_add(out, &backing->channel[i]->stats);
}

/* ---- requests ---- */

static const struct bk_op_rule {
	bool has_range; /* off and len are judged */
	bool moves;	/* iov carries the data */
	bool changes;	/* not on a read-only store */
} op_rules[BK_NOPS] = {
	[BK_READ] = { .has_range = true, .moves = true },
	[BK_WRITE] = { .has_range = true, .moves = true, .changes = true },
	[BK_FLUSH] = { .has_range = false },
	[BK_UNMAP] = { .has_range = true, .changes = true },
	[BK_WRITE_ZEROES] = { .has_range = true, .changes = true },
	[BK_STATUS] = { .has_range = true },
};

/* 0: to be done; else a positive errno. */
static int judge(const struct backing *backing, const struct bk_req *req)
{
	const struct bk_op_rule *rule = &op_rules[req->op];
	uint64_t size = backing_size(backing);

	if (backing_broken(backing))
		return ESTALE;
	if (rule->changes && backing->limits.read_only)
		return EROFS;
	if (!rule->has_range)
		return 0;
	if (req->off > size || req->len > size - req->off)
		return ERANGE;
	if ((req->off | req->len) & (backing->limits.block_size - 1))
		return EINVAL;
	if (req->op == BK_UNMAP && backing->limits.unmap_max == 0)
		return EOPNOTSUPP;
	return 0;
}

/* Our own promise: the buffers are as long as the transfer. */
static void check_iov(const struct bk_req *req)
{
	uint64_t len = 0;

	for (unsigned int i = 0; i < req->iovcnt; i++)
		len += req->iov[i].iov_len;
	assert(len == req->len);
}

static void done_work(struct reactor_work *work)
{
	struct bk_req *req = container_of(work, struct bk_req, work);

	assert(req->in_flight);
	req->in_flight = false;
	assert(req->channel->in_flight > 0);
	req->channel->in_flight--;
	req->done(req);
}

static void finish(struct bk_req *req, int err)
{
	struct bk_channel *channel = req->channel;

	req->op = req->asked.op;
	req->off = req->asked.off;
	req->len = req->asked.len;
	req->iov = req->asked.iov;
	req->iovcnt = req->asked.iovcnt;
	if (err && backing_err_is_gone(err)) {
		backing_set_broken(channel->backing, err);
		err = ESTALE;
	}
	req->err = err;
	bk_count(err ? &channel->stats.errors[req->op] : &channel->stats.ops[req->op], 1);
	if (!err && op_rules[req->op].has_range)
		bk_count(&channel->stats.bytes[req->op], req->len);
	if (channel->submitting)
		reactor_defer(channel->reactor, &req->work);
	else
		done_work(&req->work);
}

static void step(struct bk_req *req)
{
	req->pos = 0;
	req->channel->submitting++;
	req->channel->backing->ops->submit(req->channel, req);
	req->channel->submitting--;
}

/* Zeros to write from: pages that are never touched are one page of zeros. */
#define ZEROS_LEN   (64u << 10)
#define ZEROS_IOVS  16
#define ZEROS_PIECE (ZEROS_LEN * ZEROS_IOVS)

static uint8_t zeros[ZEROS_LEN] __attribute__((aligned(4096)));
#define Z1                       \
	{                        \
		zeros, ZEROS_LEN \
	}
#define Z4 Z1, Z1, Z1, Z1
static const struct iovec zeros_iov[ZEROS_IOVS] = { Z4, Z4, Z4, Z4 };

/* Writes the next piece of zeros of a BK_WRITE_ZEROES; len is of the last. */
static void next_zeros(struct bk_req *req)
{
	uint64_t done = req->off - req->asked.off;
	uint64_t left = req->asked.len - done;

	assert(left > 0);
	req->len = left < ZEROS_PIECE ? left : ZEROS_PIECE;
	if (req->len <= ZEROS_LEN) {
		req->asked.zeros = (struct iovec){ zeros, req->len };
		req->iov = &req->asked.zeros;
		req->iovcnt = 1;
	} else {
		/* Whole buffers; what is left over is a piece of its own. */
		req->iov = zeros_iov;
		req->iovcnt = (uint16_t)(req->len / ZEROS_LEN);
		req->len = (uint64_t)req->iovcnt * ZEROS_LEN;
	}
	step(req);
}

void bk_write_zeros(struct bk_req *req)
{
	assert(req->in_flight && !req->writes_zeros);
	assert(req->asked.op == BK_WRITE_ZEROES || req->asked.op == BK_UNMAP);
	req->writes_zeros = true;
	req->op = BK_WRITE;
	req->off = req->asked.off;
	next_zeros(req);
}

void bk_complete(struct bk_req *req, int err)
{
	assert(req->in_flight);
	assert(err >= 0);
	if (!err && req->writes_zeros) {
		req->off += req->len;
		if (req->off - req->asked.off < req->asked.len) {
			next_zeros(req);
			return;
		}
		req->writes_zeros = false;
	}
	if (!err && req->then_flush) {
		req->then_flush = false;
		req->op = BK_FLUSH;
		step(req);
		return;
	}
	finish(req, err);
}

/* BK_STATUS of a store that does not know. */
static void all_mapped(struct bk_req *req)
{
	if (req->nextents_max > 0) {
		req->extents[0] = (struct bk_extent){ req->off, req->len, BK_MAPPED };
		req->nextents = 1;
	}
	finish(req, 0);
}

static bool wants_flush(const struct backing *backing, const struct bk_req *req)
{
	switch (backing->cache) {
	case BACKING_CACHE_UNSAFE: return false;
	case BACKING_CACHE_WRITE_THROUGH: return op_rules[req->op].changes;
	default: return op_rules[req->op].changes && (req->flags & BK_FUA);
	}
}

void backing_submit(struct bk_channel *channel, struct bk_req *req)
{
	struct backing *backing = channel->backing;
	int err;

	assert(!req->in_flight && req->done && req->op < BK_NOPS);
	req->in_flight = true;
	req->channel = channel;
	req->err = 0;
	req->nextents = 0;
	req->bad_off = 0;
	req->writes_zeros = false;
	req->asked = (struct bk_asked){ .off = req->off,
					.len = req->len,
					.iov = req->iov,
					.iovcnt = req->iovcnt,
					.op = req->op };
	reactor_work_init(&req->work, done_work);
	channel->in_flight++;
	channel->submitting++;
	req->then_flush = wants_flush(backing, req);
	if (backing->ops->native_fua) {
		req->flags = (uint8_t)((req->flags & ~BK_FUA) | (req->then_flush ? BK_FUA : 0));
		req->then_flush = false;
	}
	err = judge(backing, req);
	if (err || (op_rules[req->op].has_range && req->len == 0) ||
	    (req->op == BK_FLUSH && backing->cache == BACKING_CACHE_UNSAFE)) {
		finish(req, err);
		goto out;
	}
	if (op_rules[req->op].moves)
		check_iov(req);
	if (req->op == BK_WRITE &&
	    ((req->off | req->len) & (backing->limits.physical_block_size - 1)))
		bk_count(&channel->stats.unaligned, 1);
	if (backing->ops->native & 1u << req->op)
		step(req);
	else if (req->op == BK_WRITE_ZEROES)
		bk_write_zeros(req);
	else if (req->op == BK_STATUS)
		all_mapped(req);
	else
		bk_complete(req, EOPNOTSUPP);
out:
	channel->submitting--;
}
