/* portal-group blocks and the addresses in them. */
#include <string.h>

#include "tests/unit/config/config_fixture.h"
#include "tests/unit/quintain_test.h"

static void check_listen(const char *address, const char *host, const char *port, bool v6only)
{
	char text[256];
	struct config *config;
	const struct config_listen *listen;

	snprintf(text, sizeof(text), "portal-group p { listen \"%s\" }", address);
	config = config_of(text);
	CHECK_ERRORS_OF(config, "");
	listen = config->portal_groups->listens;
	CU_ASSERT_STRING_EQUAL(listen->host, host);
	CU_ASSERT_STRING_EQUAL(listen->port, port);
	CU_ASSERT_EQUAL(listen->v6only, v6only);
	config_free(config);
}

static void listen_takes_all_forms_of_addresses(void)
{
	check_listen("192.0.2.1", "192.0.2.1", "3260", false);
	check_listen("192.0.2.1:3261", "192.0.2.1", "3261", false);
	check_listen("[::]", "::", "3260", true);
	check_listen("[2001:db8::1]:1", "2001:db8::1", "1", true);
	check_listen("2001:db8::1", "2001:db8::1", "3260", true);
	check_listen("[fe80::1%eth0]", "fe80::1%eth0", "3260", true);
	check_listen("san.example.org:65535", "san.example.org", "65535", false);
	check_listen(":3260", "", "3260", false);
}

static void bad_address_is_an_error(void)
{
	CHECK_ERRORS("portal-group p {\nlisten 192.0.2.300\nlisten [::1\nlisten [::g]\n"
		     "listen [::1]3260\nlisten host:0\nlisten host:65536\nlisten host:iscsi\n"
		     "listen a_b!c\nlisten \"\"\nlisten host:\nlisten [192.0.2.1]\n}",
		     "2:8: listen: 192.0.2.300 is not an IPv4 address\n"
		     "3:8: listen: [::1 is not [ADDRESS] or [ADDRESS]:PORT\n"
		     "4:8: listen: ::g is not an IPv6 address\n"
		     "5:8: listen: [::1]3260 is not [ADDRESS] or [ADDRESS]:PORT\n"
		     "6:8: listen: 0 is not a port of 1..65535\n"
		     "7:8: listen: 65536 is not a port of 1..65535\n"
		     "8:8: listen: iscsi is not a port of 1..65535\n"
		     "9:8: listen: a_b!c is not an address or a host name\n"
		     "10:8: listen: an empty address\n"
		     "11:8: listen: nothing is not a port of 1..65535\n"
		     "12:8: listen: 192.0.2.1 is not an IPv6 address\n");
}

static void advertise_belongs_to_the_listen_before_it(void)
{
	struct config *config = config_of("portal-group p { listen 10.0.0.1 advertise 192.0.2.1 "
					  "listen 10.0.0.2 listen 10.0.0.3 "
					  "advertise [2001:db8::1]:99 }");
	const struct config_listen *listen = config->portal_groups->listens;

	CHECK_ERRORS_OF(config, "");
	CU_ASSERT_STRING_EQUAL(listen->advertise, "192.0.2.1:3260");
	CU_ASSERT_PTR_NULL(listen->next->advertise);
	CU_ASSERT_STRING_EQUAL(listen->next->next->advertise, "[2001:db8::1]:99");
	config_free(config);
}

static void advertise_needs_an_address_to_reach(void)
{
	CHECK_ERRORS("portal-group p { advertise 192.0.2.1 }",
		     "1:18: advertise belongs to the listen before it: there is none\n");
	CHECK_ERRORS("portal-group p {\nlisten 10.0.0.1\nadvertise 0.0.0.0:3260\n"
		     "advertise 192.0.2.1\nadvertise 192.0.2.2\n}",
		     "3:11: advertise: initiators need an address that they can reach, not "
		     "0.0.0.0:3260\n"
		     "5:1: advertise is already given for the listen at test.conf:2:8\n");
}

static void discovery_words_are_read(void)
{
	struct config *config = config_of(
		"portal-group p { discovery-filter portal-name-auth "
		"discovery-portals all discovery-auth-group no-authentication tag 7 }");
	const struct config_portal_group *group = config->portal_groups;

	CHECK_ERRORS_OF(config, "");
	CU_ASSERT_EQUAL(group->discovery_filter, CONFIG_FILTER_PORTAL_NAME_AUTH);
	CU_ASSERT_TRUE(group->discovery_all);
	CU_ASSERT_EQUAL(group->discovery_auth->type, CONFIG_AUTH_NONE);
	CU_ASSERT_EQUAL(group->tag, 7);
	config_free(config);
}

static void discovery_is_denied_by_default(void)
{
	struct config *config = config_of("portal-group p { listen 127.0.0.1 }");

	CU_ASSERT_EQUAL(config->portal_groups->discovery_auth->type, CONFIG_AUTH_DENY);
	CHECK_WARNINGS_OF(config, "1:14: portal-group p answers no discovery: it has no "
				  "discovery-auth-group\n"
				  "1:14: portal-group p is named by no target\n");
	config_free(config);
}

