/* The login machine: headers, facts and refusals.  What is negotiated is in
 * tests/login, CHAP in test_login_chap.c. */
#include "target/iscsi/login.h"

#include <malloc.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/iscsi/login_dialog.h"
#include "tests/unit/quintain_test.h"

#define NAMES	"InitiatorName=" IQN "host\nTargetName=" IQN "disk\n"
#define TO_FULL 0x87

static void login_answers_with_the_tags_of_the_request(void)
{
	struct dialog d;
	const struct iscsi_login_rsp *rsp = &d.reply.bhs.login_rsp;
	static const uint8_t isid[6] = { 0x40, 1, 2, 3, 4, 5 };

	dialog_begin(&d, "open");
	memcpy(d.request.login_req.isid, isid, sizeof(isid));
	be32_put(&d.request.login_req.itt, 0x11223344);
	dialog_say(&d, 0x04, NAMES);
	CU_ASSERT_EQUAL(rsp->opcode, ISCSI_OP_LOGIN_RSP);
	CU_ASSERT_EQUAL(be32_get(&rsp->itt), 0x11223344);
	CU_ASSERT_EQUAL(memcmp(rsp->isid, isid, sizeof(isid)), 0);
	CU_ASSERT_EQUAL(rsp->version_max, 0);
	CU_ASSERT_EQUAL(rsp->version_active, 0);
	CU_ASSERT_TRUE(d.reply.has_response);
	dialog_end(&d);
}

static void login_refuses_versions_above_ours(void)
{
	struct dialog d;

	dialog_begin(&d, "open");
	d.request.login_req.version_max = 2;
	d.request.login_req.version_min = 1;
	CU_ASSERT_EQUAL(dialog_say(&d, TO_FULL, NAMES), ISCSI_LOGIN_UNSUPPORTED_VERSION);
	CU_ASSERT_EQUAL(d.reply.bhs.login_rsp.status_class, 0x02);
	CU_ASSERT_EQUAL(d.reply.bhs.login_rsp.status_detail, 0x05);
	dialog_end(&d);
}

static void login_takes_versions_that_include_ours(void)
{
	struct dialog d;

	dialog_begin(&d, "open");
	d.request.login_req.version_max = 2;
	CU_ASSERT_EQUAL(dialog_say(&d, TO_FULL, NAMES), 0);
	dialog_end(&d);
}

static void login_says_nothing_to_another_opcode(void)
{
	struct dialog d;

	dialog_begin(&d, "open");
	d.request.hdr.opcode = ISCSI_OP_SCSI_CMD;
	dialog_say(&d, TO_FULL, NAMES);
	CU_ASSERT_EQUAL(d.result, ISCSI_LOGIN_FAILED);
	CU_ASSERT_FALSE(d.reply.has_response);
	dialog_end(&d);
}

static void login_refuses_another_isid_tsih_or_cid(void)
{
	for (int i = 0; i < 3; i++) {
		struct dialog d;

		dialog_begin(&d, "open");
		CU_ASSERT_EQUAL(dialog_say(&d, 0x04, NAMES), 0);
		if (i == 0)
			d.request.login_req.isid[5] = 1;
		else
			be16_put(i == 1 ? &d.request.login_req.tsih : &d.request.login_req.cid, 1);
		CU_ASSERT_EQUAL(dialog_say(&d, TO_FULL, "%s", ""), ISCSI_LOGIN_INVALID_REQUEST);
		dialog_end(&d);
	}
}

static void login_tells_the_facts_of_the_first_request(void)
{
	struct dialog d;
	struct iscsi_login_facts facts;

	dialog_begin(&d, "open");
	be16_put(&d.request.login_req.tsih, 7);
	be16_put(&d.request.login_req.cid, 3);
	be32_put(&d.request.login_req.cmd_sn, 1000);
	dialog_say(&d, 0x04, NAMES);
	be32_put(&d.request.login_req.cmd_sn, 1001);
	dialog_say(&d, TO_FULL, "InitiatorAlias=the \001 b\303\266x \377\nMaxBurstLength=8192\n");
	CU_ASSERT_EQUAL(d.result, ISCSI_LOGIN_DONE);
	iscsi_login_facts(d.login, &facts);
	CU_ASSERT_EQUAL(facts.tsih, 7);
	CU_ASSERT_EQUAL(facts.cid, 3);
	CU_ASSERT_EQUAL(facts.cmd_sn, 1000);
	CU_ASSERT_STRING_EQUAL(facts.chap_user, "");
	CU_ASSERT_STRING_EQUAL(facts.params->initiator_name, IQN "host");
	CU_ASSERT_STRING_EQUAL(facts.params->initiator_alias, "the ? b\303\266x ?");
	CU_ASSERT_STRING_EQUAL(facts.params->target_name, IQN "disk");
	CU_ASSERT_EQUAL(facts.params->max_burst_length, 8192);
	CU_ASSERT_EQUAL(facts.params->first_burst_length, 8192);
	CU_ASSERT_EQUAL(facts.params->max_recv_data_segment_length, 262144);
	CU_ASSERT_EQUAL(facts.params->max_xmit_data_segment_length, 8192);
	dialog_end(&d);
}

