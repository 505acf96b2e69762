/* Each check rejects each field that is wrong, though the sum is right. */
#include "tests/unit/volume/samples.h"

#include "tests/unit/quintain_test.h"

#define NO_SEGMENT 256 /* the pool has that many */
#define MANY	   UINT64_MAX

static void superblock_is_judged_whole(void)
{
	static const struct wrong wrong[] = {
		WRONG(struct vf_super, generation, 0),
		WRONG(struct vf_super, segment_len, 0),
		WRONG(struct vf_super, segment_len, 128 << 10),
		WRONG(struct vf_super, segment_len, 8 << 20),
		WRONG(struct vf_super, segment_len, 257 << 10),
		WRONG(struct vf_super, nsegments, 0),
		WRONG(struct vf_super, nsegments, 255),
		WRONG(struct vf_super, nsegments, MANY),
		WRONG(struct vf_super, end.segno, 0),
		WRONG(struct vf_super, end.segno, 4),
		WRONG(struct vf_super, end.segno, NO_SEGMENT),
		WRONG(struct vf_super, end.off, 0),
		WRONG(struct vf_super, end.off, 65),
		WRONG(struct vf_super, end.seq, 0),
		WRONG(struct vf_super, root[0][0].addr, 0),
		WRONG(struct vf_super, root[0][0].addr, 5 * SAMPLE_UNITS + 63),
		WRONG(struct vf_super, root[0][1].addr, 6 * SAMPLE_UNITS - 4),
		WRONG(struct vf_super, root[1][0].addr, 4 * SAMPLE_UNITS + 64),
		WRONG(struct vf_super, root[1][1].addr, MANY),
		WRONG(struct vf_super, root[1][1].stored, 0),
		WRONG(struct vf_super, root[1][0].stored, SAMPLE_UNITS),
		WRONG(struct vf_super, ndevices, 0),
		WRONG(struct vf_super, ndevices, 2),
		WRONG(struct vf_super, ndevices, VF_DEVICES_MAX + 1),
		WRONG(struct vf_super, device, 1),
		WRONG(struct vf_super, unit_shift, 7),
		WRONG(struct vf_super, devices[0].nsegments, 255),
		WRONG(struct vf_super, devices[0].nsegments, 257),
		WRONG(struct vf_super, label[0], 7),
		WRONG(struct vf_super, label[63], 'x'),
	};
	struct sample sample = sample_super();

	expect_rejected(&sample, wrong, ARRAY_LEN(wrong));
	expect_whole(&sample, true);
	sample_free(&sample);
}

static void segment_header_is_judged_whole(void)
{
	static const struct wrong wrong[] = {
		WRONG(struct vf_segment, segno, 3),
		WRONG(struct vf_segment, stream, VF_NSTREAMS),
		WRONG(struct vf_segment, first_seq, 0),
		WRONG(struct vf_segment, before, 4),
		WRONG(struct vf_segment, before, NO_SEGMENT),
		WRONG(struct vf_segment, successor, 0),
		WRONG(struct vf_segment, successor, 2),
		WRONG(struct vf_segment, successor, 4),
		WRONG(struct vf_segment, successor, NO_SEGMENT),
	};
	struct sample sample = sample_segment(VF_W);

	expect_rejected(&sample, wrong, ARRAY_LEN(wrong));
	expect_whole(&sample, true);
	expect_bits_matter(&sample);
	CU_ASSERT(!vf_segment_check(sample.at, &sample_geometry, 3));
	sample_free(&sample);
	for (enum vf_stream stream = VF_G1; stream < VF_NSTREAMS; stream++) {
		sample = sample_segment(stream);
		CU_ASSERT(sample_valid(&sample, sample.at, sample.len));
		sample_free(&sample);
	}
}

static void segment_table_is_judged_whole(void)
{
	static const struct wrong wrong[] = {
		WRONG(struct vf_segtab, index, 0),
		WRONG(struct vf_segtab, index, 2),
		WRONG(struct vf_segtab, recs[0].live, 2 * SAMPLE_UNITS + 1),
		WRONG(struct vf_segtab, recs[95].stream, VF_NSTREAMS),
		WRONG(struct vf_segtab, recs[96].live, 1), /* segment 256 */
		WRONG(struct vf_segtab, recs[159].live, 1),
	};
	struct sample sample = sample_segtab();

	expect_rejected(&sample, wrong, ARRAY_LEN(wrong));
	expect_whole(&sample, true);
	CU_ASSERT(!vf_segtab_check(sample.at, sample.len, &sample_geometry, 0));
	sample_free(&sample);
}

