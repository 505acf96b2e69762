/* The RAM disk. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/backing/store_fixture.h"

#define MIB (1ull << 20)

static void ram_disk_needs_a_size(void)
{
	struct backing_settings settings = store_settings(NULL, 0);
	struct backing *backing;
	struct err err;

	CU_ASSERT_EQUAL(backing_open(&settings, &backing, &err), -EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "size"));
}

static void ram_disk_takes_writes_inline(void)
{
	struct backing_settings settings = store_settings(NULL, MIB);
	uint8_t *data = store_buffer(4096, 1);
	struct store_call call;
	struct store store;

	store_open(&store, &settings);
	CU_ASSERT_TRUE(store.channel->write_inline);
	store_call_init(&call, &store, BK_WRITE, 0, 4096, data, 0);
	store_submit(&call, 1);
	/* Not looked at after submit. */
	memset(data, 2, 4096);
	CU_ASSERT_EQUAL(store_wait(&call), 0);
	CU_ASSERT_EQUAL(store_read(&store, 0, 4096, data), 0);
	CU_ASSERT_TRUE(store_all_bytes(data, 4096, 1));
	store_close(&store);
	free(data);
}

static void ram_disk_grows_while_it_is_in_use(void)
{
	struct backing_settings settings = store_settings(NULL, MIB);
	uint8_t *data = store_buffer(MIB, 0x11);
	struct store store;

	store_open(&store, &settings);
	settings.size = 4 * MIB;
	CU_ASSERT_EQUAL(backing_resize(store.backing, &settings, NULL), 1);
	/* Across the seam. */
	CU_ASSERT_EQUAL(store_write(&store, MIB - 4096, MIB, data), 0);
	memset(data, 0, MIB);
	CU_ASSERT_EQUAL(store_read(&store, MIB - 4096, MIB, data), 0);
	CU_ASSERT_TRUE(store_all_bytes(data, MIB, 0x11));
	CU_ASSERT_EQUAL(store_op(&store, BK_WRITE_ZEROES, 0, 4 * MIB, NULL, BK_MAY_UNMAP), 0);
	CU_ASSERT_EQUAL(store_read(&store, MIB - 4096, MIB, data), 0);
	CU_ASSERT_TRUE(store_all_bytes(data, MIB, 0));
	settings.size = MIB;
	CU_ASSERT_EQUAL(backing_resize(store.backing, &settings, NULL), 1);
	CU_ASSERT_EQUAL(store_read(&store, MIB, 4096, data), ERANGE);
	store_close(&store);
	free(data);
}

static void ram_disk_that_is_not_thin_does_not_unmap(void)
{
	struct backing_settings settings = store_settings(NULL, 8 * MIB);
	uint8_t *data = store_buffer(8 * MIB, 0x12);
	struct store store;

	settings.thin = false;
	store_open(&store, &settings);
	CU_ASSERT_EQUAL(store_op(&store, BK_UNMAP, 0, MIB, NULL, 0), EOPNOTSUPP);
	CU_ASSERT_EQUAL(store_write(&store, 0, 8 * MIB, data), 0);
	CU_ASSERT_EQUAL(store_op(&store, BK_WRITE_ZEROES, 512, 7 * MIB, NULL, BK_MAY_UNMAP), 0);
	CU_ASSERT_EQUAL(store_read(&store, 0, 8 * MIB, data), 0);
	CU_ASSERT_TRUE(store_all_bytes(data, 512, 0x12));
	CU_ASSERT_TRUE(store_all_bytes(data + 512, 7 * MIB, 0));
	CU_ASSERT_TRUE(store_all_bytes(data + 512 + 7 * MIB, MIB - 512, 0x12));
	store_close(&store);
	free(data);
}

static void zeroed_is_mapped_unless_it_may_unmap(void)
{
	struct backing_settings settings = store_settings(NULL, MIB);
	struct bk_extent extents[4];
	struct store store;

	store_open(&store, &settings);
	CU_ASSERT_EQUAL(store_op(&store, BK_WRITE_ZEROES, 0, 65536, NULL, 0), 0);
	CU_ASSERT_EQUAL(store_status(&store, 0, MIB, extents, 4), 2);
	CU_ASSERT_EQUAL(extents[0].status, BK_MAPPED);
	CU_ASSERT_EQUAL(extents[0].len, 65536);
	CU_ASSERT_EQUAL(store_op(&store, BK_WRITE_ZEROES, 0, 65536, NULL, BK_MAY_UNMAP), 0);
	CU_ASSERT_EQUAL(store_status(&store, 0, MIB, extents, 4), 1);
	CU_ASSERT_EQUAL(extents[0].status, BK_UNMAPPED);
	store_close(&store);
}

static void status_of_a_large_ram_disk_ends_early(void)
{
	struct backing_settings settings = store_settings(NULL, 128ull << 30);
	struct bk_extent extents[4];
	struct store store;

	store_open(&store, &settings);
	CU_ASSERT_EQUAL(store_status(&store, 0, 128ull << 30, extents, 4), 1);
	CU_ASSERT_TRUE(extents[0].len >= 1 << 20 && extents[0].len < 128ull << 30);
	CU_ASSERT_EQUAL(store_status(&store, (128ull << 30) - 4096, 4096, extents, 4), 1);
	CU_ASSERT_EQUAL(extents[0].len, 4096);
	store_close(&store);
}

static const struct test tests[] = {
	TEST(ram_disk_needs_a_size),
	TEST(ram_disk_takes_writes_inline),
	TEST(ram_disk_grows_while_it_is_in_use),
	TEST(ram_disk_that_is_not_thin_does_not_unmap),
	TEST(zeroed_is_mapped_unless_it_may_unmap),
	TEST(status_of_a_large_ram_disk_ends_early),
};
TEST_MAIN(tests)
