/*
 * Regions and the overlay: what was laid out but is not in a leaf yet.
 *
 * A region (1 MiB of a volume) exists in memory while it has deltas, staged
 * items, or a merge.  Deltas are in the order (seq, index).  One that others
 * cover wholly may be dropped, and its record noted as freed.
 *
 * A LEAF_AT with merged seq u accounts for exactly the records of deltas with
 * seq <= u, dropped ones too: so replay, which may drop others at other times,
 * agrees.  Regions are grouped by the directory page (256 of them) that leads to
 * their leaves, since merges go by page.
 *
 * Memory is a share of the pool's.  region_get() refuses when the share is
 * nearly used, so that what was admitted fits; replay, which cannot wait, may
 * go beyond the share, and merges bring it back.
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

/* Records of dropped deltas. */
struct freed {
	uint64_t seq; /* of the delta: the newest, where several were put together */
	uint32_t segno;
	uint32_t units; /* live_units() of them */
};

/* Regions whose leaves are under one directory page. */
struct region_page {
	struct list hash_link;
	struct list regions; /* by page_link */
	struct volume *volume;
	uint64_t index;
	uint32_t ndeltas; /* of all its regions, freed ones too */
	uint32_t place;	  /* in regions->sample */
};

struct region {
	struct list hash_link;
	struct list page_link;
	struct list dirty_link; /* of the regions with deltas, oldest first */
	struct region_page *page;
	struct volume *volume;
	uint64_t index;
	struct list staged; /* struct stage_item, newest first */
	struct delta *deltas;
	uint32_t ndeltas, room;
	uint64_t first_seq; /* oldest delta, dropped ones too; 0: none */
	struct freed *freed;
	uint32_t nfreed, freed_room;
	uint64_t charge; /* of its deltas, given back by its merge */
	uint32_t holds;	 /* MOVEs to come (evacuate.c): it stays in memory */
	bool merging;
	bool damaged; /* its leaf cannot be read: it stays in the overlay */
};

int regions_open(struct pool *pool, struct err *err);
void regions_close(struct pool *pool);

struct region *region_find(struct pool *pool, struct volume *volume, uint64_t index);
/* Makes it when it is not there; NULL: no room (the caller waits for merges;
 * stage_retry() is called when there is some).  In replay there is always room. */
struct region *region_get(struct pool *pool, struct volume *volume, uint64_t index);
/* The same for a merge, which needs room to make room; NULL: no memory at all. */
struct region *region_need(struct pool *pool, struct volume *volume, uint64_t index);
/* Frees it when it has nothing. */
void region_put(struct pool *pool, struct region *region);

/* A DATA, HOLE or MOVE is laid out or replayed; lies within the region.  Does
 * the live count of a new record. */
void region_add(struct pool *pool, struct region *region, const struct delta *delta,
		uint64_t charge);
/* The record of a descriptor that is not durable was written once more, elsewhere:
 * its delta, or what was noted of it as freed, names the new place. */
void region_readdress(struct pool *pool, struct region *region, uint64_t seq, uint32_t index,
		      uint64_t from, uint64_t to);
/* LEAF_AT takes effect: deltas up to merged_seq go. */
void region_merged(struct pool *pool, struct volume *volume, uint64_t index, uint64_t merged_seq);

/*
 * A range operation (TRIM of whole regions) at seq takes effect: deltas before
 * it go, and it hides leaves that are merged up to less.  The entry of
 * volume->ranges that stage.c made (seq 0) gets its seq; replay makes it.
 */
void region_range(struct pool *pool, struct volume *volume, uint64_t index, uint64_t nregions,
		  uint64_t seq);
/* The newest range operation in force over a region; 0: none. */
uint64_t region_range_seq(const struct volume *volume, uint64_t index);

/*
 * In a fiber: does an entry of the region's leaf or a DATA delta name the record
 * at addr with this check[0]?  For cleaning; 0 or -EIO, -EUCLEAN.
 */
int region_names(struct pool *pool, struct volume *volume, uint64_t index, uint64_t addr,
		 uint64_t check, bool *named);

/* Oldest seq that is in no leaf; log_seq() + 1 when all are. */
uint64_t regions_oldest(const struct pool *pool);
uint64_t regions_memory(const struct pool *pool);
/* Merges are to make room. */
bool regions_pressed(const struct pool *pool);
/* Is any region of the volume in memory? */
bool regions_have(const struct pool *pool, const struct volume *volume);

/* ---- for merge.c ---- */

/* Drops deltas that newer ones cover wholly. */
void region_compact(struct pool *pool, struct region *region);

/* The dirty region with the oldest delta; NULL: none.  Then the next. */
struct region *regions_first(struct pool *pool);
struct region *regions_next(struct pool *pool, struct region *region);
/* The page with most deltas of 16 taken at random; NULL: none has any. */
struct region_page *regions_fullest_page(struct pool *pool);

struct regions_counts {
	uint64_t nregions, ndeltas, npages; /* dirty ones; those freed count as deltas */
};
void regions_count(const struct pool *pool, struct regions_counts *out);

#endif
