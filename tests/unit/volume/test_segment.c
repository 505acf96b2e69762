/* Which segments may be begun anew, and for whom. */
#include "backing/volume/segment.h"

#include "backing/volume/log.h"
#include "tests/unit/quintain_test.h"
#include "tests/unit/volume/pool_bed.h"

static struct bed bed;

/* One that was written and sealed, with something in it. */
static uint32_t sealed(enum vf_stream stream, int32_t units)
{
	uint32_t segno = segment_take(bed.pool, stream, SEGMENT_FOR_MAP);

	CU_ASSERT_FATAL(segno != 0);
	segment_at(bed.pool, segno)->state = SEGMENT_OPEN;
	if (units)
		segment_change(bed.pool, segno, units, log_seq(bed.pool));
	segment_seal(bed.pool, segno, log_seq(bed.pool));
	return segno;
}

static void checkpoint(void)
{
	CU_ASSERT_EQUAL(pool_checkpoint(bed.pool, &bed.err), 0);
}

static void segment_that_lives_is_not_reused(void)
{
	uint32_t segno;

	bed_open(&bed, BED_LEN);
	segno = sealed(VF_M, 10);
	CU_ASSERT(!segment_reusable(bed.pool, segno));
	checkpoint();
	checkpoint();
	CU_ASSERT(!segment_reusable(bed.pool, segno));
	segment_change(bed.pool, segno, -10, log_seq(bed.pool));
	bed_close(&bed);
}

static void segment_that_died_waits_for_two_checkpoints(void)
{
	uint32_t segno;

	bed_open(&bed, BED_LEN);
	segno = sealed(VF_M, 10);
	CU_ASSERT_EQUAL(bed_flush(&bed, bed_volume(&bed, "v", 1 << 20)), 0);
	segment_change(bed.pool, segno, -10, log_seq(bed.pool));
	CU_ASSERT(!segment_reusable(bed.pool, segno));
	checkpoint();
	CU_ASSERT(!segment_reusable(bed.pool, segno));
	checkpoint();
	CU_ASSERT(segment_reusable(bed.pool, segno));
	bed_close(&bed);
}

static void segment_of_the_log_waits_for_two_checkpoints(void)
{
	uint32_t segno;

	bed_open(&bed, BED_LEN);
	bed_volume(&bed, "v", 1 << 20);
	segno = sealed(VF_W, 0);
	CU_ASSERT(!segment_reusable(bed.pool, segno));
	checkpoint();
	CU_ASSERT(!segment_reusable(bed.pool, segno));
	checkpoint();
	CU_ASSERT(segment_reusable(bed.pool, segno));
	bed_close(&bed);
}

static void segment_pinned_is_not_reused(void)
{
	uint32_t segno;

	bed_open(&bed, BED_LEN);
	segno = sealed(VF_M, 0);
	CU_ASSERT(segment_reusable(bed.pool, segno));
	segment_pin(bed.pool, segno);
	segment_pin(bed.pool, segno);
	segment_unpin(bed.pool, segno);
	CU_ASSERT(!segment_reusable(bed.pool, segno));
	segment_unpin(bed.pool, segno);
	CU_ASSERT(segment_reusable(bed.pool, segno));
	bed_close(&bed);
}

static uint32_t take_all(uint32_t *taken, uint32_t n, enum segment_use use)
{
	while (n < 64 && (taken[n] = segment_take(bed.pool, VF_G1, use)) != 0)
		n++;
	return n;
}

/* Users leave some to cleaning, cleaning some to merges and checkpoints. */
static void segments_are_kept_for_those_who_free_some(void)
{
	uint32_t taken[64], nwrites, ncleaning, nmap;

	bed_open(&bed, BED_LEN);
	nwrites = take_all(taken, 0, SEGMENT_FOR_WRITES);
	ncleaning = take_all(taken, nwrites, SEGMENT_FOR_CLEANING);
	nmap = take_all(taken, ncleaning, SEGMENT_FOR_MAP);
	CU_ASSERT(nwrites > 30);
	CU_ASSERT(ncleaning >= nwrites + 3);
	CU_ASSERT(nmap >= ncleaning + 4);
	CU_ASSERT_EQUAL(segments_reusable(bed.pool), 0);
	for (uint32_t i = 0; i < nmap; i++)
		segment_seal(bed.pool, taken[i], log_seq(bed.pool));
	CU_ASSERT_EQUAL(segments_reusable(bed.pool), nmap);
	bed_close(&bed);
}

static void segments_count_what_lives(void)
{
	uint64_t live, map;
	uint32_t segno;

	bed_open(&bed, BED_LEN);
	live = segments_live_units(bed.pool);
	map = segments_map_units(bed.pool);
	segno = segment_take(bed.pool, VF_M, SEGMENT_FOR_MAP);
	segment_born(bed.pool, segno * (uint64_t)pool_segment_units(bed.pool) + 64, 7,
		     log_seq(bed.pool));
	CU_ASSERT_EQUAL(segment_at(bed.pool, segno)->live, live_units(7));
	CU_ASSERT_EQUAL(segments_live_units(bed.pool), live + live_units(7));
	CU_ASSERT_EQUAL(segments_map_units(bed.pool), map + live_units(7));
	segment_change(bed.pool, segno, -(int32_t)live_units(7), log_seq(bed.pool));
	CU_ASSERT_EQUAL(segments_map_units(bed.pool), map);
	segment_seal(bed.pool, segno, log_seq(bed.pool));
	bed_close(&bed);
}

static const struct test tests[] = {
	TEST(segment_that_lives_is_not_reused),
	TEST(segment_that_died_waits_for_two_checkpoints),
	TEST(segment_of_the_log_waits_for_two_checkpoints),
	TEST(segment_pinned_is_not_reused),
	TEST(segments_are_kept_for_those_who_free_some),
	TEST(segments_count_what_lives),
};
TEST_MAIN(tests)
