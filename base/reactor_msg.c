/*
 * Messages to a reactor and its wake-up: see reactor.h.
 *
 * The inbox is one word: the stack of messages sent, the newest on top.
 * Senders push with compare-and-exchange, the reactor takes the whole stack
 * and turns it round, so each sender's order is kept.
 *
 * A reactor that is about to wait puts the mark SLEEPING into the empty inbox.
 * The one sender that replaces the mark knows that it must wake; those after
 * it find its message and need not.  As both facts, "there is a message" and
 * "the reactor sleeps", are in the same word, no wake-up can be lost between
 * them, and there is at most one for each sleep.
 */
#include "base/reactor_internal.h"

#include <assert.h>
#include <errno.h>
#include <semaphore.h>
#include <sys/eventfd.h>
#include <unistd.h>

static struct reactor_msg sleeping_mark;
#define SLEEPING (&sleeping_mark)

int inbox_init(struct reactor *reactor)
{
	atomic_init(&reactor->inbox, NULL);
	/* Blocking: the ring then waits for it by itself, a non-blocking file
	 * would be answered with -EAGAIN. */
	reactor->wake_fd = eventfd(0, EFD_CLOEXEC);
	return reactor->wake_fd < 0 ? -errno : 0;
}

void inbox_release(struct reactor *reactor)
{
	if (reactor->wake_fd >= 0)
		close(reactor->wake_fd);
}

static void wake_done(struct reactor_op *op, int res)
{
	struct reactor *reactor = container_of(op, struct reactor, wake_op);

	assert(res == sizeof(reactor->wake_value) || res == -EINTR || res == -EAGAIN);
	reactor->wake_armed = false;
	if (!reactor->stopping)
		inbox_arm_wake(reactor);
}

void inbox_arm_wake(struct reactor *reactor)
{
	reactor->wake_op.done = wake_done;
	reactor->wake_armed = true;
	io_uring_prep_read(ring_sqe(reactor, &reactor->wake_op), reactor->wake_fd,
			   &reactor->wake_value, sizeof(reactor->wake_value), 0);
}

static void wake(int wake_fd)
{
	uint64_t one = 1;
	ssize_t n;

	do {
		n = write(wake_fd, &one, sizeof(one));
	} while (n < 0 && errno == EINTR);
	assert(n == sizeof(one));
}

void inbox_disarm_wake(struct reactor *reactor)
{
	assert(reactor->stopping);
	if (reactor->wake_armed)
		wake(reactor->wake_fd);
	while (reactor->wake_armed) {
		ring_wait(reactor, UINT64_MAX, 1);
		ring_harvest(reactor);
	}
}

void reactor_send(struct reactor *to, struct reactor_msg *msg)
{
	struct reactor_msg *top = atomic_load_explicit(&to->inbox, memory_order_relaxed);

	assert(msg->run);
	do {
		msg->next = top == SLEEPING ? NULL : top;
	} while (!atomic_compare_exchange_weak_explicit(&to->inbox, &top, msg, memory_order_release,
							memory_order_relaxed));
	if (top == SLEEPING)
		wake(to->wake_fd);
}

/* The oldest first. */
static struct reactor_msg *reversed(struct reactor_msg *msg)
{
	struct reactor_msg *list = NULL;

	while (msg) {
		struct reactor_msg *next = msg->next;

		msg->next = list;
		list = msg;
		msg = next;
	}
	return list;
}

uint32_t inbox_run(struct reactor *reactor)
{
	struct reactor_msg *msg;
	uint32_t n = 0;

	if (!atomic_load_explicit(&reactor->inbox, memory_order_relaxed))
		return 0;
	msg = atomic_exchange_explicit(&reactor->inbox, NULL, memory_order_acquire);
	if (msg == SLEEPING)
		return 0;
	for (msg = reversed(msg); msg; n++) {
		struct reactor_msg *next = msg->next;

		/* From here on it may be sent again. */
		msg->run(msg);
		msg = next;
	}
	counter_add(&reactor->stats.messages, n);
	return n;
}

bool inbox_sleep(struct reactor *reactor)
{
	struct reactor_msg *empty = NULL;

	return atomic_compare_exchange_strong_explicit(&reactor->inbox, &empty, SLEEPING,
						       memory_order_relaxed, memory_order_relaxed);
}

struct call {
	struct reactor_msg msg;
	void (*fn)(void *arg);
	void *arg;
	sem_t done;
};

static void call_run(struct reactor_msg *msg)
{
	struct call *call = container_of(msg, struct call, msg);

	call->fn(call->arg);
	sem_post(&call->done);
}

void reactor_call(struct reactor *on, void (*fn)(void *arg), void *arg)
{
	struct call call = { .msg = { .run = call_run }, .fn = fn, .arg = arg };

	assert(reactor_self() == NULL);
	sem_init(&call.done, 0, 0);
	reactor_send(on, &call.msg);
	while (sem_wait(&call.done) != 0)
		assert(errno == EINTR);
	sem_destroy(&call.done);
}
