/*
 * Codecs of stored records: one row each in codec_table[], one file each.
 *
 * Purpose: turn a record of 1 byte to CODEC_LEN_MAX (in practice 512 B to
 * 1 MiB) into fewer bytes and back.  Which bytes depends on codec, level, input
 * and the library's version and kind of CPU, on nothing else; what they expand
 * to depends on them alone.  No globals, no I/O, no clock.
 *
 * What decodes is hostile-safe: from any bytes, codec_expand() gives exactly
 * dst_len bytes or fails, and never reads or writes outside its two ranges.
 * Whether the bytes are the right ones is for the caller's checksum to say.
 *
 * A struct codec_workspace is the scratch memory of one thread that compresses
 * or expands.  Open one per worker and per reactor, on the control path.  Every
 * workspace expands every codec; to compress with a choice it must have been
 * prepared for that choice.  Compressing and expanding allocate nothing.
 *
 *	choice	codec_parse("gzip-9", &choice, &err)
 *	once	ws = codec_workspace_open(); codec_workspace_prepare(ws, &choice, &err)
 *	write	n = codec_compress(ws, &choice, buf, len - len / 8, data, len)
 *		0: store the data itself, as codec id CODEC_RAW
 *	read	ok = codec_expand(ws, id, data, len, buf, n)
 *
 * Threads: a workspace is used by one thread at a time.  The one exception is
 * codec_workspace_prepare(), which the control thread may call while the owner
 * compresses and expands, provided that the owner is told of the new choice
 * afterwards by something that orders memory (a message, a lock).
 *
 * To add a codec: a row with a new id here, in codec_table[] and in
 * codec_names[] (codec.c, codec_name.c), and a file that defines the row.  To a
 * pool it is a new format feature: older programs cannot read its records.
 */
#ifndef COMPRESS_CODEC_H
#define COMPRESS_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define CODEC_LEN_MAX (1u << 20)

/* As on disk: never reused, never renumbered. */
enum codec_id {
	CODEC_RAW = 0,	   /* the bytes themselves */
	CODEC_LZJB = 1,	   /* as ZFS writes it */
	CODEC_DEFLATE = 2, /* RFC 1951, without a zlib or gzip frame */
	CODEC_LZ4 = 3,	   /* the LZ4 block format, without a frame */
	CODEC_ZSTD = 4,	   /* one RFC 8878 frame with its content size, no checksum */
	CODEC_COUNT,
};

/*
 * What a volume is set to; id and level may be stored as they are (a level fits
 * an int8_t), and must be judged by codec_choice_valid() when read back.
 */
struct codec_choice {
	uint8_t id;
	int8_t level;
};

/* A level means for the codec:
 *	raw, lzjb	0, there is but one
 *	deflate		1 to 9, as in gzip(1)
 *	lz4		1 the plain fast one; -2 to -64 faster still (acceleration
 *			2 to 64); 3 to 9 the slow "HC" search, same format
 *	zstd		1 to 19, as in zstd(1)
 */
struct codec {
	uint8_t id;
	const char *name; /* of the format, for status and reports: "deflate" */
	int level_min, level_max, level_default;
	/* An entropy probe (probe.h) costs less than trying in vain. */
	bool (*probe_pays)(int level);
	/* Memory to compress at this level, in bytes; 0: needs none. */
	size_t (*state_size)(int level);
	/* Control path; NULL: no memory.  Called only where state_size() is not 0. */
	void *(*state_open)(int level);
	void (*state_close)(void *state, int level);
	/* See codec_compress(). */
	size_t (*compress)(void *state, int level, void *dst, size_t cap, const void *src,
			   size_t len);
	/* Memory to expand; NULL, NULL, 0: needs none. */
	size_t expander_size;
	void *(*expander_open)(void);
	void (*expander_close)(void *expander);
	/* See codec_expand(). */
	bool (*expand)(void *expander, void *dst, size_t dst_len, const void *src, size_t len);
};

/* Indexed by codec_id. */
extern const struct codec *const codec_table[CODEC_COUNT];

/* The row of an id as found on disk; NULL when there is none. */
const struct codec *codec_by_id(uint8_t id);

/* Is this a codec with such a level?  For what was read from a disk. */
bool codec_choice_valid(const struct codec_choice *choice);

/*
 * The value of a volume's `compression`, in any case of letters:
 *	none
 *	lzjb
 *	gzip, gzip-1 to gzip-9		gzip is gzip-6
 *	lz4
 *	lz4-fast-2 to lz4-fast-64	faster, less dense (acceleration)
 *	lz4hc, lz4hc-3 to lz4hc-9	denser, slow to write; lz4hc is lz4hc-9
 *	zstd, zstd-1 to zstd-19		zstd is zstd-3
 * 0, or -EINVAL with err saying what was given, what is meant perhaps, and what
 * is valid.
 */
int codec_parse(const char *text, struct codec_choice *out, struct err *err);

/* The value as codec_parse() takes it, levels spelled out: "gzip-6", "lz4". */
#define CODEC_TEXT_MAX 16
void codec_format(const struct codec_choice *choice, char text[CODEC_TEXT_MAX]);

/* All valid values in one phrase, for messages and manual pages. */
extern const char codec_valid_values[];

struct codec_workspace;

/* Ready to expand everything, and to compress with "none".  NULL: no memory. */
struct codec_workspace *codec_workspace_open(void);
void codec_workspace_close(struct codec_workspace *ws);

/*
 * Gets the memory to compress with this valid choice; it is kept until drop or close.
 * 0 (at once when it has it already), or -ENOMEM.
 */
int codec_workspace_prepare(struct codec_workspace *ws, const struct codec_choice *choice,
			    struct err *err);

/* It was prepared for the choice, or need not be.  For the owner. */
bool codec_workspace_ready(const struct codec_workspace *ws, const struct codec_choice *choice);

/*
 * Gives that memory back when no record will be compressed with the choice any
 * more.  For the owner, or the control thread once the owner knows.
 */
void codec_workspace_drop(struct codec_workspace *ws, const struct codec_choice *choice);

/* Bytes that a workspace takes by itself, and more for each choice prepared. */
size_t codec_workspace_size(void);
size_t codec_choice_size(const struct codec_choice *choice);

/*
 * Compresses len bytes (1 to CODEC_LEN_MAX) into at most cap.  Returns the
 * stored length, or 0 when it does not fit in cap; dst[0..cap) is then undefined.
 * Never writes behind cap.  The choice was prepared for; dst and src are apart.
 * A library may want a few bytes of cap (less than CODEC_SLACK) to spare.
 */
#define CODEC_SLACK 32u
size_t codec_compress(struct codec_workspace *ws, const struct codec_choice *choice, void *dst,
		      size_t cap, const void *src, size_t len);

/*
 * Expands the len stored bytes of a record that had dst_len (1 to CODEC_LEN_MAX)
 * bytes.  False when id is unknown, or src is not one whole stream of exactly
 * dst_len bytes with nothing behind it; dst is then undefined.
 */
bool codec_expand(struct codec_workspace *ws, uint8_t id, void *dst, size_t dst_len,
		  const void *src, size_t len);

/*
 * A record is kept compressed only if that saves an eighth: less is not worth
 * the work of expanding it (VOLUME format: cap to give to codec_compress()).
 */
static inline size_t codec_worth_max(size_t len)
{
	return len - len / 8;
}

#endif
