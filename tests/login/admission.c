/* Who may come in, and with which words one is turned away: RFC 7143 11.13.5. */
#include "tests/login/tests.h"

#define REFUSED(name, group, keys, status_)                       \
	void name(void)                                           \
	{                                                         \
		static const struct login_step steps[] = {        \
			REFUSED_WITH(SEC | TO_OP, keys, status_), \
		};                                                \
                                                                  \
		LOGIN_RUN(group, steps);                          \
	}

REFUSED(login_needs_an_initiator_name, "open", DISK, ISCSI_LOGIN_MISSING_PARAMETER)
REFUSED(login_needs_a_target_name_in_a_normal_session, "open", HOST, ISCSI_LOGIN_MISSING_PARAMETER)
REFUSED(login_refuses_an_unknown_session_type, "open", HOST DISK "SessionType=Other\n",
	ISCSI_LOGIN_SESSION_TYPE)
REFUSED(login_refuses_an_initiator_name_with_a_slash, "open",
	"InitiatorName=iqn.2026-11.org.example:a/../b\n" DISK, ISCSI_LOGIN_INITIATOR_ERROR)
REFUSED(login_does_not_find_an_unknown_target, "open", HOST "TargetName=" IQN "nothing\n",
	ISCSI_LOGIN_NOT_FOUND)
REFUSED(login_does_not_find_a_target_with_an_impossible_name, "open", HOST "TargetName=..\n",
	ISCSI_LOGIN_NOT_FOUND)
REFUSED(login_does_not_find_a_target_of_another_portal_group, "locked", HOST DISK,
	ISCSI_LOGIN_NOT_FOUND)
REFUSED(login_is_forbidden_by_auth_type_deny, "open", HOST "TargetName=" IQN "deny\n",
	ISCSI_LOGIN_FORBIDDEN)
REFUSED(login_is_forbidden_by_the_name_rules, "open",
	"InitiatorName=" IQN "guest\nTargetName=" IQN "listed\n", ISCSI_LOGIN_FORBIDDEN)
REFUSED(login_is_forbidden_by_the_address_rules, "open", HOST "TargetName=" IQN "far\n",
	ISCSI_LOGIN_FORBIDDEN)
REFUSED(login_to_a_portal_group_that_is_gone_may_be_tried_again, "gone", HOST DISK,
	ISCSI_LOGIN_UNAVAILABLE)
REFUSED(login_refuses_text_without_an_end, "open", HOST DISK "SessionType=Normal",
	ISCSI_LOGIN_INITIATOR_ERROR)
REFUSED(login_refuses_text_without_a_value, "open", HOST DISK "SessionType\n",
	ISCSI_LOGIN_INITIATOR_ERROR)
REFUSED(login_refuses_a_key_without_a_name, "open", HOST DISK "=Normal\n",
	ISCSI_LOGIN_INITIATOR_ERROR)
REFUSED(login_refuses_when_chap_is_required_and_none_offered, "open",
	HOST "TargetName=" IQN "chap\nAuthMethod=None\n", ISCSI_LOGIN_AUTH_FAILED)
REFUSED(login_refuses_when_chap_is_required_and_no_method_named, "open",
	HOST "TargetName=" IQN "chap\n", ISCSI_LOGIN_AUTH_FAILED)
REFUSED(login_refuses_when_only_chap_is_offered_and_none_is_possible, "open",
	HOST DISK "AuthMethod=CHAP\n", ISCSI_LOGIN_AUTH_FAILED)
REFUSED(discovery_needs_chap_when_the_group_says_so, "locked",
	HOST "SessionType=Discovery\nAuthMethod=None\n", ISCSI_LOGIN_AUTH_FAILED)

void login_refuses_to_skip_chap_through_the_operational_stage(void)
{
	static const struct login_step steps[] = {
		REFUSED_WITH(OP | TO_FULL, HOST "TargetName=" IQN "chap\n",
			     ISCSI_LOGIN_AUTH_FAILED),
	};

	LOGIN_RUN("open", steps);
}

void login_compares_names_without_regard_to_case(void)
{
	static const struct login_step steps[] = {
		ANSWERED(OP | TO_FULL,
			 "InitiatorName=IQN.2026-11.ORG.EXAMPLE:HOST7\n"
			 "TargetName=iqn.2026-11.org.Example:LISTED\n",
			 OP | TO_FULL, TAG DECLARED),
	};

	LOGIN_RUN("open", steps);
}

void login_takes_a_missing_session_type_as_normal(void)
{
	static const struct login_step steps[] = {
		ANSWERED(SEC | TO_OP, HOST DISK "AuthMethod=None\n", SEC | TO_OP,
			 GREETING "AuthMethod=None\n"),
		ANSWERED(OP | TO_FULL, "SessionType=Normal\n", OP | TO_FULL, DECLARED),
	};

	LOGIN_RUN("open", steps);
}

void login_tolerates_what_is_declared_again_unchanged(void)
{
	static const struct login_step steps[] = {
		ANSWERED(SEC | TO_OP, HOST DISK "SessionType=Normal\nInitiatorAlias=box\n",
			 SEC | TO_OP, GREETING),
		ANSWERED(OP | TO_FULL, HOST DISK "SessionType=Normal\nInitiatorAlias=box\n",
			 OP | TO_FULL, DECLARED),
	};

	LOGIN_RUN("open", steps);
}

#define CHANGED(name, keys)                                                            \
	void name(void)                                                                \
	{                                                                              \
		static const struct login_step steps[] = {                             \
			ANSWERED(SEC | TO_OP, HOST DISK, SEC | TO_OP, GREETING),       \
			REFUSED_WITH(OP | TO_FULL, keys, ISCSI_LOGIN_INITIATOR_ERROR), \
		};                                                                     \
                                                                                       \
		LOGIN_RUN("open", steps);                                              \
	}

CHANGED(login_refuses_another_initiator_name, "InitiatorName=" IQN "host2\n")
CHANGED(login_refuses_another_target, "TargetName=" IQN "strict\n")
CHANGED(login_refuses_another_session_type, "SessionType=Discovery\n")
CHANGED(login_refuses_to_negotiate_a_key_twice, "MaxBurstLength=8192\nMaxBurstLength=8192\n")
