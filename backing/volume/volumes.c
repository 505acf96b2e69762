/*
 * A volume's struct lives from before its VOLOP is laid out (pending) until a
 * checkpoint has taken its record out of the table (gone).  Between, it is on
 * the list in order of name and in a bucket by id.
 */
#include "backing/volume/volumes.h"

#include <stdlib.h>
#include <string.h>

#include "backing/volume/bulk.h"
#include "backing/volume/cache.h"
#include "backing/volume/checkpoint.h"
#include "backing/volume/log.h"
#include "backing/volume/merge.h"

#define NBUCKETS 256u
/* A record of the table with every range. */
#define RECORD_LEN_MAX (sizeof(struct vf_volume) + VF_RANGES_MAX * sizeof(struct vf_range))

struct volumes {
	struct list list; /* by name; then by id, since names are given again */
	struct list pending, gone;
	struct list buckets[NBUCKETS]; /* by id */
	struct tree tree;
	uint32_t next_id;	  /* for the next one that is made */
	uint32_t laid_out;	  /* the next after the highest that was laid out */
	uint32_t in_table;	  /* laid_out when the table was written last, or as loaded */
	struct vf_volume *record; /* being written by a checkpoint */
};

/* ---- finding ---- */

static struct list *bucket(struct volumes *volumes, uint32_t id)
{
	return &volumes->buckets[id % NBUCKETS];
}

struct volume *volume_by_id(struct pool *pool, uint32_t id)
{
	list_for_each(link, bucket(pool->volumes, id)) {
		struct volume *volume = container_of(link, struct volume, id_link);

		if (volume->id == id)
			return volume;
	}
	return NULL;
}

struct volume *volumes_each(struct pool *pool, struct volume *after)
{
	struct list *head = &pool->volumes->list;
	struct list *next = after ? after->link.next : head->next;

	return next == head ? NULL : container_of(next, struct volume, link);
}

struct volume *volume_next(struct pool *pool, struct volume *after)
{
	do {
		after = volumes_each(pool, after);
	} while (after && after->deleting);
	return after;
}

struct volume *volume_find(struct pool *pool, const char *name)
{
	struct volume *volume = NULL;

	while ((volume = volume_next(pool, volume)) != NULL)
		if (strcmp(volume->name, name) == 0)
			return volume;
	return NULL;
}

struct tree *volumes_tree(struct pool *pool)
{
	return &pool->volumes->tree;
}

uint32_t volumes_next_id(const struct pool *pool)
{
	return pool->volumes->in_table;
}

void volumes_set_next(struct pool *pool, uint32_t next_id)
{
	struct volumes *volumes = pool->volumes;

	volumes->next_id = volumes->laid_out = volumes->in_table = next_id;
}

/* ---- coming and going ---- */

struct volume *volume_new(struct pool *pool, uint32_t id)
{
	struct volume *volume = calloc(1, sizeof(*volume));

	if (!volume)
		return NULL;
	volume->pool = pool;
	volume->id = id;
	tree_init(&volume->head, pool, id);
	list_init(&volume->id_link);
	list_init(&volume->requests);
	list_init(&volume->queue_link);
	list_init(&volume->staged);
	list_init(&volume->waiting);
	list_init(&volume->ready_link);
	list_add_tail(&pool->volumes->pending, &volume->link);
	return volume;
}

void volume_free(struct volume *volume)
{
	list_del(&volume->link);
	list_del(&volume->id_link);
	tree_release(&volume->head);
	free(volume->op);
	free(volume);
}

uint32_t volume_new_id(struct pool *pool)
{
	struct volumes *volumes = pool->volumes;

	return volumes->next_id <= VF_VOLUME_ID_MAX ? volumes->next_id++ : 0;
}

bool volume_pending(struct pool *pool, const char *name)
{
	list_for_each(link, &pool->volumes->pending)
		if (strcmp(container_of(link, struct volume, link)->name, name) == 0)
			return true;
	return false;
}

