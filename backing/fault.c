/*
 * The filter `fault`: a store that fails as told, for tests.
 *
 * It stands in front of another store and passes requests on, each in a slot
 * of its own, unless a rule says otherwise.  Rules and the log of what a power
 * cut undoes are shared by all reactors under one mutex; nobody measures the
 * speed of this.
 *
 * Power cut: before anything is changed below, what was there is read and kept
 * (64 MiB at most, more fails with ENOMEM).  A flush that succeeds drops what
 * was complete when it began.  At the cut everything fails, what is on its way
 * below is waited for, and the rest of the log is written back, newest first.
 * fault_set() brings the power back.
 */
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "backing/store.h"
#include "base/slab.h"

#define SLOTS	       256
#define HALF_IOVS      64
#define UNDO_BYTES_MAX (64ull << 20)

/* What was below before a request that changed it. */
struct undo {
	struct list link; /* of fault->undo, in the order of submission */
	uint64_t off;
	struct iovec data;
	uint64_t done_seq; /* 0: still on its way */
};

struct fault {
	struct backing backing;
	struct backing *inner;
	bool pretends_space; /* under lock */
	struct bk_space space;
	pthread_mutex_t lock; /* the rest */
	struct fault_rule rules[FAULT_RULES_MAX];
	uint64_t seen[FAULT_RULES_MAX];
	unsigned int nrules;
	bool tracks; /* a rule cuts the power: keep the log */
	bool cut;
	struct list undo;
	uint64_t undo_bytes, seq;
	uint32_t below;		   /* requests given to inner */
	struct fault_slot *cutter; /* waits until there are none */
};

struct fault_channel {
	struct bk_channel channel;
	struct bk_channel *inner;
	struct slab *slots;
	struct list waiting; /* bk_req.link: for a slot */
	struct list stuck;   /* fault_slot.link */
	struct reactor_msg release;
	atomic_bool release_sent;
};

/* A request on its way through. */
struct fault_slot {
	struct bk_req req; /* to inner */
	struct bk_req *outer;
	struct fault_channel *channel;
	struct fault_rule rule; /* the one that applies, if any */
	bool applies;
	struct undo *undo;
	uint64_t flush_seq;
	struct list link;
	struct reactor_timer timer;
	struct reactor_msg msg;
	struct iovec half[HALF_IOVS];
};

static struct fault *fault_of(const struct bk_channel *channel)
{
	return container_of(channel->backing, struct fault, backing);
}

static bool changes(uint8_t op)
{
	return op == BK_WRITE || op == BK_UNMAP || op == BK_WRITE_ZEROES;
}

/* ---- rules ---- */

static bool touches(const struct fault_rule *rule, const struct bk_req *req)
{
	if (!(rule->ops & 1u << req->op))
		return false;
	if (rule->len == 0 || req->op == BK_FLUSH)
		return true;
	return req->off < rule->off ? rule->off - req->off < req->len
				    : req->off - rule->off < rule->len;
}

/* Every rule counts; the first that is due applies. */
static void pick_rule(struct fault *fault, struct fault_slot *slot)
{
	slot->applies = false;
	for (unsigned int i = 0; i < fault->nrules; i++) {
		const struct fault_rule *rule = &fault->rules[i];
		uint64_t n;

		if (!touches(rule, slot->outer))
			continue;
		n = ++fault->seen[i];
		if (slot->applies || n < rule->nth || (n > rule->nth && !rule->for_ever))
			continue;
		slot->applies = true;
		slot->rule = *rule;
	}
}

/* ---- the way through ---- */

static void begin(struct fault_channel *channel, struct bk_req *outer);
static void undo_next(struct fault_slot *slot);

static void slot_complete(struct fault_slot *slot, int err)
{
	struct fault_channel *channel = slot->channel;
	struct bk_req *outer = slot->outer;
	struct list *link;

	slab_put(channel->slots, slot);
	link = list_pop(&channel->waiting);
	if (link)
		begin(channel, container_of(link, struct bk_req, link));
	bk_complete(outer, err);
}

static void undo_free(struct fault *fault, struct undo *undo)
{
	fault->undo_bytes -= undo->data.iov_len;
	list_del(&undo->link);
	free(undo->data.iov_base);
	free(undo);
}

/* A flush has succeeded: what was complete when it began is safe. */
static void undo_flushed(struct fault *fault, uint64_t seq)
{
	list_for_each_safe(link, &fault->undo) {
		struct undo *undo = container_of(link, struct undo, link);

		if (undo->done_seq && undo->done_seq <= seq)
			undo_free(fault, undo);
	}
}

static void undo_start(struct reactor_msg *msg)
{
	undo_next(container_of(msg, struct fault_slot, msg));
}

