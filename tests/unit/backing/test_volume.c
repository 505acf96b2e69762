/* A volume of a pool: on the pool's home reactor, and on another. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backing/pool.h"
#include "tests/unit/backing/store_fixture.h"

#define MIB (1ull << 20)

struct bed {
	struct pool_settings settings;
	struct reactor *home;
	struct bk_pool *pool;
	char path[512];
};

static void bed_open(struct bed *bed)
{
	struct reactor_config config = {
		.index = 5, .cpu = -1, .ring_entries = 64, .buffer_bytes = BUFPOOL_BYTES_MIN
	};
	struct err err = { "" };

	if (reactor_probe(&err) != 0)
		test_skip("%s", err.text);
	CU_ASSERT_EQUAL_FATAL(reactor_start(&config, &bed->home, &err), 0);
	if (bk_pool_open("tank", &bed->settings, &bed->pool, &err) != 0)
		printf("%s\n", err.text);
	CU_ASSERT_PTR_NOT_NULL_FATAL(bed->pool);
	CU_ASSERT_EQUAL_FATAL(bk_pool_start(bed->pool, bed->home, &err), 0);
}

static void bed_init(struct bed *bed)
{
	memset(bed, 0, sizeof(*bed));
	snprintf(bed->path, sizeof(bed->path), "%s", store_disk_path());
	option_defaults(pool_options, &bed->settings);
	bed->settings.path = bed->path;
	bed->settings.size = 64 * MIB;
	bed->settings.cache_memory = 32 * MIB;
	bed_open(bed);
}

static void bed_close(struct bed *bed)
{
	CU_ASSERT_FALSE(bk_pool_in_use(bed->pool));
	CU_ASSERT_TRUE_FATAL(bk_pool_stop(bed->pool, 20000));
	bk_pool_close(bed->pool);
	bed->pool = NULL;
	CU_ASSERT_EQUAL(reactor_stop(bed->home, 10000), 0);
}

static struct backing_settings volume_settings_of(const struct bed *bed, const char *name,
						  uint64_t size)
{
	struct backing_settings settings = store_settings(NULL, size);

	settings.backend = BACKING_KIND_BLOCK;
	settings.volume = name;
	settings.pool = bed->pool;
	return settings;
}

static void volume_holds_what_is_written(void)
{
	uint8_t *data = store_buffer(MIB, 0x5a);
	struct backing_settings settings;
	struct store store;
	struct bed bed;

	bed_init(&bed);
	settings = volume_settings_of(&bed, "tank/a", 16 * MIB);
	store_open(&store, &settings);
	CU_ASSERT_TRUE(bk_pool_in_use(bed.pool));
	CU_ASSERT_EQUAL(backing_size(store.backing), 16 * MIB);
	CU_ASSERT_EQUAL(store_write(&store, 512, MIB, data), 0);
	CU_ASSERT_EQUAL(store_op(&store, BK_FLUSH, 0, 0, NULL, 0), 0);
	memset(data, 0, MIB);
	CU_ASSERT_EQUAL(store_read(&store, 512, MIB, data), 0);
	CU_ASSERT_TRUE(store_all_bytes(data, MIB, 0x5a));
	CU_ASSERT_EQUAL(store_read(&store, 4 * MIB, MIB, data), 0);
	CU_ASSERT_TRUE(store_all_bytes(data, MIB, 0));
	store_close(&store);
	bed_close(&bed);
	bed.settings.must_exist = true;
	bed_open(&bed);
	settings = volume_settings_of(&bed, "tank/a", 0);
	store_open(&store, &settings);
	CU_ASSERT_EQUAL(store_read(&store, 512, MIB, data), 0);
	CU_ASSERT_TRUE(store_all_bytes(data, MIB, 0x5a));
	store_close(&store);
	bed_close(&bed);
	free(data);
}

static void volume_tells_what_is_mapped(void)
{
	uint8_t *data = store_buffer(MIB, 1);
	struct backing_settings settings;
	struct bk_extent extent;
	struct store store;
	struct bed bed;

	bed_init(&bed);
	settings = volume_settings_of(&bed, "tank/a", 16 * MIB);
	store_open(&store, &settings);
	CU_ASSERT_EQUAL(store_write(&store, MIB, MIB, data), 0);
	CU_ASSERT_EQUAL(store_status(&store, 0, 4 * MIB, &extent, 1), 1);
	CU_ASSERT_EQUAL(extent.status, BK_UNMAPPED);
	CU_ASSERT_EQUAL(store_status(&store, MIB, 4 * MIB, &extent, 1), 1);
	CU_ASSERT_EQUAL(extent.status, BK_MAPPED);
	CU_ASSERT_EQUAL(store_op(&store, BK_UNMAP, MIB, MIB, NULL, 0), 0);
	CU_ASSERT_EQUAL(store_status(&store, MIB, MIB, &extent, 1), 1);
	CU_ASSERT_EQUAL(extent.status, BK_UNMAPPED);
	CU_ASSERT_EQUAL(store_read(&store, MIB, MIB, data), 0);
	CU_ASSERT_TRUE(store_all_bytes(data, MIB, 0));
	store_close(&store);
	bed_close(&bed);
	free(data);
}

static void volume_grows_and_never_shrinks(void)
{
	struct backing_settings settings;
	uint8_t *data = store_buffer(4096, 7);
	struct store store;
	struct err err;
	struct bed bed;

	bed_init(&bed);
	settings = volume_settings_of(&bed, "tank/a", 4 * MIB);
	store_open(&store, &settings);
	settings.size = 8 * MIB;
	CU_ASSERT_EQUAL(backing_resize(store.backing, &settings, NULL), 1);
	CU_ASSERT_EQUAL(store_write(&store, 8 * MIB - 4096, 4096, data), 0);
	settings.size = 4 * MIB;
	CU_ASSERT_EQUAL(backing_resize(store.backing, &settings, &err), -EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "cannot be made smaller"));
	CU_ASSERT_EQUAL(backing_size(store.backing), 8 * MIB);
	store_close(&store);
	bed_close(&bed);
	free(data);
}

static void volume_without_a_size_is_not_made(void)
{
	struct backing_settings settings;
	struct bed bed;

	bed_init(&bed);
	settings = volume_settings_of(&bed, "tank/a", 0);
	store_refused(&settings, ENOENT, "has no volume \"a\"");
	settings.pool = NULL;
	store_refused(&settings, ENOENT, "its pool is not open");
	bed_close(&bed);
}

static void volume_keeps_its_block_size(void)
{
	struct backing_settings settings;
	struct store store;
	struct bed bed;

	bed_init(&bed);
	settings = volume_settings_of(&bed, "tank/a", 4 * MIB);
	store_open(&store, &settings);
	store_close(&store);
	settings.block_size = settings.physical_block_size = 4096;
	store_refused(&settings, EINVAL, "say blocksize 512");
	bed_close(&bed);
}

static void pool_that_was_there_is_not_begun_anew(void)
{
	struct err err;
	struct bed bed;

	bed_init(&bed);
	bed_close(&bed);
	unlink(bed.path);
	bed.settings.must_exist = true;
	CU_ASSERT_EQUAL(bk_pool_open("tank", &bed.settings, &bed.pool, &err), -ENOENT);
	CU_ASSERT_NOT_EQUAL(access(bed.path, F_OK), 0);
}

static void pool_is_opened_once(void)
{
	struct bk_pool *second;
	struct err err;
	struct bed bed;

	bed_init(&bed);
	CU_ASSERT_EQUAL(bk_pool_open("again", &bed.settings, &second, &err), -EBUSY);
	bed_close(&bed);
}

static void pool_grows_while_it_is_in_use(void)
{
	struct pool_info info;
	struct stat st;
	struct err err;
	struct bed bed;

	bed_init(&bed);
	CU_ASSERT_EQUAL(bk_pool_grow(bed.pool, 128 * MIB, &err), 0);
	CU_ASSERT_EQUAL(stat(bed.path, &st), 0);
	CU_ASSERT_EQUAL(st.st_size, 128 * MIB);
	bed_close(&bed);
	bed_open(&bed);
	bk_pool_info(bed.pool, &info);
	CU_ASSERT_EQUAL(info.len, 128 * MIB);
	bed_close(&bed);
}

static const struct test tests[] = {
	TEST(volume_holds_what_is_written),
	TEST(volume_tells_what_is_mapped),
	TEST(volume_grows_and_never_shrinks),
	TEST(volume_without_a_size_is_not_made),
	TEST(volume_keeps_its_block_size),
	TEST(pool_that_was_there_is_not_begun_anew),
	TEST(pool_is_opened_once),
	TEST(pool_grows_while_it_is_in_use),
};
TEST_MAIN(tests)
