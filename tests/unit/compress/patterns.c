#include "tests/unit/compress/patterns.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE 4096u

uint32_t pattern_next(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

static void fill_text(uint8_t *data, size_t len, uint32_t seed)
{
	static const char *const words[] = { "the ",   "store ", "of ",	   "a ",  "volume ",
					     "keeps ", "each ",	 "record", ", ",  "owner\n",
					     "and ",   "its ",	 "map ",   "in ", "log",
					     ". ",     "group ", "seq=" };
	size_t at = 0;

	while (at < len) {
		const char *word = words[pattern_next(&seed) % 18];
		size_t n = strlen(word);

		n = n < len - at ? n : len - at;
		memcpy(data + at, word, n);
		at += n;
	}
}

static void fill_blocks(uint8_t *data, size_t len, uint32_t seed)
{
	uint8_t block[8][512];

	for (size_t i = 0; i < sizeof(block); i++)
		block[i / 512][i % 512] = (uint8_t)(pattern_next(&seed) >> 8);
	for (size_t at = 0; at < len; at += 512)
		memcpy(data + at, block[pattern_next(&seed) % 8], len - at < 512 ? len - at : 512);
}

void pattern_fill(enum pattern pattern, uint8_t *data, size_t len, uint32_t seed)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	if (pattern == PATTERN_TEXT)
		fill_text(data, len, seed);
	else if (pattern == PATTERN_BLOCKS)
		fill_blocks(data, len, seed);
	else
		for (size_t i = 0; i < len; i++) {
			if (pattern == PATTERN_ZERO)
				data[i] = 0;
			else if (pattern == PATTERN_RANDOM)
				data[i] = (uint8_t)(pattern_next(&seed) >> 8);
			else if (pattern == PATTERN_REPEATED)
				data[i] = (uint8_t)("thirteen byte"[i % 13] + (seed & 7));
			else
				data[i] = i % 77 == 76
						  ? '\n'
						  : (uint8_t)digits[pattern_next(&seed) >> 8 & 63];
		}
}

static size_t guarded_pages(size_t len)
{
	return (len + PAGE - 1) / PAGE * PAGE;
}

void *guarded_get(size_t len)
{
	size_t pages = guarded_pages(len);
	uint8_t *memory = mmap(NULL, pages + 2 * (size_t)PAGE, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED || mprotect(memory, PAGE, PROT_NONE) != 0 ||
	    mprotect(memory + PAGE + pages, PAGE, PROT_NONE) != 0)
		abort();
	return memory + PAGE + pages - len;
}

void guarded_put(void *memory, size_t len)
{
	size_t pages = guarded_pages(len);

	munmap((uint8_t *)memory + len - pages - PAGE, pages + 2 * (size_t)PAGE);
}

struct codec_choice choice_of(const char *text)
{
	struct codec_choice choice;
	struct err err;

	if (codec_parse(text, &choice, &err) != 0) {
		fprintf(stderr, "%s\n", err.text);
		abort();
	}
	return choice;
}

struct codec_choice choice_at(size_t i)
{
	for (uint8_t id = 0; id < CODEC_COUNT; id++) {
		for (int level = codec_table[id]->level_min; level <= codec_table[id]->level_max;
		     level++) {
			struct codec_choice choice = { id, (int8_t)level };

			if (codec_choice_valid(&choice) && i-- == 0)
				return choice;
		}
	}
	abort();
}

struct codec_workspace *workspace_for(const char *text)
{
	struct codec_workspace *ws = codec_workspace_open();

	if (!ws)
		abort();
	for (size_t i = 0; i < (text ? 1 : CHOICES_COUNT); i++) {
		struct codec_choice choice = text ? choice_of(text) : choice_at(i);

		if (codec_workspace_prepare(ws, &choice, NULL) != 0)
			abort();
	}
	return ws;
}
