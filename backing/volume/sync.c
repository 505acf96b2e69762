/* An environment of plain system calls. */
#include "backing/volume/sync.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "backing/volume/pool.h"

#define ALIGNMENT 4096u /* of what is asked of an environment */
#define IOV_BATCH 64u

struct sync_env {
	struct venv env;
	int fd;
	struct list ios, jobs; /* completed, not told yet */
	uint64_t timer_ns;     /* 0: none */
	bool kicked;
	bool cannot_allocate, cannot_punch;
};

static struct sync_env *sync_of(struct venv *env)
{
	return container_of(env, struct sync_env, env);
}

/* ---- operations ---- */

/* The buffers from the given byte on; returns how many. */
static int rest_of(const struct vdev_io *io, uint64_t skip, struct iovec out[IOV_BATCH])
{
	unsigned int n = 0;

	for (uint32_t i = 0; i < io->iovcnt && n < IOV_BATCH; i++) {
		if (skip >= io->iov[i].iov_len) {
			skip -= io->iov[i].iov_len;
			continue;
		}
		out[n].iov_base = (uint8_t *)io->iov[i].iov_base + skip;
		out[n++].iov_len = io->iov[i].iov_len - skip;
		skip = 0;
	}
	return (int)n;
}

static int transfer(const struct sync_env *sync, const struct vdev_io *io)
{
	struct iovec iov[IOV_BATCH];
	uint64_t moved = 0;

	while (moved < io->len) {
		int iovcnt = rest_of(io, moved, iov);
		off_t off = (off_t)(io->off + moved);
		ssize_t n = io->op == VDEV_READ ? preadv(sync->fd, iov, iovcnt, off)
						: pwritev(sync->fd, iov, iovcnt, off);

		assert(iovcnt > 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno;
		/* The end, or a part that O_DIRECT could not go on from. */
		if (n == 0 || (uint64_t)n > io->len - moved || n % 512 != 0)
			return EIO;
		moved += (uint64_t)n;
	}
	return 0;
}

/* 0, an errno, or 0 with *cannot set when the host has no such thing. */
static int host_space(const struct sync_env *sync, int mode, const struct vdev_io *io, bool *cannot)
{
	int err;

	if (*cannot)
		return 0;
	do
		err = fallocate(sync->fd, mode, (off_t)io->off, (off_t)io->len) == 0 ? 0 : errno;
	while (err == EINTR);
	*cannot = err == EOPNOTSUPP || err == ENOSYS || err == ENODEV;
	return *cannot ? 0 : err;
}

/* A block device has its length from elsewhere: here it is only looked at again. */
static int grow(struct sync_env *sync, uint64_t len)
{
	uint64_t device_len;

	if (len <= sync->env.device_len)
		return EINVAL;
	if (!sync->env.file) {
		if (ioctl(sync->fd, BLKGETSIZE64, &device_len) != 0)
			return errno;
		if (device_len < len)
			return EINVAL;
	} else if (ftruncate(sync->fd, (off_t)len) != 0 || fsync(sync->fd) != 0) {
		return errno;
	}
	sync->env.device_len = len;
	return 0;
}

static int operate(struct sync_env *sync, const struct vdev_io *io)
{
	if (sync->env.read_only && io->op != VDEV_READ && io->op != VDEV_FLUSH)
		return EROFS;
	switch ((enum vdev_op)io->op) {
	case VDEV_READ:
	case VDEV_WRITE: return transfer(sync, io);
	case VDEV_FLUSH: return fdatasync(sync->fd) == 0 ? 0 : errno;
	case VDEV_ALLOCATE:
		return sync->env.file ? host_space(sync, 0, io, &sync->cannot_allocate) : 0;
	case VDEV_PUNCH:
		return host_space(sync, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, io,
				  &sync->cannot_punch);
	case VDEV_GROW: return grow(sync, io->off);
	}
	assert(!"an operation of env.h");
	return EINVAL;
}

static void sync_submit(struct venv *env, struct vdev_io *io)
{
	struct sync_env *sync = sync_of(env);

	assert(io->op == VDEV_GROW || (io->off % ALIGNMENT == 0 && io->len % ALIGNMENT == 0));
	io->err = operate(sync, io);
	list_add_tail(&sync->ios, &io->link);
}

static void sync_run_job(struct venv *env, struct venv_job *job)
{
	job->run(job, env->workspace);
	list_add_tail(&sync_of(env)->jobs, &job->link);
}

/* ---- time and chance ---- */

static uint64_t sync_now_ns(struct venv *env)
{
	struct timespec now;

	(void)env;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void sync_set_timer(struct venv *env, uint64_t at_ns)
{
	sync_of(env)->timer_ns = at_ns;
}

static void sync_kick(struct venv *env)
{
	sync_of(env)->kicked = true;
}

static void sync_random(struct venv *env, void *out, size_t len)
{
	uint8_t *at = out;

	(void)env;
	while (len > 0) {
		ssize_t n = getrandom(at, len, 0);

		assert(n > 0 || errno == EINTR); /* the kernel has it since 3.17 */
		if (n > 0) {
			at += n;
			len -= (size_t)n;
		}
	}
}

/* ---- waiting ---- */

/* Tells what had completed when this was called; false: nothing had. */
static bool tell(struct sync_env *sync)
{
	struct list ios, jobs, *link;
	bool any = !list_empty(&sync->ios) || !list_empty(&sync->jobs);

	list_init(&ios);
	list_init(&jobs);
	list_splice(&ios, &sync->ios);
	list_splice(&jobs, &sync->jobs);
	while ((link = list_pop(&ios)) != NULL) {
		struct vdev_io *io = container_of(link, struct vdev_io, link);

		io->done(io);
	}
	while ((link = list_pop(&jobs)) != NULL) {
		struct venv_job *job = container_of(link, struct venv_job, link);

		job->done(job);
	}
	return any;
}

static void sleep_until(uint64_t at_ns)
{
	struct timespec at = {
		.tv_sec = (time_t)(at_ns / 1000000000u),
		.tv_nsec = (long)(at_ns % 1000000000u),
	};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
		;
}

static void sync_wait(struct venv *env)
{
	struct sync_env *sync = sync_of(env);
	bool run = tell(sync) || sync->kicked;

	sync->kicked = false;
	if (!run) {
		/* Else nobody would ever wake the one who waits. */
		assert(sync->timer_ns != 0);
		sleep_until(sync->timer_ns);
	}
	if (sync->timer_ns != 0 && sync_now_ns(env) >= sync->timer_ns) {
		sync->timer_ns = 0;
		if (env->pool)
			pool_tick(env->pool);
	}
	if (env->pool)
		pool_run(env->pool);
}

/* ---- life ---- */

static uint64_t sync_time_s(struct venv *env)
{
	(void)env;
	return (uint64_t)time(NULL);
}

static int sync_prepare(struct venv *env, const struct codec_choice *choice)
{
	struct err err;

	return codec_workspace_prepare(env->workspace, choice, &err);
}

static const struct venv_ops sync_ops = {
	.submit = sync_submit,
	.run_job = sync_run_job,
	.now_ns = sync_now_ns,
	.set_timer = sync_set_timer,
	.kick = sync_kick,
	.random = sync_random,
	.prepare = sync_prepare,
	.time_s = sync_time_s,
	.wait = sync_wait,
};

/* O_DIRECT, where the file system takes it and a read of ours goes through. */
static void prefer_direct(int fd)
{
	_Alignas(ALIGNMENT) uint8_t block[ALIGNMENT];
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || flags & O_DIRECT || fcntl(fd, F_SETFL, flags | O_DIRECT) != 0)
		return;
	if (pread(fd, block, sizeof(block), 0) < 0 && errno == EINVAL)
		fcntl(fd, F_SETFL, flags);
}

static int look_at(struct sync_env *sync, const char *name, struct err *err)
{
	struct stat st;

	if (fstat(sync->fd, &st) != 0)
		return err_set(err, errno, "%s: %s", name, err_name(errno));
	sync->env.file = S_ISREG(st.st_mode);
	sync->env.device_len = (uint64_t)st.st_size;
	if (sync->env.file)
		return 0;
	if (!S_ISBLK(st.st_mode))
		return err_set(err, EINVAL, "%s is neither a file nor a block device", name);
	if (ioctl(sync->fd, BLKGETSIZE64, &sync->env.device_len) != 0)
		return err_set(err, errno, "%s: its size: %s", name, err_name(errno));
	return 0;
}

struct venv *sync_env_open(int fd, const char *name, bool read_only, struct err *err)
{
	struct sync_env *sync = calloc(1, sizeof(*sync));

	if (!sync) {
		err_set(err, ENOMEM, "%s: no memory", name);
		return NULL;
	}
	sync->fd = fd;
	list_init(&sync->ios);
	list_init(&sync->jobs);
	sync->env.ops = &sync_ops;
	sync->env.read_only = read_only;
	if (look_at(sync, name, err) != 0) {
		free(sync);
		return NULL;
	}
	sync->env.workspace = codec_workspace_open();
	if (!sync->env.workspace) {
		err_set(err, ENOMEM, "%s: no memory for the codecs", name);
		free(sync);
		return NULL;
	}
	prefer_direct(fd);
	return &sync->env;
}

void sync_env_close(struct venv *env)
{
	struct sync_env *sync;

	if (!env)
		return;
	sync = sync_of(env);
	assert(list_empty(&sync->ios) && list_empty(&sync->jobs));
	codec_workspace_close(env->workspace);
	free(sync);
}
