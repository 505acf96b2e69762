#include "tests/pdu/peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/crc32c.h"

/* ---- connections ---- */

void peer_init(struct peer *peer)
{
	memset(peer, 0, sizeof(*peer));
	peer->fd = -1;
	peer->target = RIG_DISK;
	peer->host = RIG_HOST;
	peer->isid[0] = 0x80;
	peer->cid = 1;
	peer->itt = 0x100;
	/* Near the wrap, so that every test crosses it. */
	peer->cmd_sn = 0xfffffffau;
}

void peer_connect(struct peer *peer, struct rig *rig)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				    .sin_port = htons(rig->port) };
	int on = 1;

	peer->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CU_ASSERT_FATAL(peer->fd >= 0);
	CU_ASSERT_EQUAL_FATAL(connect(peer->fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	setsockopt(peer->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (!peer->data)
		peer->data = malloc(PEER_DATA_MAX);
	CU_ASSERT_PTR_NOT_NULL_FATAL(peer->data);
}

void peer_close(struct peer *peer)
{
	if (peer->fd >= 0)
		close(peer->fd);
	peer->fd = -1;
	free(peer->data);
	peer->data = NULL;
}

void peer_kill(struct peer *peer)
{
	struct linger now = { .l_onoff = 1, .l_linger = 0 };

	setsockopt(peer->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	peer_close(peer);
}

/* ---- out ---- */

void peer_write(struct peer *peer, const void *bytes, size_t len)
{
	const uint8_t *p = bytes;

	while (len > 0) {
		ssize_t n = send(peer->fd, p, len, MSG_NOSIGNAL);

		/* A server that has ended the connection: the test will see. */
		if (n < 0 && (errno == EPIPE || errno == ECONNRESET))
			return;
		CU_ASSERT_FATAL(n > 0);
		p += n;
		len -= (size_t)n;
	}
}

static size_t put_digest(uint8_t *at, const uint8_t *from, size_t len)
{
	le32_put((le32 *)at, crc32c_final(crc32c_update(CRC32C_INIT, from, len)));
	return ISCSI_DIGEST_LEN;
}

size_t peer_build(const struct peer *peer, struct iscsi_bhs *bhs, const void *ahs, uint32_t ahs_len,
		  const void *data, uint32_t len, uint8_t *out)
{
	size_t pos = ISCSI_BHS_LEN, begin;

	be24_put(&bhs->hdr.data_segment_len, len);
	bhs->hdr.total_ahs_len = (uint8_t)(ahs_len / 4);
	memcpy(out, bhs, ISCSI_BHS_LEN);
	if (ahs_len > 0)
		memcpy(out + pos, ahs, ahs_len);
	pos += ahs_len;
	if (peer->header_digest)
		pos += put_digest(out + pos, out, pos);
	if (len == 0)
		return pos;
	begin = pos;
	memcpy(out + pos, data, len);
	pos += len;
	memset(out + pos, 0, ISCSI_PAD(len));
	pos += ISCSI_PAD(len);
	if (peer->data_digest)
		pos += put_digest(out + pos, out + begin, pos - begin);
	return pos;
}

void peer_send_all(struct peer *peer, struct iscsi_bhs *bhs, const void *ahs, uint32_t ahs_len,
		   const void *data, uint32_t len)
{
	uint8_t *bytes = malloc(ISCSI_BHS_LEN + 1024 + (size_t)len + 16);

	CU_ASSERT_PTR_NOT_NULL_FATAL(bytes);
	peer_write(peer, bytes, peer_build(peer, bhs, ahs, ahs_len, data, len, bytes));
	free(bytes);
}

void peer_send(struct peer *peer, struct iscsi_bhs *bhs, const void *data, uint32_t len)
{
	peer_send_all(peer, bhs, NULL, 0, data, len);
}

/* ---- in ---- */

/* 1: all there; else PEER_CLOSED or, at the beginning only, PEER_NOTHING. */
static int read_all(struct peer *peer, void *to, size_t len, int timeout_ms)
{
	uint8_t *p = to;
	uint64_t end = rig_now_ms() + (uint64_t)timeout_ms;

	while (len > 0) {
		struct pollfd poll_fd = { .fd = peer->fd, .events = POLLIN };
		uint64_t now = rig_now_ms();
		ssize_t n;

		if (poll(&poll_fd, 1, now < end ? (int)(end - now) : 0) == 0) {
			if (p == to)
				return PEER_NOTHING;
			printf("a PDU stops in its middle\n");
			return PEER_CLOSED;
		}
		n = recv(peer->fd, p, len, 0);
		if (n <= 0) {
			CU_ASSERT_TRUE(p == to || peer->may_be_cut);
			return PEER_CLOSED;
		}
		p += n;
		len -= (size_t)n;
		/* What has begun to come comes to its end. */
		end = rig_now_ms() + PEER_SOON_MS;
	}
	return 1;
}

static bool digest_right(const uint8_t *data, size_t len, const uint8_t *digest)
{
	return le32_get((const le32 *)digest) ==
	       crc32c_final(crc32c_update(CRC32C_INIT, data, len));
}

/* RFC 7143 4.2.2.2, 11.4.9: status, and what is answered, takes a StatSN. */
static bool takes_stat_sn(const struct iscsi_bhs *bhs)
{
	switch (bhs->hdr.opcode) {
	case ISCSI_OP_R2T: return false;
	case ISCSI_OP_DATA_IN: return bhs->hdr.flags & ISCSI_DATA_IN_STATUS;
	case ISCSI_OP_NOP_IN: return be32_get(&bhs->hdr.itt) != ISCSI_TAG_RESERVED;
	default: return true;
	}
}

static void judge_numbers(struct peer *peer)
{
	const struct iscsi_target_pdu *pdu = &peer->bhs.target;
	uint32_t exp_cmd_sn = be32_get(&pdu->exp_cmd_sn), max_cmd_sn = be32_get(&pdu->max_cmd_sn);

	if (pdu->opcode != ISCSI_OP_DATA_IN || takes_stat_sn(&peer->bhs))
		CU_ASSERT_EQUAL(be32_get(&pdu->stat_sn), peer->exp_stat_sn);
	if (takes_stat_sn(&peer->bhs))
		peer->exp_stat_sn++;
	CU_ASSERT_TRUE((int32_t)(exp_cmd_sn - peer->exp_cmd_sn) >= 0);
	CU_ASSERT_TRUE((int32_t)(max_cmd_sn - peer->max_cmd_sn) >= 0);
	/* 4.2.2.1: a closed window is MaxCmdSN = ExpCmdSN - 1. */
	CU_ASSERT_TRUE((int32_t)(max_cmd_sn - exp_cmd_sn) >= -1);
	peer->exp_cmd_sn = exp_cmd_sn;
	peer->max_cmd_sn = max_cmd_sn;
}

int peer_recv(struct peer *peer, int timeout_ms)
{
	uint8_t *tail;
	int rc = read_all(peer, &peer->bhs, ISCSI_BHS_LEN, timeout_ms);

	if (rc < 0)
		return rc;
	CU_ASSERT_EQUAL_FATAL(peer->bhs.hdr.total_ahs_len, 0);
	peer->data_len = be24_get(&peer->bhs.hdr.data_segment_len);
	CU_ASSERT_FATAL(peer->data_len <= PEER_DATA_MAX - 16);
	if (peer->header_digest) {
		uint8_t digest[ISCSI_DIGEST_LEN];

		rc = read_all(peer, digest, sizeof(digest), PEER_SOON_MS);
		if (rc < 0 && peer->may_be_cut)
			return rc;
		CU_ASSERT_EQUAL_FATAL(rc, 1);
		CU_ASSERT_TRUE_FATAL(digest_right(peer->bhs.bytes, ISCSI_BHS_LEN, digest));
	}
	if (peer->data_len > 0) {
		uint32_t pad = ISCSI_PAD(peer->data_len);
		uint32_t more = pad + (peer->data_digest ? ISCSI_DIGEST_LEN : 0);

		rc = read_all(peer, peer->data, peer->data_len + more, PEER_SOON_MS);
		if (rc < 0 && peer->may_be_cut)
			return rc;
		CU_ASSERT_EQUAL_FATAL(rc, 1);
		tail = peer->data + peer->data_len + pad;
		if (peer->data_digest)
			CU_ASSERT_TRUE(digest_right(peer->data, peer->data_len + pad, tail));
	}
	if (peer->logged_in)
		judge_numbers(peer);
	return peer->bhs.hdr.opcode;
}

void peer_expect_reject(struct peer *peer, uint8_t reason, const struct iscsi_bhs *rejected)
{
	PEER_EXPECT(peer, ISCSI_OP_REJECT);
	CU_ASSERT_EQUAL(peer->bhs.hdr.flags, ISCSI_FINAL);
	CU_ASSERT_EQUAL(peer->bhs.reject.reason, reason);
	CU_ASSERT_EQUAL(be32_get(&peer->bhs.hdr.itt), ISCSI_TAG_RESERVED);
	/* RFC 7143 11.17.4: the header of the bad PDU. */
	CU_ASSERT_EQUAL(peer->data_len, ISCSI_BHS_LEN);
	CU_ASSERT_EQUAL(memcmp(peer->data, rejected, ISCSI_BHS_LEN), 0);
}

/* ---- login ---- */

void peer_login_send(struct peer *peer, const char *keys)
{
	struct iscsi_bhs bhs = { .login_req = { .opcode = ISCSI_OP_LOGIN_REQ | ISCSI_IMMEDIATE,
						.flags = 0x87 } };
	char text[4096];
	int len;

	if (peer->target)
		len = snprintf(text, sizeof(text),
			       "InitiatorName=%s\nTargetName=%s\nSessionType=Normal\n%s",
			       peer->host, peer->target, keys);
	else
		len = snprintf(text, sizeof(text), "InitiatorName=%s\nSessionType=Discovery\n%s",
			       peer->host, keys);
	for (int i = 0; i < len; i++)
		if (text[i] == '\n')
			text[i] = '\0';
	memcpy(bhs.login_req.isid, peer->isid, sizeof(peer->isid));
	be16_put(&bhs.login_req.tsih, peer->tsih);
	be16_put(&bhs.login_req.cid, peer->cid);
	be32_put(&bhs.login_req.itt, peer->itt++);
	be32_put(&bhs.login_req.cmd_sn, peer->cmd_sn);
	peer->header_digest = peer->data_digest = peer->logged_in = false;
	peer_send(peer, &bhs, text, (uint32_t)len);
}

static bool answer_has(const struct peer *peer, const char *pair)
{
	for (uint32_t pos = 0; pos < peer->data_len;) {
		const char *at = (const char *)peer->data + pos;

		if (strcmp(at, pair) == 0)
			return true;
		pos += (uint32_t)strlen(at) + 1;
	}
	return false;
}

uint16_t peer_login_recv(struct peer *peer, int timeout_ms)
{
	const struct iscsi_login_rsp *rsp = &peer->bhs.login_rsp;

	if (peer_recv(peer, timeout_ms) != ISCSI_OP_LOGIN_RSP)
		return 0xffff;
	peer->login_status = (uint16_t)(rsp->status_class << 8 | rsp->status_detail);
	if (peer->login_status != 0)
		return peer->login_status;
	CU_ASSERT_EQUAL(rsp->flags, 0x87);
	peer->tsih = be16_get(&rsp->tsih);
	CU_ASSERT_NOT_EQUAL(peer->tsih, 0);
	peer->exp_stat_sn = be32_get(&rsp->stat_sn) + 1;
	peer->exp_cmd_sn = be32_get(&rsp->exp_cmd_sn);
	peer->max_cmd_sn = be32_get(&rsp->max_cmd_sn);
	CU_ASSERT_EQUAL(peer->exp_cmd_sn, peer->cmd_sn);
	peer->header_digest = answer_has(peer, "HeaderDigest=CRC32C");
	peer->data_digest = answer_has(peer, "DataDigest=CRC32C");
	peer->logged_in = true;
	return 0;
}

uint16_t peer_login(struct peer *peer, const char *keys)
{
	peer_login_send(peer, keys);
	return peer_login_recv(peer, PEER_SOON_MS);
}

void peer_open_as(struct peer *peer, struct rig *rig, uint8_t isid, const char *keys)
{
	peer_init(peer);
	peer->isid[5] = isid;
	peer_connect(peer, rig);
	CU_ASSERT_EQUAL_FATAL(peer_login(peer, keys), 0);
	/* SAM-5 5.14: the power-on unit attention of each. */
	for (uint16_t lun = 0; lun < 3; lun++)
		CU_ASSERT_EQUAL(peer_ready(peer, lun), SCSI_CHECK_CONDITION);
}

void peer_open(struct peer *peer, struct rig *rig, const char *keys)
{
	peer_open_as(peer, rig, 0, keys);
}

/* ---- requests ---- */

void peer_number(struct peer *peer, struct iscsi_bhs *bhs)
{
	be32_put(&bhs->scsi_cmd.itt, peer->itt++);
	be32_put(&bhs->scsi_cmd.cmd_sn, peer->cmd_sn);
	be32_put(&bhs->scsi_cmd.exp_stat_sn, peer->exp_stat_sn);
	if (!(bhs->hdr.opcode & ISCSI_IMMEDIATE))
		peer->cmd_sn++;
}

static void cmd_init(struct iscsi_bhs *bhs, uint16_t lun, uint8_t flags)
{
	memset(bhs, 0, sizeof(*bhs));
	bhs->scsi_cmd.opcode = ISCSI_OP_SCSI_CMD;
	bhs->scsi_cmd.flags = ISCSI_FINAL | SCSI_TASK_SIMPLE | flags;
	scsi_lun_field(lun, bhs->scsi_cmd.lun);
}

static void cmd_rw(struct iscsi_bhs *bhs, uint8_t opcode, uint32_t lba, uint32_t nblocks)
{
	bhs->scsi_cmd.cdb[0] = opcode; /* READ(16), WRITE(16) */
	be32_store(bhs->scsi_cmd.cdb + 6, lba);
	be32_store(bhs->scsi_cmd.cdb + 10, nblocks);
	be32_put(&bhs->scsi_cmd.edtl, nblocks * RIG_BLOCK);
}

void cmd_read(struct iscsi_bhs *bhs, uint16_t lun, uint32_t lba, uint32_t nblocks)
{
	cmd_init(bhs, lun, ISCSI_CMD_READ);
	cmd_rw(bhs, 0x88, lba, nblocks);
}

void cmd_write(struct iscsi_bhs *bhs, uint16_t lun, uint32_t lba, uint32_t nblocks)
{
	cmd_init(bhs, lun, ISCSI_CMD_WRITE);
	cmd_rw(bhs, 0x8a, lba, nblocks);
}

void cmd_ready(struct iscsi_bhs *bhs, uint16_t lun)
{
	cmd_init(bhs, lun, 0);
}

uint32_t peer_command(struct peer *peer, struct iscsi_bhs *bhs, const void *data, uint32_t len)
{
	peer_number(peer, bhs);
	peer_send(peer, bhs, data, len);
	return be32_get(&bhs->hdr.itt);
}

struct iscsi_bhs peer_data_out_pdu(const struct iscsi_bhs *r2t, uint32_t data_sn, uint32_t off,
				   bool final)
{
	struct iscsi_bhs bhs = { .data_out = { .opcode = ISCSI_OP_DATA_OUT } };

	if (final)
		bhs.data_out.flags = ISCSI_FINAL;
	memcpy(bhs.data_out.lun, r2t->r2t.lun, sizeof(bhs.data_out.lun));
	bhs.data_out.itt = r2t->r2t.itt;
	bhs.data_out.ttt = r2t->r2t.ttt;
	be32_put(&bhs.data_out.data_sn, data_sn);
	be32_put(&bhs.data_out.buffer_off, off);
	return bhs;
}

void peer_data_out(struct peer *peer, const struct iscsi_bhs *r2t, const uint8_t *data,
		   uint32_t segment)
{
	struct iscsi_bhs asked = *r2t;
	uint32_t off = be32_get(&asked.r2t.buffer_off);
	uint32_t end = off + be32_get(&asked.r2t.desired_len), data_sn = 0;

	while (off < end) {
		uint32_t len = end - off < segment ? end - off : segment;
		struct iscsi_bhs bhs = peer_data_out_pdu(&asked, data_sn++, off, off + len == end);

		be32_put(&bhs.data_out.exp_stat_sn, peer->exp_stat_sn);
		peer_send(peer, &bhs, data + off, len);
		off += len;
	}
}

uint8_t peer_status(struct peer *peer, uint32_t itt)
{
	int opcode = peer_recv(peer, PEER_SOON_MS);

	CU_ASSERT_EQUAL_FATAL(opcode, ISCSI_OP_SCSI_RSP);
	CU_ASSERT_EQUAL(be32_get(&peer->bhs.hdr.itt), itt);
	CU_ASSERT_EQUAL(peer->bhs.scsi_rsp.response, 0);
	return peer->bhs.scsi_rsp.status;
}

uint32_t peer_sense(const struct peer *peer)
{
	/* RFC 7143 11.4.7.2: a length of two bytes in front. */
	const uint8_t *sense = peer->data + 2;

	if (peer->data_len < 20 || be16_load(peer->data) + 2u > peer->data_len)
		return 0;
	return (uint32_t)(sense[2] & 0x0f) << 16 | (uint32_t)sense[12] << 8 | sense[13];
}

uint8_t peer_ready(struct peer *peer, uint16_t lun)
{
	struct iscsi_bhs bhs;

	cmd_ready(&bhs, lun);
	return peer_status(peer, peer_command(peer, &bhs, NULL, 0));
}

uint8_t peer_write_finish(struct peer *peer, uint32_t itt, const uint8_t *data, uint32_t segment)
{
	for (;;) {
		int opcode = peer_recv(peer, PEER_SOON_MS);

		CU_ASSERT_TRUE_FATAL(opcode == ISCSI_OP_R2T || opcode == ISCSI_OP_SCSI_RSP);
		CU_ASSERT_EQUAL_FATAL(be32_get(&peer->bhs.hdr.itt), itt);
		if (opcode == ISCSI_OP_SCSI_RSP)
			return peer->bhs.scsi_rsp.status;
		peer_data_out(peer, &peer->bhs, data, segment);
	}
}

uint8_t peer_write_blocks(struct peer *peer, uint16_t lun, uint32_t lba, uint32_t nblocks,
			  const uint8_t *data)
{
	struct iscsi_bhs bhs;

	cmd_write(&bhs, lun, lba, nblocks);
	return peer_write_finish(peer, peer_command(peer, &bhs, NULL, 0), data, 65536);
}

uint8_t peer_read_result(struct peer *peer, uint32_t itt, uint8_t *out, uint32_t len)
{
	uint32_t off = 0, data_sn = 0;

	for (;;) {
		int opcode = peer_recv(peer, PEER_SOON_MS);

		CU_ASSERT_TRUE_FATAL(opcode == ISCSI_OP_DATA_IN || opcode == ISCSI_OP_SCSI_RSP);
		CU_ASSERT_EQUAL_FATAL(be32_get(&peer->bhs.hdr.itt), itt);
		if (opcode == ISCSI_OP_SCSI_RSP)
			return peer->bhs.scsi_rsp.status;
		CU_ASSERT_EQUAL(be32_get(&peer->bhs.data_in.data_sn), data_sn++);
		CU_ASSERT_EQUAL_FATAL(be32_get(&peer->bhs.data_in.buffer_off), off);
		CU_ASSERT_FATAL(peer->data_len <= len - off);
		memcpy(out + off, peer->data, peer->data_len);
		off += peer->data_len;
		if (peer->bhs.hdr.flags & ISCSI_DATA_IN_STATUS) {
			CU_ASSERT_TRUE(peer->bhs.hdr.flags & ISCSI_FINAL);
			CU_ASSERT_EQUAL(off, len);
			return peer->bhs.data_in.status;
		}
	}
}

uint8_t peer_read_blocks(struct peer *peer, uint16_t lun, uint32_t lba, uint32_t nblocks,
			 uint8_t *out)
{
	struct iscsi_bhs bhs;

	cmd_read(&bhs, lun, lba, nblocks);
	return peer_read_result(peer, peer_command(peer, &bhs, NULL, 0), out, nblocks * RIG_BLOCK);
}

void peer_ping(struct peer *peer)
{
	struct iscsi_bhs bhs = { .nop_out = { .opcode = ISCSI_OP_NOP_OUT | ISCSI_IMMEDIATE,
					      .flags = ISCSI_FINAL } };

	be32_put(&bhs.nop_out.ttt, ISCSI_TAG_RESERVED);
	peer_number(peer, &bhs);
	peer_send(peer, &bhs, NULL, 0);
	PEER_EXPECT(peer, ISCSI_OP_NOP_IN);
	CU_ASSERT_EQUAL(be32_get(&peer->bhs.hdr.itt), be32_get(&bhs.hdr.itt));
}

uint32_t peer_tmf_send(struct peer *peer, uint8_t function, uint16_t lun, uint32_t ref_itt,
		       uint32_t ref_cmd_sn)
{
	struct iscsi_bhs bhs = { .tmf_req = { .opcode = ISCSI_OP_TMF_REQ | ISCSI_IMMEDIATE,
					      .function = 0x80 | function } };

	scsi_lun_field(lun, bhs.tmf_req.lun);
	be32_put(&bhs.tmf_req.ref_itt, ref_itt);
	be32_put(&bhs.tmf_req.ref_cmd_sn, ref_cmd_sn);
	peer_number(peer, &bhs);
	peer_send(peer, &bhs, NULL, 0);
	return be32_get(&bhs.hdr.itt);
}

uint8_t peer_tmf(struct peer *peer, uint8_t function, uint16_t lun, uint32_t ref_itt,
		 uint32_t ref_cmd_sn)
{
	uint32_t itt = peer_tmf_send(peer, function, lun, ref_itt, ref_cmd_sn);

	PEER_EXPECT(peer, ISCSI_OP_TMF_RSP);
	CU_ASSERT_EQUAL(be32_get(&peer->bhs.hdr.itt), itt);
	return peer->bhs.tmf_rsp.response;
}

void pattern(uint8_t *data, size_t len, uint32_t seed)
{
	for (size_t i = 0; i < len; i++)
		data[i] = (uint8_t)(seed * 31 + i * 7 + i / 251 + i / 65521);
}
