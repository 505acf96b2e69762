/* The answers to operational keys: RFC 7143 13. */
#include "tests/login/tests.h"

#define NEGOTIATED(name, keys, answers)                                      \
	void name(void)                                                      \
	{                                                                    \
		static const struct login_step steps[] = {                   \
			ANSWERED(OP | TO_FULL, HOST DISK keys, OP | TO_FULL, \
				 GREETING DECLARED answers),                 \
		};                                                           \
                                                                             \
		LOGIN_RUN("open", steps);                                    \
	}

NEGOTIATED(negotiation_takes_the_lesser_number,
	   "MaxBurstLength=16776192\nMaxOutstandingR2T=1\nMaxConnections=8\n",
	   "MaxBurstLength=1048576\nMaxOutstandingR2T=1\nMaxConnections=1\n")
NEGOTIATED(negotiation_takes_the_greater_time_to_wait,
	   "DefaultTime2Wait=5\nDefaultTime2Retain=60\n",
	   "DefaultTime2Wait=5\nDefaultTime2Retain=0\n")
NEGOTIATED(negotiation_keeps_initial_r2t_when_the_target_wants_it, "InitialR2T=No\n",
	   "InitialR2T=Yes\n")
NEGOTIATED(negotiation_has_immediate_data_when_both_want_it, "ImmediateData=Yes\n",
	   "ImmediateData=Yes\n")
NEGOTIATED(negotiation_drops_immediate_data_when_one_does_not_want_it, "ImmediateData=No\n",
	   "ImmediateData=No\n")
NEGOTIATED(negotiation_keeps_data_in_order, "DataPDUInOrder=No\nDataSequenceInOrder=No\n",
	   "DataPDUInOrder=Yes\nDataSequenceInOrder=Yes\n")
NEGOTIATED(negotiation_has_no_error_recovery_above_level_0, "ErrorRecoveryLevel=2\n",
	   "ErrorRecoveryLevel=0\n")
NEGOTIATED(negotiation_takes_the_digest_that_the_initiator_prefers,
	   "HeaderDigest=CRC32C,None\nDataDigest=None,CRC32C\n",
	   "HeaderDigest=CRC32C\nDataDigest=None\n")
NEGOTIATED(negotiation_knows_no_digest_by_a_part_of_its_name,
	   "HeaderDigest=XCRC32C,None\nDataDigest=CRC32CX,None\n",
	   "HeaderDigest=None\nDataDigest=None\n")
NEGOTIATED(negotiation_reads_hexadecimal_numbers, "MaxBurstLength=0x4000\n",
	   "MaxBurstLength=16384\n")
NEGOTIATED(negotiation_rejects_numbers_out_of_range,
	   "MaxBurstLength=511\nMaxConnections=0\nErrorRecoveryLevel=3\nDefaultTime2Wait=3601\n"
	   "MaxOutstandingR2T=4294967297\n",
	   "MaxBurstLength=Reject\nMaxConnections=Reject\nErrorRecoveryLevel=Reject\n"
	   "DefaultTime2Wait=Reject\nMaxOutstandingR2T=Reject\n")
NEGOTIATED(negotiation_rejects_what_is_neither_yes_nor_no, "InitialR2T=yes\nImmediateData=1\n",
	   "InitialR2T=Reject\nImmediateData=Reject\n")
NEGOTIATED(negotiation_does_not_understand_other_keys,
	   "X-com.example.Fast=Yes\nFoo=\nmaxburstlength=512\n",
	   "X-com.example.Fast=NotUnderstood\nFoo=NotUnderstood\nmaxburstlength=NotUnderstood\n")
NEGOTIATED(negotiation_answers_the_obsolete_marker_keys,
	   "IFMarker=Yes\nOFMarker=No\nIFMarkInt=2048~8192\nOFMarkInt=2048\n",
	   "IFMarker=No\nOFMarker=No\nIFMarkInt=Reject\nOFMarkInt=Reject\n")
