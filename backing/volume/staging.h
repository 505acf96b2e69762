/*
 * What staging, groups and the log share: for stage*.c, group*.c and log*.c.
 *
 * The way of a write: stage.c makes items of it; group_cut.c takes the next
 * items of each volume and makes records of them; group_pack.c compresses those,
 * on workers where that pays, and packs them; group_lay.c gives the group its
 * place and lets it take effect; log_write.c writes and flushes.
 *
 *	cut list	groups whose records are compressed, or that wait for their place
 *	laid list	groups that have seq and place, in order, until they are durable
 *
 * Posts (descriptors of other parts) go in groups of their own, which pass those
 * of the cut list: what frees segments does not wait for users who need some.
 *
 * log_run() does whatever can be done now; pool_run() calls it when log_kick() asked
 * for it, so that all that came in one round of the loop is in one group.
 */
#ifndef BACKING_VOLUME_STAGING_H
#define BACKING_VOLUME_STAGING_H

#include "backing/volume/buddy.h"
#include "backing/volume/log.h"
#include "backing/volume/stage.h"
#include "compress/codec.h"

/* ---- staging ---- */

/* A command that is being made into items. */
struct staging {
	struct vreq *req; /* NULL: none is */
	uint64_t at, end; /* sectors still to come */
	uint64_t run_sectors;
	struct list items;   /* of the run that is not whole yet */
	bool wide;	     /* its holes span windows */
	uint64_t charge;     /* of what is still to come */
	uint64_t item_extra; /* of an item beyond its bytes */
	uint32_t iov;	     /* where in the request's data */
	size_t iov_off;
};

struct stage {
	struct pool *pool;
	struct slab *items;
	struct buddy memory; /* data */
	struct staging now;
	struct list queue;  /* volumes with requests that wait, by turns */
	struct list ranged; /* TRIMs and ZEROs that wait for a range of their volume */
	struct list ready;  /* volumes with items in no group */
	uint32_t nready;
	uint32_t nunsent;      /* items in no group */
	uint64_t unsent_bytes; /* what their group may need at worst */
	uint64_t unsent_ns;    /* when the oldest of them came */
	uint32_t nwaiters;     /* FLUSH and FUA */
	uint64_t limit;	       /* of bytes of data now: what drains in time */
	uint64_t drained;      /* bytes, since drained_ns */
	uint64_t drained_ns;
	bool running;
	bool squeezing;	       /* squeeze_fiber() runs */
	uint64_t squeezed_ns;  /* when one ended; 0: none did */
	uint64_t squeezed_seq; /* and what had been laid out then */
	uint64_t short_ns;     /* since when the one whose turn it is has no credit */
};

/* Admits what waits, as far as possible. */
void stage_run(struct pool *pool);
/* A group's item is durable (or will never be): it goes. */
void stage_release(struct stage *stage, struct stage_item *item);
/* The volume's tickets up to this one are durable: answers who waits for them. */
void stage_answer(struct stage *stage, struct volume *volume, uint64_t ticket);
/* Nothing will become durable any more: everybody who waits is told. */
void stage_fail(struct pool *pool);
/* So many bytes of data became durable: how much may be staged from now on. */
void stage_drained(struct stage *stage, uint64_t bytes);
/* Bytes that an item may take of a group, at worst. */
uint64_t stage_item_bound(const struct stage_item *item);
/* Admission waits for memory, or more than half of it is used. */
bool stage_pressed(const struct stage *stage);

/* ---- groups ---- */

struct record {
	struct list link; /* of its group, in order */
	struct venv_job job;
	struct group *group;
	struct volume *volume;
	struct region *region; /* NULL: a range operation */
	uint64_t range, nregions;
	uint16_t start, nsectors;
	const uint8_t *data;	  /* what it holds */
	uint8_t *gathered;	  /* data's memory, where it is not an item's */
	struct stage_item *items; /* of its window, to be gathered; NULL: it is one */
	uint8_t *slot;		  /* in the group: where it may be packed, at worst */
	struct codec_choice choice;
	bool try;      /* to compress */
	bool slow;     /* by a codec that takes long */
	bool told;     /* the volume's probe history counts it */
	uint32_t njob; /* records from this one on that are one job */
	/* the result */
	bool hole, raw;
	uint8_t codec;
	uint32_t stored; /* units */
	uint32_t off;	 /* units, in the group */
	uint64_t check[3];
	uint8_t digest[32];
};

enum group_state { GROUP_COMPRESSING, GROUP_READY, GROUP_WRITING, GROUP_WRITTEN };

struct group {
	struct list link;
	struct log *log;
	uint8_t state;
	bool marker;	/* nothing is in it */
	bool has_posts; /* and nothing of users */
	bool urgent;	/* to be flushed at once */
	struct list items, records, posts;
	uint32_t njobs;
	uint64_t bytes;	 /* of users' data */
	uint64_t charge; /* of its items */
	uint64_t seq;
	uint8_t *buf;
	struct buddy *buf_of;
	uint32_t cap; /* bytes of buf */
	uint32_t ndescs, table_len, nblocks;
	uint32_t segno, off; /* its place; blocks */
	uint8_t *header;     /* the segment's, where it is the first there */
	bool opens;
	struct vf_place end; /* where the log would end without it */
	uint64_t cut_ns, laid_ns;
	struct vdev_io io;
	struct iovec iov[2];
};

/* What a group is to hold of users' data, before it is compressed: long enough to
 * be written well, short enough that little of a segment is left over at its end.
 * A command that must not be split may make it longer. */
static inline uint64_t group_len_wanted(const struct pool *pool)
{
	return pool->geometry.segment_len / 8;
}

