#include "tests/bench/memenv.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "backing/volume/pool.h"
#include "compress/codec.h"

uint64_t clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static struct memenv *mem_of(struct venv *env)
{
	return container_of(env, struct memenv, env);
}

static void submit(struct venv *env, struct vdev_io *io)
{
	list_init(&io->link);
	list_add_tail(&mem_of(env)->ios, &io->link);
}

static void run_job(struct venv *env, struct venv_job *job)
{
	list_init(&job->link);
	list_add_tail(&mem_of(env)->jobs, &job->link);
}

static uint64_t now_ns(struct venv *env)
{
	(void)env;
	return clock_ns();
}

static void set_timer(struct venv *env, uint64_t at_ns)
{
	mem_of(env)->timer_ns = at_ns;
}

static void kick(struct venv *env)
{
	mem_of(env)->kicked = true;
}

static void randomise(struct venv *env, void *out, size_t len)
{
	struct memenv *mem = mem_of(env);
	uint8_t *b = out;

	for (size_t i = 0; i < len; i++) {
		mem->rng = mem->rng * 6364136223846793005u + 1442695040888963407u;
		b[i] = (uint8_t)(mem->rng >> 56);
	}
}

static void copy(struct memenv *mem, const struct vdev_io *io)
{
	uint64_t off = io->off;

	for (uint32_t i = 0; i < io->iovcnt; i++) {
		assert(io->iov[i].iov_len <= mem->env.device_len - off);
		if (io->op == VDEV_WRITE)
			memcpy(mem->memory + off, io->iov[i].iov_base, io->iov[i].iov_len);
		else
			memcpy(io->iov[i].iov_base, mem->memory + off, io->iov[i].iov_len);
		off += io->iov[i].iov_len;
	}
}

static void perform(struct memenv *mem, struct vdev_io *io)
{
	uint64_t start = clock_ns();

	io->err = 0;
	switch (io->op) {
	case VDEV_READ:
		copy(mem, io);
		mem->read += io->len;
		break;
	case VDEV_WRITE:
		copy(mem, io);
		mem->written += io->len;
		break;
	case VDEV_FLUSH: mem->flushes++; break;
	case VDEV_PUNCH: madvise(mem->memory + io->off, io->len, MADV_DONTNEED); break;
	default: break;
	}
	mem->device_ns += clock_ns() - start;
	io->done(io);
}

void memenv_turn(struct memenv *mem)
{
	struct list ios, jobs, *link;

	list_init(&ios);
	list_init(&jobs);
	list_splice(&ios, &mem->ios);
	list_splice(&jobs, &mem->jobs);
	mem->kicked = false;
	while ((link = list_pop(&jobs))) {
		struct venv_job *job = container_of(link, struct venv_job, link);
		uint64_t start = clock_ns();

		job->run(job, mem->env.workspace);
		mem->codec_ns += clock_ns() - start;
		job->done(job);
	}
	while ((link = list_pop(&ios)))
		perform(mem, container_of(link, struct vdev_io, link));
	if (mem->env.pool)
		pool_run(mem->env.pool);
	if (mem->env.pool && mem->timer_ns && clock_ns() >= mem->timer_ns) {
		mem->timer_ns = 0;
		pool_tick(mem->env.pool);
	}
}

static int prepare(struct venv *env, const struct codec_choice *choice)
{
	struct err err;

	return codec_workspace_prepare(env->workspace, choice, &err);
}

static void wait_turn(struct venv *env)
{
	struct memenv *mem = mem_of(env);

	if (list_empty(&mem->ios) && list_empty(&mem->jobs) && !mem->kicked && mem->timer_ns)
		while (clock_ns() < mem->timer_ns)
			;
	memenv_turn(mem);
}

static const struct venv_ops memenv_ops = {
	.submit = submit,
	.run_job = run_job,
	.now_ns = now_ns,
	.set_timer = set_timer,
	.kick = kick,
	.random = randomise,
	.prepare = prepare,
	.wait = wait_turn,
};

void memenv_init(struct memenv *mem, uint64_t len)
{
	*mem = (struct memenv){ .rng = 42 };
	mem->env.ops = &memenv_ops;
	mem->env.device_len = len;
	mem->env.file = true;
	mem->env.workspace = codec_workspace_open();
	list_init(&mem->ios);
	list_init(&mem->jobs);
	mem->memory = mmap(NULL, len, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (mem->memory == MAP_FAILED || !mem->env.workspace) {
		fprintf(stderr, "no memory\n");
		exit(1);
	}
}

void memenv_release(struct memenv *mem)
{
	munmap(mem->memory, mem->env.device_len);
	codec_workspace_close(mem->env.workspace);
}
