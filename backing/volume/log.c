#include "backing/volume/log.h"

#include <stdlib.h>
#include <string.h>

#include "backing/volume/segment.h"
#include "backing/volume/staging.h"
#include "base/slab.h"

/* Of the pool's memory, for groups under way. */
#define GROUPS_PERTHOUSAND 75u
#define ITEMS_MAX	   8192u /* of a group */
/* What nobody asks for is in a group after so long, and flushed after as long
 * again. */
#define CUT_NS	  400000000ull
#define FLUSH_NS  400000000ull
#define MARKER_NS 100000000ull
/* Groups written behind a flush in flight, beyond which they are gathered. */
#define BEHIND_MAX 2u

/* ---- life ---- */

static void groups_init(struct log *log)
{
	for (uint32_t i = 0; i < GROUPS_MAX; i++) {
		log->groups[i].log = log;
		list_add_tail(&log->free, &log->groups[i].link);
	}
}

struct group *group_get(struct log *log)
{
	struct list *link = list_pop(&log->free);
	struct group *group;
	size_t i;

	if (!link)
		return NULL;
	group = container_of(link, struct group, link);
	i = (size_t)(group - log->groups);
	*group = (struct group){ .log = log, .header = log->headers + i * VF_BLOCK };
	list_init(&group->link);
	list_init(&group->items);
	list_init(&group->records);
	list_init(&group->posts);
	return group;
}

static bool log_alloc(struct log *log)
{
	struct pool *pool = log->pool;
	uint32_t segment_len = pool->geometry.segment_len, nwindows = 1;
	uint64_t len = pool->cache_memory / 1000 * GROUPS_PERTHOUSAND;

	/* One is compressed while another is written. */
	if (len < segment_len)
		len = segment_len;
	/* Tables stand in the segment's footer once more. */
	log->items_max = segment_len / 4 / sizeof(struct vf_desc_wide);
	if (log->items_max > ITEMS_MAX)
		log->items_max = ITEMS_MAX;
	while (nwindows < 2 * log->items_max)
		nwindows *= 2;
	log->window_mask = nwindows - 1;
	log->groups = calloc(GROUPS_MAX, sizeof(*log->groups));
	log->headers = aligned_alloc(VF_BLOCK, (size_t)GROUPS_MAX * VF_BLOCK);
	log->windows = calloc(nwindows, sizeof(struct stage_item *));
	log->places = calloc(PLACES_MAX, sizeof(*log->places));
	log->records = slab_create(sizeof(struct record), CUT_MAX * log->items_max);
	return log->groups && log->headers && log->windows && log->places && log->records &&
	       buddy_open(&log->memory, len, 12) && buddy_open(&log->own_memory, segment_len, 12) &&
	       log_segments_open(log) == 0;
}

int log_open(struct pool *pool, struct err *err)
{
	struct log *log = calloc(1, sizeof(*log));

	if (!log)
		return err_set(err, ENOMEM, "no memory for the log of pool \"%s\"", pool->name);
	pool->log = log;
	log->pool = pool;
	list_init(&log->free);
	list_init(&log->cut);
	list_init(&log->laid);
	list_init(&log->posts);
	fiber_queue_init(&log->changed);
	fiber_queue_init(&log->restart);
	if (!log_alloc(log)) {
		log_close(pool);
		return err_set(err, ENOMEM, "no memory for the log of pool \"%s\"", pool->name);
	}
	groups_init(log);
	return 0;
}

void log_close(struct pool *pool)
{
	struct log *log = pool->log;

	if (!log)
		return;
	log_segments_close(log);
	buddy_close(&log->own_memory);
	buddy_close(&log->memory);
	if (log->records)
		slab_destroy(log->records);
	free(log->read_buf);
	free(log->entries);
	free(log->places);
	free(log->windows);
	free(log->headers);
	free(log->groups);
	free(log);
	pool->log = NULL;
}

int log_start(struct pool *pool, const struct vf_place *next, uint32_t before, uint32_t successor,
	      struct err *err)
{
	struct log *log = pool->log;
	uint32_t after = segment_take(pool, VF_W, SEGMENT_FOR_WRITES);

