/* Fibers, by ucontext: portable, and known to debuggers and sanitizers. */
#include "base/fiber.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define FIBER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FIBER_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define FIBER_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define FIBER_TSAN 1
#endif
#endif

#ifdef FIBER_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef FIBER_TSAN
#include <sanitizer/tsan_interface.h>
#endif

enum fiber_state { FIBER_FREE, FIBER_READY, FIBER_RUNNING, FIBER_WAITING, FIBER_ENDED };

/* A stack with what runs on it; the loop of fiber_run() is one too. */
struct context {
	ucontext_t ucontext;
	const void *stack;
	size_t stack_len;
	void *asan_stack; /* fake stack while it does not run */
	void *tsan;
};

struct fiber {
	struct list link;	/* free or ready; else alone */
	struct list queue_link; /* of a fiber_queue */
	struct fiber_set *set;
	struct context context;
	void (*fn)(void *arg);
	void *arg;
	enum fiber_state state;
	bool woken; /* the next fiber_wait() returns at once */
};

struct fiber_set {
	struct context loop; /* of the thread, within fiber_run() */
	struct list free, ready;
	unsigned int count;
	uint8_t *stacks; /* each behind its guard page */
	size_t stacks_len;
	unsigned int nfibers;
	struct fiber fibers[];
};

static _Thread_local struct fiber *running;

/* ---- switching ---- */

/* from ends when it is dead; then this does not return. */
static void context_switch(struct context *from, struct context *to, bool dead)
{
#ifdef FIBER_ASAN
	__sanitizer_start_switch_fiber(dead ? NULL : &from->asan_stack, to->stack, to->stack_len);
#endif
#ifdef FIBER_TSAN
	__tsan_switch_to_fiber(to->tsan, 0);
#endif
	(void)dead;
	swapcontext(&from->ucontext, &to->ucontext);
#ifdef FIBER_ASAN
	__sanitizer_finish_switch_fiber(from->asan_stack, NULL, NULL);
#endif
}

static void fiber_begin(void)
{
	struct fiber *self = running;

#ifdef FIBER_ASAN
	/* The first switch away from the loop says where its stack is. */
	__sanitizer_finish_switch_fiber(NULL, &self->set->loop.stack, &self->set->loop.stack_len);
#endif
	self->fn(self->arg);
	self->state = FIBER_ENDED;
	context_switch(&self->context, &self->set->loop, true);
	abort();
}

static void context_prepare(struct context *context)
{
	getcontext(&context->ucontext);
	context->ucontext.uc_stack.ss_sp = (void *)context->stack;
	context->ucontext.uc_stack.ss_size = context->stack_len;
	context->ucontext.uc_link = NULL;
	makecontext(&context->ucontext, fiber_begin, 0);
#ifdef FIBER_TSAN
	context->tsan = __tsan_create_fiber(0);
#endif
}

/* ---- sets ---- */

