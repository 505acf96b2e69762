/* Operations of the ring, deferred work and flush hooks. */
#include "tests/unit/base/reactor_fixture.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/quintain_test.h"

#define NOPS 1000 /* many times the submission queue */

static struct reactor *reactor;
static _Atomic uint32_t ndone;
static bool submitting;
static uint32_t wrong;

/* What ran, in order, one letter each. */
static char trace[64];

static void note(char letter)
{
	size_t len = strlen(trace);

	if (len < sizeof(trace) - 1)
		trace[len] = letter;
}

static void setup(void)
{
	reactor = fixture_reactor(0);
	atomic_store(&ndone, 0);
	wrong = 0;
	memset(trace, 0, sizeof(trace));
}

struct nop {
	struct reactor_op op;
	uint32_t count;
};

static struct nop nops[NOPS];

static void nop_done(struct reactor_op *op, int res)
{
	wrong += res != 0 || submitting;
	container_of(op, struct nop, op)->count++;
	atomic_fetch_add(&ndone, 1);
}

static void submit_nops(void *arg)
{
	(void)arg;
	submitting = true;
	for (int i = 0; i < NOPS; i++) {
		nops[i] = (struct nop){ { nop_done }, 0 };
		io_uring_prep_nop(reactor_sqe(reactor, &nops[i].op));
	}
	submitting = false;
	wrong += reactor_ops_in_flight(reactor) != NOPS;
}

static void operations_complete_once_each_and_never_within_submit(void)
{
	struct reactor_stats stats;

	setup();
	reactor_call(reactor, submit_nops, NULL);
	CU_ASSERT(fixture_reaches(&ndone, NOPS));
	reactor_stats(reactor, &stats);
	fixture_stop(reactor);
	CU_ASSERT_EQUAL(ndone, NOPS);
	CU_ASSERT_EQUAL(wrong, 0);
	CU_ASSERT(stats.completions >= NOPS - 1);
	/* A full queue is submitted at once: 1000 entries of 64. */
	CU_ASSERT(stats.enters < 40);
	for (int i = 0; i < NOPS; i++)
		CU_ASSERT_EQUAL(nops[i].count, 1);
}

struct reading {
	struct reactor_op op;
	int fds[2];
	int res;
	char byte;
};

static void reading_done(struct reactor_op *op, int res)
{
	container_of(op, struct reading, op)->res = res;
	atomic_fetch_add(&ndone, 1);
}

static void begin_reading(void *arg)
{
	struct reading *r = arg;

	r->op.done = reading_done;
	io_uring_prep_read(reactor_sqe(reactor, &r->op), r->fds[0], &r->byte, 1, 0);
}

static void cancel_reading(void *arg)
{
	struct reading *r = arg;

	reactor_cancel(reactor, &r->op);
}

static void begin_and_cancel_reading(void *arg)
{
	begin_reading(arg);
	cancel_reading(arg);
}

static void expect_cancelled(void (*first)(void *), void (*second)(void *))
{
	struct reading r = { .res = 1000 };

	setup();
	CU_ASSERT_EQUAL_FATAL(pipe(r.fds), 0);
	reactor_call(reactor, first, &r);
	if (second)
		reactor_call(reactor, second, &r);
	CU_ASSERT(fixture_reaches(&ndone, 1));
	fixture_stop(reactor);
	CU_ASSERT_EQUAL(r.res, -ECANCELED);
	CU_ASSERT_EQUAL(ndone, 1);
	close(r.fds[0]);
	close(r.fds[1]);
}

static void cancelled_operation_completes_with_ecanceled(void)
{
	expect_cancelled(begin_reading, cancel_reading);
	/* Even when the kernel has not seen it yet. */
	expect_cancelled(begin_and_cancel_reading, NULL);
}

static struct reactor_work work_a, work_b, work_c, flush_f;

static void run_a(struct reactor_work *work)
{
	note('a');
	reactor_defer(reactor, &work_b);
	reactor_defer(reactor, &work_b);
	(void)work;
}

static void run_b(struct reactor_work *work)
{
	note('b');
	(void)work;
}

static void run_c(struct reactor_work *work)
{
	note('c');
	(void)work;
}

static void run_flush(struct reactor_work *work)
{
	note('f');
	/* Work that a flush brings runs in the same iteration; then it is
	 * flushed again. */
	if (strlen(trace) < 6) {
		reactor_defer(reactor, &work_b);
		reactor_at_flush(reactor, work);
	}
}

static void begin_work(void *arg)
{
	(void)arg;
	reactor_work_init(&work_a, run_a);
	reactor_work_init(&work_b, run_b);
	reactor_work_init(&work_c, run_c);
	reactor_work_init(&flush_f, run_flush);
	reactor_at_flush(reactor, &flush_f);
	reactor_defer(reactor, &work_a);
	reactor_defer(reactor, &work_c);
	note('-');
}

static void nothing(void *arg)
{
	(void)arg;
}

static void deferred_work_runs_in_order_and_before_flush_hooks(void)
{
	setup();
	reactor_call(reactor, begin_work, NULL);
	reactor_call(reactor, nothing, NULL);
	fixture_stop(reactor);
	CU_ASSERT_STRING_EQUAL(trace, "-acbfbf");
}

