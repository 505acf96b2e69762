/* Pools that are too small for what peers want: nothing hangs, nobody else pays. */
#include <poll.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "tests/pdu/tests.h"

/* One initiator that has as many large commands open as its window allows. */
struct load {
	struct peer peer;
	uint32_t left, open, full;
	bool reads;
};

enum { LOAD_BLOCKS = 4096, LOAD_COMMANDS = 12, LOADS = 6 };

static uint8_t *load_data;

static void load_send(struct load *load, unsigned int who)
{
	struct iscsi_bhs bhs;

	while (load->left > 0 && load->open < 6 &&
	       (int32_t)(load->peer.max_cmd_sn - load->peer.cmd_sn) >= 0) {
		uint32_t lba = who * LOAD_BLOCKS;

		if (load->reads)
			cmd_read(&bhs, 0, lba, LOAD_BLOCKS);
		else
			cmd_write(&bhs, 0, lba, LOAD_BLOCKS);
		peer_command(&load->peer, &bhs, load_data, load->reads ? 0 : 8192);
		load->left--;
		load->open++;
	}
}

/* Takes one PDU, answers an R2T. */
static void load_step(struct load *load)
{
	struct peer *peer = &load->peer;
	int opcode = peer_recv(peer, PEER_SOON_MS);
	uint8_t status = SCSI_GOOD;

	if (opcode == ISCSI_OP_R2T) {
		peer_data_out(peer, &peer->bhs, load_data, 262144);
		return;
	}
	if (opcode == ISCSI_OP_DATA_IN) {
		uint32_t off = be32_get(&peer->bhs.data_in.buffer_off);

		CU_ASSERT_EQUAL(memcmp(peer->data, load_data + off, peer->data_len), 0);
		if (!(peer->bhs.hdr.flags & ISCSI_DATA_IN_STATUS))
			return;
	} else {
		CU_ASSERT_EQUAL_FATAL(opcode, ISCSI_OP_SCSI_RSP);
		status = peer->bhs.scsi_rsp.status;
	}
	CU_ASSERT_TRUE(status == SCSI_GOOD || status == SCSI_TASK_SET_FULL);
	load->full += status == SCSI_TASK_SET_FULL;
	load->open--;
}

/* True when there is more to do. */
static bool loads_run(struct load *loads)
{
	struct pollfd fds[LOADS];
	bool more = false;

	for (unsigned int i = 0; i < LOADS; i++) {
		load_send(&loads[i], i);
		more |= loads[i].open > 0;
		fds[i] = (struct pollfd){ .fd = loads[i].open > 0 ? loads[i].peer.fd : -1,
					  .events = POLLIN };
	}
	if (!more)
		return false;
	CU_ASSERT_FATAL(poll(fds, LOADS, PEER_SOON_MS) > 0);
	for (unsigned int i = 0; i < LOADS; i++)
		if (fds[i].revents)
			load_step(&loads[i]);
	return true;
}

/* 36 commands of 2 MiB at a time on a pool of 64 MiB, half of them writes. */
void buffers_that_run_low_fail_no_command(void)
{
	static struct load loads[LOADS];
	uint64_t begin_ms;
	struct rig rig;
	uint32_t full = 0;

	load_data = malloc(LOAD_BLOCKS * RIG_BLOCK);
	pattern(load_data, LOAD_BLOCKS * RIG_BLOCK, 3);
	rig_prepare(&rig);
	rig.nreactors = 1;
	rig_start(&rig);
	memset(loads, 0, sizeof(loads));
	for (uint8_t i = 0; i < LOADS; i++) {
		peer_open_as(&loads[i].peer, &rig, i,
			     "MaxRecvDataSegmentLength=262144\n"
			     "MaxOutstandingR2T=2\n");
		loads[i].left = LOAD_COMMANDS;
		loads[i].reads = i % 2;
		CU_ASSERT_EQUAL(peer_write_blocks(&loads[i].peer, 0, i * LOAD_BLOCKS, LOAD_BLOCKS,
						  load_data),
				SCSI_GOOD);
	}
	begin_ms = rig_now_ms();
	while (loads_run(loads))
		;
	begin_ms = rig_now_ms() - begin_ms;
	for (int i = 0; i < LOADS; i++) {
		full += loads[i].full;
		CU_ASSERT_EQUAL(loads[i].left, 0);
		peer_ping(&loads[i].peer);
		peer_close(&loads[i].peer);
	}
	/* Four seconds without a buffer end in TASK SET FULL; that is the last
	 * resort, which only a machine that is very busy lets this see. */
	CU_ASSERT(full == 0 || begin_ms >= 4000);
	rig_stop(&rig);
	free(load_data);
}

