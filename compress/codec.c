/* The table of codecs, and the memory of a thread that uses them: see codec.h. */
#include "compress/codec.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "compress/codec_internal.h"

const struct codec *const codec_table[CODEC_COUNT] = {
	[CODEC_RAW] = &codec_raw, [CODEC_LZJB] = &codec_lzjb, [CODEC_DEFLATE] = &codec_deflate,
	[CODEC_LZ4] = &codec_lz4, [CODEC_ZSTD] = &codec_zstd,
};

/* Levels of all codecs fit between these. */
#define LEVEL_MIN  (-64)
#define LEVEL_MAX  19
#define LEVEL_SPAN (LEVEL_MAX - LEVEL_MIN + 1)

struct codec_workspace {
	void *expanders[CODEC_COUNT];
	/* A place for each choice, so that preparing one touches no other. */
	void *states[CODEC_COUNT][LEVEL_SPAN];
};

const struct codec *codec_by_id(uint8_t id)
{
	return id < CODEC_COUNT ? codec_table[id] : NULL;
}

bool codec_choice_valid(const struct codec_choice *choice)
{
	const struct codec *codec = codec_by_id(choice->id);

	if (!codec || choice->level < codec->level_min || choice->level > codec->level_max)
		return false;
	/* Between acceleration 2 and the lowest HC level there is the plain one. */
	return choice->id != CODEC_LZ4 || choice->level <= -2 || choice->level == 1 ||
	       choice->level >= 3;
}

size_t codec_no_state(int level)
{
	(void)level;
	return 0;
}

bool codec_probe_never(int level)
{
	(void)level;
	return false;
}

bool codec_probe_always(int level)
{
	(void)level;
	return true;
}

struct codec_workspace *codec_workspace_open(void)
{
	struct codec_workspace *ws = calloc(1, sizeof(*ws));

	if (!ws)
		return NULL;
	for (size_t id = 0; id < CODEC_COUNT; id++) {
		if (!codec_table[id]->expander_open)
			continue;
		ws->expanders[id] = codec_table[id]->expander_open();
		if (!ws->expanders[id]) {
			codec_workspace_close(ws);
			return NULL;
		}
	}
	return ws;
}

static void **state_of(struct codec_workspace *ws, const struct codec_choice *choice)
{
	assert(codec_choice_valid(choice));
	return &ws->states[choice->id][choice->level - LEVEL_MIN];
}

void codec_workspace_close(struct codec_workspace *ws)
{
	if (!ws)
		return;
	for (uint8_t id = 0; id < CODEC_COUNT; id++) {
		for (int level = LEVEL_MIN; level <= LEVEL_MAX; level++)
			if (ws->states[id][level - LEVEL_MIN])
				codec_workspace_drop(ws,
						     &(struct codec_choice){ id, (int8_t)level });
		if (ws->expanders[id])
			codec_table[id]->expander_close(ws->expanders[id]);
	}
	free(ws);
}

int codec_workspace_prepare(struct codec_workspace *ws, const struct codec_choice *choice,
			    struct err *err)
{
	const struct codec *codec = codec_table[choice->id];
	void **state = state_of(ws, choice);
	char text[CODEC_TEXT_MAX];

	if (*state || codec->state_size(choice->level) == 0)
		return 0;
	*state = codec->state_open(choice->level);
	if (*state)
		return 0;
	codec_format(choice, text);
	return err_set(err, ENOMEM, "no memory to compress with %s: %zu bytes a thread", text,
		       codec->state_size(choice->level));
}

bool codec_workspace_ready(const struct codec_workspace *ws, const struct codec_choice *choice)
{
	return *state_of((struct codec_workspace *)ws, choice) ||
	       codec_table[choice->id]->state_size(choice->level) == 0;
}

void codec_workspace_drop(struct codec_workspace *ws, const struct codec_choice *choice)
{
	void **state = state_of(ws, choice);

	if (*state)
		codec_table[choice->id]->state_close(*state, choice->level);
	*state = NULL;
}

size_t codec_workspace_size(void)
{
	size_t size = sizeof(struct codec_workspace);

	for (size_t id = 0; id < CODEC_COUNT; id++)
		size += codec_table[id]->expander_size;
	return size;
}

size_t codec_choice_size(const struct codec_choice *choice)
{
	assert(codec_choice_valid(choice));
	return codec_table[choice->id]->state_size(choice->level);
}

size_t codec_compress(struct codec_workspace *ws, const struct codec_choice *choice, void *dst,
		      size_t cap, const void *src, size_t len)
{
	const struct codec *codec = codec_table[choice->id];
	void *state = *state_of(ws, choice);
	size_t n;

	assert(len > 0 && len <= CODEC_LEN_MAX);
	assert(state || codec->state_size(choice->level) == 0);
	if (cap == 0)
		return 0;
	n = codec->compress(state, choice->level, dst, cap, src, len);
	assert(n <= cap);
	return n;
}

bool codec_expand(struct codec_workspace *ws, uint8_t id, void *dst, size_t dst_len,
		  const void *src, size_t len)
{
	const struct codec *codec = codec_by_id(id);

	assert(dst_len > 0 && dst_len <= CODEC_LEN_MAX);
	return codec && codec->expand(ws->expanders[id], dst, dst_len, src, len);
}
