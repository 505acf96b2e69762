#include "backing/volume/merge_batch.h"

#include "backing/volume/cache.h"
#include "base/slab.h"

/* ---- beginning and ending ---- */

struct merge_batch *merge_batch_get(struct pool *pool)
{
	struct merger *merger = pool->merger;

	for (;;) {
		for (uint32_t i = 0; i < BATCHES; i++) {
			struct merge_batch *batch = &merger->batches[i];

			if (batch->busy)
				continue;
			batch->busy = true;
			batch->fiber = fiber_self();
			batch->n = 0;
			return batch;
		}
		fiber_queue_wait(&merger->idle);
	}
}

void merge_batch_put(struct merge_batch *batch)
{
	struct merger *merger = batch->pool->merger;

	assert(batch->n == 0);
	batch->busy = false;
	fiber_queue_wake_all(&merger->idle);
}

void merge_batches_drain(struct pool *pool)
{
	struct merger *merger = pool->merger;

	for (uint32_t i = 0; i < BATCHES; i++) {
		struct merge_batch *batch = &merger->batches[i];
		uint64_t generation = batch->generation;

		while (batch->busy && batch->n > 0 && batch->generation == generation &&
		       batch->fiber != fiber_self())
			fiber_queue_wait(&merger->changed);
	}
}

bool merge_batch_add(struct merge_batch *batch, struct region *region, bool rewrite)
{
	if (batch->n == BATCH_MAX || region->merging)
		return false;
	region->merging = true;
	batch->items[batch->n++] = (struct merge_item){ .region = region, .rewrite = rewrite };
	return true;
}

/* ---- what becomes of a region ---- */

/*
 * How many deltas a merge takes: those up to u, and no more than an edit holds;
 * then u is lowered to the end of a group.
 */
static uint32_t deltas_taken(const struct region *region, uint64_t *u)
{
	uint32_t n = 0, end = 0;

	for (; n < region->ndeltas && region->deltas[n].seq <= *u; n++) {
		if (n > 0 && region->deltas[n].seq != region->deltas[n - 1].seq)
			end = n;
		if (n == LEAF_EDIT_DELTAS_MAX) {
			*u = region->deltas[end].seq - 1;
			return end;
		}
	}
	return n;
}

static void edit_deltas(struct leaf_edit *edit, const struct region *region, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct delta *delta = &region->deltas[i];
		bool fits = true;

		if (delta->type == VF_DATA)
			fits = leaf_edit_data(edit, &delta->entry);
		else if (delta->type == VF_HOLE)
			leaf_edit_hole(edit, delta->entry.start, delta->entry.nsectors);
		else
			fits = leaf_edit_move(edit, &delta->entry, delta->moved_to);
		assert(fits);
	}
}

/* Sums changes of live counts by segment. */
static uint32_t change_add(struct vf_change *changes, uint32_t n, uint32_t segno, int32_t units)
{
	for (uint32_t i = n; i-- > 0;) {
		if (le32_get(&changes[i].segno) != segno)
			continue;
		le32_put(&changes[i].units,
			 (uint32_t)((int32_t)le32_get(&changes[i].units) + units));
		return n;
	}
	le32_put(&changes[n].segno, segno);
	le32_put(&changes[n].units, (uint32_t)units);
	return n + 1;
}

/* Records and pages that die by this merge. */
static uint32_t changes_make(struct merger *merger, const struct merge_item *item,
			     const struct vf_slot *old)
{
	const struct leaf_edit *edit = merger->edit;
	const struct region *region = item->region;
	struct pool *pool = merger->pool;
	uint64_t where = le64_get(&old->where);
	uint32_t n = 0;

	for (uint32_t i = 0; i < edit->ndead; i++)
		n = change_add(merger->changes, n, addr_segment(pool, edit->dead[i].addr),
			       -(int32_t)live_units(edit->dead[i].stored));
	for (uint32_t i = 0; i < region->nfreed; i++) {
		assert(n < MERGE_CHANGES_MAX - 2);
		if (region->freed[i].seq <= item->merged_seq)
			n = change_add(merger->changes, n, region->freed[i].segno,
				       -(int32_t)region->freed[i].units);
	}
	if (where)
		n = change_add(merger->changes, n, addr_segment(pool, vf_where_addr(where)),
			       -(int32_t)live_units(vf_where_stored(where)));
	return n;
}

