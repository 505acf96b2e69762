/*
 * LZJB, Jeff Bonwick's small member of the LZ77 family, as ZFS stores it.
 *
 * Format: groups of a copy map byte and its eight items.  Bit i of the map, from
 * the least significant, says what item i is: 0 a byte as it is, 1 a copy of two
 * bytes, big-endian: length - MATCH_MIN in the upper 6 bits, distance back (1 to
 * 1023) in the lower 10.  The last group ends with the data.
 *
 * The format allows any way to find copies.  This one reads four bytes at a
 * time, remembers four times as many places as the original, and looks for
 * copies up to the end of the data.
 */
#include <string.h>

#include "base/be.h"
#include "compress/codec_internal.h"

#define ITEMS	    8u /* in a group */
#define MATCH_BITS  6u
#define MATCH_MIN   3u
#define MATCH_MAX   (MATCH_MIN + (1u << MATCH_BITS) - 1)
#define OFFSET_BITS 10u
#define OFFSET_MAX  ((1u << OFFSET_BITS) - 1)
#define PLACES_BITS 12u
/* Bytes are moved by words where there is room behind them. */
#define WORD	      8u
#define GROUP_IN_MAX  (2 * ITEMS + WORD)
#define GROUP_OUT_MAX (ITEMS * MATCH_MAX + 2 * WORD)

static uint64_t load64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* The MATCH_MIN bytes at p as a number; reads one more. */
static uint32_t load_match_min(const uint8_t *p)
{
	return be32_load(p) >> 8;
}

/* How many bytes from a and b on are equal, at most max; a < b. */
static size_t match_len(const uint8_t *a, const uint8_t *b, size_t max)
{
	size_t n = 0;

	while (max - n >= WORD) {
		uint64_t differ = load64(a + n) ^ load64(b + n);

		if (differ)
			return n + (size_t)__builtin_ctzll(differ) / 8;
		n += WORD;
	}
	while (n < max && a[n] == b[n])
		n++;
	return n;
}

/*
 * How far back the bytes at `at` stood before, 0 if they did not or that place is
 * forgotten.  Places are kept modulo 65536: what they lead to is compared, so an
 * old or never set one costs a copy and does no harm.
 */
static size_t distance_back(uint16_t places[1 << PLACES_BITS], const uint8_t *in, size_t at,
			    size_t len)
{
	uint32_t bytes, slot;
	size_t distance;

	if (len - at < MATCH_MIN + 1)
		return 0;
	bytes = load_match_min(in + at);
	slot = (bytes << 8) * 2654435761u >> (32 - PLACES_BITS);
	distance = (uint16_t)(at - places[slot]);
	places[slot] = (uint16_t)at;
	if (distance == 0 || distance > OFFSET_MAX || distance > at ||
	    load_match_min(in + at - distance) != bytes)
		return 0;
	return distance;
}

/* A record on its way: what is still to be read, and where it is written. */
struct coder {
	const uint8_t *in;
	size_t at, len;
	uint8_t *out, *end;
	uint16_t places[1 << PLACES_BITS];
};

/* A copy map and its items; false when they do not fit. */
static bool compress_group(struct coder *coder)
{
	const uint8_t *in = coder->in;
	size_t at = coder->at, len = coder->len;
	uint8_t *out = coder->out, *end = coder->end, *map = out;
	unsigned int bits = 0;

	if (out == end)
		return false;
	out++;
	for (unsigned int item = 0; item < ITEMS && at < len; item++) {
		size_t distance = distance_back(coder->places, in, at, len), n;

		if (distance == 0) {
			if (out == end)
				return false;
			*out++ = in[at++];
			continue;
		}
		if (end - out < 2)
			return false;
		n = len - at < MATCH_MAX ? len - at : MATCH_MAX;
		n = match_len(in + at - distance, in + at, n);
		be16_store(out, (uint16_t)((n - MATCH_MIN) << OFFSET_BITS | distance));
		out += 2;
		bits |= 1u << item;
		at += n;
	}
	*map = (uint8_t)bits;
	coder->at = at;
	coder->out = out;
	return true;
}

