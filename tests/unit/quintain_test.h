/*
 * The frame of every test program: a table of tests and one macro.
 *
 *	static void be16_reads_high_byte_first(void)
 *	{
 *		CU_ASSERT_EQUAL(...);		the assertions are CUnit's
 *	}
 *
 *	static const struct test tests[] = {
 *		TEST(be16_reads_high_byte_first),
 *	};
 *	TEST_MAIN(tests)
 *
 * To add a test, add a function and its row.  A program runs all its tests, or
 * those named on the command line (shell patterns; -l lists).  It prints one
 * line per test as tests/run expects it: "ok NAME", "FAIL NAME" after one line
 * FILE:LINE per failed assertion, or "SKIP NAME: reason"; then the sum.  It
 * exits with 1 when a test failed.  Everything runs on the thread of main().
 */
#ifndef TESTS_QUINTAIN_TEST_H
#define TESTS_QUINTAIN_TEST_H

#include <stddef.h>
#include <CUnit/CUnit.h>

struct test {
	const char *name; /* subject_behaviour, a sentence of the standard */
	void (*run)(void);
};

/* clang-format off */
#define TEST(function) { #function, function }
/* clang-format on */

#define TEST_MAIN(table)                                                               \
	int main(int argc, char **argv)                                                \
	{                                                                              \
		return test_main(argc, argv, table, sizeof(table) / sizeof(table[0])); \
	}

int test_main(int argc, char **argv, const struct test *tests, size_t ntests);

/*
 * Leaves the running test, on its own thread, and counts it as skipped: for
 * what this machine cannot do (no root, no such file system).  Assertions that
 * failed before still count.
 */
_Noreturn void test_skip(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
