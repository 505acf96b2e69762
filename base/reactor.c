/* The reactor's life and its loop: see reactor.h. */
#include "base/reactor_internal.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>

/* Rounds of deferred work and flush hooks in one iteration.  What is deferred
 * still after that waits for the next one, which does not sleep, so that work
 * that defers itself cannot keep the loop from the ring. */
#define ROUNDS_MAX 16

static _Thread_local struct reactor *this_reactor;

struct reactor *reactor_self(void)
{
	return this_reactor;
}

unsigned int reactor_index(const struct reactor *reactor)
{
	return reactor->config.index;
}

uint64_t reactor_now_ns(const struct reactor *reactor)
{
	return reactor->now_ns;
}

struct bufpool *reactor_bufpool(struct reactor *reactor)
{
	return reactor->bufpool;
}

uint8_t *reactor_scratch(struct reactor *reactor)
{
	return reactor->scratch;
}

static uint64_t clock_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* ---- deferred work ---- */

void reactor_work_init(struct reactor_work *work, void (*run)(struct reactor_work *work))
{
	work->run = run;
	list_init(&work->link);
}

void reactor_defer(struct reactor *reactor, struct reactor_work *work)
{
	assert(reactor == this_reactor);
	if (list_empty(&work->link))
		list_add_tail(&reactor->deferred, &work->link);
}

void reactor_at_flush(struct reactor *reactor, struct reactor_work *work)
{
	assert(reactor == this_reactor);
	if (list_empty(&work->link))
		list_add_tail(&reactor->at_flush, &work->link);
}

void reactor_work_cancel(struct reactor_work *work)
{
	list_del(&work->link);
}

/* Runs what is on the list now; what this adds to it waits for the next round.
 * True when there was something. */
static bool run_round(struct list *works)
{
	struct list round, *link;
	bool any = false;

	list_init(&round);
	list_splice(&round, works);
	while ((link = list_pop(&round))) {
		struct reactor_work *work = container_of(link, struct reactor_work, link);

		work->run(work);
		any = true;
	}
	return any;
}

static bool run_work(struct reactor *reactor)
{
	bool any = false;

	for (unsigned int i = 0; i < ROUNDS_MAX; i++) {
		if (!list_empty(&reactor->deferred))
			any |= run_round(&reactor->deferred);
		else if (!list_empty(&reactor->transfers.queue))
			reactor_transfers_make(reactor);
		else if (!list_empty(&reactor->at_flush))
			any |= run_round(&reactor->at_flush);
		else
			break;
	}
	/* Deferred work has used up the rounds: what is to be sent by now is
	 * sent all the same. */
	any |= run_round(&reactor->at_flush);
	return any;
}

/* ---- the loop ---- */

static bool work_is_left(const struct reactor *reactor)
{
	return !list_empty(&reactor->deferred) || !list_empty(&reactor->transfers.queue) ||
	       !list_empty(&reactor->at_flush);
}

/* From the last time that this was called, the reactor was busy. */
static void account_busy(struct reactor *reactor, uint64_t now_ns)
{
	counter_add(&reactor->stats.busy_ns, now_ns - reactor->busy_since_ns);
	reactor->busy_since_ns = now_ns;
}

/* Submits; waits when there is nothing else to do. */
static void submit_and_wait(struct reactor *reactor, bool worked)
{
	uint64_t hold_ns = reactor->hold_us * UINT64_C(1000);
	uint64_t wait_ns, before_ns = clock_now_ns();

	account_busy(reactor, before_ns);
	if (worked)
		reactor->worked_ns = before_ns;
	wait_ns = timers_wait_ns(reactor, before_ns);
	if (wait_ns == 0 || work_is_left(reactor) || ring_ready(reactor) ||
	    before_ns - reactor->worked_ns < reactor->config.spin_us * UINT64_C(1000) ||
	    !inbox_sleep(reactor)) {
		ring_submit(reactor);
		reactor->now_ns = clock_now_ns();
		return;
	}
	reactor->hold_us = 0;
	if (hold_ns > 0)
		ring_wait(reactor, hold_ns < wait_ns ? hold_ns : wait_ns, REACTOR_HOLD_OPS);
	else
		ring_wait(reactor, wait_ns, 1);
	reactor->now_ns = reactor->busy_since_ns = clock_now_ns();
}

