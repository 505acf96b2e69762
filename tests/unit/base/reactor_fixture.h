/*
 * Reactors for tests: started with small pools, stopped with an assertion that
 * nothing was left on them.
 */
#ifndef TESTS_REACTOR_FIXTURE_H
#define TESTS_REACTOR_FIXTURE_H

#include "base/reactor.h"

/* Skips the test where io_uring is not permitted. */
struct reactor *fixture_reactor(unsigned int index);
void fixture_stop(struct reactor *reactor);

/* Waits until *value is at least want, at most ten seconds; whether it came. */
bool fixture_reaches(_Atomic uint32_t *value, uint32_t want);

/* Sleeps on the control thread. */
void fixture_sleep_ms(unsigned int ms);

#endif
