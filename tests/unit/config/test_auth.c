/* auth-group blocks and the same words within a target. */
#include <string.h>

#include "tests/unit/config/config_fixture.h"
#include "tests/unit/quintain_test.h"

static const struct config_auth_group *group_named(const struct config *config, const char *name)
{
	const struct config_auth_group *group = config->auth_groups;

	while (group && strcmp(group->name, name) != 0)
		group = group->next;
	CU_ASSERT_PTR_NOT_NULL_FATAL(group);
	return group;
}

static void predefined_groups_are_there(void)
{
	struct config *config = config_of("");

	CU_ASSERT_EQUAL(group_named(config, "default")->type, CONFIG_AUTH_DENY);
	CU_ASSERT_EQUAL(group_named(config, "no-authentication")->type, CONFIG_AUTH_NONE);
	config_free(config);
}

static void default_group_may_be_defined_once(void)
{
	struct config *config =
		config_of("target iqn.a { }\nauth-group default { auth-type none }");

	CHECK_ERRORS_OF(config, "");
	CU_ASSERT_EQUAL(config->targets->auth->type, CONFIG_AUTH_NONE);
	config_free(config);
	CHECK_ERRORS("auth-group no-authentication { }",
		     "1:12: auth-group no-authentication is predefined: choose another name\n");
}

static void type_follows_the_entries(void)
{
	struct config *config = config_of(
		"auth-group a { chap u secretsecret }\n"
		"auth-group b { chap-mutual u secretsecret v otherother12 }");

	CHECK_ERRORS_OF(config, "");
	CU_ASSERT_EQUAL(group_named(config, "a")->type, CONFIG_AUTH_CHAP);
	CU_ASSERT_EQUAL(group_named(config, "b")->type, CONFIG_AUTH_CHAP_MUTUAL);
	CU_ASSERT_STRING_EQUAL(group_named(config, "b")->chaps->mutual_user, "v");
	config_free(config);
}

static void group_without_type_denies(void)
{
	struct config *config = config_of("auth-group a { initiator-name iqn.b }");

	CHECK_WARNINGS_OF(config, "1:12: a accepts nobody: it has neither chap nor auth-type "
				  "(auth-type none asks for no password)\n");
	CU_ASSERT_EQUAL(group_named(config, "a")->type, CONFIG_AUTH_DENY);
	config_free(config);
}

static void chap_and_chap_mutual_do_not_mix(void)
{
	CHECK_ERRORS("auth-group a {\n\tchap u secretsecret\n"
		     "\tchap-mutual v secretsecret w othersecret1\n}",
		     "3:2: chap and chap-mutual do not mix in one group: the other is at "
		     "test.conf:2:2\n");
}

static void type_and_entries_agree(void)
{
	CHECK_ERRORS("auth-group a { auth-type none chap u secretsecret }",
		     "1:26: auth-type none does not go with the chap at test.conf:1:31\n");
	CHECK_ERRORS("auth-group a { chap u secretsecret auth-type chap-mutual }",
		     "1:46: auth-type chap-mutual does not go with the chap at test.conf:1:16\n");
	CHECK_WARNINGS("auth-group a { auth-type chap }",
		       "1:26: a accepts nobody: no user is given\n");
}

static void repeated_user_is_an_error(void)
{
	CHECK_ERRORS("auth-group a { chap u secretsecret chap u secretsecret2 }",
		     "1:41: user u is already given at test.conf:1:16\n");
}

static void secret_that_windows_refuses_warns(void)
{
	CHECK_WARNINGS("auth-group a { chap u short chap v 12345678901234567 }",
		       "1:23: a secret of 5 characters: Windows takes only 12 to 16, and short "
		       "ones can be guessed\n"
		       "1:36: a secret of 17 characters: Windows takes only 12 to 16\n");
	CHECK_WARNINGS("auth-group a { chap u 123456789012 chap v 1234567890123456 }", "");
}

static void empty_secret_is_an_error(void)
{
	CHECK_ERRORS("auth-group a { chap u \"\" }", "1:23: a CHAP secret has 1 to 255 bytes\n");
	CHECK_ERRORS("auth-group a { chap \"\" secretsecret }",
		     "1:21: a CHAP user has 1 to 255 bytes\n");
}

static void one_secret_for_both_directions_warns(void)
{
	CHECK_WARNINGS("auth-group a { chap-mutual u secretsecret v secretsecret }",
		       "1:45: both directions have the same secret (RFC 7143 9.2.1 forbids it): "
		       "an initiator that logs in elsewhere gives ours away\n");
}

