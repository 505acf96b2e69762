#include "tests/crash/life.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"

static void __attribute__((format(printf, 2, 3)))
life_fail(struct life *life, const char *format, ...)
{
	va_list args;

	if (life->failure[0])
		return;
	va_start(args, format);
	vsnprintf(life->failure, sizeof(life->failure), format, args);
	va_end(args);
}

/* Buffers of a life, used again by the next: mapping them anew would take longer
 * than a crash point. */
struct life_buffers {
	struct life_buffers *next;
	uint8_t slots[LIFE_SLOTS_MAX][LIFE_IO_MAX * SIM_SECTOR];
};

static struct life_buffers *unused;

void life_init(struct life *life, const struct profile *profile, struct image *image, uint64_t seed,
	       struct oracle *oracle)
{
	*life = (struct life){ .profile = profile, .oracle = oracle };
	life->rng = rng_of(seed, 2, 0);
	sim_init(&life->sim, image, seed, profile->workers);
	life->buffers = unused ? unused : malloc(sizeof(*life->buffers));
	if (!life->buffers)
		sim_fail("no memory");
	unused = unused ? unused->next : NULL;
	for (size_t i = 0; i < LIFE_SLOTS_MAX; i++) {
		life->slots[i].life = life;
		life->slots[i].buf = life->buffers->slots[i];
	}
}

void life_release(struct life *life)
{
	life->buffers->next = unused;
	unused = life->buffers;
	oracle_destroy(life->oracle);
	sim_release(&life->sim);
}

int life_open(struct life *life, struct err *err)
{
	struct pool_open_args args = {
		.name = "crash",
		.cache_memory = POOL_MEMORY_MIN,
		.threshold = 80,
		.quiet = true,
		.mutant = life->mutant,
	};
	int rc = pool_open(&life->sim.env, &args, &life->pool, err);

	if (!rc)
		life->sim.env.pool = life->pool;
	else
		life->pool = NULL;
	return rc;
}

static int add_volume(struct life *life, const char *name, const struct volume_settings *settings,
		      struct err *err)
{
	struct oracle_volume *volume;
	struct volume *out;
	int rc;

	volume = oracle_add_volume(life->oracle, name, settings, (uint32_t)settings->nsectors * 2,
				   sim_event(&life->sim));
	if (!volume)
		return 0;
	rc = volume_create(life->pool, name, settings, &out, err);
	if (rc)
		return rc;
	volume->created_acked = sim_event(&life->sim);
	return 0;
}

int life_create(struct life *life, struct err *err)
{
	static const struct pool_create_args args = { .host_free = UINT64_MAX, .label = "crash" };
	char name[16];
	int rc = pool_create(&life->sim.env, &args, false, err);

	if (!rc)
		rc = life_open(life, err);
	for (unsigned int i = 0; !rc && i < life->profile->nvolumes; i++) {
		snprintf(name, sizeof(name), "v%u", i);
		rc = add_volume(life, name, &life->profile->volumes[i], err);
	}
	return rc;
}

/* ---- requests ---- */

static struct oracle_volume *some_volume(struct life *life)
{
	struct oracle_volume *found = NULL;
	uint32_t n = 0;

	for (size_t i = 0; i < ORACLE_VOLUMES_MAX; i++) {
		struct oracle_volume *volume = life->oracle->volumes[i];

		if (!volume || volume->created_acked == SIM_NEVER || volume->deleted != SIM_NEVER)
			continue;
		if (rng_one_in(&life->rng, ++n))
			found = volume;
	}
	return found;
}

static struct life_slot *free_slot(struct life *life)
{
	for (size_t i = 0; i < LIFE_SLOTS_MAX; i++)
		if (!life->slots[i].busy)
			return &life->slots[i];
	return NULL;
}

static uint32_t answered_before(const struct oracle_volume *volume, uint32_t event)
{
	uint32_t i = volume->nops;

	while (i > 0 && (volume->ops[i - 1].excluded || volume->ops[i - 1].acked >= event))
		i--;
	return i;
}

