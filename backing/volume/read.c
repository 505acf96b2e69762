#include "backing/volume/read.h"

#include <stdlib.h>

#include "backing/volume/buddy.h"
#include "backing/volume/fetch.h"
#include "base/slab.h"

#define READS_MAX    1024u
#define PARTS_INLINE 8u
/* Sectors of one look-up, and regions that they may touch. */
#define LOOKUP_SECTORS VF_REGION_SECTORS
#define LOOKUP_REGIONS 2u
/* Records of look-ups that have more than PARTS_INLINE of them. */
#define PARTS_LEN (1u << 20)
/* A STATUS looks no farther. */
#define STATUS_SECTORS (64ull * VF_REGION_SECTORS)

/* A request in progress. */
struct read {
	struct pool *pool;
	struct vreq *req;
	struct tree_waiter page;
	struct iobuf_waiter buffer;
	struct list link; /* of those that wait for room for parts */
	uint64_t at, n;	  /* sectors: what is being read */
	uint64_t missing; /* the region whose page is waited for */
	bool damaged[LOOKUP_REGIONS];
	bool again; /* at..at+n is read for the second time */
	int err;
	uint64_t bad_lba;
	uint32_t nfetches;
	struct piece *parts; /* RECORD, by address */
	uint32_t nparts, next;
	struct piece few[PARTS_INLINE];
};

struct reader {
	struct pool *pool;
	struct slab *reads;
	struct fetcher *fetcher;
	struct buddy parts;
	struct list waiting; /* struct vreq, for a read */
	struct list no_room; /* struct read, for parts */
	bool starting;
	struct piece pieces[LOOKUP_SECTORS];
};

static void read_go_on(struct read *read);
static void status_go_on(struct read *read);
static void read_start(struct reader *reader, struct vreq *req);

/* ---- looking up ---- */

static void page_ready(struct tree_waiter *waiter)
{
	struct read *read = container_of(waiter, struct read, page);

	if (waiter->err)
		read->damaged[read->missing - read->at / VF_REGION_SECTORS] = true;
	if (read->req->op == VREQ_STATUS)
		status_go_on(read);
	else
		read_go_on(read);
}

static void buffer_ready(struct iobuf_waiter *waiter)
{
	read_go_on(container_of(waiter, struct read, buffer));
}

static void bad_at(struct read *read, uint64_t lba, int err)
{
	if (read->err && read->bad_lba <= lba)
		return;
	read->err = err;
	read->bad_lba = lba;
}

/* All pieces of at..at+n; false: a page is to come. */
static bool read_lookup(struct read *read, uint32_t *npieces)
{
	struct reader *reader = read->pool->reader;
	struct lookup lookup = { .pool = read->pool,
				 .volume = read->req->volume,
				 .waiter = &read->page,
				 .pieces = reader->pieces };

	for (uint64_t lba = read->at, end = read->at + read->n, n; lba < end; lba += n) {
		uint64_t region = lba / VF_REGION_SECTORS;
		uint32_t start = lba % VF_REGION_SECTORS;

		n = VF_REGION_SECTORS - start < end - lba ? VF_REGION_SECTORS - start : end - lba;
		read->missing = region;
		if (!lookup_region(&lookup, region, start, (uint32_t)n,
				   read->damaged[region - read->at / VF_REGION_SECTORS]))
			return false;
	}
	*npieces = lookup.npieces;
	return true;
}

static void piece_give(struct read *read, const struct piece *piece)
{
	uint64_t lba = piece->region_lba + piece->start;
	uint64_t off = (lba - read->req->lba) * VF_SECTOR;
	size_t len = (size_t)piece->nsectors * VF_SECTOR;

	if (piece->kind == VPIECE_ZERO)
		req_zero(read->req, off, len);
	else if (piece->kind == VPIECE_MEMORY)
		req_copy(read->req, off, piece->data, len);
	else
		bad_at(read, lba, EBADMSG);
}

/* Insertion, since records mostly lie as they were written. */
static void part_add(struct read *read, const struct piece *piece)
{
	uint32_t i = read->nparts++;

	for (; i > 0 && read->parts[i - 1].entry.addr > piece->entry.addr; i--)
		read->parts[i] = read->parts[i - 1];
	read->parts[i] = *piece;
}

