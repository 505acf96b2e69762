/* No compression: what "none" stores, and what others fall back to. */
#include <string.h>

#include "compress/codec_internal.h"

static size_t raw_compress(void *state, int level, void *dst, size_t cap, const void *src,
			   size_t len)
{
	(void)state;
	(void)level;
	if (len > cap)
		return 0;
	memcpy(dst, src, len);
	return len;
}

static bool raw_expand(void *expander, void *dst, size_t dst_len, const void *src, size_t len)
{
	(void)expander;
	if (len != dst_len)
		return false;
	memcpy(dst, src, len);
	return true;
}

const struct codec codec_raw = {
	.id = CODEC_RAW,
	.name = "raw",
	.probe_pays = codec_probe_never,
	.state_size = codec_no_state,
	.compress = raw_compress,
	.expand = raw_expand,
};