static void judge_read(struct life *life, struct life_slot *slot)
{
	const struct oracle_volume *volume = slot->volume;
	uint32_t lba = (uint32_t)slot->req.lba;

	for (uint32_t i = 0; i < slot->req.nsectors; i++) {
		uint32_t version = stamp_read(slot->buf + (size_t)i * SIM_SECTOR, volume->tag,
					      lba + i);

		if (!oracle_may_read(volume, lba + i, slot->submitted, version))
			life_fail(life, "read of volume %s sector %u gave version %u", volume->name,
				  lba + i, version);
	}
}

static void answered_change(struct life_slot *slot, uint32_t event)
{
	struct oracle_op *op = &slot->volume->ops[slot->op];
	int err = slot->req.err;

	if (!err) {
		op->acked = event;
		if (slot->req.flags & VREQ_FUA)
			oracle_promise(slot->volume, event, slot->op + 1);
	} else if (err == ENOSPC || err == EROFS) {
		op->excluded = true;
	}
}

static void answered(struct vreq *req)
{
	struct life_slot *slot = container_of(req, struct life_slot, req);
	struct life *life = slot->life;
	uint32_t event = sim_event(&life->sim);

	if (!slot->busy)
		sim_fail("a request is answered twice");
	slot->busy = false;
	life->nbusy--;
	if (req->err == ENOSPC || req->err == EROFS)
		life->nrefused++;
	else if (req->err)
		life->nerrors++;
	if (req->err && !life->errors_allowed && !(req->err == ENOSPC && life->profile->full))
		life_fail(life, "request %d of volume %s at %llu: %s", req->op, slot->volume->name,
			  (unsigned long long)req->lba, strerror(req->err));
	switch (req->op) {
	case VREQ_READ:
		if (!req->err)
			judge_read(life, slot);
		break;
	case VREQ_FLUSH:
		if (!req->err)
			oracle_promise(slot->volume, event,
				       answered_before(slot->volume, slot->submitted));
		break;
	default: answered_change(slot, event); break;
	}
}

static void submit(struct life *life, struct life_slot *slot, struct oracle_volume *volume,
		   uint8_t op, uint32_t lba, uint32_t n, uint8_t flags)
{
	struct volume *handle = volume_find(life->pool, volume->name);
	size_t len = (size_t)n * SIM_SECTOR, first = len;

	if (!handle)
		sim_fail("volume %s is not there any more", volume->name);
	if (n > 1 && rng_one_in(&life->rng, 4))
		first = (size_t)(1 + rng_below(&life->rng, n - 1)) * SIM_SECTOR;
	slot->iov[0] = (struct iovec){ slot->buf, first };
	slot->iov[1] = (struct iovec){ slot->buf + first, len - first };
	slot->volume = volume;
	slot->busy = true;
	life->nbusy++;
	slot->req = (struct vreq){
		.op = op, .flags = flags, .lba = lba, .nsectors = n, .done = answered
	};
	if (op == VREQ_READ || op == VREQ_WRITE) {
		slot->req.iov = slot->iov;
		slot->req.iovcnt = first < len ? 2 : 1;
	}
	slot->submitted = sim_event(&life->sim);
	volume_submit(handle, &slot->req);
}

/* Where: hot spots in the working set, seldom anywhere. */
static void choose_place(struct life *life, const struct oracle_volume *volume, uint32_t max,
			 uint32_t *lba, uint32_t *n)
{
	uint32_t grain = volume->settings.block_len / SIM_SECTOR;
	uint32_t total = (uint32_t)volume->settings.nsectors;
	uint32_t working = life->profile->working < total ? life->profile->working : total;

	if (rng_below(&life->rng, 100) < life->profile->aligned)
		grain = 8;
	if (max > total)
		max = total;
	*n = 1 + (uint32_t)rng_below(&life->rng, rng_one_in(&life->rng, 3) ? max : (max + 3) / 4);
	*n = (*n + grain - 1) / grain * grain;
	if (*n > LIFE_IO_MAX)
		*n = LIFE_IO_MAX;
	if (rng_one_in(&life->rng, 50))
		working = total;
	if (*n > working)
		*n = working;
	*lba = (uint32_t)rng_below(&life->rng, working - *n + 1) / grain * grain;
}

