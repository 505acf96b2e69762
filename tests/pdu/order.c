/* CmdSN and its window: RFC 7143 4.2.2.1. */
#include <string.h>

#include "tests/pdu/tests.h"

void window_ignores_commands_beyond_it(void)
{
	struct iscsi_bhs bhs;
	struct peer peer;
	struct rig rig;

	rig_open(&rig);
	peer_open(&peer, &rig, "");
	cmd_ready(&bhs, 0);
	be32_put(&bhs.scsi_cmd.itt, 0x99);
	be32_put(&bhs.scsi_cmd.cmd_sn, peer.max_cmd_sn + 1);
	peer_send(&peer, &bhs, NULL, 0);
	PEER_SILENT(&peer);
	peer_ping(&peer);
	CU_ASSERT_EQUAL(peer.exp_cmd_sn, peer.cmd_sn);
	CU_ASSERT_EQUAL(peer_ready(&peer, 0), SCSI_GOOD);
	peer_close(&peer);
	rig_stop(&rig);
}

void window_ignores_a_command_with_data_beyond_it(void)
{
	uint8_t data[RIG_BLOCK * 2] = { 0 };
	struct iscsi_bhs bhs;
	struct peer peer;
	struct rig rig;

	rig_open(&rig);
	peer_open(&peer, &rig, "DataDigest=CRC32C\n");
	cmd_write(&bhs, 0, 0, 2);
	be32_put(&bhs.scsi_cmd.itt, 0x99);
	be32_put(&bhs.scsi_cmd.cmd_sn, peer.cmd_sn - 1);
	peer_send(&peer, &bhs, data, sizeof(data));
	be32_put(&bhs.scsi_cmd.cmd_sn, peer.cmd_sn + 0x7fffffff);
	peer_send(&peer, &bhs, data, sizeof(data));
	PEER_SILENT(&peer);
	CU_ASSERT_EQUAL(peer_ready(&peer, 0), SCSI_GOOD);
	peer_close(&peer);
	rig_stop(&rig);
}

void window_ignores_a_command_that_comes_twice(void)
{
	struct iscsi_bhs bhs;
	struct peer peer;
	struct rig rig;

	rig_open(&rig);
	peer_open(&peer, &rig, "");
	cmd_ready(&bhs, 0);
	CU_ASSERT_EQUAL(peer_status(&peer, peer_command(&peer, &bhs, NULL, 0)), SCSI_GOOD);
	peer_send(&peer, &bhs, NULL, 0);
	PEER_SILENT(&peer);
	CU_ASSERT_EQUAL(peer_ready(&peer, 0), SCSI_GOOD);
	peer_close(&peer);
	rig_stop(&rig);
}

/* Sends TEST UNIT READY with a CmdSN so far ahead; tag is the same number. */
static void send_ahead(struct peer *peer, uint32_t ahead)
{
	struct iscsi_bhs bhs;

	cmd_ready(&bhs, 0);
	be32_put(&bhs.scsi_cmd.itt, ahead);
	be32_put(&bhs.scsi_cmd.cmd_sn, peer->cmd_sn + ahead);
	peer_send(peer, &bhs, NULL, 0);
}

