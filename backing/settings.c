/* Option rows of a store: see settings.h. */
#include "backing/settings.h"

#include <stddef.h>

#include "compress/codec.h"

#define FIELD(name) .offset = offsetof(struct backing_settings, name)

static const char *const kinds[] = { "block", "ramdisk", NULL };
static const char *const caches[] = { "write-back", "write-through", "unsafe", NULL };
static const char *const checksums[] = { "xxh3", "sha256", NULL };
static const char *const directs[] = { "auto", "yes", "no", NULL };

const struct option_spec backing_options[] = {
	{ .key = "path",
	  .type = OPTION_STRING,
	  .reload = RELOAD_REOPEN,
	  FIELD(path),
	  .min = 1,
	  .max = 4095,
	  .summary = "regular file or block device that holds the data",
	  .doc = "A file that does not exist is created when size is given, with mode 0600, but "
		 "never below /dev and never where this LUN has been served before. Only one "
		 "daemon can have it open for writing, and a block device that is mounted or part "
		 "of something else is refused. Without size a missing path makes the LUN NOT "
		 "READY until it appears." },
	{ .key = "backend",
	  .type = OPTION_CHOICE,
	  .reload = RELOAD_REOPEN,
	  FIELD(backend),
	  .def = "block",
	  .choices = kinds,
	  .summary = "what holds the data",
	  .doc = "block: the file or block device named by path. ramdisk: memory of size bytes, "
		 "which is gone when the daemon ends." },
	{ .key = "size",
	  .type = OPTION_SIZE,
	  .reload = RELOAD_LIVE,
	  FIELD(size),
	  .unit = "bytes",
	  .summary = "capacity; unset: that of the file or device",
	  .doc = "A file that is smaller is extended, one that is larger is served up to size and "
		 "never cut. Raising size and reloading grows the disk while it is in use; its "
		 "initiators are told. Rounded down to a multiple of blocksize." },
	{ .key = "blocksize",
	  .type = OPTION_UINT,
	  .reload = RELOAD_REOPEN,
	  FIELD(block_size),
	  .def = "512",
	  .min = 512,
	  .max = 4096,
	  .unit = "bytes",
	  .summary = "logical block size, 512 or 4096",
	  .doc = "Initiators address the disk in these blocks. Changing it makes what is on the "
		 "disk unreadable, as partition tables and file systems count in blocks." },
	{ .key = "physical-blocksize",
	  .type = OPTION_UINT,
	  .reload = RELOAD_REOPEN,
	  FIELD(physical_block_size),
	  .def = "4096",
	  .min = 512,
	  .max = 1u << 20,
	  .unit = "bytes",
	  .summary = "physical block size that initiators are told",
	  .doc = "A power of two, not less than blocksize. Initiators align to it. More than 4096 "
		 "is reported as 4096, since Windows and others refuse disks with larger ones." },
	{ .key = "read-only",
	  .type = OPTION_BOOL,
	  .reload = RELOAD_REOPEN,
	  FIELD(read_only),
	  .def = "no",
	  .summary = "refuse every write",
	  .doc = "The file or device is opened for reading only and may be served so by several "
		 "daemons at once." },
	{ .key = "cache",
	  .type = OPTION_CHOICE,
	  .reload = RELOAD_REOPEN,
	  FIELD(cache),
	  .def = "write-back",
	  .choices = caches,
	  .summary = "when a write is durable",
	  .doc = "write-back: when the initiator flushes or asks for it with FUA, and initiators "
		 "are told that there is a volatile cache. write-through: before each write is "
		 "acknowledged. unsafe: flushes and FUA are acknowledged and not done: a crash of "
		 "this machine loses data that initiators believe to be safe; only for disks that "
		 "can be thrown away." },
	{ .key = "direct-io",
	  .type = OPTION_CHOICE,
	  .reload = RELOAD_REOPEN,
	  FIELD(direct),
	  .def = "auto",
	  .choices = directs,
	  .summary = "bypass the page cache of this machine (O_DIRECT)",
	  .doc = "auto: block devices bypass it, files go through it. Where the file system cannot "
		 "do it, or only in blocks larger than blocksize, the page cache is used and the "
		 "log says so. This does not change what is durable: see cache." },
	{ .key = "thin",
	  .type = OPTION_BOOL,
	  .reload = RELOAD_REOPEN,
	  FIELD(thin),
	  .def = "yes",
	  .summary = "take space when it is written and give it back on UNMAP",
	  .doc = "no: all space is allocated when the file is opened or grown, which fails when "
		 "there is not enough; UNMAP is not offered, and zeroing keeps the space." },
	{ .key = "volume",
	  .type = OPTION_STRING,
	  .reload = RELOAD_REOPEN,
	  FIELD(volume),
	  .min = 3,
	  .max = 127,
	  .summary = "volume of a pool that holds the data, as POOL/NAME",
	  .doc = "Instead of path. The volume is created when size is given and the pool has none "
		 "of "
		 "this name. Taking it out of the file deletes nothing. See pool." },
	{ .key = "record-size",
	  .type = OPTION_UINT,
	  .reload = RELOAD_LIVE,
	  FIELD(record_size),
	  .def = "16K",
	  .min = 4096,
	  .max = 1u << 20,
	  .unit = "bytes",
	  .summary = "of a volume: how much is compressed at once",
	  .doc = "A power of two of 4K..1M, not less than blocksize; at most 64K in pools below "
		 "256 MiB "
		 "and 256K below 4 GiB. A change counts for what is written from then on. Small "
		 "writes "
		 "do not read, whatever it is; larger records compress better and make small reads "
		 "slower." },
	{ .key = "compression",
	  .type = OPTION_STRING,
	  .reload = RELOAD_LIVE,
	  FIELD(compression),
	  .def = "lz4",
	  .min = 1,
	  .max = 31,
	  .summary = "of a volume: the codec of what is written from now on",
	  .doc = "none, lzjb, gzip or gzip-1 to gzip-9, lz4, lz4-fast-2 to lz4-fast-64, lz4hc-3 to "
		 "lz4hc-9, zstd or zstd-1 to zstd-19. gzip is gzip-6, zstd is zstd-3. What does "
		 "not "
		 "compress is stored as it is." },
	{ .key = "checksum",
	  .type = OPTION_CHOICE,
	  .reload = RELOAD_REOPEN,
	  FIELD(checksum),
	  .def = "xxh3",
	  .choices = checksums,
	  .summary = "of a volume: what each record is checked with",
	  .doc = "Chosen when the volume is created, and not changed later. xxh3 finds damage of "
		 "any "
		 "kind; sha256 also withstands who can write to the pool's device." },
	OPTION_END,
};

