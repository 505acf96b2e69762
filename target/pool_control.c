/*
 * Operations on pools that the daemon has open: a job each, which waits for the
 * pool's home reactor, so that the control thread never does.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "target/daemon.h"
#include "target/pool_ops.h"
#include "target/pool_run.h"

struct pool_call {
	struct job job;
	struct running *run;
	struct pool_run *owner; /* not closed as long as it counts this */
	struct control_reply *reply;

	/* the thread's, from jobs_add() until done() */
	struct bk_pool *pool;
	const struct pool_op *op;
	json_t *request, *answer;
	int rc;
	struct err err;
};

int daemon_pool_status(void *owner, const json_t *request, json_t *answer, struct err *err)
{
	struct daemon *daemon = owner;
	json_t *list = json_array();

	(void)request;
	(void)err;
	list_for_each(link, &daemon->running.pools) {
		const struct pool_run *pool = container_of(link, struct pool_run, link);
		json_t *one = json_object();
		struct pool_info info;

		json_object_set_new(one, "name", control_text(pool->name));
		json_object_set_new(one, "path", control_text(pool->path));
		json_object_set_new(one, "problem",
				    pool->pool ? json_null() : control_text(pool->problem));
		if (pool->pool) {
			bk_pool_info(pool->pool, &info);
			pool_info_tell(&info, one);
		}
		json_array_append_new(list, one);
	}
	json_object_set_new(answer, "pools", list);
	return 0;
}

static int call_at_home(struct pool *engine, void *arg)
{
	struct pool_call *call = arg;

	return call->op->run(engine, call->request, call->answer, &call->err);
}

static void call_run(struct job *job)
{
	struct pool_call *call = container_of(job, struct pool_call, job);

	call->rc = bk_pool_call(call->pool, call_at_home, call);
	if (call->rc < 0 && call->err.text[0] == '\0')
		err_set(&call->err, -call->rc, "the pool could not do it: %s", err_name(-call->rc));
}

/* A LUN without a size has that of its volume. */
static void lun_follow(struct pool_call *call)
{
	const char *name = pool_request_text(call->request, "volume");

	list_for_each(link, &call->run->luns) {
		struct lun_run *lun = container_of(link, struct lun_run, link);

		if (!name || !lun->config ||
		    lun->config != pool_op_lun(call->run->config, call->owner->name, name))
			continue;
		lun->resize = true;
		lun_run_resize(call->run, lun);
	}
}

static void call_done(struct job *job)
{
	struct pool_call *call = container_of(job, struct pool_call, job);

	if (call->rc == 0 && strcmp(call->op->name, "volume-grow") == 0)
		lun_follow(call);
	control_reply_end(call->reply, call->answer, call->rc, &call->err);
	call->owner->ncalls--;
	json_decref(call->request);
	json_decref(call->answer);
	free(call);
}

static struct pool_run *pool_named(struct running *run, const char *name)
{
	list_for_each(link, &run->pools) {
		struct pool_run *pool = container_of(link, struct pool_run, link);

		if (strcmp(pool->name, name) == 0)
			return pool;
	}
	return NULL;
}

/* What may be called, or NULL with a text. */
static struct pool_run *pool_judge(struct running *run, const struct pool_op *op,
				   const json_t *request, struct err *err)
{
	const char *name = pool_request_text(request, "pool");
	struct pool_run *pool = name ? pool_named(run, name) : NULL;

	if (!pool)
		err_set(err, ENOENT, "there is no pool \"%s\"", name ? name : "");
	else if (!pool->config)
		err_set(err, EBUSY, "pool %s is being closed", name);
	else if (!pool->pool)
		err_set(err, EBUSY, "pool %s is not open: %s", name, pool->problem);
	else if (pool_op_judge(op, run->config, name, pool_request_text(request, "volume"), err) ==
		 0)
		return pool;
	return NULL;
}

int daemon_pool_begin(void *owner, const json_t *request, struct control_reply *reply,
		      struct err *err)
{
	struct running *run = &((struct daemon *)owner)->running;
	const struct pool_op *op = pool_op_find(pool_request_text(request, "command"));
	struct pool_run *pool = pool_judge(run, op, request, err);
	struct pool_call *call;

	if (!pool)
		return -EBUSY;
	call = calloc(1, sizeof(*call));
	if (!call)
		return err_set(err, ENOMEM, "no memory");
	call->run = run;
	call->owner = pool;
	call->reply = reply;
	call->pool = pool->pool;
	call->op = op;
	call->request = json_deep_copy(request);
	call->answer = json_object();
	call->job = (struct job){ .subject = pool->path, .run = call_run, .done = call_done };
	pool->ncalls++;
	jobs_add(run->jobs, &call->job);
	return 0;
}
