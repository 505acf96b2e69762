/*
 * The log as a recovery reads it: groups of W in order, and where they end.
 *
 * A group counts when it follows from the one before: its seq, the opening of its
 * segment (life), the hash of the group before, its own sum, and the checks of its
 * payloads.  The first one that does not is the end, unless something shows that
 * it had been made durable: then it is damage (VOLUME format, "Recovery").
 *
 * The log leaves a segment where its successor's header says that it goes on; so
 * what a former life left behind that place is never met again.
 */
#ifndef BACKING_VOLUME_LOGWALK_H
#define BACKING_VOLUME_LOGWALK_H

#include "backing/volume/internal.h"

struct logwalk_group {
	struct vf_place place; /* of this group */
	uint32_t nblocks;      /* in all; of a group known by its footer: to the next one */
	struct vf_table table; /* its descriptors */
	uint64_t base;	       /* units: payload offsets count from here */
	uint32_t segno;
	uint32_t nbad; /* payloads whose checks fail: media damage, as it was durable */
};

/* Where the log ends. */
struct logwalk_end {
	struct vf_place next; /* where the next group would have been */
	uint32_t segno;	      /* the last segment */
	uint32_t successor;   /* of it: where the log may go on */
	uint32_t incarnation; /* highest seen */
	uint64_t durable_seq; /* highest seen */
	bool damaged;	      /* something durable is missing: see why */
	char why[160];
};

struct logwalk;

/* entered: called for each segment that the log goes through, in order, also one
 * in which a crash left no group: seq, of the newest group before it. */
struct logwalk *logwalk_open(struct pool *pool, const struct vf_place *from,
			     void (*entered)(struct pool *pool, uint32_t segno, uint64_t seq));
void logwalk_close(struct logwalk *walk);
/* In a fiber: 1: a group, valid until the next call; 0: the end; -EIO, -EUCLEAN:
 * not even its first segment can be read. */
int logwalk_next(struct logwalk *walk, struct logwalk_group *out);
void logwalk_end(const struct logwalk *walk, struct logwalk_end *out);

#endif
