#include "backing/pool_env.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <time.h>
#include <unistd.h>

#include "backing/volume/pool.h"
#include "compress/codec.h"

struct pool_env {
	struct venv env;
	struct reactor *reactor;
	struct crew *crew;
	int fd;
	bool in_memory; /* tmpfs: never waits for a disk, and not for the ring's threads */
	uint32_t in_flight;
	struct list made;	  /* struct vdev_io: done inline, to be told */
	struct reactor_work work; /* tells them, and runs the pool */
	struct reactor_timer timer;
};

/* What an operation carries while it is in flight. */
struct carried {
	struct reactor_op op;
	struct pool_env *env;
};
static_assert(sizeof(struct carried) <= sizeof(((struct vdev_io *)0)->private),
	      "private area of an operation");

static struct pool_env *env_of(struct venv *env)
{
	return container_of(env, struct pool_env, env);
}

/* ---- operations ---- */

static int outcome(const struct vdev_io *io, int res)
{
	if (res < 0) {
		/* Only a hint to the host: where it cannot, nothing is lost. */
		if ((io->op == VDEV_PUNCH || io->op == VDEV_ALLOCATE) &&
		    (res == -EOPNOTSUPP || res == -ENOSYS))
			return 0;
		return -res;
	}
	if ((io->op == VDEV_READ || io->op == VDEV_WRITE) && (uint64_t)res != io->len)
		return EIO;
	return 0;
}

static void op_done(struct reactor_op *op, int res)
{
	struct carried *carried = container_of(op, struct carried, op);
	struct vdev_io *io = container_of(carried, struct vdev_io, private);
	struct pool_env *env = carried->env;

	env->in_flight--;
	io->err = outcome(io, res);
	reactor_defer(env->reactor, &env->work);
	io->done(io);
}

/* A new length, durably: rare, and no operation of the ring. */
struct growth {
	struct venv_job job;
	struct pool_env *env;
	struct vdev_io *io;
};

static void grow_run(struct venv_job *job, struct codec_workspace *workspace)
{
	struct growth *growth = container_of(job, struct growth, job);
	int fd = growth->env->fd;

	(void)workspace;
	growth->io->err = ftruncate(fd, (off_t)growth->io->off) != 0 || fsync(fd) != 0 ? errno : 0;
}

static void grow_done(struct venv_job *job, void *arg)
{
	struct growth *growth = container_of(job, struct growth, job);
	struct pool_env *env = arg;
	struct vdev_io *io = growth->io;

	free(growth);
	env->in_flight--;
	if (!io->err)
		env->env.device_len = io->off;
	reactor_defer(env->reactor, &env->work);
	io->done(io);
}

static void grow(struct pool_env *env, struct vdev_io *io)
{
	struct growth *growth = calloc(1, sizeof(*growth));

	if (!growth) {
		env->in_flight--;
		io->err = ENOMEM;
		list_init(&io->link);
		list_add_tail(&env->made, &io->link);
		reactor_defer(env->reactor, &env->work);
		return;
	}
	growth->job.run = grow_run;
	growth->env = env;
	growth->io = io;
	crew_run(env->crew, &growth->job, env->reactor, grow_done, env);
}

/* Copies of memory, as the file system is: at once. */
static void make_inline(struct pool_env *env, struct vdev_io *io)
{
	ssize_t n = 0;

	if (io->op == VDEV_READ)
		n = preadv(env->fd, io->iov, (int)io->iovcnt, (off_t)io->off);
	else if (io->op == VDEV_WRITE)
		n = pwritev(env->fd, io->iov, (int)io->iovcnt, (off_t)io->off);
	io->err = outcome(io, n < 0 ? -errno : (int)n);
	env->in_flight--;
	list_init(&io->link);
	list_add_tail(&env->made, &io->link);
	reactor_defer(env->reactor, &env->work);
}

static void op_submit(struct venv *venv, struct vdev_io *io)
{
	struct pool_env *env = env_of(venv);
	struct carried *carried = (struct carried *)io->private;
	struct io_uring_sqe *sqe;

	env->in_flight++;
	if (io->op == VDEV_GROW) {
		grow(env, io);
		return;
	}
	if (env->in_memory && io->op <= VDEV_FLUSH) {
		make_inline(env, io);
		return;
	}
	*carried = (struct carried){ .op = { op_done }, .env = env };
	sqe = reactor_sqe(env->reactor, &carried->op);
	switch (io->op) {
	case VDEV_READ: io_uring_prep_readv(sqe, env->fd, io->iov, io->iovcnt, io->off); break;
	case VDEV_WRITE: io_uring_prep_writev(sqe, env->fd, io->iov, io->iovcnt, io->off); break;
	case VDEV_FLUSH: io_uring_prep_fsync(sqe, env->fd, IORING_FSYNC_DATASYNC); break;
	case VDEV_ALLOCATE: io_uring_prep_fallocate(sqe, env->fd, 0, io->off, io->len); break;
	default:
		io_uring_prep_fallocate(sqe, env->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
					io->off, io->len);
	}
}

