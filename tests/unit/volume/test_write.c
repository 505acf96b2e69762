/* Writes: what is read back, what becomes of zeros, trims, joins, and a full pool. */
#include "backing/volume/pool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/quintain_test.h"
#include "tests/unit/volume/device.h"

#define MIB	   (1u << 20)
#define POOL_LEN   (16u * MIB)
#define VOLUME_LEN (64u * MIB)

static struct device device;
static struct pool *pool;
static struct volume *volume;
static struct err err;
static uint8_t *data, *back;

static void pool_start(void)
{
	struct pool_open_args args = { .name = "test", .quiet = true, .threshold = 90 };

	CU_ASSERT_EQUAL_FATAL(pool_open(device.env, &args, &pool, &err), 0);
	volume = volume_find(pool, "v");
}

/* One volume in a new pool. */
static void setup(uint32_t record_len, enum codec_id codec)
{
	struct pool_create_args create = { .host_free = UINT64_MAX };
	struct volume_settings settings = { .nsectors = VOLUME_LEN / VF_SECTOR,
					    .block_len = 512,
					    .record_len = record_len,
					    .codec = { (uint8_t)codec,
						       codec == CODEC_RAW ? 0 : 1 } };

	device_open(&device, POOL_LEN);
	CU_ASSERT_EQUAL_FATAL(pool_create(device.env, &create, false, &err), 0);
	pool_start();
	CU_ASSERT_EQUAL_FATAL(volume_create(pool, "v", &settings, &volume, &err), 0);
	data = malloc(4 * MIB);
	back = malloc(4 * MIB);
}

static void teardown(void)
{
	CU_ASSERT_EQUAL(pool_quiesce(pool, &err), 0);
	pool_close(pool);
	device_close(&device);
	free(data);
	free(back);
}

/* What a crash now would leave is opened instead. */
static void crash(void)
{
	struct device crashed;
	uint8_t *image = malloc(POOL_LEN);

	CU_ASSERT_EQUAL(pread(device.fd, image, POOL_LEN, 0), (ssize_t)POOL_LEN);
	device_open(&crashed, POOL_LEN);
	CU_ASSERT_EQUAL(pwrite(crashed.fd, image, POOL_LEN, 0), (ssize_t)POOL_LEN);
	free(image);
	pool_quiesce(pool, &err);
	pool_close(pool);
	device_close(&device);
	device = crashed;
	device_use(&device);
	pool_start();
	CU_ASSERT_PTR_NOT_NULL_FATAL(volume);
}

static bool answered;

static void done(struct vreq *req)
{
	(void)req;
	answered = true;
}

static int request(enum vreq_op op, uint8_t flags, uint64_t lba, uint64_t nsectors, void *buf)
{
	struct iovec iov = { buf, nsectors * VF_SECTOR };
	struct vreq req = { .op = (uint8_t)op,
			    .flags = flags,
			    .lba = lba,
			    .nsectors = nsectors,
			    .iov = &iov,
			    .iovcnt = 1,
			    .done = done };

	answered = false;
	volume_submit(volume, &req);
	CU_ASSERT_FALSE(answered);
	while (!answered)
		device.env->ops->wait(device.env);
	return req.err;
}

static void fill(uint8_t seed, uint64_t nsectors)
{
	uint32_t x = seed * 2654435761u + 1;

	for (uint64_t i = 0; i < nsectors * VF_SECTOR; i++) {
		x = x * 1664525 + 1013904223;
		data[i] = (uint8_t)(x >> 24);
	}
}

static void write_at(uint64_t lba, uint64_t nsectors, uint8_t seed)
{
	fill(seed, nsectors);
	CU_ASSERT_EQUAL(request(VREQ_WRITE, 0, lba, nsectors, data), 0);
}

static void expect_at(uint64_t lba, uint64_t nsectors, uint8_t seed)
{
	fill(seed, nsectors);
	CU_ASSERT_EQUAL(request(VREQ_READ, 0, lba, nsectors, back), 0);
	CU_ASSERT_EQUAL(memcmp(data, back, nsectors * VF_SECTOR), 0);
}

