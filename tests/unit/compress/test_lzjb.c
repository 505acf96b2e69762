/*
 * LZJB against its published form: streams worked out by hand, and a plain
 * coder and decoder of one byte at a time that share nothing with ours.
 */
#include <string.h>

#include "compress/codec.h"
#include "tests/unit/compress/patterns.h"
#include "tests/unit/quintain_test.h"

#define LEN_MAX 131072u

static uint8_t data[LEN_MAX], back[LEN_MAX], stored[2 * LEN_MAX];
static const struct codec_choice lzjb = { CODEC_LZJB, 0 };

/* The decoder; the number of bytes made, as many as are asked for if all is well. */
static size_t plain_expand(uint8_t *dst, size_t dst_len, const uint8_t *src)
{
	unsigned int map = 0, bit = 8;
	size_t made = 0;

	while (made < dst_len) {
		if (bit == 8) {
			map = *src++;
			bit = 0;
		}
		if (map >> bit++ & 1) {
			size_t len = (size_t)(src[0] >> 2) + 3;
			size_t distance = (size_t)(src[0] & 3) << 8 | src[1];

			src += 2;
			if (distance == 0 || distance > made)
				return made;
			for (; len > 0 && made < dst_len; len--, made++)
				dst[made] = dst[made - distance];
		} else {
			dst[made++] = *src++;
		}
	}
	return made;
}

/*
 * The coder as published: 1024 places, a hash of three bytes, and no copy begun
 * in the last 66.
 */
static size_t plain_compress(uint8_t *dst, const uint8_t *src, size_t len)
{
	size_t places[1024] = { 0 };
	size_t at = 0, out = 0, map = 0;
	unsigned int bit = 8;

	for (; at < len; bit++) {
		uint32_t hash;
		size_t offset, n = 3;

		if (bit == 8) {
			map = out++;
			dst[map] = 0;
			bit = 0;
		}
		if (at + 66 > len) {
			dst[out++] = src[at++];
			continue;
		}
		hash = ((uint32_t)src[at] << 16) + ((uint32_t)src[at + 1] << 8) + src[at + 2];
		hash += hash >> 9;
		hash += hash >> 5;
		offset = (at - places[hash & 1023]) & 1023;
		places[hash & 1023] = at;
		if (offset == 0 || offset > at || memcmp(src + at, src + at - offset, 3) != 0) {
			dst[out++] = src[at++];
			continue;
		}
		while (n < 66 && src[at + n] == src[at + n - offset])
			n++;
		dst[map] |= (uint8_t)(1u << bit);
		dst[out++] = (uint8_t)((n - 3) << 2 | offset >> 8);
		dst[out++] = (uint8_t)offset;
		at += n;
	}
	return out;
}

struct vector {
	const char *text;
	size_t len, stored_len;
	uint8_t stored[24];
};

/* Bit i of the first byte: item i is a copy, (length - 3) << 10 | distance. */
static const struct vector vectors[] = {
	{ "A", 1, 2, { 0x00, 'A' } },
	{ "ABCDEFGH", 8, 9, { 0x00, 'A', 'B', 'C', 'D', 'E', 'F', 'G', 'H' } },
	{ "ABCDEFGHI", 9, 11, { 0x00, 'A', 'B', 'C', 'D', 'E', 'F', 'G', 'H', 0x00, 'I' } },
	/* 1 + a copy of 9 from 1 back */
	{ "aaaaaaaaaa", 10, 4, { 0x02, 'a', 0x18, 0x01 } },
	/* 3 + a copy of 5 from 3 back + 1 */
	{ "abcabcabd", 9, 7, { 0x08, 'a', 'b', 'c', 0x08, 0x03, 'd' } },
	/* the longest copy: 66 */
	{ "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
	  67,
	  4,
	  { 0x02, 'x', 0xfc, 0x01 } },
};

static void lzjb_expands_streams_made_by_hand(void)
{
	struct codec_workspace *ws = workspace_for("lzjb");

	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		const struct vector *v = &vectors[i];

		CU_ASSERT(codec_expand(ws, CODEC_LZJB, back, v->len, v->stored, v->stored_len));
		CU_ASSERT_EQUAL(memcmp(back, v->text, v->len), 0);
	}
	codec_workspace_close(ws);
}