static void segment_table_has_nothing_in_superblocks(void)
{
	struct sample sample = sample_segtab();
	struct vf_segtab *page = sample.at;

	le64_put(&page->index, 0);
	memset(page->recs, 0, sizeof(page->recs));
	le32_put(&page->recs[5].live, 1);
	vf_seal(page, VF_SEGTAB, sample.len, sample_geometry.uuid);
	CU_ASSERT(vf_segtab_check(page, sample.len, &sample_geometry, 0));
	le32_put(&page->recs[4].live, 1);
	vf_seal(page, VF_SEGTAB, sample.len, sample_geometry.uuid);
	CU_ASSERT(!vf_segtab_check(page, sample.len, &sample_geometry, 0));
	sample_free(&sample);
}

static void volume_is_judged_whole(void)
{
	static const struct wrong wrong[] = {
		WRONG(struct vf_volume, id, 0),
		WRONG(struct vf_volume, id, 4),
		WRONG(struct vf_volume, flags, 2),
		WRONG(struct vf_volume, name[0], 0),
		WRONG(struct vf_volume, name[1], ' '),
		WRONG(struct vf_volume, name[1], '/'),
		WRONG(struct vf_volume, name[1], 0x7f),
		WRONG(struct vf_volume, name[63], 'x'),
		WRONG(struct vf_volume, nsectors, 0),
		WRONG(struct vf_volume, nsectors, 10 * VF_REGION_SECTORS + 9),
		WRONG(struct vf_volume, nsectors, VF_VOLUME_SECTORS_MAX + 8),
		WRONG(struct vf_volume, nsectors, 10 * VF_REGION_SECTORS),
		WRONG(struct vf_volume, block_len, 0),
		WRONG(struct vf_volume, block_len, 1024),
		WRONG(struct vf_volume, record_len, 2048),
		WRONG(struct vf_volume, record_len, 24576),
		WRONG(struct vf_volume, record_len, 128 << 10), /* a quarter of a segment */
		WRONG(struct vf_volume, codec, 5),
		WRONG(struct vf_volume, codec, 255),
		WRONG(struct vf_volume, level, 100),
		WRONG(struct vf_volume, checksum, 2),
		WRONG(struct vf_volume, parent, 1),
		WRONG(struct vf_volume, nranges, 1),
		WRONG(struct vf_volume, nranges, 3),
		WRONG(struct vf_volume, nranges, 0x80000002),
		WRONG(struct vf_volume, head_tree.level, 0),
		WRONG(struct vf_volume, head_tree.level, 5),
		WRONG(struct vf_volume, head_tree.slot.where, 0),
		WRONG(struct vf_volume, head_tree.slot.where, MANY),
		WRONG(struct vf_volume, history_tree.level, 1),
		WRONG(struct vf_volume, history_tree.slot.where, 5 * SAMPLE_UNITS + 64),
		WRONG_AT(sizeof(struct vf_volume), struct vf_range, region, 11),
		WRONG_AT(sizeof(struct vf_volume), struct vf_range, region, 1),
		WRONG_AT(sizeof(struct vf_volume), struct vf_range, region, MANY),
		WRONG_AT(sizeof(struct vf_volume), struct vf_range, nregions, 0),
		WRONG_AT(sizeof(struct vf_volume), struct vf_range, nregions, MANY),
		WRONG_AT(sizeof(struct vf_volume) + 32, struct vf_range, nregions, 2),
	};
	struct sample sample = sample_volume();

	expect_rejected(&sample, wrong, ARRAY_LEN(wrong));
	expect_whole(&sample, true);
	expect_bits_matter(&sample);
	CU_ASSERT(!vf_volume_check(sample.at, sample.len, &sample_geometry, 2));
	sample_free(&sample);
}

