#include "tests/crash/soak.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tests/crash/crashed.h"

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static bool fail(struct plan *plan, const struct oracle_verdict *verdict, const char *text)
{
	struct outcome *out = plan->outcome;

	if (verdict && verdict->resurrected)
		out->nresurrected++;
	else if (verdict)
		out->nlost++;
	else
		out->nother++;
	if (!out->text[0])
		snprintf(out->text, sizeof(out->text), "%s: %.700s", out->where, text);
	return false;
}

static bool check(struct plan *plan, struct life *life)
{
	struct err err = { "" };

	if (life_check(life, &err))
		return fail(plan, NULL, err.text);
	plan->outcome->nchecks++;
	return true;
}

/* A life that ends in a crash or a close; the oracle comes from the one before
 * (NULL: the first) and goes to the one after. */
static bool live(struct plan *plan, struct image *image, struct life *before, struct life *life,
		 uint64_t seed)
{
	struct oracle_verdict verdict;
	struct rng rng = rng_of(seed, 11, 0);
	struct pool_info info;
	struct err err = { "" };

	life_init(life, plan->profile, image, seed, before ? NULL : oracle_create(128));
	life->mutant = plan->mutant;
	image_mark(image);
	if (before ? life_open(life, &err) : life_create(life, &err))
		return fail(plan, NULL, err.text);
	if (before) {
		uint32_t event = before->sim.event + 1;

		oracle_advance(before->oracle, event);
		life->oracle = life_verify(life, before->oracle, event, &verdict);
		if (!life->oracle)
			return fail(plan, &verdict, verdict.text);
		plan->outcome->npoints++;
	}
	if (rng_one_in(&rng, 4) && !check(plan, life))
		return false;
	life_run(life, plan->profile->nops, rng_one_in(&rng, 2));
	if (life->failure[0])
		return fail(plan, NULL, life->failure);
	pool_info(life->pool, &info);
	plan->outcome->nbytes += info.user_bytes;
	if (info.read_only)
		return fail(plan, NULL, info.why_read_only ? info.why_read_only : "read-only");
	if (rng_one_in(&rng, 4)) {
		if (life_close(life, &err))
			return fail(plan, NULL, err.text);
		for (size_t i = 0; i < ORACLE_VOLUMES_MAX; i++)
			if (life->oracle->volumes[i])
				oracle_promise(life->oracle->volumes[i], sim_event(&life->sim),
					       life->oracle->volumes[i]->nops);
	} else {
		life_abandon(life);
	}
	image_rollback(image);
	crashed_apply(image, &life->sim, &rng, false);
	plan->outcome->nlives++;
	return true;
}

void soak_run(struct plan *plan)
{
	double until = seconds() + (double)plan->seconds;
	struct outcome *out = plan->outcome;
	struct life lives[2];
	struct image image;
	bool good = true;
	uint64_t n = 0;

	image_init(&image, plan->profile->pool_len, plan->profile->pool_len);
	for (; good && seconds() < until && out->nbytes < plan->profile->pool_len * 100; n++) {
		snprintf(out->where, sizeof(out->where),
			 "--soak --profile %s --seed %llu (life %llu)", plan->profile->name,
			 (unsigned long long)plan->seed, (unsigned long long)n);
		snprintf(sim_where, sizeof(sim_where), "%s", out->where);
		good = live(plan, &image, n > 0 ? &lives[(n - 1) % 2] : NULL, &lives[n % 2],
			    rng_mix(plan->seed + n));
		if (n > 0)
			life_release(&lives[(n - 1) % 2]);
	}
	if (n > 0) {
		life_abandon(&lives[(n - 1) % 2]);
		life_release(&lives[(n - 1) % 2]);
	}
	image_release(&image);
	out->finished = true;
}
