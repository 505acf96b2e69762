/* Writing groups, and flushing: what is durable. */
#include "backing/volume/staging.h"

#include <string.h>

/* ---- writes ---- */

/* Answers before anything is durable: see mutant.h. */
static void answer_early(struct group *group)
{
	struct stage *stage = group->log->pool->stage;

	list_for_each(link, &group->items) {
		struct stage_item *item = container_of(link, struct stage_item, order_link);

		if (item->command_end)
			stage_answer(stage, item->volume, item->ticket);
	}
}

static void group_written(struct vdev_io *io)
{
	struct group *group = container_of(io, struct group, io);
	struct log *log = group->log;
	struct pool *pool = log->pool;

	log->nwriting--;
	group->state = GROUP_WRITTEN;
	if (io->err && !pool_mutant(pool, MUTANT_RETRY_FLUSH))
		log_doubt(pool, "a write to the log failed");
	if (pool_mutant(pool, MUTANT_ACK_BEFORE_FLUSH))
		answer_early(group);
	log_wake(pool);
}

void group_write(struct group *group)
{
	struct log *log = group->log;
	struct pool *pool = log->pool;
	uint64_t len = (uint64_t)group->nblocks * VF_BLOCK;
	uint64_t off = (uint64_t)group->segno * pool->geometry.segment_len +
		       (uint64_t)group->off * VF_BLOCK;

	group->iov[0] = (struct iovec){ group->header, VF_BLOCK };
	group->iov[1] = (struct iovec){ group->buf, len };
	group->io = (struct vdev_io){
		.op = VDEV_WRITE,
		.off = group->opens ? off - VF_BLOCK : off,
		.len = group->opens ? len + VF_BLOCK : len,
		.iov = group->opens ? group->iov : group->iov + 1,
		.iovcnt = group->opens ? 2 : 1,
		.done = group_written,
	};
	group->state = GROUP_WRITING;
	log->nwriting++;
	pool->env->ops->submit(pool->env, &group->io);
}

uint64_t log_complete(const struct log *log)
{
	bool gaps = pool_mutant(log->pool, MUTANT_DURABLE_GAP);
	uint64_t complete = log->durable;

	list_for_each(link, &log->laid) {
		const struct group *group = container_of(link, struct group, link);

		if (group->state == GROUP_WRITTEN)
			complete = group->seq;
		else if (!gaps)
			break;
	}
	return complete;
}

/* ---- flushes ---- */

void log_groups_end(struct log *log)
{
	list_for_each_safe(link, &log->laid) {
		struct group *group = container_of(link, struct group, link);

		if (group->seq > log->durable)
			break;
		/* But for a mutant it is written. */
		if (group->state == GROUP_WRITTEN)
			group_end(group, 0);
	}
}

static void flushed(struct vdev_io *io)
{
	struct log *log = container_of(io, struct log, flush);
	struct pool *pool = log->pool;

	log->flushing = false;
	log_wake(pool);
	if (io->err) {
		if (!pool_mutant(pool, MUTANT_RETRY_FLUSH))
			log_doubt(pool, "a flush failed");
		log->flushes_begun--;
		return;
	}
	if (pool_mutant(pool, MUTANT_DURABLE_LATE))
		log->flush_covers = log_complete(log);
	log->flushes_ended = log->flushes_begun;
	/* It says nothing of what failed while it was in flight. */
	if (pool->read_only || log->doubt)
		return;
	if (log->flush_covers > log->durable) {
		log->durable = log->flush_covers;
		log->newest_ns = pool->env->ops->now_ns(pool->env);
	}
	log->starved = false;
	log_groups_end(log);
	fiber_queue_wake_all(&log->changed);
	stage_retry(pool);
}

bool log_flush_wanted(const struct log *log)
{
	const struct stage *stage = log->pool->stage;

	if (log->flushing)
		return false;
	if (log->flushes_wanted > log->flushes_begun)
		return true;
	if (log_complete(log) == log->durable)
		return false;
	return log->want_durable > log->durable || stage->nwaiters > 0 || log->starved ||
	       log->flush_now || stage_pressed(stage);
}

void log_flush_begin(struct pool *pool)
{
	struct log *log = pool->log;

	log->flush_covers = log_complete(log);
	log->flush_now = false;
	log->flushing = true;
	log->flushes_begun++;
	log->flush = (struct vdev_io){ .op = VDEV_FLUSH, .done = flushed };
	pool->env->ops->submit(pool->env, &log->flush);
}
