/*
 * Figures of the volume engine by itself, over a device in memory:
 *
 *	engine cpu		CPU per 4 KiB write and read, by codec
 *	engine amplification	bytes written per byte of users', at 50, 80 and 90 %
 *	engine map		bytes of map pages per random write
 *	engine recovery		seconds to open, per GiB of log to replay
 *	engine space FILE...	stored bytes of real data, by codec and record size
 *
 * `make bench-engine` runs all but space.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backing/volume/pool.h"
#include "tests/bench/memenv.h"

#define MIB	(UINT64_C(1) << 20)
#define SECTORS (4096 / VF_SECTOR)
#define QUEUE	32

struct bench {
	struct memenv mem;
	struct pool *pool;
	struct volume *volume;
	struct slot {
		struct vreq req;
		struct iovec iov;
		struct bench *bench;
		bool busy;
		uint8_t *data;
	} slots[QUEUE];
	uint64_t rng;
	uint32_t ndone;
};

static void die(const char *what, const struct err *err)
{
	fprintf(stderr, "%s: %s\n", what, err->text);
	exit(1);
}

static uint64_t random64(struct bench *bench)
{
	bench->rng ^= bench->rng << 13;
	bench->rng ^= bench->rng >> 7;
	bench->rng ^= bench->rng << 17;
	return bench->rng;
}

/* Half of it random, half of it zeros: 2:1 for every codec. */
static void fill(struct bench *bench, uint8_t *data, size_t len)
{
	for (size_t i = 0; i < len; i += 8) {
		uint64_t v = i % 64 < 32 ? random64(bench) : 0x2020202020202020u;

		memcpy(data + i, &v, 8);
	}
}

static void pool_start(struct bench *bench, uint64_t memory)
{
	struct pool_open_args args = {
		.name = "bench", .cache_memory = memory, .threshold = 80, .quiet = true
	};
	struct err err;

	if (pool_open(&bench->mem.env, &args, &bench->pool, &err))
		die("open", &err);
	bench->mem.env.pool = bench->pool;
	bench->volume = volume_find(bench->pool, "v");
}

static void bench_init(struct bench *bench, uint64_t len, uint64_t memory, uint64_t volume_len,
		       const struct codec_choice *codec)
{
	struct pool_create_args create = { .host_free = UINT64_MAX };
	struct volume_settings settings = {
		.nsectors = volume_len / VF_SECTOR,
		.block_len = 4096,
		.record_len = 16384,
		.codec = *codec,
	};
	struct err err;

	*bench = (struct bench){ .rng = 88172645463325252u };
	memenv_init(&bench->mem, len);
	for (unsigned int i = 0; i < QUEUE; i++) {
		bench->slots[i].bench = bench;
		bench->slots[i].data = aligned_alloc(4096, MIB);
		if (!bench->slots[i].data)
			exit(1);
		fill(bench, bench->slots[i].data, MIB);
	}
	if (pool_create(&bench->mem.env, &create, false, &err))
		die("create", &err);
	pool_start(bench, memory);
	if (volume_create(bench->pool, "v", &settings, &bench->volume, &err))
		die("volume", &err);
}

static void pool_stop(struct bench *bench)
{
	struct err err;

	if (pool_quiesce(bench->pool, &err))
		die("quiesce", &err);
	pool_close(bench->pool);
	bench->mem.env.pool = NULL;
}

static void bench_release(struct bench *bench)
{
	pool_stop(bench);
	memenv_release(&bench->mem);
	for (unsigned int i = 0; i < QUEUE; i++)
		free(bench->slots[i].data);
}

static void done(struct vreq *req)
{
	struct slot *slot = container_of(req, struct slot, req);

	if (req->err) {
		fprintf(stderr, "request %u at %" PRIu64 ": %s\n", req->op, req->lba,
			strerror(req->err));
		exit(1);
	}
	slot->busy = false;
	slot->bench->ndone++;
}

static void submit(struct bench *bench, struct slot *slot, uint8_t op, uint64_t lba, uint64_t len)
{
	slot->iov = (struct iovec){ .iov_base = slot->data, .iov_len = len };
	slot->req = (struct vreq){
		.op = op,
		.lba = lba,
		.nsectors = len / VF_SECTOR,
		.iov = &slot->iov,
		.iovcnt = 1,
		.done = done,
	};
	slot->busy = true;
	volume_submit(bench->volume, &slot->req);
}

static void drain(struct bench *bench)
{
	for (unsigned int i = 0; i < QUEUE; i++)
		while (bench->slots[i].busy)
			bench->mem.env.ops->wait(&bench->mem.env);
}

