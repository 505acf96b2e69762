/* Work that may block for ever: see job.h. */
#include "base/job.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"

/* Threads at work, those that are held up aside. */
#define THREADS_AT_WORK 16
/* A job that takes longer holds its thread up: disks take some 10 ms. */
#define HELD_UP_MS 50
/* A few paths and error texts. */
#define STACK_LEN (256u << 10)

struct jobs {
	pthread_mutex_t lock;
	pthread_cond_t changed; /* a job has ended, a thread is gone */
	struct list waiting, running, ended;
	unsigned int nthreads;
	bool short_of_threads; /* said so */
	int fd;		       /* eventfd(2) */
};

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

struct jobs *jobs_create(void)
{
	struct jobs *jobs = calloc(1, sizeof(*jobs));

	if (!jobs)
		return NULL;
	jobs->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (jobs->fd < 0) {
		free(jobs);
		return NULL;
	}
	pthread_mutex_init(&jobs->lock, NULL);
	pthread_cond_init(&jobs->changed, NULL);
	list_init(&jobs->waiting);
	list_init(&jobs->running);
	list_init(&jobs->ended);
	return jobs;
}

static bool pending(const struct jobs *jobs)
{
	return !list_empty(&jobs->waiting) || !list_empty(&jobs->running) ||
	       !list_empty(&jobs->ended);
}

void jobs_destroy(struct jobs *jobs)
{
	bool left;

	if (!jobs)
		return;
	pthread_mutex_lock(&jobs->lock);
	left = pending(jobs);
	/* Those without a job are on their way out. */
	while (!left && jobs->nthreads > 0)
		pthread_cond_wait(&jobs->changed, &jobs->lock);
	pthread_mutex_unlock(&jobs->lock);
	if (left)
		return;
	pthread_cond_destroy(&jobs->changed);
	pthread_mutex_destroy(&jobs->lock);
	close(jobs->fd);
	free(jobs);
}

/* ---- the threads ---- */

static void *thread_main(void *arg)
{
	struct jobs *jobs = arg;
	struct list *link;

	pthread_mutex_lock(&jobs->lock);
	while ((link = list_pop(&jobs->waiting)) != NULL) {
		struct job *job = container_of(link, struct job, link);
		bool first;

		job->since_ms = now_ms();
		list_add_tail(&jobs->running, link);
		pthread_mutex_unlock(&jobs->lock);
		job->run(job);
		pthread_mutex_lock(&jobs->lock);
		list_del(link);
		first = list_empty(&jobs->ended);
		list_add_tail(&jobs->ended, link);
		pthread_cond_signal(&jobs->changed);
		/* It cannot fail: a counter of a few. */
		if (first)
			(void)!eventfd_write(jobs->fd, 1);
	}
	jobs->nthreads--;
	pthread_cond_signal(&jobs->changed);
	pthread_mutex_unlock(&jobs->lock);
	return NULL;
}

static int thread_start(struct jobs *jobs)
{
	pthread_attr_t attr;
	sigset_t all, old;
	pthread_t thread;
	int rc;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_LEN);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	/* Signals are the main thread's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&thread, &attr, thread_main, jobs);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return rc;
}

/* Under the lock: as many threads as the waiting jobs need now. */
static void threads_start(struct jobs *jobs)
{
	unsigned int at_work = jobs->nthreads, nwaiting = 0;
	uint64_t now = now_ms();

	list_for_each(link, &jobs->running)
		at_work -= now - container_of(link, struct job, link)->since_ms >= HELD_UP_MS;
	list_for_each(link, &jobs->waiting)
		if (++nwaiting == THREADS_AT_WORK)
			break;
	for (; nwaiting > 0 && at_work < THREADS_AT_WORK; nwaiting--, at_work++) {
		int rc = thread_start(jobs);

		if (rc != 0) {
			if (!jobs->short_of_threads)
				log_error("no thread can be started for work that may block: %s; "
					  "it is tried again",
					  err_name(rc));
			jobs->short_of_threads = true;
			return;
		}
		jobs->nthreads++;
		jobs->short_of_threads = false;
	}
}

/* ---- the owner's side ---- */

void jobs_add(struct jobs *jobs, struct job *job)
{
	assert(job->subject && job->run && job->done);
	pthread_mutex_lock(&jobs->lock);
	job->since_ms = 0;
	list_add_tail(&jobs->waiting, &job->link);
	threads_start(jobs);
	pthread_mutex_unlock(&jobs->lock);
}