static void root_is_judged_whole(void)
{
	static const struct wrong wrong[] = {
		WRONG(struct vf_root, replay.seq, 0),
		WRONG(struct vf_root, replay.segno, 0),
		WRONG(struct vf_root, replay.segno, NO_SEGMENT),
		WRONG(struct vf_root, replay.off, 0),
		WRONG(struct vf_root, replay.off, 65),
		WRONG(struct vf_root, next_volume, 0),
		WRONG(struct vf_root, next_volume, UINT32_MAX),
		WRONG(struct vf_root, nchanges, 1),
		WRONG(struct vf_root, nchanges, 3),
		WRONG(struct vf_root, nchanges, 0x10000002),
		WRONG(struct vf_root, segtab.level, 5),
		WRONG(struct vf_root, segtab.level, 0),
		WRONG(struct vf_root, segtab.slot.where, 5),
		WRONG(struct vf_root, voltab.level, 5),
		WRONG(struct vf_root, voltab.slot.where, 1ull << 55 | 5ull << 40 | 8300),
		WRONG(struct vf_root, changes[0].segno, 4),
		WRONG(struct vf_root, changes[1].segno, NO_SEGMENT),
		WRONG(struct vf_root, changes[1].units, 2 * SAMPLE_UNITS + 1),
		WRONG(struct vf_root, changes[1].units, 0x80000000),
	};
	struct sample sample = sample_root();

	expect_rejected(&sample, wrong, ARRAY_LEN(wrong));
	expect_whole(&sample, true);
	expect_bits_matter(&sample);
	sample_free(&sample);
}

static void directory_is_judged_whole(void)
{
	static const struct wrong wrong[] = {
		WRONG(struct vf_dir, tree, 4),
		WRONG(struct vf_dir, level, 1),
		WRONG(struct vf_dir, level, 0),
		WRONG(struct vf_dir, nslots, 2),
		WRONG(struct vf_dir, nslots, 4),
		WRONG(struct vf_dir, nslots, 0xffff),
		WRONG(struct vf_dir, index, 6),
		WRONG(struct vf_dir, present[5], 1),
		WRONG(struct vf_dir, present[0], 1),
		WRONG_AT(sizeof(struct vf_dir), struct vf_slot, where, 0),
		WRONG_AT(sizeof(struct vf_dir), struct vf_slot, where, MANY),
		WRONG_AT(sizeof(struct vf_dir), struct vf_slot, where, 5 * SAMPLE_UNITS + 128),
		WRONG_AT(sizeof(struct vf_dir) + 80, struct vf_slot, where,
			 10ull << 40 | (4 * SAMPLE_UNITS + 128)),
		WRONG_AT(sizeof(struct vf_dir) + 80, struct vf_slot, where,
			 10ull << 40 | (6 * SAMPLE_UNITS - 9)),
		WRONG_AT(sizeof(struct vf_dir) + 80, struct vf_slot, where,
			 1ull << 56 | 10ull << 40 | (5 * SAMPLE_UNITS + 128)),
	};
	struct sample sample = sample_dir();

	expect_rejected(&sample, wrong, ARRAY_LEN(wrong));
	expect_whole(&sample, true);
	expect_bits_matter(&sample);
	CU_ASSERT(!vf_dir_check(sample.at, sample.len, &sample_geometry, 4, 2, 5));
	CU_ASSERT(!vf_dir_check(sample.at, sample.len, &sample_geometry, 3, 1, 5));
	CU_ASSERT(!vf_dir_check(sample.at, sample.len, &sample_geometry, 3, 2, 4));
	sample_free(&sample);
}

static void foreign_pools_are_rejected(void)
{
	struct sample samples[] = {
		sample_segment(VF_W), sample_group(7), sample_footer(false), sample_leaf(false),
		sample_dir(),	      sample_segtab(), sample_volume(),	     sample_root(),
	};

	for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
		vf_seal(samples[i].at, samples[i].type, samples[i].len,
			(const uint8_t *)"another pool....");
		CU_ASSERT(!sample_valid(&samples[i], samples[i].at, samples[i].len));
		vf_seal(samples[i].at, VF_VOLUME + 1, samples[i].len, sample_geometry.uuid);
		CU_ASSERT(!sample_valid(&samples[i], samples[i].at, samples[i].len));
		sample_free(&samples[i]);
	}
}

static const struct test tests[] = {
	TEST(superblock_is_judged_whole),    TEST(segment_header_is_judged_whole),
	TEST(segment_table_is_judged_whole), TEST(segment_table_has_nothing_in_superblocks),
	TEST(volume_is_judged_whole),	     TEST(root_is_judged_whole),
	TEST(directory_is_judged_whole),     TEST(foreign_pools_are_rejected),
};

TEST_MAIN(tests)
