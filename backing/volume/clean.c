#include "backing/volume/clean.h"

#include <stdlib.h>
#include <string.h>

#include "backing/volume/bulk.h"
#include "backing/volume/checkpoint.h"
#include "backing/volume/evacuate.h"
#include "backing/volume/log.h"
#include "backing/volume/merge.h"
#include "backing/volume/region.h"
#include "backing/volume/segment.h"
#include "backing/volume/stage.h"

#define VICTIMS_MAX  64
#define SCAN_SLICE   65536u	 /* segments looked at before others run */
#define UNITS_GAIN   0.03	 /* less dead than that is not worth a copy */
#define MAP_USED     0.5	 /* segments of map pages only below */
#define RETRY_MIN_NS 20000000ull /* after a round without gain; then twice that */
#define RETRY_MAX_NS 1000000000ull

struct victim {
	uint32_t segno;
	uint32_t live; /* units when it was chosen */
	double score;
};

struct cleaner {
	struct pool *pool;
	struct evacuation *evacuation;
	struct victim victims[VICTIMS_MAX]; /* best first */
	uint32_t nvictims;
	uint64_t waiting_dead;	       /* segments where nothing lives, not reusable yet */
	uint32_t damaged[VICTIMS_MAX]; /* not to be chosen again */
	uint32_t ndamaged;
	bool running, stopping;
	bool gains;	     /* the last round made segments free, or none was tried */
	bool failed;	     /* it could not be finished */
	uint64_t retry_ns;   /* not before: after a round without gain */
	uint64_t pause_ns;   /* how long that was */
	uint64_t allowed_to; /* counters.user_bytes: users may go on until there */
	struct fiber_queue stopped;
};

int cleaner_open(struct pool *pool, struct err *err)
{
	struct cleaner *cleaner = calloc(1, sizeof(*cleaner));

	if (!cleaner)
		return err_set(err, ENOMEM, "no memory");
	cleaner->pool = pool;
	cleaner->gains = true;
	fiber_queue_init(&cleaner->stopped);
	pool->cleaner = cleaner;
	cleaner->evacuation = evacuation_open(pool);
	if (!cleaner->evacuation)
		return err_set(err, ENOMEM, "no memory to clean with");
	return 0;
}

void cleaner_close(struct pool *pool)
{
	if (!pool->cleaner)
		return;
	evacuation_close(pool->cleaner->evacuation);
	free(pool->cleaner);
	pool->cleaner = NULL;
}

/* ---- how short segments are ---- */

/* Cleaning begins below: somewhat before users have to stop. */
static uint64_t low_mark(const struct pool *pool)
{
	return segments_kept(pool, SEGMENT_FOR_WRITES) + segments_reserve(pool) / 16 + VF_NSTREAMS;
}

static bool short_of_segments(const struct pool *pool)
{
	return segments_reusable(pool) < low_mark(pool);
}

static uint64_t segment_bytes(const struct pool *pool, double part)
{
	return (uint64_t)((double)pool->geometry.segment_len * part);
}

/* ---- choosing ---- */

static bool is_damaged(const struct cleaner *cleaner, uint32_t segno)
{
	for (uint32_t i = 0; i < cleaner->ndamaged; i++)
		if (cleaner->damaged[i] == segno)
			return true;
	return false;
}

/*
 * Cost and benefit: free space gained, times how long it is likely to stay so,
 * by what is to be read and written for it.  0: not a victim.  Where users have to
 * stop, what is gained now alone counts: old segments that are nearly full would
 * give nothing.
 */
static double victim_score(const struct pool *pool, const struct segment *segment, bool urgent)
{
	double used = (double)segment->live / (double)pool_segment_units(pool);
	uint64_t age = log_seq(pool) - segment->last_seq + 1;

	if (segment->state != SEGMENT_SEALED || segment->pins || segment->live == 0)
		return 0;
	if (segment->last_seq > log_durable(pool))
		return 0;
	if (used > 1 - UNITS_GAIN || (segment->stream == VF_M && used > MAP_USED))
		return 0;
	return (1 - used) * (urgent ? 1 : (double)age) / (1 + used);
}

