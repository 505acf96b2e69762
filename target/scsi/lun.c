/*
 * Logical units: their life, their store, what changes about them.
 */
#include "target/scsi/internal.h"

#include <assert.h>
#include <errno.h>
#include <unistd.h>

static char *copy(const char *s)
{
	char *d;

	if (!s)
		return NULL;
	d = strdup(s);
	assert(d);
	return d;
}

static void settings_copy(struct scsi_lun_settings *to, const struct scsi_lun_settings *from)
{
	*to = *from;
	to->serial = copy(from->serial);
	to->device_id = copy(from->device_id);
	to->vendor = copy(from->vendor);
	to->product = copy(from->product);
	to->revision = copy(from->revision);
}

static void settings_release(struct scsi_lun_settings *settings)
{
	free((char *)(uintptr_t)settings->serial);
	free((char *)(uintptr_t)settings->device_id);
	free((char *)(uintptr_t)settings->vendor);
	free((char *)(uintptr_t)settings->product);
	free((char *)(uintptr_t)settings->revision);
}

struct scsi_lun *scsi_lun_create(const char *name, const struct scsi_lun_settings *settings,
				 const struct scsi_identity *identity)
{
	struct scsi_lun *lun = calloc(1, sizeof(*lun));

	assert(lun);
	pthread_mutex_init(&lun->lock, NULL);
	lun->name = copy(name);
	settings_copy(&lun->settings, settings);
	lun->identity = *identity;
	list_init(&lun->mappings);
	atomic_init(&lun->state, LUN_NO_STORE);
	return lun;
}

static void per_free(struct lun_reactor *per)
{
	free(per->scratch);
	free(per);
}

void scsi_lun_destroy(struct scsi_lun *lun)
{
	if (!lun)
		return;
	assert(list_empty(&lun->mappings) && !lun->backing);
	for (unsigned int i = 0; i < REACTORS_MAX; i++) {
		struct lun_reactor *per = atomic_load(&lun->per[i]);

		if (!per)
			continue;
		assert(list_empty(&per->cmds) && !per->channel);
		per_free(per);
	}
	settings_release(&lun->settings);
	pthread_mutex_destroy(&lun->lock);
	free(lun->name);
	free(lun);
}

const char *scsi_lun_name(const struct scsi_lun *lun)
{
	return lun->name;
}

static size_t page_round(size_t size)
{
	return (size + 63) / 64 * 64;
}

struct lun_reactor *lun_reactor_get(struct scsi_lun *lun, struct reactor *reactor)
{
	unsigned int index = reactor_index(reactor);
	struct lun_reactor *per = atomic_load_explicit(&lun->per[index], memory_order_acquire);
	struct lun_reactor *found = NULL;

	if (per)
		return per;
	per = aligned_alloc(64, page_round(sizeof(*per)));
	if (!per)
		return NULL;
	memset(per, 0, sizeof(*per));
	per->reactor = reactor;
	list_init(&per->cmds);
	list_init(&per->scratch_waiters);
	/* Its memory is touched by the first command that needs it. */
	per->scratch = aligned_alloc(4096, LUN_SCRATCH);
	if (!per->scratch) {
		free(per);
		return NULL;
	}
	/* Another thread may have been faster. */
	if (!atomic_compare_exchange_strong(&lun->per[index], &found, per)) {
		per_free(per);
		return found;
	}
	return per;
}

/* ---- the store ---- */

struct per_call {
	struct scsi_lun *lun;
	struct lun_reactor *per;
	struct backing *backing;
	struct err *err;
	int result;
};

static void per_busy(void *arg)
{
	struct per_call *call = arg;

	call->result = call->per->in_flight != 0;
}

static void per_detach(void *arg)
{
	struct per_call *call = arg;

	/* Commands that need no store may still be under way. */
	if (call->per->channel)
		backing_detach(call->per->channel);
	call->per->channel = NULL;
	call->per->generation++;
}

static void per_attach(void *arg)
{
	struct per_call *call = arg;

	assert(!call->per->channel);
	call->per->channel = backing_attach(call->backing, call->per->reactor, call->err);
	call->per->generation++;
	call->result = call->per->channel ? 0 : -EIO;
}

/* Waits until no reactor executes a command of the LUN. */
static bool lun_drain(struct scsi_lun *lun)
{
	for (unsigned int waited_ms = 0;; waited_ms += 2) {
		bool busy = false;

		for (unsigned int i = 0; i < REACTORS_MAX; i++) {
			struct per_call call = { .per = atomic_load(&lun->per[i]) };

			if (!call.per)
				continue;
			reactor_call(call.per->reactor, per_busy, &call);
			busy = busy || call.result;
		}
		if (!busy || waited_ms >= SCSI_DRAIN_MS)
			return !busy;
		usleep(2000);
	}
}

static void lun_detach(struct scsi_lun *lun)
{
	for (unsigned int i = 0; i < REACTORS_MAX; i++) {
		struct per_call call = { .per = atomic_load(&lun->per[i]) };

		if (call.per)
			reactor_call(call.per->reactor, per_detach, &call);
	}
}

static int lun_attach(struct scsi_lun *lun, struct backing *backing,
		      struct reactor *const *reactors, unsigned int nreactors, struct err *err)
{
	for (unsigned int i = 0; i < nreactors; i++) {
		struct per_call call = {
			.per = lun_reactor_get(lun, reactors[i]),
			.backing = backing,
			.err = err,
		};

		if (!call.per)
			return err_set(err, ENOMEM, "lun %s: no memory", lun->name);
		reactor_call(reactors[i], per_attach, &call);
		if (call.result != 0)
			return call.result;
	}
	return 0;
}

