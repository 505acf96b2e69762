/*
 * The store `memory`: a RAM disk, for tests and benchmarks.
 *
 * The disk is a row of segments, anonymous mappings; growing adds one, so that
 * addresses in use never move.  Each page has a bit that says whether it has
 * been written, which is what GET LBA STATUS asks for.  Reads and writes are
 * copies, done inline; giving memory back is the ring's (MADV_DONTNEED of
 * 128 MiB takes milliseconds).
 */
#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "backing/store.h"
#include "base/option.h"

#define PAGE	     4096u
#define SEGMENTS_MAX 64
#define UNMAP_MAX    (128ull << 20)
/* As much of the disk as one BK_STATUS looks at: some 0.1 ms. */
#define STATUS_MAX	 (64ull << 30)
#define THICK_ZEROES_MAX (4ull << 20)

struct segment {
	uint64_t off, len; /* bytes, len in whole pages */
	uint8_t *base;
	_Atomic uint64_t *written; /* a bit for each page */
};

struct memory {
	struct backing backing;
	struct segment segment[SEGMENTS_MAX];
	atomic_uint nsegments; /* raised after the segment is complete */
	bool thin;
};

static struct memory *memory_of(struct backing *backing)
{
	return container_of(backing, struct memory, backing);
}

static uint64_t memory_len(const struct memory *memory)
{
	unsigned int n = atomic_load_explicit(&memory->nsegments, memory_order_acquire);

	return n ? memory->segment[n - 1].off + memory->segment[n - 1].len : 0;
}

/* The segment that holds off. */
static struct segment *segment_at(struct memory *memory, uint64_t off)
{
	unsigned int n = atomic_load_explicit(&memory->nsegments, memory_order_acquire);