static void submit_change(struct life *life, struct life_slot *slot, struct oracle_volume *volume,
			  const struct oracle_op *op, uint8_t flags)
{
	struct oracle_op new = *op;
	uint32_t submitted = sim_event(&life->sim);

	new.submitted = submitted;
	slot->op = oracle_submit(life->oracle, volume, &new);
	if (op->type == ORACLE_WRITE)
		stamp_write(slot->buf, volume->tag, op->lba, op->n, volume->ops[slot->op].version);
	submit(life, slot, volume,
	       op->type == ORACLE_WRITE	 ? VREQ_WRITE
	       : op->type == ORACLE_ZERO ? VREQ_ZERO
					 : VREQ_TRIM,
	       op->lba, op->n, flags);
}

/* ---- control ---- */

static void delete_volume(struct life *life, struct oracle_volume *volume)
{
	struct err err;

	life_drain(life);
	volume->deleted = sim_event(&life->sim);
	if (volume_delete(volume_find(life->pool, volume->name), &err)) {
		if (!life->errors_allowed)
			life_fail(life, "deleting volume %s: %s", volume->name, err.text);
		return;
	}
	volume->deleted_acked = sim_event(&life->sim);
	if (volume_find(life->pool, volume->name))
		life_fail(life, "volume %s was deleted and is there", volume->name);
}

static void grow_volume(struct life *life, struct oracle_volume *volume)
{
	struct volume_settings settings = volume->settings;
	struct err err;

	if (settings.nsectors + 64 > volume->sectors_max || volume->grown != SIM_NEVER)
		return;
	settings.nsectors += 64;
	settings.codec = (struct codec_choice){ CODEC_LZ4, 1 };
	volume->grown_nsectors = settings.nsectors;
	volume->grown = sim_event(&life->sim);
	if (volume_set(volume_find(life->pool, volume->name), &settings, &err)) {
		if (!life->errors_allowed)
			life_fail(life, "growing volume %s: %s", volume->name, err.text);
		return;
	}
	volume->grown_acked = sim_event(&life->sim);
	volume->settings = settings;
}

static void control(struct life *life)
{
	struct oracle_volume *volume = some_volume(life);
	uint32_t n = 0;
	struct err err;
	char name[16];

	for (size_t i = 0; i < ORACLE_VOLUMES_MAX; i++)
		n += life->oracle->volumes[i] && life->oracle->volumes[i]->deleted == SIM_NEVER;
	if (!volume || (n < 4 && rng_one_in(&life->rng, 2))) {
		/* a name that was used before comes again */
		for (uint32_t i = 0;; i++) {
			snprintf(name, sizeof(name), "v%u", i);
			if (!volume_find(life->pool, name))
				break;
		}
		if (add_volume(life, name, &life->profile->volumes[0], &err) &&
		    !life->errors_allowed)
			life_fail(life, "creating volume %s: %s", name, err.text);
	} else if (n > 1 && rng_one_in(&life->rng, 2)) {
		delete_volume(life, volume);
	} else {
		grow_volume(life, volume);
	}
}

/* ---- the workload ---- */

/* What a pool says of itself is never less than before, nor more than it may. */
static void watch(struct life *life)
{
	struct pool_info info;

	pool_info(life->pool, &info);
	if (info.durable_seq < life->durable_seq)
		life_fail(life, "durable_seq fell from %llu to %llu",
			  (unsigned long long)life->durable_seq,
			  (unsigned long long)info.durable_seq);
	life->durable_seq = info.durable_seq;
	if (info.memory_max > POOL_MEMORY_MIN)
		life_fail(life, "%llu bytes of memory in use", (unsigned long long)info.memory_max);
	if (info.read_only && !life->errors_allowed)
		life_fail(life, "read-only: %s", info.why_read_only);
}

void life_drain(struct life *life)
{
	while (life->nbusy > 0)
		if (!sim_step(&life->sim))
			sim_fail("%u requests are not answered and nothing is to come",
				 life->nbusy);
}

void life_flush(struct life *life)
{
	life_drain(life);
	for (size_t i = 0; i < ORACLE_VOLUMES_MAX; i++) {
		struct oracle_volume *volume = life->oracle->volumes[i];

		if (volume && volume->created_acked != SIM_NEVER && volume->deleted == SIM_NEVER)
			submit(life, free_slot(life), volume, VREQ_FLUSH, 0, 0, 0);
	}
	life_drain(life);
}

static void idle(struct life *life)
{
	uint64_t until = life->sim.now_ns + rng_below(&life->rng, 3000000000ull);

	while (life->sim.now_ns < until && sim_step(&life->sim))
		;
}

