#include "tests/crash/simenv.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backing/volume/pool.h"

/* Longer than any life: something spins. */
#define STEPS_MAX 20000000ull

char sim_where[256];

void sim_fail(const char *format, ...)
{
	va_list args;

	fflush(stdout);
	fprintf(stderr, "%s: ", sim_where);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	_Exit(3);
}

/* Something in flight. */
struct sim_op {
	uint64_t due_ns;
	struct vdev_io *io;
	struct venv_job *job;
	size_t change; /* of writes, punches, growth */
	uint32_t submitted;
	enum sim_fault_kind fault;
};

static void *grow(void *array, size_t *room, size_t n, size_t size)
{
	if (n < *room)
		return array;
	*room = *room ? *room * 2 : 64;
	array = realloc(array, *room * size);
	if (!array)
		sim_fail("no memory");
	return array;
}

/* ---- what takes how long ---- */

static uint64_t latency(struct sim *sim, uint8_t op)
{
	uint64_t base = op == VDEV_FLUSH ? 300000 : op == VDEV_READ ? 60000 : 90000;
	uint64_t t = base / 4 + rng_below(&sim->rng, base * 2);

	/* now and then something is late by far, and others pass it */
	if (rng_one_in(&sim->rng, 24))
		t += rng_below(&sim->rng, 20000000);
	return t;
}

static struct sim_op *enqueue(struct sim *sim, uint64_t delay_ns)
{
	sim->ops = grow(sim->ops, &sim->ops_room, sim->nops, sizeof(*sim->ops));
	sim->ops[sim->nops] = (struct sim_op){ .due_ns = sim->now_ns + delay_ns,
					       .submitted = sim->event };
	return &sim->ops[sim->nops++];
}

/* ---- the rules of env.h ---- */

static void judge(struct sim *sim, const struct vdev_io *io)
{
	uint64_t len = 0;

	if (io->op > VDEV_GROW || !io->done)
		sim_fail("an operation of kind %d without an end", io->op);
	if (sim->env.read_only && io->op != VDEV_READ)
		sim_fail("operation %d on a read-only device", io->op);
	if (io->op == VDEV_FLUSH)
		return;
	if (io->op == VDEV_GROW) {
		if (io->off > sim->image->len_max)
			sim_fail("grown to %llu bytes", (unsigned long long)io->off);
		return;
	}
	if (io->off % IMAGE_PAGE || io->len % IMAGE_PAGE || !io->len || io->len > sim->image->len ||
	    io->off > sim->image->len - io->len)
		sim_fail("operation %d at %llu, %llu bytes: not aligned or not on the device",
			 io->op, (unsigned long long)io->off, (unsigned long long)io->len);
	if (io->op != VDEV_READ && io->op != VDEV_WRITE)
		return;
	for (uint32_t i = 0; i < io->iovcnt; i++) {
		if ((uintptr_t)io->iov[i].iov_base % IMAGE_PAGE || io->iov[i].iov_len % IMAGE_PAGE)
			sim_fail("operation %d: buffer %u is not aligned", io->op, i);
		len += io->iov[i].iov_len;
	}
	if (len != io->len)
		sim_fail("operation %d of %llu bytes in buffers of %llu", io->op,
			 (unsigned long long)io->len, (unsigned long long)len);
}

static void judge_overlap(struct sim *sim, const struct vdev_io *io)
{
	for (size_t i = 0; i < sim->nops; i++) {
		const struct vdev_io *other = sim->ops[i].io;

		if (!other || (other->op != VDEV_WRITE && other->op != VDEV_PUNCH))
			continue;
		if (io->off < other->off + other->len && other->off < io->off + io->len)
			sim_fail("two writes in flight at %llu", (unsigned long long)io->off);
	}
}

/* ---- the recording ---- */

static void copy_iov(const struct vdev_io *io, uint8_t *to)
{
	for (uint32_t i = 0; i < io->iovcnt; i++) {
		memcpy(to, io->iov[i].iov_base, io->iov[i].iov_len);
		to += io->iov[i].iov_len;
	}
}

