/*
 * What the files of target/scsi share.
 *
 * A command goes through scsi_cmd_prepare() (cmd.c: its row in scsi_opcodes[],
 * then the checks that every row asks for, then the row's own judge) and
 * scsi_cmd_execute() (the row's run).  Whatever run starts ends in exactly one
 * of scsi_good(), scsi_reply*(), scsi_fail*(), scsi_status().
 *
 * Who may touch what
 *  - struct lun_reactor: its reactor only, counters apart (read anywhere);
 *  - scsi_lun, the part marked so: under scsi_lun->lock;
 *  - scsi_target->nexuses: under scsi_target->lock;
 *  - scsi_lun->state, ->holder, nexus pending bits, map entries: atomics that
 *    the fast path reads and that change under the lock of their owner.
 * scsi_lun->lock is taken before scsi_target->lock, never the other way.
 */
#ifndef SCSI_INTERNAL_H
#define SCSI_INTERNAL_H

#include "base/be.h"
#include "base/list.h"
#include "target/scsi/opcodes.h"
#include "target/scsi/scsi.h"
#include "target/scsi/sense.h"

/* ---- logical units (lun.c) ---- */

enum lun_state {
	LUN_NO_STORE = 1u << 0,
	LUN_SWAPPING = 1u << 1, /* the store is being changed: BUSY */
	LUN_STOPPED = 1u << 2,	/* START STOP UNIT */
	LUN_EJECTED = 1u << 3,
	LUN_SWP = 1u << 4,	    /* control mode page */
	LUN_D_SENSE = 1u << 5,	    /* control mode page */
	LUN_UNMAPS = 1u << 6,	    /* the store has UNMAP */
	LUN_READ_ONLY = 1u << 7,    /* the store is */
	LUN_ZEROES_UNMAP = 1u << 8, /* WRITE SAME with UNMAP frees */
	LUN_WCE_OFF = 1u << 9,	    /* caching mode page: what is written is durable */
};

#define LUN_NOT_READY (LUN_NO_STORE | LUN_SWAPPING | LUN_STOPPED | LUN_EJECTED)

/* Bytes of each lun_reactor's scratch: what VERIFY, ORWRITE and WRITE SAME read
 * to or write from beside the data of the command, a step at a time. */
#define LUN_SCRATCH (64u << 10)

/* One reactor's part of a LUN. */
struct lun_reactor {
	struct reactor *reactor;
	struct bk_channel *channel; /* NULL: no store here */
	uint32_t generation;	    /* of channel */
	uint32_t in_flight;	    /* commands that are executing */
	struct list cmds;	    /* prepared and executing */
	uint8_t *scratch;	    /* LUN_SCRATCH bytes, page aligned */
	struct scsi_cmd *scratch_owner;
	struct list scratch_waiters; /* scsi_cmd.wait_link */
	uint64_t read_bytes, write_bytes, errors, read_errors, write_errors;
	uint64_t count[SCSI_OPCODES_MAX]; /* by row */
};

struct lun_mapping {
	struct list link;
	struct scsi_target *target;
	uint16_t number;
};

struct scsi_lun {
	_Atomic uint32_t state;		     /* enum lun_state */
	_Atomic(struct scsi_nexus *) holder; /* SPC-2 reservation */
	_Atomic(struct lun_reactor *) per[REACTORS_MAX];

	/* Under lock. */
	pthread_mutex_t lock;
	char *name;
	struct scsi_lun_settings settings; /* strings are ours */
	struct scsi_identity identity;
	struct backing *backing;
	struct list mappings;
	uint32_t nprevent; /* nexuses that prevent medium removal */
};

/* The LUN's part for a reactor, made when missing; NULL: no memory.  Not on
 * the data path. */
struct lun_reactor *lun_reactor_get(struct scsi_lun *lun, struct reactor *reactor);

/* Any thread: what scsi_lun_stats() says, but for the store. */
void lun_counters(const struct scsi_lun *lun, struct scsi_lun_stats *out);

static inline void lun_state_set(struct scsi_lun *lun, uint32_t bits)
{
	atomic_fetch_or(&lun->state, bits);
}

static inline void lun_state_clear(struct scsi_lun *lun, uint32_t bits)
{
	atomic_fetch_and(&lun->state, ~bits);
}

/* One writer, the reactor; readers anywhere. */
static inline void counter_add(uint64_t *counter, uint64_t n)
{
	__atomic_store_n(counter, *counter + n, __ATOMIC_RELAXED);
}

/* ---- targets and nexuses (target.c, nexus.c) ---- */

#define LUN_PAGE 256

struct map_page {
	_Atomic(struct scsi_lun *) lun[LUN_PAGE];
};

