/*
 * Log-linear histogram of fixed size: 64 buckets per power of two, so that a
 * value is known to 1/64.  For latencies in ns; values above 2^40 land in the
 * last bucket.  One writer (a reactor); readers sum copies.
 */
#ifndef BASE_HIST_H
#define BASE_HIST_H

#include <stdint.h>

#define HIST_SUB_BITS 6
#define HIST_MAX_BITS 40
#define HIST_NBUCKETS ((HIST_MAX_BITS - HIST_SUB_BITS + 1) << HIST_SUB_BITS)

struct hist {
	uint64_t count, sum, min, max;
	uint64_t bucket[HIST_NBUCKETS];
};

void hist_init(struct hist *h);
void hist_add(struct hist *h, uint64_t value);
void hist_merge(struct hist *to, const struct hist *from);

/* The value at or below which parts per million of the entries lie; 0 when
 * there are none.  ppm is 0..1000000 (p99.999 is 999990). */
uint64_t hist_quantile(const struct hist *h, uint32_t ppm);

#endif