static void dscp_has_numbers_and_names(void)
{
	static const struct {
		const char *word;
		uint8_t value;
	} cases[] = { { "0", 0 },   { "63", 63 },  { "0x2e", 46 }, { "be", 0 },
		      { "EF", 46 }, { "cs7", 56 }, { "af43", 38 } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[64];
		struct config *config;

		snprintf(text, sizeof(text), "portal-group p { dscp %s }", cases[i].word);
		config = config_of(text);
		CHECK_ERRORS_OF(config, "");
		CU_ASSERT_EQUAL(config->portal_groups->dscp, cases[i].value);
		config_free(config);
	}
	CHECK_ERRORS("portal-group p { dscp 64 }",
		     "1:23: dscp: 64 is not 0..63, be, ef, cs0..cs7 or af11..af43\n");
	CHECK_ERRORS("portal-group p { dscp 0x }",
		     "1:23: dscp: 0x is not 0..63, be, ef, cs0..cs7 or af11..af43\n");
}

static void tags_are_unique(void)
{
	CHECK_ERRORS("portal-group p { tag 0 }\nportal-group q { tag 5 }\nportal-group r { tag 5 }",
		     "1:22: tag: 0 is not a number of 1..65535\n"
		     "3:22: tag 5 is already that of portal-group q at test.conf:2:22\n");
}

static void default_group_is_every_address(void)
{
	struct config *config = config_of("target iqn.a { }");
	const struct config_portal_group *group = config->portal_groups;

	CU_ASSERT_PTR_EQUAL(config->targets->ports->group, group);
	CU_ASSERT_STRING_EQUAL(group->name, "default");
	CU_ASSERT_STRING_EQUAL(group->listens->host, "0.0.0.0");
	CU_ASSERT_STRING_EQUAL(group->listens->next->host, "::");
	CU_ASSERT_TRUE(group->listens->next->v6only);
	config_free(config);
}

static void default_group_is_there_when_it_is_used(void)
{
	struct config *config = config_of("portal-group p { listen 127.0.0.1 }\n"
					  "target iqn.a { portal-group p }");

	CU_ASSERT_PTR_NULL(config->portal_groups->next);
	config_free(config);
}

static void address_of_two_groups_is_an_error(void)
{
	CHECK_ERRORS("portal-group p { listen 127.0.0.1 }\n"
		     "portal-group q { listen 127.0.0.1:3260 listen 127.0.0.1:3261 }",
		     "2:25: portal-group p already listens on this address and port "
		     "(test.conf:1:25)\n");
	CHECK_ERRORS("portal-group p { listen [2001:db8:0::1] listen 2001:DB8::1 }",
		     "1:48: portal-group p already listens on this address and port "
		     "(test.conf:1:25)\n");
}

static void overlapping_addresses_warn(void)
{
	CHECK_WARNINGS("portal-group p { discovery-auth-group no-authentication listen 0.0.0.0 }\n"
		       "portal-group q { discovery-auth-group no-authentication "
		       "listen 127.0.0.1 listen [::1] }\n"
		       "target iqn.a { auth-type none portal-group p portal-group q "
		       "lun 0 { path /x } }",
		       "2:64: 127.0.0.1 port 3260 of portal-group q overlaps 0.0.0.0 of "
		       "portal-group p (test.conf:1:64): only one of them may be able to listen\n");
}

static void default_group_yields_its_address(void)
{
	struct config *config = config_of(
		"portal-group p { discovery-auth-group no-authentication listen 0.0.0.0 }\n"
		"auth-group default { auth-type none }\n"
		"target iqn.a { portal-group p lun 0 l } lun l { path /x }\n"
		"target iqn.b { lun 0 l }");
	const struct config_portal_group *group = config->targets->next->ports->group;

	CHECK_ERRORS_OF(config, "");
	CHECK_WARNINGS_OF(config, "4:8: this target is in the predefined portal-group default, "
				  "whose address 0.0.0.0 port 3260 belongs to portal-group p: it "
				  "cannot be reached there\n");
	CU_ASSERT_STRING_EQUAL(group->listens->host, "::");
	CU_ASSERT_PTR_NULL(group->listens->next);
	config_free(config);
}

static const struct test tests[] = {
	TEST(listen_takes_all_forms_of_addresses),
	TEST(bad_address_is_an_error),
	TEST(advertise_belongs_to_the_listen_before_it),
	TEST(advertise_needs_an_address_to_reach),
	TEST(discovery_words_are_read),
	TEST(discovery_is_denied_by_default),
	TEST(dscp_has_numbers_and_names),
	TEST(tags_are_unique),
	TEST(default_group_is_every_address),
	TEST(default_group_is_there_when_it_is_used),
	TEST(address_of_two_groups_is_an_error),
	TEST(overlapping_addresses_warn),
	TEST(default_group_yields_its_address),
};
TEST_MAIN(tests)
