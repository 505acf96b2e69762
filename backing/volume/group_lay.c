/*
 * Laying out: a group gets its seq and its place, and takes effect in memory, all
 * of it at once.  From here on the order of everything is settled.
 */
#include "backing/volume/staging.h"

#include "backing/volume/credit.h"
#include "backing/volume/region.h"
#include "backing/volume/segment.h"
#include "backing/volume/volumes.h"
#include "base/slab.h"

/* Bytes of a group of posts; a body is never longer than half of it. */
#define POSTS_LEN_MAX (256u << 10)

/* ---- what is written ---- */

static void segment_header(struct group *group)
{
	struct log *log = group->log;
	struct pool *pool = log->pool;
	struct vf_segment *header = (struct vf_segment *)group->header;

	memset(header, 0, VF_BLOCK);
	le32_put(&header->segno, log->segno);
	le32_put(&header->incarnation, pool->incarnation);
	le64_put(&header->life, log->life);
	le64_put(&header->first_seq, group->seq);
	le32_put(&header->before, log->before);
	le32_put(&header->successor, log->successor);
	header->prev = log->prev;
	header->stream = VF_W;
	vf_seal(header, VF_SEGMENT, sizeof(*header), pool->geometry.uuid);
	log->first_seq = group->seq;
	group->opens = true;
}

static void group_header(struct group *group)
{
	struct log *log = group->log;
	struct vf_group *header = (struct vf_group *)group->buf;

	le64_put(&header->seq, group->seq);
	le64_put(&header->durable_seq, log->durable);
	le64_put(&header->life, log->life);
	le32_put(&header->len, group->nblocks);
	le32_put(&header->ndescs, group->ndescs);
	header->prev = log->prev;
	vf_seal(header, VF_GROUP, (uint32_t)sizeof(*header) + group->table_len,
		log->pool->geometry.uuid);
}

static uint64_t record_lba(const struct record *record)
{
	return record->region ? record->region->index * VF_REGION_SECTORS + record->start
			      : record->range * VF_REGION_SECTORS;
}

static void desc_put(const struct pool *pool, struct vf_desc *desc, const struct record *record)
{
	*desc = (struct vf_desc){ .type = record->hole ? VF_HOLE : VF_DATA };
	le32_put(&desc->volume, record->volume->id);
	le64_put(&desc->lba, record_lba(record));
	le64_put(&desc->nsectors,
		 record->region ? record->nsectors : record->nregions * VF_REGION_SECTORS);
	le32_put(&desc->birth, pool->epoch);
	if (!record->region)
		desc->flags |= VF_DESC_RANGE;
	if (record->hole)
		return;
	desc->codec = record->codec;
	desc->flags |= record->raw ? VF_DESC_RAW : 0;
	le32_put(&desc->off, record->off);
	le32_put(&desc->stored, record->stored);
	le64_put(&desc->check, record->check[0]);
}

static void records_table(struct group *group)
{
	uint8_t *at = group->buf + sizeof(struct vf_group);

	list_for_each(link, &group->records) {
		const struct record *record = container_of(link, struct record, link);
		struct vf_desc_wide *desc = (struct vf_desc_wide *)at;

		desc_put(group->log->pool, &desc->desc, record);
		at += sizeof(desc->desc);
		if (record->hole || !record->volume->wide)
			continue;
		desc->desc.flags |= VF_DESC_WIDE;
		memcpy(desc->digest, record->digest, sizeof(desc->digest));
		at += sizeof(desc->digest);
	}
	assert(at == group->buf + sizeof(struct vf_group) + group->table_len);
}

static void posts_table(struct group *group)
{
	uint8_t *at = group->buf + sizeof(struct vf_group);

	list_for_each(link, &group->posts) {
		const struct log_post *post = container_of(link, struct log_post, link);
		uint32_t len = le32_get(&post->desc.body_len);

		memcpy(at, &post->desc, sizeof(post->desc));
		memcpy(at + sizeof(post->desc), post->body, len);
		at += sizeof(post->desc) + len;
	}
	memset(at, 0, (size_t)group->nblocks * VF_BLOCK - (size_t)(at - group->buf));
}