static void lzjb_makes_the_streams_made_by_hand(void)
{
	struct codec_workspace *ws = workspace_for("lzjb");

	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		const struct vector *v = &vectors[i];

		CU_ASSERT_EQUAL(codec_compress(ws, &lzjb, stored, v->stored_len, v->text, v->len),
				v->stored_len);
		CU_ASSERT_EQUAL(memcmp(stored, v->stored, v->stored_len), 0);
		CU_ASSERT_EQUAL(
			codec_compress(ws, &lzjb, stored, v->stored_len - 1, v->text, v->len), 0);
	}
	codec_workspace_close(ws);
}

static void cross(struct codec_workspace *ws, enum pattern pattern, size_t len, uint32_t seed)
{
	size_t ours, plain;

	pattern_fill(pattern, data, len, seed);
	ours = codec_compress(ws, &lzjb, stored, sizeof(stored), data, len);
	CU_ASSERT_EQUAL(plain_expand(back, len, stored), len);
	CU_ASSERT_EQUAL(memcmp(back, data, len), 0);
	plain = plain_compress(stored, data, len);
	memset(back, 0, len);
	CU_ASSERT(codec_expand(ws, CODEC_LZJB, back, len, stored, plain));
	CU_ASSERT_EQUAL(memcmp(back, data, len), 0);
	/* Ours finds more; by no more than a little it may also find less. */
	CU_ASSERT(ours <= plain + plain / 50);
}

static void lzjb_and_the_published_form_read_each_other(void)
{
	struct codec_workspace *ws = workspace_for("lzjb");

	for (int pattern = 0; pattern < PATTERN_COUNT; pattern++)
		for (uint32_t seed = 0; seed < 8; seed++)
			for (size_t len = 1; len <= LEN_MAX; len += 1 + len / 2)
				cross(ws, (enum pattern)pattern, len, seed);
	codec_workspace_close(ws);
}

/* Runs of every period, where copies overlap themselves, and at every distance. */
static void lzjb_copies_from_every_distance(void)
{
	struct codec_workspace *ws = workspace_for("lzjb");

	for (size_t distance = 1; distance <= 1030; distance++) {
		pattern_fill(PATTERN_RANDOM, data, distance, (uint32_t)distance);
		for (size_t i = distance; i < 4096; i++)
			data[i] = data[i - distance];
		CU_ASSERT(codec_compress(ws, &lzjb, stored, sizeof(stored), data, 4096) > 0);
		CU_ASSERT_EQUAL(plain_expand(back, 4096, stored), 4096);
		CU_ASSERT_EQUAL(memcmp(back, data, 4096), 0);
		CU_ASSERT(codec_expand(ws, CODEC_LZJB, back, 4096, stored,
				       plain_compress(stored, data, 4096)));
		CU_ASSERT_EQUAL(memcmp(back, data, 4096), 0);
	}
	codec_workspace_close(ws);
}

/* Each stream is bad, alone and where the decoder takes whole groups at a time. */
static void lzjb_refuses_copies_from_nowhere(void)
{
	static const uint8_t bad[][3] = {
		{ 0x01, 0x00, 0x00 }, /* from 0 back */
		{ 0x01, 0x00, 0x01 }, /* before the beginning */
		{ 0x01, 0x03, 0xff },
	};
	struct codec_workspace *ws = workspace_for("lzjb");

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		memset(stored, 0, 1000);
		memcpy(stored, bad[i], sizeof(bad[i]));
		for (size_t len = 3; len < 1000; len++) {
			CU_ASSERT_FALSE(codec_expand(ws, CODEC_LZJB, back, 3, stored, len));
			CU_ASSERT_FALSE(codec_expand(ws, CODEC_LZJB, back, 4096, stored, len));
		}
	}
	codec_workspace_close(ws);
}

static void lzjb_refuses_a_copy_beyond_the_end(void)
{
	static const uint8_t copy_of_9[] = { 0x02, 'a', 0x18, 0x01 };
	struct codec_workspace *ws = workspace_for("lzjb");

	for (size_t len = 2; len < 20; len++)
		CU_ASSERT_EQUAL(
			codec_expand(ws, CODEC_LZJB, back, len, copy_of_9, sizeof(copy_of_9)),
			len == 10);
	codec_workspace_close(ws);
}

static const struct test tests[] = {
	TEST(lzjb_expands_streams_made_by_hand),
	TEST(lzjb_makes_the_streams_made_by_hand),
	TEST(lzjb_and_the_published_form_read_each_other),
	TEST(lzjb_copies_from_every_distance),
	TEST(lzjb_refuses_copies_from_nowhere),
	TEST(lzjb_refuses_a_copy_beyond_the_end),
};

TEST_MAIN(tests)