static bool stacks_map(struct fiber_set *set)
{
	size_t guard = (size_t)sysconf(_SC_PAGESIZE), each = guard + FIBER_STACK;

	set->stacks_len = set->nfibers * each;
	set->stacks = mmap(NULL, set->stacks_len, PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
	if (set->stacks == MAP_FAILED)
		return false;
	for (unsigned int i = 0; i < set->nfibers; i++) {
		uint8_t *stack = set->stacks + i * each + guard;

		if (mprotect(stack, FIBER_STACK, PROT_READ | PROT_WRITE) != 0) {
			munmap(set->stacks, set->stacks_len);
			return false;
		}
		set->fibers[i].context.stack = stack;
		set->fibers[i].context.stack_len = FIBER_STACK;
	}
	return true;
}

struct fiber_set *fiber_set_create(unsigned int nfibers_max)
{
	struct fiber_set *set;

	assert(nfibers_max > 0);
	set = calloc(1, sizeof(*set) + nfibers_max * sizeof(set->fibers[0]));
	if (!set)
		return NULL;
	set->nfibers = nfibers_max;
	if (!stacks_map(set)) {
		free(set);
		return NULL;
	}
	list_init(&set->free);
	list_init(&set->ready);
	for (unsigned int i = 0; i < nfibers_max; i++) {
		struct fiber *fiber = &set->fibers[i];

		fiber->set = set;
		list_init(&fiber->queue_link);
		list_init(&fiber->link);
		list_add_tail(&set->free, &fiber->link);
	}
	return set;
}

void fiber_set_destroy(struct fiber_set *set)
{
	if (!set)
		return;
	assert(set->count == 0);
	munmap(set->stacks, set->stacks_len);
	free(set);
}

void fiber_set_abandon(struct fiber_set *set)
{
	if (!set)
		return;
#ifdef FIBER_TSAN
	for (unsigned int i = 0; i < set->nfibers; i++)
		if (set->fibers[i].state != FIBER_FREE)
			__tsan_destroy_fiber(set->fibers[i].context.tsan);
#endif
#ifdef FIBER_ASAN
	/* What their frames have poisoned must not hurt who maps this next. */
	for (unsigned int i = 0; i < set->nfibers; i++)
		__asan_unpoison_memory_region(set->fibers[i].context.stack, FIBER_STACK);
#endif
	set->count = 0;
	fiber_set_destroy(set);
}

bool fiber_start(struct fiber_set *set, void (*fn)(void *arg), void *arg)
{
	struct list *link = list_pop(&set->free);
	struct fiber *fiber;

	if (!link)
		return false;
	fiber = container_of(link, struct fiber, link);
	assert(fiber->state == FIBER_FREE);
	fiber->fn = fn;
	fiber->arg = arg;
	fiber->woken = false;
	context_prepare(&fiber->context);
	set->count++;
	fiber->state = FIBER_READY;
	list_add_tail(&set->ready, &fiber->link);
	return true;
}

static void fiber_end(struct fiber *fiber)
{
	struct fiber_set *set = fiber->set;

	assert(list_empty(&fiber->link) && list_empty(&fiber->queue_link));
#ifdef FIBER_TSAN
	__tsan_destroy_fiber(fiber->context.tsan);
#endif
#ifdef FIBER_ASAN
	/* What its last frames poisoned is nothing to the next one. */
	__asan_unpoison_memory_region(fiber->context.stack, fiber->context.stack_len);
#endif
	fiber->state = FIBER_FREE;
	set->count--;
	list_add_head(&set->free, &fiber->link); /* its stack is touched already */
}

void fiber_run(struct fiber_set *set)
{
	struct list *link;

	assert(!running);
#ifdef FIBER_TSAN
	set->loop.tsan = __tsan_get_current_fiber();
#endif
	while ((link = list_pop(&set->ready)) != NULL) {
		struct fiber *fiber = container_of(link, struct fiber, link);

		assert(fiber->state == FIBER_READY);
		fiber->state = FIBER_RUNNING;
		running = fiber;
		context_switch(&set->loop, &fiber->context, false);
		running = NULL;
		if (fiber->state == FIBER_ENDED)
			fiber_end(fiber);
	}
}

bool fiber_ready(const struct fiber_set *set)
{
	return !list_empty(&set->ready);
}

unsigned int fiber_count(const struct fiber_set *set)
{
	return set->count;
}

/* ---- within a fiber ---- */

struct fiber *fiber_self(void)
{
	return running;
}

static void fiber_leave(struct fiber *self)
{
	context_switch(&self->context, &self->set->loop, false);
}

void fiber_wait(void)
{
	struct fiber *self = running;

	assert(self && self->state == FIBER_RUNNING);
	if (!self->woken) {
		self->state = FIBER_WAITING;
		fiber_leave(self);
	}
	self->woken = false;
}

void fiber_yield(void)
{
	struct fiber *self = running;

	assert(self && self->state == FIBER_RUNNING);
	self->state = FIBER_READY;
	list_add_tail(&self->set->ready, &self->link);
	fiber_leave(self);
}

void fiber_wake(struct fiber *fiber)
{
	assert(fiber->state != FIBER_FREE && fiber->state != FIBER_ENDED);
	if (fiber->state != FIBER_WAITING) {
		fiber->woken = true;
		return;
	}
	fiber->state = FIBER_READY;
	list_add_tail(&fiber->set->ready, &fiber->link);
}

/* ---- queues ---- */

void fiber_queue_init(struct fiber_queue *queue)
{
	list_init(&queue->waiting);
}

void fiber_queue_wait(struct fiber_queue *queue)
{
	struct fiber *self = running;

	assert(self && list_empty(&self->queue_link));
	list_add_tail(&queue->waiting, &self->queue_link);
	while (!list_empty(&self->queue_link))
		fiber_wait();
}

void fiber_queue_wake_all(struct fiber_queue *queue)
{
	struct list *link;

	while ((link = list_pop(&queue->waiting)) != NULL)
		fiber_wake(container_of(link, struct fiber, queue_link));
}
