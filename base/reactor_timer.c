/* The reactor's timers, a binary heap ordered by at_ns: see reactor.h. */
#include "base/reactor_internal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

void reactor_timer_init(struct reactor_timer *timer, void (*fire)(struct reactor_timer *timer))
{
	*timer = (struct reactor_timer){ .fire = fire };
}

int reactor_timer_reserve(struct reactor *reactor, uint32_t ntimers)
{
	struct timer_heap *heap = &reactor->timers;
	struct reactor_timer **slot;

	if (ntimers > UINT32_MAX / 2 - heap->reserved)
		return -ENOMEM;
	/* Slot 0 is not used: heap_pos 0 means not armed. */
	slot = realloc(heap->slot, ((size_t)heap->reserved + ntimers + 1) * sizeof(*slot));
	if (!slot)
		return -ENOMEM;
	heap->slot = slot;
	heap->reserved += ntimers;
	return 0;
}

void reactor_timer_release(struct reactor *reactor, uint32_t ntimers)
{
	struct timer_heap *heap = &reactor->timers;

	/* The room stays for the next owner; only the promise is given back. */
	assert(ntimers <= heap->reserved && heap->n <= heap->reserved - ntimers);
	heap->reserved -= ntimers;
}

static void place(struct timer_heap *heap, uint32_t pos, struct reactor_timer *timer)
{
	heap->slot[pos] = timer;
	timer->heap_pos = pos;
}

static void sift_up(struct timer_heap *heap, uint32_t pos, struct reactor_timer *timer)
{
	while (pos > 1 && timer->at_ns < heap->slot[pos / 2]->at_ns) {
		place(heap, pos, heap->slot[pos / 2]);
		pos /= 2;
	}
	place(heap, pos, timer);
}

static void sift_down(struct timer_heap *heap, uint32_t pos, struct reactor_timer *timer)
{
	uint32_t child;

	while ((child = pos * 2) <= heap->n) {
		if (child < heap->n && heap->slot[child + 1]->at_ns < heap->slot[child]->at_ns)
			child++;
		if (timer->at_ns <= heap->slot[child]->at_ns)
			break;
		place(heap, pos, heap->slot[child]);
		pos = child;
	}
	place(heap, pos, timer);
}

/* Puts timer where its time belongs, from pos on. */
static void sift(struct timer_heap *heap, uint32_t pos, struct reactor_timer *timer)
{
	if (pos > 1 && timer->at_ns < heap->slot[pos / 2]->at_ns)
		sift_up(heap, pos, timer);
	else
		sift_down(heap, pos, timer);
}

void reactor_timer_arm(struct reactor *reactor, struct reactor_timer *timer, uint64_t delay_ms)
{
	struct timer_heap *heap = &reactor->timers;
	uint64_t delay_ns;

	assert(timer->fire && reactor == reactor_self());
	if (delay_ms > (UINT64_MAX - reactor->now_ns) / NS_PER_MS)
		delay_ns = UINT64_MAX - reactor->now_ns;
	else
		delay_ns = delay_ms * NS_PER_MS;
	/* At the earliest in the next iteration: a timer that arms itself with
	 * no delay must not keep timers_run() for ever. */
	timer->at_ns = reactor->now_ns + (delay_ns ? delay_ns : 1);
	if (timer->heap_pos != 0) {
		assert(heap->slot[timer->heap_pos] == timer);
		sift(heap, timer->heap_pos, timer);
		return;
	}
	assert(heap->n < heap->reserved);
	heap->n++;
	sift_up(heap, heap->n, timer);
}

void reactor_timer_cancel(struct reactor *reactor, struct reactor_timer *timer)
{
	struct timer_heap *heap = &reactor->timers;
	uint32_t pos = timer->heap_pos;
	struct reactor_timer *last;

	if (pos == 0)
		return;
	assert(pos <= heap->n && heap->slot[pos] == timer);
	timer->heap_pos = 0;
	last = heap->slot[heap->n--];
	if (last != timer)
		sift(heap, pos, last);
}

uint32_t timers_run(struct reactor *reactor)
{
	struct timer_heap *heap = &reactor->timers;
	struct reactor_timer *timer;
	uint32_t n = 0;

	while (heap->n > 0 && heap->slot[1]->at_ns <= reactor->now_ns) {
		timer = heap->slot[1];
		reactor_timer_cancel(reactor, timer);
		timer->fire(timer);
		n++;
	}
	counter_add(&reactor->stats.timers, n);
	return n;
}

uint64_t timers_wait_ns(const struct reactor *reactor, uint64_t now_ns)
{
	const struct timer_heap *heap = &reactor->timers;
	uint64_t wait_ns;

	if (heap->n == 0)
		return UINT64_MAX;
	if (heap->slot[1]->at_ns <= now_ns)
		return 0;
	wait_ns = heap->slot[1]->at_ns - now_ns;
	/* Rounded up, so that the loop does not wake just before the time. */
	if (wait_ns > UINT64_MAX - NS_PER_MS)
		return UINT64_MAX;
	return (wait_ns + NS_PER_MS - 1) / NS_PER_MS * NS_PER_MS;
}
