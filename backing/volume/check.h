/*
 * The inside of pool_check(): what check.c and its parts share.
 *
 * quick	superblock and roots, directories, the segment table's own sums
 * full		also every leaf, who owns what, live counts, the log's chain
 * deep		also every record: its check, and that it expands
 *
 * Each fault is one line with the number of its invariant (docs/volume-format.md).
 * Memory: four bytes a segment, and one bit for 64 bytes of a window of the pool
 * of at most CHECK_WINDOW; larger pools take one pass over the leaves for each.
 */
#ifndef BACKING_VOLUME_CHECK_H
#define BACKING_VOLUME_CHECK_H

#include "backing/volume/internal.h"
#include "backing/volume/tree.h"

#define CHECK_WINDOW (32ull << 30) /* bytes of pool */

struct check {
	struct pool *pool;
	enum pool_check_depth depth;
	struct pool_check_report *report;
	uint32_t *live;		      /* by segment: units, as found */
	uint64_t *owned;	      /* a bit for each unit of the window: somebody names it */
	uint64_t window;	      /* its first unit */
	uint64_t nunits;	      /* in it */
	bool first_window;	      /* what is counted once is counted in it */
	struct check_record *records; /* of one leaf */
	uint8_t *buf;		      /* deep: a record as stored, block aligned */
	uint8_t *expanded;	      /* deep */
};

void check_say(struct check *check, unsigned int invariant, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* A record or page of stored units at addr is named: counted, and nobody else's. */
void check_named(struct check *check, uint64_t addr, uint32_t stored, const char *what);

/* In a fiber: all leaves of all volumes, and what the overlay names. */
int check_leaves(struct check *check);

/* In a fiber: the log from the older checkpoint's replay position on. */
int check_chain(struct check *check);

#endif