	for (unsigned int i = 0; i < n; i++)
		if (off - memory->segment[i].off < memory->segment[i].len)
			return &memory->segment[i];
	assert(!"the wrapper has judged the range");
	return NULL;
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* ---- pages that have been written ---- */

static bool page_written(const struct segment *segment, uint64_t page)
{
	return atomic_load_explicit(&segment->written[page / 64], memory_order_relaxed) >>
		       (page % 64) &
	       1;
}

/* Sets or clears the bits of pages [first, end). */
static void pages_mark(struct segment *segment, uint64_t first, uint64_t end, bool written)
{
	while (first < end) {
		_Atomic uint64_t *word = &segment->written[first / 64];
		uint64_t n = min_u64(end - first, 64 - first % 64);
		uint64_t mask = (n == 64 ? ~0ull : (1ull << n) - 1) << first % 64;
		uint64_t now = atomic_load_explicit(word, memory_order_relaxed);

		/* Look first: most writes are to pages written before, and the
		 * word is shared by all reactors. */
		if (written && (now & mask) != mask)
			atomic_fetch_or_explicit(word, mask, memory_order_relaxed);
		else if (!written && (now & mask))
			atomic_fetch_and_explicit(word, ~mask, memory_order_relaxed);
		first += n;
	}
}

/* How many pages from page on, below end, are as the first one. */
static uint64_t pages_alike(const struct segment *segment, uint64_t page, uint64_t end)
{
	bool kind = page_written(segment, page);
	uint64_t same = kind ? ~0ull : 0, p = page + 1;

	while (p < end) {
		if (p % 64 == 0 && end - p >= 64 &&
		    atomic_load_explicit(&segment->written[p / 64], memory_order_relaxed) == same)
			p += 64;
		else if (page_written(segment, p) == kind)
			p++;
		else
			break;
	}
	return p - page;
}

/* ---- open and grow ---- */

static int segment_add(struct memory *memory, uint64_t len, struct err *err)
{
	unsigned int n = atomic_load(&memory->nsegments);
	struct segment *segment = &memory->segment[n];
	char text[32];

	size_format(len, text, sizeof(text));
	if (n == SEGMENTS_MAX)
		return err_set(err, ENOSPC,
			       "a RAM disk can grow %d times; it is as it was until the daemon "
			       "starts again",
			       SEGMENTS_MAX - 1);
	if (len > SIZE_MAX - PAGE)
		return err_set(err, ENOMEM, "%s of memory are more than this machine has", text);
	segment->off = memory_len(memory);
	segment->len = (len + PAGE - 1) / PAGE * PAGE;
	segment->written = calloc((segment->len / PAGE + 63) / 64, sizeof(uint64_t));
	segment->base = mmap(NULL, segment->len, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (!segment->written || segment->base == MAP_FAILED)
		goto fail;
	/* Random access to small pages costs more in the TLB than in the copy;
	 * a kernel without huge pages refuses, and loses only that. */
	madvise(segment->base, segment->len, MADV_HUGEPAGE);
	if (!memory->thin && madvise(segment->base, segment->len, MADV_POPULATE_WRITE) < 0)
		goto fail;
	atomic_store_explicit(&memory->nsegments, n + 1, memory_order_release);
	return 0;
fail:
	if (segment->base != MAP_FAILED)
		munmap(segment->base, segment->len);
	free(segment->written);
	return err_set(err, ENOMEM, "there are not %s of memory for a RAM disk", text);
}

static bool memory_serves(const struct backing_settings *settings, mode_t type)
{
	(void)type;
	return settings->backend == BACKING_KIND_RAMDISK;
}

static int memory_open(struct backing *backing, const struct backing_settings *settings,
		       struct err *err)
{
	struct memory *memory = memory_of(backing);
	struct bk_limits *limits = &backing->limits;
	int rc;

	if (settings->size == 0)
		return err_set(err, EINVAL, "size: a RAM disk needs one");
	memory->thin = settings->thin;
	rc = segment_add(memory, settings->size, err);
	if (rc < 0)
		return rc;
	limits->size_bytes = settings->size;
	limits->io_optimal = 1u << 20;
	limits->unmap_granularity = PAGE;
	if (memory->thin) {
		limits->unmap_max = UNMAP_MAX;
		limits->write_zeroes_max = UNMAP_MAX;
		limits->write_zeroes_unmaps = true;
		limits->unmapped_reads_zero = true;
		limits->knows_status = true;
	} else {
		limits->write_zeroes_max = THICK_ZEROES_MAX;
	}
	return 0;
}

static void memory_close(struct backing *backing)
{
	struct memory *memory = memory_of(backing);
	unsigned int n = atomic_load(&memory->nsegments);

	for (unsigned int i = 0; i < n; i++) {
		munmap(memory->segment[i].base, memory->segment[i].len);
		free(memory->segment[i].written);
	}
}

static int memory_resize(struct backing *backing, const struct backing_settings *settings,
			 uint64_t *size_bytes, struct err *err)
{
	struct memory *memory = memory_of(backing);
	uint64_t len = memory_len(memory);

	if (settings->size == 0)
		return err_set(err, EINVAL, "size: a RAM disk needs one");
	*size_bytes = settings->size;
	return settings->size <= len ? 0 : segment_add(memory, settings->size - len, err);
}

static int memory_attach(struct bk_channel *channel, struct err *err)
{
	(void)err;
	channel->write_inline = true;
	return 0;
}

/* ---- requests ---- */

/* Pages that were never written are not touched: they would take memory. */
static void read_pages(const struct segment *segment, uint64_t at, uint8_t *data, uint64_t len)
{
	uint64_t end = (at + len + PAGE - 1) / PAGE;

	while (len > 0) {
		uint64_t page = at / PAGE;
		uint64_t n = min_u64(len, (page + pages_alike(segment, page, end)) * PAGE - at);

		if (page_written(segment, page))
			memcpy(data, segment->base + at, n);
		else
			memset(data, 0, n);
		data += n;
		at += n;
		len -= n;
	}
}

static void copy(struct memory *memory, const struct bk_req *req)
{
	bool write = req->op == BK_WRITE;
	uint64_t off = req->off;

	for (unsigned int i = 0; i < req->iovcnt; i++) {
		uint8_t *data = req->iov[i].iov_base;
		uint64_t left = req->iov[i].iov_len;

		while (left > 0) {
			struct segment *segment = segment_at(memory, off);
			uint64_t at = off - segment->off;
			uint64_t n = min_u64(left, segment->len - at);

			if (write) {
				memcpy(segment->base + at, data, n);
				pages_mark(segment, at / PAGE, (at + n - 1) / PAGE + 1, true);
			} else {
				read_pages(segment, at, data, n);
			}
			data += n;
			off += n;
			left -= n;
		}
	}
}

static void clear_next(struct bk_req *req);

static void clear_done(struct reactor_op *op, int res)
{
	struct bk_req *req = container_of(op, struct bk_req, ring_op);

	if (res < 0)
		bk_complete(req, -res);
	else
		clear_next(req);
}

/*
 * Zeros the rest of the range from req->pos on, one piece at a time: the
 * ends that share a page with other data here, whole pages by the ring.
 */
static void clear_next(struct bk_req *req)
{
	struct memory *memory = memory_of(req->channel->backing);
	bool written = req->op == BK_WRITE_ZEROES && !(req->flags & BK_MAY_UNMAP);

	while (req->pos < req->len) {
		struct segment *segment = segment_at(memory, req->off + req->pos);
		uint64_t at = req->off + req->pos - segment->off;
		uint64_t n = min_u64(min_u64(req->len - req->pos, segment->len - at), UNMAP_MAX);
		uint64_t end = at + n, first = (at + PAGE - 1) / PAGE, last = end / PAGE;
		struct io_uring_sqe *sqe;

		req->pos += n;
		if (first >= last) {
			memset(segment->base + at, 0, n);
			continue;
		}
		memset(segment->base + at, 0, first * PAGE - at);
		memset(segment->base + last * PAGE, 0, end - last * PAGE);
		pages_mark(segment, first, last, written);
		req->ring_op.done = clear_done;
		sqe = reactor_sqe(req->channel->reactor, &req->ring_op);
		io_uring_prep_madvise(sqe, segment->base + first * PAGE,
				      (off_t)((last - first) * PAGE), MADV_DONTNEED);
		return;
	}
	bk_complete(req, 0);
}

/* Extents in pages; the ends of the range may lie within one. */
static void status(struct memory *memory, struct bk_req *req)
{
	uint64_t off = req->off, end = req->off + min_u64(req->len, STATUS_MAX);

	while (off < end) {
		struct segment *segment = segment_at(memory, off);
		uint64_t seg_end = min_u64(end, segment->off + segment->len);
		uint64_t page = (off - segment->off) / PAGE;
		uint64_t page_end = (seg_end - segment->off + PAGE - 1) / PAGE;
		uint8_t kind = page_written(segment, page) ? BK_MAPPED : BK_UNMAPPED;
		uint64_t alike = pages_alike(segment, page, page_end);
		uint64_t next = min_u64(seg_end, segment->off + (page + alike) * PAGE);
		struct bk_extent *last = req->nextents ? &req->extents[req->nextents - 1] : NULL;

		if (last && last->status == kind) {
			last->len += next - off;
		} else {
			if (req->nextents == req->nextents_max)
				break;
			req->extents[req->nextents++] = (struct bk_extent){ off, next - off, kind };
		}
		off = next;
	}
	bk_complete(req, 0);
}

static void memory_submit(struct bk_channel *channel, struct bk_req *req)
{
	struct memory *memory = memory_of(channel->backing);

	switch (req->op) {
	case BK_READ:
	case BK_WRITE:
		copy(memory, req);
		bk_count(&channel->stats.inline_ops, 1);
		bk_complete(req, 0);
		break;
	case BK_UNMAP:
		bk_count(&channel->stats.ring_ops, 1);
		clear_next(req);
		break;
	case BK_WRITE_ZEROES:
		if (!memory->thin) {
			bk_write_zeros(req);
			break;
		}
		bk_count(&channel->stats.ring_ops, 1);
		clear_next(req);
		break;
	case BK_STATUS: status(memory, req); break;
	default:
		/* BK_FLUSH: nothing of it outlives the daemon anyway. */
		bk_complete(req, 0);
		break;
	}
}

const struct backing_ops memory_ops = {
	.name = "memory",
	.backing_size = sizeof(struct memory),
	.channel_size = sizeof(struct bk_channel),
	.native = 1u << BK_READ | 1u << BK_WRITE | 1u << BK_FLUSH | 1u << BK_UNMAP |
		  1u << BK_WRITE_ZEROES | 1u << BK_STATUS,
	.serves = memory_serves,
	.open = memory_open,
	.close = memory_close,
	.resize = memory_resize,
	.attach = memory_attach,
	.submit = memory_submit,
};
