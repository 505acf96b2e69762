/* The last flush: see flush.h. */
#include "target/flush.h"

#include <errno.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "base/log.h"

struct flush;

struct flush_one {
	struct bk_req req;
	struct bk_channel *channel;
	const struct lun_run *lun;
	struct flush *flush;
	atomic_bool done;
};

/* Lives on after a timeout: a stuck request still points here. */
struct flush {
	struct flush_one *ones;
	size_t n;
	sem_t done;
};

static void flush_done(struct bk_req *req)
{
	struct flush_one *one = container_of(req, struct flush_one, req);

	atomic_store(&one->done, true);
	sem_post(&one->flush->done);
}

/* On the first reactor. */
static void flush_submit(void *arg)
{
	struct flush *flush = arg;

	for (size_t i = 0; i < flush->n; i++) {
		struct flush_one *one = &flush->ones[i];

		one->req.op = BK_FLUSH;
		one->req.done = flush_done;
		backing_submit(one->channel, &one->req);
	}
}

static struct flush *flush_create(struct running *run)
{
	struct flush *flush = calloc(1, sizeof(*flush));
	unsigned int first = reactor_index(run->reactors[0]);
	size_t room = 1;

	list_for_each(link, &run->luns)
		room++;
	if (flush)
		flush->ones = calloc(room, sizeof(*flush->ones));
	if (!flush || !flush->ones) {
		free(flush);
		return NULL;
	}
	sem_init(&flush->done, 0, 0);
	list_for_each(link, &run->luns) {
		struct lun_run *lun = container_of(link, struct lun_run, link);
		struct backing *backing = scsi_lun_backing(lun->scsi);
		struct flush_one *one = &flush->ones[flush->n];

		if (!backing || !backing->channel[first] || backing->limits.read_only)
			continue;
		one->channel = backing->channel[first];
		one->lun = lun;
		one->flush = flush;
		flush->n++;
	}
	return flush;
}

static void flush_destroy(struct flush *flush)
{
	sem_destroy(&flush->done);
	free(flush->ones);
	free(flush);
}

/* Waits for n answers; false after the time. */
static bool flush_wait(struct flush *flush, unsigned int timeout_ms)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += timeout_ms / 1000;
	until.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	for (size_t got = 0; got < flush->n;) {
		if (sem_clockwait(&flush->done, CLOCK_MONOTONIC, &until) == 0)
			got++;
		else if (errno != EINTR)
			return false;
	}
	return true;
}

bool luns_flush(struct running *run, unsigned int timeout_ms)
{
	struct flush *flush = flush_create(run);
	bool all;

	if (!flush) {
		log_error("no memory to flush the stores");
		return true;
	}
	reactor_call(run->reactors[0], flush_submit, flush);
	all = flush_wait(flush, timeout_ms);
	for (size_t i = 0; i < flush->n; i++) {
		const struct flush_one *one = &flush->ones[i];

		if (!atomic_load(&one->done))
			log_error("LUN %s: its store is stuck: a flush does not end; it is left",
				  one->lun->config->name);
		else if (one->req.err != 0)
			log_error("LUN %s: flush: %s", one->lun->config->name,
				  err_name(one->req.err));
	}
	if (all)
		flush_destroy(flush);
	return all;
}
