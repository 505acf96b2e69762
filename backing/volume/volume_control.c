/* What operators do with volumes: each a VOLOP in the log, waited for. */
#include <stdlib.h>
#include <string.h>

#include "backing/volume/credit.h"
#include "backing/volume/log.h"
#include "backing/volume/region.h"
#include "backing/volume/segment.h"
#include "backing/volume/volumes.h"

/* A new volume is refused when there is less: it could hold nothing. */
#define SPACE_MIN (64u << 10)
/* A record with every range. */
#define RECORD_LEN_MAX (sizeof(struct vf_volume) + VF_RANGES_MAX * sizeof(struct vf_range))

/* ---- judging ---- */

static bool power_of_two(uint32_t value)
{
	return value != 0 && (value & (value - 1)) == 0;
}

static int settings_judge(const struct pool *pool, const struct volume_settings *settings,
			  struct err *err)
{
	uint32_t record_max = vf_record_len_max(pool->geometry.segment_len);

	if (settings->block_len != 512 && settings->block_len != 4096)
		return err_set(err, EINVAL, "a block has 512 or 4096 bytes, not %u",
			       settings->block_len);
	if (!power_of_two(settings->record_len) || settings->record_len < 4096 ||
	    settings->record_len > record_max)
		return err_set(err, EINVAL,
			       "a record has a power of two of bytes, in this pool 4096 to %u, not "
			       "%u",
			       record_max, settings->record_len);
	if (settings->nsectors == 0 || settings->nsectors > VF_VOLUME_SECTORS_MAX)
		return err_set(err, EINVAL, "a volume has 512 bytes to %llu TiB, not %llu bytes",
			       (unsigned long long)(VF_VOLUME_SECTORS_MAX * VF_SECTOR >> 40),
			       (unsigned long long)settings->nsectors * VF_SECTOR);
	if (settings->nsectors % (settings->block_len / VF_SECTOR) != 0)
		return err_set(err, EINVAL, "a size of %llu bytes is not whole blocks of %u",
			       (unsigned long long)settings->nsectors * VF_SECTOR,
			       settings->block_len);
	if (!codec_choice_valid(&settings->codec) || settings->checksum > VF_SHA256)
		return err_set(err, EINVAL, "no such compression or checksum");
	return 0;
}

static int name_judge(struct pool *pool, const char *name, struct err *err)
{
	char padded[VF_NAME_MAX + 1] = { 0 };
	size_t len = strlen(name);

	if (len <= VF_NAME_MAX)
		memcpy(padded, name, len);
	if (len > VF_NAME_MAX || !vf_name_valid(padded))
		return err_set(err, EINVAL,
			       "the name of a volume has 1 to %u printable characters, without "
			       "space and slash",
			       VF_NAME_MAX);
	if (volume_find(pool, name) || volume_pending(pool, name))
		return err_set(err, EEXIST, "pool %s has a volume \"%s\" already", pool->name,
			       name);
	return 0;
}

static int writable_judge(const struct pool *pool, struct err *err)
{
	if (pool->read_only)
		return err_set(err, EROFS, "pool %s is read-only: %s", pool->name,
			       pool->why_read_only);
	return 0;
}

/* ---- one VOLOP ---- */

/*
 * One at a time of a volume, which owns it and is held (users) by the log and by
 * the fiber: a deleted one may be worked off before its VOLOP is durable.
 */
struct volop {
	struct log_post post;
	struct volume *volume;
	struct fiber *fiber; /* NULL: nobody waits */
	bool laid_out, settled;
	int err;
	union {
		uint8_t room[RECORD_LEN_MAX];
		struct vf_volume record;
	};
};

static void volop_wake(struct volop *op)
{
	if (op->fiber)
		fiber_wake(op->fiber);
}

static void volop_apply(struct pool *pool, struct log_post *post, uint64_t seq, uint32_t index)
{
	struct volop *op = container_of(post, struct volop, post);
	int rc = volume_apply(pool, &op->record, seq);

	(void)index;
	/* It was there, or is pending: there is nothing to be allocated. */
	assert(rc == 0);
	op->laid_out = true;
	volop_wake(op);
}

static void volop_durable(struct pool *pool, struct log_post *post, int err)
{
	struct volop *op = container_of(post, struct volop, post);

	(void)pool;
	op->settled = true;
	op->err = err < 0 ? -err : err;
	volume_put(op->volume);
	volop_wake(op);
}

/* NULL: no memory, or there is one under way. */
static struct volop *volop_get(struct volume *volume)
{
	if (volume->op && !volume->op->settled)
		return NULL;
	if (!volume->op)
		volume->op = malloc(sizeof(*volume->op));
	if (volume->op)
		*volume->op = (struct volop){ .volume = volume };
	return volume->op;
}

