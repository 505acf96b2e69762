/*
 * The names of backing/volume/mutant.h, and which are to be noticed by which
 * suite.  One row a mutant; the table is complete (asserted when it is used).
 */
#ifndef TESTS_CRASH_MUTANTS_H
#define TESTS_CRASH_MUTANTS_H

#include <stdint.h>

#include "backing/volume/mutant.h"

struct mutant_row {
	const char *name;
	const char *profiles; /* tried first, separated by spaces; damage: faults and flips */
};

extern const struct mutant_row mutant_rows[MUTANT_COUNT];

/* MUTANT_NONE: no such name. */
uint32_t mutant_by_name(const char *name);

#endif
