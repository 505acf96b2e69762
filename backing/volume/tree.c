#include "backing/volume/tree.h"

#include <stdlib.h>

#include "backing/volume/tree_page.h"

/* ---- pages ---- */

static bool slot_used(const struct vf_slot *slot)
{
	return le64_get(&slot->where) != 0;
}

struct vf_slot *dir_page_slot(struct tree *tree, const struct dir_page *page)
{
	return page->parent ? &page->parent->slots[page->index % VF_FANOUT] : &tree->root_slot;
}

void dir_page_put(struct dir_page *page, uint32_t i, const struct vf_slot *slot)
{
	page->nslots = (uint16_t)(page->nslots + slot_used(slot) - slot_used(&page->slots[i]));
	page->slots[i] = *slot;
}

void dir_page_mark(struct tree *tree, struct dir_page *page)
{
	page->dirty = true;
	tree->dirty = true;
	for (page = page->parent; page && !page->below; page = page->parent)
		page->below = true;
}

static struct dir_page *page_new(struct tree *tree, struct dir_page *parent, uint8_t level,
				 uint64_t index)
{
	size_t len = sizeof(struct dir_page) +
		     (level > 1 ? VF_FANOUT * sizeof(struct dir_page *) : 0);
	struct dir_page *page = calloc(1, len);

	if (!page)
		return NULL;
	page->parent = parent;
	page->level = level;
	page->index = index;
	if (parent)
		parent->children[index % VF_FANOUT] = page;
	else
		tree->root = page;
	if (level == 1)
		tree->pool->ndir_pages++;
	return page;
}

void dir_page_drop(struct tree *tree, struct dir_page *page)
{
	assert(page->pins == 0);
	if (page->parent)
		page->parent->children[page->index % VF_FANOUT] = NULL;
	else
		tree->root = NULL;
	if (page->level == 1)
		tree->pool->ndir_pages--;
	free(page);
}

static void page_drop_all(struct tree *tree, struct dir_page *page)
{
	for (uint32_t i = 0; page->level > 1 && i < VF_FANOUT; i++)
		if (page->children[i])
			page_drop_all(tree, page->children[i]);
	page->pins = 0;
	dir_page_drop(tree, page);
}

uint32_t dir_page_encode(const struct tree *tree, const struct dir_page *page, uint64_t applied_seq,
			 struct vf_dir *out)
{
	struct vf_slot *slots = (struct vf_slot *)(out + 1);
	uint32_t n = 0, len;

	memset(out, 0, sizeof(*out));
	le32_put(&out->tree, tree->id);
	out->level = page->level;
	le16_put(&out->nslots, page->nslots);
	le64_put(&out->index, page->index);
	le64_put(&out->applied_seq, applied_seq);
	for (uint32_t i = 0; i < VF_FANOUT; i++) {
		if (!slot_used(&page->slots[i]))
			continue;
		out->present[i / 8] |= (uint8_t)(1u << i % 8);
		slots[n++] = page->slots[i];
	}
	assert(n == page->nslots);
	len = (uint32_t)(sizeof(*out) + n * sizeof(*slots));
	vf_seal(out, VF_DIR, len, tree->pool->geometry.uuid);
	return len;
}

static void page_decode(struct dir_page *page, const struct vf_dir *dir)
{
	const struct vf_slot *slots = (const struct vf_slot *)(dir + 1);

	page->applied_seq = le64_get(&dir->applied_seq);
	page->nslots = le16_get(&dir->nslots);
	for (uint32_t i = 0; i < VF_FANOUT; i++)
		if (dir->present[i / 8] & 1u << i % 8)
			page->slots[i] = *slots++;
}

void dir_page_key(const struct tree *tree, uint8_t level, uint64_t index,
		  const struct vf_slot *slot, struct cache_key *key)
{
	*key = (struct cache_key){
		.slot = *slot, .type = VF_DIR, .tree = tree->id, .level = level, .index = index
	};
}

/* ---- finding ---- */

/* Does a tree of this level reach the index? */
static bool level_reaches(uint8_t level, uint64_t index)
{
	return level >= 8 || index >> 8 * level == 0;
}

/* Where the page of level 1 over an index is: here, written, or neither. */
struct place {
	struct dir_page *page; /* resident; or NULL */
	struct vf_slot slot;
	bool none;
};

