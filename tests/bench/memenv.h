/*
 * A device in memory for benchmarks of the volume engine: the figures are the
 * engine's own, as what the device costs is counted apart.
 *
 * Operations complete in wait(), in order; time is the real one.  One thread.
 */
#ifndef TESTS_BENCH_MEMENV_H
#define TESTS_BENCH_MEMENV_H

#include "backing/volume/env.h"

struct memenv {
	struct venv env;
	uint8_t *memory;
	struct list ios, jobs;
	uint64_t timer_ns; /* 0: none */
	bool kicked;
	uint64_t written, read, flushes; /* bytes; calls */
	uint64_t device_ns, codec_ns;	 /* spent in copies; in jobs */
	uint64_t rng;
};

void memenv_init(struct memenv *mem, uint64_t len);
void memenv_release(struct memenv *mem);
/* Completes what there is and runs the pool; waits for the timer when asked. */
void memenv_turn(struct memenv *mem);
uint64_t clock_ns(void);

#endif
