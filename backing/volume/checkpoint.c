#include "backing/volume/checkpoint.h"

#include <stdlib.h>
#include <string.h>

#include "backing/volume/bulk.h"
#include "backing/volume/log.h"
#include "backing/volume/merge.h"
#include "backing/volume/region.h"
#include "backing/volume/segtab.h"
#include "backing/volume/super.h"
#include "backing/volume/volumes.h"

#define PERIOD_NS	    30000000000ull
#define WINDOW_MAX	    (4ull << 30) /* bytes */
#define WINDOW_SEGMENTS_MIN 4u

/* What the checkpoint's own pages do to a segment. */
struct page_change {
	uint32_t segno;
	int32_t units;
	bool born;
};

struct checkpointer {
	struct pool *pool;
	uint64_t number;
	uint64_t replay[2]; /* of the newest and the older one */
	uint64_t begun, ended;
	int rc;		      /* of the one that ended last */
	uint64_t next_ns;     /* when the next one is due */
	uint64_t window_left; /* bytes to be replayed, when the last one had ended */
	uint64_t user_bytes;  /* counters.user_bytes when the last one was begun by itself */
	bool running, background, wanted, stopping;
	bool naming;		    /* the superblock is changed */
	uint64_t failures;	    /* log_failures() when the one that runs began */
	struct fiber_queue changed; /* one has ended */
	/* Since the root that was written last; those that are born are pinned. */
	struct page_change *changes;
	uint32_t nchanges, room;
	bool changes_lost; /* there was no memory: no root may be written */
	bool root_dies;	   /* the root before is on the list already */
};

int checkpointer_open(struct pool *pool, struct err *err)
{
	struct checkpointer *cp = calloc(1, sizeof(*cp));

	if (!cp)
		return err_set(err, ENOMEM, "no memory");
	cp->pool = pool;
	fiber_queue_init(&cp->changed);
	cp->next_ns = pool->env->ops->now_ns(pool->env) + PERIOD_NS;
	pool->checkpointer = cp;
	return 0;
}

void checkpointer_close(struct pool *pool)
{
	if (!pool->checkpointer)
		return;
	free(pool->checkpointer->changes);
	free(pool->checkpointer);
	pool->checkpointer = NULL;
}

uint64_t checkpoint_replay(const struct pool *pool)
{
	return pool->checkpointer->replay[0];
}

uint64_t checkpoint_older_replay(const struct pool *pool)
{
	return pool->checkpointer ? pool->checkpointer->replay[1] : 0;
}

bool checkpoint_naming(const struct pool *pool)
{
	return pool->checkpointer && pool->checkpointer->naming;
}

uint64_t checkpoint_number(const struct pool *pool)
{
	return pool->checkpointer->number;
}

uint64_t checkpoint_window(const struct pool *pool)
{
	uint64_t window = pool->geometry.segment_len * pool->geometry.nsegments / 100;
	uint64_t least = (uint64_t)WINDOW_SEGMENTS_MIN * pool->geometry.segment_len;

	if (window > WINDOW_MAX)
		window = WINDOW_MAX;
	return window < least ? least : window;
}

/* ---- its own pages ---- */

static bool change_note(struct checkpointer *cp, uint64_t addr, uint32_t stored, bool born)
{
	struct page_change *change;
	int32_t units = (int32_t)live_units(stored);

	if (cp->nchanges == cp->room) {
		uint32_t room = cp->room ? 2 * cp->room : 256;
		void *p = realloc(cp->changes, room * sizeof(*cp->changes));

		if (!p)
			return false;
		cp->changes = p;
		cp->room = room;
	}
	change = &cp->changes[cp->nchanges++];
	*change = (struct page_change){ addr_segment(cp->pool, addr), born ? units : -units, born };
	return true;
}

void checkpoint_change(struct pool *pool, uint64_t addr, uint32_t stored, bool born)
{
	if (!change_note(pool->checkpointer, addr, stored, born))
		pool->checkpointer->changes_lost = true;
}

static int by_segment(const void *va, const void *vb)
{
	const struct page_change *a = va, *b = vb;

	return a->segno < b->segno ? -1 : a->segno > b->segno;
}

/* The list as the root has it: one change a segment; in it, kill_seq where
 * something died. */
static uint32_t changes_encode(struct checkpointer *cp, struct vf_root_change *out, uint64_t seq)
{
	uint32_t n = 0;

	qsort(cp->changes, cp->nchanges, sizeof(*cp->changes), by_segment);
	for (uint32_t i = 0; i < cp->nchanges;) {
		uint32_t segno = cp->changes[i].segno;
		int32_t units = 0;
		bool died = false;

		for (; i < cp->nchanges && cp->changes[i].segno == segno; i++) {
			units += cp->changes[i].units;
			died |= !cp->changes[i].born;
		}
		le32_put(&out[n].segno, segno);
		le32_put(&out[n].units, (uint32_t)units);
		le64_put(&out[n].kill_seq, died ? seq : 0);
		n++;
	}
	return n;
}

