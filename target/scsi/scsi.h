/*
 * SCSI: LUNs, nexuses and commands, as a transport sees them.
 *
 * Purpose: judge and execute SCSI commands over stores, from tables.  No
 * sockets and no configuration here.
 *
 * A transport (target/iscsi)
 *  - makes a struct scsi_target for each target, maps LUNs into it,
 *  - opens a struct scsi_nexus for each session and closes it at its end,
 *  - embeds a struct scsi_cmd in each command slot and runs it in two steps:
 *
 *	scsi_cmd_prepare()	judges the CDB; says how much data to move
 *	(collect data_out_len bytes, or get buffers for buf_len)
 *	scsi_cmd_execute()	does it; done is called later, once
 *
 * Threads: targets, LUNs and their mapping change on the control thread under
 * the LUN's mutex.  Commands run on the reactor of their nexus.  A LUN serves
 * all reactors at once; what they share is read through atomics, and changed
 * under scsi_lun->lock, off the fast path.
 */
#ifndef SCSI_SCSI_H
#define SCSI_SCSI_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "backing/backing.h"
#include "target/scsi/settings.h"

#define SCSI_CDB_MAX   32
#define SCSI_SENSE_MAX 64
#define SCSI_LUNS_MAX  16384 /* LUN numbers 0..16383 */
#define SCSI_NAME_MAX  224   /* iSCSI name with its NUL (RFC 7143 4.2.7.1) */

/* SAM-5 5.3.1 */
enum scsi_status {
	SCSI_GOOD = 0x00,
	SCSI_CHECK_CONDITION = 0x02,
	SCSI_CONDITION_MET = 0x04,
	SCSI_BUSY = 0x08,
	SCSI_RESERVATION_CONFLICT = 0x18,
	SCSI_TASK_SET_FULL = 0x28,
	SCSI_ACA_ACTIVE = 0x30,
	SCSI_TASK_ABORTED = 0x40,
};

enum scsi_dir {
	SCSI_NO_DATA,
	SCSI_DATA_IN,  /* to the initiator */
	SCSI_DATA_OUT, /* from the initiator */
};

/* ---- LUNs ---- */

/*
 * What makes a disk the same disk for its hosts.  Random at first use and kept
 * by the caller (state directory, or the pool for volumes).
 */
struct scsi_identity {
	uint8_t uuid[16];
};

struct scsi_lun; /* one logical unit; may be mapped in several targets */

/*
 * Control thread.  backing may be NULL: a LUN whose store is not there is NOT
 * READY (02/04/00) and gets its store later by scsi_lun_set_backing().  block
 * sizes for a LUN without a store come from nowhere: READ CAPACITY fails too.
 */
struct scsi_lun *scsi_lun_create(const char *name, const struct scsi_lun_settings *settings,
				 const struct scsi_identity *identity);

/*
 * Control thread, which waits for the reactors.  Swaps the store: commands in
 * flight on the old one end first; the caller then closes the old one.
 * backing NULL: NOT READY from now on.  Attaches on all reactors given.
 * Meanwhile commands end with BUSY.  -EBUSY: the old store did not finish its
 * commands within SCSI_DRAIN_MS and stays in place.  When attaching fails the
 * LUN has no store.
 */
int scsi_lun_set_backing(struct scsi_lun *lun, struct backing *backing,
			 struct reactor *const *reactors, unsigned int nreactors, struct err *err);
/* How long the control thread waits for commands in flight. */
#define SCSI_DRAIN_MS 5000
struct backing *scsi_lun_backing(const struct scsi_lun *lun);

/* Control thread.  The store's size has changed: each nexus is told once
 * (06/2A/09 CAPACITY DATA HAS CHANGED). */
void scsi_lun_capacity_changed(struct scsi_lun *lun);

/* Control thread; settings that can change while the LUN is in use. */
void scsi_lun_set_settings(struct scsi_lun *lun, const struct scsi_lun_settings *settings);

/* Control thread.  The LUN must be unmapped everywhere and have no store. */
void scsi_lun_destroy(struct scsi_lun *lun);

const char *scsi_lun_name(const struct scsi_lun *lun);

struct scsi_lun_stats {
	uint64_t reads, writes, read_bytes, write_bytes, flushes, unmaps, others;
	uint64_t errors;		    /* commands that ended with CHECK CONDITION */
	uint64_t read_errors, write_errors; /* of the medium */
	bool ready;
	uint64_t size_bytes;
	uint32_t block_size;
};
/* Control thread, as the store comes and goes there. */
void scsi_lun_stats(const struct scsi_lun *lun, struct scsi_lun_stats *out);
/* Commands of each kind: the name of a row, from 0 on, and how many of it came;
 * NULL: there is no such row. */
