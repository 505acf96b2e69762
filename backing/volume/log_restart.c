/*
 * After a write or flush has failed: as after a crash, but with all in memory.
 *
 * The host may have dropped anything that was written since the last good flush,
 * and says so once.  So nothing of it is believed: a superblock ends this
 * incarnation behind what is durable, and the groups in doubt are written once
 * more, with their seqs and contents, from the successor segment on; what the
 * overlay knows of their records is put right.  Nothing was promised of them but
 * that they are there while the pool lives.
 *
 * It counts as done when writes, a flush, and reading back what was written have
 * succeeded.  Until then nothing else is written.  When it does not succeed in
 * time the pool is fenced: what was staged can still be read, and those who wait
 * are told.
 *
 * Bulk that was not flushed is its writer's to do again (log_flush_since()).
 */
#include "backing/volume/staging.h"

#include <stdlib.h>
#include <string.h>

#include "backing/volume/checkpoint.h"
#include "backing/volume/io.h"
#include "backing/volume/region.h"
#include "backing/volume/segtab.h"
#include "backing/volume/super.h"
#include "backing/volume/volumes.h"

#define GIVE_UP_NS 5000000000ull
#define RETRY_NS   300000000ull

static bool in_flight(const struct log *log)
{
	bool some = log->nwriting > 0 || log->flushing || checkpoint_naming(log->pool);

	for (uint32_t i = 0; i < FOOTERS_MAX; i++)
		some = some || log->footers[i].busy;
	return some;
}

static void in_flight_wait(struct log *log)
{
	while (in_flight(log))
		fiber_queue_wait(&log->restart);
}

static struct group *group_of(struct list *link)
{
	return container_of(link, struct group, link);
}

/* ---- where it goes on ---- */

/* Both areas say, durably, that nothing at or behind the end counts. */
static int bump(struct log *log, const struct vf_place *end)
{
	struct pool *pool = log->pool;

	pool->incarnation++;
	le32_put(&pool->super.incarnation, pool->incarnation);
	pool->super.end = *end;
	le64_put(&pool->super.durable_seq, log->durable);
	return super_write_both(pool->env, &pool->super);
}

/*
 * The segments behind the one where the end is, in order: those that groups in
 * doubt have opened, and the successor.  They are the log's still.
 */
static void segments_again(struct log *log)
{
	uint32_t chain[GROUPS_MAX + 1], n = 0;

	list_for_each(link, &log->laid) {
		if (group_of(link)->opens)
			chain[n++] = group_of(link)->segno;
	}
	chain[n++] = log->successor;
	for (uint32_t i = 0; i < n; i++) {
		struct segment *segment = segment_at(log->pool, chain[i]);

		segment->state = SEGMENT_RESERVED;
		segment->last_seq = 0;
	}
	/* The last in is the first out; what is left of an earlier attempt comes behind. */
	for (uint32_t i = n; i-- > 1;)
		log->again[log->nagain++] = chain[i];
	log->successor = chain[0];
}

/* The log is where it would be, had the first group in doubt not been laid out. */
static bool step_back(struct log *log, const struct vf_place *end)
{
	struct pool *pool = log->pool;
	uint32_t segno = le32_get(&end->segno), after;

	if (segno == log->segno)
		segment_seal(pool, segno, log->durable);
	segments_again(log);
	log->segno = segno;
	log->off = le32_get(&end->off);
	log->prev = end->prev;
	log->newest_placed = log->durable;
	log_unmark(log, log->durable + 1);
	after = log->nagain > 0 ? log->again[--log->nagain]
				: segment_take(pool, VF_W, SEGMENT_FOR_MAP);
	if (!after)
		return false;
	log_segment_open(log, after);
	return true;
}

/* ---- what goes on ---- */

static uint64_t group_base(const struct group *group)
{
	return group->segno * pool_segment_units(group->log->pool) +
	       (uint64_t)group->off * (VF_BLOCK / VF_UNIT);
}

