#include "backing/volume/stage.h"

#include <stdlib.h>

#include "backing/volume/clean.h"
#include "backing/volume/credit.h"
#include "backing/volume/merge.h"
#include "backing/volume/region.h"
#include "backing/volume/staging.h"
#include "backing/volume/volumes.h"
#include "base/slab.h"

/* Of the pool's memory; as much again is for groups (log.c). */
#define STAGE_PERTHOUSAND 75u
#define ITEMS_MIN	  4096u
#define ITEMS_MAX	  (1u << 18)
/* So many whole regions and more are a range operation. */
#define RANGE_REGIONS_MIN 8u
/* What is staged should be durable within that time. */
#define DRAIN_NS      250000000ull
#define DRAIN_SPAN_NS 20000000ull
#define LIMIT_FIRST   (8u << 20)
/* All there is is merged for want of credit when it is so much, or so often. */
#define SQUEEZE_DELTAS 16u
#define SQUEEZE_NS     100000000ull
/* Trims that are being worked off are waited for so long. */
#define REAP_NS 5000000000ull

enum admit { ADMITTED, WAITS, WAITS_APART, REFUSED };

/* Commands up to it lie in one group. */
static uint64_t atomic_sectors(const struct pool *pool)
{
	return pool->geometry.segment_len / 4 / VF_SECTOR;
}

uint64_t stage_item_bound(const struct stage_item *item)
{
	uint64_t desc = item->volume->wide ? sizeof(struct vf_desc_wide) : sizeof(struct vf_desc);
	uint64_t len = (uint64_t)item->nsectors * VF_SECTOR + sizeof(struct vf_prefix);

	return desc + (item->hole ? 0 : (len + VF_UNIT - 1) / VF_UNIT * VF_UNIT);
}

bool stage_pressed(const struct stage *stage)
{
	return !list_empty(&stage->queue) || stage->memory.used > stage->limit / 2;
}

/* ---- credit ---- */

/* In a fiber: whatever is dead and still counted is counted no more. */
static void squeeze_fiber(void *arg)
{
	struct pool *pool = arg;
	uint64_t seq = log_seq(pool);

	if (log_wait_durable(pool, seq) == 0)
		merge_until(pool, seq);
	pool->stage->squeezing = false;
	pool->stage->squeezed_seq = log_seq(pool);
	pool->stage->squeezed_ns = pool->env->ops->now_ns(pool->env);
	stage_retry(pool);
}

/* Are trims or deletions still to be worked off? */
static bool reaping(struct pool *pool)
{
	for (struct volume *volume = volumes_each(pool, NULL); volume;
	     volume = volumes_each(pool, volume))
		if (volume->deleting || volume->nranges > 0)
			return true;
	return false;
}

/* There is no credit: may there be some soon? */
static enum admit credit_hope(struct stage *stage)
{
	struct pool *pool = stage->pool;
	uint64_t now_ns = pool->env->ops->now_ns(pool->env);
	struct regions_counts counts;

	if (stage->short_ns == 0)
		stage->short_ns = now_ns;
	if (stage->squeezing)
		return WAITS;
	if (stage->nunsent > 0 || pool->log->ncut > 0) {
		pool->log->cut_now = true;
		return WAITS;
	}
	if (reaping(pool) && now_ns - stage->short_ns < REAP_NS)
		return WAITS;
	regions_count(pool, &counts);
	if (counts.ndeltas == 0 || stage->squeezed_seq == log_seq(pool))
		return REFUSED;
	if (counts.ndeltas < SQUEEZE_DELTAS && now_ns - stage->squeezed_ns < SQUEEZE_NS)
		return WAITS;
	stage->squeezing = fiber_start(pool->fibers, squeeze_fiber, pool);
	return stage->squeezing ? WAITS : REFUSED;
}

/*
 * Charged, or to wait: what is staged may cost less than it was charged, and
 * what was overwritten is counted until its region is merged.
 */
static enum admit credit_get(struct stage *stage, uint64_t cost)
{
	enum admit admit = ADMITTED;

	if (!credit_take(stage->pool, cost))
		admit = credit_hope(stage);
	if (admit != WAITS)
		stage->short_ns = 0;
	return admit;
}

/* ---- from commands to items ---- */

static uint32_t window_sectors(const struct volume *volume)
{
	return volume->settings.record_len / VF_SECTOR;
}

static bool hole_has_range(uint64_t at, uint64_t end)
{
	uint64_t first = (at + VF_REGION_SECTORS - 1) / VF_REGION_SECTORS;
	uint64_t last = end / VF_REGION_SECTORS;

	return last > first && last - first >= RANGE_REGIONS_MIN;
}