static bool anything_freed(const struct region *region, uint64_t u)
{
	for (uint32_t i = 0; i < region->nfreed; i++)
		if (region->freed[i].seq <= u)
			return true;
	return false;
}

/* The edit: what was, what was hidden, what came. */
static bool item_edit(struct merger *merger, struct merge_item *item, const struct vf_leaf *leaf,
		      const struct vf_slot *slot)
{
	struct region *region = item->region;
	struct pool *pool = merger->pool;
	struct leaf_edit *edit = merger->edit;
	uint64_t u = log_durable(pool), range_seq;
	uint32_t n;
	bool hidden;

	if (pool_mutant(pool, MUTANT_MERGE_NOT_DURABLE))
		u = log_seq(pool);
	if (region->ndeltas > LEAF_EDIT_DELTAS_MAX)
		region_compact(pool, region);
	n = deltas_taken(region, &u);
	range_seq = region_range_seq(region->volume, region->index);
	hidden = leaf && le64_get(&slot->merged_seq) < range_seq && range_seq <= u;
	if (n == 0 && !hidden && !anything_freed(region, u) &&
	    !(leaf && (item->rewrite || region->volume->deleting)))
		return false;
	leaf_edit_begin(edit);
	edit->first_slice_frees = pool_mutant(pool, MUTANT_SPLIT_FREES);
	edit->by_address = pool_mutant(pool, MUTANT_MOVE_BY_ADDRESS);
	if (leaf)
		leaf_edit_leaf(edit, leaf);
	if (hidden)
		leaf_edit_clear(edit);
	edit_deltas(edit, region, n);
	if (region->volume->deleting)
		leaf_edit_clear(edit);
	leaf_edit_end(edit);
	item->merged_seq = u;
	return true;
}

static void *batch_alloc(struct merge_batch *batch, size_t len)
{
	void *mem = batch->mem + batch->used;

	len = (len + VF_UNIT - 1) / VF_UNIT * VF_UNIT;
	if (len > batch->len - batch->used)
		return NULL;
	batch->used += len;
	return mem;
}

static void bulk_add(struct merge_batch *batch, struct merge_item *item)
{
	struct bulk_item *bulk = &batch->bulk[batch->nbulk];

	*bulk = (struct bulk_item){ .data = item->leaf, .len = le32_get(&item->leaf->head.len) };
	bulk->desc.type = VF_PAGE;
	le32_put(&bulk->desc.volume, item->region->volume->id);
	le64_put(&bulk->desc.lba, item->region->index);
	le64_put(&bulk->desc.nsectors, (uint64_t)VF_LEAF << 8);
	item->bulk = batch->nbulk++;
}

/* Leaf and body, in the batch's memory; false: there is no room for them. */
static bool item_make(struct merge_batch *batch, struct merge_item *item, const struct vf_slot *old)
{
	struct merger *merger = batch->pool->merger;
	const struct leaf_edit *edit = merger->edit;
	struct volume *volume = item->region->volume;
	uint32_t n = changes_make(merger, item, old);
	size_t len = sizeof(*item->body) + (n + 1) * sizeof(struct vf_change), used = batch->used;

	item->body = batch_alloc(batch, len);
	if (item->body && edit->nentries > 0)
		item->leaf = batch_alloc(batch, leaf_len(edit->nentries, volume->wide));
	if (!item->body || (edit->nentries > 0 && !item->leaf)) {
		batch->used = used;
		item->body = NULL;
		item->leaf = NULL;
		return false;
	}
	memset(item->body, 0, sizeof(*item->body));
	le64_put(&item->body->mapped, (uint64_t)edit->mapped);
	le32_put(&item->body->nchanges, n);
	memcpy(item->body->changes, merger->changes, n * sizeof(struct vf_change));
	if (!item->leaf)
		return true;
	leaf_edit_encode(edit, item->leaf, batch->pool->geometry.uuid, volume->id,
			 item->region->index, item->merged_seq, volume->wide);
	for (uint32_t i = 0; i < edit->nentries; i++)
		if (edit->entries[i].birth > item->max_birth)
			item->max_birth = edit->entries[i].birth;
	bulk_add(batch, item);
	return true;
}

/* 0, also when it has to wait for another batch or its leaf is damaged (body NULL);
 * -errno. */
