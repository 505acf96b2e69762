/* Targets: the map from LUN numbers to logical units. */
#include "target/scsi/internal.h"

#include <assert.h>
#include <errno.h>
#include <unistd.h>

struct scsi_target *scsi_target_create(const char *name)
{
	struct scsi_target *target = calloc(1, sizeof(*target));

	assert(target);
	target->name = strdup(name);
	assert(target->name);
	pthread_mutex_init(&target->lock, NULL);
	list_init(&target->nexuses);
	return target;
}

void scsi_target_destroy(struct scsi_target *target)
{
	if (!target)
		return;
	assert(list_empty(&target->nexuses));
	for (size_t i = 0; i < ARRAY_LEN(target->pages); i++) {
		struct map_page *page = atomic_load(&target->pages[i]);

		for (size_t j = 0; page && j < LUN_PAGE; j++)
			assert(!atomic_load(&page->lun[j]));
		free(page);
	}
	pthread_mutex_destroy(&target->lock);
	free(target->name);
	free(target);
}

struct scsi_lun *target_lun(const struct scsi_target *target, int number)
{
	struct map_page *page;

	if (number < 0 || number >= SCSI_LUNS_MAX)
		return NULL;
	page = atomic_load_explicit(&target->pages[number / LUN_PAGE], memory_order_acquire);
	if (!page)
		return NULL;
	return atomic_load_explicit(&page->lun[number % LUN_PAGE], memory_order_acquire);
}

struct scsi_lun *scsi_target_lun(const struct scsi_target *target, uint16_t number)
{
	return target_lun(target, number);
}

/* Under target->lock: what the reactors of its nexuses need to serve the LUN. */
static bool nexuses_prepare(struct scsi_target *target, uint16_t number, struct scsi_lun *lun)
{
	list_for_each(link, &target->nexuses) {
		struct scsi_nexus *nexus = container_of(link, struct scsi_nexus, link);

		if (!nexus_add_lun(nexus, number) || !lun_reactor_get(lun, nexus->reactor))
			return false;
	}
	return true;
}

static void nexuses_tell(struct scsi_target *target)
{
	list_for_each(link, &target->nexuses)
		atomic_store(&container_of(link, struct scsi_nexus, link)->luns_changed, true);
}

static int map_locked(struct scsi_target *target, uint16_t number, struct scsi_lun *lun)
{
	struct map_page *page = atomic_load(&target->pages[number / LUN_PAGE]);

	if (target_lun(target, number))
		return -EEXIST;
	if (!page) {
		page = calloc(1, sizeof(*page));
		if (!page)
			return -ENOMEM;
		atomic_store_explicit(&target->pages[number / LUN_PAGE], page,
				      memory_order_release);
	}
	if (!nexuses_prepare(target, number, lun))
		return -ENOMEM;
	atomic_store_explicit(&page->lun[number % LUN_PAGE], lun, memory_order_release);
	nexuses_tell(target);
	return 0;
}

int scsi_target_map(struct scsi_target *target, uint16_t number, struct scsi_lun *lun)
{
	struct lun_mapping *mapping;
	int result;

	if (number >= SCSI_LUNS_MAX)
		return -EINVAL;
	mapping = calloc(1, sizeof(*mapping));
	if (!mapping)
		return -ENOMEM;
	mapping->target = target;
	mapping->number = number;
	pthread_mutex_lock(&lun->lock);
	pthread_mutex_lock(&target->lock);
	result = map_locked(target, number, lun);
	pthread_mutex_unlock(&target->lock);
	if (result == 0)
		list_add_tail(&lun->mappings, &mapping->link);
	pthread_mutex_unlock(&lun->lock);
	if (result != 0)
		free(mapping);
	return result;
}

/* ---- unmapping ---- */

struct unmap_call {
	struct lun_reactor *per;
	const struct scsi_target *target;
	bool busy;
};

/* On the reactor: what was prepared only is let go of, what executes is busy. */
static void per_unmap(void *arg)
{
	struct unmap_call *call = arg;

	call->busy = false;
	list_for_each_safe(link, &call->per->cmds) {
		struct scsi_cmd *cmd = container_of(link, struct scsi_cmd, lun_link);

		if (cmd->nexus->target != call->target)
			continue;
		if (cmd->executing) {
			call->busy = true;
			continue;
		}
		list_del(&cmd->lun_link);
		cmd->gone = true;
		cmd->per = NULL;
		cmd->lun = NULL;
		cmd->channel = NULL;
	}
}

static bool lun_unused(struct scsi_lun *lun, const struct scsi_target *target)
{
	bool busy = false;

	for (unsigned int i = 0; i < REACTORS_MAX; i++) {
		struct unmap_call call = { .per = atomic_load(&lun->per[i]), .target = target };

		if (!call.per)
			continue;
		reactor_call(call.per->reactor, per_unmap, &call);
		busy = busy || call.busy;
	}
	return !busy;
}

/* Takes the mapping away; the nexuses of the target give up what they hold. */
static struct scsi_lun *mapping_remove(struct scsi_target *target, uint16_t number)
{
	struct scsi_lun *lun = target_lun(target, number);
	struct map_page *page = atomic_load(&target->pages[number / LUN_PAGE]);

	if (!lun)
		return NULL;
	pthread_mutex_lock(&lun->lock);
	pthread_mutex_lock(&target->lock);
	atomic_store_explicit(&page->lun[number % LUN_PAGE], NULL, memory_order_release);
	list_for_each(link, &target->nexuses) {
		struct scsi_nexus *nexus = container_of(link, struct scsi_nexus, link);

		nexus_release_lun(nexus, lun, number);
	}
	nexuses_tell(target);
	pthread_mutex_unlock(&target->lock);
	list_for_each_safe(link, &lun->mappings) {
		struct lun_mapping *mapping = container_of(link, struct lun_mapping, link);

		if (mapping->target == target && mapping->number == number) {
			list_del(&mapping->link);
			free(mapping);
		}
	}
	pthread_mutex_unlock(&lun->lock);
	return lun;
}

int scsi_target_unmap(struct scsi_target *target, uint16_t number)
{
	struct scsi_lun *lun = number < SCSI_LUNS_MAX ? mapping_remove(target, number) : NULL;

	if (!lun)
		return -ENOENT;
	return scsi_lun_wait(lun, target);
}

int scsi_lun_wait(struct scsi_lun *lun, const struct scsi_target *target)
{
	for (unsigned int waited_ms = 0; !lun_unused(lun, target); waited_ms += 2) {
		if (waited_ms >= SCSI_DRAIN_MS)
			return -EBUSY;
		usleep(2000);
	}
	return 0;
}
