/*
 * Volumes: their records are pages of the tree VF_TREE_VOLTAB, changed by VOLOP
 * descriptors and written by checkpoints; all are in memory.
 */
#ifndef BACKING_VOLUME_VOLUMES_H
#define BACKING_VOLUME_VOLUMES_H

#include "backing/volume/internal.h"
#include "backing/volume/tree.h"
#include "compress/probe.h"

/* A trim of whole regions: staged (seq 0) or in force. */
struct volume_range {
	uint64_t region, nregions;
	uint64_t ticket; /* 0 once durable */
	uint64_t seq;
};

struct volume {
	struct pool *pool;
	struct list link; /* of the pool's, in order of name */
	struct list id_link;
	uint32_t id;
	uint8_t uuid[16];
	char name[VF_NAME_MAX + 1];
	struct volume_settings settings;
	bool wide; /* checksum sha256: long entries */
	uint64_t created_s;
	bool deleting;
	bool leaving;	  /* is about to be: nobody may begin to use it */
	uint32_t users;	  /* while there are any its struct stays */
	struct volop *op; /* volume_control.c: its VOLOP under way */
	struct tree head;
	uint64_t mapped; /* sectors */
	struct volume_range ranges[VF_RANGES_MAX];
	uint32_t nranges;
	bool dirty;	      /* its record is to be written by a checkpoint */
	uint64_t applied_seq; /* replay skips what it has */

	/* stage.c, log.c */
	uint64_t ticket, durable_ticket;
	struct list requests;	/* struct vreq: that are not staged yet */
	struct list queue_link; /* of volumes with such */
	struct list staged;	/* struct stage_item not in a group, in order */
	struct list waiting;	/* struct vreq: FLUSH and FUA */
	struct list ready_link; /* of volumes with something staged */
	struct probe_history probe;
	uint64_t cut_number; /* the group that has items of it last: of those */
	bool cut_wide;	     /* some span windows */
	uint32_t cut_window_len;
};

int volumes_open(struct pool *pool, struct err *err);
void volumes_close(struct pool *pool);
/* Every one, those that are being deleted too; after NULL: the first. */
struct volume *volumes_each(struct pool *pool, struct volume *after);
struct volume *volume_by_id(struct pool *pool, uint32_t id);
/* The tree of the volume table, for tree_touch(). */
struct tree *volumes_tree(struct pool *pool);
/* A VOLOP takes effect: laid out or replayed. */
int volume_apply(struct pool *pool, const struct vf_volume *record, uint64_t seq);
/* Writes a volume's record. */
void volume_encode(const struct volume *volume, struct vf_volume *out, uint64_t applied_seq);
/* In a fiber, from a checkpoint: writes records that changed, as tree_checkpoint(). */
int volumes_checkpoint(struct pool *pool, struct vf_tree *out, uint64_t *applied);
int volumes_load(struct pool *pool, const struct vf_tree *root, struct err *err);
/*
 * What a root says of the table that volumes_checkpoint() wrote last: every id
 * below was laid out before, so one of them that the table does not have is gone,
 * and replay does not make it anew.
 */
uint32_t volumes_next_id(const struct pool *pool);
void volumes_set_next(struct pool *pool, uint32_t next_id);
/* The reaper has worked off a deleted volume: it is forgotten. */
void volume_forget(struct volume *volume);

/* ---- for volume_control.c ---- */

/* One that is not laid out yet: volume_apply() takes it, volume_free() gives up. */
struct volume *volume_new(struct pool *pool, uint32_t id);
void volume_free(struct volume *volume);
uint32_t volume_new_id(struct pool *pool); /* 0: there are no more */
bool volume_pending(struct pool *pool, const char *name);

#endif
