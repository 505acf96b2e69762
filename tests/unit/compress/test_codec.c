/* Every codec and level: what goes in comes out, and within its capacity. */
#include "compress/codec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/compress/patterns.h"
#include "tests/unit/quintain_test.h"

#define CAP_MAX (CODEC_LEN_MAX + CODEC_LEN_MAX / 8 + 1024)

static uint8_t data[CODEC_LEN_MAX], back[CODEC_LEN_MAX], stored[CAP_MAX];

static void round_trip(struct codec_workspace *ws, struct codec_choice choice, enum pattern pattern,
		       size_t len)
{
	char text[CODEC_TEXT_MAX];
	size_t n;

	pattern_fill(pattern, data, len, (uint32_t)len);
	n = codec_compress(ws, &choice, stored, sizeof(stored), data, len);
	if (n > 0 && codec_expand(ws, choice.id, back, len, stored, n) &&
	    memcmp(back, data, len) == 0)
		return;
	codec_format(&choice, text);
	printf("%s, pattern %d, %zu bytes: stored %zu\n", text, pattern, len, n);
	CU_FAIL("the data did not come back");
}

static void records_come_back_at_every_level(void)
{
	static const size_t lens[] = { 512, 513, 1000, 2048, 4096, 16384, 20000, 65536, 131072 };
	struct codec_workspace *ws = workspace_for(NULL);

	for (size_t i = 0; i < CHOICES_COUNT; i++)
		for (size_t len = 0; len < sizeof(lens) / sizeof(lens[0]); len++)
			for (int pattern = 0; pattern < PATTERN_COUNT; pattern++)
				round_trip(ws, choice_at(i), (enum pattern)pattern, lens[len]);
	codec_workspace_close(ws);
}

static void the_longest_record_comes_back_at_every_level(void)
{
	struct codec_workspace *ws = workspace_for(NULL);

	for (size_t i = 0; i < CHOICES_COUNT; i++) {
		round_trip(ws, choice_at(i), PATTERN_TEXT, CODEC_LEN_MAX);
		round_trip(ws, choice_at(i), PATTERN_BLOCKS, CODEC_LEN_MAX);
	}
	codec_workspace_close(ws);
}

static void records_of_few_bytes_come_back(void)
{
	struct codec_workspace *ws = workspace_for(NULL);

	for (size_t i = 0; i < CHOICES_COUNT; i++)
		for (size_t len = 1; len < 100; len++)
			round_trip(ws, choice_at(i), len & 1 ? PATTERN_TEXT : PATTERN_ZERO, len);
	codec_workspace_close(ws);
}

/* With cap bytes before a page that faults: 0, or a length in which all is. */
static size_t compress_within(struct codec_workspace *ws, struct codec_choice choice, size_t cap,
			      size_t len)
{
	uint8_t *dst = guarded_get(cap), *src = guarded_get(len);
	size_t n;

	memcpy(src, data, len);
	n = codec_compress(ws, &choice, dst, cap, src, len);
	CU_ASSERT(n <= cap);
	if (n > 0) {
		CU_ASSERT(codec_expand(ws, choice.id, back, len, dst, n));
		CU_ASSERT_EQUAL(memcmp(back, data, len), 0);
	}
	guarded_put(dst, cap);
	guarded_put(src, len);
	return n;
}

static void capacity_is_never_exceeded(void)
{
	struct codec_workspace *ws = workspace_for(NULL);

	for (size_t i = 0; i < CHOICES_COUNT; i++) {
		struct codec_choice choice = choice_at(i);

		for (int pattern = 0; pattern < PATTERN_COUNT; pattern++) {
			size_t len = i % 3 == 0 ? 512 : i % 3 == 1 ? 4000 : 16384, n;

			pattern_fill((enum pattern)pattern, data, len, (uint32_t)i);
			n = codec_compress(ws, &choice, stored, sizeof(stored), data, len);
			for (size_t less = 1; less < 40 && less < n; less++)
				CU_ASSERT(compress_within(ws, choice, n - less, len) < n);
			for (size_t cap = 1; cap < n; cap += cap / 2 + 1)
				compress_within(ws, choice, cap, len);
		}
	}
	codec_workspace_close(ws);
}

