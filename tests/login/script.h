/*
 * Login scripts: what an initiator sends and what it must get, one step a
 * request.  Text has a line for each key=value.
 *
 *	static const struct login_step steps[] = {
 *		ANSWERED(OP | TO_FULL, HOST DISK, OP | TO_FULL, GREETING DECLARED),
 *	};
 *	LOGIN_RUN("open", steps);
 *
 * To add a script: a function that runs it in a file here, its declaration in
 * this header and its row in main.c.
 */
#ifndef TESTS_LOGIN_SCRIPT_H
#define TESTS_LOGIN_SCRIPT_H

#include <stddef.h>
#include <stdint.h>

#include "target/iscsi/login.h"
#include "tests/login/fixture.h"
#include "tests/unit/quintain_test.h"

/* The flags byte: the stage, and where to. */
#define SEC	0x00
#define OP	0x04
#define TO_OP	0x81
#define TO_FULL 0x83
#define MORE	0x40

#define HOST	 "InitiatorName=" IQN "host\n"
#define DISK	 "TargetName=" IQN "disk\n"
#define STRICT	 "TargetName=" IQN "strict\n"
#define GREETING "TargetPortalGroupTag=1\nTargetAlias=First disk\n"
#define TAG	 "TargetPortalGroupTag=1\n"
#define DECLARED "MaxRecvDataSegmentLength=262144\n"

struct login_step {
	uint8_t flags;
	const char *text;
	uint8_t reply_flags;
	const char *reply_text;
	uint16_t status; /* not 0: flags and text are empty, and it is the end */
};

/* clang-format off */
#define ANSWERED(f, t, rf, rt) { .flags = (f), .text = t, .reply_flags = (rf), .reply_text = rt }
#define REFUSED_WITH(f, t, s) { .flags = (f), .text = t, .reply_text = "", .status = (s) }
/* clang-format on */

void login_run(const char *group, const struct login_step *steps, size_t nsteps);
#define LOGIN_RUN(group, steps) login_run(group, steps, ARRAY_LEN(steps))

/* Many steps in a row that are all the same. */
void login_run_repeated(const struct login_step *first, const struct login_step *step,
			unsigned int times, const struct login_step *last);

#endif
