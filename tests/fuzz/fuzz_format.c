/*
 * The checks of what stands on a pool, and the walkers of what they accepted.
 *
 * Input: a byte that says which structure, then its bytes.  Its head is made
 * right first (of kinds below 200), so that the fields are judged
 * and not the sum alone.  What a check accepts is read as its reader would.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "backing/volume/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static const struct vf_geometry geometry = {
	.uuid = "0123456789abcde",
	.segment_len = 256u << 10,
	.nsegments = 256,
};
static volatile uint8_t sink;

/* In a segment that may hold something; whole. */
static void expect_addr(uint64_t addr, uint32_t stored)
{
	uint64_t units = geometry.segment_len / VF_UNIT, segno = addr / units;

	assert(segno < geometry.nsegments && segno != 0 && segno != 4);
	assert(stored > 0 && addr % units >= 64 && addr % units + stored <= units);
}

static void touch(const void *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		sink ^= ((const uint8_t *)bytes)[i];
}

static void walk_table(const void *at, uint32_t len, uint32_t ndescs, const void *end)
{
	struct vf_table table = { .at = at, .left = len, .ndescs = ndescs };

	while (vf_table_next(&table)) {
		uint32_t body_len = le32_get(&table.desc->body_len);

		assert((const uint8_t *)table.body + body_len <= (const uint8_t *)end);
		touch(table.desc, sizeof(*table.desc));
		touch(table.body, body_len);
	}
}

static void walk_leaf(const struct vf_leaf *leaf)
{
	const uint8_t *at = (const uint8_t *)(leaf + 1);
	uint32_t end = 0;

	for (uint32_t i = le16_get(&leaf->count); i > 0; i--, at += leaf->entry_len) {
		uint8_t again[VF_ENTRY_WIDE_LEN];
		struct vf_entry entry;
		bool wide = leaf->entry_len == VF_ENTRY_WIDE_LEN;

		vf_entry_get(at, &entry, wide);
		assert(entry.start >= end && entry.start + entry.nsectors <= VF_REGION_SECTORS);
		end = (uint32_t)entry.start + entry.nsectors;
		if (!(entry.flags & VF_ENTRY_HOLE))
			expect_addr(entry.addr, entry.stored);
		vf_entry_put(again, &entry, wide);
		assert(memcmp(again, at, leaf->entry_len) == 0);
	}
}

static void walk_dir(const struct vf_dir *dir)
{
	const struct vf_slot *slot = (const struct vf_slot *)(dir + 1);

	for (uint32_t i = 0; i < VF_FANOUT; i++) {
		uint64_t where;

		if (!(dir->present[i / 8] >> i % 8 & 1))
			continue;
		where = le64_get(&slot++->where);
		expect_addr(vf_where_addr(where), vf_where_stored(where));
	}
	assert((const uint8_t *)slot == (const uint8_t *)dir + le32_get(&dir->head.len));
}

static void walk_footer(const struct vf_footer *footer)
{
	const uint8_t *at = (const uint8_t *)(footer + 1);
	const uint8_t *end = (const uint8_t *)footer + le32_get(&footer->head.len);

	for (uint32_t i = le32_get(&footer->ngroups); i > 0; i--) {
		const struct vf_footer_group *group = (const struct vf_footer_group *)at;

		at = (const uint8_t *)(group + 1) + le32_get(&group->table_len);
		assert(at <= end);
		walk_table(group + 1, le32_get(&group->table_len), le32_get(&group->ndescs), at);
	}
}

static void judge_group(uint8_t *bytes, uint32_t len)
{
	const struct vf_group *group = (const struct vf_group *)bytes;
	uint32_t head_len;

	if (len < sizeof(*group) || !vf_group_plausible(group, &geometry, 64u << 10))
		return;
	head_len = le32_get(&group->head.len);
	if (head_len <= len && vf_group_check(group, &geometry, 64u << 10))
		walk_table(group + 1, head_len - (uint32_t)sizeof(*group), le32_get(&group->ndescs),
			   bytes + head_len);
}

static void judge(enum vf_type type, uint8_t *bytes, uint32_t len)
{
	switch (type) {
	case VF_SUPER:
		if (len == VF_SUPER_LEN)
			vf_super_check((const void *)bytes);
		break;
	case VF_SEGMENT:
		if (len == sizeof(struct vf_segment))
			vf_segment_check((const void *)bytes, &geometry, 2);
		break;
	case VF_GROUP: judge_group(bytes, len); break;
	case VF_FOOTER:
		if (vf_footer_check((const void *)bytes, len, &geometry))
			walk_footer((const void *)bytes);
		break;
	case VF_ROOT: vf_root_check((const void *)bytes, len, &geometry); break;
	case VF_DIR:
		if (vf_dir_check((const void *)bytes, len, &geometry, 3, 2, 5))
			walk_dir((const void *)bytes);
		break;
	case VF_LEAF:
		if (vf_leaf_check((const void *)bytes, len, &geometry, 3, 9))
			walk_leaf((const void *)bytes);
		break;
	case VF_SEGTAB: vf_segtab_check((const void *)bytes, len, &geometry, 1); break;
	case VF_VOLUME: vf_volume_check((const void *)bytes, len, &geometry, 3); break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint8_t *bytes;
	unsigned int kind;

	if (len < 2)
		return 0;
	kind = data[0];
	data++;
	len--;
	/* In a block of their own, so that a checker sees their end. */
	bytes = malloc(len);
	if (!bytes)
		abort();
	memcpy(bytes, data, len);
	if (kind % 10 == 0) {
		uint32_t ndescs = kind / 10;

		if (vf_table_check(bytes, (uint32_t)len, ndescs))
			walk_table(bytes, (uint32_t)len, ndescs, bytes + len);
	} else {
		if (len >= sizeof(struct vf_head) && kind < 200)
			vf_seal(bytes, kind % 10, (uint32_t)len, geometry.uuid);
		judge(kind % 10, bytes, (uint32_t)len);
	}
	free(bytes);
	return 0;
}
