/* NOP, text and logout in the full feature phase: RFC 7143 11.18, 11.19, 11.10,
 * 11.14. */
#include <stdio.h>
#include <string.h>

#include "tests/pdu/tests.h"

static struct iscsi_bhs nop(void)
{
	struct iscsi_bhs bhs = { .nop_out = { .opcode = ISCSI_OP_NOP_OUT | ISCSI_IMMEDIATE,
					      .flags = ISCSI_FINAL } };

	be32_put(&bhs.nop_out.ttt, ISCSI_TAG_RESERVED);
	return bhs;
}

/* 11.19: the data comes back, as much as the initiator takes. */
void nop_echoes_its_data(void)
{
	static uint8_t data[5000];
	struct iscsi_bhs bhs = nop();
	struct peer peer;
	struct rig rig;

	rig_open(&rig);
	peer_open(&peer, &rig, "MaxRecvDataSegmentLength=1024\nDataDigest=CRC32C\n");
	pattern(data, sizeof(data), 1);
	scsi_lun_field(2, bhs.hdr.lun);
	peer_number(&peer, &bhs);
	peer_send(&peer, &bhs, data, 1001);
	PEER_EXPECT(&peer, ISCSI_OP_NOP_IN);
	CU_ASSERT_EQUAL(peer.data_len, 1001);
	CU_ASSERT_EQUAL(memcmp(peer.data, data, 1001), 0);
	CU_ASSERT_EQUAL(be32_get(&peer.bhs.hdr.itt), be32_get(&bhs.hdr.itt));
	CU_ASSERT_EQUAL(be32_get(&peer.bhs.nop_in.ttt), ISCSI_TAG_RESERVED);
	CU_ASSERT_EQUAL(memcmp(peer.bhs.hdr.lun, bhs.hdr.lun, 8), 0);
	peer_number(&peer, &bhs);
	peer_send(&peer, &bhs, data, sizeof(data));
	PEER_EXPECT(&peer, ISCSI_OP_NOP_IN);
	CU_ASSERT_EQUAL(peer.data_len, 1024);
	CU_ASSERT_EQUAL(memcmp(peer.data, data, 1024), 0);
	peer_close(&peer);
	rig_stop(&rig);
}

void nop_not_immediate_uses_a_number(void)
{
	struct iscsi_bhs bhs = nop();
	struct peer peer;
	struct rig rig;

	rig_open(&rig);
	peer_open(&peer, &rig, "");
	bhs.hdr.opcode = ISCSI_OP_NOP_OUT;
	peer_number(&peer, &bhs);
	peer_send(&peer, &bhs, NULL, 0);
	PEER_EXPECT(&peer, ISCSI_OP_NOP_IN);
	CU_ASSERT_EQUAL(peer.exp_cmd_sn, peer.cmd_sn);
	CU_ASSERT_EQUAL(peer_ready(&peer, 0), SCSI_GOOD);
	peer_close(&peer);
	rig_stop(&rig);
}

/* 11.18: with the reserved tag nobody waits for an answer. */
void nop_without_a_tag_is_not_answered(void)
{
	struct iscsi_bhs bhs = nop();
	struct peer peer;
	struct rig rig;

	rig_open(&rig);
	peer_open(&peer, &rig, "");
	peer_number(&peer, &bhs);
	be32_put(&bhs.hdr.itt, ISCSI_TAG_RESERVED);
	peer_send(&peer, &bhs, "data", 4);
	PEER_SILENT(&peer);
	CU_ASSERT_EQUAL(peer_ready(&peer, 0), SCSI_GOOD);
	peer_close(&peer);
	rig_stop(&rig);
}

/* 11.18: that is for immediate ones only, as nothing says when it was seen. */
void nop_without_a_tag_that_is_not_immediate_is_rejected(void)
{
	struct iscsi_bhs bhs = nop();
	struct peer peer;
	struct rig rig;

	rig_open(&rig);
	peer_open(&peer, &rig, "");
	bhs.hdr.opcode = ISCSI_OP_NOP_OUT;
	be32_put(&bhs.nop_out.itt, ISCSI_TAG_RESERVED);
	be32_put(&bhs.nop_out.cmd_sn, peer.cmd_sn);
	peer_send(&peer, &bhs, NULL, 0);
	peer_expect_reject(&peer, ISCSI_REJECT_PROTOCOL_ERROR, &bhs);
	peer_close(&peer);
	rig_stop(&rig);
}