static bool volop_answered(const struct volop *op)
{
	return op->settled || (op->laid_out && pool_mutant(op->volume->pool, MUTANT_VOLOP_EARLY));
}

/* In a fiber: op->record is filled in; 0 when it is durable. */
static int volop_run(struct volop *op, bool *laid_out)
{
	struct volume *volume = op->volume;
	struct pool *pool = volume->pool;
	int rc = 0;

	op->fiber = fiber_self();
	op->post.desc.type = VF_VOLOP;
	op->post.desc.volume = op->record.id;
	le32_put(&op->post.desc.body_len, le32_get(&op->record.head.len));
	op->post.body = &op->record;
	op->post.apply = volop_apply;
	op->post.durable = volop_durable;
	list_init(&op->post.link);
	volume->users += 2;
	log_post(pool, &op->post);
	log_cut(pool);
	while (!volop_answered(op)) {
		if (!rc)
			rc = log_wait_durable(pool, log_seq(pool));
		if (!volop_answered(op))
			fiber_wait();
	}
	op->fiber = NULL;
	*laid_out = op->laid_out;
	rc = op->err ? -op->err : rc;
	if (op->settled) {
		free(op);
		volume->op = NULL;
	}
	volume_put(volume);
	return rc;
}

static int volop_error(struct pool *pool, int rc, const char *name, struct err *err)
{
	if (rc == 0)
		return 0;
	return err_set(err, -rc, "pool %s, volume \"%s\": the log could not be written: %s",
		       pool->name, name, err_name(-rc));
}

/* ---- creating ---- */

struct creating {
	const char *name;
	const struct volume_settings *settings;
	struct volume *volume;
	struct err *err;
};

static void volume_fill(struct volume *volume, const struct creating *creating)
{
	struct venv *env = volume->pool->env;

	memcpy(volume->name, creating->name, strlen(creating->name) + 1);
	volume->settings = *creating->settings;
	volume->wide = creating->settings->checksum == VF_SHA256;
	env->ops->random(env, volume->uuid, sizeof(volume->uuid));
	volume->created_s = env->ops->time_s ? env->ops->time_s(env) : 0;
}

static int create_fiber(struct pool *pool, void *arg)
{
	struct creating *creating = arg;
	struct volume *volume;
	bool laid_out = false;
	uint32_t id;
	int rc = writable_judge(pool, creating->err);

	if (!rc)
		rc = name_judge(pool, creating->name, creating->err);
	if (!rc)
		rc = settings_judge(pool, creating->settings, creating->err);
	if (rc)
		return rc;
	if (credit_available(pool) < SPACE_MIN)
		return err_set(creating->err, ENOSPC, "pool %s is full", pool->name);
	id = volume_new_id(pool);
	if (id == 0)
		return err_set(creating->err, ENOSPC,
			       "pool %s has given out all numbers of volumes", pool->name);
	volume = volume_new(pool, id);
	if (!volume || !volop_get(volume)) {
		if (volume)
			volume_free(volume);
		return err_set(creating->err, ENOMEM, "no memory for a volume");
	}
	volume_fill(volume, creating);
	volume_encode(volume, &volume->op->record, 0);
	rc = volop_run(volume->op, &laid_out);
	if (!laid_out)
		volume_free(volume);
	creating->volume = rc ? NULL : volume;
	return volop_error(pool, rc, creating->name, creating->err);
}

int volume_create(struct pool *pool, const char *name, const struct volume_settings *settings,
		  struct volume **out, struct err *err)
{
	struct creating creating = { .name = name, .settings = settings, .err = err };
	int rc = pool_control(pool, create_fiber, &creating);

	if (!rc && out)
		*out = creating.volume;
	return rc;
}

/* ---- changing ---- */

struct setting {
	struct volume *volume;
	const struct volume_settings *settings;
	struct err *err;
};

static int change_judge(const struct volume *volume, const struct volume_settings *to,
			struct err *err)
{
	const struct volume_settings *from = &volume->settings;

	if (to->nsectors < from->nsectors)
		return err_set(err, EINVAL,
			       "volume \"%s\" has %llu bytes and cannot shrink to %llu",
			       volume->name, (unsigned long long)from->nsectors * VF_SECTOR,
			       (unsigned long long)to->nsectors * VF_SECTOR);
	if (to->block_len != from->block_len)
		return err_set(err, EINVAL, "volume \"%s\" has blocks of %u bytes, for good",
			       volume->name, from->block_len);
	if (to->checksum != from->checksum)
		return err_set(err, EINVAL,
			       "the checksum of volume \"%s\" cannot be changed: make a new "
			       "volume and copy it",
			       volume->name);
	return settings_judge(volume->pool, to, err);
}

