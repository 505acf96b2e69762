/* Data-Out against what was asked for: RFC 7143 11.7, 11.8, 11.4.7.2. */
#include <string.h>

#include "tests/pdu/tests.h"

/* A write of 16 blocks whose first R2T (4096 bytes) has come. */
struct write {
	struct rig rig;
	struct peer peer;
	struct iscsi_bhs r2t;
	uint32_t itt;
	uint8_t data[8192];
};

static void write_begin(struct write *w)
{
	struct iscsi_bhs bhs;

	rig_open(&w->rig);
	peer_open(&w->peer, &w->rig, "MaxBurstLength=4096\nFirstBurstLength=512\n");
	pattern(w->data, sizeof(w->data), 9);
	cmd_write(&bhs, 0, 32, 16);
	w->itt = peer_command(&w->peer, &bhs, NULL, 0);
	PEER_EXPECT(&w->peer, ISCSI_OP_R2T);
	w->r2t = w->peer.bhs;
	CU_ASSERT_EQUAL(be32_get(&w->r2t.r2t.desired_len), 4096);
}

/* The command has ended with this sense, the connection has not, and nothing
 * has been written. */
static void write_failed(struct write *w, uint32_t sense)
{
	uint8_t zeros[RIG_BLOCK] = { 0 };

	CU_ASSERT_EQUAL(peer_status(&w->peer, w->itt), SCSI_CHECK_CONDITION);
	CU_ASSERT_EQUAL(peer_sense(&w->peer), sense);
	/* Late Data-Out of it is dropped. */
	peer_data_out(&w->peer, &w->r2t, w->data, 512);
	CU_ASSERT_EQUAL(peer_read_blocks(&w->peer, 0, 32, 1, w->data), SCSI_GOOD);
	CU_ASSERT_EQUAL(memcmp(w->data, zeros, sizeof(zeros)), 0);
	peer_close(&w->peer);
	rig_stop(&w->rig);
}

static void send_part(struct write *w, uint32_t data_sn, uint32_t off, uint32_t len, bool final)
{
	struct iscsi_bhs bhs = peer_data_out_pdu(&w->r2t, data_sn, off, final);

	peer_send(&w->peer, &bhs, w->data + off, len);
}

void data_out_with_a_wrong_number_ends_its_command(void)
{
	struct write w;

	write_begin(&w);
	send_part(&w, 1, 0, 512, false);
	PEER_EXPECT(&w.peer, ISCSI_OP_REJECT);
	write_failed(&w, 0x0b4b00);
}

void data_out_with_a_wrong_offset_ends_its_command(void)
{
	struct write w;

	write_begin(&w);
	send_part(&w, 0, 0, 512, false);
	send_part(&w, 1, 1024, 512, false);
	PEER_EXPECT(&w.peer, ISCSI_OP_REJECT);
	write_failed(&w, 0x0b4b05);
}

/* 11.4.7.2: what answers an R2T "does not match the amount requested". */
void data_out_longer_than_asked_for_ends_its_command(void)
{
	struct write w;

	write_begin(&w);
	send_part(&w, 0, 0, 512, false);
	send_part(&w, 1, 512, 4096, true);
	PEER_EXPECT(&w.peer, ISCSI_OP_REJECT);
	write_failed(&w, 0x0b0c0d);
}

void data_out_that_ends_too_early_ends_its_command(void)
{
	struct write w;

	write_begin(&w);
	send_part(&w, 0, 0, 512, true);
	write_failed(&w, 0x0b0c0d);
}

/* 11.8.5: a tag that is not ours names no task. */
void data_out_with_a_wrong_tag_is_ignored(void)
{
	struct iscsi_bhs right;
	struct write w;

	write_begin(&w);
	right = w.r2t;
	be32_put(&w.r2t.r2t.ttt, be32_get(&right.r2t.ttt) + 77);
	send_part(&w, 0, 0, 4096, true);
	be32_put(&w.r2t.r2t.ttt, 0); /* marks a free slot of ours */
	send_part(&w, 0, 0, 4096, true);
	be32_put(&w.r2t.r2t.ttt, ISCSI_TAG_RESERVED);
	send_part(&w, 0, 0, 4096, true);
	PEER_SILENT(&w.peer);
	peer_data_out(&w.peer, &right, w.data, 512);
	CU_ASSERT_EQUAL(peer_write_finish(&w.peer, w.itt, w.data, 512), SCSI_GOOD);
	peer_close(&w.peer);
	rig_stop(&w.rig);
}

