/* However bytes come and go: PDUs have no boundaries in TCP. */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tests/pdu/tests.h"

#define DIGESTS "HeaderDigest=CRC32C\nDataDigest=CRC32C\n"

/* The login and all the rest, each byte in a segment of its own. */
void sender_of_single_bytes_is_served(void)
{
	static const char keys[] = "InitiatorName=" RIG_HOST "\0TargetName=" RIG_DISK
				   "\0HeaderDigest=CRC32C\0DataDigest=CRC32C";
	struct iscsi_bhs bhs = { .login_req = { .opcode = 0x43, .flags = 0x87 } };
	uint8_t data[RIG_BLOCK], got[RIG_BLOCK], bytes[RIG_BLOCK + 64];
	struct peer peer;
	struct rig rig;
	size_t len;

	rig_open(&rig);
	peer_init(&peer);
	peer_connect(&peer, &rig);
	be32_put(&bhs.login_req.cmd_sn, peer.cmd_sn);
	len = peer_build(&peer, &bhs, NULL, 0, keys, sizeof(keys), bytes);
	for (size_t i = 0; i < len; i++)
		peer_write(&peer, bytes + i, 1);
	CU_ASSERT_EQUAL_FATAL(peer_login_recv(&peer, PEER_SOON_MS), 0);
	CU_ASSERT_TRUE(peer.header_digest && peer.data_digest);
	peer_ready(&peer, 0);
	pattern(data, sizeof(data), 2);
	cmd_write(&bhs, 0, 7, 1);
	peer_number(&peer, &bhs);
	len = peer_build(&peer, &bhs, NULL, 0, data, sizeof(data), bytes);
	for (size_t i = 0; i < len; i++)
		peer_write(&peer, bytes + i, 1);
	CU_ASSERT_EQUAL(peer_status(&peer, be32_get(&bhs.hdr.itt)), SCSI_GOOD);
	CU_ASSERT_EQUAL(peer_read_blocks(&peer, 0, 7, 1, got), SCSI_GOOD);
	CU_ASSERT_EQUAL(memcmp(got, data, sizeof(got)), 0);
	peer_close(&peer);
	rig_stop(&rig);
}

/* A write and a ping with padding, cut in two at each byte. */
void pdu_split_anywhere_is_put_together(void)
{
	uint8_t data[RIG_BLOCK], got[RIG_BLOCK], bytes[RIG_BLOCK + 256];
	struct iscsi_bhs bhs, nop = { .nop_out = { .opcode = 0x40, .flags = 0x80 } };
	struct peer peer;
	struct rig rig;
	size_t len = 1;

	rig_open(&rig);
	peer_open(&peer, &rig, DIGESTS);
	be32_put(&nop.nop_out.ttt, ISCSI_TAG_RESERVED);
	for (size_t cut = 1; cut < len || len == 1; cut++) {
		pattern(data, sizeof(data), (uint32_t)cut);
		cmd_write(&bhs, 0, (uint32_t)cut, 1);
		peer_number(&peer, &bhs);
		peer_number(&peer, &nop);
		len = peer_build(&peer, &bhs, NULL, 0, data, sizeof(data), bytes);
		len += peer_build(&peer, &nop, NULL, 0, "hello", 5, bytes + len);
		peer_write(&peer, bytes, cut);
		rig_sleep_ms(cut % 8 == 0);
		peer_write(&peer, bytes + cut, len - cut);
		for (int i = 0; i < 2; i++) {
			int opcode = peer_recv(&peer, PEER_SOON_MS);

			CU_ASSERT_FATAL(opcode == ISCSI_OP_NOP_IN || opcode == ISCSI_OP_SCSI_RSP);
			if (opcode == ISCSI_OP_SCSI_RSP)
				CU_ASSERT_EQUAL(peer.bhs.scsi_rsp.status, SCSI_GOOD);
			if (opcode == ISCSI_OP_NOP_IN)
				CU_ASSERT_EQUAL(memcmp(peer.data, "hello", 5), 0);
		}
		CU_ASSERT_EQUAL(peer_read_blocks(&peer, 0, (uint32_t)cut, 1, got), SCSI_GOOD);
		CU_ASSERT_EQUAL_FATAL(memcmp(got, data, sizeof(got)), 0);
	}
	peer_close(&peer);
	rig_stop(&rig);
}

/* Data-Out of an R2T cut in three, so that the middle is received straight into
 * its buffer. */
