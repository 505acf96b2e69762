/* The table of keys and the rules of negotiation: see keys.h. */
#include "target/iscsi/keys.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/list.h"
#include "target/iscsi/names.h"

#define PARAM(field) offsetof(struct iscsi_params, field)
#define LIMIT(field) offsetof(struct iscsi_limits, field)
#define NO_PARAM     SIZE_MAX
#define NO_LIMIT     ISCSI_KEY_NO_LIMIT

/* "LO" keys are negotiated in the operational stage and mean nothing in a
 * discovery session. */
#define SECURITY    ISCSI_KEY_SECURITY
#define OPERATIONAL ISCSI_KEY_OPERATIONAL
#define SESSION	    (ISCSI_KEY_OPERATIONAL | ISCSI_KEY_NOT_DISCOVERY)
#define EVERYWHERE  (ISCSI_KEY_ANY_STAGE | ISCSI_KEY_FULL_FEATURE)
#define WHO	    (ISCSI_KEY_ANY_STAGE | ISCSI_KEY_FIRST)
#define BINDS	    ISCSI_KEY_BINDS

/*
 * MaxConnections: no multiple connections per session.  The orders: we send and
 * take data in order only.  iSCSIProtocolLevel: 1 is RFC 7143.  TaskReporting:
 * without fences (RFC 7143 13.23).  The marker keys are obsolete: No, as some
 * initiators give up on Reject, and Reject for their intervals (13.25).
 */