static size_t record(struct sim *sim, const struct vdev_io *io)
{
	struct sim_change *change;

	sim->changes = grow(sim->changes, &sim->changes_room, sim->nchanges, sizeof(*sim->changes));
	change = &sim->changes[sim->nchanges];
	*change = (struct sim_change){
		.kind = io->op == VDEV_WRITE   ? SIM_WRITE
			: io->op == VDEV_PUNCH ? SIM_PUNCH
					       : SIM_GROW,
		.off = io->off,
		.len = io->op == VDEV_GROW ? 0 : io->len,
		.submitted = sim_event(sim),
		.completed = SIM_NEVER,
		.durable = SIM_NEVER,
		.dropped = SIM_NEVER,
	};
	if (io->op == VDEV_WRITE) {
		change->data = malloc(io->len);
		if (!change->data)
			sim_fail("no memory");
		copy_iov(io, change->data);
	}
	return sim->nchanges++;
}

void sim_apply(struct image *image, const struct sim_change *change, const uint8_t *mask)
{
	if (change->kind == SIM_GROW) {
		if (!mask || mask[0] & 1)
			image->len = change->off > image->len ? change->off : image->len;
		return;
	}
	if (!mask) {
		image_write(image, change->off, change->data, change->len);
		return;
	}
	for (uint64_t i = 0; i < change->len / SIM_SECTOR; i++)
		if (mask[i / 8] & 1u << i % 8)
			image_write(image, change->off + i * SIM_SECTOR,
				    change->data ? change->data + i * SIM_SECTOR : NULL,
				    SIM_SECTOR);
}

/* ---- faults ---- */

static enum sim_fault_kind fault_of(struct sim *sim, const struct vdev_io *io)
{
	if (!sim->fault.kind || !(sim->fault.ops & 1u << io->op))
		return SIM_FAULT_NONE;
	sim->nmatched++;
	if (sim->nmatched < sim->fault.first ||
	    sim->nmatched - sim->fault.first >= sim->fault.count)
		return SIM_FAULT_NONE;
	sim->nfaulted++;
	return sim->fault.kind;
}

static void apply_some(struct sim *sim, struct sim_change *change)
{
	uint64_t n = change->kind == SIM_GROW ? 1 : change->len / SIM_SECTOR;
	uint8_t *mask = calloc(1, n / 8 + 1);

	if (!mask)
		sim_fail("no memory");
	for (uint64_t i = 0; i < n; i++)
		mask[i / 8] |= (uint8_t)(rng_below(&sim->rng, 2) << i % 8);
	sim_apply(sim->image, change, mask);
	free(mask);
}

static int finish_change(struct sim *sim, struct sim_op *op)
{
	struct sim_change *change = &sim->changes[op->change];
	struct sim_change moved = *change;

	if (op->fault == SIM_FAULT_LOST || op->fault == SIM_FAULT_MISDIRECT)
		sim->lied = op->change;
	switch (op->fault) {
	case SIM_FAULT_EIO: apply_some(sim, change); return EIO;
	case SIM_FAULT_ENOSPC: change->dropped = sim_event(sim); return ENOSPC;
	case SIM_FAULT_LOST: change->dropped = sim_event(sim); return 0;
	case SIM_FAULT_MISDIRECT:
		change->dropped = sim_event(sim);
		moved.off = (moved.off + (rng_one_in(&sim->rng, 2) ? 256u << 10 : IMAGE_PAGE)) %
			    (sim->image->len - moved.len);
		moved.off -= moved.off % IMAGE_PAGE;
		if (moved.kind == SIM_WRITE) {
			sim_apply(sim->image, &moved, NULL);
			sim->misdirected = moved;
		}
		return 0;
	default: break;
	}
	sim_apply(sim->image, change, NULL);
	sim->env.device_len = sim->image->len;
	change->completed = sim_event(sim);
	return 0;
}

/* ---- completions ---- */

