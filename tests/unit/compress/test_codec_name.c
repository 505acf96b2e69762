/* The values of `compression`: what is taken, what it means, what is said of the rest. */
#include <errno.h>
#include <string.h>

#include "tests/unit/compress/patterns.h"
#include "tests/unit/quintain_test.h"

static void expect(const char *text, uint8_t id, int level, const char *formatted)
{
	struct codec_choice choice = { 99, 99 };
	char out[CODEC_TEXT_MAX];

	CU_ASSERT_EQUAL(codec_parse(text, &choice, NULL), 0);
	CU_ASSERT_EQUAL(choice.id, id);
	CU_ASSERT_EQUAL(choice.level, level);
	CU_ASSERT(codec_choice_valid(&choice));
	codec_format(&choice, out);
	CU_ASSERT_STRING_EQUAL(out, formatted);
}

static void refuse(const char *text, const char *near)
{
	struct codec_choice choice;
	struct err err = { "" };

	CU_ASSERT_EQUAL(codec_parse(text, &choice, &err), -EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, " is not valid: none, lzjb, gzip"));
	CU_ASSERT_EQUAL(strncmp(err.text, text, strnlen(text, 64)), 0);
	if (near)
		CU_ASSERT_PTR_NOT_NULL(strstr(err.text, near));
	if (!near)
		CU_ASSERT_PTR_NULL(strstr(err.text, "did you mean"));
}

static void names_have_their_usual_levels(void)
{
	expect("none", CODEC_RAW, 0, "none");
	expect("lzjb", CODEC_LZJB, 0, "lzjb");
	expect("gzip", CODEC_DEFLATE, 6, "gzip-6");
	expect("lz4", CODEC_LZ4, 1, "lz4");
	expect("lz4hc", CODEC_LZ4, 9, "lz4hc-9");
	expect("zstd", CODEC_ZSTD, 3, "zstd-3");
}

static void levels_are_taken_to_their_bounds(void)
{
	expect("gzip-1", CODEC_DEFLATE, 1, "gzip-1");
	expect("GZIP-9", CODEC_DEFLATE, 9, "gzip-9");
	expect("lz4-fast-2", CODEC_LZ4, -2, "lz4-fast-2");
	expect("lz4-fast-64", CODEC_LZ4, -64, "lz4-fast-64");
	expect("lz4hc-3", CODEC_LZ4, 3, "lz4hc-3");
	expect("lz4hc-9", CODEC_LZ4, 9, "lz4hc-9");
	expect("zstd-1", CODEC_ZSTD, 1, "zstd-1");
	expect("zstd-19", CODEC_ZSTD, 19, "zstd-19");
}

static void levels_out_of_bounds_are_refused(void)
{
	refuse("gzip-0", "(did you mean gzip");
	refuse("gzip-10", "(did you mean gzip-1?)");
	refuse("lz4-fast-1", "(did you mean lz4-fast-2?)");
	refuse("lz4-fast-65", "(did you mean lz4-fast-");
	refuse("lz4-fast", "(did you mean lz4-fast-2?)");
	refuse("lz4hc-10", "(did you mean lz4hc-");
	refuse("zstd-20", "(did you mean zstd-2?)");
	refuse("zstd--1", "(did you mean zstd-1?)");
}

static void near_names_are_proposed(void)
{
	refuse("lz5", "(did you mean lz4?)");
	refuse("gzpi-6", "(did you mean gzip-6?)");
	refuse("zst", "(did you mean zstd?)");
	refuse("lzbj", "(did you mean lzjb?)");
}

static void other_words_are_refused(void)
{
	refuse("", NULL);
	refuse("brotli", NULL);
	refuse("gzip-", "(did you mean gzip?)");
	refuse("gzip-06", "gzip-6");
	refuse("gzip-6 ", "(did you mean gzip-6?)");
	refuse("none-1", "(did you mean none?)");
	refuse("gzip-99999999999999999999999999999999999999999999999999999999999999999999999",
	       NULL);
}

static void every_choice_has_a_text_of_its_own(void)
{
	for (size_t i = 0; i < CHOICES_COUNT; i++) {
		struct codec_choice choice = choice_at(i), parsed;
		char text[CODEC_TEXT_MAX];

		codec_format(&choice, text);
		CU_ASSERT_EQUAL(codec_parse(text, &parsed, NULL), 0);
		CU_ASSERT(parsed.id == choice.id && parsed.level == choice.level);
	}
}

static void choices_from_a_disk_are_judged(void)
{
	static const struct codec_choice bad[] = { { CODEC_RAW, 1 },	 { CODEC_LZJB, -1 },
						   { CODEC_DEFLATE, 0 }, { CODEC_DEFLATE, 10 },
						   { CODEC_LZ4, -65 },	 { CODEC_LZ4, -1 },
						   { CODEC_LZ4, 0 },	 { CODEC_LZ4, 2 },
						   { CODEC_LZ4, 10 },	 { CODEC_ZSTD, 0 },
						   { CODEC_ZSTD, 20 },	 { CODEC_COUNT, 0 },
						   { 255, 1 },		 { CODEC_ZSTD, -128 } };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CU_ASSERT_FALSE(codec_choice_valid(&bad[i]));
	CU_ASSERT(codec_choice_valid(&(struct codec_choice){ CODEC_RAW, 0 }));
}

static const struct test tests[] = {
	TEST(names_have_their_usual_levels),	TEST(levels_are_taken_to_their_bounds),
	TEST(levels_out_of_bounds_are_refused), TEST(near_names_are_proposed),
	TEST(other_words_are_refused),		TEST(every_choice_has_a_text_of_its_own),
	TEST(choices_from_a_disk_are_judged),
};

TEST_MAIN(tests)
