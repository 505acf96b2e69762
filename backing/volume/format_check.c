/* Judging superblocks, segment headers, roots and volumes. */
#include "backing/volume/format.h"

#include "backing/volume/format_judge.h"
#include "compress/codec.h"

static bool power_of_two(uint32_t value)
{
	return value != 0 && (value & (value - 1)) == 0;
}

/* ---- superblock ---- */

static bool devices_valid(const struct vf_super *super)
{
	uint32_t ndevices = le32_get(&super->ndevices);
	uint64_t left = le64_get(&super->nsegments);

	if (ndevices < 1 || ndevices > VF_DEVICES_MAX || le32_get(&super->device) >= ndevices)
		return false;
	for (uint32_t i = 0; i < ndevices; i++) {
		uint64_t nsegments = le64_get(&super->devices[i].nsegments);

		if (nsegments == 0 || nsegments > left)
			return false;
		left -= nsegments;
	}
	return left == 0;
}

/* The end of the former incarnation: none, or the place of a group. */
static bool end_valid(const struct vf_super *super, const struct vf_geometry *geometry)
{
	if (le64_get(&super->end.seq) == 0)
		return le32_get(&super->end.segno) == 0 && le32_get(&super->end.off) == 0;
	return judge_place(geometry, &super->end);
}

static bool roots_valid(const struct vf_super *super, const struct vf_geometry *geometry)
{
	for (unsigned int i = 0; i < 4; i++) {
		const struct vf_ptr *ptr = &super->root[i / 2][i % 2];
		uint64_t addr = le64_get(&ptr->addr);
		uint32_t stored = le32_get(&ptr->stored);

		if (addr == 0 ? stored != 0 : !judge_addr(geometry, addr, stored))
			return false;
	}
	return true;
}

bool vf_super_check(const struct vf_super *super)
{
	struct vf_geometry geometry = {
		.segment_len = le32_get(&super->segment_len),
		.nsegments = le64_get(&super->nsegments),
	};

	if (!vf_check(super, VF_SUPER, VF_SUPER_LEN, VF_SUPER_LEN, NULL))
		return false;
	if (le64_get(&super->generation) == 0 || le32_get(&super->unit_shift) != 6)
		return false;
	if (!power_of_two(geometry.segment_len) || geometry.segment_len < 256u << 10 ||
	    geometry.segment_len > 4u << 20)
		return false;
	if (geometry.nsegments < VF_POOL_LEN_MIN / geometry.segment_len ||
	    geometry.nsegments > VF_POOL_LEN_MAX / geometry.segment_len)
		return false;
	return devices_valid(super) && end_valid(super, &geometry) &&
	       roots_valid(super, &geometry) && vf_label_valid(super->label);
}

/* ---- segment ---- */

bool vf_segment_check(const struct vf_segment *segment, const struct vf_geometry *geometry,
		      uint32_t segno)
{
	uint32_t before = le32_get(&segment->before), successor = le32_get(&segment->successor);

	if (!vf_check(segment, VF_SEGMENT, sizeof(*segment), sizeof(*segment), geometry->uuid))
		return false;
	if (le32_get(&segment->segno) != segno || !judge_segno(geometry, segno) ||
	    segment->stream >= VF_NSTREAMS)
		return false;
	if (segment->stream != VF_W)
		return true;
	return le64_get(&segment->first_seq) != 0 && judge_segno(geometry, successor) &&
	       successor != segno && (before == 0 || judge_segno(geometry, before));
}

/* ---- segment table ---- */

bool vf_segtab_check(const struct vf_segtab *page, uint32_t len, const struct vf_geometry *geometry,
		     uint64_t index)
{
	uint64_t first = index * VF_SEGTAB_RECS;
	uint32_t most = 2 * judge_segment_units(geometry);

	if (len < sizeof(*page) ||
	    !vf_check(page, VF_SEGTAB, sizeof(*page), sizeof(*page), geometry->uuid))
		return false;
	if (le64_get(&page->index) != index || index > geometry->nsegments / VF_SEGTAB_RECS)
		return false;
	for (uint32_t i = 0; i < VF_SEGTAB_RECS; i++) {
		const struct vf_segrec *rec = &page->recs[i];
		uint32_t live = le32_get(&rec->live);

		if (rec->stream >= VF_NSTREAMS || live > most ||
		    (live > 0 && !judge_segno(geometry, first + i)))
			return false;
	}
	return true;
}

