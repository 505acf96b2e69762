/* Jobs may hang; who gave them does not, and neither do other jobs. */
#include "base/job.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/unit/quintain_test.h"

#define NJOBS 100

/* A job that ends at once, or when the gate is opened. */
struct work {
	struct job job;
	bool hangs;
};

static struct jobs *jobs;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gate = PTHREAD_COND_INITIALIZER;
static bool gate_open;
static unsigned int nstarted, ndone;
static pthread_t done_on;

static void work_run(struct job *job)
{
	pthread_mutex_lock(&lock);
	nstarted++;
	while (container_of(job, struct work, job)->hangs && !gate_open)
		pthread_cond_wait(&gate, &lock);
	pthread_mutex_unlock(&lock);
}

static void work_done(struct job *job)
{
	ndone++;
	done_on = pthread_self();
	free(container_of(job, struct work, job));
}

static void begun(void)
{
	jobs = jobs_create();
	CU_ASSERT_PTR_NOT_NULL_FATAL(jobs);
	gate_open = false;
	nstarted = ndone = 0;
}

static void add(const char *subject, bool hangs)
{
	struct work *work = calloc(1, sizeof(*work));

	CU_ASSERT_PTR_NOT_NULL_FATAL(work);
	work->job = (struct job){ .subject = subject, .run = work_run, .done = work_done };
	work->hangs = hangs;
	jobs_add(jobs, &work->job);
}

/* Lets the hanging ones go on. */
static void ended(void)
{
	pthread_mutex_lock(&lock);
	gate_open = true;
	pthread_cond_broadcast(&gate);
	pthread_mutex_unlock(&lock);
	CU_ASSERT(jobs_drain(jobs, 5000));
	jobs_destroy(jobs);
}

static void job_is_done_on_the_owners_thread(void)
{
	begun();
	add("a", false);
	CU_ASSERT(jobs_wait(jobs, 5000));
	CU_ASSERT_EQUAL(ndone, 1);
	CU_ASSERT(pthread_equal(done_on, pthread_self()));
	ended();
}

static void end_of_a_job_makes_the_descriptor_readable(void)
{
	struct pollfd fd;

	begun();
	fd = (struct pollfd){ .fd = jobs_fd(jobs), .events = POLLIN };
	CU_ASSERT_EQUAL(poll(&fd, 1, 0), 0);
	add("a", false);
	CU_ASSERT_EQUAL(poll(&fd, 1, 5000), 1);
	while (ndone == 0)
		jobs_reap(jobs);
	CU_ASSERT_EQUAL(poll(&fd, 1, 0), 0);
	ended();
}

static void hanging_job_is_waited_for_no_longer_than_said(void)
{
	begun();
	add("a", true);
	CU_ASSERT_FALSE(jobs_wait(jobs, 50));
	CU_ASSERT_EQUAL(ndone, 0);
	ended();
	CU_ASSERT_EQUAL(ndone, 1);
}

static void stuck_job_is_not_waited_for_at_all(void)
{
	begun();
	add("a", true);
	CU_ASSERT_FALSE(jobs_is_stuck(jobs, "a"));
	/* It would be a minute if it were. */
	CU_ASSERT_FALSE(jobs_wait(jobs, 60000));
	CU_ASSERT(jobs_is_stuck(jobs, "a"));
	CU_ASSERT_FALSE(jobs_is_stuck(jobs, "b"));
	ended();
}

/* However many hang, and there are more of them than threads at work. */
static void others_go_on_while_jobs_hang(void)
{
	begun();
	for (unsigned int i = 0; i < NJOBS; i++)
		add("hangs", true);
	add("quick", false);
	for (unsigned int tries = 0; tries < 100 && ndone == 0; tries++)
		jobs_wait(jobs, 50);
	CU_ASSERT_EQUAL(ndone, 1);
	CU_ASSERT(jobs_has(jobs, "hangs"));
	CU_ASSERT_FALSE(jobs_has(jobs, "quick"));
	ended();
	CU_ASSERT_EQUAL(ndone, NJOBS + 1);
	CU_ASSERT_EQUAL(nstarted, NJOBS + 1);
}

static void wait_ends_when_the_daemon_is_to_end(void)
{
	sigset_t set, old;
	int number;

	begun();
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &set, &old);
	kill(getpid(), SIGTERM);
	add("a", true);
	CU_ASSERT_FALSE(jobs_wait(jobs, 60000));
	CU_ASSERT_FALSE(jobs_is_stuck(jobs, "a"));
	sigwait(&set, &number);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	ended();
}

static void count(const char *subject, void *arg)
{
	(void)subject;
	++*(unsigned int *)arg;
}

static void pending_jobs_can_be_named(void)
{
	unsigned int n = 0;

	begun();
	add("a", true);
	add("b", true);
	jobs_each(jobs, count, &n);
	CU_ASSERT_EQUAL(n, 2);
	ended();
}

static const struct test tests[] = {
	TEST(job_is_done_on_the_owners_thread),
	TEST(end_of_a_job_makes_the_descriptor_readable),
	TEST(hanging_job_is_waited_for_no_longer_than_said),
	TEST(stuck_job_is_not_waited_for_at_all),
	TEST(others_go_on_while_jobs_hang),
	TEST(wait_ends_when_the_daemon_is_to_end),
	TEST(pending_jobs_can_be_named),
};
TEST_MAIN(tests)
