/* What a damaged or hostile disk may hold: nothing makes a codec leave its ranges. */
#include <string.h>

#include "compress/codec.h"
#include "tests/unit/compress/patterns.h"
#include "tests/unit/quintain_test.h"

/* Whole pages: guarded on both sides. */
#define LEN 8192u

static const char *const values[] = { "none",  "lzjb",	 "gzip-1", "gzip",   "lz4",
				      "lz4hc", "zstd-1", "zstd",   "zstd-19" };
#define VALUES (sizeof(values) / sizeof(values[0]))

static uint8_t data[LEN], stored[2 * LEN];

/* The stored form of one record, and everything that is needed to expand it. */
struct record {
	struct codec_workspace *ws;
	uint8_t id;
	size_t stored_len;
	uint8_t *dst; /* LEN bytes between pages that fault */
};

static void record_init(struct record *record, const char *value, enum pattern pattern)
{
	struct codec_choice choice = choice_of(value);

	record->ws = workspace_for(value);
	record->id = choice.id;
	record->dst = guarded_get(LEN);
	pattern_fill(pattern, data, LEN, 1);
	record->stored_len = codec_compress(record->ws, &choice, stored, sizeof(stored), data, LEN);
	CU_ASSERT_FATAL(record->stored_len > 0);
}

static void record_release(struct record *record)
{
	guarded_put(record->dst, LEN);
	codec_workspace_close(record->ws);
}

/* Expands src from a place that ends before a page that faults. */
static bool expand(const struct record *record, size_t dst_len, const void *src, size_t len)
{
	uint8_t *guarded = guarded_get(len);
	bool good;

	memcpy(guarded, src, len);
	good = codec_expand(record->ws, record->id, record->dst + LEN - dst_len, dst_len, guarded,
			    len);
	guarded_put(guarded, len);
	return good;
}

static void a_truncated_stream_fails(void)
{
	for (size_t i = 0; i < VALUES; i++) {
		struct record record;

		record_init(&record, values[i], PATTERN_TEXT);
		for (size_t len = 0; len < record.stored_len; len++)
			CU_ASSERT_FALSE(expand(&record, LEN, stored, len));
		record_release(&record);
	}
}

static void a_stream_with_more_behind_it_fails(void)
{
	for (size_t i = 0; i < VALUES; i++) {
		struct record record;

		record_init(&record, values[i], PATTERN_TEXT);
		for (unsigned int byte = 0; byte < 256; byte++) {
			stored[record.stored_len] = (uint8_t)byte;
			CU_ASSERT_FALSE(expand(&record, LEN, stored, record.stored_len + 1));
		}
		record_release(&record);
	}
}

static void two_streams_in_a_row_fail(void)
{
	for (size_t i = 0; i < VALUES; i++) {
		struct record record;

		record_init(&record, values[i], PATTERN_REPEATED);
		CU_ASSERT_FATAL(record.stored_len <= LEN);
		memcpy(stored + record.stored_len, stored, record.stored_len);
		CU_ASSERT_FALSE(expand(&record, LEN, stored, 2 * record.stored_len));
		record_release(&record);
	}
}

static void another_length_fails(void)
{
	for (size_t i = 0; i < VALUES; i++) {
		for (int pattern = 0; pattern < PATTERN_COUNT; pattern++) {
			struct record record;
			uint8_t longer[LEN + 1];

			record_init(&record, values[i], (enum pattern)pattern);
			for (size_t len = 1; len < LEN; len += len < LEN - 100 ? 97 : 1)
				CU_ASSERT_FALSE(expand(&record, len, stored, record.stored_len));
			CU_ASSERT_FALSE(codec_expand(record.ws, record.id, longer, LEN + 1, stored,
						     record.stored_len));
			CU_ASSERT(expand(&record, LEN, stored, record.stored_len));
			record_release(&record);
		}
	}
}

static void flipped_bits_stay_within_bounds(void)
{
	uint32_t seed = 7;

	for (size_t i = 0; i < VALUES; i++) {
		for (int pattern = 0; pattern < PATTERN_COUNT; pattern++) {
			struct record record;

			record_init(&record, values[i], (enum pattern)pattern);
			for (int round = 0; round < 1500; round++) {
				uint8_t copy[2 * LEN];

				memcpy(copy, stored, record.stored_len);
				for (int flips = 1 + round % 3; flips > 0; flips--)
					copy[pattern_next(&seed) % record.stored_len] ^=
						(uint8_t)(1u << pattern_next(&seed) % 8);
				expand(&record, LEN, copy, record.stored_len);
			}
			record_release(&record);
		}
	}
}

static void random_bytes_stay_within_bounds(void)
{
	uint32_t seed = 8;

	for (size_t i = 0; i < VALUES; i++) {
		struct record record;

		record_init(&record, values[i], PATTERN_TEXT);
		for (int round = 0; round < 5000; round++) {
			/* A true beginning lets more of them past the header. */
			size_t kept = (size_t)round % 12, len = pattern_next(&seed) % LEN;
			uint8_t bytes[LEN];

			pattern_fill(PATTERN_RANDOM, bytes, len, seed);
			memcpy(bytes, stored, kept < len ? kept : len);
			expand(&record, 1 + pattern_next(&seed) % LEN, bytes, len);
		}
		record_release(&record);
	}
}

/* The memory of a decoder is as good after a bad stream as before. */
static void a_bad_stream_does_not_harm_the_next(void)
{
	for (size_t i = 0; i < VALUES; i++) {
		struct record record;

		record_init(&record, values[i], PATTERN_TEXT);
		for (size_t at = 0; at < record.stored_len; at += 1 + record.stored_len / 50) {
			stored[at] ^= 0x55;
			expand(&record, LEN, stored, record.stored_len);
			stored[at] ^= 0x55;
			CU_ASSERT(expand(&record, LEN, stored, record.stored_len));
			CU_ASSERT_EQUAL(memcmp(record.dst, data, LEN), 0);
		}
		record_release(&record);
	}
}

static void an_unknown_codec_fails(void)
{
	struct codec_workspace *ws = workspace_for("none");

	for (unsigned int id = CODEC_COUNT; id < 256; id++)
		CU_ASSERT_FALSE(codec_expand(ws, (uint8_t)id, data, 512, stored, 512));
	codec_workspace_close(ws);
}

static const struct test tests[] = {
	TEST(a_truncated_stream_fails),
	TEST(a_stream_with_more_behind_it_fails),
	TEST(two_streams_in_a_row_fail),
	TEST(another_length_fails),
	TEST(flipped_bits_stay_within_bounds),
	TEST(random_bytes_stay_within_bounds),
	TEST(a_bad_stream_does_not_harm_the_next),
	TEST(an_unknown_codec_fails),
};

TEST_MAIN(tests)
