#include "backing/volume/bulk.h"

#include <stdlib.h>
#include <string.h>

#include "backing/volume/io.h"
#include "backing/volume/log.h"

/* What is written at once; others who write to the lane wait in order. */
struct lane {
	uint8_t *buf; /* a segment's header and a group */
	bool busy;
	struct fiber_queue waiting;
};

struct bulk_stream {
	struct lane *lane;
	uint32_t segno; /* 0: none is open */
	uint32_t off;	/* blocks: where the next group goes; 0: the header is to come */
	uint64_t life;
};

/* Index VF_W, which is no bulk stream, stands for copies of map pages. */
#define COPIES VF_W

struct bulk {
	struct lane map, moved;
	struct bulk_stream streams[VF_NSTREAMS];
};

static uint32_t group_max(const struct pool *pool)
{
	return pool->geometry.segment_len / 2;
}

static bool lane_open(struct pool *pool, struct lane *lane)
{
	fiber_queue_init(&lane->waiting);
	lane->buf = aligned_alloc(VF_BLOCK, VF_BLOCK + group_max(pool));
	return lane->buf != NULL;
}

int bulk_open(struct pool *pool, struct err *err)
{
	struct bulk *bulk = calloc(1, sizeof(*bulk));

	pool->bulk = bulk;
	if (!bulk || !lane_open(pool, &bulk->map) || !lane_open(pool, &bulk->moved))
		return err_set(err, ENOMEM, "no memory for map pages to be written");
	bulk->streams[VF_G1].lane = bulk->streams[VF_G2].lane = &bulk->moved;
	bulk->streams[VF_M].lane = bulk->streams[COPIES].lane = &bulk->map;
	return 0;
}

void bulk_close(struct pool *pool)
{
	if (!pool->bulk)
		return;
	free(pool->bulk->map.buf);
	free(pool->bulk->moved.buf);
	free(pool->bulk);
	pool->bulk = NULL;
}

uint64_t bulk_memory(const struct pool *pool)
{
	return 2 * (uint64_t)(VF_BLOCK + group_max(pool));
}

static void lane_lock(struct lane *lane)
{
	while (lane->busy)
		fiber_queue_wait(&lane->waiting);
	lane->busy = true;
}

static void lane_unlock(struct lane *lane)
{
	lane->busy = false;
	fiber_queue_wake_all(&lane->waiting);
}

/* ---- laying out ---- */

static bool is_raw(const struct bulk_item *item)
{
	return item->desc.type == VF_DATA && item->desc.flags & VF_DESC_RAW;
}

static uint32_t item_units(const struct bulk_item *item)
{
	return (item->len + VF_UNIT - 1) / VF_UNIT;
}

static uint32_t item_desc_len(const struct bulk_item *item)
{
	return item->digest ? sizeof(struct vf_desc_wide) : sizeof(struct vf_desc);
}

/* How many items a group of at most so many bytes takes; raw ones may cost the
 * rest of a block. */
static uint32_t items_fit(const struct bulk_item *items, uint32_t nitems, uint32_t room)
{
	uint64_t head = sizeof(struct vf_group), units = 0;
	uint32_t n;

	for (n = 0; n < nitems; n++) {
		uint64_t more = item_units(&items[n]);

		if (is_raw(&items[n]))
			more += VF_BLOCK / VF_UNIT - 1;
		head += item_desc_len(&items[n]);
		units += more;
		if ((head + VF_UNIT - 1) / VF_UNIT + units > room / VF_UNIT)
			break;
	}
	return n;
}

static void desc_put(uint8_t *to, struct bulk_item *item, uint32_t off)
{
	struct vf_desc_wide *wide = (struct vf_desc_wide *)to;

	le32_put(&item->desc.off, off);
	le32_put(&item->desc.stored, item->stored);
	le32_put(&item->desc.body_len, 0);
	item->desc.flags &= (uint8_t)~VF_DESC_WIDE;
	if (item->digest)
		item->desc.flags |= VF_DESC_WIDE;
	wide->desc = item->desc;
	if (item->digest)
		memcpy(wide->digest, item->digest, sizeof(wide->digest));
}

/* Makes the group at the stream's place; returns its blocks. */
static uint32_t group_make(struct pool *pool, const struct bulk_stream *stream, uint8_t *buf,
			   struct bulk_item *items, uint32_t n)
{
	struct vf_group *group = (struct vf_group *)buf;
	uint32_t head_len = sizeof(*group), off, end, nblocks, at = sizeof(*group);
	uint64_t base = stream->segno * pool_segment_units(pool) +
			(uint64_t)stream->off * (VF_BLOCK / VF_UNIT);

