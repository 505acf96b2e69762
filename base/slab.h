/*
 * Objects of one size from an arena that is sized at start: command slots,
 * sessions, connections.
 *
 * slab_get() never allocates; it returns NULL when all are taken, and whoever
 * calls it must have a bound that keeps this from being an error (a window
 * that does not grow, a connection that is not accepted).  Memory is touched
 * only when used.  Contents of an object are kept between put and get: the
 * caller initialises what it needs.
 *
 * One thread at a time; a slab belongs to one reactor.
 */
#ifndef BASE_SLAB_H
#define BASE_SLAB_H

#include <stddef.h>
#include <stdint.h>

struct slab;

/* size bytes each, aligned to 64; NULL when there is no memory. */
struct slab *slab_create(size_t size, uint32_t count);
void slab_destroy(struct slab *slab);
void *slab_get(struct slab *slab);
void slab_put(struct slab *slab, void *object);
uint32_t slab_free_count(const struct slab *slab);
uint32_t slab_count(const struct slab *slab);

#endif