static void initiator_names_become_patterns_in_lower_case(void)
{
	struct config *config = config_of("auth-group a { auth-type none initiator-name "
					  "IQN.2020-01.Com.Example:* initiator-name iqn.b }");
	const struct config_word *names = group_named(config, "a")->initiator_names;

	CHECK_WARNINGS_OF(config, "");
	CU_ASSERT_STRING_EQUAL(names->text, "iqn.2020-01.com.example:*");
	CU_ASSERT_STRING_EQUAL(names->next->text, "iqn.b");
	config_free(config);
}

static void impossible_initiator_name_warns(void)
{
	CHECK_WARNINGS("auth-group a { auth-type none initiator-name host }",
		       "1:46: no initiator can have this name: an iSCSI name looks like "
		       "iqn.2026-11.org.example:disk, or begins with eui. or naa.\n");
}

static void initiator_portals_are_ranges(void)
{
	CHECK_ERRORS("auth-group a { auth-type none initiator-portal 192.0.2.0/24\n"
		     "initiator-portal [2001:db8::1]\ninitiator-portal [2001:db8::]/32\n"
		     "initiator-portal 2001:db8::1/128\ninitiator-portal 192.0.2.1 }",
		     "");
}

static void bad_initiator_portal_is_an_error(void)
{
	CHECK_ERRORS("auth-group a { auth-type none initiator-portal 192.0.2.0/33\n"
		     "initiator-portal host\ninitiator-portal 192.0.2.300\n"
		     "initiator-portal ::/129 initiator-portal 192.0.2.0/ }",
		     "1:48: initiator-portal: 192.0.2.0/33: 33 is not a prefix length of 0..32\n"
		     "2:18: initiator-portal: host: not an IPv4 or IPv6 address, such as "
		     "192.0.2.0/24\n"
		     "3:18: initiator-portal: 192.0.2.300: not an IPv4 or IPv6 address, such as "
		     "192.0.2.0/24\n"
		     "4:18: initiator-portal: ::/129: 129 is not a prefix length of 0..128\n"
		     "4:42: initiator-portal: 192.0.2.0/:  is not a prefix length of 0..32\n");
}

static void target_has_words_of_its_own(void)
{
	struct config *config = config_of("target iqn.a { chap u secretsecret chap v secretsecret "
					  "initiator-portal 192.0.2.0/24 }");
	const struct config_auth_group *auth = config->targets->auth;

	CHECK_ERRORS_OF(config, "");
	CU_ASSERT_STRING_EQUAL(auth->name, "target iqn.a");
	CU_ASSERT_EQUAL(auth->type, CONFIG_AUTH_CHAP);
	CU_ASSERT_STRING_EQUAL(auth->chaps->next->user, "v");
	CU_ASSERT_STRING_EQUAL(auth->initiator_portals->text, "192.0.2.0/24");
	CU_ASSERT_PTR_EQUAL(config->targets->ports->auth, auth);
	config_free(config);
}

static void target_does_not_mix_group_and_own_words(void)
{
	CHECK_ERRORS("target iqn.a {\nauth-group no-authentication\nchap u secretsecret\n}",
		     "3:1: chap does not go with auth-group (test.conf:2:12): put it into that "
		     "group\n");
	CHECK_ERRORS("target iqn.a {\nauth-type none\nauth-group no-authentication\n}",
		     "3:1: auth-group does not go with the target's own words for it "
		     "(test.conf:2:1)\n");
}

static void target_without_group_accepts_nobody(void)
{
	CHECK_WARNINGS(
		"portal-group p { discovery-auth-group no-authentication listen 127.0.0.1 }\n"
		"target iqn.a { portal-group p lun 0 { path /x } }",
		"2:8: target iqn.a accepts nobody: it has no auth-group\n");
	CHECK_WARNINGS(
		"portal-group p { discovery-auth-group no-authentication listen 127.0.0.1 }\n"
		"target iqn.a { portal-group p no-authentication lun 0 { path /x } }",
		"");
}

static const struct test tests[] = {
	TEST(predefined_groups_are_there),
	TEST(default_group_may_be_defined_once),
	TEST(type_follows_the_entries),
	TEST(group_without_type_denies),
	TEST(chap_and_chap_mutual_do_not_mix),
	TEST(type_and_entries_agree),
	TEST(repeated_user_is_an_error),
	TEST(secret_that_windows_refuses_warns),
	TEST(empty_secret_is_an_error),
	TEST(one_secret_for_both_directions_warns),
	TEST(initiator_names_become_patterns_in_lower_case),
	TEST(impossible_initiator_name_warns),
	TEST(initiator_portals_are_ranges),
	TEST(bad_initiator_portal_is_an_error),
	TEST(target_has_words_of_its_own),
	TEST(target_does_not_mix_group_and_own_words),
	TEST(target_without_group_accepts_nobody),
};
TEST_MAIN(tests)
