/* Ours and the libraries' own calls read each other: deflate with zlib, lz4, zstd. */
#include <lz4.h>
#include <lz4hc.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "compress/codec.h"
#include "tests/unit/compress/patterns.h"
#include "tests/unit/quintain_test.h"

#define STORED_MAX (CODEC_LEN_MAX + 65536)

static uint8_t data[CODEC_LEN_MAX], back[CODEC_LEN_MAX], stored[STORED_MAX];
static const size_t lens[] = { 512, 4096, 5000, 16384, 131072, CODEC_LEN_MAX };

/* Both ways between one codec and somebody else's. */
struct other {
	uint8_t id;
	/* From data to stored; how is any number. */
	size_t (*compress)(int how, size_t len);
	/* From stored to back. */
	bool (*expand)(size_t len, size_t stored_len);
};

static size_t zlib_compress(int how, size_t len)
{
	z_stream zlib = { .next_in = data,
			  .avail_in = (uInt)len,
			  .next_out = stored,
			  .avail_out = sizeof(stored) };
	/* Level, window and strategy: fixed codes and Huffman only, too. */
	int window = how & 1 ? -15 : -9;

	CU_ASSERT_EQUAL_FATAL(deflateInit2(&zlib, how % 10, Z_DEFLATED, window, 8, how % 5), Z_OK);
	CU_ASSERT_EQUAL(deflate(&zlib, Z_FINISH), Z_STREAM_END);
	deflateEnd(&zlib);
	return zlib.total_out;
}

static bool zlib_expand(size_t len, size_t stored_len)
{
	z_stream zlib = { .next_in = stored, .avail_in = (uInt)stored_len };
	int rc;

	/* Raw: no frame of zlib's or gzip's. */
	CU_ASSERT_EQUAL_FATAL(inflateInit2(&zlib, -15), Z_OK);
	zlib.next_out = back;
	zlib.avail_out = (uInt)len;
	rc = inflate(&zlib, Z_FINISH);
	inflateEnd(&zlib);
	return rc == Z_STREAM_END && zlib.total_out == len && zlib.avail_in == 0;
}

static size_t liblz4_compress(int how, size_t len)
{
	const char *src = (const char *)data;
	char *dst = (char *)stored;
	int n = how < 3 ? LZ4_compress_default(src, dst, (int)len, sizeof(stored))
			: LZ4_compress_HC(src, dst, (int)len, sizeof(stored), how);

	return n > 0 ? (size_t)n : 0;
}

static bool liblz4_expand(size_t len, size_t stored_len)
{
	return LZ4_decompress_safe((char *)stored, (char *)back, (int)stored_len, (int)len) ==
	       (int)len;
}

static size_t libzstd_compress(int how, size_t len)
{
	return ZSTD_compress(stored, sizeof(stored), data, len, how % 8 - 3);
}

static bool libzstd_expand(size_t len, size_t stored_len)
{
	return ZSTD_decompress(back, sizeof(back), stored, stored_len) == len;
}

static void theirs_is_read(const struct other *other)
{
	struct codec_workspace *ws = workspace_for("none");

	for (int how = 0; how < 12; how++) {
		for (size_t i = 0; i < 5; i++) {
			enum pattern pattern = (enum pattern)((how + (int)i) % PATTERN_COUNT);
			size_t n;

			pattern_fill(pattern, data, lens[i], (uint32_t)how);
			n = other->compress(how, lens[i]);
			CU_ASSERT(n > 0);
			CU_ASSERT(codec_expand(ws, other->id, back, lens[i], stored, n));
			CU_ASSERT_EQUAL(memcmp(back, data, lens[i]), 0);
		}
	}
	codec_workspace_close(ws);
}

static void ours_is_read(const struct other *other)
{
	struct codec_workspace *ws = workspace_for(NULL);

	for (size_t i = 0; i < CHOICES_COUNT; i++) {
		struct codec_choice choice = choice_at(i);

		if (choice.id != other->id)
			continue;
		for (int pattern = 0; pattern < PATTERN_COUNT; pattern++) {
			size_t len = lens[(i + (size_t)pattern) % 6], n;

			pattern_fill((enum pattern)pattern, data, len, (uint32_t)i);
			n = codec_compress(ws, &choice, stored, sizeof(stored), data, len);
			memset(back, 0, len);
			CU_ASSERT(other->expand(len, n));
			CU_ASSERT_EQUAL(memcmp(back, data, len), 0);
		}
	}
	codec_workspace_close(ws);
}

static const struct other zlib = { CODEC_DEFLATE, zlib_compress, zlib_expand };
static const struct other liblz4 = { CODEC_LZ4, liblz4_compress, liblz4_expand };
static const struct other libzstd = { CODEC_ZSTD, libzstd_compress, libzstd_expand };

static void deflate_expands_what_zlib_compressed(void)
{
	theirs_is_read(&zlib);
}

static void deflate_makes_what_zlib_expands(void)
{
	ours_is_read(&zlib);
}

static void lz4_expands_what_liblz4_compressed(void)
{
	theirs_is_read(&liblz4);
}

static void lz4_makes_what_liblz4_expands(void)
{
	ours_is_read(&liblz4);
}

static void zstd_expands_what_libzstd_compressed(void)
{
	theirs_is_read(&libzstd);
}

static void zstd_makes_what_libzstd_expands(void)
{
	ours_is_read(&libzstd);
}

/* A frame that keeps its size to itself, a skipped one, and one of the format v0.7. */
static void zstd_refuses_frames_of_other_kinds(void)
{
	static const uint8_t skippable[] = { 0x50, 0x2a, 0x4d, 0x18, 1, 0, 0, 0, 'x' };
	static const uint8_t old[] = { 0x27, 0xb5, 0x2f, 0xfd, 0x24, 0x04, 0x01, 0x00, 'x' };
	struct codec_workspace *ws = workspace_for("zstd");
	struct codec_choice choice = choice_of("zstd");
	ZSTD_CCtx *context = ZSTD_createCCtx();
	size_t n;

	CU_ASSERT_FALSE(codec_expand(ws, CODEC_ZSTD, back, 1, skippable, sizeof(skippable)));
	CU_ASSERT_FALSE(codec_expand(ws, CODEC_ZSTD, back, 4, old, sizeof(old)));
	pattern_fill(PATTERN_TEXT, data, 4096, 1);
	CU_ASSERT_PTR_NOT_NULL_FATAL(context);
	ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
	n = ZSTD_compress2(context, stored, sizeof(stored), data, 4096);
	CU_ASSERT_FALSE(codec_expand(ws, CODEC_ZSTD, back, 4096, stored, n));
	n = codec_compress(ws, &choice, stored, sizeof(stored), data, 4096);
	memcpy(stored + n, skippable, sizeof(skippable));
	CU_ASSERT_FALSE(codec_expand(ws, CODEC_ZSTD, back, 4096, stored, n + sizeof(skippable)));
	ZSTD_freeCCtx(context);
	codec_workspace_close(ws);
}

static const struct test tests[] = {
	TEST(deflate_expands_what_zlib_compressed), TEST(deflate_makes_what_zlib_expands),
	TEST(lz4_expands_what_liblz4_compressed),   TEST(lz4_makes_what_liblz4_expands),
	TEST(zstd_expands_what_libzstd_compressed), TEST(zstd_makes_what_libzstd_expands),
	TEST(zstd_refuses_frames_of_other_kinds),
};

TEST_MAIN(tests)
