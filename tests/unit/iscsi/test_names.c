/* RFC 7143 4.2.7: names of iSCSI nodes. */
#include <string.h>

#include "target/iscsi/names.h"
#include "tests/unit/quintain_test.h"

static void check_name(const char *name, const char *expected)
{
	char out[ISCSI_NAME_LEN_MAX + 1];
	struct err err;

	CU_ASSERT_EQUAL(iscsi_name_normalize(name, out, sizeof(out), &err), 0);
	CU_ASSERT_STRING_EQUAL(out, expected);
}

static void check_bad(const char *name, const char *text)
{
	char out[ISCSI_NAME_LEN_MAX + 1];
	struct err err = { "" };

	CU_ASSERT_NOT_EQUAL(iscsi_name_normalize(name, out, sizeof(out), &err), 0);
	CU_ASSERT_STRING_EQUAL(err.text, text);
}

#define FORMS                                                                            \
	"an iSCSI name looks like iqn.2026-11.org.example:disk, or begins with eui. or " \
	"naa."

static void names_become_lower_case(void)
{
	check_name("IQN.1998-01.com.Example:Disk-1.x", "iqn.1998-01.com.example:disk-1.x");
	check_name("EUI.02004567A425678D", "eui.02004567a425678d");
	check_name("naa.62004567BA64678D0123456789ABCDEF", "naa.62004567ba64678d0123456789abcdef");
	check_name("naa.52004567ba64678d", "naa.52004567ba64678d");
}

static void underscore_is_taken_as_others_do(void)
{
	check_name("iqn.2020-01.a:b_c", "iqn.2020-01.a:b_c");
}

static void other_forms_are_refused(void)
{
	check_bad("", FORMS);
	check_bad("iqn.", FORMS);
	check_bad("disk", FORMS);
	check_bad("nqn.2014-08.org.example:x", FORMS);
}

static void characters_that_make_paths_are_refused(void)
{
	check_bad("iqn.a/../b",
		  "\"iqn.a/../b\": '/' may not stand in an iSCSI name: letters, digits, '-', '.' "
		  "and ':' may");
	check_bad("iqn.a b", "\"iqn.a b\": ' ' may not stand in an iSCSI name: letters, digits, "
			     "'-', '.' and ':' may");
	check_bad("iqn.a\nb", "byte 0x0a may not stand in an iSCSI name: letters, digits, '-', '.' "
			      "and ':' may");
	check_bad("iqn.\xc3\xa9", "byte 0xc3 may not stand in an iSCSI name: letters, digits, "
				  "'-', '.' and ':' may");
}

static void digits_of_eui_and_naa_are_counted(void)
{
	check_bad("eui.0200", "\"eui.\" is followed by 16 hexadecimal digits (RFC 7143 4.2.7)");
	check_bad("eui.02004567a425678g",
		  "\"eui.\" is followed by 16 hexadecimal digits (RFC 7143 4.2.7)");
	check_bad("naa.62004567ba64678d0",
		  "\"naa.\" is followed by 16 or 32 hexadecimal digits (RFC 7143 4.2.7)");
}

static void names_have_223_bytes_at_most(void)
{
	char name[ISCSI_NAME_LEN_MAX + 2];

	memset(name, 'a', sizeof(name));
	memcpy(name, "iqn.", 4);
	name[ISCSI_NAME_LEN_MAX + 1] = '\0';
	check_bad(name, "an iSCSI name has at most 223 bytes");
	name[ISCSI_NAME_LEN_MAX] = '\0';
	check_name(name, name);
}

static const struct test tests[] = {
	TEST(names_become_lower_case),
	TEST(underscore_is_taken_as_others_do),
	TEST(other_forms_are_refused),
	TEST(characters_that_make_paths_are_refused),
	TEST(digits_of_eui_and_naa_are_counted),
	TEST(names_have_223_bytes_at_most),
};
TEST_MAIN(tests)