static void victim_insert(struct cleaner *cleaner, const struct victim *victim)
{
	uint32_t at = cleaner->nvictims;

	if (at == VICTIMS_MAX) {
		if (cleaner->victims[--at].score >= victim->score)
			return;
	} else {
		cleaner->nvictims++;
	}
	for (; at > 0 && cleaner->victims[at - 1].score < victim->score; at--)
		cleaner->victims[at] = cleaner->victims[at - 1];
	cleaner->victims[at] = *victim;
}

static void choose_victims(struct cleaner *cleaner)
{
	struct pool *pool = cleaner->pool;
	bool urgent = segments_reusable(pool) <= segments_kept(pool, SEGMENT_FOR_WRITES);

	cleaner->nvictims = 0;
	cleaner->waiting_dead = 0;
	for (uint32_t segno = 0; segno < pool->geometry.nsegments; segno++) {
		const struct segment *segment = segment_at(pool, segno);
		struct victim victim = { .segno = segno, .live = segment->live };

		if (segno % SCAN_SLICE == SCAN_SLICE - 1)
			fiber_yield();
		if (segment->state == SEGMENT_SEALED && segment->live == 0 &&
		    !segment_reusable(pool, segno))
			cleaner->waiting_dead++;
		victim.score = victim_score(pool, segment, urgent);
		if (victim.score > 0 && !is_damaged(cleaner, segno))
			victim_insert(cleaner, &victim);
	}
}

/* ---- a round ---- */

/* What one round is to win: 1.5 segments at least, more in larger pools, so that
 * its merges and checkpoints are shared by much. */
static double round_goal(const struct pool *pool)
{
	double goal = 1.5 + (double)segments_reserve(pool) / 8;

	return goal < VICTIMS_MAX / 2 ? goal : VICTIMS_MAX / 2;
}

static void note_damaged(struct cleaner *cleaner, uint32_t segno)
{
	if (cleaner->ndamaged < VICTIMS_MAX)
		cleaner->damaged[cleaner->ndamaged++] = segno;
	if (!cleaner->pool->quiet)
		log_error("pool %s: segment %u holds a damaged record and stays as it is",
			  cleaner->pool->name, segno);
}

/* Empties victims until the goal is reached; says how many are pinned now. */
static int evacuate_victims(struct cleaner *cleaner, uint32_t *npinned)
{
	struct pool *pool = cleaner->pool;
	double gained = (double)cleaner->waiting_dead, goal = round_goal(pool);
	int rc = 0;

	for (uint32_t i = 0; i < cleaner->nvictims && gained < goal && !cleaner->stopping; i++) {
		struct victim *victim = &cleaner->victims[i];
		double part = 1 - (double)victim->live / (double)pool_segment_units(pool);

		if (victim_score(pool, segment_at(pool, victim->segno), false) == 0)
			continue; /* merges changed it since it was chosen */
		if (!pool_mutant(pool, MUTANT_UNPINNED_VICTIM))
			segment_pin(pool, victim->segno);
		cleaner->victims[(*npinned)++] = *victim;
		rc = evacuate(cleaner->evacuation, victim->segno);
		if (rc == -EUCLEAN)
			note_damaged(cleaner, victim->segno);
		else if (rc)
			break;
		gained += part;
		cleaner->allowed_to += segment_bytes(pool, part);
		stage_retry(pool);
	}
	return rc == -EUCLEAN ? 0 : rc;
}

static void unpin_victims(struct cleaner *cleaner, uint32_t npinned)
{
	if (pool_mutant(cleaner->pool, MUTANT_UNPINNED_VICTIM))
		return;
	for (uint32_t i = 0; i < npinned; i++)
		segment_unpin(cleaner->pool, cleaner->victims[i].segno);
}

static int merge_all(struct pool *pool)
{
	uint64_t seq = log_seq(pool);
	int rc = log_wait_durable(pool, seq);

	return rc ? rc : merge_until(pool, seq);
}

