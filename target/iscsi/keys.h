/*
 * The keys of login and text negotiation, one row each (RFC 7143 13).
 *
 * Purpose: a row says by which rule a key is negotiated, when it may come, what
 * the RFC's default and range are, where the result goes (struct iscsi_params)
 * and what bounds it (struct iscsi_limits).  Every answer of ours comes from
 * the row.  The keys of authentication are in login_security.c, as they
 * are steps and not values.
 *
 * To add a key: a field in struct iscsi_params and a row in login_keys[]; a new
 * kind of key is a rule and its function in key_rules[].
 *
 * Pure; shared with the embedded initiator.
 */
#ifndef ISCSI_KEYS_H
#define ISCSI_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target/iscsi/params.h"
#include "target/iscsi/settings.h"
#include "target/iscsi/wire.h"

enum iscsi_key_rule {
	ISCSI_KEY_MIN,		/* numbers: the lesser */
	ISCSI_KEY_MAX,		/* numbers: the greater */
	ISCSI_KEY_AND,		/* Yes when both want it */
	ISCSI_KEY_OR,		/* Yes when one wants it */
	ISCSI_KEY_DIGEST,	/* a list: the first that the policy allows */
	ISCSI_KEY_LIST,		/* a list, of which we have the row's only value */
	ISCSI_KEY_DECLARE_SIZE, /* a number that the initiator declares */
	ISCSI_KEY_DECLARE_NAME, /* an iSCSI name */
	ISCSI_KEY_DECLARE_TEXT, /* words for people */
	ISCSI_KEY_DECLARE_TYPE, /* SessionType */
	ISCSI_KEY_CONSTANT,	/* answered with the row's value, whatever it was */
	ISCSI_KEY_TARGETS,	/* only a target sends it, or not in a login */
};

enum iscsi_key_flags {
	ISCSI_KEY_SECURITY = 1u << 0,	  /* may come in the security stage */
	ISCSI_KEY_OPERATIONAL = 1u << 1,  /* and in the operational one */
	ISCSI_KEY_FULL_FEATURE = 1u << 2, /* and in the full feature phase */
	ISCSI_KEY_ANY_STAGE = ISCSI_KEY_SECURITY | ISCSI_KEY_OPERATIONAL,
	ISCSI_KEY_NOT_DISCOVERY = 1u << 3, /* irrelevant in discovery sessions */
	ISCSI_KEY_FIRST = 1u << 4,	   /* judged before the others: who wants what */
	ISCSI_KEY_LAST = 1u << 5,	   /* judged after them: depends on their results */
	/* What the RFC's default allows an initiator may be more than we want: we
	 * offer the key when the initiator does not. */
	ISCSI_KEY_BINDS = 1u << 6,
};

struct iscsi_key {
	const char *name;
	enum iscsi_key_rule rule;
	uint32_t flags; /* enum iscsi_key_flags */
	size_t offset;	/* in struct iscsi_params: uint32_t, bool or text, by rule */
	size_t limit;	/* in struct iscsi_limits, or ISCSI_KEY_NO_LIMIT */
	uint32_t def;	/* the RFC's default */
	uint32_t min, max;
	uint32_t ours;	   /* what we want, where no limit says it */
	const char *value; /* of LIST and CONSTANT */
	const char *rfc;
};

#define ISCSI_KEY_NO_LIMIT SIZE_MAX
#define ISCSI_KEYS_MAX	   64 /* bits of the masks below */

extern const struct iscsi_key iscsi_login_keys[];
extern const unsigned int iscsi_login_nkeys;

/* Names are case-sensitive (RFC 7143 6.1); NULL: not understood. */
const struct iscsi_key *iscsi_key_find(const char *name);

/* One negotiation: which keys have come, and which we have offered. */
struct iscsi_negotiation {
	struct iscsi_params params;
	uint64_t received, offered; /* bits by the index of the row */
};

/* Why a login cannot go on. */
struct iscsi_key_failure {
	enum iscsi_login_status status;
	char why[128];
};

void iscsi_negotiation_init(struct iscsi_negotiation *negotiation);

/*
 * Judges "key=value" of the initiator: stores the result, and adds the answer
 * to out where there is one.  A value of an offer of ours is taken as its
 * answer.  0, or -EPROTO with *failure set.
 *
 * limits may be NULL for rows with ISCSI_KEY_FIRST.
 */
int iscsi_key_receive(struct iscsi_negotiation *negotiation, const struct iscsi_key *key,
		      const struct iscsi_limits *limits, const char *value,
		      struct iscsi_text_out *out, struct iscsi_key_failure *failure);

/* The first request is over: who it is and what it wants may be said again, but
 * not changed any more. */
void iscsi_negotiation_settle(struct iscsi_negotiation *negotiation);

/*
 * Offers the keys that the initiator has left out and whose default is not good
 * enough for us; the number of them.
 */
unsigned int iscsi_keys_offer(struct iscsi_negotiation *negotiation,
			      const struct iscsi_limits *limits, struct iscsi_text_out *out);

/* At the end of a login: 0, or -EPROTO when a result is outside the limits. */
int iscsi_keys_finish(struct iscsi_negotiation *negotiation, const struct iscsi_limits *limits,
		      struct iscsi_key_failure *failure);

/* A decimal or 0x number of at most 32 bits; 0 or -EINVAL. */
int iscsi_number_parse(const char *value, uint32_t *out);

/* True when word stands in the comma-separated list. */
bool iscsi_list_has(const char *list, const char *word);

#endif
