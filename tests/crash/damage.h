/*
 * Faults and damage: devices that fail, lie and rot.
 *
 * Faults: a short workload once for each N, in which the N'th operation of a
 * kind fails (or all from it on); then the power goes, the device is well again,
 * and what was promised must be there.
 *
 * Flips: one bit in each block of a pool at rest and of one with a log to
 * replay.  What is read is right or cannot be read, or the pool says why it is
 * not opened or read-only; wrong data is a failure, and so is damage that is
 * taken for a torn tail.
 */
#ifndef TESTS_CRASH_DAMAGE_H
#define TESTS_CRASH_DAMAGE_H

#include "tests/crash/enumerate.h"

/* For runner.h: plan->fault says which; count SIM_NEVER: from the N'th on. */
void faults_run(struct plan *plan);
/* A pool with something in it (closed, or given up when all is flushed and a
 * marker written) and its oracle; the image holds it. */
struct oracle *damage_prepare(struct plan *plan, struct image *image, bool close);

/* plan->fault.count 0: of a pool that was closed; 1: of one that crashed. */
void flips_run(struct plan *plan);

#endif