void reactor_hold(struct reactor *reactor, uint32_t hold_us)
{
	assert(reactor == reactor_self());
	reactor->hold_us = hold_us;
}

static void run_loop(struct reactor *reactor)
{
	/* The default of 50 us would double what is held. */
	prctl(PR_SET_TIMERSLACK, 1UL);
	reactor->now_ns = clock_now_ns();
	reactor->busy_since_ns = reactor->worked_ns = reactor->now_ns;
	inbox_arm_wake(reactor);
	for (;;) {
		bool worked;

		counter_add(&reactor->stats.iterations, 1);
		worked = ring_harvest(reactor) > 0;
		worked |= inbox_run(reactor) > 0;
		worked |= timers_run(reactor) > 0;
		worked |= run_work(reactor);
		if (reactor->stopping && reactor->ops_in_flight == 0 && !work_is_left(reactor))
			break;
		submit_and_wait(reactor, worked);
	}
	inbox_disarm_wake(reactor);
}

/* ---- life ---- */

static void set_state(struct reactor *reactor, enum reactor_state state)
{
	pthread_mutex_lock(&reactor->lock);
	reactor->state = state;
	pthread_cond_broadcast(&reactor->changed);
	pthread_mutex_unlock(&reactor->lock);
}

static void release_memory(struct reactor *reactor)
{
	bufpool_destroy(reactor->bufpool);
	if (reactor->scratch)
		munmap(reactor->scratch, REACTOR_SCRATCH);
	free(reactor->timers.slot);
}

/* On the reactor's CPU, so that its memory is near. */
static int make_memory(struct reactor *reactor, struct err *err)
{
	void *scratch;

	if (reactor->config.cpu >= 0) {
		cpu_set_t cpus;
		int rc;

		CPU_ZERO(&cpus);
		CPU_SET(reactor->config.cpu, &cpus);
		rc = pthread_setaffinity_np(pthread_self(), sizeof(cpus), &cpus);
		if (rc != 0)
			return err_set(err, rc, "reactor %u: cannot run on CPU %d: %s",
				       reactor->config.index, reactor->config.cpu, err_name(rc));
	}
	scratch = mmap(NULL, REACTOR_SCRATCH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);
	if (scratch == MAP_FAILED)
		return err_set(err, ENOMEM, "reactor %u: no memory", reactor->config.index);
	reactor->scratch = scratch;
	return bufpool_create(reactor->config.buffer_bytes, &reactor->bufpool, err);
}

static int make_ring(struct reactor *reactor, struct err *err)
{
	int rc = ring_init(&reactor->ring, reactor->config.ring_entries);

	if (rc < 0)
		return ring_explain(rc, err);
	return 0;
}

static void *thread_main(void *arg)
{
	struct reactor *reactor = arg;
	char name[16];
	int rc;

	snprintf(name, sizeof(name), "reactor/%u", reactor->config.index);
	pthread_setname_np(pthread_self(), name);
	this_reactor = reactor;
	rc = make_memory(reactor, &reactor->start_err);
	if (rc == 0)
		rc = make_ring(reactor, &reactor->start_err);
	if (rc < 0) {
		reactor->start_rc = rc;
		set_state(reactor, REACTOR_ENDED);
		return NULL;
	}
	set_state(reactor, REACTOR_RUNNING);
	run_loop(reactor);
	transfers_release(&reactor->transfers);
	io_uring_queue_exit(&reactor->ring);
	set_state(reactor, REACTOR_ENDED);
	return NULL;
}

static void stop_run(struct reactor_msg *msg)
{
	container_of(msg, struct reactor, stop_msg)->stopping = true;
}

static struct reactor *make_reactor(const struct reactor_config *config)
{
	struct reactor *reactor = aligned_alloc(alignof(struct reactor), sizeof(*reactor));
	pthread_condattr_t attr;

