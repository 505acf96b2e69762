/* I_T nexuses: what a session knows of each LUN. */
#include "target/scsi/internal.h"

#include <assert.h>

struct nexus_lun *nexus_lun(struct scsi_nexus *nexus, int number)
{
	struct nexus_page *page;

	if (number < 0 || number >= SCSI_LUNS_MAX)
		return NULL;
	page = atomic_load_explicit(&nexus->pages[number / LUN_PAGE], memory_order_acquire);
	return page ? &page->lun[number % LUN_PAGE] : NULL;
}

bool nexus_add_lun(struct scsi_nexus *nexus, uint16_t number)
{
	_Atomic(struct nexus_page *) *slot = &nexus->pages[number / LUN_PAGE];
	struct nexus_page *page = atomic_load(slot);

	if (!page) {
		page = calloc(1, sizeof(*page));
		if (!page)
			return false;
		atomic_store_explicit(slot, page, memory_order_release);
	}
	atomic_store(&page->lun[number % LUN_PAGE].pending, 1u << UA_POWER_ON);
	page->lun[number % LUN_PAGE].prevent = false;
	return true;
}

/* Under target->lock. */
static bool nexus_add_all(struct scsi_nexus *nexus)
{
	struct scsi_target *target = nexus->target;

	for (size_t i = 0; i < ARRAY_LEN(target->pages); i++) {
		struct map_page *page = atomic_load(&target->pages[i]);

		for (size_t j = 0; page && j < LUN_PAGE; j++) {
			struct scsi_lun *lun = atomic_load(&page->lun[j]);

			if (!lun)
				continue;
			if (!nexus_add_lun(nexus, (uint16_t)(i * LUN_PAGE + j)) ||
			    !lun_reactor_get(lun, nexus->reactor))
				return false;
		}
	}
	return true;
}

static void nexus_free(struct scsi_nexus *nexus)
{
	for (size_t i = 0; i < ARRAY_LEN(nexus->pages); i++)
		free(atomic_load(&nexus->pages[i]));
	free(nexus);
}

struct scsi_nexus *scsi_nexus_open(struct scsi_target *target, const struct scsi_nexus_id *id,
				   struct reactor *reactor)
{
	struct scsi_nexus *nexus = calloc(1, sizeof(*nexus));
	bool good;

	if (!nexus)
		return NULL;
	nexus->target = target;
	nexus->reactor = reactor;
	nexus->id = *id;
	pthread_mutex_lock(&target->lock);
	good = nexus_add_all(nexus);
	if (good)
		list_add_tail(&target->nexuses, &nexus->link);
	pthread_mutex_unlock(&target->lock);
	if (!good) {
		nexus_free(nexus);
		return NULL;
	}
	return nexus;
}

/* lun->lock is held. */
void nexus_release_lun(struct scsi_nexus *nexus, struct scsi_lun *lun, uint16_t number)
{
	struct nexus_lun *nl = nexus_lun(nexus, number);

	reservation_release(lun, nexus);
	if (nl && nl->prevent) {
		nl->prevent = false;
		assert(lun->nprevent > 0);
		lun->nprevent--;
	}
}

static void nexus_release_all(struct scsi_nexus *nexus)
{
	for (int number = 0; number < SCSI_LUNS_MAX; number++) {
		struct scsi_lun *lun;

		if (!nexus_lun(nexus, number)) {
			number |= LUN_PAGE - 1;
			continue;
		}
		lun = target_lun(nexus->target, number);
		if (!lun)
			continue;
		pthread_mutex_lock(&lun->lock);
		nexus_release_lun(nexus, lun, (uint16_t)number);
		pthread_mutex_unlock(&lun->lock);
	}
}

void scsi_nexus_close(struct scsi_nexus *nexus)
{
	if (!nexus)
		return;
	if (nexus->holds)
		nexus_release_all(nexus);
	pthread_mutex_lock(&nexus->target->lock);
	list_del(&nexus->link);
	pthread_mutex_unlock(&nexus->target->lock);
	nexus_free(nexus);
}

const struct scsi_nexus_id *scsi_nexus_id(const struct scsi_nexus *nexus)
{
	return &nexus->id;
}

/* ---- LUN fields (SAM-5 4.7.7) ---- */

int scsi_lun_number(const uint8_t field[8])
{
	static const uint8_t zeros[6];

	if (memcmp(field + 2, zeros, 6) != 0)
		return -1;
	switch (field[0] >> 6) {
	case 0: /* peripheral device addressing, bus 0 */ return field[0] == 0 ? field[1] : -1;
	case 1: /* flat space addressing */ return (field[0] & 0x3f) << 8 | field[1];
	default: return -1;
	}
}

void scsi_lun_field(uint16_t number, uint8_t field[8])
{
	memset(field, 0, 8);
	if (number < 256) {
		field[1] = (uint8_t)number;
		return;
	}
	be16_store(field, (uint16_t)(0x4000 | number));
}

bool scsi_nexus_has_lun(struct scsi_nexus *nexus, const uint8_t lun_field[8])
{
	return scsi_nexus_lun(nexus, lun_field) != NULL;
}

struct scsi_lun *scsi_nexus_lun(struct scsi_nexus *nexus, const uint8_t lun_field[8])
{
	return target_lun(nexus->target, scsi_lun_number(lun_field));
}
