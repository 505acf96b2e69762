/*
 * The login: requests and their text, stages, who may come in.  See login.h; the
 * keys' rules are in keys.c, authentication is in login_security.c.
 *
 * A request is judged in this order: its header (version, stage, bits), its
 * text once that is complete, who wants what (names, session type), whether the
 * view lets it in, the keys of its stage, and last whether to go on to the
 * stage it asks for.
 */
#include "target/iscsi/login.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target/iscsi/login_internal.h"

/* One key of a request.  row is NULL for keys of authentication and unknown ones. */
struct login_pair {
	const char *key, *value;
	const struct iscsi_key *row;
	const char **credential;
};

struct login_pairs {
	unsigned int n;
	struct login_pair at[LOGIN_PAIRS_MAX];
	struct login_credentials credentials;
};

struct iscsi_login *iscsi_login_create(const struct iscsi_login_peer *peer)
{
	struct iscsi_login *login = calloc(1, sizeof(*login));

	if (!login)
		return NULL;
	login->peer = *peer;
	iscsi_negotiation_init(&login->negotiation);
	login->out.buf = login->answer;
	login->out.cap = sizeof(login->answer);
	return login;
}

void iscsi_login_destroy(struct iscsi_login *login)
{
	if (!login)
		return;
	free(login->text);
	explicit_bzero(login->challenge, sizeof(login->challenge));
	free(login);
}

int login_fail(struct iscsi_login *login, enum iscsi_login_status status, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(login->failure.why, sizeof(login->failure.why), fmt, args);
	va_end(args);
	login->failure.status = status;
	return -EPROTO;
}

/* ---- the header ---- */

/* RFC 7143 11.12.1 to 11.12.4: the bits T and C, and the stages. */
static int check_stages(struct iscsi_login *login, uint8_t flags)
{
	unsigned int csg = ISCSI_LOGIN_CSG(flags), nsg = ISCSI_LOGIN_NSG(flags);
	bool transit = flags & ISCSI_LOGIN_TRANSIT;

	if (csg > ISCSI_STAGE_OPERATIONAL)
		return login_fail(login, ISCSI_LOGIN_INVALID_REQUEST, "CSG is %u", csg);
	if (transit && flags & ISCSI_CONTINUE)
		return login_fail(login, ISCSI_LOGIN_INVALID_REQUEST, "both T and C are set");
	if (transit && (nsg <= csg || nsg == ISCSI_STAGE_RESERVED))
		return login_fail(login, ISCSI_LOGIN_INVALID_REQUEST,
				  "a transit from stage %u to stage %u", csg, nsg);
	/* Only the first request chooses where to begin. */
	if (login->nrequests == 0)
		login->stage = (uint8_t)csg;
	if (csg != login->stage)
		return login_fail(login, ISCSI_LOGIN_INVALID_REQUEST,
				  "a request of stage %u while in stage %u", csg, login->stage);
	return 0;
}

/* RFC 7143 11.12.5 to 11.12.8: what stays the same over a login. */
static int check_header(struct iscsi_login *login, const struct iscsi_login_req *request)
{
	if (request->version_min > ISCSI_VERSION)
		return login_fail(login, ISCSI_LOGIN_UNSUPPORTED_VERSION,
				  "the lowest version of the initiator is 0x%02x",
				  request->version_min);
	if (check_stages(login, request->flags) != 0)
		return -EPROTO;
	if (login->nrequests == 0) {
		memcpy(login->isid, request->isid, sizeof(login->isid));
		login->tsih = be16_get(&request->tsih);
		login->cid = be16_get(&request->cid);
		login->cmd_sn = be32_get(&request->cmd_sn);
	} else if (memcmp(login->isid, request->isid, sizeof(login->isid)) != 0 ||
		   login->tsih != be16_get(&request->tsih) ||
		   login->cid != be16_get(&request->cid)) {
		return login_fail(login, ISCSI_LOGIN_INVALID_REQUEST,
				  "ISID, TSIH or CID was changed during the login");
	}
	if (++login->nrequests > ISCSI_LOGIN_PDUS_MAX)
		return login_fail(login, ISCSI_LOGIN_INITIATOR_ERROR,
				  "no end after %u login requests", ISCSI_LOGIN_PDUS_MAX);
	return 0;
}