/* One less below; the last one at a power cut lets the undoing begin. */
static void below_done(struct fault *fault, struct fault_slot *slot, int err)
{
	struct fault_slot *cutter = NULL;

	pthread_mutex_lock(&fault->lock);
	fault->below--;
	if (slot->undo)
		slot->undo->done_seq = ++fault->seq;
	if (slot->req.op == BK_FLUSH && !err && !fault->cut)
		undo_flushed(fault, slot->flush_seq);
	if (fault->below == 0 && fault->cutter) {
		cutter = fault->cutter;
		fault->cutter = NULL;
	}
	pthread_mutex_unlock(&fault->lock);
	if (cutter) {
		cutter->msg.run = undo_start;
		reactor_send(cutter->channel->channel.reactor, &cutter->msg);
	}
}

static void inner_done(struct bk_req *req)
{
	struct fault_slot *slot = container_of(req, struct fault_slot, req);
	struct fault *fault = fault_of(&slot->channel->channel);
	int err = req->err;
	bool cut;

	below_done(fault, slot, err);
	pthread_mutex_lock(&fault->lock);
	cut = fault->cut;
	pthread_mutex_unlock(&fault->lock);
	slot->outer->nextents = req->nextents;
	slot->outer->bad_off = req->bad_off;
	if (!err && slot->applies && slot->rule.kind == FAULT_TORN_WRITE)
		err = slot->rule.err;
	slot_complete(slot, cut && !err ? EIO : err);
}

/* The request as it goes below; what follows a flush is the outer wrapper's. */
static void slot_fill(struct fault_slot *slot)
{
	const struct bk_req *outer = slot->outer;

	slot->req.op = outer->op;
	slot->req.flags = outer->flags & (uint8_t)~BK_FUA;
	slot->req.off = outer->off;
	slot->req.len = outer->len;
	slot->req.iov = outer->iov;
	slot->req.iovcnt = outer->iovcnt;
	slot->req.extents = outer->extents;
	slot->req.nextents_max = outer->nextents_max;
	slot->req.done = inner_done;
}

/* The first half of a write, in whole blocks; 0: nothing is left of it. */
static uint64_t slot_halve(struct fault_slot *slot)
{
	const struct bk_req *outer = slot->outer;
	uint32_t block = slot->channel->channel.backing->limits.block_size;
	uint64_t left = outer->len / 2 / block * block, len = 0;

	slot->req.iovcnt = 0;
	for (unsigned int i = 0; i < outer->iovcnt && i < HALF_IOVS && left > 0; i++) {
		struct iovec *half = &slot->half[i];

		*half = outer->iov[i];
		if (half->iov_len > left)
			half->iov_len = left;
		left -= half->iov_len;
		len += half->iov_len;
		slot->req.iovcnt++;
	}
	slot->req.iov = slot->half;
	slot->req.len = len;
	return len;
}

static void go_below(struct fault_slot *slot)
{
	struct fault *fault = fault_of(&slot->channel->channel);

	if (slot->applies && slot->rule.kind == FAULT_TORN_WRITE && slot_halve(slot) == 0) {
		below_done(fault, slot, 0);
		slot_complete(slot, slot->rule.err);
		return;
	}
	backing_submit(slot->channel->inner, &slot->req);
}

/* What is there now has been read: the change may be made. */
static void undo_read(struct bk_req *req)
{
	struct fault_slot *slot = container_of(req, struct fault_slot, req);
	struct fault *fault = fault_of(&slot->channel->channel);

	if (req->err) {
		below_done(fault, slot, req->err);
		slot_complete(slot, req->err);
		return;
	}
	slot_fill(slot);
	go_below(slot);
}

/* Keeps what is below in the log; an errno when it is full. */
static int undo_keep(struct fault *fault, struct fault_slot *slot)
{
	struct undo *undo = NULL;
	uint64_t len = slot->outer->len;

	if (len <= UNDO_BYTES_MAX - fault->undo_bytes)
		undo = calloc(1, sizeof(*undo));
	if (!undo)
		return ENOMEM;
	undo->off = slot->outer->off;
	undo->data.iov_len = len;
	undo->data.iov_base = aligned_alloc(4096, (len + 4095) / 4096 * 4096);
	if (!undo->data.iov_base) {
		free(undo);
		return ENOMEM;
	}
	fault->undo_bytes += len;
	list_add_tail(&fault->undo, &undo->link);
	slot->undo = undo;
	return 0;
}

