#include "tests/crash/oracle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/be.h"

/* ---- contents ---- */

#define NOISE_LEN (64u << 10)

struct stamp {
	le32 magic, tag, lba, version;
};
#define STAMP_MAGIC 0x51534543u

static const uint8_t *noise(void)
{
	static uint8_t bytes[NOISE_LEN + SIM_SECTOR];
	static bool made;

	if (!made) {
		struct rng rng = rng_of(4711, 3, 0);

		for (size_t i = 0; i < sizeof(bytes); i++)
			bytes[i] = (uint8_t)rng_next(&rng);
		made = true;
	}
	return bytes;
}

/* Versions differ in how well they compress: all, half or not at all. */
static void sector_make(uint8_t *to, uint32_t tag, uint32_t lba, uint32_t version)
{
	uint64_t h = rng_mix((uint64_t)version << 32 ^ (uint64_t)tag << 24 ^ lba);
	uint32_t kind = (uint32_t)rng_mix(version) % 3;
	struct stamp *stamp = (struct stamp *)to;
	size_t text = kind == 0 ? SIM_SECTOR : kind == 1 ? SIM_SECTOR / 2 : sizeof(*stamp);

	memset(to, 'a' + (int)(version % 26), text);
	memcpy(to + text, noise() + h % NOISE_LEN, SIM_SECTOR - text);
	le32_put(&stamp->magic, STAMP_MAGIC);
	le32_put(&stamp->tag, tag);
	le32_put(&stamp->lba, lba);
	le32_put(&stamp->version, version);
}

void stamp_write(void *to, uint32_t tag, uint32_t lba, uint32_t n, uint32_t version)
{
	uint8_t *p = to;

	if (!version) {
		memset(to, 0, (size_t)n * SIM_SECTOR);
		return;
	}
	for (uint32_t i = 0; i < n; i++)
		sector_make(p + (size_t)i * SIM_SECTOR, tag, lba + i, version);
}

uint32_t stamp_read(const void *sector, uint32_t tag, uint32_t lba)
{
	static const uint8_t zeros[SIM_SECTOR];
	const struct stamp *stamp = sector;
	uint8_t right[SIM_SECTOR];
	uint32_t version = le32_get(&stamp->version);

	if (le32_get(&stamp->magic) == STAMP_MAGIC) {
		sector_make(right, tag, lba, version);
		return memcmp(sector, right, SIM_SECTOR) ? ORACLE_FOREIGN : version;
	}
	return memcmp(sector, zeros, SIM_SECTOR) ? ORACLE_FOREIGN : 0;
}

/* ---- books ---- */

static void *xrealloc(void *p, size_t n, size_t size)
{
	p = realloc(p, n * size);
	if (!p)
		sim_fail("no memory");
	return p;
}

struct oracle *oracle_create(uint32_t atomic_sectors)
{
	struct oracle *oracle = xrealloc(NULL, 1, sizeof(*oracle));

	*oracle = (struct oracle){ .next_version = 1,
				   .next_tag = 1,
				   .atomic_sectors = atomic_sectors };
	return oracle;
}

void oracle_destroy(struct oracle *oracle)
{
	if (!oracle)
		return;
	for (size_t i = 0; i < ORACLE_VOLUMES_MAX; i++) {
		struct oracle_volume *volume = oracle->volumes[i];

		if (!volume)
			continue;
		free(volume->base);
		free(volume->settled);
		free(volume->ops);
		free(volume->promises);
		free(volume->retry);
		free(volume);
	}
	free(oracle);
}

struct oracle_volume *oracle_add_volume(struct oracle *oracle, const char *name,
					const struct volume_settings *settings,
					uint32_t sectors_max, uint32_t event)
{
	struct oracle_volume *volume;
	size_t i;

	for (i = 0; i < ORACLE_VOLUMES_MAX && oracle->volumes[i]; i++)
		;
	if (i == ORACLE_VOLUMES_MAX)
		return NULL;
	volume = xrealloc(NULL, 1, sizeof(*volume));
	*volume = (struct oracle_volume){
		.tag = oracle->next_tag++,
		.settings = *settings,
		.sectors_max = sectors_max,
		.created = event,
		.created_acked = SIM_NEVER,
		.deleted = SIM_NEVER,
		.deleted_acked = SIM_NEVER,
		.grown = SIM_NEVER,
		.grown_acked = SIM_NEVER,
	};
	snprintf(volume->name, sizeof(volume->name), "%s", name);
	volume->base = xrealloc(NULL, sectors_max, sizeof(uint32_t));
	memset(volume->base, 0, sectors_max * sizeof(uint32_t));
	volume->settled = xrealloc(NULL, sectors_max, sizeof(uint32_t));
	memset(volume->settled, 0, sectors_max * sizeof(uint32_t));
	oracle->volumes[i] = volume;
	return volume;
}