static void finish_flush(struct sim *sim, struct sim_op *op)
{
	uint32_t event = sim_event(sim);

	for (size_t i = sim->nchanges; i-- > 0;) {
		struct sim_change *change = &sim->changes[i];

		if (change->durable != SIM_NEVER || change->dropped != SIM_NEVER)
			continue;
		if (op->fault) {
			/* gone for good, or still to be written: nobody knows */
			if (change->completed != SIM_NEVER && change->kind == SIM_WRITE &&
			    rng_one_in(&sim->rng, 2))
				change->dropped = event;
			continue;
		}
		if (change->completed < op->submitted)
			change->durable = event;
	}
	if (op->fault)
		return;
	sim->flushed = grow(sim->flushed, &sim->flushed_room, sim->nflushed, sizeof(*sim->flushed));
	sim->flushed[sim->nflushed++] = event;
}

static void finish_read(struct sim *sim, struct sim_op *op)
{
	struct vdev_io *io = op->io;
	uint64_t off = io->off;

	for (uint32_t i = 0; i < io->iovcnt; i++) {
		image_read(sim->image, off, io->iov[i].iov_base, io->iov[i].iov_len);
		off += io->iov[i].iov_len;
	}
	if (op->fault == SIM_FAULT_FLIP) {
		uint8_t *p = io->iov[rng_below(&sim->rng, io->iovcnt)].iov_base;

		p[rng_below(&sim->rng, IMAGE_PAGE)] ^= (uint8_t)(1u << rng_below(&sim->rng, 8));
	}
}

static void check_untouched(struct sim *sim, const struct sim_op *op)
{
	const uint8_t *data = sim->changes[op->change].data;

	for (uint32_t i = 0; i < op->io->iovcnt; i++) {
		if (memcmp(data, op->io->iov[i].iov_base, op->io->iov[i].iov_len) != 0)
			sim_fail("the buffer of a write at %llu was changed in flight",
				 (unsigned long long)op->io->off);
		data += op->io->iov[i].iov_len;
	}
}

static void finish(struct sim *sim, struct sim_op op)
{
	struct vdev_io *io = op.io;

	if (op.job) {
		op.job->run(op.job, sim->env.workspace);
		op.job->done(op.job);
		return;
	}
	io->err = 0;
	switch (io->op) {
	case VDEV_READ:
		finish_read(sim, &op);
		io->err = op.fault == SIM_FAULT_EIO ? EIO : 0;
		break;
	case VDEV_FLUSH:
		finish_flush(sim, &op);
		io->err = op.fault ? EIO : 0;
		break;
	case VDEV_WRITE:
		check_untouched(sim, &op);
		io->err = finish_change(sim, &op);
		break;
	case VDEV_ALLOCATE:
		io->err = op.fault == SIM_FAULT_EIO ? EIO : op.fault ? ENOSPC : 0;
		break;
	default: io->err = finish_change(sim, &op); break;
	}
	io->done(io);
}

/* ---- the environment ---- */

static void sim_submit(struct venv *env, struct vdev_io *io)
{
	struct sim *sim = container_of(env, struct sim, env);
	struct sim_op *op;
	size_t change = 0;

	if (sim->cut)
		return;
	judge(sim, io);
	sim->nsubmitted[io->op]++;
	if (io->op == VDEV_WRITE || io->op == VDEV_PUNCH)
		judge_overlap(sim, io);
	if (io->op != VDEV_READ && io->op != VDEV_FLUSH && io->op != VDEV_ALLOCATE)
		change = record(sim, io);
	sim_event(sim);
	op = enqueue(sim, latency(sim, io->op));
	op->io = io;
	op->change = change;
	op->fault = fault_of(sim, io);
}

static void sim_run_job(struct venv *env, struct venv_job *job)
{
	struct sim *sim = container_of(env, struct sim, env);

	if (!sim->cut)
		enqueue(sim, rng_below(&sim->rng, 400000))->job = job;
}

static uint64_t sim_now_ns(struct venv *env)
{
	return container_of(env, struct sim, env)->now_ns;
}

static void sim_set_timer(struct venv *env, uint64_t at_ns)
{
	container_of(env, struct sim, env)->timer_ns = at_ns;
}

static void sim_kick(struct venv *env)
{
	container_of(env, struct sim, env)->kicked = true;
}

