/*
 * CRC32C: see crc32c.h.
 *
 * The processor's instruction takes 8 bytes in 3 cycles but starts one each
 * cycle, so three streams side by side use it fully.  Their remainders are
 * joined by shifting: to append n zero bytes to a message is a linear map of
 * its CRC, here four tables of 256 entries for each of the two block lengths.
 */
#include "base/crc32c.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#if defined(__x86_64__)
#include <nmmintrin.h>
#define HAVE_INSTRUCTION   1
#define INSTRUCTION_TARGET __attribute__((target("sse4.2")))
#elif defined(__ARM_FEATURE_CRC32) /* built with -march=...+crc */
#include <arm_acle.h>
#define HAVE_INSTRUCTION 1
#define INSTRUCTION_TARGET
#else
#define HAVE_INSTRUCTION 0
#endif

/* x^32 + x^28 + ... (RFC 7143 13.1), bits reversed. */
#define POLYNOMIAL 0x82f63b78u

static uint32_t byte_table[8][256];
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* ---- tables ---- */

static void make_byte_table(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t crc = i;

		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
		byte_table[0][i] = crc;
	}
	for (uint32_t i = 0; i < 256; i++)
		for (int k = 1; k < 8; k++)
			byte_table[k][i] = byte_table[k - 1][i] >> 8 ^
					   byte_table[0][byte_table[k - 1][i] & 0xff];
}

static uint32_t update_table(uint32_t crc, const uint8_t *p, size_t len)
{
	for (; len >= 8; p += 8, len -= 8) {
		uint32_t lo = crc ^ ((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
				     (uint32_t)p[3] << 24);

		crc = byte_table[7][lo & 0xff] ^ byte_table[6][lo >> 8 & 0xff] ^
		      byte_table[5][lo >> 16 & 0xff] ^ byte_table[4][lo >> 24] ^
		      byte_table[3][p[4]] ^ byte_table[2][p[5]] ^ byte_table[1][p[6]] ^
		      byte_table[0][p[7]];
	}
	for (; len > 0; p++, len--)
		crc = crc >> 8 ^ byte_table[0][(crc ^ *p) & 0xff];
	return crc;
}

/* ---- the instruction ---- */

#if HAVE_INSTRUCTION

#if defined(__x86_64__)
#define crc_of_u64(crc, v) _mm_crc32_u64((crc), (v))
#define crc_of_u8(crc, v)  _mm_crc32_u8((crc), (v))
typedef uint64_t crc_register;

static bool instruction_present(void)
{
	return __builtin_cpu_supports("sse4.2");
}
#else
#define crc_of_u64(crc, v) __crc32cd((crc), (v))
#define crc_of_u8(crc, v)  __crc32cb((crc), (v))
typedef uint32_t crc_register;

static bool instruction_present(void)
{
	return true;
}
#endif

/* Bytes of each of three streams; the long one suits 4 KiB and more, the short
 * one what is left. */
#define LONG_LEN  1360u
#define SHORT_LEN 256u

struct shift {
	uint32_t table[4][256];
};

static struct shift long_shift, short_shift;

/* What crc becomes when len zero bytes follow. */
static uint32_t append_zeros(uint32_t crc, size_t len)
{
	while (len-- > 0)
		crc = crc >> 8 ^ byte_table[0][crc & 0xff];
	return crc;
}

static void make_shift(struct shift *shift, size_t len)
{
	uint32_t of_bit[32];

	/* The map is linear: what it does to single bits says all. */
	for (int bit = 0; bit < 32; bit++)
		of_bit[bit] = append_zeros(1u << bit, len);
	for (int k = 0; k < 4; k++) {
		for (uint32_t i = 0; i < 256; i++) {
			uint32_t crc = 0;

			for (int bit = 0; bit < 8; bit++)
				if (i >> bit & 1)
					crc ^= of_bit[8 * k + bit];
			shift->table[k][i] = crc;
		}
	}
}

static inline uint64_t load_u64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint32_t shift_apply(const struct shift *shift, uint32_t crc)
{
	return shift->table[0][crc & 0xff] ^ shift->table[1][crc >> 8 & 0xff] ^
	       shift->table[2][crc >> 16 & 0xff] ^ shift->table[3][crc >> 24];
}

/* Three streams of n bytes each, a multiple of 8, that follow one another. */
INSTRUCTION_TARGET
static inline uint32_t update_three(uint32_t crc, const uint8_t *p, size_t n,
				    const struct shift *shift)
{
	crc_register a = crc, b = 0, c = 0;

	for (const uint8_t *end = p + n; p < end; p += 8) {
		a = crc_of_u64(a, load_u64(p));
		b = crc_of_u64(b, load_u64(p + n));
		c = crc_of_u64(c, load_u64(p + 2 * n));
	}
	crc = shift_apply(shift, (uint32_t)a) ^ (uint32_t)b;
	return shift_apply(shift, crc) ^ (uint32_t)c;
}

INSTRUCTION_TARGET
static uint32_t update_instruction(uint32_t crc, const uint8_t *p, size_t len)
{
	crc_register r;

	for (; len >= 3 * LONG_LEN; p += 3 * LONG_LEN, len -= 3 * LONG_LEN)
		crc = update_three(crc, p, LONG_LEN, &long_shift);
	for (; len >= 3 * SHORT_LEN; p += 3 * SHORT_LEN, len -= 3 * SHORT_LEN)
		crc = update_three(crc, p, SHORT_LEN, &short_shift);
	r = crc;
	for (; len >= 8; p += 8, len -= 8)
		r = crc_of_u64(r, load_u64(p));
	crc = (uint32_t)r;
	for (; len > 0; p++, len--)
		crc = crc_of_u8(crc, *p);
	return crc;
}

#endif

/* ---- the choice ---- */

typedef uint32_t update_fn(uint32_t crc, const uint8_t *p, size_t len);

static _Atomic(update_fn *) chosen;

static void choose(void)
{
	update_fn *fn = update_table;

	make_byte_table();
#if HAVE_INSTRUCTION
	make_shift(&long_shift, LONG_LEN);
	make_shift(&short_shift, SHORT_LEN);
	if (instruction_present())
		fn = update_instruction;
#endif
	atomic_store_explicit(&chosen, fn, memory_order_release);
}

uint32_t crc32c_update(uint32_t crc, const void *data, size_t len)
{
	update_fn *fn = atomic_load_explicit(&chosen, memory_order_acquire);

	if (__builtin_expect(!fn, 0)) {
		pthread_once(&once, choose);
		fn = atomic_load_explicit(&chosen, memory_order_acquire);
	}
	return fn(crc, data, len);
}

uint32_t crc32c_update_table(uint32_t crc, const void *data, size_t len)
{
	pthread_once(&once, choose);
	return update_table(crc, data, len);
}
