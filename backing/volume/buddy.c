#include "backing/volume/buddy.h"

#include <assert.h>
#include <sys/mman.h>

/* The state of a block's first smallest block: its order, and whether it is free. */
#define STATE_FREE 0x80u

static void *map(size_t len)
{
	void *mem = mmap(NULL, len, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return mem == MAP_FAILED ? NULL : mem;
}

static size_t block_len(const struct buddy *buddy, unsigned int order)
{
	return (size_t)1 << (buddy->shift + order);
}

static void free_add(struct buddy *buddy, uint32_t i, unsigned int order)
{
	buddy->state[i] = (uint8_t)(STATE_FREE | order);
	list_add_head(&buddy->free[order],
		      (struct list *)(buddy->mem + ((size_t)i << buddy->shift)));
}

bool buddy_open(struct buddy *buddy, size_t len, unsigned int shift)
{
	uint32_t i = 0;

	assert(shift >= 6 && len >> shift <= UINT32_MAX / 2);
	buddy->shift = shift;
	buddy->nblocks = (uint32_t)(len >> shift);
	buddy->used = 0;
	buddy->mem = map((size_t)buddy->nblocks << shift);
	buddy->state = map(buddy->nblocks);
	if (!buddy->mem || !buddy->state) {
		buddy_close(buddy);
		return false;
	}
	for (unsigned int order = 0; order < BUDDY_ORDERS; order++)
		list_init(&buddy->free[order]);
	for (unsigned int order = BUDDY_ORDERS; order-- > 0;)
		for (; buddy->nblocks - i >= 1ull << order; i += 1u << order)
			free_add(buddy, i, order);
	return true;
}

void buddy_close(struct buddy *buddy)
{
	if (buddy->mem)
		munmap(buddy->mem, (size_t)buddy->nblocks << buddy->shift);
	if (buddy->state)
		munmap(buddy->state, buddy->nblocks);
	buddy->mem = buddy->state = NULL;
}

static unsigned int order_of(const struct buddy *buddy, size_t len)
{
	unsigned int order = 0;

	while (block_len(buddy, order) < len)
		order++;
	return order;
}

size_t buddy_size(const struct buddy *buddy, size_t len)
{
	return block_len(buddy, order_of(buddy, len));
}

void *buddy_get(struct buddy *buddy, size_t len)
{
	unsigned int want = order_of(buddy, len), order = want;
	struct list *link;
	uint32_t i;

	while (order < BUDDY_ORDERS && list_empty(&buddy->free[order]))
		order++;
	if (order == BUDDY_ORDERS)
		return NULL;
	link = list_pop(&buddy->free[order]);
	i = (uint32_t)(((size_t)((uint8_t *)link - buddy->mem)) >> buddy->shift);
	while (order > want) {
		order--;
		free_add(buddy, i + (1u << order), order);
	}
	buddy->state[i] = (uint8_t)want;
	buddy->used += block_len(buddy, want);
	return link;
}

void buddy_put(struct buddy *buddy, void *block)
{
	uint32_t i = (uint32_t)(((size_t)((uint8_t *)block - buddy->mem)) >> buddy->shift);
	unsigned int order;

	assert(i < buddy->nblocks && buddy->state[i] < BUDDY_ORDERS);
	order = buddy->state[i];
	buddy->used -= block_len(buddy, order);
	for (; order + 1 < BUDDY_ORDERS; order++) {
		uint32_t other = i ^ (1u << order);

		if (other >= buddy->nblocks || buddy->state[other] != (STATE_FREE | order))
			break;
		list_del((struct list *)(buddy->mem + ((size_t)other << buddy->shift)));
		buddy->state[other] = BUDDY_ORDERS;
		buddy->state[i] = BUDDY_ORDERS;
		i &= ~(1u << order);
	}
	free_add(buddy, i, order);
}
