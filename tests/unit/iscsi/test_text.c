/* Text negotiation in the full feature phase: RFC 7143 11.10, appendix C. */
#include "target/iscsi/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/login/fixture.h"
#include "tests/unit/quintain_test.h"

#define FINAL ISCSI_FINAL
#define MORE  ISCSI_CONTINUE
#define NONE  ISCSI_TAG_RESERVED

struct exchange {
	struct iscsi_view view;
	struct iscsi_params params;
	struct iscsi_text *text;
	struct iscsi_text_reply reply;
	char got[8192]; /* the reply's data, a line for each key */
};

static void exchange_begin(struct exchange *x, const char *group, const char *user,
			   const char *local)
{
	struct iscsi_text_peer peer = { .peer = fixture_address("127.0.0.1", 40000),
					.local = fixture_address(local, 3260),
					.portal_group = group,
					.chap_user = user,
					.params = &x->params };

	memset(x, 0, sizeof(*x));
	fixture_view(&x->view);
	iscsi_params_init(&x->params);
	x->params.discovery = true;
	snprintf(x->params.initiator_name, sizeof(x->params.initiator_name), "%s", IQN "host");
	x->text = iscsi_text_create(&peer);
	CU_ASSERT_PTR_NOT_NULL_FATAL(x->text);
}

/* Into a normal session of target "disk". */
static void exchange_begin_normal(struct exchange *x)
{
	exchange_begin(x, "open", "", "127.0.0.1");
	x->params.discovery = false;
	snprintf(x->params.target_name, sizeof(x->params.target_name), "%s", IQN "disk");
}

static void exchange_end(struct exchange *x)
{
	iscsi_text_destroy(x->text);
}

/* One request of a line for each key; the reason of a reject. */
static uint8_t ask(struct exchange *x, uint8_t flags, uint32_t itt, uint32_t ttt, const char *lines)
{
	struct iscsi_bhs request = { .text_req = { .opcode = ISCSI_OP_TEXT_REQ, .flags = flags } };
	uint32_t len = (uint32_t)strlen(lines);
	char *data = malloc(len ? len : 1);

	CU_ASSERT_PTR_NOT_NULL_FATAL(data);
	for (uint32_t i = 0; i < len; i++)
		data[i] = lines[i] == '\n' ? '\0' : lines[i];
	be32_put(&request.text_req.itt, itt);
	be32_put(&request.text_req.ttt, ttt);
	iscsi_text_input(x->text, &x->view, &request, data, len, &x->reply);
	free(data);
	if (x->reply.reject)
		return x->reply.reject;
	CU_ASSERT_EQUAL(x->reply.bhs.text_rsp.opcode, ISCSI_OP_TEXT_RSP);
	CU_ASSERT_EQUAL(be32_get(&x->reply.bhs.text_rsp.itt), itt);
	CU_ASSERT_EQUAL(be24_get(&x->reply.bhs.text_rsp.data_segment_len), x->reply.data_len);
	len = x->reply.data_len < sizeof(x->got) - 1 ? x->reply.data_len : sizeof(x->got) - 1;
	for (uint32_t i = 0; i < len; i++)
		x->got[i] = x->reply.data[i] ? x->reply.data[i] : '\n';
	x->got[len] = '\0';
	return 0;
}

static uint8_t flags_of(const struct exchange *x)
{
	return x->reply.bhs.text_rsp.flags;
}

static uint32_t ttt_of(const struct exchange *x)
{
	return be32_get(&x->reply.bhs.text_rsp.ttt);
}

/* One whole exchange in one PDU each way. */
static void answers(struct exchange *x, const char *lines, const char *expected)
{
	CU_ASSERT_EQUAL_FATAL(ask(x, FINAL, 1, NONE, lines), 0);
	CU_ASSERT_EQUAL(flags_of(x), FINAL);
	CU_ASSERT_EQUAL(ttt_of(x), NONE);
	if (strcmp(x->got, expected) != 0)
		printf("expected:\n%sgot:\n%s", expected, x->got);
	CU_ASSERT_STRING_EQUAL(x->got, expected);
	exchange_end(x);
}

#define AT(name, address) "TargetName=" IQN name "\nTargetAddress=" address "\n"
#define HERE		  "127.0.0.1:3260,1"
#define ALL              \
	AT("chap", HERE) \
	AT("deny", HERE) \
	AT("disk", HERE) AT("far", HERE) AT("listed", HERE) AT("strict", HERE) AT("twin", HERE)

/* ---- SendTargets ---- */

