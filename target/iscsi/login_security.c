/*
 * The security stage: AuthMethod and CHAP, step by step (RFC 7143 12.1.3).
 *
 *	I: AuthMethod=CHAP,None		T: AuthMethod=CHAP
 *	I: CHAP_A=7,5			T: CHAP_A=7 CHAP_I=.. CHAP_C=..
 *	I: CHAP_N=.. CHAP_R=..		T: (T bit)
 *	   [CHAP_I=.. CHAP_C=..]	   [CHAP_N=.. CHAP_R=..]
 *
 * Whatever is wrong with a response is one and the same failure to the peer; the
 * log says more.
 */
#include "target/iscsi/login_internal.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/random.h>

static const struct {
	const char *key;
	size_t offset;
} credential_keys[] = {
	{ "AuthMethod", offsetof(struct login_credentials, auth_method) },
	{ "CHAP_A", offsetof(struct login_credentials, chap_a) },
	{ "CHAP_I", offsetof(struct login_credentials, chap_i) },
	{ "CHAP_C", offsetof(struct login_credentials, chap_c) },
	{ "CHAP_N", offsetof(struct login_credentials, chap_n) },
	{ "CHAP_R", offsetof(struct login_credentials, chap_r) },
};

const char **login_credential(struct login_credentials *credentials, const char *key)
{
	for (size_t i = 0; i < sizeof(credential_keys) / sizeof(credential_keys[0]); i++)
		if (strcmp(credential_keys[i].key, key) == 0)
			return (const char **)((char *)credentials + credential_keys[i].offset);
	return NULL;
}

bool login_wants_chap(const struct iscsi_auth_group *auth)
{
	return auth->type == ISCSI_AUTH_CHAP || auth->type == ISCSI_AUTH_CHAP_MUTUAL;
}

static bool has_chap(const struct login_credentials *c)
{
	return c->chap_a || c->chap_i || c->chap_c || c->chap_n || c->chap_r;
}

/* Without AuthMethod the initiator means None, or has yet to send it. */
static int take_method(struct iscsi_login *login, const struct iscsi_auth_group *auth,
		       const struct login_credentials *c)
{
	bool chap = login_wants_chap(auth);

	if (has_chap(c))
		return login_fail(login, ISCSI_LOGIN_INITIATOR_ERROR,
				  "CHAP keys before AuthMethod was agreed on");
	if (!c->auth_method)
		return 0;
	if (!iscsi_list_has(c->auth_method, chap ? "CHAP" : "None"))
		return login_fail(
			login, ISCSI_LOGIN_AUTH_FAILED,
			"the initiator offers AuthMethod=%.40s, auth-group %.40s wants %s",
			c->auth_method, auth->name, chap ? "CHAP" : "None");
	iscsi_text_add(&login->out, "AuthMethod", chap ? "CHAP" : "None");
	login->step = chap ? LOGIN_AUTH_ALGORITHM : LOGIN_AUTH_DONE;
	return 0;
}

/* getrandom() of so few bytes neither blocks nor fails once the system is up. */
static int fill_random(struct iscsi_login *login, void *out, size_t len)
{
	if (getrandom(out, len, 0) == (ssize_t)len)
		return 0;
	return login_fail(login, ISCSI_LOGIN_TARGET_ERROR, "no random bytes for a CHAP challenge");
}

static int take_algorithm(struct iscsi_login *login, const struct login_credentials *c)
{
	char challenge[2 * CHAP_CHALLENGE_LEN + 3];

	if (c->auth_method || c->chap_i || c->chap_c || c->chap_n || c->chap_r)
		return login_fail(login, ISCSI_LOGIN_INITIATOR_ERROR,
				  "other keys of authentication where CHAP_A was expected");
	if (!c->chap_a)
		return 0;
	login->chap_algorithm = chap_choose(c->chap_a);
	if (login->chap_algorithm == 0)
		return login_fail(login, ISCSI_LOGIN_AUTH_FAILED,
				  "no algorithm of CHAP_A=%.40s is supported (5, 6, 7 and 8 are)",
				  c->chap_a);
	if (fill_random(login, login->challenge, sizeof(login->challenge)) != 0 ||
	    fill_random(login, &login->chap_id, sizeof(login->chap_id)) != 0)
		return -EPROTO;
	chap_encode(login->challenge, sizeof(login->challenge), challenge, sizeof(challenge));
	iscsi_text_add_uint(&login->out, "CHAP_A", login->chap_algorithm);
	iscsi_text_add_uint(&login->out, "CHAP_I", login->chap_id);
	iscsi_text_add(&login->out, "CHAP_C", challenge);
	login->step = LOGIN_AUTH_RESPONSE;
	return 0;
}