/* ---- the text ---- */

/* Adds a part to the text of a request over several PDUs. */
static int text_append(struct iscsi_login *login, const char *data, uint32_t len)
{
	char *text;

	if (len > ISCSI_LOGIN_TEXT_MAX - login->text_len)
		return login_fail(login, ISCSI_LOGIN_INITIATOR_ERROR,
				  "a login request of more than %u bytes of text",
				  ISCSI_LOGIN_TEXT_MAX);
	if (len == 0)
		return 0;
	text = realloc(login->text, login->text_len + len);
	if (!text)
		return login_fail(login, ISCSI_LOGIN_OUT_OF_RESOURCES, "no memory");
	memcpy(text + login->text_len, data, len);
	login->text = text;
	login->text_len += len;
	return 0;
}

static int pairs_add(struct iscsi_login *login, struct login_pairs *pairs, const char *key,
		     const char *value)
{
	struct login_pair *pair = &pairs->at[pairs->n];

	if (pairs->n == LOGIN_PAIRS_MAX)
		return login_fail(login, ISCSI_LOGIN_INITIATOR_ERROR,
				  "more than %u keys in a login request", LOGIN_PAIRS_MAX);
	pair->key = key;
	pair->value = value;
	pair->row = iscsi_key_find(key);
	pair->credential = login_credential(&pairs->credentials, key);
	if (pair->row &&
	    !(pair->row->flags &
	      (login->stage == ISCSI_STAGE_SECURITY ? ISCSI_KEY_SECURITY : ISCSI_KEY_OPERATIONAL)))
		return login_fail(login, ISCSI_LOGIN_INITIATOR_ERROR, "%s in the security stage",
				  key);
	if (pair->credential) {
		if (login->stage != ISCSI_STAGE_SECURITY)
			return login_fail(login, ISCSI_LOGIN_INITIATOR_ERROR,
					  "%s in the operational stage", key);
		if (*pair->credential)
			return login_fail(login, ISCSI_LOGIN_INITIATOR_ERROR, "%s was sent twice",
					  key);
		*pair->credential = value;
	}
	pairs->n++;
	return 0;
}

/* Judges the form of the whole text before any of it is used. */
static int pairs_read(struct iscsi_login *login, char *text, uint32_t len,
		      struct login_pairs *pairs)
{
	uint32_t pos = 0;
	char *key, *value;
	int rc;

	pairs->n = 0;
	memset(&pairs->credentials, 0, sizeof(pairs->credentials));
	while ((rc = iscsi_text_next(text, len, &pos, &key, &value)) == 1)
		if (pairs_add(login, pairs, key, value) != 0)
			return -EPROTO;
	if (rc != 0)
		return login_fail(login, ISCSI_LOGIN_INITIATOR_ERROR,
				  "the text at byte %u is not key=value with a NUL behind", pos);
	return 0;
}

/* The pairs of rows whose FIRST and LAST flags are exactly `when`. */
static int pairs_receive(struct iscsi_login *login, const struct login_pairs *pairs, uint32_t when,
			 const struct iscsi_limits *limits)
{
	for (unsigned int i = 0; i < pairs->n; i++) {
		const struct login_pair *pair = &pairs->at[i];
		uint32_t flags = pair->row ? pair->row->flags : 0;

		if (pair->credential || (flags & (ISCSI_KEY_FIRST | ISCSI_KEY_LAST)) != when)
			continue;
		if (!pair->row)
			iscsi_text_add(&login->out, pair->key, "NotUnderstood");
		else if (iscsi_key_receive(&login->negotiation, pair->row, limits, pair->value,
					   &login->out, &login->failure) != 0)
			return -EPROTO;
	}
	return 0;
}