/* What died, by the MOVEs and before, becomes reusable: the LEAF_ATs that killed
 * it must lie before the replay position of both checkpoints. */
static int free_dead(struct pool *pool)
{
	int rc = merge_all(pool);

	for (int i = 0; i < 2 && !rc; i++)
		rc = checkpoint_run(pool);
	return rc;
}

static int clean_round(struct cleaner *cleaner)
{
	struct pool *pool = cleaner->pool;
	uint32_t npinned = 0;
	int rc, finished;

	/* What overwrites have killed shows when it is merged. */
	rc = merge_all(pool);
	if (rc)
		return rc;
	choose_victims(cleaner);
	rc = evacuate_victims(cleaner, &npinned);
	/* There was no room for more: what was emptied is freed all the same. */
	if (rc == -ENOSPC)
		rc = 0;
	finished = evacuation_finish(cleaner->evacuation);
	if (!rc)
		rc = finished;
	if (!rc)
		rc = merge_all(pool);
	unpin_victims(cleaner, npinned);
	return rc ? rc : free_dead(pool);
}

/* Blocks that can be written, and what users took meanwhile: that is what cleaning
 * is for. */
static uint64_t space(const struct pool *pool)
{
	return (segments_reusable(pool) + segments_taken(pool)) *
		       (pool->geometry.segment_len / VF_BLOCK) +
	       bulk_room(pool);
}

static void clean(void *arg)
{
	struct cleaner *cleaner = arg;
	struct pool *pool = cleaner->pool;

	cleaner->allowed_to = pool->counters.user_bytes + segment_bytes(pool, 0.5);
	while (!cleaner->stopping && !pool->read_only && short_of_segments(pool)) {
		uint64_t before = space(pool), live = segments_live_units(pool);
		int rc = clean_round(cleaner);

		cleaner->failed = rc != 0;
		cleaner->gains = space(pool) > before || segments_live_units(pool) < live;
		if (rc || !cleaner->gains)
			break;
		stage_retry(pool);
	}
	cleaner->pause_ns *= 2;
	if (cleaner->gains || cleaner->pause_ns < RETRY_MIN_NS)
		cleaner->pause_ns = RETRY_MIN_NS;
	if (cleaner->pause_ns > RETRY_MAX_NS)
		cleaner->pause_ns = RETRY_MAX_NS;
	cleaner->retry_ns = pool->env->ops->now_ns(pool->env) + cleaner->pause_ns;
	cleaner->running = false;
	fiber_queue_wake_all(&cleaner->stopped);
	stage_retry(pool);
}

/* ---- from outside ---- */

/* After a round without gain there is no use in another one before something died
 * that is not merged yet; an idle pool at its limit is left alone. */
static bool may_gain(const struct cleaner *cleaner)
{
	struct pool *pool = cleaner->pool;

	if (cleaner->gains)
		return true;
	if (!cleaner->failed && regions_oldest(pool) <= log_seq(pool))
		return true;
	return (cleaner->failed || !stage_empty(pool)) &&
	       pool->env->ops->now_ns(pool->env) >= cleaner->retry_ns;
}

void cleaner_kick(struct pool *pool)
{
	struct cleaner *cleaner = pool->cleaner;

	if (cleaner->running || cleaner->stopping || pool->closing || pool->recovering ||
	    pool->read_only || !short_of_segments(pool))
		return;
	if (!may_gain(cleaner))
		return;
	cleaner->running = fiber_start(pool->fibers, clean, cleaner);
}

void cleaner_tick(struct pool *pool)
{
	cleaner_kick(pool);
}

bool cleaner_behind(const struct pool *pool)
{
	const struct cleaner *cleaner = pool->cleaner;

	if (!short_of_segments(pool) || !cleaner->running)
		return false;
	return pool->counters.user_bytes >= cleaner->allowed_to;
}

void cleaner_stop(struct pool *pool)
{
	struct cleaner *cleaner = pool->cleaner;

	cleaner->stopping = true;
	while (cleaner->running)
		fiber_queue_wait(&cleaner->stopped);
	cleaner->stopping = false;
}