	log->borrowed = after == 0;
	if (!after)
		after = segment_take(pool, VF_W, SEGMENT_FOR_MAP);
	if (!after)
		return err_set(err, ENOSPC, "pool %s: no segment is free for its log", pool->name);
	log->seq = log->durable = le64_get(&next->seq) - 1;
	log->prev = next->prev;
	log->segno = before;
	log->off = le32_get(&next->off);
	log->successor = successor;
	log_segment_open(log, after);
	log->newest_marker = true;
	log->started = true;
	return 0;
}

uint64_t log_seq(const struct pool *pool)
{
	return pool->log->seq;
}

uint64_t log_durable(const struct pool *pool)
{
	return pool->log->durable;
}

/* ---- what can be done now ---- */

/* Little is gathered while a group is written: what comes meanwhile goes together. */
static bool cut_wanted(const struct log *log)
{
	const struct stage *stage = log->pool->stage;
	uint32_t nlaid = 0;

	if (stage->nunsent == 0 || log->ncut >= CUT_MAX || log->starved || group_codecs_busy(log))
		return false;
	if (stage->unsent_bytes >= group_len_wanted(log->pool))
		return true;
	if (!log->cut_now && stage->nwaiters == 0 && !stage_pressed(stage))
		return false;
	if (log->ncut > 0 || log->nwriting > 0)
		return false;
	list_for_each(link, &log->laid)
		nlaid++;
	return !log->flushing || nlaid <= BEHIND_MAX;
}

static bool cut_one(struct log *log)
{
	struct group *group;

	if (!cut_wanted(log))
		return false;
	group = group_cut(log->pool);
	if (!group)
		return false;
	list_add_tail(&log->cut, &group->link);
	log->ncut++;
	if (log->pool->stage->nunsent == 0)
		log->cut_now = false;
	group_compress(group);
	return true;
}

/* The next group of users, if it is compressed. */
static bool lay_one(struct log *log)
{
	struct group *group;

	if (list_empty(&log->cut) || log->nwriting >= WRITES_MAX)
		return false;
	group = container_of(log->cut.next, struct group, link);
	log->no_segment = false;
	if (group->state != GROUP_READY || !group_lay(group))
		return false;
	log->ncut--;
	log->newest_marker = false;
	return true;
}

/* The next group of others, or the marker that log_cut() waits for. */
static bool lay_posts(struct log *log)
{
	bool marker = list_empty(&log->posts);
	bool covers = log->durable == log->seq;

	if (marker && log->want_seq <= log->seq)
		return false;
	if (log->nwriting >= 2 * WRITES_MAX || !group_lay_posts(log->pool, marker))
		return false;
	log->newest_marker = marker && covers;
	return true;
}

/* The pool became read-only: nothing is written, nobody waits any more.  Items
 * stay, for reads. */
static void run_failed(struct log *log)
{
	struct pool *pool = log->pool;
	struct list *link;

	while ((link = list_pop(&log->posts)) != NULL) {
		struct log_post *post = container_of(link, struct log_post, link);

		if (post->durable)
			post->durable(pool, post, -EIO);
	}
	if (!log->failed)
		list_for_each_safe(at, &log->laid)
			group_end(container_of(at, struct group, link), -EIO);
	log->failed = true;
	stage_fail(pool);
	fiber_queue_wake_all(&log->changed);
	fiber_queue_wake_all(&log->restart);
}

void log_run(struct pool *pool)
{
	struct log *log = pool->log;
	uint64_t seq = log->seq;
	bool some = true;

	if (log->doubt && !pool->read_only) {
		log_restart_begin(pool);
		stage_run(pool);
		if (log->told != log->failures)
			fiber_queue_wake_all(&log->changed);
		log->told = log->failures;
		return;
	}
	while (some && !pool->read_only) {
		stage_run(pool);
		some = lay_posts(log);
		some = lay_one(log) || some;
		some = cut_one(log) || some;
	}
	if (pool->read_only) {
		run_failed(log);
		return;
	}
	if (log_flush_wanted(log))
		log_flush_begin(pool);
	if (log->seq != seq)
		fiber_queue_wake_all(&log->changed);
}

void log_run_wanted(struct pool *pool)
{
	struct log *log = pool->log;

	if (!log || !log->started || (!log->wanted && !log->no_segment))
		return;
	log->wanted = false;
	log_run(pool);
}

void log_wake(struct pool *pool)
{
	struct log *log = pool->log;

	if (log->wanted)
		return;
	log->wanted = true;
	pool->env->ops->kick(pool->env);
}

