/* The store `file`: what it makes of paths and sizes, space, other openers. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/backing/store_fixture.h"

#define MIB (1ull << 20)

/* ---- what is there and what is made ---- */

static uint64_t file_len(const char *path)
{
	struct stat st;

	CU_ASSERT_EQUAL_FATAL(stat(path, &st), 0);
	return (uint64_t)st.st_size;
}

static uint64_t file_allocated(const char *path)
{
	struct stat st;

	CU_ASSERT_EQUAL_FATAL(stat(path, &st), 0);
	return (uint64_t)st.st_blocks * 512;
}

/* A new file that holds len bytes of byte. */
static void make_file(const char *path, uint64_t len, uint8_t byte)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
	uint8_t *data = store_buffer(len, byte);

	CU_ASSERT_TRUE_FATAL(fd >= 0);
	CU_ASSERT_EQUAL_FATAL(write(fd, data, len), (ssize_t)len);
	close(fd);
	free(data);
}

static void file_that_is_missing_needs_a_size(void)
{
	struct backing_settings settings = store_settings(store_disk_path(), 0);

	store_refused(&settings, ENOENT, "size");
	CU_ASSERT_NOT_EQUAL(access(settings.path, F_OK), 0);
}

static void file_that_is_missing_is_created_private_and_sparse(void)
{
	struct backing_settings settings = store_settings(store_disk_path(), 64 * MIB);
	struct backing *backing;
	struct stat st;

	CU_ASSERT_EQUAL_FATAL(backing_open(&settings, &backing, NULL), 0);
	CU_ASSERT_EQUAL(stat(settings.path, &st), 0);
	CU_ASSERT_EQUAL(st.st_mode & 07777, 0600);
	CU_ASSERT_EQUAL(st.st_size, 64 * MIB);
	CU_ASSERT_TRUE(file_allocated(settings.path) < MIB);
	CU_ASSERT_EQUAL(backing_size(backing), 64 * MIB);
	backing_close(backing);
	unlink(settings.path);
}

static void file_is_not_created_below_dev(void)
{
	struct backing_settings settings = store_settings("/dev/quintain-test", MIB);

	store_refused(&settings, ENOENT, "/dev");
	CU_ASSERT_NOT_EQUAL(access(settings.path, F_OK), 0);
}

static void file_that_was_served_before_is_not_begun_anew(void)
{
	struct backing_settings settings = store_settings(store_disk_path(), MIB);

	settings.must_exist = true;
	store_refused(&settings, ENOENT, "served before");
	CU_ASSERT_NOT_EQUAL(access(settings.path, F_OK), 0);
}

static void file_is_not_created_read_only(void)
{
	struct backing_settings settings = store_settings(store_disk_path(), MIB);

	settings.read_only = true;
	store_refused(&settings, ENOENT, "read-only");
}

static void file_that_is_smaller_is_extended_and_keeps_its_data(void)
{
	struct backing_settings settings = store_settings(store_disk_path(), 4 * MIB);
	uint8_t *back = store_buffer(2 * MIB, 0xff);
	struct store store;

	make_file(settings.path, MIB, 0x61);
	store_open(&store, &settings);
	CU_ASSERT_EQUAL(backing_size(store.backing), 4 * MIB);
	CU_ASSERT_EQUAL(store_read(&store, 0, 2 * MIB, back), 0);
	CU_ASSERT_TRUE(store_all_bytes(back, MIB, 0x61));
	CU_ASSERT_TRUE(store_all_bytes(back + MIB, MIB, 0));
	store_close(&store);
	CU_ASSERT_EQUAL(file_len(settings.path), 4 * MIB);
	free(back);
	unlink(settings.path);
}

static void file_that_is_larger_is_served_in_part_and_not_cut(void)
{
	struct backing_settings settings = store_settings(store_disk_path(), MIB);
	struct store store;
	uint8_t block[512];

	make_file(settings.path, 2 * MIB, 0x62);
	store_open(&store, &settings);
	CU_ASSERT_EQUAL(backing_size(store.backing), MIB);
	CU_ASSERT_EQUAL(store_read(&store, MIB, 512, block), ERANGE);
	store_close(&store);
	CU_ASSERT_EQUAL(file_len(settings.path), 2 * MIB);
	unlink(settings.path);
}

