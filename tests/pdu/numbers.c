/* What our PDUs say of data: RFC 7143 11.4, 11.7, 11.8.  StatSN, ExpCmdSN and
 * MaxCmdSN are judged by peer_recv() in every test. */
#include <stdlib.h>
#include <string.h>

#include "tests/pdu/tests.h"

/* 11.7: DataSN, offset; no more than the segment; F at the end of each burst
 * (MaxBurstLength); status in the last only. */
void data_in_obeys_segment_and_burst_lengths(void)
{
	const uint32_t segment = 3072, burst = 8192, len = 100 * RIG_BLOCK;
	uint8_t data[100 * RIG_BLOCK];
	uint32_t off = 0, data_sn = 0, want, itt;
	struct iscsi_bhs bhs;
	struct peer peer;
	struct rig rig;

	rig_open(&rig);
	peer_open(&peer, &rig,
		  "MaxRecvDataSegmentLength=3072\nMaxBurstLength=8192\n"
		  "FirstBurstLength=512\n");
	pattern(data, len, 3);
	CU_ASSERT_EQUAL(peer_write_blocks(&peer, 0, 10, 100, data), SCSI_GOOD);
	cmd_read(&bhs, 0, 10, 100);
	itt = peer_command(&peer, &bhs, NULL, 0);
	while (off < len) {
		const struct iscsi_data_in *pdu = &peer.bhs.data_in;

		PEER_EXPECT(&peer, ISCSI_OP_DATA_IN);
		want = burst - off % burst < segment ? burst - off % burst : segment;
		want = len - off < want ? len - off : want;
		CU_ASSERT_EQUAL(be32_get(&pdu->itt), itt);
		CU_ASSERT_EQUAL(be32_get(&pdu->ttt), ISCSI_TAG_RESERVED);
		CU_ASSERT_EQUAL(be32_get(&pdu->data_sn), data_sn++);
		CU_ASSERT_EQUAL(be32_get(&pdu->buffer_off), off);
		CU_ASSERT_EQUAL_FATAL(peer.data_len, want);
		CU_ASSERT_EQUAL(memcmp(peer.data, data + off, want), 0);
		off += want;
		CU_ASSERT_EQUAL(pdu->flags, off == len	       ? ISCSI_FINAL | ISCSI_DATA_IN_STATUS
					    : off % burst == 0 ? ISCSI_FINAL
							       : 0);
	}
	CU_ASSERT_EQUAL(peer.bhs.data_in.status, SCSI_GOOD);
	PEER_SILENT(&peer);
	peer_close(&peer);
	rig_stop(&rig);
}

void data_in_of_the_longest_transfer_comes_whole(void)
{
	uint8_t *data = malloc(BUFPOOL_TRANSFER_MAX), *got = malloc(BUFPOOL_TRANSFER_MAX);
	struct peer peer;
	struct rig rig;

	rig_open(&rig);
	peer_open(&peer, &rig,
		  "MaxRecvDataSegmentLength=262144\nHeaderDigest=CRC32C\n"
		  "DataDigest=CRC32C\nMaxBurstLength=16776192\n");
	pattern(data, BUFPOOL_TRANSFER_MAX, 5);
	CU_ASSERT_EQUAL(peer_write_blocks(&peer, 0, 0, 32768, data), SCSI_GOOD);
	CU_ASSERT_EQUAL(peer_read_blocks(&peer, 0, 0, 32768, got), SCSI_GOOD);
	CU_ASSERT_EQUAL(memcmp(data, got, BUFPOOL_TRANSFER_MAX), 0);
	peer_close(&peer);
	rig_stop(&rig);
	free(data);
	free(got);
}

