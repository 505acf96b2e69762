/*
 * The crash suite: workloads, crash points, mutants, faults, long runs.
 *
 *	suite				a short run of everything, as a test program
 *	suite --points N		so many crash points over all workloads
 *	suite --mutants [--mutant M]	each forbidden shortcut is noticed
 *	suite --faults			errors and damage at each call
 *	suite --soak [--seconds S]	long runs against a shadow copy
 *	--profile P, --seed S, --point E.I[/E.I...], --mutant M: that one alone
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "tests/crash/mutants.h"
#include "tests/crash/runner.h"

#define SEEDS_MAX 64u

struct settings {
	uint64_t points, seed, seconds;
	const char *profile;
	const char *point;
	uint32_t mutant;
	bool mutants, seed_given, points_given;
};

static struct {
	uint64_t points, lost, resurrected, other, tests_failed;
} sums;

static const struct profile *profile_by_name(const char *name)
{
	for (unsigned int i = 0; i < nprofiles; i++)
		if (!strcmp(profiles[i].name, name))
			return &profiles[i];
	fprintf(stderr, "no profile named %s\n", name);
	exit(2);
}

static void workload_says(const struct task *task)
{
	const struct outcome *out = task->plan.outcome;
	bool good = !out->nlost && !out->nresurrected && !out->nother;

	sums.points += out->npoints;
	sums.lost += out->nlost;
	sums.resurrected += out->nresurrected;
	sums.other += out->nother;
	sums.tests_failed += !good;
	printf("%s crash_%s seed %llu: %llu points in %llu epochs, %llu in recovery, %llu checks\n",
	       good ? "ok" : "FAIL", task->name, (unsigned long long)task->plan.seed,
	       (unsigned long long)out->npoints, (unsigned long long)out->nepochs,
	       (unsigned long long)out->nnested, (unsigned long long)out->nchecks);
	if (!good)
		printf("    %s\n", out->text);
}

static struct plan plan_of(const struct profile *profile, uint64_t seed, uint64_t budget)
{
	return (struct plan){
		.profile = profile,
		.seed = seed,
		.budget = budget,
		.lives = profile->lives ? profile->lives : 3,
		.nest_one_in = 24,
		.stop_at_failure = true,
	};
}

static int end(void)
{
	printf("%llu crash points, %llu lost, %llu resurrected\n", (unsigned long long)sums.points,
	       (unsigned long long)sums.lost, (unsigned long long)sums.resurrected);
	return sums.tests_failed > 0;
}

/* Each profile with its share, a new seed for every 2,000 points. */
static int run_workloads(const struct settings *settings)
{
	static struct task tasks[SEEDS_MAX * 32];
	uint64_t shares = 0, seeds;
	unsigned int n = 0;

	for (unsigned int i = 0; i < nprofiles; i++)
		shares += profiles[i].share;
	seeds = settings->points / 2000 / nprofiles + 1;
	if (seeds > SEEDS_MAX)
		seeds = SEEDS_MAX;
	for (uint64_t s = 0; s < seeds; s++) {
		for (unsigned int i = 0; i < nprofiles; i++) {
			/* half of the points are in the crashes of recoveries */
			uint64_t budget = settings->points * profiles[i].share / shares / seeds *
					  2 / 3;

			if (settings->profile && strcmp(settings->profile, profiles[i].name))
				continue;
			tasks[n] = (struct task){
				.plan = plan_of(&profiles[i], settings->seed + s, budget + 1),
				.run = plan_run,
				.name = profiles[i].name,
				.timeout_s = 600,
			};
			tasks[n++].plan.mutant = settings->mutant;
		}
	}
	runner_run(tasks, n, 2, workload_says);
	return end();
}

static int run_point(const struct settings *settings)
{
	struct task task = {
		.plan = plan_of(profile_by_name(settings->profile), settings->seed, 1),
		.run = plan_run,
		.name = settings->profile,
		.timeout_s = 600,
	};

	task.plan.mutant = settings->mutant;
	if (!plan_parse_path(&task.plan, settings->point)) {
		fprintf(stderr, "%s is not a point (EPOCH.POINT/...)\n", settings->point);
		return 2;
	}
	runner_run(&task, 1, 1, workload_says);
	return end();
}

/* ---- mutants ---- */

