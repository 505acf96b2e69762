/*
 * The settings of a store, and their option rows.
 *
 * The rows are in settings.c; config/ fills the struct from the words of a
 * `lun` block, `quintain serve IMAGE` from its options.  To add one: a field
 * here and a row there.
 */
#ifndef BACKING_SETTINGS_H
#define BACKING_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/option.h"

enum backing_kind {
	BACKING_KIND_BLOCK,   /* a file or a block device, by what path is */
	BACKING_KIND_RAMDISK, /* memory, gone with the daemon */
};

enum backing_cache {
	BACKING_CACHE_WRITE_BACK,    /* volatile until a flush (WCE = 1) */
	BACKING_CACHE_WRITE_THROUGH, /* durable before a write completes (WCE = 0) */
	BACKING_CACHE_UNSAFE,	     /* flushes are acknowledged and not done */
};

enum backing_direct {
	BACKING_DIRECT_AUTO, /* the store picks, and logs what it picked */
	BACKING_DIRECT_YES,
	BACKING_DIRECT_NO,
};

/* The same values as enum vf_checksum. */
enum backing_checksum {
	BACKING_CHECKSUM_XXH3,
	BACKING_CHECKSUM_SHA256,
};

struct bk_pool;

/* Rows: backing_options[].  Everything here may be left at its default. */
struct backing_settings {
	const char *path;	      /* file or block device; NULL for memory */
	uint8_t backend;	      /* enum backing_kind */
	uint64_t size;		      /* bytes; 0: what the file or device has */
	uint32_t block_size;	      /* logical block: 512 or 4096 */
	uint32_t physical_block_size; /* a power of two >= block_size; reported
				       * as 4096 when it is more */
	uint8_t cache;		      /* enum backing_cache */
	uint8_t direct;		      /* enum backing_direct */
	bool thin;
	bool read_only;

	/* A volume of a pool, instead of path. */
	const char *volume;	 /* POOL/NAME */
	uint32_t record_size;	 /* bytes, a power of two */
	const char *compression; /* as codec_parse() takes it */
	uint8_t checksum;	 /* enum backing_checksum */

	/* No row; the caller's: the opened pool of volume. */
	struct bk_pool *pool;
	/* No row; the caller's.  This disk has been served before, so that a file
	 * that is missing is lost or not mounted: do not begin it anew. */
	bool must_exist;
};

extern const struct option_spec backing_options[];

/* Judges the value of compression: 0, or -EINVAL with what is valid. */
int backing_compression_check(const char *text, struct err *err);

/* Rows: pool_options[]. */
struct pool_settings {
	const char *path;      /* file or block device */
	uint64_t size;	       /* bytes; 0: what is there */
	uint64_t cache_memory; /* bytes; 0: a share of an eighth of RAM (target/) */
	uint32_t threshold;    /* percent used at which hosts are told */

	/* No row; the caller's: see backing_settings. */
	bool must_exist;
};

/* The least that a pool can do with. */
#define POOL_CACHE_MEMORY_MIN (24ull << 20)

extern const struct option_spec pool_options[];

#endif
