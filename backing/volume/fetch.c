#include "backing/volume/fetch.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "backing/volume/segment.h"
#include "base/slab.h"

struct fetcher {
	struct pool *pool;
	struct slab *fetches;
	struct list waiting; /* struct iobuf_waiter, for a fetch */
	/* A record's worth each, touched as they are used. */
	uint8_t *expanders, *idle[EXPANDERS_MAX];
	uint32_t expander_len, nidle;
	struct list judging; /* fetches read that wait for an expander */
};

/* ---- buffers of requests ---- */

/* What of the buffers is at off: at most len bytes. */
static void *req_at(const struct vreq *req, uint64_t off, size_t *len)
{
	for (uint32_t i = 0; i < req->iovcnt; i++) {
		if (off < req->iov[i].iov_len) {
			if (*len > req->iov[i].iov_len - off)
				*len = req->iov[i].iov_len - off;
			return (uint8_t *)req->iov[i].iov_base + off;
		}
		off -= req->iov[i].iov_len;
	}
	assert(!"the buffers cover the request");
	return NULL;
}

void req_copy(const struct vreq *req, uint64_t off, const void *data, size_t len)
{
	while (len > 0) {
		size_t n = len;
		void *to = req_at(req, off, &n);

		memcpy(to, data, n);
		data = (const uint8_t *)data + n;
		off += n;
		len -= n;
	}
}

void req_zero(const struct vreq *req, uint64_t off, size_t len)
{
	while (len > 0) {
		size_t n = len;
		void *to = req_at(req, off, &n);

		memset(to, 0, n);
		off += n;
		len -= n;
	}
}

/* ---- judging ---- */

static uint64_t piece_off(const struct vreq *req, const struct piece *piece)
{
	return (piece->region_lba + piece->start - req->lba) * VF_SECTOR;
}

static bool record_right(const struct fetch *fetch, const struct vf_entry *entry,
			 uint64_t region_lba, const uint8_t *stored)
{
	uint64_t check[3];

	vf_record_sum(fetch->pool->super.salt, fetch->volume,
		      region_lba + entry->start - entry->off, stored,
		      (size_t)entry->stored * VF_UNIT, fetch->wide, check, NULL);
	return memcmp(check, entry->check, fetch->wide ? sizeof(check) : sizeof(check[0])) == 0 ||
	       fetch->unverified;
}

/* The prefix agrees with the entry: so what follows it may be expanded. */
static bool prefix_right(const struct vf_prefix *prefix, const struct vf_entry *entry)
{
	uint32_t room = (uint32_t)entry->stored * VF_UNIT - (uint32_t)sizeof(*prefix);
	uint32_t nsectors = le16_get(&prefix->nsectors), len = le32_get(&prefix->len);

	return len <= room && prefix->codec == entry->codec && nsectors <= VF_REGION_SECTORS &&
	       (uint32_t)entry->off + entry->nsectors <= nsectors &&
	       (prefix->codec != CODEC_RAW || len == nsectors * VF_SECTOR);
}

/* Copies a slice of an unpacked record. */
static void slice_copy(const struct fetch *fetch, const struct piece *piece, const uint8_t *record)
{
	req_copy(fetch->req, piece_off(fetch->req, piece),
		 record + (size_t)piece->entry.off * VF_SECTOR,
		 (size_t)piece->nsectors * VF_SECTOR);
}

/* A whole record whose place in the request is one run of memory goes there. */
static bool expand_there(struct fetch *fetch, const struct piece *piece,
			 const struct vf_prefix *prefix, struct codec_workspace *workspace,
			 bool *right)
{
	size_t len = (size_t)piece->nsectors * VF_SECTOR, n = len;
	void *to;

	if (piece->entry.off != 0 || piece->nsectors != le16_get(&prefix->nsectors))
		return false;
	to = req_at(fetch->req, piece_off(fetch->req, piece), &n);
	if (n != len)
		return false;
	*right = codec_expand(workspace, prefix->codec, to, len, prefix + 1,
			      le32_get(&prefix->len));
	return true;
}

