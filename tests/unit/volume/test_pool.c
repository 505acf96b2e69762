/* A pool's life: created, opened, filled, grown, crashed, checked. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "backing/volume/super.h"
#include "tests/unit/quintain_test.h"
#include "tests/unit/volume/pool_bed.h"

#define MIB (1ull << 20)

static struct bed bed;

static int create_on(struct device *device, uint64_t len, bool force)
{
	const struct pool_create_args args = { .len = len, .host_free = UINT64_MAX };

	return pool_create(device->env, &args, force, &bed.err);
}

static void pool_too_small_is_refused(void)
{
	struct device device;

	device_open(&device, BED_LEN - 4096);
	CU_ASSERT_EQUAL(create_on(&device, 0, false), -EINVAL);
	device_close(&device);
}

static void pool_is_not_created_over_something(void)
{
	struct device device;
	uint8_t byte = 1;

	device_open(&device, BED_LEN);
	CU_ASSERT_EQUAL(pwrite(device.fd, &byte, 1, 1080), 1);
	CU_ASSERT_EQUAL(create_on(&device, 0, false), -EEXIST);
	CU_ASSERT_EQUAL(create_on(&device, 0, true), 0);
	CU_ASSERT_EQUAL(create_on(&device, 0, false), -EEXIST);
	device_close(&device);
}

static void pool_opens_as_created(void)
{
	struct pool_info info;

	bed_open(&bed, 20 * MIB);
	pool_info(bed.pool, &info);
	CU_ASSERT_EQUAL(info.len, 20 * MIB);
	CU_ASSERT_EQUAL(info.segment_len, 256u << 10);
	CU_ASSERT_EQUAL(info.nvolumes, 0);
	CU_ASSERT_STRING_EQUAL(info.label, "bed");
	CU_ASSERT(!info.read_only);
	CU_ASSERT_EQUAL(info.used - info.map_bytes, 0);
	bed_close(&bed);
}

static void pool_without_superblock_is_none(void)
{
	bed = (struct bed){ .pool = NULL };
	device_open(&bed.device, BED_LEN);
	CU_ASSERT_EQUAL(bed_pool_open(&bed), -EINVAL);
	bed_close(&bed);
}

static void pool_life_has_a_higher_incarnation(void)
{
	struct pool_info before, after;

	bed_open(&bed, BED_LEN);
	pool_info(bed.pool, &before);
	bed_restart(&bed);
	pool_info(bed.pool, &after);
	CU_ASSERT(after.incarnation > before.incarnation);
	bed_crash(&bed);
	pool_info(bed.pool, &before);
	CU_ASSERT(before.incarnation > after.incarnation);
	bed_close(&bed);
}

static void pool_keeps_what_it_was_given(void)
{
	struct volume *volume;

	bed_open(&bed, BED_LEN);
	volume = bed_volume(&bed, "v", 64 * MIB);
	for (uint64_t i = 0; i < 40; i++)
		CU_ASSERT_EQUAL(bed_write(&bed, volume, i * 3000 / 8 * 8, 8 * (1 + i % 9), i), 0);
	for (uint64_t i = 0; i < 40; i++)
		CU_ASSERT(bed_holds(&bed, volume, i * 3000 / 8 * 8, 8 * (1 + i % 9), i));
	bed_restart(&bed);
	volume = volume_find(bed.pool, "v");
	for (uint64_t i = 0; i < 40; i++)
		CU_ASSERT(bed_holds(&bed, volume, i * 3000 / 8 * 8, 8 * (1 + i % 9), i));
	CU_ASSERT(bed_zeros(&bed, volume, 125000, 8));
	bed_close(&bed);
}

static void pool_keeps_what_was_flushed(void)
{
	struct volume *volume;

	bed_open(&bed, BED_LEN);
	volume = bed_volume(&bed, "v", 8 * MIB);
	for (uint64_t i = 0; i < 20; i++) {
		CU_ASSERT_EQUAL(bed_write(&bed, volume, i * 8, 64, i), 0);
		CU_ASSERT_EQUAL(bed_flush(&bed, volume), 0);
		bed_crash(&bed);
		volume = volume_find(bed.pool, "v");
		CU_ASSERT(bed_holds(&bed, volume, i * 8, 64, i));
	}
	bed_close(&bed);
}

static void pool_keeps_what_fua_wrote(void)
{
	static _Alignas(4096) uint8_t data[8192];
	struct volume *volume;

	bed_open(&bed, BED_LEN);
	volume = bed_volume(&bed, "v", 8 * MIB);
	bed_fill(data, sizeof(data), 5);
	CU_ASSERT_EQUAL(bed_request(&bed, volume, VREQ_WRITE, VREQ_FUA, 24, 16, data), 0);
	bed_crash(&bed);
	CU_ASSERT(bed_holds(&bed, volume_find(bed.pool, "v"), 24, 16, 5));
	bed_close(&bed);
}

static void pool_trim_reads_zeros(void)
{
	struct volume *volume;

	bed_open(&bed, BED_LEN);
	volume = bed_volume(&bed, "v", 8 * MIB);
	CU_ASSERT_EQUAL(bed_write(&bed, volume, 2000, 256, 1), 0);
	CU_ASSERT_EQUAL(bed_request(&bed, volume, VREQ_TRIM, 0, 2008, 240, NULL), 0);
	CU_ASSERT(bed_zeros(&bed, volume, 2008, 240));
	CU_ASSERT_EQUAL(bed_flush(&bed, volume), 0);
	bed_crash(&bed);
	volume = volume_find(bed.pool, "v");
	CU_ASSERT(bed_zeros(&bed, volume, 2008, 240));
	CU_ASSERT(!bed_zeros(&bed, volume, 2000, 8));
	bed_close(&bed);
}

static void pool_trim_of_much_gives_space_back(void)
{
	struct volume *volume;
	struct pool_info info;

	bed_open(&bed, BED_LEN);
	volume = bed_volume(&bed, "v", 8 * MIB);
	for (uint64_t lba = 0; lba < 8192; lba += 256)
		CU_ASSERT_EQUAL(bed_write(&bed, volume, lba, 256, lba), 0);
	CU_ASSERT_EQUAL(bed_request(&bed, volume, VREQ_TRIM, 0, 0, 16384, NULL), 0);
	CU_ASSERT(bed_zeros(&bed, volume, 2048 - 128, 256));
	bed_restart(&bed);
	CU_ASSERT(bed_zeros(&bed, volume_find(bed.pool, "v"), 2048 - 128, 256));
	bed_restart(&bed);
	pool_info(bed.pool, &info);
	CU_ASSERT_EQUAL(info.used - info.map_bytes, 0);
	bed_close(&bed);
}

static void pool_checkpoints_have_numbers(void)
{
	struct pool_info before, after;

	bed_open(&bed, BED_LEN);
	pool_info(bed.pool, &before);
	CU_ASSERT_EQUAL(pool_checkpoint(bed.pool, &bed.err), 0);
	pool_info(bed.pool, &after);
	CU_ASSERT_EQUAL(after.checkpoints, before.checkpoints + 1);
	bed_crash(&bed);
	pool_info(bed.pool, &before);
	CU_ASSERT_EQUAL(before.checkpoints, after.checkpoints);
	bed_close(&bed);
}

/* Both copies of the newest root are damaged: the older one and the log do. */
static void pool_older_checkpoint_does(void)
{
	static const uint8_t zeros[64];
	struct vf_super super;
	struct volume *volume;
	bool read_only;

	bed_open(&bed, BED_LEN);
	volume = bed_volume(&bed, "v", 8 * MIB);
	for (uint64_t i = 0; i < 4; i++) {
		CU_ASSERT_EQUAL(bed_write(&bed, volume, i * 64, 64, i), 0);
		CU_ASSERT_EQUAL(pool_checkpoint(bed.pool, &bed.err), 0);
	}
	CU_ASSERT_EQUAL(bed_flush(&bed, volume), 0);
	CU_ASSERT_EQUAL(super_read(bed.device.env, &super, &read_only, NULL), 0);
	for (int i = 0; i < 2; i++)
		CU_ASSERT_EQUAL(pwrite(bed.device.fd, zeros, sizeof(zeros),
				       (off_t)(le64_get(&super.root[0][i].addr) * VF_UNIT)),
				sizeof(zeros));
	bed_crash(&bed);
	volume = volume_find(bed.pool, "v");
	CU_ASSERT_PTR_NOT_NULL_FATAL(volume);
	for (uint64_t i = 0; i < 4; i++)
		CU_ASSERT(bed_holds(&bed, volume, i * 64, 64, i));
	for (uint64_t i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(pool_checkpoint(bed.pool, &bed.err), 0);
	bed_close(&bed);
}

static void pool_opened_elsewhere_is_fenced(void)
{
	struct vf_super super;
	struct pool_info info;
	bool read_only;

	bed_open(&bed, BED_LEN);
	CU_ASSERT_EQUAL(super_read(bed.device.env, &super, &read_only, NULL), 0);
	CU_ASSERT_EQUAL(super_write_both(bed.device.env, &super), 0);
	CU_ASSERT_NOT_EQUAL(pool_checkpoint(bed.pool, &bed.err), 0);
	pool_info(bed.pool, &info);
	CU_ASSERT(info.read_only);
	CU_ASSERT_PTR_NOT_NULL(strstr(info.why_read_only, "opened"));
	pool_close(bed.pool);
	bed.pool = NULL;
	bed_close(&bed);
}

/* The newest group but one, which the newest says was durable. */
static uint64_t newest_but_one(void)
{
	static uint8_t block[VF_BLOCK];
	const struct vf_group *group = (const struct vf_group *)block;
	uint64_t newest = 0, newest_off = 0, before = 0;

	for (uint64_t off = 0; off < BED_LEN; off += VF_BLOCK) {
		CU_ASSERT_EQUAL_FATAL(pread(bed.device.fd, block, VF_BLOCK, (off_t)off), VF_BLOCK);
		if (le32_get(&group->head.magic) != VF_MAGIC || group->head.type != VF_GROUP ||
		    le64_get(&group->seq) <= newest)
			continue;
		before = newest_off;
		newest = le64_get(&group->seq);
		newest_off = off;
	}
	return before;
}

static void pool_with_a_damaged_log_says_so_to_readers(void)
{
	static const uint8_t zeros[64];
	struct pool_open_args args = {
		.name = "bed", .cache_memory = POOL_MEMORY_MIN, .quiet = true, .read_only = true
	};
	struct pool_info info;
	struct volume *volume;

	bed_open(&bed, BED_LEN);
	volume = bed_volume(&bed, "v", MIB);
	for (uint64_t i = 0; i < 4; i++) {
		CU_ASSERT_EQUAL(bed_write(&bed, volume, i * 8, 8, i), 0);
		CU_ASSERT_EQUAL(bed_flush(&bed, volume), 0);
	}
	pool_close(bed.pool);
	CU_ASSERT_EQUAL(pwrite(bed.device.fd, zeros, sizeof(zeros), (off_t)newest_but_one()),
			sizeof(zeros));
	CU_ASSERT_EQUAL_FATAL(pool_open(bed.device.env, &args, &bed.pool, &bed.err), 0);
	pool_info(bed.pool, &info);
	CU_ASSERT(info.read_only && !info.read_only_asked);
	CU_ASSERT_PTR_NOT_NULL(strstr(info.why_read_only, "damaged"));
	pool_close(bed.pool);
	bed.pool = NULL;
	bed_close(&bed);
}

static void pool_grows(void)
{
	struct pool_info before, after;
	struct volume *volume;

	bed_open(&bed, BED_LEN);
	volume = bed_volume(&bed, "v", 64 * MIB);
	pool_info(bed.pool, &before);
	CU_ASSERT_EQUAL(pool_grow(bed.pool, BED_LEN - MIB, &bed.err), -EINVAL);
	CU_ASSERT_EQUAL(pool_grow(bed.pool, 64 * MIB, &bed.err), 0);
	pool_info(bed.pool, &after);
	CU_ASSERT_EQUAL(after.len, 64 * MIB);
	CU_ASSERT(after.available > before.available + 30 * MIB);
	for (uint64_t lba = 0; lba < 40960; lba += 256)
		CU_ASSERT_EQUAL(bed_write(&bed, volume, lba, 256, lba), 0);
	bed_restart(&bed);
	volume = volume_find(bed.pool, "v");
	for (uint64_t lba = 0; lba < 40960; lba += 2560)
		CU_ASSERT(bed_holds(&bed, volume, lba, 256, lba));
	bed_close(&bed);
}

static void pool_read_only_takes_no_writes(void)
{
	struct pool_open_args args = {
		.name = "bed", .cache_memory = POOL_MEMORY_MIN, .quiet = true, .read_only = true
	};
	struct volume_settings settings = bed_settings(MIB);
	struct volume *volume;

	bed_open(&bed, BED_LEN);
	CU_ASSERT_EQUAL(bed_write(&bed, bed_volume(&bed, "v", MIB), 0, 64, 1), 0);
	CU_ASSERT_EQUAL(pool_quiesce(bed.pool, &bed.err), 0);
	pool_close(bed.pool);
	bed.device.nwrites = 0;
	CU_ASSERT_EQUAL_FATAL(pool_open(bed.device.env, &args, &bed.pool, &bed.err), 0);
	volume = volume_find(bed.pool, "v");
	CU_ASSERT(bed_holds(&bed, volume, 0, 64, 1));
	CU_ASSERT_EQUAL(bed_write(&bed, volume, 0, 64, 2), EROFS);
	CU_ASSERT_EQUAL(volume_create(bed.pool, "w", &settings, NULL, &bed.err), -EROFS);
	CU_ASSERT_EQUAL(volume_delete(volume, &bed.err), -EROFS);
	bed_close(&bed);
	CU_ASSERT_EQUAL(bed.device.nwrites, 0);
}

/* Writes until the pool is full; returns the sectors that were taken. */
static uint64_t fill_up(struct volume *volume)
{
	uint64_t lba = 0;
	int err;

	while ((err = bed_write(&bed, volume, lba, 128, lba)) == 0 && lba < 4 * BED_LEN / 512)
		lba += 128;
	CU_ASSERT_EQUAL(err, ENOSPC);
	return lba;
}

static void pool_full_says_so_and_reads_on(void)
{
	struct volume *volume;
	uint64_t end;

	bed_open(&bed, BED_LEN);
	volume = bed_volume(&bed, "v", 256 * MIB);
	end = fill_up(volume);
	CU_ASSERT(end * 512 > BED_LEN / 3);
	for (uint64_t lba = 0; lba < end; lba += 1280)
		CU_ASSERT(bed_holds(&bed, volume, lba, 128, lba));
	CU_ASSERT_EQUAL(bed_flush(&bed, volume), 0);
	bed_crash(&bed);
	volume = volume_find(bed.pool, "v");
	for (uint64_t lba = 0; lba < end; lba += 1280)
		CU_ASSERT(bed_holds(&bed, volume, lba, 128, lba));
	bed_close(&bed);
}

static void pool_full_is_left_by_trims(void)
{
	struct volume *volume;
	uint64_t end;
	int err = ENOSPC;

	bed_open(&bed, BED_LEN);
	volume = bed_volume(&bed, "v", 256 * MIB);
	end = fill_up(volume);
	CU_ASSERT_EQUAL(bed_request(&bed, volume, VREQ_TRIM, 0, 0, end / 4096 * 2048 + 2048, NULL),
			0);
	for (int i = 0; i < 100 && err == ENOSPC; i++) {
		err = bed_write(&bed, volume, 0, 128, 99);
		bed.device.env->ops->wait(bed.device.env);
	}
	CU_ASSERT_EQUAL(err, 0);
	CU_ASSERT(bed_holds(&bed, volume, 0, 128, 99));
	bed_close(&bed);
}

static void pool_full_is_left_by_deleting(void)
{
	struct volume *volume;
	int err = ENOSPC;

	bed_open(&bed, BED_LEN);
	volume = bed_volume(&bed, "v", 256 * MIB);
	fill_up(volume);
	CU_ASSERT_EQUAL(volume_delete(volume, &bed.err), 0);
	for (int i = 0; i < 100 && err; i++) {
		struct volume_settings settings = bed_settings(MIB);

		err = volume_create(bed.pool, "w", &settings, &volume, &bed.err);
		bed.device.env->ops->wait(bed.device.env);
	}
	CU_ASSERT_EQUAL_FATAL(err, 0);
	CU_ASSERT_EQUAL(bed_write(&bed, volume, 0, 128, 4), 0);
	bed_close(&bed);
}

/* Random overwrites, many times what the pool holds. */
static void overwrite(uint64_t len, uint32_t record_len, uint32_t nsectors, uint64_t nwrites)
{
	struct volume_settings settings = bed_settings(len);
	uint64_t *seeds = calloc(len / 512 / nsectors, sizeof(*seeds)), x = 88172645463325252u;
	struct volume *volume;

	settings.block_len = 512;
	settings.record_len = record_len;
	bed_open(&bed, BED_LEN);
	CU_ASSERT_EQUAL_FATAL(volume_create(bed.pool, "v", &settings, &volume, &bed.err), 0);
	for (uint64_t i = 1; i <= nwrites; i++) {
		uint64_t at;

		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		at = x % (len / 512 / nsectors);
		CU_ASSERT_EQUAL_FATAL(bed_write(&bed, volume, at * nsectors, nsectors, i), 0);
		seeds[at] = i;
	}
	for (uint64_t at = 0; at < len / 512 / nsectors; at++)
		if (seeds[at])
			CU_ASSERT(bed_holds(&bed, volume, at * nsectors, nsectors, seeds[at]));
	CU_ASSERT_EQUAL(bed_flush(&bed, volume), 0);
	bed_crash(&bed);
	volume = volume_find(bed.pool, "v");
	for (uint64_t at = 0; at < len / 512 / nsectors; at++)
		if (seeds[at])
			CU_ASSERT(bed_holds(&bed, volume, at * nsectors, nsectors, seeds[at]));
	bed_close(&bed);
	free(seeds);
}

static void pool_is_overwritten_many_times(void)
{
	overwrite(6 * MIB, 16384, 32, 20000);
}

static void pool_is_overwritten_by_small_records(void)
{
	overwrite(2 * MIB, 4096, 1, 60000);
}

static const struct test tests[] = {
	TEST(pool_too_small_is_refused),
	TEST(pool_is_not_created_over_something),
	TEST(pool_opens_as_created),
	TEST(pool_without_superblock_is_none),
	TEST(pool_life_has_a_higher_incarnation),
	TEST(pool_keeps_what_it_was_given),
	TEST(pool_keeps_what_was_flushed),
	TEST(pool_keeps_what_fua_wrote),
	TEST(pool_trim_reads_zeros),
	TEST(pool_trim_of_much_gives_space_back),
	TEST(pool_checkpoints_have_numbers),
	TEST(pool_older_checkpoint_does),
	TEST(pool_opened_elsewhere_is_fenced),
	TEST(pool_with_a_damaged_log_says_so_to_readers),
	TEST(pool_grows),
	TEST(pool_read_only_takes_no_writes),
	TEST(pool_full_says_so_and_reads_on),
	TEST(pool_full_is_left_by_trims),
	TEST(pool_full_is_left_by_deleting),
	TEST(pool_is_overwritten_many_times),
	TEST(pool_is_overwritten_by_small_records),
};
TEST_MAIN(tests)
