/* PDUs that are wrong in themselves: RFC 7143 7, 11.2, 11.3, 11.17. */
#include <string.h>

#include "tests/pdu/tests.h"

/* It has cost nothing: the connection goes on, and so does CmdSN. */
static void goes_on(struct peer *peer)
{
	CU_ASSERT_EQUAL(peer_ready(peer, 0), SCSI_GOOD);
	peer_ping(peer);
}

static void end(struct rig *rig, struct peer *peer)
{
	peer_close(peer);
	rig_stop(rig);
}

/* 13.12: what we declared is 256 KiB. */
void pdu_with_more_data_than_declared_closes(void)
{
	struct iscsi_bhs bhs;
	struct peer peer;
	struct rig rig;

	rig_open(&rig);
	peer_open(&peer, &rig, "");
	cmd_write(&bhs, 0, 0, 1024);
	peer_number(&peer, &bhs);
	be24_put(&bhs.hdr.data_segment_len, 262145);
	peer_write(&peer, &bhs, sizeof(bhs));
	PEER_GONE(&peer);
	end(&rig, &peer);
}

void login_with_more_data_than_allowed_closes(void)
{
	struct iscsi_bhs bhs = { .login_req = { .opcode = 0x43, .flags = 0x87 } };
	struct peer peer;
	struct rig rig;

	rig_open(&rig);
	peer_init(&peer);
	peer_connect(&peer, &rig);
	be24_put(&bhs.hdr.data_segment_len, ISCSI_LOGIN_DATA_MAX + 1);
	peer_write(&peer, &bhs, sizeof(bhs));
	PEER_GONE(&peer);
	end(&rig, &peer);
}

void ahs_too_long_closes(void)
{
	static const uint8_t ahs[72] = { 0, 69, 0x3f };
	struct iscsi_bhs bhs;
	struct peer peer;
	struct rig rig;

	rig_open(&rig);
	peer_open(&peer, &rig, "");
	cmd_ready(&bhs, 0);
	peer_number(&peer, &bhs);
	peer_send_all(&peer, &bhs, ahs, sizeof(ahs), NULL, 0);
	PEER_GONE(&peer);
	end(&rig, &peer);
}

static void ahs_is_rejected(const uint8_t *ahs, uint32_t len)
{
	struct iscsi_bhs bhs;
	struct peer peer;
	struct rig rig;

	rig_open(&rig);
	peer_open(&peer, &rig, "");
	cmd_ready(&bhs, 0);
	peer_number(&peer, &bhs);
	peer_send_all(&peer, &bhs, ahs, len, NULL, 0);
	peer_expect_reject(&peer, ISCSI_REJECT_INVALID_PDU_FIELD, &bhs);
	PEER_GONE(&peer);
	end(&rig, &peer);
}

void ahs_without_a_length_is_rejected(void)
{
	ahs_is_rejected((const uint8_t[4]){ 0, 0, 1, 0 }, 4);
}

/* 11.2.2.1: it says more than TotalAHSLength has. */
void ahs_longer_than_all_of_them_is_rejected(void)
{
	ahs_is_rejected((const uint8_t[8]){ 0, 6, 0x3f, 0 }, 8);
}

/* SPC-4 4.2.3: a CDB of 36 bytes is more than we have rows for. */
void ahs_with_a_cdb_beyond_32_bytes_is_rejected(void)
{
	ahs_is_rejected((const uint8_t[24]){ 0, 21, 1, 0 }, 24);
}

void ahs_with_two_extended_cdbs_is_rejected(void)
{
	ahs_is_rejected((const uint8_t[16]){ 0, 5, 1, 0, 0, 0, 0, 0, 0, 5, 1 }, 16);
}

void ahs_of_an_unknown_type_is_skipped(void)
{
	static const uint8_t ahs[12] = { 0, 6, 0x3f, 0, 1, 2, 3, 4, 5 };
	struct iscsi_bhs bhs;
	struct peer peer;
	struct rig rig;

	rig_open(&rig);
	peer_open(&peer, &rig, "HeaderDigest=CRC32C\n");
	CU_ASSERT_TRUE(peer.header_digest);
	cmd_ready(&bhs, 0);
	peer_number(&peer, &bhs);
	peer_send_all(&peer, &bhs, ahs, sizeof(ahs), NULL, 0);
	CU_ASSERT_EQUAL(peer_status(&peer, be32_get(&bhs.hdr.itt)), SCSI_GOOD);
	goes_on(&peer);
	end(&rig, &peer);
}