void nop_is_answered_while_a_store_is_stuck(void)
{
	uint8_t data[RIG_BLOCK] = { 0 };
	struct iscsi_bhs bhs;
	struct peer peer;
	struct rig rig;
	uint32_t itt;

	rig_open(&rig);
	peer_open(&peer, &rig, "");
	rig_fault(&rig, 1u << BK_WRITE, FAULT_STUCK, 0);
	cmd_write(&bhs, 1, 0, 1);
	itt = peer_command(&peer, &bhs, data, sizeof(data));
	for (int i = 0; i < 5; i++)
		peer_ping(&peer);
	/* And so are the other LUNs. */
	CU_ASSERT_EQUAL(peer_read_blocks(&peer, 2, 0, 1, data), SCSI_GOOD);
	rig_release(&rig);
	CU_ASSERT_EQUAL(peer_status(&peer, itt), SCSI_GOOD);
	peer_close(&peer);
	rig_stop(&rig);
}

/* ---- the target's own pings ---- */

static void pinging_open(struct rig *rig, struct peer *peer)
{
	rig_prepare(rig);
	rig->limits.nop_interval = 1;
	rig->limits.nop_timeout = 1;
	rig_start(rig);
	peer_open(peer, rig, "");
}

static void answer_ping(struct peer *peer)
{
	struct iscsi_bhs bhs = nop();

	CU_ASSERT_EQUAL(be32_get(&peer->bhs.hdr.itt), ISCSI_TAG_RESERVED);
	CU_ASSERT_NOT_EQUAL(be32_get(&peer->bhs.nop_in.ttt), ISCSI_TAG_RESERVED);
	peer_number(peer, &bhs);
	be32_put(&bhs.hdr.itt, ISCSI_TAG_RESERVED);
	bhs.nop_out.ttt = peer->bhs.nop_in.ttt;
	memcpy(bhs.hdr.lun, peer->bhs.hdr.lun, 8);
	peer_send(peer, &bhs, NULL, 0);
}

/* It answers twice, then no more: then it is not there any more. */
void ping_of_the_target_drops_who_has_answered_and_does_not(void)
{
	struct peer peer;
	struct rig rig;

	pinging_open(&rig, &peer);
	for (int i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL_FATAL(peer_recv(&peer, 1800), ISCSI_OP_NOP_IN);
		answer_ping(&peer);
	}
	CU_ASSERT_EQUAL_FATAL(peer_recv(&peer, 1800), ISCSI_OP_NOP_IN);
	CU_ASSERT_EQUAL(peer_recv(&peer, 1900), PEER_CLOSED);
	peer_close(&peer);
	rig_stop(&rig);
}

/* Boot firmware answers no pings; its TCP takes them. */
void ping_of_the_target_spares_who_has_never_answered(void)
{
	struct peer peer;
	struct rig rig;
	int pings = 0, opcode;
	uint64_t end;

	pinging_open(&rig, &peer);
	for (end = rig_now_ms() + 4500; rig_now_ms() < end;) {
		opcode = peer_recv(&peer, 500);
		CU_ASSERT_FATAL(opcode == ISCSI_OP_NOP_IN || opcode == PEER_NOTHING);
		pings += opcode == ISCSI_OP_NOP_IN;
	}
	CU_ASSERT_TRUE(pings >= 1 && pings <= 4);
	CU_ASSERT_EQUAL(peer_ready(&peer, 0), SCSI_GOOD);
	peer_close(&peer);
	rig_stop(&rig);
}

void ping_of_the_target_is_not_sent_while_others_flow(void)
{
	struct peer peer;
	struct rig rig;

	pinging_open(&rig, &peer);
	for (int i = 0; i < 10; i++) {
		rig_sleep_ms(250);
		CU_ASSERT_EQUAL(peer_ready(&peer, 0), SCSI_GOOD);
	}
	peer_close(&peer);
	rig_stop(&rig);
}

/* ---- text ---- */

