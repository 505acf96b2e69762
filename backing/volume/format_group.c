/* Judging and walking groups, their tables, and footers. */
#include "backing/volume/format.h"

#include "backing/volume/format_judge.h"

/* What a table's descriptors must lie in; geometry NULL: not known. */
struct bounds {
	const struct vf_geometry *geometry;
	uint32_t from, to; /* units of the group where payloads may be */
};

bool vf_table_next(struct vf_table *table)
{
	const struct vf_desc *desc = (const struct vf_desc *)table->at;
	uint32_t desc_len, body_len;

	if (table->ndescs == 0 || table->left < sizeof(*desc))
		return false;
	desc_len = desc->flags & VF_DESC_WIDE ? sizeof(struct vf_desc_wide) : sizeof(*desc);
	body_len = le32_get(&desc->body_len);
	if (table->left < desc_len || body_len > table->left - desc_len)
		return false;
	table->desc = desc;
	table->body = table->at + desc_len;
	table->at += desc_len + body_len;
	table->left -= desc_len + body_len;
	table->ndescs--;
	return true;
}

/* ---- descriptors ---- */

static bool payload_valid(const struct vf_desc *desc, const struct bounds *bounds)
{
	uint32_t off = le32_get(&desc->off), stored = le32_get(&desc->stored);

	return stored >= 1 && stored < 1u << 15 && off >= bounds->from && off < bounds->to &&
	       stored <= bounds->to - off;
}

static bool data_valid(const struct vf_desc *desc, const struct bounds *bounds)
{
	uint64_t nsectors = le64_get(&desc->nsectors);
	uint32_t stored = le32_get(&desc->stored), off = le32_get(&desc->off);

	if (nsectors < 1 || nsectors > VF_REGION_SECTORS - le64_get(&desc->lba) % VF_REGION_SECTORS)
		return false;
	if (bounds->geometry &&
	    nsectors > vf_record_len_max(bounds->geometry->segment_len) / VF_SECTOR)
		return false;
	if (!payload_valid(desc, bounds) || desc->codec > JUDGE_CODEC_MAX ||
	    le32_get(&desc->body_len) != 0)
		return false;
	if (desc->flags & VF_DESC_RAW)
		return desc->codec == 0 && off % (VF_BLOCK / VF_UNIT) == 0 &&
		       stored % (VF_BLOCK / VF_UNIT) == 0 &&
		       (uint64_t)stored * VF_UNIT == nsectors * VF_SECTOR;
	if (desc->codec == 0)
		return stored == judge_packed_units(nsectors * VF_SECTOR);
	return stored <= judge_packed_units(nsectors * VF_SECTOR);
}

static bool hole_valid(const struct vf_desc *desc)
{
	uint64_t lba = le64_get(&desc->lba), nsectors = le64_get(&desc->nsectors);

	if (desc->flags & VF_DESC_RANGE && lba % VF_REGION_SECTORS != 0)
		return false;
	return lba < VF_VOLUME_SECTORS_MAX && nsectors >= 1 &&
	       nsectors <= VF_VOLUME_SECTORS_MAX - lba && le32_get(&desc->body_len) == 0;
}

static bool move_valid(const struct vf_desc *desc, const void *body, const struct bounds *bounds)
{
	const struct vf_move *move = body;
	uint32_t stored = le32_get(&desc->stored);

	if (le32_get(&desc->body_len) != sizeof(*move) || stored < 1 || stored >= 1u << 15)
		return false;
	return !bounds->geometry ||
	       (judge_addr(bounds->geometry, le64_get(&desc->nsectors), stored) &&
		judge_addr(bounds->geometry, le64_get(&move->addr), stored));
}

