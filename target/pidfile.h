/*
 * The file that holds our process number while we run.
 *
 * It is locked as long as the process lives, so that a file left behind by a
 * crash is told from one of a daemon that runs.
 *
 * Control thread.
 */
#ifndef TARGET_PIDFILE_H
#define TARGET_PIDFILE_H

#include "base/err.h"

/* A descriptor for pidfile_remove(); -EEXIST when its owner is alive. */
int pidfile_create(const char *path, struct err *err);
/* Removes the file and gives up the lock; fd may be -1: nothing. */
void pidfile_remove(const char *path, int fd);

#endif
