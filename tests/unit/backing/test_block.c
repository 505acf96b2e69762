/* The store `block`, on loop devices: needs root. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/backing/store_fixture.h"

#define MIB (1ull << 20)

static struct {
	char file[600], device[64];
} loop;

/* A loop device of len bytes in a new file; skips where there is none. */
static void loop_setup(uint64_t len, const char *options)
{
	if (geteuid() != 0)
		test_skip("needs root for a loop device");
	snprintf(loop.file, sizeof(loop.file), "%s", store_disk_path());
	CU_ASSERT_EQUAL_FATAL(
		store_shell(NULL, 0, "truncate -s %llu %s", (unsigned long long)len, loop.file), 0);
	if (store_shell(loop.device, sizeof(loop.device), "losetup %s -f --show %s 2>&1", options,
			loop.file) != 0)
		test_skip("no loop device: %s", loop.device);
}

static void loop_remove(void)
{
	CU_ASSERT_EQUAL(store_shell(NULL, 0, "losetup -d %s", loop.device), 0);
	unlink(loop.file);
}

static void device_has_its_own_size_and_serves_less(void)
{
	struct backing_settings settings;
	struct backing *backing;

	loop_setup(8 * MIB, "");
	settings = store_settings(loop.device, 0);
	CU_ASSERT_EQUAL_FATAL(backing_open(&settings, &backing, NULL), 0);
	CU_ASSERT_EQUAL(backing_size(backing), 8 * MIB);
	/* It grows under us. */
	CU_ASSERT_EQUAL(
		store_shell(NULL, 0, "truncate -s 16M %s && losetup -c %s", loop.file, loop.device),
		0);
	CU_ASSERT_EQUAL(backing_resize(backing, &settings, NULL), 1);
	CU_ASSERT_EQUAL(backing_size(backing), 16 * MIB);
	backing_close(backing);
	settings.size = 4 * MIB;
	CU_ASSERT_EQUAL_FATAL(backing_open(&settings, &backing, NULL), 0);
	CU_ASSERT_EQUAL(backing_size(backing), 4 * MIB);
	backing_close(backing);
	settings.size = 32 * MIB;
	store_refused(&settings, EINVAL, "does not grow");
	loop_remove();
}

static void device_that_is_mounted_is_refused_by_name(void)
{
	struct backing_settings settings;
	struct backing *backing;
	char dir[700];

	loop_setup(16 * MIB, "");
	snprintf(dir, sizeof(dir), "%s.mnt", loop.file);
	settings = store_settings(loop.device, 0);
	if (store_shell(NULL, 0, "mkfs.ext4 -q %s 2>&1 && mkdir %s && mount %s %s", loop.device,
			dir, loop.device, dir) != 0) {
		loop_remove();
		test_skip("mount is not permitted");
	}
	store_refused(&settings, EBUSY, dir);
	settings.read_only = true;
	CU_ASSERT_EQUAL(backing_open(&settings, &backing, NULL), 0);
	backing_close(backing);
	CU_ASSERT_EQUAL(store_shell(NULL, 0, "umount %s && rmdir %s", dir, dir), 0);
	loop_remove();
}

static void device_that_is_served_is_refused_to_another(void)
{
	struct backing_settings settings;
	struct backing *backing;

	loop_setup(8 * MIB, "");
	settings = store_settings(loop.device, 0);
	CU_ASSERT_EQUAL_FATAL(backing_open(&settings, &backing, NULL), 0);
	store_refused(&settings, EBUSY, "in use");
	backing_close(backing);
	loop_remove();
}

static void device_that_is_read_only_asks_for_read_only(void)
{
	struct backing_settings settings;
	struct backing *backing;
	struct err err;
	int rc;

	loop_setup(8 * MIB, "-r");
	settings = store_settings(loop.device, 0);
	/* Which of the two depends on the kernel. */
	rc = backing_open(&settings, &backing, &err);
	CU_ASSERT_TRUE(rc == -EROFS || rc == -EACCES);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "read-only yes"));
	settings.read_only = true;
	CU_ASSERT_EQUAL(backing_open(&settings, &backing, NULL), 0);
	backing_close(backing);
	loop_remove();
}