static int item_prepare(struct merge_batch *batch, struct merge_item *item)
{
	struct region *region = item->region;
	struct pool *pool = batch->pool;
	struct cache_page *page = NULL;
	struct cache_key key = { .type = VF_LEAF,
				 .tree = region->volume->id,
				 .index = region->index };
	int rc = tree_get_wait(&region->volume->head, region->index, &key.slot);

	if (rc == -ENOENT)
		key.slot = (struct vf_slot){ .where = { { 0 } } };
	else if (!rc)
		rc = cache_get_wait(pool, &key, &page);
	if (rc == -EUCLEAN) {
		region->damaged = true;
		log_error("pool %s: volume %s: the map of its MiB %llu is damaged", pool->name,
			  region->volume->name, (unsigned long long)region->index);
		return 0;
	}
	if (rc && rc != -ENOENT)
		return rc;
	if (item_edit(pool->merger, item, page ? page->data : NULL, &key.slot))
		item_make(batch, item, &key.slot);
	if (page)
		cache_put(pool, page);
	return 0;
}

/* ---- naming the new leaves ---- */

static void item_settle(struct merge_batch *batch, struct merge_item *item, int err)
{
	assert(!item->settled);
	item->settled = true;
	if (err && !batch->err)
		batch->err = -err;
	batch->nsettled++;
	fiber_wake(batch->fiber);
}

static void post_apply(struct pool *pool, struct log_post *log_post, uint64_t seq, uint32_t index)
{
	struct merge_post *post = container_of(log_post, struct merge_post, post);
	struct merge_item *item = post->item;
	struct region *region = item->region;

	(void)index;
	leaf_at_apply(pool, &log_post->desc, log_post->body, seq);
	if (item->leaf) {
		struct cache_key key = { .slot = item->body->slot,
					 .type = VF_LEAF,
					 .tree = region->volume->id,
					 .index = region->index };

		cache_insert(pool, &key, item->leaf, le32_get(&item->leaf->head.len));
	}
	post->item = NULL;
	item_settle(post->batch, item, 0);
}

static void post_durable(struct pool *pool, struct log_post *log_post, int err)
{
	struct merge_post *post = container_of(log_post, struct merge_post, post);

	if (post->item)
		item_settle(post->batch, post->item, err < 0 ? -err : err);
	slab_put(pool->merger->posts, post);
}

/* Its leaf's address is known now. */
static uint32_t body_finish(struct merge_batch *batch, struct merge_item *item)
{
	struct vf_leaf_at *body = item->body;
	uint32_t n = le32_get(&body->nchanges);

	if (item->leaf) {
		const struct bulk_item *bulk = &batch->bulk[item->bulk];

		le64_put(&body->slot.where, vf_where(bulk->addr, bulk->stored));
		body->slot.hash = bulk->hash;
		le32_put(&body->slot.max_birth, item->max_birth);
		le64_put(&body->slot.merged_seq, item->merged_seq);
		n = change_add(body->changes, n, addr_segment(batch->pool, bulk->addr),
			       (int32_t)live_units(bulk->stored));
		le32_put(&body->nchanges, n);
	}
	return (uint32_t)(sizeof(*body) + n * sizeof(struct vf_change));
}

static bool item_post(struct merge_batch *batch, struct merge_item *item)
{
	struct pool *pool = batch->pool;
	struct merge_post *post = slab_get(pool->merger->posts);
	struct vf_desc *desc;

	if (!post)
		return false;
	*post = (struct merge_post){ .batch = batch, .item = item };
	desc = &post->post.desc;
	desc->type = VF_LEAF_AT;
	le32_put(&desc->volume, item->region->volume->id);
	le64_put(&desc->lba, item->region->index);
	le64_put(&desc->nsectors, item->merged_seq);
	le32_put(&desc->body_len, body_finish(batch, item));
	post->post.body = item->body;
	post->post.apply = post_apply;
	post->post.durable = post_durable;
	list_init(&post->post.link);
	batch->nposted++;
	log_post(pool, &post->post);
	return true;
}

