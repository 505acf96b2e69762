/* Writing what changed of a tree, level by level from the bottom. */
#include "backing/volume/tree.h"

#include <stdlib.h>

#include "backing/volume/bulk.h"
#include "backing/volume/checkpoint.h"
#include "backing/volume/log.h"
#include "backing/volume/tree_page.h"

#define BATCH 16u
#define ROOM  ((DIR_PAGE_LEN_MAX + VF_UNIT - 1) / VF_UNIT * VF_UNIT)

struct batch {
	struct dir_page *pages[BATCH];
	struct bulk_item items[BATCH], copies[BATCH];
	uint32_t n;
	uint64_t applied_seq;
	uint8_t data[BATCH][ROOM];
};

/* Takes dirty pages of a level from an index on, in order. */
static void collect(struct batch *batch, struct dir_page *page, uint8_t level, uint64_t from)
{
	if (page->level == level) {
		if (page->dirty && page->index >= from && batch->n < BATCH)
			batch->pages[batch->n++] = page;
		return;
	}
	for (uint32_t i = 0; page->below && i < VF_FANOUT && batch->n < BATCH; i++)
		if (page->children[i])
			collect(batch, page->children[i], level, from);
}

static void fill(struct tree *tree, struct batch *batch)
{
	batch->applied_seq = log_seq(tree->pool);
	for (uint32_t i = 0; i < batch->n; i++) {
		struct dir_page *page = batch->pages[i];
		struct bulk_item *item = &batch->items[i];

		/* Changes from here on are for the next checkpoint. */
		page->dirty = false;
		page->pins++;
		*item = (struct bulk_item){
			.data = batch->data[i],
			.len = dir_page_encode(tree, page, batch->applied_seq,
					       (struct vf_dir *)batch->data[i]),
		};
		item->desc.type = VF_PAGE;
		le32_put(&item->desc.volume, tree->id);
		le64_put(&item->desc.lba, page->index);
		le64_put(&item->desc.nsectors, (uint64_t)VF_DIR << 8 | page->level);
		batch->copies[i] = *item;
	}
}

/* Pages that are empty are not written: they stand at the end. */
static uint32_t set_apart_empty(struct batch *batch)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < batch->n; i++) {
		struct dir_page *page = batch->pages[i];

		if (page->nslots == 0)
			continue;
		batch->pages[i] = batch->pages[n];
		batch->pages[n++] = page;
	}
	return n;
}

static void slot_dies(struct tree *tree, const struct vf_slot *slot, uint8_t level)
{
	uint64_t where = le64_get(&slot->where), copy = le64_get(&slot->merged_seq);

	if (where)
		checkpoint_change(tree->pool, vf_where_addr(where), vf_where_stored(where), false);
	if (where && copy && level > 1)
		checkpoint_change(tree->pool, vf_where_addr(copy), vf_where_stored(copy), false);
}

static uint32_t newest_birth(const struct dir_page *page)
{
	uint32_t birth = 0;

	for (uint32_t i = 0; i < VF_FANOUT; i++)
		if (le64_get(&page->slots[i].where) && le32_get(&page->slots[i].max_birth) > birth)
			birth = le32_get(&page->slots[i].max_birth);
	return birth;
}

/* The page is written (item NULL: it was empty): who leads to it says so. */
static void settle(struct tree *tree, struct dir_page *page, const struct bulk_item *item,
		   const struct bulk_item *copy)
{
	struct vf_slot slot = { .where = { { 0 } } };

	slot_dies(tree, dir_page_slot(tree, page), page->level);
	if (item) {
		le64_put(&slot.where, vf_where(item->addr, item->stored));
		slot.hash = item->hash;
		le32_put(&slot.max_birth, newest_birth(page));
		checkpoint_change(tree->pool, item->addr, item->stored, true);
	}
	if (item && page->level > 1) {
		le64_put(&slot.merged_seq, vf_where(copy->addr, copy->stored));
		checkpoint_change(tree->pool, copy->addr, copy->stored, true);
	}
	if (page->parent) {
		dir_page_put(page->parent, page->index % VF_FANOUT, &slot);
		page->parent->dirty = true;
	} else {
		tree->root_slot = slot;
	}
	if (item && page->level == 1) {
		struct cache_key key;

		dir_page_key(tree, 1, page->index, &slot, &key);
		cache_insert(tree->pool, &key, item->data, item->len);
	}
}

static bool has_children(const struct dir_page *page)
{
	for (uint32_t i = 0; page->level > 1 && i < VF_FANOUT; i++)
		if (page->children[i])
			return true;
	return false;
}

static void let_go(struct tree *tree, struct dir_page *page)
{
	page->pins--;
	if (page->pins > 0 || page->dirty || has_children(page))
		return;
	if (page->level == 1 || page->nslots == 0)
		dir_page_drop(tree, page);
}

static int batch_write(struct tree *tree, struct batch *batch, uint8_t level)
{
	uint32_t n = set_apart_empty(batch);
	int rc = 0;

	fill(tree, batch);
	if (n > 0)
		rc = bulk_write(tree->pool, VF_M, batch->items, n, SEGMENT_FOR_MAP, 0);
	if (!rc && n > 0 && level > 1)
		rc = bulk_write(tree->pool, VF_M, batch->copies, n, SEGMENT_FOR_MAP,
				addr_segment(tree->pool, batch->items[0].addr));
	for (uint32_t i = 0; i < batch->n; i++) {
		if (rc)
			dir_page_mark(tree, batch->pages[i]);
		else
			settle(tree, batch->pages[i], i < n ? &batch->items[i] : NULL,
			       &batch->copies[i]);
		let_go(tree, batch->pages[i]);
	}
	return rc;
}

static int level_write(struct tree *tree, struct batch *batch, uint8_t level, uint64_t *applied)
{
	for (uint64_t from = 0;; from++) {
		int rc;

		batch->n = 0;
		if (tree->root)
			collect(batch, tree->root, level, from);
		if (batch->n == 0)
			return 0;
		from = 0;
		for (uint32_t i = 0; i < batch->n; i++)
			if (batch->pages[i]->index > from)
				from = batch->pages[i]->index;
		rc = batch_write(tree, batch, level);
		if (rc)
			return rc;
		if (*applied < batch->applied_seq)
			*applied = batch->applied_seq;
	}
}

static bool below_update(struct dir_page *page)
{
	if (page->level > 1 && page->below) {
		page->below = false;
		for (uint32_t i = 0; i < VF_FANOUT; i++)
			if (page->children[i] && below_update(page->children[i]))
				page->below = true;
	}
	return page->dirty || page->below;
}

int tree_checkpoint(struct tree *tree, struct vf_tree *out, uint64_t *applied)
{
	struct batch *batch;
	int rc = 0;

	if (tree->dirty) {
		batch = malloc(sizeof(*batch));
		if (!batch)
			return -ENOMEM;
		tree->dirty = false;
		for (uint8_t level = 1; !rc && level <= tree->level; level++)
			rc = level_write(tree, batch, level, applied);
		free(batch);
		if (tree->root && below_update(tree->root))
			tree->dirty = true;
		if (!tree->root && le64_get(&tree->root_slot.where) == 0)
			tree->level = 0;
	}
	*out = (struct vf_tree){ .slot = tree->root_slot,
				 .level = le64_get(&tree->root_slot.where) ? tree->level : 0 };
	return rc;
}
