/* include, secret-file, and what the files of luns are like. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/config/config_fixture.h"
#include "tests/unit/quintain_test.h"

/* With a look at the stores of LUNs. */
static struct config *load_file(const char *file)
{
	struct jobs *jobs = jobs_create();
	struct config *config;

	CU_ASSERT_PTR_NOT_NULL_FATAL(jobs);
	config = config_load(file, jobs);
	jobs_destroy(jobs);
	return config;
}

/* Loads main.conf with this text. */
static struct config *load(const char *text)
{
	return load_file(config_write("main.conf", text, 0600));
}

static void missing_file_is_an_error(void)
{
	struct config *config = load_file("/nonexistent/quintain.conf");

	CHECK_ERRORS_OF(config, "0:0: No such file or directory\n");
	CU_ASSERT_STRING_EQUAL(config->messages->pos.file, "/nonexistent/quintain.conf");
	config_free(config);
}

static void folder_is_an_error(void)
{
	struct config *config = load_file("/");

	CHECK_ERRORS_OF(config, "0:0: Is a directory\n");
	config_free(config);
}

static void include_reads_beside_its_file(void)
{
	struct config *config;

	config_write("inner.conf", "debug 2\nlun l { path /x }", 0600);
	config = load("include inner.conf\ntarget iqn.a { lun 0 l }");
	CHECK_ERRORS_OF(config, "");
	CU_ASSERT_EQUAL(config->global.debug, 2);
	config_free(config);
}

static void include_reads_what_a_pattern_matches_in_order(void)
{
	struct config *config;

	mkdir(config_path("conf.d"), 0700);
	config_write("conf.d/b.conf", "lun b { path /b }", 0600);
	config_write("conf.d/a.conf", "lun a { path /a }", 0600);
	config_write("conf.d/c.txt", "nonsense", 0600);
	config = load("include conf.d/*.conf include none.d/*.conf");
	CHECK_ERRORS_OF(config, "");
	CU_ASSERT_STRING_EQUAL(config->luns->name, "a");
	CU_ASSERT_STRING_EQUAL(config->luns->next->name, "b");
	config_free(config);
}

static void include_of_a_missing_file_is_an_error(void)
{
	struct config *config = load("debug 1\n  include /nonexistent/a.conf");

	CHECK_ERRORS_OF(config, "2:11: /nonexistent/a.conf: No such file or directory\n");
	config_free(config);
}

static void include_of_itself_is_an_error(void)
{
	char expected[4200];
	struct config *config;

	config_write("inner.conf", "include main.conf", 0600);
	config = load("include inner.conf");
	snprintf(expected, sizeof(expected), "1:9: include: %s includes itself\n",
		 config_path("main.conf"));
	CHECK_ERRORS_OF(config, expected);
	config_free(config);
}

static void errors_name_the_included_file(void)
{
	struct config *config;

	config_write("inner.conf", "\nlun l { }", 0600);
	config = load("include inner.conf\ndebugg 1");
	CHECK_ERRORS_OF(config, "2:1: unknown word debugg in the top level: did you mean debug?\n"
				"2:1: lun l has no path\n");
	CU_ASSERT_STRING_EQUAL(config->messages->next->next->pos.file, config_path("inner.conf"));
	config_free(config);
}

static void blocks_end_with_their_file(void)
{
	struct config *config;

	config_write("inner.conf", "target iqn.a {", 0600);
	config = load("include inner.conf\n}");
	CHECK_ERRORS_OF(config, "2:1: this } closes nothing\n"
				"1:1: the block of this is never closed\n");
	config_free(config);
}

static void secret_file_brings_users(void)
{
	struct config *config;
	const struct config_chap *chap;

	config_write("secrets", "# people\nchap a secretsecret\nchap \"b c\" \"secretsecret1\"\n",
		     0640);
	config = load("auth-group g { secret-file secrets chap d secretsecret2 }");
	chap = config->auth_groups->next->chaps;
	CHECK_ERRORS_OF(config, "");
	CU_ASSERT_STRING_EQUAL(chap->user, "a");
	CU_ASSERT_STRING_EQUAL(chap->next->user, "b c");
	CU_ASSERT_STRING_EQUAL(chap->next->next->user, "d");
	CU_ASSERT_EQUAL(config->auth_groups->next->type, CONFIG_AUTH_CHAP);
	config_free(config);
}

static void secret_file_that_others_can_read_is_refused(void)
{
	char expected[4300];
	struct config *config;

	config_write("secrets", "chap a secretsecret", 0644);
	config = load("auth-group g { secret-file secrets }");
	snprintf(expected, sizeof(expected),
		 "1:28: secret-file: others can read or write %s (mode 0644): chmod o-rw\n",
		 config_path("secrets"));
	CHECK_ERRORS_OF(config, expected);
	config_free(config);
}

static void secret_file_holds_only_chap_lines(void)
{
	struct config *config;

	config_write("secrets", "path /x\nchap a", 0600);
	config = load("auth-group g { secret-file secrets }");
	CHECK_ERRORS_OF(config, "1:1: path does not belong in a secret-file but in a lun\n"
				"2:1: chap: a value is missing: chap USER SECRET\n");
	config_free(config);
}