/* How many items sectors at..end of holes are, at most. */
static uint32_t hole_items(uint64_t at, uint64_t end)
{
	if (hole_has_range(at, end))
		return 3;
	return (uint32_t)((end - 1) / VF_REGION_SECTORS - at / VF_REGION_SECTORS + 1);
}

static enum admit begin_write(struct stage *stage, struct vreq *req)
{
	struct staging *now = &stage->now;
	uint32_t window = window_sectors(req->volume);
	uint64_t nitems = (now->end - 1) / window - now->at / window + 1;

	if (cleaner_behind(stage->pool))
		return WAITS;
	now->charge = req->nsectors * VF_SECTOR + nitems * now->item_extra;
	return credit_get(stage, now->charge);
}

/*
 * A hint: where there is no credit what would split extents is left out, and
 * whole regions are taken from the reserve.
 */
static enum admit begin_trim(struct stage *stage)
{
	struct staging *now = &stage->now;

	now->charge = hole_items(now->at, now->end) * now->item_extra;
	if (credit_take(stage->pool, now->charge))
		return ADMITTED;
	now->at = (now->at + VF_REGION_SECTORS - 1) / VF_REGION_SECTORS * VF_REGION_SECTORS;
	now->end = now->end / VF_REGION_SECTORS * VF_REGION_SECTORS;
	if (now->at >= now->end)
		return REFUSED;
	now->charge = hole_items(now->at, now->end) * now->item_extra;
	credit_force(stage->pool, now->charge);
	return ADMITTED;
}

static enum admit begin_hole(struct stage *stage, struct vreq *req)
{
	struct staging *now = &stage->now;
	uint32_t window = window_sectors(req->volume);

	now->wide = now->at / window != (now->end - 1) / window;
	if (hole_has_range(now->at, now->end) && req->volume->nranges == VF_RANGES_MAX)
		return WAITS_APART;
	if (req->op == VREQ_TRIM)
		return begin_trim(stage);
	if (cleaner_behind(stage->pool))
		return WAITS;
	now->charge = hole_items(now->at, now->end) * now->item_extra;
	return credit_get(stage, now->charge);
}

/* Charges what a command may need; then it is stage->now. */
static enum admit command_begin(struct stage *stage, struct vreq *req)
{
	struct staging *now = &stage->now;
	enum admit admit;

	now->at = req->lba;
	now->end = req->lba + req->nsectors;
	now->wide = false;
	now->item_extra = credit_cost(stage->pool, 0, 1, 1);
	now->iov = 0;
	now->iov_off = 0;
	now->run_sectors = 0;
	admit = req->op == VREQ_WRITE ? begin_write(stage, req) : begin_hole(stage, req);
	if (admit == ADMITTED)
		now->req = req;
	return admit;
}

/* Copies the next len bytes of the request. */
static void copy_in(struct staging *now, uint8_t *to, size_t len)
{
	const struct vreq *req = now->req;

	while (len > 0) {
		const struct iovec *iov = &req->iov[now->iov];
		size_t n = iov->iov_len - now->iov_off;

		assert(now->iov < req->iovcnt);
		if (n > len)
			n = len;
		memcpy(to, (const uint8_t *)iov->iov_base + now->iov_off, n);
		to += n;
		len -= n;
		now->iov_off += n;
		if (now->iov_off == iov->iov_len) {
			now->iov++;
			now->iov_off = 0;
		}
	}
}

/* Sectors of the item that begins at now->at. */
static uint64_t item_sectors(const struct staging *now)
{
	uint32_t window = now->wide ? VF_REGION_SECTORS : window_sectors(now->req->volume);
	uint64_t n = window - now->at % window, left = now->end - now->at;

	return n < left ? n : left;
}

static void item_drop(struct stage *stage, struct stage_item *item)
{
	if (item->region) {
		item->region->holds--;
		region_put(stage->pool, item->region);
	}
	if (item->data)
		buddy_put(&stage->memory, item->data);
	slab_put(stage->items, item);
}

/* The region stays in memory, and the data is copied; false: not now. */
static bool item_fill(struct stage *stage, struct stage_item *item)
{
	struct staging *now = &stage->now;
	size_t len = (size_t)item->nsectors * VF_SECTOR;

	item->region = region_get(stage->pool, item->volume, now->at / VF_REGION_SECTORS);
	if (!item->region)
		return false;
	item->region->holds++;
	if (item->hole)
		return true;
	item->data = buddy_get(&stage->memory, len);
	if (!item->data)
		return false;
	copy_in(now, item->data, len);
	return true;
}

