/*
 * The pool from the inside: what its parts share.
 *
 * Each part keeps its state behind a pointer of struct pool and is opened and
 * closed with it.  The way down:
 *
 *	request.c	volume_submit(): requests and their answers
 *	stage.h		writes that are not durable yet, in memory
 *	log.h		groups: cut, compressed, laid out, written, flushed
 *	region.h	what was laid out but is not in a leaf yet (the overlay)
 *	read.c		look-up, fetching, checking and expanding of records
 *	tree.h		directories: slots of leaves and of the pool's own tables
 *	cache.h		map pages in memory
 *	merge.h		overlay -> leaves; ranges worked off
 *	bulk.h		map pages and survivors: written unordered
 *	segment.h	the segment table: live counts, who may be reused
 *	credit.h	admission of writes; what ENOSPC means
 *	checkpoint.h	what a recovery begins with
 *	recover.c	pool_open()
 *	clean.h		cleaning: segments with few live records are emptied
 *	volumes.h	the volume table
 *	check.c		pool_check()
 *
 * Order.  A descriptor's place is (seq, index).  It takes effect in memory when
 * its group is laid out (group_layout() in log.c), in that order, at once for
 * all of a group; replay in recover.c calls the same functions.  So memory always
 * holds exactly the descriptors up to log_seq().
 */
#ifndef BACKING_VOLUME_INTERNAL_H
#define BACKING_VOLUME_INTERNAL_H

#include <assert.h>
#include <errno.h>

#include "backing/volume/mutant.h"
#include "backing/volume/pool.h"
#include "base/fiber.h"
#include "base/log.h"

struct pool {
	struct venv *env;
	char *name;
	struct vf_geometry geometry;
	struct vf_super super; /* as newest written */
	uint32_t incarnation;
	uint32_t epoch; /* births; snapshots raise it */
	uint64_t cache_memory;
	uint64_t memory_max; /* highest seen */
	uint64_t tick_ns;    /* when the timer is set to; 0: it is not */
	uint8_t threshold;   /* percent used */
	bool recovering;     /* replay: nothing is written */
	bool closing;	     /* quiescing: no new background work */
	bool at_rest;
	bool read_only;
	bool quiet;
	bool read_only_asked; /* nothing else is the reason */
	char why_read_only[ERR_TEXT_MAX];
	uint32_t mutant;
	const struct pool_events *events;
	void *events_arg;

	struct fiber_set *fibers;
	struct list finished; /* struct vreq: done is to be called */

	struct segments *segments;
	struct log *log;
	struct stage *stage;
	struct credit *credit;
	struct regions *regions;
	struct cache *cache;
	uint32_t ndir_pages;   /* of level 1, unpacked: tree.c */
	struct iobufs *iobufs; /* reader_open() makes them */
	struct reader *reader;
	struct merger *merger;
	struct bulk *bulk;
	struct checkpointer *checkpointer;
	struct cleaner *cleaner;
	struct volumes *volumes;
	struct pool_counters {
		uint64_t user_bytes, log_bytes, moved_bytes, bulk_map_bytes;
	} counters;
};

static inline bool pool_mutant(const struct pool *pool, enum mutant mutant)
{
	return pool->mutant == (uint32_t)mutant;
}

/* Read-only from now on, for the reason given; requests that change something
 * fail with EROFS (EIO where they were accepted before). */
void pool_fence(struct pool *pool, const char *why);

/*
 * Runs fn in a fiber of the pool and returns what it returned: at once when the
 * caller is in one, else by driving the environment (env->wait).
 */
int pool_control(struct pool *pool, int (*fn)(struct pool *pool, void *arg), void *arg);

/* Something will be compressed with this choice; without memory for it, stored as
 * it is. */
void pool_prepare_codec(struct pool *pool, const struct codec_choice *choice);

/* The parts of a pool, in the order in which they need each other (pool.c). */
int pool_parts_open(struct pool *pool, struct err *err);
void pool_parts_close(struct pool *pool);

/* In a fiber: reads checkpoint and log, and begins the pool's next life
 * (recover.c).  0 or as pool_open(). */
int pool_recover(struct pool *pool, struct err *err);

/* The request is finished: its done is called from pool_run(). */
void vreq_finish(struct vreq *req, int err);
/* Calls the done of each that is finished. */
void requests_run(struct pool *pool);

static inline uint64_t pool_segment_units(const struct pool *pool)
{
	return pool->geometry.segment_len / VF_UNIT;
}

static inline uint32_t addr_segment(const struct pool *pool, uint64_t addr)
{
	return (uint32_t)(addr / pool_segment_units(pool));
}

#endif
