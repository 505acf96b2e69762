/* A thread that may block: see worker.h. */
#include "backing/worker.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#define STACK_LEN (128u << 10)

struct worker {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct list queue; /* of bk_req.link */
	bool stop;
	int (*run)(struct bk_req *req);
};

static void completed(struct reactor_msg *msg)
{
	struct bk_req *req = container_of(msg, struct bk_req, msg);

	bk_complete(req, req->err);
}

static void *worker_main(void *arg)
{
	struct worker *worker = arg;
	struct list *link;

	pthread_mutex_lock(&worker->lock);
	for (;;) {
		link = list_pop(&worker->queue);
		if (link) {
			struct bk_req *req = container_of(link, struct bk_req, link);

			pthread_mutex_unlock(&worker->lock);
			req->err = worker->run(req);
			req->msg.run = completed;
			reactor_send(req->channel->reactor, &req->msg);
			pthread_mutex_lock(&worker->lock);
		} else if (worker->stop) {
			break;
		} else {
			pthread_cond_wait(&worker->wake, &worker->lock);
		}
	}
	pthread_mutex_unlock(&worker->lock);
	return NULL;
}

int worker_start(struct worker **out, int (*run)(struct bk_req *req), struct err *err)
{
	struct worker *worker = calloc(1, sizeof(*worker));
	pthread_attr_t attr;
	sigset_t all, old;
	int rc;

	if (!worker)
		return err_set(err, ENOMEM, "no memory for a thread");
	pthread_mutex_init(&worker->lock, NULL);
	pthread_cond_init(&worker->wake, NULL);
	list_init(&worker->queue);
	worker->run = run;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_LEN);
	/* Signals are the main thread's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&worker->thread, &attr, worker_main, worker);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	if (rc != 0) {
		pthread_cond_destroy(&worker->wake);
		pthread_mutex_destroy(&worker->lock);
		free(worker);
		return err_set(err, rc, "a thread could not be started: %s", err_name(rc));
	}
	*out = worker;
	return 0;
}

void worker_stop(struct worker *worker)
{
	if (!worker)
		return;
	pthread_mutex_lock(&worker->lock);
	assert(list_empty(&worker->queue));
	worker->stop = true;
	pthread_cond_signal(&worker->wake);
	pthread_mutex_unlock(&worker->lock);
	pthread_join(worker->thread, NULL);
	pthread_cond_destroy(&worker->wake);
	pthread_mutex_destroy(&worker->lock);
	free(worker);
}

void worker_submit(struct worker *worker, struct bk_req *req)
{
	pthread_mutex_lock(&worker->lock);
	list_add_tail(&worker->queue, &req->link);
	pthread_cond_signal(&worker->wake);
	pthread_mutex_unlock(&worker->lock);
}
