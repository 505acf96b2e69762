/*
 * Long runs: a tiny pool at the limit of admission, written many times over
 * against a shadow copy (the oracle), with restarts and crashes.
 */
#ifndef TESTS_CRASH_SOAK_H
#define TESTS_CRASH_SOAK_H

#include "tests/crash/enumerate.h"

/* For runner.h: until plan->seconds are over or the pool was written 100 times. */
void soak_run(struct plan *plan);

#endif