static void capacity_one_less_than_needed_is_refused(void)
{
	static const char *const values[] = { "none",	"lzjb",	   "lz4",    "lz4-fast-8", "lz4hc",
					      "gzip-1", "gzip",	   "gzip-9", "zstd-1",	   "zstd",
					      "zstd-9", "zstd-19", NULL };

	for (int i = 0; values[i]; i++) {
		struct codec_workspace *ws = workspace_for(values[i]);
		struct codec_choice choice = choice_of(values[i]);
		size_t len = 16384, n;

		pattern_fill(PATTERN_TEXT, data, len, 1);
		n = codec_compress(ws, &choice, stored, sizeof(stored), data, len);
		CU_ASSERT_EQUAL(compress_within(ws, choice, n - 1, len), 0);
		CU_ASSERT_EQUAL(compress_within(ws, choice, n + CODEC_SLACK, len), n);
		codec_workspace_close(ws);
	}
}

static void data_that_does_not_shrink_is_not_worth_it(void)
{
	struct codec_workspace *ws = workspace_for(NULL);
	size_t len = 16384;

	pattern_fill(PATTERN_RANDOM, data, len, 3);
	for (size_t i = 0; i < CHOICES_COUNT; i++) {
		struct codec_choice choice = choice_at(i);

		CU_ASSERT_EQUAL(compress_within(ws, choice, codec_worth_max(len), len), 0);
	}
	CU_ASSERT_EQUAL(codec_worth_max(4096), 3584);
	codec_workspace_close(ws);
}

/* What was compressed before leaves no trace. */
static void output_depends_on_the_input_alone(void)
{
	struct codec_workspace *ws = workspace_for(NULL);
	size_t len = 16384;

	for (size_t i = 0; i < CHOICES_COUNT; i++) {
		struct codec_choice choice = choice_at(i);
		size_t n, again;

		pattern_fill(PATTERN_TEXT, data, len, 1);
		n = codec_compress(ws, &choice, stored, sizeof(stored), data, len);
		pattern_fill(PATTERN_BLOCKS, data, 5000, 2);
		codec_compress(ws, &choice, back, sizeof(back), data, 5000);
		pattern_fill(PATTERN_TEXT, data, len, 1);
		again = codec_compress(ws, &choice, back, sizeof(back), data, len);
		CU_ASSERT(again == n && memcmp(back, stored, n) == 0);
	}
	codec_workspace_close(ws);
}

static void a_dropped_choice_can_be_prepared_again(void)
{
	struct codec_workspace *ws = workspace_for(NULL);

	for (size_t i = 0; i < CHOICES_COUNT; i++) {
		struct codec_choice choice = choice_at(i);

		codec_workspace_drop(ws, &choice);
		codec_workspace_drop(ws, &choice);
		CU_ASSERT_EQUAL(codec_workspace_prepare(ws, &choice, NULL), 0);
		round_trip(ws, choice, PATTERN_TEXT, 4096);
	}
	codec_workspace_close(ws);
}

static void ids_are_as_on_disk(void)
{
	static const char *const names[] = { "raw", "lzjb", "deflate", "lz4", "zstd" };

	for (uint8_t id = 0; id < CODEC_COUNT; id++) {
		CU_ASSERT_EQUAL(codec_by_id(id)->id, id);
		CU_ASSERT_STRING_EQUAL(codec_by_id(id)->name, names[id]);
	}
	CU_ASSERT_EQUAL(CODEC_COUNT, 5);
	CU_ASSERT_PTR_NULL(codec_by_id(CODEC_COUNT));
	CU_ASSERT_PTR_NULL(codec_by_id(255));
}

static const struct test tests[] = {
	TEST(ids_are_as_on_disk),
	TEST(records_come_back_at_every_level),
	TEST(the_longest_record_comes_back_at_every_level),
	TEST(records_of_few_bytes_come_back),
	TEST(capacity_is_never_exceeded),
	TEST(capacity_one_less_than_needed_is_refused),
	TEST(data_that_does_not_shrink_is_not_worth_it),
	TEST(output_depends_on_the_input_alone),
	TEST(a_dropped_choice_can_be_prepared_again),
};

TEST_MAIN(tests)