uint32_t oracle_submit(struct oracle *oracle, struct oracle_volume *volume,
		       const struct oracle_op *op)
{
	struct oracle_op *new;

	if (volume->nops == volume->ops_room) {
		volume->ops_room = volume->ops_room ? volume->ops_room * 2 : 32;
		volume->ops = xrealloc(volume->ops, volume->ops_room, sizeof(*op));
	}
	new = &volume->ops[volume->nops];
	*new = *op;
	new->acked = SIM_NEVER;
	new->excluded = false;
	if (op->type == ORACLE_WRITE && !op->version)
		new->version = oracle->next_version++;
	else if (op->type != ORACLE_WRITE)
		new->version = 0;
	return volume->nops++;
}

void oracle_promise(struct oracle_volume *volume, uint32_t event, uint32_t nops)
{
	if (volume->npromises == volume->promises_room) {
		volume->promises_room = volume->promises_room ? volume->promises_room * 2 : 32;
		volume->promises = xrealloc(volume->promises, volume->promises_room,
					    sizeof(*volume->promises));
	}
	volume->promises[volume->npromises++] = (struct oracle_promise){ event, nops };
}

bool oracle_may_read(const struct oracle_volume *volume, uint32_t lba, uint32_t read_submitted,
		     uint32_t version)
{
	for (uint32_t i = volume->nops; i-- > 0;) {
		const struct oracle_op *op = &volume->ops[i];

		if (op->excluded || lba < op->lba || lba - op->lba >= op->n)
			continue;
		if (op->version == version)
			return true;
		if (op->acked < read_submitted && !op->optional)
			return false;
	}
	return volume->base[lba] == version;
}

/* ---- after a crash ---- */

/* In a model: this version, or zeros by a hint that was perhaps not taken. */
#define OR_ZEROS (1u << 31)

static void apply_sector(uint32_t *sector, const struct oracle_op *op)
{
	if (!op->optional)
		*sector = op->version;
	else if (*sector)
		*sector |= OR_ZEROS;
}

static void apply(uint32_t *sectors, const struct oracle_op *op)
{
	if (op->excluded)
		return;
	for (uint32_t i = 0; i < op->n; i++)
		apply_sector(&sectors[op->lba + i], op);
}

static bool differs(const struct oracle *oracle, uint32_t model, uint32_t observed)
{
	if (observed == ORACLE_BAD)
		return !oracle->bad_allowed;
	if (model & OR_ZEROS && !observed)
		return false;
	return (model & ~OR_ZEROS) != observed;
}

static void volume_advance(struct oracle_volume *volume, uint32_t event)
{
	while (volume->npassed < volume->npromises &&
	       volume->promises[volume->npassed].acked < event) {
		uint32_t nops = volume->promises[volume->npassed++].nops;

		if (nops > volume->nrequired)
			volume->nrequired = nops;
	}
	if (!volume->nsettled && volume->nrequired)
		memcpy(volume->settled, volume->base, volume->sectors_max * sizeof(uint32_t));
	while (volume->nsettled < volume->nrequired)
		apply(volume->settled, &volume->ops[volume->nsettled++]);
}

void oracle_advance(struct oracle *oracle, uint32_t event)
{
	for (size_t i = 0; i < ORACLE_VOLUMES_MAX; i++)
		if (oracle->volumes[i])
			volume_advance(oracle->volumes[i], event);
}

bool oracle_may_exist(const struct oracle_volume *volume, uint32_t event)
{
	return volume->created < event && !(volume->deleted_acked < event);
}

bool oracle_must_exist(const struct oracle_volume *volume, uint32_t event)
{
	return volume->created_acked < event && !(volume->deleted < event);
}

/* Is what differs only the part that is there of the next op, a long one? */
static bool partial(const struct oracle *oracle, const struct oracle_op *op, const uint32_t *model,
		    const uint32_t *observed, uint32_t ndiffer)
{
	uint32_t n = 0;

	if (op->n <= oracle->atomic_sectors)
		return false;
	for (uint32_t i = op->lba; i < op->lba + op->n; i++)
		n += differs(oracle, model[i], observed[i]) && observed[i] == op->version;
	return n == ndiffer;
}

