/* Statements, blocks, and going on behind what is wrong. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/messages.h"
#include "tests/unit/config/config_fixture.h"
#include "tests/unit/quintain_test.h"

static void words_may_share_a_line(void)
{
	struct config *config = config_of(
		"debug 1 timeout 9 target iqn.a { alias x portal-group p lun 0 l lun 1 l } "
		"lun l { path /x size 1G } portal-group p { listen 127.0.0.1 tag 3 }");
	const struct config_target *target = config->targets;

	CHECK_ERRORS_OF(config, "");
	CU_ASSERT_EQUAL(config->server.login_timeout, 9);
	CU_ASSERT_STRING_EQUAL(target->ports->group->name, "p");
	CU_ASSERT_STRING_EQUAL(target->ports->auth->name, "default");
	CU_ASSERT_EQUAL(target->luns->next->number, 1);
	CU_ASSERT_PTR_EQUAL(target->luns->lun, config->luns);
	config_free(config);
}

static void words_may_span_lines(void)
{
	struct config *config = config_of("target\niqn.a\n{\nchap\nalice\nsecretsecret\n}");

	CHECK_ERRORS_OF(config, "");
	CU_ASSERT_STRING_EQUAL(config->auth_groups->next->chaps->secret, "secretsecret");
	config_free(config);
}

static void unknown_word_names_the_nearest(void)
{
	CHECK_ERRORS("tagret iqn.a { lun 0 { oops } }\ndebug 1",
		     "1:1: unknown word tagret in the top level: did you mean target?\n");
	CHECK_ERRORS("lun l {\n\tpath /x\n\tblock-size 512\n}",
		     "3:2: unknown word block-size in a lun: did you mean blocksize?\n");
}

static void misplaced_word_names_its_block(void)
{
	CHECK_ERRORS("target iqn.a {\n\tlisten 127.0.0.1\n}",
		     "2:2: listen does not belong in a target but in a portal-group\n");
}

static void value_with_a_space_asks_for_quotes(void)
{
	CHECK_ERRORS("lun l { path /my disk }",
		     "1:18: unknown word disk in a lun: a value with spaces needs quotes\n");
}

static void missing_value_is_an_error(void)
{
	CHECK_ERRORS("lun l {\n\tpath\n\tsize 1G\n}", "1:1: lun l has no path\n"
						      "2:2: path: its value is missing\n");
}

static void missing_arguments_are_an_error(void)
{
	CHECK_ERRORS("auth-group a {\n\tchap alice\n\tauth-type none\n}",
		     "2:2: chap: a value is missing: chap USER SECRET\n");
	CHECK_ERRORS("debug", "1:1: debug: its value is missing\n");
	CHECK_ERRORS("target", "1:1: target: a value is missing: target NAME { ... }\n");
}

static void missing_block_is_an_error(void)
{
	CHECK_ERRORS("lun l path /x\nspin-us x",
		     "1:1: lun: a block { ... } is missing: lun NAME { ... }\n"
		     "2:9: spin-us: x is not valid: a whole number (us)\n");
}

static void open_block_is_an_error_of_its_key(void)
{
	CHECK_ERRORS("debug 1\ntarget iqn.a {\n\talias x\n",
		     "2:1: the block of this is never closed\n");
	CHECK_ERRORS("frobnicate {\n", "1:1: unknown word frobnicate in the top level\n"
				       "1:12: this { is never closed\n");
}

static void stray_braces_are_errors(void)
{
	CHECK_ERRORS("debug 1 }\n{ a { b } }\nspin-us x",
		     "1:9: this } closes nothing\n"
		     "2:1: this { belongs to no word\n"
		     "3:9: spin-us: x is not valid: a whole number (us)\n");
}

static void all_errors_are_told(void)
{
	CHECK_ERRORS("debugg 1\nlun l { path /x blocksize 513 siez 1 }\n"
		     "target iqn.a { auth-group nobody lun 0 m }",
		     "1:1: unknown word debugg in the top level: did you mean debug?\n"
		     "2:27: blocksize: 513 is not 512 or 4096\n"
		     "2:31: unknown word siez in a lun: did you mean size?\n"
		     "3:27: auth-group nobody is not defined\n"
		     "3:40: lun m is not defined\n");
}

static void errors_end_at_a_bound(void)
{
	char text[8 * 1000 + 1];
	struct config *config;

	for (size_t i = 0; i < 1000; i++)
		memcpy(text + 8 * i, "frob x;\n", 8);
	text[sizeof(text) - 1] = '\0';
	config = config_of(text);
	CU_ASSERT_EQUAL(config->nerrors, CONFIG_ERRORS_MAX);
	config_free(config);
}

static void repeated_setting_names_the_first(void)
{
	CHECK_ERRORS("debug 1\ndebug 2", "2:7: debug is already given at test.conf:1:7\n");
	CHECK_ERRORS("lun l { path /a path /b }",
		     "1:22: path is already given at test.conf:1:14\n");
	CHECK_ERRORS("target iqn.a { alias a alias b }",
		     "1:30: alias is already given at test.conf:1:22\n");
}

static void repeated_name_names_the_first(void)
{
	CHECK_ERRORS("lun l { path /a }\nlun l { path /b }",
		     "2:5: lun l is already defined at test.conf:1:5\n");
	CHECK_ERRORS("auth-group a { auth-type none }\nauth-group a { auth-type deny }",
		     "2:12: auth-group a is already defined at test.conf:1:12\n");
	CHECK_ERRORS("portal-group a { }\nportal-group a { }",
		     "2:14: portal-group a is already defined at test.conf:1:14\n");
	CHECK_ERRORS("target iqn.a { }\ntarget IQN.A { }",
		     "2:8: target iqn.a is already defined at test.conf:1:8\n");
}

static void undefined_name_names_the_nearest(void)
{
	CHECK_ERRORS("auth-group people { auth-type none }\n"
		     "target iqn.a { auth-group poeple portal-group defualt }",
		     "2:27: auth-group poeple is not defined: did you mean people?\n"
		     "2:47: portal-group defualt is not defined: did you mean default?\n");
}

static void option_errors_are_those_of_the_row(void)
{
	CHECK_ERRORS("max-burst-length 100",
		     "1:18: max-burst-length: 100 is outside 512..16777215 bytes\n");
	CHECK_ERRORS("header-digest optonal",
		     "1:15: header-digest: optonal is not valid: one of none, optional, "
		     "required (did you mean optional?)\n");
}

static void messages_show_line_and_caret(void)
{
	static const char expected[] = "test.conf:2:11: error: size: many is not valid: a size in "
				       "bytes, such as 512 or 64K\n"
				       "\t\"\xc3\xa9\"\tsize many?\n"
				       "\t   \t     ^\n";
	struct config *config = config_of("lun l { path\n\t\"\xc3\xa9\"\tsize many\x01\n}");
	char *all = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&all, &len);

	config_print_messages(config, out);
	fclose(out);
	CU_ASSERT_PTR_NOT_NULL(strstr(all, expected));
	free(all);
	config_free(config);
}

static const struct test tests[] = {
	TEST(words_may_share_a_line),
	TEST(words_may_span_lines),
	TEST(unknown_word_names_the_nearest),
	TEST(misplaced_word_names_its_block),
	TEST(value_with_a_space_asks_for_quotes),
	TEST(missing_value_is_an_error),
	TEST(missing_arguments_are_an_error),
	TEST(missing_block_is_an_error),
	TEST(open_block_is_an_error_of_its_key),
	TEST(stray_braces_are_errors),
	TEST(all_errors_are_told),
	TEST(errors_end_at_a_bound),
	TEST(repeated_setting_names_the_first),
	TEST(repeated_name_names_the_first),
	TEST(undefined_name_names_the_nearest),
	TEST(option_errors_are_those_of_the_row),
	TEST(messages_show_line_and_caret),
};
TEST_MAIN(tests)
