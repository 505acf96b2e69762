/* CHAP in the security stage: RFC 7143 12.1.3, RFC 1994. */
#include "target/iscsi/login.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <openssl/evp.h>

#include "tests/unit/iscsi/login_dialog.h"
#include "tests/unit/quintain_test.h"

#define TO_OP 0x81
#define CHAP  IQN "chap"

static void lets_in_with(const char *algorithms, const char *chosen)
{
	struct dialog d;
	struct iscsi_login_facts facts;
	char response[80];

	dialog_begin(&d, "open");
	dialog_challenge(&d, CHAP, algorithms);
	CU_ASSERT_STRING_EQUAL(dialog_value(&d, "CHAP_A"), chosen);
	dialog_response_hex(&d, "alice-secret-1", response);
	CU_ASSERT_EQUAL(dialog_say(&d, TO_OP, "CHAP_N=alice\nCHAP_R=%s\n", response), 0);
	CU_ASSERT_EQUAL(d.reply.bhs.login_rsp.flags, TO_OP);
	CU_ASSERT_EQUAL(d.reply.data_len, 0);
	CU_ASSERT_EQUAL(dialog_say(&d, 0x87, "%s", ""), 0);
	CU_ASSERT_EQUAL(d.result, ISCSI_LOGIN_DONE);
	iscsi_login_facts(d.login, &facts);
	CU_ASSERT_STRING_EQUAL(facts.chap_user, "alice");
	dialog_end(&d);
}

static void chap_lets_in_who_knows_the_secret_with_md5(void)
{
	lets_in_with("5", "5");
}

static void chap_lets_in_who_knows_the_secret_with_sha1(void)
{
	lets_in_with("6,5", "6");
}

static void chap_lets_in_who_knows_the_secret_with_sha256(void)
{
	lets_in_with("99,7,5", "7");
}

static void chap_lets_in_who_knows_the_secret_with_sha3_256(void)
{
	lets_in_with("8,7,6,5", "8");
}

static void chap_takes_base64_responses(void)
{
	struct dialog d;
	uint8_t digest[CHAP_DIGEST_MAX];
	char response[64];
	size_t len;

	dialog_begin(&d, "open");
	dialog_challenge(&d, CHAP, "7");
	len = dialog_response(&d, "alice-secret-1", digest);
	EVP_EncodeBlock((unsigned char *)response, digest, (int)len);
	CU_ASSERT_EQUAL(dialog_say(&d, TO_OP, "CHAP_N=alice\nCHAP_R=0b%s\n", response), 0);
	CU_ASSERT_EQUAL(d.reply.bhs.login_rsp.flags, TO_OP);
	dialog_end(&d);
}

static void lets_in(const char *user, const char *secret)
{
	struct dialog d;
	char response[80];

	dialog_begin(&d, "open");
	dialog_challenge(&d, CHAP, "5");
	dialog_response_hex(&d, secret, response);
	CU_ASSERT_EQUAL(dialog_say(&d, TO_OP, "CHAP_N=%s\nCHAP_R=%s\n", user, response), 0);
	dialog_end(&d);
}

static void chap_takes_user_names_that_look_like_numbers(void)
{
	lets_in("0x616c", "hexish-secret1");
	lets_in("0bYWw=", "base64-secret1");
}

/* Says format in answer to the challenge, with the right response for %s. */
static void refused_after_challenge(const char *target, const char *secret, const char *format,
				    uint16_t status)
{
	struct dialog d;
	char response[80], text[4096];

	dialog_begin(&d, "open");
	dialog_challenge(&d, target, "5");
	dialog_response_hex(&d, secret, response);
	snprintf(text, sizeof(text), "%s%s\n", format, response);
	CU_ASSERT_EQUAL(dialog_say(&d, TO_OP, "%s", text), status);
	CU_ASSERT_EQUAL(d.result, ISCSI_LOGIN_FAILED);
	dialog_end(&d);
}

static void chap_refuses_a_wrong_secret(void)
{
	refused_after_challenge(CHAP, "alice-secret-2",
				"CHAP_N=alice\nCHAP_R=", ISCSI_LOGIN_AUTH_FAILED);
}

static void chap_refuses_the_secret_of_another_user(void)
{
	refused_after_challenge(CHAP, "alice-secret-1",
				"CHAP_N=bob\nCHAP_R=", ISCSI_LOGIN_AUTH_FAILED);
}

