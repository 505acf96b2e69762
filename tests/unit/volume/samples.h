/*
 * A valid structure of each kind, as small as can be with everything in it, and
 * the means to break it field by field.
 */
#ifndef TESTS_UNIT_VOLUME_SAMPLES_H
#define TESTS_UNIT_VOLUME_SAMPLES_H

#include "backing/volume/format.h"
#include "base/list.h"

/* A pool of 64 MiB in segments of 256 KiB: 0 and 4 have superblocks. */
extern const struct vf_geometry sample_geometry;
#define SAMPLE_UNITS 4096u /* of a segment */
#define SAMPLE_ROOM  (64u << 10)

/* Bytes of one structure, at the end of a block of their own, so that a reader
 * that goes beyond them is caught by a sanitizer. */
struct sample {
	void *at;
	uint32_t len;
	enum vf_type type;
};

struct sample sample_super(void);
struct sample sample_segment(enum vf_stream stream);
/* One descriptor of every type, seq 7 (0: a bulk group). */
struct sample sample_group(uint64_t seq);
struct sample sample_footer(bool bulk); /* of two groups, 7 and 8 */
struct sample sample_leaf(bool wide);	/* volume 3, region 9 */
struct sample sample_dir(void);		/* volume 3, level 2, index 5 */
struct sample sample_segtab(void);	/* page 1 */
struct sample sample_volume(void);	/* id 3, two ranges */
struct sample sample_root(void);	/* two changes */
void sample_free(struct sample *sample);

/* Its own check, with len bytes there. */
bool sample_valid(const struct sample *sample, const void *at, uint32_t len);

/* A field that is wrong: width bytes at off, little-endian. */
struct wrong {
	const char *field;
	uint32_t off, width;
	uint64_t value;
};
/* clang-format off */
#define WRONG(type, field, value) \
	{ #field, offsetof(type, field), sizeof(((type *)0)->field), value }
#define WRONG_AT(base, type, field, value) \
	{ #field, (base) + offsetof(type, field), sizeof(((type *)0)->field), value }
/* clang-format on */

/* The sample is valid; with each field made wrong and the sum right it is not. */
void expect_rejected(const struct sample *sample, const struct wrong *wrong, size_t n);
/* With fewer bytes there, or with a length of fewer, it is not; the right sum of
 * shorter ones is made where reseal is set. */
void expect_whole(const struct sample *sample, bool reseal);
/* No flipped bit is overlooked, for the sum tells. */
void expect_bits_matter(const struct sample *sample);

#endif