	for (uint32_t i = 0; i < n; i++)
		head_len += item_desc_len(&items[i]);
	off = (head_len + VF_UNIT - 1) / VF_UNIT;
	memset(buf + head_len, 0, (size_t)off * VF_UNIT - head_len);
	for (uint32_t i = 0; i < n; i++) {
		struct bulk_item *item = &items[i];

		end = off;
		if (is_raw(item))
			off = (off + VF_BLOCK / VF_UNIT - 1) / (VF_BLOCK / VF_UNIT) *
			      (VF_BLOCK / VF_UNIT);
		memset(buf + (size_t)end * VF_UNIT, 0, (size_t)(off - end) * VF_UNIT);
		item->stored = item_units(item);
		item->addr = base + off;
		desc_put(buf + at, item, off);
		at += item_desc_len(item);
		memcpy(buf + (size_t)off * VF_UNIT, item->data, item->len);
		memset(buf + (size_t)off * VF_UNIT + item->len, 0,
		       (size_t)item->stored * VF_UNIT - item->len);
		if (item->desc.type == VF_PAGE)
			item->hash = vf_hash(buf + (size_t)off * VF_UNIT,
					     (size_t)item->stored * VF_UNIT);
		off += item->stored;
	}
	nblocks = (off * VF_UNIT + VF_BLOCK - 1) / VF_BLOCK;
	memset(buf + (size_t)off * VF_UNIT, 0, (size_t)nblocks * VF_BLOCK - (size_t)off * VF_UNIT);
	memset(group, 0, sizeof(*group));
	le64_put(&group->durable_seq, log_durable(pool));
	le64_put(&group->life, stream->life);
	le32_put(&group->len, nblocks);
	le32_put(&group->ndescs, n);
	vf_seal(group, VF_GROUP, head_len, pool->geometry.uuid);
	return nblocks;
}

static void header_make(struct pool *pool, const struct bulk_stream *stream, enum vf_stream as,
			uint8_t *buf)
{
	struct vf_segment *header = (struct vf_segment *)buf;

	memset(buf, 0, VF_BLOCK);
	le32_put(&header->segno, stream->segno);
	le32_put(&header->incarnation, pool->incarnation);
	le64_put(&header->life, stream->life);
	header->stream = (uint8_t)as;
	vf_seal(header, VF_SEGMENT, sizeof(*header), pool->geometry.uuid);
}

/* ---- writing ---- */

static void stream_seal(struct pool *pool, struct bulk_stream *stream)
{
	if (stream->segno == 0)
		return;
	segment_seal(pool, stream->segno, log_seq(pool));
	stream->segno = 0;
}

/* A segment with room for the first item at least. */
static int stream_room(struct pool *pool, struct bulk_stream *stream, enum vf_stream as,
		       const struct bulk_item *items, enum segment_use use, uint32_t *room)
{
	uint32_t segment_len = pool->geometry.segment_len, most = group_max(pool);

	if (stream->segno != 0) {
		uint32_t used = stream->off ? stream->off * VF_BLOCK : VF_BLOCK;

		*room = segment_len - used < most ? segment_len - used : most;
		if (items_fit(items, 1, *room))
			return 0;
		stream_seal(pool, stream);
	}
	*room = most;
	if (!items_fit(items, 1, *room))
		return -E2BIG;
	stream->segno = segment_take(pool, as, use);
	if (stream->segno == 0)
		return -ENOSPC;
	stream->off = 0;
	pool->env->ops->random(pool->env, &stream->life, sizeof(stream->life));
	return 0;
}

static int group_write(struct pool *pool, struct bulk_stream *stream, enum vf_stream as,
		       struct bulk_item *items, uint32_t n)
{
	uint8_t *buf = stream->lane->buf;
	uint64_t off = (uint64_t)stream->segno * pool->geometry.segment_len;
	uint32_t nblocks;
	int rc;

	if (stream->off == 0) {
		header_make(pool, stream, as, buf);
		stream->off = 1;
		nblocks = 1 + group_make(pool, stream, buf + VF_BLOCK, items, n);
	} else {
		off += (uint64_t)stream->off * VF_BLOCK;
		nblocks = group_make(pool, stream, buf, items, n);
	}
	for (uint32_t i = 0; i < n; i++)
		segment_pin(pool, stream->segno);
	rc = vdev_do(pool->env, VDEV_WRITE, off, buf, (uint64_t)nblocks * VF_BLOCK);
	stream->off = (uint32_t)(off % pool->geometry.segment_len / VF_BLOCK) + nblocks;
	if (as == VF_M)
		pool->counters.bulk_map_bytes += (uint64_t)nblocks * VF_BLOCK;
	if (rc) {
		/* Whoever walks the segment stops here. */
		stream_seal(pool, stream);
		log_doubt(pool, "a write of map pages or of moved records failed");
	}
	return rc;
}

int bulk_write(struct pool *pool, enum vf_stream stream_no, struct bulk_item *items,
	       uint32_t nitems, enum segment_use use, uint32_t not_in_segment)
{
	struct bulk_stream *stream = &pool->bulk->streams[not_in_segment ? COPIES : stream_no];
	uint32_t done = 0;
	int rc = 0;

	assert(stream_no != VF_W && (!not_in_segment || stream_no == VF_M));
	lane_lock(stream->lane);
	while (done < nitems && !rc) {
		uint32_t room, n;

		rc = pool->read_only
			     ? -EROFS
			     : stream_room(pool, stream, stream_no, items + done, use, &room);
		if (rc)
			break;
		n = items_fit(items + done, nitems - done, room);
		rc = group_write(pool, stream, stream_no, items + done, n);
		done += n;
	}
	lane_unlock(stream->lane);
	if (rc)
		bulk_named(pool, items, done);
	return rc;
}

void bulk_named(struct pool *pool, struct bulk_item *items, uint32_t nitems)
{
	for (uint32_t i = 0; i < nitems; i++)
		segment_unpin(pool, addr_segment(pool, items[i].addr));
}

uint64_t bulk_room(const struct pool *pool)
{
	uint64_t nblocks = 0;

	for (unsigned int i = 0; i < VF_NSTREAMS; i++)
		if (pool->bulk->streams[i].segno != 0)
			nblocks += pool->geometry.segment_len / VF_BLOCK -
				   pool->bulk->streams[i].off;
	return nblocks;
}