static void forward(struct fault_slot *slot)
{
	struct fault *fault = fault_of(&slot->channel->channel);
	int err = 0;

	slot->undo = NULL;
	pthread_mutex_lock(&fault->lock);
	if (fault->cut)
		err = EIO;
	else if (fault->tracks && changes(slot->outer->op))
		err = undo_keep(fault, slot);
	slot->flush_seq = fault->seq;
	if (!err)
		fault->below++;
	pthread_mutex_unlock(&fault->lock);
	if (err) {
		slot_complete(slot, err);
		return;
	}
	slot_fill(slot);
	if (slot->undo) {
		slot->req.op = BK_READ;
		slot->req.iov = &slot->undo->data;
		slot->req.iovcnt = 1;
		slot->req.done = undo_read;
		backing_submit(slot->channel->inner, &slot->req);
		return;
	}
	go_below(slot);
}

/* ---- power cut ---- */

static void undo_written(struct bk_req *req)
{
	struct fault_slot *slot = container_of(req, struct fault_slot, req);
	struct fault *fault = fault_of(&slot->channel->channel);

	pthread_mutex_lock(&fault->lock);
	undo_free(fault, slot->undo);
	pthread_mutex_unlock(&fault->lock);
	undo_next(slot);
}

/* Puts the newest change back; completes the request that cut the power when
 * there is none left. */
static void undo_next(struct fault_slot *slot)
{
	struct fault *fault = fault_of(&slot->channel->channel);

	pthread_mutex_lock(&fault->lock);
	slot->undo = list_empty(&fault->undo) ? NULL
					      : container_of(fault->undo.prev, struct undo, link);
	pthread_mutex_unlock(&fault->lock);
	if (!slot->undo) {
		slot_complete(slot, slot->rule.err ? slot->rule.err : EIO);
		return;
	}
	slot->req.op = BK_WRITE;
	slot->req.flags = 0;
	slot->req.off = slot->undo->off;
	slot->req.len = slot->undo->data.iov_len;
	slot->req.iov = &slot->undo->data;
	slot->req.iovcnt = 1;
	slot->req.done = undo_written;
	backing_submit(slot->channel->inner, &slot->req);
}

static void cut_power(struct fault *fault, struct fault_slot *slot)
{
	bool idle, first;

	pthread_mutex_lock(&fault->lock);
	first = !fault->cut;
	fault->cut = true;
	idle = fault->below == 0;
	if (first && !idle)
		fault->cutter = slot;
	pthread_mutex_unlock(&fault->lock);
	if (!first)
		slot_complete(slot, EIO);
	else if (idle)
		undo_next(slot);
}

/* ---- */

static void delay_over(struct reactor_timer *timer)
{
	forward(container_of(timer, struct fault_slot, timer));
}

static void begin(struct fault_channel *channel, struct bk_req *outer)
{
	struct fault *fault = fault_of(&channel->channel);
	struct fault_slot *slot = slab_get(channel->slots);

	assert(slot);
	memset(slot, 0, sizeof(*slot));
	slot->channel = channel;
	slot->outer = outer;
	pthread_mutex_lock(&fault->lock);
	pick_rule(fault, slot);
	pthread_mutex_unlock(&fault->lock);
	if (!slot->applies) {
		forward(slot);
		return;
	}
	switch (slot->rule.kind) {
	case FAULT_ERROR: slot_complete(slot, slot->rule.err); break;
	case FAULT_DELAY:
		reactor_timer_init(&slot->timer, delay_over);
		reactor_timer_arm(channel->channel.reactor, &slot->timer, slot->rule.delay_ms);
		break;
	case FAULT_STUCK: list_add_tail(&channel->stuck, &slot->link); break;
	case FAULT_TORN_WRITE:
		if (outer->op == BK_WRITE)
			forward(slot);
		else
			slot_complete(slot, slot->rule.err);
		break;
	case FAULT_LOST_WRITE: slot_complete(slot, 0); break;
	case FAULT_POWER_CUT: cut_power(fault, slot); break;
	}
}

static void fault_submit(struct bk_channel *channel, struct bk_req *req)
{
	struct fault_channel *mine = container_of(channel, struct fault_channel, channel);

	if (slab_free_count(mine->slots) == 0)
		list_add_tail(&mine->waiting, &req->link);
	else
		begin(mine, req);
}

static void release_run(struct reactor_msg *msg)
{
	struct fault_channel *channel = container_of(msg, struct fault_channel, release);
	struct list *link, stuck;

	atomic_store(&channel->release_sent, false);
	list_init(&stuck);
	list_splice(&stuck, &channel->stuck);
	while ((link = list_pop(&stuck)) != NULL)
		forward(container_of(link, struct fault_slot, link));
}

void fault_release(struct backing *backing)
{
	assert(backing->ops == &fault_ops);
	for (unsigned int i = 0; i < REACTORS_MAX; i++) {
		struct bk_channel *channel = backing->channel[i];
		struct fault_channel *mine;

		if (!channel)
			continue;
		mine = container_of(channel, struct fault_channel, channel);
		if (!atomic_exchange(&mine->release_sent, true))
			reactor_send(channel->reactor, &mine->release);
	}
}

