/*
 * The reactor: one thread, one io_uring, one loop.
 *
 * Purpose: everything of the data path runs on a reactor and never blocks
 * there.  One iteration of the loop is
 *
 *	completions of the ring -> messages from other threads -> timers
 *	-> deferred work until there is none -> flush hooks -> submit and wait
 *
 * so that whatever one receive brought is answered by one send in the flush
 * hook, and a waiting peer is never delayed by a timer.
 *
 * Owner: the thread that called reactor_start() made it; after that each
 * function here is called on the reactor's own thread, except those marked
 * "any thread".  reactor_self() is the reactor of the calling thread, NULL on
 * the control thread.
 *
 * The ring is SINGLE_ISSUER | DEFER_TASKRUN; the oldest kernel is Debian 12's
 * 6.1.
 */
#ifndef BASE_REACTOR_H
#define BASE_REACTOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <liburing.h>

#include "base/bufpool.h"
#include "base/err.h"
#include "base/list.h"

#define REACTORS_MAX 256

struct reactor;

/* ---- life ---- */

struct reactor_config {
	unsigned int index;    /* 0.. in the order of start */
	int cpu;	       /* pin to this CPU; -1: no pinning */
	uint32_t ring_entries; /* submission queue, a power of two */
	uint64_t buffer_bytes; /* size of the buffer pool */
	uint32_t spin_us;      /* poll so long before sleeping; 0 is the default */
};

/*
 * Control thread.  Sees whether io_uring can be used as we need it: 0, or
 * -EPERM/-ENOSYS/... with a text that says what to do (the seccomp profile of
 * a container, sysctl kernel.io_uring_disabled, the kernel's age, the limit of
 * locked memory).
 */
int reactor_probe(struct err *err);

/* Control thread.  Makes the ring and the thread; returns when it runs. */
int reactor_start(const struct reactor_config *config, struct reactor **out, struct err *err);

/*
 * Control thread.  Ends the loop and joins the thread.  Everything that lives
 * on the reactor must be gone: file descriptors closed, operations completed.
 * When operations are still in flight (a stuck disk) the thread is left
 * behind and -EBUSY is returned; it may be tried again.  No other thread may
 * be within reactor_send() to it: reactors that sent to it are asked something
 * by reactor_call(), or stopped, first.
 */
int reactor_stop(struct reactor *reactor, unsigned int timeout_ms);

struct reactor *reactor_self(void);
unsigned int reactor_index(const struct reactor *reactor); /* any thread */

/* CLOCK_MONOTONIC in ns as read once in this iteration; cheap. */
uint64_t reactor_now_ns(const struct reactor *reactor);

/* The pool of data buffers of this reactor; its own thread only. */
struct bufpool *reactor_bufpool(struct reactor *reactor);

/*
 * Nobody is in a hurry: the coming wait lasts hold_us unless much becomes ready
 * meanwhile (REACTOR_HOLD_OPS operations).  A sleep and a wake-up cost several
 * times what one small command does, so a peer that is behind with taking our
 * answers is served in larger batches.  Holds for the next wait alone, however
 * many iterations there are before it; the last call counts.
 */
#define REACTOR_HOLD_OPS 16
void reactor_hold(struct reactor *reactor, uint32_t hold_us);

/* A shared receive area of REACTOR_SCRATCH bytes, valid within one callback. */
#define REACTOR_SCRATCH (256u << 10)
uint8_t *reactor_scratch(struct reactor *reactor);

/* ---- operations of the ring ---- */

/*
 * One operation in flight; embedded in its owner, which must live until done
 * is called.  done is called exactly once for every reactor_sqe() that was
 * prepared, from the loop, never from within a submit; res is the CQE's.
 */
struct reactor_op {
	void (*done)(struct reactor_op *op, int res);
};

/*
 * A submission entry to be filled by io_uring_prep_*(); its user data is set
 * here (prep functions keep it).  Never NULL: a full queue is submitted first.
 * It goes to the kernel at the end of the iteration.
 */
struct io_uring_sqe *reactor_sqe(struct reactor *reactor, struct reactor_op *op);

/* Asks the kernel to cancel op; op's done still comes, with -ECANCELED or its
 * result, whichever was first. */
