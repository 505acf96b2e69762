/* Task management: RFC 7143 11.5, 11.6, 4.2.3.3; SAM-5 7. */
#include <string.h>

#include "tests/pdu/tests.h"

#define NONE ISCSI_TAG_RESERVED

static uint32_t stuck_write(struct peer *peer, uint32_t lba, const uint8_t *data)
{
	struct iscsi_bhs bhs;

	cmd_write(&bhs, 1, lba, 1);
	return peer_command(peer, &bhs, data, RIG_BLOCK);
}

static void end(struct rig *rig, struct peer *peer)
{
	CU_ASSERT_EQUAL(peer_ready(peer, 0), SCSI_GOOD);
	peer_close(peer);
	rig_stop(rig);
}

void abort_task_that_waits_for_data(void)
{
	uint8_t data[4096] = { 1 }, got[RIG_BLOCK];
	struct iscsi_bhs bhs, r2t;
	struct peer peer;
	struct rig rig;
	uint32_t itt;

	rig_open(&rig);
	peer_open(&peer, &rig, "");
	cmd_write(&bhs, 0, 0, 8);
	itt = peer_command(&peer, &bhs, NULL, 0);
	PEER_EXPECT(&peer, ISCSI_OP_R2T);
	r2t = peer.bhs;
	CU_ASSERT_EQUAL(peer_tmf(&peer, ISCSI_TMF_ABORT_TASK, 0, itt, peer.cmd_sn - 1),
			ISCSI_TMF_COMPLETE);
	/* Its data is dropped, and there is no response. */
	peer_data_out(&peer, &r2t, data, 4096);
	PEER_SILENT(&peer);
	CU_ASSERT_EQUAL(peer_read_blocks(&peer, 0, 0, 1, got), SCSI_GOOD);
	CU_ASSERT_EQUAL(got[0], 0);
	end(&rig, &peer);
}

/* The answer comes only when nothing of it can reach the store any more. */
void abort_task_waits_for_the_store(void)
{
	uint8_t old[RIG_BLOCK], new[RIG_BLOCK], got[RIG_BLOCK];
	struct peer peer;
	struct rig rig;
	uint32_t itt, tmf;

	rig_open(&rig);
	peer_open(&peer, &rig, "");
	pattern(old, sizeof(old), 1);
	pattern(new, sizeof(new), 2);
	rig_fault(&rig, 1u << BK_WRITE, FAULT_STUCK, 0);
	itt = stuck_write(&peer, 0, old);
	tmf = peer_tmf_send(&peer, ISCSI_TMF_ABORT_TASK, 1, itt, peer.cmd_sn - 1);
	PEER_SILENT(&peer);
	peer_ping(&peer);
	rig_release(&rig);
	PEER_EXPECT(&peer, ISCSI_OP_TMF_RSP);
	CU_ASSERT_EQUAL(be32_get(&peer.bhs.hdr.itt), tmf);
	CU_ASSERT_EQUAL(peer.bhs.tmf_rsp.response, ISCSI_TMF_COMPLETE);
	/* What is written from here on stays. */
	CU_ASSERT_EQUAL(peer_write_blocks(&peer, 1, 0, 1, new), SCSI_GOOD);
	rig_sleep_ms(50);
	CU_ASSERT_EQUAL(peer_read_blocks(&peer, 1, 0, 1, got), SCSI_GOOD);
	CU_ASSERT_EQUAL(memcmp(got, new, sizeof(got)), 0);
	end(&rig, &peer);
}

/* 11.6.1: it "does not exist" any more. */
void abort_task_that_has_ended(void)
{
	struct iscsi_bhs bhs;
	struct peer peer;
	struct rig rig;
	uint32_t itt;

	rig_open(&rig);
	peer_open(&peer, &rig, "");
	cmd_ready(&bhs, 0);
	itt = peer_command(&peer, &bhs, NULL, 0);
	CU_ASSERT_EQUAL(peer_status(&peer, itt), SCSI_GOOD);
	CU_ASSERT_EQUAL(peer_tmf(&peer, ISCSI_TMF_ABORT_TASK, 0, itt, peer.cmd_sn - 1),
			ISCSI_TMF_NO_TASK);
	CU_ASSERT_EQUAL(peer_tmf(&peer, ISCSI_TMF_ABORT_TASK, 0, 0x4711, peer.cmd_sn + 1000),
			ISCSI_TMF_NO_TASK);
	end(&rig, &peer);
}

