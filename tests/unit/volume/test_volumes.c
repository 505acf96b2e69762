/* Volumes of a pool: made, set, deleted, and there after a crash. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/quintain_test.h"
#include "tests/unit/volume/pool_bed.h"

#define MIB (1ull << 20)

static struct bed bed;

static void volume_is_created_once(void)
{
	struct volume_settings settings = bed_settings(MIB);
	struct volume *volume;

	bed_open(&bed, BED_LEN);
	volume = bed_volume(&bed, "a", MIB);
	CU_ASSERT_PTR_EQUAL(volume_find(bed.pool, "a"), volume);
	CU_ASSERT_EQUAL(volume_create(bed.pool, "a", &settings, NULL, &bed.err), -EEXIST);
	CU_ASSERT_PTR_NULL(volume_find(bed.pool, "b"));
	bed_close(&bed);
}

static void volume_name_is_judged(void)
{
	static const char long_name[] = "0123456789012345678901234567890123456789"
					"012345678901234567890123";
	static const char *const bad[] = { "", "a b", "a/b", "a\tb", "\xc3\xa4", long_name };
	struct volume_settings settings = bed_settings(MIB);

	bed_open(&bed, BED_LEN);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CU_ASSERT_EQUAL(volume_create(bed.pool, bad[i], &settings, NULL, &bed.err),
				-EINVAL);
	CU_ASSERT_PTR_NULL(volume_next(bed.pool, NULL));
	bed_close(&bed);
}

static int create(const struct volume_settings *settings)
{
	return volume_create(bed.pool, "x", settings, NULL, &bed.err);
}

static void volume_settings_are_judged(void)
{
	struct volume_settings s;

	bed_open(&bed, BED_LEN);
	s = bed_settings(MIB);
	s.block_len = 1024;
	CU_ASSERT_EQUAL(create(&s), -EINVAL);
	s = bed_settings(MIB);
	s.record_len = 12288;
	CU_ASSERT_EQUAL(create(&s), -EINVAL);
	s = bed_settings(MIB);
	s.record_len = 128u << 10; /* more than this pool's segments take */
	CU_ASSERT_EQUAL(create(&s), -EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(bed.err.text, "65536"));
	s = bed_settings(0);
	CU_ASSERT_EQUAL(create(&s), -EINVAL);
	s = bed_settings(MIB + 512); /* not whole blocks */
	CU_ASSERT_EQUAL(create(&s), -EINVAL);
	s = bed_settings(MIB);
	s.codec.id = 9;
	CU_ASSERT_EQUAL(create(&s), -EINVAL);
	s = bed_settings(MIB);
	s.checksum = 7;
	CU_ASSERT_EQUAL(create(&s), -EINVAL);
	bed_close(&bed);
}

static void volume_is_there_after_a_crash(void)
{
	struct volume *volume;
	struct volume_info before, after;

	bed_open(&bed, BED_LEN);
	volume_info(bed_volume(&bed, "kept", 3 * MIB), &before);
	bed_crash(&bed);
	volume = volume_find(bed.pool, "kept");
	CU_ASSERT_PTR_NOT_NULL_FATAL(volume);
	volume_info(volume, &after);
	CU_ASSERT_EQUAL(memcmp(after.uuid, before.uuid, sizeof(after.uuid)), 0);
	CU_ASSERT_EQUAL(after.id, before.id);
	CU_ASSERT_EQUAL(after.settings.nsectors, 3 * MIB / 512);
	CU_ASSERT_EQUAL(after.settings.record_len, 16384);
	CU_ASSERT_EQUAL(after.settings.codec.id, CODEC_LZ4);
	CU_ASSERT_EQUAL(after.created_s, before.created_s);
	bed_close(&bed);
}

static void volume_is_there_after_a_checkpoint(void)
{
	bed_open(&bed, BED_LEN);
	bed_volume(&bed, "kept", MIB);
	CU_ASSERT_EQUAL(bed_write(&bed, volume_find(bed.pool, "kept"), 8, 64, 1), 0);
	for (int i = 0; i < 3; i++) {
		bed_restart(&bed);
		CU_ASSERT(bed_holds(&bed, volume_find(bed.pool, "kept"), 8, 64, 1));
		CU_ASSERT_EQUAL(pool_checkpoint(bed.pool, &bed.err), 0);
	}
	bed_close(&bed);
}

