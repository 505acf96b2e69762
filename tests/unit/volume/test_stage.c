/* Admission of writes: turns, bounds of memory, credit, what FLUSH covers. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "tests/unit/quintain_test.h"
#include "tests/unit/volume/pool_bed.h"

#define MANY	   64u
#define BIG	   (256u << 10)
#define SECTORS(n) ((n) / VF_SECTOR)

static struct bed bed;

/* Requests in flight, in the order of their answers. */
struct flight {
	struct vreq req;
	struct iovec iov;
	uint32_t place;
};

static struct flight flights[MANY + 1];
static uint32_t nanswered;
static uint8_t *data;

static void answered(struct vreq *req)
{
	container_of(req, struct flight, req)->place = ++nanswered;
}

static void submit(struct flight *flight, struct volume *volume, uint8_t op, uint8_t flags,
		   uint64_t lba, uint64_t len)
{
	flight->place = 0;
	flight->iov = (struct iovec){ data, len };
	flight->req = (struct vreq){ .op = op,
				     .flags = flags,
				     .lba = lba,
				     .nsectors = SECTORS(len),
				     .iov = &flight->iov,
				     .iovcnt = 1,
				     .done = answered };
	volume_submit(volume, &flight->req);
}

static void wait_for(uint32_t n)
{
	while (nanswered < n)
		bed.device.env->ops->wait(bed.device.env);
}

static void setup(uint64_t len)
{
	bed_open(&bed, len);
	data = malloc(16u << 20);
	for (uint32_t i = 0; i < 4u << 20; i++)
		((uint32_t *)(void *)data)[i] = i * 2654435761u;
	nanswered = 0;
}

static void teardown(void)
{
	bed_close(&bed);
	free(data);
}

/* All at once, 16 MiB: many times what may be staged. */
static void submit_many(struct volume *volume)
{
	for (uint32_t i = 0; i < MANY; i++)
		submit(&flights[i], volume, VREQ_WRITE, 0, (uint64_t)i * SECTORS(BIG), BIG);
}

static void stage_takes_volumes_by_turns(void)
{
	struct volume *greedy, *small;

	setup(64u << 20);
	greedy = bed_volume(&bed, "greedy", 64u << 20);
	small = bed_volume(&bed, "small", 1u << 20);
	submit_many(greedy);
	submit(&flights[MANY], small, VREQ_WRITE, VREQ_FUA, 0, 4096);
	wait_for(MANY + 1);
	CU_ASSERT_TRUE(flights[MANY].place < MANY / 2);
	teardown();
}

static void stage_answers_a_volume_in_order(void)
{
	struct volume *volume;

	setup(64u << 20);
	volume = bed_volume(&bed, "v", 64u << 20);
	submit_many(volume);
	wait_for(MANY);
	for (uint32_t i = 0; i < MANY; i++)
		CU_ASSERT_EQUAL(flights[i].place, i + 1);
	teardown();
}

static void stage_memory_is_bounded(void)
{
	struct pool_info info;
	struct volume *volume;

	setup(64u << 20);
	volume = bed_volume(&bed, "v", 64u << 20);
	submit_many(volume);
	pool_info(bed.pool, &info);
	CU_ASSERT_TRUE(nanswered == 0);
	CU_ASSERT_TRUE(info.memory < POOL_MEMORY_MIN / 4);
	wait_for(MANY);
	pool_info(bed.pool, &info);
	CU_ASSERT_TRUE(info.memory_max <= POOL_MEMORY_MIN);
	teardown();
}

static void stage_takes_commands_longer_than_its_memory(void)
{
	struct volume *volume;
	uint8_t *back = calloc(1, 16u << 20);
	struct iovec iov = { back, 16u << 20 };

	setup(64u << 20);
	volume = bed_volume(&bed, "v", 64u << 20);
	submit(&flights[0], volume, VREQ_WRITE, VREQ_FUA, 0, 16u << 20);
	wait_for(1);
	CU_ASSERT_EQUAL(flights[0].req.err, 0);
	flights[1].req = flights[0].req;
	flights[1].req.op = VREQ_READ;
	flights[1].req.iov = &iov;
	volume_submit(volume, &flights[1].req);
	wait_for(2);
	CU_ASSERT_EQUAL(memcmp(back, data, 16u << 20), 0);
	free(back);
	teardown();
}

static void flush_covers_what_was_answered(void)
{
	struct volume *volume;

	setup(BED_LEN);
	volume = bed_volume(&bed, "v", 1u << 20);
	CU_ASSERT_EQUAL(bed_write(&bed, volume, 0, 8, 1), 0);
	CU_ASSERT_EQUAL(bed_write(&bed, volume, 8, 8, 2), 0);
	CU_ASSERT_EQUAL(bed_flush(&bed, volume), 0);
	bed_crash(&bed);
	volume = volume_find(bed.pool, "v");
	CU_ASSERT_TRUE(bed_holds(&bed, volume, 0, 8, 1));
	CU_ASSERT_TRUE(bed_holds(&bed, volume, 8, 8, 2));
	teardown();
}

