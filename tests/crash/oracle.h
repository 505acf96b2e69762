/*
 * What a pool must hold: every write stamps its sectors with a version, and the
 * oracle knows which versions a crash may leave.
 *
 * A volume's operations are kept in the order of their submission, which is that
 * of their tickets.  After a crash its contents must be those after some prefix
 * of them which holds everything that a FLUSH or a FUA write promised before.
 * A command longer than the atomic length may be there in part when it is the
 * last.  A volume that was created (deleted, grown) and answered is there (gone,
 * longer).  What was found after a crash is promised from then on: the next
 * recovery must find the same, oracle_after() makes an oracle of it.
 *
 * Events are those of the life's clock (sim_event()).
 */
#ifndef TESTS_CRASH_ORACLE_H
#define TESTS_CRASH_ORACLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backing/volume/pool.h"
#include "tests/crash/simenv.h"

#define ORACLE_VOLUMES_MAX 12
#define ORACLE_BAD	   UINT32_MAX	    /* a sector that cannot be read */
#define ORACLE_FOREIGN	   (UINT32_MAX - 1) /* holds what nobody wrote there */

enum oracle_op_type { ORACLE_WRITE, ORACLE_ZERO, ORACLE_TRIM };

struct oracle_op {
	uint8_t type;
	bool excluded; /* refused: has no effect */
	bool optional; /* TRIM: a hint where space is short */
	uint32_t lba, n;
	uint32_t version;	   /* of its sectors; 0: zeros */
	uint32_t submitted, acked; /* events */
};

/* From event acked on, all ops below nops are durable. */
struct oracle_promise {
	uint32_t acked, nops;
};

struct oracle_volume {
	char name[16];
	uint32_t tag; /* in every stamp */
	struct volume_settings settings;
	uint32_t sectors_max;					 /* of base and settled */
	uint32_t created, created_acked, deleted, deleted_acked; /* events */
	uint32_t grown, grown_acked;
	uint64_t grown_nsectors;
	uint32_t *base;	   /* versions at the life's beginning */
	uint32_t *settled; /* versions after the first nsettled ops */
	struct oracle_op *ops;
	uint32_t nops, ops_room, nsettled, nrequired;
	struct oracle_promise *promises;
	uint32_t npromises, promises_room, npassed;
	struct oracle_op *retry; /* dropped by the crash before this life, in order */
	uint32_t nretry;
};

struct oracle {
	struct oracle_volume *volumes[ORACLE_VOLUMES_MAX]; /* NULL: none */
	uint32_t next_version, next_tag;
	uint32_t atomic_sectors;
	bool bad_allowed; /* damage was done: what cannot be read is right */
};

struct oracle *oracle_create(uint32_t atomic_sectors);
void oracle_destroy(struct oracle *oracle);

/* ---- while a life is lived ---- */

/* NULL: the table is full. */
struct oracle_volume *oracle_add_volume(struct oracle *oracle, const char *name,
					const struct volume_settings *settings,
					uint32_t sectors_max, uint32_t event);
/* version 0: a new one is given out. */
uint32_t oracle_submit(struct oracle *oracle, struct oracle_volume *volume,
		       const struct oracle_op *op);
void oracle_promise(struct oracle_volume *volume, uint32_t event, uint32_t nops);

/* What a read of one sector may give that was submitted when ops below nacked
 * had been answered and is done now. */
bool oracle_may_read(const struct oracle_volume *volume, uint32_t lba, uint32_t read_submitted,
		     uint32_t version);

/* ---- contents ---- */

/* Sectors of a version, as written. */
void stamp_write(void *to, uint32_t tag, uint32_t lba, uint32_t n, uint32_t version);
/* The version that a sector holds; 0: zeros; ORACLE_FOREIGN. */
uint32_t stamp_read(const void *sector, uint32_t tag, uint32_t lba);

/* ---- after a crash ---- */

/* Promises and volumes as of an event; events rise. */
void oracle_advance(struct oracle *oracle, uint32_t event);

struct oracle_verdict {
	bool lost, resurrected;
	char text[512];
};
/*
 * Judges one volume's observed sectors (versions) after a crash at the event
 * that oracle_advance() was given.  nobserved: its capacity.  *nkept: how many
 * ops are there.
 */
bool oracle_judge(const struct oracle *oracle, const struct oracle_volume *volume,
		  const uint32_t *observed, uint32_t nobserved, uint32_t event, uint32_t *nkept,
		  struct oracle_verdict *verdict);
/* May, must the volume be there? */
bool oracle_may_exist(const struct oracle_volume *volume, uint32_t event);
bool oracle_must_exist(const struct oracle_volume *volume, uint32_t event);

/* An oracle for the life after the crash: the volume with what was observed;
 * ops behind nkept may be tried again. */
struct oracle *oracle_after(const struct oracle *oracle);
void oracle_keep(struct oracle *after, const struct oracle_volume *volume, const uint32_t *observed,
		 uint32_t nobserved, uint32_t nkept, uint32_t event);

#endif