const char *scsi_lun_opcode_count(const struct scsi_lun *lun, unsigned int row, uint64_t *count);

/* ---- targets: a map of LUN numbers, and ports ---- */

struct scsi_target;

/* Control thread.  name is the SCSI device name (the iSCSI name). */
struct scsi_target *scsi_target_create(const char *name);
void scsi_target_destroy(struct scsi_target *target); /* no nexus left */

/* Control thread.  Every nexus of the target is told once (06/3F/0E REPORTED
 * LUNS DATA HAS CHANGED) when it was already in use. */
int scsi_target_map(struct scsi_target *target, uint16_t number, struct scsi_lun *lun);
/*
 * Takes the LUN out of the map: new commands do not find it, those that were
 * prepared and not executed end with LOGICAL UNIT NOT SUPPORTED.  Returns when
 * no command of this target uses it any more.  -EBUSY: the LUN is out of the
 * map, but a store that does not answer still holds commands of it after
 * SCSI_DRAIN_MS; scsi_lun_wait() must succeed before the LUN or the target is
 * destroyed.  -ENOENT: no such LUN.
 */
int scsi_target_unmap(struct scsi_target *target, uint16_t number);
/* Waits again: 0 or -EBUSY. */
int scsi_lun_wait(struct scsi_lun *lun, const struct scsi_target *target);
struct scsi_lun *scsi_target_lun(const struct scsi_target *target, uint16_t number);

/* ---- nexus: one I_T nexus, that is one session ---- */

/*
 * Named by initiator name, ISID and target port (target, portal group).  Holds
 * the unit attentions of each LUN, reservations and later registrations.
 */
struct scsi_nexus;

struct scsi_nexus_id {
	char initiator_name[SCSI_NAME_MAX];
	uint8_t isid[6];
	uint16_t portal_group_tag;
	uint16_t relative_port; /* stable over restarts: VPD 83 */
};

/* On the session's reactor.  NULL: no memory.  Raises the power-on unit
 * attention (29/00) once for each LUN. */
struct scsi_nexus *scsi_nexus_open(struct scsi_target *target, const struct scsi_nexus_id *id,
				   struct reactor *reactor);
/* On its reactor.  No command of it is left.  Reservations of it end. */
void scsi_nexus_close(struct scsi_nexus *nexus);
const struct scsi_nexus_id *scsi_nexus_id(const struct scsi_nexus *nexus);

/* ---- commands ---- */

struct scsi_opcode;
struct lun_reactor;

/* Extents asked of the store at a time by GET LBA STATUS. */
#define SCSI_EXTENTS 4

/* SAM-5 8.6, as RFC 7143 11.3.1 carries it */
enum scsi_task_attr {
	SCSI_TASK_UNTAGGED = 0,
	SCSI_TASK_SIMPLE = 1,
	SCSI_TASK_ORDERED = 2,
	SCSI_TASK_HEAD_OF_QUEUE = 3,
	SCSI_TASK_ACA = 4,
};

struct scsi_cmd {
	/* Filled by the transport before scsi_cmd_prepare(). */
	struct scsi_nexus *nexus;
	uint8_t lun_field[8]; /* SAM-5 4.7 */
	uint8_t cdb[SCSI_CDB_MAX];
	uint8_t cdb_len;       /* bytes the initiator sent: 16..32 */
	uint8_t attr;	       /* enum scsi_task_attr */
	uint8_t initiator_dir; /* enum scsi_dir: what the initiator expects */
	uint32_t edtl;	       /* bytes: Expected Data Transfer Length */
	void (*done)(struct scsi_cmd *cmd);

	/* Filled by scsi_cmd_prepare(). */
	uint8_t dir;	       /* enum scsi_dir of this CDB */
	uint32_t transfer_len; /* bytes that the CDB asks for, either way */
	uint32_t data_out_len; /* bytes to collect before execute: min(transfer, edtl) */
	uint32_t buf_len;      /* bytes of buffer to bring: data_out_len, or room for
				  * the data in, at most BUFPOOL_TRANSFER_MAX; 0: none */
	bool write_inline;     /* data_out may be a receive area that is gone when
				  * the next reactor_transfers_make() returns */

	/* Filled by the transport before scsi_cmd_execute(). */
	struct iovec *iov; /* buf_len bytes in all */
	uint32_t iovcnt;

	/* The result, valid in done. */
	uint8_t status; /* enum scsi_status */
	uint8_t sense_len;
	uint8_t sense[SCSI_SENSE_MAX];
	uint32_t data_in_len;  /* bytes to send from iov, <= min(edtl, buf_len) */
	uint32_t residual_len; /* bytes that the CDB would have moved, for residuals:
				  * RFC 7143 11.4.5 compares this with edtl */

