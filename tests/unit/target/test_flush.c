/* The end of the daemon flushes every store, and does not wait for a stuck one. */
#include "tests/unit/quintain_test.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "target/flush.h"
#include "tests/unit/target/fake_server.h"
#include "tests/unit/target/scratch.h"

enum outcome { FLUSHED, STUCK, CANNOT_START };

/* Serves one memory LUN behind a fault filter, and flushes it. */
static enum outcome flush_behind(const struct fault_rule *rule)
{
	struct backing_settings settings;
	struct backing *memory, *fault;
	static struct running run;
	struct config *config;
	struct scsi_lun *lun;
	char text[1024];

	log_set_level(LOG_LEVEL_ERROR);
	snprintf(text, sizeof(text),
		 "state-dir \"%s/state\" reactors 1 lun a { backend ramdisk size 1M }\n"
		 "portal-group pg { listen 127.0.0.1:1 }\n"
		 "target iqn.2026-11.org.quintain:a { portal-group pg lun 0 a }\n",
		 scratch_directory());
	config = config_parse("test.conf", text, strlen(text), false);
	if (config->nerrors > 0 || running_start(&run, config, jobs_create(), NULL) < 0 ||
	    running_apply(&run, config, NULL) < 0)
		return CANNOT_START;
	lun = container_of(run.luns.next, struct lun_run, link)->scsi;
	settings = config->luns->backing;
	if (backing_open(&settings, &memory, NULL) < 0 ||
	    fault_open(memory, rule, 1, &fault, NULL) < 0 ||
	    scsi_lun_set_backing(lun, fault, run.reactors, run.nreactors, NULL) < 0)
		return CANNOT_START;
	return luns_flush(&run, 300) ? FLUSHED : STUCK;
}

/* In a process of its own, which is left as the daemon is: without cleaning up. */
static enum outcome outcome_of(const struct fault_rule *rule)
{
	int status = 0;
	pid_t child;

	scratch_directory();
	fflush(stdout);
	child = fork();
	if (child == 0)
		_exit((int)flush_behind(rule));
	CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
	CU_ASSERT_FATAL(WIFEXITED(status));
	if (WEXITSTATUS(status) == CANNOT_START)
		test_skip("io_uring cannot be used");
	return (enum outcome)WEXITSTATUS(status);
}

static void stuck_store_is_left_after_the_time(void)
{
	struct fault_rule stuck = { .ops = 1u << BK_FLUSH, .kind = FAULT_STUCK, .nth = 1 };

	CU_ASSERT_EQUAL(outcome_of(&stuck), STUCK);
}

static void slow_store_is_waited_for(void)
{
	struct fault_rule slow = {
		.ops = 1u << BK_FLUSH, .kind = FAULT_DELAY, .nth = 1, .delay_ms = 50
	};

	CU_ASSERT_EQUAL(outcome_of(&slow), FLUSHED);
}

static void flush_that_fails_does_not_hold_up_the_end(void)
{
	struct fault_rule failing = {
		.ops = 1u << BK_FLUSH, .kind = FAULT_ERROR, .nth = 1, .err = 5
	};

	CU_ASSERT_EQUAL(outcome_of(&failing), FLUSHED);
}

static const struct test tests[] = {
	TEST(stuck_store_is_left_after_the_time),
	TEST(slow_store_is_waited_for),
	TEST(flush_that_fails_does_not_hold_up_the_end),
};
TEST_MAIN(tests)
