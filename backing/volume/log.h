/*
 * The log (stream W): what is written is cut into groups, compressed, laid out
 * one behind the other, written, and made durable by flushes.
 *
 * durable_seq is the highest n such that the writes of all groups up to n had
 * completed when a flush, since successful, was issued.  What was staged is let
 * go, FLUSH and FUA are answered, when it is durable.
 */
#ifndef BACKING_VOLUME_LOG_H
#define BACKING_VOLUME_LOG_H

#include "backing/volume/internal.h"

int log_open(struct pool *pool, struct err *err);
void log_close(struct pool *pool);
/*
 * After recovery, in a fiber: the log goes on with group `next.seq` in the
 * successor segment given (RESERVED), whose header it writes with the new
 * incarnation.
 */
int log_start(struct pool *pool, const struct vf_place *next, uint32_t before, uint32_t successor,
	      struct err *err);

/*
 * During recovery, before the descriptors of a group take effect: it is the
 * newest, durable, and its place is remembered.
 */
void log_replayed(struct pool *pool, const struct vf_place *place, uint32_t blocks);

/* Something was staged or posted. */
void log_kick(struct pool *pool);
/* From pool_run(): does what log_kick() asked for. */
void log_run_wanted(struct pool *pool);
/* Nothing is to be done, now or at a tick. */
bool log_idle(const struct pool *pool);
/* From pool_tick(): groups that waited long enough. */
void log_tick(struct pool *pool);

/*
 * A descriptor for the next group (MOVE, LEAF_AT, DIR_AT, VOLOP): of other parts
 * of the engine.  apply is called when its group is laid out and must not wait;
 * durable (may be NULL) when it is durable, or with an error when it never will
 * be.  Bulk that it names must be flushed before (log_flush()).
 */
struct log_post {
	struct vf_desc desc; /* body_len and all else filled in */
	const void *body;    /* valid until apply has returned */
	void (*apply)(struct pool *pool, struct log_post *post, uint64_t seq, uint32_t index);
	void (*durable)(struct pool *pool, struct log_post *post, int err);
	struct list link;
	uint64_t seq; /* set before apply */
};
void log_post(struct pool *pool, struct log_post *post);

uint64_t log_seq(const struct pool *pool);     /* of the newest group laid out */
uint64_t log_durable(const struct pool *pool); /* durable_seq */
/* In a fiber: until durable_seq >= seq, asking for the flush; 0 or -errno. */
int log_wait_durable(struct pool *pool, uint64_t seq);
/* In a fiber: a group now of what is staged and posted, a marker when there is
 * nothing: a checkpoint needs a seq of its own.  Returns its seq. */
uint64_t log_cut(struct pool *pool);
/* In a fiber: until a flush that was issued after this call has succeeded; -EIO when
 * it, or a write or flush meanwhile, has failed. */
int log_flush(struct pool *pool);
/* Writes and flushes that have failed so far.  What was written before the last of
 * them and not flushed may be lost. */
uint64_t log_failures(const struct pool *pool);
/* As log_flush(), for what was written since log_failures() said so many. */
int log_flush_since(struct pool *pool, uint64_t failures);
/* A write or flush failed, of whatever part: nothing that is not durable is believed
 * any more.  The log begins anew behind what is durable, or the pool is fenced. */
void log_doubt(struct pool *pool, const char *why);
/* Where a recovery begins to read so as to see all groups from seq on. */
void log_place(const struct pool *pool, uint64_t seq, struct vf_place *out);
/* Bytes from the group of seq to the end. */
uint64_t log_window(const struct pool *pool, uint64_t seq);
/* Forgets places before seq (the older checkpoint's replay position). */
void log_forget(struct pool *pool, uint64_t seq);
/* In a fiber: everything staged is durable; other parts may go on.  Before
 * log_drain(), as long as cleaning can free segments for it. */
int log_settle(struct pool *pool);
/* In a fiber: everything staged and posted is durable and nothing in flight. */
int log_drain(struct pool *pool);

#endif
