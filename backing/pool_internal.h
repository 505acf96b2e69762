/*
 * What pool.c and volume.c share, and offline commands need of the file.
 */
#ifndef BACKING_POOL_INTERNAL_H
#define BACKING_POOL_INTERNAL_H

#include "backing/backing.h"
#include "backing/pool.h"

/* Opens and locks the file or device of a pool.  0 or -errno with a text. */
int pool_file_open(const char *path, bool read_only, int *fd, struct err *err);

struct reactor *bk_pool_home(const struct bk_pool *pool);
/* On the home: something was submitted to the engine. */
void bk_pool_kick(struct bk_pool *pool);

/* Stores of volumes, by their link; told of events and figures. */
void bk_pool_join(struct bk_pool *pool, struct list *store);
void bk_pool_leave(struct bk_pool *pool, struct list *store);
/* On the home, under the pool's lock. */
void volume_store_event(struct list *store, enum bk_event event);
void volume_store_refresh(struct list *store, uint64_t available);

#endif