/* 11.8: what an R2T carries, and how many may be open (13.17). */
void r2t_obeys_burst_length_and_number(void)
{
	uint8_t data[64 * RIG_BLOCK], got[64 * RIG_BLOCK];
	struct iscsi_bhs bhs, r2t[4];
	struct peer peer;
	struct rig rig;
	uint32_t itt;

	rig_open(&rig);
	peer_open(&peer, &rig, "MaxBurstLength=4096\nFirstBurstLength=512\nMaxOutstandingR2T=4\n");
	pattern(data, sizeof(data), 4);
	cmd_write(&bhs, 2, 0, 64);
	itt = peer_command(&peer, &bhs, data, 512);
	for (uint32_t i = 0; i < 4; i++) {
		PEER_EXPECT(&peer, ISCSI_OP_R2T);
		r2t[i] = peer.bhs;
		CU_ASSERT_EQUAL(r2t[i].hdr.flags, ISCSI_FINAL);
		CU_ASSERT_EQUAL(be32_get(&r2t[i].hdr.itt), itt);
		CU_ASSERT_EQUAL(memcmp(r2t[i].r2t.lun, bhs.hdr.lun, 8), 0);
		CU_ASSERT_NOT_EQUAL(be32_get(&r2t[i].r2t.ttt), ISCSI_TAG_RESERVED);
		CU_ASSERT_EQUAL(be32_get(&r2t[i].r2t.r2t_sn), i);
		CU_ASSERT_EQUAL(be32_get(&r2t[i].r2t.buffer_off), 512 + i * 4096);
		CU_ASSERT_EQUAL(be32_get(&r2t[i].r2t.desired_len), 4096);
		CU_ASSERT_EQUAL(peer.data_len, 0);
	}
	PEER_SILENT(&peer);
	peer_data_out(&peer, &r2t[0], data, 1000);
	PEER_EXPECT(&peer, ISCSI_OP_R2T);
	CU_ASSERT_EQUAL(be32_get(&peer.bhs.r2t.buffer_off), 512 + 4 * 4096);
	bhs = peer.bhs;
	PEER_SILENT(&peer);
	for (int i = 1; i < 4; i++)
		peer_data_out(&peer, &r2t[i], data, 4096);
	peer_data_out(&peer, &bhs, data, 4096);
	CU_ASSERT_EQUAL(peer_write_finish(&peer, itt, data, 4096), SCSI_GOOD);
	/* 11.4.8: ExpDataSN is the number of R2Ts. */
	CU_ASSERT_EQUAL(be32_get(&peer.bhs.scsi_rsp.exp_data_sn), 8);
	CU_ASSERT_EQUAL(peer_read_blocks(&peer, 2, 0, 64, got), SCSI_GOOD);
	CU_ASSERT_EQUAL(memcmp(got, data, sizeof(data)), 0);
	peer_close(&peer);
	rig_stop(&rig);
}

/* Our order of R2Ts need not be the order of the answers. */
void r2t_may_be_answered_interleaved(void)
{
	uint8_t data[32 * RIG_BLOCK], got[32 * RIG_BLOCK];
	struct iscsi_bhs bhs, r2t[4];
	struct peer peer;
	struct rig rig;
	uint32_t itt[2];

	rig_open(&rig);
	peer_open(&peer, &rig, "MaxBurstLength=8192\nFirstBurstLength=512\n");
	pattern(data, sizeof(data), 8);
	for (uint32_t i = 0; i < 2; i++) {
		cmd_write(&bhs, 0, i * 16, 16);
		itt[i] = peer_command(&peer, &bhs, NULL, 0);
		PEER_EXPECT(&peer, ISCSI_OP_R2T);
		r2t[i] = peer.bhs;
		CU_ASSERT_EQUAL(be32_get(&r2t[i].hdr.itt), itt[i]);
	}
	for (uint32_t part = 0; part < 8; part++) {
		for (int i = 1; i >= 0; i--) {
			struct iscsi_bhs out = peer_data_out_pdu(&r2t[i], part, part * 1024,
								 part == 7);

			peer_send(&peer, &out, data + i * 8192 + part * 1024, 1024);
		}
	}
	for (int i = 1; i >= 0; i--)
		CU_ASSERT_EQUAL(peer_status(&peer, itt[i]), SCSI_GOOD);
	CU_ASSERT_EQUAL(peer_read_blocks(&peer, 0, 0, 32, got), SCSI_GOOD);
	CU_ASSERT_EQUAL(memcmp(got, data, sizeof(data)), 0);
	peer_close(&peer);
	rig_stop(&rig);
}

/* ---- residuals: 11.4.5 ---- */

static void residual_is(const struct iscsi_bhs *bhs, uint8_t flags, uint32_t count)
{
	const be32 *at = bhs->hdr.opcode == ISCSI_OP_DATA_IN ? &bhs->data_in.residual
							     : &bhs->scsi_rsp.residual;

	CU_ASSERT_EQUAL(bhs->hdr.flags & (ISCSI_RSP_OVERFLOW | ISCSI_RSP_UNDERFLOW), flags);
	CU_ASSERT_EQUAL(be32_get(at), count);
}

void residual_of_a_read_shorter_than_expected(void)
{
	struct iscsi_bhs bhs;
	struct peer peer;
	struct rig rig;

	rig_open(&rig);
	peer_open(&peer, &rig, "");
	cmd_read(&bhs, 0, 0, 1);
	be32_put(&bhs.scsi_cmd.edtl, 4096);
	peer_command(&peer, &bhs, NULL, 0);
	PEER_EXPECT(&peer, ISCSI_OP_DATA_IN);
	CU_ASSERT_EQUAL(peer.data_len, 512);
	residual_is(&peer.bhs, ISCSI_RSP_UNDERFLOW, 3584);
	peer_close(&peer);
	rig_stop(&rig);
}