static bool parts_get(struct read *read, uint32_t nparts)
{
	struct reader *reader = read->pool->reader;

	read->nparts = read->next = 0;
	read->parts = read->few;
	if (nparts > PARTS_INLINE)
		read->parts = buddy_get(&reader->parts, nparts * sizeof(struct piece));
	if (!read->parts)
		list_add_tail(&reader->no_room, &read->link);
	return read->parts != NULL;
}

static void parts_put(struct read *read)
{
	struct reader *reader = read->pool->reader;
	struct list *link;

	if (read->parts == read->few)
		return;
	buddy_put(&reader->parts, read->parts);
	read->parts = read->few;
	link = list_pop(&reader->no_room);
	if (link)
		read_go_on(container_of(link, struct read, link));
}

/* What at..at+n is made of: copied, or to be fetched; false: something must come
 * first. */
static bool read_resolve(struct read *read)
{
	struct piece *pieces = read->pool->reader->pieces;
	uint32_t npieces, nparts = 0;

	if (!read_lookup(read, &npieces))
		return false;
	for (uint32_t i = 0; i < npieces; i++)
		nparts += pieces[i].kind == VPIECE_RECORD;
	if (!parts_get(read, nparts))
		return false;
	for (uint32_t i = 0; i < npieces; i++) {
		if (pieces[i].kind == VPIECE_RECORD)
			part_add(read, &pieces[i]);
		else
			piece_give(read, &pieces[i]);
	}
	return true;
}

/* ---- fetching ---- */

static void fetch_done(struct fetch *fetch)
{
	struct read *read = fetch->arg;

	for (uint32_t i = 0; i < fetch->npieces; i++) {
		const struct piece *piece = &fetch->pieces[i];

		if (piece->bad)
			bad_at(read, piece->region_lba + piece->start,
			       fetch->err ? fetch->err : EBADMSG);
	}
	read->nfetches--;
	read_go_on(read);
}

/* False: there is no buffer now. */
static bool fetch_next(struct read *read)
{
	struct fetcher *fetcher = read->pool->reader->fetcher;
	uint64_t from, end;
	uint32_t n = fetch_extent(read->pool, read->parts + read->next, read->nparts - read->next,
				  read->again, &from, &end);
	struct fetch *fetch = fetch_get(fetcher, end - from, &read->buffer);

	if (!fetch)
		return false;
	list_del(&read->buffer.link);
	fetch->done = fetch_done;
	fetch->arg = read;
	fetch->req = read->req;
	fetch->volume = read->req->volume->id;
	fetch->wide = read->req->volume->wide;
	fetch->unverified = pool_mutant(read->pool, MUTANT_READ_UNVERIFIED);
	fetch->pieces = read->parts + read->next;
	fetch->npieces = n;
	fetch->from = from;
	fetch->iov.iov_len = end - from;
	read->next += n;
	read->nfetches++;
	fetch_begin(fetcher, fetch);
	return true;
}

/* ---- the way of a request ---- */

static void read_end(struct read *read)
{
	struct reader *reader = read->pool->reader;
	struct vreq *req = read->req;
	struct list *link;

	req->bad_lba = read->bad_lba;
	vreq_finish(req, read->err);
	slab_put(reader->reads, read);
	if (reader->starting)
		return;
	reader->starting = true;
	while (slab_free_count(reader->reads) > 0 && (link = list_pop(&reader->waiting)) != NULL)
		read_start(reader, container_of(link, struct vreq, link));
	reader->starting = false;
}

static void chunk_begin(struct read *read, uint64_t at)
{
	uint64_t left = read->req->lba + read->req->nsectors - at;
	uint64_t most = read->req->op == VREQ_STATUS ? STATUS_SECTORS : LOOKUP_SECTORS;

	read->at = at;
	read->n = left < most ? left : most;
	read->again = false;
	read->damaged[0] = read->damaged[1] = false;
	read->parts = NULL;
}

/* What was to be fetched is; false: that was all. */
static bool chunk_end(struct read *read)
{
	parts_put(read);
	if (read->err && !read->again) {
		/* Perhaps it was moved, or the device read wrong: once more. */
		read->again = true;
		read->err = 0;
		read->damaged[0] = read->damaged[1] = false;
		read->parts = NULL;
		return true;
	}
	if (read->err || read->at + read->n == read->req->lba + read->req->nsectors)
		return false;
	chunk_begin(read, read->at + read->n);
	return true;
}