/* The peer's response to our challenge; the user, or NULL. */
static const struct iscsi_chap_user *judge_response(struct iscsi_login *login,
						    const struct iscsi_auth_group *auth,
						    const struct login_credentials *c)
{
	const struct iscsi_chap_user *user = iscsi_auth_user(auth, c->chap_n);
	uint8_t expected[CHAP_DIGEST_MAX], response[CHAP_DIGEST_MAX];
	size_t len;

	if (!user) {
		login_fail(login, ISCSI_LOGIN_AUTH_FAILED,
			   "auth-group %.40s has no CHAP user %.40s", auth->name, c->chap_n);
		return NULL;
	}
	len = chap_digest(login->chap_algorithm, login->chap_id, user->secret, login->challenge,
			  sizeof(login->challenge), expected);
	if (len != 0 && chap_decode(c->chap_r, response, sizeof(response)) == (int)len &&
	    chap_equal(response, expected, len))
		return user;
	login_fail(login, ISCSI_LOGIN_AUTH_FAILED, "the CHAP secret of user %.40s is wrong",
		   c->chap_n);
	return NULL;
}

/*
 * The peer asks us to prove who we are.  What would let it learn a response to
 * a challenge of ours is refused (RFC 7143 12.1.3, 9.2.1): our own
 * challenge, and a secret that is the same both ways.
 */
static int answer_mutual(struct iscsi_login *login, const struct iscsi_auth_group *auth,
			 const struct iscsi_chap_user *user, const struct login_credentials *c)
{
	uint8_t challenge[CHAP_VALUE_MAX], digest[CHAP_DIGEST_MAX];
	char response[2 * CHAP_DIGEST_MAX + 3];
	uint32_t id;
	size_t digest_len;
	int len;

	if (!c->chap_i || !c->chap_c || iscsi_number_parse(c->chap_i, &id) != 0 || id > 255)
		return login_fail(login, ISCSI_LOGIN_INITIATOR_ERROR,
				  "CHAP_I and CHAP_C are not both there and valid");
	len = chap_decode(c->chap_c, challenge, sizeof(challenge));
	if (len < 1)
		return login_fail(login, ISCSI_LOGIN_INITIATOR_ERROR, "CHAP_C is not valid");
	if (!user->mutual_user)
		return login_fail(login, ISCSI_LOGIN_AUTH_FAILED,
				  "the initiator asks for mutual CHAP, auth-group %.40s has no "
				  "chap-mutual for user %.40s",
				  auth->name, user->user);
	if (len == sizeof(login->challenge) &&
	    memcmp(challenge, login->challenge, sizeof(login->challenge)) == 0)
		return login_fail(login, ISCSI_LOGIN_AUTH_FAILED,
				  "the initiator sent our own CHAP challenge back");
	if (strcmp(user->secret, user->mutual_secret) == 0)
		return login_fail(login, ISCSI_LOGIN_AUTH_FAILED,
				  "user %.40s has the same secret both ways", user->user);
	digest_len = chap_digest(login->chap_algorithm, (uint8_t)id, user->mutual_secret, challenge,
				 (size_t)len, digest);
	if (digest_len == 0)
		return login_fail(login, ISCSI_LOGIN_TARGET_ERROR, "CHAP algorithm %u failed",
				  login->chap_algorithm);
	chap_encode(digest, digest_len, response, sizeof(response));
	iscsi_text_add(&login->out, "CHAP_N", user->mutual_user);
	iscsi_text_add(&login->out, "CHAP_R", response);
	return 0;
}

static int take_response(struct iscsi_login *login, const struct iscsi_auth_group *auth,
			 const struct login_credentials *c)
{
	const struct iscsi_chap_user *user;
	size_t name_len;

	if (!c->auth_method && !has_chap(c))
		return 0;
	if (c->auth_method || c->chap_a || !c->chap_n || !c->chap_r)
		return login_fail(
			login, ISCSI_LOGIN_INITIATOR_ERROR,
			"other keys of authentication where CHAP_N and CHAP_R were expected");
	name_len = strlen(c->chap_n);
	if (name_len > LOGIN_USER_MAX)
		return login_fail(login, ISCSI_LOGIN_AUTH_FAILED, "CHAP_N is %zu bytes long",
				  name_len);
	user = judge_response(login, auth, c);
	if (!user)
		return -EPROTO;
	if ((c->chap_i || c->chap_c) && answer_mutual(login, auth, user, c) != 0)
		return -EPROTO;
	/* A challenge is used once. */
	explicit_bzero(login->challenge, sizeof(login->challenge));
	memcpy(login->chap_user, c->chap_n, name_len + 1);
	login->authenticated = true;
	login->step = LOGIN_AUTH_DONE;
	return 0;
}

int login_security(struct iscsi_login *login, const struct iscsi_auth_group *auth,
		   const struct login_credentials *credentials)
{
	switch ((enum login_auth_step)login->step) {
	case LOGIN_AUTH_METHOD: return take_method(login, auth, credentials);
	case LOGIN_AUTH_ALGORITHM: return take_algorithm(login, credentials);
	case LOGIN_AUTH_RESPONSE: return take_response(login, auth, credentials);
	case LOGIN_AUTH_DONE: break;
	}
	if (credentials->auth_method || has_chap(credentials))
		return login_fail(login, ISCSI_LOGIN_INITIATOR_ERROR,
				  "keys of authentication after its end");
	return 0;
}
