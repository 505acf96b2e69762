/*
 * Checkpoints: where a recovery begins.
 *
 * Fuzzy: pages are copied one after another while the log goes on; each says up
 * to which seq it is applied, and replay skips what it has.  The root is written
 * when all of that is durable, then a superblock names it.  Two are kept.
 *
 * Changes of live counts that the checkpoint's own pages make are listed in its
 * root and take effect in memory after it is written.
 */
#ifndef BACKING_VOLUME_CHECKPOINT_H
#define BACKING_VOLUME_CHECKPOINT_H

#include "backing/volume/internal.h"

int checkpointer_open(struct pool *pool, struct err *err);
void checkpointer_close(struct pool *pool);
void checkpointer_tick(struct pool *pool);
/* One is wanted soon (space, window). */
void checkpoint_want(struct pool *pool);
/* In a fiber: one whole checkpoint, begun later than now; 0 or -errno.  After an
 * error that does not fence the pool (-ENOSPC) the next one makes up for it. */
int checkpoint_run(struct pool *pool);
/* From tree_checkpoint(): a page of stored units at addr is born (dies). */
void checkpoint_change(struct pool *pool, uint64_t addr, uint32_t stored, bool born);
/* The superblock is being changed: nobody else may. */
bool checkpoint_naming(const struct pool *pool);
/* Replay positions of the newest and the older one. */
uint64_t checkpoint_replay(const struct pool *pool);
uint64_t checkpoint_older_replay(const struct pool *pool);
uint64_t checkpoint_number(const struct pool *pool); /* of the newest */
/*
 * In a fiber, at opening, when the segment table is loaded: goes on from the root
 * that pool->super.root[0] names (where the newer one is damaged, recovery puts
 * the older one there).  Then the replay position of the older one, if it can be
 * read.
 */
int checkpoint_load(struct pool *pool, const struct vf_root *root, struct err *err);
void checkpoint_loaded_older(struct pool *pool, uint64_t replay_seq);
/* Bytes of log that a recovery may have to read again, at most. */
uint64_t checkpoint_window(const struct pool *pool);
/* In a fiber: none runs, none begins (quiesce). */
void checkpointer_stop(struct pool *pool);

#endif