/* clang-format off */
const struct iscsi_key iscsi_login_keys[] = {
	{ "HeaderDigest", ISCSI_KEY_DIGEST, OPERATIONAL | BINDS,
	  PARAM(header_digest), LIMIT(header_digest),
	  .rfc = "13.1" },
	{ "DataDigest", ISCSI_KEY_DIGEST, OPERATIONAL | BINDS,
	  PARAM(data_digest), LIMIT(data_digest),
	  .rfc = "13.1" },
	{ "MaxConnections", ISCSI_KEY_MIN, SESSION, PARAM(max_connections), NO_LIMIT,
	  .def = 1, .min = 1, .max = 65535, .ours = 1, .rfc = "13.2" },
	{ "SendTargets", ISCSI_KEY_TARGETS, EVERYWHERE, NO_PARAM, NO_LIMIT,
	  .rfc = "13.3" },
	{ "TargetName", ISCSI_KEY_DECLARE_NAME, WHO, PARAM(target_name), NO_LIMIT,
	  .rfc = "13.4" },
	{ "InitiatorName", ISCSI_KEY_DECLARE_NAME, WHO, PARAM(initiator_name), NO_LIMIT,
	  .rfc = "13.5" },
	{ "TargetAlias", ISCSI_KEY_TARGETS, EVERYWHERE, NO_PARAM, NO_LIMIT,
	  .rfc = "13.6" },
	{ "InitiatorAlias", ISCSI_KEY_DECLARE_TEXT, EVERYWHERE,
	  PARAM(initiator_alias), NO_LIMIT,
	  .rfc = "13.7" },
	{ "TargetAddress", ISCSI_KEY_TARGETS, EVERYWHERE, NO_PARAM, NO_LIMIT,
	  .rfc = "13.8" },
	{ "TargetPortalGroupTag", ISCSI_KEY_TARGETS, EVERYWHERE, NO_PARAM, NO_LIMIT,
	  .rfc = "13.9" },
	{ "InitialR2T", ISCSI_KEY_OR, SESSION, PARAM(initial_r2t), LIMIT(initial_r2t),
	  .def = 1, .max = 1, .rfc = "13.10" },
	{ "ImmediateData", ISCSI_KEY_AND, SESSION | BINDS,
	  PARAM(immediate_data), LIMIT(immediate_data),
	  .def = 1, .max = 1, .rfc = "13.11" },
	{ "MaxRecvDataSegmentLength", ISCSI_KEY_DECLARE_SIZE, EVERYWHERE,
	  PARAM(max_xmit_data_segment_length), NO_LIMIT,
	  .def = 8192, .min = 512, .max = 16777215, .rfc = "13.12" },
	{ "MaxBurstLength", ISCSI_KEY_MIN, SESSION | BINDS,
	  PARAM(max_burst_length), LIMIT(max_burst_length),
	  .def = 262144, .min = 512, .max = 16777215, .rfc = "13.13" },
	{ "FirstBurstLength", ISCSI_KEY_MIN, SESSION | BINDS | ISCSI_KEY_LAST,
	  PARAM(first_burst_length), LIMIT(first_burst_length),
	  .def = 65536, .min = 512, .max = 16777215, .rfc = "13.14" },
	{ "DefaultTime2Wait", ISCSI_KEY_MAX, OPERATIONAL,
	  PARAM(default_time2wait), LIMIT(default_time2wait),
	  .def = 2, .max = 3600, .rfc = "13.15" },
	{ "DefaultTime2Retain", ISCSI_KEY_MIN, OPERATIONAL,
	  PARAM(default_time2retain), LIMIT(default_time2retain),
	  .def = 20, .max = 3600, .rfc = "13.16" },
	{ "MaxOutstandingR2T", ISCSI_KEY_MIN, SESSION,
	  PARAM(max_outstanding_r2t), LIMIT(max_outstanding_r2t),
	  .def = 1, .min = 1, .max = 65535, .rfc = "13.17" },
	{ "DataPDUInOrder", ISCSI_KEY_OR, SESSION, PARAM(data_pdu_in_order), NO_LIMIT,
	  .def = 1, .max = 1, .ours = 1, .rfc = "13.18" },
	{ "DataSequenceInOrder", ISCSI_KEY_OR, SESSION, PARAM(data_sequence_in_order), NO_LIMIT,
	  .def = 1, .max = 1, .ours = 1, .rfc = "13.19" },
	{ "ErrorRecoveryLevel", ISCSI_KEY_MIN, OPERATIONAL,
	  PARAM(error_recovery_level), NO_LIMIT,
	  .max = 2, .rfc = "13.20" },
	{ "SessionType", ISCSI_KEY_DECLARE_TYPE, WHO, PARAM(discovery), NO_LIMIT,
	  .max = 1, .rfc = "13.21" },
	{ "TaskReporting", ISCSI_KEY_LIST, SESSION, NO_PARAM, NO_LIMIT,
	  .value = "RFC3720", .rfc = "13.23" },
	{ "iSCSIProtocolLevel", ISCSI_KEY_MIN, SESSION, PARAM(protocol_level), NO_LIMIT,
	  .def = 1, .max = 31, .ours = 1, .rfc = "13.24" },
	{ "OFMarker", ISCSI_KEY_CONSTANT, OPERATIONAL, NO_PARAM, NO_LIMIT,
	  .value = "No", .rfc = "13.25" },
	{ "IFMarker", ISCSI_KEY_CONSTANT, OPERATIONAL, NO_PARAM, NO_LIMIT,
	  .value = "No", .rfc = "13.25" },
	{ "OFMarkInt", ISCSI_KEY_CONSTANT, OPERATIONAL, NO_PARAM, NO_LIMIT,
	  .value = "Reject", .rfc = "13.25" },
	{ "IFMarkInt", ISCSI_KEY_CONSTANT, OPERATIONAL, NO_PARAM, NO_LIMIT,
	  .value = "Reject", .rfc = "13.25" },
};
/* clang-format on */

const unsigned int iscsi_login_nkeys = ARRAY_LEN(iscsi_login_keys);
static_assert(ARRAY_LEN(iscsi_login_keys) <= ISCSI_KEYS_MAX, "a bit for each key");

/* What a rule says to one value. */
enum verdict {
	ANSWER,	  /* the value in answer */
	DECLARED, /* nothing is answered */
	REJECT,	  /* "Reject": the value from before holds */
	FAIL,	  /* failure is set */
};

/* One value being judged. */
struct judgement {
	struct iscsi_params *params;
	const struct iscsi_key *key;
	const struct iscsi_limits *limits;
	const char *value;
	char answer[32];
	struct iscsi_key_failure *failure;
};

__attribute__((format(printf, 3, 4))) static enum verdict fail(struct iscsi_key_failure *failure,
							       enum iscsi_login_status status,
							       const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(failure->why, sizeof(failure->why), fmt, args);
	va_end(args);
	failure->status = status;
	return FAIL;
}

static void *result_of(struct iscsi_params *params, const struct iscsi_key *key)
{
	return (char *)params + key->offset;
}