void abort_task_that_is_held_behind_a_gap(void)
{
	uint8_t data[RIG_BLOCK] = { 0 };
	struct iscsi_bhs bhs;
	struct peer peer;
	struct rig rig;
	uint32_t itt;

	rig_open(&rig);
	peer_open(&peer, &rig, "");
	peer.cmd_sn++;
	cmd_write(&bhs, 0, 0, 1);
	itt = peer_command(&peer, &bhs, data, sizeof(data));
	CU_ASSERT_EQUAL(peer_tmf(&peer, ISCSI_TMF_ABORT_TASK, 0, itt, peer.cmd_sn - 1),
			ISCSI_TMF_COMPLETE);
	/* Numbers go on, with or without the one that is gone. */
	peer.cmd_sn -= 2;
	CU_ASSERT_EQUAL(peer_ready(&peer, 0), SCSI_GOOD);
	cmd_ready(&bhs, 0);
	peer.cmd_sn++;
	itt = peer_command(&peer, &bhs, NULL, 0);
	if (peer.exp_cmd_sn == peer.cmd_sn - 2) {
		struct iscsi_bhs missing;

		cmd_ready(&missing, 0);
		be32_put(&missing.scsi_cmd.itt, 0x5555);
		be32_put(&missing.scsi_cmd.cmd_sn, peer.cmd_sn - 2);
		peer_send(&peer, &missing, NULL, 0);
		CU_ASSERT_EQUAL(peer_status(&peer, 0x5555), SCSI_GOOD);
	}
	CU_ASSERT_EQUAL(peer_status(&peer, itt), SCSI_GOOD);
	end(&rig, &peer);
}

/* Its number is passed when the gap closes, and it is passed alone. */
void abort_task_that_is_held_keeps_its_data_from_the_store(void)
{
	uint8_t data[RIG_BLOCK], got[RIG_BLOCK];
	struct iscsi_bhs bhs;
	struct peer peer;
	struct rig rig;
	uint32_t itt;

	rig_open(&rig);
	peer_open(&peer, &rig, "");
	pattern(data, sizeof(data), 1);
	peer.cmd_sn++;
	cmd_write(&bhs, 0, 0, 1);
	itt = peer_command(&peer, &bhs, data, sizeof(data));
	CU_ASSERT_EQUAL(peer_tmf(&peer, ISCSI_TMF_ABORT_TASK, 0, itt, peer.cmd_sn - 1),
			ISCSI_TMF_COMPLETE);
	peer.cmd_sn -= 2;
	CU_ASSERT_EQUAL(peer_ready(&peer, 0), SCSI_GOOD);
	peer.cmd_sn++;
	CU_ASSERT_EQUAL(peer_read_blocks(&peer, 0, 0, 1, got), SCSI_GOOD);
	CU_ASSERT_EQUAL(got[0], 0);
	CU_ASSERT_EQUAL(memcmp(got, got + 1, sizeof(got) - 1), 0);
	end(&rig, &peer);
}

