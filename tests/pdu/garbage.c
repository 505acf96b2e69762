/* An initiator that makes no sense: it costs itself its connection and nobody
 * else anything.  What it says depends on the number of the round only. */
#include <stdlib.h>
#include <string.h>

#include "tests/pdu/tests.h"

enum { ROUNDS = 120, PDUS = 60 };

/* Some right PDU. */
static struct iscsi_bhs make_sense(struct peer *peer, unsigned int *seed)
{
	static const uint8_t opcodes[] = { 0x00, 0x01, 0x01, 0x01, 0x02, 0x04, 0x05, 0x05 };
	uint8_t opcode = opcodes[(unsigned int)rand_r(seed) % sizeof(opcodes)];
	struct iscsi_bhs bhs = { .hdr = { .opcode = opcode, .flags = 0x80 } };
	uint32_t lba = (unsigned int)rand_r(seed) % 4096, n = (unsigned int)rand_r(seed) % 300;

	if (opcode == ISCSI_OP_SCSI_CMD && rand_r(seed) % 2)
		cmd_write(&bhs, (uint16_t)(lba % 3), lba, n);
	else if (opcode == ISCSI_OP_SCSI_CMD)
		cmd_read(&bhs, (uint16_t)(lba % 3), lba, n);
	if (opcode == ISCSI_OP_TMF_REQ) {
		bhs.tmf_req.function = (uint8_t)(0x80 | rand_r(seed) % 7);
		be32_put(&bhs.tmf_req.ref_itt, peer->itt - n % 8);
	}
	if (opcode == ISCSI_OP_NOP_OUT || opcode == ISCSI_OP_TEXT_REQ)
		be32_put(&bhs.nop_out.ttt, ISCSI_TAG_RESERVED);
	if (opcode == ISCSI_OP_DATA_OUT && peer->bhs.hdr.opcode == ISCSI_OP_R2T)
		return peer_data_out_pdu(&peer->bhs, n % 3 == 0,
					 be32_get(&peer->bhs.r2t.buffer_off), n % 2);
	if (rand_r(seed) % 8 == 0)
		bhs.hdr.opcode |= ISCSI_IMMEDIATE;
	peer_number(peer, &bhs);
	return bhs;
}

static void lose_sense(struct iscsi_bhs *bhs, unsigned int *seed)
{
	static const uint8_t fields[] = { 0, 1, 1, 1, 9, 9, 19, 22, 23, 27, 27, 27, 39, 43, 45 };
	uint8_t at = fields[(unsigned int)rand_r(seed) % sizeof(fields)];

	bhs->bytes[at] = (uint8_t)(bhs->bytes[at] ^ 1u << (unsigned int)rand_r(seed) % 8);
}

static void talk_nonsense(struct peer *peer, unsigned int *seed)
{
	static const uint8_t data[65536];

	for (int i = 0; i < PDUS; i++) {
		struct iscsi_bhs bhs = make_sense(peer, seed);
		uint32_t len = (unsigned int)rand_r(seed) % 3 ? 0
							      : (unsigned int)rand_r(seed) % 9000;
		uint8_t ahs[16] = { 0, (uint8_t)(rand_r(seed) % 14), (uint8_t)(rand_r(seed) % 3) };

		if (rand_r(seed) % 4 == 0)
			lose_sense(&bhs, seed);
		peer_send_all(peer, &bhs, ahs, rand_r(seed) % 50 ? 0 : 16, data, len);
		while (rand_r(seed) % 2)
			if (peer_recv(peer, 1) < 0)
				break;
	}
}

void garbage_costs_its_sender_only(void)
{
	struct peer peer, bad;
	struct rig rig;

	rig_open(&rig);
	peer_open_as(&peer, &rig, 9, "");
	rig_fault(&rig, 1u << BK_WRITE | 1u << BK_READ, FAULT_DELAY, 2);
	for (unsigned int round = 0; round < ROUNDS; round++) {
		unsigned int seed = round;

		peer_init(&bad);
		bad.isid[5] = (uint8_t)(round % 2);
		bad.may_be_cut = true;
		peer_connect(&bad, &rig);
		CU_ASSERT_EQUAL_FATAL(peer_login(&bad, round % 3 ? "MaxBurstLength=16384\n"
								   "FirstBurstLength=8192\n"
								 : "DataDigest=CRC32C\n"),
				      0);
		talk_nonsense(&bad, &seed);
		peer_kill(&bad);
		peer_ping(&peer);
	}
	rig_release(&rig);
	/* Resets and clears raised a unit attention each. */
	for (int i = 0; i < 4 && peer_ready(&peer, 0) != SCSI_GOOD; i++)
		;
	CU_ASSERT_EQUAL(peer_ready(&peer, 0), SCSI_GOOD);
	peer_close(&peer);
	rig_stop(&rig);
}
