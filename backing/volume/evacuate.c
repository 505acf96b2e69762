#include "backing/volume/evacuate.h"

#include <stdlib.h>
#include <string.h>

#include "backing/volume/bulk.h"
#include "backing/volume/io.h"
#include "backing/volume/log.h"
#include "backing/volume/merge.h"
#include "backing/volume/region.h"
#include "backing/volume/segment.h"
#include "backing/volume/volumes.h"
#include "backing/volume/walk.h"

#define MOVES_MAX  1024 /* until they are flushed and posted */
#define BATCH_MAX  256	/* records that are copied by one write */
#define WINDOW_MIN (512u << 10)

/* A record that was copied; its MOVE. */
struct move {
	struct log_post post;
	struct vf_move body;
	struct evacuation *evacuation;
	struct region *region; /* held until the MOVE is laid out */
};

struct evacuation {
	struct pool *pool;
	struct walk *walk;
	uint8_t *window; /* what was read of the segment */
	uint32_t window_len;
	/* The records that are to be read with one window. */
	struct bulk_item *batch;
	uint8_t (*digests)[32];
	uint32_t nbatch;
	uint64_t from, to; /* units, of the batch */
	/* What was copied and is not named yet; moves[i] is about items[i]. */
	struct bulk_item *items;
	struct move *moves;
	uint32_t nmoves;
	uint64_t failures; /* log_failures() before the first of them */
	uint32_t npending; /* posted, not durable */
	int post_err;
	struct fiber *waiting;
	bool damaged;
};

struct evacuation *evacuation_open(struct pool *pool)
{
	struct evacuation *e = calloc(1, sizeof(*e));
	uint32_t record_max = vf_record_len_max(pool->geometry.segment_len) + 2 * VF_BLOCK;

	if (!e)
		return NULL;
	e->pool = pool;
	e->window_len = record_max > WINDOW_MIN ? record_max : WINDOW_MIN;
	e->walk = walk_open(pool);
	e->window = aligned_alloc(VF_BLOCK, e->window_len);
	e->batch = calloc(BATCH_MAX, sizeof(*e->batch));
	e->digests = calloc(BATCH_MAX, sizeof(*e->digests));
	e->items = calloc(MOVES_MAX, sizeof(*e->items));
	e->moves = calloc(MOVES_MAX, sizeof(*e->moves));
	if (!e->walk || !e->window || !e->batch || !e->digests || !e->items || !e->moves) {
		evacuation_close(e);
		return NULL;
	}
	return e;
}

void evacuation_close(struct evacuation *e)
{
	if (!e)
		return;
	walk_close(e->walk);
	free(e->window);
	free(e->batch);
	free(e->digests);
	free(e->items);
	free(e->moves);
	free(e);
}

/* ---- naming ---- */

static void move_apply(struct pool *pool, struct log_post *post, uint64_t seq, uint32_t index)
{
	struct move *move = container_of(post, struct move, post);
	struct delta delta = {
		.seq = seq,
		.index = index,
		.type = VF_MOVE,
		.entry = {
			.addr = le64_get(&post->desc.nsectors),
			.start = (uint16_t)(le64_get(&post->desc.lba) % VF_REGION_SECTORS),
			.stored = (uint16_t)le32_get(&post->desc.stored),
			.check = { le64_get(&post->desc.check) },
		},
		.moved_to = le64_get(&move->body.addr),
	};

	region_add(pool, move->region, &delta, 0);
	move->region->holds--;
	region_put(pool, move->region);
	move->region = NULL;
}

static void move_durable(struct pool *pool, struct log_post *post, int err)
{
	struct move *move = container_of(post, struct move, post);
	struct evacuation *e = move->evacuation;

	(void)pool;
	if (move->region) { /* never laid out: the pool is fenced */
		move->region->holds--;
		region_put(e->pool, move->region);
		move->region = NULL;
	}
	if (err)
		e->post_err = err;
	if (--e->npending == 0 && e->waiting)
		fiber_wake(e->waiting);
}

/* The region stays in memory until the MOVE is laid out, which must not wait. */
static int hold_region(struct evacuation *e, struct move *move)
{
	struct pool *pool = e->pool;
	struct volume *volume = volume_by_id(pool, le32_get(&move->post.desc.volume));
	uint64_t index = le64_get(&move->post.desc.lba) / VF_REGION_SECTORS;

	if (!volume || volume->deleting)
		return -ENOENT;
	for (;;) {
		int rc;

		move->region = region_get(pool, volume, index);
		if (move->region) {
			move->region->holds++;
			return 0;
		}
		rc = merge_until(pool, log_durable(pool));
		if (rc)
			return rc;
		if (volume_by_id(pool, le32_get(&move->post.desc.volume)) != volume)
			return -ENOENT;
	}
}