struct scsi_target {
	char *name;
	_Atomic(struct map_page *) pages[SCSI_LUNS_MAX / LUN_PAGE];
	pthread_mutex_t lock;
	struct list nexuses; /* under lock */
};

/* A nexus and a LUN. */
struct nexus_lun {
	_Atomic uint32_t pending; /* 1u << enum scsi_ua */
	bool prevent;		  /* under the LUN's lock */
};

struct nexus_page {
	struct nexus_lun lun[LUN_PAGE];
};

struct scsi_nexus {
	struct scsi_target *target;
	struct reactor *reactor;
	_Atomic bool luns_changed; /* UA_LUNS_CHANGED, once for all LUNs */
	bool holds;		   /* it has reserved or prevented something */
	_Atomic(struct nexus_page *) pages[SCSI_LUNS_MAX / LUN_PAGE];
	struct list link; /* scsi_target.nexuses */
	struct scsi_nexus_id id;
};

struct scsi_lun *target_lun(const struct scsi_target *target, int number);
/* NULL when the nexus has no such LUN. */
struct nexus_lun *nexus_lun(struct scsi_nexus *nexus, int number);
/* Makes the nexus's part for a LUN number; under target->lock; false: no memory. */
bool nexus_add_lun(struct scsi_nexus *nexus, uint16_t number);
/* Gives up what a nexus holds of a LUN: reservation, prevention of removal. */
void nexus_release_lun(struct scsi_nexus *nexus, struct scsi_lun *lun, uint16_t number);

/* What VPD page B2 and log page 0C count space in, in bytes. */
#define SCSI_THRESHOLD_SET (1u << 20)

/* ---- unit attentions (ua.c) ---- */

/* In the order in which they are reported (SAM-5 5.14). */
enum scsi_ua {
	UA_POWER_ON,
	UA_RESET,
	UA_MEDIUM_CHANGED,
	UA_CAPACITY_CHANGED,
	UA_MODE_CHANGED,
	UA_THRESHOLD,
	UA_INQUIRY_CHANGED,
	UA_COMMANDS_CLEARED,
	UA_COUNT,
};

/* For each nexus of the LUN but except (may be NULL).  lun->lock is held. */
void ua_raise(struct scsi_lun *lun, const struct scsi_nexus *except, enum scsi_ua ua);
static inline bool ua_pending(const struct scsi_nexus *nexus, const struct nexus_lun *nl)
{
	return atomic_load_explicit(&nl->pending, memory_order_relaxed) != 0 ||
	       atomic_load_explicit(&nexus->luns_changed, memory_order_relaxed);
}
/* Takes the first one; SENSE_COUNT: there was none. */
enum sense ua_take(struct scsi_nexus *nexus, struct nexus_lun *nl);

/* ---- commands (cmd.c, io.c) ---- */

/* In prepare: set the result and return false. */
bool scsi_refuse(struct scsi_cmd *cmd, enum sense sense);
bool scsi_refuse_field(struct scsi_cmd *cmd, uint8_t byte, int8_t bit);
bool scsi_refuse_status(struct scsi_cmd *cmd, enum scsi_status status);

/* In run: each ends the command. */
void scsi_good(struct scsi_cmd *cmd);
void scsi_status_end(struct scsi_cmd *cmd, enum scsi_status status);
void scsi_fail(struct scsi_cmd *cmd, enum sense sense);
void scsi_fail_detail(struct scsi_cmd *cmd, enum sense sense, const struct sense_detail *detail);
void scsi_fail_field(struct scsi_cmd *cmd, uint8_t byte, int8_t bit);
void scsi_fail_parameter(struct scsi_cmd *cmd, uint16_t byte, int8_t bit);
/* A store's error at byte bad_off of the medium. */
void scsi_fail_errno(struct scsi_cmd *cmd, int code, uint64_t bad_off);

/* Data-in: puts bytes at the end of the reply as far as there is room, counts
 * all of them; then scsi_reply_end(), or scsi_reply() for a reply in one piece. */
void scsi_reply_put(struct scsi_cmd *cmd, const void *data, size_t len);
void scsi_reply_end(struct scsi_cmd *cmd);
void scsi_reply(struct scsi_cmd *cmd, const void *data, size_t len);

/* Data-out: copies len bytes from off on; they must be there. */
void scsi_data_out(const struct scsi_cmd *cmd, uint64_t off, void *to, size_t len);

/* The command's iovec for its first len bytes (> 0); the last entry is cut to
 * length until the command ends. */
const struct iovec *scsi_cmd_iov(struct scsi_cmd *cmd, uint64_t len, uint16_t *count);

/* Submits one request; next is called when it has succeeded and the command is
 * not aborted; otherwise the command ends. */
void scsi_io(struct scsi_cmd *cmd, enum bk_op op, uint8_t flags, uint64_t off, uint64_t len,
	     const struct iovec *iov, uint16_t iovcnt, void (*next)(struct scsi_cmd *cmd));

