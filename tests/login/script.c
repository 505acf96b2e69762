#include "tests/login/script.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A block of its own size, so that a checker sees reads behind the text. */
static char *to_wire(const char *lines, uint32_t *len)
{
	char *text;

	*len = (uint32_t)strlen(lines);
	text = malloc(*len ? *len : 1);
	if (!text)
		abort();
	for (uint32_t i = 0; i < *len; i++)
		text[i] = lines[i] == '\n' ? '\0' : lines[i];
	return text;
}

static void check_text(const char *expected, const struct iscsi_login_reply *reply)
{
	char got[8192];
	uint32_t len = reply->data_len;

	CU_ASSERT_FATAL(len < sizeof(got));
	if (len)
		memcpy(got, reply->data, len);
	for (uint32_t i = 0; i < len; i++)
		if (got[i] == '\0')
			got[i] = '\n';
	got[len] = '\0';
	if (strcmp(got, expected) != 0)
		printf("expected:\n%sgot:\n%s", expected, got);
	CU_ASSERT_STRING_EQUAL(got, expected);
}

static void run_step(struct iscsi_login *login, const struct iscsi_view *view,
		     const struct login_step *step)
{
	struct iscsi_bhs request = { .login_req = { .opcode = ISCSI_OP_LOGIN_REQ | ISCSI_IMMEDIATE,
						    .flags = step->flags } };
	struct iscsi_login_reply reply;
	enum iscsi_login_result result;
	uint32_t len;
	char *text = to_wire(step->text, &len);
	enum iscsi_login_result expected = ISCSI_LOGIN_CONTINUE;

	if (step->status)
		expected = ISCSI_LOGIN_FAILED;
	else if ((step->reply_flags & TO_FULL) == TO_FULL)
		expected = ISCSI_LOGIN_DONE;
	be32_put(&request.login_req.itt, 77);
	result = iscsi_login_input(login, view, &request, text, len, &reply);
	free(text);
	CU_ASSERT_EQUAL(reply.status, step->status);
	if (reply.status != step->status)
		printf("status %04x, expected %04x: %s\n", reply.status, step->status, reply.why);
	CU_ASSERT_EQUAL_FATAL(result, expected);
	CU_ASSERT_EQUAL(reply.bhs.login_rsp.flags, step->reply_flags);
	CU_ASSERT_EQUAL(be32_get(&reply.bhs.login_rsp.itt), 77);
	CU_ASSERT_EQUAL(be24_get(&reply.bhs.login_rsp.data_segment_len), reply.data_len);
	CU_ASSERT_EQUAL(reply.bhs.login_rsp.status_class << 8 | reply.bhs.login_rsp.status_detail,
			step->status);
	check_text(step->reply_text ? step->reply_text : "", &reply);
}

static struct iscsi_login *login_begin(const char *group, struct iscsi_view *view)
{
	struct iscsi_login_peer peer = { .peer = fixture_address("127.0.0.1", 40000),
					 .local = fixture_address("127.0.0.1", 3260),
					 .portal_group = group };
	struct iscsi_login *login = iscsi_login_create(&peer);

	CU_ASSERT_PTR_NOT_NULL_FATAL(login);
	fixture_view(view);
	return login;
}

void login_run(const char *group, const struct login_step *steps, size_t nsteps)
{
	struct iscsi_view view;
	struct iscsi_login *login = login_begin(group, &view);

	for (size_t i = 0; i < nsteps; i++) {
		printf("# step %zu\n", i + 1);
		run_step(login, &view, &steps[i]);
	}
	iscsi_login_destroy(login);
}

void login_run_repeated(const struct login_step *first, const struct login_step *step,
			unsigned int times, const struct login_step *last)
{
	struct iscsi_view view;
	struct iscsi_login *login = login_begin("open", &view);

	run_step(login, &view, first);
	for (unsigned int i = 0; i < times; i++)
		run_step(login, &view, step);
	run_step(login, &view, last);
	iscsi_login_destroy(login);
}