static void chap_refuses_an_unknown_user(void)
{
	refused_after_challenge(CHAP, "alice-secret-1",
				"CHAP_N=Alice\nCHAP_R=", ISCSI_LOGIN_AUTH_FAILED);
}

static void chap_refuses_a_response_of_another_length(void)
{
	refused_after_challenge(CHAP, "alice-secret-1",
				"CHAP_N=alice\nCHAP_R=0x00\nX-a=", ISCSI_LOGIN_AUTH_FAILED);
}

static void chap_refuses_a_response_without_a_name(void)
{
	refused_after_challenge(CHAP, "alice-secret-1", "CHAP_R=", ISCSI_LOGIN_INITIATOR_ERROR);
}

static void chap_refuses_a_second_algorithm(void)
{
	refused_after_challenge(CHAP, "alice-secret-1",
				"CHAP_A=5\nCHAP_N=alice\nCHAP_R=", ISCSI_LOGIN_INITIATOR_ERROR);
}

static void chap_refuses_a_key_twice(void)
{
	refused_after_challenge(CHAP, "alice-secret-1",
				"CHAP_N=alice\nCHAP_N=alice\nCHAP_R=", ISCSI_LOGIN_INITIATOR_ERROR);
}

static void chap_refuses_keys_before_auth_method(void)
{
	struct dialog d;

	dialog_begin(&d, "open");
	CU_ASSERT_EQUAL(dialog_say(&d, 0,
				   "InitiatorName=" IQN "host\nTargetName=" CHAP
				   "\nAuthMethod=CHAP\nCHAP_A=5\n"),
			ISCSI_LOGIN_INITIATOR_ERROR);
	dialog_end(&d);
}

static void chap_refuses_a_response_before_the_challenge(void)
{
	struct dialog d;

	dialog_begin(&d, "open");
	dialog_say(&d, 0, "InitiatorName=" IQN "host\nTargetName=" CHAP "\nAuthMethod=CHAP\n");
	CU_ASSERT_EQUAL(dialog_say(&d, 0, "CHAP_N=alice\nCHAP_R=0x00\n"),
			ISCSI_LOGIN_INITIATOR_ERROR);
	dialog_end(&d);
}

static void chap_refuses_algorithms_that_it_does_not_have(void)
{
	struct dialog d;

	dialog_begin(&d, "open");
	dialog_say(&d, 0, "InitiatorName=" IQN "host\nTargetName=" CHAP "\nAuthMethod=CHAP\n");
	CU_ASSERT_EQUAL(dialog_say(&d, 0, "CHAP_A=4,9\n"), ISCSI_LOGIN_AUTH_FAILED);
	dialog_end(&d);
}

/* An initiator that asks for the next stage with each request gets it last. */
static void chap_grants_no_transit_before_its_end(void)
{
	struct dialog d;
	char response[80];

	dialog_begin(&d, "open");
	dialog_say(&d, TO_OP, "InitiatorName=" IQN "host\nTargetName=" CHAP "\nAuthMethod=CHAP\n");
	CU_ASSERT_EQUAL(d.reply.bhs.login_rsp.flags, 0);
	dialog_say(&d, TO_OP, "%s", "");
	CU_ASSERT_EQUAL(d.reply.bhs.login_rsp.flags, 0);
	dialog_say(&d, TO_OP, "CHAP_A=5\n");
	CU_ASSERT_EQUAL(d.reply.bhs.login_rsp.flags, 0);
	dialog_response_hex(&d, "alice-secret-1", response);
	dialog_say(&d, TO_OP, "CHAP_N=alice\nCHAP_R=%s\n", response);
	CU_ASSERT_EQUAL(d.reply.bhs.login_rsp.flags, TO_OP);
	dialog_end(&d);
}

static void chap_challenges_differ_from_login_to_login(void)
{
	struct dialog a, b;

	dialog_begin(&a, "open");
	dialog_begin(&b, "open");
	dialog_challenge(&a, CHAP, "5");
	dialog_challenge(&b, CHAP, "5");
	CU_ASSERT_STRING_NOT_EQUAL(dialog_value(&a, "CHAP_C"), dialog_value(&b, "CHAP_C"));
	dialog_end(&a);
	dialog_end(&b);
}