/* ---- open, attach, rules ---- */

void fault_set(struct backing *backing, const struct fault_rule *rules, unsigned int nrules)
{
	struct fault *fault = container_of(backing, struct fault, backing);

	assert(backing->ops == &fault_ops && nrules <= FAULT_RULES_MAX);
	pthread_mutex_lock(&fault->lock);
	fault->nrules = nrules;
	fault->tracks = false;
	fault->cut = false;
	memset(fault->seen, 0, sizeof(fault->seen));
	for (unsigned int i = 0; i < nrules; i++) {
		fault->rules[i] = rules[i];
		fault->tracks |= rules[i].kind == FAULT_POWER_CUT;
	}
	pthread_mutex_unlock(&fault->lock);
}

int fault_open(struct backing *inner, const struct fault_rule *rules, unsigned int nrules,
	       struct backing **out, struct err *err)
{
	struct backing *backing = backing_alloc(&fault_ops, inner->name);
	struct fault *fault;

	if (!backing)
		return err_set(err, ENOMEM, "%s: no memory for the fault filter", inner->name);
	fault = container_of(backing, struct fault, backing);
	backing->limits = inner->limits;
	backing->cache = inner->cache;
	fault->inner = inner;
	pthread_mutex_init(&fault->lock, NULL);
	list_init(&fault->undo);
	fault_set(backing, rules, nrules);
	*out = backing;
	return 0;
}

static void fault_close(struct backing *backing)
{
	struct fault *fault = container_of(backing, struct fault, backing);

	while (!list_empty(&fault->undo))
		undo_free(fault, container_of(fault->undo.next, struct undo, link));
	pthread_mutex_destroy(&fault->lock);
	backing_close(fault->inner);
}

static int fault_resize(struct backing *backing, const struct backing_settings *settings,
			uint64_t *size_bytes, struct err *err)
{
	struct fault *fault = container_of(backing, struct fault, backing);
	int rc = backing_resize(fault->inner, settings, err);

	*size_bytes = backing_size(fault->inner);
	return rc < 0 ? rc : 0;
}

static int fault_attach(struct bk_channel *channel, struct err *err)
{
	struct fault_channel *mine = container_of(channel, struct fault_channel, channel);
	int rc;

	mine->slots = slab_create(sizeof(struct fault_slot), SLOTS);
	if (!mine->slots)
		return err_set(err, ENOMEM, "%s: no memory for the fault filter",
			       channel->backing->name);
	rc = reactor_timer_reserve(channel->reactor, SLOTS);
	if (rc < 0) {
		slab_destroy(mine->slots);
		return err_set(err, -rc, "%s: no room for timers", channel->backing->name);
	}
	mine->inner = backing_attach(fault_of(channel)->inner, channel->reactor, err);
	if (!mine->inner) {
		reactor_timer_release(channel->reactor, SLOTS);
		slab_destroy(mine->slots);
		return -ENOMEM;
	}
	list_init(&mine->waiting);
	list_init(&mine->stuck);
	mine->release.run = release_run;
	return 0;
}

static void fault_detach(struct bk_channel *channel)
{
	struct fault_channel *mine = container_of(channel, struct fault_channel, channel);

	backing_detach(mine->inner);
	reactor_timer_release(channel->reactor, SLOTS);
	slab_destroy(mine->slots);
}

static bool fault_space(const struct backing *backing, struct bk_space *out)
{
	struct fault *fault = container_of(backing, struct fault, backing);
	bool pretends;

	pthread_mutex_lock(&fault->lock);
	pretends = fault->pretends_space;
	*out = fault->space;
	pthread_mutex_unlock(&fault->lock);
	return pretends || backing_space(fault->inner, out);
}

void fault_space_short(struct backing *backing, const struct bk_space *space)
{
	struct fault *fault = container_of(backing, struct fault, backing);

	pthread_mutex_lock(&fault->lock);
	fault->pretends_space = true;
	fault->space = *space;
	pthread_mutex_unlock(&fault->lock);
	backing_event(backing, BK_SPACE_SHORT);
}

const struct backing_ops fault_ops = {
	.name = "fault",
	.backing_size = sizeof(struct fault),
	.channel_size = sizeof(struct fault_channel),
	.native = 1u << BK_READ | 1u << BK_WRITE | 1u << BK_FLUSH | 1u << BK_UNMAP |
		  1u << BK_WRITE_ZEROES | 1u << BK_STATUS,
	.close = fault_close,
	.resize = fault_resize,
	.space = fault_space,
	.attach = fault_attach,
	.detach = fault_detach,
	.submit = fault_submit,
};