/* ---- volume ---- */

static bool ranges_valid(const struct vf_volume *volume, uint32_t nranges, uint64_t nregions)
{
	for (uint32_t i = 0; i < nranges; i++) {
		uint64_t region = le64_get(&volume->ranges[i].region);
		uint64_t n = le64_get(&volume->ranges[i].nregions);

		if (region >= nregions || n == 0 || n > nregions - region)
			return false;
	}
	return true;
}

static bool volume_settings_valid(const struct vf_volume *volume,
				  const struct vf_geometry *geometry)
{
	struct codec_choice choice = { volume->codec, (int8_t)volume->level };
	uint32_t block_len = le32_get(&volume->block_len);
	uint32_t record_len = le32_get(&volume->record_len);
	uint64_t nsectors = le64_get(&volume->nsectors);

	if (block_len != 512 && block_len != 4096)
		return false;
	if (!power_of_two(record_len) || record_len < 4096 ||
	    record_len > vf_record_len_max(geometry->segment_len))
		return false;
	if (nsectors == 0 || nsectors > VF_VOLUME_SECTORS_MAX ||
	    nsectors % (block_len / VF_SECTOR) != 0)
		return false;
	return volume->checksum <= VF_SHA256 && codec_choice_valid(&choice);
}

bool vf_volume_check(const struct vf_volume *volume, uint32_t len,
		     const struct vf_geometry *geometry, uint32_t id)
{
	uint32_t nranges;
	uint64_t nregions;

	if (!vf_check(volume, VF_VOLUME, sizeof(*volume), len, geometry->uuid))
		return false;
	nranges = le32_get(&volume->nranges);
	if (nranges > VF_RANGES_MAX ||
	    le32_get(&volume->head.len) - sizeof(*volume) != nranges * sizeof(struct vf_range))
		return false;
	if (le32_get(&volume->id) != id || id < 1 || id > VF_VOLUME_ID_MAX ||
	    !vf_name_valid(volume->name) ||
	    le32_get(&volume->flags) & ~(uint32_t)VF_VOLUME_DELETING)
		return false;
	/* Clones and snapshots have feature bits, which this program does not know. */
	if (le32_get(&volume->parent) != 0 || volume->history_tree.level != 0)
		return false;
	if (!volume_settings_valid(volume, geometry) || !judge_tree(geometry, &volume->head_tree) ||
	    !judge_tree(geometry, &volume->history_tree))
		return false;
	nregions = (le64_get(&volume->nsectors) + VF_REGION_SECTORS - 1) / VF_REGION_SECTORS;
	return ranges_valid(volume, nranges, nregions);
}

/* ---- root ---- */

bool vf_root_check(const struct vf_root *root, uint32_t len, const struct vf_geometry *geometry)
{
	uint32_t nchanges, changes_len, next_volume;

	if (!vf_check(root, VF_ROOT, sizeof(*root), len, geometry->uuid))
		return false;
	nchanges = le32_get(&root->nchanges);
	changes_len = le32_get(&root->head.len) - (uint32_t)sizeof(*root);
	if (changes_len % sizeof(root->changes[0]) != 0 ||
	    nchanges != changes_len / sizeof(root->changes[0]))
		return false;
	next_volume = le32_get(&root->next_volume);
	if (next_volume < 1 || next_volume > VF_VOLUME_ID_MAX + 1u ||
	    le64_get(&root->replay.seq) == 0 || !judge_place(geometry, &root->replay))
		return false;
	for (uint32_t i = 0; i < nchanges; i++)
		if (!judge_change(geometry, &root->changes[i].segno, &root->changes[i].units))
			return false;
	return judge_tree(geometry, &root->segtab) && judge_tree(geometry, &root->voltab);
}