/* Leaves are written and durable before the log names them. */
static int batch_name(struct merge_batch *batch)
{
	struct pool *pool = batch->pool;
	uint64_t failures = log_failures(pool);
	int rc = 0;

	if (batch->nbulk > 0)
		rc = bulk_write(pool, VF_M, batch->bulk, batch->nbulk, SEGMENT_FOR_MAP, 0);
	if (rc)
		return rc;
	if (batch->nbulk > 0 && !pool_mutant(pool, MUTANT_LEAF_BEFORE_PAGE))
		rc = log_flush_since(pool, failures);
	for (uint32_t i = 0; i < batch->n && !rc; i++)
		while (batch->items[i].body && !rc && !item_post(batch, &batch->items[i]))
			rc = log_wait_durable(pool, log_seq(pool));
	while (batch->nsettled < batch->nposted)
		fiber_wait();
	bulk_named(pool, batch->bulk, batch->nbulk);
	return rc ? rc : batch->err;
}

static void batch_end(struct merge_batch *batch)
{
	struct pool *pool = batch->pool;

	for (uint32_t i = 0; i < batch->n; i++) {
		struct merge_item *item = &batch->items[i];

		if (item->pinned)
			tree_unpin(&item->region->volume->head, item->region->index);
		item->region->merging = false;
		region_put(pool, item->region);
	}
	batch->n = 0;
	batch->generation++;
	fiber_queue_wake_all(&pool->merger->changed);
	merger_kick(pool);
}

/* Has the leaves that will be needed read at once. */
static void batch_prefetch(struct merge_batch *batch)
{
	for (uint32_t i = 0; i < batch->n; i++) {
		struct region *region = batch->items[i].region;
		struct cache_key key = { .type = VF_LEAF,
					 .tree = region->volume->id,
					 .index = region->index };
		enum tree_result result;
		struct cache_page *page;

		if (!batch->items[i].pinned ||
		    tree_get(&region->volume->head, region->index, &key.slot, NULL) != TREE_FOUND)
			continue;
		page = cache_get(batch->pool, &key, NULL, &result);
		if (page)
			cache_put(batch->pool, page);
	}
}

static uint32_t batch_bodies(const struct merge_batch *batch)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < batch->n; i++)
		n += batch->items[i].body != NULL;
	return n;
}

int merge_batch_run(struct merge_batch *batch)
{
	int rc = 0;

	batch->nbulk = batch->nsettled = batch->nposted = 0;
	batch->used = 0;
	batch->err = 0;
	for (uint32_t i = 0; i < batch->n && !rc; i++) {
		struct region *region = batch->items[i].region;

		rc = tree_pin(&region->volume->head, region->index);
		batch->items[i].pinned = rc == 0;
	}
	batch_prefetch(batch);
	for (uint32_t i = 0; i < batch->n && !rc; i++)
		rc = item_prepare(batch, &batch->items[i]);
	if (!rc && batch_bodies(batch) > 0)
		rc = batch_name(batch);
	batch_end(batch);
	return rc;
}

/* ---- taking effect ---- */

void leaf_at_apply(struct pool *pool, const struct vf_desc *desc, const struct vf_leaf_at *body,
		   uint64_t seq)
{
	struct volume *volume = volume_by_id(pool, le32_get(&desc->volume));
	uint64_t region = le64_get(&desc->lba);

	for (uint32_t i = 0; i < le32_get(&body->nchanges); i++)
		segment_change(pool, le32_get(&body->changes[i].segno),
			       (int32_t)le32_get(&body->changes[i].units), seq);
	if (!volume)
		return;
	tree_set(&volume->head, region, &body->slot, seq);
	region_merged(pool, volume, region, le64_get(&desc->nsectors));
	volume->dirty = true;
	if (seq > volume->applied_seq)
		volume->mapped += le64_get(&body->mapped);
}

void dir_at_apply(struct pool *pool, const struct vf_desc *desc, const struct vf_dir_at *body,
		  uint64_t seq)
{
	struct volume *volume = volume_by_id(pool, le32_get(&desc->volume));

	for (size_t i = 0; i < ARRAY_LEN(body->changes); i++)
		if (le32_get(&body->changes[i].segno) != 0)
			segment_change(pool, le32_get(&body->changes[i].segno),
				       (int32_t)le32_get(&body->changes[i].units), seq);
	if (!volume || (volume->head.level == 1 && seq <= volume->applied_seq))
		return;
	tree_moved(&volume->head, le64_get(&desc->lba), &body->slot, le64_get(&desc->nsectors),
		   seq);
	volume->dirty = true;
}
