/* pool blocks, and volumes of pools in lun blocks: see parser.h. */
#include "config/parser.h"

#include <string.h>

#include "backing/settings.h"

#define POOL_SIZE_MIN (16ull << 20)
#define NAME_LEN_MAX  63

static void name_judge(struct parser *parser, const char *what, const char *name,
		       struct config_pos pos)
{
	size_t len = strlen(name);

	if (len == 0 || len > NAME_LEN_MAX || strchr(name, '/'))
		config_error(parser->config, pos,
			     "%s name \"%s\" is not valid: 1 to %u characters without /", what,
			     name, NAME_LEN_MAX);
}

static void pool_finish(struct parser *parser, const struct frame *frame)
{
	struct config_pool *pool = frame->object;
	struct pool_settings *settings = &pool->settings;

	pool->path_pos = config_given_pos(frame, "path");
	if (!config_given(frame, "path"))
		config_error(parser->config, frame->pos, "pool %s has no path", pool->name);
	else if (!config_name_find(parser, NAME_PATH, settings->path))
		config_name_add(parser, NAME_PATH, settings->path, pool->path_pos, pool);
	else
		config_error(parser->config, pool->path_pos, "%s is the path of pool %s already",
			     settings->path,
			     ((const struct config_pool *)config_name_find(parser, NAME_PATH,
									   settings->path))
				     ->name);
	if (settings->size && settings->size < POOL_SIZE_MIN)
		config_error(parser->config, config_given_pos(frame, "size"),
			     "size: a pool has at least 16 MiB");
}

void config_pool_run(struct parser *parser, const struct statement *s)
{
	const struct config_token *name = &s->args[0];
	struct config_pool *pool = arena_alloc(parser->config->arena, sizeof(*pool));
	struct frame frame = {
		.section = &config_section_pool,
		.pos = s->key.pos,
		.object = pool,
	};

	pool->pos = name->pos;
	pool->name = name->text;
	option_defaults(pool_options, &pool->settings);
	name_judge(parser, "pool", name->text, name->pos);
	if (config_name_add(parser, NAME_POOL, name->text, name->pos, pool)) {
		*parser->pools_end = pool;
		parser->pools_end = &pool->next;
	}
	config_parse_block(parser, s, &frame);
	pool_finish(parser, &frame);
}

static const struct section_word pool_words[] = {
	{ .name = NULL },
};

const struct section config_section_pool = {
	.name = "a pool",
	.words = pool_words,
	.tables = {
		{ pool_options, offsetof(struct config_pool, settings) },
	},
};

/* ---- a lun's volume ---- */

static void found_pool(void *holder, void *object)
{
	struct config_lun *lun = holder;

	lun->pool = object;
}

/* POOL/NAME; once in a configuration. */
static void volume_judge(struct parser *parser, const struct frame *frame)
{
	struct config_lun *lun = frame->object;
	struct config_pos pos = config_given_pos(frame, "volume");
	const char *volume = lun->backing.volume, *slash = strchr(volume, '/');
	struct config_token pool = { .pos = pos };
	const struct config_lun *other;

	if (!slash || slash == volume) {
		config_error(parser->config, pos, "volume: %s is not POOL/NAME", volume);
		return;
	}
	name_judge(parser, "volume", slash + 1, pos);
	pool.text = arena_strndup(parser->config->arena, volume, (size_t)(slash - volume));
	config_refer(parser, NAME_POOL, &pool, found_pool, lun);
	other = config_name_find(parser, NAME_VOLUME, volume);
	if (!other)
		config_name_add(parser, NAME_VOLUME, volume, pos, lun);
	else
		config_error(parser->config, pos,
			     "volume %s is that of lun %s already: to serve it in several targets, "
			     "define `lun NAME` once and map that",
			     volume, other->name);
}

/* What is about files means nothing on a volume, and the other way round. */
static void judge_others(struct parser *parser, const struct frame *frame, bool volume)
{
	static const char *const of_files[] = { "direct-io", "thin", NULL };
	static const char *const of_volumes[] = { "record-size", "compression", "checksum", NULL };
	const char *const *keys = volume ? of_files : of_volumes;

	for (; *keys; keys++)
		if (config_given(frame, *keys))
			config_warning(parser->config, config_given_pos(frame, *keys),
				       "%s has no effect on a LUN %s", *keys,
				       volume ? "of a volume" : "without volume");
}

void config_volume_finish(struct parser *parser, const struct frame *frame)
{
	struct config_lun *lun = frame->object;
	const struct backing_settings *b = &lun->backing;
	struct err err;

	judge_others(parser, frame, b->volume != NULL);
	if (!b->volume)
		return;
	if (b->path)
		config_error(parser->config, config_given_pos(frame, "path"),
			     "path and volume exclude each other");
	if (b->backend == BACKING_KIND_RAMDISK)
		config_error(parser->config, config_given_pos(frame, "backend"),
			     "backend ramdisk and volume exclude each other");
	volume_judge(parser, frame);
	if ((b->record_size & (b->record_size - 1)) != 0 || b->record_size < b->block_size)
		config_error(parser->config, config_given_pos(frame, "record-size"),
			     "record-size: %u is not a power of two of 4K..1M, at least the "
			     "blocksize",
			     b->record_size);
	if (backing_compression_check(b->compression, &err) != 0)
		config_error(parser->config, config_given_pos(frame, "compression"), "%s",
			     err.text);
}
