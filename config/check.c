/* What can be said only when everything has been read: references, defaults,
 * and what blocks have to do with each other.  See parser.h; listening addresses
 * are in check_listen.c, paths in check_paths.c. */
#include "config/check.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- predefined groups ---- */

static struct config_pos nowhere(const struct parser *parser)
{
	return (struct config_pos){ .file = parser->config->file };
}

static void define_auth_default(struct parser *parser)
{
	struct config_auth_group *group;

	if (config_name_find(parser, NAME_AUTH_GROUP, "default"))
		return;
	group = config_auth_group_make(parser, "default", nowhere(parser));
	group->type = CONFIG_AUTH_DENY;
	config_name_add(parser, NAME_AUTH_GROUP, group->name, group->pos, group);
	config_auth_group_link(parser, group);
}

static void add_listen(struct parser *parser, struct config_portal_group *group, const char *host)
{
	struct config_listen *listen = arena_alloc(parser->config->arena, sizeof(*listen));

	*listen = (struct config_listen){
		.pos = group->pos,
		.host = host,
		.port = "3260",
		.v6only = strchr(host, ':') != NULL,
		.next = group->listens,
	};
	group->listens = listen;
}

static void define_portal_default(struct parser *parser)
{
	struct config_portal_group *group;

	if (config_name_find(parser, NAME_PORTAL_GROUP, "default"))
		return;
	group = config_portal_group_make(parser, "default", nowhere(parser));
	add_listen(parser, group, "::");
	add_listen(parser, group, "0.0.0.0");
	config_name_add(parser, NAME_PORTAL_GROUP, group->name, group->pos, group);
}

/* ---- auth groups ---- */

static void check_auth_type(struct parser *parser, struct config_auth_group *group)
{
	static const char *const words[] = {
		[CONFIG_AUTH_NONE] = "none",
		[CONFIG_AUTH_DENY] = "deny",
		[CONFIG_AUTH_CHAP] = "chap",
		[CONFIG_AUTH_CHAP_MUTUAL] = "chap-mutual",
	};
	uint8_t of_chaps = CONFIG_AUTH_UNSET;

	if (group->chaps)
		of_chaps = group->chaps->mutual_user ? CONFIG_AUTH_CHAP_MUTUAL : CONFIG_AUTH_CHAP;
	if (group->type != CONFIG_AUTH_UNSET && of_chaps != CONFIG_AUTH_UNSET &&
	    group->type != of_chaps)
		config_error(parser->config, group->type_pos,
			     "auth-type %s does not go with the %s at %s", words[group->type],
			     words[of_chaps], config_place(parser->config, group->chaps->pos));
	if (group->type == CONFIG_AUTH_UNSET) {
		group->type = of_chaps == CONFIG_AUTH_UNSET ? CONFIG_AUTH_DENY : of_chaps;
		if (of_chaps == CONFIG_AUTH_UNSET)
			config_warning(parser->config, group->pos,
				       "%s accepts nobody: it has neither chap nor auth-type "
				       "(auth-type none asks for no password)",
				       group->name);
	} else if (group->type >= CONFIG_AUTH_CHAP && !group->chaps) {
		config_warning(parser->config, group->type_pos,
			       "%s accepts nobody: no user is given", group->name);
	}
}

/* ---- portal groups ---- */

static void check_discovery(struct parser *parser, struct config_portal_group *group)
{
	const struct config_auth_group *fallback = config_name_find(parser, NAME_AUTH_GROUP,
								    "default");

	if (group->discovery_auth)
		return;
	group->discovery_auth = fallback;
	if (fallback->pos.line == 0)
		config_warning(parser->config, group->pos,
			       "portal-group %s answers no discovery: it has no "
			       "discovery-auth-group",
			       group->name);
}

static void check_tags(struct parser *parser)
{
	for (struct config_portal_group *a = parser->config->portal_groups; a; a = a->next)
		for (struct config_portal_group *b = a->next; a->tag && b; b = b->next)
			if (b->tag == a->tag)
				config_error(parser->config, b->tag_pos,
					     "tag %u is already that of portal-group %s at %s",
					     b->tag, a->name,
					     config_place(parser->config, a->tag_pos));
}

static void check_portal_groups(struct parser *parser)
{
	for (struct config_portal_group *g = parser->config->portal_groups; g; g = g->next) {
		check_discovery(parser, g);
		if (!g->listens && g->pos.line != 0)
			config_warning(parser->config, g->pos, "portal-group %s listens nowhere",
				       g->name);
		if (g->nports == 0)
			config_warning(parser->config, g->pos,
				       "portal-group %s is named by no target", g->name);
	}
	check_tags(parser);
}

/* ---- targets ---- */

