/*
 * Cleaning: segments in which little lives are emptied.
 *
 * A victim is pinned; its records that still live are verified, copied as they
 * are to a bulk stream, flushed, and a MOVE in the log renames each where the
 * region's entries name it by address and check.  When every MOVE is merged and
 * two checkpoints have passed, the victim is reusable.
 */
#ifndef BACKING_VOLUME_CLEAN_H
#define BACKING_VOLUME_CLEAN_H

#include "backing/volume/internal.h"

int cleaner_open(struct pool *pool, struct err *err);
void cleaner_close(struct pool *pool);
void cleaner_kick(struct pool *pool); /* free segments are fewer */
void cleaner_tick(struct pool *pool);
/* True: users' writes must wait, cleaning is behind. */
bool cleaner_behind(const struct pool *pool);
void cleaner_stop(struct pool *pool); /* in a fiber (quiesce) */

#endif
