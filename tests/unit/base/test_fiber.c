/* Fibers. */
#include "base/fiber.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/quintain_test.h"

static struct fiber_set *set;
static char trace[64];
static struct fiber *fibers[3];
static bool finished;
static struct fiber_queue queue;

static void setup(unsigned int n)
{
	set = fiber_set_create(n);
	CU_ASSERT_PTR_NOT_NULL_FATAL(set);
	memset(trace, 0, sizeof(trace));
	memset(fibers, 0, sizeof(fibers));
	finished = false;
	fiber_queue_init(&queue);
}

static void expect(const char *text)
{
	CU_ASSERT_STRING_EQUAL(trace, text);
}

static void note(char c)
{
	trace[strlen(trace)] = c;
}

/* Each letter of arg, with a wait, a yield or neither between. */
static void waiter(void *arg)
{
	const char *letters = arg;

	fibers[(letters[0] - 'a') % 3] = fiber_self();
	for (; *letters; letters++) {
		note(*letters);
		if (letters[1])
			fiber_wait();
	}
}

static void yielder(void *arg)
{
	for (const char *letters = arg; *letters; letters++) {
		note(*letters);
		fiber_yield();
	}
}

static void fiber_runs_from_fiber_run(void)
{
	setup(1);
	CU_ASSERT(fiber_start(set, waiter, "a"));
	expect("");
	CU_ASSERT(fiber_ready(set));
	fiber_run(set);
	expect("a");
	CU_ASSERT(!fiber_ready(set));
	CU_ASSERT_EQUAL(fiber_count(set), 0);
	fiber_set_destroy(set);
}

static void fiber_waits_until_woken(void)
{
	setup(1);
	fiber_start(set, waiter, "ab");
	fiber_run(set);
	fiber_run(set);
	expect("a");
	CU_ASSERT_EQUAL(fiber_count(set), 1);
	fiber_wake(fibers[0]);
	fiber_wake(fibers[0]);
	expect("a");
	fiber_run(set);
	expect("ab");
	fiber_set_destroy(set);
}

static void early(void *arg)
{
	(void)arg;
	fibers[0] = fiber_self();
	fiber_wake(fiber_self());
	fiber_wait();
	note('a');
	fiber_wait();
	note('b');
}

static void fiber_wake_up_that_comes_first_is_kept(void)
{
	setup(1);
	fiber_start(set, early, NULL);
	fiber_run(set);
	expect("a");
	fiber_wake(fibers[0]);
	fiber_run(set);
	expect("ab");
	fiber_set_destroy(set);
}

static void fibers_run_in_the_order_they_became_ready(void)
{
	setup(3);
	fiber_start(set, waiter, "ad");
	fiber_start(set, waiter, "be");
	fiber_start(set, waiter, "cf");
	fiber_run(set);
	expect("abc");
	fiber_wake(fibers[2]);
	fiber_wake(fibers[0]);
	fiber_wake(fibers[1]);
	fiber_run(set);
	expect("abcfde");
	fiber_set_destroy(set);
}

static void fiber_yield_lets_others_run(void)
{
	setup(2);
	fiber_start(set, yielder, "abc");
	fiber_start(set, yielder, "xy");
	fiber_run(set);
	expect("axbyc");
	fiber_set_destroy(set);
}

static void fiber_start_refuses_more_than_its_room(void)
{
	setup(2);
	CU_ASSERT(fiber_start(set, waiter, "a"));
	CU_ASSERT(fiber_start(set, waiter, "b"));
	CU_ASSERT(!fiber_start(set, waiter, "c"));
	fiber_run(set);
	CU_ASSERT(fiber_start(set, waiter, "c"));
	fiber_run(set);
	expect("abc");
	fiber_set_destroy(set);
}

static void starter(void *arg)
{
	note('a');
	CU_ASSERT(fiber_start(set, waiter, arg));
	note('b');
}

static void fiber_starts_another(void)
{
	setup(2);
	fiber_start(set, starter, "c");
	fiber_run(set);
	expect("abc");
	fiber_set_destroy(set);
}

static void queued(void *arg)
{
	fibers[(*(char *)arg - 'a') % 3] = fiber_self();
	while (!finished)
		fiber_queue_wait(&queue);
	note(*(char *)arg);
}

