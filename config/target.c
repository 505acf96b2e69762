/* target blocks: see parser.h. */
#include "config/parser.h"

#include <assert.h>
#include <string.h>

#include "target/iscsi/names.h"

/* 14 bits: what the flat addressing of LUNs can express (SAM-5 4.7.7.3). */
#define LUN_NUMBER_MAX 16383

/* ---- making ---- */

struct target_entry *config_target_make(struct parser *parser, const char *name,
					struct config_pos pos)
{
	struct target_entry *entry = arena_alloc(parser->config->arena, sizeof(*entry));
	struct config_target *target = arena_alloc(parser->config->arena, sizeof(*target));

	target->pos = pos;
	target->name = name;
	option_defaults(iscsi_limits_options, &target->limits);
	entry->target = target;
	return entry;
}

void config_target_link(struct parser *parser, struct target_entry *entry)
{
	*parser->targets_end = entry->target;
	parser->targets_end = &entry->target->next;
	*parser->entries_end = entry;
	parser->entries_end = &entry->next;
}

struct config_lun_map *config_target_map(struct parser *parser, struct config_target *target,
					 uint16_t number, struct config_pos pos)
{
	struct config_lun_map *map = arena_alloc(parser->config->arena, sizeof(*map));

	map->pos = pos;
	map->number = number;
	/* In the order of the file backwards; check.c sorts them. */
	map->next = target->luns;
	target->luns = map;
	return map;
}

/* ---- words ---- */

static void alias_run(struct parser *parser, const struct statement *s)
{
	struct config_target *target = s->frame->object;

	/* RFC 7143 13.7: a text value, so at most 255 bytes. */
	if (strlen(s->args[0].text) > 255)
		config_error(parser->config, s->args[0].pos, "alias: at most 255 bytes");
	else
		target->alias = s->args[0].text;
}

static void found_auth(void *holder, void *object)
{
	((struct config_target *)holder)->auth = object;
}

static void auth_group_run(struct parser *parser, const struct statement *s)
{
	if (s->frame->own_auth)
		config_error(parser->config, s->key.pos,
			     "auth-group does not go with the target's own words for it (%s)",
			     config_place(parser->config, s->frame->own_auth->pos));
	else
		config_refer(parser, NAME_AUTH_GROUP, &s->args[0], found_auth, s->frame->object);
}

static void found_port_group(void *holder, void *object)
{
	struct config_portal_group *group = object;

	((struct config_target_port *)holder)->group = group;
	group->nports++;
}

static void found_port_auth(void *holder, void *object)
{
	((struct config_target_port *)holder)->auth = object;
}

static void portal_group_run(struct parser *parser, const struct statement *s)
{
	struct config_target *target = s->frame->object;
	struct config_target_port **last = &target->ports, *port;

	port = arena_alloc(parser->config->arena, sizeof(*port));
	port->pos = s->args[0].pos;
	config_refer(parser, NAME_PORTAL_GROUP, &s->args[0], found_port_group, port);
	if (s->nargs == 2)
		config_refer(parser, NAME_AUTH_GROUP, &s->args[1], found_port_auth, port);
	while (*last)
		last = &(*last)->next;
	*last = port;
}

static void map_lun(struct config_lun_map *map, struct config_lun *lun)
{
	map->lun = lun;
	lun->nmaps++;
}

static void found_lun(void *holder, void *object)
{
	map_lun(holder, object);
}

/* lun NUMBER { }: its lun has the name that ctl.conf(5) gives it. */
static void inline_lun(struct parser *parser, const struct statement *s, struct config_lun_map *map)
{
	const struct config_target *target = s->frame->object;
	struct config_lun *lun;
	struct err name;
	struct frame frame = {
		.section = &config_section_lun,
		.pos = s->key.pos,
	};

	snprintf(name.text, sizeof(name.text), "%s,lun,%u", target->name, map->number);
	lun = config_lun_make(parser, arena_strdup(parser->config->arena, name.text), map->pos);
	*parser->luns_end = lun;
	parser->luns_end = &lun->next;
	map_lun(map, lun);
	frame.object = lun;
	config_parse_block(parser, s, &frame);
	config_lun_finish(parser, &frame);
}

static void lun_run(struct parser *parser, const struct statement *s)
{
	struct config_target nobody = { 0 }, *target = s->frame->object;
	uint64_t number = 0;
	struct config_lun_map *map;

	/* Without a good number the rest is read for its errors only. */
	if (!config_number(parser, "lun", &s->args[0], 0, LUN_NUMBER_MAX, &number))
		target = &nobody;
	map = config_target_map(parser, target, (uint16_t)number, s->args[0].pos);
	if (s->opens_block)
		inline_lun(parser, s, map);
	else
		config_refer(parser, NAME_LUN, &s->args[1], found_lun, map);
}

/* ---- the section ---- */

static const char *target_name(struct parser *parser, const struct config_token *token)
{
	char normal[ISCSI_NAME_LEN_MAX + 1];
	struct err err;

	if (iscsi_name_normalize(token->text, normal, sizeof(normal), &err) == 0)
		return arena_strdup(parser->config->arena, normal);
	config_error(parser->config, token->pos, "target: %s", err.text);
	return token->text;
}

void config_target_run(struct parser *parser, const struct statement *s)
{
	const struct config_token *name = &s->args[0];
	struct target_entry *entry = config_target_make(parser, target_name(parser, name),
							name->pos);
	struct frame frame = {
		.section = &config_section_target,
		.pos = s->key.pos,
		.object = entry->target,
	};

	if (config_name_add(parser, NAME_TARGET, entry->target->name, name->pos, entry->target))
		config_target_link(parser, entry);
	config_parse_block(parser, s, &frame);
	entry->given = frame.given;
	entry->own_auth = frame.own_auth;
}

static const struct section_word target_words[] = {
	{ "alias", 1, 1, WORD_ONCE, "TEXT", alias_run },
	{ "auth-group", 1, 1, WORD_ONCE, "NAME", auth_group_run },
	{ "auth-type", 1, 1, WORD_ONCE, "none|deny|chap|chap-mutual", config_auth_type_run },
	{ "chap", 2, 2, 0, "USER SECRET", config_chap_run },
	{ "chap-mutual", 4, 4, 0, "USER SECRET MUTUAL-USER MUTUAL-SECRET", config_chap_mutual_run },
	{ "initiator-name", 1, 1, 0, "NAME", config_initiator_name_run },
	{ "initiator-portal", 1, 1, 0, "ADDRESS[/LENGTH]", config_initiator_portal_run },
	{ "portal-group", 1, 2, 0, "NAME [AUTH-GROUP]", portal_group_run },
	{ "lun", 1, 2, WORD_BLOCK, "NUMBER NAME, or lun NUMBER { ... }", lun_run },
	{ "port", 1, 1, WORD_NO_EFFECT, "NAME", config_run_no_effect },
	{ "offload", 1, 1, WORD_NO_EFFECT, "DRIVER", config_run_no_effect },
	{ "redirect", 1, 1, WORD_NO_EFFECT, "ADDRESS[:PORT]", config_run_no_effect },
	{ .name = NULL },
};

const struct section config_section_target = {
	.name = "a target",
	.words = target_words,
	.tables = {
		{ iscsi_limits_options, offsetof(struct config_target, limits) },
	},
};
