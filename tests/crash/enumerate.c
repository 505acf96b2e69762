#include "tests/crash/enumerate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sub-sets are complete for so many pending changes. */
#define SUBSETS_MAX 12u
/* Seeded samples of an epoch, torn at random. */
#define SAMPLES 4096u

/* A recorded life that is enumerated. */
struct recording {
	struct plan *plan;
	struct image *image;
	struct sim *sim;
	struct oracle *oracle; /* of the recorded life */
	uint64_t seed;
	unsigned int depth;
	const struct recording *before; /* whose crash this life came after */
	uint32_t opened;		/* event: the recovery was done */
	bool *durable;			/* by change: is in the base */
	uint32_t *pending, npending;
	char path[96];
};

/* ---- epochs ---- */

static uint32_t epochs_of(const struct recording *rec)
{
	return (uint32_t)rec->sim->nflushed + 1;
}

static uint32_t epoch_end(const struct recording *rec, uint32_t epoch)
{
	return epoch < rec->sim->nflushed ? rec->sim->flushed[epoch] : rec->sim->event + 1;
}

static bool is_pending(const struct sim_change *change, uint32_t end)
{
	return change->submitted < end && change->durable >= end && change->dropped >= end;
}

static uint32_t count_pending(const struct recording *rec, uint32_t end)
{
	uint32_t n = 0;

	for (size_t i = 0; i < rec->sim->nchanges && rec->sim->changes[i].submitted < end; i++)
		n += is_pending(&rec->sim->changes[i], end);
	return n;
}

/* The base and the oracle come to the end of an epoch. */
static void advance(struct recording *rec, uint32_t end)
{
	rec->npending = 0;
	for (size_t i = 0; i < rec->sim->nchanges && rec->sim->changes[i].submitted < end; i++) {
		const struct sim_change *change = &rec->sim->changes[i];

		if (is_pending(change, end)) {
			rec->pending[rec->npending++] = (uint32_t)i;
		} else if (change->durable < end && !rec->durable[i]) {
			sim_apply(rec->image, change, NULL);
			rec->durable[i] = true;
		}
	}
	oracle_advance(rec->oracle, end);
}

static bool one_block(const struct recording *rec)
{
	return rec->npending == 1 && rec->sim->changes[rec->pending[0]].len == IMAGE_PAGE;
}

static uint32_t subsets_of(uint32_t n, bool block)
{
	return block ? 1u << (IMAGE_PAGE / SIM_SECTOR) : n <= SUBSETS_MAX ? 1u << n : 0;
}

static uint32_t points_of(uint32_t n)
{
	return n == 0 ? 1 : 2 * n + 1 + subsets_of(n, n == 1) + (n > 1 ? SAMPLES : 0);
}

/* ---- the state of a point ---- */

static void apply_torn(struct recording *rec, const struct sim_change *change, struct rng *rng)
{
	uint8_t mask[(1u << 20) / SIM_SECTOR / 8 + 1] = { 0 };
	uint64_t n = change->kind == SIM_GROW ? 1 : change->len / SIM_SECTOR;
	uint64_t from = 0, to = n;

	if (n > sizeof(mask) * 8) {
		sim_apply(rec->image, change, NULL);
		return;
	}
	switch (rng_below(rng, 3)) {
	case 0: to = rng_below(rng, n); break;
	case 1: from = 1 + rng_below(rng, n); break;
	default: break;
	}
	for (uint64_t i = from; i < to; i++)
		if (to - from != n || rng_one_in(rng, 2))
			mask[i / 8] |= (uint8_t)(1u << i % 8);
	sim_apply(rec->image, change, mask);
}

static void apply_sample(struct recording *rec, struct rng *rng)
{
	uint64_t density = 1 + rng_below(rng, 15);

	for (uint32_t i = 0; i < rec->npending; i++) {
		const struct sim_change *change = &rec->sim->changes[rec->pending[i]];

		if (rng_below(rng, 16) >= density)
			continue;
		if (rng_one_in(rng, 4))
			apply_torn(rec, change, rng);
		else
			sim_apply(rec->image, change, NULL);
	}
}

/* Superblocks lie before. */
#define HEAL_FROM (5u << 18)

/*
 * A sector that read torn once may read whole later (a marginal one, the other
 * leg of a mirror): what the crash before took away comes back where nothing was
 * written since.  The end of the former incarnation is there for that.
 */
