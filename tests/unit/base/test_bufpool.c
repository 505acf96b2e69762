/* The buffer pool: pieces, queue, shares. */
#include "base/bufpool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/quintain_test.h"

#define KIB 1024u
#define MIB (1024u * KIB)

/* A transfer and what happened to it. */
struct holder {
	struct buf buf;
	struct iovec iov[BUFPOOL_IOV_MAX];
	unsigned int order; /* 1 for the first whose ready was called; 0: not yet */
};

static struct bufpool *pool;
static struct holder holders[200];
static unsigned int nready;

static void ready(struct buf *buf)
{
	container_of(buf, struct holder, buf)->order = ++nready;
}

static void setup(void)
{
	CU_ASSERT_EQUAL_FATAL(bufpool_create(BUFPOOL_BYTES_MIN, &pool, NULL), 0);
	nready = 0;
	for (size_t i = 0; i < ARRAY_LEN(holders); i++) {
		buf_init(&holders[i].buf, holders[i].iov);
		holders[i].order = 0;
	}
}

/* Everything comes back: the longest transfers fit again, four at once. */
static void teardown(void)
{
	struct bufpool_stats stats;

	for (size_t i = 0; i < ARRAY_LEN(holders); i++)
		bufpool_put(pool, &holders[i].buf);
	bufpool_stats(pool, &stats);
	CU_ASSERT_EQUAL(stats.bytes_used, 0);
	CU_ASSERT_EQUAL(stats.waiting, 0);
	for (int i = 0; i < 4; i++)
		CU_ASSERT_TRUE(bufpool_get(pool, &holders[i].buf, BUFPOOL_TRANSFER_MAX,
					   BUFPOOL_DRAINS, ready));
	for (int i = 0; i < 4; i++)
		bufpool_put(pool, &holders[i].buf);
	bufpool_destroy(pool);
}

static bool get(unsigned int i, uint32_t len, enum bufpool_use use)
{
	return bufpool_get(pool, &holders[i].buf, len, use, ready);
}

static void put(unsigned int i)
{
	bufpool_put(pool, &holders[i].buf);
}

static void bufpool_pieces_cover_exactly_the_length(void)
{
	static const struct {
		uint32_t len, iovcnt, piece;
	} cases[] = {
		{ 1, 1, 4 * KIB },
		{ 4096, 1, 4 * KIB },
		{ 4097, 2, 4 * KIB },
		{ 32 * KIB, 8, 4 * KIB },
		{ 32 * KIB + 1, 1, 64 * KIB },
		{ 512 * KIB, 8, 64 * KIB },
		{ 512 * KIB + 1, 2, 512 * KIB },
		{ MIB, 2, 512 * KIB },
		{ 16 * MIB, 32, 512 * KIB },
	};

	setup();
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct holder *h = &holders[0];
		uint32_t sum = 0;

		CU_ASSERT_TRUE(get(0, cases[i].len, BUFPOOL_DRAINS));
		CU_ASSERT_EQUAL(h->buf.iovcnt, cases[i].iovcnt);
		CU_ASSERT_EQUAL(h->buf.len, cases[i].len);
		for (uint32_t k = 0; k < h->buf.iovcnt; k++) {
			CU_ASSERT_EQUAL((uintptr_t)h->iov[k].iov_base % 4096, 0);
			CU_ASSERT(h->iov[k].iov_len <= cases[i].piece);
			sum += (uint32_t)h->iov[k].iov_len;
		}
		CU_ASSERT_EQUAL(sum, cases[i].len);
		put(0);
		CU_ASSERT_EQUAL(h->buf.iovcnt, 0);
	}
	teardown();
}

static void bufpool_pieces_do_not_overlap(void)
{
	static const uint32_t lens[] = { 4 * KIB, 20 * KIB, 100 * KIB, 700 * KIB, 1, 512 * KIB };
	uint32_t wrong = 0;

	setup();
	for (unsigned int i = 0; i < 60; i++) {
		CU_ASSERT_TRUE(get(i, lens[i % 6], i % 2 ? BUFPOOL_NEEDS_PEER : BUFPOOL_DRAINS));
		for (uint32_t k = 0; k < holders[i].buf.iovcnt; k++)
			memset(holders[i].iov[k].iov_base, (int)i, holders[i].iov[k].iov_len);
	}
	for (unsigned int i = 0; i < 60; i++)
		for (uint32_t k = 0; k < holders[i].buf.iovcnt; k++)
			for (size_t b = 0; b < holders[i].iov[k].iov_len; b++)
				wrong += ((uint8_t *)holders[i].iov[k].iov_base)[b] != i;
	CU_ASSERT_EQUAL(wrong, 0);
	teardown();
}

