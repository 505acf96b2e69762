#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backing/volume/format.h"
#include "tests/crash/damage.h"
#include "tests/crash/locate.h"

#define SEGMENT_LEN (256u << 10)

static bool empty(const struct image *image, uint64_t off)
{
	static const uint8_t zeros[IMAGE_PAGE];

	return !memcmp(image->mem + off, zeros, IMAGE_PAGE);
}

static void fail(struct plan *plan, const char *text)
{
	plan->outcome->nlost++;
	if (!plan->outcome->text[0])
		snprintf(plan->outcome->text, sizeof(plan->outcome->text), "%s: %.700s",
			 plan->outcome->where, text);
}

/* Sectors of the volume that cannot be read: of the record that was hit alone,
 * or, where a page of the map was hit, of no more than a region. */
static uint64_t judge_volume(struct plan *plan, struct life *life,
			     const struct oracle_volume *volume, const struct place *place)
{
	uint32_t *observed = calloc(volume->sectors_max, sizeof(*observed));
	uint64_t nbad = 0;
	struct volume_info info;
	uint32_t n;

	if (!observed)
		sim_fail("no memory");
	volume_info(volume_find(life->pool, volume->name), &info);
	n = life_observe(life, volume, observed);
	for (uint32_t lba = 0; lba < n; lba++) {
		if (observed[lba] != ORACLE_BAD)
			continue;
		nbad++;
		if (place->record && (place->volume != info.id || lba < place->lba ||
				      lba - place->lba >= place->nsectors))
			fail(plan, "a sector of another record cannot be read");
	}
	free(observed);
	return nbad;
}

static void judge_bad(struct plan *plan, struct life *life, const struct oracle *oracle,
		      const struct place *place)
{
	uint64_t nbad = 0;

	for (size_t i = 0; i < ORACLE_VOLUMES_MAX; i++)
		if (oracle->volumes[i])
			nbad += judge_volume(plan, life, oracle->volumes[i], place);
	plan->outcome->nbad += nbad > 0;
	plan->outcome->nright += nbad == 0;
	if (nbad > VF_REGION_SECTORS)
		fail(plan, "one bit makes more than a region unreadable");
}

static void run_flip(struct plan *plan, struct image *image, struct oracle *oracle, uint64_t off,
		     uint8_t bit)
{
	struct place place = locate(image, SEGMENT_LEN, off);
	uint8_t byte = image->mem[off] ^ (uint8_t)(1u << bit);
	struct oracle_verdict verdict;
	struct pool_info info;
	struct oracle *after;
	struct life life;
	struct err err = { "" };

	image_mark(image);
	image_write(image, off, &byte, 1);
	life_init(&life, plan->profile, image, plan->seed + off, NULL);
	life.mutant = plan->mutant;
	if (life_open(&life, &err)) {
		plan->outcome->nrefused++;
		if (!err.text[0])
			fail(plan, "refused without a word");
	} else {
		pool_info(life.pool, &info);
		after = life_verify(&life, oracle, 1, &verdict);
		if (info.read_only)
			plan->outcome->nread_only++;
		if (info.read_only && (!info.why_read_only || !info.why_read_only[0]))
			fail(plan, "read-only without a word");
		else if (!after && !(info.read_only && !strstr(verdict.text, "never written")))
			fail(plan, verdict.text);
		else if (after && !info.read_only)
			judge_bad(plan, &life, oracle, &place);
		oracle_destroy(after);
	}
	life_abandon(&life);
	life_release(&life);
	image_rollback(image);
}

void flips_run(struct plan *plan)
{
	struct outcome *out = plan->outcome;
	struct rng rng = rng_of(plan->seed, 9, 0);
	struct image image;
	struct oracle *oracle;

	image_init(&image, plan->profile->pool_len, plan->profile->pool_len);
	oracle = damage_prepare(plan, &image, plan->fault.count == 0);
	oracle->bad_allowed = true;
	for (uint64_t page = 0; page < image.len; page += IMAGE_PAGE) {
		for (unsigned int i = 0; i < 3 && !empty(&image, page); i++) {
			static const uint32_t within[] = { 128, 1024, IMAGE_PAGE };
			uint64_t off = page + rng_below(&rng, within[i]);
			uint8_t bit = (uint8_t)rng_below(&rng, 8);

			if (plan->budget && rng_below(&rng, 100) >= plan->budget)
				continue;
			snprintf(out->where, sizeof(out->where),
				 "flip seed %llu: bit %u of byte %llu, in %s",
				 (unsigned long long)plan->seed, bit, (unsigned long long)off,
				 locate(&image, SEGMENT_LEN, off).kind);
			snprintf(sim_where, sizeof(sim_where), "%s", out->where);
			run_flip(plan, &image, oracle, off, bit);
			out->npoints++;
			if (out->nlost)
				goto out;
		}
	}
out:
	oracle_destroy(oracle);
	image_release(&image);
	out->finished = true;
}