static void send_targets_names_all_in_discovery(void)
{
	struct exchange x;

	exchange_begin(&x, "open", "", "127.0.0.1");
	answers(&x, "SendTargets=All\n", ALL);
}

static void send_targets_names_one_when_asked_by_name(void)
{
	struct exchange x;

	exchange_begin(&x, "open", "", "127.0.0.1");
	answers(&x, "SendTargets=IQN.2026-11.org.example:DISK\n", AT("disk", HERE));
}

static void send_targets_names_nothing_for_an_unknown_name(void)
{
	struct exchange x;

	exchange_begin(&x, "open", "", "127.0.0.1");
	answers(&x, "SendTargets=" IQN "nothing\n", "");
}

static void send_targets_rejects_other_words(void)
{
	static const char *const words[] = { "SendTargets=Alle\n", "SendTargets=A\n",
					     "SendTargets=all\n", "SendTargets=\n" };

	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		struct exchange x;

		exchange_begin(&x, "open", "", "127.0.0.1");
		answers(&x, words[i], "SendTargets=Reject\n");
	}
}

static void send_targets_names_the_own_target_in_a_normal_session(void)
{
	struct exchange x;

	exchange_begin_normal(&x);
	answers(&x, "SendTargets=\n", AT("disk", HERE));
	exchange_begin_normal(&x);
	answers(&x, "SendTargets=" IQN "disk\n", AT("disk", HERE));
}

static void send_targets_names_no_others_in_a_normal_session(void)
{
	struct exchange x;

	exchange_begin_normal(&x);
	answers(&x, "SendTargets=All\n", "SendTargets=Reject\n");
	exchange_begin_normal(&x);
	answers(&x, "SendTargets=" IQN "chap\n", "SendTargets=Reject\n");
}