/* n operations of 4 KiB at random places below span, QUEUE at a time. */
static void random_4k(struct bench *bench, uint8_t op, uint64_t span, uint64_t n)
{
	for (uint64_t i = 0; i < n;) {
		for (unsigned int s = 0; s < QUEUE && i < n; s++) {
			struct slot *slot = &bench->slots[s];

			if (slot->busy)
				continue;
			if (op == VREQ_WRITE)
				fill(bench, slot->data, 4096);
			submit(bench, slot, op, random64(bench) % (span / 4096) * SECTORS, 4096);
			i++;
		}
		memenv_turn(&bench->mem);
	}
	drain(bench);
}

static void write_all(struct bench *bench, uint64_t span, bool compressible)
{
	for (uint64_t off = 0; off < span; off += MIB / 4) {
		struct slot *slot = &bench->slots[off / (MIB / 4) % QUEUE];

		while (slot->busy)
			bench->mem.env.ops->wait(&bench->mem.env);
		for (size_t i = 0; i < MIB / 4; i += 8) {
			uint64_t v = compressible && i % 64 >= 32 ? 0 : random64(bench);

			memcpy(slot->data + i, &v, 8);
		}
		submit(bench, slot, VREQ_WRITE, off / VF_SECTOR, MIB / 4);
	}
	drain(bench);
}

static void flush(struct bench *bench)
{
	drain(bench);
	submit(bench, &bench->slots[0], VREQ_FLUSH, 0, 0);
	drain(bench);
}

/* ---- the benchmarks ---- */

static void one_cpu(const char *name)
{
	enum { N = 200000 };
	struct codec_choice codec;
	struct bench bench;
	struct err err;
	double us[3];
	uint64_t fill_ns;

	if (codec_parse(name, &codec, &err))
		die(name, &err);
	bench_init(&bench, 4096 * MIB, 256 * MIB, 1024 * MIB, &codec);
	fill_ns = clock_ns();
	for (int i = 0; i < N; i++)
		fill(&bench, bench.slots[i % QUEUE].data, 4096);
	fill_ns = clock_ns() - fill_ns;
	for (int pass = 0; pass < 3; pass++) {
		uint64_t start = clock_ns(), device = bench.mem.device_ns;

		random_4k(&bench, pass == 2 ? VREQ_READ : VREQ_WRITE, 512 * MIB, N);
		if (pass < 2)
			flush(&bench);
		us[pass] = (double)(clock_ns() - start - (bench.mem.device_ns - device) -
				    (pass < 2 ? fill_ns : 0)) /
			   N / 1000;
	}
	printf("%-8s 4K random write %5.2f us, again %5.2f us, read %5.2f us (codec and "
	       "checksum in it, device apart)\n",
	       name, us[0], us[1], us[2]);
	bench_release(&bench);
}

