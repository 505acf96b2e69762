/*
 * Compressing the records of a group, and packing them.
 *
 * Which codec: the volume's; a slow one only for whole windows, as whoever
 * writes patches waits for each.  Where: small records by
 * fast codecs at once, all else in jobs, of which several run at a time.
 *
 * Each record has a place in the group's buffer where it fits however badly it
 * compresses; when all are done they are moved together.  Raw ones of whole
 * blocks come last, at block boundaries, so that there is but one gap.
 */
#include "backing/volume/staging.h"

#include "backing/volume/region.h"
#include "backing/volume/volumes.h"
#include "compress/probe.h"

/* Bytes that are compressed at once when they are few: less work than asking a
 * worker; and what one job gets. */
#define INLINE_RECORD (4u << 10)
#define INLINE_GROUP  (32u << 10)
#define JOB_BYTES     (64u << 10)
/* Work that codecs may have before them: what comes next waits no longer. */
#define AHEAD_NS 50000000ull

static size_t record_len(const struct record *record)
{
	return (size_t)record->nsectors * VF_SECTOR;
}

static uint32_t packed_units(size_t len)
{
	return (uint32_t)((sizeof(struct vf_prefix) + len + VF_UNIT - 1) / VF_UNIT);
}

static uint64_t record_lba(const struct record *record)
{
	return record->region->index * VF_REGION_SECTORS + record->start;
}

/* ---- which codec ---- */

static bool codec_slow(const struct codec_choice *choice)
{
	return choice->id == CODEC_DEFLATE || choice->id == CODEC_ZSTD ||
	       (choice->id == CODEC_LZ4 && choice->level >= 3);
}

static bool whole_window(const struct record *record)
{
	const struct volume_settings *settings = &record->volume->settings;
	uint32_t window = settings->record_len / VF_SECTOR;
	uint64_t end = record_lba(record) + record->nsectors;

	return record->start % window == 0 && (end % window == 0 || end == settings->nsectors);
}

static void choose(struct record *record)
{
	static const struct codec_choice fast = { CODEC_LZ4, 1 };

	record->choice = record->volume->settings.codec;
	if (codec_slow(&record->choice) && !whole_window(record))
		record->choice = fast;
	record->slow = codec_slow(&record->choice);
	record->told = record->choice.id != CODEC_RAW;
	record->try = record->told && probe_history_wants(&record->volume->probe);
	record->told = record->try;
}

/* ---- one record; on any thread ---- */

static void gather(struct record *record)
{
	for (const struct stage_item *item = record->items; item; item = item->window_next)
		memcpy(record->gathered + (size_t)(item->start - record->start) * VF_SECTOR,
		       item->data, (size_t)item->nsectors * VF_SECTOR);
}

static void pack(struct record *record, uint8_t codec, size_t len)
{
	struct vf_prefix *prefix = (struct vf_prefix *)record->slot;

	le16_put(&prefix->nsectors, record->nsectors);
	prefix->codec = codec;
	prefix->flags = 0;
	le32_put(&prefix->len, (uint32_t)len);
	record->codec = codec;
	record->stored = packed_units(len);
	memset(record->slot + sizeof(*prefix) + len, 0,
	       (size_t)record->stored * VF_UNIT - sizeof(*prefix) - len);
}

static size_t compress(struct record *record, struct codec_workspace *workspace)
{
	const struct codec *codec = codec_by_id(record->choice.id);
	size_t len = record_len(record);

	if (!record->try)
		return 0;
	if (record->slow && codec->probe_pays(record->choice.level) &&
	    !probe_compressible(record->data, len))
		return 0;
	/* Not where there was no memory for it: pool_prepare_codec(). */
	if (!codec_workspace_ready(workspace, &record->choice))
		return 0;
	return codec_compress(workspace, &record->choice, record->slot + sizeof(struct vf_prefix),
			      codec_worth_max(len), record->data, len);
}

static void record_run(struct record *record, struct codec_workspace *workspace)
{
	struct pool *pool = record->volume->pool;
	size_t len = record_len(record), stored;
	const uint8_t *sum_of = record->slot;
	bool wide = record->volume->wide;

	if (record->items)
		gather(record);
	if (probe_zero(record->data, len)) {
		record->hole = true;
		record->told = false;
		return;
	}
	stored = compress(record, workspace);
	if (stored > 0) {
		pack(record, record->choice.id, stored);
	} else if (len % VF_BLOCK == 0) {
		record->raw = true;
		record->codec = CODEC_RAW;
		record->stored = (uint32_t)(len / VF_UNIT);
		sum_of = record->data;
	} else {
		memcpy(record->slot + sizeof(struct vf_prefix), record->data, len);
		pack(record, CODEC_RAW, len);
	}
	vf_record_sum(pool->super.salt, record->volume->id, record_lba(record), sum_of,
		      (size_t)record->stored * VF_UNIT, wide, record->check,
		      wide ? record->digest : NULL);
}

/* ---- all of a group ---- */

static struct record *next_of(const struct record *record)
{
	return container_of(record->link.next, struct record, link);
}

static void job_run(struct venv_job *job, struct codec_workspace *workspace)
{
	struct record *record = container_of(job, struct record, job);

	for (uint32_t left = record->njob; left > 0; left--, record = next_of(record))
		if (!record->hole)
			record_run(record, workspace);
}

bool group_codecs_busy(const struct log *log)
{
	return log->codec_bytes / 1024 * log->codec_ns > AHEAD_NS;
}

static void codecs_begin(struct group *group)
{
	struct log *log = group->log;

	group->cut_ns = log->pool->env->ops->now_ns(log->pool->env);
	log->codec_bytes += group->bytes;
}