static void volumes_come_in_order_of_name(void)
{
	static const char *const names[] = { "m", "z", "a", "n" }, *const sorted = "amnz";
	struct volume *volume = NULL;
	struct volume_info info;

	bed_open(&bed, BED_LEN);
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		bed_volume(&bed, names[i], MIB);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		volume = volume_next(bed.pool, volume);
		CU_ASSERT_PTR_NOT_NULL_FATAL(volume);
		volume_info(volume, &info);
		CU_ASSERT_EQUAL(info.name[0], sorted[i]);
	}
	CU_ASSERT_PTR_NULL(volume_next(bed.pool, volume));
	bed_close(&bed);
}

static void volume_grows_and_does_not_shrink(void)
{
	struct volume_settings settings;
	struct volume_info info;
	struct volume *volume;

	bed_open(&bed, BED_LEN);
	volume = bed_volume(&bed, "v", MIB);
	settings = bed_settings(300 * MIB);
	CU_ASSERT_EQUAL(volume_set(volume, &settings, &bed.err), 0);
	CU_ASSERT_EQUAL(bed_write(&bed, volume, 299 * MIB / 512, 8, 7), 0);
	settings = bed_settings(2 * MIB);
	CU_ASSERT_EQUAL(volume_set(volume, &settings, &bed.err), -EINVAL);
	bed_crash(&bed);
	volume = volume_find(bed.pool, "v");
	volume_info(volume, &info);
	CU_ASSERT_EQUAL(info.settings.nsectors, 300 * MIB / 512);
	bed_close(&bed);
}

static void volume_keeps_block_and_checksum(void)
{
	struct volume_settings settings = bed_settings(MIB);
	struct volume *volume;

	bed_open(&bed, BED_LEN);
	volume = bed_volume(&bed, "v", MIB);
	settings.block_len = 512;
	CU_ASSERT_EQUAL(volume_set(volume, &settings, &bed.err), -EINVAL);
	settings = bed_settings(MIB);
	settings.checksum = VF_SHA256;
	CU_ASSERT_EQUAL(volume_set(volume, &settings, &bed.err), -EINVAL);
	bed_close(&bed);
}

static void volume_codec_changes_what_comes(void)
{
	struct volume_settings settings = bed_settings(MIB);
	struct volume *volume;

	bed_open(&bed, BED_LEN);
	volume = bed_volume(&bed, "v", MIB);
	CU_ASSERT_EQUAL(bed_write(&bed, volume, 0, 64, 1), 0);
	settings.codec = (struct codec_choice){ CODEC_RAW, 0 };
	settings.record_len = 4096;
	CU_ASSERT_EQUAL(volume_set(volume, &settings, &bed.err), 0);
	CU_ASSERT_EQUAL(bed_write(&bed, volume, 64, 64, 2), 0);
	bed_restart(&bed);
	volume = volume_find(bed.pool, "v");
	CU_ASSERT(bed_holds(&bed, volume, 0, 64, 1));
	CU_ASSERT(bed_holds(&bed, volume, 64, 64, 2));
	bed_close(&bed);
}

static void volume_in_use_is_not_deleted(void)
{
	struct volume *volume;

	bed_open(&bed, BED_LEN);
	volume = bed_volume(&bed, "v", MIB);
	CU_ASSERT_EQUAL(volume_get(volume, &bed.err), 0);
	CU_ASSERT_EQUAL(volume_delete(volume, &bed.err), -EBUSY);
	volume_put(volume);
	CU_ASSERT_EQUAL(volume_delete(volume, &bed.err), 0);
	CU_ASSERT_PTR_NULL(volume_find(bed.pool, "v"));
	bed_close(&bed);
}

static void volume_deleted_stays_so_after_a_crash(void)
{
	bed_open(&bed, BED_LEN);
	bed_volume(&bed, "v", MIB);
	CU_ASSERT_EQUAL(bed_write(&bed, volume_find(bed.pool, "v"), 0, 256, 3), 0);
	CU_ASSERT_EQUAL(volume_delete(volume_find(bed.pool, "v"), &bed.err), 0);
	bed_crash(&bed);
	CU_ASSERT_PTR_NULL(volume_find(bed.pool, "v"));
	bed_close(&bed);
}

/* Lets background work go on until the pool says so, or for a while. */
static bool used_falls_to(uint64_t bytes)
{
	struct pool_info info;

	for (int i = 0; i < 50; i++) {
		pool_info(bed.pool, &info);
		if (info.used - info.map_bytes <= bytes)
			return true;
		bed.device.env->ops->wait(bed.device.env);
	}
	return false;
}

