/*
 * Small JSON files that survive a crash: the bricks of the state directory.
 *
 * A file is replaced whole: written under another name, made durable, renamed,
 * and the directory made durable.  A file that is there and cannot be
 * understood is an error, never "none": whoever reads it must not begin anew
 * over it.  Every file is an object with "version": STATE_VERSION.
 *
 * Owner: state.c and state_ports.c.  Any thread that holds state_lock() to
 * write: a name of the process, not of the thread, is what is renamed.
 */
#ifndef TARGET_STATE_FILE_H
#define TARGET_STATE_FILE_H

#include <jansson.h>

#include "base/err.h"

#define STATE_VERSION 1
/* Bytes of one file.  Ports of ten thousand targets take about 1 MiB. */
#define STATE_FILE_MAX (16u << 20)

/* 1: *out is the caller's; 0: there is no such file; -errno with a text. */
int state_file_read(const char *path, json_t **out, struct err *err);

/* Durable when it returns 0; else the old file is as it was. */
int state_file_write(const char *path, const json_t *object, struct err *err);

/* Makes a directory of mode 0700 and the ones above it; 0 when it is there. */
int state_directory_make(const char *path, struct err *err);

/* An exclusive lock among daemons; a descriptor to close, or -errno. */
int state_lock(const char *directory, struct err *err);

#endif
