/* Pages of the segment table: read at opening, written by checkpoints. */
#include "backing/volume/segtab.h"

#include <stdlib.h>

#include "backing/volume/bulk.h"
#include "backing/volume/cache.h"
#include "backing/volume/checkpoint.h"
#include "backing/volume/log.h"

#define BATCH 16u

struct tree *segments_tree(struct pool *pool)
{
	return &pool->segments->tree;
}

void segments_touch(struct pool *pool, uint64_t index)
{
	if (index < pool->segments->npages)
		pool->segments->pages[index].dirty = true;
}

int segments_grow(struct pool *pool, uint64_t nsegments, struct err *err)
{
	assert(nsegments >= pool->segments->n);
	if (!segments_resize(pool, nsegments))
		return err_set(err, ENOMEM, "no memory for the segment table of %llu segments",
			       (unsigned long long)nsegments);
	segments_recount(pool);
	return 0;
}

/* ---- reading ---- */

static void page_take(struct pool *pool, uint64_t index, const struct vf_segtab *page)
{
	struct segments *segments = pool->segments;

	segments->pages[index].applied_seq = le64_get(&page->applied_seq);
	for (uint32_t i = 0; i < VF_SEGTAB_RECS; i++) {
		uint64_t segno = index * VF_SEGTAB_RECS + i;
		const struct vf_segrec *rec = &page->recs[i];
		struct segment *segment;

		if (segno >= segments->n)
			break;
		segment = &segments->table[segno];
		if (segment->state == SEGMENT_SUPER)
			continue;
		segment->live = le32_get(&rec->live);
		segment->stream = rec->stream;
		segment->last_seq = le64_get(&rec->last_seq);
		segment->kill_seq = le64_get(&rec->kill_seq);
		if (segment->live || segment->last_seq || segment->kill_seq)
			segment->state = SEGMENT_SEALED;
		if (segment->state == SEGMENT_SEALED)
			segment_backed(pool, (uint32_t)segno, true);
		segments->live_units += segment->live;
		if (segment->stream == VF_M)
			segments->map_units += segment->live;
	}
}

int segments_load(struct pool *pool, const struct vf_tree *root, struct err *err)
{
	struct segments *segments = pool->segments;
	uint64_t index = 0;
	struct cache_key key = { .type = VF_SEGTAB, .tree = VF_TREE_SEGTAB };
	int rc = tree_load(&segments->tree, root, err);

	while (!rc) {
		struct cache_page *page;

		rc = tree_next(&segments->tree, &index, &key.slot);
		if (rc == -ENOENT)
			return 0;
		if (!rc && index >= segments->npages)
			rc = -EUCLEAN;
		key.index = index;
		if (!rc)
			rc = cache_get_wait(pool, &key, &page);
		if (rc)
			break;
		page_take(pool, index, page->data);
		cache_put(pool, page);
		index++;
	}
	return err_set(err, -rc, "the segment table cannot be read: %s", err_name(-rc));
}

/* ---- writing ---- */

struct batch {
	uint64_t index[BATCH];
	struct bulk_item items[BATCH];
	uint32_t n;
	uint64_t applied_seq;
	struct vf_segtab data[BATCH];
};

static void page_fill(struct pool *pool, uint64_t index, uint64_t applied_seq,
		      struct vf_segtab *page)
{
	struct segments *segments = pool->segments;

	memset(page, 0, sizeof(*page));
	le64_put(&page->index, index);
	le64_put(&page->applied_seq, applied_seq);
	for (uint32_t i = 0; i < VF_SEGTAB_RECS; i++) {
		uint64_t segno = index * VF_SEGTAB_RECS + i;
		const struct segment *segment;

		if (segno >= segments->n)
			break;
		segment = &segments->table[segno];
		le32_put(&page->recs[i].live, segment->live);
		page->recs[i].stream = segment->stream;
		le64_put(&page->recs[i].last_seq, segment->last_seq);
		le64_put(&page->recs[i].kill_seq, segment->kill_seq);
	}
	vf_seal(page, VF_SEGTAB, sizeof(*page), pool->geometry.uuid);
}

/* Takes dirty pages from an index on; returns the one behind the last. */
static uint64_t collect(struct pool *pool, struct batch *batch, uint64_t from)
{
	struct segments *segments = pool->segments;

	batch->n = 0;
	batch->applied_seq = log_seq(pool);
	for (; from < segments->npages && batch->n < BATCH; from++) {
		struct bulk_item *item = &batch->items[batch->n];

		if (!segments->pages[from].dirty)
			continue;
		segments->pages[from].dirty = false;
		page_fill(pool, from, batch->applied_seq, &batch->data[batch->n]);
		*item = (struct bulk_item){ .data = &batch->data[batch->n],
					    .len = sizeof(struct vf_segtab) };
		item->desc.type = VF_PAGE;
		le32_put(&item->desc.volume, VF_TREE_SEGTAB);
		le64_put(&item->desc.lba, from);
		le64_put(&item->desc.nsectors, (uint64_t)VF_SEGTAB << 8);
		batch->index[batch->n++] = from;
	}
	return from;
}

/* The tree's slot names the page that was written. */
static int settle(struct pool *pool, uint64_t index, const struct bulk_item *item)
{
	struct tree *tree = &pool->segments->tree;
	struct vf_slot slot = { .where = { { 0 } } }, old;
	int rc = tree_pin(tree, index);

	if (rc)
		return rc;
	rc = tree_get_wait(tree, index, &old);
	if (!rc)
		checkpoint_change(pool, vf_where_addr(le64_get(&old.where)),
				  vf_where_stored(le64_get(&old.where)), false);
	if (!rc || rc == -ENOENT) {
		le64_put(&slot.where, vf_where(item->addr, item->stored));
		slot.hash = item->hash;
		tree_set(tree, index, &slot, log_seq(pool));
		checkpoint_change(pool, item->addr, item->stored, true);
		rc = 0;
	}
	tree_unpin(tree, index);
	return rc;
}

static int batch_write(struct pool *pool, struct batch *batch)
{
	int rc = bulk_write(pool, VF_M, batch->items, batch->n, SEGMENT_FOR_MAP, 0);

	if (rc) {
		for (uint32_t i = 0; i < batch->n; i++)
			segments_touch(pool, batch->index[i]);
		return rc;
	}
	for (uint32_t i = 0; i < batch->n; i++) {
		int failed = settle(pool, batch->index[i], &batch->items[i]);

		if (failed) {
			segments_touch(pool, batch->index[i]);
			bulk_named(pool, &batch->items[i], 1);
			rc = failed;
		}
	}
	return rc;
}

int segtab_checkpoint(struct pool *pool, struct vf_tree *out, uint64_t *applied)
{
	struct batch *batch = malloc(sizeof(*batch));
	uint64_t from = 0;
	int rc = batch ? 0 : -ENOMEM;

	while (!rc) {
		from = collect(pool, batch, from);
		if (batch->n == 0)
			break;
		if (*applied < batch->applied_seq)
			*applied = batch->applied_seq;
		rc = batch_write(pool, batch);
	}
	free(batch);
	return rc ? rc : tree_checkpoint(&pool->segments->tree, out, applied);
}