/* What we want of a number: the limit, or the row's own word. */
static uint32_t ours_of(const struct iscsi_key *key, const struct iscsi_limits *limits)
{
	if (key->limit == NO_LIMIT)
		return key->ours;
	return *(const uint32_t *)((const char *)limits + key->limit);
}

static bool ours_of_bool(const struct iscsi_key *key, const struct iscsi_limits *limits)
{
	if (key->limit == NO_LIMIT)
		return key->ours;
	return *(const bool *)((const char *)limits + key->limit);
}

static uint8_t policy_of(const struct iscsi_key *key, const struct iscsi_limits *limits)
{
	return *((const uint8_t *)limits + key->limit);
}

/* ---- words ---- */

int iscsi_number_parse(const char *value, uint32_t *out)
{
	bool hex = value[0] == '0' && (value[1] == 'x' || value[1] == 'X');
	const char *digits = hex ? "0123456789abcdefABCDEF" : "0123456789";
	const char *p = hex ? value + 2 : value;
	uint64_t n = 0;

	if (!*p || p[strspn(p, digits)] != '\0')
		return -EINVAL;
	for (; *p; p++) {
		unsigned int digit = *p <= '9' ? (unsigned int)(*p - '0')
					       : (unsigned int)((*p | 0x20) - 'a' + 10);

		n = n * (hex ? 16 : 10) + digit;
		if (n > UINT32_MAX)
			return -EINVAL;
	}
	*out = (uint32_t)n;
	return 0;
}

bool iscsi_list_has(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (;;) {
		size_t n = strcspn(list, ",");

		if (n == len && memcmp(list, word, len) == 0)
			return true;
		if (list[n] == '\0')
			return false;
		list += n + 1;
	}
}

/* RFC 7143 6.2: words that answer an offer and are never one. */
static bool is_refusal(const char *value)
{
	return strcmp(value, "Reject") == 0 || strcmp(value, "Irrelevant") == 0 ||
	       strcmp(value, "NotUnderstood") == 0;
}

/* ---- rules ---- */

static enum verdict judge_number(struct judgement *j)
{
	uint32_t offer, ours = ours_of(j->key, j->limits), *result = result_of(j->params, j->key);

	if (iscsi_number_parse(j->value, &offer) != 0 || offer < j->key->min || offer > j->key->max)
		return REJECT;
	if (j->key->rule == ISCSI_KEY_MIN)
		*result = offer < ours ? offer : ours;
	else
		*result = offer > ours ? offer : ours;
	/* RFC 7143 13.14: FirstBurstLength must not exceed MaxBurstLength. */
	if (j->key->flags & ISCSI_KEY_LAST && *result > j->params->max_burst_length)
		*result = j->params->max_burst_length;
	snprintf(j->answer, sizeof(j->answer), "%" PRIu32, *result);
	return ANSWER;
}

static enum verdict judge_bool(struct judgement *j)
{
	bool yes = strcmp(j->value, "Yes") == 0, ours = ours_of_bool(j->key, j->limits);
	bool *result = result_of(j->params, j->key);

	if (!yes && strcmp(j->value, "No") != 0)
		return REJECT;
	*result = j->key->rule == ISCSI_KEY_OR ? yes || ours : yes && ours;
	snprintf(j->answer, sizeof(j->answer), "%s", *result ? "Yes" : "No");
	return ANSWER;
}

/*
 * The first of the list that the policy allows.  A list with nothing for us
 * ends the login: with "Reject" alone, both sides could go on and disagree.
 * In discovery None wins, as initiators offer digests there and can't do them.
 */
static enum verdict judge_digest(struct judgement *j)
{
	uint8_t policy = policy_of(j->key, j->limits);
	bool none = iscsi_list_has(j->value, "None"), crc = iscsi_list_has(j->value, "CRC32C");
	bool *result = result_of(j->params, j->key);