static void expect_zeros(uint64_t lba, uint64_t nsectors)
{
	CU_ASSERT_EQUAL(request(VREQ_READ, 0, lba, nsectors, back), 0);
	for (uint64_t i = 0; i < nsectors * VF_SECTOR; i++)
		if (back[i] != 0) {
			CU_FAIL("not zero");
			break;
		}
}

static void flush(void)
{
	CU_ASSERT_EQUAL(request(VREQ_FLUSH, 0, 0, 0, NULL), 0);
}

static struct pool_info info(void)
{
	struct pool_info out;

	pool_info(pool, &out);
	return out;
}

static void write_is_read_back_staged_and_durable(void)
{
	setup(16384, CODEC_LZ4);
	write_at(3, 77, 1);
	expect_at(3, 77, 1);
	flush();
	expect_at(3, 77, 1);
	crash();
	expect_at(3, 77, 1);
	expect_zeros(0, 3);
	teardown();
}

static void write_flushed_survives_a_crash(void)
{
	setup(4096, CODEC_RAW);
	write_at(0, 4096, 7); /* longer than a group */
	flush();
	crash();
	expect_at(0, 4096, 7);
	teardown();
}

static void write_fua_is_answered_when_durable(void)
{
	setup(16384, CODEC_LZ4);
	fill(5, 8);
	CU_ASSERT_EQUAL(request(VREQ_WRITE, VREQ_FUA, 8, 8, data), 0);
	CU_ASSERT_TRUE(info().durable_seq > 0);
	crash();
	expect_at(8, 8, 5);
	teardown();
}

static void write_newest_wins_within_a_group(void)
{
	setup(16384, CODEC_LZ4);
	write_at(0, 32, 1);
	write_at(8, 8, 2);
	write_at(12, 2, 3);
	expect_at(12, 2, 3);
	flush();
	expect_at(12, 2, 3);
	CU_ASSERT_EQUAL(request(VREQ_READ, 0, 8, 4, back), 0);
	fill(2, 8);
	CU_ASSERT_EQUAL(memcmp(back, data, 4 * VF_SECTOR), 0);
	crash();
	expect_at(12, 2, 3);
	teardown();
}

static void write_joins_what_lies_in_one_record(void)
{
	uint64_t used, joined;

	setup(16384, CODEC_RAW);
	used = info().used;
	for (unsigned int i = 0; i < 32; i++)
		write_at(i, 1, (uint8_t)i);
	flush();
	joined = info().used - used;
	/* One raw record of 16 KiB and its descriptor, not 32 of a sector. */
	CU_ASSERT_EQUAL(joined, 16384 + 2 * VF_UNIT);
	for (unsigned int i = 0; i < 32; i++)
		expect_at(i, 1, (uint8_t)i);
	teardown();
}

static void write_hole_between_writes_of_a_group(void)
{
	setup(16384, CODEC_LZ4);
	write_at(0, 32, 1);
	CU_ASSERT_EQUAL(request(VREQ_TRIM, 0, 4, 8, NULL), 0);
	write_at(6, 2, 2);
	flush();
	expect_zeros(4, 2);
	expect_at(6, 2, 2);
	expect_zeros(8, 4);
	crash();
	expect_zeros(4, 2);
	expect_at(6, 2, 2);
	expect_zeros(8, 4);
	teardown();
}

static void write_of_zeros_takes_no_space(void)
{
	uint64_t used;

	setup(16384, CODEC_LZ4);
	used = info().used;
	memset(data, 0, MIB);
	CU_ASSERT_EQUAL(request(VREQ_WRITE, 0, 0, MIB / VF_SECTOR, data), 0);
	flush();
	CU_ASSERT_EQUAL(info().used, used);
	expect_zeros(0, MIB / VF_SECTOR);
	teardown();
}

