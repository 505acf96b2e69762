/* Superblocks. */
#include "backing/volume/super.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "backing/volume/io.h"

#define NSLOTS (2u * VF_SUPER_SLOTS)

/* All slots of both areas, one after the other. */
struct slots {
	struct vf_super *at; /* NSLOTS, aligned for the device */
	bool readable[NSLOTS];
	unsigned int nunreadable;
	int err; /* the last one */
};

static uint64_t slot_off(unsigned int slot)
{
	return (slot < VF_SUPER_SLOTS ? 0 : VF_SUPER_SECOND) +
	       (uint64_t)(slot % VF_SUPER_SLOTS) * VF_SUPER_LEN;
}

/* Of an area that cannot be read whole, the slots that can be. */
static void read_area(struct venv *env, struct slots *slots, unsigned int area)
{
	unsigned int first = area * VF_SUPER_SLOTS;
	bool whole = vdev_do(env, VDEV_READ, slot_off(first), &slots->at[first], VF_SUPER_AREA) ==
		     0;

	for (unsigned int i = first; i < first + VF_SUPER_SLOTS; i++) {
		int err = whole ? 0
				: vdev_do(env, VDEV_READ, slot_off(i), &slots->at[i], VF_SUPER_LEN);

		slots->readable[i] = err == 0;
		if (err == 0)
			continue;
		slots->err = err;
		slots->nunreadable++;
	}
}

static int slots_read(struct venv *env, struct slots *slots)
{
	*slots = (struct slots){ .at = aligned_alloc(VF_BLOCK, NSLOTS * VF_SUPER_LEN) };
	if (!slots->at)
		return -ENOMEM;
	read_area(env, slots, 0);
	read_area(env, slots, 1);
	return 0;
}

/* Looks like one, whole or not. */
static bool slot_marked(const struct slots *slots, unsigned int i)
{
	return slots->readable[i] && le32_get(&slots->at[i].head.magic) == VF_MAGIC &&
	       slots->at[i].head.type == VF_SUPER;
}

static const struct vf_super *slots_newest(const struct slots *slots)
{
	const struct vf_super *newest = NULL;

	for (unsigned int i = 0; i < NSLOTS; i++) {
		const struct vf_super *super = &slots->at[i];

		if (!slots->readable[i] ||
		    !vf_check(super, VF_SUPER, VF_SUPER_LEN, VF_SUPER_LEN, NULL))
			continue;
		if (!newest || le64_get(&super->generation) > le64_get(&newest->generation))
			newest = super;
	}
	return newest;
}

/* ---- reading ---- */

static int none_found(const struct slots *slots, struct err *err)
{
	unsigned int marked = 0;
	uint8_t version = 0;

	for (unsigned int i = 0; i < NSLOTS; i++) {
		if (!slot_marked(slots, i))
			continue;
		marked++;
		version = slots->at[i].head.version;
	}
	if (marked > 0 && version > VF_VERSION)
		return err_set(err, EOPNOTSUPP,
			       "the pool is of format version %u, this program knows %u: use a "
			       "newer one",
			       version, VF_VERSION);
	if (marked > 0)
		return err_set(err, EUCLEAN,
			       "a pool whose superblocks are all damaged: %u of %u slots hold one, "
			       "none is whole",
			       marked, NSLOTS);
	if (slots->nunreadable > 0)
		return err_set(err, -slots->err,
			       "no superblock found; %u of %u slots cannot be read: %s",
			       slots->nunreadable, NSLOTS, err_name(-slots->err));
	return err_set(err, EINVAL, "not a pool: there is no superblock on it");
}

/* Features first: what they change, the check does not know. */
static int judge(const struct vf_super *super, struct err *err)
{
	uint64_t unknown = le64_get(&super->features_incompat) & ~(uint64_t)VF_FEATURE_INCOMPAT;
	char names[256];

	if (unknown) {
		vf_features_name(VF_INCOMPAT, unknown, names, sizeof(names));
		return err_set(err, EOPNOTSUPP,
			       "the pool uses features that this program does not know: %s; use a "
			       "newer one",
			       names);
	}
	if (!vf_super_check(super))
		return err_set(err, EUCLEAN, "the superblock of generation %llu contradicts itself",
			       (unsigned long long)le64_get(&super->generation));
	if (le32_get(&super->ndevices) != 1)
		return err_set(err, EOPNOTSUPP,
			       "the pool lies on %u devices, this program knows pools of one",
			       le32_get(&super->ndevices));
	return 0;
}