/* Its records are elsewhere now. */
static void readdress(struct group *group, uint64_t from)
{
	struct pool *pool = group->log->pool;
	struct vf_table table = { .at = group->buf + sizeof(struct vf_group),
				  .left = group->table_len,
				  .ndescs = group->ndescs };
	uint64_t to = group_base(group);

	for (uint32_t index = 0; vf_table_next(&table); index++) {
		struct volume *volume = volume_by_id(pool, le32_get(&table.desc->volume));
		uint32_t off = le32_get(&table.desc->off);
		int32_t units = (int32_t)live_units(le32_get(&table.desc->stored));
		struct region *region;

		if (table.desc->type != VF_DATA)
			continue;
		segment_count(pool, addr_segment(pool, to), units);
		segment_count(pool, addr_segment(pool, from), -units);
		region = volume ? region_find(pool, volume,
					      le64_get(&table.desc->lba) / VF_REGION_SECTORS)
				: NULL;
		if (region)
			region_readdress(pool, region, group->seq, index, from + off, to + off);
	}
}

static bool write_again(struct log *log)
{
	list_for_each(link, &log->laid) {
		struct group *group = group_of(link);
		uint64_t from = group_base(group);

		while (!log_room(log->pool, group->nblocks, group->table_len, false)) {
			if (!in_flight(log))
				return false;
			fiber_queue_wait(&log->restart); /* for a footer */
		}
		group_put(group);
		readdress(group, from);
		group_write(group);
	}
	return true;
}

/* ---- whether it is there ---- */

static bool read_back(struct log *log)
{
	struct pool *pool = log->pool;
	bool right;

	if (!log->read_buf)
		log->read_buf = aligned_alloc(VF_BLOCK, pool->geometry.segment_len / 2);
	right = log->read_buf != NULL;
	list_for_each(link, &log->laid) {
		const struct group *group = group_of(link);
		uint64_t len = (uint64_t)group->nblocks * VF_BLOCK;
		uint64_t off = (uint64_t)group->segno * pool->geometry.segment_len +
			       (uint64_t)group->off * VF_BLOCK;

		right = right && vdev_do(pool->env, VDEV_READ, off, log->read_buf, len) == 0 &&
			memcmp(log->read_buf, group->buf, len) == 0;
	}
	return right;
}

enum outcome { RIGHT, AGAIN, NEVER };

static enum outcome attempt(struct log *log)
{
	struct pool *pool = log->pool;
	uint64_t failures;

	in_flight_wait(log);
	failures = log->failures;
	if (!list_empty(&log->laid)) {
		struct vf_place end = group_of(log->laid.next)->end;

		/* A pool that has no log yet is not made. */
		if (le32_get(&end.segno) == 0)
			return NEVER;
		if (bump(log, &end) != 0)
			return AGAIN;
		/* What has no segment to go to has no place at all. */
		if (!step_back(log, &end) || !write_again(log))
			return NEVER;
		in_flight_wait(log);
	}
	if (log->failures != failures || vdev_do(pool->env, VDEV_FLUSH, 0, NULL, 0) != 0 ||
	    !read_back(log))
		return AGAIN;
	return log->failures == failures ? RIGHT : AGAIN;
}

static void done(struct log *log)
{
	struct pool *pool = log->pool;

	log->doubt = false;
	log->starved = false;
	log->durable = log->seq;
	log->newest_ns = pool->env->ops->now_ns(pool->env);
	log->newest_marker = false;
	log_groups_end(log);
	if (!pool->quiet)
		log_warning("pool %s: %s; what was not durable was written once more", pool->name,
			    log->why);
}

static void restart(void *arg)
{
	struct log *log = arg;
	struct pool *pool = log->pool;
	uint64_t begun_ns = pool->env->ops->now_ns(pool->env), now_ns = begun_ns, next_ns;
	enum outcome outcome = AGAIN;

	while (!pool->read_only && outcome == AGAIN && now_ns - begun_ns < GIVE_UP_NS) {
		outcome = attempt(log);
		now_ns = pool->env->ops->now_ns(pool->env);
		next_ns = now_ns + RETRY_NS;
		while (outcome == AGAIN && !pool->read_only && now_ns < next_ns) {
			fiber_queue_wait(&log->restart); /* at the next tick */
			now_ns = pool->env->ops->now_ns(pool->env);
		}
	}
	log->restarting = false;
	if (outcome == RIGHT && !pool->read_only)
		done(log);
	else
		pool_fence(pool, log->why);
	log_wake(pool);
	fiber_queue_wake_all(&log->changed);
}

void log_restart_begin(struct pool *pool)
{
	struct log *log = pool->log;

	if (!log->restarting)
		log->restarting = fiber_start(pool->fibers, restart, log);
	fiber_queue_wake_all(&log->restart);
}