/* The reactor's scratch for this LUN: next is called when it is ours, maybe at
 * once.  It is given back when the command ends. */
void scsi_scratch(struct scsi_cmd *cmd, void (*next)(struct scsi_cmd *cmd));

/* Limits of the command's store. */
static inline const struct bk_limits *cmd_limits(const struct scsi_cmd *cmd)
{
	return &cmd->channel->backing->limits;
}

/* Flags of a write or read from DPO and FUA at their usual place (byte 1). */
uint8_t scsi_cache_flags(const struct scsi_cmd *cmd);

/* The longest transfer of one command; VPD B0 reports it. */
#define SCSI_TRANSFER_MAX BUFPOOL_TRANSFER_MAX
/* The longest WRITE SAME, in blocks; VPD B0 reports it. Less than 65536, so
 * that it is one for both CDBs and a host that first writes as many blocks (as
 * conformance tests do) stays within SCSI_TRANSFER_MAX. */
#define SCSI_WRITE_SAME_BLOCKS_MAX 32768
/* What one UNMAP may have; VPD B0 reports them. */
#define SCSI_UNMAP_BLOCKS_MAX	   (1u << 20)
#define SCSI_UNMAP_DESCRIPTORS_MAX 256

/* ---- handlers, by file ---- */

/* inquiry.c, vpd.c */
bool inquiry_judge(struct scsi_cmd *cmd);
void inquiry_run(struct scsi_cmd *cmd);
bool vpd_page_known(uint8_t page);
void vpd_run(struct scsi_cmd *cmd);
/* The text designators of a LUN; lun->lock is held. */
#define LUN_SERIAL_MAX 64
void lun_serial(const struct scsi_lun *lun, char out[LUN_SERIAL_MAX + 1]);
uint64_t lun_naa(const struct scsi_lun *lun);

/* request_sense.c, report_luns.c, opcodes_report.c, reserve.c, diagnostic.c */
void request_sense_run(struct scsi_cmd *cmd);
bool report_luns_judge(struct scsi_cmd *cmd);
void report_luns_run(struct scsi_cmd *cmd);
bool report_opcodes_judge(struct scsi_cmd *cmd);
void report_opcodes_run(struct scsi_cmd *cmd);
void report_tmf_run(struct scsi_cmd *cmd);
void reserve_run(struct scsi_cmd *cmd);
void release_run(struct scsi_cmd *cmd);
bool reservation_allows(const struct scsi_cmd *cmd);
void reservation_release(struct scsi_lun *lun, const struct scsi_nexus *nexus);
bool diagnostic_judge(struct scsi_cmd *cmd);
void diagnostic_run(struct scsi_cmd *cmd);
void receive_diagnostic_run(struct scsi_cmd *cmd);

/* unit.c: TEST UNIT READY, START STOP UNIT, PREVENT ALLOW MEDIUM REMOVAL */
void test_unit_ready_run(struct scsi_cmd *cmd);
bool start_stop_judge(struct scsi_cmd *cmd);
void start_stop_run(struct scsi_cmd *cmd);
void prevent_allow_run(struct scsi_cmd *cmd);

/* mode.c, mode_select.c, mode_pages.c, log.c */
bool mode_sense_judge(struct scsi_cmd *cmd);
void mode_sense_run(struct scsi_cmd *cmd);
bool mode_select_judge(struct scsi_cmd *cmd);
void mode_select_run(struct scsi_cmd *cmd);
bool log_sense_judge(struct scsi_cmd *cmd);
void log_sense_run(struct scsi_cmd *cmd);

/* capacity.c, lba_status.c */
bool read_capacity10_judge(struct scsi_cmd *cmd);
void read_capacity10_run(struct scsi_cmd *cmd);
void read_capacity16_run(struct scsi_cmd *cmd);
void lba_status_run(struct scsi_cmd *cmd);

/* rw.c, verify.c, write_same.c, unmap.c, cache.c */
bool rw_judge(struct scsi_cmd *cmd);
void read_run(struct scsi_cmd *cmd);
void write_run(struct scsi_cmd *cmd);
bool verify_judge(struct scsi_cmd *cmd);
void verify_run(struct scsi_cmd *cmd);
bool write_verify_judge(struct scsi_cmd *cmd);
void write_verify_run(struct scsi_cmd *cmd);
void orwrite_run(struct scsi_cmd *cmd);
bool write_same_judge(struct scsi_cmd *cmd);
void write_same_run(struct scsi_cmd *cmd);
bool unmap_judge(struct scsi_cmd *cmd);
void unmap_run(struct scsi_cmd *cmd);
void synchronize_cache_run(struct scsi_cmd *cmd);
void prefetch_run(struct scsi_cmd *cmd);

#endif