/* Peers that ask for much and read nothing, and others that promise data and do
 * not send it, keep nobody else from its I/O. */
void buffers_held_by_silent_peers_leave_room(void)
{
	static uint8_t data[65536];
	struct iscsi_bhs bhs;
	struct peer silent[4], peer;
	struct rig rig;

	rig_prepare(&rig);
	rig.nreactors = 1;
	rig_start(&rig);
	for (uint8_t i = 0; i < 4; i++) {
		peer_open_as(&silent[i], &rig, i, "");
		for (uint32_t j = 0; j < 10; j++) {
			if (i % 2)
				cmd_read(&bhs, 0, 0, 8192);
			else
				cmd_write(&bhs, 0, 0, 8192);
			peer_command(&silent[i], &bhs, NULL, 0);
		}
	}
	rig_sleep_ms(100);
	peer_open_as(&peer, &rig, 9, "");
	for (int i = 0; i < 5; i++) {
		CU_ASSERT_EQUAL(peer_write_blocks(&peer, 2, 0, 128, data), SCSI_GOOD);
		CU_ASSERT_EQUAL(peer_read_blocks(&peer, 2, 0, 128, data), SCSI_GOOD);
	}
	for (int i = 0; i < 4; i++)
		peer_kill(&silent[i]);
	CU_ASSERT_EQUAL(peer_write_blocks(&peer, 2, 0, 128, data), SCSI_GOOD);
	peer_close(&peer);
	rig_stop(&rig);
}

/* More than the pool can serve: whoever moves nothing while others wait loses
 * its connection, and its buffers. */
void readers_that_take_nothing_make_room(void)
{
	enum { N = 6 };
	static uint8_t data[1u << 20];
	static struct peer silent[N];
	struct iscsi_bhs bhs;
	struct peer peer;
	struct rig rig;
	uint64_t begin_ms;

	rig_prepare(&rig);
	rig.nreactors = 1;
	rig_start(&rig);
	for (uint8_t i = 0; i < N; i++) {
		peer_open_as(&silent[i], &rig, i, "");
		if (i % 2)
			cmd_read(&bhs, 0, 0, 16384);
		else
			cmd_write(&bhs, 0, 0, 16384);
		peer_command(&silent[i], &bhs, NULL, 0);
	}
	rig_sleep_ms(100);
	peer_open_as(&peer, &rig, N, "");
	begin_ms = rig_now_ms();
	CU_ASSERT_EQUAL(peer_write_blocks(&peer, 2, 0, 64, data), SCSI_GOOD);
	CU_ASSERT(rig_now_ms() - begin_ms < 3000);
	CU_ASSERT_EQUAL(peer_read_blocks(&peer, 0, 0, 2048, data), SCSI_GOOD);
	for (int i = 0; i < N; i++)
		peer_kill(&silent[i]);
	peer_close(&peer);
	rig_stop(&rig);
}

/* 64 slots: one session gets the start, later ones little, then none (0302h). */
void slots_that_run_out_refuse_logins(void)
{
	enum { N = 40 };
	static struct peer peer[N];
	struct rig rig;
	unsigned int n = 0, promised = 0;
	uint16_t status = 0;

	rig_prepare(&rig);
	rig.nreactors = 1;
	rig.settings.command_slots = 64;
	rig_start(&rig);
	for (; n < N && status == 0; n++) {
		peer_init(&peer[n]);
		peer[n].isid[5] = (uint8_t)n;
		peer_connect(&peer[n], &rig);
		status = peer_login(&peer[n], "");
		promised += status ? 0 : peer[n].max_cmd_sn - peer[n].exp_cmd_sn + 1;
	}
	CU_ASSERT_EQUAL(status, ISCSI_LOGIN_OUT_OF_RESOURCES);
	CU_ASSERT_TRUE(n > 2 && n < N);
	CU_ASSERT_TRUE(promised <= rig.settings.command_slots);
	for (unsigned int i = 0; i + 1 < n; i++) {
		peer_ready(&peer[i], 0);
		CU_ASSERT_EQUAL(peer_ready(&peer[i], 0), SCSI_GOOD);
	}
	peer_close(&peer[0]);
	CU_ASSERT_TRUE(rig_wait_sessions(&rig, n - 2));
	peer_close(&peer[n - 1]);
	peer_connect(&peer[n - 1], &rig);
	CU_ASSERT_EQUAL(peer_login(&peer[n - 1], ""), 0);
	for (unsigned int i = 1; i < n; i++)
		peer_close(&peer[i]);
	rig_stop(&rig);
}

