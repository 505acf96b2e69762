/*
 * What to know of a record before time is spent on compressing it.
 *
 * Three questions, in this order: is it all zero (then it is a hole), is it
 * worth probing (not while a volume takes nothing but incompressible data), and
 * do its bytes look compressible.  The last is asked of a sample's order-0
 * entropy: unlike a trial with lz4 it sees that base64, or text of four letters,
 * has fewer than eight bits a byte.  It is blind to long repeats of random
 * data; a codec for which codec->probe_pays() is false is its own probe.
 *
 * Pure functions of their arguments; any thread.  A struct probe_history belongs
 * to whoever cuts the records of one volume.
 */
#ifndef COMPRESS_PROBE_H
#define COMPRESS_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All len bytes are zero. */
bool probe_zero(const void *data, size_t len);

/* Entropy is in 1/256 bits per byte: 0 (one value only) to 2048 (uniform). */
#define PROBE_BIT 256u
/* Below this a slow codec is worth trying: 7.2 bits. */
#define PROBE_ENTROPY_MAX (72 * PROBE_BIT / 10)

/* Order-0 entropy of 16 samples of 256 bytes, evenly spread; of all if it is less. */
uint32_t probe_entropy(const void *data, size_t len);

static inline bool probe_compressible(const void *data, size_t len)
{
	return probe_entropy(data, len) < PROBE_ENTROPY_MAX;
}

/*
 * After PROBE_RAW_RUN records in a row that had to be stored raw, only one in
 * PROBE_SKIP is looked at; one success, and all are again.  All zero: new.
 */
#define PROBE_RAW_RUN 8u
#define PROBE_SKIP    16u

struct probe_history {
	uint8_t raw_run; /* records stored raw in a row, at most PROBE_RAW_RUN */
	uint8_t skipped; /* of them not looked at since the last that was */
};

/* Shall the next record be probed and tried?  Else store it raw.  Counts it. */
bool probe_history_wants(struct probe_history *history);
/* What became of a record that was looked at. */
void probe_history_tell(struct probe_history *history, bool compressed);

#endif
