/* The last flush: see flush.h. */
#include "target/flush.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/log.h"

struct flush;

struct flush_one {
	struct bk_req req;
	struct bk_channel *channel;
	const struct lun_run *lun;
	struct flush *flush;
	bool done; /* under flush->lock */
};

/* Lives on after a timeout: a stuck request still points here. */
struct flush {
	struct flush_one *ones;
	size_t n;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	size_t ndone;
};

static void flush_done(struct bk_req *req)
{
	struct flush_one *one = container_of(req, struct flush_one, req);
	struct flush *flush = one->flush;

	/* Told under the lock: the waiter frees all of it when it has counted. */
	pthread_mutex_lock(&flush->lock);
	one->done = true;
	flush->ndone++;
	pthread_cond_signal(&flush->changed);
	pthread_mutex_unlock(&flush->lock);
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
	pthread_mutex_init(&flush->lock, NULL);
	pthread_cond_init(&flush->changed, NULL);
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
	pthread_cond_destroy(&flush->changed);
	pthread_mutex_destroy(&flush->lock);
	free(flush->ones);
	free(flush);
}

/* Under flush->lock: waits for all answers; false after the time. */
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
	while (flush->ndone < flush->n)
		if (pthread_cond_clockwait(&flush->changed, &flush->lock, CLOCK_MONOTONIC,
					   &until) != 0)
			return flush->ndone == flush->n;
	return true;
}

static void outcome_log(const struct flush *flush)
{
	for (size_t i = 0; i < flush->n; i++) {
		const struct flush_one *one = &flush->ones[i];

		if (!one->done)
			log_error("LUN %s: its store is stuck: a flush does not end; it is left",
				  one->lun->config->name);
		else if (one->req.err != 0)
			log_error("LUN %s: flush: %s", one->lun->config->name,
				  err_name(one->req.err));
	}
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
	pthread_mutex_lock(&flush->lock);
	all = flush_wait(flush, timeout_ms);
	outcome_log(flush);
	pthread_mutex_unlock(&flush->lock);
	if (all)
		flush_destroy(flush);
	return all;
}