static bool leaf_at_valid(const struct vf_desc *desc, const void *body, const struct bounds *bounds)
{
	const struct vf_leaf_at *leaf_at = body;
	uint32_t len = le32_get(&desc->body_len), nchanges;

	if (len < sizeof(*leaf_at))
		return false;
	len -= (uint32_t)sizeof(*leaf_at);
	nchanges = le32_get(&leaf_at->nchanges);
	if (len % sizeof(struct vf_change) != 0 || nchanges != len / sizeof(struct vf_change) ||
	    le64_get(&desc->lba) >= VF_VOLUME_SECTORS_MAX / VF_REGION_SECTORS)
		return false;
	if (!bounds->geometry)
		return true;
	for (uint32_t i = 0; i < nchanges; i++)
		if (!judge_change(bounds->geometry, &leaf_at->changes[i].segno,
				  &leaf_at->changes[i].units))
			return false;
	return le64_get(&leaf_at->slot.where) == 0 || judge_slot(bounds->geometry, &leaf_at->slot);
}

static bool dir_at_valid(const struct vf_desc *desc, const void *body, const struct bounds *bounds)
{
	const struct vf_dir_at *dir_at = body;
	uint64_t level;

	if (le32_get(&desc->body_len) != sizeof(*dir_at))
		return false;
	level = le64_get(&dir_at->level);
	if (level < 1 || level > VF_LEVELS_MAX)
		return false;
	if (!bounds->geometry)
		return true;
	/* A page that is new replaces none: its second change is of no segment. */
	return judge_slot(bounds->geometry, &dir_at->slot) &&
	       judge_change(bounds->geometry, &dir_at->changes[0].segno,
			    &dir_at->changes[0].units) &&
	       (le32_get(&dir_at->changes[1].units) == 0 ||
		judge_change(bounds->geometry, &dir_at->changes[1].segno,
			     &dir_at->changes[1].units));
}

static bool page_valid(const struct vf_desc *desc, const struct bounds *bounds)
{
	uint64_t kind = le64_get(&desc->nsectors);

	return payload_valid(desc, bounds) && kind >> 8 >= VF_ROOT && kind >> 8 <= VF_VOLUME &&
	       (kind & 0xff) <= VF_LEVELS_MAX && le32_get(&desc->body_len) == 0;
}

static bool desc_valid(const struct vf_desc *desc, const void *body, const struct bounds *bounds)
{
	if (desc->flags & ~(VF_DESC_RAW | VF_DESC_WIDE | VF_DESC_RANGE) ||
	    le32_get(&desc->body_len) % 8 != 0 || le32_get(&desc->volume) > VF_TREE_VOLTAB)
		return false;
	switch (desc->type) {
	case VF_DATA: return data_valid(desc, bounds);
	case VF_HOLE: return hole_valid(desc);
	case VF_MOVE: return move_valid(desc, body, bounds);
	case VF_LEAF_AT: return leaf_at_valid(desc, body, bounds);
	case VF_DIR_AT: return dir_at_valid(desc, body, bounds);
	case VF_VOLOP: return le32_get(&desc->body_len) >= sizeof(struct vf_volume);
	case VF_PAGE: return page_valid(desc, bounds);
	/* ROLLBACK, SNAP, META: of features that this program does not know. */
	default: return false;
	}
}

static bool table_valid(const void *at, uint32_t len, uint32_t ndescs, const struct bounds *bounds)
{
	struct vf_table table = { .at = at, .left = len, .ndescs = ndescs };

	while (vf_table_next(&table))
		if (!desc_valid(table.desc, table.body, bounds))
			return false;
	return table.ndescs == 0 && table.left == 0;
}

bool vf_table_check(const void *table, uint32_t len, uint32_t ndescs)
{
	const struct bounds bounds = { .to = (4u << 20) / VF_UNIT };

	return table_valid(table, len, ndescs, &bounds);
}

/* ---- groups ---- */

