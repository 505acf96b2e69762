/* Import and export: see volume_image.h. */
#include "target/volume_image.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/list.h"
#include "target/progress.h"

#define CHUNK	    (1u << 20)
#define FLUSH_EVERY (256ull << 20) /* so far an interrupted import is redone */
#define ZERO_PIECE  4096u	   /* what is skipped when it is zero */
#define ZERO_MAX    (1ull << 40)   /* in one request */

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
	interrupted = number;
}

static void signals_take(void)
{
	/* The second one ends the process as it is. */
	struct sigaction action = { .sa_handler = on_signal,
				    .sa_flags = SA_RESTART | (int)SA_RESETHAND };

	interrupted = 0;
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

static int interrupted_say(struct err *err)
{
	return err_set(err, EINTR, "interrupted");
}

/* ---- requests ---- */

struct waited {
	struct vreq req;
	bool finished;
};

static void waited_done(struct vreq *req)
{
	container_of(req, struct waited, req)->finished = true;
}

/* Positive errno, or 0. */
static int request_run(struct pool_session *session, struct volume *volume, struct vreq *req)
{
	struct waited waited = { .req = *req };

	waited.req.done = waited_done;
	volume_submit(volume, &waited.req);
	pool_run(session->engine);
	while (!waited.finished)
		session->env->ops->wait(session->env);
	*req = waited.req;
	return req->err;
}

static const char *reason(int code)
{
	return code == ENOSPC ? "the pool is full" : err_name(code);
}

static int change(struct pool_session *session, struct volume *volume, uint8_t op, uint64_t off,
		  uint64_t len, void *bytes, struct err *err)
{
	struct iovec iov = { bytes, len };
	struct vreq req = {
		.op = op,
		.lba = off / VF_SECTOR,
		.nsectors = len / VF_SECTOR,
		.iov = &iov,
		.iovcnt = bytes ? 1 : 0,
	};
	int rc = request_run(session, volume, &req);

	return rc ? err_set(err, rc, "writing at byte %llu of the volume: %s",
			    (unsigned long long)off, reason(rc))
		  : 0;
}

static uint64_t volume_size(const struct volume *volume)
{
	struct volume_info info;

	volume_info(volume, &info);
	return info.settings.nsectors * VF_SECTOR;
}

/* ---- import ---- */

struct importing {
	struct image_import *to;
	int fd;
	uint64_t at, size;    /* of the file */
	uint64_t volume_size; /* bytes */
	uint8_t *bytes;	      /* CHUNK */
	struct progress progress;
};

static int flush(struct importing *importing, struct err *err)
{
	int rc = change(importing->to->session, importing->to->volume, VREQ_FLUSH, 0, 0, NULL, err);

	if (!rc)
		importing->to->from = importing->at;
	return rc;
}

/* Zeroes of the volume up to end. */
static int zero_until(struct importing *importing, uint64_t end, struct err *err)
{
	int rc = 0;

	if (!importing->to->zeroes)
		importing->at = end;
	while (!rc && importing->at < end) {
		uint64_t len = end - importing->at < ZERO_MAX ? end - importing->at : ZERO_MAX;

		rc = change(importing->to->session, importing->to->volume, VREQ_ZERO, importing->at,
			    len, NULL, err);
		if (!rc)
			importing->at += len;
	}
	return rc;
}

/* As much as can be had, with zeroes to the end of its last sector. */
static int chunk_read(const struct importing *importing, uint64_t len, struct err *err)
{
	uint64_t got = 0;

	while (got < len) {
		ssize_t n = pread(importing->fd, importing->bytes + got, len - got,
				  (off_t)(importing->at + got));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set(err, errno, "reading the file at byte %llu: %s",
				       (unsigned long long)(importing->at + got), err_name(errno));
		if (n == 0)
			return err_set(err, EIO, "the file became shorter meanwhile");
		got += (uint64_t)n;
	}
	memset(importing->bytes + len, 0, CHUNK - len);
	return 0;
}

static bool all_zero(const uint8_t *bytes, uint64_t len)
{
	return bytes[0] == 0 && memcmp(bytes, bytes + 1, len - 1) == 0;
}

/* One chunk of what the file has at importing->at, up to end. */
static int chunk_import(struct importing *importing, uint64_t end, struct err *err)
{
	struct image_import *to = importing->to;
	uint64_t len = end - importing->at < CHUNK ? end - importing->at : CHUNK;
	uint64_t rest = importing->volume_size - importing->at, whole;
	int rc = chunk_read(importing, len, err);

	if (rc)
		return rc;
	whole = (len + VF_BLOCK - 1) / VF_BLOCK * VF_BLOCK;
	whole = whole < rest ? whole : rest;
	if (all_zero(importing->bytes, whole)) /* also of a new volume: it reads so */
		return zero_until(importing, importing->at + whole, err);
	rc = change(to->session, to->volume, VREQ_WRITE, importing->at, whole, importing->bytes,
		    err);
	if (!rc)
		importing->at += whole;
	return rc;
}

/* The next data of the file, at VF_BLOCK boundaries; its size: no more. */
static uint64_t next_data(const struct importing *importing)
{
	off_t data = lseek(importing->fd, (off_t)importing->at, SEEK_DATA);

	if (data < 0)
		return errno == ENXIO ? importing->size : importing->at;
	if ((uint64_t)data >= importing->size)
		return importing->size;
	return (uint64_t)data / VF_BLOCK * VF_BLOCK;
}

static uint64_t next_hole(const struct importing *importing, uint64_t from)
{
	off_t hole = lseek(importing->fd, (off_t)from, SEEK_HOLE);
	uint64_t end = hole < 0 || (uint64_t)hole > importing->size
			       ? importing->size
			       : ((uint64_t)hole + VF_BLOCK - 1) / VF_BLOCK * VF_BLOCK;

	return end < importing->size ? end : importing->size;
}

static int extents_import(struct importing *importing, struct err *err)
{
	int rc = 0;

	while (!rc && importing->at < importing->size) {
		uint64_t data = next_data(importing), end;

		if (data > importing->at)
			rc = zero_until(importing,
					data < importing->size ? data : importing->volume_size,
					err);
		if (rc || importing->at >= importing->size)
			continue;
		end = next_hole(importing, importing->at);
		while (!rc && importing->at < end) {
			rc = interrupted ? interrupted_say(err) : chunk_import(importing, end, err);
			progress_at(&importing->progress, importing->at);
			if (!rc && importing->at - importing->to->from >= FLUSH_EVERY)
				rc = flush(importing, err);
		}
	}
	return rc;
}

int image_import(struct image_import *import, int fd, uint64_t size, struct err *err)
{
	struct importing importing = {
		.to = import,
		.fd = fd,
		.at = import->from,
		.size = size,
		.volume_size = volume_size(import->volume),
		.bytes = aligned_alloc(VF_BLOCK, CHUNK),
	};
	int rc;

	assert(size <= importing.volume_size && import->from % VF_BLOCK == 0);
	if (!importing.bytes)
		return err_set(err, ENOMEM, "no memory");
	signals_take();
	progress_begin(&importing.progress, "import", import->from, size);
	rc = extents_import(&importing, err);
	if (!rc && importing.at < importing.volume_size)
		rc = zero_until(&importing, importing.volume_size, err);
	if (!rc)
		rc = flush(&importing, err);
	else
		flush(&importing, NULL); /* what there is; from says so */
	progress_end(&importing.progress);
	free(importing.bytes);
	return rc;
}

/* ---- export ---- */

struct exporting {
	struct pool_session *session;
	struct volume *volume;
	int fd;
	uint64_t at, size;
	uint8_t *bytes; /* CHUNK */
	struct progress progress;
};

static int file_write(const struct exporting *exporting, uint64_t from, uint64_t len,
		      struct err *err)
{
	while (len > 0) {
		ssize_t n = pwrite(exporting->fd, exporting->bytes + from, len,
				   (off_t)(exporting->at + from));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set(err, errno, "writing the file at byte %llu: %s",
				       (unsigned long long)(exporting->at + from), err_name(errno));
		from += (uint64_t)n;
		len -= (uint64_t)n;
	}
	return 0;
}

/* What is not zero of the len bytes read, in runs. */
static int pieces_write(const struct exporting *exporting, uint64_t len, struct err *err)
{
	uint64_t begin = 0, at = 0;
	int rc = 0;

	while (at < len && !rc) {
		uint64_t piece = len - at < ZERO_PIECE ? len - at : ZERO_PIECE;

		if (all_zero(exporting->bytes + at, piece)) {
			rc = file_write(exporting, begin, at - begin, err);
			begin = at + piece;
		}
		at += piece;
	}
	return rc ? rc : file_write(exporting, begin, len - begin, err);
}

static int chunk_export(struct exporting *exporting, uint64_t len, struct err *err)
{
	struct iovec iov = { exporting->bytes, len };
	struct vreq req = {
		.op = VREQ_READ,
		.lba = exporting->at / VF_SECTOR,
		.nsectors = len / VF_SECTOR,
		.iov = &iov,
		.iovcnt = 1,
	};
	int rc = request_run(exporting->session, exporting->volume, &req);

	if (rc)
		return err_set(err, rc, "the volume cannot be read at byte %llu: %s",
			       (unsigned long long)req.bad_lba * VF_SECTOR,
			       rc == EBADMSG ? "it is damaged there; `quintain pool check --deep` "
					       "finds all that is"
					     : err_name(rc));
	rc = pieces_write(exporting, len, err);
	exporting->at += len;
	return rc;
}

static int extent_export(struct exporting *exporting, struct err *err)
{
	uint64_t left = exporting->size - exporting->at, end;
	struct vreq req = {
		.op = VREQ_STATUS,
		.lba = exporting->at / VF_SECTOR,
		.nsectors = left / VF_SECTOR,
	};
	int rc = request_run(exporting->session, exporting->volume, &req);

	if (rc)
		return err_set(err, rc, "the map of the volume cannot be read at byte %llu: %s",
			       (unsigned long long)exporting->at, err_name(rc));
	assert(req.extent > 0 && req.extent <= left / VF_SECTOR);
	end = exporting->at + req.extent * VF_SECTOR;
	if (!req.mapped)
		exporting->at = end;
	while (!rc && exporting->at < end) {
		uint64_t len = end - exporting->at < CHUNK ? end - exporting->at : CHUNK;

		rc = interrupted ? interrupted_say(err) : chunk_export(exporting, len, err);
		progress_at(&exporting->progress, exporting->at);
	}
	return rc;
}

int image_export(struct pool_session *session, struct volume *volume, int fd, struct err *err)
{
	struct exporting exporting = {
		.session = session,
		.volume = volume,
		.fd = fd,
		.size = volume_size(volume),
		.bytes = aligned_alloc(VF_BLOCK, CHUNK),
	};
	int rc = 0;

	if (!exporting.bytes)
		return err_set(err, ENOMEM, "no memory");
	signals_take();
	if (ftruncate(fd, (off_t)exporting.size) != 0)
		rc = err_set(err, errno, "the file cannot have %llu bytes: %s",
			     (unsigned long long)exporting.size, err_name(errno));
	progress_begin(&exporting.progress, "export", 0, exporting.size);
	while (!rc && exporting.at < exporting.size)
		rc = interrupted ? interrupted_say(err) : extent_export(&exporting, err);
	progress_end(&exporting.progress);
	if (!rc && fsync(fd) != 0)
		rc = err_set(err, errno, "the file: %s", err_name(errno));
	free(exporting.bytes);
	return rc;
}