static void bufpool_gives_the_warm_piece_first(void)
{
	void *warm;

	setup();
	get(0, 8 * KIB, BUFPOOL_DRAINS);
	get(1, 4 * KIB, BUFPOOL_DRAINS);
	warm = holders[0].iov[0].iov_base;
	put(0);
	get(0, 8 * KIB, BUFPOOL_DRAINS);
	CU_ASSERT_PTR_EQUAL(holders[0].iov[0].iov_base, warm);
	put(0);
	put(1);
	get(1, 4 * KIB, BUFPOOL_DRAINS);
	get(0, 4 * KIB, BUFPOOL_DRAINS);
	CU_ASSERT(holders[0].iov[0].iov_base == warm || holders[1].iov[0].iov_base == warm);
	teardown();
}

static void bufpool_queues_what_does_not_fit(void)
{
	struct bufpool_stats stats;

	setup();
	for (unsigned int i = 0; i < 4; i++)
		CU_ASSERT_TRUE(get(i, 16 * MIB, BUFPOOL_DRAINS));
	CU_ASSERT_TRUE(bufpool_low(pool));
	CU_ASSERT_FALSE(get(4, 4 * KIB, BUFPOOL_DRAINS));
	bufpool_stats(pool, &stats);
	CU_ASSERT_EQUAL(stats.waiting, 1);
	CU_ASSERT_EQUAL(stats.waited, 1);
	CU_ASSERT_EQUAL(stats.bytes_used, stats.bytes);
	put(0);
	CU_ASSERT_EQUAL(holders[4].order, 1);
	CU_ASSERT_EQUAL(holders[4].buf.iovcnt, 1);
	put(1);
	CU_ASSERT_FALSE(bufpool_low(pool));
	teardown();
}

static void bufpool_small_ones_do_not_overtake_a_large_one(void)
{
	setup();
	for (unsigned int i = 0; i < 8; i++)
		CU_ASSERT_TRUE(get(i, 8 * MIB, BUFPOOL_DRAINS));
	CU_ASSERT_FALSE(get(10, 16 * MIB, BUFPOOL_DRAINS));
	CU_ASSERT_FALSE(get(11, 4 * KIB, BUFPOOL_DRAINS));
	put(0);
	CU_ASSERT_EQUAL(nready, 0);
	CU_ASSERT_FALSE(get(12, 4 * KIB, BUFPOOL_DRAINS));
	put(1);
	CU_ASSERT_EQUAL(holders[10].order, 1);
	CU_ASSERT_EQUAL(holders[11].order, 0);
	put(2);
	CU_ASSERT_EQUAL(holders[11].order, 2);
	CU_ASSERT_EQUAL(holders[12].order, 3);
	teardown();
}

static void bufpool_put_leaves_the_queue(void)
{
	setup();
	for (unsigned int i = 0; i < 7; i++)
		get(i, 8 * MIB, BUFPOOL_DRAINS);
	CU_ASSERT_FALSE(get(10, 16 * MIB, BUFPOOL_DRAINS));
	CU_ASSERT_FALSE(get(11, 4 * KIB, BUFPOOL_DRAINS));
	put(10);
	/* The one behind it fits without it. */
	CU_ASSERT_EQUAL(holders[11].order, 1);
	CU_ASSERT_EQUAL(holders[10].order, 0);
	put(10);
	teardown();
}

static void bufpool_those_who_need_their_peer_get_half(void)
{
	setup();
	CU_ASSERT_TRUE(get(0, 16 * MIB, BUFPOOL_NEEDS_PEER));
	CU_ASSERT_TRUE(get(1, 16 * MIB, BUFPOOL_NEEDS_PEER));
	CU_ASSERT_FALSE(get(2, 4 * KIB, BUFPOOL_NEEDS_PEER));
	/* Who drains passes them by, all of the other half. */
	CU_ASSERT_TRUE(get(3, 16 * MIB, BUFPOOL_DRAINS));
	CU_ASSERT_TRUE(get(4, 16 * MIB, BUFPOOL_DRAINS));
	put(3);
	CU_ASSERT_EQUAL(holders[2].order, 0);
	put(0);
	CU_ASSERT_EQUAL(holders[2].order, 1);
	teardown();
}

static void bufpool_share_of_a_half_has_its_own_order(void)
{
	setup();
	CU_ASSERT_TRUE(get(0, 8 * MIB, BUFPOOL_NEEDS_PEER));
	CU_ASSERT_TRUE(get(1, 16 * MIB, BUFPOOL_NEEDS_PEER));
	CU_ASSERT_FALSE(get(2, 16 * MIB, BUFPOOL_NEEDS_PEER));
	/* There would be room for it in the half. */
	CU_ASSERT_FALSE(get(3, 4 * KIB, BUFPOOL_NEEDS_PEER));
	put(1);
	CU_ASSERT_EQUAL(holders[2].order, 1);
	CU_ASSERT_EQUAL(holders[3].order, 2);
	teardown();
}

