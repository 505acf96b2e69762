/*
 * A share of a pool's memory, given out in blocks of powers of two.
 *
 * Mapped at open and touched only as it is used; what is given back joins its
 * neighbour.  No call of the system after buddy_open().  One thread.
 */
#ifndef BACKING_VOLUME_BUDDY_H
#define BACKING_VOLUME_BUDDY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"

#define BUDDY_ORDERS 32u

struct buddy {
	uint8_t *mem;
	uint8_t *state; /* of each smallest block: buddy.c */
	uint32_t nblocks;
	unsigned int shift; /* of the smallest block */
	size_t used;	    /* bytes of blocks given out */
	struct list free[BUDDY_ORDERS];
};

/* len bytes in blocks of at least 1 << shift (>= 64); false: no memory. */
bool buddy_open(struct buddy *buddy, size_t len, unsigned int shift);
void buddy_close(struct buddy *buddy);
/* Aligned to its size, up to 4 KiB; NULL when there is none. */
void *buddy_get(struct buddy *buddy, size_t len);
void buddy_put(struct buddy *buddy, void *block);
/* Bytes of the block that len bytes take. */
size_t buddy_size(const struct buddy *buddy, size_t len);

#endif
