/*
 * A dialog with the login machine, for tests that look at what it says and
 * compute what to say next.
 *
 *	struct dialog d;
 *	dialog_begin(&d, "open");
 *	dialog_say(&d, 0x81, "InitiatorName=...\nTargetName=...\n");
 *	dialog_value(&d, "CHAP_C")
 *	dialog_end(&d);
 */
#ifndef TESTS_UNIT_ISCSI_LOGIN_DIALOG_H
#define TESTS_UNIT_ISCSI_LOGIN_DIALOG_H

#include <stdint.h>

#include "target/iscsi/chap.h"
#include "target/iscsi/login.h"
#include "tests/login/fixture.h"

struct dialog {
	struct iscsi_view view;
	struct iscsi_login *login;
	struct iscsi_bhs request; /* what stays the same; flags are the step's */
	struct iscsi_login_reply reply;
	enum iscsi_login_result result;
};

void dialog_begin(struct dialog *d, const char *group);
void dialog_end(struct dialog *d);

/* One request with a line for each key; the status of the reply. */
uint16_t dialog_say(struct dialog *d, uint8_t flags, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The value in the last reply; NULL: not there. */
const char *dialog_value(const struct dialog *d, const char *key);

/*
 * Up to the challenge: names, AuthMethod=CHAP, CHAP_A.  target may be NULL: a
 * discovery session.
 */
void dialog_challenge(struct dialog *d, const char *target, const char *algorithms);

/* The response to the challenge of the last reply. */
size_t dialog_response(const struct dialog *d, const char *secret, uint8_t out[CHAP_DIGEST_MAX]);
/* The same as a hex text, in d's own buffer of the caller. */
void dialog_response_hex(const struct dialog *d, const char *secret, char out[80]);

#endif
