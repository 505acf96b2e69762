/*
 * Fibers: procedures that wait, on one thread.
 *
 * Purpose: what takes many steps of I/O (a recovery, a merge, a checkpoint) is
 * written as one function from top to bottom.  A fiber runs until it calls
 * fiber_wait() or ends; nothing else runs meanwhile, so it needs no locks.
 *
 * Owner: a struct fiber_set and all its fibers belong to one thread at a time.
 * Stacks are mapped when the set is made and used again; each has a guard page.
 * The sanitizers know of the switches.
 *
 * How to: fiber_start() makes a function ready; fiber_run() (from the thread's
 * own loop, never from within a fiber) runs all that are ready until none is.
 * A fiber that waits for a completion does
 *
 *	io.done = wake_me; submit(&io); while (!io.finished) fiber_wait();
 *
 * and wake_me calls fiber_wake().  A wake-up that comes first is not lost: the
 * next fiber_wait() returns at once.  Wake-ups may be spurious; always loop.
 */
#ifndef BASE_FIBER_H
#define BASE_FIBER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

#define FIBER_STACK (256u << 10) /* bytes; touched only as far as it is used */

struct fiber;
struct fiber_set;

/* NULL without memory.  At most nfibers_max exist at once. */
struct fiber_set *fiber_set_create(unsigned int nfibers_max);
void fiber_set_destroy(struct fiber_set *set); /* no fiber is left */
/* The fibers that are left never go on; what only they know of is lost. */
void fiber_set_abandon(struct fiber_set *set);

/* Makes fn(arg) ready in a fiber of its own; false when all are taken. */
bool fiber_start(struct fiber_set *set, void (*fn)(void *arg), void *arg);
/* Runs the ready ones, in the order in which they became ready, until none is. */
void fiber_run(struct fiber_set *set);
bool fiber_ready(const struct fiber_set *set);	       /* fiber_run() has something to do */
unsigned int fiber_count(const struct fiber_set *set); /* that exist */

/* Within a fiber. */
struct fiber *fiber_self(void); /* NULL: not in a fiber */
void fiber_wait(void);
void fiber_yield(void); /* lets the other ready ones run first */

/* From anywhere on the thread, within a fiber or not; any number of times. */
void fiber_wake(struct fiber *fiber);

/* Fibers that wait for a condition: woken all, in the order in which they came.  The
 * wait returns only when woken by the queue; a fiber_wake() meanwhile is forgotten. */
struct fiber_queue {
	struct list waiting;
};
void fiber_queue_init(struct fiber_queue *queue);
void fiber_queue_wait(struct fiber_queue *queue);
void fiber_queue_wake_all(struct fiber_queue *queue);

#endif