/* 4.2.3.3: what has a later CmdSN than the function is not of its set. */
void abort_task_set_leaves_newer_commands(void)
{
	uint8_t data[RIG_BLOCK] = { 0 };
	struct iscsi_bhs bhs;
	struct peer peer;
	struct rig rig;
	uint32_t newer, other, itt;

	rig_open(&rig);
	peer_open(&peer, &rig, "");
	rig_fault(&rig, 1u << BK_WRITE, FAULT_STUCK, 0);
	for (uint32_t i = 0; i < 3; i++)
		stuck_write(&peer, i, data);
	cmd_write(&bhs, 0, 0, 1);
	other = peer_command(&peer, &bhs, NULL, 0); /* another LUN: waits for data */
	PEER_EXPECT(&peer, ISCSI_OP_R2T);
	bhs = peer.bhs;
	itt = peer_tmf_send(&peer, ISCSI_TMF_ABORT_TASK_SET, 1, NONE, 0);
	newer = stuck_write(&peer, 9, data);
	PEER_SILENT(&peer);
	rig_release(&rig);
	for (int i = 0; i < 2; i++) {
		int opcode = peer_recv(&peer, PEER_SOON_MS);

		CU_ASSERT_TRUE(opcode == ISCSI_OP_TMF_RSP || opcode == ISCSI_OP_SCSI_RSP);
		CU_ASSERT_EQUAL(be32_get(&peer.bhs.hdr.itt),
				opcode == ISCSI_OP_TMF_RSP ? itt : newer);
	}
	peer_data_out(&peer, &bhs, data, 512);
	CU_ASSERT_EQUAL(peer_status(&peer, other), SCSI_GOOD);
	end(&rig, &peer);
}

/* Two sessions: each has a stuck write and one that waits for data. */
struct two {
	struct rig rig;
	struct peer peer[2];
	uint8_t data[RIG_BLOCK];
};

static void two_begin(struct two *t)
{
	struct iscsi_bhs bhs;

	memset(t->data, 3, sizeof(t->data));
	rig_open(&t->rig);
	for (uint8_t i = 0; i < 2; i++)
		peer_open_as(&t->peer[i], &t->rig, i, "");
	rig_fault(&t->rig, 1u << BK_WRITE, FAULT_STUCK, 0);
	for (uint32_t i = 0; i < 2; i++) {
		stuck_write(&t->peer[i], i, t->data);
		cmd_write(&bhs, 1, 10 + i, 1);
		peer_command(&t->peer[i], &bhs, NULL, 0);
		PEER_EXPECT(&t->peer[i], ISCSI_OP_R2T);
	}
}

/* The function of the first ends all of them, without a response to the second,
 * which gets a unit attention. */
static void two_end(struct two *t, uint8_t function, uint32_t sense)
{
	uint32_t itt = peer_tmf_send(&t->peer[0], function, 1, NONE, 0);

	PEER_SILENT(&t->peer[0]);
	rig_release(&t->rig);
	PEER_EXPECT(&t->peer[0], ISCSI_OP_TMF_RSP);
	CU_ASSERT_EQUAL(be32_get(&t->peer[0].bhs.hdr.itt), itt);
	CU_ASSERT_EQUAL(t->peer[0].bhs.tmf_rsp.response, ISCSI_TMF_COMPLETE);
	PEER_SILENT(&t->peer[1]);
	CU_ASSERT_EQUAL(peer_ready(&t->peer[1], 1), SCSI_CHECK_CONDITION);
	CU_ASSERT_EQUAL(peer_sense(&t->peer[1]), sense);
	CU_ASSERT_EQUAL(peer_ready(&t->peer[1], 1), SCSI_GOOD);
	peer_ready(&t->peer[0], 1);
	CU_ASSERT_EQUAL(peer_ready(&t->peer[0], 1), SCSI_GOOD);
	for (int i = 0; i < 2; i++) {
		/* The window is whole again. */
		CU_ASSERT_EQUAL(t->peer[i].max_cmd_sn - t->peer[i].exp_cmd_sn + 1, 32);
		peer_close(&t->peer[i]);
	}
	rig_stop(&t->rig);
}

void lun_reset_ends_the_tasks_of_all_sessions(void)
{
	struct two t;

	two_begin(&t);
	two_end(&t, ISCSI_TMF_LUN_RESET, 0x062903);
}

void clear_task_set_ends_the_tasks_of_all_sessions(void)
{
	struct two t;

	two_begin(&t);
	two_end(&t, ISCSI_TMF_CLEAR_TASK_SET, 0x062f00);
}

void warm_reset_ends_the_tasks_of_all_sessions(void)
{
	struct two t;

	two_begin(&t);
	two_end(&t, ISCSI_TMF_TARGET_WARM_RESET, 0x062903);
}

