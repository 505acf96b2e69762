/*
 * An initiator that sends whatever it is told, PDU by PDU.
 *
 * peer_send() fills in the lengths and digests of a header, nothing else; the
 * commands below fill in tags and numbers too.  peer_recv() judges what every
 * PDU of a target has to keep (RFC 7143 4.2.2: StatSN without gaps, MaxCmdSN
 * and ExpCmdSN never go back; digests) and asserts it.
 */
#ifndef TESTS_PDU_PEER_H
#define TESTS_PDU_PEER_H

#include "tests/pdu/rig.h"

#define PEER_DATA_MAX (17u << 20)

/* What peer_recv() may say instead of an opcode. */
#define PEER_CLOSED  (-1)
#define PEER_NOTHING (-2)

/* Time for what has to come, and for what must not. */
#define PEER_SOON_MS   10000
#define PEER_SILENT_MS 150

struct peer {
	int fd;
	const char *target; /* NULL: discovery */
	const char *host;
	uint8_t isid[6];
	uint16_t tsih, cid;
	uint32_t itt;			 /* of the next request */
	uint32_t cmd_sn;		 /* of the next request that is not immediate */
	bool header_digest, data_digest; /* of what we send and get */
	bool logged_in;
	bool may_be_cut; /* a reset within a PDU is all right */

	uint32_t exp_stat_sn, exp_cmd_sn, max_cmd_sn;
	uint16_t login_status;
	unsigned int login_pdus;

	/* the last PDU that came */
	struct iscsi_bhs bhs;
	uint8_t *data;
	uint32_t data_len;
};

/* ---- connections ---- */

void peer_init(struct peer *peer);
void peer_connect(struct peer *peer, struct rig *rig);
/* Closes its side and frees. */
void peer_close(struct peer *peer);
/* The same by a reset. */
void peer_kill(struct peer *peer);

/* Logs in with more keys ("Key=Value\n..."); the status of the login. */
uint16_t peer_login(struct peer *peer, const char *keys);
/* The same in two halves: the one request, and its answers to the last. */
void peer_login_send(struct peer *peer, const char *keys);
uint16_t peer_login_recv(struct peer *peer, int timeout_ms);

/* Connects, logs in, asserts, and takes the unit attentions of all LUNs. */
void peer_open(struct peer *peer, struct rig *rig, const char *keys);
/* The same as another initiator port. */
void peer_open_as(struct peer *peer, struct rig *rig, uint8_t isid, const char *keys);

/* ---- PDUs ---- */

void peer_write(struct peer *peer, const void *bytes, size_t len);
/* AHS must be a multiple of 4 bytes. */
void peer_send_all(struct peer *peer, struct iscsi_bhs *bhs, const void *ahs, uint32_t ahs_len,
		   const void *data, uint32_t len);
void peer_send(struct peer *peer, struct iscsi_bhs *bhs, const void *data, uint32_t len);
/* A PDU as bytes; out has room for 48 + 64 + 8 + len + 3; the number of them. */
size_t peer_build(const struct peer *peer, struct iscsi_bhs *bhs, const void *ahs, uint32_t ahs_len,
		  const void *data, uint32_t len, uint8_t *out);

/* The opcode of the next PDU, or PEER_CLOSED, PEER_NOTHING. */
int peer_recv(struct peer *peer, int timeout_ms);
/* Assert what comes. */
#define PEER_EXPECT(peer, opcode) CU_ASSERT_EQUAL_FATAL(peer_recv(peer, PEER_SOON_MS), opcode)
#define PEER_GONE(peer)		  CU_ASSERT_EQUAL(peer_recv(peer, PEER_SOON_MS), PEER_CLOSED)
/* And that nothing does. */
#define PEER_SILENT(peer) CU_ASSERT_EQUAL_FATAL(peer_recv(peer, PEER_SILENT_MS), PEER_NOTHING)
/* A Reject with this reason, which has the header that was sent. */
void peer_expect_reject(struct peer *peer, uint8_t reason, const struct iscsi_bhs *rejected);

/* ---- requests ---- */

/* Tag and numbers of a request; a request that is not immediate uses a CmdSN. */
void peer_number(struct peer *peer, struct iscsi_bhs *bhs);

void cmd_read(struct iscsi_bhs *bhs, uint16_t lun, uint32_t lba, uint32_t nblocks);
void cmd_write(struct iscsi_bhs *bhs, uint16_t lun, uint32_t lba, uint32_t nblocks);
void cmd_ready(struct iscsi_bhs *bhs, uint16_t lun);

/* Sends a command with its numbers; its ITT. */
uint32_t peer_command(struct peer *peer, struct iscsi_bhs *bhs, const void *data, uint32_t len);
/* Data-Out in answer to the R2T that came last. */
void peer_data_out(struct peer *peer, const struct iscsi_bhs *r2t, const uint8_t *data,
		   uint32_t segment);
struct iscsi_bhs peer_data_out_pdu(const struct iscsi_bhs *r2t, uint32_t data_sn, uint32_t off,
				   bool final);
/* The response of a command without data-in; its status. */
uint8_t peer_status(struct peer *peer, uint32_t itt);
/* Sense key << 16 | ASC << 8 | ASCQ of the response that came last; 0: none. */
uint32_t peer_sense(const struct peer *peer);

/* Whole commands, whatever they need. */
uint8_t peer_ready(struct peer *peer, uint16_t lun);
uint8_t peer_write_blocks(struct peer *peer, uint16_t lun, uint32_t lba, uint32_t nblocks,
			  const uint8_t *data);
/* Data-In of a read, checked on its way; its status.  max_len is our
 * MaxRecvDataSegmentLength, burst MaxBurstLength. */
uint8_t peer_read_result(struct peer *peer, uint32_t itt, uint8_t *out, uint32_t len);
uint8_t peer_read_blocks(struct peer *peer, uint16_t lun, uint32_t lba, uint32_t nblocks,
			 uint8_t *out);
/* Goes on with a write whose command is sent, to its status. */
uint8_t peer_write_finish(struct peer *peer, uint32_t itt, const uint8_t *data, uint32_t segment);

/* A ping that is answered: the connection lives, and all before it was seen. */
void peer_ping(struct peer *peer);

/* A task management function; the ITT.  ref_itt, ref_cmd_sn of ABORT TASK. */
uint32_t peer_tmf_send(struct peer *peer, uint8_t function, uint16_t lun, uint32_t ref_itt,
		       uint32_t ref_cmd_sn);
uint8_t peer_tmf(struct peer *peer, uint8_t function, uint16_t lun, uint32_t ref_itt,
		 uint32_t ref_cmd_sn);

void pattern(uint8_t *data, size_t len, uint32_t seed);

#endif