void data_out_split_anywhere_is_put_together(void)
{
	enum { LEN = 65536 };
	static uint8_t data[LEN], got[LEN], bytes[LEN + 64];
	static const size_t cuts[] = { 1, 47, 48, 51, 52, 53, 20000, 65500, LEN + 51, LEN + 55 };
	struct iscsi_bhs bhs;
	struct peer peer;
	struct rig rig;
	uint32_t itt;

	rig_open(&rig);
	peer_open(&peer, &rig, DIGESTS);
	for (size_t i = 0; i + 1 < ARRAY_LEN(cuts); i++) {
		pattern(data, LEN, (uint32_t)i);
		cmd_write(&bhs, 0, 0, LEN / RIG_BLOCK);
		itt = peer_command(&peer, &bhs, NULL, 0);
		PEER_EXPECT(&peer, ISCSI_OP_R2T);
		bhs = peer_data_out_pdu(&peer.bhs, 0, 0, true);
		CU_ASSERT_EQUAL(peer_build(&peer, &bhs, NULL, 0, data, LEN, bytes), LEN + 56);
		peer_write(&peer, bytes, cuts[i]);
		rig_sleep_ms(2);
		peer_write(&peer, bytes + cuts[i], cuts[i + 1] - cuts[i]);
		rig_sleep_ms(2);
		peer_write(&peer, bytes + cuts[i + 1], LEN + 56 - cuts[i + 1]);
		CU_ASSERT_EQUAL(peer_status(&peer, itt), SCSI_GOOD);
		CU_ASSERT_EQUAL(peer_read_blocks(&peer, 0, 0, LEN / RIG_BLOCK, got), SCSI_GOOD);
		CU_ASSERT_EQUAL(memcmp(got, data, LEN), 0);
	}
	peer_close(&peer);
	rig_stop(&rig);
}

static void stall(struct reactor_msg *msg)
{
	(void)msg;
	rig_sleep_ms(100);
}

/* More than one receive takes; each command writes from where it was received. */
void writes_of_several_receives_reach_a_file_in_memory(void)
{
	enum { N = 24, BLOCKS = 32, LEN = BLOCKS * RIG_BLOCK, ROUNDS = 8 };
	static uint8_t data[N][LEN], got[LEN], bytes[N * (LEN + 64)];
	struct reactor_msg msgs[ROUNDS][2]; /* a message is its receiver's */
	struct iscsi_bhs bhs;
	struct peer peer;
	struct rig rig;

	if (access("/dev/shm", W_OK) != 0)
		test_skip("no file system in memory at /dev/shm");
	rig_prepare(&rig);
	rig.file_dir = "/dev/shm";
	rig_start(&rig);
	peer_open(&peer, &rig, "");
	for (uint32_t round = 0; round < ROUNDS; round++) {
		size_t len = 0;

		for (uint32_t i = 0; i < N; i++) {
			pattern(data[i], LEN, round * N + i);
			cmd_write(&bhs, 2, i * BLOCKS, BLOCKS);
			peer_number(&peer, &bhs);
			len += peer_build(&peer, &bhs, NULL, 0, data[i], LEN, bytes + len);
		}
		/* All of it is there when the target looks. */
		for (unsigned int i = 0; i < 2; i++) {
			msgs[round][i] = (struct reactor_msg){ .run = stall };
			reactor_send(rig.reactor[i], &msgs[round][i]);
		}
		peer_write(&peer, bytes, len);
		for (int i = 0; i < N; i++) {
			PEER_EXPECT(&peer, ISCSI_OP_SCSI_RSP);
			CU_ASSERT_EQUAL(peer.bhs.scsi_rsp.status, SCSI_GOOD);
		}
		for (uint32_t i = 0; i < N; i++) {
			CU_ASSERT_EQUAL(peer_read_blocks(&peer, 2, i * BLOCKS, BLOCKS, got),
					SCSI_GOOD);
			CU_ASSERT_EQUAL(memcmp(got, data[i], LEN), 0);
		}
	}
	peer_close(&peer);
	rig_stop(&rig);
}

static uint64_t iterations(const struct rig *rig)
{
	struct reactor_stats stats;

	reactor_stats(rig->reactor[0], &stats);
	return stats.iterations;
}

/* ExpStatSN tells that it has 16 answers more to look at; it sends a command each
 * 0.1 ms or so. */
void commands_of_an_initiator_that_is_behind_are_gathered(void)
{
	enum { ROUNDS = 40, N = 8 };
	const struct timespec pause = { .tv_nsec = 100000 };
	struct iscsi_bhs bhs;
	struct peer peer;
	struct rig rig;
	uint64_t begin;

	rig_prepare(&rig);
	rig.nreactors = 1;
	rig.settings.batch_us = 1000;
	rig_start(&rig);
	peer_open(&peer, &rig, "");
	begin = iterations(&rig);
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < N; i++) {
			cmd_read(&bhs, 0, 0, 1);
			peer_number(&peer, &bhs);
			be32_put(&bhs.scsi_cmd.exp_stat_sn, peer.exp_stat_sn - 16);
			peer_send(&peer, &bhs, NULL, 0);
			nanosleep(&pause, NULL);
		}
		for (int i = 0; i < N; i++)
			PEER_EXPECT(&peer, ISCSI_OP_DATA_IN);
	}
	CU_ASSERT_TRUE(iterations(&rig) - begin < ROUNDS * N / 2);
	peer_close(&peer);
	rig_stop(&rig);
}