static void fiber_queue_wakes_all_in_order(void)
{
	setup(3);
	fiber_start(set, queued, "b");
	fiber_start(set, queued, "a");
	fiber_start(set, queued, "c");
	fiber_run(set);
	fiber_queue_wake_all(&queue);
	fiber_run(set);
	expect("");
	CU_ASSERT_EQUAL(fiber_count(set), 3);
	finished = true;
	fiber_queue_wake_all(&queue);
	fiber_run(set);
	expect("bac");
	fiber_set_destroy(set);
}

static void fiber_queue_is_not_left_by_another_wake_up(void)
{
	setup(1);
	finished = false;
	fiber_start(set, queued, "a");
	fiber_run(set);
	finished = true;
	fiber_wake(fibers[0]);
	fiber_run(set);
	expect("");
	fiber_queue_wake_all(&queue);
	fiber_run(set);
	expect("a");
	fiber_set_destroy(set);
}

static void selfish(void *arg)
{
	*(struct fiber **)arg = fiber_self();
}

static void fiber_self_is_null_outside(void)
{
	struct fiber *self = NULL;

	setup(1);
	CU_ASSERT_PTR_NULL(fiber_self());
	fiber_start(set, selfish, &self);
	fiber_run(set);
	CU_ASSERT_PTR_NOT_NULL(self);
	CU_ASSERT_PTR_NULL(fiber_self());
	fiber_set_destroy(set);
}

static unsigned int depth(unsigned int n)
{
	volatile char frame[1024];

	memset((char *)frame, (int)n, sizeof(frame));
	return n == 0 ? 0 : depth(n - 1) + (unsigned char)frame[n % sizeof(frame)] / 255 + 1;
}

static void deep(void *arg)
{
	*(unsigned int *)arg = depth(100);
}

static void fiber_has_its_stack(void)
{
	unsigned int n = 0;

	setup(2);
	for (int i = 0; i < 3; i++) {
		fiber_start(set, deep, &n);
		fiber_run(set);
		CU_ASSERT(n >= 100);
	}
	fiber_set_destroy(set);
}

static void bottomless(void *arg)
{
	*(unsigned int *)arg = depth(1u << 20);
}

static void fiber_overflow_hits_the_guard(void)
{
	unsigned int n = 0;
	int status = 0;
	pid_t child = fork();

	if (child == 0) {
		struct rlimit none = { 0, 0 };

		setrlimit(RLIMIT_CORE, &none);
		close(STDERR_FILENO);
		set = fiber_set_create(2);
		fiber_start(set, bottomless, &n);
		fiber_run(set);
		_exit(0);
	}
	CU_ASSERT_FATAL(child > 0);
	CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
	CU_ASSERT(!WIFEXITED(status) || WEXITSTATUS(status) != 0);
}

static void *run_once(void *arg)
{
	fiber_start(arg, waiter, "b");
	fiber_run(arg);
	return NULL;
}

static void fiber_set_moves_between_threads(void)
{
	pthread_t thread;

	setup(1);
	fiber_start(set, waiter, "a");
	fiber_run(set);
	CU_ASSERT_EQUAL(pthread_create(&thread, NULL, run_once, set), 0);
	pthread_join(thread, NULL);
	fiber_start(set, waiter, "c");
	fiber_run(set);
	expect("abc");
	fiber_set_destroy(set);
}

static void counter(void *arg)
{
	for (int i = 0; i < 100; i++) {
		++*(unsigned int *)arg;
		fiber_yield();
	}
}

static void fibers_by_the_thousand_reuse_their_stacks(void)
{
	unsigned int n = 0;

	setup(8);
	for (int round = 0; round < 125; round++) {
		for (int i = 0; i < 8; i++)
			CU_ASSERT(fiber_start(set, counter, &n));
		fiber_run(set);
	}
	CU_ASSERT_EQUAL(n, 100000);
	fiber_set_destroy(set);
}

static const struct test tests[] = {
	TEST(fiber_runs_from_fiber_run),
	TEST(fiber_waits_until_woken),
	TEST(fiber_wake_up_that_comes_first_is_kept),
	TEST(fibers_run_in_the_order_they_became_ready),
	TEST(fiber_yield_lets_others_run),
	TEST(fiber_start_refuses_more_than_its_room),
	TEST(fiber_starts_another),
	TEST(fiber_queue_wakes_all_in_order),
	TEST(fiber_queue_is_not_left_by_another_wake_up),
	TEST(fiber_self_is_null_outside),
	TEST(fiber_has_its_stack),
	TEST(fiber_overflow_hits_the_guard),
	TEST(fiber_set_moves_between_threads),
	TEST(fibers_by_the_thousand_reuse_their_stacks),
};

TEST_MAIN(tests)
