/*
 * Fuzzes pool_open(), reads and pool_check() with a pool that was changed.
 *
 * The input is a list of changes of 16 bytes each: where, what, and whether the
 * structure there is given a right sum again, so that its fields are met by more
 * than vf_check().  Whatever the pool says, reads give what was written or an
 * error; nothing else is expected of it than not to break.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "backing/volume/pool.h"
#include "tests/crash/simenv.h"

#define POOL_LEN    (16u << 20)
#define VOLUME_LEN  (1u << 20)
#define CHANGE_LEN  16u
#define CHANGES_MAX 64u
#define STEPS_MAX   2000000u

static struct image image;

struct wait {
	struct vreq req;
	bool done;
};

static void done(struct vreq *req)
{
	container_of(req, struct wait, req)->done = true;
}

static int request(struct sim *sim, struct volume *volume, uint8_t op, uint64_t lba,
		   const struct iovec *iov)
{
	struct wait wait = {
		.req = {
			.op = op,
			.lba = lba,
			.nsectors = iov ? iov->iov_len / VF_SECTOR : 0,
			.iov = iov,
			.iovcnt = iov ? 1 : 0,
			.done = done,
		},
	};

	volume_submit(volume, &wait.req);
	while (!wait.done)
		if (!sim_step(sim) || sim->nsteps > STEPS_MAX)
			abort();
	return wait.req.err;
}

static int open_pool(struct sim *sim, uint64_t seed, struct pool **pool)
{
	struct pool_open_args args = {
		.name = "fuzz", .cache_memory = POOL_MEMORY_MIN, .threshold = 80, .quiet = true
	};
	struct err err;
	int rc;

	sim_init(sim, &image, seed, 0);
	rc = pool_open(&sim->env, &args, pool, &err);
	if (!rc)
		sim->env.pool = *pool;
	return rc;
}

/* What sector lba of volume v holds, of the given round. */
static void fill(uint8_t *data, size_t len, uint64_t lba, unsigned int v, unsigned int round)
{
	for (size_t i = 0; i < len; i += 8) {
		uint64_t word = (lba + i / VF_SECTOR) << 8 | v << 4 | round;

		if (i % 32 < 16)
			word *= 0x9e3779b97f4a7c15u;
		memcpy(data + i, &word, 8);
	}
}

static void write_volume(struct sim *sim, struct volume *volume, unsigned int v)
{
	static uint8_t data[65536];
	struct iovec iov = { data, sizeof(data) };

	for (uint64_t off = 0; off < VOLUME_LEN / 2; off += sizeof(data)) {
		fill(data, sizeof(data), off / VF_SECTOR, v, 0);
		request(sim, volume, VREQ_WRITE, off / VF_SECTOR, &iov);
	}
	request(sim, volume, VREQ_FLUSH, 0, NULL);
	iov.iov_len = 4096;
	for (uint64_t off = 4096; off < VOLUME_LEN / 2; off += 5 * 4096) {
		fill(data, 4096, off / VF_SECTOR, v, 1);
		request(sim, volume, VREQ_WRITE, off / VF_SECTOR, &iov);
	}
	request(sim, volume, VREQ_FLUSH, 0, NULL);
}

/* A pool of two volumes: a checkpoint, and some log behind it. */
static void make_pool(void)
{
	struct pool_create_args create = { .host_free = UINT64_MAX };
	struct volume_settings settings = {
		.nsectors = VOLUME_LEN / VF_SECTOR,
		.block_len = 512,
		.record_len = 16384,
		.codec = { CODEC_LZ4, 1 },
	};
	struct sim sim;
	struct pool *pool;
	struct volume *volumes[2];
	struct err err;

	image_init(&image, POOL_LEN, POOL_LEN);
	sim_init(&sim, &image, 1, 0);
	if (pool_create(&sim.env, &create, false, &err))
		abort();
	sim_release(&sim);
	if (open_pool(&sim, 2, &pool) || volume_create(pool, "plain", &settings, &volumes[0], &err))
		abort();
	settings.checksum = VF_SHA256;
	settings.codec = (struct codec_choice){ CODEC_DEFLATE, 6 };
	if (volume_create(pool, "wide", &settings, &volumes[1], &err))
		abort();
	write_volume(&sim, volumes[0], 0);
	if (pool_checkpoint(pool, &err))
		abort();
	write_volume(&sim, volumes[1], 1);
	sim_cut(&sim);
	pool_close(pool);
	sim_release(&sim);
}

/* A right sum, where a structure of ours begins. */
static void seal(uint64_t off)
{
	uint8_t buf[65536];
	struct vf_head *head = (struct vf_head *)buf;
	uint32_t len;

	image_read(&image, off, buf, sizeof(buf));
	len = le32_get(&head->len);
	if (le32_get(&head->magic) == VF_MAGIC && len >= sizeof(*head) && len <= sizeof(buf)) {
		uint8_t uuid[16];

		memcpy(uuid, head->uuid, sizeof(uuid));
		vf_seal(head, head->type, len, uuid);
		image_write(&image, off, buf, len);
	}
}

/* Where structures are is found by their magic: the place is an ordinal among
 * the blocks that begin with one, or any byte. */
static void change(const uint8_t *in)
{
	uint64_t off = 0;
	uint32_t ordinal;

	memcpy(&ordinal, in, sizeof(ordinal));
	if (in[4] & 1) {
		ordinal %= 256;
		for (; off < POOL_LEN - 65536 && ordinal; off += VF_BLOCK)
			if (le32_get((const le32 *)(image.mem + off)) == VF_MAGIC)
				ordinal--;
		off = off ? off - VF_BLOCK : 0;
		image_write(&image, off + in[5] * 4u, in + 8, 1 + in[6] % 8);
		if (in[4] & 2)
			seal(off);
	} else {
		image_write(&image, ordinal % (POOL_LEN - 8), in + 8, 1 + in[6] % 8);
	}
}

static void read_volume(struct sim *sim, struct volume *volume)
{
	static uint8_t data[65536];
	struct volume_info info;
	struct iovec iov = { data, sizeof(data) };

	volume_info(volume, &info);
	for (uint64_t lba = 0; lba < info.settings.nsectors && lba < 2 * VOLUME_LEN / VF_SECTOR;
	     lba += sizeof(data) / VF_SECTOR) {
		uint64_t left = info.settings.nsectors - lba;

		iov.iov_len = sizeof(data);
		if (left < sizeof(data) / VF_SECTOR)
			iov.iov_len = left * VF_SECTOR;
		request(sim, volume, VREQ_READ, lba, &iov);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pool_check_report report = { .nerrors = 0 };
	struct sim sim;
	struct pool *pool;
	struct err err;

	if (!image.mem)
		make_pool();
	image_mark(&image);
	for (size_t i = 0; i + CHANGE_LEN <= size && i < CHANGES_MAX * CHANGE_LEN; i += CHANGE_LEN)
		change(data + i);
	if (open_pool(&sim, 3, &pool) == 0) {
		for (struct volume *v = volume_next(pool, NULL); v; v = volume_next(pool, v))
			read_volume(&sim, v);
		if (pool_quiesce(pool, &err) == 0)
			pool_check(pool, POOL_CHECK_DEEP, &report, &err);
		sim_cut(&sim);
		pool_close(pool);
	}
	sim_release(&sim);
	image_rollback(&image);
	return 0;
}
