/*
 * Log-linear histogram: see hist.h.
 *
 * Values below 2^SUB_BITS have a bucket each.  Above, a value with its highest
 * bit at position e has SUB_BITS bits below that bit, which name its bucket
 * within row e.
 */
#include "base/hist.h"

#include <assert.h>
#include <string.h>

#define NSUB	  (UINT64_C(1) << HIST_SUB_BITS)
#define VALUE_MAX ((UINT64_C(1) << HIST_MAX_BITS) - 1)

_Static_assert(HIST_NBUCKETS == 2240, "35 rows of 64");

static unsigned int bucket_of(uint64_t value)
{
	unsigned int top, row;

	if (value < NSUB)
		return (unsigned int)value;
	if (value > VALUE_MAX)
		return HIST_NBUCKETS - 1;
	top = 63 - (unsigned int)__builtin_clzll(value);
	row = top - HIST_SUB_BITS + 1;
	return (unsigned int)((row << HIST_SUB_BITS) + (value >> (top - HIST_SUB_BITS)) - NSUB);
}

/* The largest value that lands in the bucket. */
static uint64_t bucket_max(unsigned int bucket)
{
	unsigned int row = bucket >> HIST_SUB_BITS;
	uint64_t sub = bucket & (NSUB - 1);

	if (row == 0)
		return sub;
	return ((NSUB + sub + 1) << (row - 1)) - 1;
}

void hist_init(struct hist *h)
{
	memset(h, 0, sizeof(*h));
}

void hist_add(struct hist *h, uint64_t value)
{
	if (h->count == 0 || value < h->min)
		h->min = value;
	if (value > h->max)
		h->max = value;
	h->count++;
	h->sum += value;
	h->bucket[bucket_of(value)]++;
}

void hist_merge(struct hist *to, const struct hist *from)
{
	if (from->count == 0)
		return;
	if (to->count == 0 || from->min < to->min)
		to->min = from->min;
	if (from->max > to->max)
		to->max = from->max;
	to->count += from->count;
	to->sum += from->sum;
	for (unsigned int i = 0; i < HIST_NBUCKETS; i++)
		to->bucket[i] += from->bucket[i];
}

uint64_t hist_quantile(const struct hist *h, uint32_t ppm)
{
	uint64_t rank, seen = 0, value;

	assert(ppm <= 1000000);
	if (h->count == 0)
		return 0;
	/* The smallest number of entries that is at least this part of all;
	 * the product in two halves, as counts may be large. */
	rank = h->count / 1000000 * ppm + (h->count % 1000000 * ppm + 999999) / 1000000;
	if (rank == 0)
		return h->min;
	for (unsigned int i = 0; i < HIST_NBUCKETS; i++) {
		seen += h->bucket[i];
		if (seen < rank)
			continue;
		value = bucket_max(i);
		if (value < h->min)
			return h->min;
		return value > h->max || i == HIST_NBUCKETS - 1 ? h->max : value;
	}
	return h->max;
}
