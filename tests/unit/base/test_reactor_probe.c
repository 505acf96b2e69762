/* What reactor_probe() says where io_uring is not to be had. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/reactor.h"
#include "tests/unit/quintain_test.h"

/* From now on this process's calls of number fail with error. */
static int forbid(unsigned int number, unsigned int error)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return -errno;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0 ? 0 : -errno;
}

enum { CHILD_OK, CHILD_WRONG, CHILD_NO_SECCOMP };

static int probe_without(unsigned int number, unsigned int error, const char *word)
{
	struct err err;
	int rc;

	if (forbid(number, error) != 0)
		return CHILD_NO_SECCOMP;
	rc = reactor_probe(&err);
	return rc == -(int)error && strstr(err.text, word) ? CHILD_OK : CHILD_WRONG;
}

/* In a process of its own: a filter cannot be taken off. */
static void expect_explained(unsigned int number, unsigned int error, const char *word)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(probe_without(number, error, word));
	CU_ASSERT_EQUAL_FATAL(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == CHILD_NO_SECCOMP)
		test_skip("seccomp filters are not permitted here");
	CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == CHILD_OK);
}

static void reactor_probe_names_the_seccomp_profile(void)
{
	expect_explained(SYS_io_uring_setup, EPERM, "seccomp");
	expect_explained(SYS_io_uring_setup, ENOSYS, "CONFIG_IO_URING");
}

static void reactor_probe_names_the_kernel_that_is_needed(void)
{
	expect_explained(SYS_io_uring_setup, EINVAL, "6.1");
}

static void reactor_probe_names_the_limit_of_locked_memory(void)
{
	expect_explained(SYS_io_uring_setup, ENOMEM, "ulimit -l");
}

static const struct test tests[] = {
	TEST(reactor_probe_names_the_seccomp_profile),
	TEST(reactor_probe_names_the_kernel_that_is_needed),
	TEST(reactor_probe_names_the_limit_of_locked_memory),
};

TEST_MAIN(tests)
