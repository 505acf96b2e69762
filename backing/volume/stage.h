/*
 * Staging: what was written and is not durable yet, in memory.
 *
 * An item is a run of sectors within one record window (record_len aligned) of
 * one region, with its data.  Reads look here first, newest ticket first.  Items
 * of a volume are in the order of their tickets; a group takes the next run of
 * them.  They are freed when their group is durable.
 *
 * Memory is bounded; requests for which there is none wait in order, as they do
 * while cleaning is behind (credit.h).
 */
#ifndef BACKING_VOLUME_STAGE_H
#define BACKING_VOLUME_STAGE_H

#include "backing/volume/internal.h"

struct region;

struct stage_item {
	struct list region_link; /* of the region, newest first */
	struct list order_link;	 /* of the volume, or of its group */
	struct volume *volume;
	struct region *region; /* NULL: a range operation */
	uint64_t ticket;
	uint16_t start, nsectors; /* in the region */
	bool hole;
	bool wide;	  /* a hole that is not within one window, or a range */
	bool in_group;	  /* its group is cut */
	bool run_end;	  /* of those that lie in one group: the last */
	bool command_end; /* the last one of its command */
	uint8_t *data;	  /* nsectors * 512 bytes, 64-byte aligned; NULL in a hole */
	uint64_t charge;
	uint64_t range, nregions; /* of a range operation */
	uint32_t window_len;	  /* bytes: record_len when it was staged */
	/* group_cut.c: items of the same window in the same group */
	struct stage_item *window_next, *window_last;
	uint32_t window_slot;
};

int stage_open(struct pool *pool, struct err *err);
void stage_close(struct pool *pool);

/* WRITE, ZERO and TRIM requests: admitted, copied, ticketed and (but for FUA)
 * answered, now or in turn. */
void stage_submit(struct pool *pool, struct vreq *req);
/* FLUSH: answered when every ticket of the volume so far is durable. */
void stage_flush(struct pool *pool, struct vreq *req);
/* Room or segments are there again. */
void stage_retry(struct pool *pool);
bool stage_empty(const struct pool *pool);
/* Memory: items, groups under way, posts. */
uint64_t stage_bytes(const struct pool *pool);

#endif
