/* What is in the pool after a crash, and whether that may be. */
#include "tests/crash/life.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct read_done {
	struct vreq req;
	struct iovec iov;
	bool done;
};

#define READS 8u
#define CHUNK 256u /* sectors */

static void read_answered(struct vreq *req)
{
	container_of(req, struct read_done, req)->done = true;
}

static void begin(struct volume *volume, struct read_done *rd, uint8_t *buf, uint64_t lba,
		  uint32_t n)
{
	rd->iov = (struct iovec){ buf, (size_t)n * SIM_SECTOR };
	rd->done = false;
	rd->req = (struct vreq){ .op = VREQ_READ,
				 .lba = lba,
				 .nsectors = n,
				 .iov = &rd->iov,
				 .iovcnt = 1,
				 .done = read_answered };
	volume_submit(volume, &rd->req);
}

static void await(struct life *life, const struct read_done *rd)
{
	while (!rd->done)
		if (!sim_step(&life->sim))
			sim_fail("a read of sector %llu is not answered and nothing is to come",
				 (unsigned long long)rd->req.lba);
}

/* The sectors of a read that failed, one by one: each is right or bad. */
static void read_singly(struct life *life, struct volume *handle,
			const struct oracle_volume *volume, uint32_t lba, uint32_t n,
			uint32_t *observed)
{
	uint8_t sector[SIM_SECTOR * 8];
	uint32_t grain = volume->settings.block_len / SIM_SECTOR;
	struct read_done rd;

	for (uint32_t i = 0; i < n; i += grain) {
		begin(handle, &rd, sector, lba + i, grain);
		await(life, &rd);
		if (rd.req.err && rd.req.err != EBADMSG && rd.req.err != EIO)
			sim_fail("a read gave %s", strerror(rd.req.err));
		for (uint32_t j = 0; j < grain; j++)
			observed[lba + i + j] =
				rd.req.err ? ORACLE_BAD
					   : stamp_read(sector + (size_t)j * SIM_SECTOR,
							volume->tag, lba + i + j);
	}
}

uint32_t life_observe(struct life *life, const struct oracle_volume *volume, uint32_t *observed)
{
	struct volume *handle = volume_find(life->pool, volume->name);
	static uint8_t buf[READS][CHUNK * SIM_SECTOR];
	struct read_done reads[READS];
	struct volume_info info;
	uint32_t nsectors;

	volume_info(handle, &info);
	nsectors = (uint32_t)info.settings.nsectors;
	if (nsectors > volume->sectors_max)
		nsectors = volume->sectors_max;
	for (uint32_t lba = 0; lba < nsectors;) {
		uint32_t n[READS], nreads = 0, at = lba;

		for (; nreads < READS && at < nsectors; nreads++) {
			n[nreads] = nsectors - at < CHUNK ? nsectors - at : CHUNK;
			begin(handle, &reads[nreads], buf[nreads], at, n[nreads]);
			at += n[nreads];
		}
		for (uint32_t r = 0; r < nreads; r++) {
			await(life, &reads[r]);
			if (reads[r].req.err)
				read_singly(life, handle, volume, lba, n[r], observed);
			else
				for (uint32_t i = 0; i < n[r]; i++)
					observed[lba + i] =
						stamp_read(buf[r] + (size_t)i * SIM_SECTOR,
							   volume->tag, lba + i);
			lba += n[r];
		}
	}
	return nsectors;
}

static bool judge_existence(struct life *life, const struct oracle_volume *volume, uint32_t event,
			    bool taken, struct oracle_verdict *verdict)
{
	bool there = !taken && volume_find(life->pool, volume->name);

	if (!there && oracle_must_exist(volume, event)) {
		verdict->lost = true;
		snprintf(verdict->text, sizeof(verdict->text), "volume %s is gone", volume->name);
	}
	return there && oracle_may_exist(volume, event);
}

static bool judge_capacity(const struct oracle_volume *volume, uint32_t nsectors, uint32_t event,
			   struct oracle_verdict *verdict)
{
	uint64_t before = volume->settings.nsectors;
	bool grown = volume->grown < event && nsectors == volume->grown_nsectors;

	if (volume->grown_acked != SIM_NEVER)
		before = volume->grown_nsectors - 64;
	if (grown || (nsectors == before && !(volume->grown_acked < event)))
		return true;
	verdict->lost = true;
	snprintf(verdict->text, sizeof(verdict->text), "volume %s has %u sectors", volume->name,
		 nsectors);
	return false;
}

static bool judge_volume(struct life *life, const struct oracle *oracle,
			 const struct oracle_volume *volume, uint32_t event, struct oracle *after,
			 struct oracle_verdict *verdict)
{
	uint32_t *observed = calloc(volume->sectors_max, sizeof(*observed));
	uint32_t nsectors, nkept;
	bool right;

	if (!observed)
		sim_fail("no memory");
	nsectors = life_observe(life, volume, observed);
	right = judge_capacity(volume, nsectors, event, verdict) &&
		oracle_judge(oracle, volume, observed, nsectors, event, &nkept, verdict);
	if (right)
		oracle_keep(after, volume, observed, nsectors, nkept, event);
	free(observed);
	return right;
}

struct oracle *life_verify(struct life *life, const struct oracle *oracle, uint32_t event,
			   struct oracle_verdict *verdict)
{
	struct oracle *after = oracle_after(oracle);
	struct volume *found;
	uint32_t known = 0, nfound = 0;

	*verdict = (struct oracle_verdict){ 0 };
	for (size_t i = 0; i < ORACLE_VOLUMES_MAX; i++) {
		const struct oracle_volume *volume = oracle->volumes[i];
		bool taken = false;

		if (!volume)
			continue;
		for (size_t j = 0; j < ORACLE_VOLUMES_MAX; j++)
			taken |= after->volumes[j] &&
				 !strcmp(after->volumes[j]->name, volume->name);
		if (!judge_existence(life, volume, event, taken, verdict)) {
			if (!verdict->lost)
				continue;
			goto wrong;
		}
		if (!judge_volume(life, oracle, volume, event, after, verdict))
			goto wrong;
		known++;
	}
	for (found = volume_next(life->pool, NULL); found; found = volume_next(life->pool, found))
		nfound++;
	if (nfound != known) {
		verdict->resurrected = true;
		snprintf(verdict->text, sizeof(verdict->text), "%u volumes where %u should be",
			 nfound, known);
		goto wrong;
	}
	return after;
wrong:
	oracle_destroy(after);
	return NULL;
}
