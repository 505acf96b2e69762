/*
 * PDUs of an initiator, in the login phase and behind it: whatever their
 * headers say, the server neither reads nor writes beyond its buffers, ends
 * nothing twice, and lets go of the connection when the peer is gone.
 *
 * An input is a byte of options (enum option) and a row of PDUs, each: how it
 * is made whole (enum make), 48 bytes of header, a byte for the length of its
 * data in units of 16 bytes.  The data is what follows in the input.
 *
 * The connection is one end of a socket pair, handed to the reactor as if it
 * had been accepted.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "target/iscsi/server.h"
#include "target/iscsi/session.h"

#define IQN	 "iqn.2000-01.fuzz:disk"
#define PDUS_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

enum option {
	OPTION_NO_LOGIN = 1u << 0,
	OPTION_UNSOLICITED = 1u << 1,
	OPTION_HEADER_DIGEST = 1u << 2,
	OPTION_DISCOVERY = 1u << 3,
};

enum make {
	MAKE_LENGTH = 1u << 0, /* DataSegmentLength is that of the data */
	MAKE_NUMBER = 1u << 1, /* CmdSN is the next one */
	MAKE_NO_AHS = 1u << 2,
	MAKE_SPLIT = 1u << 3, /* sent in two pieces */
};

static struct {
	struct reactor *reactor;
	struct iscsi_server *server;
	int accept_fd;
} fuzz;

/* ---- the server, once ---- */

static struct scsi_target *disk_target(void)
{
	static const struct scsi_identity identity = { { 9, 8, 7, 6, 5, 4, 3, 2, 1 } };
	struct scsi_target *target = scsi_target_create(IQN);
	struct scsi_lun_settings lun_settings;
	struct backing_settings settings;
	struct backing *backing;
	struct scsi_lun *lun;

	option_defaults(backing_options, &settings);
	option_defaults(scsi_lun_options, &lun_settings);
	settings.backend = BACKING_KIND_RAMDISK;
	settings.size = 1u << 20;
	lun = scsi_lun_create("disk", &lun_settings, &identity);
	if (!target || !lun || backing_open(&settings, &backing, NULL) < 0 ||
	    scsi_lun_set_backing(lun, backing, &fuzz.reactor, 1, NULL) < 0 ||
	    scsi_target_map(target, 0, lun) < 0)
		abort();
	return target;
}

static struct iscsi_view *one_disk_view(void)
{
	struct arena *arena = arena_create();
	struct iscsi_view *view = arena_alloc(arena, sizeof(*view));
	struct iscsi_auth_group *auth = arena_alloc(arena, sizeof(*auth));
	struct iscsi_portal_group *group = arena_alloc(arena, sizeof(*group));
	struct iscsi_target_port *port = arena_alloc(arena, sizeof(*port));
	struct iscsi_target_view *target = arena_alloc(arena, sizeof(*target));

	option_defaults(iscsi_limits_options, &view->limits);
	option_defaults(iscsi_server_options, &view->server);
	view->limits.initial_r2t = false;
	*auth = (struct iscsi_auth_group){ .name = "all", .type = ISCSI_AUTH_NONE };
	*group = (struct iscsi_portal_group){ .name = "pg", .tag = 1, .discovery_auth = auth };
	*port = (struct iscsi_target_port){ .group = group, .auth = auth, .relative_port = 1 };
	*target = (struct iscsi_target_view){
		.name = IQN,
		.ports = port,
		.nports = 1,
		.limits = view->limits,
		.target = iscsi_target_create(fuzz.server, IQN, disk_target()),
	};
	view->arena = arena;
	view->groups = group;
	view->ngroups = 1;
	view->targets = target;
	view->ntargets = 1;
	return view;
}

static void setup(void)
{
	struct reactor_config config = { .cpu = -1,
					 .ring_entries = 256,
					 .buffer_bytes = BUFPOOL_BYTES_MIN };
	struct iscsi_server_settings settings;

	log_set_level(LOG_LEVEL_ERROR);
	option_defaults(iscsi_server_options, &settings);
	settings.command_slots = 1024;
	settings.max_connections = 64;
	if (reactor_start(&config, &fuzz.reactor, NULL) < 0 ||
	    iscsi_server_create(&settings, &fuzz.reactor, 1, &fuzz.server, NULL) < 0 ||
	    iscsi_server_set_view(fuzz.server, one_disk_view(), NULL) < 0)
		abort();
}

static void accept_one(void *arg)
{
	struct sockaddr_storage peer = { .ss_family = AF_INET };

	(void)arg;
	iscsi_conn_accept(fuzz.server->reactor[0], fuzz.accept_fd, &peer, "pg");
}

/* Lets the reactor see what has been sent so far. */
static void nothing(void *arg)
{
	(void)arg;
}