/* Immediate commands are outside of the window: they get no slot that somebody
 * is promised, and end with a Reject instead. */
void slots_that_are_promised_are_not_for_immediate_commands(void)
{
	uint8_t data[RIG_BLOCK] = { 0 };
	struct iscsi_bhs bhs;
	struct peer peer;
	struct rig rig;
	unsigned int rejected = 0, ended = 0;

	rig_prepare(&rig);
	rig.nreactors = 1;
	rig.settings.command_slots = 64;
	rig_start(&rig);
	peer_open(&peer, &rig, "");
	rig_fault(&rig, 1u << BK_WRITE, FAULT_STUCK, 0);
	for (int i = 0; i < 60; i++) {
		cmd_write(&bhs, 1, 0, 1);
		bhs.hdr.opcode |= ISCSI_IMMEDIATE;
		peer_command(&peer, &bhs, data, sizeof(data));
	}
	/* 64 slots, 32 of them the window's, one kept back. */
	for (; rejected < 60 - 31; rejected++) {
		PEER_EXPECT(&peer, ISCSI_OP_REJECT);
		CU_ASSERT_EQUAL(peer.bhs.reject.reason, ISCSI_REJECT_TOO_MANY_IMMEDIATE);
	}
	for (int i = 0; i < 32; i++) {
		cmd_write(&bhs, 1, 0, 1);
		peer_command(&peer, &bhs, data, sizeof(data));
	}
	PEER_SILENT(&peer);
	rig_release(&rig);
	for (; ended < 31 + 32; ended++)
		PEER_EXPECT(&peer, ISCSI_OP_SCSI_RSP);
	CU_ASSERT_EQUAL(peer_ready(&peer, 0), SCSI_GOOD);
	peer_close(&peer);
	rig_stop(&rig);
}

/* It pings without ever reading: it is not read any more, or it loses its
 * connection; the others notice nothing. */
void pings_without_a_reader_cost_their_sender_only(void)
{
	static uint8_t data[8192];
	struct iscsi_bhs bhs = { .nop_out = { .opcode = 0x40, .flags = 0x80 } };
	uint8_t *bytes = malloc(sizeof(data) + 64);
	struct peer deaf, peer;
	struct rig rig;
	size_t len, sent = 0;
	ssize_t n = 1;

	rig_prepare(&rig);
	rig.nreactors = 1;
	rig_start(&rig);
	peer_open_as(&deaf, &rig, 1, "");
	peer_open_as(&peer, &rig, 2, "");
	be32_put(&bhs.nop_out.ttt, ISCSI_TAG_RESERVED);
	peer_number(&deaf, &bhs);
	len = peer_build(&deaf, &bhs, NULL, 0, data, sizeof(data), bytes);
	for (int i = 0; i < 20000 && n > 0; i++) {
		struct pollfd out = { .fd = deaf.fd, .events = POLLOUT };
		size_t from = sent % len;

		if (poll(&out, 1, 300) == 0)
			break;
		n = send(deaf.fd, bytes + from, len - from, MSG_DONTWAIT | MSG_NOSIGNAL);
		sent += n > 0 ? (size_t)n : 0;
	}
	CU_ASSERT_TRUE(sent < 20000 * len);
	for (int i = 0; i < 20; i++)
		peer_ping(&peer);
	CU_ASSERT_EQUAL(peer_write_blocks(&peer, 0, 0, 16, data), SCSI_GOOD);
	peer_kill(&deaf);
	peer_close(&peer);
	rig_stop(&rig);
	free(bytes);
}