	if (j->params->discovery) {
		crc = crc && !none && policy != ISCSI_DIGEST_NONE;
	} else {
		none = none && policy != ISCSI_DIGEST_REQUIRED;
		crc = crc && policy != ISCSI_DIGEST_NONE;
	}
	if (none && crc) {
		/* Both stand in the list as whole words: the first one wins. */
		crc = strstr(j->value, "CRC32C") < strstr(j->value, "None");
	} else if (!none && !crc) {
		return fail(j->failure, ISCSI_LOGIN_INITIATOR_ERROR,
			    "%s: the initiator offers %.40s, the settings say %s", j->key->name,
			    j->value,
			    policy == ISCSI_DIGEST_NONE	      ? "none"
			    : policy == ISCSI_DIGEST_REQUIRED ? "required"
							      : "optional");
	}
	*result = crc;
	snprintf(j->answer, sizeof(j->answer), "%s", crc ? "CRC32C" : "None");
	return ANSWER;
}

static enum verdict judge_list(struct judgement *j)
{
	if (!iscsi_list_has(j->value, j->key->value))
		return REJECT;
	snprintf(j->answer, sizeof(j->answer), "%s", j->key->value);
	return ANSWER;
}

static enum verdict judge_constant(struct judgement *j)
{
	snprintf(j->answer, sizeof(j->answer), "%s", j->key->value);
	return ANSWER;
}

/* A refusal here answers what we declared, and changes nothing. */
static enum verdict judge_targets(struct judgement *j)
{
	return is_refusal(j->value) ? DECLARED : REJECT;
}

static enum verdict judge_size(struct judgement *j)
{
	uint32_t size, *result = result_of(j->params, j->key);

	if (is_refusal(j->value))
		return DECLARED;
	if (iscsi_number_parse(j->value, &size) != 0 || size < j->key->min || size > j->key->max)
		return fail(j->failure, ISCSI_LOGIN_INITIATOR_ERROR,
			    "%s=%.20s is outside %" PRIu32 "..%" PRIu32, j->key->name, j->value,
			    j->key->min, j->key->max);
	*result = size;
	return DECLARED;
}

static enum verdict judge_name(struct judgement *j)
{
	bool target = j->key->offset == PARAM(target_name);
	/* Whole, to the last byte: params are compared as they lie in memory. */
	char *result = result_of(j->params, j->key), name[ISCSI_NAME_MAX + 1] = "";
	struct err err;

	if (iscsi_name_normalize(j->value, name, sizeof(name), &err) != 0)
		return fail(j->failure,
			    target ? ISCSI_LOGIN_NOT_FOUND : ISCSI_LOGIN_INITIATOR_ERROR,
			    "%s: %.100s", j->key->name, err.text);
	if (*result && strcmp(result, name) != 0)
		return fail(j->failure, ISCSI_LOGIN_INITIATOR_ERROR,
			    "%s was changed during the login", j->key->name);
	memcpy(result, name, sizeof(name));
	return DECLARED;
}

/* The length of the UTF-8 sequence at s, 0 when there is none. */
static size_t utf8_len(const char *s)
{
	const unsigned char *p = (const unsigned char *)s;
	size_t n = p[0] < 0x80			 ? 1
		   : p[0] >= 0xc2 && p[0] < 0xe0 ? 2
		   : p[0] >= 0xe0 && p[0] < 0xf0 ? 3
		   : p[0] >= 0xf0 && p[0] < 0xf5 ? 4
						 : 0;

	for (size_t i = 1; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	/* Overlong forms, surrogates and beyond U+10FFFF */
	if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] >= 0xa0) ||
	    (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] >= 0x90))
		return 0;
	return n;
}

/* For people and for JSON: valid UTF-8 without control characters, cut to fit. */
static enum verdict judge_text(struct judgement *j)
{
	char *result = result_of(j->params, j->key);
	const char *p = j->value;
	size_t len = 0, n;

	for (; *p; p += n ? n : 1) {
		n = utf8_len(p);
		if (n > ISCSI_NAME_MAX - len || len == ISCSI_NAME_MAX)
			break;
		if (n == 0 || (unsigned char)*p < 0x20 || *p == 0x7f) {
			result[len++] = '?';
		} else {
			memcpy(result + len, p, n);
			len += n;
		}
	}
	result[len] = '\0';
	return DECLARED;
}

static enum verdict judge_type(struct judgement *j)
{
	bool discovery = strcmp(j->value, "Discovery") == 0, *result = result_of(j->params, j->key);

	if (!discovery && strcmp(j->value, "Normal") != 0)
		return fail(j->failure, ISCSI_LOGIN_SESSION_TYPE,
			    "SessionType=%.40s is neither Normal nor Discovery", j->value);
	*result = discovery;
	return DECLARED;
}

