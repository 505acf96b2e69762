/* lun blocks, at the top level and within a target: see parser.h. */
#include "config/parser.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

struct config_lun *config_lun_make(struct parser *parser, const char *name, struct config_pos pos)
{
	struct config_lun *lun = arena_alloc(parser->config->arena, sizeof(*lun));

	lun->pos = pos;
	lun->name = name;
	option_defaults(backing_options, &lun->backing);
	option_defaults(scsi_lun_options, &lun->scsi);
	return lun;
}

/* ---- CTL's names ---- */

/*
 * `option NAME VALUE` sets what FreeBSD's ctladm(8) calls NAME.  Where the name
 * is one of ours too (vendor, product, revision, serial ...) no row is needed.
 */
static const struct ctl_option {
	const char *name;
	const char *key;      /* ours */
	const char *on, *off; /* our values of CTL's on and off; NULL: as it is */
} ctl_options[] = {
	{ "readonly", "read-only", NULL, NULL },
	{ "file", "path", NULL, NULL },
	{ "pblocksize", "physical-blocksize", NULL, NULL },
	{ "unmap", "thin", NULL, NULL },
	{ "writecache", "cache", "write-back", "write-through" },
};

static const struct ctl_option *ctl_option_find(const char *name)
{
	for (size_t i = 0; i < sizeof(ctl_options) / sizeof(ctl_options[0]); i++)
		if (strcmp(ctl_options[i].name, name) == 0)
			return &ctl_options[i];
	return NULL;
}

static void option_run(struct parser *parser, const struct statement *s)
{
	const struct config_token *name = &s->args[0];
	struct config_token value = s->args[1];
	const struct ctl_option *option = ctl_option_find(name->text);

	if (option && option->on && strcasecmp(value.text, "on") == 0)
		value.text = option->on;
	else if (option && option->off && strcasecmp(value.text, "off") == 0)
		value.text = option->off;
	if (!config_set_option(parser, s->frame, option ? option->key : name->text, &value))
		config_warning(parser->config, name->pos, "option %s has no effect in quintain",
			       name->text);
}

/* What ctl.conf(5) calls the types; processors and CD drives are no disks. */
static void device_type_run(struct parser *parser, const struct statement *s)
{
	struct config_token value = s->args[0];

	if (strcasecmp(value.text, "direct") == 0 || strcmp(value.text, "0") == 0)
		value.text = "disk";
	config_set_option(parser, s->frame, "device-type", &value);
}

/* ---- what a block says as a whole ---- */

static void check_blocks(struct parser *parser, const struct frame *frame)
{
	struct config_lun *lun = frame->object;
	struct backing_settings *b = &lun->backing;
	uint32_t physical = b->physical_block_size;

	if (b->block_size != 512 && b->block_size != 4096) {
		config_error(parser->config, config_given_pos(frame, "blocksize"),
			     "blocksize: %" PRIu32 " is not 512 or 4096", b->block_size);
		return;
	}
	if (physical < b->block_size || (physical & (physical - 1)) != 0)
		config_error(parser->config, config_given_pos(frame, "physical-blocksize"),
			     "physical-blocksize: %" PRIu32 " is not a power of two of %" PRIu32
			     "..1048576",
			     physical, b->block_size);
	if (b->size % b->block_size == 0)
		return;
	if (b->size < b->block_size) {
		config_error(parser->config, config_given_pos(frame, "size"),
			     "size: %" PRIu64 " is less than one block of %" PRIu32 " bytes",
			     b->size, b->block_size);
		return;
	}
	config_warning(parser->config, config_given_pos(frame, "size"),
		       "size: %" PRIu64 " is not a multiple of the block size %" PRIu32
		       ": rounded down to %" PRIu64,
		       b->size, b->block_size, b->size - b->size % b->block_size);
	b->size -= b->size % b->block_size;
}

static void check_store(struct parser *parser, const struct frame *frame)
{
	const struct config_lun *lun = frame->object;
	const struct backing_settings *b = &lun->backing;

	if (b->backend == BACKING_KIND_RAMDISK) {
		if (b->path)
			config_error(parser->config, config_given_pos(frame, "path"),
				     "path does not go with backend ramdisk");
		if (!config_given(frame, "size"))
			config_error(parser->config, config_given_pos(frame, "backend"),
				     "backend ramdisk needs a size");
	} else if (!config_given(frame, "path") && !b->volume) {
		config_error(parser->config, frame->pos, "lun %s has no path", lun->name);
	}
	if (b->cache == BACKING_CACHE_UNSAFE)
		config_warning(parser->config, config_given_pos(frame, "cache"),
			       "cache unsafe acknowledges flushes without doing them: a crash "
			       "of this machine damages what is on the disk");
}

void config_lun_finish(struct parser *parser, struct frame *frame)
{
	struct config_lun *lun = frame->object;

	lun->path_pos = config_given_pos(frame, lun->backing.volume ? "volume" : "path");
	check_blocks(parser, frame);
	check_store(parser, frame);
	config_volume_finish(parser, frame);
}

/* ---- the section ---- */

void config_lun_run(struct parser *parser, const struct statement *s)
{
	const struct config_token *name = &s->args[0];
	struct config_lun *lun = config_lun_make(parser, name->text, name->pos);
	struct frame frame = {
		.section = &config_section_lun,
		.pos = s->key.pos,
		.object = lun,
	};

	if (config_name_add(parser, NAME_LUN, name->text, name->pos, lun)) {
		*parser->luns_end = lun;
		parser->luns_end = &lun->next;
	}
	config_parse_block(parser, s, &frame);
	config_lun_finish(parser, &frame);
}

static const struct section_word lun_words[] = {
	{ "option", 2, 2, 0, "NAME VALUE", option_run },
	{ "device-type", 1, 1, 0, "disk", device_type_run },
	{ "ctl-lun", 1, 1, WORD_NO_EFFECT, "NUMBER", config_run_no_effect },
	{ .name = NULL },
};

const struct section config_section_lun = {
	.name = "a lun",
	.words = lun_words,
	.tables = {
		{ backing_options, offsetof(struct config_lun, backing) },
		{ scsi_lun_options, offsetof(struct config_lun, scsi) },
	},
};
