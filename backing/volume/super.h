/*
 * Superblocks: where a pool begins.
 *
 * Two areas of 16 slots.  Generation g stands in area g mod 2, slot (g / 2) mod
 * 16; the highest one that is whole counts.  A write of one that is torn leaves
 * the one before, which is in the other area, and an area that is lost leaves
 * what an opening has written to both.
 *
 * In a fiber, or where the environment can wait (env.h).
 */
#ifndef BACKING_VOLUME_SUPER_H
#define BACKING_VOLUME_SUPER_H

#include "backing/volume/env.h"
#include "backing/volume/format.h"

/*
 * The newest superblock, judged.  0; -EINVAL there is none, -EUCLEAN there are
 * only damaged ones, -EOPNOTSUPP it has features that are unknown here, -EIO,
 * -ENOMEM; with a text.  *read_only: true when it may only be read, and then err
 * says why: unknown features that do not matter to readers, or a device shorter
 * than the pool.
 */
int super_read(struct venv *env, struct vf_super *out, bool *read_only, struct err *err);

/* Seals it, with the generation that it has, and writes it to its slot; no
 * flush.  0 or -errno. */
int super_write(struct venv *env, struct vf_super *super);

/* Raises the generation twice, so that both areas have it, and flushes: to make
 * a pool, and to open one.  0 or -errno. */
int super_write_both(struct venv *env, struct vf_super *super);

/*
 * Before a pool is made: the device is large enough, and nothing stands where
 * superblocks go (unless force); then there is no pool any more, durably, until
 * super_write_both().  0; -EINVAL too small, -EEXIST, -errno; with a text.
 */
int super_clear(struct venv *env, bool force, struct err *err);

#endif