#undef FIELD
#define FIELD(name) .offset = offsetof(struct pool_settings, name)

const struct option_spec pool_options[] = {
	{ .key = "path",
	  .type = OPTION_STRING,
	  .reload = RELOAD_REOPEN,
	  FIELD(path),
	  .min = 1,
	  .max = 4095,
	  .summary = "regular file or block device that holds the pool",
	  .doc = "A file that does not exist is created when size is given, but never below /dev "
		 "and "
		 "never where this pool has been served before. Nothing else may be in it." },
	{ .key = "size",
	  .type = OPTION_SIZE,
	  .reload = RELOAD_LIVE,
	  FIELD(size),
	  .unit = "bytes",
	  .summary = "how large the pool is; unset: as it is",
	  .doc = "At least 16M. A file takes space on its host as it is used. Raising it and "
		 "reloading "
		 "grows the pool; it cannot be made smaller." },
	{ .key = "cache-memory",
	  .type = OPTION_SIZE,
	  .reload = RELOAD_REOPEN,
	  FIELD(cache_memory),
	  .min = POOL_CACHE_MEMORY_MIN,
	  .max = 1ull << 40,
	  .unit = "bytes",
	  .summary = "all memory of the pool; unset: its share of an eighth of RAM",
	  .doc = "Bounds writes that are not durable yet, the map, and buffers. 256M serve 10 "
		 "TiB." },
	{ .key = "threshold",
	  .type = OPTION_UINT,
	  .reload = RELOAD_LIVE,
	  FIELD(threshold),
	  .def = "80",
	  .min = 1,
	  .max = 100,
	  .unit = "percent",
	  .summary = "used space at which hosts are told that it gets short",
	  .doc = "As the unit attention 38/07, THIN PROVISIONING SOFT THRESHOLD REACHED, once each "
		 "time "
		 "it is reached." },
	OPTION_END,
};

int backing_compression_check(const char *text, struct err *err)
{
	struct codec_choice choice;

	return codec_parse(text, &choice, err);
}
