/*
 * LZ4 blocks by liblz4.  One format; positive levels from 3 up are its "HC"
 * search, negative ones its acceleration (see codec.h).
 */
#include <lz4.h>
#include <lz4hc.h>
#include <stdlib.h>

#include "compress/codec_internal.h"

#define LEVEL_FAST_MIN (-64)
/* From LZ4HC_CLEVEL_OPT_MIN on, liblz4 allocates in each call. */
#define LEVEL_HC_MAX (LZ4HC_CLEVEL_OPT_MIN - 1)

static bool is_hc(int level)
{
	return level >= LZ4HC_CLEVEL_MIN;
}

static size_t lz4_state_size(int level)
{
	return (size_t)(is_hc(level) ? LZ4_sizeofStateHC() : LZ4_sizeofState());
}

static void *lz4_state_open(int level)
{
	return malloc(lz4_state_size(level));
}

static void lz4_state_close(void *state, int level)
{
	(void)level;
	free(state);
}

/* The fast search skips over what does not match; HC does not. */
static bool lz4_probe_pays(int level)
{
	return is_hc(level);
}

static size_t lz4_compress(void *state, int level, void *dst, size_t cap, const void *src,
			   size_t len)
{
	int n;

	if (cap > (size_t)LZ4_compressBound(CODEC_LEN_MAX))
		cap = (size_t)LZ4_compressBound(CODEC_LEN_MAX);
	if (is_hc(level))
		n = LZ4_compress_HC_extStateHC(state, src, dst, (int)len, (int)cap, level);
	else
		n = LZ4_compress_fast_extState(state, src, dst, (int)len, (int)cap,
					       level < 0 ? -level : 1);
	return n > 0 ? (size_t)n : 0;
}

static bool lz4_expand(void *expander, void *dst, size_t dst_len, const void *src, size_t len)
{
	(void)expander;
	if (len > (size_t)LZ4_compressBound(CODEC_LEN_MAX))
		return false;
	return LZ4_decompress_safe(src, dst, (int)len, (int)dst_len) == (int)dst_len;
}

const struct codec codec_lz4 = {
	.id = CODEC_LZ4,
	.name = "lz4",
	.level_min = LEVEL_FAST_MIN,
	.level_max = LEVEL_HC_MAX,
	.level_default = 1,
	.probe_pays = lz4_probe_pays,
	.state_size = lz4_state_size,
	.state_open = lz4_state_open,
	.state_close = lz4_state_close,
	.compress = lz4_compress,
	.expand = lz4_expand,
};