/* 11.2.2.3: a CDB of 32 bytes; 7Fh is one of variable length, of which we have
 * none with this service action. */
void ahs_extends_the_cdb_to_32_bytes(void)
{
	static const uint8_t ahs[20] = { 0, 17, 1, 0 };
	struct iscsi_bhs bhs;
	struct peer peer;
	struct rig rig;

	rig_open(&rig);
	peer_open(&peer, &rig, "");
	cmd_ready(&bhs, 0);
	bhs.scsi_cmd.cdb[0] = 0x7f;
	bhs.scsi_cmd.cdb[7] = 24;
	bhs.scsi_cmd.cdb[9] = 0xff;
	peer_number(&peer, &bhs);
	peer_send_all(&peer, &bhs, ahs, sizeof(ahs), NULL, 0);
	CU_ASSERT_EQUAL(peer_status(&peer, be32_get(&bhs.hdr.itt)), SCSI_CHECK_CONDITION);
	CU_ASSERT_EQUAL(peer_sense(&peer), 0x052000);
	goes_on(&peer);
	end(&rig, &peer);
}

/* 6.1: nothing but login requests; anything else is not answered. */
void opcode_before_the_login_closes(void)
{
	static const uint8_t opcodes[] = { 0x40, 0x01, 0x42, 0x04, 0x05, 0x46, 0x10, 0x1c, 0x21 };
	struct peer peer;
	struct rig rig;

	rig_open(&rig);
	for (size_t i = 0; i < sizeof(opcodes); i++) {
		struct iscsi_bhs bhs = { .hdr = { .opcode = opcodes[i], .flags = 0x80 } };

		peer_init(&peer);
		peer_connect(&peer, &rig);
		peer_send(&peer, &bhs, NULL, 0);
		PEER_GONE(&peer);
		peer_close(&peer);
	}
	rig_stop(&rig);
}

void opcode_within_the_login_closes(void)
{
	struct iscsi_bhs login = { .login_req = { .opcode = 0x43, .flags = 0x04 } };
	static const char keys[] = "InitiatorName=" RIG_HOST "\0TargetName=" RIG_DISK;
	struct iscsi_bhs bhs;
	struct peer peer;
	struct rig rig;

	rig_open(&rig);
	peer_init(&peer);
	peer_connect(&peer, &rig);
	peer_send(&peer, &login, keys, sizeof(keys));
	PEER_EXPECT(&peer, ISCSI_OP_LOGIN_RSP);
	CU_ASSERT_EQUAL(peer.bhs.login_rsp.status_class, 0);
	cmd_ready(&bhs, 0);
	peer_command(&peer, &bhs, NULL, 0);
	PEER_GONE(&peer);
	end(&rig, &peer);
}

static void is_rejected(struct peer *peer, struct iscsi_bhs *bhs, const void *data, uint32_t len,
			uint8_t reason)
{
	peer_number(peer, bhs);
	peer_send(peer, bhs, data, len);
	peer_expect_reject(peer, reason, bhs);
	goes_on(peer);
}

void opcode_login_in_full_feature_phase_is_rejected(void)
{
	struct iscsi_bhs bhs = { .login_req = { .opcode = 0x43, .flags = 0x87 } };
	struct peer peer;
	struct rig rig;

	rig_open(&rig);
	peer_open(&peer, &rig, "");
	is_rejected(&peer, &bhs, "key=value", 10, ISCSI_REJECT_PROTOCOL_ERROR);
	end(&rig, &peer);
}

void opcode_unknown_is_rejected_with_its_header(void)
{
	struct iscsi_bhs bhs = { .hdr = { .opcode = 0x5c, .flags = 0x80 } };
	struct peer peer;
	struct rig rig;

	rig_open(&rig);
	peer_open(&peer, &rig, "HeaderDigest=CRC32C\nDataDigest=CRC32C\n");
	is_rejected(&peer, &bhs, "12345", 5, ISCSI_REJECT_NOT_SUPPORTED);
	bhs.hdr.opcode = 0x65; /* a target's: SCSI Data-In */
	is_rejected(&peer, &bhs, NULL, 0, ISCSI_REJECT_NOT_SUPPORTED);
	end(&rig, &peer);
}

