/* Data as records hold it, and memory whose ends are noticed. For tests/unit/compress. */
#ifndef TESTS_UNIT_COMPRESS_PATTERNS_H
#define TESTS_UNIT_COMPRESS_PATTERNS_H

#include <stddef.h>
#include <stdint.h>

#include "compress/codec.h"

enum pattern {
	PATTERN_ZERO,
	PATTERN_TEXT,	  /* words of a small language */
	PATTERN_RANDOM,	  /* does not compress */
	PATTERN_BASE64,	  /* random, 6 bits a byte, in lines */
	PATTERN_REPEATED, /* 13 bytes over and over */
	PATTERN_BLOCKS,	  /* 512-byte blocks of random bytes that come again */
	PATTERN_COUNT,
};

/* The same bytes for the same arguments. */
void pattern_fill(enum pattern pattern, uint8_t *data, size_t len, uint32_t seed);

/* A sequence of numbers that looks random; *state is its seed. */
uint32_t pattern_next(uint32_t *state);

/*
 * len bytes of which the last stands before a page that faults, and the first
 * within 4 KiB behind one.  Aborts when there is no memory.
 */
void *guarded_get(size_t len);
void guarded_put(void *memory, size_t len);

/* A workspace prepared for text, or for all choices when it is NULL; aborts when it can't. */
struct codec_workspace *workspace_for(const char *text);
struct codec_choice choice_of(const char *text);

/* The i-th of all valid choices, in a fixed order; count of them. */
#define CHOICES_COUNT (1 + 1 + 9 + (1 + 63 + 7) + 19)
struct codec_choice choice_at(size_t i);

#endif
