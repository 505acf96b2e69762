/*
 * Codecs under hostile streams, and their way there and back.
 *
 * Input: a byte that picks the codec and the level; two bytes of the length to
 * expand to, little-endian, less one; then a stream, which is expanded, and which is
 * compressed as data and expanded again.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "compress/codec.h"
#include "compress/probe.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* A few levels of each kind; the others differ by how long they search. */
static const struct codec_choice choices[] = {
	{ CODEC_RAW, 0 },     { CODEC_LZJB, 0 }, { CODEC_DEFLATE, 1 }, { CODEC_DEFLATE, 6 },
	{ CODEC_DEFLATE, 9 }, { CODEC_LZ4, 1 },	 { CODEC_LZ4, -9 },    { CODEC_LZ4, 9 },
	{ CODEC_ZSTD, 1 },    { CODEC_ZSTD, 3 }, { CODEC_ZSTD, 13 },
};

#define CHOICES (sizeof(choices) / sizeof(choices[0]))

/* In blocks of their own size, so that a checker sees their ends. */
static void *block_get(size_t len)
{
	void *block = malloc(len ? len : 1);

	if (!block)
		abort();
	return block;
}

static void expand_any(struct codec_workspace *ws, uint8_t id, size_t dst_len, const uint8_t *src,
		       size_t len)
{
	uint8_t *dst = block_get(dst_len), *copy = block_get(len);

	memcpy(copy, src, len);
	codec_expand(ws, id, dst, dst_len, copy, len);
	free(copy);
	free(dst);
}

static void round_trip(struct codec_workspace *ws, const struct codec_choice *choice,
		       const uint8_t *src, size_t len, size_t cap)
{
	uint8_t *dst = block_get(cap), *back = block_get(len);
	size_t n = codec_compress(ws, choice, dst, cap, src, len);

	assert(n <= cap);
	/* With this to spare, every codec can store everything. */
	assert(n > 0 || cap < len + len / 8 + 128);
	if (n > 0) {
		assert(codec_expand(ws, choice->id, back, len, dst, n));
		assert(memcmp(back, src, len) == 0);
	}
	free(back);
	free(dst);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct codec_workspace *ws;
	const struct codec_choice *choice;
	size_t dst_len;

	if (!ws) {
		ws = codec_workspace_open();
		for (size_t i = 0; ws && i < CHOICES; i++)
			if (codec_workspace_prepare(ws, &choices[i], NULL) != 0)
				abort();
	}
	if (!ws)
		abort();
	if (len < 4)
		return 0;
	choice = &choices[data[0] % CHOICES];
	dst_len = 1 + (size_t)(data[1] | data[2] << 8);
	data += 3;
	len -= 3;
	expand_any(ws, choice->id, dst_len, data, len);
	expand_any(ws, choice->id, len, data, len);
	round_trip(ws, choice, data, len, len + len / 8 + 128);
	round_trip(ws, choice, data, len, codec_worth_max(len));
	round_trip(ws, choice, data, len, dst_len);
	assert(probe_entropy(data, len) <= 8 * PROBE_BIT);
	return 0;
}
