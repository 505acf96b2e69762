/* Judging pages of the map: leaves and directories. */
#include "backing/volume/format.h"

#include "backing/volume/format_judge.h"

/* Does the record have the sectors that the entry wants of it? */
static bool entry_fits(const struct vf_entry *entry, uint64_t segment_len)
{
	uint32_t len = (uint32_t)(entry->off + entry->nsectors) * VF_SECTOR;

	if (entry->raw)
		return entry->addr % (VF_BLOCK / VF_UNIT) == 0 &&
		       entry->stored % (VF_BLOCK / VF_UNIT) == 0 &&
		       entry->stored <= vf_record_len_max((uint32_t)segment_len) / VF_UNIT &&
		       len <= entry->stored * VF_UNIT;
	if (entry->codec == 0 && entry->stored < judge_packed_units(len))
		return false;
	return entry->stored <= judge_packed_units(vf_record_len_max((uint32_t)segment_len));
}

static bool entry_valid(const struct vf_entry *entry, const struct vf_geometry *geometry)
{
	/* REF and THROUGH have feature bits, which this program does not know. */
	if (entry->flags & ~(VF_ENTRY_HOLE | VF_ENTRY_SPLIT))
		return false;
	/* A record lies in its region whole, so nor does its first sector precede it. */
	if (entry->nsectors > VF_REGION_SECTORS - entry->start || entry->off > entry->start)
		return false;
	if (entry->flags & VF_ENTRY_HOLE)
		return entry->flags == VF_ENTRY_HOLE && entry->addr == 0 && entry->stored == 0 &&
		       entry->codec == 0 && !entry->raw;
	return judge_addr(geometry, entry->addr, entry->stored) &&
	       entry_fits(entry, geometry->segment_len);
}

bool vf_leaf_check(const struct vf_leaf *leaf, uint32_t len, const struct vf_geometry *geometry,
		   uint32_t volume, uint64_t region)
{
	const uint8_t *at = (const uint8_t *)leaf + sizeof(*leaf);
	bool wide;
	uint32_t count, end = 0;

	if (!vf_check(leaf, VF_LEAF, sizeof(*leaf), len, geometry->uuid))
		return false;
	wide = leaf->entry_len == VF_ENTRY_WIDE_LEN;
	if (!wide && leaf->entry_len != VF_ENTRY_LEN)
		return false;
	count = le16_get(&leaf->count);
	if (count > VF_LEAF_ENTRIES_MAX ||
	    le32_get(&leaf->head.len) - sizeof(*leaf) != count * (size_t)leaf->entry_len)
		return false;
	if (le32_get(&leaf->volume) != volume || le64_get(&leaf->region) != region)
		return false;
	for (uint32_t i = 0; i < count; i++, at += leaf->entry_len) {
		struct vf_entry entry;

		vf_entry_get(at, &entry, wide);
		if (entry.start < end || !entry_valid(&entry, geometry))
			return false;
		end = (uint32_t)entry.start + entry.nsectors;
	}
	return true;
}

bool vf_dir_check(const struct vf_dir *dir, uint32_t len, const struct vf_geometry *geometry,
		  uint32_t tree, uint8_t level, uint64_t index)
{
	const struct vf_slot *slots = (const struct vf_slot *)(dir + 1);
	uint32_t nslots, present = 0;

	if (!vf_check(dir, VF_DIR, sizeof(*dir), len, geometry->uuid))
		return false;
	nslots = le16_get(&dir->nslots);
	for (size_t i = 0; i < sizeof(dir->present); i++)
		present += (uint32_t)__builtin_popcount(dir->present[i]);
	if (nslots != present || nslots > VF_FANOUT ||
	    le32_get(&dir->head.len) - sizeof(*dir) != nslots * sizeof(*slots))
		return false;
	if (le32_get(&dir->tree) != tree || dir->level != level || level < 1 ||
	    level > VF_LEVELS_MAX || le64_get(&dir->index) != index)
		return false;
	for (uint32_t i = 0; i < nslots; i++)
		if (!judge_slot(geometry, &slots[i]))
			return false;
	return true;
}
