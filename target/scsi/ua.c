/*
 * Unit attentions (SAM-5 5.14) and the state changes of resets.
 *
 * Each nexus has a word of pending bits for each LUN; REPORTED LUNS DATA HAS
 * CHANGED is about the target and is told once for all of them.
 */
#include "target/scsi/mode.h"

#include <assert.h>

static const enum sense ua_sense[UA_COUNT] = {
	[UA_POWER_ON] = SENSE_UA_POWER_ON,
	[UA_RESET] = SENSE_UA_RESET,
	[UA_MEDIUM_CHANGED] = SENSE_UA_MEDIUM_CHANGED,
	[UA_CAPACITY_CHANGED] = SENSE_UA_CAPACITY_CHANGED,
	[UA_MODE_CHANGED] = SENSE_UA_MODE_CHANGED,
	[UA_THRESHOLD] = SENSE_UA_THRESHOLD,
	[UA_INQUIRY_CHANGED] = SENSE_UA_INQUIRY_CHANGED,
	[UA_COMMANDS_CLEARED] = SENSE_UA_COMMANDS_CLEARED,
};

static void ua_add(struct nexus_lun *nl, enum scsi_ua ua)
{
	uint32_t pending = atomic_load(&nl->pending);
	uint32_t wanted;

	/* A power on or reset supersedes what came before it, and what a host
	 * does about it covers what comes before it is told. */
	do {
		if (ua <= UA_RESET)
			wanted = pending & (1u << UA_POWER_ON) ? pending : 1u << ua;
		else
			wanted = pending | 1u << ua;
	} while (!atomic_compare_exchange_weak(&nl->pending, &pending, wanted));
}

void ua_raise(struct scsi_lun *lun, const struct scsi_nexus *except, enum scsi_ua ua)
{
	list_for_each(link, &lun->mappings) {
		struct lun_mapping *mapping = container_of(link, struct lun_mapping, link);
		struct scsi_target *target = mapping->target;

		pthread_mutex_lock(&target->lock);
		list_for_each(nexus_link, &target->nexuses) {
			struct scsi_nexus *nexus = container_of(nexus_link, struct scsi_nexus,
								link);
			struct nexus_lun *nl = nexus_lun(nexus, mapping->number);

			if (nexus != except && nl)
				ua_add(nl, ua);
		}
		pthread_mutex_unlock(&target->lock);
	}
}

enum sense ua_take(struct scsi_nexus *nexus, struct nexus_lun *nl)
{
	uint32_t pending = atomic_load(&nl->pending);

	while (pending != 0) {
		uint32_t first = (uint32_t)__builtin_ctz(pending);

		if (atomic_compare_exchange_weak(&nl->pending, &pending, pending & ~(1u << first)))
			return ua_sense[first];
	}
	if (atomic_exchange(&nexus->luns_changed, false))
		return SENSE_UA_LUNS_CHANGED;
	return SENSE_COUNT;
}

/* ---- task management ---- */

/* SAM-5 6.3.3: what a logical unit reset does to the unit. */
static void lun_reset(struct scsi_lun *lun, const struct scsi_nexus *from)
{
	struct scsi_nexus *holder;

	pthread_mutex_lock(&lun->lock);
	holder = atomic_load(&lun->holder);
	if (holder)
		reservation_release(lun, holder);
	lun_state_clear(lun, MODE_STATE | LUN_STOPPED);
	list_for_each(link, &lun->mappings) {
		struct lun_mapping *mapping = container_of(link, struct lun_mapping, link);

		pthread_mutex_lock(&mapping->target->lock);
		list_for_each(nexus_link, &mapping->target->nexuses) {
			struct nexus_lun *nl = nexus_lun(
				container_of(nexus_link, struct scsi_nexus, link), mapping->number);

			if (nl)
				nl->prevent = false;
		}
		pthread_mutex_unlock(&mapping->target->lock);
	}
	lun->nprevent = 0;
	ua_raise(lun, from, UA_RESET);
	pthread_mutex_unlock(&lun->lock);
}

static void target_reset(struct scsi_nexus *nexus)
{
	for (int number = 0; number < SCSI_LUNS_MAX; number++) {
		struct scsi_lun *lun;

		if (!nexus_lun(nexus, number)) {
			number |= LUN_PAGE - 1;
			continue;
		}
		lun = target_lun(nexus->target, number);
		if (lun)
			lun_reset(lun, nexus);
	}
}

void scsi_tmf_apply(struct scsi_nexus *nexus, enum scsi_tmf function, const uint8_t lun_field[8])
{
	struct scsi_lun *lun = scsi_nexus_lun(nexus, lun_field);

	if (function == SCSI_TMF_TARGET_RESET) {
		target_reset(nexus);
		return;
	}
	if (!lun)
		return;
	if (function == SCSI_TMF_LUN_RESET)
		lun_reset(lun, nexus);
	if (function == SCSI_TMF_CLEAR_TASK_SET) {
		pthread_mutex_lock(&lun->lock);
		ua_raise(lun, nexus, UA_COMMANDS_CLEARED);
		pthread_mutex_unlock(&lun->lock);
	}
}