static void chap_holds_for_discovery_sessions_too(void)
{
	struct dialog d;
	char response[80];

	dialog_begin(&d, "locked");
	dialog_challenge(&d, NULL, "5");
	dialog_response_hex(&d, "alice-secret-1", response);
	CU_ASSERT_EQUAL(dialog_say(&d, 0x83, "CHAP_N=alice\nCHAP_R=%s\n", response), 0);
	CU_ASSERT_EQUAL(d.result, ISCSI_LOGIN_DONE);
	dialog_end(&d);
}

/* A reload in the middle takes the user away. */
static void chap_of_a_user_that_is_gone_lets_nobody_in(void)
{
	static const struct iscsi_auth_group other = { .name = "other", .type = ISCSI_AUTH_CHAP };
	struct iscsi_target_port port;
	struct iscsi_target_view target;
	struct dialog d;
	char response[80];

	dialog_begin(&d, "open");
	dialog_challenge(&d, CHAP, "5");
	dialog_response_hex(&d, "alice-secret-1", response);
	CU_ASSERT_EQUAL(dialog_say(&d, TO_OP, "CHAP_N=alice\nCHAP_R=%s\n", response), 0);
	target = *iscsi_view_target(&d.view, CHAP);
	port = target.ports[0];
	port.auth = &other;
	target.ports = &port;
	target.nports = 1;
	d.view.targets = &target;
	d.view.ntargets = 1;
	CU_ASSERT_EQUAL(dialog_say(&d, 0x87, "%s", ""), ISCSI_LOGIN_AUTH_FAILED);
	dialog_end(&d);
}

/* ---- mutual ---- */

/* Bob proves himself and asks who we are; keys are his CHAP_I and CHAP_C. */
static uint16_t mutual(struct dialog *d, const char *keys)
{
	char response[80];

	dialog_begin(d, "open");
	dialog_challenge(d, CHAP, "7");
	dialog_response_hex(d, "bob-secret-123", response);
	return dialog_say(d, TO_OP, "CHAP_N=bob\nCHAP_R=%s\n%s", response, keys);
}

static void chap_proves_the_target_when_asked(void)
{
	struct dialog d;
	uint8_t expected[CHAP_DIGEST_MAX], got[CHAP_DIGEST_MAX];
	static const uint8_t challenge[4] = { 1, 2, 3, 4 };

	CU_ASSERT_EQUAL(mutual(&d, "CHAP_I=0x2a\nCHAP_C=0bAQIDBA==\n"), 0);
	CU_ASSERT_STRING_EQUAL(dialog_value(&d, "CHAP_N"), "target");
	CU_ASSERT_EQUAL(chap_digest(CHAP_SHA256, 42, "target-secret1", challenge, 4, expected), 32);
	CU_ASSERT_EQUAL(chap_decode(dialog_value(&d, "CHAP_R"), got, sizeof(got)), 32);
	CU_ASSERT_EQUAL(memcmp(got, expected, 32), 0);
	CU_ASSERT_EQUAL(d.reply.bhs.login_rsp.flags, TO_OP);
	dialog_end(&d);
}

static void chap_does_not_force_mutual_authentication(void)
{
	struct dialog d;

	CU_ASSERT_EQUAL(mutual(&d, ""), 0);
	CU_ASSERT_PTR_NULL(dialog_value(&d, "CHAP_N"));
	dialog_end(&d);
}

static void mutual_refused(const char *keys, uint16_t status)
{
	struct dialog d;

	CU_ASSERT_EQUAL(mutual(&d, keys), status);
	dialog_end(&d);
}

static void chap_refuses_half_a_mutual_request(void)
{
	mutual_refused("CHAP_I=1\n", ISCSI_LOGIN_INITIATOR_ERROR);
	mutual_refused("CHAP_C=0x01\n", ISCSI_LOGIN_INITIATOR_ERROR);
	mutual_refused("CHAP_I=256\nCHAP_C=0x01\n", ISCSI_LOGIN_INITIATOR_ERROR);
	mutual_refused("CHAP_I=1\nCHAP_C=0x\n", ISCSI_LOGIN_INITIATOR_ERROR);
}

