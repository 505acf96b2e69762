/* iSCSI names: RFC 7143 4.2.7. */
#include "target/iscsi/names.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/list.h"
#include "tests/unit/quintain_test.h"

static void normalizes(const char *name, const char *expected)
{
	char out[ISCSI_NAME_LEN_MAX + 1];

	CU_ASSERT_EQUAL_FATAL(iscsi_name_normalize(name, out, sizeof(out), NULL), 0);
	CU_ASSERT_STRING_EQUAL(out, expected);
}

static void refuses(const char *name)
{
	char out[ISCSI_NAME_LEN_MAX + 1];
	struct err err = { "" };

	CU_ASSERT_EQUAL(iscsi_name_normalize(name, out, sizeof(out), &err), -EINVAL);
	CU_ASSERT_STRING_NOT_EQUAL(err.text, "");
}

static void names_of_all_three_forms_are_taken(void)
{
	normalizes("iqn.2026-11.org.example", "iqn.2026-11.org.example");
	normalizes("iqn.2026-11.org.example:a:b-c.d", "iqn.2026-11.org.example:a:b-c.d");
	normalizes("eui.0123456789abcdef", "eui.0123456789abcdef");
	normalizes("naa.0123456789abcdef", "naa.0123456789abcdef");
	normalizes("naa.0123456789abcdef0123456789abcdef", "naa.0123456789abcdef0123456789abcdef");
}

static void names_are_compared_in_lower_case(void)
{
	normalizes("IQN.2026-11.Org.Example:DISK", "iqn.2026-11.org.example:disk");
	normalizes("EUI.0123456789ABCDEF", "eui.0123456789abcdef");
}

static void names_with_an_underscore_are_taken(void)
{
	normalizes("iqn.1991-05.com.microsoft:my_host", "iqn.1991-05.com.microsoft:my_host");
}

static void names_of_other_forms_are_refused(void)
{
	static const char *const names[] = { "",
					     "iqn.",
					     "disk",
					     "eui.0123",
					     "eui.0123456789abcdeg",
					     "eui.0123456789abcdef0123456789abcdef",
					     "naa.0123456789abcdef01" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		refuses(names[i]);
}

static void names_that_could_be_paths_or_commands_are_refused(void)
{
	static const char *const names[] = {
		"iqn.2026-11.org.example:a/b",	   "iqn.2026-11.org.example:a b",
		"iqn.2026-11.org.example:a\nb",	   "iqn.2026-11.org.example:a\\b",
		"iqn.2026-11.org.example:a$b",	   "iqn.2026-11.org.example:a,b",
		"iqn.2026-11.org.example:\303\266"
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		refuses(names[i]);
}

static void names_have_at_most_223_bytes(void)
{
	char name[ISCSI_NAME_LEN_MAX + 2];

	memset(name, 'a', sizeof(name));
	memcpy(name, "iqn.", 4);
	name[ISCSI_NAME_LEN_MAX] = '\0';
	normalizes(name, name);
	name[ISCSI_NAME_LEN_MAX] = 'a';
	name[ISCSI_NAME_LEN_MAX + 1] = '\0';
	refuses(name);
}

static const struct test tests[] = {
	TEST(names_of_all_three_forms_are_taken),
	TEST(names_are_compared_in_lower_case),
	TEST(names_with_an_underscore_are_taken),
	TEST(names_of_other_forms_are_refused),
	TEST(names_that_could_be_paths_or_commands_are_refused),
	TEST(names_have_at_most_223_bytes),
};

TEST_MAIN(tests)
