#include "tests/crash/locate.h"

#include <string.h>

#include "backing/volume/format.h"

static const char *const kinds[] = { "free", "super", "segment", "group",  "footer",
				     "root", "dir",   "leaf",	 "segtab", "volume" };

static const char *kind_of(uint64_t type)
{
	return type < sizeof(kinds) / sizeof(kinds[0]) ? kinds[type] : "free";
}

static bool in_payload(const struct vf_desc *desc, uint64_t off)
{
	uint64_t from = (uint64_t)le32_get(&desc->off) * VF_UNIT;
	uint64_t len = (uint64_t)le32_get(&desc->stored) * VF_UNIT;

	return (desc->type == VF_DATA || desc->type == VF_PAGE) && off >= from && off - from < len;
}

/* off: in the group. */
static struct place in_group(const struct vf_group *group, uint64_t off)
{
	struct vf_table table = { .at = (const uint8_t *)(group + 1),
				  .left = le32_get(&group->head.len) - (uint32_t)sizeof(*group),
				  .ndescs = le32_get(&group->ndescs) };

	if (off < le32_get(&group->head.len))
		return (struct place){ .kind = "group" };
	while (vf_table_next(&table)) {
		const struct vf_desc *desc = table.desc;

		if (!in_payload(desc, off))
			continue;
		if (desc->type == VF_PAGE)
			return (struct place){ .kind = kind_of(le64_get(&desc->nsectors) >> 8) };
		return (struct place){ .kind = "record",
				       .record = true,
				       .volume = le32_get(&desc->volume),
				       .lba = le64_get(&desc->lba),
				       .nsectors = le64_get(&desc->nsectors) };
	}
	return (struct place){ .kind = "padding" };
}

struct place locate(const struct image *image, uint32_t segment_len, uint64_t off)
{
	const uint8_t *segment = image->mem + off / segment_len * segment_len;
	const struct vf_head *head = (const struct vf_head *)segment;
	struct vf_geometry geometry = { .segment_len = segment_len,
					.nsegments = image->len / segment_len };
	uint64_t at = VF_BLOCK, in = off % segment_len;

	memcpy(geometry.uuid, head->uuid, sizeof(geometry.uuid));
	if (le32_get(&head->magic) != VF_MAGIC)
		return (struct place){ .kind = "free" };
	if (head->type != VF_SEGMENT || in < VF_BLOCK)
		return (struct place){ .kind = kind_of(head->type) };
	while (at < segment_len) {
		const struct vf_group *group = (const struct vf_group *)(segment + at);
		uint64_t len = (uint64_t)le32_get(&group->len) * VF_BLOCK;

		if (!vf_group_plausible(group, &geometry, (uint32_t)(segment_len - at)) ||
		    !vf_group_check(group, &geometry, (uint32_t)(segment_len - at)))
			break;
		if (in < at + len)
			return in_group(group, in - at);
		at += len;
	}
	head = (const struct vf_head *)(segment + at);
	if (at < segment_len && le32_get(&head->magic) == VF_MAGIC && head->type == VF_FOOTER)
		return (struct place){ .kind = "footer" };
	return (struct place){ .kind = "free" };
}
