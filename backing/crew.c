#include "backing/crew.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "compress/codec.h"

#define CREW_MAX 64

struct crew {
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct list jobs; /* struct venv_job, in order */
	unsigned int nidle;
	bool ending;
	unsigned int n;
	struct member {
		struct crew *crew;
		pthread_t thread;
		struct codec_workspace *workspace;
	} members[CREW_MAX];
};

struct errand {
	struct reactor_msg msg;
	struct reactor *reactor;
	void (*done)(struct venv_job *job, void *arg);
	void *arg;
};
static_assert(sizeof(struct errand) <= sizeof(((struct venv_job *)0)->private),
	      "private area of a job");

static pthread_mutex_t the_lock = PTHREAD_MUTEX_INITIALIZER;
static struct crew *the_crew;
static unsigned int the_users;

static struct errand *errand_of(struct venv_job *job)
{
	return (struct errand *)job->private;
}

static void *member_main(void *arg)
{
	struct member *member = arg;
	struct crew *crew = member->crew;

	pthread_mutex_lock(&crew->lock);
	for (;;) {
		struct list *link = list_pop(&crew->jobs);
		struct venv_job *job;

		if (!link) {
			if (crew->ending)
				break;
			crew->nidle++;
			pthread_cond_wait(&crew->more, &crew->lock);
			crew->nidle--;
			continue;
		}
		pthread_mutex_unlock(&crew->lock);
		job = container_of(link, struct venv_job, link);
		job->run(job, member->workspace);
		reactor_send(errand_of(job)->reactor, &errand_of(job)->msg);
		pthread_mutex_lock(&crew->lock);
	}
	pthread_mutex_unlock(&crew->lock);
	return NULL;
}

static void crew_destroy(struct crew *crew)
{
	pthread_mutex_lock(&crew->lock);
	crew->ending = true;
	pthread_cond_broadcast(&crew->more);
	pthread_mutex_unlock(&crew->lock);
	for (unsigned int i = 0; i < crew->n; i++) {
		pthread_join(crew->members[i].thread, NULL);
		codec_workspace_close(crew->members[i].workspace);
	}
	pthread_mutex_destroy(&crew->lock);
	pthread_cond_destroy(&crew->more);
	free(crew);
}

static unsigned int cpus(void)
{
	cpu_set_t set;
	int n = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;

	return n < 1 ? 1 : n > CREW_MAX ? CREW_MAX : (unsigned int)n;
}

static struct crew *crew_create(struct err *err)
{
	struct crew *crew = calloc(1, sizeof(*crew));

	if (!crew) {
		err_set(err, ENOMEM, "no memory for compressing threads");
		return NULL;
	}
	pthread_mutex_init(&crew->lock, NULL);
	pthread_cond_init(&crew->more, NULL);
	list_init(&crew->jobs);
	for (unsigned int i = 0; i < cpus(); i++) {
		struct member *member = &crew->members[i];
		int rc = ENOMEM;

		member->crew = crew;
		member->workspace = codec_workspace_open();
		if (member->workspace)
			rc = pthread_create(&member->thread, NULL, member_main, member);
		if (rc) {
			codec_workspace_close(member->workspace);
			err_set(err, rc, "no compressing threads");
			crew_destroy(crew);
			return NULL;
		}
		crew->n++;
	}
	return crew;
}

struct crew *crew_get(struct err *err)
{
	struct crew *crew;

	pthread_mutex_lock(&the_lock);
	if (!the_crew)
		the_crew = crew_create(err);
	crew = the_crew;
	if (crew)
		the_users++;
	pthread_mutex_unlock(&the_lock);
	return crew;
}

void crew_put(struct crew *crew)
{
	pthread_mutex_lock(&the_lock);
	assert(crew == the_crew && the_users > 0);
	if (--the_users == 0) {
		the_crew = NULL;
		crew_destroy(crew);
	}
	pthread_mutex_unlock(&the_lock);
}

unsigned int crew_size(const struct crew *crew)
{
	return crew->n;
}

static void errand_done(struct reactor_msg *msg)
{
	struct errand *errand = container_of(msg, struct errand, msg);

	errand->done(container_of(errand, struct venv_job, private), errand->arg);
}

void crew_run(struct crew *crew, struct venv_job *job, struct reactor *reactor,
	      void (*done)(struct venv_job *job, void *arg), void *arg)
{
	bool wake;

	*errand_of(job) = (struct errand){
		.msg = { .run = errand_done },
		.reactor = reactor,
		.done = done,
		.arg = arg,
	};
	list_init(&job->link);
	pthread_mutex_lock(&crew->lock);
	list_add_tail(&crew->jobs, &job->link);
	wake = crew->nidle > 0;
	pthread_mutex_unlock(&crew->lock);
	if (wake)
		pthread_cond_signal(&crew->more);
}

int crew_prepare(struct crew *crew, const struct codec_choice *choice)
{
	int rc = 0;

	pthread_mutex_lock(&the_lock); /* one at a time: pools have threads of their own */
	for (unsigned int i = 0; i < crew->n && !rc; i++) {
		struct err err;

		rc = codec_workspace_prepare(crew->members[i].workspace, choice, &err);
	}
	pthread_mutex_unlock(&the_lock);
	return rc;
}
