/* Option rows of a store: see settings.h. */
#include "backing/settings.h"

#include <stddef.h>

#define FIELD(name) .offset = offsetof(struct backing_settings, name)

static const char *const kinds[] = { "block", "ramdisk", NULL };
static const char *const caches[] = { "write-back", "write-through", "unsafe", NULL };
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
	OPTION_END,
};
