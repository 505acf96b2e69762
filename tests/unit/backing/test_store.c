/* What every store does, each by itself and behind the fault filter. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/backing/store_fixture.h"

#define MIB  (1ull << 20)
#define SIZE (16 * MIB)

enum kind { MEMORY, FILE_IN_MEMORY, FILE_ON_DISK, FILE_DIRECT, DEVICE, NKINDS };

static const char *const kind_names[NKINDS] = {
	"memory", "file in memory", "file on disk", "file with O_DIRECT", "block device",
};

/* A loop device over a new file; an empty name where there is none. */
static const char *loop_device(void)
{
	static char device[64];
	const char *path = store_disk_path();

	if (store_shell(NULL, 0, "truncate -s %llu %s", SIZE, path) != 0 ||
	    store_shell(device, sizeof(device), "losetup -f --show %s 2>/dev/null", path) != 0)
		return "";
	return device;
}

static struct backing_settings kind_settings(enum kind kind)
{
	const char *path = NULL;

	if (kind == FILE_IN_MEMORY)
		path = store_memory_path();
	else if (kind == FILE_ON_DISK || kind == FILE_DIRECT)
		path = store_disk_path();
	else if (kind == DEVICE)
		path = loop_device();
	struct backing_settings settings = store_settings(path, SIZE);
	if (kind == FILE_DIRECT) {
		settings.direct = BACKING_DIRECT_YES;
		settings.block_size = 4096;
	}
	return settings;
}

/* Runs the behaviour over every kind of store, plain, behind the filter, and
 * behind one that keeps a log for a power cut that never comes. */
static void each_store(void (*behaviour)(struct store *store))
{
	static const struct fault_rule never = { .ops = ~0u,
						 .kind = FAULT_POWER_CUT,
						 .nth = UINT64_MAX };

	for (int kind = 0; kind < NKINDS; kind++) {
		for (unsigned int filter = 0; filter < 3; filter++) {
			struct backing_settings settings = kind_settings(kind);
			struct store store = { 0 };
			struct backing *backing;
			struct err err;

			if (settings.path && settings.path[0] == '\0')
				continue;
			printf("#   %s%s\n", kind_names[kind],
			       filter == 0   ? ""
			       : filter == 1 ? ", filtered"
					     : ", filtered, logged");
			if (backing_open(&settings, &backing, &err) != 0) {
				printf("%s\n", err.text);
				CU_FAIL_FATAL("the store does not open");
			}
			if (filter)
				CU_ASSERT_EQUAL_FATAL(
					fault_open(backing, &never, filter - 1, &backing, NULL), 0);
			store_start(&store, backing);
			behaviour(&store);
			store_close(&store);
			if (kind == DEVICE)
				store_shell(NULL, 0, "losetup -d %s", settings.path);
			else if (settings.path)
				unlink(settings.path);
		}
	}
}

static void check_round_trip(struct store *store)
{
	uint8_t *data = store_buffer(MIB, 0), *back = store_buffer(MIB, 0xff);

	for (uint64_t i = 0; i < MIB; i++)
		data[i] = (uint8_t)(i * 7 + i / 4096);
	CU_ASSERT_EQUAL(store_write(store, 3 * 4096, MIB, data), 0);
	CU_ASSERT_EQUAL(store_read(store, 3 * 4096, MIB, back), 0);
	CU_ASSERT_EQUAL(memcmp(data, back, MIB), 0);
	/* The last block of the store. */
	CU_ASSERT_EQUAL(store_write(store, SIZE - 4096, 4096, data), 0);
	CU_ASSERT_EQUAL(store_read(store, SIZE - 4096, 4096, back), 0);
	CU_ASSERT_EQUAL(memcmp(data, back, 4096), 0);
	free(data);
	free(back);
}

static void store_reads_what_was_written(void)
{
	each_store(check_round_trip);
}

static void check_new_zeros(struct store *store)
{
	uint8_t *back = store_buffer(MIB, 0xff);

	CU_ASSERT_EQUAL(store_read(store, 8 * MIB, MIB, back), 0);
	CU_ASSERT_TRUE(store_all_bytes(back, MIB, 0));
	free(back);
}

static void store_that_is_new_reads_zeros(void)
{
	each_store(check_new_zeros);
}

/* Pieces of odd shapes, as they come out of a receive area. */
static void check_scattered(struct store *store)
{
	uint8_t *data = store_buffer(64 << 10, 0), *back = store_buffer(64 << 10, 0);
	struct iovec in[3] = { { data + 512, 4096 }, { data + 8192, 512 }, { data + 100, 3584 } };
	struct iovec out[2] = { { back + 3, 1000 }, { back + 2048, 7192 } };
	struct store_call call;

	for (int i = 0; i < 64 << 10; i++)
		data[i] = (uint8_t)(i * 13 >> 3);
	store_call_init(&call, store, BK_WRITE, 4096, 8192, data, 0);
	call.req.iov = in;
	call.req.iovcnt = 3;
	store_submit(&call, 1);
	CU_ASSERT_EQUAL(store_wait(&call), 0);
	store_call_init(&call, store, BK_READ, 4096, 8192, back, 0);
	call.req.iov = out;
	call.req.iovcnt = 2;
	store_submit(&call, 1);
	CU_ASSERT_EQUAL(store_wait(&call), 0);
	CU_ASSERT_EQUAL(memcmp(back + 3, data + 512, 1000), 0);
	CU_ASSERT_EQUAL(memcmp(back + 2048, data + 1512, 3096), 0);
	CU_ASSERT_EQUAL(memcmp(back + 2048 + 3096, data + 8192, 512), 0);
	CU_ASSERT_EQUAL(memcmp(back + 2048 + 3608, data + 100, 3584), 0);
	free(data);
	free(back);
}

