/* Requests: judged, handed to whom they concern, and answered from pool_run(). */
#include "backing/volume/read.h"
#include "backing/volume/stage.h"
#include "backing/volume/volumes.h"

void vreq_finish(struct vreq *req, int err)
{
	struct pool *pool = req->volume->pool;

	assert(err >= 0);
	req->err = err;
	if (list_empty(&pool->finished))
		pool->env->ops->kick(pool->env);
	list_add_tail(&pool->finished, &req->link);
}

void requests_run(struct pool *pool)
{
	struct list finished, *link;

	/* What those called finish at once is for the next round. */
	list_init(&finished);
	list_splice(&finished, &pool->finished);
	while ((link = list_pop(&finished)) != NULL) {
		struct vreq *req = container_of(link, struct vreq, link);

		req->done(req);
	}
}

static bool changes(enum vreq_op op)
{
	return op == VREQ_WRITE || op == VREQ_TRIM || op == VREQ_ZERO;
}

/* What can be answered at once; false: somebody has to do something. */
static bool answer_at_once(struct volume *volume, struct vreq *req)
{
	uint64_t nsectors = volume->settings.nsectors;

	if (changes((enum vreq_op)req->op) && volume->pool->read_only) {
		vreq_finish(req, EROFS);
		return true;
	}
	if (req->op == VREQ_FLUSH)
		return false;
	if (req->lba > nsectors || req->nsectors > nsectors - req->lba) {
		vreq_finish(req, EINVAL);
		return true;
	}
	if (req->nsectors == 0) {
		vreq_finish(req, 0);
		return true;
	}
	return false;
}

void volume_submit(struct volume *volume, struct vreq *req)
{
	struct pool *pool = volume->pool;

	assert(req->done && !pool->at_rest);
	req->volume = volume;
	req->err = 0;
	req->bad_lba = req->extent = 0;
	req->mapped = false;
	list_init(&req->link);
	if (answer_at_once(volume, req))
		return;
	switch (req->op) {
	case VREQ_READ:
	case VREQ_STATUS: read_submit(pool, req); break;
	case VREQ_FLUSH: stage_flush(pool, req); break;
	default: stage_submit(pool, req); break;
	}
}