static void heal(struct recording *rec, uint32_t end)
{
	const struct recording *before = rec->before;

	for (uint32_t i = 0; i < before->npending; i++) {
		const struct sim_change *lost = &before->sim->changes[before->pending[i]];
		uint8_t mask[(1u << 20) / SIM_SECTOR / 8];

		if (lost->kind != SIM_WRITE || lost->off < HEAL_FROM ||
		    lost->len > sizeof(mask) * 8 * SIM_SECTOR)
			continue;
		memset(mask, 0xff, sizeof(mask));
		for (size_t j = 0; j < rec->sim->nchanges; j++) {
			const struct sim_change *since = &rec->sim->changes[j];

			if (since->submitted >= end || since->off + since->len <= lost->off)
				continue;
			for (uint64_t s = 0; s < lost->len / SIM_SECTOR; s++)
				if (lost->off + s * SIM_SECTOR - since->off < since->len)
					mask[s / 8] &= (uint8_t) ~(1u << s % 8);
		}
		sim_apply(rec->image, lost, mask);
	}
}

static void apply_point(struct recording *rec, uint32_t epoch, uint32_t point, uint32_t end)
{
	struct rng rng = rng_of(rec->seed, 10 + epoch, point);
	uint32_t n = rec->npending, nwhole = point <= n ? point : point - n - 1;
	uint32_t subset = point - (2 * n + 1);
	uint8_t mask = (uint8_t)subset;

	if (rec->before && end > rec->opened && rng_one_in(&rng, 3))
		heal(rec, end);
	if (point > 2 * n && one_block(rec)) {
		sim_apply(rec->image, &rec->sim->changes[rec->pending[0]], &mask);
	} else if (point > 2 * n && subset < subsets_of(n, false)) {
		for (uint32_t i = 0; i < n; i++)
			if (subset & 1u << i)
				sim_apply(rec->image, &rec->sim->changes[rec->pending[i]], NULL);
	} else if (point > 2 * n) {
		apply_sample(rec, &rng);
	} else {
		for (uint32_t i = 0; i < nwhole; i++)
			sim_apply(rec->image, &rec->sim->changes[rec->pending[i]], NULL);
		if (point > n)
			apply_torn(rec, &rec->sim->changes[rec->pending[nwhole]], &rng);
	}
}

/* ---- a point ---- */

static void report(struct recording *rec, const struct oracle_verdict *verdict, const char *text)
{
	struct outcome *out = rec->plan->outcome;

	if (verdict && verdict->resurrected)
		out->nresurrected++;
	else if (verdict)
		out->nlost++;
	else
		out->nother++;
	if (!out->text[0])
		snprintf(out->text, sizeof(out->text), "%s: %.700s", out->where, text);
}

static bool failed(const struct recording *rec)
{
	const struct outcome *out = rec->plan->outcome;

	return out->nlost || out->nresurrected || out->nother;
}

/* The pool at rest is whole. */
static bool check_pool(struct recording *rec, struct life *life)
{
	struct err err = { "" };

	if (life_check(life, &err)) {
		report(rec, NULL, err.text);
		return false;
	}
	rec->plan->outcome->nchecks++;
	return true;
}

/* All that was answered is there, the pool closed and opened once more.  Uses up
 * the life's oracle. */
static bool reopen(struct recording *rec, struct life *life)
{
	struct oracle_verdict verdict;
	struct oracle *after;
	struct err err;

	for (size_t i = 0; i < ORACLE_VOLUMES_MAX; i++)
		if (life->oracle->volumes[i])
			oracle_promise(life->oracle->volumes[i], sim_event(&life->sim),
				       life->oracle->volumes[i]->nops);
	if (life_open(life, &err)) {
		report(rec, &(struct oracle_verdict){ .lost = true }, err.text);
		return false;
	}
	oracle_advance(life->oracle, SIM_NEVER);
	after = life_verify(life, life->oracle, SIM_NEVER, &verdict);
	if (!after)
		report(rec, &verdict, verdict.text);
	oracle_destroy(after);
	return after;
}

static bool opened_writable(struct recording *rec, struct life *life)
{
	struct pool_info info;
	struct err err;

	if (life_open(life, &err)) {
		report(rec, &(struct oracle_verdict){ .lost = true }, err.text);
		return false;
	}
	pool_info(life->pool, &info);
	if (info.read_only)
		report(rec, &(struct oracle_verdict){ .lost = true },
		       info.why_read_only ? info.why_read_only : "read-only");
	return !info.read_only;
}

/* Nothing but superblocks is written before a flush has made the new incarnation
 * and the end of the former one durable. */
static bool bumped_first(struct recording *rec, const struct sim *sim)
{
	for (size_t i = 0; i < sim->nchanges; i++) {
		if (sim->changes[i].off < HEAL_FROM)
			continue;
		if (sim->nflushed && sim->flushed[0] < sim->changes[i].submitted)
			return true;
		report(rec, NULL, "a write precedes the durable end of the former incarnation");
		return false;
	}
	return true;
}

/* The life after a crash; true: it may be enumerated (its pool is closed). */
static bool live_on(struct recording *rec, struct life *life, uint32_t end, bool last,
		    struct rng *rng)
{
	struct oracle_verdict verdict;
	bool thorough = rng_one_in(rng, 4);
	struct err err;