static void run_cpu(void)
{
	static const char *const names[] = { "none", "lz4", "lzjb", "gzip-6" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		one_cpu(names[i]);
}

static void run_amplification(void)
{
	static const unsigned int percents[] = { 50, 80, 90 };
	struct codec_choice none = { CODEC_RAW, 0 };

	for (size_t i = 0; i < ARRAY_LEN(percents); i++) {
		struct bench bench;
		struct pool_info info, before;
		uint64_t span;

		bench_init(&bench, 1024 * MIB, 64 * MIB, 1024 * MIB, &none);
		pool_info(bench.pool, &info);
		span = (info.used + info.available) / 100 * percents[i] / MIB * MIB;
		write_all(&bench, span, false);
		random_4k(&bench, VREQ_WRITE, span, span / 4096 * 2);
		pool_info(bench.pool, &before);
		random_4k(&bench, VREQ_WRITE, span, span / 4096 * 2);
		flush(&bench);
		pool_info(bench.pool, &info);
		printf("%u %% of %" PRIu64 " MiB full, uniform random 4K: data %.2f, map %.2f\n",
		       percents[i], (info.used + info.available) / MIB,
		       1 + (double)(info.moved_bytes - before.moved_bytes) /
				       (double)(info.user_bytes - before.user_bytes),
		       (double)(info.bulk_map_bytes - before.bulk_map_bytes) /
			       (double)(info.user_bytes - before.user_bytes));
		fflush(stdout);
		bench_release(&bench);
	}
}

static void run_map(void)
{
	struct codec_choice none = { CODEC_RAW, 0 };
	struct bench bench;
	struct pool_info before, after;

	bench_init(&bench, 64 * 1024 * MIB, 512 * MIB, 1024 * 1024 * MIB, &none);
	random_4k(&bench, VREQ_WRITE, 1024 * 1024 * MIB, 1000000);
	pool_info(bench.pool, &before);
	random_4k(&bench, VREQ_WRITE, 1024 * 1024 * MIB, 1000000);
	flush(&bench);
	pool_info(bench.pool, &after);
	printf("1 TiB, uniform random 4K, 512 MiB of memory: map %.2f bytes per byte, memory "
	       "%" PRIu64 " MiB at most\n",
	       (double)(after.bulk_map_bytes - before.bulk_map_bytes) /
		       (double)(after.user_bytes - before.user_bytes),
	       after.memory_max / MIB);
	bench_release(&bench);
}

static void run_recovery(void)
{
	struct codec_choice lz4 = { CODEC_LZ4, 1 };
	struct bench bench;
	struct pool_info info;
	uint64_t start, replay;
	double seconds;

	bench_init(&bench, 64 * 1024 * MIB, 512 * MIB, 64 * 1024 * MIB, &lz4);
	random_4k(&bench, VREQ_WRITE, 8 * 1024 * MIB, 250000);
	flush(&bench);
	pool_info(bench.pool, &info);
	replay = info.replay_bytes;
	pool_close(bench.pool); /* as a crash: nothing is written */
	bench.mem.env.pool = NULL;
	start = clock_ns();
	pool_start(&bench, 512 * MIB);
	seconds = (double)(clock_ns() - start) / 1e9;
	printf("recovery: %.3f s for %" PRIu64 " MiB of log, %.2f s per GiB\n", seconds,
	       replay / MIB, seconds * 1024 / ((double)replay / (double)MIB));
	bench_release(&bench);
}

/* ---- space of real data ---- */

static uint64_t load_files(struct bench *bench, char *const *files, int nfiles)
{
	uint64_t lba = 0;

	for (int i = 0; i < nfiles; i++) {
		struct slot *slot = &bench->slots[0];
		int fd = open(files[i], O_RDONLY | O_CLOEXEC);
		ssize_t n;

		if (fd < 0) {
			perror(files[i]);
			exit(1);
		}
		while ((n = read(fd, slot->data, MIB)) > 0) {
			size_t len = ((size_t)n + 4095) / 4096 * 4096;

			memset(slot->data + n, 0, len - (size_t)n);
			submit(bench, slot, VREQ_WRITE, lba, len);
			drain(bench);
			lba += len / VF_SECTOR;
		}
		close(fd);
	}
	flush(bench);
	return lba * VF_SECTOR;
}

static void run_space(char *const *files, int nfiles)
{
	static const char *const names[] = { "none", "lzjb", "lz4", "gzip-1", "gzip-6", "zstd-3" };
	static const uint32_t records[] = { 4096, 16384, 131072 };

	for (size_t c = 0; c < ARRAY_LEN(names); c++)
		for (size_t r = 0; r < ARRAY_LEN(records); r++) {
			struct codec_choice codec;
			struct bench bench;
			struct volume_info info;
			struct volume_settings settings;
			struct err err;
			uint64_t bytes;

			if (codec_parse(names[c], &codec, &err))
				die(names[c], &err);
			bench_init(&bench, 16384 * MIB, 256 * MIB, 16384 * MIB, &codec);
			volume_info(bench.volume, &info);
			settings = info.settings;
			settings.record_len = records[r];
			if (volume_set(bench.volume, &settings, &err))
				die("set", &err);
			bytes = load_files(&bench, files, nfiles);
			if (pool_checkpoint(bench.pool, &err))
				die("checkpoint", &err);
			volume_info(bench.volume, &info);
			printf("%-8s %4" PRIu32 "K records: %.3f (%" PRIu64 " of %" PRIu64
			       " MiB)\n",
			       names[c], records[r] / 1024, (double)bytes / (double)info.stored,
			       info.stored / MIB, bytes / MIB);
			fflush(stdout);
			bench_release(&bench);
		}
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} benches[] = {
		{ "cpu", run_cpu },
		{ "amplification", run_amplification },
		{ "map", run_map },
		{ "recovery", run_recovery },
	};

	if (argc > 2 && strcmp(argv[1], "space") == 0) {
		run_space(argv + 2, argc - 2);
		return 0;
	}
	for (size_t i = 0; argc == 2 && i < ARRAY_LEN(benches); i++)
		if (strcmp(argv[1], benches[i].name) == 0) {
			benches[i].run();
			return 0;
		}
	fprintf(stderr, "usage: engine cpu|amplification|map|recovery | engine space FILE...\n");
	return 2;
}