static void text_send(struct peer *peer, uint8_t flags, uint32_t ttt, const char *text,
		      uint32_t len)
{
	struct iscsi_bhs bhs = { .text_req = { .opcode = ISCSI_OP_TEXT_REQ | ISCSI_IMMEDIATE,
					       .flags = flags } };

	be32_put(&bhs.text_req.ttt, ttt);
	peer_number(peer, &bhs);
	/* One tag for a whole exchange. */
	be32_put(&bhs.hdr.itt, 0x77);
	peer_send(peer, &bhs, text, len);
}

void text_sends_the_target_of_its_session(void)
{
	char want[256];
	struct peer peer;
	struct rig rig;
	int len;

	rig_open(&rig);
	peer_open(&peer, &rig, "");
	len = snprintf(want, sizeof(want), "TargetName=%s%cTargetAddress=127.0.0.1:%u,%d", RIG_DISK,
		       0, rig.port, RIG_TAG);
	text_send(&peer, 0x80, ISCSI_TAG_RESERVED, "SendTargets=", 13);
	PEER_EXPECT(&peer, ISCSI_OP_TEXT_RSP);
	CU_ASSERT_EQUAL(peer.bhs.hdr.flags, ISCSI_FINAL);
	CU_ASSERT_EQUAL(be32_get(&peer.bhs.hdr.itt), 0x77);
	CU_ASSERT_EQUAL(be32_get(&peer.bhs.text_rsp.ttt), ISCSI_TAG_RESERVED);
	CU_ASSERT_EQUAL_FATAL(peer.data_len, (uint32_t)len + 1);
	CU_ASSERT_EQUAL(memcmp(peer.data, want, (size_t)len + 1), 0);
	peer_ping(&peer);
	peer_close(&peer);
	rig_stop(&rig);
}

/* 11.11: C and a TTT until there is no more. */
void text_comes_in_pieces_that_the_initiator_takes(void)
{
	struct peer peer;
	struct rig rig;
	uint32_t total = 0, names = 0, pdus = 0;
	static char all[200000];

	rig_prepare(&rig);
	rig.nextra = 300;
	rig_start(&rig);
	peer_init(&peer);
	peer.target = NULL;
	peer_connect(&peer, &rig);
	CU_ASSERT_EQUAL_FATAL(peer_login(&peer, "MaxRecvDataSegmentLength=512\n"), 0);
	text_send(&peer, 0x80, ISCSI_TAG_RESERVED, "SendTargets=All", 16);
	for (;; pdus++) {
		PEER_EXPECT(&peer, ISCSI_OP_TEXT_RSP);
		CU_ASSERT_FATAL(peer.data_len <= 512 && total + 512 < sizeof(all));
		memcpy(all + total, peer.data, peer.data_len);
		total += peer.data_len;
		if (peer.bhs.hdr.flags == ISCSI_FINAL)
			break;
		CU_ASSERT_EQUAL_FATAL(peer.bhs.hdr.flags, ISCSI_CONTINUE);
		text_send(&peer, 0x80, be32_get(&peer.bhs.text_rsp.ttt), NULL, 0);
	}
	for (uint32_t i = 0; i < total; i += (uint32_t)strlen(all + i) + 1)
		names += strncmp(all + i, "TargetName=", 11) == 0;
	CU_ASSERT_EQUAL(names, 302);
	CU_ASSERT_EQUAL(pdus, (total - 1) / 512);
	peer_close(&peer);
	rig_stop(&rig);
}

void text_that_is_broken_is_rejected(void)
{
	struct peer peer;
	struct rig rig;

	rig_open(&rig);
	peer_open(&peer, &rig, "");
	text_send(&peer, 0x80, ISCSI_TAG_RESERVED, "SendTargets", 11);
	PEER_EXPECT(&peer, ISCSI_OP_REJECT);
	text_send(&peer, 0x80, 0x1234, "SendTargets=", 13);
	PEER_EXPECT(&peer, ISCSI_OP_REJECT);
	text_send(&peer, 0xc0, ISCSI_TAG_RESERVED, "SendTargets=", 13);
	PEER_EXPECT(&peer, ISCSI_OP_REJECT);
	peer_ping(&peer);
	peer_close(&peer);
	rig_stop(&rig);
}

/* ---- logout ---- */

