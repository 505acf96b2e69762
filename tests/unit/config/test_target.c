/* target blocks, their LUNs and limits. */
#include "tests/unit/config/config_fixture.h"
#include "tests/unit/quintain_test.h"

static void names_become_lower_case(void)
{
	struct config *config = config_of("target IQN.2020-01.Org.Example:Disk { }");

	CHECK_ERRORS_OF(config, "");
	CU_ASSERT_STRING_EQUAL(config->targets->name, "iqn.2020-01.org.example:disk");
	config_free(config);
}

static void bad_name_is_an_error(void)
{
	CHECK_ERRORS("target \"iqn.a/../b\" { }",
		     "1:8: target: \"iqn.a/../b\": '/' may not stand in an iSCSI name: letters, "
		     "digits, '-', '.' and ':' may\n");
	CHECK_ERRORS(
		"target disk { }",
		"1:8: target: an iSCSI name looks like iqn.2026-11.org.example:disk, or begins "
		"with eui. or naa.\n");
}

static void luns_ascend_whatever_their_order(void)
{
	struct config *config = config_of("target iqn.a { lun 16383 { path /c } lun 0 { path /a }\n"
					  "lun 7 { path /b } }");
	const struct config_lun_map *map = config->targets->luns;

	CHECK_ERRORS_OF(config, "");
	CU_ASSERT_EQUAL(map->number, 0);
	CU_ASSERT_STRING_EQUAL(map->lun->name, "iqn.a,lun,0");
	CU_ASSERT_EQUAL(map->next->number, 7);
	CU_ASSERT_EQUAL(map->next->next->number, 16383);
	CU_ASSERT_PTR_NULL(map->next->next->next);
	config_free(config);
}

static void lun_numbers_have_14_bits(void)
{
	CHECK_ERRORS("target iqn.a { lun 16384 { path /a } lun x { path /b sizee 1 } }",
		     "1:20: lun: 16384 is not a number of 0..16383\n"
		     "1:42: lun: x is not a number of 0..16383\n"
		     "1:54: unknown word sizee in a lun: did you mean size?\n");
}

static void repeated_lun_number_names_the_first(void)
{
	CHECK_ERRORS("target iqn.a { lun 1 { path /a }\nlun 1 { path /b } }",
		     "2:5: lun 1 of this target is already given at test.conf:1:20\n");
}

static void lun_may_be_in_several_targets(void)
{
	struct config *config = config_of("target iqn.a { lun 0 l } target iqn.b { lun 5 l }\n"
					  "lun l { path /x }");

	CHECK_ERRORS_OF(config, "");
	CU_ASSERT_PTR_EQUAL(config->targets->luns->lun, config->targets->next->luns->lun);
	CU_ASSERT_EQUAL(config->luns->nmaps, 2);
	config_free(config);
}

static void target_without_luns_warns(void)
{
	CHECK_WARNINGS("target iqn.a { auth-type none portal-group p }\n"
		       "portal-group p { listen 127.0.0.1 discovery-auth-group no-authentication }",
		       "1:8: target iqn.a has no LUNs\n");
}

static void portal_group_may_bring_an_auth_group(void)
{
	struct config *config = config_of(
		"target iqn.a { auth-group no-authentication portal-group p people\n"
		"portal-group q\n}\n"
		"auth-group people { chap u secretsecret }\n"
		"portal-group p { listen 127.0.0.1 } portal-group q { listen 127.0.0.2 }");
	const struct config_target_port *port = config->targets->ports;

	CHECK_ERRORS_OF(config, "");
	CU_ASSERT_STRING_EQUAL(port->auth->name, "people");
	CU_ASSERT_STRING_EQUAL(port->next->auth->name, "no-authentication");
	CU_ASSERT_STRING_EQUAL(port->next->group->name, "q");
	config_free(config);
}

static void quoted_word_is_never_a_keyword(void)
{
	CHECK_ERRORS("target iqn.a { portal-group p \"alias\" }\n"
		     "portal-group p { } auth-group alias { auth-type none }",
		     "");
}

static void repeated_portal_group_is_an_error(void)
{
	CHECK_ERRORS("target iqn.a { portal-group p portal-group p }\nportal-group p { }",
		     "1:44: portal-group p is already given at test.conf:1:29\n");
}

static void limits_default_to_the_top_level(void)
{
	struct config *config = config_of("target iqn.a { header-digest required queue-depth 8 }\n"
					  "target iqn.b { }\n"
					  "queue-depth 64 nop-interval 5");
	const struct config_target *target = config->targets;

	CHECK_ERRORS_OF(config, "");
	CU_ASSERT_EQUAL(target->limits.queue_depth, 8);
	CU_ASSERT_EQUAL(target->limits.header_digest, ISCSI_DIGEST_REQUIRED);
	CU_ASSERT_EQUAL(target->limits.nop_interval, 5);
	CU_ASSERT_EQUAL(target->next->limits.queue_depth, 64);
	CU_ASSERT_EQUAL(target->next->limits.header_digest, ISCSI_DIGEST_OPTIONAL);
	config_free(config);
}

static void first_burst_is_within_max_burst(void)
{
	struct config *config = config_of("max-burst-length 16K\ntarget iqn.a { }");

	CU_ASSERT_EQUAL(config->targets->limits.first_burst_length, 16384);
	CU_ASSERT_EQUAL(config->limits.first_burst_length, 16384);
	config_free(config);
	CHECK_WARNINGS("first-burst-length 32K max-burst-length 16K",
		       "1:20: first-burst-length: 32768 is more than max-burst-length, which is "
		       "used for both: 16384\n");
}

static const struct test tests[] = {
	TEST(names_become_lower_case),
	TEST(bad_name_is_an_error),
	TEST(luns_ascend_whatever_their_order),
	TEST(lun_numbers_have_14_bits),
	TEST(repeated_lun_number_names_the_first),
	TEST(lun_may_be_in_several_targets),
	TEST(target_without_luns_warns),
	TEST(portal_group_may_bring_an_auth_group),
	TEST(quoted_word_is_never_a_keyword),
	TEST(repeated_portal_group_is_an_error),
	TEST(limits_default_to_the_top_level),
	TEST(first_burst_is_within_max_burst),
};
TEST_MAIN(tests)