void command_behind_a_gap_waits_for_its_turn(void)
{
	struct peer peer;
	struct rig rig;

	rig_open(&rig);
	peer_open(&peer, &rig, "");
	send_ahead(&peer, 3);
	send_ahead(&peer, 1);
	send_ahead(&peer, 2);
	send_ahead(&peer, 1); /* it is there already */
	PEER_SILENT(&peer);
	/* What is held is not received yet as far as ExpCmdSN says. */
	peer_ping(&peer);
	CU_ASSERT_EQUAL(peer.exp_cmd_sn, peer.cmd_sn);
	send_ahead(&peer, 0);
	for (uint32_t i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(peer_status(&peer, i), SCSI_GOOD);
	peer.cmd_sn += 4;
	peer_ping(&peer);
	CU_ASSERT_EQUAL(peer.exp_cmd_sn, peer.cmd_sn);
	CU_ASSERT_EQUAL(peer_ready(&peer, 0), SCSI_GOOD);
	peer_close(&peer);
	rig_stop(&rig);
}

/* Three writes to one place, with immediate data, with some of it and with
 * none: the last by CmdSN, which came first, is what stays. */
void command_behind_a_gap_keeps_its_data(void)
{
	static const uint32_t immediate[] = { 4096, 1024, 0 };
	uint8_t data[3][4096], got[4096];
	struct iscsi_bhs bhs[3];
	struct peer peer;
	struct rig rig;

	rig_open(&rig);
	peer_open(&peer, &rig, "");
	for (uint32_t i = 0; i < 3; i++) {
		pattern(data[i], sizeof(data[i]), i + 1);
		cmd_write(&bhs[i], 0, 64, 8);
		peer_number(&peer, &bhs[i]);
	}
	for (int i = 2; i >= 0; i--)
		peer_send(&peer, &bhs[i], data[i], immediate[i]);
	for (int left = 3; left > 0;) {
		int opcode = peer_recv(&peer, PEER_SOON_MS), which = 0;

		CU_ASSERT_TRUE_FATAL(opcode == ISCSI_OP_R2T || opcode == ISCSI_OP_SCSI_RSP);
		while (which < 2 && be32_get(&bhs[which].hdr.itt) != be32_get(&peer.bhs.hdr.itt))
			which++;
		if (opcode == ISCSI_OP_R2T) {
			peer_data_out(&peer, &peer.bhs, data[which], 512);
		} else {
			CU_ASSERT_EQUAL(peer.bhs.scsi_rsp.status, SCSI_GOOD);
			left--;
		}
	}
	CU_ASSERT_EQUAL(peer_read_blocks(&peer, 0, 64, 8, got), SCSI_GOOD);
	CU_ASSERT_TRUE(memcmp(got, data[2], 4096) == 0 || memcmp(got, data[1], 4096) == 0);
	peer_close(&peer);
	rig_stop(&rig);
}

/* Whatever PDU has the number that was missing. */
void command_behind_a_gap_goes_on_behind_a_function(void)
{
	struct iscsi_bhs bhs = { .tmf_req = { .opcode = ISCSI_OP_TMF_REQ,
					      .function = 0x80 | ISCSI_TMF_ABORT_TASK_SET } };
	struct peer peer;
	struct rig rig;

	rig_open(&rig);
	peer_open(&peer, &rig, "");
	send_ahead(&peer, 1);
	PEER_SILENT(&peer);
	peer_number(&peer, &bhs);
	peer_send(&peer, &bhs, NULL, 0);
	peer.cmd_sn++;
	for (int i = 0; i < 2; i++) {
		int opcode = peer_recv(&peer, PEER_SOON_MS);

		CU_ASSERT_TRUE(opcode == ISCSI_OP_TMF_RSP || opcode == ISCSI_OP_SCSI_RSP);
	}
	CU_ASSERT_EQUAL(peer_ready(&peer, 0), SCSI_GOOD);
	peer_close(&peer);
	rig_stop(&rig);
}

/* A peer that leaves numbers out for ever costs itself only. */
void command_behind_a_gap_ends_with_its_connection(void)
{
	struct peer peer;
	struct rig rig;

	rig_open(&rig);
	peer_open(&peer, &rig, "");
	for (uint32_t i = 31; i > 0; i--)
		send_ahead(&peer, i);
	PEER_SILENT(&peer);
	peer_close(&peer);
	rig_stop(&rig);
}

/* On one connection a NOP that is not immediate is sent in its order. */
void ping_behind_a_gap_closes(void)
{
	struct iscsi_bhs bhs = { .nop_out = { .opcode = ISCSI_OP_NOP_OUT, .flags = 0x80 } };
	struct peer peer;
	struct rig rig;

	rig_open(&rig);
	peer_open(&peer, &rig, "");
	be32_put(&bhs.nop_out.ttt, ISCSI_TAG_RESERVED);
	peer.cmd_sn++;
	peer_number(&peer, &bhs);
	peer_send(&peer, &bhs, NULL, 0);
	PEER_GONE(&peer);
	peer_close(&peer);
	rig_stop(&rig);
}

/* 4.2.2.1: an immediate command carries the next CmdSN and does not use it. */
void command_immediate_uses_no_number(void)
{
	struct iscsi_bhs bhs;
	struct peer peer;
	struct rig rig;
	uint32_t itt;

	rig_open(&rig);
	peer_open(&peer, &rig, "");
	for (int i = 0; i < 3; i++) {
		cmd_ready(&bhs, 0);
		bhs.hdr.opcode |= ISCSI_IMMEDIATE;
		itt = peer_command(&peer, &bhs, NULL, 0);
		CU_ASSERT_EQUAL(peer_status(&peer, itt), SCSI_GOOD);
		CU_ASSERT_EQUAL(peer.exp_cmd_sn, peer.cmd_sn);
	}
	CU_ASSERT_EQUAL(peer_ready(&peer, 0), SCSI_GOOD);
	peer_close(&peer);
	rig_stop(&rig);
}

/* It begins with 32 and doubles while it is used up, to queue-depth. */
void window_grows_with_use(void)
{
	uint8_t data[RIG_BLOCK] = { 1 };
	struct iscsi_bhs bhs;
	struct peer peer;
	struct rig rig;
	unsigned int sent = 0;

	rig_open(&rig);
	peer_open(&peer, &rig, "");
	CU_ASSERT_EQUAL(rig_window(&rig), 32);
	CU_ASSERT_EQUAL(peer.max_cmd_sn - peer.exp_cmd_sn + 1, 32);
	rig_fault(&rig, 1u << BK_WRITE, FAULT_STUCK, 0);
	while (sent < 256) {
		/* As far as the window allows. */
		while ((int32_t)(peer.max_cmd_sn - peer.cmd_sn) >= 0) {
			cmd_write(&bhs, 1, sent++, 1);
			peer_command(&peer, &bhs, data, sizeof(data));
		}
		peer_ping(&peer);
		if ((int32_t)(peer.max_cmd_sn - peer.cmd_sn) < 0)
			break;
	}
	CU_ASSERT_EQUAL(sent, 256);
	CU_ASSERT_EQUAL(rig_window(&rig), 256);
	/* Closed now: one more is ignored. */
	CU_ASSERT_EQUAL(peer.max_cmd_sn + 1, peer.exp_cmd_sn);
	cmd_write(&bhs, 1, 0, 1);
	be32_put(&bhs.scsi_cmd.cmd_sn, peer.cmd_sn);
	peer_send(&peer, &bhs, data, sizeof(data));
	peer_ping(&peer);
	rig_release(&rig);
	for (; sent > 0; sent--) {
		PEER_EXPECT(&peer, ISCSI_OP_SCSI_RSP);
		CU_ASSERT_EQUAL(peer.bhs.scsi_rsp.status, SCSI_GOOD);
	}
	CU_ASSERT_EQUAL(peer.max_cmd_sn - peer.exp_cmd_sn + 1, 256);
	peer_close(&peer);
	rig_stop(&rig);
}
