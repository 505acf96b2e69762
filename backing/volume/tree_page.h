/*
 * Directory pages in memory: for tree.c and tree_checkpoint.c alone.
 *
 * Pages of level 2 and above are here from when their tree is loaded; one of
 * level 1 only while it is pinned or dirty, else the cache has it, packed.
 */
#ifndef BACKING_VOLUME_TREE_PAGE_H
#define BACKING_VOLUME_TREE_PAGE_H

#include "backing/volume/cache.h"
#include "backing/volume/tree.h"

struct dir_page {
	struct dir_page *parent; /* NULL: the root */
	uint64_t index;		 /* among the pages of its level */
	uint64_t applied_seq;	 /* as loaded: replay skips up to it */
	uint64_t changed_seq;	 /* newest descriptor that changed it */
	uint32_t pins;
	uint16_t nslots; /* present ones */
	uint8_t level;
	bool dirty;
	bool below;			 /* a page under it may be dirty */
	struct vf_slot slots[VF_FANOUT]; /* where 0: none */
	struct dir_page *children[];	 /* level 2 and above: VF_FANOUT; NULL: not here */
};

/* The slot of a page is kept by its parent, that of the root by the tree. */
struct vf_slot *dir_page_slot(struct tree *tree, const struct dir_page *page);
/* Changes a slot, and what counts them; the page is not marked. */
void dir_page_put(struct dir_page *page, uint32_t i, const struct vf_slot *slot);
void dir_page_mark(struct tree *tree, struct dir_page *page);
/* Frees it and forgets it above; it has no children here. */
void dir_page_drop(struct tree *tree, struct dir_page *page);
/* Bytes of a page as written, at most. */
#define DIR_PAGE_LEN_MAX (sizeof(struct vf_dir) + VF_FANOUT * sizeof(struct vf_slot))
/* As it is written; returns its length. */
uint32_t dir_page_encode(const struct tree *tree, const struct dir_page *page, uint64_t applied_seq,
			 struct vf_dir *out);
void dir_page_key(const struct tree *tree, uint8_t level, uint64_t index,
		  const struct vf_slot *slot, struct cache_key *key);

#endif
