/*
 * One operation on the device, waited for.
 *
 * Control path of the pool's thread: in a fiber others run meanwhile, outside of
 * one the environment must be able to wait (env.h).
 */
#ifndef BACKING_VOLUME_IO_H
#define BACKING_VOLUME_IO_H

#include "backing/volume/env.h"

/* off, len and buf as in struct vdev_io; buf NULL but for READ and WRITE.
 * 0 or -errno. */
int vdev_do(struct venv *env, uint8_t op, uint64_t off, void *buf, uint64_t len);

#endif
