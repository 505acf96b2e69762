/*
 * What initiators send, with the traits that are known to trip targets: key
 * sets of their kind, not recordings.
 */
#include "tests/login/tests.h"

void initiator_linux_logs_in(void)
{
	static const struct login_step steps[] = {
		ANSWERED(SEC | TO_OP,
			 HOST "InitiatorAlias=host\n" DISK "SessionType=Normal\nAuthMethod=None\n",
			 SEC | TO_OP, GREETING "AuthMethod=None\n"),
		ANSWERED(OP | TO_FULL,
			 "HeaderDigest=None\nDataDigest=None\nDefaultTime2Wait="
			 "2\nDefaultTime2Retain=0\n"
			 "IFMarker=No\nOFMarker=No\nErrorRecoveryLevel=0\nInitialR2T=No\n"
			 "ImmediateData=Yes\nMaxBurstLength=16776192\nFirstBurstLength=262144\n"
			 "MaxOutstandingR2T=1\nMaxConnections=1\nDataPDUInOrder=Yes\n"
			 "DataSequenceInOrder=Yes\nMaxRecvDataSegmentLength=262144\n",
			 OP | TO_FULL,
			 DECLARED
			 "HeaderDigest=None\nDataDigest=None\nDefaultTime2Wait=2\n"
			 "DefaultTime2Retain=0\nIFMarker=No\nOFMarker=No\nErrorRecoveryLevel=0\n"
			 "InitialR2T=Yes\nImmediateData=Yes\nMaxBurstLength=1048576\n"
			 "MaxOutstandingR2T=1\nMaxConnections=1\nDataPDUInOrder=Yes\n"
			 "DataSequenceInOrder=Yes\nFirstBurstLength=65536\n"),
	};

	LOGIN_RUN("open", steps);
}

/* FirstBurstLength although nothing comes unasked, and it gives up on Reject. */
void initiator_boot_firmware_logs_in(void)
{
	static const struct login_step steps[] = {
		ANSWERED(SEC | TO_OP, HOST DISK "SessionType=Normal\nAuthMethod=None\n",
			 SEC | TO_OP, GREETING "AuthMethod=None\n"),
		ANSWERED(OP | TO_FULL,
			 "HeaderDigest=None\nDataDigest=None\nMaxConnections=1\nInitialR2T=Yes\n"
			 "ImmediateData=No\nMaxRecvDataSegmentLength=8192\nMaxBurstLength=262144\n"
			 "FirstBurstLength=65536\nDefaultTime2Wait=0\nDefaultTime2Retain=0\n"
			 "MaxOutstandingR2T=1\nDataPDUInOrder=Yes\nDataSequenceInOrder=Yes\n"
			 "ErrorRecoveryLevel=0\n",
			 OP | TO_FULL,
			 DECLARED
			 "HeaderDigest=None\nDataDigest=None\nMaxConnections=1\nInitialR2T=Yes\n"
			 "ImmediateData=No\nMaxBurstLength=262144\nDefaultTime2Wait=2\n"
			 "DefaultTime2Retain=0\nMaxOutstandingR2T=1\nDataPDUInOrder=Yes\n"
			 "DataSequenceInOrder=Yes\nErrorRecoveryLevel=0\n"
			 "FirstBurstLength=65536\n"),
	};

	LOGIN_RUN("open", steps);
}

/* No SessionType, and several requests until it asks for the next stage. */
void initiator_macos_logs_in(void)
{
	static const struct login_step steps[] = {
		ANSWERED(SEC, HOST DISK "AuthMethod=CHAP,None\n", SEC,
			 GREETING "AuthMethod=None\n"),
		ANSWERED(SEC | TO_OP, "", SEC | TO_OP, ""),
		ANSWERED(OP, "HeaderDigest=None\nDataDigest=None\nInitialR2T=Yes\n", OP,
			 DECLARED "HeaderDigest=None\nDataDigest=None\nInitialR2T=Yes\n"),
		ANSWERED(OP, "MaxRecvDataSegmentLength=262144\nErrorRecoveryLevel=0\n", OP,
			 "ErrorRecoveryLevel=0\n"),
		ANSWERED(OP | TO_FULL, "", OP | TO_FULL, ""),
	};

	LOGIN_RUN("open", steps);
}

/* Names itself in every request, and has the digests in the order "NONE, CRC". */
void initiator_libiscsi_logs_in(void)
{
	static const struct login_step steps[] = {
		ANSWERED(SEC | TO_OP,
			 HOST "InitiatorAlias=qemu\n" DISK "SessionType=Normal\nAuthMethod=None\n",
			 SEC | TO_OP, GREETING "AuthMethod=None\n"),
		ANSWERED(OP | TO_FULL,
			 HOST DISK
			 "SessionType=Normal\nHeaderDigest=None,CRC32C\nDataDigest=None\n"
			 "InitialR2T=No\nImmediateData=Yes\nMaxBurstLength=262144\n"
			 "FirstBurstLength=262144\nMaxRecvDataSegmentLength=262144\n"
			 "DataPDUInOrder=Yes\nDataSequenceInOrder=Yes\nDefaultTime2Wait=2\n"
			 "DefaultTime2Retain=0\nIFMarker=No\nOFMarker=No\n",
			 OP | TO_FULL,
			 DECLARED
			 "HeaderDigest=None\nDataDigest=None\nInitialR2T=Yes\nImmediateData=Yes\n"
			 "MaxBurstLength=262144\nDataPDUInOrder=Yes\nDataSequenceInOrder=Yes\n"
			 "DefaultTime2Wait=2\nDefaultTime2Retain=0\nIFMarker=No\nOFMarker=No\n"
			 "FirstBurstLength=65536\n"),
	};

	LOGIN_RUN("open", steps);
}

void initiator_linux_discovers(void)
{
	static const struct login_step steps[] = {
		ANSWERED(SEC | TO_OP, HOST "SessionType=Discovery\nAuthMethod=None\n", SEC | TO_OP,
			 "AuthMethod=None\n"),
		ANSWERED(OP | TO_FULL,
			 "HeaderDigest=None\nDataDigest=None\nDefaultTime2Wait="
			 "0\nDefaultTime2Retain=0\n"
			 "IFMarker=No\nOFMarker=No\nErrorRecoveryLevel=0\n"
			 "MaxRecvDataSegmentLength=32768\n",
			 OP | TO_FULL,
			 DECLARED
			 "HeaderDigest=None\nDataDigest=None\nDefaultTime2Wait=2\n"
			 "DefaultTime2Retain=0\nIFMarker=No\nOFMarker=No\nErrorRecoveryLevel=0\n"),
	};

	LOGIN_RUN("open", steps);
}