static void volume_deleted_gives_its_space_back(void)
{
	struct volume *volume;

	bed_open(&bed, BED_LEN);
	volume = bed_volume(&bed, "v", 2 * MIB);
	for (uint64_t lba = 0; lba < 4096; lba += 256)
		CU_ASSERT_EQUAL(bed_write(&bed, volume, lba, 256, lba), 0);
	CU_ASSERT_EQUAL(bed_flush(&bed, volume), 0);
	CU_ASSERT(!used_falls_to(MIB / 2));
	CU_ASSERT_EQUAL(volume_delete(volume, &bed.err), 0);
	CU_ASSERT(used_falls_to(0));
	CU_ASSERT_EQUAL(bed_faults(&bed), 0);
	bed_close(&bed);
}

static void volume_name_is_free_again_at_once(void)
{
	struct volume *volume;
	struct volume_info old, new;

	bed_open(&bed, BED_LEN);
	volume = bed_volume(&bed, "v", MIB);
	volume_info(volume, &old);
	CU_ASSERT_EQUAL(bed_write(&bed, volume, 0, 64, 1), 0);
	CU_ASSERT_EQUAL(volume_delete(volume, &bed.err), 0);
	volume = bed_volume(&bed, "v", MIB);
	volume_info(volume, &new);
	CU_ASSERT_NOT_EQUAL(new.id, old.id);
	CU_ASSERT(bed_zeros(&bed, volume, 0, 64));
	bed_crash(&bed);
	CU_ASSERT(bed_zeros(&bed, volume_find(bed.pool, "v"), 0, 64));
	bed_close(&bed);
}

static void volume_ids_are_not_given_twice(void)
{
	struct volume_info old, new;

	bed_open(&bed, BED_LEN);
	volume_info(bed_volume(&bed, "a", MIB), &old);
	CU_ASSERT_EQUAL(volume_delete(volume_find(bed.pool, "a"), &bed.err), 0);
	bed_restart(&bed);
	bed_restart(&bed);
	volume_info(bed_volume(&bed, "b", MIB), &new);
	CU_ASSERT(new.id > old.id);
	bed_close(&bed);
}

/* Its leaves were reused since: the log from before must not bring them back. */
static void volume_gone_is_not_replayed(void)
{
	struct volume *volume;

	bed_open(&bed, BED_LEN);
	for (int round = 0; round < 8; round++) {
		struct volume *other = bed_volume(&bed, "other", MIB);

		volume = bed_volume(&bed, "v", MIB);
		CU_ASSERT_EQUAL(bed_write(&bed, volume, 0, 256, 1), 0);
		CU_ASSERT_EQUAL(pool_checkpoint(bed.pool, &bed.err), 0);
		CU_ASSERT_EQUAL(volume_delete(volume, &bed.err), 0);
		CU_ASSERT_EQUAL(bed_write(&bed, other, 0, 256, 2), 0);
		for (int i = 0; i < 3; i++)
			CU_ASSERT_EQUAL(pool_checkpoint(bed.pool, &bed.err), 0);
		bed_crash(&bed);
		other = volume_find(bed.pool, "other");
		CU_ASSERT(bed_holds(&bed, other, 0, 256, 2));
		CU_ASSERT_EQUAL(volume_delete(other, &bed.err), 0);
		CU_ASSERT_EQUAL(bed_faults(&bed), 0);
	}
	bed_close(&bed);
}

static void volumes_are_many(void)
{
	char name[16];

	bed_open(&bed, 64 * MIB);
	for (int i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "v%d", i);
		CU_ASSERT_EQUAL(bed_write(&bed, bed_volume(&bed, name, MIB), 8, 8, (uint64_t)i), 0);
	}
	bed_restart(&bed);
	for (int i = 0; i < 300; i += 7) {
		snprintf(name, sizeof(name), "v%d", i);
		CU_ASSERT(bed_holds(&bed, volume_find(bed.pool, name), 8, 8, (uint64_t)i));
	}
	bed_close(&bed);
}

static const struct test tests[] = {
	TEST(volume_is_created_once),
	TEST(volume_name_is_judged),
	TEST(volume_settings_are_judged),
	TEST(volume_is_there_after_a_crash),
	TEST(volume_is_there_after_a_checkpoint),
	TEST(volumes_come_in_order_of_name),
	TEST(volume_grows_and_does_not_shrink),
	TEST(volume_keeps_block_and_checksum),
	TEST(volume_codec_changes_what_comes),
	TEST(volume_in_use_is_not_deleted),
	TEST(volume_deleted_stays_so_after_a_crash),
	TEST(volume_deleted_gives_its_space_back),
	TEST(volume_name_is_free_again_at_once),
	TEST(volume_ids_are_not_given_twice),
	TEST(volume_gone_is_not_replayed),
	TEST(volumes_are_many),
};
TEST_MAIN(tests)