static size_t lzjb_compress(void *state, int level, void *dst, size_t cap, const void *src,
			    size_t len)
{
	struct coder coder = { .in = src, .len = len, .out = dst, .end = (uint8_t *)dst + cap };

	(void)state;
	(void)level;
	while (coder.at < len)
		if (!compress_group(&coder))
			return 0;
	return (size_t)(coder.out - (uint8_t *)dst);
}

/*
 * Copies n bytes, at most MATCH_MAX, from distance back; writes up to two words
 * more.  What is nearer than a word repeats, and so does every multiple of it.
 */
static void copy_back(uint8_t *out, size_t distance, size_t n)
{
	const uint8_t *from = out - distance;
	size_t done = 0;

	if (distance < WORD) {
		for (; done < 2 * WORD; done++)
			out[done] = from[done];
		from = out - (WORD + distance - 1) / distance * distance;
	}
	for (; done < n; done += WORD)
		memcpy(out + done, from + done, WORD);
}

struct stream {
	const uint8_t *in, *in_end;
	uint8_t *out, *out_begin, *out_end;
};

/* What a copy item says: the distance, 0 if that is before the beginning. */
static size_t copy_item(struct stream *s, size_t *n)
{
	uint16_t item = be16_load(s->in);
	size_t distance = item & OFFSET_MAX;

	s->in += 2;
	*n = (size_t)(item >> OFFSET_BITS) + MATCH_MIN;
	return distance <= (size_t)(s->out - s->out_begin) ? distance : 0;
}

/* A group for which there is GROUP_IN_MAX to read and GROUP_OUT_MAX to write. */
static bool expand_group(struct stream *s, unsigned int map)
{
	unsigned int items = ITEMS;

	for (;;) {
		unsigned int bytes = (unsigned int)__builtin_ctz(map | 1u << items);
		size_t distance, n;

		memcpy(s->out, s->in, ITEMS);
		s->out += bytes;
		s->in += bytes;
		items -= bytes;
		if (items == 0)
			return true;
		distance = copy_item(s, &n);
		if (distance == 0)
			return false;
		copy_back(s->out, distance, n);
		s->out += n;
		items--;
		map >>= bytes + 1;
	}
}

/* The same where there may be less, item by item; the last group may be short. */
static bool expand_last_groups(struct stream *s, unsigned int map)
{
	for (unsigned int item = 0; item < ITEMS && s->out < s->out_end; item++, map >>= 1) {
		size_t distance, n;

		if (s->in_end - s->in < (map & 1 ? 2 : 1))
			return false;
		if (!(map & 1)) {
			*s->out++ = *s->in++;
			continue;
		}
		distance = copy_item(s, &n);
		if (distance == 0 || n > (size_t)(s->out_end - s->out))
			return false;
		for (; n > 0; n--, s->out++)
			*s->out = s->out[-(ptrdiff_t)distance];
	}
	return true;
}

static bool lzjb_expand(void *expander, void *dst, size_t dst_len, const void *src, size_t len)
{
	struct stream s = {
		.in = src,
		.in_end = (const uint8_t *)src + len,
		.out = dst,
		.out_begin = dst,
		.out_end = (uint8_t *)dst + dst_len,
	};

	(void)expander;
	while (s.out < s.out_end) {
		unsigned int map;
		bool good;

		if (s.in == s.in_end)
			return false;
		map = *s.in++;
		if (s.in_end - s.in >= (ptrdiff_t)GROUP_IN_MAX &&
		    s.out_end - s.out >= (ptrdiff_t)GROUP_OUT_MAX)
			good = expand_group(&s, map);
		else
			good = expand_last_groups(&s, map);
		if (!good)
			return false;
	}
	return s.in == s.in_end;
}

const struct codec codec_lzjb = {
	.id = CODEC_LZJB,
	.name = "lzjb",
	.probe_pays = codec_probe_always,
	.state_size = codec_no_state,
	.compress = lzjb_compress,
	.expand = lzjb_expand,
};