/* The tag is right, the task is another one. */
void data_out_with_the_tag_of_another_task_ends_its_command(void)
{
	struct write w;

	write_begin(&w);
	be32_put(&w.r2t.hdr.itt, w.itt + 5);
	send_part(&w, 0, 0, 512, false);
	PEER_EXPECT(&w.peer, ISCSI_OP_REJECT);
	write_failed(&w, 0x0b4b00);
}

/* ---- unsolicited data ---- */

static void unsolicited_begin(struct write *w, uint32_t immediate)
{
	struct iscsi_bhs bhs;

	rig_prepare(&w->rig);
	w->rig.limits.initial_r2t = false;
	rig_start(&w->rig);
	peer_open(&w->peer, &w->rig, "InitialR2T=No\nFirstBurstLength=2048\n");
	pattern(w->data, sizeof(w->data), 9);
	cmd_write(&bhs, 0, 32, 16);
	bhs.hdr.flags &= (uint8_t)~ISCSI_FINAL;
	w->itt = peer_command(&w->peer, &bhs, w->data, immediate);
	memset(&w->r2t, 0, sizeof(w->r2t));
	w->r2t.hdr.itt = bhs.hdr.itt;
	memcpy(w->r2t.r2t.lun, bhs.hdr.lun, 8);
	be32_put(&w->r2t.r2t.ttt, ISCSI_TAG_RESERVED);
}

static void unsolicited_ends(struct write *w)
{
	uint8_t got[8192];

	CU_ASSERT_EQUAL(peer_write_finish(&w->peer, w->itt, w->data, 4096), SCSI_GOOD);
	CU_ASSERT_EQUAL(peer_read_blocks(&w->peer, 0, 32, 16, got), SCSI_GOOD);
	CU_ASSERT_EQUAL(memcmp(got, w->data, sizeof(got)), 0);
	peer_close(&w->peer);
	rig_stop(&w->rig);
}

void unsolicited_data_follows_immediate_data(void)
{
	struct write w;

	unsolicited_begin(&w, 512);
	send_part(&w, 0, 512, 1024, false);
	PEER_SILENT(&w.peer);
	send_part(&w, 1, 1536, 512, true);
	PEER_EXPECT(&w.peer, ISCSI_OP_R2T);
	CU_ASSERT_EQUAL(be32_get(&w.peer.bhs.r2t.buffer_off), 2048);
	CU_ASSERT_EQUAL(be32_get(&w.peer.bhs.r2t.desired_len), 6144);
	peer_data_out(&w.peer, &w.peer.bhs, w.data, 1024);
	unsolicited_ends(&w);
}

void unsolicited_data_without_immediate_data(void)
{
	struct write w;

	unsolicited_begin(&w, 0);
	send_part(&w, 0, 0, 2048, true);
	unsolicited_ends(&w);
}

void unsolicited_data_beyond_first_burst_ends_its_command(void)
{
	struct write w;

	unsolicited_begin(&w, 512);
	send_part(&w, 0, 512, 2048, true);
	PEER_EXPECT(&w.peer, ISCSI_OP_REJECT);
	write_failed(&w, 0x0b0c0d);
}

/* A command that ends at once (no such LUN) still has data on its way. */
void unsolicited_data_of_a_command_that_failed_is_dropped(void)
{
	struct iscsi_bhs bhs;
	struct write w;

	unsolicited_begin(&w, 0);
	send_part(&w, 0, 0, 2048, true);
	CU_ASSERT_EQUAL(peer_write_finish(&w.peer, w.itt, w.data, 4096), SCSI_GOOD);
	cmd_write(&bhs, 9, 32, 16);
	bhs.hdr.flags &= (uint8_t)~ISCSI_FINAL;
	w.itt = peer_command(&w.peer, &bhs, w.data, 1024);
	w.r2t.hdr.itt = bhs.hdr.itt;
	send_part(&w, 0, 1024, 1024, true);
	CU_ASSERT_EQUAL(peer_status(&w.peer, w.itt), SCSI_CHECK_CONDITION);
	CU_ASSERT_EQUAL(peer_sense(&w.peer), 0x052500);
	unsolicited_ends(
		(cmd_write(&bhs, 0, 32, 16), w.itt = peer_command(&w.peer, &bhs, NULL, 0), &w));
}
