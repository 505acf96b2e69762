/* Words, quotes, comments and where they stand. */
#include <string.h>

#include "tests/unit/config/config_fixture.h"
#include "tests/unit/quintain_test.h"

/* The alias of the only target, from the words behind `alias`. */
static void check_alias(const char *words, const char *expected)
{
	char text[512];
	struct config *config;

	snprintf(text, sizeof(text), "target iqn.a {\nalias %s\n}", words);
	config = config_of(text);
	CHECK_ERRORS_OF(config, "");
	CU_ASSERT_PTR_NOT_NULL_FATAL(config->targets);
	CU_ASSERT_PTR_NOT_NULL_FATAL(config->targets->alias);
	CU_ASSERT_STRING_EQUAL(config->targets->alias, expected);
	config_free(config);
}

static void quotes_hold_syntax(void)
{
	check_alias("\"a { b } ; # = c\"", "a { b } ; # = c");
}

static void quotes_escape_quote_and_backslash(void)
{
	check_alias("\"a \\\"b\\\" \\\\ c\"", "a \"b\" \\ c");
}

static void quotes_keep_other_backslashes(void)
{
	check_alias("\"C:\\temp\"", "C:\\temp");
}

static void equals_may_stand_behind_the_key(void)
{
	check_alias("= x", "x");
	check_alias("=x", "x");
	check_alias("= \"x\"", "x");
	check_alias("x=y=", "x=y=");
	check_alias("\"=x\"", "=x");
}

static void equals_may_touch_the_key(void)
{
	struct config *config = config_of("debug=2;max-burst-length= 1K reactors =3");

	CHECK_ERRORS_OF(config, "");
	CU_ASSERT_EQUAL(config->global.debug, 2);
	CU_ASSERT_EQUAL(config->limits.max_burst_length, 1024);
	CU_ASSERT_EQUAL(config->global.reactors, 3);
	config_free(config);
}

static void semicolons_are_optional(void)
{
	check_alias("x;", "x");
	check_alias("x;;\n;", "x");
}

static void comments_end_with_the_line(void)
{
	check_alias("x # } \" {", "x");
}

static void comment_within_a_word_warns(void)
{
	CHECK_WARNINGS("debug 1#2",
		       "1:8: # begins a comment: a word that holds one needs quotes\n");
}

static void braces_need_no_spaces(void)
{
	CHECK_ERRORS("target iqn.a{lun 0{path /x}}target iqn.b{}", "");
}

static void crlf_ends_lines(void)
{
	CHECK_ERRORS("debug 1\r\n\r\nsiez 1\r\n", "3:1: unknown word siez in the top level\n");
}

static void byte_order_mark_is_skipped(void)
{
	CHECK_ERRORS("\xef\xbb\xbf"
		     "debugg 1",
		     "1:1: unknown word debugg in the top level: did you mean debug?\n");
}

static void last_line_needs_no_end(void)
{
	struct config *config = config_of("debug 2");

	CU_ASSERT_EQUAL(config->global.debug, 2);
	config_free(config);
}

static void tab_is_one_column(void)
{
	CHECK_ERRORS("\t\tdebugg 1",
		     "1:3: unknown word debugg in the top level: did you mean debug?\n");
}

static void character_of_many_bytes_is_one_column(void)
{
	CHECK_ERRORS("target iqn.a { alias \"\xc3\xa9\xe2\x82\xac\" alais x }",
		     "1:27: unknown word alais in a target: did you mean alias?\n");
}

static void nul_byte_is_an_error(void)
{
	static const char text[] = "debug 1\n\0\0debug";
	struct config *config = config_parse("test.conf", text, sizeof(text) - 1, true);

	CHECK_ERRORS_OF(config, "2:1: byte 0x00 is not text: is this a configuration file?\n"
				"2:3: debug: its value is missing\n");
	config_free(config);
}

static void invalid_utf8_is_an_error(void)
{
	CHECK_ERRORS("pidfile /a\xff", "1:9: this word is not valid UTF-8\n");
	/* a surrogate, and an overlong form */
	CHECK_ERRORS("pidfile \"\xed\xa0\x80\"", "1:9: this word is not valid UTF-8\n");
	CHECK_ERRORS("pidfile \"\xc0\x80\"", "1:9: this word is not valid UTF-8\n");
}

static void open_quote_is_an_error_of_its_line(void)
{
	CHECK_ERRORS("pidfile \"/a\nspin-us x",
		     "1:9: the quote is not closed on this line\n"
		     "2:9: spin-us: x is not valid: a whole number (us)\n");
}

static void long_word_is_an_error(void)
{
	static char text[70000];

	memset(text, 'a', sizeof(text) - 1);
	memcpy(text, "pidfile ", 8);
	CHECK_ERRORS(text, "1:9: a word of 69991 bytes: it may have 4096\n");
}

static const struct test tests[] = {
	TEST(quotes_hold_syntax),
	TEST(quotes_escape_quote_and_backslash),
	TEST(quotes_keep_other_backslashes),
	TEST(equals_may_stand_behind_the_key),
	TEST(equals_may_touch_the_key),
	TEST(semicolons_are_optional),
	TEST(comments_end_with_the_line),
	TEST(comment_within_a_word_warns),
	TEST(braces_need_no_spaces),
	TEST(crlf_ends_lines),
	TEST(byte_order_mark_is_skipped),
	TEST(last_line_needs_no_end),
	TEST(tab_is_one_column),
	TEST(character_of_many_bytes_is_one_column),
	TEST(nul_byte_is_an_error),
	TEST(invalid_utf8_is_an_error),
	TEST(open_quote_is_an_error_of_its_line),
	TEST(long_word_is_an_error),
};
TEST_MAIN(tests)
