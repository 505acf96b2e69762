/* The environment of plain system calls, and waiting for an operation. */
#include "backing/volume/sync.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backing/volume/io.h"
#include "base/fiber.h"
#include "tests/unit/quintain_test.h"

#define LEN (1u << 20)

static char path[64];
static int fd;
static struct venv *env;
static _Alignas(4096) uint8_t block[8192];
static struct err err;

static void setup(bool read_only)
{
	snprintf(path, sizeof(path), "/var/tmp/quintain-sync-XXXXXX");
	fd = mkstemp(path);
	CU_ASSERT_FATAL(fd >= 0);
	CU_ASSERT_EQUAL(ftruncate(fd, LEN), 0);
	env = sync_env_open(fd, path, read_only, &err);
	CU_ASSERT_PTR_NOT_NULL_FATAL(env);
}

static void teardown(void)
{
	sync_env_close(env);
	close(fd);
	unlink(path);
}

static void sync_reads_what_was_written(void)
{
	setup(false);
	CU_ASSERT_EQUAL(env->device_len, LEN);
	CU_ASSERT(env->file);
	memset(block, 0x5a, sizeof(block));
	CU_ASSERT_EQUAL(vdev_do(env, VDEV_WRITE, 4096, block, 8192), 0);
	CU_ASSERT_EQUAL(vdev_do(env, VDEV_FLUSH, 0, NULL, 0), 0);
	memset(block, 0, sizeof(block));
	CU_ASSERT_EQUAL(vdev_do(env, VDEV_READ, 8192, block, 8192), 0);
	CU_ASSERT_EQUAL(block[4095], 0x5a);
	CU_ASSERT_EQUAL(block[4096], 0);
	teardown();
}

static void done_nothing(struct vdev_io *io)
{
	(void)io;
}

static void sync_moves_many_buffers(void)
{
	static _Alignas(4096) uint8_t data[200][4096];
	struct iovec iov[200];
	struct vdev_io io = {
		.op = VDEV_WRITE,
		.len = sizeof(data),
		.iov = iov,
		.iovcnt = 200,
		.done = done_nothing,
	};

	setup(false);
	for (unsigned int i = 0; i < 200; i++) {
		memset(data[i], (int)i, sizeof(data[i]));
		iov[i] = (struct iovec){ data[i], sizeof(data[i]) };
	}
	env->ops->submit(env, &io);
	env->ops->wait(env);
	CU_ASSERT_EQUAL(io.err, 0);
	memset(data, 0xff, sizeof(data));
	io.op = VDEV_READ;
	env->ops->submit(env, &io);
	env->ops->wait(env);
	CU_ASSERT_EQUAL(io.err, 0);
	for (unsigned int i = 0; i < 200; i++)
		CU_ASSERT(data[i][0] == (uint8_t)i && data[i][4095] == (uint8_t)i);
	teardown();
}

static void sync_short_read_is_an_error(void)
{
	setup(false);
	CU_ASSERT_EQUAL(vdev_do(env, VDEV_READ, LEN, block, 4096), -EIO);
	CU_ASSERT_EQUAL(vdev_do(env, VDEV_READ, LEN - 4096, block, 8192), -EIO);
	teardown();
}

static unsigned int ndone;

static void count_done(struct vdev_io *io)
{
	(void)io;
	ndone++;
}

static void sync_tells_of_completions_in_wait(void)
{
	struct vdev_io io = { .op = VDEV_FLUSH, .done = count_done };

	setup(false);
	ndone = 0;
	env->ops->submit(env, &io);
	CU_ASSERT_EQUAL(ndone, 0);
	env->ops->wait(env);
	CU_ASSERT_EQUAL(ndone, 1);
	teardown();
}

static bool job_ran, job_done;

static void job_run(struct venv_job *job, struct codec_workspace *workspace)
{
	(void)job;
	job_ran = workspace != NULL;
}

static void job_finish(struct venv_job *job)
{
	(void)job;
	job_done = job_ran;
}

static void sync_runs_jobs_itself(void)
{
	struct venv_job job = { .run = job_run, .done = job_finish };

	setup(false);
	CU_ASSERT_EQUAL(env->nworkers, 0);
	job_ran = job_done = false;
	env->ops->run_job(env, &job);
	CU_ASSERT(!job_done);
	env->ops->wait(env);
	CU_ASSERT(job_done);
	teardown();
}

