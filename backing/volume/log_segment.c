/*
 * The log's segments: the one that is written, its successor, and the footer that
 * a full one gets.
 *
 * The successor is named in a segment's header, so it is reserved before the
 * segment is begun.  Where segments are short users' groups wait for cleaning,
 * but what frees segments (posts) goes on: it may begin a segment from the
 * reserve, and users then wait until one has been put back in its stead.
 */
#include "backing/volume/staging.h"

#include <stdlib.h>
#include <string.h>

#include "backing/volume/clean.h"
#include "backing/volume/segment.h"

static uint32_t footer_max(const struct log *log)
{
	return log->pool->geometry.segment_len / 2;
}

static uint32_t footer_blocks(uint32_t len)
{
	return (len + (uint32_t)sizeof(struct vf_tail) + VF_BLOCK - 1) / VF_BLOCK;
}

int log_segments_open(struct log *log)
{
	for (uint32_t i = 0; i < FOOTERS_MAX; i++) {
		struct log_footer *footer = &log->footers[i];

		footer->log = log;
		footer->buf = aligned_alloc(VF_BLOCK, footer_max(log));
		if (!footer->buf)
			return -ENOMEM;
	}
	log->nblocks = log->pool->geometry.segment_len / VF_BLOCK;
	return 0;
}

void log_segments_close(struct log *log)
{
	for (uint32_t i = 0; i < FOOTERS_MAX; i++)
		free(log->footers[i].buf);
}

/* ---- footers ---- */

void log_footer_add(struct log *log, const struct group *group)
{
	struct log_footer *footer = &log->footers[log->footer];
	struct vf_footer_group *entry = (struct vf_footer_group *)(footer->buf + footer->len);
	const struct vf_group *header = (const struct vf_group *)group->buf;

	*entry = (struct vf_footer_group){ .sum = header->head.sum };
	le64_put(&entry->seq, group->seq);
	le32_put(&entry->off, group->off);
	le32_put(&entry->ndescs, group->ndescs);
	le32_put(&entry->table_len, group->table_len);
	memcpy(entry + 1, header + 1, group->table_len);
	footer->len += (uint32_t)sizeof(*entry) + group->table_len;
	log->ngroups++;
}

static void footer_written(struct vdev_io *io)
{
	struct log_footer *footer = container_of(io, struct log_footer, io);
	struct pool *pool = footer->log->pool;

	footer->busy = false;
	if (io->err && !pool_mutant(pool, MUTANT_RETRY_FLUSH))
		log_doubt(pool, "a write to the log failed");
	fiber_queue_wake_all(&footer->log->changed);
	log_wake(pool);
}

static void footer_write(struct log *log)
{
	struct log_footer *footer = &log->footers[log->footer];
	struct vf_footer *head = (struct vf_footer *)footer->buf;
	uint32_t nblocks = footer_blocks(footer->len), off = log->nblocks - nblocks;
	uint8_t *end = footer->buf + (size_t)nblocks * VF_BLOCK;
	struct vf_tail *tail = (struct vf_tail *)(end - sizeof(*tail));
	struct pool *pool = log->pool;

	memset(footer->buf + footer->len, 0, (size_t)(end - footer->buf) - footer->len);
	le64_put(&tail->life, log->life);
	le32_put(&tail->off, off);
	le32_put(&tail->magic, VF_MAGIC);
	memset(head, 0, sizeof(*head));
	le32_put(&head->segno, log->segno);
	le32_put(&head->incarnation, pool->incarnation);
	le64_put(&head->life, log->life);
	le64_put(&head->first_seq, log->first_seq);
	le64_put(&head->last_seq, log->newest_placed);
	head->last = log->prev;
	le32_put(&head->ngroups, log->ngroups);
	vf_seal(head, VF_FOOTER, footer->len, pool->geometry.uuid);
	footer->iov = (struct iovec){ footer->buf, (size_t)nblocks * VF_BLOCK };
	footer->io = (struct vdev_io){
		.op = VDEV_WRITE,
		.off = (uint64_t)log->segno * pool->geometry.segment_len + (uint64_t)off * VF_BLOCK,
		.len = footer->iov.iov_len,
		.iov = &footer->iov,
		.iovcnt = 1,
		.done = footer_written,
	};
	footer->busy = true;
	pool->counters.log_bytes += footer->iov.iov_len;
	pool->env->ops->submit(pool->env, &footer->io);
}

/* ---- going on ---- */

void log_segment_open(struct log *log, uint32_t successor)
{
	struct pool *pool = log->pool;
	struct segment *segment = segment_at(pool, log->successor);

	segment->state = SEGMENT_OPEN;
	segment->stream = VF_W;
	segment_at(pool, successor)->state = SEGMENT_RESERVED;
	log->before = log->segno;
	log->before_off = log->off;
	log->segno = log->successor;
	log->successor = successor;
	log->off = 1;
	log->ngroups = 0;
	log->header_due = true;
	log->footer = (log->footer + 1) % FOOTERS_MAX;
	log->footers[log->footer].len = sizeof(struct vf_footer);
	pool->env->ops->random(pool->env, &log->life, sizeof(log->life));
}

/* Room for the group, and for the footer with it. */
static bool fits(const struct log *log, uint32_t nblocks, uint32_t table_len)
{
	uint32_t len = log->footers[log->footer].len + (uint32_t)sizeof(struct vf_footer_group);
	uint32_t left = log->nblocks - log->off;

	if (table_len > footer_max(log) - sizeof(struct vf_tail) - len)
		return false;
	len += table_len;
	return nblocks <= left && footer_blocks(len) <= left - nblocks;
}

/* The segment that users' writes may begin; 0: none now. */
static uint32_t take_for_users(struct log *log)
{
	uint32_t segno = log->spare;

	if (log->nagain > 0)
		return log->again[--log->nagain];
	log->spare = 0;
	return segno ? segno : segment_take(log->pool, VF_W, SEGMENT_FOR_WRITES);
}

static bool go_on(struct log *log, bool users)
{
	struct pool *pool = log->pool;
	uint32_t next;

	if (log->footers[(log->footer + 1) % FOOTERS_MAX].busy)
		return false;
	next = take_for_users(log);
	log->borrowed = next == 0;
	if (!next && !users)
		next = segment_take(pool, VF_W, SEGMENT_FOR_MAP);
	if (!next)
		return false;
	assert(log->ngroups > 0);
	footer_write(log);
	segment_seal(pool, log->segno, log->newest_placed);
	log_segment_open(log, next);
	return true;
}

/* A segment in the stead of the one that was begun from the reserve. */
static bool repay(struct log *log)
{
	if (!log->borrowed)
		return true;
	log->spare = take_for_users(log);
	if (!log->spare)
		return false;
	segment_at(log->pool, log->spare)->state = SEGMENT_RESERVED;
	log->borrowed = false;
	return true;
}

bool log_room(struct pool *pool, uint32_t nblocks, uint32_t table_len, bool users)
{
	struct log *log = pool->log;
	bool room = fits(log, nblocks, table_len) || go_on(log, users);

	if (room && users)
		room = repay(log);
	if (!room) {
		log->no_segment = true;
		/* It merges and makes checkpoints; those alone would only write more. */
		cleaner_kick(pool);
	}
	return room;
}
