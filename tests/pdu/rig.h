/*
 * The server under test: reactors, LUNs, two targets and an iSCSI server in
 * this process, on a free port of the loopback.
 *
 * rig_prepare() fills in the defaults, the test changes what it is about, then
 * rig_start() ... rig_stop(); rig_open() is the first two in one.  The thread of
 * main() is the control thread and the initiator (peer.h) at once.
 */
#ifndef TESTS_PDU_RIG_H
#define TESTS_PDU_RIG_H

#include "target/iscsi/iscsi.h"
#include "tests/unit/quintain_test.h"

#define RIG_IQN	  "iqn.2026-11.org.example:"
#define RIG_HOST  RIG_IQN "host"
#define RIG_DISK  RIG_IQN "disk"  /* LUN 0 memory, 1 fault, 2 file */
#define RIG_OTHER RIG_IQN "other" /* LUN 0 memory */
#define RIG_TAG	  7		  /* of the portal group */

#define RIG_BLOCK 512u

enum rig_lun { RIG_MEMORY, RIG_FAULT, RIG_FILE, RIG_OTHER_MEMORY, RIG_LUNS };

struct rig {
	/* to be changed between rig_prepare() and rig_start() */
	unsigned int nreactors; /* 2 */
	uint64_t buffer_bytes;	/* of each reactor */
	struct iscsi_limits limits;
	struct iscsi_server_settings settings;
	unsigned int nextra;  /* targets that are only names */
	const char *file_dir; /* of LUN 2; NULL: TEST_TMP */

	uint16_t port;
	struct reactor *reactor[4];
	struct iscsi_server *server;
	struct scsi_target *scsi[2];
	struct iscsi_target *target[2];
	struct iscsi_target *extra;
	struct scsi_target *scsi_extra;
	struct scsi_lun *lun[RIG_LUNS];
	struct backing *backing[RIG_LUNS];
	char path[256];
};

void rig_prepare(struct rig *rig);
void rig_start(struct rig *rig);
void rig_open(struct rig *rig);

/* All peers are closed; asserts that the server ends without anything stuck. */
void rig_stop(struct rig *rig);
/* The parts of it, for tests of the stop itself. */
void rig_free(struct rig *rig);

/* From now on operations of the fault LUN (1u << enum bk_op) do as kind says. */
void rig_fault(struct rig *rig, uint32_t ops, enum fault_kind kind, uint32_t delay_ms);
/* Nothing more is held, and what was goes on. */
void rig_release(struct rig *rig);

/* Waits until the server has n sessions; false: it had not within 3 s. */
bool rig_wait_sessions(struct rig *rig, unsigned int n);
bool rig_wait_connections(struct rig *rig, unsigned int n);
/* The window of the first session. */
uint32_t rig_window(struct rig *rig);

void rig_sleep_ms(unsigned int ms);
uint64_t rig_now_ms(void);

#endif