void log_kick(struct pool *pool)
{
	if (pool->log)
		log_wake(pool);
}

static bool nothing_under_way(const struct log *log)
{
	bool idle = log->pool->stage->nunsent == 0 && list_empty(&log->posts) &&
		    list_empty(&log->cut) && list_empty(&log->laid) && !log->flushing;

	for (uint32_t i = 0; i < FOOTERS_MAX; i++)
		idle = idle && !log->footers[i].busy;
	return idle;
}

bool log_idle(const struct pool *pool)
{
	const struct log *log = pool->log;

	return !log->started || pool->read_only ||
	       (!log->doubt && nothing_under_way(log) && log->durable == log->seq &&
		log->newest_marker);
}

void log_tick(struct pool *pool)
{
	struct log *log = pool->log;
	uint64_t now_ns = pool->env->ops->now_ns(pool->env);

	if (!log->started || pool->read_only)
		return;
	if (pool->stage->nunsent > 0 && now_ns - pool->stage->unsent_ns >= CUT_NS)
		log->cut_now = true;
	if (!list_empty(&log->laid)) {
		const struct group *oldest = container_of(log->laid.next, struct group, link);

		log->flush_now = log->flush_now || now_ns - oldest->laid_ns >= FLUSH_NS;
	} else if (!pool->closing && nothing_under_way(log) && !log->newest_marker &&
		   now_ns - log->newest_ns >= MARKER_NS) {
		/* Says that what came before it is durable. */
		log->want_seq = log->want_durable = log->seq + 1;
	}
	log_wake(pool);
}

void log_doubt(struct pool *pool, const char *why)
{
	struct log *log = pool->log;

	if (!log || !log->started) {
		pool_fence(pool, why);
		return;
	}
	log->failures++;
	log->why = why;
	log->doubt = true;
	log_wake(pool);
}

/* ---- for others ---- */

void log_post(struct pool *pool, struct log_post *post)
{
	list_add_tail(&pool->log->posts, &post->link);
	log_wake(pool);
}

int log_wait_durable(struct pool *pool, uint64_t seq)
{
	struct log *log = pool->log;

	while (log->durable < seq) {
		if (pool->read_only)
			return -EIO;
		if (seq > log->want_durable)
			log->want_durable = seq;
		log_wake(pool);
		fiber_queue_wait(&log->changed);
	}
	return 0;
}

uint64_t log_cut(struct pool *pool)
{
	struct log *log = pool->log;
	uint64_t seq = log->seq + 1;

	log->cut_now = pool->stage->nunsent > 0;
	while (!pool->read_only && (log->seq < seq || !list_empty(&log->posts))) {
		if (seq > log->want_seq)
			log->want_seq = seq;
		log_wake(pool);
		fiber_queue_wait(&log->changed);
	}
	return log->seq;
}

uint64_t log_failures(const struct pool *pool)
{
	return pool->log->failures;
}

int log_flush(struct pool *pool)
{
	return log_flush_since(pool, pool->log->failures);
}

int log_flush_since(struct pool *pool, uint64_t failures)
{
	struct log *log = pool->log;
	uint64_t wanted = log->flushes_begun + 1;

	while (log->flushes_ended < wanted || log->failures != failures) {
		if (pool->read_only || log->failures != failures)
			return -EIO;
		if (wanted > log->flushes_wanted)
			log->flushes_wanted = wanted;
		log_wake(pool);
		fiber_queue_wait(&log->changed);
	}
	return 0;
}

int log_settle(struct pool *pool)
{
	struct log *log = pool->log;

	while (!stage_empty(pool)) {
		if (pool->read_only)
			return -EIO;
		log->cut_now = pool->stage->nunsent > 0;
		log->want_durable = log->seq;
		log_wake(pool);
		fiber_queue_wait(&log->changed);
	}
	return 0;
}

int log_drain(struct pool *pool)
{
	struct log *log = pool->log;

	while (!nothing_under_way(log) || log->durable < log->seq) {
		if (pool->read_only)
			return -EIO;
		log->cut_now = pool->stage->nunsent > 0;
		log->want_durable = log->seq;
		log_wake(pool);
		fiber_queue_wait(&log->changed);
	}
	return 0;
}
