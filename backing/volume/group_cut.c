/*
 * Cutting: the next items of each volume become a group, and those that lie in
 * one window become one record where they join.
 *
 * Within a group later items replace earlier ones, since nothing shows a group in
 * part.  Nothing is ever joined across groups: a volume would not be a prefix of
 * its tickets any more.
 *
 * Records of different windows are disjoint, so their order does not matter.
 * What spans windows (wide holes, ranges) comes behind all windows of its volume;
 * a window item that comes after one begins the next group.
 */
#include "backing/volume/staging.h"

#include "backing/volume/region.h"
#include "backing/volume/volumes.h"
#include "base/slab.h"

#define QUANTUM_MIN (64u << 10) /* bytes that a volume gets at once */
#define NO_WINDOW   UINT32_MAX

struct cut {
	struct pool *pool;
	struct log *log;
	struct group *group;
	uint64_t number;
	uint64_t used; /* bytes of the group, at worst */
	uint64_t cap;  /* of it */
	uint32_t nitems;
};

/* ---- which items ---- */

/* What surrounds payloads: the gaps behind the table and before raw ones, the end. */
#define AROUND (sizeof(struct vf_group) + VF_UNIT + 2 * VF_BLOCK)

static bool fits(const struct cut *cut, uint64_t bytes, uint32_t nitems)
{
	return bytes <= cut->cap - cut->used && nitems <= cut->log->items_max - cut->nitems;
}

/* May it be in the group as it is so far? */
static bool suits(const struct cut *cut, const struct stage_item *item)
{
	const struct volume *volume = item->volume;

	if (volume->cut_number != cut->number)
		return true;
	return item->wide || (!volume->cut_wide && volume->cut_window_len == item->window_len);
}

static void take(struct cut *cut, struct stage_item *item)
{
	struct stage *stage = cut->pool->stage;
	struct volume *volume = item->volume;

	if (volume->cut_number != cut->number) {
		volume->cut_number = cut->number;
		volume->cut_wide = false;
		volume->cut_window_len = item->window_len;
	}
	volume->cut_wide = volume->cut_wide || item->wide;
	list_del(&item->order_link);
	list_add_tail(&cut->group->items, &item->order_link);
	item->in_group = true;
	cut->used += stage_item_bound(item);
	cut->nitems++;
	cut->group->bytes += (uint64_t)item->nsectors * VF_SECTOR;
	cut->group->charge += item->charge;
	stage->nunsent--;
	stage->unsent_bytes -= stage_item_bound(item);
}

/* The items up to the end of a run, if they fit and suit; how many bytes they
 * may need, 0: they do not. */
static uint64_t run_bound(const struct cut *cut, struct volume *volume)
{
	bool split = pool_mutant(cut->pool, MUTANT_SPLIT_ATOMIC);
	uint64_t bytes = 0;
	uint32_t nitems = 0;

	list_for_each(link, &volume->staged) {
		struct stage_item *item = container_of(link, struct stage_item, order_link);

		if (!suits(cut, item))
			return 0;
		bytes += stage_item_bound(item);
		if (!fits(cut, bytes, ++nitems))
			return 0;
		if (item->run_end || split)
			return bytes;
	}
	assert(false); /* a volume's items end with the end of a run */
	return 0;
}

/* The next items of a volume, about a quantum of them; false: none. */
static bool cut_volume(struct cut *cut, struct volume *volume, uint64_t quantum)
{
	struct stage *stage = cut->pool->stage;
	uint64_t taken = 0, run;

	while (taken < quantum && !list_empty(&volume->staged) &&
	       (run = run_bound(cut, volume)) != 0) {
		taken += run;
		for (uint64_t left = run; left > 0;) {
			struct stage_item *item = container_of(volume->staged.next,
							       struct stage_item, order_link);

			left -= stage_item_bound(item);
			take(cut, item);
		}
		if (pool_mutant(cut->pool, MUTANT_SPLIT_ATOMIC))
			break;
	}
	list_del(&volume->ready_link);
	if (list_empty(&volume->staged))
		stage->nready--;
	else
		list_add_tail(&stage->ready, &volume->ready_link);
	return taken > 0;
}

/* Once around; waited: those alone for which somebody waits. */
static bool cut_round(struct cut *cut, bool waited)
{
	struct stage *stage = cut->pool->stage;
	uint64_t quantum = cut->group->cap / (stage->nready ? stage->nready : 1);
	uint32_t n = stage->nready;
	bool some = false;

	if (quantum < QUANTUM_MIN)
		quantum = QUANTUM_MIN;
	for (struct list *link = stage->ready.next; n > 0; n--) {
		struct volume *volume = container_of(link, struct volume, ready_link);

		link = link->next;
		if (!waited || !list_empty(&volume->waiting))
			some = cut_volume(cut, volume, quantum) || some;
	}
	return some;
}

/* ---- windows ---- */

static uint32_t window_of(const struct stage_item *item)
{
	return item->start / (item->window_len / VF_SECTOR);
}

static bool same_window(const struct stage_item *a, const struct stage_item *b)
{
	return a->region == b->region && window_of(a) == window_of(b);
}

/* Chains the item behind those of its window that are in the group; true: it is
 * the first.  The table has twice as many slots as a group may have items. */
static bool window_add(struct log *log, struct stage_item *item)
{
	uint64_t key = (uint64_t)(uintptr_t)item->region / 64 * 2048 + window_of(item);
	uint32_t slot = (uint32_t)((key * 0x9e3779b97f4a7c15u) >> 40) & log->window_mask;

	item->window_next = NULL;
	item->window_last = item;
	for (; log->windows[slot]; slot = (slot + 1) & log->window_mask) {
		struct stage_item *first = log->windows[slot];

		if (!same_window(first, item))
			continue;
		first->window_last->window_next = item;
		first->window_last = item;
		item->window_slot = NO_WINDOW;
		return false;
	}
	log->windows[slot] = item;
	item->window_slot = slot;
	return true;
}