static uint32_t store_state(const struct backing *backing)
{
	uint32_t bits = 0;

	if (backing->limits.unmap_max > 0)
		bits |= LUN_UNMAPS;
	if (backing->limits.unmap_max > 0 && backing->limits.write_zeroes_unmaps)
		bits |= LUN_ZEROES_UNMAP;
	if (backing->limits.read_only)
		bits |= LUN_READ_ONLY;
	return bits;
}

static void store_event(void *arg, enum bk_event event)
{
	struct scsi_lun *lun = arg;

	assert(event == BK_SPACE_SHORT);
	pthread_mutex_lock(&lun->lock);
	ua_raise(lun, NULL, UA_THRESHOLD);
	pthread_mutex_unlock(&lun->lock);
}

int scsi_lun_set_backing(struct scsi_lun *lun, struct backing *backing,
			 struct reactor *const *reactors, unsigned int nreactors, struct err *err)
{
	int result = 0;

	lun_state_set(lun, LUN_SWAPPING);
	if (!lun_drain(lun)) {
		lun_state_clear(lun, LUN_SWAPPING);
		return err_set(
			err, EBUSY,
			"lun %s: its store has not finished commands for %u s; it is left in place",
			lun->name, SCSI_DRAIN_MS / 1000);
	}
	lun_detach(lun);
	if (lun->backing)
		backing_watch(lun->backing, NULL, NULL);
	lun_state_set(lun, LUN_NO_STORE);
	lun_state_clear(lun, LUN_UNMAPS | LUN_ZEROES_UNMAP | LUN_READ_ONLY);
	pthread_mutex_lock(&lun->lock);
	lun->backing = NULL;
	pthread_mutex_unlock(&lun->lock);
	if (backing)
		result = lun_attach(lun, backing, reactors, nreactors, err);
	if (result != 0) {
		lun_detach(lun);
	} else if (backing) {
		pthread_mutex_lock(&lun->lock);
		lun->backing = backing;
		pthread_mutex_unlock(&lun->lock);
		lun_state_set(lun, store_state(backing));
		lun_state_clear(lun, LUN_NO_STORE);
		backing_watch(backing, store_event, lun);
	}
	lun_state_clear(lun, LUN_SWAPPING);
	return result;
}

struct backing *scsi_lun_backing(const struct scsi_lun *lun)
{
	return lun->backing;
}

void scsi_lun_capacity_changed(struct scsi_lun *lun)
{
	pthread_mutex_lock(&lun->lock);
	ua_raise(lun, NULL, UA_CAPACITY_CHANGED);
	pthread_mutex_unlock(&lun->lock);
}

void scsi_lun_set_settings(struct scsi_lun *lun, const struct scsi_lun_settings *settings)
{
	struct scsi_lun_settings old;

	pthread_mutex_lock(&lun->lock);
	old = lun->settings;
	settings_copy(&lun->settings, settings);
	ua_raise(lun, NULL, UA_INQUIRY_CHANGED);
	pthread_mutex_unlock(&lun->lock);
	settings_release(&old);
}

/* ---- figures ---- */

static uint64_t counter_get(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

static void stats_add(struct scsi_lun_stats *out, const struct lun_reactor *per)
{
	for (unsigned int row = 0; row < scsi_nopcodes; row++) {
		uint64_t n = counter_get(&per->count[row]);

		switch (scsi_opcodes[row].group) {
		case GROUP_READ: out->reads += n; break;
		case GROUP_WRITE: out->writes += n; break;
		case GROUP_FLUSH: out->flushes += n; break;
		case GROUP_UNMAP: out->unmaps += n; break;
		default: out->others += n;
		}
	}
	out->read_bytes += counter_get(&per->read_bytes);
	out->write_bytes += counter_get(&per->write_bytes);
	out->errors += counter_get(&per->errors);
	out->read_errors += counter_get(&per->read_errors);
	out->write_errors += counter_get(&per->write_errors);
}

void lun_counters(const struct scsi_lun *lun, struct scsi_lun_stats *out)
{
	memset(out, 0, sizeof(*out));
	for (unsigned int i = 0; i < REACTORS_MAX; i++) {
		const struct lun_reactor *per = atomic_load(&lun->per[i]);

		if (per)
			stats_add(out, per);
	}
}

void scsi_lun_stats(const struct scsi_lun *lun, struct scsi_lun_stats *out)
{
	lun_counters(lun, out);
	out->ready = !(atomic_load(&lun->state) & LUN_NOT_READY) && lun->backing &&
		     !backing_broken(lun->backing);
	if (lun->backing) {
		out->size_bytes = backing_size(lun->backing);
		out->block_size = lun->backing->limits.block_size;
	}
}

const char *scsi_lun_opcode_count(const struct scsi_lun *lun, unsigned int row, uint64_t *count)
{
	if (row >= scsi_nopcodes)
		return NULL;
	*count = 0;
	for (unsigned int i = 0; i < REACTORS_MAX; i++) {
		const struct lun_reactor *per = atomic_load(&lun->per[i]);

		if (per)
			*count += counter_get(&per->count[row]);
	}
	return scsi_opcodes[row].name;
}
