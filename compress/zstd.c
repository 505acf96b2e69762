/*
 * Zstandard frames by libzstd.
 *
 * Compression works in memory of a fixed size: a context that manages its own
 * would give memory back and get it again as sizes of records change.  That
 * needs four calls that libzstd exports and calls experimental.
 */
#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>
#include <stdlib.h>
#include <string.h>

#include "compress/codec_internal.h"

#define ZSTD_LEVEL_MAX 19

struct zstd_state {
	ZSTD_CCtx *context; /* within memory */
	_Alignas(64) char memory[];
};

/*
 * libzstd has tables of parameters for sources up to 16 KiB, 128 KiB, 256 KiB
 * and more, and any of them may want the most memory.  What small records do not
 * touch is never resident.
 */
static size_t zstd_memory_size(int level)
{
	static const size_t tiers[] = { 16384, 131072, 262144, CODEC_LEN_MAX };
	size_t max = 0;

	for (size_t i = 0; i < sizeof(tiers) / sizeof(tiers[0]); i++) {
		ZSTD_compressionParameters params = ZSTD_getCParams(level, tiers[i], 0);
		size_t size = ZSTD_estimateCCtxSize_usingCParams(params);

		max = size > max ? size : max;
	}
	return max;
}

/* A multiple of 64, as aligned_alloc() wants it. */
static size_t zstd_state_size(int level)
{
	return (sizeof(struct zstd_state) + zstd_memory_size(level) + 63) / 64 * 64;
}

static void *zstd_state_open(int level)
{
	size_t size = zstd_state_size(level);
	struct zstd_state *state = aligned_alloc(64, size);

	if (!state)
		return NULL;
	state->context = ZSTD_initStaticCCtx(state->memory, size - sizeof(*state));
	if (!state->context) {
		free(state);
		return NULL;
	}
	return state;
}

static void zstd_state_close(void *state, int level)
{
	(void)level;
	free(state);
}

static size_t zstd_compress(void *state, int level, void *dst, size_t cap, const void *src,
			    size_t len)
{
	struct zstd_state *zstd = state;
	size_t n = ZSTD_compressCCtx(zstd->context, dst, cap, src, len, level);

	return ZSTD_isError(n) ? 0 : n;
}

static void *zstd_expander_open(void)
{
	return ZSTD_createDCtx();
}

static void zstd_expander_close(void *expander)
{
	ZSTD_freeDCtx(expander);
}

/*
 * Only one frame of today's format and of the size that was asked for gets as
 * far as the decoder: the library would also take several in a row, skip those
 * that hold no data, and allocate for the formats before 0.8.
 */
static bool zstd_expand(void *expander, void *dst, size_t dst_len, const void *src, size_t len)
{
	static const uint8_t magic[4] = { 0x28, 0xb5, 0x2f, 0xfd }; /* RFC 8878 3.1.1 */

	if (len < sizeof(magic) || memcmp(src, magic, sizeof(magic)) != 0 ||
	    ZSTD_getFrameContentSize(src, len) != dst_len ||
	    ZSTD_findFrameCompressedSize(src, len) != len)
		return false;
	return ZSTD_decompressDCtx(expander, dst, dst_len, src, len) == dst_len;
}

const struct codec codec_zstd = {
	.id = CODEC_ZSTD,
	.name = "zstd",
	.level_min = 1,
	.level_max = ZSTD_LEVEL_MAX,
	.level_default = 3,
	.probe_pays = codec_probe_always,
	.state_size = zstd_state_size,
	.state_open = zstd_state_open,
	.state_close = zstd_state_close,
	.compress = zstd_compress,
	.expander_size = 96 * 1024,
	.expander_open = zstd_expander_open,
	.expander_close = zstd_expander_close,
	.expand = zstd_expand,
};
