/* Who may come in, by name and address: ctl.conf(5), initiator-name and -portal. */
#include "target/iscsi/view.h"

#include "tests/login/fixture.h"
#include "tests/unit/quintain_test.h"

static bool name_matches(const char *pattern, const char *name)
{
	const struct iscsi_auth_group group = { .initiator_names = &pattern,
						.ninitiator_names = 1 };

	return iscsi_auth_name_matches(&group, name);
}

static bool address_matches(const char *range, uint8_t prefix_len, const char *peer)
{
	struct iscsi_address_range r = { fixture_address(range, 0), prefix_len };
	const struct iscsi_auth_group group = { .initiator_portals = &r, .ninitiator_portals = 1 };
	struct sockaddr_storage addr = fixture_address(peer, 4711);

	return iscsi_auth_address_matches(&group, &addr);
}

static void auth_name_patterns_match_the_whole_name(void)
{
	CU_ASSERT_TRUE(name_matches("iqn.a:b", "iqn.a:b"));
	CU_ASSERT_FALSE(name_matches("iqn.a:b", "iqn.a:bc"));
	CU_ASSERT_FALSE(name_matches("iqn.a:bc", "iqn.a:b"));
	CU_ASSERT_FALSE(name_matches("", "iqn.a:b"));
}

static void auth_name_patterns_have_stars_for_any_run(void)
{
	CU_ASSERT_TRUE(name_matches("*", "iqn.a:b"));
	CU_ASSERT_TRUE(name_matches("iqn.a:*", "iqn.a:"));
	CU_ASSERT_TRUE(name_matches("*:b*d*", "iqn.a:bxbcxd"));
	CU_ASSERT_FALSE(name_matches("*:b*e", "iqn.a:bcd"));
}

static void auth_name_patterns_have_question_marks_for_one_character(void)
{
	CU_ASSERT_TRUE(name_matches("iqn.a:host-??", "iqn.a:host-07"));
	CU_ASSERT_FALSE(name_matches("iqn.a:host-??", "iqn.a:host-7"));
}

/* Brackets mean nothing, unlike in a shell. */
static void auth_name_patterns_have_nothing_else(void)
{
	CU_ASSERT_FALSE(name_matches("iqn.a:[b]", "iqn.a:b"));
}

static void auth_name_patterns_take_bounded_work(void)
{
	char name[224];

	memset(name, 'a', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	CU_ASSERT_FALSE(name_matches("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", name));
}

static void auth_empty_lists_let_everybody_through(void)
{
	static const struct iscsi_auth_group group = { .type = ISCSI_AUTH_NONE };
	struct sockaddr_storage peer = fixture_address("192.0.2.1", 1);

	CU_ASSERT_TRUE(iscsi_auth_name_matches(&group, "iqn.a:b"));
	CU_ASSERT_TRUE(iscsi_auth_address_matches(&group, &peer));
}

static void auth_ranges_compare_the_bits_of_their_prefix(void)
{
	CU_ASSERT_TRUE(address_matches("192.0.2.0", 24, "192.0.2.255"));
	CU_ASSERT_FALSE(address_matches("192.0.2.0", 24, "192.0.3.0"));
	CU_ASSERT_TRUE(address_matches("192.0.2.128", 25, "192.0.2.129"));
	CU_ASSERT_FALSE(address_matches("192.0.2.128", 25, "192.0.2.127"));
	CU_ASSERT_TRUE(address_matches("192.0.2.7", 32, "192.0.2.7"));
	CU_ASSERT_FALSE(address_matches("192.0.2.7", 32, "192.0.2.6"));
	CU_ASSERT_TRUE(address_matches("0.0.0.0", 0, "203.0.113.1"));
}

static void auth_ranges_of_ipv6_compare_too(void)
{
	CU_ASSERT_TRUE(address_matches("2001:db8::", 33, "2001:db8:7fff::1"));
	CU_ASSERT_FALSE(address_matches("2001:db8::", 33, "2001:db8:8000::1"));
	CU_ASSERT_FALSE(address_matches("::", 0, "192.0.2.1"));
}

static void auth_takes_mapped_addresses_as_ipv4(void)
{
	CU_ASSERT_TRUE(address_matches("192.0.2.0", 24, "::ffff:192.0.2.9"));
	CU_ASSERT_TRUE(address_matches("::ffff:192.0.2.0", 120, "192.0.2.9"));
	CU_ASSERT_FALSE(address_matches("::ffff:192.0.2.0", 120, "192.0.3.9"));
}

static void view_finds_targets_without_regard_to_case(void)
{
	struct iscsi_view view;

	fixture_view(&view);
	for (uint32_t i = 0; i < view.ntargets; i++)
		CU_ASSERT_PTR_EQUAL(iscsi_view_target(&view, view.targets[i].name),
				    &view.targets[i]);
	CU_ASSERT_PTR_NOT_NULL(iscsi_view_target(&view, "IQN.2026-11.org.example:DISK"));
	CU_ASSERT_PTR_NULL(iscsi_view_target(&view, IQN "dis"));
	CU_ASSERT_PTR_NULL(iscsi_view_target(&view, IQN "zzz"));
}

static void view_finds_the_port_of_a_target_in_a_group(void)
{
	struct iscsi_view view;
	const struct iscsi_target_view *disk;

	fixture_view(&view);
	disk = iscsi_view_target(&view, IQN "disk");
	CU_ASSERT_PTR_NOT_NULL_FATAL(disk);
	CU_ASSERT_PTR_EQUAL(iscsi_target_port(disk, iscsi_view_group(&view, "wide")),
			    &disk->ports[1]);
	CU_ASSERT_PTR_NULL(iscsi_target_port(disk, iscsi_view_group(&view, "locked")));
}

static const struct test tests[] = {
	TEST(auth_name_patterns_match_the_whole_name),
	TEST(auth_name_patterns_have_stars_for_any_run),
	TEST(auth_name_patterns_have_question_marks_for_one_character),
	TEST(auth_name_patterns_have_nothing_else),
	TEST(auth_name_patterns_take_bounded_work),
	TEST(auth_empty_lists_let_everybody_through),
	TEST(auth_ranges_compare_the_bits_of_their_prefix),
	TEST(auth_ranges_of_ipv6_compare_too),
	TEST(auth_takes_mapped_addresses_as_ipv4),
	TEST(view_finds_targets_without_regard_to_case),
	TEST(view_finds_the_port_of_a_target_in_a_group),
};

TEST_MAIN(tests)