/* Their tasks end without a word; that nobody takes the answer changes nothing
 * for them. */
void reset_of_a_connection_that_is_gone_is_told_to_the_others(void)
{
	struct two t;

	two_begin(&t);
	peer_tmf_send(&t.peer[0], ISCSI_TMF_LUN_RESET, 1, NONE, 0);
	PEER_SILENT(&t.peer[0]);
	peer_kill(&t.peer[0]);
	rig_sleep_ms(50);
	rig_release(&t.rig);
	CU_ASSERT_TRUE(rig_wait_connections(&t.rig, 1));
	CU_ASSERT_EQUAL(peer_ready(&t.peer[1], 1), SCSI_CHECK_CONDITION);
	CU_ASSERT_EQUAL(peer_sense(&t.peer[1]), 0x062903);
	peer_close(&t.peer[1]);
	rig_stop(&t.rig);
}

/* 4.2.3.3 again: or the initiator would wait for it for ever. */
void warm_reset_leaves_newer_commands(void)
{
	struct iscsi_bhs bhs, request, r2t = { 0 };
	uint8_t pdus[512], data[RIG_BLOCK] = { 0 };
	struct peer peer;
	struct rig rig;
	uint32_t itt;
	size_t n;

	rig_open(&rig);
	peer_open(&peer, &rig, "");
	memset(&request, 0, sizeof(request));
	request.hdr.opcode = ISCSI_OP_TMF_REQ | ISCSI_IMMEDIATE;
	request.tmf_req.function = ISCSI_FINAL | ISCSI_TMF_TARGET_WARM_RESET;
	be32_put(&request.tmf_req.ref_itt, NONE);
	peer_number(&peer, &request);
	cmd_write(&bhs, 0, 0, 1);
	peer_number(&peer, &bhs);
	itt = be32_get(&bhs.hdr.itt);
	n = peer_build(&peer, &request, NULL, 0, NULL, 0, pdus);
	n += peer_build(&peer, &bhs, NULL, 0, NULL, 0, pdus + n);
	peer_write(&peer, pdus, n);
	for (int i = 0; i < 2; i++) {
		int opcode = peer_recv(&peer, PEER_SOON_MS);

		CU_ASSERT_TRUE(opcode == ISCSI_OP_TMF_RSP || opcode == ISCSI_OP_R2T);
		if (opcode == ISCSI_OP_R2T)
			r2t = peer.bhs;
	}
	CU_ASSERT_EQUAL_FATAL(be32_get(&r2t.hdr.itt), itt);
	PEER_SILENT(&peer);
	peer_data_out(&peer, &r2t, data, sizeof(data));
	CU_ASSERT_EQUAL(peer_status(&peer, itt), SCSI_GOOD);
	peer_ready(&peer, 0);
	end(&rig, &peer);
}

/* SAM-5 7.2: the tasks of the other session are none of its business. */
void abort_task_set_leaves_other_sessions(void)
{
	struct two t;

	two_begin(&t);
	peer_tmf_send(&t.peer[0], ISCSI_TMF_ABORT_TASK_SET, 1, NONE, 0);
	PEER_SILENT(&t.peer[0]);
	rig_release(&t.rig);
	PEER_EXPECT(&t.peer[0], ISCSI_OP_TMF_RSP);
	PEER_EXPECT(&t.peer[1], ISCSI_OP_SCSI_RSP);
	CU_ASSERT_EQUAL(t.peer[1].bhs.scsi_rsp.status, SCSI_GOOD);
	CU_ASSERT_EQUAL(peer_ready(&t.peer[1], 1), SCSI_GOOD);
	for (int i = 0; i < 2; i++)
		peer_close(&t.peer[i]);
	rig_stop(&t.rig);
}

