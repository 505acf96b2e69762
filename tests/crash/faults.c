#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backing/volume/format.h"
#include "tests/crash/crashed.h"
#include "tests/crash/damage.h"

static void report(struct plan *plan, const struct oracle_verdict *verdict, const char *text)
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
}

static bool failed(const struct plan *plan)
{
	return plan->outcome->nlost || plan->outcome->nresurrected || plan->outcome->nother;
}

/* Does the device lie?  Then data may be gone that it said to be durable. */
static bool lies(const struct sim_fault *fault)
{
	return fault->kind == SIM_FAULT_LOST || fault->kind == SIM_FAULT_MISDIRECT;
}

/* The misdirected write of the life: where it landed it stays. */
static void keep_misdirected(struct image *image, const struct sim *sim)
{
	if (sim->misdirected.len)
		sim_apply(image, &sim->misdirected, NULL);
}

/* ---- lies that nobody can see ---- */

#define SEGMENT_LEN (256u << 10)

/* The group of the log that a write begins with, or whose segment it begins; 0:
 * none, something that others name by its hash. */
static uint64_t log_seq_of(const struct sim_change *change)
{
	const struct vf_group *group = (const struct vf_group *)change->data;
	const struct vf_segment *segment = (const struct vf_segment *)change->data;

	if (change->kind != SIM_WRITE || le32_get(&group->head.magic) != VF_MAGIC)
		return 0;
	if (group->head.type == VF_GROUP)
		return le64_get(&group->seq);
	if (group->head.type == VF_SEGMENT && segment->stream == VF_W)
		return le64_get(&segment->first_seq);
	return 0;
}

static uint64_t durable_of(const struct image *image, uint64_t off,
			   const struct vf_geometry *geometry)
{
	const struct vf_super *super = (const struct vf_super *)(image->mem + off);
	const struct vf_group *group = (const struct vf_group *)(image->mem + off);
	uint32_t room = SEGMENT_LEN - (uint32_t)(off % SEGMENT_LEN);

	if (le32_get(&group->head.magic) != VF_MAGIC)
		return 0;
	if (group->head.type == VF_SUPER && vf_super_check(super))
		return le64_get(&super->durable_seq);
	if (group->head.type == VF_GROUP && vf_group_plausible(group, geometry, room) &&
	    vf_group_check(group, geometry, room))
		return le64_get(&group->durable_seq);
	return 0;
}

/*
 * Was the newest of the log lost or written over, with nothing behind it that says
 * that it had been durable?  Then it looks like a tail that a crash tore.
 */
static bool unseen(const struct image *image, const struct sim *sim)
{
	struct vf_geometry geometry = { .segment_len = SEGMENT_LEN,
					.nsegments = image->len / SEGMENT_LEN };
	const struct sim_change *to = &sim->misdirected;
	uint64_t durable = 0;

	memcpy(geometry.uuid, ((const struct vf_head *)image->mem)->uuid, sizeof(geometry.uuid));
	for (uint64_t off = 0; off < image->len; off += IMAGE_PAGE) {
		uint64_t seq = durable_of(image, off, &geometry);

		durable = seq > durable ? seq : durable;
	}
	if (sim->nfaulted && log_seq_of(&sim->changes[sim->lied]) > durable)
		return true;
	for (size_t i = 0; to->len && i < sim->nchanges; i++) {
		const struct sim_change *change = &sim->changes[i];

		if (change->off < to->off + to->len && to->off < change->off + change->len &&
		    log_seq_of(change) > durable)
			return true;
	}
	return false;
}

/* The device is well again: what was promised is there. */
static void judge_after(struct plan *plan, struct image *image, struct life *faulty, uint64_t seed)
{
	struct oracle_verdict verdict = { 0 };
	struct oracle *after;
	struct pool_info info;
	struct life life;
	struct err err = { "" };

	life_init(&life, plan->profile, image, seed, NULL);
	life.mutant = plan->mutant;
	oracle_advance(faulty->oracle, lies(&plan->fault) && unseen(image, &faulty->sim)
					       ? 0
					       : faulty->sim.event + 1);
	faulty->oracle->bad_allowed = lies(&plan->fault);
	if (life_open(&life, &err)) {
		plan->outcome->nrefused++;
		if (!lies(&plan->fault) || !err.text[0])
			report(plan, &(struct oracle_verdict){ .lost = true }, err.text);
		life_abandon(&life);
		life_release(&life);
		return;
	}
	pool_info(life.pool, &info);
	if (info.read_only) {
		plan->outcome->nread_only++;
		if (!lies(&plan->fault))
			report(plan, &(struct oracle_verdict){ .lost = true }, info.why_read_only);
	} else {
		after = life_verify(&life, faulty->oracle, faulty->sim.event + 1, &verdict);
		if (!after)
			report(plan, &verdict, verdict.text);
		else
			plan->outcome->nright++;
		oracle_destroy(after);
	}
	if (info.read_only || life_close(&life, &err))
		life_abandon(&life);
	life_release(&life);
}