/* ---- the peer ---- */

static bool send_all(int fd, const void *bytes, size_t len)
{
	return send(fd, bytes, len, MSG_NOSIGNAL) == (ssize_t)len;
}

/* Logs in with one PDU and waits for its answer. */
static bool log_in(int fd, uint8_t options)
{
	static const char normal[] = "InitiatorName=iqn.2000-01.fuzz:host\0TargetName=" IQN
				     "\0SessionType=Normal";
	static const char discovery[] = "InitiatorName=iqn.2000-01.fuzz:host\0"
					"SessionType=Discovery";
	static const char unsolicited[] = "InitialR2T=No";
	static const char digest[] = "HeaderDigest=CRC32C";
	char pdu[512] = { 0 }, answer[1024];
	struct iscsi_login_req *req = (struct iscsi_login_req *)pdu;
	size_t len = ISCSI_BHS_LEN;

	req->opcode = ISCSI_OP_LOGIN_REQ | ISCSI_IMMEDIATE;
	req->flags = ISCSI_LOGIN_TRANSIT | ISCSI_STAGE_OPERATIONAL << 2 | ISCSI_STAGE_FULL_FEATURE;
	req->isid[0] = 0x80;
	be32_put(&req->cmd_sn, 1);
	if (options & OPTION_DISCOVERY) {
		memcpy(pdu + len, discovery, sizeof(discovery));
		len += sizeof(discovery);
	} else {
		memcpy(pdu + len, normal, sizeof(normal));
		len += sizeof(normal);
	}
	if (options & OPTION_UNSOLICITED) {
		memcpy(pdu + len, unsolicited, sizeof(unsolicited));
		len += sizeof(unsolicited);
	}
	if (options & OPTION_HEADER_DIGEST) {
		memcpy(pdu + len, digest, sizeof(digest));
		len += sizeof(digest);
	}
	be24_put(&req->data_segment_len, (uint32_t)(len - ISCSI_BHS_LEN));
	len += ISCSI_PAD(len);
	return send_all(fd, pdu, len) && recv(fd, answer, sizeof(answer), 0) >= ISCSI_BHS_LEN;
}

/* Sends the next PDU of the input; the bytes that it took, 0: the end. */
static size_t send_pdu(int fd, const uint8_t *in, size_t len, uint32_t *cmd_sn, bool *alive)
{
	static const uint8_t pad[4];
	struct iscsi_bhs bhs;
	uint32_t data_len;
	uint8_t make;

	if (len < ISCSI_BHS_LEN + 2)
		return 0;
	make = in[0];
	memcpy(&bhs, in + 1, sizeof(bhs));
	data_len = in[ISCSI_BHS_LEN + 1] * 16u;
	in += ISCSI_BHS_LEN + 2;
	len -= ISCSI_BHS_LEN + 2;
	if (data_len > len)
		data_len = (uint32_t)len;
	if (make & MAKE_LENGTH)
		be24_put(&bhs.hdr.data_segment_len, data_len);
	if (make & MAKE_NO_AHS)
		bhs.hdr.total_ahs_len = 0;
	if (make & MAKE_NUMBER) {
		be32_put(&bhs.scsi_cmd.cmd_sn, *cmd_sn);
		*cmd_sn += !(bhs.hdr.opcode & ISCSI_IMMEDIATE);
	}
	if (make & MAKE_SPLIT) {
		*alive = send_all(fd, &bhs, 20);
		reactor_call(fuzz.reactor, nothing, NULL);
		*alive = *alive && send_all(fd, bhs.bytes + 20, 28);
	} else {
		*alive = send_all(fd, &bhs, sizeof(bhs));
	}
	*alive = *alive && send_all(fd, in, data_len) &&
		 (ISCSI_PAD(data_len) == 0 || send_all(fd, pad, ISCSI_PAD(data_len)));
	return ISCSI_BHS_LEN + 2 + data_len;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static uint8_t answer[65536];
	bool alive = true;
	uint32_t cmd_sn = 1;
	int fds[2];

	if (!fuzz.reactor)
		setup();
	if (len == 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		return 0;
	fuzz.accept_fd = fds[1];
	reactor_call(fuzz.reactor, accept_one, NULL);
	if (!(data[0] & OPTION_NO_LOGIN))
		alive = log_in(fds[0], data[0]);
	data++;
	len--;
	for (int i = 0; i < PDUS_MAX && alive; i++) {
		size_t n = send_pdu(fds[0], data, len, &cmd_sn, &alive);

		if (n == 0)
			break;
		data += n;
		len -= n;
	}
	/* What is not answered by then is given up with the connection. */
	shutdown(fds[0], SHUT_WR);
	while (recv(fds[0], answer, sizeof(answer), 0) > 0)
		;
	close(fds[0]);
	return 0;
}