/* How long a KiB takes, with what else was being compressed. */
static void codecs_end(struct group *group)
{
	struct log *log = group->log;
	uint64_t ns = log->pool->env->ops->now_ns(log->pool->env) - group->cut_ns;

	log->codec_bytes -= group->bytes;
	if (group->bytes >= 1024)
		log->codec_ns = (7 * log->codec_ns + ns / (group->bytes / 1024)) / 8;
}

static void group_packed(struct group *group);

static void job_done(struct venv_job *job)
{
	struct group *group = container_of(job, struct record, job)->group;

	assert(group->njobs > 0);
	if (--group->njobs == 0) {
		codecs_end(group);
		group_packed(group);
		log_wake(group->log->pool);
	}
}

/* Work of a record, as bytes for a fast codec: what is not compressed is still read
 * twice. */
static uint64_t record_work(const struct record *record)
{
	uint64_t len = record_len(record);

	return record->hole ? 0 : !record->try ? len / 8 : record->slow ? len * 4 : len;
}

/* Slots behind the table, each as long as its record at worst; the work. */
static uint64_t prepare(struct group *group, bool *slow)
{
	uint64_t at, work = 0;

	*slow = false;
	group->ndescs = group->table_len = 0;
	list_for_each(link, &group->records) {
		struct record *record = container_of(link, struct record, link);

		group->ndescs++;
		group->table_len += record->volume->wide && !record->hole
					    ? sizeof(struct vf_desc_wide)
					    : sizeof(struct vf_desc);
	}
	at = (sizeof(struct vf_group) + group->table_len + VF_UNIT - 1) / VF_UNIT * VF_UNIT;
	list_for_each(link, &group->records) {
		struct record *record = container_of(link, struct record, link);

		if (record->hole)
			continue;
		record->slot = group->buf + at;
		at += (uint64_t)packed_units(record_len(record)) * VF_UNIT;
		choose(record);
		*slow = *slow ||
			(record->try && (record->slow || record_len(record) > INLINE_RECORD));
		work += record_work(record);
	}
	assert(at <= group->cap);
	return work;
}

/* One job for records until they are enough. */
static struct record *job_cut(struct group *group, struct record *first)
{
	struct record *record = first;
	uint64_t work = 0;

	first->job.run = job_run;
	first->job.done = job_done;
	list_init(&first->job.link);
	first->njob = 0;
	do {
		work += record_work(record);
		first->njob++;
		record = next_of(record);
	} while (&record->link != &group->records && work < JOB_BYTES);
	group->njobs++;
	return record;
}

void group_compress(struct group *group)
{
	struct pool *pool = group->log->pool;
	struct record *record;
	bool slow;
	uint64_t work = prepare(group, &slow);

	group->state = GROUP_COMPRESSING;
	if (pool->env->nworkers == 0 || (!slow && work <= INLINE_GROUP)) {
		list_for_each(link, &group->records) {
			record = container_of(link, struct record, link);
			if (!record->hole)
				record_run(record, pool->env->workspace);
		}
		group_packed(group);
		return;
	}
	codecs_begin(group);
	/* All are counted before the first begins. */
	for (struct list *link = group->records.next; link != &group->records;)
		link = &job_cut(group, container_of(link, struct record, link))->link;
	for (struct list *link = group->records.next; link != &group->records;) {
		record = container_of(link, struct record, link);
		for (uint32_t left = record->njob; left > 0; left--)
			link = link->next;
		pool->env->ops->run_job(pool->env, &record->job);
	}
}

/* ---- packing ---- */

static uint64_t gap(struct group *group, uint64_t at, uint32_t align)
{
	uint64_t end = (at + align - 1) / align * align;

	assert(end <= group->cap);
	memset(group->buf + at, 0, end - at);
	return end;
}

static void tell_history(struct group *group)
{
	list_for_each(link, &group->records) {
		struct record *record = container_of(link, struct record, link);

		if (record->told)
			probe_history_tell(&record->volume->probe, record->codec != CODEC_RAW);
	}
}

/* Every record is compressed, or is not to be: their places are known. */
static void group_packed(struct group *group)
{
	uint64_t at;
	bool raw = false;

	/* Records that turned out to be zero have short descriptors. */
	group->table_len = 0;
	list_for_each(link, &group->records) {
		struct record *record = container_of(link, struct record, link);

		group->table_len += record->volume->wide && !record->hole
					    ? sizeof(struct vf_desc_wide)
					    : sizeof(struct vf_desc);
	}
	at = gap(group, sizeof(struct vf_group) + group->table_len, VF_UNIT);
	list_for_each(link, &group->records) {
		struct record *record = container_of(link, struct record, link);

		raw = raw || record->raw;
		if (record->hole || record->raw)
			continue;
		memmove(group->buf + at, record->slot, (size_t)record->stored * VF_UNIT);
		record->off = (uint32_t)(at / VF_UNIT);
		at += (uint64_t)record->stored * VF_UNIT;
	}
	if (raw)
		at = gap(group, at, VF_BLOCK);
	list_for_each(link, &group->records) {
		struct record *record = container_of(link, struct record, link);

		if (record->hole || !record->raw)
			continue;
		memcpy(group->buf + at, record->data, record_len(record));
		record->off = (uint32_t)(at / VF_UNIT);
		at += record_len(record);
	}
	at = gap(group, at, VF_BLOCK);
	group->nblocks = (uint32_t)(at / VF_BLOCK);
	tell_history(group);
	group->state = GROUP_READY;
}
