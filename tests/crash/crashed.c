#include "tests/crash/crashed.h"

#include <stdlib.h>

static void apply_part(struct image *image, const struct sim_change *change, struct rng *rng)
{
	uint64_t n = change->kind == SIM_GROW ? 1 : change->len / SIM_SECTOR;
	uint8_t *mask = calloc(1, n / 8 + 1);

	if (!mask)
		sim_fail("no memory");
	for (uint64_t i = 0; i < n; i++)
		mask[i / 8] |= (uint8_t)(rng_below(rng, 2) << i % 8);
	sim_apply(image, change, mask);
	free(mask);
}

void crashed_apply(struct image *image, const struct sim *sim, struct rng *rng, bool pending_all)
{
	for (size_t i = 0; i < sim->nchanges; i++) {
		const struct sim_change *change = &sim->changes[i];
		uint64_t lot = rng_below(rng, 4);

		if (change->dropped != SIM_NEVER)
			continue;
		if (change->durable != SIM_NEVER || pending_all || lot == 0)
			sim_apply(image, change, NULL);
		else if (lot == 1)
			apply_part(image, change, rng);
	}
}