void pdus_in_one_segment_are_all_served(void)
{
	enum { N = 30 };
	static uint8_t bytes[N * (RIG_BLOCK + 64)];
	uint8_t data[RIG_BLOCK], got[RIG_BLOCK];
	struct iscsi_bhs bhs;
	struct peer peer;
	struct rig rig;
	size_t len = 0;

	rig_open(&rig);
	peer_open(&peer, &rig, DIGESTS);
	for (uint32_t i = 0; i < N; i++) {
		pattern(data, sizeof(data), i);
		cmd_write(&bhs, i % 2 ? 2 : 0, i, 1);
		peer_number(&peer, &bhs);
		len += peer_build(&peer, &bhs, NULL, 0, data, sizeof(data), bytes + len);
	}
	peer_write(&peer, bytes, len);
	for (int i = 0; i < N; i++) {
		PEER_EXPECT(&peer, ISCSI_OP_SCSI_RSP);
		CU_ASSERT_EQUAL(peer.bhs.scsi_rsp.status, SCSI_GOOD);
	}
	for (uint32_t i = 0; i < N; i++) {
		pattern(data, sizeof(data), i);
		CU_ASSERT_EQUAL(peer_read_blocks(&peer, i % 2 ? 2 : 0, i, 1, got), SCSI_GOOD);
		CU_ASSERT_EQUAL(memcmp(got, data, sizeof(data)), 0);
	}
	peer_close(&peer);
	rig_stop(&rig);
}

/* Both requests of a login at once, without waiting for the first answer. */
void login_pdus_in_one_segment_are_all_served(void)
{
	static const char keys[] = "InitiatorName=" RIG_HOST "\0TargetName=" RIG_DISK;
	struct iscsi_bhs bhs = { .login_req = { .opcode = 0x43, .flags = 0x81 } };
	uint8_t bytes[512];
	struct peer peer;
	struct rig rig;
	size_t len;

	rig_open(&rig);
	for (int round = 0; round < 4; round++) {
		peer_init(&peer);
		peer_connect(&peer, &rig);
		bhs.login_req.flags = 0x81;
		bhs.login_req.isid[0] = 0x80;
		bhs.login_req.isid[5] = (uint8_t)round;
		be32_put(&bhs.login_req.cmd_sn, peer.cmd_sn);
		len = peer_build(&peer, &bhs, NULL, 0, keys, sizeof(keys), bytes);
		bhs.login_req.flags = 0x87;
		len += peer_build(&peer, &bhs, NULL, 0, NULL, 0, bytes + len);
		peer_write(&peer, bytes, len);
		PEER_EXPECT(&peer, ISCSI_OP_LOGIN_RSP);
		CU_ASSERT_EQUAL(peer.bhs.login_rsp.flags, 0x81);
		CU_ASSERT_EQUAL_FATAL(peer_login_recv(&peer, PEER_SOON_MS), 0);
		CU_ASSERT_EQUAL(peer_ready(&peer, 0), SCSI_CHECK_CONDITION);
		CU_ASSERT_EQUAL(peer_ready(&peer, 0), SCSI_GOOD);
		peer_close(&peer);
	}
	rig_stop(&rig);
}

void padding_in_a_later_segment_is_awaited(void)
{
	struct iscsi_bhs bhs = { .nop_out = { .opcode = 0x40, .flags = 0x80 } };
	uint8_t bytes[128];
	struct peer peer;
	struct rig rig;
	size_t len;

	rig_open(&rig);
	peer_open(&peer, &rig, "");
	be32_put(&bhs.nop_out.ttt, ISCSI_TAG_RESERVED);
	peer_number(&peer, &bhs);
	len = peer_build(&peer, &bhs, NULL, 0, "abcde", 5, bytes);
	CU_ASSERT_EQUAL(len, 56);
	peer_write(&peer, bytes, 53);
	PEER_SILENT(&peer);
	peer_write(&peer, bytes + 53, 2);
	PEER_SILENT(&peer);
	peer_write(&peer, bytes + 55, 1);
	PEER_EXPECT(&peer, ISCSI_OP_NOP_IN);
	CU_ASSERT_EQUAL(peer.data_len, 5);
	CU_ASSERT_EQUAL(peer_ready(&peer, 0), SCSI_GOOD);
	peer_close(&peer);
	rig_stop(&rig);
}