/* So many in one receive that answers cannot wait: it has to go. */
void pings_beyond_all_bounds_end_their_sender_only(void)
{
	enum { N = 8000 };
	struct iscsi_bhs bhs = { .nop_out = { .opcode = 0x40, .flags = 0x80 } };
	uint8_t *bytes = malloc(N * ISCSI_BHS_LEN);
	struct peer deaf, peer;
	struct rig rig;

	rig_prepare(&rig);
	rig.nreactors = 1;
	rig_start(&rig);
	peer_open_as(&deaf, &rig, 1, "");
	peer_open_as(&peer, &rig, 2, "");
	be32_put(&bhs.nop_out.ttt, ISCSI_TAG_RESERVED);
	peer_number(&deaf, &bhs);
	for (int i = 0; i < N; i++)
		peer_build(&deaf, &bhs, NULL, 0, NULL, 0, bytes + i * ISCSI_BHS_LEN);
	for (int i = 0; i < 20; i++) {
		send(deaf.fd, bytes, N * ISCSI_BHS_LEN, MSG_DONTWAIT | MSG_NOSIGNAL);
		peer_ping(&peer);
	}
	CU_ASSERT_EQUAL(peer_ready(&peer, 0), SCSI_GOOD);
	peer_kill(&deaf);
	peer_close(&peer);
	rig_stop(&rig);
	free(bytes);
}

/* Keeps a reactor from its work for a while. */
struct hold {
	struct reactor_msg msg;
	sem_t begun, end;
};

static void hold_run(struct reactor_msg *msg)
{
	struct hold *hold = container_of(msg, struct hold, msg);

	sem_post(&hold->begun);
	sem_wait(&hold->end);
}

/* The answers to pings are as many as may wait, and what breaks the protocol
 * then has no answer left: the command ends with its connection. */
void data_out_behind_a_flood_of_pings_ends_its_sender_only(void)
{
	enum { N = 2048 }; /* answers that a connection may owe */
	struct iscsi_bhs ping = { .nop_out = { .opcode = 0x40, .flags = 0x80 } }, write, wrong;
	uint8_t *bytes = malloc((N + 2) * ISCSI_BHS_LEN + RIG_BLOCK);
	uint8_t *data = calloc(1, 8 << 20);
	struct hold hold = { .msg.run = hold_run };
	struct peer deaf, peer;
	struct rig rig;
	size_t len;

	rig_prepare(&rig);
	rig.nreactors = 1;
	rig_start(&rig);
	peer_open_as(&deaf, &rig, 1, "");
	peer_open_as(&peer, &rig, 2, "");
	/* The receive buffer of the socket grows with use. */
	for (uint32_t i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(peer_write_blocks(&deaf, 0, 0, 16384, data), SCSI_GOOD);
	cmd_write(&write, 0, 0, 1);
	peer_command(&deaf, &write, NULL, 0);
	PEER_EXPECT(&deaf, ISCSI_OP_R2T);
	wrong = peer_data_out_pdu(&deaf.bhs, 9, 0, true);
	be32_put(&ping.nop_out.ttt, ISCSI_TAG_RESERVED);
	peer_number(&deaf, &ping);
	for (int i = 0; i < N; i++)
		peer_build(&deaf, &ping, NULL, 0, NULL, 0, bytes + i * ISCSI_BHS_LEN);
	len = peer_build(&deaf, &wrong, NULL, 0, data, RIG_BLOCK, bytes + N * ISCSI_BHS_LEN);
	sem_init(&hold.begun, 0, 0);
	sem_init(&hold.end, 0, 0);
	reactor_send(rig.reactor[0], &hold.msg);
	sem_wait(&hold.begun);
	send(deaf.fd, bytes, N * ISCSI_BHS_LEN + len, MSG_DONTWAIT | MSG_NOSIGNAL);
	sem_post(&hold.end);
	for (int i = 0; i < 20; i++)
		peer_ping(&peer);
	CU_ASSERT_EQUAL(peer_ready(&peer, 0), SCSI_GOOD);
	peer_kill(&deaf);
	peer_close(&peer);
	rig_stop(&rig);
	free(bytes);
	free(data);
}