static void bufpool_small_pieces_pin_at_most_half(void)
{
	setup();
	for (unsigned int i = 0; i < 128; i++)
		CU_ASSERT_TRUE(get(i, 256 * KIB, BUFPOOL_NEEDS_PEER));
	/* A quarter of the pool is held, but a piece of each chunk of a half. */
	for (unsigned int i = 0; i < 128; i += 2)
		put(i);
	CU_ASSERT_FALSE(get(130, 16 * MIB, BUFPOOL_NEEDS_PEER));
	CU_ASSERT_TRUE(get(131, 16 * MIB, BUFPOOL_DRAINS));
	CU_ASSERT_TRUE(get(132, 16 * MIB, BUFPOOL_DRAINS));
	teardown();
}

static void bufpool_who_needs_its_peer_keeps_its_turn(void)
{
	setup();
	for (unsigned int i = 0; i < 7; i++)
		get(i, 8 * MIB, BUFPOOL_DRAINS);
	get(7, 4 * MIB, BUFPOOL_DRAINS);
	CU_ASSERT_FALSE(get(10, 8 * MIB, BUFPOOL_NEEDS_PEER));
	/* There would be room for it. */
	CU_ASSERT_FALSE(get(11, 4 * KIB, BUFPOOL_DRAINS));
	put(0);
	CU_ASSERT_EQUAL(holders[10].order, 1);
	CU_ASSERT_EQUAL(holders[11].order, 2);
	teardown();
}

static void ready_puts_and_gets(struct buf *buf)
{
	ready(buf);
	bufpool_put(pool, buf);
	if (nready < 5)
		bufpool_get(pool, buf, 16 * MIB, BUFPOOL_DRAINS, ready_puts_and_gets);
}

static void bufpool_ready_may_put_and_get(void)
{
	setup();
	for (unsigned int i = 0; i < 4; i++)
		get(i, 16 * MIB, BUFPOOL_DRAINS);
	bufpool_get(pool, &holders[4].buf, 16 * MIB, BUFPOOL_DRAINS, ready_puts_and_gets);
	bufpool_get(pool, &holders[5].buf, 16 * MIB, BUFPOOL_DRAINS, ready_puts_and_gets);
	put(0);
	CU_ASSERT_EQUAL(nready, 6);
	teardown();
}

static void bufpool_random_use_loses_nothing(void)
{
	uint32_t x = 7;

	setup();
	for (int step = 0; step < 100000; step++) {
		struct holder *h;

		x = x * 1664525u + 1013904223u;
		h = &holders[(x >> 8) % ARRAY_LEN(holders)];
		if (h->buf.iovcnt > 0 || !list_empty(&h->buf.wait_link)) {
			bufpool_put(pool, &h->buf);
			continue;
		}
		x = x * 1664525u + 1013904223u;
		bufpool_get(pool, &h->buf,
			    1 + (x >> 6) % (1u << (12 + (x >> 28) % 13)) % (16 * MIB),
			    x & 64 ? BUFPOOL_DRAINS : BUFPOOL_NEEDS_PEER, ready);
	}
	teardown();
}

static void bufpool_refuses_to_be_too_small(void)
{
	struct bufpool *none = NULL;
	struct err err;

	CU_ASSERT_EQUAL(bufpool_create(BUFPOOL_BYTES_MIN - 1, &none, &err), -EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "at least 64 MiB"));
	CU_ASSERT_PTR_NULL(none);
}

static const struct test tests[] = {
	TEST(bufpool_pieces_cover_exactly_the_length),
	TEST(bufpool_pieces_do_not_overlap),
	TEST(bufpool_gives_the_warm_piece_first),
	TEST(bufpool_queues_what_does_not_fit),
	TEST(bufpool_small_ones_do_not_overtake_a_large_one),
	TEST(bufpool_put_leaves_the_queue),
	TEST(bufpool_those_who_need_their_peer_get_half),
	TEST(bufpool_share_of_a_half_has_its_own_order),
	TEST(bufpool_small_pieces_pin_at_most_half),
	TEST(bufpool_who_needs_its_peer_keeps_its_turn),
	TEST(bufpool_ready_may_put_and_get),
	TEST(bufpool_random_use_loses_nothing),
	TEST(bufpool_refuses_to_be_too_small),
};

TEST_MAIN(tests)