static struct place place_find(struct tree *tree, uint64_t index)
{
	struct place place = { .page = tree->root, .slot = tree->root_slot };

	if (tree->level == 0 || !level_reaches(tree->level, index))
		return (struct place){ .none = true };
	for (uint8_t level = tree->level; level > 1; level--) {
		uint32_t i = (uint32_t)(index >> 8 * (level - 1)) % VF_FANOUT;
		struct dir_page *page = place.page;

		assert(page != NULL);
		place = (struct place){ .page = page->children[i], .slot = page->slots[i] };
		if (!place.page && !slot_used(&place.slot))
			return (struct place){ .none = true };
	}
	place.none = !place.page && !slot_used(&place.slot);
	return place;
}

/* The slot i of a packed page. */
static bool packed_slot(const struct vf_dir *dir, uint32_t i, struct vf_slot *out)
{
	const struct vf_slot *slots = (const struct vf_slot *)(dir + 1);
	uint32_t rank = 0;

	if (!(dir->present[i / 8] & 1u << i % 8))
		return false;
	for (uint32_t b = 0; b < i / 8; b++)
		rank += (uint32_t)__builtin_popcount(dir->present[b]);
	rank += (uint32_t)__builtin_popcount(dir->present[i / 8] & ((1u << i % 8) - 1));
	*out = slots[rank];
	return true;
}

enum tree_result tree_get(struct tree *tree, uint64_t index, struct vf_slot *out,
			  struct tree_waiter *waiter)
{
	struct place place = place_find(tree, index);
	enum tree_result result;
	struct cache_page *page;
	struct cache_key key;
	bool found;

	if (place.none)
		return TREE_NONE;
	if (place.page) {
		*out = place.page->slots[index % VF_FANOUT];
		return slot_used(out) ? TREE_FOUND : TREE_NONE;
	}
	dir_page_key(tree, 1, index / VF_FANOUT, &place.slot, &key);
	page = cache_get(tree->pool, &key, waiter, &result);
	if (!page)
		return result;
	found = packed_slot(page->data, index % VF_FANOUT, out);
	cache_put(tree->pool, page);
	return found ? TREE_FOUND : TREE_NONE;
}

int tree_get_wait(struct tree *tree, uint64_t index, struct vf_slot *out)
{
	for (;;) {
		enum tree_result result = tree_get(tree, index, out, NULL);
		struct place place;
		struct cache_key key;
		struct cache_page *page;
		int rc;

		if (result == TREE_FOUND || result == TREE_NONE)
			return result == TREE_FOUND ? 0 : -ENOENT;
		if (result == TREE_DAMAGED)
			return -EUCLEAN;
		place = place_find(tree, index);
		dir_page_key(tree, 1, index / VF_FANOUT, &place.slot, &key);
		rc = cache_get_wait(tree->pool, &key, &page);
		if (rc)
			return rc;
		cache_put(tree->pool, page);
	}
}

/* ---- changing ---- */

/* A root above the one there is, until the tree reaches the index. */
static int tree_raise(struct tree *tree, uint64_t index)
{
	while (tree->level == 0 || !level_reaches(tree->level, index)) {
		struct dir_page *old = tree->root, *root;

		if (tree->level == 0) {
			while (!level_reaches(++tree->level, index))
				;
			root = page_new(tree, NULL, tree->level, 0);
			if (!root)
				tree->level = 0;
			return root ? 0 : -ENOMEM;
		}
		root = page_new(tree, NULL, (uint8_t)(tree->level + 1), 0);
		if (!root)
			return -ENOMEM;
		root->children[0] = old;
		root->below = true;
		if (old)
			old->parent = root;
		dir_page_put(root, 0, &tree->root_slot);
		tree->root_slot = (struct vf_slot){ .where = { { 0 } } };
		tree->level++;
		dir_page_mark(tree, root);
	}
	return 0;
}

/* Reads what a page holds: either copy. */
static int page_read(struct tree *tree, uint8_t level, uint64_t index, const struct vf_slot *slot,
		     struct cache_page **out)
{
	struct cache_key key;
	int rc;

