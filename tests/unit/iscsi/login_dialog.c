#include "tests/unit/iscsi/login_dialog.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/quintain_test.h"

void dialog_begin(struct dialog *d, const char *group)
{
	struct iscsi_login_peer peer = { .peer = fixture_address("127.0.0.1", 40000),
					 .local = fixture_address("127.0.0.1", 3260),
					 .portal_group = group };

	memset(d, 0, sizeof(*d));
	fixture_view(&d->view);
	d->login = iscsi_login_create(&peer);
	CU_ASSERT_PTR_NOT_NULL_FATAL(d->login);
	d->request.login_req.opcode = ISCSI_OP_LOGIN_REQ | ISCSI_IMMEDIATE;
}

void dialog_end(struct dialog *d)
{
	iscsi_login_destroy(d->login);
	d->login = NULL;
}

uint16_t dialog_say(struct dialog *d, uint8_t flags, const char *format, ...)
{
	va_list args;
	char *text = NULL, *block;
	int len;

	va_start(args, format);
	len = vasprintf(&text, format, args);
	va_end(args);
	CU_ASSERT_FATAL(len >= 0);
	/* A block of its own size, so that a checker sees reads behind the text. */
	block = malloc(len ? (size_t)len : 1);
	CU_ASSERT_PTR_NOT_NULL_FATAL(block);
	for (int i = 0; i < len; i++)
		block[i] = text[i] == '\n' ? '\0' : text[i];
	d->request.login_req.flags = flags;
	d->result = iscsi_login_input(d->login, &d->view, &d->request, block, (uint32_t)len,
				      &d->reply);
	free(block);
	free(text);
	return (uint16_t)d->reply.status;
}

const char *dialog_value(const struct dialog *d, const char *key)
{
	size_t len = strlen(key);

	for (uint32_t pos = 0; pos < d->reply.data_len;
	     pos += (uint32_t)strlen(d->reply.data + pos) + 1)
		if (strncmp(d->reply.data + pos, key, len) == 0 && d->reply.data[pos + len] == '=')
			return d->reply.data + pos + len + 1;
	return NULL;
}

void dialog_challenge(struct dialog *d, const char *target, const char *algorithms)
{
	if (target)
		dialog_say(d, 0, "InitiatorName=" IQN "host\nTargetName=%s\nAuthMethod=CHAP,None\n",
			   target);
	else
		dialog_say(d, 0,
			   "InitiatorName=" IQN "host\nSessionType=Discovery\nAuthMethod=CHAP\n");
	CU_ASSERT_EQUAL_FATAL(d->result, ISCSI_LOGIN_CONTINUE);
	CU_ASSERT_STRING_EQUAL(dialog_value(d, "AuthMethod"), "CHAP");
	dialog_say(d, 0, "CHAP_A=%s\n", algorithms);
	CU_ASSERT_EQUAL_FATAL(d->result, ISCSI_LOGIN_CONTINUE);
	CU_ASSERT_PTR_NOT_NULL_FATAL(dialog_value(d, "CHAP_C"));
}

size_t dialog_response(const struct dialog *d, const char *secret, uint8_t out[CHAP_DIGEST_MAX])
{
	uint8_t challenge[CHAP_VALUE_MAX];
	int len = chap_decode(dialog_value(d, "CHAP_C"), challenge, sizeof(challenge));

	CU_ASSERT_EQUAL_FATAL(len, CHAP_CHALLENGE_LEN);
	return chap_digest((unsigned int)strtoul(dialog_value(d, "CHAP_A"), NULL, 10),
			   (uint8_t)strtoul(dialog_value(d, "CHAP_I"), NULL, 10), secret, challenge,
			   (size_t)len, out);
}

void dialog_response_hex(const struct dialog *d, const char *secret, char out[80])
{
	uint8_t digest[CHAP_DIGEST_MAX];
	size_t len = dialog_response(d, secret, digest);

	chap_encode(digest, len, out, 80);
}