/* They take effect in memory, from a root that was written or read. */
static void changes_apply(struct pool *pool, const struct vf_root *root)
{
	for (uint32_t i = 0; i < le32_get(&root->nchanges); i++) {
		uint32_t segno = le32_get(&root->changes[i].segno);
		uint64_t kill_seq = le64_get(&root->changes[i].kill_seq);
		struct segment *segment = segment_at(pool, segno);

		/* The recovery's table may be older than the page's birth. */
		if (segment->state == SEGMENT_FREE) {
			segment->state = SEGMENT_SEALED;
			segment->stream = VF_M;
		}
		if (kill_seq > segment->kill_seq)
			segment->kill_seq = kill_seq;
		segment_count(pool, segno, (int32_t)le32_get(&root->changes[i].units));
	}
}

static void changes_forget(struct checkpointer *cp)
{
	for (uint32_t i = 0; i < cp->nchanges; i++)
		if (cp->changes[i].born)
			segment_unpin(cp->pool, cp->changes[i].segno);
	cp->nchanges = 0;
	cp->root_dies = false;
}

/* The copies of a root are not in its own list: who names them is a superblock. */
static void root_counts(struct pool *pool, const struct vf_ptr copies[2])
{
	for (int i = 0; i < 2; i++) {
		uint64_t addr = le64_get(&copies[i].addr);
		uint32_t segno = addr_segment(pool, addr);
		struct segment *segment;

		if (addr == 0)
			continue;
		segment = segment_at(pool, segno);
		if (segment->state == SEGMENT_FREE) {
			segment->state = SEGMENT_SEALED;
			segment->stream = VF_M;
		}
		segment_count(pool, segno, (int32_t)live_units(le32_get(&copies[i].stored)));
	}
}

int checkpoint_load(struct pool *pool, const struct vf_root *root, struct err *err)
{
	struct checkpointer *cp = pool->checkpointer;

	(void)err;
	cp->number = le64_get(&root->number);
	cp->replay[0] = le64_get(&root->replay.seq);
	changes_apply(pool, root);
	root_counts(pool, pool->super.root[0]);
	return 0;
}

void checkpoint_loaded_older(struct pool *pool, uint64_t replay_seq)
{
	pool->checkpointer->replay[1] = replay_seq;
}

/* ---- one checkpoint ---- */

/* Another program has opened the pool: what it wrote must not be written over. */
static int foreign_fence(struct pool *pool)
{
	struct vf_super *now = aligned_alloc(VF_BLOCK, sizeof(*now));
	bool read_only;
	int rc;

	if (!now)
		return -ENOMEM;
	rc = super_read(pool->env, now, &read_only, NULL);
	if (rc || le64_get(&now->generation) != le64_get(&pool->super.generation)) {
		pool_fence(pool, rc ? "its superblocks cannot be read any more"
				    : "somebody else has opened it");
		rc = -EROFS;
	}
	free(now);
	return rc;
}

/* All pages; *applied: the newest seq that one of them has. */
static int pages_write(struct pool *pool, struct vf_root *root, uint64_t *applied)
{
	int rc = volumes_checkpoint(pool, &root->voltab, applied);

	return rc ? rc : segtab_checkpoint(pool, &root->segtab, applied);
}

static void root_name(struct vf_ptr *ptr, const struct bulk_item *item)
{
	memset(ptr, 0, sizeof(*ptr));
	le64_put(&ptr->addr, item->addr);
	le32_put(&ptr->stored, item->stored);
	ptr->hash = item->hash;
}

/* Two copies in different segments, pinned. */
static int root_write(struct pool *pool, const struct vf_root *root, struct vf_ptr copies[2])
{
	struct bulk_item items[2] = { { .data = root, .len = le32_get(&root->head.len) } };
	int rc;

	items[0].desc.type = VF_PAGE;
	le64_put(&items[0].desc.lba, le64_get(&root->number));
	le64_put(&items[0].desc.nsectors, (uint64_t)VF_ROOT << 8);
	items[1] = items[0];
	rc = bulk_write(pool, VF_M, &items[0], 1, SEGMENT_FOR_MAP, 0);
	if (rc)
		return rc;
	rc = bulk_write(pool, VF_M, &items[1], 1, SEGMENT_FOR_MAP,
			addr_segment(pool, items[0].addr));
	if (rc) {
		bulk_named(pool, &items[0], 1);
		return rc;
	}
	root_name(&copies[0], &items[0]);
	root_name(&copies[1], &items[1]);
	return 0;
}