/* ---- who may come in ---- */

/* RFC 7143 6.3: who it is, and what it wants, is in the first request. */
static int check_names(struct iscsi_login *login)
{
	const struct iscsi_params *params = &login->negotiation.params;

	if (!*params->initiator_name)
		return login_fail(login, ISCSI_LOGIN_MISSING_PARAMETER, "no InitiatorName");
	if (!params->discovery && !*params->target_name)
		return login_fail(login, ISCSI_LOGIN_MISSING_PARAMETER,
				  "no TargetName in a normal session");
	return 0;
}

static int find_target(struct iscsi_login *login, const struct iscsi_view *view,
		       struct login_admission *admission)
{
	const char *name = login->negotiation.params.target_name;
	const struct iscsi_target_port *port;

	admission->target = iscsi_view_target(view, name);
	if (!admission->target)
		return login_fail(login, ISCSI_LOGIN_NOT_FOUND, "there is no target %.80s", name);
	port = iscsi_target_port(admission->target, admission->group);
	if (!port)
		return login_fail(login, ISCSI_LOGIN_NOT_FOUND,
				  "target %.60s is not in portal-group %.30s", name,
				  login->peer.portal_group);
	admission->auth = port->auth;
	admission->limits = &admission->target->limits;
	return 0;
}

/* Asked anew for each request, as the view may have changed. */
static int admit(struct iscsi_login *login, const struct iscsi_view *view,
		 struct login_admission *admission)
{
	const char *initiator = login->negotiation.params.initiator_name;

	admission->group = iscsi_view_group(view, login->peer.portal_group);
	if (!admission->group)
		return login_fail(login, ISCSI_LOGIN_UNAVAILABLE, "portal-group %.40s is gone",
				  login->peer.portal_group);
	if (login->negotiation.params.discovery) {
		admission->target = NULL;
		admission->auth = admission->group->discovery_auth;
		admission->limits = &view->limits;
	} else if (find_target(login, view, admission) != 0) {
		return -EPROTO;
	}
	if (admission->auth->type == ISCSI_AUTH_DENY)
		return login_fail(login, ISCSI_LOGIN_FORBIDDEN, "auth-group %.40s denies everybody",
				  admission->auth->name);
	if (!iscsi_auth_address_matches(admission->auth, &login->peer.peer))
		return login_fail(login, ISCSI_LOGIN_FORBIDDEN,
				  "no initiator-portal of auth-group %.40s has the peer's address",
				  admission->auth->name);
	if (!iscsi_auth_name_matches(admission->auth, initiator))
		return login_fail(login, ISCSI_LOGIN_FORBIDDEN,
				  "no initiator-name of auth-group %.30s matches %.60s",
				  admission->auth->name, initiator);
	return 0;
}

static bool lacks_chap(const struct iscsi_login *login, const struct iscsi_auth_group *auth)
{
	return login_wants_chap(auth) &&
	       !(login->authenticated && iscsi_auth_user(auth, login->chap_user));
}

/* ---- our own declarations ---- */

static bool is_printable(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			return false;
	return true;
}

/* RFC 7143 13.9: the tag is in the first response of a normal session. */
static void greet(struct iscsi_login *login, const struct login_admission *admission)
{
	const char *alias = admission->target ? admission->target->alias : NULL;

	if (login->greeted)
		return;
	login->greeted = true;
	if (!admission->target)
		return;
	iscsi_text_add_uint(&login->out, "TargetPortalGroupTag", admission->group->tag);
	if (alias && is_printable(alias))
		iscsi_text_add(&login->out, "TargetAlias", alias);
}