/* ---- the rest ---- */

static void job_done(struct venv_job *job, void *arg)
{
	struct pool_env *env = arg;

	env->in_flight--;
	reactor_defer(env->reactor, &env->work);
	job->done(job);
}

static void job_run(struct venv *venv, struct venv_job *job)
{
	struct pool_env *env = env_of(venv);

	env->in_flight++;
	crew_run(env->crew, job, env->reactor, job_done, env);
}

static uint64_t now_ns(struct venv *venv)
{
	return reactor_now_ns(env_of(venv)->reactor);
}

static uint64_t time_s(struct venv *venv)
{
	(void)venv;
	return (uint64_t)time(NULL);
}

static void set_timer(struct venv *venv, uint64_t at_ns)
{
	struct pool_env *env = env_of(venv);
	uint64_t now = reactor_now_ns(env->reactor);

	if (at_ns == 0)
		reactor_timer_cancel(env->reactor, &env->timer);
	else
		reactor_timer_arm(env->reactor, &env->timer,
				  at_ns > now ? (at_ns - now) / 1000000 : 0);
}

static void timer_fired(struct reactor_timer *timer)
{
	struct pool_env *env = container_of(timer, struct pool_env, timer);

	if (env->env.pool)
		pool_tick(env->env.pool);
}

static void kick(struct venv *venv)
{
	pool_env_kick(env_of(venv));
}

void pool_env_kick(struct pool_env *env)
{
	reactor_defer(env->reactor, &env->work);
}

static void randomise(struct venv *venv, void *out, size_t len)
{
	uint8_t *at = out;

	(void)venv;
	while (len) {
		ssize_t n = getrandom(at, len, 0);

		if (n > 0) {
			at += n;
			len -= (size_t)n;
		}
	}
}

static int prepare(struct venv *venv, const struct codec_choice *choice)
{
	struct err err;
	int rc = codec_workspace_prepare(venv->workspace, choice, &err);

	return rc ? rc : crew_prepare(env_of(venv)->crew, choice);
}

static const struct venv_ops pool_env_ops = {
	.submit = op_submit,
	.run_job = job_run,
	.now_ns = now_ns,
	.time_s = time_s,
	.set_timer = set_timer,
	.kick = kick,
	.random = randomise,
	.prepare = prepare,
};

static void work_run(struct reactor_work *work)
{
	struct pool_env *env = container_of(work, struct pool_env, work);
	struct list made, *link;

	list_init(&made);
	list_splice(&made, &env->made);
	while ((link = list_pop(&made))) {
		struct vdev_io *io = container_of(link, struct vdev_io, link);

		io->done(io);
	}
	if (env->env.pool)
		pool_run(env->env.pool);
}

static bool file_in_memory(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC);
}

struct pool_env *pool_env_create(int fd, const struct venv *like, struct reactor *home,
				 struct crew *crew, struct err *err)
{
	struct pool_env *env = calloc(1, sizeof(*env));

	if (env)
		env->env.workspace = codec_workspace_open();
	if (!env || !env->env.workspace) {
		free(env);
		err_set(err, ENOMEM, "no memory");
		return NULL;
	}
	env->env.ops = &pool_env_ops;
	env->env.device_len = like->device_len;
	env->env.file = like->file;
	env->env.read_only = like->read_only;
	env->env.nworkers = crew_size(crew);
	env->reactor = home;
	env->crew = crew;
	env->fd = fd;
	env->in_memory = like->file && file_in_memory(fd);
	list_init(&env->made);
	reactor_work_init(&env->work, work_run);
	reactor_timer_init(&env->timer, timer_fired);
	return env;
}

void pool_env_destroy(struct pool_env *env)
{
	if (!env)
		return;
	codec_workspace_close(env->env.workspace);
	free(env);
}

struct venv *pool_env_venv(struct pool_env *env)
{
	return &env->env;
}

int pool_env_attach(struct pool_env *env)
{
	return reactor_timer_reserve(env->reactor, 1);
}

void pool_env_detach(struct pool_env *env)
{
	reactor_timer_cancel(env->reactor, &env->timer);
	reactor_timer_release(env->reactor, 1);
	reactor_work_cancel(&env->work);
}

uint32_t pool_env_in_flight(const struct pool_env *env)
{
	return env->in_flight;
}