static void sync_gives_space_back(void)
{
	struct stat before, after;

	setup(false);
	CU_ASSERT_EQUAL(vdev_do(env, VDEV_ALLOCATE, 0, NULL, LEN), 0);
	fstat(fd, &before);
	if (before.st_blocks * 512 < (blkcnt_t)LEN) {
		teardown();
		test_skip("no fallocate() on /var/tmp");
	}
	CU_ASSERT_EQUAL(vdev_do(env, VDEV_PUNCH, 65536, NULL, LEN / 2), 0);
	fstat(fd, &after);
	CU_ASSERT(after.st_blocks < before.st_blocks);
	CU_ASSERT_EQUAL(after.st_size, LEN);
	teardown();
}

static void sync_grows_a_file(void)
{
	setup(false);
	CU_ASSERT_EQUAL(vdev_do(env, VDEV_GROW, 2 * LEN, NULL, 0), 0);
	CU_ASSERT_EQUAL(env->device_len, 2 * LEN);
	CU_ASSERT_EQUAL(vdev_do(env, VDEV_READ, 2 * LEN - 4096, block, 4096), 0);
	CU_ASSERT_EQUAL(vdev_do(env, VDEV_GROW, LEN, NULL, 0), -EINVAL);
	CU_ASSERT_EQUAL(env->device_len, 2 * LEN);
	teardown();
}

static void sync_read_only_changes_nothing(void)
{
	setup(true);
	CU_ASSERT_EQUAL(vdev_do(env, VDEV_READ, 0, block, 4096), 0);
	CU_ASSERT_EQUAL(vdev_do(env, VDEV_WRITE, 0, block, 4096), -EROFS);
	CU_ASSERT_EQUAL(vdev_do(env, VDEV_FLUSH, 0, NULL, 0), 0);
	CU_ASSERT_EQUAL(vdev_do(env, VDEV_PUNCH, 0, NULL, 4096), -EROFS);
	CU_ASSERT_EQUAL(vdev_do(env, VDEV_GROW, 2 * LEN, NULL, 0), -EROFS);
	teardown();
}

static void sync_refuses_what_is_no_disk(void)
{
	int pipes[2];

	CU_ASSERT_EQUAL_FATAL(pipe(pipes), 0);
	CU_ASSERT_PTR_NULL(sync_env_open(pipes[0], "the pipe", false, &err));
	CU_ASSERT_STRING_EQUAL(err.text, "the pipe is neither a file nor a block device");
	close(pipes[0]);
	close(pipes[1]);
}

static void sync_waits_for_its_timer(void)
{
	uint64_t at;

	setup(false);
	at = env->ops->now_ns(env) + 20000000;
	env->ops->set_timer(env, at);
	env->ops->wait(env);
	CU_ASSERT(env->ops->now_ns(env) >= at);
	env->ops->kick(env);
	env->ops->wait(env); /* at once */
	teardown();
}

static void sync_gives_random_bytes(void)
{
	uint8_t a[600] = { 0 }, b[600] = { 0 };

	setup(false);
	env->ops->random(env, a, sizeof(a));
	env->ops->random(env, b, sizeof(b));
	CU_ASSERT_NOT_EQUAL(memcmp(a, b, 16), 0);
	CU_ASSERT_NOT_EQUAL(memcmp(a + 584, b + 584, 16), 0);
	teardown();
}

static int in_fiber;
static bool others_ran;

static void reader(void *arg)
{
	(void)arg;
	in_fiber = vdev_do(env, VDEV_READ, 0, block, 4096);
	CU_ASSERT(others_ran);
}

static void other(void *arg)
{
	(void)arg;
	others_ran = true;
}

static void vdev_do_lets_other_fibers_run(void)
{
	struct fiber_set *set = fiber_set_create(2);

	setup(false);
	in_fiber = 1;
	others_ran = false;
	fiber_start(set, reader, NULL);
	fiber_start(set, other, NULL);
	while (fiber_count(set) > 0) {
		fiber_run(set);
		if (fiber_count(set) > 0)
			env->ops->wait(env);
	}
	CU_ASSERT_EQUAL(in_fiber, 0);
	fiber_set_destroy(set);
	teardown();
}

static const struct test tests[] = {
	TEST(sync_reads_what_was_written),
	TEST(sync_moves_many_buffers),
	TEST(sync_short_read_is_an_error),
	TEST(sync_tells_of_completions_in_wait),
	TEST(sync_runs_jobs_itself),
	TEST(sync_gives_space_back),
	TEST(sync_grows_a_file),
	TEST(sync_read_only_changes_nothing),
	TEST(sync_refuses_what_is_no_disk),
	TEST(sync_waits_for_its_timer),
	TEST(sync_gives_random_bytes),
	TEST(vdev_do_lets_other_fibers_run),
};

TEST_MAIN(tests)
