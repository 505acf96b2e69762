/*
 * Raw DEFLATE (RFC 1951): level 1 is compressed by ISA-L, 2 to 9 by libdeflate,
 * and all is expanded by libdeflate.
 *
 * The choice was measured on a file tree (MB/s, ratio packed at 64 B):
 *
 *	            4K records    16K           128K
 *	zlib-1       68  2.03     100  2.23      83  2.34
 *	libdeflate-1 174 2.04     215  2.26     191  2.40
 *	ISA-L 1     173  2.01     376  2.21     585  2.31
 *	zlib-6       48  2.10      48  2.36      32  2.54
 *	libdeflate-6 102 2.11     109  2.36      94  2.55
 *
 * Who sets gzip-1 wants speed, and gets 1.7 to 3 times as much of it for 2 to 4 %
 * of ratio at the usual record sizes.  ISA-L's other levels gain nothing on its
 * first.  zlib is the reference that the tests decode with.
 */
#include <isa-l/igzip_lib.h>
#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>

#include "compress/codec_internal.h"

#define ISAL_LEVEL 1

struct isal_state {
	struct isal_zstream stream;
	uint8_t tables[ISAL_DEF_LVL1_DEFAULT];
};

static size_t isal_compress(struct isal_state *state, void *dst, size_t cap, const void *src,
			    size_t len)
{
	struct isal_zstream *stream = &state->stream;

	if (cap > UINT32_MAX)
		cap = UINT32_MAX;
	isal_deflate_stateless_init(stream);
	stream->level = ISAL_LEVEL;
	stream->level_buf = state->tables;
	stream->level_buf_size = sizeof(state->tables);
	stream->gzip_flag = IGZIP_DEFLATE;
	stream->end_of_stream = 1;
	stream->next_in = (uint8_t *)src; /* which it only reads */
	stream->avail_in = (uint32_t)len;
	stream->next_out = dst;
	stream->avail_out = (uint32_t)cap;
	return isal_deflate_stateless(stream) == COMP_OK ? cap - stream->avail_out : 0;
}

/*
 * libdeflate does not say what it takes; these are bounds of version 1.14, and a
 * test compares.
 */
static size_t deflate_state_size(int level)
{
	return level == ISAL_LEVEL ? sizeof(struct isal_state) : 704 * 1024;
}

static void *deflate_state_open(int level)
{
	if (level == ISAL_LEVEL)
		return calloc(1, sizeof(struct isal_state));
	return libdeflate_alloc_compressor(level);
}

static void deflate_state_close(void *state, int level)
{
	if (level == ISAL_LEVEL)
		free(state);
	else
		libdeflate_free_compressor(state);
}

static size_t deflate_compress(void *state, int level, void *dst, size_t cap, const void *src,
			       size_t len)
{
	if (level == ISAL_LEVEL)
		return isal_compress(state, dst, cap, src, len);
	return libdeflate_deflate_compress(state, src, len, dst, cap);
}

static void *deflate_expander_open(void)
{
	return libdeflate_alloc_decompressor();
}

static void deflate_expander_close(void *expander)
{
	libdeflate_free_decompressor(expander);
}

static bool deflate_expand(void *expander, void *dst, size_t dst_len, const void *src, size_t len)
{
	size_t used, made;

	return libdeflate_deflate_decompress_ex(expander, src, len, dst, dst_len, &used, &made) ==
		       LIBDEFLATE_SUCCESS &&
	       used == len && made == dst_len;
}

const struct codec codec_deflate = {
	.id = CODEC_DEFLATE,
	.name = "deflate",
	.level_min = 1,
	.level_max = 9,
	.level_default = 6,
	.probe_pays = codec_probe_always,
	.state_size = deflate_state_size,
	.state_open = deflate_state_open,
	.state_close = deflate_state_close,
	.compress = deflate_compress,
	.expander_size = 12 * 1024,
	.expander_open = deflate_expander_open,
	.expander_close = deflate_expander_close,
	.expand = deflate_expand,
};