	dir_page_key(tree, level, index, slot, &key);
	rc = cache_get_wait(tree->pool, &key, out);
	if (rc && level > 1 && le64_get(&slot->merged_seq) != 0) {
		key.slot.where = slot->merged_seq;
		rc = cache_get_wait(tree->pool, &key, out);
	}
	return rc;
}

/* The page of level 1 over an index, with those above it; -EAGAIN after a wait. */
static int page_make(struct tree *tree, uint64_t index, struct dir_page **out)
{
	struct dir_page *page, *child;
	int rc = tree_raise(tree, index);

	if (rc)
		return rc;
	page = tree->root;
	for (uint8_t level = tree->level; level > 1; level--) {
		uint64_t at = index >> 8 * (level - 1);

		child = page->children[at % VF_FANOUT];
		if (!child && level == 2)
			break;
		/* What was written of level 2 and above is here since tree_load(). */
		assert(child || !slot_used(&page->slots[at % VF_FANOUT]));
		if (!child)
			child = page_new(tree, page, (uint8_t)(level - 1), at);
		if (!child)
			return -ENOMEM;
		page = child;
	}
	if (!page || page->level > 1) {
		struct vf_slot slot = page ? page->slots[index / VF_FANOUT % VF_FANOUT]
					   : tree->root_slot;
		struct cache_page *cached = NULL;

		if (slot_used(&slot)) {
			enum tree_result result;
			struct cache_key key;

			dir_page_key(tree, 1, index / VF_FANOUT, &slot, &key);
			cached = cache_get(tree->pool, &key, NULL, &result);
			if (!cached) {
				rc = page_read(tree, 1, index / VF_FANOUT, &slot, &cached);
				if (!rc)
					cache_put(tree->pool, cached);
				return rc ? rc : -EAGAIN;
			}
		}
		page = page_new(tree, page, 1, index / VF_FANOUT);
		if (page && cached)
			page_decode(page, cached->data);
		if (cached)
			cache_put(tree->pool, cached);
		if (!page)
			return -ENOMEM;
	}
	*out = page;
	return 0;
}

int tree_pin(struct tree *tree, uint64_t index)
{
	struct dir_page *page;
	int rc;

	while ((rc = page_make(tree, index, &page)) == -EAGAIN)
		;
	if (!rc)
		page->pins++;
	return rc;
}

void tree_unpin(struct tree *tree, uint64_t index)
{
	struct dir_page *page = place_find(tree, index).page;

	assert(page && page->pins > 0);
	page->pins--;
	if (page->pins == 0 && !page->dirty)
		dir_page_drop(tree, page);
}

void tree_set(struct tree *tree, uint64_t index, const struct vf_slot *slot, uint64_t seq)
{
	struct dir_page *page = place_find(tree, index).page;

	assert(page != NULL);
	if (tree->pool->recovering && seq <= page->applied_seq)
		return;
	dir_page_put(page, index % VF_FANOUT, slot);
	page->changed_seq = seq;
	dir_page_mark(tree, page);
}

/* The page of level 2 or above at an index of its level; NULL: there is none. */
static struct dir_page *page_above(struct tree *tree, uint8_t level, uint64_t index)
{
	struct dir_page *page = tree->root;

	if (level > tree->level || !level_reaches((uint8_t)(tree->level - level), index))
		return NULL;
	for (uint8_t l = tree->level; page && l > level; l--)
		page = page->children[(index >> 8 * (l - 1 - level)) % VF_FANOUT];
	return page;
}

static bool page_is_at(struct tree *tree, const struct dir_page *page, uint64_t addr)
{
	const struct vf_slot *slot = dir_page_slot(tree, page);

	return vf_where_addr(le64_get(&slot->where)) == addr ||
	       (page->level > 1 && vf_where_addr(le64_get(&slot->merged_seq)) == addr);
}

int tree_touch(struct tree *tree, uint8_t level, uint64_t index, uint64_t addr)
{
	struct dir_page *page;
	uint64_t first = index * VF_FANOUT;
	int rc;

	if (level > 1) {
		page = page_above(tree, level, index);
		if (page && page_is_at(tree, page, addr))
			dir_page_mark(tree, page);
		return 0;
	}
	if (place_find(tree, first).none)
		return 0;
	rc = tree_pin(tree, first);
	if (rc)
		return rc;
	page = place_find(tree, first).page;
	if (page_is_at(tree, page, addr))
		dir_page_mark(tree, page);
	tree_unpin(tree, first);
	return 0;
}

