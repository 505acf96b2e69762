/* Transfers that do not wait, many in one system call. */
#include "tests/unit/base/reactor_fixture.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/unit/quintain_test.h"

#define LEN   4096
#define COUNT 200 /* several batches */

struct move {
	struct reactor_transfer transfer;
	struct iovec iov[2];
	ssize_t res;
	uint32_t times, again;
};

static struct reactor *reactor;
static int fd;
static struct move moves[COUNT];
static uint8_t data[COUNT][LEN];
static _Atomic uint32_t ndone;

static void setup(void)
{
	reactor = fixture_reactor(0);
	fd = memfd_create("transfers", MFD_CLOEXEC);
	CU_ASSERT_FATAL(fd >= 0 && ftruncate(fd, COUNT * LEN) == 0);
	memset(moves, 0, sizeof(moves));
	atomic_store(&ndone, 0);
}

static void teardown(void)
{
	fixture_stop(reactor);
	close(fd);
}

static void move_done(struct reactor_transfer *transfer, ssize_t res)
{
	struct move *move = container_of(transfer, struct move, transfer);

	move->res = res;
	move->times++;
	atomic_fetch_add(&ndone, 1);
	if (move->again > 0) {
		move->again--;
		reactor_transfer(reactor, transfer);
	}
}

static void move(unsigned int i, bool write, int64_t off)
{
	struct move *m = &moves[i];

	m->iov[0] = (struct iovec){ data[i], LEN };
	m->transfer = (struct reactor_transfer){
		.done = move_done,
		.iov = m->iov,
		.iovcnt = 1,
		.fd = fd,
		.write = write,
		.off = off,
	};
	reactor_transfer(reactor, &m->transfer);
}

static void write_and_read_all(void *arg)
{
	(void)arg;
	for (unsigned int i = 0; i < COUNT / 2; i++) {
		memset(data[i], (int)i, LEN);
		move(i, true, (int64_t)i * LEN);
	}
	for (unsigned int i = COUNT / 2; i < COUNT; i++)
		move(i, false, (int64_t)(i - COUNT / 2) * LEN);
	CU_ASSERT_EQUAL(ndone, 0);
	reactor_transfers_make(reactor);
	CU_ASSERT_EQUAL(ndone, COUNT);
}

static void transfers_are_all_made_once_in_their_order(void)
{
	setup();
	reactor_call(reactor, write_and_read_all, NULL);
	for (unsigned int i = 0; i < COUNT; i++) {
		CU_ASSERT_EQUAL(moves[i].res, LEN);
		CU_ASSERT_EQUAL(moves[i].times, 1);
		CU_ASSERT_EQUAL(data[i][0], i % (COUNT / 2));
		CU_ASSERT_EQUAL(data[i][LEN - 1], i % (COUNT / 2));
	}
	teardown();
}

static void write_one_place_again_and_again(void *arg)
{
	(void)arg;
	for (unsigned int i = 0; i < COUNT; i++) {
		memset(data[i], (int)i, LEN);
		move(i, true, 0);
	}
	reactor_transfers_make(reactor);
}

static void last_write_to_a_place_wins(void)
{
	uint8_t byte = 0;

	setup();
	reactor_call(reactor, write_one_place_again_and_again, NULL);
	CU_ASSERT_EQUAL(pread(fd, &byte, 1, LEN - 1), 1);
	CU_ASSERT_EQUAL(byte, COUNT - 1);
	teardown();
}

static void write_with_a_bad_file_among_them(void *arg)
{
	(void)arg;
	for (unsigned int i = 0; i < 5; i++)
		move(i, true, (int64_t)i * LEN);
	moves[2].transfer.fd = -1;
	reactor_transfers_make(reactor);
}

static void failing_transfer_fails_alone(void)
{
	setup();
	reactor_call(reactor, write_with_a_bad_file_among_them, NULL);
	for (unsigned int i = 0; i < 5; i++) {
		CU_ASSERT_EQUAL(moves[i].times, 1);
		CU_ASSERT_EQUAL(moves[i].res, i == 2 ? -EBADF : LEN);
	}
	teardown();
}

static void write_and_read_in_pieces(void *arg)
{
	(void)arg;
	memset(data[0], 'a', LEN);
	memset(data[1], 'b', LEN);
	for (unsigned int i = 0; i < 2; i++) {
		struct move *m = &moves[i];

		move(i, i == 0, 100);
		m->iov[0] = (struct iovec){ data[2 * i], 1000 };
		m->iov[1] = (struct iovec){ data[2 * i + 1], 2000 };
		m->transfer.iovcnt = 2;
	}
	reactor_transfers_make(reactor);
}

static void pieces_of_a_transfer_follow_one_another(void)
{
	setup();
	reactor_call(reactor, write_and_read_in_pieces, NULL);
	CU_ASSERT_EQUAL(moves[0].res, 3000);
	CU_ASSERT_EQUAL(moves[1].res, 3000);
	CU_ASSERT_EQUAL(memcmp(data[2], data[0], 1000), 0);
	CU_ASSERT_EQUAL(memcmp(data[3], data[1], 2000), 0);
	teardown();
}

static void read_past_the_end(void *arg)
{
	(void)arg;
	move(0, false, COUNT * LEN);
	move(1, false, COUNT * LEN - 1);
	move(2, false, 0);
	reactor_transfers_make(reactor);
}

static void transfer_tells_how_much_it_has_moved(void)
{
	setup();
	reactor_call(reactor, read_past_the_end, NULL);
	CU_ASSERT_EQUAL(moves[0].res, 0);
	CU_ASSERT_EQUAL(moves[1].res, 1);
	CU_ASSERT_EQUAL(moves[2].res, LEN);
	teardown();
}

static void queue_some(void *arg)
{
	(void)arg;
	for (unsigned int i = 0; i < 3; i++) {
		move(i, false, 0);
		moves[i].again = 2;
	}
}

static void loop_makes_what_is_queued(void)
{
	setup();
	reactor_call(reactor, queue_some, NULL);
	CU_ASSERT(fixture_reaches(&ndone, 9));
	for (unsigned int i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(moves[i].times, 3);
	teardown();
}

static const struct test tests[] = {
	TEST(transfers_are_all_made_once_in_their_order),
	TEST(last_write_to_a_place_wins),
	TEST(failing_transfer_fails_alone),
	TEST(pieces_of_a_transfer_follow_one_another),
	TEST(transfer_tells_how_much_it_has_moved),
	TEST(loop_makes_what_is_queued),
};

TEST_MAIN(tests)