static void file_of_odd_size_is_served_in_whole_blocks(void)
{
	struct backing_settings settings = store_settings(store_disk_path(), 0);
	struct backing *backing;

	make_file(settings.path, 4096 * 3 + 700, 1);
	settings.block_size = 4096;
	CU_ASSERT_EQUAL_FATAL(backing_open(&settings, &backing, NULL), 0);
	CU_ASSERT_EQUAL(backing_size(backing), 4096 * 3);
	backing_close(backing);
	CU_ASSERT_EQUAL(file_len(settings.path), 4096 * 3 + 700);
	unlink(settings.path);
}

static void file_that_is_empty_needs_a_size(void)
{
	struct backing_settings settings = store_settings(store_disk_path(), 0);

	make_file(settings.path, 0, 0);
	store_refused(&settings, EINVAL, "size");
	unlink(settings.path);
}

static void directory_is_refused(void)
{
	struct backing_settings settings = store_settings("/", MIB);

	store_refused(&settings, EINVAL, "directory");
}

static void block_size_other_than_512_and_4096_is_refused(void)
{
	struct backing_settings settings = store_settings(store_disk_path(), MIB);

	settings.block_size = 1024;
	store_refused(&settings, EINVAL, "512 or 4096");
	settings.block_size = 4096;
	settings.physical_block_size = 512;
	store_refused(&settings, EINVAL, "physical-blocksize");
}

static void physical_block_above_4096_is_reported_as_4096(void)
{
	struct backing_settings settings = store_settings(store_disk_path(), MIB);
	struct backing *backing;

	settings.physical_block_size = 128 << 10;
	CU_ASSERT_EQUAL_FATAL(backing_open(&settings, &backing, NULL), 0);
	CU_ASSERT_EQUAL(backing->limits.physical_block_size, 4096);
	backing_close(backing);
	unlink(settings.path);
}

/* ---- other openers ---- */

static void file_that_is_open_is_refused_to_a_second_writer(void)
{
	struct backing_settings settings = store_settings(store_disk_path(), MIB);
	struct backing *backing, *again;

	CU_ASSERT_EQUAL_FATAL(backing_open(&settings, &backing, NULL), 0);
	store_refused(&settings, EBUSY, "in use");
	settings.read_only = true;
	store_refused(&settings, EBUSY, "open for writing");
	backing_close(backing);
	settings.read_only = false;
	CU_ASSERT_EQUAL_FATAL(backing_open(&settings, &again, NULL), 0);
	backing_close(again);
	unlink(settings.path);
}