static void readable_file_with_secrets_warns(void)
{
	static const char text[] = "auth-group g { chap a secretsecret }";
	struct config *config = load_file(config_write("main.conf", text, 0644));

	CHECK_WARNINGS_OF(config,
			  "1:16: everybody on this machine can read this file and the secrets in "
			  "it: chmod o-r, or put them into a secret-file\n");
	config_free(config);
	config = load_file(config_write("main.conf", text, 0640));
	CHECK_WARNINGS_OF(config, "");
	config_free(config);
	config = load_file(config_write("main.conf", "debug 1", 0644));
	CHECK_WARNINGS_OF(config, "");
	config_free(config);
}

static void memory_reads_no_files(void)
{
	CHECK_ERRORS("include /etc/passwd\nauth-group a { secret-file /etc/passwd }",
		     "1:9: include: no files are read here\n"
		     "2:28: secret-file: no files are read here\n");
}

/* The warnings of a served lun with these words. */
static void check_lun_warning(const char *words, const char *expected)
{
	char text[8300], all[4400] = "";
	struct config *config;

	snprintf(text, sizeof(text),
		 "target iqn.a { auth-type none portal-group p lun 0 {\n%s } }\n"
		 "portal-group p { listen 127.0.0.1 discovery-auth-group no-authentication }",
		 words);
	config = load(text);
	if (*expected)
		snprintf(all, sizeof(all), "2:6: %s\n", expected);
	CHECK_WARNINGS_OF(config, all);
	CHECK_ERRORS_OF(config, "");
	config_free(config);
}

static void missing_path_without_size_warns(void)
{
	check_lun_warning("path /nonexistent/disk",
			  "/nonexistent/disk does not exist and no size is given to make it: the "
			  "LUN is NOT READY until it appears");
	check_lun_warning("path /quintain-disk size 1G", "");
	check_lun_warning("path /dev/nonexistent size 1G",
			  "/dev/nonexistent does not exist: the LUN is NOT READY until it does (no "
			  "file is made below /dev)");
}

static void missing_path_that_is_not_made_warns(void)
{
	check_lun_warning("path /nonexistent/disk size 1G",
			  "/nonexistent/disk: its directory does not exist: the LUN is NOT READY "
			  "until it does");
	check_lun_warning("path /quintain-disk size 1G read-only yes",
			  "/quintain-disk does not exist, and none is made for read-only yes: the "
			  "LUN is NOT READY until it appears");
}

static void empty_file_without_size_warns(void)
{
	char words[4200], expected[4300];

	config_write("empty.img", "", 0600);
	snprintf(words, sizeof(words), "path %s", config_path("empty.img"));
	snprintf(expected, sizeof(expected),
		 "%s is empty and no size is given: the LUN has no capacity",
		 config_path("empty.img"));
	check_lun_warning(words, expected);
}

static void path_that_is_no_store_is_an_error(void)
{
	struct config *config = load("lun a { path / }\nlun b { path /dev/null }");

	CHECK_ERRORS_OF(config,
			"1:14: / is a directory: a regular file or a block device can be "
			"served\n"
			"2:14: /dev/null is something else: a regular file or a block device "
			"can be served\n");
	config_free(config);
}

static void links_to_one_file_are_one_path(void)
{
	char text[9000], expected[9000];
	struct config *config;

	config_write("disk.img", "x", 0600);
	unlink(config_path("link.img"));
	CU_ASSERT_EQUAL(symlink("disk.img", config_path("link.img")), 0);
	snprintf(text, sizeof(text), "lun a { path %s }\nlun b { path %s }",
		 config_path("disk.img"), config_path("link.img"));
	config = load(text);
	snprintf(expected, sizeof(expected),
		 "2:14: path %s is already that of lun a at %s:1:14: define it once, as lun NAME "
		 "{ } at the top level, and let each target have it by lun NUMBER NAME\n",
		 config_path("link.img"), config_path("main.conf"));
	CHECK_ERRORS_OF(config, expected);
	config_free(config);
}

static void missing_files_of_one_folder_are_one_path(void)
{
	char text[9000];
	struct config *config;

	snprintf(text, sizeof(text), "lun a { path %s }\nlun b { path %s/../%s }",
		 config_path("new.img"), config_path("conf.d"), "new.img");
	mkdir(config_path("conf.d"), 0700);
	config = load(text);
	CU_ASSERT_EQUAL(config->nerrors, 1);
	config_free(config);
}

static const struct test tests[] = {
	TEST(missing_file_is_an_error),
	TEST(folder_is_an_error),
	TEST(include_reads_beside_its_file),
	TEST(include_reads_what_a_pattern_matches_in_order),
	TEST(include_of_a_missing_file_is_an_error),
	TEST(include_of_itself_is_an_error),
	TEST(errors_name_the_included_file),
	TEST(blocks_end_with_their_file),
	TEST(secret_file_brings_users),
	TEST(secret_file_that_others_can_read_is_refused),
	TEST(secret_file_holds_only_chap_lines),
	TEST(readable_file_with_secrets_warns),
	TEST(memory_reads_no_files),
	TEST(missing_path_without_size_warns),
	TEST(missing_path_that_is_not_made_warns),
	TEST(empty_file_without_size_warns),
	TEST(path_that_is_no_store_is_an_error),
	TEST(links_to_one_file_are_one_path),
	TEST(missing_files_of_one_folder_are_one_path),
};
TEST_MAIN(tests)