/* The pieces of one record; false: it is damaged. */
static bool record_give(struct fetch *fetch, const struct piece *pieces, uint32_t npieces,
			struct codec_workspace *workspace)
{
	const struct vf_entry *entry = &pieces->entry;
	const uint8_t *stored = fetch->buf + (entry->addr * VF_UNIT - fetch->from);
	const struct vf_prefix *prefix = (const struct vf_prefix *)stored;
	const uint8_t *record = (const uint8_t *)(prefix + 1);
	bool right;

	if (!record_right(fetch, entry, pieces->region_lba, stored))
		return false;
	if (entry->raw) {
		record = stored;
	} else {
		for (uint32_t i = 0; i < npieces; i++)
			if (!prefix_right(prefix, &pieces[i].entry))
				return false;
		if (prefix->codec != CODEC_RAW) {
			if (npieces == 1 && expand_there(fetch, pieces, prefix, workspace, &right))
				return right;
			record = fetch->expander;
			if (!codec_expand(workspace, prefix->codec, fetch->expander,
					  (size_t)le16_get(&prefix->nsectors) * VF_SECTOR,
					  prefix + 1, le32_get(&prefix->len)))
				return false;
		}
	}
	for (uint32_t i = 0; i < npieces; i++)
		slice_copy(fetch, &pieces[i], record);
	return true;
}

static void judge(struct fetch *fetch, struct codec_workspace *workspace)
{
	for (uint32_t i = 0, n; i < fetch->npieces; i += n) {
		bool right;

		for (n = 1; i + n < fetch->npieces &&
			    fetch->pieces[i + n].entry.addr == fetch->pieces[i].entry.addr;)
			n++;
		right = record_give(fetch, &fetch->pieces[i], n, workspace);
		for (uint32_t j = i; j < i + n; j++)
			fetch->pieces[j].bad = !right;
	}
}

static void judge_job(struct venv_job *job, struct codec_workspace *workspace)
{
	judge(container_of(job, struct fetch, job), workspace);
}

/* ---- the way of a fetch ---- */

static void judge_next(struct fetcher *fetcher);

static void fetch_end(struct fetch *fetch)
{
	struct fetcher *fetcher = fetch->fetcher;
	struct pool *pool = fetch->pool;
	void *buf = fetch->buf;
	struct list *link;

	if (fetch->expander)
		fetcher->idle[fetcher->nidle++] = fetch->expander;
	segment_unpin(pool, addr_segment(pool, fetch->from / VF_UNIT));
	fetch->done(fetch);
	slab_put(fetcher->fetches, fetch);
	iobuf_put(pool, buf);
	link = list_pop(&fetcher->waiting);
	if (link)
		container_of(link, struct iobuf_waiter, link)
			->ready(container_of(link, struct iobuf_waiter, link));
	judge_next(fetcher);
}

static void job_done(struct venv_job *job)
{
	fetch_end(container_of(job, struct fetch, job));
}

static void judge_next(struct fetcher *fetcher)
{
	struct venv *env = fetcher->pool->env;
	struct fetch *fetch;

	if (fetcher->nidle == 0 || list_empty(&fetcher->judging))
		return;
	fetch = container_of(list_pop(&fetcher->judging), struct fetch, link);
	fetch->expander = fetcher->idle[--fetcher->nidle];
	if (env->nworkers > 0 && fetch->slow) {
		fetch->job.run = judge_job;
		fetch->job.done = job_done;
		env->ops->run_job(env, &fetch->job);
		return;
	}
	judge(fetch, env->workspace);
	fetch_end(fetch);
}

static void fetch_read(struct vdev_io *io)
{
	struct fetch *fetch = container_of(io, struct fetch, io);
	struct fetcher *fetcher = fetch->fetcher;

	fetch->err = io->err ? EIO : 0;
	if (fetch->err) {
		for (uint32_t i = 0; i < fetch->npieces; i++)
			fetch->pieces[i].bad = true;
		fetch_end(fetch);
		return;
	}
	list_add_tail(&fetcher->judging, &fetch->link);
	judge_next(fetcher);
}