/* Cuts one of what is staged; NULL: nothing is, or there is no memory now. */
struct group *group_cut(struct pool *pool);
/* Compresses and packs; log_kick() when it is ready. */
void group_compress(struct group *group);
/* Codecs have enough to do: another group would only wait for them. */
bool group_codecs_busy(const struct log *log);
/* Gives it the next seq and its place; false: there is no segment. */
bool group_lay(struct group *group);
/* Makes and lays out a group of posts, or a marker; false: not now. */
bool group_lay_posts(struct pool *pool, bool marker);
void group_free(struct group *group);
/* It is durable: it ends.  Or (err) it never will be: posts are told, items stay
 * where reads find them. */
void group_end(struct group *group, int err);

/* It has a seq, and gets the next place, where there is room. */
void group_put(struct group *group);
/* Begins to write it. */
void group_write(struct group *group);

/* ---- the log ---- */

#define GROUPS_MAX  64u /* that exist at once */
#define WRITES_MAX  4u	/* groups that are being written */
#define CUT_MAX	    4u	/* groups that are being compressed */
#define PLACES_MAX  4096u
#define FOOTERS_MAX 2u

/* Where a group began, and how much log was before it. */
struct log_mark {
	uint64_t seq, bytes;
	uint32_t segno, off;
	struct vf_hash prev;
};

struct log_footer {
	struct log *log;
	struct vdev_io io;
	struct iovec iov;
	uint8_t *buf;
	uint32_t len; /* bytes of it so far */
	bool busy;
};

struct log {
	struct pool *pool;
	bool started;
	bool wanted; /* log_run() is, by log_run_wanted() */
	bool failed; /* fenced, and everybody knows */
	bool doubt;  /* a write or flush failed: log_restart.c */
	bool restarting;
	uint64_t failures, told;    /* of writes and flushes so far; that waiters know of */
	struct fiber_queue restart; /* what is in flight came back, or a tick */
	uint8_t *read_buf;	    /* log_restart.c */
	const char *why;	    /* of the last */

	/* groups */
	struct group *groups;
	struct list free, cut, laid;
	uint32_t ncut, nwriting;
	struct slab *records;
	struct buddy memory;	 /* of users' groups */
	struct buddy own_memory; /* of posts' groups */
	uint8_t *headers;
	uint64_t codec_bytes;	     /* that are in jobs now */
	uint64_t codec_ns;	     /* for each KiB */
	struct stage_item **windows; /* group_cut.c */
	uint32_t window_mask;
	uint32_t items_max; /* of a group, so that its table is not too long */
	uint64_t cut_number;
	struct list posts;
	bool starved;	   /* no memory for a group: a flush would free some */
	bool no_segment;   /* a users' group waits for one */
	bool cut_now;	   /* what is staged, however little it is */
	uint64_t want_seq; /* log_cut(): a group up to it, a marker if need be */
	bool flush_now;	   /* what is written waits too long */

	/* the place of the next group */
	uint64_t seq;
	uint32_t segno, off, successor, nblocks;
	uint64_t life, first_seq;
	uint32_t before, before_off; /* where the segment before was left */
	uint64_t newest_placed;	     /* seq of the newest group with a place */
	struct vf_hash prev;
	bool header_due;		/* the segment's header goes with the next group */
	bool borrowed;			/* the segment was taken where users might not have */
	uint32_t spare;			/* a segment taken for users in its stead; 0: none */
	uint32_t again[GROUPS_MAX + 1]; /* segments to be written once more, last first */
	uint32_t nagain;
	struct log_footer footers[FOOTERS_MAX];
	uint32_t footer, ngroups; /* of the current segment */

	/* where groups were */
	struct log_mark *places;  /* of the newest, by seq % PLACES_MAX */
	struct log_mark *entries; /* the first of each segment, oldest first */
	uint32_t first_entry, nentries, entries_cap;
	uint64_t bytes, oldest_place;

	/* durability */
	uint64_t durable;
	uint64_t want_durable; /* somebody waits for it */
	struct vdev_io flush;
	bool flushing;
	uint64_t flush_covers;
	uint64_t flushes_begun, flushes_ended, flushes_wanted;
	struct fiber_queue changed; /* laid out, durable, flushed, failed */
	uint64_t newest_ns;	    /* when the newest group became durable */
	bool newest_marker;
};

/* Does what can be done. */
void log_run(struct pool *pool);
/* log_run() soon: from wherever. */
void log_wake(struct pool *pool);
/* From the free ones, empty (lists too); NULL: all are taken. */
struct group *group_get(struct log *log);

/* log_place.c */
void log_mark(struct log *log, uint64_t seq, uint32_t nblocks);
/* Groups from seq on get other places. */
void log_unmark(struct log *log, uint64_t seq);

/* log_segment.c: room for a group of so many blocks; false: no segment, now. */
bool log_room(struct pool *pool, uint32_t nblocks, uint32_t table_len, bool users);
/* The group is laid out at the next place. */
void log_footer_add(struct log *log, const struct group *group);
/* The log goes on in its successor. */
void log_segment_open(struct log *log, uint32_t successor);
int log_segments_open(struct log *log);
void log_segments_close(struct log *log);

/* log_write.c */
void log_flush_begin(struct pool *pool);
bool log_flush_wanted(const struct log *log);
/* Ends the groups that are durable, in order. */
void log_groups_end(struct log *log);
/* The newest group such that it and all before it are written. */
uint64_t log_complete(const struct log *log);

/* log_restart.c: makes sure of what is in doubt, in a fiber; or fences. */
void log_restart_begin(struct pool *pool);

#endif