/* From pending to those that exist. */
static void volume_link(struct volume *volume)
{
	struct volumes *volumes = volume->pool->volumes;
	struct list *before = volumes->list.next;

	for (; before != &volumes->list; before = before->next) {
		const struct volume *other = container_of(before, struct volume, link);
		int order = strcmp(other->name, volume->name);

		if (order > 0 || (order == 0 && other->id > volume->id))
			break;
	}
	list_del(&volume->link);
	list_add_tail(before, &volume->link);
	list_add_tail(bucket(volumes, volume->id), &volume->id_link);
	if (volumes->laid_out <= volume->id)
		volumes->laid_out = volume->id + 1;
	if (volumes->next_id <= volume->id)
		volumes->next_id = volume->id + 1;
}

void volume_forget(struct volume *volume)
{
	struct volumes *volumes = volume->pool->volumes;

	assert(volume->deleting && list_empty(&volume->staged));
	list_del(&volume->link);
	list_del(&volume->id_link);
	list_add_tail(&volumes->gone, &volume->link);
	checkpoint_want(volume->pool);
}

/* ---- records ---- */

void volume_encode(const struct volume *volume, struct vf_volume *out, uint64_t applied_seq)
{
	const struct volume_settings *settings = &volume->settings;
	uint32_t n = 0;

	memset(out, 0, sizeof(*out));
	le32_put(&out->id, volume->id);
	le32_put(&out->flags, volume->deleting ? VF_VOLUME_DELETING : 0);
	memcpy(out->uuid, volume->uuid, sizeof(out->uuid));
	memcpy(out->name, volume->name, sizeof(out->name));
	le64_put(&out->nsectors, settings->nsectors);
	le64_put(&out->created_s, volume->created_s);
	le64_put(&out->applied_seq, applied_seq);
	le32_put(&out->block_len, settings->block_len);
	le32_put(&out->record_len, settings->record_len);
	out->codec = (uint8_t)settings->codec.id;
	out->level = (uint8_t)settings->codec.level;
	out->checksum = settings->checksum;
	le64_put(&out->mapped, volume->mapped);
	if (le64_get(&volume->head.root_slot.where)) {
		out->head_tree.slot = volume->head.root_slot;
		out->head_tree.level = volume->head.level;
	}
	for (uint32_t i = 0; i < volume->nranges; i++) {
		const struct volume_range *range = &volume->ranges[i];
		struct vf_range *to = &out->ranges[n];

		if (range->seq == 0) /* staged: not laid out yet */
			continue;
		memset(to, 0, sizeof(*to));
		le64_put(&to->region, range->region);
		le64_put(&to->nregions, range->nregions);
		le64_put(&to->seq, range->seq);
		le32_put(&to->birth, volume->pool->epoch);
		n++;
	}
	le32_put(&out->nranges, n);
	vf_seal(out, VF_VOLUME, (uint32_t)(sizeof(*out) + n * sizeof(struct vf_range)),
		volume->pool->geometry.uuid);
}

/* What a VOLOP changes. */
static void record_take(struct volume *volume, const struct vf_volume *record)
{
	memcpy(volume->uuid, record->uuid, sizeof(volume->uuid));
	memcpy(volume->name, record->name, sizeof(volume->name));
	volume->settings = (struct volume_settings){
		.nsectors = le64_get(&record->nsectors),
		.block_len = le32_get(&record->block_len),
		.record_len = le32_get(&record->record_len),
		.codec = { record->codec, (int8_t)record->level },
		.checksum = record->checksum,
	};
	pool_prepare_codec(volume->pool, &volume->settings.codec);
	volume->wide = record->checksum == VF_SHA256;
	volume->created_s = le64_get(&record->created_s);
	volume->deleting = le32_get(&record->flags) & VF_VOLUME_DELETING;
}

static struct volume *pending_by_id(struct pool *pool, uint32_t id)
{
	list_for_each(link, &pool->volumes->pending) {
		struct volume *volume = container_of(link, struct volume, link);

		if (volume->id == id)
			return volume;
	}
	return NULL;
}