/* The first sector at which the best prefix differs, and what that means. */
static void explain(const struct oracle *oracle, const struct oracle_volume *volume,
		    const uint32_t *model, const uint32_t *observed, uint32_t nsectors,
		    uint32_t kept, struct oracle_verdict *verdict)
{
	for (uint32_t lba = 0; lba < nsectors; lba++) {
		const char *what = "older or newer than its prefix";
		bool known = observed[lba] == volume->base[lba];

		if (!differs(oracle, model[lba], observed[lba]))
			continue;
		for (uint32_t i = 0; i < volume->nops && !known; i++)
			known = volume->ops[i].version == observed[lba];
		if (observed[lba] == ORACLE_BAD)
			what = "cannot be read";
		else if (observed[lba] == ORACLE_FOREIGN)
			what = "holds what was never written there";
		else if (!known)
			what = "dropped by a crash before, and is back";
		if (!known && observed[lba] != ORACLE_BAD)
			verdict->resurrected = true;
		else
			verdict->lost = true;
		snprintf(verdict->text, sizeof(verdict->text),
			 "volume %s sector %u: version %u where %u should be (%s); best prefix %u, "
			 "promised %u of %u",
			 volume->name, lba, observed[lba], model[lba], what, kept,
			 volume->nrequired, volume->nops);
		return;
	}
}

static uint32_t count_differing(const struct oracle *oracle, const uint32_t *model,
				const uint32_t *observed, uint32_t n)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < n; i++)
		count += differs(oracle, model[i], observed[i]);
	return count;
}

/* Applies an op to the model and says how many sectors differ now. */
static uint32_t step(const struct oracle *oracle, uint32_t *model, const struct oracle_op *op,
		     const uint32_t *observed, uint32_t ndiffer)
{
	if (op->excluded)
		return ndiffer;
	for (uint32_t i = op->lba; i < op->lba + op->n; i++) {
		ndiffer -= differs(oracle, model[i], observed[i]);
		apply_sector(&model[i], op);
		ndiffer += differs(oracle, model[i], observed[i]);
	}
	return ndiffer;
}

bool oracle_judge(const struct oracle *oracle, const struct oracle_volume *volume,
		  const uint32_t *observed, uint32_t nobserved, uint32_t event, uint32_t *nkept,
		  struct oracle_verdict *verdict)
{
	const uint32_t *from = volume->nsettled ? volume->settled : volume->base;
	uint32_t *model = xrealloc(NULL, nobserved, sizeof(uint32_t));
	uint32_t k = volume->nsettled, best = k, ndiffer, least;
	bool right = false;

	memcpy(model, from, nobserved * sizeof(uint32_t));
	ndiffer = least = count_differing(oracle, model, observed, nobserved);
	for (;;) {
		const struct oracle_op *next = &volume->ops[k];
		bool more = k < volume->nops && next->submitted < event;

		if (ndiffer < least) {
			least = ndiffer;
			best = k;
		}
		if (ndiffer == 0 ||
		    (more && !next->excluded && partial(oracle, next, model, observed, ndiffer))) {
			right = true;
			break;
		}
		if (!more)
			break;
		ndiffer = step(oracle, model, next, observed, ndiffer);
		k++;
	}
	*nkept = k;
	if (!right) {
		memcpy(model, from, nobserved * sizeof(uint32_t));
		for (uint32_t i = volume->nsettled; i < best; i++)
			apply(model, &volume->ops[i]);
		explain(oracle, volume, model, observed, nobserved, best, verdict);
	}
	free(model);
	return right;
}

/* ---- the life after ---- */

struct oracle *oracle_after(const struct oracle *oracle)
{
	struct oracle *after = oracle_create(oracle->atomic_sectors);

	after->next_version = oracle->next_version;
	after->next_tag = oracle->next_tag;
	return after;
}

void oracle_keep(struct oracle *after, const struct oracle_volume *volume, const uint32_t *observed,
		 uint32_t nobserved, uint32_t nkept, uint32_t event)
{
	struct oracle_volume *kept = oracle_add_volume(after, volume->name, &volume->settings,
						       volume->sectors_max, 0);

	kept->tag = volume->tag;
	after->next_tag--;
	kept->created = kept->created_acked = 0;
	kept->settings.nsectors = nobserved;
	memcpy(kept->base, observed, nobserved * sizeof(uint32_t));
	for (uint32_t i = nkept; i < volume->nops && volume->ops[i].submitted < event; i++) {
		if (volume->ops[i].excluded)
			continue;
		kept->retry = xrealloc(kept->retry, kept->nretry + 1, sizeof(*kept->retry));
		kept->retry[kept->nretry++] = volume->ops[i];
	}
}