static void checkpoint(struct life *life)
{
	struct err err;

	if (pool_checkpoint(life->pool, &err) && !life->errors_allowed)
		life_fail(life, "checkpoint: %s", err.text);
}

/* One operation, by lot. */
static void operate(struct life *life)
{
	const struct profile *p = life->profile;
	struct oracle_volume *volume = some_volume(life);
	struct life_slot *slot = free_slot(life);
	uint32_t lot = (uint32_t)rng_below(&life->rng, 1000);
	struct oracle_op op = { .type = ORACLE_WRITE };
	uint8_t flags = 0;

	if (lot < p->control || !volume) {
		control(life);
		return;
	}
	lot -= p->control;
	if (lot < p->checkpoint) {
		checkpoint(life);
		return;
	}
	lot -= p->checkpoint;
	if (lot < p->idle) {
		idle(life);
		return;
	}
	lot -= p->idle;
	if (lot < p->flush) {
		submit(life, slot, volume, VREQ_FLUSH, 0, 0, 0);
		return;
	}
	lot -= p->flush;
	choose_place(life, volume, p->write_max, &op.lba, &op.n);
	if (lot < p->read) {
		submit(life, slot, volume, VREQ_READ, op.lba, op.n, 0);
		return;
	}
	lot -= p->read;
	if (lot < p->trim + p->zero) {
		uint32_t total = (uint32_t)volume->settings.nsectors;

		op.type = lot < p->trim ? ORACLE_TRIM : ORACLE_ZERO;
		op.optional = (p->full || life->hints) && op.type == ORACLE_TRIM;
		if (rng_one_in(&life->rng, 4)) { /* long, whole regions */
			op.lba = (uint32_t)rng_below(&life->rng, total / 8) * 8;
			op.n = (1 + (uint32_t)rng_below(&life->rng, (total - op.lba) / 8)) * 8;
		}
	}
	if (rng_below(&life->rng, 1000) < p->fua)
		flags = VREQ_FUA;
	submit_change(life, slot, volume, &op, flags);
}

/* As an initiator does that got no answer: the same again. */
static void try_again(struct life *life)
{
	for (size_t i = 0; i < ORACLE_VOLUMES_MAX; i++) {
		struct oracle_volume *volume = life->oracle->volumes[i];

		for (uint32_t n = 0; volume && n < volume->nretry && n < 8; n++) {
			while (!free_slot(life))
				if (!sim_step(&life->sim))
					sim_fail("writes are not answered");
			submit_change(life, free_slot(life), volume, &volume->retry[n],
				      rng_one_in(&life->rng, 3) ? VREQ_FUA : 0);
			life->nretried++;
		}
	}
}

void life_run(struct life *life, uint32_t nops, bool retry)
{
	if (retry)
		try_again(life);
	while (nops > 0 && !life->failure[0]) {
		unsigned int most = 1 + (unsigned int)rng_below(&life->rng, life->profile->depth);

		while (life->nbusy >= most || life->nbusy >= LIFE_SLOTS_MAX)
			if (!sim_step(&life->sim))
				sim_fail("%u requests are not answered and nothing is to come",
					 life->nbusy);
		operate(life);
		if (nops-- % 8 == 0)
			watch(life);
	}
}

int life_close(struct life *life, struct err *err)
{
	int rc;

	life_drain(life);
	rc = pool_quiesce(life->pool, err);
	pool_close(life->pool);
	life->pool = NULL;
	life->sim.env.pool = NULL;
	return rc;
}

void life_abandon(struct life *life)
{
	sim_cut(&life->sim);
	if (life->pool)
		pool_close(life->pool);
	life->pool = NULL;
}

static void first_line(void *arg, const char *line)
{
	struct err *first = arg;

	if (!first->text[0])
		err_set(first, EUCLEAN, "%s", line);
}

int life_check(struct life *life, struct err *err)
{
	struct err first = { "" };
	struct pool_check_report report = { .say = first_line, .arg = &first };
	int rc = pool_quiesce(life->pool, err);

	if (rc)
		return rc;
	rc = pool_check(life->pool, POOL_CHECK_FULL, &report, err);
	pool_resume(life->pool, &life->sim.env);
	if (rc || !report.nerrors)
		return rc;
	*err = first;
	return -EUCLEAN;
}