static void file_that_is_read_only_is_shared(void)
{
	struct backing_settings settings = store_settings(store_disk_path(), 0);
	struct backing *one, *two;

	make_file(settings.path, MIB, 0);
	settings.read_only = true;
	CU_ASSERT_EQUAL_FATAL(backing_open(&settings, &one, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(backing_open(&settings, &two, NULL), 0);
	backing_close(one);
	backing_close(two);
	unlink(settings.path);
}

static void read_only_store_is_not_written(void)
{
	struct backing_settings settings = store_settings(store_disk_path(), 0);
	uint8_t block[512] = { 0 };
	struct store store;

	make_file(settings.path, MIB, 0x63);
	settings.read_only = true;
	store_open(&store, &settings);
	CU_ASSERT_EQUAL(store_write(&store, 0, 512, block), EROFS);
	CU_ASSERT_EQUAL(store_op(&store, BK_WRITE_ZEROES, 0, 512, NULL, 0), EROFS);
	CU_ASSERT_EQUAL(store_op(&store, BK_UNMAP, 0, 4096, NULL, 0), EROFS);
	CU_ASSERT_EQUAL(store_op(&store, BK_FLUSH, 0, 0, NULL, 0), 0);
	CU_ASSERT_EQUAL(store_read(&store, 0, 512, block), 0);
	CU_ASSERT_TRUE(store_all_bytes(block, 512, 0x63));
	store_close(&store);
	unlink(settings.path);
}

static void file_that_cannot_be_written_asks_for_read_only(void)
{
	struct backing_settings settings = store_settings(store_disk_path(), 0);

	make_file(settings.path, MIB, 0);
	chmod(settings.path, 0400);
	/* Root may write to any file but an immutable one. */
	if (geteuid() == 0 && store_shell(NULL, 0, "chattr +i %s 2>/dev/null", settings.path) != 0)
		test_skip("as root, and no chattr +i on this file system");
	store_refused(&settings, geteuid() == 0 ? EPERM : EACCES, "read-only yes");
	if (geteuid() == 0)
		store_shell(NULL, 0, "chattr -i %s", settings.path);
	unlink(settings.path);
}

/* ---- space ---- */

static void unmap_gives_space_back(void)
{
	struct backing_settings settings = store_settings(store_disk_path(), 64 * MIB);
	uint8_t *data = store_buffer(8 * MIB, 0x64);
	struct store store;

	store_open(&store, &settings);
	if (!store.backing->limits.unmap_max) {
		store_close(&store);
		test_skip("the file system of TEST_TMP cannot punch holes");
	}
	CU_ASSERT_EQUAL(store_write(&store, 0, 8 * MIB, data), 0);
	CU_ASSERT_EQUAL(store_op(&store, BK_FLUSH, 0, 0, NULL, 0), 0);
	CU_ASSERT_TRUE(file_allocated(settings.path) >= 8 * MIB);
	CU_ASSERT_EQUAL(store_op(&store, BK_UNMAP, 0, 64 * MIB, NULL, 0), 0);
	CU_ASSERT_TRUE(file_allocated(settings.path) < MIB);
	CU_ASSERT_EQUAL(file_len(settings.path), 64 * MIB);
	store_close(&store);
	free(data);
	unlink(settings.path);
}

static void write_zeroes_that_may_unmap_takes_no_space(void)
{
	struct backing_settings settings = store_settings(store_disk_path(), 1024 * MIB);
	struct store store;
	uint64_t max;

	store_open(&store, &settings);
	max = store.backing->limits.write_zeroes_max;
	CU_ASSERT_TRUE_FATAL(max >= 64 * MIB);
	CU_ASSERT_EQUAL(store_op(&store, BK_WRITE_ZEROES, 0, max, NULL, BK_MAY_UNMAP), 0);
	CU_ASSERT_TRUE(file_allocated(settings.path) < MIB);
	store_close(&store);
	unlink(settings.path);
}

static void thin_no_allocates_and_keeps_space(void)
{
	struct backing_settings settings = store_settings(store_disk_path(), 8 * MIB);
	uint8_t *data = store_buffer(MIB, 0x65);
	struct store store;

	settings.thin = false;
	store_open(&store, &settings);
	CU_ASSERT_TRUE(file_allocated(settings.path) >= 8 * MIB);
	CU_ASSERT_EQUAL(store.backing->limits.unmap_max, 0);
	CU_ASSERT_FALSE(store.backing->limits.write_zeroes_unmaps);
	CU_ASSERT_EQUAL(store_op(&store, BK_UNMAP, 0, MIB, NULL, 0), EOPNOTSUPP);
	CU_ASSERT_EQUAL(store_write(&store, 0, MIB, data), 0);
	CU_ASSERT_EQUAL(store_op(&store, BK_WRITE_ZEROES, 0, MIB, NULL, BK_MAY_UNMAP), 0);
	CU_ASSERT_EQUAL(store_read(&store, 0, MIB, data), 0);
	CU_ASSERT_TRUE(store_all_bytes(data, MIB, 0));
	CU_ASSERT_TRUE(file_allocated(settings.path) >= 8 * MIB);
	settings.size = 16 * MIB;
	CU_ASSERT_EQUAL(backing_resize(store.backing, &settings, NULL), 1);
	CU_ASSERT_TRUE(file_allocated(settings.path) >= 16 * MIB);
	store_close(&store);
	free(data);
	unlink(settings.path);
}

/* A file system of 4 MiB, where one can be mounted. */
static const char *small_mount(void)
{
	static char dir[600];

	if (geteuid() != 0)
		test_skip("needs root to mount a small file system");
	snprintf(dir, sizeof(dir), "%s.mnt", store_disk_path());
	if (store_shell(NULL, 0, "mkdir %s && mount -t tmpfs -o size=4m quintain-test %s", dir,
			dir) != 0)
		test_skip("mount is not permitted");
	return dir;
}

static void small_unmount(const char *dir)
{
	CU_ASSERT_EQUAL(store_shell(NULL, 0, "umount %s && rmdir %s", dir, dir), 0);
}

static void thin_no_without_space_is_refused_and_leaves_nothing(void)
{
	const char *dir = small_mount();
	char path[700];
	struct backing_settings settings = store_settings(path, 16 * MIB);

	snprintf(path, sizeof(path), "%s/disk", dir);
	settings.thin = false;
	store_refused(&settings, ENOSPC, "free");
	CU_ASSERT_NOT_EQUAL(access(path, F_OK), 0);
	small_unmount(dir);
}

static void thin_disk_without_space_fails_writes_only(void)
{
	const char *dir = small_mount();
	char path[700];
	struct backing_settings settings = store_settings(path, 16 * MIB);
	uint8_t *data = store_buffer(8 * MIB, 0x66);
	struct store store;

	snprintf(path, sizeof(path), "%s/disk", dir);
	store_open(&store, &settings);
	CU_ASSERT_EQUAL(store_write(&store, 0, MIB, data), 0);
	CU_ASSERT_EQUAL(store_write(&store, MIB, 8 * MIB, data), ENOSPC);
	CU_ASSERT_EQUAL(store_read(&store, 0, MIB, data), 0);
	CU_ASSERT_TRUE(store_all_bytes(data, MIB, 0x66));
	/* Written again where it is, and where space has come back. */
	CU_ASSERT_EQUAL(store_write(&store, 0, MIB, data), 0);
	CU_ASSERT_EQUAL(store_op(&store, BK_UNMAP, 0, 16 * MIB, NULL, 0), 0);
	CU_ASSERT_EQUAL(store_write(&store, 8 * MIB, 2 * MIB, data), 0);
	store_close(&store);
	small_unmount(dir);
	free(data);
}

/* USERS: a flush after gigabytes of writes must not take minutes. */
static void written_data_is_sent_to_the_disk_before_a_flush_asks(void)
{
	enum { N = 24, LEN = 16 << 20 };
	struct backing_settings settings = store_settings(store_disk_path(), (uint64_t)N * LEN);
	struct store_call *calls = calloc(N, sizeof(*calls));
	uint8_t *data = store_buffer(LEN, 0x68);
	struct bk_stats stats;
	struct store store;

	store_open(&store, &settings);
	for (unsigned int i = 0; i < N; i++)
		store_call_init(&calls[i], &store, BK_WRITE, (uint64_t)i * LEN, LEN, data, 0);
	store_submit(calls, N);
	for (unsigned int i = 0; i < N; i++)
		CU_ASSERT_EQUAL(store_wait(&calls[i]), 0);
	backing_stats(store.backing, &stats);
	CU_ASSERT_TRUE(stats.writebacks > 0);
	memset(data, 0, LEN);
	CU_ASSERT_EQUAL(store_read(&store, (uint64_t)(N - 1) * LEN, LEN, data), 0);
	CU_ASSERT_TRUE(store_all_bytes(data, LEN, 0x68));
	/* While the last of it may be on its way. */
	store_close(&store);
	free(data);
	free(calls);
	unlink(settings.path);
}

/* ---- sizes while it is open ---- */

static void file_that_shrinks_reads_zeros(void)
{
	for (int where = 0; where < 3; where++) {
		struct backing_settings settings = store_settings(
			where == 0 ? store_memory_path() : store_disk_path(), 2 * MIB);
		uint8_t *data = store_buffer(2 * MIB, 0x67);
		struct store store;

		settings.block_size = 4096;
		if (where == 2)
			settings.direct = BACKING_DIRECT_YES;
		store_open(&store, &settings);
		CU_ASSERT_EQUAL(store_write(&store, 0, 2 * MIB, data), 0);
		CU_ASSERT_EQUAL(truncate(settings.path, MIB + 100), 0);
		memset(data, 0xff, 2 * MIB);
		CU_ASSERT_EQUAL(store_read(&store, 0, 2 * MIB, data), 0);
		CU_ASSERT_TRUE(store_all_bytes(data, MIB + 100, 0x67));
		CU_ASSERT_TRUE(store_all_bytes(data + MIB + 100, MIB - 100, 0));
		CU_ASSERT_EQUAL(backing_size(store.backing), 2 * MIB);
		store_close(&store);
		free(data);
		unlink(settings.path);
	}
}

static void resize_takes_a_new_size_and_cuts_nothing(void)
{
	struct backing_settings settings = store_settings(store_disk_path(), 2 * MIB);
	struct store store;
	uint8_t block[512] = { 1 };

	store_open(&store, &settings);
	CU_ASSERT_EQUAL(backing_resize(store.backing, &settings, NULL), 0);
	CU_ASSERT_EQUAL(store_write(&store, 2 * MIB, 512, block), ERANGE);
	settings.size = 4 * MIB;
	CU_ASSERT_EQUAL(backing_resize(store.backing, &settings, NULL), 1);
	CU_ASSERT_EQUAL(store_write(&store, 2 * MIB, 512, block), 0);
	settings.size = MIB;
	CU_ASSERT_EQUAL(backing_resize(store.backing, &settings, NULL), 1);
	CU_ASSERT_EQUAL(store_write(&store, MIB, 512, block), ERANGE);
	CU_ASSERT_EQUAL(file_len(settings.path), 4 * MIB);
	/* Without size: what the file has now. */
	settings.size = 0;
	CU_ASSERT_EQUAL(truncate(settings.path, 8 * MIB), 0);
	CU_ASSERT_EQUAL(backing_resize(store.backing, &settings, NULL), 1);
	CU_ASSERT_EQUAL(backing_size(store.backing), 8 * MIB);
	store_close(&store);
	unlink(settings.path);
}

/* ---- paths ---- */

static void canonical_path_follows_links_and_allows_a_missing_file(void)
{
	char path[600], link[700], out[4096], want[4096];
	struct err err;

	snprintf(path, sizeof(path), "%s", store_disk_path());
	make_file(path, 512, 0);
	snprintf(link, sizeof(link), "%s.link", path);
	CU_ASSERT_EQUAL(symlink(path, link), 0);
	CU_ASSERT_EQUAL(backing_canonical_path(path, want, sizeof(want), &err), 0);
	CU_ASSERT_EQUAL(backing_canonical_path(link, out, sizeof(out), &err), 0);
	CU_ASSERT_STRING_EQUAL(out, want);
	unlink(path);
	CU_ASSERT_EQUAL(backing_canonical_path(path, out, sizeof(out), &err), 0);
	CU_ASSERT_STRING_EQUAL(out, want);
	CU_ASSERT_EQUAL(
		backing_canonical_path("/tmp/../etc/./no-such-file", out, sizeof(out), &err), 0);
	CU_ASSERT_STRING_EQUAL(out, "/etc/no-such-file");
	CU_ASSERT_EQUAL(backing_canonical_path("/no/such/dir/file", out, sizeof(out), &err),
			-ENOENT);
	CU_ASSERT_EQUAL(backing_canonical_path("/etc/no-such-file", out, 8, &err), -ENAMETOOLONG);
	unlink(link);
}

static const struct test tests[] = {
	TEST(file_that_is_missing_needs_a_size),
	TEST(file_that_is_missing_is_created_private_and_sparse),
	TEST(file_is_not_created_below_dev),
	TEST(file_that_was_served_before_is_not_begun_anew),
	TEST(file_is_not_created_read_only),
	TEST(file_that_is_smaller_is_extended_and_keeps_its_data),
	TEST(file_that_is_larger_is_served_in_part_and_not_cut),
	TEST(file_of_odd_size_is_served_in_whole_blocks),
	TEST(file_that_is_empty_needs_a_size),
	TEST(directory_is_refused),
	TEST(block_size_other_than_512_and_4096_is_refused),
	TEST(physical_block_above_4096_is_reported_as_4096),
	TEST(file_that_is_open_is_refused_to_a_second_writer),
	TEST(file_that_is_read_only_is_shared),
	TEST(read_only_store_is_not_written),
	TEST(file_that_cannot_be_written_asks_for_read_only),
	TEST(unmap_gives_space_back),
	TEST(write_zeroes_that_may_unmap_takes_no_space),
	TEST(thin_no_allocates_and_keeps_space),
	TEST(thin_no_without_space_is_refused_and_leaves_nothing),
	TEST(thin_disk_without_space_fails_writes_only),
	TEST(written_data_is_sent_to_the_disk_before_a_flush_asks),
	TEST(file_that_shrinks_reads_zeros),
	TEST(resize_takes_a_new_size_and_cuts_nothing),
	TEST(canonical_path_follows_links_and_allows_a_missing_file),
};
TEST_MAIN(tests)
