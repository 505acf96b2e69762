/* A directory of the running test program, removed at its end. */
#ifndef TESTS_UNIT_TARGET_SCRATCH_H
#define TESTS_UNIT_TARGET_SCRATCH_H

#include <stddef.h>

const char *scratch_directory(void);
void scratch_path(const char *name, char *out, size_t cap);
void scratch_write(const char *name, const char *text);

#endif