NEGOTIATED(negotiation_reports_tasks_as_rfc_3720_did, "TaskReporting=FastAbort,RFC3720\n",
	   "TaskReporting=RFC3720\n")
NEGOTIATED(negotiation_rejects_task_reporting_that_it_has_not, "TaskReporting=FastAbort\n",
	   "TaskReporting=Reject\n")
NEGOTIATED(negotiation_has_protocol_level_1, "iSCSIProtocolLevel=2\n", "iSCSIProtocolLevel=1\n")
NEGOTIATED(negotiation_rejects_keys_that_only_a_target_sends,
	   "TargetPortalGroupTag=9\nTargetAddress=1.2.3.4\nSendTargets=All\n",
	   "TargetPortalGroupTag=Reject\nTargetAddress=Reject\nSendTargets=Reject\n")
NEGOTIATED(negotiation_takes_a_refusal_of_its_own_declarations_calmly,
	   "TargetAlias=NotUnderstood\nTargetPortalGroupTag=Irrelevant\n"
	   "MaxRecvDataSegmentLength=NotUnderstood\n",
	   "")
/* FirstBurstLength comes before what bounds it. */
NEGOTIATED(negotiation_bounds_first_burst_by_max_burst,
	   "FirstBurstLength=262144\nMaxBurstLength=32768\n",
	   "MaxBurstLength=32768\nFirstBurstLength=32768\n")

#define FAILS(name, target, keys)                                                                  \
	void name(void)                                                                            \
	{                                                                                          \
		static const struct login_step steps[] = {                                         \
			REFUSED_WITH(OP | TO_FULL, HOST target keys, ISCSI_LOGIN_INITIATOR_ERROR), \
		};                                                                                 \
                                                                                                   \
		LOGIN_RUN("open", steps);                                                          \
	}

FAILS(negotiation_ends_on_a_segment_length_out_of_range, DISK, "MaxRecvDataSegmentLength=511\n")
FAILS(negotiation_ends_on_a_segment_length_of_more_than_24_bits, DISK,
      "MaxRecvDataSegmentLength=16777216\n")
FAILS(negotiation_ends_when_a_required_digest_is_not_offered, STRICT, "HeaderDigest=None\n")
FAILS(negotiation_ends_when_no_digest_is_known, DISK, "DataDigest=X-mine\n")

void negotiation_offers_what_the_initiator_left_out_and_the_settings_ask(void)
{
	static const struct login_step steps[] = {
		ANSWERED(OP | TO_FULL, HOST STRICT "InitialR2T=No\n", OP,
			 TAG DECLARED "InitialR2T=No\nHeaderDigest=CRC32C\nImmediateData=No\n"
				      "MaxBurstLength=65536\nFirstBurstLength=16384\n"),
		ANSWERED(OP | TO_FULL,
			 "HeaderDigest=CRC32C\nImmediateData=No\nMaxBurstLength=65536\n"
			 "FirstBurstLength=8192\n",
			 OP | TO_FULL, ""),
	};

	LOGIN_RUN("open", steps);
}

/* InitialR2T=Yes and ImmediateData=No: nothing comes unasked. */
void negotiation_never_offers_an_irrelevant_first_burst(void)
{
	static const struct login_step steps[] = {
		ANSWERED(OP | TO_FULL,
			 HOST STRICT "InitialR2T=Yes\nImmediateData=No\nHeaderDigest=CRC32C\n"
				     "MaxBurstLength=8192\n",
			 OP | TO_FULL,
			 TAG DECLARED "InitialR2T=Yes\nImmediateData=No\nHeaderDigest=CRC32C\n"
				      "MaxBurstLength=8192\n"),
	};

	LOGIN_RUN("open", steps);
}

