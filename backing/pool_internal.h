/*
 * What pool.c and volume.c share, and offline commands need of the file.
 */
#ifndef BACKING_POOL_INTERNAL_H
#define BACKING_POOL_INTERNAL_H

#include "backing/backing.h"
#include "backing/pool.h"

/* Opens and locks the file or device of a pool.  0 or -errno with a text. */
int pool_file_open(const char *path, bool read_only, int *fd, struct err *err);
/* Makes the missing file, with a pool in it, where that is allowed: size given,
 * not below /dev, not must_exist. */
int pool_file_create(const struct pool_settings *settings, struct err *err);
/* Makes a pool in a file or device that is there; size 0: all of it.  -EEXIST
 * when something seems to be on it and !force. */
int pool_file_take(const char *path, uint64_t size, bool force, struct err *err);

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
