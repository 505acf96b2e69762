/*
 * What the files of the reactor share; nobody else includes it.
 *
 * reactor.c	life and the loop	reactor_msg.c	messages, calls, wake-ups
 * reactor_ring.c	operations, waiting	reactor_timer.c	the heap of timers
 * reactor_probe.c	is io_uring usable	reactor_transfer.c	many in one system call
 */
#ifndef BASE_REACTOR_INTERNAL_H
#define BASE_REACTOR_INTERNAL_H

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>

#include "base/reactor.h"

#define NS_PER_MS 1000000u

/* Written by the reactor, read by any thread. */
typedef _Atomic uint64_t counter;

static inline void counter_add(counter *c, uint64_t n)
{
	atomic_store_explicit(c, atomic_load_explicit(c, memory_order_relaxed) + n,
			      memory_order_relaxed);
}

enum reactor_state {
	REACTOR_STARTING,
	REACTOR_RUNNING,
	REACTOR_ENDED, /* or never started: start_rc is not 0 */
};

struct timer_heap {
	struct reactor_timer **slot; /* 1..n; slot[1] fires first */
	uint32_t n, reserved;
};

struct transfers {
	struct list queue; /* reactor_transfer.link */
	unsigned long aio; /* aio_context_t; 0: not made yet */
	bool refused;	   /* and never will be */
};

struct reactor {
	struct io_uring ring;
	struct reactor_config config;
	struct bufpool *bufpool;
	uint8_t *scratch;
	uint64_t now_ns;
	uint64_t busy_since_ns; /* what came before is in stats.busy_ns */
	uint64_t worked_ns;	/* when there was work; it spins from then on */
	uint32_t ops_in_flight;
	uint32_t hold_us; /* of the coming wait: reactor_hold() */

	struct list deferred, at_flush;
	struct transfers transfers;
	struct timer_heap timers;

	/* Reading the eventfd that wakes the reactor; in flight while it runs. */
	struct reactor_op wake_op;
	bool wake_armed;
	uint64_t wake_value;

	struct reactor_msg stop_msg;
	bool stop_sent; /* the control thread's */
	bool stopping;	/* the reactor's */

	struct {
		counter iterations, enters, completions, messages, timers, busy_ns;
	} stats;

	/* Life: guarded by lock. */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	enum reactor_state state;
	struct err start_err;
	int start_rc;

	/* Other threads write here, on a cache line of its own. */
	alignas(64) _Atomic(struct reactor_msg *) inbox;
	int wake_fd;
};

/* Of reactor_ring.c. */
int ring_init(struct io_uring *ring, uint32_t entries);
/* Of reactor_probe.c: says why ring_init() failed with rc; returns rc. */
int ring_explain(int rc, struct err *err);
/* Calls done of everything completed; how many there were. */
uint32_t ring_harvest(struct reactor *reactor);
/* An entry that reactor_ops_in_flight() does not count. */
struct io_uring_sqe *ring_sqe(struct reactor *reactor, struct reactor_op *op);
/* True when a completion can be had without waiting. */
bool ring_ready(struct reactor *reactor);
/* Submits what is prepared and collects completions; does not wait. */
void ring_submit(struct reactor *reactor);
/* Submits and waits for one completion, at most timeout_ns (UINT64_MAX: no limit). */
void ring_wait(struct reactor *reactor, uint64_t timeout_ns, unsigned int nops);

/* Of reactor_msg.c. */
int inbox_init(struct reactor *reactor);
void inbox_release(struct reactor *reactor);
void inbox_arm_wake(struct reactor *reactor);
/* When it stops: the kernel writes no more into the reactor. */
void inbox_disarm_wake(struct reactor *reactor);
/* Runs the messages that are there; how many there were. */
uint32_t inbox_run(struct reactor *reactor);
/* Before waiting: from now on a sender wakes the reactor.  False when a message is there. */
bool inbox_sleep(struct reactor *reactor);

/* Of reactor_transfer.c; the second on the reactor's thread. */
void transfers_init(struct transfers *transfers);
void transfers_release(struct transfers *transfers);

/* Of reactor_timer.c. */
uint32_t timers_run(struct reactor *reactor);
/* Nanoseconds until the next timer, from now on, in whole milliseconds; UINT64_MAX: none. */
uint64_t timers_wait_ns(const struct reactor *reactor, uint64_t now_ns);

#endif