static int post_moves(struct evacuation *e)
{
	struct pool *pool = e->pool;
	int rc = 0;

	e->post_err = 0;
	for (uint32_t i = 0; i < e->nmoves && !rc; i++) {
		struct move *move = &e->moves[i];

		rc = hold_region(e, move);
		if (rc == -ENOENT) { /* deleted meanwhile: the copy is never named */
			rc = 0;
			continue;
		}
		if (rc)
			break;
		e->npending++;
		log_post(pool, &move->post);
	}
	e->waiting = fiber_self();
	if (e->npending)
		log_cut(pool);
	while (e->npending) {
		if (!rc)
			rc = log_wait_durable(pool, log_seq(pool));
		if (e->npending)
			fiber_wait();
	}
	e->waiting = NULL;
	return rc ? rc : e->post_err;
}

int evacuation_finish(struct evacuation *e)
{
	struct pool *pool = e->pool;
	int rc = 0;

	if (e->nmoves == 0)
		return 0;
	if (!pool_mutant(pool, MUTANT_MOVE_BEFORE_DATA))
		rc = log_flush_since(pool, e->failures);
	if (!rc)
		rc = post_moves(e);
	bulk_named(pool, e->items, e->nmoves);
	e->nmoves = 0;
	return rc;
}

/* ---- copying ---- */

static void move_of(struct evacuation *e, const struct bulk_item *copied, uint64_t old)
{
	struct move *move = &e->moves[e->nmoves];

	e->items[e->nmoves++] = *copied;
	*move = (struct move){ .evacuation = e };
	move->post.desc.type = VF_MOVE;
	move->post.desc.volume = copied->desc.volume;
	move->post.desc.lba = copied->desc.lba;
	le64_put(&move->post.desc.nsectors, old);
	le32_put(&move->post.desc.stored, copied->stored);
	move->post.desc.birth = copied->desc.birth;
	le32_put(&move->post.desc.body_len, sizeof(move->body));
	move->post.desc.check = copied->desc.check;
	move->post.body = &move->body;
	move->post.apply = move_apply;
	move->post.durable = move_durable;
	list_init(&move->post.link);
	le64_put(&move->body.addr, copied->addr);
}

/* Is the record what its descriptor says?  What is not must not be copied. */
static bool record_verified(struct evacuation *e, struct bulk_item *item)
{
	const struct vf_desc *desc = &item->desc;
	bool wide = desc->flags & VF_DESC_WIDE;
	uint64_t check[3];
	uint8_t digest[32];

	vf_record_sum(e->pool->super.salt, le32_get(&desc->volume), le64_get(&desc->lba),
		      item->data, item->len, wide, check, wide ? digest : NULL);
	if (pool_mutant(e->pool, MUTANT_MOVE_UNVERIFIED)) {
		le64_put(&item->desc.check, check[0]);
		if (wide)
			memcpy(item->digest, digest, sizeof(digest));
		return true;
	}
	return check[0] == le64_get(&desc->check) &&
	       (!wide || memcmp(digest, item->digest, sizeof(digest)) == 0);
}

static int read_window(struct evacuation *e, uint64_t *base)
{
	uint64_t from = e->from * VF_UNIT / VF_BLOCK * VF_BLOCK;
	uint64_t to = (e->to * VF_UNIT + VF_BLOCK - 1) / VF_BLOCK * VF_BLOCK;

	assert(to - from <= e->window_len);
	*base = from;
	return vdev_do(e->pool->env, VDEV_READ, from, e->window, to - from);
}

