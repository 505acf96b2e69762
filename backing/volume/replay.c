#include "backing/volume/replay.h"

#include <string.h>

#include "backing/volume/credit.h"
#include "backing/volume/merge.h"
#include "backing/volume/region.h"
#include "backing/volume/segment.h"
#include "backing/volume/volumes.h"

static int add_delta(struct pool *pool, struct volume *volume, uint64_t index,
		     const struct delta *delta)
{
	struct region *region = region_get(pool, volume, index);
	uint64_t charge = CREDIT_DELTA;

	if (!region)
		return -ENOMEM;
	if (region->first_seq == 0)
		charge += CREDIT_REGION;
	credit_force(pool, charge);
	region_add(pool, region, delta, charge);
	return 0;
}

static void entry_check(const struct vf_desc *desc, struct vf_entry *entry)
{
	entry->check[0] = le64_get(&desc->check);
	if (desc->flags & VF_DESC_WIDE)
		memcpy(entry->check, ((const struct vf_desc_wide *)desc)->digest,
		       sizeof(entry->check));
}

static int replay_data(struct pool *pool, const struct vf_desc *desc, uint64_t addr, uint64_t seq,
		       uint32_t index)
{
	struct volume *volume = volume_by_id(pool, le32_get(&desc->volume));
	uint64_t lba = le64_get(&desc->lba);
	struct delta delta = {
		.seq = seq,
		.index = index,
		.type = VF_DATA,
		.entry = {
			.addr = addr,
			.start = (uint16_t)(lba % VF_REGION_SECTORS),
			.nsectors = (uint16_t)le64_get(&desc->nsectors),
			.stored = (uint16_t)le32_get(&desc->stored),
			.codec = desc->codec,
			.raw = desc->flags & VF_DESC_RAW,
			.birth = le32_get(&desc->birth),
		},
	};

	if (!volume) {
		segment_born(pool, addr, delta.entry.stored, seq);
		return 0;
	}
	entry_check(desc, &delta.entry);
	return add_delta(pool, volume, lba / VF_REGION_SECTORS, &delta);
}

static int replay_hole(struct pool *pool, const struct vf_desc *desc, uint64_t seq, uint32_t index)
{
	struct volume *volume = volume_by_id(pool, le32_get(&desc->volume));
	uint64_t lba = le64_get(&desc->lba), left = le64_get(&desc->nsectors);
	int rc = 0;

	if (!volume)
		return 0;
	if (desc->flags & VF_DESC_RANGE) {
		region_range(pool, volume, lba / VF_REGION_SECTORS, left / VF_REGION_SECTORS, seq);
		return 0;
	}
	while (left && !rc) {
		uint64_t start = lba % VF_REGION_SECTORS, n = VF_REGION_SECTORS - start;
		struct delta delta = { .seq = seq, .index = index, .type = VF_HOLE };

		if (n > left)
			n = left;
		delta.entry.start = (uint16_t)start;
		delta.entry.nsectors = (uint16_t)n;
		delta.entry.flags = VF_ENTRY_HOLE;
		delta.entry.birth = le32_get(&desc->birth);
		rc = add_delta(pool, volume, lba / VF_REGION_SECTORS, &delta);
		lba += n;
		left -= n;
	}
	return rc;
}

static int replay_move(struct pool *pool, const struct vf_desc *desc, const struct vf_move *body,
		       uint64_t seq, uint32_t index)
{
	struct volume *volume = volume_by_id(pool, le32_get(&desc->volume));
	uint64_t lba = le64_get(&desc->lba);
	struct delta delta = {
		.seq = seq,
		.index = index,
		.type = VF_MOVE,
		.entry = {
			.addr = le64_get(&desc->nsectors),
			.start = (uint16_t)(lba % VF_REGION_SECTORS),
			.stored = (uint16_t)le32_get(&desc->stored),
			.check = { le64_get(&desc->check) },
		},
		.moved_to = le64_get(&body->addr),
	};
	struct region *region;

	if (!volume) {
		segment_born(pool, delta.moved_to, delta.entry.stored, seq);
		return 0;
	}
	region = region_get(pool, volume, lba / VF_REGION_SECTORS);
	if (!region)
		return -ENOMEM;
	region_add(pool, region, &delta, 0);
	return 0;
}

static int replay_leaf(struct pool *pool, const struct vf_desc *desc, const struct vf_leaf_at *body,
		       uint64_t seq)
{
	struct volume *volume = volume_by_id(pool, le32_get(&desc->volume));
	uint64_t region = le64_get(&desc->lba);
	int rc = volume ? tree_pin(&volume->head, region) : 0;

	/* What is merged stays in the overlay; nothing is built on it any more. */
	if (rc == -EUCLEAN || rc == -EIO) {
		pool_fence(pool, "a directory page of its map is damaged");
		return 0;
	}
	if (rc)
		return rc;
	leaf_at_apply(pool, desc, body, seq);
	if (volume)
		tree_unpin(&volume->head, region);
	return 0;
}

static int replay_volop(struct pool *pool, const struct vf_desc *desc, const struct vf_volume *body,
			uint64_t seq)
{
	if (!vf_volume_check(body, le32_get(&desc->body_len), &pool->geometry,
			     le32_get(&desc->volume)))
		return -EUCLEAN;
	return volume_apply(pool, body, seq);
}

static int replay_desc(struct pool *pool, const struct vf_table *table, uint64_t base, uint64_t seq,
		       uint32_t index)
{
	const struct vf_desc *desc = table->desc;

	switch (desc->type) {
	case VF_DATA: return replay_data(pool, desc, base + le32_get(&desc->off), seq, index);
	case VF_HOLE: return replay_hole(pool, desc, seq, index);
	case VF_MOVE: return replay_move(pool, desc, table->body, seq, index);
	case VF_LEAF_AT: return replay_leaf(pool, desc, table->body, seq);
	case VF_DIR_AT: dir_at_apply(pool, desc, table->body, seq); return 0;
	case VF_VOLOP: return replay_volop(pool, desc, table->body, seq);
	default: return -EUCLEAN; /* vf_group_check() lets no other pass */
	}
}

int replay_group(struct pool *pool, const struct logwalk_group *group)
{
	struct vf_table table = group->table;
	uint64_t seq = le64_get(&group->place.seq);
	uint32_t index = 0;
	int rc = 0;

	while (!rc && vf_table_next(&table))
		rc = replay_desc(pool, &table, group->base, seq, index++);
	return rc;
}
