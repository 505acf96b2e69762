/*
 * Memory that is freed all at once: a configuration, a login's strings.
 *
 * Allocations are aligned to 16 and zeroed; none is freed alone.  An arena has
 * one owner and is used by one thread at a time.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>

struct arena;

struct arena *arena_create(void);
void arena_destroy(struct arena *arena);
/* Never NULL: control path only, the daemon ends when there is no memory. */
void *arena_alloc(struct arena *arena, size_t size);
char *arena_strdup(struct arena *arena, const char *s);
char *arena_strndup(struct arena *arena, const char *s, size_t len);

#endif
