/*
 * Emptying one segment: what in it lives is written elsewhere.
 *
 * Records are verified and copied as they are, flushed, and renamed by MOVEs in
 * the log; map pages are written anew by merges and checkpoints.  The caller
 * (clean.c) keeps the segment pinned until the MOVEs are merged.
 *
 * In a fiber; one at a time.
 */
#ifndef BACKING_VOLUME_EVACUATE_H
#define BACKING_VOLUME_EVACUATE_H

#include "backing/volume/internal.h"

struct evacuation;

/* NULL: no memory. */
struct evacuation *evacuation_open(struct pool *pool);
void evacuation_close(struct evacuation *evacuation);

/*
 * Copies what lives in the segment.  0; -EUCLEAN: something in it is damaged and
 * stays where it is, so that it cannot become free; -ENOSPC, -EIO, -EROFS: not
 * now.  MOVEs may still be to be posted: evacuation_finish().
 */
int evacuate(struct evacuation *evacuation, uint32_t segno);
/* Every MOVE is in the log and durable; 0 or -errno. */
int evacuation_finish(struct evacuation *evacuation);

#endif