int jobs_fd(const struct jobs *jobs)
{
	return jobs->fd;
}

/* The next one that has ended. */
static struct job *ended_pop(struct jobs *jobs)
{
	struct list *link;

	pthread_mutex_lock(&jobs->lock);
	link = list_pop(&jobs->ended);
	pthread_mutex_unlock(&jobs->lock);
	return link ? container_of(link, struct job, link) : NULL;
}

void jobs_reap(struct jobs *jobs)
{
	struct job *job;
	eventfd_t count;

	pthread_mutex_lock(&jobs->lock);
	threads_start(jobs);
	pthread_mutex_unlock(&jobs->lock);
	/* Before the list is emptied: it is written when the list was empty. */
	(void)!eventfd_read(jobs->fd, &count);
	while ((job = ended_pop(jobs)) != NULL)
		job->done(job);
}

static bool end_is_wanted(void)
{
	sigset_t set;

	return sigpending(&set) == 0 &&
	       (sigismember(&set, SIGTERM) == 1 || sigismember(&set, SIGINT) == 1);
}

/* Under the lock: one that has ended, or may do so soon? */
static bool worth_waiting(const struct jobs *jobs)
{
	uint64_t now = now_ms();

	if (!list_empty(&jobs->ended) || !list_empty(&jobs->waiting))
		return true;
	list_for_each(link, &jobs->running)
		if (now - container_of(link, struct job, link)->since_ms < JOB_STUCK_MS)
			return true;
	return false;
}

/* Under the lock: until something has ended, or threads are to be looked at. */
static void wait_a_little(struct jobs *jobs)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += HELD_UP_MS * 1000000L;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	pthread_cond_clockwait(&jobs->changed, &jobs->lock, CLOCK_MONOTONIC, &until);
}

static bool reap_until(struct jobs *jobs, unsigned int timeout_ms, bool stuck_too)
{
	uint64_t deadline_ms = now_ms() + timeout_ms;
	bool none, more;

	do {
		jobs_reap(jobs);
		pthread_mutex_lock(&jobs->lock);
		none = !pending(jobs);
		more = (stuck_too ? !none : worth_waiting(jobs)) && now_ms() < deadline_ms &&
		       !end_is_wanted();
		if (more && list_empty(&jobs->ended))
			wait_a_little(jobs);
		pthread_mutex_unlock(&jobs->lock);
	} while (more);
	return none;
}

bool jobs_wait(struct jobs *jobs, unsigned int timeout_ms)
{
	return reap_until(jobs, timeout_ms, false);
}

bool jobs_drain(struct jobs *jobs, unsigned int timeout_ms)
{
	return reap_until(jobs, timeout_ms, true);
}

/* Under the lock: the first job about subject that has run for so long. */
static bool list_has(const struct list *list, const char *subject, uint64_t until_ms)
{
	list_for_each(link, list) {
		const struct job *job = container_of(link, struct job, link);

		if (job->since_ms <= until_ms && strcmp(job->subject, subject) == 0)
			return true;
	}
	return false;
}

bool jobs_has(struct jobs *jobs, const char *subject)
{
	bool has;

	pthread_mutex_lock(&jobs->lock);
	has = list_has(&jobs->waiting, subject, UINT64_MAX) ||
	      list_has(&jobs->running, subject, UINT64_MAX) ||
	      list_has(&jobs->ended, subject, UINT64_MAX);
	pthread_mutex_unlock(&jobs->lock);
	return has;
}

bool jobs_is_stuck(struct jobs *jobs, const char *subject)
{
	bool stuck;

	pthread_mutex_lock(&jobs->lock);
	stuck = list_has(&jobs->running, subject, now_ms() - JOB_STUCK_MS);
	pthread_mutex_unlock(&jobs->lock);
	return stuck;
}

void jobs_each(struct jobs *jobs, void (*fn)(const char *subject, void *arg), void *arg)
{
	const struct list *const lists[] = { &jobs->running, &jobs->waiting, &jobs->ended };

	pthread_mutex_lock(&jobs->lock);
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		list_for_each(link, lists[i])
			fn(container_of(link, struct job, link)->subject, arg);
	pthread_mutex_unlock(&jobs->lock);
}