static uint8_t logout(struct peer *peer, uint8_t reason, uint16_t cid)
{
	struct iscsi_bhs bhs = { .logout_req = { .opcode = ISCSI_OP_LOGOUT_REQ | ISCSI_IMMEDIATE,
						 .reason = (uint8_t)(0x80 | reason) } };

	be16_put(&bhs.logout_req.cid, cid);
	peer_number(peer, &bhs);
	peer_send(peer, &bhs, NULL, 0);
	PEER_EXPECT(peer, ISCSI_OP_LOGOUT_RSP);
	CU_ASSERT_EQUAL(peer->bhs.hdr.flags, ISCSI_FINAL);
	CU_ASSERT_EQUAL(be32_get(&peer->bhs.hdr.itt), be32_get(&bhs.hdr.itt));
	return peer->bhs.logout_rsp.response;
}

void logout_of_the_session_ends_it(void)
{
	struct peer peer;
	struct rig rig;

	rig_open(&rig);
	peer_open(&peer, &rig, "HeaderDigest=CRC32C\n");
	CU_ASSERT_EQUAL(logout(&peer, ISCSI_LOGOUT_SESSION, 0x55), ISCSI_LOGOUT_CLOSED);
	PEER_GONE(&peer);
	peer_close(&peer);
	CU_ASSERT_TRUE(rig_wait_sessions(&rig, 0));
	rig_stop(&rig);
}

void logout_of_the_connection_ends_the_session(void)
{
	struct peer peer;
	struct rig rig;

	rig_open(&rig);
	peer_open(&peer, &rig, "");
	CU_ASSERT_EQUAL(logout(&peer, ISCSI_LOGOUT_CONNECTION, 1), ISCSI_LOGOUT_CLOSED);
	PEER_GONE(&peer);
	peer_close(&peer);
	CU_ASSERT_TRUE(rig_wait_sessions(&rig, 0));
	rig_stop(&rig);
}

/* 11.15.1: what cannot be done leaves everything as it is. */
void logout_of_what_is_not_there_is_refused(void)
{
	struct peer peer;
	struct rig rig;

	rig_open(&rig);
	peer_open(&peer, &rig, "");
	CU_ASSERT_EQUAL(logout(&peer, ISCSI_LOGOUT_CONNECTION, 2), ISCSI_LOGOUT_NO_CID);
	CU_ASSERT_EQUAL(logout(&peer, ISCSI_LOGOUT_RECOVERY, 1), ISCSI_LOGOUT_NO_RECOVERY);
	CU_ASSERT_EQUAL(logout(&peer, 5, 1), ISCSI_LOGOUT_FAILED);
	CU_ASSERT_EQUAL(peer_ready(&peer, 0), SCSI_GOOD);
	peer_close(&peer);
	rig_stop(&rig);
}

/* 11.14: what the store has is finished first; what waits for data is not. */
void logout_waits_for_what_a_store_has(void)
{
	struct iscsi_bhs bhs = { .logout_req = { .opcode = ISCSI_OP_LOGOUT_REQ | ISCSI_IMMEDIATE,
						 .reason = 0x80 } };
	uint8_t data[RIG_BLOCK], got[RIG_BLOCK];
	struct iscsi_bhs write;
	struct peer peer;
	struct rig rig;

	rig_open(&rig);
	peer_open(&peer, &rig, "");
	pattern(data, sizeof(data), 7);
	rig_fault(&rig, 1u << BK_WRITE, FAULT_STUCK, 0);
	cmd_write(&write, 0, 0, 8);
	peer_command(&peer, &write, NULL, 0);
	PEER_EXPECT(&peer, ISCSI_OP_R2T);
	cmd_write(&write, 1, 3, 1);
	peer_command(&peer, &write, data, sizeof(data));
	peer_number(&peer, &bhs);
	peer_send(&peer, &bhs, NULL, 0);
	PEER_SILENT(&peer);
	rig_release(&rig);
	PEER_EXPECT(&peer, ISCSI_OP_SCSI_RSP);
	CU_ASSERT_EQUAL(be32_get(&peer.bhs.hdr.itt), be32_get(&write.hdr.itt));
	PEER_EXPECT(&peer, ISCSI_OP_LOGOUT_RSP);
	PEER_GONE(&peer);
	peer_close(&peer);
	peer_open_as(&peer, &rig, 2, "");
	CU_ASSERT_EQUAL(peer_read_blocks(&peer, 1, 3, 1, got), SCSI_GOOD);
	CU_ASSERT_EQUAL(memcmp(got, data, sizeof(got)), 0);
	peer_close(&peer);
	rig_stop(&rig);
}
