/*
 * What the files of this folder share and nobody else needs: the stores of
 * backing_table[], and the locks on what they open.
 */
#ifndef BACKING_STORE_H
#define BACKING_STORE_H

#include "backing/backing.h"

extern const struct backing_ops file_ops;   /* file.c */
extern const struct backing_ops block_ops;  /* block.c */
extern const struct backing_ops memory_ops; /* memory.c */
extern const struct backing_ops volume_ops; /* volume.c */
extern const struct backing_ops fault_ops;  /* fault.c */

/* A zeroed struct of a store with name and block sizes set, unopened; NULL
 * without memory. */
struct backing *backing_alloc(const struct backing_ops *ops, const char *name);
/* Frees it; the store is closed or was never opened. */
void backing_free(struct backing *backing);

/* Counters have one writer, their reactor; others read them at any time. */
static inline void bk_count(uint64_t *counter, uint64_t n)
{
	__atomic_store_n(counter, *counter + n, __ATOMIC_RELAXED);
}

/* Marks the store as gone and says so once; everything fails from now on. */
void backing_set_broken(struct backing *backing, int err);

/* Tells who watches; any thread. */
void backing_event(struct backing *backing, enum bk_event event);

/*
 * May the file that is missing at path be made?  0, or -ENOENT with why not: it
 * is below /dev, or must_exist.
 */
int store_may_create(const char *path, bool must_exist, struct err *err);

/* Makes the name of a new file durable: the directory that it is in. */
int store_sync_directory(const char *path, struct err *err);

/* The errors by which a file or device says that it is gone for good. */
bool backing_err_is_gone(int err);

/*
 * Locks all of the open file against other daemons, and the other LUNs of this
 * one: an OFD lock (fcntl(2)), which lives as long as the open file.  Readers
 * share.  -EBUSY with a text that says who cannot and why.
 */
int lock_file(int fd, const char *path, bool read_only, struct err *err);

/* The text for a path that cannot be opened for writing. */
int lock_not_writable(const char *path, int code, struct err *err);

/* The text for a block device that open(2) with O_EXCL refused: what has it. */
int lock_device_busy(const char *path, struct err *err);

#endif
