/*
 * Processes: each workload runs in one of its own, two at a time, so that one
 * that aborts or hangs is a failure with a name.
 */
#ifndef TESTS_CRASH_RUNNER_H
#define TESTS_CRASH_RUNNER_H

#include "tests/crash/enumerate.h"

struct task {
	struct plan plan;
	void (*run)(struct plan *plan); /* in the child; fills plan->outcome */
	const char *name;
	unsigned int timeout_s;
};

/* Runs all; says() is called in the parent as each ends, its outcome complete:
 * a child that died has nother raised and a text. */
void runner_run(struct task *tasks, unsigned int ntasks, unsigned int at_once,
		void (*says)(const struct task *task));

#endif