/* ---- its place ---- */

static void place_put(struct vf_place *place, uint64_t seq, uint32_t segno, uint32_t off,
		      const struct vf_hash *prev)
{
	le64_put(&place->seq, seq);
	le32_put(&place->segno, segno);
	le32_put(&place->off, off);
	place->prev = *prev;
}

void group_put(struct group *group)
{
	struct log *log = group->log;
	struct pool *pool = log->pool;

	group->opens = false;
	group->segno = log->segno;
	group->off = log->off;
	group->laid_ns = pool->env->ops->now_ns(pool->env);
	group_header(group);
	if (log->header_due) {
		segment_header(group);
		place_put(&group->end, group->seq, log->before, log->before_off, &log->prev);
	} else {
		place_put(&group->end, group->seq, log->segno, log->off, &log->prev);
	}
	log->header_due = false;
	log_mark(log, group->seq, group->nblocks);
	log_footer_add(log, group);
	log->prev = ((const struct vf_group *)group->buf)->head.sum;
	log->off += group->nblocks;
	log->newest_placed = group->seq;
	segment_at(pool, log->segno)->last_seq = group->seq;
	pool->counters.log_bytes += (uint64_t)group->nblocks * VF_BLOCK;
}

/* There is room (log_room()); the table is whole. */
static void group_place(struct group *group)
{
	struct log *log = group->log;

	group->seq = ++log->seq;
	group_put(group);
	list_del(&group->link);
	list_add_tail(&log->laid, &group->link);
}

/* ---- what it does ---- */

static void delta_of(const struct group *group, const struct record *record, uint32_t index,
		     struct delta *delta)
{
	struct pool *pool = group->log->pool;
	uint64_t base = group->segno * pool_segment_units(pool) +
			(uint64_t)group->off * (VF_BLOCK / VF_UNIT);

	*delta = (struct delta){ .seq = group->seq,
				 .index = index,
				 .type = record->hole ? VF_HOLE : VF_DATA };
	delta->entry.start = record->start;
	delta->entry.nsectors = record->nsectors;
	delta->entry.birth = pool->epoch;
	if (record->hole) {
		delta->entry.flags = VF_ENTRY_HOLE;
		return;
	}
	delta->entry.addr = base + record->off;
	delta->entry.stored = (uint16_t)record->stored;
	delta->entry.codec = record->codec;
	delta->entry.raw = record->raw;
	memcpy(delta->entry.check, record->check, sizeof(delta->entry.check));
}

/* The charge goes on to the region as far as its merge may need it; the rest was
 * for the worst case. */
static uint64_t region_charge(const struct region *region, uint64_t left)
{
	uint64_t charge = CREDIT_DELTA + (region->first_seq ? 0 : CREDIT_REGION);

	return charge < left ? charge : left;
}

static void records_apply(struct group *group)
{
	struct log *log = group->log;
	struct pool *pool = log->pool;
	uint32_t index = 0;
	struct list *link;

	while ((link = list_pop(&group->records)) != NULL) {
		struct record *record = container_of(link, struct record, link);
		struct delta delta;

		if (record->region) {
			uint64_t charge = region_charge(record->region, group->charge);

			delta_of(group, record, index, &delta);
			region_add(pool, record->region, &delta, charge);
			group->charge -= charge;
		} else {
			region_range(pool, record->volume, record->range, record->nregions,
				     group->seq);
		}
		index++;
		if (record->gathered)
			buddy_put(&pool->stage->memory, record->gathered);
		slab_put(log->records, record);
	}
	credit_give(pool, group->charge);
	group->charge = 0;
}