/* From here on the superblock names the root, durably. */
static int super_name(struct pool *pool, const struct vf_ptr copies[2], uint64_t applied)
{
	struct vf_super *super = &pool->super;
	struct vf_super before;
	uint64_t failures = pool->checkpointer->failures;
	int rc = pool_mutant(pool, MUTANT_ROOT_UNFLUSHED) ? 0 : log_flush_since(pool, failures);

	if (rc) {
		pool_fence(pool, "a write or flush failed during a checkpoint");
		return rc;
	}
	before = *super;
	pool->checkpointer->naming = true;
	le64_put(&super->generation, le64_get(&super->generation) + 1);
	memcpy(super->root[1], super->root[0], sizeof(super->root[1]));
	super->root_seq[1] = super->root_seq[0];
	memcpy(super->root[0], copies, sizeof(super->root[0]));
	le64_put(&super->root_seq[0], applied);
	le64_put(&super->durable_seq, log_durable(pool));
	rc = super_write(pool->env, super);
	if (rc)
		log_doubt(pool, "a superblock could not be written");
	else
		rc = log_flush(pool);
	pool->checkpointer->naming = false;
	if (rc) {
		/* The one that the log writes as it begins anew names the former roots
		 * again; either is whole. */
		memcpy(super->root, before.root, sizeof(super->root));
		memcpy(super->root_seq, before.root_seq, sizeof(super->root_seq));
		log_kick(pool);
	}
	return rc;
}

static void root_unpin(struct pool *pool, const struct vf_ptr copies[2])
{
	for (int i = 0; i < 2; i++)
		segment_unpin(pool, addr_segment(pool, le64_get(&copies[i].addr)));
}

/* The root, made of all that was written before; seq: its own group. */
static struct vf_root *root_make(struct checkpointer *cp, const struct vf_root *from,
				 uint64_t applied, uint64_t seq)
{
	struct pool *pool = cp->pool;
	struct vf_root *root;
	uint32_t len;

	/* The root before this one dies too, kept as it is while it is the older one:
	 * its replay position is before seq. */
	for (int i = 0; i < 2 && !cp->root_dies; i++) {
		const struct vf_ptr *ptr = &pool->super.root[0][i];

		if (le64_get(&ptr->addr))
			checkpoint_change(pool, le64_get(&ptr->addr), le32_get(&ptr->stored),
					  false);
	}
	cp->root_dies = true;
	root = calloc(1, sizeof(*root) + cp->nchanges * sizeof(root->changes[0]));
	if (!root || cp->changes_lost) {
		free(root);
		return NULL;
	}
	*root = *from;
	le64_put(&root->number, cp->number + 1);
	le64_put(&root->applied_seq, applied);
	le32_put(&root->epoch, pool->epoch);
	le32_put(&root->next_volume, volumes_next_id(pool));
	le32_put(&root->incarnation, pool->incarnation);
	le64_put(&root->bulk_bytes, pool->counters.bulk_map_bytes);
	le32_put(&root->nchanges, changes_encode(cp, root->changes, seq));
	len = (uint32_t)(sizeof(*root) + le32_get(&root->nchanges) * sizeof(root->changes[0]));
	vf_seal(root, VF_ROOT, len, pool->geometry.uuid);
	return root;
}

static int root_finish(struct checkpointer *cp, const struct vf_root *from, uint64_t applied,
		       uint64_t seq)
{
	struct pool *pool = cp->pool;
	struct vf_ptr copies[2];
	struct vf_root *root = root_make(cp, from, applied, seq);
	int rc;

	if (!root)
		return -ENOMEM;
	rc = root_write(pool, root, copies);
	if (!rc) {
		rc = super_name(pool, copies, applied);
		if (!rc) {
			changes_apply(pool, root);
			root_counts(pool, copies);
			changes_forget(cp);
			cp->number++;
			cp->replay[1] = cp->replay[0];
			cp->replay[0] = le64_get(&root->replay.seq);
		}
		root_unpin(pool, copies);
	}
	free(root);
	return rc;
}