void tree_moved(struct tree *tree, uint64_t index, const struct vf_slot *slot, uint64_t applied_seq,
		uint64_t seq)
{
	struct dir_page *parent = page_above(tree, 2, index / VF_FANOUT), *page = tree->root;

	if (parent) {
		if (seq <= parent->applied_seq)
			return;
		page = parent->children[index % VF_FANOUT];
		dir_page_put(parent, index % VF_FANOUT, slot);
		dir_page_mark(tree, parent);
	} else if (tree->level == 1) {
		tree->root_slot = *slot;
		tree->dirty = true;
	} else {
		return;
	}
	if (page && page->changed_seq <= applied_seq)
		page->dirty = false;
}

/* ---- walking ---- */

/* The first page of level 1 at or behind index `from` of them, under page. */
static bool next_under(const struct dir_page *page, uint64_t from, uint64_t *out)
{
	unsigned int shift = 8 * (page->level - 2u);

	for (uint64_t i = from >> shift > page->index * VF_FANOUT
				  ? (from >> shift) - page->index * VF_FANOUT
				  : 0;
	     i < VF_FANOUT; i++) {
		uint64_t index = page->index * VF_FANOUT + i;
		const struct dir_page *child = page->children[i];

		if (!child && !slot_used(&page->slots[i]))
			continue;
		if (page->level > 2) {
			if (next_under(child, from, out))
				return true;
			continue;
		}
		*out = index;
		return true;
	}
	return false;
}

static bool next_page(struct tree *tree, uint64_t from, uint64_t *out)
{
	*out = 0;
	if (tree->level == 0)
		return false;
	if (tree->level == 1)
		return from == 0;
	return tree->root && next_under(tree->root, from, out);
}

/* The next slot at or behind *index in its page of level 1. */
static int next_in_page(struct tree *tree, uint64_t *index, struct vf_slot *out)
{
	do {
		int rc = tree_get_wait(tree, *index, out);

		if (rc != -ENOENT)
			return rc;
		(*index)++;
	} while (*index % VF_FANOUT != 0);
	return -ENOENT;
}

int tree_next(struct tree *tree, uint64_t *index, struct vf_slot *out)
{
	uint64_t page;

	while (next_page(tree, *index / VF_FANOUT, &page)) {
		int rc;

		if (page > *index / VF_FANOUT)
			*index = page * VF_FANOUT;
		rc = next_in_page(tree, index, out);
		if (rc != -ENOENT)
			return rc;
	}
	return -ENOENT;
}

/* ---- life ---- */

void tree_init(struct tree *tree, struct pool *pool, uint32_t id)
{
	*tree = (struct tree){ .pool = pool, .id = id };
}

/* Level 2 and above stay in memory from now on. */
static int load_under(struct tree *tree, struct dir_page *parent, uint8_t level, uint64_t index,
		      const struct vf_slot *slot)
{
	struct cache_page *cached;
	struct dir_page *page;
	int rc = page_read(tree, level, index, slot, &cached);

	if (rc)
		return rc;
	page = page_new(tree, parent, level, index);
	if (page)
		page_decode(page, cached->data);
	cache_put(tree->pool, cached);
	if (!page)
		return -ENOMEM;
	for (uint32_t i = 0; level > 2 && i < VF_FANOUT; i++) {
		if (!slot_used(&page->slots[i]))
			continue;
		rc = load_under(tree, page, (uint8_t)(level - 1), index * VF_FANOUT + i,
				&page->slots[i]);
		if (rc)
			return rc;
	}
	return 0;
}

int tree_load(struct tree *tree, const struct vf_tree *root, struct err *err)
{
	int rc;

	tree->level = root->level;
	tree->root_slot = root->slot;
	if (root->level <= 1)
		return 0;
	rc = load_under(tree, NULL, root->level, 0, &root->slot);
	if (rc)
		return err_set(err, -rc,
			       "a directory of tree %u cannot be read (%s): `quintain pool check` "
			       "says more",
			       tree->id, err_name(-rc));
	return 0;
}

void tree_release(struct tree *tree)
{
	if (tree->root)
		page_drop_all(tree, tree->root);
	tree->level = 0;
	tree->dirty = false;
}