void negotiation_ends_when_an_offer_is_not_answered(void)
{
	static const struct login_step steps[] = {
		ANSWERED(OP | TO_FULL, HOST STRICT "ImmediateData=No\nMaxBurstLength=8192\n", OP,
			 TAG DECLARED
			 "ImmediateData=No\nMaxBurstLength=8192\nHeaderDigest=CRC32C\n"),
		REFUSED_WITH(OP | TO_FULL, "", ISCSI_LOGIN_INITIATOR_ERROR),
	};

	LOGIN_RUN("open", steps);
}

void negotiation_ends_when_an_answer_is_beyond_the_offer(void)
{
	static const struct login_step steps[] = {
		ANSWERED(OP | TO_FULL, HOST STRICT "ImmediateData=No\nHeaderDigest=CRC32C\n", OP,
			 TAG DECLARED
			 "ImmediateData=No\nHeaderDigest=CRC32C\nMaxBurstLength=65536\n"),
		REFUSED_WITH(OP | TO_FULL, "MaxBurstLength=131072\n", ISCSI_LOGIN_INITIATOR_ERROR),
	};

	LOGIN_RUN("open", steps);
}

void negotiation_answers_irrelevant_in_discovery(void)
{
	static const struct login_step steps[] = {
		ANSWERED(OP | TO_FULL,
			 HOST "SessionType=Discovery\nInitialR2T=No\nImmediateData="
			      "Yes\nMaxBurstLength=8192\n"
			      "FirstBurstLength=8192\nMaxOutstandingR2T=1\nMaxConnections=1\n"
			      "DataPDUInOrder=Yes\nDataSequenceInOrder=Yes\nErrorRecoveryLevel=0\n"
			      "DefaultTime2Wait=2\nTaskReporting=RFC3720\niSCSIProtocolLevel=1\n",
			 OP | TO_FULL,
			 DECLARED "InitialR2T=Irrelevant\nImmediateData=Irrelevant\n"
				  "MaxBurstLength=Irrelevant\nMaxOutstandingR2T=Irrelevant\n"
				  "MaxConnections=Irrelevant\nDataPDUInOrder=Irrelevant\n"
				  "DataSequenceInOrder=Irrelevant\nErrorRecoveryLevel=0\n"
				  "DefaultTime2Wait=2\nTaskReporting=Irrelevant\n"
				  "iSCSIProtocolLevel=Irrelevant\nFirstBurstLength=Irrelevant\n"),
	};

	LOGIN_RUN("open", steps);
}

void negotiation_prefers_no_digest_in_discovery(void)
{
	static const struct login_step steps[] = {
		ANSWERED(OP | TO_FULL,
			 HOST
			 "SessionType=Discovery\nHeaderDigest=CRC32C,None\nDataDigest=CRC32C\n",
			 OP | TO_FULL, DECLARED "HeaderDigest=None\nDataDigest=CRC32C\n"),
	};

	LOGIN_RUN("open", steps);
}

/* 75 short keys have answers of 5 KiB. */
void negotiation_bounds_the_answer(void)
{
	static char keys[8192];
	static struct login_step steps[] = {
		REFUSED_WITH(OP | TO_FULL, keys, ISCSI_LOGIN_INITIATOR_ERROR),
	};
	size_t len = (size_t)snprintf(keys, sizeof(keys), "%s", HOST DISK);

	for (int i = 0; i < 100; i++)
		len += (size_t)snprintf(keys + len, sizeof(keys) - len, "%060d=\n", i);
	LOGIN_RUN("open", steps);
}

void negotiation_bounds_the_number_of_keys(void)
{
	static char keys[4096];
	static struct login_step steps[] = {
		REFUSED_WITH(OP | TO_FULL, keys, ISCSI_LOGIN_INITIATOR_ERROR),
	};
	size_t len = (size_t)snprintf(keys, sizeof(keys), "%s", HOST DISK);

	for (int i = 0; i < 127; i++)
		len += (size_t)snprintf(keys + len, sizeof(keys) - len, "a=\n");
	LOGIN_RUN("open", steps);
}