	/* Private to target/scsi. */
	const struct scsi_opcode *op;
	struct scsi_lun *lun;
	struct lun_reactor *per; /* the LUN's part for this reactor */
	struct bk_channel *channel;
	struct bk_req req;
	struct iovec rw_iov[2];
	struct bk_extent extents[SCSI_EXTENTS];
	uint64_t lba;
	uint64_t nblocks;
	uint64_t progress;  /* of commands that take several requests */
	uint64_t reply_len; /* data-in so far, whether there was room or not */
	void (*next)(struct scsi_cmd *cmd);
	uint32_t generation; /* of the store when it was prepared */
	uint32_t out_len;    /* data-out that came */
	uint32_t step;
	int lun_number;	    /* -1: none that we use */
	uint32_t cut_index; /* iov[cut_index] was shortened from cut_len */
	size_t cut_len;	    /* 0: none */
	bool aborted;
	bool prepared;
	bool executing;
	bool in_execute; /* within scsi_cmd_execute(): completion is deferred */
	bool gone;	 /* the LUN was unmapped before it was executed */
	struct list lun_link;
	struct list wait_link; /* for the LUN's scratch */
	struct reactor_work finish;
};

/*
 * Judges the command: LUN, CDB against its row, unit attentions, reservations,
 * range.  True: go on and call scsi_cmd_execute(), or scsi_cmd_drop() when the
 * transport gives up before that.  False: it has ended; status and sense are
 * set, and done is NOT called.
 *
 * dir and transfer_len are set in both cases as far as the CDB says them.
 */
bool scsi_cmd_prepare(struct scsi_cmd *cmd);

/*
 * Does it; done is called once, later, on this reactor.  out_len is how much
 * of data_out_len has really come (less: the initiator sent less, the command
 * ends with an error that says so).
 */
void scsi_cmd_execute(struct scsi_cmd *cmd, uint32_t out_len);

/* What a transport has to say of a command's data (RFC 7143 11.4.7.2). */
enum scsi_data_fault {
	SCSI_DATA_OUT_OF_SEQUENCE, /* DATA PHASE ERROR */
	SCSI_DATA_AT_WRONG_OFFSET, /* DATA OFFSET ERROR */
	SCSI_DATA_AMOUNT_WRONG,	   /* more or less than was announced */
};

/* Ends a command that was prepared and not executed: status and sense are set,
 * done is not called. */
void scsi_cmd_data_fault(struct scsi_cmd *cmd, enum scsi_data_fault fault);

/* A command that was prepared and will not be executed. */
void scsi_cmd_drop(struct scsi_cmd *cmd);

/*
 * A command that is executing has been aborted: it stops between two requests
 * to its store (WRITE SAME, UNMAP, VERIFY) instead of going on.  done still
 * comes, when nothing of it can reach the store any more; its status is
 * TASK ABORTED unless it was over already.
 */
void scsi_cmd_abort(struct scsi_cmd *cmd);

/* ---- task management (SAM-5 7), the part that crosses sessions ---- */

enum scsi_tmf {
	SCSI_TMF_ABORT_TASK,
	SCSI_TMF_ABORT_TASK_SET,
	SCSI_TMF_CLEAR_ACA,
	SCSI_TMF_CLEAR_TASK_SET,
	SCSI_TMF_LUN_RESET,
	SCSI_TMF_TARGET_RESET,
};

/* The number of the LUN in an 8-byte LUN field, or -1 when it is not one that
 * we use (SAM-5 4.7.7: peripheral device or flat space addressing). */
int scsi_lun_number(const uint8_t field[8]);
void scsi_lun_field(uint16_t number, uint8_t field[8]);

/* True when the nexus has such a LUN. */
bool scsi_nexus_has_lun(struct scsi_nexus *nexus, const uint8_t lun_field[8]);

/*
 * The state changes of a reset or clear, after the transport has ended the
 * tasks of all sessions it affects: reservations released, mode parameters to
 * their defaults, unit attentions for the other nexuses (29/xx, 2F/00).
 */
void scsi_tmf_apply(struct scsi_nexus *nexus, enum scsi_tmf function, const uint8_t lun_field[8]);

/* The LUN of a number in the nexus's target, NULL when there is none: the
 * transport compares it with cmd->lun of other sessions' tasks. */
struct scsi_lun *scsi_nexus_lun(struct scsi_nexus *nexus, const uint8_t lun_field[8]);

/* The text of sense data, "ILLEGAL REQUEST, INVALID FIELD IN CDB", for logs. */
void scsi_sense_text(const uint8_t *sense, uint8_t len, char *out, size_t cap);
/* The command's name in its row, "READ(10)", or "opcode 0xNN". */
const char *scsi_cmd_name(const struct scsi_cmd *cmd, char *room, size_t cap);

#endif
