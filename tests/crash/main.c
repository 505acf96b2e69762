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
#include "tests/crash/damage.h"
#include "tests/crash/mutants.h"
#include "tests/crash/runner.h"
#include "tests/crash/soak.h"

#define SEEDS_MAX 64u

struct settings {
	uint64_t points, seed, seconds;
	const char *profile;
	const char *point;
	uint32_t mutant;
	bool mutants, faults, soak, points_given;
	struct sim_fault fault; /* one alone */
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

/* ---- faults and damage ---- */

#define WRITES	(1u << VDEV_WRITE)
#define FOREVER SIM_NEVER

static const struct fault_row {
	const char *name;
	struct sim_fault fault;
} fault_rows[] = {
	{ "read_fails_once", { SIM_FAULT_EIO, 1u << VDEV_READ, 0, 1 } },
	{ "reads_fail", { SIM_FAULT_EIO, 1u << VDEV_READ, 0, FOREVER } },
	{ "read_flips_a_bit", { SIM_FAULT_FLIP, 1u << VDEV_READ, 0, 1 } },
	{ "write_fails_once", { SIM_FAULT_EIO, WRITES, 0, 1 } },
	{ "writes_fail", { SIM_FAULT_EIO, WRITES, 0, FOREVER } },
	{ "write_finds_no_space_once", { SIM_FAULT_ENOSPC, WRITES, 0, 1 } },
	{ "writes_find_no_space", { SIM_FAULT_ENOSPC, WRITES, 0, FOREVER } },
	{ "allocation_fails", { SIM_FAULT_ENOSPC, 1u << VDEV_ALLOCATE, 0, FOREVER } },
	{ "punch_fails", { SIM_FAULT_EIO, 1u << VDEV_PUNCH, 0, FOREVER } },
	{ "flush_fails_once", { SIM_FAULT_FLUSH, 1u << VDEV_FLUSH, 0, 1 } },
	{ "flushes_fail", { SIM_FAULT_FLUSH, 1u << VDEV_FLUSH, 0, FOREVER } },
	{ "write_is_lost", { SIM_FAULT_LOST, WRITES, 0, 1 } },
	{ "write_is_misdirected", { SIM_FAULT_MISDIRECT, WRITES, 0, 1 } },
};

static void damage_says(const struct task *task)
{
	const struct outcome *out = task->plan.outcome;
	bool good = !out->nlost && !out->nresurrected && !out->nother;

	sums.tests_failed += !good;
	printf("%s crash_%s seed %llu: %llu cases: %llu right, %llu with unreadable sectors, "
	       "%llu read-only, %llu refused\n",
	       good ? "ok" : "FAIL", task->name, (unsigned long long)task->plan.seed,
	       (unsigned long long)out->npoints, (unsigned long long)out->nright,
	       (unsigned long long)out->nbad, (unsigned long long)out->nread_only,
	       (unsigned long long)out->nrefused);
	if (!good)
		printf("    %s\n", out->text);
}

static struct task damage_task(const struct settings *settings, const char *name, uint64_t seed,
			       uint64_t budget, void (*run)(struct plan *plan))
{
	struct task task = { .plan = plan_of(&fault_profile, seed, budget),
			     .run = run,
			     .name = name,
			     .timeout_s = 600 };

	task.plan.mutant = settings->mutant;
	return task;
}

/* Tasks for all rows; budget: cases of each, percent of the flips. */
static unsigned int damage_tasks(const struct settings *settings, struct task *tasks, uint64_t seed,
				 uint64_t cases, uint64_t percent)
{
	unsigned int n = 0;

	for (size_t i = 0; i < ARRAY_LEN(fault_rows); i++) {
		tasks[n] = damage_task(settings, fault_rows[i].name, seed, cases, faults_run);
		tasks[n++].plan.fault = fault_rows[i].fault;
	}
	tasks[n++] = damage_task(settings, "flips_of_closed", seed, percent, flips_run);
	tasks[n] = damage_task(settings, "flips_of_crashed", seed, percent, flips_run);
	tasks[n++].plan.fault.count = 1;
	return n;
}

static int run_faults(const struct settings *settings, uint64_t seeds, uint64_t cases,
		      uint64_t percent)
{
	struct task tasks[ARRAY_LEN(fault_rows) + 2];

	if (settings->fault.kind) {
		tasks[0] = damage_task(settings, "fault", settings->seed, SIM_NEVER, faults_run);
		tasks[0].plan.fault = settings->fault;
		runner_run(tasks, 1, 1, damage_says);
		return sums.tests_failed > 0;
	}
	for (uint64_t s = 0; s < seeds; s++)
		runner_run(tasks, damage_tasks(settings, tasks, settings->seed + s, cases, percent),
			   2, damage_says);
	return sums.tests_failed > 0;
}

/* ---- long runs ---- */

static void soak_says(const struct task *task)
{
	const struct outcome *out = task->plan.outcome;
	bool good = !out->nlost && !out->nresurrected && !out->nother;

	sums.tests_failed += !good;
	printf("%s crash_%s seed %llu: %llu MiB in %llu lives, %llu checks\n", good ? "ok" : "FAIL",
	       task->name, (unsigned long long)task->plan.seed,
	       (unsigned long long)out->nbytes >> 20, (unsigned long long)out->nlives,
	       (unsigned long long)out->nchecks);
	if (!good)
		printf("    %s\n", out->text);
}

static int run_soak(const struct settings *settings, uint64_t seconds)
{
	struct task tasks[8];
	unsigned int n = 0;

	for (unsigned int i = 0; i < nsoak_profiles; i++) {
		if (settings->profile && strcmp(settings->profile, soak_profiles[i].name))
			continue;
		tasks[n] = (struct task){ .plan = plan_of(&soak_profiles[i], settings->seed, 0),
					  .run = soak_run,
					  .name = soak_profiles[i].name,
					  .timeout_s = (unsigned int)seconds + 120 };
		tasks[n].plan.mutant = settings->mutant;
		tasks[n++].plan.seconds = seconds;
	}
	runner_run(tasks, n, 2, soak_says);
	return sums.tests_failed > 0;
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

/* Crash points: the profiles named for it first, some seeds of each, then all. */
static bool hunt_by_crashes(const struct settings *settings, uint32_t mutant)
{
	struct task tasks[2];
	unsigned int n = 0;

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

/* Faults and flips. */
static bool hunt_by_damage(const struct settings *settings, uint32_t mutant)
{
	struct task tasks[ARRAY_LEN(fault_rows) + 2];
	struct settings own = *settings;

	own.mutant = mutant;
	for (uint64_t seed = 0; seed < 3 && !hunt.killed; seed++)
		runner_run(tasks, damage_tasks(&own, tasks, settings->seed + seed, 200, 30), 2,
			   mutant_says);
	return hunt.killed;
}

static bool hunt_mutant(const struct settings *settings, uint32_t mutant)
{
	memset(&hunt, 0, sizeof(hunt));
	if (named_in(mutant_rows[mutant].profiles, "damage"))
		return hunt_by_damage(settings, mutant) || hunt_by_crashes(settings, mutant);
	return hunt_by_crashes(settings, mutant) || hunt_by_damage(settings, mutant);
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

/* As a failure prints it: KIND.OPERATIONS.NTH.COUNT */
static void parse_fault(struct sim_fault *fault, const char *text)
{
	unsigned int kind;

	if (sscanf(text, "%u.%u.%u.%u", &kind, &fault->ops, &fault->first, &fault->count) != 4) {
		fprintf(stderr, "%s is not a fault (KIND.OPERATIONS.NTH.COUNT)\n", text);
		exit(2);
	}
	fault->kind = (enum sim_fault_kind)kind;
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
		} else if (!strcmp(argv[i], "--faults")) {
			settings->faults = true;
		} else if (!strcmp(argv[i], "--fault")) {
			parse_fault(&settings->fault, value(argv, argc, &i));
		} else if (!strcmp(argv[i], "--soak")) {
			settings->soak = true;
		} else if (!strcmp(argv[i], "--seconds")) {
			settings->seconds = number(argv, argc, &i);
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
	struct settings settings = { .points = 1000, .seed = 1, .seconds = 20 };

	parse(&settings, argc, argv);
	if (settings.point && settings.profile)
		return run_point(&settings);
	if (settings.mutants)
		return run_mutants(&settings);
	if (settings.faults)
		return run_faults(&settings, 4, SIM_NEVER, 0);
	if (settings.soak)
		return run_soak(&settings, settings.seconds);
	if (!settings.points_given && !settings.profile) {
		run_faults(&settings, 1, 10, 3);
		run_soak(&settings, 2);
	}
	return run_workloads(&settings);
}