void residual_of_a_read_longer_than_expected(void)
{
	struct iscsi_bhs bhs;
	struct peer peer;
	struct rig rig;

	rig_open(&rig);
	peer_open(&peer, &rig, "");
	cmd_read(&bhs, 0, 0, 8);
	be32_put(&bhs.scsi_cmd.edtl, 700);
	peer_command(&peer, &bhs, NULL, 0);
	PEER_EXPECT(&peer, ISCSI_OP_DATA_IN);
	CU_ASSERT_EQUAL(peer.data_len, 700);
	residual_is(&peer.bhs, ISCSI_RSP_OVERFLOW, 4096 - 700);
	/* And one that expects nothing at all. */
	cmd_read(&bhs, 0, 0, 8);
	be32_put(&bhs.scsi_cmd.edtl, 0);
	CU_ASSERT_EQUAL(peer_status(&peer, peer_command(&peer, &bhs, NULL, 0)), SCSI_GOOD);
	residual_is(&peer.bhs, ISCSI_RSP_OVERFLOW, 4096);
	bhs.hdr.flags &= (uint8_t)~ISCSI_CMD_READ;
	be32_put(&bhs.scsi_cmd.edtl, 512); /* no direction: EDTL says nothing */
	CU_ASSERT_EQUAL(peer_status(&peer, peer_command(&peer, &bhs, NULL, 0)), SCSI_GOOD);
	residual_is(&peer.bhs, ISCSI_RSP_OVERFLOW, 4096);
	peer_close(&peer);
	rig_stop(&rig);
}

void residual_of_a_write_shorter_than_expected(void)
{
	uint8_t data[4096];
	struct iscsi_bhs bhs;
	struct peer peer;
	struct rig rig;
	uint32_t itt;

	rig_open(&rig);
	peer_open(&peer, &rig, "");
	pattern(data, sizeof(data), 1);
	cmd_write(&bhs, 0, 0, 1);
	be32_put(&bhs.scsi_cmd.edtl, 4096);
	itt = peer_command(&peer, &bhs, NULL, 0);
	PEER_EXPECT(&peer, ISCSI_OP_R2T);
	CU_ASSERT_EQUAL(be32_get(&peer.bhs.r2t.desired_len), 512);
	peer_data_out(&peer, &peer.bhs, data, 512);
	CU_ASSERT_EQUAL(peer_status(&peer, itt), SCSI_GOOD);
	residual_is(&peer.bhs, ISCSI_RSP_UNDERFLOW, 3584);
	/* The same when more than it takes has come at once. */
	CU_ASSERT_EQUAL(peer_status(&peer, peer_command(&peer, &bhs, data, 4096)), SCSI_GOOD);
	residual_is(&peer.bhs, ISCSI_RSP_UNDERFLOW, 3584);
	CU_ASSERT_EQUAL(peer_read_blocks(&peer, 0, 1, 1, data), SCSI_GOOD);
	CU_ASSERT_EQUAL(data[0], 0);
	peer_close(&peer);
	rig_stop(&rig);
}

void residual_of_a_write_longer_than_expected(void)
{
	uint8_t data[1024], got[2048], zeros[1024] = { 0 };
	struct iscsi_bhs bhs;
	struct peer peer;
	struct rig rig;

	rig_open(&rig);
	peer_open(&peer, &rig, "");
	pattern(data, sizeof(data), 1);
	cmd_write(&bhs, 0, 0, 4);
	be32_put(&bhs.scsi_cmd.edtl, 1024);
	peer_status(&peer, peer_command(&peer, &bhs, data, 1024));
	residual_is(&peer.bhs, ISCSI_RSP_OVERFLOW, 1024);
	/* Whatever its status, nothing has been made up. */
	CU_ASSERT_EQUAL(peer_read_blocks(&peer, 0, 0, 4, got), SCSI_GOOD);
	CU_ASSERT_EQUAL(memcmp(got + 1024, zeros, 1024), 0);
	peer_close(&peer);
	rig_stop(&rig);
}

void residual_of_a_command_without_data(void)
{
	struct iscsi_bhs bhs;
	struct peer peer;
	struct rig rig;

	rig_open(&rig);
	peer_open(&peer, &rig, "");
	cmd_ready(&bhs, 0);
	bhs.hdr.flags |= ISCSI_CMD_READ;
	be32_put(&bhs.scsi_cmd.edtl, 96);
	CU_ASSERT_EQUAL(peer_status(&peer, peer_command(&peer, &bhs, NULL, 0)), SCSI_GOOD);
	residual_is(&peer.bhs, ISCSI_RSP_UNDERFLOW, 96);
	cmd_ready(&bhs, 0);
	CU_ASSERT_EQUAL(peer_status(&peer, peer_command(&peer, &bhs, NULL, 0)), SCSI_GOOD);
	residual_is(&peer.bhs, 0, 0);
	peer_close(&peer);
	rig_stop(&rig);
}

