/*
 * What a merge makes of a leaf: pure, so that it can be tried against a model.
 *
 * Purpose: a region's leaf and the deltas behind it, in order, become the
 * entries of its next leaf; and which records nothing names any more.
 *
 *	leaf_edit_begin(edit, wide)
 *	leaf_edit_leaf(edit, leaf)		what there was, if anything
 *	leaf_edit_clear(edit)			a range operation: all so far goes
 *	leaf_edit_data/hole/move(edit, ...)	in the order (seq, index)
 *	leaf_edit_end(edit)			entries, dead, mapped
 *
 * How: each sector of the region knows the source (an entry of the leaf, or a
 * delta) it is from; a delta paints its sectors.  Runs of one source become
 * entries.  Every record that some source, or the target of a MOVE, names is a
 * candidate; those that no new entry names are dead.  So it does not matter
 * whether a MOVE found its record: without entries its new copy dies, with
 * entries the old one.
 *
 * Holes leave no entries: nothing older can show through them as long as there
 * are neither snapshots nor parents.
 *
 * Memory: struct leaf_edit is large (700 KiB) and is used again and again.  Any
 * thread, one at a time.
 */
#ifndef BACKING_VOLUME_LEAF_EDIT_H
#define BACKING_VOLUME_LEAF_EDIT_H

#include "backing/volume/format.h"

/* DATA and MOVE of one edit at most; a group has no more than 2048 of a region. */
#define LEAF_EDIT_DELTAS_MAX 4096u
#define LEAF_EDIT_SOURCES    (VF_LEAF_ENTRIES_MAX + LEAF_EDIT_DELTAS_MAX)

/* A record: where, and how long. */
struct leaf_record {
	uint64_t addr;	 /* units */
	uint32_t stored; /* units */
	uint32_t entry;	 /* leaf_edit.c's */
};

struct leaf_edit {
	/* the result */
	struct vf_entry entries[VF_LEAF_ENTRIES_MAX];
	uint32_t nentries;
	struct leaf_record *dead; /* in order of addr */
	uint32_t ndead;
	int64_t mapped; /* change of mapped sectors */
	/* leaf_edit.c's */
	bool first_slice_frees, by_address; /* mutants */
	uint32_t nsources, ncandidates, ndeltas;
	int32_t mapped_before;
	uint16_t owner[VF_REGION_SECTORS]; /* 1 + source; 0: none */
	struct vf_entry sources[LEAF_EDIT_SOURCES];
	struct leaf_record candidates[LEAF_EDIT_SOURCES];
	struct leaf_record named[VF_LEAF_ENTRIES_MAX];
};

void leaf_edit_begin(struct leaf_edit *edit);
/* The leaf was checked (vf_leaf_check()). */
void leaf_edit_leaf(struct leaf_edit *edit, const struct vf_leaf *leaf);
void leaf_edit_clear(struct leaf_edit *edit);
/* False: no more deltas fit, the edit is as before. */
bool leaf_edit_data(struct leaf_edit *edit, const struct vf_entry *entry);
void leaf_edit_hole(struct leaf_edit *edit, uint32_t start, uint32_t nsectors);
/* The record at old->addr with old->check[0] is at moved_to from here on. */
bool leaf_edit_move(struct leaf_edit *edit, const struct vf_entry *old, uint64_t moved_to);
void leaf_edit_end(struct leaf_edit *edit);

/* Bytes of the leaf of so many entries. */
static inline uint32_t leaf_len(uint32_t nentries, bool wide)
{
	return (uint32_t)sizeof(struct vf_leaf) +
	       nentries * (wide ? VF_ENTRY_WIDE_LEN : VF_ENTRY_LEN);
}

/* Packs the edited entries into a leaf of leaf_len() bytes, sealed. */
void leaf_edit_encode(const struct leaf_edit *edit, struct vf_leaf *leaf, const uint8_t uuid[16],
		      uint32_t volume, uint64_t region, uint64_t merged_seq, bool wide);

#endif
