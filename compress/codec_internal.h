/*
 * The rows of codec_table[]: each is defined by the file of its codec.
 * For compress/ only.
 */
#ifndef COMPRESS_CODEC_INTERNAL_H
#define COMPRESS_CODEC_INTERNAL_H

#include "compress/codec.h"

extern const struct codec codec_raw, codec_lzjb, codec_deflate, codec_lz4, codec_zstd;

/* Values of struct codec's functions for a codec that needs no memory, or is fast. */
size_t codec_no_state(int level);
bool codec_probe_never(int level);
bool codec_probe_always(int level);

#endif