/* 11.4.7: the length of the sense data in front of it, and no status in a
 * Data-In; all that was expected is residual. */
void sense_stands_in_the_response(void)
{
	struct iscsi_bhs bhs;
	struct peer peer;
	struct rig rig;

	rig_open(&rig);
	peer_open(&peer, &rig, "DataDigest=CRC32C\n");
	cmd_read(&bhs, 0, 0xfffffff0, 8);
	CU_ASSERT_EQUAL(peer_status(&peer, peer_command(&peer, &bhs, NULL, 0)),
			SCSI_CHECK_CONDITION);
	CU_ASSERT_EQUAL(peer.bhs.hdr.flags & ISCSI_FINAL, ISCSI_FINAL);
	CU_ASSERT_EQUAL(peer.data_len, 2u + be16_load(peer.data));
	CU_ASSERT_EQUAL(peer_sense(&peer), 0x052100);
	CU_ASSERT_EQUAL(be32_get(&peer.bhs.scsi_rsp.exp_data_sn), 0);
	residual_is(&peer.bhs, ISCSI_RSP_UNDERFLOW, 4096);
	peer_close(&peer);
	rig_stop(&rig);
}

void sense_of_a_medium_error_reaches_the_initiator(void)
{
	uint8_t data[4096] = { 0 };
	struct iscsi_bhs bhs;
	struct peer peer;
	struct rig rig;

	rig_open(&rig);
	peer_open(&peer, &rig, "");
	rig_fault(&rig, 1u << BK_READ | 1u << BK_WRITE, FAULT_ERROR, 0);
	cmd_read(&bhs, 1, 0, 8);
	CU_ASSERT_EQUAL(peer_status(&peer, peer_command(&peer, &bhs, NULL, 0)),
			SCSI_CHECK_CONDITION);
	CU_ASSERT_EQUAL(peer_sense(&peer) >> 16, 3);
	CU_ASSERT_EQUAL(peer_write_blocks(&peer, 1, 0, 8, data), SCSI_CHECK_CONDITION);
	CU_ASSERT_EQUAL(peer_sense(&peer) >> 16, 3);
	rig_release(&rig);
	CU_ASSERT_EQUAL(peer_write_blocks(&peer, 1, 0, 8, data), SCSI_GOOD);
	peer_close(&peer);
	rig_stop(&rig);
}

/* 4.2.2.2, 11.13.4: StatSN goes on from the login's PDUs. */
void stat_sn_goes_on_from_the_login(void)
{
	static const char first[] = "InitiatorName=" RIG_HOST "\0TargetName=" RIG_DISK;
	struct iscsi_bhs bhs = { .login_req = { .opcode = 0x43 } };
	struct peer peer;
	struct rig rig;
	uint32_t stat_sn;

	rig_open(&rig);
	peer_init(&peer);
	peer_connect(&peer, &rig);
	be32_put(&bhs.login_req.cmd_sn, peer.cmd_sn);
	bhs.login_req.isid[0] = 0x80;
	peer_send(&peer, &bhs, first, sizeof(first));
	PEER_EXPECT(&peer, ISCSI_OP_LOGIN_RSP);
	stat_sn = be32_get(&peer.bhs.login_rsp.stat_sn);
	for (uint32_t i = 1; i <= 3; i++) {
		static const uint8_t flags[] = { 0x00, 0x81, 0x04, 0x87 };

		bhs.login_req.flags = flags[i];
		be32_put(&bhs.login_req.exp_stat_sn, stat_sn + i);
		peer_send(&peer, &bhs, NULL, 0);
		PEER_EXPECT(&peer, ISCSI_OP_LOGIN_RSP);
		CU_ASSERT_EQUAL(peer.bhs.login_rsp.status_class, 0);
		CU_ASSERT_EQUAL(be32_get(&peer.bhs.login_rsp.stat_sn), stat_sn + i);
	}
	peer.exp_stat_sn = stat_sn + 4;
	peer.exp_cmd_sn = be32_get(&peer.bhs.login_rsp.exp_cmd_sn);
	peer.max_cmd_sn = be32_get(&peer.bhs.login_rsp.max_cmd_sn);
	peer.logged_in = true;
	CU_ASSERT_EQUAL(peer_ready(&peer, 0), SCSI_CHECK_CONDITION);
	peer_close(&peer);
	rig_stop(&rig);
}
