/*
 * Recovery: from the newest checkpoint whose pages verify, through the log to its
 * end, into the pool's next life.  VOLUME format, "Recovery", says why each step
 * is where it is.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backing/volume/checkpoint.h"
#include "backing/volume/credit.h"
#include "backing/volume/io.h"
#include "backing/volume/log.h"
#include "backing/volume/logwalk.h"
#include "backing/volume/replay.h"
#include "backing/volume/segtab.h"
#include "backing/volume/super.h"
#include "backing/volume/volumes.h"

/* ---- the checkpoint ---- */

/* One copy of a root; NULL: it cannot be had or is not what its pointer says. */
static struct vf_root *root_read(struct pool *pool, const struct vf_ptr *ptr)
{
	uint64_t addr = le64_get(&ptr->addr), at = addr * VF_UNIT;
	uint64_t len = (uint64_t)le32_get(&ptr->stored) * VF_UNIT;
	uint64_t from = at / VF_BLOCK * VF_BLOCK;
	uint64_t to = (at + len + VF_BLOCK - 1) / VF_BLOCK * VF_BLOCK;
	struct vf_root *root = NULL;
	struct vf_hash hash;
	uint8_t *buf;

	if (addr == 0 || len == 0 || to > pool->geometry.nsegments * pool->geometry.segment_len)
		return NULL;
	buf = aligned_alloc(VF_BLOCK, to - from);
	if (!buf || vdev_do(pool->env, VDEV_READ, from, buf, to - from))
		goto out;
	hash = vf_hash(buf + (at - from), len);
	if (!vf_hash_equal(&hash, &ptr->hash) ||
	    !vf_root_check((const struct vf_root *)(buf + (at - from)), (uint32_t)len,
			   &pool->geometry))
		goto out;
	root = malloc(len);
	if (root)
		memcpy(root, buf + (at - from), len);
out:
	free(buf);
	return root;
}

static struct vf_root *root_of(struct pool *pool, int which)
{
	struct vf_root *root = root_read(pool, &pool->super.root[which][0]);

	return root ? root : root_read(pool, &pool->super.root[which][1]);
}

static int tables_load(struct pool *pool, const struct vf_root *root, struct err *err)
{
	int rc = segments_load(pool, &root->segtab, err);

	if (!rc)
		rc = volumes_load(pool, &root->voltab, err);
	if (!rc)
		rc = checkpoint_load(pool, root, err);
	if (!rc) {
		volumes_set_next(pool, le32_get(&root->next_volume));
		pool->epoch = le32_get(&root->epoch);
	}
	return rc;
}

/*
 * Loads the newest checkpoint that verifies.  The segments of the older one and
 * its log are kept as long as it is kept, so it does as well.
 */
static int checkpoint_find(struct pool *pool, struct vf_place *replay, struct err *err)
{
	struct err first;
	int rc = -EUCLEAN;

	err_set(&first, EUCLEAN, "neither of its checkpoints can be read");
	for (int which = 0; which < 2 && rc; which++) {
		struct vf_root *root = root_of(pool, which), *older;

		if (!root)
			continue;
		if (which > 0) { /* what the damaged one brought goes again */
			pool_parts_close(pool);
			rc = pool_parts_open(pool, err);
			if (rc) {
				free(root);
				return rc;
			}
			memcpy(pool->super.root[0], pool->super.root[1],
			       sizeof(pool->super.root[0]));
			memset(pool->super.root[1], 0, sizeof(pool->super.root[1]));
		}
		rc = tables_load(pool, root, which == 0 ? &first : err);
		if (!rc) {
			*replay = root->replay;
			older = which == 0 ? root_of(pool, 1) : NULL;
			/* Not known: nothing is reused until there are two again. */
			checkpoint_loaded_older(pool, older ? le64_get(&older->replay.seq) : 0);
			free(older);
			if (which > 0 && !pool->quiet)
				log_warning("pool %s: its newest checkpoint is damaged (%s); the "
					    "older one is used",
					    pool->name, first.text);
		}
		free(root);
	}
	if (rc && first.text[0])
		*err = first;
	return rc;
}

/* ---- the log ---- */