static void check_target_auth(struct parser *parser, struct target_entry *entry)
{
	struct config_target *target = entry->target;
	const struct config_auth_group *fallback = config_name_find(parser, NAME_AUTH_GROUP,
								    "default");
	const struct frame frame = { .given = entry->given };
	bool needs_own = false, is_own;

	if (!target->auth)
		target->auth = entry->own_auth;
	is_own = target->auth || config_given(&frame, "auth-group");
	if (!target->auth)
		target->auth = fallback;
	for (struct config_target_port *port = target->ports; port; port = port->next) {
		if (port->auth)
			continue;
		port->auth = target->auth;
		needs_own = true;
	}
	if (needs_own && !is_own && fallback->pos.line == 0)
		config_warning(parser->config, target->pos,
			       "target %s accepts nobody: it has no auth-group", target->name);
}

static void check_target_ports(struct parser *parser, struct config_target *target)
{
	struct config_portal_group *fallback = config_name_find(parser, NAME_PORTAL_GROUP,
								"default");

	if (!target->ports) {
		target->ports = arena_alloc(parser->config->arena, sizeof(*target->ports));
		target->ports->pos = target->pos;
		target->ports->group = fallback;
		fallback->nports++;
		return;
	}
	for (struct config_target_port *a = target->ports; a; a = a->next)
		for (struct config_target_port *b = a->next; a->group && b; b = b->next)
			if (b->group == a->group)
				config_error(parser->config, b->pos,
					     "portal-group %s is already given at %s",
					     a->group->name, config_place(parser->config, a->pos));
}

static int map_compare(const void *a, const void *b)
{
	const struct config_lun_map *x = *(struct config_lun_map *const *)a;
	const struct config_lun_map *y = *(struct config_lun_map *const *)b;

	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	if (x->pos.line != y->pos.line)
		return x->pos.line < y->pos.line ? -1 : 1;
	return x->pos.column < y->pos.column ? -1 : x->pos.column > y->pos.column;
}

static void check_target_luns(struct parser *parser, struct config_target *target)
{
	struct config_lun_map **maps, **last = &target->luns;
	size_t n = 0, i = 0;

	for (struct config_lun_map *map = target->luns; map; map = map->next)
		n++;
	if (n == 0) {
		config_warning(parser->config, target->pos, "target %s has no LUNs", target->name);
		return;
	}
	maps = arena_alloc(parser->config->arena, n * sizeof(struct config_lun_map *));
	for (struct config_lun_map *map = target->luns; map; map = map->next)
		maps[i++] = map;
	qsort(maps, n, sizeof(struct config_lun_map *), map_compare);
	for (i = 0; i < n; i++) {
		if (i > 0 && maps[i]->number == maps[i - 1]->number)
			config_error(parser->config, maps[i]->pos,
				     "lun %u of this target is already given at %s",
				     maps[i]->number,
				     config_place(parser->config, maps[i - 1]->pos));
		*last = maps[i];
		last = &maps[i]->next;
	}
	*last = NULL;
}

/* ---- limits ---- */

/* RFC 7143 13.14: FirstBurstLength must not exceed MaxBurstLength. */
static void check_bursts(struct parser *parser, struct iscsi_limits *limits, struct given *given)
{
	const struct frame frame = { .given = given };
	const struct given *first = config_given(&frame, "first-burst-length");

	if (limits->first_burst_length <= limits->max_burst_length)
		return;
	/* A default follows without a word. */
	if (first)
		config_warning(parser->config, first->pos,
			       "first-burst-length: %" PRIu32 " is more than max-burst-length, "
			       "which is used for both: %" PRIu32,
			       limits->first_burst_length, limits->max_burst_length);
	limits->first_burst_length = limits->max_burst_length;
}

/* The global values, and over them those of the target. */
static void set_target_limits(struct parser *parser, struct target_entry *entry)
{
	struct iscsi_limits *limits = &entry->target->limits;

	*limits = parser->config->limits;
	for (const struct given *given = entry->given; given; given = given->next)
		if (given->row)
			option_set(given->row, limits, given->text, NULL);
	check_bursts(parser, limits, entry->given);
}

/* ---- all ---- */

static void check_targets(struct parser *parser)
{
	for (struct target_entry *entry = parser->targets; entry; entry = entry->next) {
		check_target_ports(parser, entry->target);
		check_target_auth(parser, entry);
		check_target_luns(parser, entry->target);
		set_target_limits(parser, entry);
	}
}

static void link_portal_default(struct parser *parser)
{
	struct config_portal_group *group = config_name_find(parser, NAME_PORTAL_GROUP, "default");

	if (group->pos.line == 0 && group->nports > 0)
		config_portal_group_link(parser, group);
}

void config_check(struct parser *parser)
{
	struct config *config = parser->config;

	if (config_has_too_many_errors(config))
		return;
	define_auth_default(parser);
	define_portal_default(parser);
	config_resolve_references(parser);
	for (struct config_auth_group *group = config->auth_groups; group; group = group->next)
		check_auth_type(parser, group);
	check_bursts(parser, &config->limits, parser->top.given);
	check_targets(parser);
	link_portal_default(parser);
	check_portal_groups(parser);
	config_check_listens(parser);
	config_check_paths(parser);
}
