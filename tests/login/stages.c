/* Stages, their transits and requests over several PDUs: RFC 7143 6.3, 11.12. */
#include "tests/login/tests.h"

void login_goes_straight_to_full_feature_from_the_operational_stage(void)
{
	static const struct login_step steps[] = {
		ANSWERED(OP | TO_FULL, HOST DISK "SessionType=Normal\n", OP | TO_FULL,
			 GREETING DECLARED),
	};

	LOGIN_RUN("open", steps);
}

void login_passes_through_both_stages(void)
{
	static const struct login_step steps[] = {
		ANSWERED(SEC | TO_OP, HOST DISK "SessionType=Normal\nAuthMethod=None\n",
			 SEC | TO_OP, GREETING "AuthMethod=None\n"),
		ANSWERED(OP | TO_FULL, "HeaderDigest=None\n", OP | TO_FULL,
			 DECLARED "HeaderDigest=None\n"),
	};

	LOGIN_RUN("open", steps);
}

/* Then every key has its default, and we have declared nothing. */
void login_may_skip_the_operational_stage(void)
{
	static const struct login_step steps[] = {
		ANSWERED(SEC | TO_FULL, HOST DISK "AuthMethod=None\n", SEC | TO_FULL,
			 GREETING "AuthMethod=None\n"),
	};

	LOGIN_RUN("open", steps);
}

void login_without_transit_stays_in_its_stage(void)
{
	static const struct login_step steps[] = {
		ANSWERED(SEC, HOST DISK, SEC, GREETING),
		ANSWERED(SEC, "", SEC, ""),
		ANSWERED(SEC, "AuthMethod=None\n", SEC, "AuthMethod=None\n"),
		ANSWERED(SEC | TO_OP, "", SEC | TO_OP, ""),
		ANSWERED(OP, "", OP, DECLARED),
		ANSWERED(OP, "ErrorRecoveryLevel=2\n", OP, "ErrorRecoveryLevel=0\n"),
		ANSWERED(OP | TO_FULL, "", OP | TO_FULL, ""),
	};

	LOGIN_RUN("open", steps);
}

void login_joins_text_over_several_pdus(void)
{
	static const struct login_step steps[] = {
		ANSWERED(OP | MORE, "InitiatorNa", OP, ""),
		ANSWERED(OP | MORE, "me=" IQN "ho", OP, ""),
		ANSWERED(OP | MORE, "", OP, ""),
		ANSWERED(OP | TO_FULL, "st\n" DISK, OP | TO_FULL, GREETING DECLARED),
	};

	LOGIN_RUN("open", steps);
}

/* 6144 bytes of text are the most that a request may have over its PDUs. */
void login_bounds_the_text_over_several_pdus(void)
{
	static char part[2049];
	static struct login_step steps[] = {
		ANSWERED(OP | MORE, part, OP, ""),
		ANSWERED(OP | MORE, part, OP, ""),
		ANSWERED(OP | MORE, part, OP, ""),
		REFUSED_WITH(OP | MORE, "x", ISCSI_LOGIN_INITIATOR_ERROR),
	};

	memset(part, 'x', sizeof(part) - 1);
	LOGIN_RUN("open", steps);
}

void login_ends_after_64_requests(void)
{
	static const struct login_step first = ANSWERED(OP, HOST DISK, OP, GREETING DECLARED);
	static const struct login_step same = ANSWERED(OP, "", OP, "");
	static const struct login_step last = REFUSED_WITH(OP, "", ISCSI_LOGIN_INITIATOR_ERROR);

	login_run_repeated(&first, &same, 63, &last);
}

#define INVALID(name, flags_)                                                         \
	void name(void)                                                               \
	{                                                                             \
		static const struct login_step steps[] = {                            \
			REFUSED_WITH(flags_, HOST DISK, ISCSI_LOGIN_INVALID_REQUEST), \
		};                                                                    \
                                                                                      \
		LOGIN_RUN("open", steps);                                             \
	}

INVALID(login_refuses_transit_with_continue, OP | TO_FULL | MORE)
INVALID(login_refuses_the_reserved_current_stage, 0x08)
INVALID(login_refuses_full_feature_as_current_stage, 0x0c)
INVALID(login_refuses_the_reserved_next_stage, OP | 0x82)
INVALID(login_refuses_a_transit_to_the_same_stage, OP | 0x81)
INVALID(login_refuses_a_transit_back, OP | 0x80)

void login_refuses_to_go_back_to_the_security_stage(void)
{
	static const struct login_step steps[] = {
		ANSWERED(SEC | TO_OP, HOST DISK, SEC | TO_OP, GREETING),
		REFUSED_WITH(SEC | TO_OP, "", ISCSI_LOGIN_INVALID_REQUEST),
	};

	LOGIN_RUN("open", steps);
}

void login_refuses_a_stage_that_was_not_granted(void)
{
	static const struct login_step steps[] = {
		ANSWERED(SEC, HOST DISK, SEC, GREETING),
		REFUSED_WITH(OP, "", ISCSI_LOGIN_INVALID_REQUEST),
	};

	LOGIN_RUN("open", steps);
}

void login_refuses_operational_keys_in_the_security_stage(void)
{
	static const struct login_step steps[] = {
		REFUSED_WITH(SEC | TO_OP, HOST DISK "MaxBurstLength=8192\n",
			     ISCSI_LOGIN_INITIATOR_ERROR),
	};

	LOGIN_RUN("open", steps);
}

void login_refuses_authentication_in_the_operational_stage(void)
{
	static const struct login_step steps[] = {
		REFUSED_WITH(OP | TO_FULL, HOST DISK "AuthMethod=None\n",
			     ISCSI_LOGIN_INITIATOR_ERROR),
	};

	LOGIN_RUN("open", steps);
}