bool vf_group_plausible(const struct vf_group *group, const struct vf_geometry *geometry,
			uint32_t room)
{
	uint32_t most = geometry->segment_len / 2, len, head_len;

	if (room < VF_BLOCK || le32_get(&group->head.magic) != VF_MAGIC ||
	    group->head.type != VF_GROUP || group->head.version != VF_VERSION ||
	    memcmp(group->head.uuid, geometry->uuid, sizeof(geometry->uuid)) != 0)
		return false;
	len = le32_get(&group->len);
	most = most < room ? most : room;
	if (len < 1 || len > most / VF_BLOCK)
		return false;
	head_len = le32_get(&group->head.len);
	return head_len >= sizeof(*group) && head_len <= len * VF_BLOCK &&
	       le32_get(&group->ndescs) <= (head_len - sizeof(*group)) / sizeof(struct vf_desc);
}

/* Ordered groups come after what was durable; those of bulk streams have no seq. */
static bool group_order_valid(const struct vf_group *group)
{
	uint64_t seq = le64_get(&group->seq);

	return seq == 0 ? vf_hash_zero(&group->prev) : le64_get(&group->durable_seq) < seq;
}

bool vf_group_check(const struct vf_group *group, const struct vf_geometry *geometry, uint32_t room)
{
	struct bounds bounds = { .geometry = geometry };
	uint32_t head_len;

	if (!vf_group_plausible(group, geometry, room))
		return false;
	head_len = le32_get(&group->head.len);
	if (!vf_check(group, VF_GROUP, sizeof(*group), head_len, geometry->uuid))
		return false;
	bounds.from = (head_len + VF_UNIT - 1) / VF_UNIT;
	bounds.to = le32_get(&group->len) * (VF_BLOCK / VF_UNIT);
	return group_order_valid(group) &&
	       table_valid(group + 1, head_len - (uint32_t)sizeof(*group), le32_get(&group->ndescs),
			   &bounds);
}

/* ---- footers ---- */

/* The groups stand in order, each in the segment, with its table. */
static bool footer_groups_valid(const struct vf_footer *footer, const struct vf_geometry *geometry)
{
	const uint8_t *at = (const uint8_t *)(footer + 1);
	uint32_t left = le32_get(&footer->head.len) - (uint32_t)sizeof(*footer);
	uint32_t nblocks = geometry->segment_len / VF_BLOCK, end = 1;
	uint64_t seq = le64_get(&footer->first_seq);

	for (uint32_t i = le32_get(&footer->ngroups); i > 0; i--) {
		const struct vf_footer_group *group = (const struct vf_footer_group *)at;
		struct bounds bounds = { .geometry = geometry };
		uint32_t off, table_len;

		if (left < sizeof(*group))
			return false;
		off = le32_get(&group->off);
		table_len = le32_get(&group->table_len);
		if (table_len > left - sizeof(*group) || off < end || off >= nblocks ||
		    le64_get(&group->seq) != seq)
			return false;
		bounds.from = ((uint32_t)sizeof(struct vf_group) + table_len + VF_UNIT - 1) /
			      VF_UNIT;
		bounds.to = (nblocks - off) * (VF_BLOCK / VF_UNIT);
		if (!table_valid(group + 1, table_len, le32_get(&group->ndescs), &bounds))
			return false;
		if (i == 1 && seq != 0 && !vf_hash_equal(&group->sum, &footer->last))
			return false;
		end = off + 1;
		seq += seq != 0;
		at += sizeof(*group) + table_len;
		left -= (uint32_t)sizeof(*group) + table_len;
	}
	return left == 0;
}

bool vf_footer_check(const struct vf_footer *footer, uint32_t cap,
		     const struct vf_geometry *geometry)
{
	uint64_t first, last;
	uint32_t ngroups;

	if (!vf_check(footer, VF_FOOTER, sizeof(*footer),
		      cap < geometry->segment_len ? cap : geometry->segment_len, geometry->uuid))
		return false;
	if (!judge_segno(geometry, le32_get(&footer->segno)))
		return false;
	first = le64_get(&footer->first_seq);
	last = le64_get(&footer->last_seq);
	ngroups = le32_get(&footer->ngroups);
	/* Bulk groups have no order, and a footer of theirs no seqs. */
	if (first == 0 ? last != 0 : last < first || last - first != (uint64_t)ngroups - 1)
		return false;
	return footer_groups_valid(footer, geometry);
}
