/*
 * A test of the tester: the enumerator passes a right store and notices what is
 * wrong with broken ones (fake.c).
 */
#include <stdio.h>
#include <string.h>

#include "base/list.h"
#include "tests/crash/mutants.h"
#include "tests/crash/runner.h"

static struct outcome seen;

static void says(const struct task *task)
{
	const struct outcome *out = task->plan.outcome;

	seen.npoints += out->npoints;
	seen.nlost += out->nlost;
	seen.nresurrected += out->nresurrected;
	seen.nother += out->nother;
	if (out->text[0] && !seen.text[0])
		memcpy(seen.text, out->text, sizeof(seen.text));
}

static void run(const char *profile, uint32_t mutant, uint64_t seed, uint64_t budget)
{
	struct task task = { .run = plan_run, .name = profile, .timeout_s = 60 };

	for (unsigned int i = 0; i < nprofiles; i++)
		if (!strcmp(profiles[i].name, profile))
			task.plan.profile = &profiles[i];
	task.plan.seed = seed;
	task.plan.budget = budget;
	task.plan.mutant = mutant;
	task.plan.lives = 3;
	task.plan.nest_one_in = mutant ? 1 : 8;
	task.plan.stop_at_failure = true;
	runner_run(&task, 1, 1, says);
}

static int right_store_passes(void)
{
	static const char *const names[] = {
		"script", "sync", "buffered", "trims", "volumes", "hot"
	};

	memset(&seen, 0, sizeof(seen));
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		run(names[i], MUTANT_NONE, 1, 200);
	if (!seen.nlost && !seen.nresurrected && !seen.nother) {
		printf("ok crash_selftest_right_store_passes\n");
		return 0;
	}
	printf("FAIL crash_selftest_right_store_passes %s\n", seen.text);
	return 1;
}

static int broken_store_is_noticed(const char *profile, uint32_t mutant)
{
	memset(&seen, 0, sizeof(seen));
	for (uint64_t seed = 1; seed <= 40 && !seen.text[0]; seed++)
		run(profile, mutant, seed, 100);
	printf("%s crash_selftest_notices_%s %llu points%s%s\n", seen.text[0] ? "ok" : "FAIL",
	       mutant_rows[mutant].name, (unsigned long long)seen.npoints, seen.text[0] ? ": " : "",
	       seen.text);
	return !seen.text[0];
}

int main(void)
{
	int failed = right_store_passes();

	failed += broken_store_is_noticed("script", MUTANT_ACK_BEFORE_FLUSH);
	failed += broken_store_is_noticed("sync", MUTANT_DURABLE_LATE);
	failed += broken_store_is_noticed("sync", MUTANT_PAYLOAD_UNVERIFIED);
	failed += broken_store_is_noticed("hot", MUTANT_NO_INCARNATION);
	failed += broken_store_is_noticed("buffered", MUTANT_NO_END);
	return failed > 0;
}
