/* Memory freed all at once: see arena.h. */
#include "base/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARENA_ALIGN 16
/* Small requests share blocks of this size; a larger one gets its own. */
#define BLOCK_LEN (16u << 10)

struct block {
	struct block *next;
	size_t len, used;
	alignas(ARENA_ALIGN) char data[];
};

struct arena {
	struct block *blocks; /* the first one has room, perhaps */
};

static void *must(void *p)
{
	if (!p) {
		fputs("out of memory: the daemon ends\n", stderr);
		abort();
	}
	return p;
}

struct arena *arena_create(void)
{
	return must(calloc(1, sizeof(struct arena)));
}

void arena_destroy(struct arena *arena)
{
	if (!arena)
		return;
	while (arena->blocks) {
		struct block *block = arena->blocks;

		arena->blocks = block->next;
		free(block);
	}
	free(arena);
}

static struct block *block_create(size_t len)
{
	struct block *block;

	if (len > SIZE_MAX - sizeof(*block))
		must(NULL);
	block = must(calloc(1, sizeof(*block) + len));
	block->len = len;
	return block;
}

void *arena_alloc(struct arena *arena, size_t size)
{
	struct block *first = arena->blocks, *block;
	size_t rounded = (size + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);
	void *p;

	if (rounded < size)
		must(NULL);
	if (first && rounded <= first->len - first->used) {
		p = first->data + first->used;
		first->used += rounded;
		return p;
	}
	block = block_create(rounded > BLOCK_LEN / 4 ? rounded : BLOCK_LEN);
	block->used = rounded;
	if (first && block->len == rounded) {
		/* Full from the start: the one with room stays in front. */
		block->next = first->next;
		first->next = block;
	} else {
		block->next = first;
		arena->blocks = block;
	}
	return block->data;
}

char *arena_strndup(struct arena *arena, const char *s, size_t len)
{
	size_t n = strnlen(s, len);
	char *copy = arena_alloc(arena, n + 1);

	memcpy(copy, s, n);
	return copy;
}

char *arena_strdup(struct arena *arena, const char *s)
{
	return arena_strndup(arena, s, strlen(s));
}