int volume_apply(struct pool *pool, const struct vf_volume *record, uint64_t seq)
{
	uint32_t id = le32_get(&record->id);
	struct volume *volume = volume_by_id(pool, id);

	if (volume && pool->recovering && seq <= volume->applied_seq)
		return 0;
	if (!volume) {
		/* Replayed: the checkpoint knew it, and that it is gone. */
		if (pool->recovering && id < pool->volumes->in_table)
			return 0;
		volume = pending_by_id(pool, id);
		if (!volume)
			volume = volume_new(pool, id);
		if (!volume)
			return -ENOMEM;
		record_take(volume, record);
		volume_link(volume);
	} else {
		record_take(volume, record);
	}
	volume->dirty = true;
	if (volume->deleting)
		merger_kick(pool);
	return 0;
}

/* ---- at opening ---- */

static int record_load(struct pool *pool, const struct vf_volume *record, struct err *err)
{
	struct volume *volume = volume_new(pool, le32_get(&record->id));
	int rc;

	if (!volume)
		return err_set(err, ENOMEM, "no memory for the volumes of pool \"%s\"", pool->name);
	record_take(volume, record);
	volume->applied_seq = le64_get(&record->applied_seq);
	volume->mapped = le64_get(&record->mapped);
	for (uint32_t i = 0; i < le32_get(&record->nranges); i++)
		volume->ranges[volume->nranges++] = (struct volume_range){
			.region = le64_get(&record->ranges[i].region),
			.nregions = le64_get(&record->ranges[i].nregions),
			.seq = le64_get(&record->ranges[i].seq),
		};
	rc = tree_load(&volume->head, &record->head_tree, err);
	if (rc) {
		if (err)
			err_prefix(err, "volume \"%s\"", volume->name);
		return rc;
	}
	volume_link(volume);
	return 0;
}

int volumes_load(struct pool *pool, const struct vf_tree *root, struct err *err)
{
	struct tree *tree = &pool->volumes->tree;
	struct cache_key key = { .type = VF_VOLUME, .tree = VF_TREE_VOLTAB };
	int rc = tree_load(tree, root, err);

	while (!rc) {
		struct cache_page *page;

		rc = tree_next(tree, &key.index, &key.slot);
		if (rc == -ENOENT)
			return 0;
		if (!rc)
			rc = cache_get_wait(pool, &key, &page);
		if (rc)
			return err_set(err, -rc, "the table of volumes cannot be read: %s",
				       err_name(-rc));
		rc = record_load(pool, page->data, err);
		cache_put(pool, page);
		key.index++;
	}
	return rc;
}

int volumes_open(struct pool *pool, struct err *err)
{
	struct volumes *volumes = calloc(1, sizeof(*volumes));

	if (!volumes)
		return err_set(err, ENOMEM, "no memory for the volumes of pool \"%s\"", pool->name);
	pool->volumes = volumes;
	list_init(&volumes->list);
	list_init(&volumes->pending);
	list_init(&volumes->gone);
	for (uint32_t i = 0; i < NBUCKETS; i++)
		list_init(&volumes->buckets[i]);
	tree_init(&volumes->tree, pool, VF_TREE_VOLTAB);
	volumes_set_next(pool, 1);
	volumes->record = malloc(RECORD_LEN_MAX);
	if (!volumes->record) {
		volumes_close(pool);
		return err_set(err, ENOMEM, "no memory for the volumes of pool \"%s\"", pool->name);
	}
	return 0;
}

static void list_free(struct list *list)
{
	while (!list_empty(list))
		volume_free(container_of(list->next, struct volume, link));
}

void volumes_close(struct pool *pool)
{
	struct volumes *volumes = pool->volumes;

	if (!volumes)
		return;
	list_free(&volumes->list);
	list_free(&volumes->pending);
	list_free(&volumes->gone);
	tree_release(&volumes->tree);
	free(volumes->record);
	free(volumes);
	pool->volumes = NULL;
}

/* ---- checkpoints ---- */

