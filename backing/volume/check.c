#include "backing/volume/check.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "backing/volume/cache.h"
#include "backing/volume/checkpoint.h"
#include "backing/volume/log.h"
#include "backing/volume/region.h"
#include "backing/volume/segtab.h"
#include "backing/volume/tree_page.h"
#include "backing/volume/volumes.h"

#define LINE_MAX 256

void check_say(struct check *check, unsigned int invariant, const char *format, ...)
{
	char text[LINE_MAX], line[LINE_MAX + 32];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	snprintf(line, sizeof(line), "%s (invariant %u)", text, invariant);
	check->report->nerrors++;
	if (check->report->say)
		check->report->say(check->report->arg, line);
}

/* ---- what is named ---- */

/* The segment may hold something: not superblocks, not free, not the log's next. */
static bool segment_holds(struct check *check, uint32_t segno)
{
	const struct segment *segment = segment_at(check->pool, segno);

	return segment->state != SEGMENT_SUPER && segment->state != SEGMENT_FREE &&
	       segment->state != SEGMENT_RESERVED;
}

static bool take(struct check *check, uint64_t unit)
{
	uint64_t bit = 1ull << unit % 64;
	bool taken = check->owned[unit / 64] & bit;

	check->owned[unit / 64] |= bit;
	return !taken;
}

void check_named(struct check *check, uint64_t addr, uint32_t stored, const char *what)
{
	uint64_t per_segment = pool_segment_units(check->pool);
	uint32_t segno = addr_segment(check->pool, addr);
	bool shared = false;

	if (addr / per_segment >= check->pool->geometry.nsegments || stored == 0 ||
	    addr % per_segment + stored > per_segment) {
		check_say(check, 5, "%s at %" PRIu64 ", %u units: not in the pool", what, addr,
			  stored);
		return;
	}
	if (check->first_window) {
		check->live[segno] += live_units(stored);
		if (!segment_holds(check, segno))
			check_say(check, 5, "%s at %" PRIu64 " is in segment %u, which is free",
				  what, addr, segno);
	}
	for (uint64_t unit = addr; unit < addr + stored; unit++)
		if (unit >= check->window && unit - check->window < check->nunits)
			shared |= !take(check, unit - check->window);
	if (shared)
		check_say(check, 1, "%s at %" PRIu64 ", %u units: named twice", what, addr, stored);
}

/* ---- directories ---- */

static void name_where(struct check *check, uint64_t where, const char *what)
{
	if (where)
		check_named(check, vf_where_addr(where), vf_where_stored(where), what);
}

/* A directory page as its slot names it, and those below it that are resident. */
static void name_pages(struct check *check, struct tree *tree, uint8_t level,
		       const struct vf_slot *slot, const struct dir_page *page)
{
	name_where(check, le64_get(&slot->where), "a directory page");
	if (level > 1 && le64_get(&slot->where))
		name_where(check, le64_get(&slot->merged_seq), "a directory page's copy");
	for (uint32_t i = 0; level > 1 && page && i < VF_FANOUT; i++)
		if (page->children[i] || le64_get(&page->slots[i].where))
			name_pages(check, tree, (uint8_t)(level - 1), &page->slots[i],
				   page->children[i]);
}

/* Every written page of level 1 is read, or was when it became resident. */
static int read_pages(struct check *check, struct tree *tree, const char *what)
{
	struct vf_slot slot;
	uint64_t index = 0;
	int rc;

	while ((rc = tree_next(tree, &index, &slot)) != -ENOENT) {
		if (rc == -ENOMEM)
			return rc;
		if (rc)
			check_say(check, 5,
				  "%s: the directory page of index %" PRIu64 " cannot be read: %s",
				  what, index / VF_FANOUT, err_name(-rc));
		index = (index / VF_FANOUT + 1) * VF_FANOUT;
	}
	return 0;
}

static int check_tree(struct check *check, struct tree *tree, const char *what)
{
	if (tree->level > 0)
		name_pages(check, tree, tree->level, &tree->root_slot, tree->root);
	return check->first_window ? read_pages(check, tree, what) : 0;
}

/* The pages that the pool's own trees lead to. */
static int check_table(struct check *check, struct tree *tree, enum vf_type type, const char *what)
{
	struct cache_key key = { .type = type, .tree = tree->id };
	struct cache_page *page;
	int rc = check_tree(check, tree, what);

	while (!rc && !(rc = tree_next(tree, &key.index, &key.slot))) {
		name_where(check, le64_get(&key.slot.where), what);
		if (check->first_window) {
			rc = cache_get_wait(check->pool, &key, &page);
			if (rc)
				check_say(check, 5, "page %" PRIu64 " of %s cannot be read: %s",
					  key.index, what, err_name(-rc));
			else
				cache_put(check->pool, page);
			rc = 0;
		}
		key.index++;
	}
	return rc == -ENOENT || rc == -EIO || rc == -EUCLEAN ? 0 : rc;
}

