/* Sessions beside and after each other: RFC 7143 6.3.5, 4.4.3. */
#include <string.h>

#include "tests/pdu/tests.h"

static void stuck_write(struct peer *peer, const uint8_t *data)
{
	struct iscsi_bhs bhs;

	cmd_write(&bhs, 1, 0, 1);
	peer_command(peer, &bhs, data, RIG_BLOCK);
	peer_ping(peer);
}

void session_that_logs_in_again_ends_the_old_one(void)
{
	struct peer old, new;
	struct rig rig;

	rig_open(&rig);
	peer_open(&old, &rig, "");
	peer_open(&new, &rig, "");
	PEER_GONE(&old);
	CU_ASSERT_TRUE(rig_wait_sessions(&rig, 1));
	CU_ASSERT_EQUAL(peer_ready(&new, 0), SCSI_GOOD);
	peer_close(&old);
	peer_close(&new);
	rig_stop(&rig);
}

/* 6.3.5: with the TSIH of the session, it is that session that comes again. */
void session_that_logs_in_again_by_its_handle(void)
{
	struct peer old, new;
	struct rig rig;

	rig_open(&rig);
	peer_open(&old, &rig, "");
	peer_init(&new);
	new.tsih = old.tsih;
	peer_connect(&new, &rig);
	CU_ASSERT_EQUAL_FATAL(peer_login(&new, ""), 0);
	PEER_GONE(&old);
	CU_ASSERT_EQUAL(peer_ready(&new, 0), SCSI_CHECK_CONDITION);
	CU_ASSERT_TRUE(rig_wait_sessions(&rig, 1));
	peer_close(&old);
	peer_close(&new);
	rig_stop(&rig);
}

/* The old session's write may not reach the store behind the new login. */
void session_that_logs_in_again_fences_old_writes(void)
{
	uint8_t before[RIG_BLOCK], after[RIG_BLOCK], got[RIG_BLOCK];
	struct peer old, new;
	struct rig rig;

	rig_open(&rig);
	peer_open(&old, &rig, "");
	pattern(before, sizeof(before), 1);
	pattern(after, sizeof(after), 2);
	rig_fault(&rig, 1u << BK_WRITE, FAULT_STUCK, 0);
	stuck_write(&old, before);
	peer_init(&new);
	peer_connect(&new, &rig);
	peer_login_send(&new, "");
	PEER_GONE(&old);
	CU_ASSERT_EQUAL(peer_recv(&new, 500), PEER_NOTHING);
	rig_release(&rig);
	CU_ASSERT_EQUAL_FATAL(peer_login_recv(&new, 1000), 0);
	peer_ready(&new, 1);
	CU_ASSERT_EQUAL(peer_write_blocks(&new, 1, 0, 1, after), SCSI_GOOD);
	rig_sleep_ms(50);
	CU_ASSERT_EQUAL(peer_read_blocks(&new, 1, 0, 1, got), SCSI_GOOD);
	CU_ASSERT_EQUAL(memcmp(got, after, sizeof(got)), 0);
	peer_close(&old);
	peer_close(&new);
	rig_stop(&rig);
}

/* Another target error than "unavailable" would make initiators give up. */
void session_whose_old_writes_do_not_end_is_refused(void)
{
	uint8_t data[RIG_BLOCK] = { 0 };
	struct peer old, new, third;
	struct rig rig;
	uint64_t begin;

	rig_open(&rig);
	peer_open(&old, &rig, "");
	rig_fault(&rig, 1u << BK_WRITE, FAULT_STUCK, 0);
	stuck_write(&old, data);
	peer_init(&new);
	peer_connect(&new, &rig);
	begin = rig_now_ms();
	peer_login_send(&new, "");
	/* A third one finds the place taken. */
	rig_sleep_ms(50);
	peer_init(&third);
	peer_connect(&third, &rig);
	CU_ASSERT_EQUAL(peer_login(&third, ""), ISCSI_LOGIN_UNAVAILABLE);
	peer_close(&third);
	CU_ASSERT_EQUAL(peer_login_recv(&new, 8000), ISCSI_LOGIN_UNAVAILABLE);
	CU_ASSERT_TRUE(rig_now_ms() - begin >= 4500 && rig_now_ms() - begin < 7000);
	peer_close(&new);
	rig_release(&rig);
	CU_ASSERT_TRUE(rig_wait_sessions(&rig, 0));
	peer_open(&new, &rig, "");
	peer_close(&old);
	peer_close(&new);
	rig_stop(&rig);
}

/* The one that waits for the old session goes away itself. */
void session_that_gives_up_waiting_leaves_nothing(void)
{
	uint8_t data[RIG_BLOCK] = { 0 };
	struct peer old, new;
	struct rig rig;

	rig_open(&rig);
	peer_open(&old, &rig, "");
	rig_fault(&rig, 1u << BK_WRITE, FAULT_STUCK, 0);
	stuck_write(&old, data);
	for (int i = 0; i < 3; i++) {
		peer_init(&new);
		peer_connect(&new, &rig);
		peer_login_send(&new, "");
		rig_sleep_ms(50);
		peer_kill(&new);
		rig_sleep_ms(50);
	}
	rig_release(&rig);
	PEER_GONE(&old);
	peer_close(&old);
	CU_ASSERT_TRUE(rig_wait_connections(&rig, 0));
	peer_open(&new, &rig, "");
	peer_close(&new);
	rig_stop(&rig);
}

