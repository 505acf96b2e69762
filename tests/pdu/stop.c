/* The end of sessions by the target: RFC 7143 11.9 (asynchronous messages). */
#include <pthread.h>
#include <string.h>

#include "tests/pdu/tests.h"

struct stop_call {
	struct rig *rig;
	struct iscsi_target *target; /* NULL: the whole server */
	unsigned int timeout_ms;
	int ret;
	pthread_t thread;
};

static void *stop_run(void *arg)
{
	struct stop_call *call = arg;

	if (call->target)
		iscsi_server_end_sessions(call->rig->server, call->target, call->timeout_ms);
	else
		call->ret = iscsi_server_stop(call->rig->server, call->timeout_ms);
	return NULL;
}

/* 11.9.1: event 1, "the target requests Logout", within Parameter3 seconds. */
static void expect_logout_request(struct peer *peer)
{
	PEER_EXPECT(peer, ISCSI_OP_ASYNC);
	CU_ASSERT_EQUAL(peer->bhs.hdr.flags, ISCSI_FINAL);
	CU_ASSERT_EQUAL(be32_get(&peer->bhs.hdr.itt), ISCSI_TAG_RESERVED);
	CU_ASSERT_EQUAL(peer->bhs.async.event, ISCSI_ASYNC_LOGOUT_REQUEST);
	CU_ASSERT_TRUE(be16_get(&peer->bhs.async.parameter[2]) >= 1);
}

static void logout(struct peer *peer)
{
	struct iscsi_bhs bhs = { .logout_req = { .opcode = ISCSI_OP_LOGOUT_REQ | ISCSI_IMMEDIATE,
						 .reason = 0x80 } };

	peer_number(peer, &bhs);
	peer_send(peer, &bhs, NULL, 0);
	PEER_EXPECT(peer, ISCSI_OP_LOGOUT_RSP);
	CU_ASSERT_EQUAL(peer->bhs.logout_rsp.response, ISCSI_LOGOUT_CLOSED);
	PEER_GONE(peer);
	peer_close(peer);
}

/* Those that do as asked end at once; the others when the time is over. */
void stop_asks_for_logout_and_then_drops(void)
{
	struct peer good, bad, idle;
	struct stop_call call;
	struct rig rig;
	uint64_t begin;

	rig_open(&rig);
	peer_open_as(&good, &rig, 1, "");
	peer_open_as(&bad, &rig, 2, "");
	peer_init(&idle);
	peer_connect(&idle, &rig);
	rig_wait_connections(&rig, 3);
	call = (struct stop_call){ .rig = &rig, .timeout_ms = 4000, .ret = -1 };
	begin = rig_now_ms();
	pthread_create(&call.thread, NULL, stop_run, &call);
	PEER_GONE(&idle);
	expect_logout_request(&good);
	expect_logout_request(&bad);
	/* Commands are served meanwhile. */
	CU_ASSERT_EQUAL(peer_ready(&good, 0), SCSI_GOOD);
	logout(&good);
	PEER_GONE(&bad);
	pthread_join(call.thread, NULL);
	CU_ASSERT_EQUAL_FATAL(call.ret, 0);
	CU_ASSERT_TRUE(rig_now_ms() - begin >= 1800 && rig_now_ms() - begin < 4000);
	peer_close(&bad);
	peer_close(&idle);
	rig_free(&rig);
}

void stop_is_quick_when_all_log_out(void)
{
	struct stop_call call;
	struct peer peer;
	struct rig rig;
	uint64_t begin;

	rig_open(&rig);
	peer_open(&peer, &rig, "");
	call = (struct stop_call){ .rig = &rig, .timeout_ms = 6000, .ret = -1 };
	begin = rig_now_ms();
	pthread_create(&call.thread, NULL, stop_run, &call);
	expect_logout_request(&peer);
	logout(&peer);
	pthread_join(call.thread, NULL);
	CU_ASSERT_EQUAL_FATAL(call.ret, 0);
	CU_ASSERT_TRUE(rig_now_ms() - begin < 1000);
	rig_free(&rig);
}

/* What is stuck in a store is named and left; it may be tried again. */
void stop_with_a_stuck_store_says_so(void)
{
	uint8_t data[RIG_BLOCK] = { 0 };
	struct iscsi_bhs bhs;
	struct peer peer;
	struct rig rig;

	rig_open(&rig);
	peer_open(&peer, &rig, "");
	rig_fault(&rig, 1u << BK_WRITE, FAULT_STUCK, 0);
	cmd_write(&bhs, 1, 0, 1);
	peer_command(&peer, &bhs, data, sizeof(data));
	peer_ping(&peer);
	CU_ASSERT_EQUAL(iscsi_server_stop(rig.server, 400), -16);
	rig_release(&rig);
	CU_ASSERT_EQUAL_FATAL(iscsi_server_stop(rig.server, 2000), 0);
	peer_close(&peer);
	rig_free(&rig);
}

void end_of_one_targets_sessions_leaves_the_others(void)
{
	struct peer disk, other, discovery;
	struct stop_call call;
	struct rig rig;

	rig_open(&rig);
	peer_open(&disk, &rig, "");
	peer_init(&other);
	other.target = RIG_OTHER;
	peer_connect(&other, &rig);
	CU_ASSERT_EQUAL_FATAL(peer_login(&other, ""), 0);
	peer_init(&discovery);
	discovery.target = NULL;
	peer_connect(&discovery, &rig);
	CU_ASSERT_EQUAL_FATAL(peer_login(&discovery, ""), 0);
	call = (struct stop_call){ .rig = &rig, .target = rig.target[0], .timeout_ms = 500 };
	pthread_create(&call.thread, NULL, stop_run, &call);
	expect_logout_request(&disk);
	PEER_GONE(&disk);
	pthread_join(call.thread, NULL);
	CU_ASSERT_TRUE(rig_wait_sessions(&rig, 2));
	peer_ping(&other);
	peer_ping(&discovery);
	/* It may come again: the target is still there. */
	peer_close(&disk);
	peer_open(&disk, &rig, "");
	peer_close(&disk);
	peer_close(&other);
	peer_close(&discovery);
	rig_stop(&rig);
}