static void store_takes_buffers_of_any_alignment(void)
{
	each_store(check_scattered);
}

static void check_judgement(struct store *store)
{
	uint32_t block = store->backing->limits.block_size;
	uint8_t *data = store_buffer(8192, 1);

	CU_ASSERT_EQUAL(store_read(store, SIZE, block, data), ERANGE);
	CU_ASSERT_EQUAL(store_read(store, SIZE - block, 2ull * block, data), ERANGE);
	CU_ASSERT_EQUAL(store_write(store, UINT64_MAX - block + 1, block, data), ERANGE);
	CU_ASSERT_EQUAL(store_op(store, BK_WRITE_ZEROES, block, UINT64_MAX - block + 1, NULL, 0),
			ERANGE);
	CU_ASSERT_EQUAL(store_op(store, BK_UNMAP, 0, SIZE + block, NULL, 0), ERANGE);
	CU_ASSERT_EQUAL(store_write(store, 1, block, data), EINVAL);
	CU_ASSERT_EQUAL(store_write(store, 0, block + 1, data), EINVAL);
	CU_ASSERT_EQUAL(store_read(store, SIZE + block, 0, NULL), ERANGE);
	CU_ASSERT_EQUAL(store_read(store, SIZE, 0, NULL), 0);
	free(data);
}

static void store_refuses_what_is_outside(void)
{
	each_store(check_judgement);
}

static void check_zeroes(struct store *store)
{
	uint32_t block = store->backing->limits.block_size;
	uint8_t *data = store_buffer(4 * MIB, 0x5a);
	uint64_t off = 3ull * block, len = 2 * MIB + 5ull * block;

	for (unsigned int may_unmap = 0; may_unmap < 2; may_unmap++) {
		memset(data, 0x5a, 4 * MIB);
		CU_ASSERT_EQUAL(store_write(store, 0, 4 * MIB, data), 0);
		CU_ASSERT_EQUAL(store_op(store, BK_WRITE_ZEROES, off, len, NULL,
					 may_unmap ? BK_MAY_UNMAP : 0),
				0);
		CU_ASSERT_EQUAL(store_read(store, 0, 4 * MIB, data), 0);
		CU_ASSERT_TRUE(store_all_bytes(data, off, 0x5a));
		CU_ASSERT_TRUE(store_all_bytes(data + off, len, 0));
		CU_ASSERT_TRUE(store_all_bytes(data + off + len, 4 * MIB - off - len, 0x5a));
	}
	free(data);
}

static void write_zeroes_zeros_exactly_its_range(void)
{
	each_store(check_zeroes);
}

static void check_unmap(struct store *store)
{
	const struct bk_limits *limits = &store->backing->limits;
	uint8_t *data = store_buffer(2 * MIB, 0x33);
	uint64_t edge = limits->block_size;

	if (!limits->unmap_max) {
		CU_ASSERT_EQUAL(store_op(store, BK_UNMAP, 0, MIB, NULL, 0), EOPNOTSUPP);
		goto out;
	}
	CU_ASSERT_EQUAL(store_write(store, 0, 2 * MIB, data), 0);
	CU_ASSERT_EQUAL(store_op(store, BK_UNMAP, edge, MIB, NULL, 0), 0);
	CU_ASSERT_EQUAL(store_read(store, 0, 2 * MIB, data), 0);
	CU_ASSERT_TRUE(store_all_bytes(data, edge, 0x33));
	if (limits->unmapped_reads_zero)
		CU_ASSERT_TRUE(store_all_bytes(data + edge, MIB, 0));
	CU_ASSERT_TRUE(store_all_bytes(data + edge + MIB, MIB - edge, 0x33));
out:
	free(data);
}

static void unmap_touches_nothing_beside_its_range(void)
{
	each_store(check_unmap);
}

