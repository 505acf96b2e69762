/* What to know of a record before it is compressed: see probe.h. */
#include "compress/probe.h"

#include <string.h>

#define SAMPLES	   16u
#define SAMPLE_LEN 256u

bool probe_zero(const void *data, size_t len)
{
	const uint8_t *p = data;
	uint64_t word, any = 0;

	/* Most records that are not zero say so in their first bytes. */
	for (; len >= 64 && any == 0; p += 64, len -= 64) {
		for (size_t i = 0; i < 64; i += sizeof(word)) {
			memcpy(&word, p + i, sizeof(word));
			any |= word;
		}
	}
	for (; len > 0 && any == 0; p++, len--)
		any |= *p;
	return any == 0;
}

/* 256 * log2(1 + i / 64), rounded. */
static const uint8_t log2_fraction[64] = {
	0,   6,	  11,  17,  22,	 28,  33,  38,	44,  49,  54,  59,  63,	 68,  73,  78,
	82,  87,  92,  96,  100, 105, 109, 113, 118, 122, 126, 130, 134, 138, 142, 146,
	150, 154, 157, 161, 165, 169, 172, 176, 179, 183, 186, 190, 193, 197, 200, 203,
	207, 210, 213, 216, 220, 223, 226, 229, 232, 235, 238, 241, 244, 247, 250, 253,
};

/* 256 * log2(n) for n from 1 to SAMPLES * SAMPLE_LEN, good to 1/40 bit. */
static uint32_t log2_fixed(uint32_t n)
{
	uint32_t exponent = 31 - (uint32_t)__builtin_clz(n);
	uint32_t mantissa = exponent >= 6 ? n >> (exponent - 6) : n << (6 - exponent);

	return exponent * PROBE_BIT + log2_fraction[mantissa & 63];
}

/* Four counts a value: one would have its next wait for its last. */
static void count_bytes(uint16_t counts[4][256], const uint8_t *p, size_t len)
{
	for (; len >= 4; p += 4, len -= 4) {
		counts[0][p[0]]++;
		counts[1][p[1]]++;
		counts[2][p[2]]++;
		counts[3][p[3]]++;
	}
	for (; len > 0; p++, len--)
		counts[0][*p]++;
}

/* H = log2(n) - sum(c * log2(c)) / n */
uint32_t probe_entropy(const void *data, size_t len)
{
	uint16_t counts[4][256] = { 0 };
	const uint8_t *p = data;
	uint32_t n, sum = 0;

	if (len == 0)
		return 0;
	if (len <= SAMPLES * SAMPLE_LEN) {
		n = (uint32_t)len;
		count_bytes(counts, p, len);
	} else {
		n = SAMPLES * SAMPLE_LEN;
		for (size_t i = 0; i < SAMPLES; i++)
			count_bytes(counts, p + (len - SAMPLE_LEN) / (SAMPLES - 1) * i, SAMPLE_LEN);
	}
	for (size_t i = 0; i < 256; i++) {
		uint32_t c = counts[0][i] + counts[1][i] + counts[2][i] + counts[3][i];

		if (c > 0)
			sum += c * log2_fixed(c);
	}
	return log2_fixed(n) - sum / n;
}

bool probe_history_wants(struct probe_history *history)
{
	if (history->raw_run < PROBE_RAW_RUN)
		return true;
	history->skipped++;
	if (history->skipped < PROBE_SKIP)
		return false;
	history->skipped = 0;
	return true;
}

void probe_history_tell(struct probe_history *history, bool compressed)
{
	if (compressed)
		history->raw_run = 0;
	else if (history->raw_run < PROBE_RAW_RUN)
		history->raw_run++;
}