/* NULL: not now. */
static struct stage_item *item_make(struct stage *stage, bool range, uint64_t nsectors)
{
	struct staging *now = &stage->now;
	bool hole = now->req->op != VREQ_WRITE;
	size_t len = nsectors * VF_SECTOR;
	struct stage_item *item;

	if (!hole && stage->memory.used + buddy_size(&stage->memory, len) > stage->limit)
		return NULL;
	item = slab_get(stage->items);
	if (!item)
		return NULL;
	*item = (struct stage_item){
		.volume = now->req->volume,
		.start = now->at % VF_REGION_SECTORS,
		.nsectors = range ? 0 : (uint16_t)nsectors,
		.hole = hole,
		.wide = now->wide,
		.charge = now->item_extra + (hole ? 0 : len),
		.window_len = now->req->volume->settings.record_len,
	};
	list_init(&item->region_link);
	list_init(&item->order_link);
	if (range) {
		item->range = now->at / VF_REGION_SECTORS;
		item->nregions = nsectors / VF_REGION_SECTORS;
	} else if (!item_fill(stage, item)) {
		item_drop(stage, item);
		return NULL;
	}
	return item;
}

static bool item_next(struct stage *stage)
{
	struct staging *now = &stage->now;
	uint64_t n = item_sectors(now);
	bool range = now->req->op != VREQ_WRITE && now->at % VF_REGION_SECTORS == 0 &&
		     hole_has_range(now->at, now->end);
	struct stage_item *item;

	if (range)
		n = (now->end - now->at) / VF_REGION_SECTORS * VF_REGION_SECTORS;
	item = item_make(stage, range, n);
	if (!item)
		return false;
	/* Records may have become shorter since the command was charged. */
	if (item->charge > now->charge)
		item->charge = now->charge;
	now->charge -= item->charge;
	list_add_tail(&now->items, &item->order_link);
	now->at += n;
	now->run_sectors += n;
	return true;
}

/* ---- from items to what everybody sees ---- */

/* A forbidden shortcut, for tests: see mutant.h. */
static void join_anywhere(struct stage_item *item)
{
	list_for_each(link, &item->region->staged) {
		struct stage_item *old = container_of(link, struct stage_item, region_link);

		if (!old->in_group && old->data && old->start == item->start &&
		    old->nsectors == item->nsectors)
			memcpy(old->data, item->data, (size_t)item->nsectors * VF_SECTOR);
	}
}

/* Look-ups see it from now on. */
static void item_show(struct stage *stage, struct stage_item *item)
{
	struct volume *volume = item->volume;

	if (item->region) {
		if (item->data && pool_mutant(stage->pool, MUTANT_JOIN_ACROSS_GROUPS))
			join_anywhere(item);
		list_add_head(&item->region->staged, &item->region_link);
		item->region->holds--;
		return;
	}
	assert(volume->nranges < VF_RANGES_MAX);
	volume->ranges[volume->nranges++] = (struct volume_range){ .region = item->range,
								   .nregions = item->nregions,
								   .ticket = item->ticket };
}

static void item_publish(struct stage *stage, struct stage_item *item)
{
	struct volume *volume = item->volume;

	item_show(stage, item);
	list_add_tail(&volume->staged, &item->order_link);
	if (list_empty(&volume->ready_link)) {
		list_add_tail(&stage->ready, &volume->ready_link);
		stage->nready++;
	}
	if (stage->nunsent++ == 0)
		stage->unsent_ns = stage->pool->env->ops->now_ns(stage->pool->env);
	stage->unsent_bytes += stage_item_bound(item);
}

static void run_publish(struct stage *stage)
{
	struct staging *now = &stage->now;
	struct vreq *req = now->req;
	struct list *link;

	if (req->ticket == 0)
		req->ticket = ++req->volume->ticket;
	while ((link = list_pop(&now->items)) != NULL) {
		struct stage_item *item = container_of(link, struct stage_item, order_link);

		item->ticket = req->ticket;
		item->run_end = list_empty(&now->items);
		item->command_end = item->run_end && now->at == now->end;
		item_publish(stage, item);
	}
	now->run_sectors = 0;
}