static enum verdict (*const key_rules[])(struct judgement *j) = {
	[ISCSI_KEY_MIN] = judge_number,	       [ISCSI_KEY_MAX] = judge_number,
	[ISCSI_KEY_AND] = judge_bool,	       [ISCSI_KEY_OR] = judge_bool,
	[ISCSI_KEY_DIGEST] = judge_digest,     [ISCSI_KEY_LIST] = judge_list,
	[ISCSI_KEY_DECLARE_SIZE] = judge_size, [ISCSI_KEY_DECLARE_NAME] = judge_name,
	[ISCSI_KEY_DECLARE_TEXT] = judge_text, [ISCSI_KEY_DECLARE_TYPE] = judge_type,
	[ISCSI_KEY_CONSTANT] = judge_constant, [ISCSI_KEY_TARGETS] = judge_targets,
};

/* ---- the negotiation ---- */

const struct iscsi_key *iscsi_key_find(const char *name)
{
	for (unsigned int i = 0; i < iscsi_login_nkeys; i++)
		if (strcmp(iscsi_login_keys[i].name, name) == 0)
			return &iscsi_login_keys[i];
	return NULL;
}

static uint64_t bit_of(const struct iscsi_key *key)
{
	return UINT64_C(1) << (key - iscsi_login_keys);
}

static bool is_declared(const struct iscsi_key *key)
{
	return key->rule >= ISCSI_KEY_DECLARE_SIZE && key->rule <= ISCSI_KEY_DECLARE_TYPE;
}

static bool is_bool(const struct iscsi_key *key)
{
	return key->rule == ISCSI_KEY_AND || key->rule == ISCSI_KEY_OR ||
	       key->rule == ISCSI_KEY_DIGEST || key->rule == ISCSI_KEY_DECLARE_TYPE;
}

void iscsi_params_init(struct iscsi_params *params)
{
	memset(params, 0, sizeof(*params));
	params->max_recv_data_segment_length = 8192;
	for (unsigned int i = 0; i < iscsi_login_nkeys; i++) {
		const struct iscsi_key *key = &iscsi_login_keys[i];

		if (is_bool(key))
			*(bool *)result_of(params, key) = key->def;
		else if (key->def)
			*(uint32_t *)result_of(params, key) = key->def;
	}
}

void iscsi_negotiation_init(struct iscsi_negotiation *negotiation)
{
	memset(negotiation, 0, sizeof(*negotiation));
	iscsi_params_init(&negotiation->params);
}

void iscsi_negotiation_settle(struct iscsi_negotiation *negotiation)
{
	for (unsigned int i = 0; i < iscsi_login_nkeys; i++)
		if (iscsi_login_keys[i].flags & ISCSI_KEY_FIRST)
			negotiation->received |= bit_of(&iscsi_login_keys[i]);
}

/* The answer to an offer of ours must be within it. */
static int take_answer(struct judgement *j, uint64_t *offered)
{
	enum verdict verdict;

	*offered &= ~bit_of(j->key);
	if (is_refusal(j->value))
		return 0; /* iscsi_keys_finish() judges what that leaves */
	verdict = key_rules[j->key->rule](j);
	if (verdict == ANSWER && strcmp(j->answer, j->value) == 0)
		return 0;
	if (verdict != FAIL)
		fail(j->failure, ISCSI_LOGIN_INITIATOR_ERROR,
		     "%s=%.40s does not answer what we offered", j->key->name, j->value);
	return -EPROTO;
}

/*
 * A key that has come before.  Some initiators declare again what they have
 * declared; a negotiation must not be had twice (RFC 7143 6.2).
 */
static int take_repeat(struct judgement *j)
{
	struct iscsi_params before;

	memcpy(&before, j->params, sizeof(before));
	if (!is_declared(j->key)) {
		fail(j->failure, ISCSI_LOGIN_INITIATOR_ERROR, "%s was sent twice", j->key->name);
		return -EPROTO;
	}
	if (key_rules[j->key->rule](j) == FAIL)
		return -EPROTO;
	if (memcmp(&before, j->params, sizeof(before)) == 0)
		return 0;
	memcpy(j->params, &before, sizeof(before));
	fail(j->failure, ISCSI_LOGIN_INITIATOR_ERROR, "%s was changed during the login",
	     j->key->name);
	return -EPROTO;
}

