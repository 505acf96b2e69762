/*
 * Big- and little-endian integers as they stand on the wire and on disk.
 *
 * Each is a struct of bytes, so that an unconverted field cannot be used as a
 * number, no wire struct needs packing, and every field may be unaligned.
 * Read with NAME_get(&field) or NAME_get_at(pointer), write with NAME_put().
 *
 * Pure functions; any thread.
 */
#ifndef BASE_BE_H
#define BASE_BE_H

#include <stdint.h>
#include <string.h>

/* clang-format off */
typedef struct { uint8_t b[2]; } be16;
typedef struct { uint8_t b[3]; } be24;
typedef struct { uint8_t b[4]; } be32;
typedef struct { uint8_t b[8]; } be64;
typedef struct { uint8_t b[2]; } le16;
typedef struct { uint8_t b[4]; } le32;
typedef struct { uint8_t b[8]; } le64;
/* clang-format on */

static inline uint16_t be16_load(const void *p)
{
	const uint8_t *b = p;

	return (uint16_t)(b[0] << 8 | b[1]);
}

static inline uint32_t be24_load(const void *p)
{
	const uint8_t *b = p;

	return (uint32_t)b[0] << 16 | (uint32_t)b[1] << 8 | b[2];
}

static inline uint32_t be32_load(const void *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return __builtin_bswap32(v);
}

static inline uint64_t be64_load(const void *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return __builtin_bswap64(v);
}

static inline void be16_store(void *p, uint16_t v)
{
	uint8_t *b = p;

	b[0] = (uint8_t)(v >> 8);
	b[1] = (uint8_t)v;
}

static inline void be24_store(void *p, uint32_t v)
{
	uint8_t *b = p;

	b[0] = (uint8_t)(v >> 16);
	b[1] = (uint8_t)(v >> 8);
	b[2] = (uint8_t)v;
}

static inline void be32_store(void *p, uint32_t v)
{
	v = __builtin_bswap32(v);
	memcpy(p, &v, sizeof(v));
}

static inline void be64_store(void *p, uint64_t v)
{
	v = __builtin_bswap64(v);
	memcpy(p, &v, sizeof(v));
}

/* clang-format off */
static inline uint16_t be16_get(const be16 *v) { return be16_load(v->b); }
static inline uint32_t be24_get(const be24 *v) { return be24_load(v->b); }
static inline uint32_t be32_get(const be32 *v) { return be32_load(v->b); }
static inline uint64_t be64_get(const be64 *v) { return be64_load(v->b); }

static inline void be16_put(be16 *f, uint16_t v) { be16_store(f->b, v); }
static inline void be24_put(be24 *f, uint32_t v) { be24_store(f->b, v); }
static inline void be32_put(be32 *f, uint32_t v) { be32_store(f->b, v); }
static inline void be64_put(be64 *f, uint64_t v) { be64_store(f->b, v); }
/* clang-format on */

/* iSCSI sends its digests least significant byte first (RFC 7143 13.1); pools are
 * little-endian throughout (docs/volume-format.md). */
static inline uint16_t le16_get(const le16 *v)
{
	return (uint16_t)(v->b[0] | v->b[1] << 8);
}

static inline uint32_t le32_get(const le32 *v)
{
	return (uint32_t)v->b[0] | (uint32_t)v->b[1] << 8 | (uint32_t)v->b[2] << 16 |
	       (uint32_t)v->b[3] << 24;
}

static inline void le32_put(le32 *f, uint32_t v)
{
	f->b[0] = (uint8_t)v;
	f->b[1] = (uint8_t)(v >> 8);
	f->b[2] = (uint8_t)(v >> 16);
	f->b[3] = (uint8_t)(v >> 24);
}

static inline void le16_put(le16 *f, uint16_t v)
{
	f->b[0] = (uint8_t)v;
	f->b[1] = (uint8_t)(v >> 8);
}

static inline uint64_t le64_get(const le64 *v)
{
	uint64_t lo = 0;

	for (unsigned int i = 8; i-- > 0;)
		lo = lo << 8 | v->b[i];
	return lo;
}

static inline void le64_put(le64 *f, uint64_t v)
{
	for (unsigned int i = 0; i < 8; i++, v >>= 8)
		f->b[i] = (uint8_t)v;
}

#endif