static void check_status(struct store *store)
{
	const struct bk_limits *limits = &store->backing->limits;
	uint8_t *data = store_buffer(MIB, 0x44);
	struct bk_extent extents[8];
	uint32_t n;

	CU_ASSERT_EQUAL(store_write(store, 4 * MIB, MIB, data), 0);
	n = store_status(store, 0, 8 * MIB, extents, 8);
	if (!limits->knows_status) {
		CU_ASSERT_EQUAL(n, 1);
		CU_ASSERT_EQUAL(extents[0].status, BK_MAPPED);
		CU_ASSERT_EQUAL(extents[0].len, 8 * MIB);
	} else {
		CU_ASSERT_EQUAL_FATAL(n, 3);
		CU_ASSERT_EQUAL(extents[0].off, 0);
		CU_ASSERT_EQUAL(extents[0].len, 4 * MIB);
		CU_ASSERT_EQUAL(extents[0].status, BK_UNMAPPED);
		CU_ASSERT_EQUAL(extents[1].off, 4 * MIB);
		CU_ASSERT_EQUAL(extents[1].len, MIB);
		CU_ASSERT_EQUAL(extents[1].status, BK_MAPPED);
		CU_ASSERT_EQUAL(extents[2].len, 3 * MIB);
		CU_ASSERT_EQUAL(extents[2].status, BK_UNMAPPED);
		CU_ASSERT_EQUAL(store_status(store, 4 * MIB + 4096, 4096, extents, 8), 1);
		CU_ASSERT_EQUAL(extents[0].off, 4 * MIB + 4096);
		CU_ASSERT_EQUAL(store_status(store, 0, 8 * MIB, extents, 1), 1);
		/* Unmapped again. */
		CU_ASSERT_EQUAL(store_op(store, BK_UNMAP, 4 * MIB, MIB, NULL, 0), 0);
		CU_ASSERT_EQUAL(store_status(store, 0, SIZE, extents, 8), 1);
		CU_ASSERT_EQUAL(extents[0].status, BK_UNMAPPED);
		CU_ASSERT_EQUAL(extents[0].len, SIZE);
	}
	free(data);
}

static void status_tells_mapped_from_unmapped(void)
{
	each_store(check_status);
}

static void check_many(struct store *store)
{
	enum { N = 600 };
	struct store_call *calls = calloc(N, sizeof(*calls));
	uint8_t *data = store_buffer(N * 4096ull, 0);

	for (uint64_t i = 0; i < N; i++) {
		memset(data + i * 4096, (int)(i % 251), 4096);
		store_call_init(&calls[i], store, BK_WRITE, i * 4096, 4096, data + i * 4096, 0);
	}
	store_submit(calls, N);
	for (int i = 0; i < N; i++)
		CU_ASSERT_EQUAL(store_wait(&calls[i]), 0);
	memset(data, 0xff, N * 4096ull);
	for (uint64_t i = 0; i < N; i++)
		store_call_init(&calls[i], store, BK_READ, i * 4096, 4096, data + i * 4096,
				i % 2 ? BK_DONT_CACHE : 0);
	store_submit(calls, N);
	for (uint64_t i = 0; i < N; i++) {
		CU_ASSERT_EQUAL(store_wait(&calls[i]), 0);
		CU_ASSERT_TRUE(store_all_bytes(data + i * 4096, 4096, (uint8_t)(i % 251)));
	}
	free(calls);
	free(data);
}

static void store_takes_more_requests_than_its_queues_hold(void)
{
	each_store(check_many);
}

/* Each of these waits for a flush of its own or shares one. */
static void check_flushes(struct store *store)
{
	struct store_call calls[9];
	uint8_t *data = store_buffer(4096, 9);

	for (unsigned int i = 0; i < 9; i++)
		if (i % 3 == 0)
			store_call_init(&calls[i], store, BK_WRITE, i * 4096ull, 4096, data,
					BK_FUA);
		else
			store_call_init(&calls[i], store, BK_FLUSH, 0, 0, NULL, 0);
	store_submit(calls, 9);
	for (unsigned int i = 0; i < 9; i++)
		CU_ASSERT_EQUAL(store_wait(&calls[i]), 0);
	free(data);
}

static void flushes_and_fua_writes_complete(void)
{
	each_store(check_flushes);
}

static void check_counters(struct store *store)
{
	struct bk_stats stats;
	uint8_t *data = store_buffer(8192, 9);

	CU_ASSERT_EQUAL(store_write(store, 0, 8192, data), 0);
	CU_ASSERT_EQUAL(store_read(store, 0, 4096, data), 0);
	CU_ASSERT_EQUAL(store_read(store, SIZE, 4096, data), ERANGE);
	backing_stats(store->backing, &stats);
	CU_ASSERT_EQUAL(stats.ops[BK_WRITE], 1);
	CU_ASSERT_EQUAL(stats.bytes[BK_WRITE], 8192);
	CU_ASSERT_EQUAL(stats.ops[BK_READ], 1);
	CU_ASSERT_EQUAL(stats.errors[BK_READ], 1);
	free(data);
}

static void store_counts_what_it_does(void)
{
	each_store(check_counters);
}

static const struct test tests[] = {
	TEST(store_reads_what_was_written),
	TEST(store_that_is_new_reads_zeros),
	TEST(store_takes_buffers_of_any_alignment),
	TEST(store_refuses_what_is_outside),
	TEST(write_zeroes_zeros_exactly_its_range),
	TEST(unmap_touches_nothing_beside_its_range),
	TEST(status_tells_mapped_from_unmapped),
	TEST(store_takes_more_requests_than_its_queues_hold),
	TEST(flushes_and_fua_writes_complete),
	TEST(store_counts_what_it_does),
};
TEST_MAIN(tests)
