/* Timers of the reactor. */
#include "tests/unit/base/reactor_fixture.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "tests/unit/quintain_test.h"

#define NTIMERS 2000

struct alarm {
	struct reactor_timer timer;
	uint64_t asked_ns, fired_ns;
	unsigned int nfired;
};

static struct reactor *reactor;
static struct alarm alarms[NTIMERS];
static _Atomic uint32_t nfired;
static uint64_t last_at_ns;
static uint32_t disorder, early;

static void fire(struct reactor_timer *timer)
{
	struct alarm *alarm = container_of(timer, struct alarm, timer);

	alarm->fired_ns = reactor_now_ns(reactor);
	alarm->nfired++;
	disorder += timer->at_ns < last_at_ns;
	early += alarm->fired_ns < alarm->asked_ns;
	last_at_ns = timer->at_ns;
	atomic_fetch_add(&nfired, 1);
}

static void arm(struct alarm *alarm, uint64_t delay_ms)
{
	alarm->asked_ns = reactor_now_ns(reactor) + delay_ms * 1000000;
	reactor_timer_arm(reactor, &alarm->timer, delay_ms);
}

static void setup(void)
{
	reactor = fixture_reactor(0);
	atomic_store(&nfired, 0);
	last_at_ns = disorder = early = 0;
	for (int i = 0; i < NTIMERS; i++) {
		alarms[i] = (struct alarm){ 0 };
		reactor_timer_init(&alarms[i].timer, fire);
	}
}

static void arm_many(void *arg)
{
	uint32_t x = 1;

	(void)arg;
	CU_ASSERT_EQUAL(reactor_timer_reserve(reactor, NTIMERS), 0);
	for (int i = 0; i < NTIMERS; i++) {
		x = x * 1664525u + 1013904223u;
		arm(&alarms[i], (x >> 16) % 50);
	}
	/* Some are moved, some taken back. */
	for (int i = 0; i < NTIMERS; i += 5)
		arm(&alarms[i], 60 - (uint64_t)i % 60);
	for (int i = 1; i < NTIMERS; i += 5)
		reactor_timer_cancel(reactor, &alarms[i].timer);
}

static void release_many(void *arg)
{
	(void)arg;
	reactor_timer_release(reactor, NTIMERS);
}

static void timers_fire_once_in_the_order_of_their_times(void)
{
	setup();
	reactor_call(reactor, arm_many, NULL);
	CU_ASSERT(fixture_reaches(&nfired, NTIMERS * 4 / 5));
	fixture_sleep_ms(80);
	reactor_call(reactor, release_many, NULL);
	CU_ASSERT_EQUAL(nfired, NTIMERS * 4 / 5);
	CU_ASSERT_EQUAL(disorder, 0);
	CU_ASSERT_EQUAL(early, 0);
	for (int i = 0; i < NTIMERS; i++) {
		CU_ASSERT_EQUAL(alarms[i].nfired, i % 5 == 1 ? 0 : 1);
		CU_ASSERT_FALSE(reactor_timer_armed(&alarms[i].timer));
	}
	fixture_stop(reactor);
}

static void fire_and_change_others(struct reactor_timer *timer)
{
	struct alarm *alarm = container_of(timer, struct alarm, timer);

	fire(timer);
	reactor_timer_cancel(reactor, &alarms[1].timer);
	arm(&alarms[2], 1);
	if (alarm->nfired < 3)
		arm(alarm, 0);
}

static void arm_three(void *arg)
{
	(void)arg;
	CU_ASSERT_EQUAL(reactor_timer_reserve(reactor, 3), 0);
	reactor_timer_init(&alarms[0].timer, fire_and_change_others);
	arm(&alarms[0], 5);
	arm(&alarms[1], 5);
	arm(&alarms[2], 100000);
}

static void release_three(void *arg)
{
	(void)arg;
	reactor_timer_release(reactor, 3);
}

static void timer_may_change_itself_and_others_when_it_fires(void)
{
	setup();
	reactor_call(reactor, arm_three, NULL);
	CU_ASSERT(fixture_reaches(&nfired, 4));
	fixture_sleep_ms(10);
	reactor_call(reactor, release_three, NULL);
	fixture_stop(reactor);
	CU_ASSERT_EQUAL(alarms[0].nfired, 3);
	CU_ASSERT_EQUAL(alarms[1].nfired, 0);
	CU_ASSERT_EQUAL(alarms[2].nfired, 1);
}

static void arm_one(void *arg)
{
	CU_ASSERT_EQUAL(reactor_timer_reserve(reactor, 3), 0);
	arm(&alarms[0], *(uint64_t *)arg);
}

static void timer_wakes_a_sleeping_reactor_in_time(void)
{
	uint64_t delay_ms = 50, late_ns;
	struct reactor_stats before, after;

	setup();
	reactor_call(reactor, arm_one, &delay_ms);
	reactor_stats(reactor, &before);
	CU_ASSERT(fixture_reaches(&nfired, 1));
	reactor_stats(reactor, &after);
	reactor_call(reactor, release_three, NULL);
	fixture_stop(reactor);
	late_ns = alarms[0].fired_ns - alarms[0].asked_ns;
	CU_ASSERT(late_ns < 500000000);
	/* It sleeps until then, it does not look again and again. */
	CU_ASSERT(after.iterations - before.iterations <= 4);
	CU_ASSERT_EQUAL(after.timers, 1);
}

static void fire_again(struct reactor_timer *timer)
{
	fire(timer);
	reactor_timer_arm(reactor, timer, 0);
}

static void cancel_one(void *arg)
{
	(void)arg;
	reactor_timer_cancel(reactor, &alarms[0].timer);
	reactor_timer_cancel(reactor, &alarms[0].timer);
	reactor_timer_release(reactor, 3);
}

static void timer_may_be_armed_for_ever(void)
{
	uint64_t delay_ms = UINT64_MAX;

	setup();
	reactor_call(reactor, arm_one, &delay_ms);
	CU_ASSERT_TRUE(reactor_timer_armed(&alarms[0].timer));
	reactor_call(reactor, cancel_one, NULL);
	CU_ASSERT_FALSE(reactor_timer_armed(&alarms[0].timer));
	fixture_stop(reactor);
	CU_ASSERT_EQUAL(nfired, 0);
}

static void timer_without_delay_does_not_hold_up_the_loop(void)
{
	uint64_t delay_ms = 0;

	setup();
	reactor_timer_init(&alarms[0].timer, fire_again);
	reactor_call(reactor, arm_one, &delay_ms);
	CU_ASSERT(fixture_reaches(&nfired, 100));
	reactor_call(reactor, cancel_one, NULL);
	fixture_stop(reactor);
}

static const struct test tests[] = {
	TEST(timers_fire_once_in_the_order_of_their_times),
	TEST(timer_may_change_itself_and_others_when_it_fires),
	TEST(timer_wakes_a_sleeping_reactor_in_time),
	TEST(timer_may_be_armed_for_ever),
	TEST(timer_without_delay_does_not_hold_up_the_loop),
};

TEST_MAIN(tests)