int iscsi_key_receive(struct iscsi_negotiation *negotiation, const struct iscsi_key *key,
		      const struct iscsi_limits *limits, const char *value,
		      struct iscsi_text_out *out, struct iscsi_key_failure *failure)
{
	struct judgement j = {
		.params = &negotiation->params,
		.key = key,
		.limits = limits,
		.value = value,
		.failure = failure,
	};

	assert(limits || key->flags & ISCSI_KEY_FIRST);
	if (negotiation->offered & bit_of(key))
		return take_answer(&j, &negotiation->offered);
	if (negotiation->received & bit_of(key) && key->rule != ISCSI_KEY_TARGETS)
		return take_repeat(&j);
	negotiation->received |= bit_of(key);
	if (key->flags & ISCSI_KEY_NOT_DISCOVERY && negotiation->params.discovery) {
		iscsi_text_add(out, key->name, "Irrelevant");
		return 0;
	}
	switch (key_rules[key->rule](&j)) {
	case ANSWER: iscsi_text_add(out, key->name, j.answer); return 0;
	case REJECT: iscsi_text_add(out, key->name, "Reject"); return 0;
	case DECLARED: return 0;
	case FAIL: break;
	}
	return -EPROTO;
}

/* RFC 7143 13.14: without unsolicited data there is no first burst. */
static bool is_relevant(const struct iscsi_key *key, const struct iscsi_params *params)
{
	if (params->discovery)
		return false;
	return !(key->flags & ISCSI_KEY_LAST) || params->immediate_data || !params->initial_r2t;
}

/* What an offer of ours would say; false when what holds now is within the
 * limits. */
static bool wish_of(const struct iscsi_key *key, struct iscsi_params *params,
		    const struct iscsi_limits *limits, char *wish, size_t cap)
{
	if (!(key->flags & ISCSI_KEY_BINDS) || !is_relevant(key, params))
		return false;
	if (key->rule == ISCSI_KEY_MIN) {
		uint32_t ours = ours_of(key, limits);

		snprintf(wish, cap, "%" PRIu32, ours);
		return *(uint32_t *)result_of(params, key) > ours;
	}
	if (key->rule == ISCSI_KEY_AND) {
		snprintf(wish, cap, "No");
		return *(bool *)result_of(params, key) && !ours_of_bool(key, limits);
	}
	assert(key->rule == ISCSI_KEY_DIGEST);
	snprintf(wish, cap, "CRC32C");
	return !*(bool *)result_of(params, key) && policy_of(key, limits) == ISCSI_DIGEST_REQUIRED;
}

unsigned int iscsi_keys_offer(struct iscsi_negotiation *negotiation,
			      const struct iscsi_limits *limits, struct iscsi_text_out *out)
{
	unsigned int n = 0;
	char wish[16];

	for (unsigned int i = 0; i < iscsi_login_nkeys; i++) {
		const struct iscsi_key *key = &iscsi_login_keys[i];

		if (negotiation->received & bit_of(key) ||
		    !wish_of(key, &negotiation->params, limits, wish, sizeof(wish)))
			continue;
		negotiation->received |= bit_of(key);
		negotiation->offered |= bit_of(key);
		iscsi_text_add(out, key->name, wish);
		n++;
	}
	return n;
}

int iscsi_keys_finish(struct iscsi_negotiation *negotiation, const struct iscsi_limits *limits,
		      struct iscsi_key_failure *failure)
{
	struct iscsi_params *params = &negotiation->params;
	char wish[16];

	/* RFC 7143 13.14, for a FirstBurstLength that nobody named */
	if (params->first_burst_length > params->max_burst_length)
		params->first_burst_length = params->max_burst_length;
	for (unsigned int i = 0; i < iscsi_login_nkeys; i++) {
		const struct iscsi_key *key = &iscsi_login_keys[i];

		if (!wish_of(key, params, limits, wish, sizeof(wish)))
			continue;
		fail(failure, ISCSI_LOGIN_INITIATOR_ERROR,
		     "%s: the initiator does not agree to %s, as the settings ask", key->name,
		     wish);
		return -EPROTO;
	}
	return 0;
}