static void chap_takes_challenges_of_1024_bytes_and_no_more(void)
{
	static char keys[4096];
	struct dialog d;
	int len = snprintf(keys, sizeof(keys), "CHAP_I=1\nCHAP_C=0x");

	memset(keys + len, 'a', 2048);
	memcpy(keys + len + 2048, "\n", 2);
	CU_ASSERT_EQUAL(mutual(&d, keys), 0);
	dialog_end(&d);
	memcpy(keys + len + 2048, "aa\n", 4);
	mutual_refused(keys, ISCSI_LOGIN_INITIATOR_ERROR);
}

static void chap_refuses_its_own_challenge(void)
{
	struct dialog d;
	char challenge[80], response[80];

	dialog_begin(&d, "open");
	dialog_challenge(&d, CHAP, "5");
	dialog_response_hex(&d, "bob-secret-123", response);
	snprintf(challenge, sizeof(challenge), "%s", dialog_value(&d, "CHAP_C"));
	CU_ASSERT_EQUAL(dialog_say(&d, TO_OP, "CHAP_N=bob\nCHAP_R=%s\nCHAP_I=1\nCHAP_C=%s\n",
				   response, challenge),
			ISCSI_LOGIN_AUTH_FAILED);
	dialog_end(&d);
}

static void chap_refuses_one_secret_for_both_directions(void)
{
	refused_after_challenge(
		IQN "twin", "twin-secret-12",
		"CHAP_I=1\nCHAP_C=0x0102\nCHAP_N=twin\nCHAP_R=", ISCSI_LOGIN_AUTH_FAILED);
}

static void chap_refuses_mutual_without_a_secret_for_it(void)
{
	refused_after_challenge(
		CHAP, "alice-secret-1",
		"CHAP_I=1\nCHAP_C=0x0102\nCHAP_N=alice\nCHAP_R=", ISCSI_LOGIN_AUTH_FAILED);
}

/* Who has not proved itself gets no response of ours to study. */
static void chap_answers_no_mutual_request_of_a_stranger(void)
{
	struct dialog d;

	dialog_begin(&d, "open");
	dialog_challenge(&d, CHAP, "5");
	CU_ASSERT_EQUAL(dialog_say(&d, TO_OP, "CHAP_N=bob\nCHAP_R=0x00\nCHAP_I=1\nCHAP_C=0x01\n"),
			ISCSI_LOGIN_AUTH_FAILED);
	CU_ASSERT_EQUAL(d.reply.data_len, 0);
	dialog_end(&d);
}

static const struct test tests[] = {
	TEST(chap_lets_in_who_knows_the_secret_with_md5),
	TEST(chap_lets_in_who_knows_the_secret_with_sha1),
	TEST(chap_lets_in_who_knows_the_secret_with_sha256),
	TEST(chap_lets_in_who_knows_the_secret_with_sha3_256),
	TEST(chap_takes_base64_responses),
	TEST(chap_takes_user_names_that_look_like_numbers),
	TEST(chap_refuses_a_wrong_secret),
	TEST(chap_refuses_the_secret_of_another_user),
	TEST(chap_refuses_an_unknown_user),
	TEST(chap_refuses_a_response_of_another_length),
	TEST(chap_refuses_a_response_without_a_name),
	TEST(chap_refuses_a_second_algorithm),
	TEST(chap_refuses_a_key_twice),
	TEST(chap_refuses_keys_before_auth_method),
	TEST(chap_refuses_a_response_before_the_challenge),
	TEST(chap_refuses_algorithms_that_it_does_not_have),
	TEST(chap_grants_no_transit_before_its_end),
	TEST(chap_challenges_differ_from_login_to_login),
	TEST(chap_holds_for_discovery_sessions_too),
	TEST(chap_of_a_user_that_is_gone_lets_nobody_in),
	TEST(chap_proves_the_target_when_asked),
	TEST(chap_does_not_force_mutual_authentication),
	TEST(chap_refuses_half_a_mutual_request),
	TEST(chap_takes_challenges_of_1024_bytes_and_no_more),
	TEST(chap_refuses_its_own_challenge),
	TEST(chap_refuses_one_secret_for_both_directions),
	TEST(chap_refuses_mutual_without_a_secret_for_it),
	TEST(chap_answers_no_mutual_request_of_a_stranger),
};

TEST_MAIN(tests)