void reactor_cancel(struct reactor *reactor, struct reactor_op *op);

/* Operations in flight, cancelling ones apart. */
uint32_t reactor_ops_in_flight(const struct reactor *reactor);

/* ---- transfers that do not wait, many in one system call ---- */

/*
 * A read or write of a file that cannot wait for a disk: of a file system in
 * memory, or with RWF_NOWAIT.  Those of one callback are made together: for
 * 4 KiB a system call of its own costs more than what it does, most of all in
 * virtual machines.  They are made in the order of reactor_transfer(), at the
 * latest when the deferred work of this iteration is done.
 *
 * Whoever hands out what lies in the scratch area calls reactor_transfers_make()
 * before something else comes there.  done is called within that, in any order;
 * res is what was moved, or -errno.  It may queue another one, itself too.
 */
struct reactor_transfer {
	void (*done)(struct reactor_transfer *transfer, ssize_t res);
	struct list link;
	const struct iovec *iov; /* at least one, not empty; good until done */
	int iovcnt;
	int fd;
	int flags; /* RWF_*; without RWF_NOWAIT nothing bounds the time it takes */
	bool write;
	int64_t off;
};

void reactor_transfer(struct reactor *reactor, struct reactor_transfer *transfer);
void reactor_transfers_make(struct reactor *reactor);

/* ---- deferred work, flush hooks, messages, timers ---- */

/*
 * Work of this iteration: run is called once before the loop sleeps, in the
 * order of reactor_defer().  Deferring a work that is already deferred does
 * nothing.  This is how a request that was done inline completes outside of
 * submit.
 */
struct reactor_work {
	void (*run)(struct reactor_work *work);
	struct list link; /* list_init() by reactor_work_init() */
};

void reactor_work_init(struct reactor_work *work, void (*run)(struct reactor_work *work));
void reactor_defer(struct reactor *reactor, struct reactor_work *work);
/* Takes it back; no effect when it is not deferred. */
void reactor_work_cancel(struct reactor_work *work);

/* Like reactor_defer(), but after all deferred work: one gathered send for
 * each connection at the end of the iteration. */
void reactor_at_flush(struct reactor *reactor, struct reactor_work *work);

/* A message to another reactor (or to one's own): run is called on its thread.
 * Messages of one sender arrive in order.  msg is the receiver's from the call
 * on; it may be sent again from within run. */
struct reactor_msg {
	void (*run)(struct reactor_msg *msg);
	struct reactor_msg *next;
};

void reactor_send(struct reactor *to, struct reactor_msg *msg); /* any thread */

/* Runs fn(arg) on the reactor and waits for it.  Control thread only. */
void reactor_call(struct reactor *on, void (*fn)(void *arg), void *arg);

struct reactor_timer {
	void (*fire)(struct reactor_timer *timer);
	uint64_t at_ns;	   /* CLOCK_MONOTONIC */
	uint32_t heap_pos; /* 0: not armed */
};

void reactor_timer_init(struct reactor_timer *timer, void (*fire)(struct reactor_timer *timer));
/*
 * Fires once after delay_ms, in the resolution of 1 ms; arming again moves it.
 * Arming and cancelling are O(log n); tens of thousands may be armed.  The
 * heap's room is reserved by reactor_timer_reserve() when the owner is made,
 * so that arming never allocates and never fails.
 */
int reactor_timer_reserve(struct reactor *reactor, uint32_t ntimers);
void reactor_timer_release(struct reactor *reactor, uint32_t ntimers);
void reactor_timer_arm(struct reactor *reactor, struct reactor_timer *timer, uint64_t delay_ms);
void reactor_timer_cancel(struct reactor *reactor, struct reactor_timer *timer);
static inline bool reactor_timer_armed(const struct reactor_timer *timer)
{
	return timer->heap_pos != 0;
}

/* Counters of the loop, for status and for the figure "system calls per I/O". */
struct reactor_stats {
	uint64_t iterations, enters, completions, messages, timers;
	uint64_t busy_ns; /* time not spent waiting */
};
void reactor_stats(const struct reactor *reactor, struct reactor_stats *out); /* any thread */

#endif