static void sim_random(struct venv *env, void *out, size_t len)
{
	struct sim *sim = container_of(env, struct sim, env);
	uint8_t *p = out;

	for (size_t i = 0; i < len; i++)
		p[i] = (uint8_t)rng_next(&sim->rng);
}

static void sim_wait(struct venv *env)
{
	if (!sim_step(container_of(env, struct sim, env)))
		sim_fail("the pool waits and nothing is to come");
}

static const struct venv_ops sim_ops = {
	.submit = sim_submit,
	.run_job = sim_run_job,
	.now_ns = sim_now_ns,
	.set_timer = sim_set_timer,
	.kick = sim_kick,
	.random = sim_random,
	.wait = sim_wait,
};

/* The choices that workloads use; one workspace for all lives of the process. */
static struct codec_workspace *workspace(void)
{
	static struct codec_workspace *ws;
	static const struct codec_choice choices[] = {
		{ CODEC_LZJB, 0 },    { CODEC_DEFLATE, 1 }, { CODEC_DEFLATE, 6 },
		{ CODEC_DEFLATE, 9 }, { CODEC_LZ4, 1 },	    { CODEC_ZSTD, 3 },
	};

	if (ws)
		return ws;
	ws = codec_workspace_open();
	for (size_t i = 0; ws && i < ARRAY_LEN(choices); i++)
		if (codec_workspace_prepare(ws, &choices[i], NULL))
			sim_fail("no memory for codecs");
	if (!ws)
		sim_fail("no memory for codecs");
	return ws;
}

void sim_init(struct sim *sim, struct image *image, uint64_t seed, unsigned int nworkers)
{
	*sim = (struct sim){ .image = image, .seed = seed, .now_ns = 1000000000 };
	sim->rng = rng_of(seed, 1, 0);
	sim->env.ops = &sim_ops;
	sim->env.device_len = image->len;
	sim->env.file = true;
	sim->env.nworkers = nworkers;
	sim->env.workspace = workspace();
}

void sim_release(struct sim *sim)
{
	for (size_t i = 0; i < sim->nchanges; i++)
		free(sim->changes[i].data);
	free(sim->changes);
	free(sim->flushed);
	free(sim->ops);
}

void sim_cut(struct sim *sim)
{
	sim->cut = true;
	sim->nops = 0;
	sim->timer_ns = 0;
	sim->kicked = false;
	sim->env.pool = NULL;
}

static size_t next_due(const struct sim *sim)
{
	size_t best = SIZE_MAX;

	for (size_t i = 0; i < sim->nops; i++)
		if (best == SIZE_MAX || sim->ops[i].due_ns < sim->ops[best].due_ns)
			best = i;
	return best;
}

static void run_pool(struct sim *sim)
{
	sim->kicked = false;
	if (sim->env.pool)
		pool_run(sim->env.pool);
}

bool sim_step(struct sim *sim)
{
	size_t next = next_due(sim);
	struct sim_op op;

	if (++sim->nsteps > STEPS_MAX)
		sim_fail("no end after %llu steps", (unsigned long long)sim->nsteps);
	if (sim->kicked && (next == SIZE_MAX || !rng_one_in(&sim->rng, 4))) {
		run_pool(sim);
		return true;
	}
	if (sim->timer_ns && sim->env.pool &&
	    (next == SIZE_MAX || sim->timer_ns < sim->ops[next].due_ns)) {
		if (sim->timer_ns > sim->now_ns)
			sim->now_ns = sim->timer_ns;
		sim->timer_ns = 0;
		pool_tick(sim->env.pool);
		run_pool(sim);
		return true;
	}
	if (next == SIZE_MAX)
		return false;
	do {
		op = sim->ops[next];
		sim->ops[next] = sim->ops[--sim->nops];
		if (op.due_ns > sim->now_ns)
			sim->now_ns = op.due_ns;
		finish(sim, op);
		next = next_due(sim);
	} while (next != SIZE_MAX && rng_one_in(&sim->rng, 3));
	run_pool(sim);
	return true;
}
