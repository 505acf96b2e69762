/*
 * Seeded randomness of the crash tests: the same seed, the same run.
 *
 * splitmix64; a stream of its own for each purpose, made by rng_of() from the
 * seed and what it is for, so that one more draw here changes nothing there.
 */
#ifndef TESTS_CRASH_RNG_H
#define TESTS_CRASH_RNG_H

#include <stdbool.h>
#include <stdint.h>

struct rng {
	uint64_t state;
};

static inline uint64_t rng_mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

static inline struct rng rng_of(uint64_t seed, uint64_t purpose, uint64_t number)
{
	return (struct rng){ rng_mix(rng_mix(seed + 1) ^ rng_mix(purpose * 77 + 5) ^
				     (number + 1) * 0x9e3779b97f4a7c15ull) };
}

static inline uint64_t rng_next(struct rng *rng)
{
	return rng_mix(rng->state += 0x9e3779b97f4a7c15ull);
}

/* 0..n-1 */
static inline uint64_t rng_below(struct rng *rng, uint64_t n)
{
	return n ? rng_next(rng) % n : 0;
}

/* true in one of n cases */
static inline bool rng_one_in(struct rng *rng, uint64_t n)
{
	return rng_below(rng, n) == 0;
}

#endif
