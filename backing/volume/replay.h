/*
 * Replay: a descriptor of the log takes effect in memory once more.
 *
 * The same functions are called as when a group is laid out (internal.h,
 * "Order"); what a table page has applied already they leave alone.  What is
 * about a volume that is gone changes live counts only.
 */
#ifndef BACKING_VOLUME_REPLAY_H
#define BACKING_VOLUME_REPLAY_H

#include "backing/volume/internal.h"
#include "backing/volume/logwalk.h"

/* In a fiber: all of a group.  0; -EUCLEAN, -EIO: a map page cannot be had;
 * -ENOMEM. */
int replay_group(struct pool *pool, const struct logwalk_group *group);

#endif