	if (!reactor)
		return NULL;
	memset(reactor, 0, sizeof(*reactor));
	reactor->config = *config;
	list_init(&reactor->deferred);
	list_init(&reactor->at_flush);
	transfers_init(&reactor->transfers);
	reactor->stop_msg.run = stop_run;
	pthread_mutex_init(&reactor->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&reactor->changed, &attr);
	pthread_condattr_destroy(&attr);
	return reactor;
}

static void free_reactor(struct reactor *reactor)
{
	release_memory(reactor);
	inbox_release(reactor);
	pthread_cond_destroy(&reactor->changed);
	pthread_mutex_destroy(&reactor->lock);
	free(reactor);
}

/* Signals are the control thread's, but for those that tell of a fault of the
 * thread itself. */
static int start_thread(struct reactor *reactor)
{
	static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT };
	sigset_t blocked, old;
	int rc;

	sigfillset(&blocked);
	for (size_t i = 0; i < ARRAY_LEN(faults); i++)
		sigdelset(&blocked, faults[i]);
	pthread_sigmask(SIG_SETMASK, &blocked, &old);
	rc = pthread_create(&reactor->thread, NULL, thread_main, reactor);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return rc;
}

int reactor_start(const struct reactor_config *config, struct reactor **out, struct err *err)
{
	struct reactor *reactor;
	int rc;

	assert(this_reactor == NULL);
	assert(config->ring_entries > 0 &&
	       (config->ring_entries & (config->ring_entries - 1)) == 0);
	reactor = make_reactor(config);
	if (!reactor)
		return err_set(err, ENOMEM, "reactor %u: no memory", config->index);
	rc = -inbox_init(reactor);
	if (rc == 0)
		rc = start_thread(reactor);
	if (rc != 0) {
		rc = err_set(err, rc, "reactor %u: cannot start: %s", config->index, err_name(rc));
		free_reactor(reactor);
		return rc;
	}
	pthread_mutex_lock(&reactor->lock);
	while (reactor->state == REACTOR_STARTING)
		pthread_cond_wait(&reactor->changed, &reactor->lock);
	rc = reactor->start_rc;
	pthread_mutex_unlock(&reactor->lock);
	if (rc < 0) {
		pthread_join(reactor->thread, NULL);
		if (err)
			*err = reactor->start_err;
		free_reactor(reactor);
		return rc;
	}
	*out = reactor;
	return 0;
}

int reactor_stop(struct reactor *reactor, unsigned int timeout_ms)
{
	uint64_t until_ns = clock_now_ns() + (uint64_t)timeout_ms * NS_PER_MS;
	struct timespec until = {
		.tv_sec = (time_t)(until_ns / 1000000000u),
		.tv_nsec = (long)(until_ns % 1000000000u),
	};
	bool ended;

	assert(this_reactor == NULL);
	if (!reactor->stop_sent) {
		reactor->stop_sent = true;
		reactor_send(reactor, &reactor->stop_msg);
	}
	pthread_mutex_lock(&reactor->lock);
	while (reactor->state != REACTOR_ENDED)
		if (pthread_cond_timedwait(&reactor->changed, &reactor->lock, &until) != 0)
			break;
	ended = reactor->state == REACTOR_ENDED;
	pthread_mutex_unlock(&reactor->lock);
	if (!ended)
		return -EBUSY;
	pthread_join(reactor->thread, NULL);
	free_reactor(reactor);
	return 0;
}

void reactor_stats(const struct reactor *reactor, struct reactor_stats *out)
{
	*out = (struct reactor_stats){
		.iterations = atomic_load_explicit(&reactor->stats.iterations,
						   memory_order_relaxed),
		.enters = atomic_load_explicit(&reactor->stats.enters, memory_order_relaxed),
		.completions = atomic_load_explicit(&reactor->stats.completions,
						    memory_order_relaxed),
		.messages = atomic_load_explicit(&reactor->stats.messages, memory_order_relaxed),
		.timers = atomic_load_explicit(&reactor->stats.timers, memory_order_relaxed),
		.busy_ns = atomic_load_explicit(&reactor->stats.busy_ns, memory_order_relaxed),
	};
}