/* ---- records ---- */

static struct record *record_make(struct group *group, const struct stage_item *item)
{
	/* As many as groups that are cut may have items (log_open()). */
	struct record *record = slab_get(group->log->records);

	assert(record != NULL);
	*record = (struct record){
		.group = group,
		.volume = item->volume,
		.region = item->region,
		.range = item->range,
		.nregions = item->nregions,
		.start = item->start,
		.nsectors = item->nsectors,
		.data = item->data,
		.hole = item->hole,
	};
	list_add_tail(&group->records, &record->link);
	return record;
}

/* One for each item: the later ones replace what they cover by their order. */
static void records_apart(struct group *group, struct stage_item *first)
{
	for (struct stage_item *item = first; item; item = item->window_next)
		record_make(group, item);
}

/* The sectors of a window's items, if they join without a gap and have no hole. */
static bool joined_extent(const struct stage_item *first, uint32_t *start, uint32_t *end)
{
	uint64_t bits[VF_REGION_SECTORS / 64] = { 0 };
	uint32_t n = 0;

	*start = VF_REGION_SECTORS;
	*end = 0;
	for (const struct stage_item *item = first; item; item = item->window_next) {
		uint32_t item_end = item->start + item->nsectors;

		if (item->hole)
			return false;
		*start = item->start < *start ? item->start : *start;
		*end = item_end > *end ? item_end : *end;
		for (uint32_t i = item->start; i < item_end; i++)
			bits[i / 64] |= 1ull << i % 64;
	}
	for (uint32_t i = *start / 64; i <= (*end - 1) / 64; i++)
		n += (uint32_t)__builtin_popcountll(bits[i]);
	return n == *end - *start;
}

static void records_of_window(struct cut *cut, struct stage_item *first)
{
	struct stage *stage = cut->pool->stage;
	uint32_t start, end;
	struct record *record;
	uint8_t *gathered;

	if (!first->window_next) {
		record_make(cut->group, first);
		return;
	}
	if (!joined_extent(first, &start, &end)) {
		records_apart(cut->group, first);
		return;
	}
	gathered = buddy_get(&stage->memory, (size_t)(end - start) * VF_SECTOR);
	if (!gathered) {
		records_apart(cut->group, first);
		return;
	}
	record = record_make(cut->group, first);
	record->start = (uint16_t)start;
	record->nsectors = (uint16_t)(end - start);
	record->data = record->gathered = gathered;
	record->items = first;
}

static void make_records(struct cut *cut)
{
	struct group *group = cut->group;
	struct log *log = cut->log;

	list_for_each(link, &group->items) {
		struct stage_item *item = container_of(link, struct stage_item, order_link);

		item->window_slot = NO_WINDOW;
		if (!item->wide)
			window_add(log, item);
	}
	list_for_each(link, &group->items) {
		struct stage_item *item = container_of(link, struct stage_item, order_link);

		if (item->window_slot == NO_WINDOW)
			continue;
		log->windows[item->window_slot] = NULL;
		records_of_window(cut, item);
	}
	list_for_each(link, &group->items) {
		struct stage_item *item = container_of(link, struct stage_item, order_link);

		if (item->wide)
			record_make(group, item);
	}
}

/* ---- the group ---- */

/* The longest of those runs that come next: a group takes any of them whole. */
static uint64_t longest_run(const struct stage *stage)
{
	uint64_t longest = 0;

	list_for_each(volume_link, &stage->ready) {
		const struct volume *volume = container_of(volume_link, struct volume, ready_link);
		uint64_t bytes = 0;

		list_for_each(link, &volume->staged) {
			const struct stage_item *item = container_of(link, struct stage_item,
								     order_link);

			bytes += stage_item_bound(item);
			if (item->run_end)
				break;
		}
		longest = bytes > longest ? bytes : longest;
	}
	return longest;
}

/* Memory for what is staged, as far as a group is to be long. */
static bool group_memory(struct cut *cut)
{
	const struct stage *stage = cut->pool->stage;
	struct log *log = cut->log;
	struct group *group = cut->group;
	uint64_t want = stage->unsent_bytes + AROUND, most = group_len_wanted(cut->pool);

	if (want > most)
		want = longest_run(stage) + AROUND;
	if (want < most && stage->unsent_bytes + AROUND > most)
		want = most;
	assert(want <= cut->pool->geometry.segment_len / 2);
	group->buf = buddy_get(&log->memory, want);
	if (!group->buf)
		return false;
	group->buf_of = &log->memory;
	group->cap = (uint32_t)buddy_size(&log->memory, want);
	cut->cap = want - AROUND;
	return true;
}

struct group *group_cut(struct pool *pool)
{
	struct log *log = pool->log;
	struct stage *stage = pool->stage;
	struct cut cut = { .pool = pool, .log = log, .group = group_get(log) };

	if (!cut.group)
		return NULL;
	if (!group_memory(&cut)) {
		log->starved = true;
		group_free(cut.group);
		return NULL;
	}
	cut.number = ++log->cut_number;
	cut_round(&cut, true);
	while (cut_round(&cut, false) && !pool_mutant(pool, MUTANT_SPLIT_ATOMIC))
		;
	assert(!list_empty(&cut.group->items));
	if (stage->nunsent > 0)
		stage->unsent_ns = pool->env->ops->now_ns(pool->env);
	make_records(&cut);
	return cut.group;
}