static void login_of_discovery_has_no_target(void)
{
	struct dialog d;
	struct iscsi_login_facts facts;

	dialog_begin(&d, "open");
	CU_ASSERT_EQUAL(dialog_say(&d, TO_FULL, NAMES "SessionType=Discovery\n"), 0);
	iscsi_login_facts(d.login, &facts);
	CU_ASSERT_TRUE(facts.params->discovery);
	CU_ASSERT_STRING_EQUAL(facts.params->target_name, "");
	CU_ASSERT_PTR_NULL(dialog_value(&d, "TargetPortalGroupTag"));
	dialog_end(&d);
}

static void login_may_be_refused_when_it_is_done(void)
{
	struct dialog d;

	dialog_begin(&d, "open");
	dialog_say(&d, TO_FULL, NAMES);
	iscsi_login_refuse(d.login, ISCSI_LOGIN_NO_SESSION, "no session 7", &d.reply);
	CU_ASSERT_EQUAL(d.reply.bhs.login_rsp.flags, 0);
	CU_ASSERT_EQUAL(d.reply.bhs.login_rsp.status_class, 0x02);
	CU_ASSERT_EQUAL(d.reply.bhs.login_rsp.status_detail, 0x0a);
	CU_ASSERT_EQUAL(be24_get(&d.reply.bhs.login_rsp.data_segment_len), 0);
	CU_ASSERT_EQUAL(d.reply.data_len, 0);
	CU_ASSERT_STRING_EQUAL(d.reply.why, "no session 7");
	dialog_end(&d);
}

static void login_of_a_target_that_is_removed_meanwhile_fails(void)
{
	struct dialog d;

	dialog_begin(&d, "open");
	CU_ASSERT_EQUAL(dialog_say(&d, 0x04, NAMES), 0);
	d.view.ntargets = 0;
	CU_ASSERT_EQUAL(dialog_say(&d, TO_FULL, "%s", ""), ISCSI_LOGIN_NOT_FOUND);
	dialog_end(&d);
}

/* With the connection itself, that is less than 16 KiB; see iscsi_login_room(). */
static void login_holds_less_than_12_kib(void)
{
	struct dialog d;
	size_t before = mallinfo2().uordblks, held;
	char part[2049];

	memset(part, 'x', sizeof(part) - 1);
	part[sizeof(part) - 1] = '\0';
	dialog_begin(&d, "open");
	for (int i = 0; i < 3; i++)
		dialog_say(&d, 0x44, "%s", part);
	held = mallinfo2().uordblks - before;
	CU_ASSERT(held < 12288);
	printf("# %zu bytes\n", held);
	dialog_end(&d);
}

static void login_has_room_for_the_rest_of_the_text(void)
{
	struct dialog d;

	dialog_begin(&d, "open");
	CU_ASSERT_EQUAL(iscsi_login_room(d.login), ISCSI_LOGIN_DATA_MAX);
	dialog_say(&d, 0x44, "InitiatorName=" IQN "host\nTarget");
	CU_ASSERT_EQUAL(iscsi_login_room(d.login),
			ISCSI_LOGIN_TEXT_MAX - strlen("InitiatorName=" IQN "host\nTarget"));
	dialog_say(&d, 0x04, "Name=" IQN "disk\n");
	CU_ASSERT_EQUAL(iscsi_login_room(d.login), ISCSI_LOGIN_DATA_MAX);
	dialog_end(&d);
}

static const struct test tests[] = {
	TEST(login_answers_with_the_tags_of_the_request),
	TEST(login_refuses_versions_above_ours),
	TEST(login_takes_versions_that_include_ours),
	TEST(login_says_nothing_to_another_opcode),
	TEST(login_refuses_another_isid_tsih_or_cid),
	TEST(login_tells_the_facts_of_the_first_request),
	TEST(login_of_discovery_has_no_target),
	TEST(login_may_be_refused_when_it_is_done),
	TEST(login_of_a_target_that_is_removed_meanwhile_fails),
	TEST(login_holds_less_than_12_kib),
	TEST(login_has_room_for_the_rest_of_the_text),
};

TEST_MAIN(tests)
