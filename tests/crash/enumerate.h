/*
 * Crash points of a recorded life.
 *
 * A life's recording is cut into epochs, each up to the next successful flush.
 * What was durable before is on the device; of what is pending at the epoch's
 * end any part may be.  Points of an epoch with n pending changes, by number:
 *
 *	0..n		the first so many in order of submission
 *	n+1..2n		the same, the last of them torn
 *	2n+1..		every subset when n <= 12 (one block alone: every subset
 *			of its sectors), then seeded samples, torn at random
 *
 * At each the pool is opened, judged by the oracle, written on, judged, checked
 * and closed; of some the new life is enumerated in turn (a crash during
 * recovery), down to a given depth.  A path of "EPOCH.POINT" names a point:
 * "12.7/0.3" is point 3 of epoch 0 of the life after point 7 of epoch 12.
 */
#ifndef TESTS_CRASH_ENUMERATE_H
#define TESTS_CRASH_ENUMERATE_H

#include "tests/crash/life.h"

#define PATH_MAX_DEPTH 4

/* What a run found; in memory that is shared with the parent process. */
struct outcome {
	uint64_t npoints, nlost, nresurrected, nother;
	uint64_t nnested, nepochs, nchecks, nretried;
	uint64_t nrefused, nread_only, nbad, nright; /* what faults led to */
	uint64_t nbytes, nlives;		     /* of long runs */
	char where[256];			     /* the point that runs */
	char text[1024];			     /* the first failure */
	bool finished;
};

struct plan {
	const struct profile *profile;
	uint64_t seed;
	uint64_t budget; /* points; more or less */
	uint32_t mutant;
	bool stop_at_failure;
	uint8_t lives;		/* depth of crashes in recovery */
	uint32_t nest_one_in;	/* of the points */
	uint64_t seconds;	/* of a long run; 0: none */
	struct sim_fault fault; /* of a run of faults: which, without first and count */
	/* One point alone. */
	unsigned int npath;
	struct {
		uint32_t epoch, point;
	} path[PATH_MAX_DEPTH];
	struct outcome *outcome;
};

/* "12.7/0.3"; false: not a path. */
bool plan_parse_path(struct plan *plan, const char *text);

/* Records the first life of the plan's workload and runs its crash points. */
void plan_run(struct plan *plan);

#endif
