#include "backing/volume/credit.h"

#include <stdlib.h>

#include "backing/volume/segment.h"
#include "backing/volume/stage.h"

/* Of what segments hold, users may have so much live: some sealed segment then
 * has a tenth of it dead, so that cleaning always gains. */
#define LIVE_PERCENT 90u

struct credit {
	uint64_t charged;
	bool above; /* the threshold, and told */
};

int credit_open(struct pool *pool, struct err *err)
{
	pool->credit = calloc(1, sizeof(*pool->credit));
	return pool->credit ? 0 : err_set(err, ENOMEM, "no memory for a pool");
}

void credit_close(struct pool *pool)
{
	free(pool->credit);
	pool->credit = NULL;
}

uint64_t credit_cost(const struct pool *pool, uint64_t bytes, uint32_t nrecords, uint32_t nregions)
{
	/* Prefix and rounding, and what the descriptors weigh (live_units()). */
	uint64_t record = sizeof(struct vf_prefix) + VF_UNIT - 1 + live_units(0) * VF_UNIT;

	(void)pool;
	return bytes + nrecords * (record + CREDIT_DELTA) + (uint64_t)nregions * CREDIT_REGION;
}

uint64_t credit_limit(const struct pool *pool)
{
	uint64_t segment_len = pool->geometry.segment_len;
	uint64_t all = segments_usable(pool) * segment_len;
	uint64_t reserve = segments_reserve(pool) * segment_len +
			   2 * segments_map_units(pool) * VF_UNIT;

	return reserve < all ? (all - reserve) / 100 * LIVE_PERCENT : 0;
}

static uint64_t taken(const struct pool *pool)
{
	return segments_live_units(pool) * VF_UNIT + pool->credit->charged;
}

uint64_t credit_available(const struct pool *pool)
{
	uint64_t limit = credit_limit(pool), used = taken(pool);

	return used < limit ? limit - used : 0;
}

bool credit_take(struct pool *pool, uint64_t bytes)
{
	if (bytes > credit_available(pool))
		return false;
	pool->credit->charged += bytes;
	return true;
}

void credit_force(struct pool *pool, uint64_t bytes)
{
	pool->credit->charged += bytes;
}

void credit_give(struct pool *pool, uint64_t bytes)
{
	assert(bytes <= pool->credit->charged);
	pool->credit->charged -= bytes;
}

uint64_t credit_charged(const struct pool *pool)
{
	return pool->credit->charged;
}

void credit_update(struct pool *pool)
{
	struct credit *credit = pool->credit;
	uint64_t limit = credit_limit(pool);
	bool above = pool->threshold != 0 && taken(pool) >= limit / 100 * pool->threshold;

	if (pool->recovering)
		return;
	if (above && !credit->above && pool->events && pool->events->threshold)
		pool->events->threshold(pool->events_arg);
	credit->above = above;
	if (pool->stage)
		stage_retry(pool);
}
