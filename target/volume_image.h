/*
 * Copies a raw image into a volume, or a volume into one: offline, by a command
 * that has the pool open.
 *
 * Sparse both ways: holes of the file are not read, and what is zero in the
 * volume leaves holes in the file.  SIGINT and SIGTERM end a copy in order.
 *
 * Main thread of a command.
 */
#ifndef TARGET_VOLUME_IMAGE_H
#define TARGET_VOLUME_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "target/pool_access.h"

struct image_import {
	struct pool_session *session;
	struct volume *volume;
	bool zeroes;   /* the volume may hold other data: holes are zeroed in it */
	uint64_t from; /* offset to go on from; durable up to there */
};

/*
 * The file's bytes from import->from on; the rest of the volume is zeroed.  0, or
 * -errno with a text: then import->from is how far it is durable.
 */
int image_import(struct image_import *import, int fd, uint64_t size, struct err *err);

/* All of the volume into an empty file, which gets its size and is synced. */
int image_export(struct pool_session *session, struct volume *volume, int fd, struct err *err);

#endif
