#include "tests/unit/quintain_test.h"

#include <fnmatch.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <CUnit/TestRun.h>

static struct {
	unsigned int passed, failed, skipped;
	char skip_reason[256]; /* of the running test; empty: not skipped */
} totals;

void test_skip(const char *format, ...)
{
	CU_pTest test = CU_get_current_test();
	va_list args;

	va_start(args, format);
	vsnprintf(totals.skip_reason, sizeof(totals.skip_reason), format, args);
	va_end(args);
	/* The way CUnit's own fatal assertions leave a test. */
	longjmp(*test->pJumpBuf, 1);
}

/* The name before the run: the last one printed is the one that crashed. */
static void test_started(const CU_pTest test, const CU_pSuite suite)
{
	(void)suite;
	totals.skip_reason[0] = '\0';
	printf("# %s\n", test->pName);
	fflush(stdout);
}

static void test_completed(const CU_pTest test, const CU_pSuite suite,
			   const CU_pFailureRecord first)
{
	(void)suite;
	for (CU_pFailureRecord f = first; f; f = f->pNext)
		printf("%s:%u: %s\n", f->strFileName, f->uiLineNumber, f->strCondition);
	if (first) {
		totals.failed++;
		printf("FAIL %s\n", test->pName);
	} else if (totals.skip_reason[0]) {
		totals.skipped++;
		printf("SKIP %s: %s\n", test->pName, totals.skip_reason);
	} else {
		totals.passed++;
		printf("ok %s\n", test->pName);
	}
	fflush(stdout);
}

static bool selected(const char *name, char **patterns)
{
	if (!*patterns)
		return true;
	for (; *patterns; patterns++)
		if (fnmatch(*patterns, name, 0) == 0)
			return true;
	return false;
}

static void require(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "CUnit: %s: %s\n", what, CU_get_error_msg());
	exit(2);
}

int test_main(int argc, char **argv, const struct test *tests, size_t ntests)
{
	const char *slash = strrchr(argv[0], '/');
	bool list = argc > 1 && strcmp(argv[1], "-l") == 0;
	CU_pSuite suite;
	size_t nselected = 0;

	require(CU_initialize_registry() == CUE_SUCCESS, "registry");
	suite = CU_add_suite(slash ? slash + 1 : argv[0], NULL, NULL);
	require(suite != NULL, "suite");
	for (size_t i = 0; i < ntests; i++) {
		if (!selected(tests[i].name, argv + 1 + list))
			continue;
		nselected++;
		if (list)
			puts(tests[i].name);
		else
			require(CU_add_test(suite, tests[i].name, tests[i].run) != NULL,
				tests[i].name);
	}
	if (nselected == 0) {
		fprintf(stderr, "%s: no such test\n", argv[0]);
		return 2;
	}
	if (!list) {
		CU_set_test_start_handler(test_started);
		CU_set_test_complete_handler(test_completed);
		require(CU_run_all_tests() == CUE_SUCCESS, "run");
		printf("%u passed, %u failed, %u skipped\n", totals.passed, totals.failed,
		       totals.skipped);
	}
	CU_cleanup_registry();
	return totals.failed ? 1 : 0;
}
