/*
 * Directories: radix trees of 256 slots that lead to leaves, or to the pages of
 * the segment and volume tables.
 *
 * Pages of level 2 and above stay in memory; those of level 1 and leaves are in
 * the cache (cache.h).  A page that was changed stays until a checkpoint has
 * written it, or leaves early by a DIR_AT.
 */
#ifndef BACKING_VOLUME_TREE_H
#define BACKING_VOLUME_TREE_H

#include "backing/volume/internal.h"

struct dir_page; /* tree.c */

struct tree {
	struct pool *pool;
	uint32_t id;		  /* a volume's, or VF_TREE_* */
	uint8_t level;		  /* of the root; 0: empty */
	struct vf_slot root_slot; /* as last written */
	struct dir_page *root;
	bool dirty;
};

void tree_init(struct tree *tree, struct pool *pool, uint32_t id);
/* Takes the root as found in a checkpoint or a volume's record. */
int tree_load(struct tree *tree, const struct vf_tree *root, struct err *err);
void tree_release(struct tree *tree);

/* Somebody who waits for a page. */
struct tree_waiter {
	void (*ready)(struct tree_waiter *waiter); /* look again, if err is 0 */
	struct list link;
	int err; /* EIO, EUCLEAN: the page cannot be had */
};

enum tree_result { TREE_FOUND, TREE_NONE, TREE_LOADING, TREE_DAMAGED };
/* The slot of an index; LOADING: waiter (NULL: nobody) is told. */
enum tree_result tree_get(struct tree *tree, uint64_t index, struct vf_slot *out,
			  struct tree_waiter *waiter);
/* In a fiber: 0, -ENOENT, -EIO or -EUCLEAN. */
int tree_get_wait(struct tree *tree, uint64_t index, struct vf_slot *out);

/* In a fiber: makes the page of the slot resident, and keeps it there until
 * tree_unpin(), so that tree_set() need not wait. */
int tree_pin(struct tree *tree, uint64_t index);
void tree_unpin(struct tree *tree, uint64_t index);
/* where 0: removes it.  seq: of the descriptor; in replay a page that has it
 * applied already is left as it is. */
void tree_set(struct tree *tree, uint64_t index, const struct vf_slot *slot, uint64_t seq);
/* In a fiber: the next slot at or behind *index: 0, -ENOENT at the end, -errno. */
int tree_next(struct tree *tree, uint64_t *index, struct vf_slot *out);

/* In a fiber: the directory page of that level and index, if it is the one at
 * addr, is written anew by the next checkpoint. */
int tree_touch(struct tree *tree, uint8_t level, uint64_t index, uint64_t addr);

/* A DIR_AT at seq, replayed: the page of level 1 of this index is at the slot, with
 * what was applied up to applied_seq. */
void tree_moved(struct tree *tree, uint64_t index, const struct vf_slot *slot, uint64_t applied_seq,
		uint64_t seq);

/*
 * In a fiber, from a checkpoint: writes what changed, from the bottom up, by
 * bulk_write() on stream M (level 2 and above twice), and says where the root
 * is.  Births and deaths of its pages go to checkpoint_change(), which takes over
 * the pins of those that are born; the highest seq applied in a page to *applied.
 */
int tree_checkpoint(struct tree *tree, struct vf_tree *out, uint64_t *applied);

#endif