	if (!opened_writable(rec, life))
		return false;
	life->opened = sim_event(&life->sim);
	if (!bumped_first(rec, &life->sim))
		return false;
	life->oracle = life_verify(life, rec->oracle, end, &verdict);
	if (!life->oracle) {
		report(rec, &verdict, verdict.text);
		return false;
	}
	life_run(life, (uint32_t)rng_below(rng, 6), rng_one_in(rng, 2));
	if (thorough)
		life_flush(life);
	life_drain(life);
	if (thorough && !check_pool(rec, life))
		return false;
	if (life_close(life, &err)) {
		report(rec, NULL, err.text);
		return false;
	}
	if (thorough && last && (!reopen(rec, life) || life_close(life, &err)))
		return false;
	if (life->failure[0])
		report(rec, NULL, life->failure);
	return !life->failure[0];
}

static void enumerate(struct recording *rec, uint64_t budget);

static void descend(struct recording *rec, struct life *life, uint64_t seed, const char *path)
{
	struct recording below = {
		.plan = rec->plan,
		.image = rec->image,
		.sim = &life->sim,
		.oracle = life->oracle,
		.seed = seed,
		.depth = rec->depth + 1,
		.before = rec,
		.opened = life->opened,
	};

	snprintf(below.path, sizeof(below.path), "%.90s/", path);
	enumerate(&below, 12);
}

static void run_point(struct recording *rec, uint32_t epoch, uint32_t point, uint32_t end)
{
	struct plan *plan = rec->plan;
	uint64_t seed = rng_mix(rec->seed ^ rng_mix((uint64_t)epoch << 32 | point));
	struct rng rng = rng_of(seed, 4, 0);
	bool nest = rec->depth + 1 < plan->lives && rng_one_in(&rng, plan->nest_one_in);
	struct life life;
	char path[128];
	bool good;

	if (plan->npath)
		nest = rec->depth + 1 < plan->npath;
	snprintf(path, sizeof(path), "%s%u.%u", rec->path, epoch, point);
	snprintf(plan->outcome->where, sizeof(plan->outcome->where),
		 "--profile %s --seed %llu --point %s", plan->profile->name,
		 (unsigned long long)plan->seed, path);
	snprintf(sim_where, sizeof(sim_where), "%s", plan->outcome->where);
	plan->outcome->npoints++;
	plan->outcome->nnested += rec->depth > 0;

	image_mark(rec->image);
	apply_point(rec, epoch, point, end);
	image_mark(rec->image);
	life_init(&life, plan->profile, rec->image, seed, NULL);
	life.mutant = plan->mutant;
	good = live_on(rec, &life, end, !nest, &rng);
	plan->outcome->nretried += life.nretried;
	if (!good)
		life_abandon(&life);
	image_rollback(rec->image);
	if (good && nest)
		descend(rec, &life, seed, path);
	life_release(&life);
	image_rollback(rec->image);
}

/* ---- which points ---- */

static void run_epoch(struct recording *rec, uint32_t epoch, uint32_t quota)
{
	uint32_t end = epoch_end(rec, epoch);
	struct rng rng = rng_of(rec->seed, 5, epoch);
	uint32_t n, ordered;

	advance(rec, end);
	n = points_of(rec->npending);
	ordered = rec->npending ? 2 * rec->npending + 1 : 1;
	rec->plan->outcome->nepochs++;
	for (uint32_t i = 0; i < (quota < n ? quota : n); i++) {
		uint32_t point = i;

		/* half of a sample: prefixes; the last of them is the fullest */
		if (quota < n && i == 0 && quota > 1)
			point = rec->npending;
		else if (quota < n && i % 2 == 0)
			point = (uint32_t)rng_below(&rng, ordered);
		else if (quota < n)
			point = (uint32_t)rng_below(&rng, n);
		run_point(rec, epoch, point, end);
		if (failed(rec) && rec->plan->stop_at_failure)
			return;
	}
}

/* The same quota for each epoch, such that all together use the budget. */
static uint32_t quota_for(const struct recording *rec, uint64_t budget)
{
	uint32_t nepochs = epochs_of(rec), lo = 1, hi = points_of(SUBSETS_MAX);
	uint32_t *n = calloc(nepochs, sizeof(*n));

	if (!n)
		sim_fail("no memory");
	for (uint32_t e = 0; e < nepochs; e++)
		n[e] = points_of(count_pending(rec, epoch_end(rec, e)));
	while (lo < hi) {
		uint32_t quota = lo + (hi - lo + 1) / 2;
		uint64_t sum = 0;

		for (uint32_t e = 0; e < nepochs; e++)
			sum += n[e] < quota ? n[e] : quota;
		if (sum <= budget)
			lo = quota;
		else
			hi = quota - 1;
	}
	free(n);
	return lo;
}