static void device_unmaps_and_zeros_by_fallocate(void)
{
	uint8_t *data = store_buffer(8 * MIB, 0x71);
	struct backing_settings settings;
	struct store store;
	char blocks[64];

	loop_setup(8 * MIB, "");
	settings = store_settings(loop.device, 0);
	store_open(&store, &settings);
	CU_ASSERT_TRUE(store.backing->limits.unmap_max > 0);
	CU_ASSERT_TRUE(store.backing->limits.unmapped_reads_zero);
	CU_ASSERT_EQUAL(store_write(&store, 0, 8 * MIB, data), 0);
	CU_ASSERT_EQUAL(store_op(&store, BK_FLUSH, 0, 0, NULL, 0), 0);
	CU_ASSERT_EQUAL(store_op(&store, BK_UNMAP, 0, 4 * MIB, NULL, 0), 0);
	CU_ASSERT_EQUAL(store_op(&store, BK_WRITE_ZEROES, 4 * MIB, 4 * MIB, NULL, BK_MAY_UNMAP), 0);
	CU_ASSERT_EQUAL(store_read(&store, 0, 8 * MIB, data), 0);
	CU_ASSERT_TRUE(store_all_bytes(data, 8 * MIB, 0));
	store_shell(blocks, sizeof(blocks), "stat -c %%b %s", loop.file);
	CU_ASSERT_TRUE(strtoul(blocks, NULL, 10) < 2048);
	store_close(&store);
	loop_remove();
	free(data);
}

/* USERS: a LUN of 512-byte blocks on a disk of 4096-byte ones. */
static void device_of_4096_serves_512_through_the_page_cache(void)
{
	uint8_t *data = store_buffer(64 << 10, 0x72);
	struct backing_settings settings;
	struct store store;

	loop_setup(8 * MIB, "-b 4096");
	settings = store_settings(loop.device, 0);
	settings.direct = BACKING_DIRECT_YES;
	store_open(&store, &settings);
	CU_ASSERT_EQUAL(store_write(&store, 512, 64 << 10, data), 0);
	CU_ASSERT_EQUAL(store_op(&store, BK_WRITE_ZEROES, 1024, 16384 + 512, NULL, BK_MAY_UNMAP),
			0);
	CU_ASSERT_EQUAL(store_op(&store, BK_UNMAP, 20480, 8192, NULL, 0), 0);
	CU_ASSERT_EQUAL(store_read(&store, 512, 64 << 10, data), 0);
	CU_ASSERT_TRUE(store_all_bytes(data, 512, 0x72));
	CU_ASSERT_TRUE(store_all_bytes(data + 512, 16384 + 512, 0));
	CU_ASSERT_TRUE(store_all_bytes(data + 512 + 16896, 20480 - 512 - 17408, 0x72));
	CU_ASSERT_TRUE(store_all_bytes(data + 20480 - 512, 8192, 0));
	CU_ASSERT_TRUE(store_all_bytes(data + 28672 - 512, 1024, 0x72));
	store_close(&store);
	loop_remove();
	free(data);
}

/*
 * A disk whose writes fail after they were acknowledged: a loop device in a
 * file system that is full.  The flush has to say so, and so has every later
 * one, though fsync(2) itself would succeed the next time.
 */
static void flush_that_fails_is_never_followed_by_one_that_succeeds(void)
{
	uint8_t *data = store_buffer(4 * MIB, 0x73);
	struct backing_settings settings;
	struct store store;
	char dir[600];

	if (geteuid() != 0)
		test_skip("needs root for a loop device");
	snprintf(dir, sizeof(dir), "%s.mnt", store_disk_path());
	if (store_shell(NULL, 0, "mkdir %s && mount -t tmpfs -o size=1m quintain-test %s", dir,
			dir))
		test_skip("mount is not permitted");
	if (store_shell(loop.device, sizeof(loop.device),
			"truncate -s 16M %s/f && losetup -f --show %s/f", dir, dir) != 0) {
		store_shell(NULL, 0, "umount %s", dir);
		test_skip("no loop device");
	}
	settings = store_settings(loop.device, 0);
	settings.direct = BACKING_DIRECT_NO;
	store_open(&store, &settings);
	CU_ASSERT_EQUAL(store_write(&store, 0, 4 * MIB, data), 0);
	CU_ASSERT_NOT_EQUAL(store_op(&store, BK_FLUSH, 0, 0, NULL, 0), 0);
	CU_ASSERT_EQUAL(store_op(&store, BK_FLUSH, 0, 0, NULL, 0), EIO);
	CU_ASSERT_EQUAL(store_op(&store, BK_WRITE, 0, 4096, data, BK_FUA), EIO);
	CU_ASSERT_EQUAL(store_read(&store, 8 * MIB, 4096, data), 0);
	store_close(&store);
	CU_ASSERT_EQUAL(store_shell(NULL, 0, "losetup -d %s && umount %s && rmdir %s", loop.device,
				    dir, dir),
			0);
	free(data);
}

static const struct test tests[] = {
	TEST(device_has_its_own_size_and_serves_less),
	TEST(device_that_is_mounted_is_refused_by_name),
	TEST(device_that_is_served_is_refused_to_another),
	TEST(device_that_is_read_only_asks_for_read_only),
	TEST(device_unmaps_and_zeros_by_fallocate),
	TEST(device_of_4096_serves_512_through_the_page_cache),
	TEST(flush_that_fails_is_never_followed_by_one_that_succeeds),
};
TEST_MAIN(tests)
