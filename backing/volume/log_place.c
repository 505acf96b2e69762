/*
 * Where groups are, for checkpoints: the newest ones exactly, older ones by the
 * first of their segment, from which a recovery reads a little more.
 */
#include "backing/volume/staging.h"

#include <stdlib.h>

static struct log_mark *entry_at(const struct log *log, uint32_t i)
{
	return &log->entries[(log->first_entry + i) % log->entries_cap];
}

/* One a segment: rare enough to be grown here. */
static bool entries_grow(struct log *log)
{
	uint32_t cap = log->entries_cap ? 2 * log->entries_cap : 64;
	struct log_mark *entries = malloc(cap * sizeof(*entries));

	if (!entries)
		return false;
	for (uint32_t i = 0; i < log->nentries; i++)
		entries[i] = *entry_at(log, i);
	free(log->entries);
	log->entries = entries;
	log->entries_cap = cap;
	log->first_entry = 0;
	return true;
}

static void mark_add(struct log *log, const struct log_mark *mark, uint32_t nblocks)
{
	const struct log_mark *last = log->nentries ? entry_at(log, log->nentries - 1) : NULL;

	log->places[mark->seq % PLACES_MAX] = *mark;
	if (log->oldest_place == 0)
		log->oldest_place = mark->seq;
	if (mark->seq - log->oldest_place >= PLACES_MAX)
		log->oldest_place = mark->seq - PLACES_MAX + 1;
	if (!last || last->segno != mark->segno) {
		/* Without memory the segment before stands for this one too. */
		if (log->nentries < log->entries_cap || entries_grow(log))
			*entry_at(log, log->nentries++) = *mark;
	}
	log->bytes += (uint64_t)nblocks * VF_BLOCK;
}

void log_mark(struct log *log, uint64_t seq, uint32_t nblocks)
{
	struct log_mark mark = { .seq = seq,
				 .bytes = log->bytes,
				 .segno = log->segno,
				 .off = log->off,
				 .prev = log->prev };

	mark_add(log, &mark, nblocks);
}

void log_unmark(struct log *log, uint64_t seq)
{
	while (log->nentries > 0 && entry_at(log, log->nentries - 1)->seq >= seq)
		log->nentries--;
}

/* The mark from which all groups from seq on are seen; NULL: it is yet to come. */
static const struct log_mark *mark_of(const struct log *log, uint64_t seq)
{
	uint32_t low = 0, high = log->nentries;

	if (seq > log->seq || log->nentries == 0)
		return NULL;
	if (log->oldest_place && seq >= log->oldest_place)
		return &log->places[seq % PLACES_MAX];
	while (high - low > 1) {
		uint32_t mid = low + (high - low) / 2;

		if (entry_at(log, mid)->seq <= seq)
			low = mid;
		else
			high = mid;
	}
	return entry_at(log, low);
}

void log_place(const struct pool *pool, uint64_t seq, struct vf_place *out)
{
	const struct log *log = pool->log;
	const struct log_mark *mark = mark_of(log, seq);
	struct log_mark next = {
		.seq = log->seq + 1, .segno = log->segno, .off = log->off, .prev = log->prev
	};

	if (!mark)
		mark = &next;
	*out = (struct vf_place){ .prev = mark->prev };
	le64_put(&out->seq, mark->seq);
	le32_put(&out->segno, mark->segno);
	le32_put(&out->off, mark->off);
}

uint64_t log_window(const struct pool *pool, uint64_t seq)
{
	const struct log_mark *mark = mark_of(pool->log, seq);

	return mark ? pool->log->bytes - mark->bytes : 0;
}

void log_forget(struct pool *pool, uint64_t seq)
{
	struct log *log = pool->log;

	while (log->nentries > 1 && entry_at(log, 1)->seq <= seq) {
		log->first_entry = (log->first_entry + 1) % log->entries_cap;
		log->nentries--;
	}
}

void log_replayed(struct pool *pool, const struct vf_place *place, uint32_t blocks)
{
	struct log *log = pool->log;
	struct log_mark mark = { .seq = le64_get(&place->seq),
				 .bytes = log->bytes,
				 .segno = le32_get(&place->segno),
				 .off = le32_get(&place->off),
				 .prev = place->prev };

	assert(pool->recovering);
	log->seq = log->durable = mark.seq;
	mark_add(log, &mark, blocks);
}