static bool may_only_be_read(const struct venv *env, const struct vf_super *super, struct err *err)
{
	uint64_t unknown = le64_get(&super->features_ro_compat) & ~(uint64_t)VF_FEATURE_RO_COMPAT;
	uint64_t len = le64_get(&super->nsegments) * le32_get(&super->segment_len);
	char names[256];

	if (unknown) {
		vf_features_name(VF_RO_COMPAT, unknown, names, sizeof(names));
		err_set(err, EROFS,
			"the pool uses features that this program does not know, and can only be "
			"read: %s",
			names);
		return true;
	}
	if (env->device_len >= len)
		return false;
	err_set(err, EROFS,
		"the pool has %llu bytes, but its file or device only %llu: it has been cut, or "
		"copied in part, and can only be read",
		(unsigned long long)len, (unsigned long long)env->device_len);
	return true;
}

int super_read(struct venv *env, struct vf_super *out, bool *read_only, struct err *err)
{
	const struct vf_super *newest;
	struct slots slots;
	int rc;

	if (env->device_len < VF_SUPER_SECOND + VF_SUPER_AREA)
		return err_set(err, EINVAL, "not a pool: it has only %llu bytes",
			       (unsigned long long)env->device_len);
	rc = slots_read(env, &slots);
	if (rc != 0)
		return err_set(err, -rc, "no memory to read superblocks");
	newest = slots_newest(&slots);
	rc = newest ? judge(newest, err) : none_found(&slots, err);
	if (rc == 0) {
		*out = *newest;
		*read_only = may_only_be_read(env, newest, err);
	}
	free(slots.at);
	return rc;
}

/* ---- writing ---- */

int super_write(struct venv *env, struct vf_super *super)
{
	/* The caller's need not be aligned. */
	_Alignas(VF_BLOCK) struct vf_super copy;
	uint64_t generation = le64_get(&super->generation);
	unsigned int slot = (unsigned int)(generation % 2) * VF_SUPER_SLOTS +
			    (unsigned int)(generation / 2 % VF_SUPER_SLOTS);
	uint8_t uuid[16];

	memcpy(uuid, super->head.uuid, sizeof(uuid));
	vf_seal(super, VF_SUPER, VF_SUPER_LEN, uuid);
	assert(vf_super_check(super));
	copy = *super;
	return vdev_do(env, VDEV_WRITE, slot_off(slot), &copy, VF_SUPER_LEN);
}

int super_write_both(struct venv *env, struct vf_super *super)
{
	for (unsigned int i = 0; i < 2; i++) {
		int rc;

		le64_put(&super->generation, le64_get(&super->generation) + 1);
		rc = super_write(env, super);
		if (rc != 0)
			return rc;
	}
	return vdev_do(env, VDEV_FLUSH, 0, NULL, 0);
}

/* ---- making room ---- */

/* Something of somebody, in plain words. */
static int vacant(const struct slots *slots, struct err *err)
{
	const struct vf_super *pool = slots_newest(slots);
	const uint8_t *bytes = (const uint8_t *)slots->at;
	const char *label = pool && vf_label_valid(pool->label) ? pool->label : "";

	if (slots->nunreadable > 0)
		return err_set(err, -slots->err, "it cannot be read: %s", err_name(-slots->err));
	if (pool)
		return err_set(err, EEXIST,
			       "there is a pool on it already%s%s: to destroy it and all its "
			       "volumes, force this",
			       label[0] ? ", " : "", label);
	for (size_t i = 0; i < NSLOTS * VF_SUPER_LEN; i++)
		if (bytes[i] != 0)
			return err_set(
				err, EEXIST,
				"it is not empty: something stands at byte %llu (a file "
				"system, a partition table, an image?); to overwrite it, "
				"force this",
				(unsigned long long)(slot_off((unsigned int)(i / VF_SUPER_LEN)) +
						     i % VF_SUPER_LEN));
	return 0;
}

int super_clear(struct venv *env, bool force, struct err *err)
{
	struct slots slots;
	int rc;

	if (env->device_len < VF_POOL_LEN_MIN)
		return err_set(err, EINVAL, "%llu bytes are too small for a pool: at least %u MiB",
			       (unsigned long long)env->device_len,
			       (unsigned int)(VF_POOL_LEN_MIN >> 20));
	rc = slots_read(env, &slots);
	if (rc != 0)
		return err_set(err, -rc, "no memory to read superblocks");
	rc = force ? 0 : vacant(&slots, err);
	if (rc != 0)
		goto out;
	memset(slots.at, 0, NSLOTS * VF_SUPER_LEN);
	for (unsigned int area = 0; area < 2 && rc == 0; area++)
		rc = vdev_do(env, VDEV_WRITE, area * (uint64_t)VF_SUPER_SECOND, slots.at,
			     VF_SUPER_AREA);
	if (rc == 0)
		rc = vdev_do(env, VDEV_FLUSH, 0, NULL, 0);
	if (rc != 0)
		err_set(err, -rc, "it cannot be written: %s", err_name(-rc));
out:
	free(slots.at);
	return rc;
}