/* The whole command is staged. */
static void command_end(struct stage *stage)
{
	struct vreq *req = stage->now.req;

	stage->now.req = NULL;
	credit_give(stage->pool, stage->now.charge);
	if (req->op == VREQ_WRITE)
		stage->pool->counters.user_bytes += req->nsectors * VF_SECTOR;
	if (req->flags & VREQ_FUA) {
		list_add_tail(&req->volume->waiting, &req->link);
		stage->nwaiters++;
	} else {
		vreq_finish(req, 0);
	}
	log_kick(stage->pool);
}

/* Goes on with the command; false: something must come first. */
static bool command_stage(struct stage *stage)
{
	struct staging *now = &stage->now;
	uint64_t atomic = atomic_sectors(stage->pool);

	while (now->at < now->end) {
		if (!item_next(stage))
			return false;
		/* Holes are never so many items that they need several runs. */
		if (now->at < now->end &&
		    (now->req->op != VREQ_WRITE || now->run_sectors + item_sectors(now) <= atomic))
			continue;
		run_publish(stage);
	}
	command_end(stage);
	return true;
}

/* ---- in turn ---- */

/* Requests of a volume are admitted in order, volumes by turns: who writes little
 * does not wait for all that another one has asked for. */
static void queue_add(struct stage *stage, struct vreq *req)
{
	struct volume *volume = req->volume;

	list_add_tail(&volume->requests, &req->link);
	if (list_empty(&volume->queue_link))
		list_add_tail(&stage->queue, &volume->queue_link);
}

static void queue_turn(struct stage *stage, struct volume *volume)
{
	list_del(&volume->queue_link);
	if (!list_empty(&volume->requests))
		list_add_tail(&stage->queue, &volume->queue_link);
}

/* Those that wait for a range may have one now. */
static void queue_ranged(struct stage *stage)
{
	struct list ranged, *link;

	list_init(&ranged);
	list_splice(&ranged, &stage->ranged);
	while ((link = list_pop(&ranged)) != NULL)
		queue_add(stage, container_of(link, struct vreq, link));
}

static enum admit admit(struct stage *stage, struct vreq *req)
{
	enum admit rc = ADMITTED;

	if (stage->now.req != req)
		rc = command_begin(stage, req);
	if (rc == WAITS)
		return rc;
	list_del(&req->link);
	if (rc == WAITS_APART) {
		list_add_tail(&stage->ranged, &req->link);
	} else if (rc == REFUSED) {
		vreq_finish(req, req->op == VREQ_TRIM ? 0 : ENOSPC);
	} else if (!command_stage(stage)) {
		list_add_head(&req->volume->requests, &req->link);
		return WAITS;
	}
	return rc;
}

void stage_run(struct pool *pool)
{
	struct stage *stage = pool->stage;

	if (stage->running || pool->read_only)
		return;
	stage->running = true;
	queue_ranged(stage);
	while (!list_empty(&stage->queue)) {
		struct volume *volume = container_of(stage->queue.next, struct volume, queue_link);

		if (admit(stage, container_of(volume->requests.next, struct vreq, link)) == WAITS)
			break;
		queue_turn(stage, volume);
	}
	stage->running = false;
}

void stage_submit(struct pool *pool, struct vreq *req)
{
	struct stage *stage = pool->stage;
	bool first = list_empty(&stage->queue);

	req->ticket = 0;
	queue_add(stage, req);
	if (first)
		stage_run(pool);
	if (!list_empty(&stage->queue))
		log_kick(pool);
}

void stage_retry(struct pool *pool)
{
	struct stage *stage = pool->stage;

	/* log_run() admits what it can. */
	if (!list_empty(&stage->queue) || !list_empty(&stage->ranged))
		log_kick(pool);
}

/* ---- FLUSH, and what is durable ---- */

void stage_flush(struct pool *pool, struct vreq *req)
{
	struct volume *volume = req->volume;

	req->ticket = volume->ticket;
	if (volume->durable_ticket >= req->ticket) {
		vreq_finish(req, 0);
		return;
	}
	if (pool->read_only) {
		vreq_finish(req, EIO);
		return;
	}
	list_add_tail(&volume->waiting, &req->link);
	pool->stage->nwaiters++;
	log_kick(pool);
}

static void answer(struct stage *stage, struct volume *volume, uint64_t ticket, int err)
{
	while (!list_empty(&volume->waiting)) {
		struct vreq *req = container_of(volume->waiting.next, struct vreq, link);

		if (req->ticket > ticket)
			break;
		list_del(&req->link);
		stage->nwaiters--;
		vreq_finish(req, err);
	}
}

void stage_answer(struct stage *stage, struct volume *volume, uint64_t ticket)
{
	answer(stage, volume, ticket, 0);
}