static void send_targets_filters_by_address_name_and_user(void)
{
	static const struct {
		uint8_t filter;
		const char *user, *answer;
	} cases[] = {
		{ ISCSI_FILTER_NONE, "",
		  AT("chap", "127.0.0.1:3260,2") AT("deny", "127.0.0.1:3260,2")
			  AT("far", "127.0.0.1:3260,2") AT("listed", "127.0.0.1:3260,2")
				  AT("twin", "127.0.0.1:3260,2") },
		{ ISCSI_FILTER_PORTAL, "",
		  AT("chap", "127.0.0.1:3260,2") AT("listed", "127.0.0.1:3260,2")
			  AT("twin", "127.0.0.1:3260,2") },
		{ ISCSI_FILTER_PORTAL_NAME, "",
		  AT("chap", "127.0.0.1:3260,2") AT("twin", "127.0.0.1:3260,2") },
		{ ISCSI_FILTER_PORTAL_NAME_AUTH, "alice", AT("chap", "127.0.0.1:3260,2") },
		{ ISCSI_FILTER_PORTAL_NAME_AUTH, "", "" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct exchange x;

		exchange_begin(&x, "locked", cases[i].user, "127.0.0.1");
		snprintf(x.params.initiator_name, sizeof(x.params.initiator_name), IQN "guest");
		fixture_groups[FIXTURE_LOCKED].discovery_filter = cases[i].filter;
		answers(&x, "SendTargets=All\n", cases[i].answer);
	}
	fixture_groups[FIXTURE_LOCKED].discovery_filter = ISCSI_FILTER_PORTAL_NAME_AUTH;
}

/* The portal listens on all addresses: the one that was reached is named. */
static void send_targets_names_the_address_that_was_reached(void)
{
	struct exchange x;

	exchange_begin(&x, "wide", "", "192.0.2.7");
	fixture_groups[FIXTURE_WIDE].discovery_all = false;
	answers(&x, "SendTargets=All\n", AT("disk", "192.0.2.7:3261,3"));
	exchange_begin(&x, "wide", "", "2001:db8::7");
	answers(&x, "SendTargets=All\n", AT("disk", "[2001:db8::7]:3261,3"));
	fixture_groups[FIXTURE_WIDE].discovery_all = true;
}

static void send_targets_names_the_portals_of_all_groups_when_told(void)
{
	struct exchange x;

	exchange_begin(&x, "wide", "", "192.0.2.7");
	answers(&x, "SendTargets=All\n",
		AT("disk", "192.0.2.7:3261,3") "TargetAddress=203.0.113.9:3260,4\n"
					       "TargetAddress=[2001:db8::5]:3262,4\n");
}

static void send_targets_advertises_what_the_portal_says(void)
{
	struct exchange x;

	exchange_begin(&x, "mixed", "", "192.0.2.7");
	answers(&x, "SendTargets=All\n",
		AT("disk", "203.0.113.9:3260,4") "TargetAddress=[2001:db8::5]:3262,4\n");
}

static void send_targets_names_link_local_addresses_to_who_came_by_them(void)
{
	struct exchange x;

	exchange_begin(&x, "mixed", "", "fe80::1");
	answers(&x, "SendTargets=All\n",
		AT("disk", "203.0.113.9:3260,4") "TargetAddress=[fe80::1]:3262,4\n"
						 "TargetAddress=[2001:db8::5]:3262,4\n");
}

static void send_targets_names_loopback_addresses_to_who_came_by_one(void)
{
	struct exchange x;

	exchange_begin(&x, "mixed", "", "127.0.0.1");
	answers(&x, "SendTargets=All\n",
		AT("disk", "203.0.113.9:3260,4") "TargetAddress=127.0.0.1:3262,4\n"
						 "TargetAddress=[2001:db8::5]:3262,4\n");
}

static void send_targets_never_sends_control_characters(void)
{
	struct exchange x;

	exchange_begin(&x, "mixed", "", "192.0.2.7");
	fixture_mixed_portals[0].advertise = "203.0.113.9\nTargetName=x:3260";
	answers(&x, "SendTargets=All\n", AT("disk", "[2001:db8::5]:3262,4"));
}

/* ---- other keys ---- */

static void text_rejects_keys_of_the_login(void)
{
	struct exchange x;

	exchange_begin_normal(&x);
	answers(&x, "InitiatorName=" IQN "x\nMaxBurstLength=8192\nSessionType=Discovery\n",
		"InitiatorName=Reject\nMaxBurstLength=Reject\nSessionType=Reject\n");
}

static void text_does_not_understand_other_keys(void)
{
	struct exchange x;

	exchange_begin_normal(&x);
	answers(&x, "SendTargetsPlease=All\nX-a=b\n",
		"SendTargetsPlease=NotUnderstood\nX-a=NotUnderstood\n");
}

static void text_changes_the_segment_length_at_the_end_of_the_exchange(void)
{
	struct exchange x;

	exchange_begin_normal(&x);
	CU_ASSERT_EQUAL(ask(&x, 0, 1, NONE, "MaxRecvDataSegmentLength=4096\n"), 0);
	CU_ASSERT_EQUAL(x.params.max_xmit_data_segment_length, 8192);
	CU_ASSERT_EQUAL(ask(&x, FINAL, 1, ttt_of(&x), ""), 0);
	CU_ASSERT_EQUAL(x.params.max_xmit_data_segment_length, 4096);
	CU_ASSERT_STRING_EQUAL(x.got, "");
	exchange_end(&x);
}

static void text_rejects_a_segment_length_out_of_range(void)
{
	struct exchange x;

	exchange_begin_normal(&x);
	CU_ASSERT_EQUAL(ask(&x, FINAL, 1, NONE, "MaxRecvDataSegmentLength=16777216\n"), 0);
	CU_ASSERT_STRING_EQUAL(x.got, "MaxRecvDataSegmentLength=Reject\n");
	CU_ASSERT_EQUAL(x.params.max_xmit_data_segment_length, 8192);
	exchange_end(&x);
}

/* ---- exchanges over several PDUs ---- */

static void text_splits_long_answers(void)
{
	struct exchange x;
	char all[4096] = "";
	size_t len = 0;
	unsigned int parts = 1;

	exchange_begin(&x, "open", "", "127.0.0.1");
	x.params.max_xmit_data_segment_length = 100;
	CU_ASSERT_EQUAL_FATAL(ask(&x, FINAL, 9, NONE, "SendTargets=All\n"), 0);
	while (flags_of(&x) == MORE && parts < 20) {
		CU_ASSERT_EQUAL(x.reply.data_len, 100);
		CU_ASSERT_NOT_EQUAL(ttt_of(&x), NONE);
		len += (size_t)snprintf(all + len, sizeof(all) - len, "%.100s", x.got);
		CU_ASSERT_EQUAL_FATAL(ask(&x, FINAL, 9, ttt_of(&x), ""), 0);
		parts++;
	}
	len += (size_t)snprintf(all + len, sizeof(all) - len, "%.100s", x.got);
	CU_ASSERT_EQUAL(flags_of(&x), FINAL);
	CU_ASSERT_EQUAL(ttt_of(&x), NONE);
	CU_ASSERT_EQUAL(parts, (strlen(ALL) + 99) / 100);
	CU_ASSERT_STRING_EQUAL(all, ALL);
	exchange_end(&x);
}

static void text_joins_requests_with_the_continue_bit(void)
{
	struct exchange x;

	exchange_begin(&x, "open", "", "127.0.0.1");
	CU_ASSERT_EQUAL_FATAL(ask(&x, MORE, 9, NONE, ""), 0);
	CU_ASSERT_EQUAL(flags_of(&x), 0);
	CU_ASSERT_EQUAL(x.reply.data_len, 0);
	CU_ASSERT_EQUAL_FATAL(ask(&x, MORE, 9, ttt_of(&x), "SendTar"), 0);
	CU_ASSERT_EQUAL(x.reply.data_len, 0);
	CU_ASSERT_EQUAL_FATAL(ask(&x, FINAL, 9, ttt_of(&x), "gets=All\n"), 0);
	CU_ASSERT_STRING_EQUAL(x.got, ALL);
	CU_ASSERT_EQUAL(flags_of(&x), FINAL);
	exchange_end(&x);
}

static void text_bounds_requests_with_the_continue_bit(void)
{
	static char part[8193];
	struct exchange x;

	memset(part, 'x', sizeof(part) - 1);
	exchange_begin(&x, "open", "", "127.0.0.1");
	CU_ASSERT_EQUAL_FATAL(ask(&x, MORE, 9, NONE, part), 0);
	CU_ASSERT_EQUAL_FATAL(ask(&x, MORE, 9, ttt_of(&x), part), 0);
	CU_ASSERT_EQUAL(ask(&x, MORE, 9, ttt_of(&x), "x"), ISCSI_REJECT_NOT_SUPPORTED);
	exchange_end(&x);
}

static void text_keeps_open_what_the_initiator_does_not_end(void)
{
	struct exchange x;

	exchange_begin(&x, "open", "", "127.0.0.1");
	CU_ASSERT_EQUAL_FATAL(ask(&x, 0, 9, NONE, "SendTargets=" IQN "disk\n"), 0);
	CU_ASSERT_EQUAL(flags_of(&x), 0);
	CU_ASSERT_STRING_EQUAL(x.got, AT("disk", HERE));
	CU_ASSERT_EQUAL_FATAL(ask(&x, FINAL, 9, ttt_of(&x), ""), 0);
	CU_ASSERT_EQUAL(flags_of(&x), FINAL);
	CU_ASSERT_EQUAL(ttt_of(&x), NONE);
	CU_ASSERT_EQUAL(x.reply.data_len, 0);
	exchange_end(&x);
}

static void text_begins_anew_with_the_reserved_tag(void)
{
	struct exchange x;
	uint32_t old;

	exchange_begin(&x, "open", "", "127.0.0.1");
	CU_ASSERT_EQUAL_FATAL(ask(&x, MORE, 9, NONE, "Send"), 0);
	old = ttt_of(&x);
	CU_ASSERT_EQUAL_FATAL(ask(&x, FINAL, 10, NONE, "SendTargets=All\n"), 0);
	CU_ASSERT_STRING_EQUAL(x.got, ALL);
	CU_ASSERT_EQUAL(ask(&x, FINAL, 9, old, ""), ISCSI_REJECT_PROTOCOL_ERROR);
	exchange_end(&x);
}

static void text_rejects_another_tag_in_the_middle(void)
{
	struct exchange x;

	exchange_begin(&x, "open", "", "127.0.0.1");
	CU_ASSERT_EQUAL_FATAL(ask(&x, MORE, 9, NONE, "Send"), 0);
	CU_ASSERT_EQUAL(ask(&x, FINAL, 9, ttt_of(&x) + 1, "Targets=All\n"),
			ISCSI_REJECT_PROTOCOL_ERROR);
	CU_ASSERT_EQUAL_FATAL(ask(&x, MORE, 9, NONE, "Send"), 0);
	CU_ASSERT_EQUAL(ask(&x, FINAL, 8, ttt_of(&x), "Targets=All\n"),
			ISCSI_REJECT_PROTOCOL_ERROR);
	exchange_end(&x);
}

static void text_rejects_a_tag_out_of_nowhere(void)
{
	struct exchange x;

	exchange_begin(&x, "open", "", "127.0.0.1");
	CU_ASSERT_EQUAL(ask(&x, FINAL, 9, 0, "SendTargets=All\n"), ISCSI_REJECT_PROTOCOL_ERROR);
	exchange_end(&x);
}

static void text_rejects_data_where_an_answer_is_being_fetched(void)
{
	struct exchange x;

	exchange_begin(&x, "open", "", "127.0.0.1");
	x.params.max_xmit_data_segment_length = 100;
	CU_ASSERT_EQUAL_FATAL(ask(&x, FINAL, 9, NONE, "SendTargets=All\n"), 0);
	CU_ASSERT_EQUAL(ask(&x, FINAL, 9, ttt_of(&x), "X-a=b\n"), ISCSI_REJECT_PROTOCOL_ERROR);
	exchange_end(&x);
}

static void text_rejects_final_with_continue(void)
{
	struct exchange x;

	exchange_begin(&x, "open", "", "127.0.0.1");
	CU_ASSERT_EQUAL(ask(&x, FINAL | MORE, 9, NONE, "X-a=b\n"), ISCSI_REJECT_PROTOCOL_ERROR);
	exchange_end(&x);
}

static void text_rejects_what_is_no_text(void)
{
	struct exchange x;

	exchange_begin(&x, "open", "", "127.0.0.1");
	CU_ASSERT_EQUAL(ask(&x, FINAL, 9, NONE, "SendTargets"), ISCSI_REJECT_PROTOCOL_ERROR);
	CU_ASSERT_EQUAL(ask(&x, FINAL, 9, NONE, "SendTargets\n"), ISCSI_REJECT_PROTOCOL_ERROR);
	exchange_end(&x);
}

/* 40,000 targets need more than the longest answer: whole ones, no more. */
static void send_targets_cuts_a_list_at_a_whole_target(void)
{
	enum { N = 40000 };
	struct iscsi_target_view *targets = calloc(N, sizeof(*targets));
	char *names = calloc(N, 128);
	struct exchange x;

	CU_ASSERT_PTR_NOT_NULL_FATAL(targets);
	CU_ASSERT_PTR_NOT_NULL_FATAL(names);
	exchange_begin(&x, "open", "", "127.0.0.1");
	for (size_t i = 0; i < N; i++) {
		snprintf(names + 128 * i, 128, IQN "%0100zu", i);
		targets[i] = *iscsi_view_target(&x.view, IQN "disk");
		targets[i].name = names + 128 * i;
	}
	x.view.targets = targets;
	x.view.ntargets = N;
	x.params.max_xmit_data_segment_length = 16777215;
	CU_ASSERT_EQUAL_FATAL(ask(&x, FINAL, 9, NONE, "SendTargets=All\n"), 0);
	CU_ASSERT_EQUAL(flags_of(&x), FINAL);
	CU_ASSERT(x.reply.data_len <= ISCSI_TEXT_ANSWER_MAX);
	CU_ASSERT(x.reply.data_len > ISCSI_TEXT_ANSWER_MAX - 256);
	CU_ASSERT_STRING_EQUAL(x.reply.data + x.reply.data_len - strlen(HERE) - 1, HERE);
	exchange_end(&x);
	free(targets);
	free(names);
}

static const struct test tests[] = {
	TEST(send_targets_names_all_in_discovery),
	TEST(send_targets_names_one_when_asked_by_name),
	TEST(send_targets_names_nothing_for_an_unknown_name),
	TEST(send_targets_rejects_other_words),
	TEST(send_targets_names_the_own_target_in_a_normal_session),
	TEST(send_targets_names_no_others_in_a_normal_session),
	TEST(send_targets_filters_by_address_name_and_user),
	TEST(send_targets_names_the_address_that_was_reached),
	TEST(send_targets_names_the_portals_of_all_groups_when_told),
	TEST(send_targets_advertises_what_the_portal_says),
	TEST(send_targets_names_link_local_addresses_to_who_came_by_them),
	TEST(send_targets_names_loopback_addresses_to_who_came_by_one),
	TEST(send_targets_never_sends_control_characters),
	TEST(text_rejects_keys_of_the_login),
	TEST(text_does_not_understand_other_keys),
	TEST(text_changes_the_segment_length_at_the_end_of_the_exchange),
	TEST(text_rejects_a_segment_length_out_of_range),
	TEST(text_splits_long_answers),
	TEST(text_joins_requests_with_the_continue_bit),
	TEST(text_bounds_requests_with_the_continue_bit),
	TEST(text_keeps_open_what_the_initiator_does_not_end),
	TEST(text_begins_anew_with_the_reserved_tag),
	TEST(text_rejects_another_tag_in_the_middle),
	TEST(text_rejects_a_tag_out_of_nowhere),
	TEST(text_rejects_data_where_an_answer_is_being_fetched),
	TEST(text_rejects_final_with_continue),
	TEST(text_rejects_what_is_no_text),
	TEST(send_targets_cuts_a_list_at_a_whole_target),
};

TEST_MAIN(tests)
