/*
 * The world of a pool under test: a device in memory that records, simulated
 * time, jobs and randomness, all from one seed.
 *
 * Everything that is begun gets a time at which it is done; sim_step() goes to
 * the next one, so operations complete out of order, time passes only when
 * nothing else is to be done, and the same seed gives the same run.
 *
 * The recording: each write, punch and growth with the events of its submission,
 * completion and durability.  An event is a number that rises with everything
 * that happens; the oracle takes its own from the same clock (sim_event()).  A
 * write is durable when a flush that was submitted after its completion has
 * succeeded; until then a crash may leave any of its 512-byte sectors out.
 *
 * What env.h asks of the engine is checked here: alignment, ranges, buffers that
 * stay as they were, no two writes in flight to one place.  A breach ends the
 * process with a line that says which.
 *
 * One struct sim a life of a pool; one thread.
 */
#ifndef TESTS_CRASH_SIMENV_H
#define TESTS_CRASH_SIMENV_H

#include "backing/volume/env.h"
#include "tests/crash/image.h"
#include "tests/crash/rng.h"

#define SIM_SECTOR 512u
#define SIM_NEVER  UINT32_MAX

enum sim_fault_kind {
	SIM_FAULT_NONE,
	SIM_FAULT_EIO,	     /* fails; a write leaves any of its sectors */
	SIM_FAULT_ENOSPC,    /* fails, nothing is written */
	SIM_FAULT_FLUSH,     /* a flush fails: what was to become durable may be gone */
	SIM_FAULT_FLIP,	     /* a read gives one wrong bit */
	SIM_FAULT_LOST,	     /* a write is acknowledged and is not there */
	SIM_FAULT_MISDIRECT, /* a write lands elsewhere */
};

/* The first..first+count-1'th operation of these kinds fails. */
struct sim_fault {
	enum sim_fault_kind kind;
	uint32_t ops;	/* 1u << enum vdev_op */
	uint32_t first; /* from 1 */
	uint32_t count;
};

enum sim_change_kind { SIM_WRITE, SIM_PUNCH, SIM_GROW };

/* What the device was told to change. */
struct sim_change {
	enum sim_change_kind kind;
	uint64_t off;
	uint64_t len;
	uint8_t *data;					 /* SIM_WRITE */
	uint32_t submitted, completed, durable, dropped; /* events, SIM_NEVER */
};

struct sim {
	struct venv env;
	struct image *image;
	struct rng rng;
	uint64_t seed;
	uint64_t now_ns, timer_ns;
	bool kicked;
	bool cut; /* sim_cut(): nothing more happens */
	uint32_t event;
	struct sim_op *ops; /* in flight */
	size_t nops, ops_room;
	struct sim_change *changes;
	size_t nchanges, changes_room;
	uint32_t *flushed; /* events of successful flushes */
	size_t nflushed, flushed_room;
	uint64_t nsubmitted[VDEV_GROW + 1];
	struct sim_fault fault;
	uint32_t nfaulted, nmatched;
	size_t lied;		       /* change: the last that was lost or misdirected */
	struct sim_change misdirected; /* where the last of them landed; len 0: none */
	uint64_t nsteps;
};

/* The device is the image, which is changed as operations complete. */
void sim_init(struct sim *sim, struct image *image, uint64_t seed, unsigned int nworkers);
void sim_release(struct sim *sim);

/* Does the next thing; false: there is none. */
bool sim_step(struct sim *sim);
/* Everything in flight is forgotten and nothing comes any more: a pool that is
 * given up. */
void sim_cut(struct sim *sim);

static inline uint32_t sim_event(struct sim *sim)
{
	return ++sim->event;
}

/* Puts a change on an image; mask: the sectors that arrive, NULL: all. */
void sim_apply(struct image *image, const struct sim_change *change, const uint8_t *mask);

/* The engine broke a rule, or a test cannot go on: says so and ends the process
 * with status 3. */
_Noreturn void sim_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* What sim_fail() says first: the crash point that runs. */
extern char sim_where[256];

#endif
