/* Messages between threads and reactors, calls, start and stop. */
#include "tests/unit/base/reactor_fixture.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/unit/quintain_test.h"

#define NSENDERS  4
#define NMESSAGES 20000

static void remember_self(void *arg)
{
	*(struct reactor **)arg = reactor_self();
}

static void reactor_call_runs_on_the_reactor(void)
{
	struct reactor *reactor = fixture_reactor(3), *seen = NULL;

	reactor_call(reactor, remember_self, &seen);
	CU_ASSERT_PTR_EQUAL(seen, reactor);
	CU_ASSERT_PTR_NULL(reactor_self());
	CU_ASSERT_EQUAL(reactor_index(reactor), 3);
	fixture_stop(reactor);
}

struct numbered {
	struct reactor_msg msg;
	struct sender *sender;
	uint32_t number;
};

struct sender {
	struct reactor *to;
	struct numbered *messages;
	uint32_t expected; /* the receiver's */
	uint32_t disorder;
	_Atomic uint32_t *received;
	pthread_t thread;
};

static void numbered_run(struct reactor_msg *msg)
{
	struct numbered *n = container_of(msg, struct numbered, msg);

	if (n->number != n->sender->expected++)
		n->sender->disorder++;
	atomic_fetch_add(n->sender->received, 1);
}

static void *sender_main(void *arg)
{
	struct sender *sender = arg;

	for (uint32_t i = 0; i < NMESSAGES; i++) {
		struct numbered *n = &sender->messages[i];

		*n = (struct numbered){ { .run = numbered_run }, sender, i };
		reactor_send(sender->to, &n->msg);
		/* So that the receiver falls asleep now and then. */
		if (i % 512 == 0)
			fixture_sleep_ms(1);
	}
	return NULL;
}

static void messages_of_one_sender_arrive_in_order(void)
{
	struct reactor *reactor = fixture_reactor(0);
	struct sender senders[NSENDERS] = { 0 };
	_Atomic uint32_t received = 0;

	for (int i = 0; i < NSENDERS; i++) {
		senders[i].to = reactor;
		senders[i].received = &received;
		senders[i].messages = calloc(NMESSAGES, sizeof(struct numbered));
		CU_ASSERT_EQUAL_FATAL(
			pthread_create(&senders[i].thread, NULL, sender_main, &senders[i]), 0);
	}
	CU_ASSERT(fixture_reaches(&received, NSENDERS * NMESSAGES));
	for (int i = 0; i < NSENDERS; i++)
		pthread_join(senders[i].thread, NULL);
	fixture_stop(reactor);
	for (int i = 0; i < NSENDERS; i++) {
		CU_ASSERT_EQUAL(senders[i].disorder, 0);
		CU_ASSERT_EQUAL(senders[i].expected, NMESSAGES);
		free(senders[i].messages);
	}
}

struct ball {
	struct reactor_msg msg;
	struct reactor *side[2];
	uint32_t strokes, end;
	_Atomic uint32_t over;
};

static void ball_run(struct reactor_msg *msg)
{
	struct ball *ball = container_of(msg, struct ball, msg);

	if (++ball->strokes == ball->end)
		atomic_store(&ball->over, 1);
	else
		reactor_send(ball->side[ball->strokes % 2], msg);
}

static void message_may_be_sent_again_from_run(void)
{
	struct reactor *a = fixture_reactor(0), *b = fixture_reactor(1);
	struct ball ball = { { .run = ball_run }, { a, b }, 0, 20000, 0 };

	reactor_send(a, &ball.msg);
	CU_ASSERT(fixture_reaches(&ball.over, 1));
	CU_ASSERT_EQUAL(ball.strokes, 20000);
	fixture_stop(a);
	fixture_stop(b);
}

static void message_to_itself_runs(void)
{
	struct reactor *a = fixture_reactor(0);
	struct ball ball = { { .run = ball_run }, { a, a }, 0, 1000, 0 };

	reactor_send(a, &ball.msg);
	CU_ASSERT(fixture_reaches(&ball.over, 1));
	fixture_stop(a);
}

static void counted_run(struct reactor_msg *msg)
{
	(void)msg;
}

static void stats_count_messages(void)
{
	struct reactor *reactor = fixture_reactor(0), *self;
	struct reactor_msg msgs[3] = { { .run = counted_run },
				       { .run = counted_run },
				       { .run = counted_run } };
	struct reactor_stats stats;

	for (int i = 0; i < 3; i++)
		reactor_send(reactor, &msgs[i]);
	reactor_call(reactor, remember_self, &self);
	reactor_call(reactor, remember_self, &self);
	reactor_stats(reactor, &stats);
	CU_ASSERT(stats.messages >= 4 && stats.messages <= 5);
	CU_ASSERT(stats.iterations > 0);
	CU_ASSERT(stats.busy_ns > 0);
	fixture_stop(reactor);
}

static void reactor_asleep_uses_no_processor(void)
{
	struct reactor *reactor = fixture_reactor(0);
	struct reactor_stats before, after;

	fixture_sleep_ms(20);
	reactor_stats(reactor, &before);
	fixture_sleep_ms(100);
	reactor_stats(reactor, &after);
	CU_ASSERT(after.iterations - before.iterations <= 2);
	fixture_stop(reactor);
}

struct stuck {
	struct reactor_op op;
	struct reactor *reactor;
	int fds[2];
	char byte;
	int res;
};

static void stuck_done(struct reactor_op *op, int res)
{
	container_of(op, struct stuck, op)->res = res;
}

static void stuck_begin(void *arg)
{
	struct stuck *stuck = arg;

	stuck->op.done = stuck_done;
	io_uring_prep_read(reactor_sqe(stuck->reactor, &stuck->op), stuck->fds[0], &stuck->byte, 1,
			   0);
}

static void reactor_stop_leaves_a_stuck_reactor_behind(void)
{
	struct stuck stuck = { .reactor = fixture_reactor(0), .res = 1000 };

	CU_ASSERT_EQUAL_FATAL(pipe(stuck.fds), 0);
	reactor_call(stuck.reactor, stuck_begin, &stuck);
	CU_ASSERT_EQUAL(reactor_stop(stuck.reactor, 20), -EBUSY);
	CU_ASSERT_EQUAL(write(stuck.fds[1], "x", 1), 1);
	CU_ASSERT_EQUAL(reactor_stop(stuck.reactor, 10000), 0);
	CU_ASSERT_EQUAL(stuck.res, 1);
	close(stuck.fds[0]);
	close(stuck.fds[1]);
}

static void reactor_start_says_why_it_fails(void)
{
	struct reactor_config config = { .cpu = -1, .ring_entries = 64, .buffer_bytes = 4096 };
	struct reactor *reactor = NULL;
	struct err err;

	CU_ASSERT_EQUAL(reactor_start(&config, &reactor, &err), -EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "too small"));
	CU_ASSERT_PTR_NULL(reactor);
}

static const struct test tests[] = {
	TEST(reactor_call_runs_on_the_reactor),
	TEST(messages_of_one_sender_arrive_in_order),
	TEST(message_may_be_sent_again_from_run),
	TEST(message_to_itself_runs),
	TEST(stats_count_messages),
	TEST(reactor_asleep_uses_no_processor),
	TEST(reactor_stop_leaves_a_stuck_reactor_behind),
	TEST(reactor_start_says_why_it_fails),
};

TEST_MAIN(tests)
