/*
 * The environment of a thread that may block: offline commands, and the opening
 * of a pool before the daemon hands it to its home reactor.
 *
 * Every operation is made at once by system calls, every job at once by the
 * thread itself; what they complete is told by wait(), as env.h wants it.
 *
 * Owner and thread: one thread, that of the pool.  The open file is the caller's
 * and stays so: it has locked it, and closes it after sync_env_close().
 *
 * What a host cannot do is no error: where fallocate() is not supported, ALLOCATE
 * promises nothing and PUNCH gives nothing back.
 */
#ifndef BACKING_VOLUME_SYNC_H
#define BACKING_VOLUME_SYNC_H

#include "backing/volume/env.h"
#include "base/err.h"

/*
 * fd: a regular file or a block device, open for reading, and for writing unless
 * read_only.  It is switched to O_DIRECT where that works, and left so; name is
 * for messages.  NULL with a text.
 */
struct venv *sync_env_open(int fd, const char *name, bool read_only, struct err *err);
void sync_env_close(struct venv *env); /* nothing is in flight; NULL: nothing */

#endif
