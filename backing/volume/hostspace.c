#include "backing/volume/hostspace.h"

#include "backing/volume/credit.h"
#include "backing/volume/io.h"
#include "backing/volume/segtab.h"

#define RUN_MAX	 8u	       /* segments allocated or punched at once */
#define RETRY_NS 5000000000ull /* after the host had no space */

/* Free segments that are kept backed: what cleaning begins at, and some for
 * users to go on while more is had. */
static uint64_t ahead(const struct pool *pool)
{
	return segments_reserve(pool) + 2 * RUN_MAX;
}

static bool wants_more(const struct pool *pool)
{
	const struct segments *segments = pool->segments;

	if (segments->nready >= ahead(pool) || segments->nready == segments->nfree)
		return false;
	return !segments->host_full || pool->env->ops->now_ns(pool->env) >= segments->host_retry_ns;
}

/* What is given back: beyond a band above what is kept, by the highest ones. */
static bool wants_less(const struct pool *pool)
{
	return pool->segments->nready > ahead(pool) + 2 * RUN_MAX ||
	       pool_mutant(pool, MUTANT_PUNCH_EARLY);
}

static bool bit(const uint64_t *map, uint64_t i)
{
	return map[i / 64] >> i % 64 & 1;
}

static int on_device(struct pool *pool, uint8_t op, uint64_t first, uint64_t n)
{
	uint64_t len = pool->geometry.segment_len;

	return vdev_do(pool->env, op, first * len, NULL, n * len);
}

/* The lowest run of free segments that are not backed; 0: there is none. */
static uint64_t run_unbacked(const struct segments *segments, uint64_t *n)
{
	for (uint64_t i = 0; i < segments->n; i++) {
		if (i % 64 == 0 && (segments->free_map[i / 64] & ~segments->backed[i / 64]) == 0) {
			i += 63;
			continue;
		}
		if (!bit(segments->free_map, i) || bit(segments->backed, i))
			continue;
		for (*n = 1; *n < RUN_MAX && i + *n < segments->n; ++*n)
			if (!bit(segments->free_map, i + *n) || bit(segments->backed, i + *n))
				break;
		return i;
	}
	return 0;
}

static void host_full(struct pool *pool, bool full)
{
	struct segments *segments = pool->segments;

	segments->host_retry_ns = pool->env->ops->now_ns(pool->env) + RETRY_NS;
	if (segments->host_full == full)
		return;
	segments->host_full = full;
	if (!pool->quiet)
		log_warning("pool %s: the host %s", pool->name,
			    full ? "has no space left for it: what it has given so far is all that "
				   "can be used"
				 : "has space for it again");
	credit_update(pool);
}

static bool allocate_some(struct pool *pool)
{
	struct segments *segments = pool->segments;
	uint64_t n = 0, first = run_unbacked(segments, &n);
	int rc;

	if (first == 0)
		return false;
	rc = on_device(pool, VDEV_ALLOCATE, first, n);
	if (rc && n > 1) {
		n = 1;
		rc = on_device(pool, VDEV_ALLOCATE, first, n);
	}
	if (rc == -ENOSPC || rc == -EDQUOT) {
		host_full(pool, true);
		return false;
	}
	/* Another error says nothing about space; writing will show. */
	for (uint64_t i = first; i < first + n; i++)
		segment_backed(pool, (uint32_t)i, true);
	host_full(pool, false);
	return true;
}

/* May it be punched?  Its contents are gone then, whatever a crash looks at. */
static bool punchable(const struct pool *pool, uint32_t segno)
{
	const struct segment *segment = &pool->segments->table[segno];

	if (!bit(pool->segments->backed, segno))
		return false;
	if (pool_mutant(pool, MUTANT_PUNCH_EARLY))
		return segment->state == SEGMENT_SEALED && segment->live == 0;
	return bit(pool->segments->free_map, segno);
}

static bool punch_some(struct pool *pool)
{
	struct segments *segments = pool->segments;
	uint64_t end = segments->n, first;

	while (end > 1 && !punchable(pool, (uint32_t)end - 1))
		end--;
	if (end <= 1)
		return false;
	for (first = end - 1; first > 1 && end - first < RUN_MAX; first--)
		if (!punchable(pool, (uint32_t)first - 1))
			break;
	/* Nobody takes them meanwhile. */
	for (uint64_t i = first; i < end; i++)
		segment_pin(pool, (uint32_t)i);
	(void)on_device(pool, VDEV_PUNCH, first, end - first);
	for (uint64_t i = first; i < end; i++) {
		segment_backed(pool, (uint32_t)i, false);
		segment_forget(pool, (uint32_t)i);
		segment_unpin(pool, (uint32_t)i);
	}
	return true;
}

static bool may(const struct pool *pool)
{
	return !pool->closing && !pool->recovering && !pool->read_only && !pool->at_rest;
}

static void run(void *arg)
{
	struct pool *pool = arg;
	struct segments *segments = pool->segments;

	while (may(pool) &&
	       (wants_more(pool) ? allocate_some(pool) : wants_less(pool) && punch_some(pool)))
		;
	segments->host_running = false;
	fiber_queue_wake_all(&segments->host_stopped);
}

void hostspace_kick(struct pool *pool)
{
	struct segments *segments = pool->segments;

	if (!pool->env->file || segments->host_running || !may(pool) ||
	    (!wants_more(pool) && !wants_less(pool)))
		return;
	segments->host_running = fiber_start(pool->fibers, run, pool);
}

void hostspace_stop(struct pool *pool)
{
	assert(pool->closing);
	while (pool->segments->host_running)
		fiber_queue_wait(&pool->segments->host_stopped);
}
