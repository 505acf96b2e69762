/*
 * One crash at the end of a life, for runs that do not enumerate: the image
 * becomes what the power cut left.
 */
#ifndef TESTS_CRASH_CRASHED_H
#define TESTS_CRASH_CRASHED_H

#include "tests/crash/life.h"

/* The image is as before the life; all that is durable, and of what is pending
 * each sector by lot (pending_all: all of it), arrives. */
void crashed_apply(struct image *image, const struct sim *sim, struct rng *rng, bool pending_all);

#endif
