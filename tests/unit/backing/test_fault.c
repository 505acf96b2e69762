/* The fault filter, and by it the order of flushes and the end of a store. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/backing/store_fixture.h"

#define MIB	(1ull << 20)
#define WRITES	(1u << BK_WRITE)
#define FLUSHES (1u << BK_FLUSH)

/* A RAM disk behind the filter. */
static void open_filtered(struct store *store, enum backing_cache cache,
			  const struct fault_rule *rules, unsigned int nrules)
{
	struct backing_settings settings = store_settings(NULL, 16 * MIB);
	struct backing *backing;

	settings.cache = (uint8_t)cache;
	CU_ASSERT_EQUAL_FATAL(backing_open(&settings, &backing, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(fault_open(backing, rules, nrules, &backing, NULL), 0);
	store_start(store, backing);
}

static int write_block(struct store *store, uint64_t block, uint8_t byte, unsigned int flags)
{
	uint8_t data[512];

	memset(data, byte, sizeof(data));
	return store_op(store, BK_WRITE, block * 512, 512, data, flags);
}

static bool block_is(struct store *store, uint64_t block, uint8_t byte)
{
	uint8_t data[512];

	return store_read(store, block * 512, 512, data) == 0 && store_all_bytes(data, 512, byte);
}

/* ---- the rules ---- */

static void fault_error_strikes_the_nth_operation_once(void)
{
	const struct fault_rule rule = {
		.ops = WRITES, .kind = FAULT_ERROR, .nth = 2, .err = ENOSPC
	};
	struct store store;

	open_filtered(&store, BACKING_CACHE_WRITE_BACK, &rule, 1);
	CU_ASSERT_EQUAL(write_block(&store, 0, 1, 0), 0);
	CU_ASSERT_TRUE(block_is(&store, 0, 1));
	CU_ASSERT_EQUAL(write_block(&store, 0, 2, 0), ENOSPC);
	CU_ASSERT_TRUE(block_is(&store, 0, 1));
	CU_ASSERT_EQUAL(write_block(&store, 0, 3, 0), 0);
	store_close(&store);
}

static void fault_error_strikes_for_ever(void)
{
	const struct fault_rule rule = {
		.ops = WRITES, .kind = FAULT_ERROR, .nth = 2, .for_ever = true, .err = EIO
	};
	struct store store;

	open_filtered(&store, BACKING_CACHE_WRITE_BACK, &rule, 1);
	CU_ASSERT_EQUAL(write_block(&store, 0, 1, 0), 0);
	for (int i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(write_block(&store, 0, 2, 0), EIO);
	fault_set(store.backing, NULL, 0);
	CU_ASSERT_EQUAL(write_block(&store, 0, 2, 0), 0);
	store_close(&store);
}

static void fault_strikes_only_its_range(void)
{
	const struct fault_rule rule = { .ops = 1u << BK_READ,
					 .kind = FAULT_ERROR,
					 .nth = 1,
					 .for_ever = true,
					 .err = EIO,
					 .off = 1024,
					 .len = 512 };
	struct store store;
	uint8_t data[2048];

	open_filtered(&store, BACKING_CACHE_WRITE_BACK, &rule, 1);
	CU_ASSERT_EQUAL(store_read(&store, 0, 1024, data), 0);
	CU_ASSERT_EQUAL(store_read(&store, 0, 1536, data), EIO);
	CU_ASSERT_EQUAL(store_read(&store, 1024, 512, data), EIO);
	CU_ASSERT_EQUAL(store_read(&store, 1536, 512, data), 0);
	store_close(&store);
}

static void fault_delay_delays(void)
{
	const struct fault_rule rule = {
		.ops = WRITES, .kind = FAULT_DELAY, .nth = 1, .delay_ms = 50
	};
	struct timespec begin, end;
	struct store store;

	open_filtered(&store, BACKING_CACHE_WRITE_BACK, &rule, 1);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	CU_ASSERT_EQUAL(write_block(&store, 0, 1, 0), 0);
	clock_gettime(CLOCK_MONOTONIC, &end);
	CU_ASSERT_TRUE(
		(end.tv_sec - begin.tv_sec) * 1000 + (end.tv_nsec - begin.tv_nsec) / 1000000 >= 49);
	CU_ASSERT_TRUE(block_is(&store, 0, 1));
	store_close(&store);
}

static void fault_stuck_waits_for_release(void)
{
	const struct fault_rule rule = { .ops = WRITES, .kind = FAULT_STUCK, .nth = 1 };
	struct store_call call;
	struct store store;
	uint8_t data[512] = { 7 };

	open_filtered(&store, BACKING_CACHE_WRITE_BACK, &rule, 1);
	store_call_init(&call, &store, BK_WRITE, 0, 512, data, 0);
	store_submit(&call, 1);
	CU_ASSERT_TRUE(block_is(&store, 0, 0)); /* others go on */
	CU_ASSERT_FALSE(store_done(&call));
	fault_release(store.backing);
	CU_ASSERT_EQUAL(store_wait(&call), 0);
	CU_ASSERT_EQUAL(store_read(&store, 0, 512, data), 0);
	CU_ASSERT_EQUAL(data[0], 7);
	store_close(&store);
}

static void fault_torn_write_leaves_the_first_half(void)
{
	const struct fault_rule rule = {
		.ops = WRITES, .kind = FAULT_TORN_WRITE, .nth = 1, .err = EIO
	};
	uint8_t *data = store_buffer(8192, 5);
	struct store store;

	open_filtered(&store, BACKING_CACHE_WRITE_BACK, &rule, 1);
	CU_ASSERT_EQUAL(store_write(&store, 0, 8192, data), EIO);
	CU_ASSERT_EQUAL(store_read(&store, 0, 8192, data), 0);
	CU_ASSERT_TRUE(store_all_bytes(data, 4096, 5));
	CU_ASSERT_TRUE(store_all_bytes(data + 4096, 4096, 0));
	store_close(&store);
	free(data);
}

static void fault_lost_write_is_acknowledged(void)
{
	const struct fault_rule rule = { .ops = WRITES, .kind = FAULT_LOST_WRITE, .nth = 1 };
	struct store store;

	open_filtered(&store, BACKING_CACHE_WRITE_BACK, &rule, 1);
	CU_ASSERT_EQUAL(write_block(&store, 0, 1, 0), 0);
	CU_ASSERT_TRUE(block_is(&store, 0, 0));
	store_close(&store);
}

/* ---- power cuts ---- */

static void power_cut_undoes_what_was_not_flushed(void)
{
	/* The first read cuts the power. */
	const struct fault_rule rule = { .ops = 1u << BK_READ, .kind = FAULT_POWER_CUT, .nth = 1 };
	struct store store;
	uint8_t data[512];

	open_filtered(&store, BACKING_CACHE_WRITE_BACK, &rule, 1);
	CU_ASSERT_EQUAL(write_block(&store, 0, 1, 0), 0);
	CU_ASSERT_EQUAL(write_block(&store, 1, 1, 0), 0);
	CU_ASSERT_EQUAL(store_op(&store, BK_FLUSH, 0, 0, NULL, 0), 0);
	CU_ASSERT_EQUAL(write_block(&store, 1, 2, 0), 0);
	CU_ASSERT_EQUAL(write_block(&store, 1, 3, 0), 0);
	CU_ASSERT_EQUAL(write_block(&store, 2, 2, 0), 0);
	CU_ASSERT_EQUAL(store_op(&store, BK_WRITE_ZEROES, 0, 512, NULL, 0), 0);
	CU_ASSERT_EQUAL(store_read(&store, 0, 512, data), EIO);
	CU_ASSERT_EQUAL(write_block(&store, 5, 1, 0), EIO);
	CU_ASSERT_EQUAL(store_op(&store, BK_FLUSH, 0, 0, NULL, 0), EIO);
	fault_set(store.backing, NULL, 0);
	CU_ASSERT_TRUE(block_is(&store, 0, 1));
	CU_ASSERT_TRUE(block_is(&store, 1, 1));
	CU_ASSERT_TRUE(block_is(&store, 2, 0));
	CU_ASSERT_TRUE(block_is(&store, 5, 0));
	store_close(&store);
}

static void power_cut_spares_fua_writes(void)
{
	const struct fault_rule rule = { .ops = 1u << BK_READ, .kind = FAULT_POWER_CUT, .nth = 1 };
	struct store store;
	uint8_t data[512];

	open_filtered(&store, BACKING_CACHE_WRITE_BACK, &rule, 1);
	CU_ASSERT_EQUAL(write_block(&store, 0, 1, BK_FUA), 0);
	CU_ASSERT_EQUAL(write_block(&store, 1, 1, 0), 0);
	CU_ASSERT_EQUAL(store_read(&store, 0, 512, data), EIO);
	fault_set(store.backing, NULL, 0);
	CU_ASSERT_TRUE(block_is(&store, 0, 1));
	CU_ASSERT_TRUE(block_is(&store, 1, 0));
	store_close(&store);
}

/* A power cut after the nth write of some, all acknowledged at once. */
static void write_through_survives_a_power_cut_after_every_write(void)
{
	for (unsigned int n = 1; n <= 8; n++) {
		const struct fault_rule rule = { .ops = WRITES, .kind = FAULT_POWER_CUT, .nth = n };
		struct store store;

		open_filtered(&store, BACKING_CACHE_WRITE_THROUGH, &rule, 1);
		for (unsigned int i = 1; i <= 8; i++)
			CU_ASSERT_EQUAL(write_block(&store, i, (uint8_t)i, 0), i < n ? 0 : EIO);
		fault_set(store.backing, NULL, 0);
		for (unsigned int i = 1; i <= 8; i++)
			CU_ASSERT_TRUE(block_is(&store, i, i < n ? (uint8_t)i : 0));
		store_close(&store);
	}
}

/* ---- the order of flushes ---- */

static const struct fault_rule flush_fails = {
	.ops = FLUSHES, .kind = FAULT_ERROR, .nth = 1, .for_ever = true, .err = EIO
};

static void fua_write_waits_for_a_flush(void)
{
	const struct fault_rule stuck = { .ops = FLUSHES, .kind = FAULT_STUCK, .nth = 1 };
	struct store_call call;
	struct store store;
	uint8_t data[512] = { 7 };

	open_filtered(&store, BACKING_CACHE_WRITE_BACK, &stuck, 1);
	store_call_init(&call, &store, BK_WRITE, 0, 512, data, BK_FUA);
	store_submit(&call, 1);
	CU_ASSERT_EQUAL(write_block(&store, 1, 1, 0), 0);
	CU_ASSERT_FALSE(store_done(&call));
	/* The data is there before the flush is. */
	CU_ASSERT_EQUAL(store_read(&store, 0, 512, data), 0);
	CU_ASSERT_EQUAL(data[0], 7);
	fault_release(store.backing);
	CU_ASSERT_EQUAL(store_wait(&call), 0);
	store_close(&store);
}

static void fua_write_fails_with_its_flush(void)
{
	struct store store;

	open_filtered(&store, BACKING_CACHE_WRITE_BACK, &flush_fails, 1);
	CU_ASSERT_EQUAL(write_block(&store, 0, 1, 0), 0);
	CU_ASSERT_EQUAL(write_block(&store, 0, 1, BK_FUA), EIO);
	CU_ASSERT_EQUAL(store_op(&store, BK_WRITE_ZEROES, 0, 4096, NULL, BK_FUA), EIO);
	store_close(&store);
}

static void write_through_flushes_every_change(void)
{
	struct store store;

	open_filtered(&store, BACKING_CACHE_WRITE_THROUGH, &flush_fails, 1);
	CU_ASSERT_FALSE(store.backing->limits.volatile_cache);
	CU_ASSERT_EQUAL(write_block(&store, 0, 1, 0), EIO);
	CU_ASSERT_EQUAL(store_op(&store, BK_UNMAP, 0, 4096, NULL, 0), EIO);
	CU_ASSERT_EQUAL(store_op(&store, BK_WRITE_ZEROES, 0, 4096, NULL, 0), EIO);
	CU_ASSERT_TRUE(block_is(&store, 5, 0));
	store_close(&store);
}

static void cache_unsafe_flushes_nothing(void)
{
	struct store store;

	open_filtered(&store, BACKING_CACHE_UNSAFE, &flush_fails, 1);
	CU_ASSERT_TRUE(store.backing->limits.volatile_cache);
	CU_ASSERT_EQUAL(write_block(&store, 0, 1, BK_FUA), 0);
	CU_ASSERT_EQUAL(store_op(&store, BK_FLUSH, 0, 0, NULL, 0), 0);
	store_close(&store);
}

static void write_that_fails_is_not_flushed(void)
{
	const struct fault_rule rules[] = {
		{ .ops = WRITES, .kind = FAULT_ERROR, .nth = 1, .err = ENOSPC },
		flush_fails,
	};
	struct store store;

	open_filtered(&store, BACKING_CACHE_WRITE_THROUGH, rules, 2);
	CU_ASSERT_EQUAL(write_block(&store, 0, 1, 0), ENOSPC);
	store_close(&store);
}

/* ---- the end of a store ---- */

static void store_that_is_gone_fails_everything(void)
{
	const struct fault_rule rule = {
		.ops = 1u << BK_READ, .kind = FAULT_ERROR, .nth = 1, .err = ENODEV
	};
	struct store store;
	uint8_t data[512];

	open_filtered(&store, BACKING_CACHE_WRITE_BACK, &rule, 1);
	CU_ASSERT_EQUAL(store_read(&store, 0, 512, data), ESTALE);
	CU_ASSERT_TRUE(backing_broken(store.backing));
	CU_ASSERT_EQUAL(store_read(&store, 0, 512, data), ESTALE);
	CU_ASSERT_EQUAL(write_block(&store, 0, 1, 0), ESTALE);
	CU_ASSERT_EQUAL(store_op(&store, BK_FLUSH, 0, 0, NULL, 0), ESTALE);
	store_close(&store);
}

static const struct test tests[] = {
	TEST(fault_error_strikes_the_nth_operation_once),
	TEST(fault_error_strikes_for_ever),
	TEST(fault_strikes_only_its_range),
	TEST(fault_delay_delays),
	TEST(fault_stuck_waits_for_release),
	TEST(fault_torn_write_leaves_the_first_half),
	TEST(fault_lost_write_is_acknowledged),
	TEST(power_cut_undoes_what_was_not_flushed),
	TEST(power_cut_spares_fua_writes),
	TEST(write_through_survives_a_power_cut_after_every_write),
	TEST(fua_write_waits_for_a_flush),
	TEST(fua_write_fails_with_its_flush),
	TEST(write_through_flushes_every_change),
	TEST(cache_unsafe_flushes_nothing),
	TEST(write_that_fails_is_not_flushed),
	TEST(store_that_is_gone_fails_everything),
};
TEST_MAIN(tests)
