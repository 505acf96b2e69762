/* Waiting for operations on the device. */
#include "backing/volume/io.h"

#include <assert.h>

#include "base/fiber.h"

struct waited {
	struct vdev_io io;
	struct fiber *fiber; /* NULL: the thread itself waits */
	bool finished;
};

static void waited_done(struct vdev_io *io)
{
	struct waited *waited = container_of(io, struct waited, io);

	waited->finished = true;
	if (waited->fiber)
		fiber_wake(waited->fiber);
}

int vdev_do(struct venv *env, uint8_t op, uint64_t off, void *buf, uint64_t len)
{
	bool moves = op == VDEV_READ || op == VDEV_WRITE;
	struct iovec iov = { buf, len };
	struct waited waited = {
		.io = {
			.op = op,
			.off = off,
			.len = len,
			.iov = moves ? &iov : NULL,
			.iovcnt = moves ? 1 : 0,
			.done = waited_done,
		},
		.fiber = fiber_self(),
	};

	assert(waited.fiber || env->ops->wait);
	env->ops->submit(env, &waited.io);
	while (!waited.finished) {
		if (waited.fiber)
			fiber_wait();
		else
			env->ops->wait(env);
	}
	assert(waited.io.err >= 0);
	return -waited.io.err;
}
