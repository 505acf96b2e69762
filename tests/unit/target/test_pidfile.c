/* The pidfile tells a daemon that lives from one that crashed. */
#include "tests/unit/quintain_test.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "target/pidfile.h"
#include "tests/unit/target/scratch.h"

static void pidfile_holds_our_number_and_goes_with_us(void)
{
	char path[PATH_MAX];
	long pid = 0;
	FILE *f;
	int fd;

	scratch_path("own", path, sizeof(path));
	fd = pidfile_create(path, NULL);
	CU_ASSERT_FATAL(fd >= 0);
	f = fopen(path, "r");
	CU_ASSERT_EQUAL(fscanf(f, "%ld", &pid), 1);
	fclose(f);
	CU_ASSERT_EQUAL(pid, (long)getpid());
	pidfile_remove(path, fd);
	CU_ASSERT_EQUAL(access(path, F_OK), -1);
}

static void pidfile_of_a_living_daemon_is_refused(void)
{
	char path[PATH_MAX];
	struct err err;
	int fd;

	scratch_path("taken", path, sizeof(path));
	fd = pidfile_create(path, NULL);
	CU_ASSERT_EQUAL(pidfile_create(path, &err), -EEXIST);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "alive"));
	CU_ASSERT_EQUAL(access(path, F_OK), 0);
	pidfile_remove(path, fd);
}

static void pidfile_of_a_crashed_daemon_is_taken_over(void)
{
	char path[PATH_MAX];
	int fd;

	scratch_write("stale", "1\n");
	scratch_path("stale", path, sizeof(path));
	fd = pidfile_create(path, NULL);
	CU_ASSERT(fd >= 0);
	pidfile_remove(path, fd);
}

static const struct test tests[] = {
	TEST(pidfile_holds_our_number_and_goes_with_us),
	TEST(pidfile_of_a_living_daemon_is_refused),
	TEST(pidfile_of_a_crashed_daemon_is_taken_over),
};
TEST_MAIN(tests)