/* One life with the n'th operation failing; false: it had no such operation. */
static bool run_fault(struct plan *plan, struct image *image, const struct oracle *oracle,
		      uint32_t n)
{
	struct oracle *own = oracle_after(oracle);
	struct rng rng = rng_of(plan->seed, 8, n);
	struct life life;
	struct err err = { "" };
	bool hit;

	for (size_t i = 0; i < ORACLE_VOLUMES_MAX; i++)
		if (oracle->volumes[i])
			oracle_keep(own, oracle->volumes[i], oracle->volumes[i]->base,
				    (uint32_t)oracle->volumes[i]->settings.nsectors, 0, 0);
	image_mark(image);
	life_init(&life, plan->profile, image, plan->seed, own);
	life.errors_allowed = true;
	life.hints = plan->fault.kind == SIM_FAULT_ENOSPC;
	life.mutant = plan->mutant;
	life.sim.fault = plan->fault;
	life.sim.fault.first = n;
	if (!life_open(&life, &err)) {
		life_run(&life, plan->profile->nops, false);
		life_flush(&life);
		if (life.failure[0])
			report(plan, NULL, life.failure);
		if (!rng_one_in(&rng, 2) || life_close(&life, &err))
			life_abandon(&life);
	} else if (!err.text[0]) {
		report(plan, NULL, "refused without a word");
	}
	hit = life.sim.nfaulted > 0;
	life_abandon(&life);
	image_rollback(image);
	image_mark(image);
	crashed_apply(image, &life.sim, &rng, rng_one_in(&rng, 2));
	keep_misdirected(image, &life.sim);
	if (hit && !failed(plan))
		judge_after(plan, image, &life, plan->seed + n);
	image_rollback(image);
	life_release(&life);
	return hit;
}

/* A pool with something in it, closed, and its oracle. */
struct oracle *damage_prepare(struct plan *plan, struct image *image, bool close)
{
	struct oracle_verdict verdict;
	struct oracle *after;
	struct life life;
	struct err err = { "" };

	life_init(&life, plan->profile, image, plan->seed ^ 77, oracle_create(128));
	if (life_create(&life, &err))
		sim_fail("%s", err.text);
	life_run(&life, plan->profile->nops * 2, false);
	life_flush(&life);
	/* a marker covers the newest group */
	for (uint64_t until = life.sim.now_ns + 5000000000ull;
	     life.sim.now_ns < until && sim_step(&life.sim);)
		;
	for (size_t i = 0; i < ORACLE_VOLUMES_MAX; i++)
		if (life.oracle->volumes[i])
			oracle_promise(life.oracle->volumes[i], sim_event(&life.sim),
				       life.oracle->volumes[i]->nops);
	oracle_advance(life.oracle, SIM_NEVER);
	after = life_verify(&life, life.oracle, SIM_NEVER, &verdict);
	if (!after)
		sim_fail("%s", verdict.text);
	if (!close)
		life_abandon(&life);
	else if (life_close(&life, &err))
		sim_fail("%s", err.text);
	life_release(&life);
	return after;
}

void faults_run(struct plan *plan)
{
	struct outcome *out = plan->outcome;
	struct image image;
	struct oracle *oracle;

	image_init(&image, plan->profile->pool_len, plan->profile->pool_len);
	oracle = damage_prepare(plan, &image, plan->seed % 2);
	for (uint32_t n = 1; !failed(plan); n++) {
		snprintf(out->where, sizeof(out->where), "--faults --seed %llu --fault %u.%u.%u.%u",
			 (unsigned long long)plan->seed, plan->fault.kind, plan->fault.ops, n,
			 plan->fault.count);
		snprintf(sim_where, sizeof(sim_where), "%s", out->where);
		if (plan->fault.first && n != plan->fault.first)
			continue;
		if (!run_fault(plan, &image, oracle, n) || plan->fault.first || n >= plan->budget)
			break;
		out->npoints++;
	}
	oracle_destroy(oracle);
	image_release(&image);
	out->finished = true;
}
