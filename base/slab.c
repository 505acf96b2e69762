/*
 * Objects of one size: see slab.h.
 *
 * The object freed last is given out first, as it is warm.  The stack of free
 * ones stands apart, since objects keep their contents; those never used yet
 * are not on it, so that making a slab touches no memory.
 */
#include "base/slab.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/mman.h>

#define SLAB_ALIGN 64

struct slab {
	char *memory;
	size_t size; /* of one object, a multiple of SLAB_ALIGN */
	uint32_t count;
	uint32_t fresh; /* index of the first object never given out */
	uint32_t nfree;
	uint32_t *free; /* stack of the indices of those given back */
};

/* Memory that is there when it is touched; NULL when there is no room. */
static void *map_lazily(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static void unmap(void *p, size_t len)
{
	if (p)
		munmap(p, len);
}

struct slab *slab_create(size_t size, uint32_t count)
{
	struct slab *slab;

	assert(size > 0 && count > 0);
	if (size > SIZE_MAX / count - SLAB_ALIGN)
		return NULL;
	slab = calloc(1, sizeof(*slab));
	if (!slab)
		return NULL;
	slab->size = (size + SLAB_ALIGN - 1) & ~(size_t)(SLAB_ALIGN - 1);
	slab->count = count;
	slab->memory = map_lazily(slab->size * count);
	slab->free = map_lazily(sizeof(*slab->free) * count);
	if (!slab->memory || !slab->free) {
		slab_destroy(slab);
		return NULL;
	}
	return slab;
}

void slab_destroy(struct slab *slab)
{
	if (!slab)
		return;
	unmap(slab->memory, slab->size * slab->count);
	unmap(slab->free, sizeof(*slab->free) * slab->count);
	free(slab);
}

void *slab_get(struct slab *slab)
{
	uint32_t i;

	if (slab->nfree > 0)
		i = slab->free[--slab->nfree];
	else if (slab->fresh < slab->count)
		i = slab->fresh++;
	else
		return NULL;
	return slab->memory + slab->size * i;
}

void slab_put(struct slab *slab, void *object)
{
	size_t off = (size_t)((char *)object - slab->memory);

	assert(off < slab->size * slab->fresh && off % slab->size == 0);
	assert(slab->nfree < slab->fresh);
	slab->free[slab->nfree++] = (uint32_t)(off / slab->size);
}

uint32_t slab_free_count(const struct slab *slab)
{
	return slab->count - slab->fresh + slab->nfree;
}

uint32_t slab_count(const struct slab *slab)
{
	return slab->count;
}