static void declare(struct iscsi_login *login, const struct iscsi_limits *limits)
{
	uint32_t len = limits->max_recv_data_segment_length;

	if (login->declared)
		return;
	login->declared = true;
	login->negotiation.params.max_recv_data_segment_length = len;
	iscsi_text_add_uint(&login->out, "MaxRecvDataSegmentLength", len);
}

/* ---- stages ---- */

/* To the stage that the request asks for, when nothing is left to do in this
 * one: the flags of the response. */
static int transit(struct iscsi_login *login, const struct login_admission *admission,
		   uint8_t request_flags, uint8_t *flags)
{
	unsigned int nsg = ISCSI_LOGIN_NSG(request_flags);

	*flags = (uint8_t)(login->stage << 2);
	if (!(request_flags & ISCSI_LOGIN_TRANSIT))
		return 0;
	if (login->stage == ISCSI_STAGE_SECURITY) {
		if (login->step == LOGIN_AUTH_METHOD && lacks_chap(login, admission->auth))
			return login_fail(login, ISCSI_LOGIN_AUTH_FAILED,
					  "the initiator offers no AuthMethod, auth-group %.40s "
					  "wants CHAP",
					  admission->auth->name);
		if (lacks_chap(login, admission->auth) ||
		    (login->step != LOGIN_AUTH_METHOD && login->step != LOGIN_AUTH_DONE))
			return 0;
	} else if (iscsi_keys_offer(&login->negotiation, admission->limits, &login->out) > 0) {
		return 0;
	}
	if (nsg == ISCSI_STAGE_FULL_FEATURE &&
	    iscsi_keys_finish(&login->negotiation, admission->limits, &login->failure) != 0)
		return -EPROTO;
	if (nsg == ISCSI_STAGE_FULL_FEATURE && login->negotiation.params.discovery)
		*login->negotiation.params.target_name = '\0';
	*flags |= (uint8_t)(ISCSI_LOGIN_TRANSIT | nsg);
	login->stage = (uint8_t)nsg;
	return 0;
}

/* A complete request; flags are those of the response. */
static int negotiate(struct iscsi_login *login, const struct iscsi_view *view,
		     uint8_t request_flags, char *text, uint32_t len, uint8_t *flags)
{
	struct login_pairs pairs;
	struct login_admission admission = { .group = NULL };

	if (pairs_read(login, text, len, &pairs) != 0 ||
	    pairs_receive(login, &pairs, ISCSI_KEY_FIRST, NULL) != 0)
		return -EPROTO;
	if (check_names(login) != 0 || admit(login, view, &admission) != 0)
		return -EPROTO;
	iscsi_negotiation_settle(&login->negotiation);
	greet(login, &admission);
	if (login->stage == ISCSI_STAGE_SECURITY) {
		if (login_security(login, admission.auth, &pairs.credentials) != 0)
			return -EPROTO;
	} else {
		if (lacks_chap(login, admission.auth))
			return login_fail(login, ISCSI_LOGIN_AUTH_FAILED,
					  "the initiator skips authentication, auth-group %.40s "
					  "wants CHAP",
					  admission.auth->name);
		declare(login, admission.limits);
	}
	if (pairs_receive(login, &pairs, 0, admission.limits) != 0 ||
	    pairs_receive(login, &pairs, ISCSI_KEY_LAST, admission.limits) != 0 ||
	    transit(login, &admission, request_flags, flags) != 0)
		return -EPROTO;
	if (login->out.overflow)
		return login_fail(login, ISCSI_LOGIN_INITIATOR_ERROR,
				  "the answer is longer than %u bytes", LOGIN_ANSWER_MAX);
	return 0;
}

/* ---- requests and responses ---- */

uint32_t iscsi_login_room(const struct iscsi_login *login)
{
	return login->text ? ISCSI_LOGIN_TEXT_MAX - login->text_len : ISCSI_LOGIN_DATA_MAX;
}