static void range_durable(struct volume *volume, uint64_t ticket)
{
	for (uint32_t i = 0; i < volume->nranges; i++)
		if (volume->ranges[i].ticket == ticket)
			volume->ranges[i].ticket = 0;
}

void stage_release(struct stage *stage, struct stage_item *item)
{
	struct region *region = item->region;

	if (region) {
		list_del(&item->region_link);
		region_put(stage->pool, region);
	} else {
		range_durable(item->volume, item->ticket);
	}
	if (item->data)
		buddy_put(&stage->memory, item->data);
	slab_put(stage->items, item);
}

void stage_fail(struct pool *pool)
{
	struct stage *stage = pool->stage;
	struct list *link;

	/* What of it is shown already stays so: it was not answered. */
	if (stage->now.req) {
		while ((link = list_pop(&stage->now.items)) != NULL)
			item_drop(stage, container_of(link, struct stage_item, order_link));
		stage->now.req = NULL;
	}
	queue_ranged(stage);
	while (!list_empty(&stage->queue)) {
		struct volume *volume = container_of(stage->queue.next, struct volume, queue_link);

		link = list_pop(&volume->requests);
		vreq_finish(container_of(link, struct vreq, link), EROFS);
		queue_turn(stage, volume);
	}
	for (struct volume *volume = volumes_each(pool, NULL); volume;
	     volume = volumes_each(pool, volume))
		answer(stage, volume, UINT64_MAX, EIO);
}

/* ---- how much ---- */

static uint64_t memory_len(const struct stage *stage)
{
	return (uint64_t)stage->memory.nblocks << stage->memory.shift;
}

void stage_drained(struct stage *stage, uint64_t bytes)
{
	struct pool *pool = stage->pool;
	uint64_t now_ns = pool->env->ops->now_ns(pool->env), span, fits;
	uint64_t least = pool->geometry.segment_len / 2;

	stage->drained += bytes;
	span = now_ns - stage->drained_ns;
	if (span < DRAIN_SPAN_NS)
		return;
	/* A pool that does less than it could says nothing. */
	if (span < 4 * DRAIN_NS && stage_pressed(stage)) {
		fits = stage->drained * (DRAIN_NS / 1000) / (span / 1000);
		stage->limit = (3 * stage->limit + fits) / 4;
		if (stage->limit > memory_len(stage))
			stage->limit = memory_len(stage);
		if (stage->limit < least)
			stage->limit = least;
	}
	stage->drained = 0;
	stage->drained_ns = now_ns;
}

bool stage_empty(const struct pool *pool)
{
	const struct stage *stage = pool->stage;

	return list_empty(&stage->queue) && list_empty(&stage->ranged) && !stage->now.req &&
	       slab_free_count(stage->items) == slab_count(stage->items);
}

uint64_t stage_bytes(const struct pool *pool)
{
	return pool->stage->memory.used + pool->log->memory.used + pool->log->own_memory.used;
}

int stage_open(struct pool *pool, struct err *err)
{
	struct stage *stage = calloc(1, sizeof(*stage));
	uint64_t len = pool->cache_memory / 1000 * STAGE_PERTHOUSAND, nitems;

	if (!stage)
		return err_set(err, ENOMEM, "no memory for writes to pool \"%s\"", pool->name);
	pool->stage = stage;
	stage->pool = pool;
	list_init(&stage->now.items);
	list_init(&stage->queue);
	list_init(&stage->ranged);
	list_init(&stage->ready);
	/* Two commands of the longest kind, however they are split. */
	if (len < pool->geometry.segment_len / 2)
		len = pool->geometry.segment_len / 2;
	/* Until it is known how fast the device is. */
	stage->limit = len < LIMIT_FIRST ? len : LIMIT_FIRST;
	nitems = len / 1024;
	if (nitems < ITEMS_MIN)
		nitems = ITEMS_MIN;
	if (nitems > ITEMS_MAX)
		nitems = ITEMS_MAX;
	stage->items = slab_create(sizeof(struct stage_item), (uint32_t)nitems);
	if (!stage->items || !buddy_open(&stage->memory, len, 9)) {
		stage_close(pool);
		return err_set(err, ENOMEM, "no memory for writes to pool \"%s\"", pool->name);
	}
	return 0;
}

void stage_close(struct pool *pool)
{
	struct stage *stage = pool->stage;

	if (!stage)
		return;
	if (stage->items)
		slab_destroy(stage->items);
	buddy_close(&stage->memory);
	free(stage);
	pool->stage = NULL;
}