static void flush_of_nothing_writes_nothing(void)
{
	struct volume *volume;
	unsigned int nwrites, nflushes;

	setup(BED_LEN);
	volume = bed_volume(&bed, "v", 1u << 20);
	CU_ASSERT_EQUAL(bed_write(&bed, volume, 0, 8, 1), 0);
	CU_ASSERT_EQUAL(bed_flush(&bed, volume), 0);
	nwrites = bed.device.nwrites;
	nflushes = bed.device.nflushes;
	for (int i = 0; i < 10; i++)
		CU_ASSERT_EQUAL(bed_flush(&bed, volume), 0);
	CU_ASSERT_EQUAL(bed.device.nwrites, nwrites);
	CU_ASSERT_EQUAL(bed.device.nflushes, nflushes);
	teardown();
}

static void flush_shares_one_group(void)
{
	struct volume *volume;
	unsigned int nflushes;

	setup(BED_LEN);
	volume = bed_volume(&bed, "v", 16u << 20);
	CU_ASSERT_EQUAL(bed_flush(&bed, volume), 0);
	nflushes = bed.device.nflushes;
	for (uint32_t i = 0; i < 6; i++)
		submit(&flights[i], volume, VREQ_WRITE, VREQ_FUA, i * 1000, 4096);
	wait_for(6);
	/* The first may begin before the others came. */
	CU_ASSERT_TRUE(bed.device.nflushes - nflushes <= 2);
	teardown();
}

/* Nothing more is to be had. */
static void fill_up(struct volume *volume)
{
	uint64_t lba = 0;

	nanswered = 0;
	do {
		submit(&flights[0], volume, VREQ_WRITE, 0, lba, 4096);
		wait_for(1);
		nanswered = 0;
		lba += 32; /* a record each, that nothing joins */
	} while (flights[0].req.err == 0);
	CU_ASSERT_EQUAL(flights[0].req.err, ENOSPC);
}

static void trim_works_in_a_full_pool(void)
{
	struct volume *volume;
	struct pool_info before, after;

	setup(BED_LEN);
	volume = bed_volume(&bed, "v", 256u << 20);
	fill_up(volume);
	CU_ASSERT_EQUAL(bed_flush(&bed, volume), 0);
	/* A hint that would split what is there: GOOD whatever becomes of it. */
	CU_ASSERT_EQUAL(bed_request(&bed, volume, VREQ_TRIM, 0, 2, 1, NULL), 0);
	pool_info(bed.pool, &before);
	CU_ASSERT_EQUAL(bed_request(&bed, volume, VREQ_TRIM, 0, 0, 4 * 2048, NULL), 0);
	CU_ASSERT_TRUE(bed_zeros(&bed, volume, 0, 512));
	CU_ASSERT_EQUAL(bed_write(&bed, volume, 0, 8, 3), 0);
	CU_ASSERT_TRUE(bed_holds(&bed, volume, 0, 8, 3));
	pool_info(bed.pool, &after);
	CU_ASSERT_TRUE(after.used < before.used);
	teardown();
}

static void overwrites_go_on_in_a_pool_nearly_full(void)
{
	struct volume *volume;

	setup(BED_LEN);
	volume = bed_volume(&bed, "v", 256u << 20);
	fill_up(volume);
	CU_ASSERT_EQUAL(bed_request(&bed, volume, VREQ_TRIM, 0, 0, 2048, NULL), 0);
	/* Ten times what was trimmed. */
	for (uint32_t i = 0; i < 10 * 64; i++)
		CU_ASSERT_EQUAL_FATAL(bed_write(&bed, volume, i % 64 * 32, 8, i), 0);
	for (uint32_t i = 9 * 64; i < 10 * 64; i++)
		CU_ASSERT_TRUE(bed_holds(&bed, volume, i % 64 * 32, 8, i));
	teardown();
}

static const struct test tests[] = {
	TEST(stage_takes_volumes_by_turns),
	TEST(stage_answers_a_volume_in_order),
	TEST(stage_memory_is_bounded),
	TEST(stage_takes_commands_longer_than_its_memory),
	TEST(flush_covers_what_was_answered),
	TEST(flush_of_nothing_writes_nothing),
	TEST(flush_shares_one_group),
	TEST(trim_works_in_a_full_pool),
	TEST(overwrites_go_on_in_a_pool_nearly_full),
};

TEST_MAIN(tests)