/* The one with the lowest id above: volumes come and go while this waits. */
static struct volume *next_dirty(struct pool *pool, uint32_t above)
{
	struct volume *next = NULL;

	for (struct volume *volume = volumes_each(pool, NULL); volume;
	     volume = volumes_each(pool, volume))
		if (volume->id > above && (volume->dirty || volume->head.dirty) &&
		    (!next || volume->id < next->id))
			next = volume;
	return next;
}

/* The table's slot of the volume: item NULL: there is no record any more. */
static int record_name(struct pool *pool, uint32_t id, const struct bulk_item *item)
{
	struct tree *tree = &pool->volumes->tree;
	struct vf_slot slot = { .where = { { 0 } } }, old;
	int rc = tree_pin(tree, id);

	if (rc)
		return rc;
	rc = tree_get_wait(tree, id, &old);
	if (!rc)
		checkpoint_change(pool, vf_where_addr(le64_get(&old.where)),
				  vf_where_stored(le64_get(&old.where)), false);
	if (item) {
		le64_put(&slot.where, vf_where(item->addr, item->stored));
		slot.hash = item->hash;
		checkpoint_change(pool, item->addr, item->stored, true);
	}
	if (!rc || item)
		tree_set(tree, id, &slot, log_seq(pool));
	tree_unpin(tree, id);
	return 0;
}

/* The tree first: nothing waits between its end and the record that names it. */
static int record_make(struct volume *volume, struct bulk_item *item, uint64_t *applied)
{
	struct pool *pool = volume->pool;
	struct vf_volume *record = pool->volumes->record;
	uint64_t seq;
	struct vf_tree out;
	int rc = tree_checkpoint(&volume->head, &out, applied);

	if (rc)
		return rc;
	seq = log_seq(pool);
	if (*applied < seq)
		*applied = seq;
	volume->dirty = false;
	volume_encode(volume, record, seq);
	*item = (struct bulk_item){ .data = record, .len = le32_get(&record->head.len) };
	item->desc.type = VF_PAGE;
	le32_put(&item->desc.volume, VF_TREE_VOLTAB);
	le64_put(&item->desc.lba, volume->id);
	le64_put(&item->desc.nsectors, (uint64_t)VF_VOLUME << 8);
	return 0;
}

static int record_write(struct pool *pool, uint32_t id, uint64_t *applied)
{
	struct bulk_item item;
	struct volume *volume = volume_by_id(pool, id);
	int rc = record_make(volume, &item, applied);

	if (!rc) {
		rc = bulk_write(pool, VF_M, &item, 1, SEGMENT_FOR_MAP, 0);
		if (!rc) {
			rc = record_name(pool, id, &item);
			if (rc)
				bulk_named(pool, &item, 1);
		}
	}
	volume = volume_by_id(pool, id);
	if (rc && volume)
		volume->dirty = true;
	return rc;
}

/* Records of volumes that are worked off go; their structs when nobody has them. */
static int gone_remove(struct pool *pool)
{
	struct list *gone = &pool->volumes->gone;
	struct list *link = gone->next;

	while (link != gone) {
		struct volume *volume = container_of(link, struct volume, link);
		int rc = record_name(pool, volume->id, NULL);

		if (rc)
			return rc;
		link = link->next;
		if (volume->users == 0)
			volume_free(volume);
	}
	return 0;
}

int volumes_checkpoint(struct pool *pool, struct vf_tree *out, uint64_t *applied)
{
	struct volumes *volumes = pool->volumes;
	/* Those made from here on may be missing in the table: replay makes them. */
	uint32_t laid_out = volumes->laid_out;
	struct volume *volume;
	uint32_t id = 0;
	int rc = 0;

	while (!rc && (volume = next_dirty(pool, id)) != NULL) {
		id = volume->id;
		rc = record_write(pool, id, applied);
	}
	if (!rc)
		rc = gone_remove(pool);
	if (!rc)
		rc = tree_checkpoint(&volumes->tree, out, applied);
	if (!rc)
		volumes->in_table = laid_out;
	return rc;
}