/* 4.4.3.1: another ISID is another nexus. */
void sessions_with_different_isids_live_together(void)
{
	struct peer peer[4];
	struct rig rig;

	rig_open(&rig);
	for (uint8_t i = 0; i < 4; i++)
		peer_open_as(&peer[i], &rig, i, "");
	for (int i = 0; i < 4; i++) {
		CU_ASSERT_EQUAL(peer_ready(&peer[i], 0), SCSI_GOOD);
		for (int j = 0; j < i; j++)
			CU_ASSERT_NOT_EQUAL(peer[i].tsih, peer[j].tsih);
	}
	CU_ASSERT_TRUE(rig_wait_sessions(&rig, 4));
	for (int i = 0; i < 4; i++)
		peer_close(&peer[i]);
	rig_stop(&rig);
}

/* The same ISID at another target, or of another initiator. */
void sessions_with_different_names_live_together(void)
{
	struct peer disk, other, host;
	struct rig rig;

	rig_open(&rig);
	peer_open(&disk, &rig, "");
	peer_init(&other);
	other.target = RIG_OTHER;
	peer_connect(&other, &rig);
	CU_ASSERT_EQUAL_FATAL(peer_login(&other, ""), 0);
	peer_init(&host);
	host.host = RIG_IQN "another";
	peer_connect(&host, &rig);
	CU_ASSERT_EQUAL_FATAL(peer_login(&host, ""), 0);
	peer_ping(&disk);
	peer_ping(&other);
	peer_ping(&host);
	peer_close(&disk);
	peer_close(&other);
	peer_close(&host);
	rig_stop(&rig);
}

/* 6.3.1, 11.13.5: 020Ah. */
void session_that_is_not_there_is_not_found(void)
{
	struct peer peer;
	struct rig rig;

	rig_open(&rig);
	peer_init(&peer);
	peer.tsih = 0x1234;
	peer_connect(&peer, &rig);
	CU_ASSERT_EQUAL(peer_login(&peer, ""), ISCSI_LOGIN_NO_SESSION);
	PEER_GONE(&peer);
	peer_close(&peer);
	rig_stop(&rig);
}

/* MaxConnections is 1: 0206h. */
void session_takes_no_second_connection(void)
{
	struct peer peer, second;
	struct rig rig;

	rig_open(&rig);
	peer_open(&peer, &rig, "");
	peer_init(&second);
	second.tsih = peer.tsih;
	second.cid = 2;
	peer_connect(&second, &rig);
	CU_ASSERT_EQUAL(peer_login(&second, ""), ISCSI_LOGIN_TOO_MANY_CONNECTIONS);
	peer_ping(&peer);
	peer_close(&second);
	peer_close(&peer);
	rig_stop(&rig);
}

/* Reads, writes, R2Ts and Data-Out of every kind in flight at its end. */
static void busy_commands(struct peer *peer, uint32_t round)
{
	static uint8_t data[65536];
	struct iscsi_bhs bhs;

	for (uint32_t i = 0; i < 6; i++) {
		cmd_read(&bhs, i % 3 == 2 ? 2 : (uint16_t)(i % 3), i * 512, 512);
		peer_command(peer, &bhs, NULL, 0);
		cmd_write(&bhs, (uint16_t)(i % 3), i * 256, 256);
		peer_command(peer, &bhs, data, i % 2 ? 8192 : 0);
	}
	for (uint32_t i = 0; i < round % 20; i++) {
		int opcode = peer_recv(peer, 100);

		if (opcode < 0)
			return;
		if (opcode != ISCSI_OP_R2T)
			continue;
		bhs = peer_data_out_pdu(&peer->bhs, 0, be32_get(&peer->bhs.r2t.buffer_off), false);
		peer_send(peer, &bhs, data, 20000 + round);
	}
}

void connection_killed_during_io_leaves_nothing(void)
{
	struct peer peer;
	struct rig rig;

	rig_open(&rig);
	rig_fault(&rig, 1u << BK_WRITE | 1u << BK_READ, FAULT_DELAY, 3);
	for (uint32_t round = 0; round < 60; round++) {
		peer_init(&peer);
		peer.isid[5] = (uint8_t)(round % 3);
		peer_connect(&peer, &rig);
		CU_ASSERT_EQUAL_FATAL(peer_login(&peer, round % 2 ? ""
								  : "HeaderDigest=CRC32C\n"
								    "DataDigest=CRC32C\n"),
				      0);
		busy_commands(&peer, round);
		if (round % 4 == 0)
			peer_close(&peer);
		else
			peer_kill(&peer);
	}
	rig_release(&rig);
	CU_ASSERT_TRUE(rig_wait_connections(&rig, 0));
	peer_open(&peer, &rig, "");
	CU_ASSERT_EQUAL(peer_ready(&peer, 0), SCSI_GOOD);
	peer_close(&peer);
	rig_stop(&rig);
}