static uint64_t piece_end(const struct piece *piece)
{
	return (piece->entry.addr + piece->entry.stored) * VF_UNIT;
}

uint32_t fetch_extent(const struct pool *pool, const struct piece *pieces, uint32_t npieces,
		      bool alone, uint64_t *from, uint64_t *end)
{
	uint64_t first = pieces->entry.addr, last = piece_end(pieces);
	uint32_t n = 1;

	for (; n < npieces; n++) {
		uint64_t addr = pieces[n].entry.addr;

		if (addr == pieces[n - 1].entry.addr)
			continue;
		if (alone || addr_segment(pool, addr) != addr_segment(pool, first) ||
		    addr * VF_UNIT > last + FETCH_GAP_MAX ||
		    piece_end(&pieces[n]) - first * VF_UNIT > FETCH_LEN_MAX)
			break;
		last = piece_end(&pieces[n]);
	}
	*from = first * VF_UNIT & ~(uint64_t)(VF_BLOCK - 1);
	*end = (last + VF_BLOCK - 1) & ~(uint64_t)(VF_BLOCK - 1);
	return n;
}

struct fetch *fetch_get(struct fetcher *fetcher, size_t len, struct iobuf_waiter *waiter)
{
	struct fetch *fetch = slab_get(fetcher->fetches);
	void *buf;

	if (!fetch) {
		if (list_empty(&waiter->link))
			list_add_tail(&fetcher->waiting, &waiter->link);
		return NULL;
	}
	buf = iobuf_get(fetcher->pool, len, waiter);
	if (!buf) {
		slab_put(fetcher->fetches, fetch);
		return NULL;
	}
	*fetch = (struct fetch){ .pool = fetcher->pool, .buf = buf };
	list_init(&fetch->link);
	fetch->fetcher = fetcher;
	return fetch;
}

/* Is there more to expand than should keep others waiting? */
static bool fetch_slow(const struct fetch *fetch)
{
	const struct piece *first = fetch->pieces;

	return fetch->io.len > 16384 ||
	       (!first->entry.raw && first->entry.codec != CODEC_RAW &&
		first->entry.codec != CODEC_LZ4 && first->entry.codec != CODEC_LZJB);
}

void fetch_begin(struct fetcher *fetcher, struct fetch *fetch)
{
	struct pool *pool = fetcher->pool;

	fetch->iov.iov_base = fetch->buf;
	fetch->io = (struct vdev_io){ .op = VDEV_READ,
				      .off = fetch->from,
				      .len = fetch->iov.iov_len,
				      .iov = &fetch->iov,
				      .iovcnt = 1,
				      .done = fetch_read };
	fetch->slow = fetch_slow(fetch);
	segment_pin(pool, addr_segment(pool, fetch->from / VF_UNIT));
	pool->env->ops->submit(pool->env, &fetch->io);
}

struct fetcher *fetcher_open(struct pool *pool)
{
	struct fetcher *fetcher = calloc(1, sizeof(*fetcher));
	void *mem;

	if (!fetcher)
		return NULL;
	fetcher->pool = pool;
	list_init(&fetcher->waiting);
	list_init(&fetcher->judging);
	fetcher->fetches = slab_create(sizeof(struct fetch), FETCHES_MAX);
	fetcher->expander_len = VF_RECORD_MAX;
	mem = mmap(NULL, (size_t)EXPANDERS_MAX * fetcher->expander_len, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	fetcher->expanders = mem == MAP_FAILED ? NULL : mem;
	if (!fetcher->fetches || !fetcher->expanders) {
		fetcher_close(fetcher);
		return NULL;
	}
	for (uint32_t i = 0; i < EXPANDERS_MAX; i++)
		fetcher->idle[fetcher->nidle++] = fetcher->expanders +
						  (size_t)i * fetcher->expander_len;
	return fetcher;
}

void fetcher_close(struct fetcher *fetcher)
{
	if (!fetcher)
		return;
	if (fetcher->expanders)
		munmap(fetcher->expanders, (size_t)EXPANDERS_MAX * fetcher->expander_len);
	if (fetcher->fetches)
		slab_destroy(fetcher->fetches);
	free(fetcher);
}
