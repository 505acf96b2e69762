/*
 * A device in memory behind the synchronous environment, which fails where told.
 */
#ifndef TESTS_UNIT_VOLUME_DEVICE_H
#define TESTS_UNIT_VOLUME_DEVICE_H

#include "backing/volume/env.h"

struct device {
	struct venv *env;
	int fd; /* its bytes, for pread() and pwrite() */
	const struct venv_ops *ops;
	struct venv_ops failing;
	uint64_t bad_off, bad_len; /* transfers that touch this fail with EIO */
	bool host_full;		   /* VDEV_ALLOCATE fails with ENOSPC */
	uint64_t ahead_ns;	   /* of the real clock */
	unsigned int nwrites, nflushes, nallocations, npunches;
};

void device_open(struct device *device, uint64_t len);
void device_close(struct device *device);
/* Of several, or after one was moved: whose faults count. */
void device_use(struct device *device);

#endif
