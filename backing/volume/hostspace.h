/*
 * The host's space under free segments of a thin file: had before it is needed,
 * given back when there is much of it.
 *
 * A write that the host has no room for would fence the pool after it was
 * promised.  So some free segments are always backed by space that the host has
 * given; when it gives no more, that is found while those are left, and only
 * segments that are backed count for admission (segments_usable()).
 *
 * Segments are backed from where something was written to them until they are
 * punched.  On block devices all are.  For segment.c; in fibers of its own.
 */
#ifndef BACKING_VOLUME_HOSTSPACE_H
#define BACKING_VOLUME_HOSTSPACE_H

#include "backing/volume/segment.h"

/* A segment was taken, or some became reusable: perhaps there is work. */
void hostspace_kick(struct pool *pool);
/* In a fiber: nothing runs, nothing begins (quiesce); until the next kick after. */
void hostspace_stop(struct pool *pool);

#endif