static int check_trees(struct check *check)
{
	struct volume *volume = NULL;
	char what[32];
	int rc = check_table(check, segments_tree(check->pool), VF_SEGTAB, "the segment table");

	if (!rc)
		rc = check_table(check, volumes_tree(check->pool), VF_VOLUME, "the volume table");
	while (!rc && (volume = volumes_each(check->pool, volume))) {
		snprintf(what, sizeof(what), "volume %u", volume->id);
		rc = check_tree(check, &volume->head, what);
	}
	return rc;
}

/* ---- checkpoints ---- */

static void check_positions(struct check *check)
{
	struct pool *pool = check->pool;
	const struct vf_super *super = &pool->super;

	/* The older one's died by the newest, and are kept until it is the older one. */
	for (unsigned int copy = 0; copy < 2; copy++)
		if (le64_get(&super->root[0][copy].addr))
			check_named(check, le64_get(&super->root[0][copy].addr),
				    le32_get(&super->root[0][copy].stored), "a root");
	if (!check->first_window)
		return;
	if (le64_get(&super->root_seq[0]) > log_durable(pool))
		check_say(check, 7,
			  "the checkpoint's position %" PRIu64
			  " is beyond what is durable, %" PRIu64,
			  le64_get(&super->root_seq[0]), log_durable(pool));
	if (checkpoint_older_replay(pool) > checkpoint_replay(pool) ||
	    checkpoint_replay(pool) > regions_oldest(pool))
		check_say(check, 7,
			  "replay positions %" PRIu64 ", %" PRIu64
			  " and the oldest write in no leaf, %" PRIu64 ", are out of order",
			  checkpoint_older_replay(pool), checkpoint_replay(pool),
			  regions_oldest(pool));
}

/* ---- counts ---- */

static void check_counts(struct check *check)
{
	struct pool *pool = check->pool;
	uint64_t sum = 0;

	if (pool->segments->wrong)
		check_say(check, 4, "a live count was found to be below zero");
	for (uint32_t segno = 0; segno < pool->geometry.nsegments; segno++) {
		const struct segment *segment = segment_at(pool, segno);

		sum += segment->live;
		if (check->depth > POOL_CHECK_QUICK && segment->live != check->live[segno])
			check_say(check, 4,
				  "segment %u has %u live units by its record, %u in truth", segno,
				  segment->live, check->live[segno]);
		if (segment->pins && segment->state == SEGMENT_FREE)
			check_say(check, 18, "segment %u is free and pinned", segno);
	}
	if (sum != segments_live_units(pool))
		check_say(check, 4,
			  "the pool has %" PRIu64 " live units by its sum, %" PRIu64 " in truth",
			  segments_live_units(pool), sum);
}

/* ---- the whole ---- */

static bool prepare(struct check *check)
{
	uint64_t units = pool_segment_units(check->pool) * check->pool->geometry.nsegments;
	uint32_t room = check->pool->geometry.segment_len;

	check->nunits = units < CHECK_WINDOW / VF_UNIT ? units : CHECK_WINDOW / VF_UNIT;
	check->live = calloc(check->pool->geometry.nsegments, sizeof(*check->live));
	check->owned = calloc(check->nunits / 64 + 1, sizeof(*check->owned));
	check->buf = aligned_alloc(VF_BLOCK, room);
	check->expanded = malloc(VF_RECORD_MAX);
	return check->live && check->owned && check->buf && check->expanded;
}

static int run_window(struct check *check)
{
	int rc = check_trees(check);

	check_positions(check);
	if (!rc && check->depth > POOL_CHECK_QUICK)
		rc = check_leaves(check);
	return rc;
}

static int run(struct pool *pool, void *arg)
{
	struct check *check = arg;
	uint64_t units = pool_segment_units(pool) * pool->geometry.nsegments;
	int rc = prepare(check) ? 0 : -ENOMEM;

	for (check->window = 0; !rc && check->window < units; check->window += check->nunits) {
		check->first_window = check->window == 0;
		if (!check->first_window)
			memset(check->owned, 0, (check->nunits / 64 + 1) * sizeof(*check->owned));
		rc = run_window(check);
		if (check->depth == POOL_CHECK_QUICK)
			break;
	}
	if (!rc && check->depth > POOL_CHECK_QUICK)
		rc = check_chain(check);
	if (!rc)
		check_counts(check);
	free(check->live);
	free(check->owned);
	free(check->buf);
	free(check->expanded);
	return rc;
}

int pool_check(struct pool *pool, enum pool_check_depth depth, struct pool_check_report *report,
	       struct err *err)
{
	struct check check = { .pool = pool, .depth = depth, .report = report };
	int rc;

	report->nerrors = report->nleaves = report->nentries = report->nrecords = 0;
	report->bytes_read = 0;
	rc = pool_control(pool, run, &check);
	return rc ? err_set(err, -rc, "the check could not be done: %s", err_name(-rc)) : 0;
}