static void reply_init(const struct iscsi_login_req *request, struct iscsi_login_reply *reply)
{
	struct iscsi_login_rsp *rsp = &reply->bhs.login_rsp;

	memset(reply, 0, sizeof(*reply));
	rsp->opcode = ISCSI_OP_LOGIN_RSP;
	rsp->version_max = ISCSI_VERSION;
	rsp->version_active = ISCSI_VERSION;
	memcpy(rsp->isid, request->isid, sizeof(rsp->isid));
	rsp->tsih = request->tsih;
	rsp->itt = request->itt;
	reply->has_response = true;
}

void iscsi_login_refuse(struct iscsi_login *login, enum iscsi_login_status status, const char *why,
			struct iscsi_login_reply *reply)
{
	struct iscsi_login_rsp *rsp = &reply->bhs.login_rsp;

	assert(status != ISCSI_LOGIN_OK);
	login->ended = true;
	/* RFC 7143 11.13.5: nothing else in the response means anything now. */
	rsp->flags = 0;
	rsp->status_class = (uint8_t)(status >> 8);
	rsp->status_detail = (uint8_t)status;
	be24_put(&rsp->data_segment_len, 0);
	reply->data = NULL;
	reply->data_len = 0;
	reply->status = status;
	snprintf(reply->why, sizeof(reply->why), "%s", why);
}

static int request_take(struct iscsi_login *login, const struct iscsi_view *view,
			const struct iscsi_login_req *request, char *data, uint32_t data_len,
			uint8_t *flags)
{
	int rc;

	if (check_header(login, request) != 0)
		return -EPROTO;
	/* RFC 7143 6.2: an empty response asks for the rest. */
	if (request->flags & ISCSI_CONTINUE) {
		*flags = (uint8_t)(login->stage << 2);
		return text_append(login, data, data_len);
	}
	if (!login->text)
		return negotiate(login, view, request->flags, data, data_len, flags);
	if (text_append(login, data, data_len) != 0)
		return -EPROTO;
	rc = negotiate(login, view, request->flags, login->text, login->text_len, flags);
	free(login->text);
	login->text = NULL;
	login->text_len = 0;
	return rc;
}

enum iscsi_login_result iscsi_login_input(struct iscsi_login *login, const struct iscsi_view *view,
					  const struct iscsi_bhs *request, char *data,
					  uint32_t data_len, struct iscsi_login_reply *reply)
{
	struct iscsi_login_rsp *rsp = &reply->bhs.login_rsp;
	uint8_t flags = 0;

	assert(!login->ended && data_len <= ISCSI_LOGIN_DATA_MAX);
	reply_init(&request->login_req, reply);
	if ((request->hdr.opcode & ISCSI_OPCODE_MASK) != ISCSI_OP_LOGIN_REQ) {
		iscsi_login_refuse(login, ISCSI_LOGIN_INITIATOR_ERROR, "not a login request",
				   reply);
		reply->has_response = false;
		return ISCSI_LOGIN_FAILED;
	}
	login->out.len = 0;
	if (request_take(login, view, &request->login_req, data, data_len, &flags) != 0) {
		iscsi_login_refuse(login, login->failure.status, login->failure.why, reply);
		return ISCSI_LOGIN_FAILED;
	}
	rsp->flags = flags;
	be24_put(&rsp->data_segment_len, login->out.len);
	reply->data = login->answer;
	reply->data_len = login->out.len;
	login->ended = login->stage == ISCSI_STAGE_FULL_FEATURE;
	return login->ended ? ISCSI_LOGIN_DONE : ISCSI_LOGIN_CONTINUE;
}

void iscsi_login_facts(const struct iscsi_login *login, struct iscsi_login_facts *facts)
{
	memset(facts, 0, sizeof(*facts));
	facts->params = &login->negotiation.params;
	memcpy(facts->isid, login->isid, sizeof(facts->isid));
	facts->tsih = login->tsih;
	facts->cid = login->cid;
	facts->cmd_sn = login->cmd_sn;
	facts->chap_user = login->chap_user;
}