static void read_go_on(struct read *read)
{
	for (;;) {
		if (!read->parts && !read_resolve(read))
			return;
		while (read->next < read->nparts)
			if (!fetch_next(read))
				return;
		if (read->nfetches > 0)
			return;
		if (!chunk_end(read)) {
			read_end(read);
			return;
		}
	}
}

/* ---- the status of blocks ---- */

/* Sectors from start on that are alike. */
static uint32_t status_run(const struct piece *pieces, uint32_t npieces, uint32_t start, uint32_t n,
			   bool *mapped)
{
	bool map[VF_REGION_SECTORS] = { false };
	uint32_t run = 0;

	for (uint32_t i = 0; i < npieces; i++)
		memset(map + pieces[i].start, pieces[i].kind != VPIECE_ZERO, pieces[i].nsectors);
	*mapped = map[start];
	while (run < n && map[start + run] == *mapped)
		run++;
	return run;
}

static void status_go_on(struct read *read)
{
	struct reader *reader = read->pool->reader;
	struct vreq *req = read->req;
	uint32_t n, run = 0;

	for (; read->n > 0; read->n -= run, read->at += run) {
		struct lookup lookup = { .pool = read->pool,
					 .volume = req->volume,
					 .waiter = &read->page,
					 .pieces = reader->pieces };
		uint32_t start = read->at % VF_REGION_SECTORS;
		bool mapped;

		n = VF_REGION_SECTORS - start < read->n ? VF_REGION_SECTORS - start
							: (uint32_t)read->n;
		read->missing = read->at / VF_REGION_SECTORS;
		if (!lookup_region(&lookup, read->missing, start, n, read->damaged[0]))
			return;
		read->damaged[0] = false;
		run = status_run(reader->pieces, lookup.npieces, start, n, &mapped);
		if (req->extent == 0)
			req->mapped = mapped;
		if (mapped != req->mapped)
			break;
		req->extent += run;
		if (run < n)
			break;
	}
	read_end(read);
}

static void read_start(struct reader *reader, struct vreq *req)
{
	struct read *read = slab_get(reader->reads);

	if (!read) {
		list_add_tail(&reader->waiting, &req->link);
		return;
	}
	read->pool = reader->pool;
	read->req = req;
	read->page.ready = page_ready;
	read->buffer.ready = buffer_ready;
	list_init(&read->page.link);
	list_init(&read->buffer.link);
	list_init(&read->link);
	read->err = 0;
	read->bad_lba = 0;
	read->nfetches = 0;
	req->extent = 0;
	chunk_begin(read, req->lba);
	if (req->op == VREQ_STATUS)
		status_go_on(read);
	else
		read_go_on(read);
}

void read_submit(struct pool *pool, struct vreq *req)
{
	assert(req->nsectors > 0);
	read_start(pool->reader, req);
}

uint64_t reader_memory(const struct pool *pool)
{
	return iobufs_memory(pool) + pool->reader->parts.used;
}

int reader_open(struct pool *pool, struct err *err)
{
	struct reader *reader;
	int rc = iobufs_open(pool, err);

	if (rc)
		return rc;
	reader = calloc(1, sizeof(*reader));
	if (!reader)
		return err_set(err, ENOMEM, "no memory for reads of pool \"%s\"", pool->name);
	pool->reader = reader;
	reader->pool = pool;
	list_init(&reader->waiting);
	list_init(&reader->no_room);
	reader->reads = slab_create(sizeof(struct read), READS_MAX);
	reader->fetcher = fetcher_open(pool);
	if (!reader->reads || !reader->fetcher || !buddy_open(&reader->parts, PARTS_LEN, 10)) {
		reader_close(pool);
		return err_set(err, ENOMEM, "no memory for reads of pool \"%s\"", pool->name);
	}
	return 0;
}

void reader_close(struct pool *pool)
{
	struct reader *reader = pool->reader;

	if (reader) {
		buddy_close(&reader->parts);
		fetcher_close(reader->fetcher);
		if (reader->reads)
			slab_destroy(reader->reads);
		free(reader);
		pool->reader = NULL;
	}
	iobufs_close(pool);
}
