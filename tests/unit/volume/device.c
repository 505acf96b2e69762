#include "tests/unit/volume/device.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backing/volume/sync.h"
#include "tests/unit/quintain_test.h"

static struct device *current;

static void device_submit(struct venv *env, struct vdev_io *io)
{
	struct device *device = current;

	device->ops->submit(env, io);
	device->nwrites += io->op == VDEV_WRITE;
	device->nflushes += io->op == VDEV_FLUSH;
	device->nallocations += io->op == VDEV_ALLOCATE;
	device->npunches += io->op == VDEV_PUNCH;
	if (io->op == VDEV_ALLOCATE && device->host_full)
		io->err = ENOSPC;
	if ((io->op == VDEV_READ || io->op == VDEV_WRITE) &&
	    io->off < device->bad_off + device->bad_len && io->off + io->len > device->bad_off)
		io->err = EIO;
}

static uint64_t device_now_ns(struct venv *env)
{
	return current->ops->now_ns(env) + current->ahead_ns;
}

static void device_set_timer(struct venv *env, uint64_t at_ns)
{
	current->ops->set_timer(env, at_ns ? at_ns - current->ahead_ns : 0);
}

void device_open(struct device *device, uint64_t len)
{
	*device = (struct device){ .fd = memfd_create("device", MFD_CLOEXEC) };
	CU_ASSERT_FATAL(device->fd >= 0);
	CU_ASSERT_EQUAL_FATAL(ftruncate(device->fd, (off_t)len), 0);
	device->env = sync_env_open(device->fd, "device", false, NULL);
	CU_ASSERT_PTR_NOT_NULL_FATAL(device->env);
	device->ops = device->env->ops;
	device->failing = *device->ops;
	device->failing.submit = device_submit;
	device->failing.now_ns = device_now_ns;
	device->failing.set_timer = device_set_timer;
	device_use(device);
}

void device_use(struct device *device)
{
	device->env->ops = &device->failing;
	current = device;
}

void device_close(struct device *device)
{
	sync_env_close(device->env);
	close(device->fd);
}
