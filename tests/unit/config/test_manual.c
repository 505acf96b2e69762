/*
 * The manual page of the configuration and its example.  Runs in the top folder;
 * UPDATE_DOCS=1 (`make docs`) writes the page.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/sections.h"
#include "tests/unit/config/config_fixture.h"
#include "tests/unit/config/manual.h"
#include "tests/unit/quintain_test.h"

#define TEMPLATE "docs/quintain.conf.5.in"
#define PAGE	 "docs/quintain.conf.5"

static void write_page(const char *page)
{
	FILE *file = fopen(PAGE, "w");

	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	fputs(page, file);
	CU_ASSERT_EQUAL(fclose(file), 0);
}

static void page_is_made_of_rows_and_template(void)
{
	char *template = manual_read(TEMPLATE), *page, *committed;

	CU_ASSERT_PTR_NOT_NULL_FATAL(template);
	page = manual_make(template);
	CU_ASSERT_PTR_NOT_NULL_FATAL(page);
	if (getenv("UPDATE_DOCS"))
		write_page(page);
	committed = manual_read(PAGE);
	CU_ASSERT_PTR_NOT_NULL_FATAL(committed);
	if (strcmp(page, committed) != 0)
		puts(PAGE " is not up to date: run make docs");
	CU_ASSERT_STRING_EQUAL(page, committed);
	free(template);
	free(page);
	free(committed);
}

/* "chap-mutual" as the page has it: chap\-mutual in bold. */
static void bold(const char *word, char *out, size_t cap)
{
	size_t len = (size_t)snprintf(out, cap, "\\fB");

	for (; *word && len + 8 < cap; word++) {
		if (*word == '-')
			out[len++] = '\\';
		out[len++] = *word;
	}
	snprintf(out + len, cap - len, "\\fR");
}

static void page_names_every_word(void)
{
	static const struct section *const sections[] = {
		&config_section_global,	      &config_section_auth_group,
		&config_section_portal_group, &config_section_lun,
		&config_section_pool,	      &config_section_target,
		&config_section_secret_file,
	};
	char *page = manual_read(PAGE), word[64];

	CU_ASSERT_PTR_NOT_NULL_FATAL(page);
	for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
		for (const struct section_word *w = sections[i]->words; w->name; w++) {
			bold(w->name, word, sizeof(word));
			if (!strstr(page, word))
				printf("%s does not name %s\n", PAGE, w->name);
			CU_ASSERT_PTR_NOT_NULL(strstr(page, word));
		}
	}
	free(page);
}

/* Their paths need not exist here. */
static void check_example(const char *path)
{
	char *text = manual_read(path);
	struct config *config;

	CU_ASSERT_PTR_NOT_NULL_FATAL(text);
	config = config_of(text);
	CHECK_ERRORS_OF(config, "");
	CHECK_WARNINGS_OF(config, "");
	config_free(config);
	free(text);
}

static void examples_have_no_errors_and_no_warnings(void)
{
	check_example("config/quintain.conf.example");
	check_example("config/default.conf");
}

/* What the page shows between "\" EXAMPLE and "\" END. */
static void example_of_the_page_loads(void)
{
	char *page = manual_read(PAGE), *begin, *end, *to;

	CU_ASSERT_PTR_NOT_NULL_FATAL(page);
	begin = strstr(page, ".\\\" EXAMPLE\n.nf\n");
	CU_ASSERT_PTR_NOT_NULL_FATAL(begin);
	begin = strchr(begin, '\n') + strlen("\n.nf\n");
	end = strstr(begin, ".fi\n.\\\" END\n");
	CU_ASSERT_PTR_NOT_NULL_FATAL(end);
	*end = '\0';
	/* \- is a hyphen in the source of a page. */
	to = begin;
	for (const char *from = begin; *from; from++)
		if (from[0] != '\\' || from[1] != '-')
			*to++ = *from;
	*to = '\0';
	CHECK_ERRORS(begin, "");
	CHECK_WARNINGS(begin, "");
	free(page);
}

static const struct test tests[] = {
	TEST(page_is_made_of_rows_and_template),
	TEST(page_names_every_word),
	TEST(examples_have_no_errors_and_no_warnings),
	TEST(example_of_the_page_loads),
};
TEST_MAIN(tests)
