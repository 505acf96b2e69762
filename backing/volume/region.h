/*
 * Regions and the overlay: what was laid out but is not in a leaf yet.
 *
 * A region (1 MiB of a volume) exists in memory while it has deltas, staged
 * items, or a merge.  Deltas are in the order (seq, index).  One that others
 * cover wholly is dropped, and its record noted as freed: the region's next
 * LEAF_AT subtracts it.
 */
#ifndef BACKING_VOLUME_REGION_H
#define BACKING_VOLUME_REGION_H

#include "backing/volume/internal.h"

struct delta {
	uint64_t seq;
	uint32_t index;
	uint8_t type;	       /* VF_DATA, VF_HOLE, VF_MOVE */
	struct vf_entry entry; /* MOVE: addr is the old address, stored and check its own */
	uint64_t moved_to;     /* MOVE */
};

struct region {
	struct list hash_link;
	struct list dirty_link; /* of the regions with deltas, oldest first */
	struct volume *volume;
	uint64_t index;
	struct list staged; /* struct stage_item, newest first */
	struct delta *deltas;
	uint32_t ndeltas, room;
	uint64_t first_seq; /* oldest delta, dropped ones too; 0: none */
	struct freed *freed;
	uint32_t nfreed;
	uint64_t charge; /* of its deltas, given back by its merge */
	bool merging;
	bool fold; /* wants to be rewritten in full records */
};

int regions_open(struct pool *pool, struct err *err);
void regions_close(struct pool *pool);

struct region *region_find(struct pool *pool, struct volume *volume, uint64_t index);
/* Makes it when it is not there; NULL: no room (the caller waits for merges). */
struct region *region_get(struct pool *pool, struct volume *volume, uint64_t index);
/* Frees it when it has nothing. */
void region_put(struct pool *pool, struct region *region);

/* A DATA, HOLE or MOVE is laid out or replayed; lies within the region.  Does
 * the live count of a new record. */
void region_add(struct pool *pool, struct region *region, const struct delta *delta,
		uint64_t charge);
/* LEAF_AT takes effect: deltas up to merged_seq go, the slot is set (its
 * directory page is resident: tree_pin()). */
void region_merged(struct pool *pool, struct volume *volume, uint64_t index, uint64_t merged_seq);

/* A range operation (TRIM of whole regions) at seq takes effect. */
void region_range(struct pool *pool, struct volume *volume, uint64_t index, uint64_t nregions,
		  uint64_t seq);

/*
 * In a fiber: does an entry of the region's leaf or a DATA delta name the record
 * at addr with this check[0]?  For cleaning; 0 or -EIO, -EUCLEAN.
 */
int region_names(struct pool *pool, struct volume *volume, uint64_t index, uint64_t addr,
		 uint64_t check, bool *named);

/* Oldest seq that is in no leaf; log_seq() + 1 when all are. */
uint64_t regions_oldest(const struct pool *pool);
uint64_t regions_memory(const struct pool *pool);

#endif