static void cancel_c(struct reactor_work *work)
{
	(void)work;
	reactor_work_cancel(&work_c);
	reactor_work_cancel(&work_c);
	note('x');
}

static void begin_cancelling(void *arg)
{
	begin_work(arg);
	reactor_work_init(&work_b, cancel_c);
	reactor_work_cancel(&work_a);
	reactor_work_cancel(&work_c);
	reactor_work_cancel(&flush_f);
	reactor_defer(reactor, &work_b);
	reactor_defer(reactor, &work_c);
}

static void deferred_work_may_be_cancelled_by_its_neighbour(void)
{
	setup();
	reactor_call(reactor, begin_cancelling, NULL);
	reactor_call(reactor, nothing, NULL);
	fixture_stop(reactor);
	CU_ASSERT_STRING_EQUAL(trace, "-x");
}

static bool enough;

static void run_again(struct reactor_work *work)
{
	atomic_fetch_add(&ndone, 1);
	if (!enough)
		reactor_defer(reactor, work);
}

static void begin_again(void *arg)
{
	(void)arg;
	enough = false;
	reactor_work_init(&work_a, run_again);
	reactor_defer(reactor, &work_a);
}

static void say_enough(void *arg)
{
	(void)arg;
	enough = true;
}

static void work_that_defers_itself_does_not_hold_up_the_loop(void)
{
	setup();
	reactor_call(reactor, begin_again, NULL);
	CU_ASSERT(fixture_reaches(&ndone, 1000));
	/* Messages and operations are served meanwhile. */
	reactor_call(reactor, say_enough, NULL);
	fixture_stop(reactor);
}

static void use_scratch_and_pool(void *arg)
{
	(void)arg;
	memset(reactor_scratch(reactor), 'x', REACTOR_SCRATCH);
	wrong += reactor_bufpool(reactor) == NULL || reactor_now_ns(reactor) == 0;
}

static void reactor_has_scratch_and_buffers(void)
{
	setup();
	reactor_call(reactor, use_scratch_and_pool, NULL);
	CU_ASSERT_EQUAL(wrong, 0);
	fixture_stop(reactor);
}

static void reactor_spins_as_long_as_it_is_told(void)
{
	struct reactor_config config = {
		.cpu = -1, .ring_entries = 64, .buffer_bytes = BUFPOOL_BYTES_MIN, .spin_us = 20000
	};
	struct reactor_stats asleep, later;

	setup();
	fixture_stop(reactor);
	CU_ASSERT_EQUAL_FATAL(reactor_start(&config, &reactor, NULL), 0);
	reactor_call(reactor, nothing, NULL);
	fixture_sleep_ms(100);
	reactor_stats(reactor, &asleep);
	CU_ASSERT(asleep.iterations > 50);
	fixture_sleep_ms(30);
	reactor_stats(reactor, &later);
	CU_ASSERT_EQUAL(later.iterations, asleep.iterations);
	/* Spinning asks the ring in memory, not the kernel. */
	CU_ASSERT(later.enters < 10);
	fixture_stop(reactor);
}

/* ---- a wait that is held ---- */

#define HELD_US 60000u

static struct reactor_op ready_op;
static int ready_pipe[2];
static char ready_byte;
static uint64_t ready_at_ns;

static uint64_t monotonic_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void ready_done(struct reactor_op *op, int res)
{
	(void)op;
	(void)res;
	ready_at_ns = monotonic_ns();
	atomic_fetch_add(&ndone, 1);
}

/* A held wait ends with REACTOR_HOLD_OPS completions; this is one. */
static void submit_read(void *arg)
{
	(void)arg;
	ready_op.done = ready_done;
	io_uring_prep_read(reactor_sqe(reactor, &ready_op), ready_pipe[0], &ready_byte, 1, 0);
	reactor_hold(reactor, HELD_US);
}

static void a_held_wait_gathers_what_becomes_ready(void)
{
	uint64_t begin_ns;

	setup();
	CU_ASSERT_FATAL(pipe(ready_pipe) == 0);
	begin_ns = monotonic_ns();
	reactor_call(reactor, submit_read, NULL);
	CU_ASSERT(write(ready_pipe[1], "x", 1) == 1);
	CU_ASSERT(fixture_reaches(&ndone, 1));
	fixture_stop(reactor);
	close(ready_pipe[0]);
	close(ready_pipe[1]);
	CU_ASSERT(ready_at_ns - begin_ns >= HELD_US * UINT64_C(1000) * 3 / 4);
}

static const struct test tests[] = {
	TEST(operations_complete_once_each_and_never_within_submit),
	TEST(cancelled_operation_completes_with_ecanceled),
	TEST(deferred_work_runs_in_order_and_before_flush_hooks),
	TEST(deferred_work_may_be_cancelled_by_its_neighbour),
	TEST(work_that_defers_itself_does_not_hold_up_the_loop),
	TEST(reactor_has_scratch_and_buffers),
	TEST(a_held_wait_gathers_what_becomes_ready),
	TEST(reactor_spins_as_long_as_it_is_told),
};

TEST_MAIN(tests)