/* 11.5.1: all sessions of the target end behind the answer. */
void cold_reset_ends_all_sessions_of_its_target(void)
{
	struct peer other;
	struct two t;

	two_begin(&t);
	peer_init(&other);
	other.target = RIG_OTHER;
	peer_connect(&other, &t.rig);
	CU_ASSERT_EQUAL_FATAL(peer_login(&other, ""), 0);
	peer_tmf_send(&t.peer[0], ISCSI_TMF_TARGET_COLD_RESET, 0, NONE, 0);
	PEER_SILENT(&t.peer[0]);
	rig_release(&t.rig);
	PEER_EXPECT(&t.peer[0], ISCSI_OP_TMF_RSP);
	PEER_GONE(&t.peer[0]);
	PEER_GONE(&t.peer[1]);
	peer_ping(&other);
	for (int i = 0; i < 2; i++)
		peer_close(&t.peer[i]);
	CU_ASSERT_TRUE(rig_wait_sessions(&t.rig, 1));
	peer_close(&other);
	rig_stop(&t.rig);
}

/* 11.6.1 */
void function_for_a_lun_that_is_not_there(void)
{
	struct peer peer;
	struct rig rig;

	rig_open(&rig);
	peer_open(&peer, &rig, "");
	CU_ASSERT_EQUAL(peer_tmf(&peer, ISCSI_TMF_LUN_RESET, 77, NONE, 0), ISCSI_TMF_NO_LUN);
	CU_ASSERT_EQUAL(peer_tmf(&peer, ISCSI_TMF_ABORT_TASK_SET, 77, NONE, 0), ISCSI_TMF_NO_LUN);
	CU_ASSERT_EQUAL(peer_tmf(&peer, ISCSI_TMF_CLEAR_TASK_SET, 77, NONE, 0), ISCSI_TMF_NO_LUN);
	end(&rig, &peer);
}

/* 11.6.1: "task allegiance reassignment not supported". */
void function_that_we_do_not_have(void)
{
	struct peer peer;
	struct rig rig;

	rig_open(&rig);
	peer_open(&peer, &rig, "");
	CU_ASSERT_EQUAL(peer_tmf(&peer, ISCSI_TMF_TASK_REASSIGN, 0, 5, 0), ISCSI_TMF_NO_REASSIGN);
	CU_ASSERT_EQUAL(peer_tmf(&peer, 60, 0, 5, 0), ISCSI_TMF_NOT_SUPPORTED);
	end(&rig, &peer);
}

/* Functions that wait are bounded for each session. */
void functions_that_wait_are_bounded(void)
{
	uint8_t data[RIG_BLOCK] = { 0 };
	unsigned int rejects = 0, answers = 0;
	struct peer peer;
	struct rig rig;

	rig_open(&rig);
	peer_open(&peer, &rig, "");
	rig_fault(&rig, 1u << BK_WRITE, FAULT_STUCK, 0);
	stuck_write(&peer, 0, data);
	for (int i = 0; i < 40; i++)
		peer_tmf_send(&peer, ISCSI_TMF_LUN_RESET, 1, NONE, 0);
	for (; rejects < 24; rejects++)
		PEER_EXPECT(&peer, ISCSI_OP_REJECT);
	CU_ASSERT_EQUAL(peer.bhs.reject.reason, ISCSI_REJECT_TOO_MANY_IMMEDIATE);
	rig_release(&rig);
	for (; answers < 16; answers++)
		PEER_EXPECT(&peer, ISCSI_OP_TMF_RSP);
	end(&rig, &peer);
}

/* Who goes away while a function of its waits. */
void function_of_a_connection_that_is_gone(void)
{
	uint8_t data[RIG_BLOCK] = { 0 };
	struct peer peer;
	struct rig rig;

	rig_open(&rig);
	peer_open(&peer, &rig, "");
	rig_fault(&rig, 1u << BK_WRITE, FAULT_STUCK, 0);
	stuck_write(&peer, 0, data);
	peer_tmf_send(&peer, ISCSI_TMF_LUN_RESET, 1, NONE, 0);
	peer_tmf_send(&peer, ISCSI_TMF_TARGET_COLD_RESET, 1, NONE, 0);
	peer_ping(&peer);
	peer_kill(&peer);
	rig_sleep_ms(50);
	rig_release(&rig);
	CU_ASSERT_TRUE(rig_wait_connections(&rig, 0));
	peer_open(&peer, &rig, "");
	end(&rig, &peer);
}
