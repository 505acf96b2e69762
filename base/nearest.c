/* "Did you mean": see option_nearest() in option.h. */
#include "base/option.h"

#include <ctype.h>
#include <string.h>

/* Names of settings are shorter; a longer word is near to none. */
#define WORD_MAX 64

static size_t min3(size_t a, size_t b, size_t c)
{
	size_t m = a < b ? a : b;

	return m < c ? m : c;
}

static bool same(char a, char b)
{
	return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/*
 * Edits from a to b: a letter more, less or other, or two neighbours swapped
 * (Damerau-Levenshtein in its form of optimal alignment), without regard to
 * case.  Both are at most WORD_MAX long.
 */
static size_t edit_distance(const char *a, size_t alen, const char *b, size_t blen)
{
	size_t rows[3][WORD_MAX + 1];
	size_t *before = rows[0], *above = rows[1], *row = rows[2], *spare;

	for (size_t j = 0; j <= blen; j++)
		above[j] = j;
	for (size_t i = 1; i <= alen; i++) {
		row[0] = i;
		for (size_t j = 1; j <= blen; j++) {
			size_t cost = same(a[i - 1], b[j - 1]) ? 0 : 1;

			row[j] = min3(above[j] + 1, row[j - 1] + 1, above[j - 1] + cost);
			if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) &&
			    same(a[i - 2], b[j - 1]) && before[j - 2] + 1 < row[j])
				row[j] = before[j - 2] + 1;
		}
		spare = before;
		before = above;
		above = row;
		row = spare;
	}
	return above[blen];
}

const char *option_nearest(const char *word, const char *const *names, size_t n)
{
	size_t len = strlen(word), best = 0;
	const char *nearest = NULL;

	if (len > WORD_MAX)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		size_t name_len = strlen(names[i]), distance;
		size_t bound = len / 3 > 2 ? len / 3 : 2;

		if (name_len > WORD_MAX)
			continue;
		distance = edit_distance(word, len, names[i], name_len);
		/* Two edits make any two letters out of any two others. */
		if (distance > bound || distance >= len || distance >= name_len)
			continue;
		if (!nearest || distance < best) {
			nearest = names[i];
			best = distance;
		}
	}
	return nearest;
}