static void run_path(struct recording *rec)
{
	uint32_t epoch = rec->plan->path[rec->depth].epoch;
	uint32_t end;

	if (epoch >= epochs_of(rec)) {
		fprintf(stderr, "the life after %s has %u epochs\n", rec->path, epochs_of(rec));
		return;
	}
	end = epoch_end(rec, epoch);
	for (uint32_t e = 0; e <= epoch; e++)
		advance(rec, epoch_end(rec, e));
	run_point(rec, epoch, rec->plan->path[rec->depth].point, end);
}

static void enumerate(struct recording *rec, uint64_t budget)
{
	uint32_t nepochs = epochs_of(rec);
	struct rng rng = rng_of(rec->seed, 6, 0);

	rec->durable = calloc(rec->sim->nchanges + 1, sizeof(*rec->durable));
	rec->pending = calloc(rec->sim->nchanges + 1, sizeof(*rec->pending));
	if (!rec->durable || !rec->pending)
		sim_fail("no memory");
	image_mark(rec->image);
	if (rec->plan->npath) {
		run_path(rec);
	} else {
		uint32_t quota = quota_for(rec, budget);

		for (uint32_t e = 0; e < nepochs; e++) {
			if (budget < nepochs && rng_below(&rng, nepochs) >= budget)
				continue;
			run_epoch(rec, e, quota);
			if (failed(rec) && rec->plan->stop_at_failure)
				break;
		}
	}
	image_rollback(rec->image);
	free(rec->durable);
	free(rec->pending);
}

/* ---- the first life ---- */

static bool record(struct plan *plan, struct life *life)
{
	struct err err = { "" };

	snprintf(plan->outcome->where, sizeof(plan->outcome->where), "--profile %s --seed %llu",
		 plan->profile->name, (unsigned long long)plan->seed);
	snprintf(sim_where, sizeof(sim_where), "%s", plan->outcome->where);
	if (life_create(life, &err)) {
		snprintf(plan->outcome->text, sizeof(plan->outcome->text), "%s: %.700s",
			 plan->outcome->where, err.text);
		plan->outcome->nother++;
		return false;
	}
	if (plan->profile->fault.kind) {
		struct rng rng = rng_of(plan->seed, 13, 0);

		life->errors_allowed = true;
		life->sim.fault = plan->profile->fault;
		life->sim.fault.first = 1 + (uint32_t)rng_below(&rng, life->sim.fault.first);
	}
	life_run(life, plan->profile->nops, false);
	if ((!life_close(life, &err) || life->errors_allowed) && !life->failure[0])
		return true;
	snprintf(plan->outcome->text, sizeof(plan->outcome->text), "%s: %.700s",
		 plan->outcome->where, life->failure[0] ? life->failure : err.text);
	plan->outcome->nother++;
	return false;
}

/* Crash points count from when the pool is there. */
static void forget_creation(struct life *life)
{
	struct sim *sim = &life->sim;
	uint32_t created = SIM_NEVER;
	size_t n = 0;

	for (size_t i = 0; i < ORACLE_VOLUMES_MAX; i++)
		if (life->oracle->volumes[i] && life->oracle->volumes[i]->created < created)
			created = life->oracle->volumes[i]->created;
	while (n < sim->nflushed && sim->flushed[n] < created)
		n++;
	memmove(sim->flushed, sim->flushed + n, (sim->nflushed - n) * sizeof(*sim->flushed));
	sim->nflushed -= n;
}

void plan_run(struct plan *plan)
{
	struct image image;
	struct life life;
	struct recording rec;

	image_init(&image, plan->profile->pool_len, plan->profile->pool_len);
	image_mark(&image);
	life_init(&life, plan->profile, &image, plan->seed, oracle_create(128));
	life.mutant = plan->mutant;
	if (record(plan, &life)) {
		image_rollback(&image);
		forget_creation(&life);
		rec = (struct recording){ .plan = plan,
					  .image = &image,
					  .sim = &life.sim,
					  .oracle = life.oracle,
					  .seed = plan->seed };
		enumerate(&rec, plan->budget);
	} else {
		life_abandon(&life);
	}
	life_release(&life);
	image_release(&image);
	plan->outcome->finished = true;
}

bool plan_parse_path(struct plan *plan, const char *text)
{
	int used;

	for (plan->npath = 0; plan->npath < PATH_MAX_DEPTH; text++) {
		if (sscanf(text, "%u.%u%n", &plan->path[plan->npath].epoch,
			   &plan->path[plan->npath].point, &used) != 2)
			return false;
		plan->npath++;
		text += used;
		if (*text != '/')
			return *text == '\0';
	}
	return false;
}