static struct {
	uint64_t points;
	bool killed;
	char how[256];
} hunt;

static void mutant_says(const struct task *task)
{
	const struct outcome *out = task->plan.outcome;

	if (hunt.killed)
		return;
	hunt.points += out->npoints;
	if (!out->nlost && !out->nresurrected && !out->nother)
		return;
	hunt.killed = true;
	snprintf(hunt.how, sizeof(hunt.how), "%.250s", out->text);
}

static bool named_in(const char *names, const char *name)
{
	size_t len = strlen(name);

	for (const char *p = names; (p = strstr(p, name)); p += len)
		if ((p == names || p[-1] == ' ') && (p[len] == ' ' || !p[len]))
			return true;
	return false;
}

/* The profiles named for it first, some seeds of each, then all. */
static bool hunt_mutant(const struct settings *settings, uint32_t mutant)
{
	struct task tasks[2];
	unsigned int n = 0;

	memset(&hunt, 0, sizeof(hunt));
	for (uint64_t seed = 0; seed < 12 && !hunt.killed; seed++) {
		for (unsigned int i = 0; i < nprofiles && !hunt.killed; i++) {
			bool first = named_in(mutant_rows[mutant].profiles, profiles[i].name);

			if (!first && seed < 6)
				continue;
			tasks[n] = (struct task){
				.plan = plan_of(&profiles[i], settings->seed + seed,
						settings->points),
				.run = plan_run,
				.name = profiles[i].name,
				.timeout_s = 120,
			};
			tasks[n].plan.nest_one_in = 4;
			tasks[n++].plan.mutant = mutant;
			if (n < ARRAY_LEN(tasks))
				continue;
			runner_run(tasks, n, 2, mutant_says);
			n = 0;
		}
	}
	if (n > 0 && !hunt.killed)
		runner_run(tasks, n, 2, mutant_says);
	return hunt.killed;
}

static int run_mutants(const struct settings *settings)
{
	int failed = 0;

	for (uint32_t m = 1; m < MUTANT_COUNT; m++) {
		if (settings->mutant && settings->mutant != m)
			continue;
		if (hunt_mutant(settings, m)) {
			printf("ok mutant_%s killed after %llu points (%s)\n", mutant_rows[m].name,
			       (unsigned long long)hunt.points, hunt.how);
		} else {
			printf("FAIL mutant_%s survived %llu points\n", mutant_rows[m].name,
			       (unsigned long long)hunt.points);
			failed = 1;
		}
		fflush(stdout);
	}
	return failed;
}

/* ---- the command line ---- */

static const char *value(char **argv, int argc, int *i)
{
	if (*i + 1 >= argc) {
		fprintf(stderr, "%s needs a value\n", argv[*i]);
		exit(2);
	}
	return argv[++*i];
}

static uint64_t number(char **argv, int argc, int *i)
{
	const char *text = value(argv, argc, i);
	char *rest;
	uint64_t n = strtoull(text, &rest, 10);

	if (*rest || rest == text) {
		fprintf(stderr, "%s is not a number\n", text);
		exit(2);
	}
	return n;
}

static void parse(struct settings *settings, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--points")) {
			settings->points = number(argv, argc, &i);
			settings->points_given = true;
		} else if (!strcmp(argv[i], "--seed")) {
			settings->seed = number(argv, argc, &i);
		} else if (!strcmp(argv[i], "--profile")) {
			settings->profile = value(argv, argc, &i);
		} else if (!strcmp(argv[i], "--point")) {
			settings->point = value(argv, argc, &i);
		} else if (!strcmp(argv[i], "--mutants")) {
			settings->mutants = true;
		} else if (!strcmp(argv[i], "--mutant")) {
			settings->mutant = mutant_by_name(value(argv, argc, &i));
			if (!settings->mutant) {
				fprintf(stderr, "no mutant named %s\n", argv[i]);
				exit(2);
			}
		} else {
			fprintf(stderr, "%s is no option; see the head of tests/crash/main.c\n",
				argv[i]);
			exit(2);
		}
	}
}

int main(int argc, char **argv)
{
	struct settings settings = { .points = 2000, .seed = 1 };

	parse(&settings, argc, argv);
	if (settings.point && settings.profile)
		return run_point(&settings);
	if (settings.mutants)
		return run_mutants(&settings);
	return run_workloads(&settings);
}
