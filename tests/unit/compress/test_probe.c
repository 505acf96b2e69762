/* What is zero, what looks compressible, and when not to look. */
#include "compress/probe.h"

#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/compress/patterns.h"
#include "tests/unit/quintain_test.h"

static const size_t lens[] = { 512, 1000, 4096, 4097, 16384, 131072, CODEC_LEN_MAX };
#define LENS (sizeof(lens) / sizeof(lens[0]))

static uint8_t data[2 * CODEC_LEN_MAX], stored[CODEC_LEN_MAX + 65536];

static void expect_all(enum pattern pattern, bool compressible)
{
	for (size_t i = 0; i < LENS; i++) {
		for (uint32_t seed = 0; seed < 20; seed++) {
			pattern_fill(pattern, data, lens[i], seed);
			CU_ASSERT_EQUAL(probe_compressible(data, lens[i]), compressible);
		}
	}
}

static void probe_takes_text_and_base64_for_compressible(void)
{
	expect_all(PATTERN_TEXT, true);
	expect_all(PATTERN_BASE64, true);
	expect_all(PATTERN_REPEATED, true);
	expect_all(PATTERN_ZERO, true);
}

static void probe_takes_random_data_for_incompressible(void)
{
	expect_all(PATTERN_RANDOM, false);
}

static void probe_takes_deflated_data_for_incompressible(void)
{
	struct libdeflate_compressor *deflate = libdeflate_alloc_compressor(6);
	size_t n;

	CU_ASSERT_PTR_NOT_NULL_FATAL(deflate);
	pattern_fill(PATTERN_BASE64, data, sizeof(data), 1);
	n = libdeflate_deflate_compress(deflate, data, CODEC_LEN_MAX, stored, sizeof(stored));
	CU_ASSERT(n > 4 * 16384);
	for (size_t at = 0; at + 16384 <= n; at += 16384)
		CU_ASSERT_FALSE(probe_compressible(stored + at, 16384));
	libdeflate_free_compressor(deflate);
}

/* Half of the samples are enough: a record that is half text is worth a try. */
static void probe_takes_half_random_data_for_compressible(void)
{
	for (size_t i = 0; i < LENS; i++) {
		pattern_fill(PATTERN_RANDOM, data, lens[i], 1);
		pattern_fill(PATTERN_TEXT, data, lens[i] / 2, 2);
		CU_ASSERT(probe_compressible(data, lens[i]));
	}
}

/* log2(x) for x >= 1, by squaring: 30 bits behind the point. */
static double log2_of(double x)
{
	double result = 0;

	for (; x >= 2; x /= 2)
		result++;
	for (double bit = 0.5; bit > 1e-9; bit /= 2) {
		x *= x;
		if (x >= 2) {
			x /= 2;
			result += bit;
		}
	}
	return result;
}

static double entropy_of(const uint8_t *p, size_t len)
{
	double counts[256] = { 0 }, h = 0;

	for (size_t i = 0; i < len; i++)
		counts[p[i]]++;
	for (size_t i = 0; i < 256; i++)
		if (counts[i] > 0)
			h += counts[i] / (double)len * log2_of((double)len / counts[i]);
	return h;
}

static void probe_entropy_is_that_of_the_bytes(void)
{
	for (int pattern = 0; pattern < PATTERN_COUNT; pattern++) {
		for (size_t len = 1; len <= 4096; len += 1 + len / 3) {
			double fixed, exact;

			pattern_fill((enum pattern)pattern, data, len, (uint32_t)len);
			fixed = probe_entropy(data, len) / (double)PROBE_BIT;
			exact = entropy_of(data, len);
			CU_ASSERT(fixed - exact < 0.05 && exact - fixed < 0.05);
		}
	}
	CU_ASSERT_EQUAL(probe_entropy(data, 0), 0);
}

static void probe_reads_within_the_record(void)
{
	for (size_t len = 1; len < 9000; len += 1 + len / 50) {
		uint8_t *p = guarded_get(len);

		memset(p, 0, len);
		CU_ASSERT_EQUAL(probe_entropy(p, len), 0);
		CU_ASSERT(probe_zero(p, len));
		guarded_put(p, len);
	}
}

static void zero_is_told_from_a_single_other_bit(void)
{
	for (size_t len = 1; len <= 4096; len += 1 + len / 9) {
		memset(data, 0, len);
		data[len] = 1;
		CU_ASSERT(probe_zero(data, len));
		for (size_t at = 0; at < len; at++) {
			data[at] = (uint8_t)(1u << at % 8);
			CU_ASSERT_FALSE(probe_zero(data, len));
			data[at] = 0;
		}
	}
}

static void history_wants_every_record_at_first(void)
{
	struct probe_history history = { 0 };

	for (unsigned int i = 0; i < PROBE_RAW_RUN; i++) {
		CU_ASSERT(probe_history_wants(&history));
		probe_history_tell(&history, false);
	}
	CU_ASSERT_FALSE(probe_history_wants(&history));
}

static void history_wants_one_in_sixteen_after_a_raw_run(void)
{
	struct probe_history history = { 0 };
	unsigned int wanted = 0;

	for (unsigned int i = 0; i < PROBE_RAW_RUN; i++)
		probe_history_tell(&history, false);
	for (unsigned int i = 0; i < 10 * PROBE_SKIP; i++) {
		if (probe_history_wants(&history)) {
			wanted++;
			probe_history_tell(&history, false);
		}
	}
	CU_ASSERT_EQUAL(wanted, 10);
}

static void history_wants_every_record_after_a_success(void)
{
	struct probe_history history = { 0 };

	for (unsigned int i = 0; i < 2 * PROBE_RAW_RUN; i++)
		probe_history_tell(&history, false);
	while (!probe_history_wants(&history))
		;
	probe_history_tell(&history, true);
	for (unsigned int i = 0; i < PROBE_RAW_RUN; i++) {
		CU_ASSERT(probe_history_wants(&history));
		probe_history_tell(&history, false);
	}
	CU_ASSERT_FALSE(probe_history_wants(&history));
}

static void history_counts_only_raw_records_in_a_row(void)
{
	struct probe_history history = { 0 };

	for (unsigned int i = 0; i < 100; i++) {
		CU_ASSERT(probe_history_wants(&history));
		probe_history_tell(&history, i % PROBE_RAW_RUN == 0);
	}
}

static const struct test tests[] = {
	TEST(probe_takes_text_and_base64_for_compressible),
	TEST(probe_takes_random_data_for_incompressible),
	TEST(probe_takes_deflated_data_for_incompressible),
	TEST(probe_takes_half_random_data_for_compressible),
	TEST(probe_entropy_is_that_of_the_bytes),
	TEST(probe_reads_within_the_record),
	TEST(zero_is_told_from_a_single_other_bit),
	TEST(history_wants_every_record_at_first),
	TEST(history_wants_one_in_sixteen_after_a_raw_run),
	TEST(history_wants_every_record_after_a_success),
	TEST(history_counts_only_raw_records_in_a_row),
};

TEST_MAIN(tests)