static void posts_apply(struct group *group)
{
	struct pool *pool = group->log->pool;
	uint32_t index = 0;
	struct list posts, *link;

	list_init(&posts);
	list_splice(&posts, &group->posts);
	while ((link = list_pop(&posts)) != NULL) {
		struct log_post *post = container_of(link, struct log_post, link);

		post->seq = group->seq;
		/* Without durable() it is its owner's as soon as apply() has returned. */
		if (post->durable)
			list_add_tail(&group->posts, &post->link);
		post->apply(pool, post, group->seq, index++);
	}
}

bool group_lay(struct group *group)
{
	struct pool *pool = group->log->pool;

	assert(group->state == GROUP_READY);
	if (!log_room(pool, group->nblocks, group->table_len, true))
		return false;
	records_table(group);
	group_place(group);
	records_apply(group);
	group_write(group);
	return true;
}

/* Posts that a group takes. */
static void posts_take(struct group *group)
{
	struct log *log = group->log;
	uint32_t most = log->pool->geometry.segment_len / 4; /* footers have all tables */

	if (most > POSTS_LEN_MAX)
		most = POSTS_LEN_MAX;
	while (!list_empty(&log->posts)) {
		struct log_post *post = container_of(log->posts.next, struct log_post, link);
		uint32_t len = (uint32_t)sizeof(post->desc) + le32_get(&post->desc.body_len);

		assert(len <= most);
		if (len > most - group->table_len)
			break;
		list_del(&post->link);
		list_add_tail(&group->posts, &post->link);
		group->table_len += len;
		group->ndescs++;
	}
	group->nblocks = ((uint32_t)sizeof(struct vf_group) + group->table_len + VF_BLOCK - 1) /
			 VF_BLOCK;
}

static void posts_give_back(struct group *group)
{
	list_splice(&group->posts, &group->log->posts);
	list_splice(&group->log->posts, &group->posts);
	group_free(group);
}

bool group_lay_posts(struct pool *pool, bool marker)
{
	struct log *log = pool->log;
	struct group *group;

	if (list_empty(&log->posts) && !marker)
		return false;
	group = group_get(log);
	if (!group)
		return false;
	group->has_posts = !list_empty(&log->posts);
	group->marker = !group->has_posts;
	posts_take(group);
	group->cap = group->nblocks * VF_BLOCK;
	group->buf = buddy_get(&log->own_memory, group->cap);
	group->buf_of = &log->own_memory;
	log->starved = log->starved || !group->buf;
	if (!group->buf || !log_room(pool, group->nblocks, group->table_len, false)) {
		posts_give_back(group);
		return false;
	}
	posts_table(group);
	group_place(group);
	posts_apply(group);
	group_write(group);
	return true;
}

/* ---- its end ---- */

void group_free(struct group *group)
{
	struct log *log = group->log;

	assert(list_empty(&group->items) && list_empty(&group->records) &&
	       list_empty(&group->posts));
	if (group->buf)
		buddy_put(group->buf_of, group->buf);
	group->buf = NULL;
	list_del(&group->link);
	list_add_head(&log->free, &group->link);
}

void group_end(struct group *group, int err)
{
	struct pool *pool = group->log->pool;
	struct stage *stage = pool->stage;
	struct list *link;

	while ((link = list_pop(&group->posts)) != NULL) {
		struct log_post *post = container_of(link, struct log_post, link);

		post->durable(pool, post, err);
	}
	if (err)
		return;
	while ((link = list_pop(&group->items)) != NULL) {
		struct stage_item *item = container_of(link, struct stage_item, order_link);
		struct volume *volume = item->volume;

		if (item->command_end)
			volume->durable_ticket = item->ticket;
		if (item->command_end && !list_empty(&volume->waiting))
			stage_answer(stage, volume, item->ticket);
		stage_release(stage, item);
	}
	stage_drained(stage, group->bytes);
	group_free(group);
}