/* A segment of the log up to seq: one without a group leads to the next one all the
 * same, and is no more free than it. */
static void segment_passed(struct pool *pool, uint32_t segno, uint64_t seq)
{
	struct segment *segment = segment_at(pool, segno);

	segment->stream = VF_W;
	segment->state = SEGMENT_OPEN;
	segment_seal(pool, segno, seq);
}

static int replay_log(struct pool *pool, struct logwalk *walk, struct err *err)
{
	struct logwalk_group group;
	uint64_t nbad = 0;
	int rc;

	while ((rc = logwalk_next(walk, &group)) == 1) {
		log_replayed(pool, &group.place, group.nblocks);
		segment_passed(pool, group.segno, le64_get(&group.place.seq));
		rc = replay_group(pool, &group);
		if (rc)
			return err_set(err, -rc, "replaying group %" PRIu64 " of the log: %s",
				       le64_get(&group.place.seq), strerror(-rc));
		nbad += group.nbad;
	}
	if (rc)
		return err_set(err, -rc, "its log cannot be read: %s", strerror(-rc));
	if (nbad && !pool->quiet)
		log_error("pool %s: %" PRIu64 " records in the log are damaged; reading them fails",
			  pool->name, nbad);
	return 0;
}

/* ---- the next life ---- */

/* A higher incarnation, and where the former one ended, durably in both areas
 * before anything else is written. */
static int bump(struct pool *pool, const struct logwalk_end *end, struct err *err)
{
	uint32_t incarnation = le32_get(&pool->super.incarnation);
	int rc;

	if (end->incarnation > incarnation)
		incarnation = end->incarnation;
	pool->incarnation = incarnation + 1;
	if (pool_mutant(pool, MUTANT_NO_INCARNATION))
		pool->incarnation = incarnation;
	le32_put(&pool->super.incarnation, pool->incarnation);
	pool->super.end = end->next;
	le64_put(&pool->super.durable_seq, le64_get(&end->next.seq) - 1);
	/* What was read may be in the device's cache only. */
	rc = pool_mutant(pool, MUTANT_BUMP_UNFLUSHED) ? 0
						      : vdev_do(pool->env, VDEV_FLUSH, 0, NULL, 0);
	if (!rc && !pool_mutant(pool, MUTANT_BUMP_UNFLUSHED))
		rc = super_write_both(pool->env, &pool->super);
	if (!rc && pool_mutant(pool, MUTANT_BUMP_UNFLUSHED)) {
		le64_put(&pool->super.generation, le64_get(&pool->super.generation) + 1);
		rc = super_write(pool->env, &pool->super);
	}
	return rc ? err_set(err, -rc, "writing superblocks: %s", strerror(-rc)) : 0;
}

/* The log goes on in the segment that was reserved for it. */
static int begin_life(struct pool *pool, const struct logwalk_end *end, struct err *err)
{
	int rc = bump(pool, end, err);

	if (rc)
		return rc;
	segment_at(pool, end->successor)->stream = VF_W;
	segment_at(pool, end->successor)->state = SEGMENT_RESERVED;
	segments_recount(pool);
	pool->recovering = false;
	return log_start(pool, &end->next, end->segno, end->successor, err);
}

static void damaged(struct pool *pool, const char *why)
{
	pool->recovering = false;
	pool_fence(pool, why);
}

int pool_recover(struct pool *pool, struct err *err)
{
	struct vf_place replay;
	struct logwalk *walk;
	struct logwalk_end end;
	int rc = checkpoint_find(pool, &replay, err);

	if (rc)
		return rc;
	walk = logwalk_open(pool, &replay, segment_passed);
	if (!walk)
		return err_set(err, ENOMEM, "no memory to read the log");
	rc = replay_log(pool, walk, err);
	if (rc)
		goto out;
	logwalk_end(walk, &end);
	segments_recount(pool);
	pool->incarnation = le32_get(&pool->super.incarnation);
	credit_update(pool);
	if (end.damaged)
		damaged(pool, end.why);
	else if (pool->read_only)
		pool->recovering = false;
	else
		rc = begin_life(pool, &end, err);
out:
	logwalk_close(walk);
	return rc;
}
