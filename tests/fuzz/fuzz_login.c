/*
 * The login machine under hostile requests.
 *
 * Input: a byte that picks the portal group, then requests: 48 bytes of header
 * whose data segment length says how much text follows (at most what there is).
 * A CHAP_R whose value is "?" becomes the right response, so that what lies
 * behind an authentication is reached too.
 */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target/iscsi/chap.h"
#include "target/iscsi/login.h"
#include "tests/login/fixture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* The challenge of the last reply that had one. */
struct challenge {
	unsigned int algorithm;
	uint8_t id, bytes[CHAP_CHALLENGE_LEN];
};

static const char *find(const char *text, size_t len, const char *word)
{
	return len ? memmem(text, len, word, strlen(word)) : NULL;
}

/* The value of a key, which begins a pair: an unknown key that ends in the same
 * letters is answered too. */
static const char *find_value(const struct iscsi_login_reply *reply, const char *key)
{
	const char *at = reply->data, *end, *hit;

	if (reply->data_len == 0)
		return NULL;
	end = at + reply->data_len;
	while (at < end && (hit = find(at, (size_t)(end - at), key))) {
		at = hit + strlen(key);
		if (hit == reply->data || hit[-1] == '\0')
			return at;
	}
	return NULL;
}

static void challenge_take(struct challenge *challenge, const struct iscsi_login_reply *reply)
{
	const char *a = find_value(reply, "CHAP_A=");
	const char *i = find_value(reply, "CHAP_I=");
	const char *c = find_value(reply, "CHAP_C=");

	if (!a || !i || !c)
		return;
	challenge->algorithm = (unsigned int)strtoul(a, NULL, 10);
	challenge->id = (uint8_t)strtoul(i, NULL, 10);
	if (chap_decode(c, challenge->bytes, sizeof(challenge->bytes)) !=
	    (int)sizeof(challenge->bytes))
		abort();
}

/* The text with the response in place of "?": in a block of its own size. */
static char *text_make(const struct challenge *challenge, const uint8_t *data, uint32_t *len)
{
	const char *mark = find((const char *)data, *len, "CHAP_R=?");
	uint8_t digest[CHAP_DIGEST_MAX];
	char response[2 * CHAP_DIGEST_MAX + 3] = "", *text;
	size_t n = 0, before, digest_len;

	digest_len = chap_digest(challenge->algorithm, challenge->id,
				 find((const char *)data, *len, "bob") ? "bob-secret-123"
								       : "alice-secret-1",
				 challenge->bytes, sizeof(challenge->bytes), digest);
	if (mark && digest_len) {
		chap_encode(digest, digest_len, response, sizeof(response));
		n = strlen(response);
	}
	text = malloc(*len + n + 1);
	if (!text)
		abort();
	before = n ? (size_t)(mark + 7 - (const char *)data) : *len;
	memcpy(text, data, before);
	memcpy(text + before, response, n);
	if (n) {
		memcpy(text + before + n, data + before + 1, *len - before - 1);
		*len += (uint32_t)n - 1;
	}
	text = realloc(text, *len ? *len : 1);
	if (!text)
		abort();
	return text;
}

static void reply_check(const struct iscsi_login *login, enum iscsi_login_result result,
			const struct iscsi_login_reply *reply)
{
	struct iscsi_login_facts facts;

	iscsi_login_facts(login, &facts);
	assert((result == ISCSI_LOGIN_FAILED) == (reply->status != ISCSI_LOGIN_OK));
	assert(be24_get(&reply->bhs.login_rsp.data_segment_len) == reply->data_len);
	assert(memchr(reply->why, '\0', sizeof(reply->why)));
	for (uint32_t i = 0; i < reply->data_len; i++)
		assert(i + 1 < reply->data_len || reply->data[i] == '\0');
	if (result != ISCSI_LOGIN_DONE)
		return;
	assert(*facts.params->initiator_name);
	assert(facts.params->discovery == !*facts.params->target_name);
	assert(facts.params->first_burst_length <= facts.params->max_burst_length);
	assert(facts.params->max_xmit_data_segment_length >= 512);
	/* Nobody is let in without the secret. */
	assert(strcmp(facts.params->target_name, IQN "chap") != 0 || *facts.chap_user);
	assert(strcmp(facts.params->target_name, IQN "deny") != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct iscsi_login_peer peer = { .peer = fixture_address("127.0.0.1", 40000),
					 .local = fixture_address("127.0.0.1", 3260) };
	enum iscsi_login_result result = ISCSI_LOGIN_CONTINUE;
	struct challenge challenge = { 0 };
	struct iscsi_login *login;
	struct iscsi_view view;

	if (len == 0)
		return 0;
	fixture_view(&view);
	peer.portal_group = fixture_groups[data[0] % ARRAY_LEN(fixture_groups)].name;
	login = iscsi_login_create(&peer);
	if (!login)
		abort();
	data++;
	len--;
	while (result == ISCSI_LOGIN_CONTINUE && len >= ISCSI_BHS_LEN) {
		struct iscsi_login_reply reply;
		struct iscsi_bhs request;
		uint32_t text_len;
		char *text;

		memcpy(&request, data, sizeof(request));
		data += sizeof(request);
		len -= sizeof(request);
		text_len = be24_get(&request.hdr.data_segment_len);
		text_len = text_len < len ? text_len : (uint32_t)len;
		/* With room for a response in place of "?" */
		if (text_len > ISCSI_LOGIN_DATA_MAX - 128)
			break;
		data += text_len;
		len -= text_len;
		text = text_make(&challenge, data - text_len, &text_len);
		result = iscsi_login_input(login, &view, &request, text, text_len, &reply);
		free(text);
		reply_check(login, result, &reply);
		challenge_take(&challenge, &reply);
	}
	iscsi_login_destroy(login);
	return 0;
}