static bool settings_equal(const struct volume_settings *a, const struct volume_settings *b)
{
	return a->nsectors == b->nsectors && a->record_len == b->record_len &&
	       a->codec.id == b->codec.id && a->codec.level == b->codec.level;
}

static int set_fiber(struct pool *pool, void *arg)
{
	struct setting *setting = arg;
	struct volume *volume = setting->volume;
	struct volume_settings before = volume->settings;
	bool laid_out;
	int rc = change_judge(volume, setting->settings, setting->err);

	if (rc || settings_equal(setting->settings, &before))
		return rc;
	rc = writable_judge(pool, setting->err);
	if (rc)
		return rc;
	if (volume->leaving || !volop_get(volume))
		return err_set(setting->err, EBUSY, "volume \"%s\" is being changed already",
			       volume->name);
	/* In force when it is laid out, not before. */
	volume->settings = *setting->settings;
	volume_encode(volume, &volume->op->record, 0);
	volume->settings = before;
	return volop_error(pool, volop_run(volume->op, &laid_out), volume->name, setting->err);
}

int volume_set(struct volume *volume, const struct volume_settings *settings, struct err *err)
{
	struct setting setting = { .volume = volume, .settings = settings, .err = err };

	return pool_control(volume->pool, set_fiber, &setting);
}

/* ---- deleting ---- */

struct deleting {
	struct volume *volume;
	struct err *err;
};

/* What was written and answered is laid out before the volume goes, so that
 * nothing of it comes after. */
static int staged_wait(struct volume *volume)
{
	struct pool *pool = volume->pool;
	int rc = 0;

	while (!rc && (!list_empty(&volume->staged) || volume->ticket > volume->durable_ticket))
		rc = log_wait_durable(pool, log_cut(pool));
	return rc;
}

static int delete_fiber(struct pool *pool, void *arg)
{
	struct deleting *deleting = arg;
	struct volume *volume = deleting->volume;
	bool laid_out = false;
	char name[VF_NAME_MAX + 1];
	int rc = writable_judge(pool, deleting->err);

	if (rc)
		return rc;
	if (volume->users > 0 || volume->leaving)
		return err_set(deleting->err, EBUSY, "volume \"%s\" is in use", volume->name);
	memcpy(name, volume->name, sizeof(name));
	volume->leaving = true;
	rc = staged_wait(volume);
	if (!rc && !volop_get(volume))
		rc = -ENOMEM;
	if (!rc) {
		volume->deleting = true;
		volume_encode(volume, &volume->op->record, 0);
		volume->deleting = false;
		rc = volop_run(volume->op, &laid_out);
	}
	/* Once it is laid out, the reaper may have been here: it is not looked at. */
	if (!laid_out)
		volume->leaving = false;
	return volop_error(pool, rc, name, deleting->err);
}

int volume_delete(struct volume *volume, struct err *err)
{
	struct deleting deleting = { .volume = volume, .err = err };

	return pool_control(volume->pool, delete_fiber, &deleting);
}

/* ---- looking at them ---- */

/* Records are not counted by volume: those of the pool, by what is mapped. */
static uint64_t stored_share(const struct volume *volume)
{
	struct pool *pool = volume->pool;
	uint64_t units = segments_live_units(pool) - segments_map_units(pool), mapped = 0;

	for (struct volume *other = volumes_each(pool, NULL); other;
	     other = volumes_each(pool, other))
		mapped += other->mapped;
	return mapped ? (uint64_t)((long double)units * VF_UNIT * volume->mapped / mapped) : 0;
}

void volume_info(const struct volume *volume, struct volume_info *out)
{
	*out = (struct volume_info){
		.id = volume->id,
		.settings = volume->settings,
		.created_s = volume->created_s,
		.mapped = volume->mapped * VF_SECTOR,
		.stored = stored_share(volume),
		.deleting = volume->deleting,
	};
	memcpy(out->uuid, volume->uuid, sizeof(out->uuid));
	memcpy(out->name, volume->name, sizeof(out->name));
}

int volume_get(struct volume *volume, struct err *err)
{
	if (volume->leaving || volume->deleting)
		return err_set(err, ENOENT, "volume \"%s\" is being deleted", volume->name);
	volume->users++;
	return 0;
}

void volume_put(struct volume *volume)
{
	assert(volume->users > 0);
	volume->users--;
}