/* It asks for much, does not read for a while and pings in between: then it
 * gets everything, with each digest right, though sends were cut anywhere. */
void reader_that_comes_late_gets_everything(void)
{
	enum { N = 24, BLOCKS = 1500 };
	uint32_t got[N] = { 0 }, first, ended = 0, pings = 0;
	uint8_t *data = malloc(BLOCKS * RIG_BLOCK);
	struct iscsi_bhs bhs, nop = { .nop_out = { .opcode = 0x40, .flags = 0x80 } };
	struct peer peer;
	struct rig rig;

	rig_open(&rig);
	peer_open(&peer, &rig, DIGESTS "MaxRecvDataSegmentLength=50004\n");
	pattern(data, BLOCKS * RIG_BLOCK, 6);
	CU_ASSERT_EQUAL(peer_write_blocks(&peer, 0, 0, BLOCKS, data), SCSI_GOOD);
	be32_put(&nop.nop_out.ttt, ISCSI_TAG_RESERVED);
	first = peer.itt;
	for (int i = 0; i < N; i++) {
		cmd_read(&bhs, 0, 0, BLOCKS);
		peer_command(&peer, &bhs, NULL, 0);
	}
	rig_sleep_ms(100);
	for (; pings < 20; pings++) {
		peer_number(&peer, &nop);
		peer_send(&peer, &nop, "ping!", 5);
		rig_sleep_ms(1);
	}
	while (ended < N || pings > 0) {
		int opcode = peer_recv(&peer, PEER_SOON_MS);
		uint32_t which = be32_get(&peer.bhs.hdr.itt) - first;

		CU_ASSERT_FATAL(opcode == ISCSI_OP_NOP_IN || opcode == ISCSI_OP_DATA_IN);
		if (opcode == ISCSI_OP_NOP_IN) {
			pings--;
			continue;
		}
		CU_ASSERT_FATAL(which < N);
		CU_ASSERT_EQUAL_FATAL(be32_get(&peer.bhs.data_in.buffer_off), got[which]);
		CU_ASSERT_EQUAL(memcmp(peer.data, data + got[which], peer.data_len), 0);
		got[which] += peer.data_len;
		if (peer.bhs.hdr.flags & ISCSI_DATA_IN_STATUS)
			ended++;
	}
	for (int i = 0; i < N; i++)
		CU_ASSERT_EQUAL(got[i], BLOCKS * RIG_BLOCK);
	peer_close(&peer);
	rig_stop(&rig);
	free(data);
}

/* ---- those who never log in ---- */

/* More than max-logins half-open connections: the oldest make room. */
void flood_of_idle_connections_keeps_nobody_out(void)
{
	enum { N = 2000 };
	static struct peer flood[N];
	struct rlimit limit;
	struct peer peer;
	struct rig rig;
	uint64_t begin;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_cur < 2 * N + 200)
		test_skip("only %lu open files", (unsigned long)limit.rlim_cur);
	rig_prepare(&rig);
	rig.settings.max_logins = 1024;
	rig_start(&rig);
	for (int i = 0; i < N; i++) {
		peer_init(&flood[i]);
		flood[i].data = malloc(1);
		peer_connect(&flood[i], &rig);
		if (i % 2)
			peer_write(&flood[i], "\x43\x87\0\0", 4);
	}
	begin = rig_now_ms();
	peer_open(&peer, &rig, "");
	CU_ASSERT_TRUE(rig_now_ms() - begin < 1000);
	CU_ASSERT_EQUAL(peer_ready(&peer, 0), SCSI_GOOD);
	for (int i = 0; i < N; i++)
		peer_close(&flood[i]);
	peer_ping(&peer);
	peer_close(&peer);
	rig_stop(&rig);
}

void login_that_takes_too_long_is_ended(void)
{
	struct peer slow, peer;
	struct rig rig;
	uint64_t begin;

	rig_prepare(&rig);
	rig.settings.login_timeout = 1;
	rig_start(&rig);
	peer_init(&slow);
	begin = rig_now_ms();
	peer_connect(&slow, &rig);
	peer_write(&slow, "\x43\x87\0\0\0\0\0", 7);
	peer_open(&peer, &rig, "");
	PEER_GONE(&slow);
	CU_ASSERT_TRUE(rig_now_ms() - begin >= 900 && rig_now_ms() - begin < 3000);
	/* Who has logged in has no such time. */
	rig_sleep_ms(300);
	CU_ASSERT_EQUAL(peer_ready(&peer, 0), SCSI_GOOD);
	peer_close(&slow);
	peer_close(&peer);
	rig_stop(&rig);
}