/* Reads the batch, writes those that are right to the stream, notes their MOVEs. */
static int copy_batch(struct evacuation *e)
{
	enum vf_stream stream = walk_stream(e->walk) == VF_W ? VF_G1 : VF_G2;
	uint64_t base, old[BATCH_MAX];
	uint32_t n = 0;
	int rc;

	if (e->nbatch == 0)
		return 0;
	if (e->nmoves + e->nbatch > MOVES_MAX) {
		rc = evacuation_finish(e);
		if (rc)
			return rc;
	}
	rc = read_window(e, &base);
	if (rc)
		return rc;
	for (uint32_t i = 0; i < e->nbatch; i++) {
		struct bulk_item item = e->batch[i];

		item.data = e->window + (item.addr * VF_UNIT - base);
		if (!record_verified(e, &item)) {
			e->damaged = true;
			continue;
		}
		old[n] = item.addr;
		e->batch[n++] = item;
	}
	e->nbatch = 0;
	if (n == 0)
		return 0;
	if (e->nmoves == 0)
		e->failures = log_failures(e->pool);
	rc = bulk_write(e->pool, stream, e->batch, n, SEGMENT_FOR_CLEANING, 0);
	if (rc)
		return rc;
	for (uint32_t i = 0; i < n; i++) {
		e->pool->counters.moved_bytes += e->batch[i].len;
		move_of(e, &e->batch[i], old[i]);
	}
	return 0;
}

/* A DATA: into the batch when some entry names it. */
static int take_record(struct evacuation *e, const struct walk_desc *found)
{
	const struct vf_desc *desc = found->desc;
	struct volume *volume = volume_by_id(e->pool, le32_get(&desc->volume));
	uint32_t stored = le32_get(&desc->stored);
	struct bulk_item item = { .desc = *desc, .addr = found->addr, .len = stored * VF_UNIT };
	uint8_t digest[32] = { 0 };
	bool named = false;
	int rc;

	if (!volume || volume->deleting)
		return 0;
	if (found->digest)
		memcpy(digest, found->digest, sizeof(digest));
	rc = region_names(e->pool, volume, le64_get(&item.desc.lba) / VF_REGION_SECTORS, item.addr,
			  le64_get(&item.desc.check), &named);
	if (rc || !named)
		return rc;
	if (e->nbatch == BATCH_MAX ||
	    (e->nbatch && (item.addr < e->from ||
			   (item.addr + stored - e->from) * VF_UNIT > e->window_len - VF_BLOCK))) {
		rc = copy_batch(e);
		if (rc)
			return rc;
	}
	if (e->nbatch == 0)
		e->from = item.addr;
	e->to = item.addr + stored;
	memcpy(e->digests[e->nbatch], digest, sizeof(digest));
	item.digest = found->digest ? e->digests[e->nbatch] : NULL;
	e->batch[e->nbatch++] = item;
	return 0;
}

/* A map page: written anew elsewhere, if it is still the one in force. */
static int leave_page(struct evacuation *e, const struct walk_desc *found)
{
	struct pool *pool = e->pool;
	uint64_t kind = le64_get(&found->desc->nsectors), index = le64_get(&found->desc->lba);
	uint32_t id = le32_get(&found->desc->volume);
	struct volume *volume = volume_by_id(pool, id);
	struct tree *tree = id == VF_TREE_SEGTAB   ? segments_tree(pool)
			    : id == VF_TREE_VOLTAB ? volumes_tree(pool)
			    : volume		   ? &volume->head
						   : NULL;
	struct vf_slot slot;
	int rc;

	if (!tree || (volume && volume->deleting))
		return 0;
	if (kind >> 8 == VF_DIR)
		return tree_touch(tree, (uint8_t)kind, index, found->addr);
	rc = tree_get_wait(tree, index, &slot);
	if (rc == -ENOENT)
		return 0;
	if (rc || vf_where_addr(le64_get(&slot.where)) != found->addr)
		return rc;
	switch (kind >> 8) {
	case VF_LEAF: return merge_rewrite(pool, volume, index);
	case VF_SEGTAB: segments_touch(pool, index); break;
	case VF_VOLUME:
		volume = volume_by_id(pool, (uint32_t)index);
		if (volume)
			volume->dirty = true;
		break;
	}
	return 0;
}

int evacuate(struct evacuation *e, uint32_t segno)
{
	struct walk_desc found;
	int rc = walk_begin(e->walk, segno);

	e->damaged = false;
	e->nbatch = 0;
	while (!rc) {
		rc = walk_next(e->walk, &found);
		if (rc <= 0)
			break;
		rc = found.desc->type == VF_DATA   ? take_record(e, &found)
		     : found.desc->type == VF_PAGE ? leave_page(e, &found)
						   : 0;
	}
	if (!rc)
		rc = copy_batch(e);
	e->nbatch = 0;
	if (rc == -ENOENT)
		rc = -EUCLEAN;
	return rc ? rc : e->damaged ? -EUCLEAN : 0;
}