/* 7.8: nothing of it can be trusted, its length either. */
void digest_error_in_a_header_closes(void)
{
	uint8_t bytes[64];
	struct iscsi_bhs bhs;
	struct peer peer;
	struct rig rig;
	size_t len;

	rig_open(&rig);
	peer_open(&peer, &rig, "HeaderDigest=CRC32C\n");
	cmd_ready(&bhs, 0);
	peer_number(&peer, &bhs);
	len = peer_build(&peer, &bhs, NULL, 0, NULL, 0, bytes);
	bytes[len - 1] ^= 1;
	peer_write(&peer, bytes, len);
	PEER_GONE(&peer);
	end(&rig, &peer);
}

/* 7.8: at error recovery level 0 the session recovers, behind a Reject; the
 * command has not been executed. */
void digest_error_in_data_is_rejected_and_ends_the_connection(void)
{
	uint8_t data[RIG_BLOCK], zeros[RIG_BLOCK] = { 0 }, bytes[RIG_BLOCK + 64];
	struct iscsi_bhs bhs;
	struct peer peer;
	struct rig rig;
	size_t len;

	rig_open(&rig);
	peer_open(&peer, &rig, "DataDigest=CRC32C\n");
	pattern(data, sizeof(data), 1);
	cmd_write(&bhs, 0, 5, 1);
	peer_number(&peer, &bhs);
	len = peer_build(&peer, &bhs, NULL, 0, data, sizeof(data), bytes);
	bytes[100] ^= 0x40;
	peer_write(&peer, bytes, len);
	peer_expect_reject(&peer, ISCSI_REJECT_DATA_DIGEST, &bhs);
	PEER_GONE(&peer);
	peer_close(&peer);
	peer_open_as(&peer, &rig, 1, "");
	CU_ASSERT_EQUAL(peer_read_blocks(&peer, 0, 5, 1, data), SCSI_GOOD);
	CU_ASSERT_EQUAL(memcmp(data, zeros, sizeof(data)), 0);
	end(&rig, &peer);
}

void digest_error_in_a_ping_is_rejected_and_ends_the_connection(void)
{
	struct iscsi_bhs bhs = { .nop_out = { .opcode = 0x40, .flags = 0x80 } };
	uint8_t bytes[64];
	struct peer peer;
	struct rig rig;
	size_t len;

	rig_open(&rig);
	peer_open(&peer, &rig, "DataDigest=CRC32C\n");
	be32_put(&bhs.nop_out.ttt, ISCSI_TAG_RESERVED);
	peer_number(&peer, &bhs);
	len = peer_build(&peer, &bhs, NULL, 0, "hello", 5, bytes);
	bytes[len - 1] ^= 1;
	peer_write(&peer, bytes, len);
	peer_expect_reject(&peer, ISCSI_REJECT_DATA_DIGEST, &bhs);
	PEER_GONE(&peer);
	end(&rig, &peer);
}

/* 11.3, one after the other: each is rejected, its CmdSN is used up, and the
 * next command is right. */
void command_that_breaks_the_rules_is_rejected(void)
{
	static uint8_t data[65537];
	struct iscsi_bhs bhs;
	struct peer peer;
	struct rig rig;

	rig_open(&rig);
	peer_open(&peer, &rig, "");
	cmd_write(&bhs, 0, 0, 1024); /* more immediate data than FirstBurstLength */
	is_rejected(&peer, &bhs, data, 65537, ISCSI_REJECT_PROTOCOL_ERROR);
	cmd_write(&bhs, 0, 0, 1); /* and than the expected data transfer length */
	is_rejected(&peer, &bhs, data, 513, ISCSI_REJECT_PROTOCOL_ERROR);
	cmd_read(&bhs, 0, 0, 1); /* data in a read */
	is_rejected(&peer, &bhs, data, 512, ISCSI_REJECT_PROTOCOL_ERROR);
	cmd_write(&bhs, 0, 0, 8); /* unsolicited data with InitialR2T=Yes */
	bhs.hdr.flags &= (uint8_t)~ISCSI_FINAL;
	is_rejected(&peer, &bhs, NULL, 0, ISCSI_REJECT_PROTOCOL_ERROR);
	cmd_read(&bhs, 0, 0, 1); /* both ways */
	bhs.hdr.flags |= ISCSI_CMD_WRITE;
	is_rejected(&peer, &bhs, NULL, 0, ISCSI_REJECT_PROTOCOL_ERROR);
	end(&rig, &peer);
}

