/*
 * Workloads: what a life of a pool does before and between crashes.
 *
 * A workload is a profile and a seed.  To add one, add a row in profile.c; what
 * it is to reach (cleaning, joins, torn tails) stands beside it.
 */
#ifndef TESTS_CRASH_PROFILE_H
#define TESTS_CRASH_PROFILE_H

#include "backing/volume/pool.h"
#include "tests/crash/simenv.h"

#define PROFILE_VOLUMES_MAX 4

struct profile {
	const char *name;
	uint64_t pool_len;
	uint32_t nops;		     /* of the first life */
	uint8_t depth;		     /* in flight at most */
	uint8_t workers;	     /* jobs go to them; 0: none */
	uint32_t write_max, working; /* sectors: longest write; where in a volume */
	/* of 1000 operations; writes are the rest */
	uint16_t fua, flush, trim, zero, read, idle, checkpoint, control;
	uint8_t aligned; /* percent of writes that are of whole 4 KiB */
	uint8_t lives;	 /* crashes during recoveries, and how deep; 0: the default */
	uint8_t share;	 /* of the points */
	bool full;	 /* it runs at the limit: ENOSPC is an answer, trims are hints */
	/* The first life meets it once; first: at most so many operations on. */
	struct sim_fault fault;
	uint8_t nvolumes;
	struct volume_settings volumes[PROFILE_VOLUMES_MAX];
};

/* The crash points'. */
extern const struct profile profiles[];
extern const unsigned int nprofiles;
/* Of faults and flips; of long runs. */
extern const struct profile fault_profile;
extern const struct profile soak_profiles[];
extern const unsigned int nsoak_profiles;

#endif