static void trim_of_many_regions_reads_zeros(void)
{
	setup(16384, CODEC_LZ4);
	for (uint64_t i = 0; i < 20; i++)
		write_at(i * 2048 + 100, 16, (uint8_t)i);
	CU_ASSERT_EQUAL(request(VREQ_TRIM, 0, 2048 + 108, 18 * 2048, NULL), 0);
	write_at(5 * 2048 + 104, 2, 99);
	for (int durable = 0; durable < 3; durable++) {
		CU_ASSERT_EQUAL(request(VREQ_READ, 0, 2048 + 100, 16, back), 0);
		fill(1, 16);
		CU_ASSERT_EQUAL(memcmp(back, data, 8 * VF_SECTOR), 0);
		CU_ASSERT_TRUE(back[8 * VF_SECTOR] == 0);
		expect_zeros(2 * 2048, 2048);
		expect_at(5 * 2048 + 104, 2, 99);
		expect_zeros(18 * 2048, 2048);
		CU_ASSERT_EQUAL(request(VREQ_READ, 0, 19 * 2048 + 100, 16, back), 0);
		fill(19, 16);
		CU_ASSERT_EQUAL(memcmp(back + 8 * VF_SECTOR, data + 8 * VF_SECTOR, 8 * VF_SECTOR),
				0);
		if (durable == 0)
			flush();
		else
			crash();
	}
	teardown();
}

static void write_full_pool_says_so_and_recovers(void)
{
	uint64_t lba;
	int rc = 0;

	setup(16384, CODEC_RAW);
	for (lba = 0; lba < VOLUME_LEN / VF_SECTOR && !rc; lba += 128) {
		fill((uint8_t)(lba / 128), 128);
		rc = request(VREQ_WRITE, 0, lba, 128, data);
	}
	CU_ASSERT_EQUAL(rc, ENOSPC);
	CU_ASSERT_TRUE(lba > 6 * MIB / VF_SECTOR);
	flush();
	expect_at(0, 128, 0);
	expect_at(lba - 256, 128, (uint8_t)((lba - 256) / 128));
	/* What is overwritten over and over costs nothing in the end. */
	for (unsigned int i = 0; i < 300; i++)
		if (request(VREQ_WRITE, 0, i % 64 * 128, 128, data) == 0)
			rc = 0;
	CU_ASSERT_EQUAL(request(VREQ_TRIM, 0, 0, VOLUME_LEN / VF_SECTOR, NULL), 0);
	flush();
	for (unsigned int i = 0; i < 20; i++)
		CU_ASSERT_EQUAL(pool_checkpoint(pool, &err), 0);
	write_at(0, 128, 42);
	expect_at(0, 128, 42);
	teardown();
}

static void write_outside_the_volume_is_refused(void)
{
	setup(16384, CODEC_LZ4);
	CU_ASSERT_EQUAL(request(VREQ_WRITE, 0, VOLUME_LEN / VF_SECTOR - 1, 2, data), EINVAL);
	CU_ASSERT_EQUAL(request(VREQ_WRITE, 0, UINT64_MAX, 1, data), EINVAL);
	CU_ASSERT_EQUAL(request(VREQ_WRITE, 0, 5, 0, data), 0);
	teardown();
}

static void write_failure_makes_the_pool_read_only(void)
{
	setup(16384, CODEC_LZ4);
	write_at(0, 8, 1);
	flush();
	device.bad_off = 0;
	device.bad_len = POOL_LEN;
	write_at(8, 8, 2);
	CU_ASSERT_EQUAL(request(VREQ_FLUSH, 0, 0, 0, NULL), EIO);
	device.bad_len = 0;
	CU_ASSERT_TRUE(info().read_only);
	expect_at(8, 8, 2); /* what was answered is still there */
	CU_ASSERT_EQUAL(request(VREQ_WRITE, 0, 16, 8, data), EROFS);
	crash();
	expect_at(0, 8, 1);
	teardown();
}

static const struct test tests[] = {
	TEST(write_is_read_back_staged_and_durable),  TEST(write_flushed_survives_a_crash),
	TEST(write_fua_is_answered_when_durable),     TEST(write_newest_wins_within_a_group),
	TEST(write_joins_what_lies_in_one_record),    TEST(write_hole_between_writes_of_a_group),
	TEST(write_of_zeros_takes_no_space),	      TEST(trim_of_many_regions_reads_zeros),
	TEST(write_full_pool_says_so_and_recovers),   TEST(write_outside_the_volume_is_refused),
	TEST(write_failure_makes_the_pool_read_only),
};

TEST_MAIN(tests)
