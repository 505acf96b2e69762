/*
 * A life of a pool: from its opening to a crash or to its close.
 *
 * Runs a workload against the pool and tells the oracle of everything that is
 * submitted and answered.  Reads are judged as they come back.
 */
#ifndef TESTS_CRASH_LIFE_H
#define TESTS_CRASH_LIFE_H

#include "tests/crash/oracle.h"
#include "tests/crash/profile.h"
#include "tests/crash/simenv.h"

#define LIFE_SLOTS_MAX 16
#define LIFE_IO_MAX    512u /* sectors of a request */

struct life_slot {
	struct vreq req;
	struct life *life;
	struct oracle_volume *volume;
	uint32_t op;	    /* index in the volume, of writes, zeros, trims */
	uint32_t submitted; /* event */
	bool busy;
	struct iovec iov[2];
	uint8_t *buf;
};

struct life {
	struct sim sim;
	struct pool *pool;
	struct oracle *oracle;
	const struct profile *profile;
	struct rng rng;
	struct life_slot slots[LIFE_SLOTS_MAX];
	struct life_buffers *buffers; /* of the slots */
	unsigned int nbusy;
	uint32_t mutant;
	uint32_t opened; /* event: after a crash, the recovery was done */
	/* Faults are planned: an error is no failure by itself. */
	bool errors_allowed;
	bool hints;		    /* space is short: a TRIM may be left out */
	uint32_t nerrors, nrefused; /* requests that ended so; ENOSPC and EROFS */
	uint32_t nretried;
	uint64_t durable_seq; /* that the pool said last */
	char failure[512];    /* "": none; what was read and is not right */
};

/* The device and seed of a life; the oracle is the life's own from now on. */
void life_init(struct life *life, const struct profile *profile, struct image *image, uint64_t seed,
	       struct oracle *oracle);
/* The pool is closed or given up. */
void life_release(struct life *life);

/* Makes the pool and the volumes of the profile.  0 or -errno. */
int life_create(struct life *life, struct err *err);
/* Opens it, as it is. */
int life_open(struct life *life, struct err *err);
/* nops operations of the workload; before them dropped ones are tried again
 * when retry is set. */
void life_run(struct life *life, uint32_t nops, bool retry);
/* Until nothing is in flight. */
void life_drain(struct life *life);
/* FLUSH of every volume, and drain. */
void life_flush(struct life *life);
/* To rest and closed; -errno when the pool could not. */
int life_close(struct life *life, struct err *err);
/* The pool is given up. */
void life_abandon(struct life *life);

/* Brings the pool to rest, checks it in full and lets it go on: 0; -EUCLEAN with the
 * first fault; -errno when it could not. */
int life_check(struct life *life, struct err *err);

/*
 * Reads a volume: the version of each sector, ORACLE_BAD where it cannot be had.
 * Returns its capacity (at most volume->sectors_max are read).
 */
uint32_t life_observe(struct life *life, const struct oracle_volume *volume, uint32_t *observed);

/* Judges all volumes against the oracle as of an event, and makes the oracle of
 * what is there (NULL when that is wrong). */
struct oracle *life_verify(struct life *life, const struct oracle *oracle, uint32_t event,
			   struct oracle_verdict *verdict);

#endif
