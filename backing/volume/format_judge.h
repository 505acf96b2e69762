/*
 * Judging the parts that several structures have: addresses, slots, trees.
 *
 * For format_*.c only; others use the vf_*_check() of format.h.
 */
#ifndef BACKING_VOLUME_FORMAT_JUDGE_H
#define BACKING_VOLUME_FORMAT_JUDGE_H

#include "backing/volume/format.h"

static inline uint32_t judge_segment_units(const struct vf_geometry *geometry)
{
	return geometry->segment_len / VF_UNIT;
}

/* A segment that may hold something. */
static inline bool judge_segno(const struct vf_geometry *geometry, uint64_t segno)
{
	return segno < geometry->nsegments && !vf_segment_is_super(geometry->segment_len, segno);
}

/* So many units lie in one such segment, behind its header. */
static inline bool judge_addr(const struct vf_geometry *geometry, uint64_t addr, uint32_t stored)
{
	uint32_t units = judge_segment_units(geometry), in = (uint32_t)(addr % units);

	return judge_segno(geometry, addr / units) && in >= VF_BLOCK / VF_UNIT && stored >= 1 &&
	       stored <= units - in;
}

static inline bool judge_slot(const struct vf_geometry *geometry, const struct vf_slot *slot)
{
	uint64_t where = le64_get(&slot->where);

	return where >> 55 == 0 &&
	       judge_addr(geometry, vf_where_addr(where), vf_where_stored(where));
}

/* Empty, or a page of a level there is. */
static inline bool judge_tree(const struct vf_geometry *geometry, const struct vf_tree *tree)
{
	if (tree->level == 0)
		return le64_get(&tree->slot.where) == 0;
	return tree->level <= VF_LEVELS_MAX && judge_slot(geometry, &tree->slot);
}

/* A place: a segment, and blocks in it behind its header, its end included. */
static inline bool judge_place(const struct vf_geometry *geometry, const struct vf_place *place)
{
	uint32_t off = le32_get(&place->off);

	return judge_segno(geometry, le32_get(&place->segno)) && off >= 1 &&
	       off <= geometry->segment_len / VF_BLOCK;
}

/* A change of a live count, which never is more than twice the segment. */
static inline bool judge_change(const struct vf_geometry *geometry, const le32 *segno,
				const le32 *units)
{
	int64_t change = (int32_t)le32_get(units),
		most = 2 * (int64_t)judge_segment_units(geometry);

	return judge_segno(geometry, le32_get(segno)) && change >= -most && change <= most;
}

/* Units of a packed payload of so many bytes, prefix and padding too. */
static inline uint32_t judge_packed_units(uint64_t len)
{
	return (uint32_t)((sizeof(struct vf_prefix) + len + VF_UNIT - 1) / VF_UNIT);
}

/* Codec ids have four bits, of which 15 says "raw" in a leaf. */
#define JUDGE_CODEC_MAX 14

#endif
