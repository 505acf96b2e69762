/*
 * What a byte of a pool's device belongs to, for damage done on purpose: read
 * from the format alone, without the engine.
 */
#ifndef TESTS_CRASH_LOCATE_H
#define TESTS_CRASH_LOCATE_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/crash/image.h"

struct place {
	const char *kind; /* "super", "segment", "group", "record", "leaf", ... */
	bool record;	  /* of a volume, which this is: */
	uint32_t volume;
	uint64_t lba, nsectors;
};

/* segment_len: of the pool. */
struct place locate(const struct image *image, uint32_t segment_len, uint64_t off);

#endif