void command_with_immediate_data_that_was_not_agreed_is_rejected(void)
{
	uint8_t data[RIG_BLOCK] = { 0 };
	struct iscsi_bhs bhs;
	struct peer peer;
	struct rig rig;

	rig_open(&rig);
	peer_open(&peer, &rig, "ImmediateData=No\n");
	cmd_write(&bhs, 0, 0, 1);
	is_rejected(&peer, &bhs, data, sizeof(data), ISCSI_REJECT_PROTOCOL_ERROR);
	end(&rig, &peer);
}

/* 11.2.1.8: ffffffffh names no task. */
void command_with_the_reserved_tag_is_rejected(void)
{
	struct iscsi_bhs bhs;
	struct peer peer;
	struct rig rig;

	rig_open(&rig);
	peer_open(&peer, &rig, "");
	cmd_ready(&bhs, 0);
	peer_number(&peer, &bhs);
	be32_put(&bhs.hdr.itt, ISCSI_TAG_RESERVED);
	peer_send(&peer, &bhs, NULL, 0);
	peer_expect_reject(&peer, ISCSI_REJECT_PROTOCOL_ERROR, &bhs);
	goes_on(&peer);
	end(&rig, &peer);
}

void command_in_a_discovery_session_is_rejected(void)
{
	struct iscsi_bhs bhs;
	struct peer peer;
	struct rig rig;

	rig_open(&rig);
	peer_init(&peer);
	peer.target = NULL;
	peer_connect(&peer, &rig);
	CU_ASSERT_EQUAL_FATAL(peer_login(&peer, ""), 0);
	cmd_ready(&bhs, 0);
	peer_command(&peer, &bhs, NULL, 0);
	peer_expect_reject(&peer, ISCSI_REJECT_PROTOCOL_ERROR, &bhs);
	peer_tmf_send(&peer, ISCSI_TMF_LUN_RESET, 0, 0, 0);
	PEER_EXPECT(&peer, ISCSI_OP_REJECT);
	peer_ping(&peer);
	end(&rig, &peer);
}

/* 11.16.1: there is nothing to send again at error recovery level 0. */
void snack_is_rejected(void)
{
	struct iscsi_bhs bhs = { .hdr = { .opcode = ISCSI_OP_SNACK, .flags = 0x80 } };
	struct peer peer;
	struct rig rig;

	rig_open(&rig);
	peer_open(&peer, &rig, "");
	peer_send(&peer, &bhs, NULL, 0);
	peer_expect_reject(&peer, ISCSI_REJECT_SNACK, &bhs);
	goes_on(&peer);
	end(&rig, &peer);
}

void data_segment_where_none_belongs_is_rejected(void)
{
	static const uint8_t opcodes[] = { ISCSI_OP_TMF_REQ | ISCSI_IMMEDIATE,
					   ISCSI_OP_LOGOUT_REQ | ISCSI_IMMEDIATE };
	struct peer peer;
	struct rig rig;

	rig_open(&rig);
	peer_open(&peer, &rig, "");
	for (size_t i = 0; i < sizeof(opcodes); i++) {
		struct iscsi_bhs bhs = { .hdr = { .opcode = opcodes[i], .flags = 0x80 } };

		is_rejected(&peer, &bhs, "abc", 3, ISCSI_REJECT_PROTOCOL_ERROR);
	}
	end(&rig, &peer);
}

/* We keep at most 64 KiB of a text or NOP. */
void data_segment_of_a_ping_too_long_to_keep_is_rejected(void)
{
	static uint8_t data[65537];
	struct iscsi_bhs bhs = { .nop_out = { .opcode = 0x40, .flags = 0x80 } };
	struct peer peer;
	struct rig rig;

	rig_open(&rig);
	peer_open(&peer, &rig, "");
	be32_put(&bhs.nop_out.ttt, ISCSI_TAG_RESERVED);
	is_rejected(&peer, &bhs, data, sizeof(data), ISCSI_REJECT_PROTOCOL_ERROR);
	end(&rig, &peer);
}
