/*
 * Where the newest contents of sectors are: staged items, deltas, leaf, nothing.
 *
 * One look-up is of one moment: it never waits, and gives all it was asked for
 * or says that a page of the map must come first.
 */
#ifndef BACKING_VOLUME_LOOKUP_H
#define BACKING_VOLUME_LOOKUP_H

#include "backing/volume/internal.h"
#include "backing/volume/tree.h"
#include "backing/volume/volumes.h"

struct piece {
	uint8_t kind;		  /* enum vpiece_kind */
	bool bad;		  /* read.c */
	uint16_t start, nsectors; /* in the region */
	uint64_t region_lba;	  /* its first sector */
	const uint8_t *data;	  /* MEMORY: until the pool's thread goes on */
	struct vf_entry entry;	  /* RECORD: start and off are as the piece's */
};

struct lookup {
	struct pool *pool;
	struct volume *volume;
	struct tree_waiter *waiter; /* told when a page has come */
	struct piece *pieces;	    /* room for one per sector asked for */
	uint32_t npieces;	    /* appended to */
};

/*
 * Sectors start..start+nsectors-1 of a region, each in exactly one piece, in no
 * order.  False: a page is being loaded, npieces is as before.  damaged: what
 * would need a page that is not there is VPIECE_DAMAGED.
 */
bool lookup_region(struct lookup *lookup, uint64_t region, uint32_t start, uint32_t nsectors,
		   bool damaged);

#endif