static int checkpoint_once(struct checkpointer *cp)
{
	struct pool *pool = cp->pool;
	struct vf_root from;
	uint64_t replay = regions_oldest(pool), seq, applied;
	int rc;

	if (pool->read_only)
		return -EROFS;
	if (pool_mutant(pool, MUTANT_REPLAY_LATE))
		replay = log_seq(pool) + 1;
	memset(&from, 0, sizeof(from));
	pool->segments->changed = false;
	cp->failures = log_failures(pool);
	/* A group of its own: seqs rise from one checkpoint to the next, so that what
	 * this one kills is not before the replay position of the one before. */
	seq = log_cut(pool);
	rc = log_wait_durable(pool, seq);
	if (!rc)
		rc = foreign_fence(pool);
	if (rc)
		return rc;
	log_place(pool, replay, &from.replay);
	applied = seq;
	rc = pages_write(pool, &from, &applied);
	if (!rc && !pool_mutant(pool, MUTANT_CHECKPOINT_EARLY))
		rc = log_wait_durable(pool, applied);
	/* Pages that count as written may be lost, and counts may be of groups that were
	 * written elsewhere since: nothing says which. */
	if (log_failures(pool) != cp->failures)
		pool_fence(pool, "a write or flush failed during a checkpoint");
	if (!rc)
		rc = root_finish(cp, &from, applied, seq);
	if (rc)
		return rc;
	log_forget(pool, cp->replay[1]);
	segments_recount(pool);
	return 0;
}

int checkpoint_run(struct pool *pool)
{
	struct checkpointer *cp = pool->checkpointer;
	uint64_t wanted = cp->begun + 1;

	while (cp->running)
		fiber_queue_wait(&cp->changed);
	if (cp->ended >= wanted)
		return cp->rc;
	cp->running = true;
	cp->begun++;
	cp->wanted = false;
	cp->rc = checkpoint_once(cp);
	cp->next_ns = pool->env->ops->now_ns(pool->env) + PERIOD_NS;
	cp->window_left = log_window(pool, cp->replay[0]);
	cp->ended = cp->begun;
	cp->running = false;
	fiber_queue_wake_all(&cp->changed);
	return cp->rc;
}

/* ---- by itself ---- */

/* The window is half used: the older half of what is in no leaf is merged. */
static int window_shorten(struct pool *pool)
{
	uint64_t oldest = regions_oldest(pool), durable = log_durable(pool);

	if (log_window(pool, oldest) < checkpoint_window(pool) / 2 || oldest > durable)
		return 0;
	return merge_until(pool, oldest + (durable - oldest) / 2);
}

/* Nobody wrote for a period: what was overwritten or trimmed is to be free, and
 * a recovery short. */
static bool idle(const struct checkpointer *cp)
{
	return cp->pool->counters.user_bytes == cp->user_bytes;
}

/* Something that died is not free yet: that takes both checkpoints behind it. */
static bool dead_waits(const struct checkpointer *cp)
{
	return cp->replay[1] < cp->pool->segments->killed_seq;
}

static void background(void *arg)
{
	struct checkpointer *cp = arg;
	struct pool *pool = cp->pool;
	bool resting = idle(cp);
	int rc = resting ? merge_until(pool, log_durable(pool)) : window_shorten(pool);

	cp->user_bytes = pool->counters.user_bytes;
	if ((!rc || rc == -EUCLEAN) && !cp->stopping)
		rc = checkpoint_run(pool);
	if (!rc && resting && dead_waits(cp) && !cp->stopping)
		(void)checkpoint_run(pool);
	cp->background = false;
	fiber_queue_wake_all(&cp->changed);
}

/*
 * The window is half used, and a quarter of it since the last one: where merges
 * cannot get on, checkpoints alone would only write the more.
 */
static bool window_used(const struct checkpointer *cp)
{
	uint64_t window = checkpoint_window(cp->pool);
	uint64_t used = log_window(cp->pool, cp->replay[0]);

	return used > window / 2 && used > cp->window_left + window / 4;
}

static bool due(const struct checkpointer *cp)
{
	struct pool *pool = cp->pool;

	if (cp->wanted || window_used(cp))
		return true;
	if (pool->env->ops->now_ns(pool->env) < cp->next_ns)
		return false;
	return pool->segments->changed ||
	       (idle(cp) && (regions_oldest(pool) <= log_durable(pool) || dead_waits(cp)));
}

void checkpointer_tick(struct pool *pool)
{
	struct checkpointer *cp = pool->checkpointer;

	if (cp->background || cp->running || cp->stopping || pool->closing || pool->read_only ||
	    pool->recovering || !due(cp))
		return;
	cp->background = fiber_start(pool->fibers, background, cp);
}

void checkpoint_want(struct pool *pool)
{
	pool->checkpointer->wanted = true;
	checkpointer_tick(pool);
}

void checkpointer_stop(struct pool *pool)
{
	struct checkpointer *cp = pool->checkpointer;

	cp->stopping = true;
	while (cp->running || cp->background)
		fiber_queue_wait(&cp->changed);
	cp->stopping = false;
}
