/* portal-group blocks: see parser.h. */
#include "config/parser.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#define DEFAULT_PORT "3260"
#define HOST_LEN_MAX 253 /* RFC 1123 2.1 */

/* ---- addresses ---- */

static bool is_ipv6(const char *host)
{
	unsigned char bytes[16];
	char address[64];
	const char *zone = strchr(host, '%'); /* of a link-local address */
	size_t len = zone ? (size_t)(zone - host) : strlen(host);

	if (len >= sizeof(address) || (zone && zone[1] == '\0'))
		return false;
	snprintf(address, sizeof(address), "%.*s", (int)len, host);
	return inet_pton(AF_INET6, address, bytes) == 1;
}

static bool is_host_name(const char *host)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789-_.";
	size_t len = strlen(host);

	return len > 0 && len <= HOST_LEN_MAX && strspn(host, letters) == len;
}

static int host_check(const char *host, bool bracketed, struct err *err)
{
	unsigned char bytes[4];

	if (bracketed || strchr(host, ':'))
		return is_ipv6(host) ? 0 : err_set(err, EINVAL, "%s is not an IPv6 address", host);
	if (*host == '\0' || inet_pton(AF_INET, host, bytes) == 1)
		return 0;
	if (strspn(host, "0123456789.") == strlen(host))
		return err_set(err, EINVAL, "%s is not an IPv4 address", host);
	if (!is_host_name(host))
		return err_set(err, EINVAL, "%s is not an address or a host name", host);
	return 0;
}

static int port_check(const char *port, struct err *err)
{
	uint64_t number;

	if (strspn(port, "0123456789") == strlen(port) && size_parse(port, &number) == 0 &&
	    number >= 1 && number <= 65535)
		return 0;
	return err_set(err, EINVAL, "%s is not a port of 1..65535", *port ? port : "nothing");
}

/* Splits text into host and port; port is NULL when there is none. */
static int split(struct arena *arena, const char *text, const char **host, const char **port,
		 bool *bracketed, struct err *err)
{
	const char *colon, *close = strchr(text, ']');

	*bracketed = text[0] == '[';
	*port = NULL;
	if (*bracketed) {
		if (!close || (close[1] != '\0' && close[1] != ':'))
			return err_set(err, EINVAL, "%s is not [ADDRESS] or [ADDRESS]:PORT", text);
		*host = arena_strndup(arena, text + 1, (size_t)(close - text) - 1);
		if (close[1] == ':')
			*port = close + 2;
		return 0;
	}
	colon = strchr(text, ':');
	/* More than one colon: an IPv6 address without brackets, and no port. */
	if (colon && strchr(colon + 1, ':'))
		colon = NULL;
	*host = colon ? arena_strndup(arena, text, (size_t)(colon - text)) : text;
	if (colon)
		*port = colon + 1;
	return 0;
}

int config_address_parse(struct arena *arena, const char *text, struct config_listen *listen,
			 struct err *err)
{
	bool bracketed;
	const char *port;
	int rc = split(arena, text, &listen->host, &port, &bracketed, err);

	if (rc == 0)
		rc = host_check(listen->host, bracketed, err);
	if (rc == 0 && port)
		rc = port_check(port, err);
	if (rc == 0 && *text == '\0')
		rc = err_set(err, EINVAL, "an empty address");
	if (rc != 0)
		return rc;
	listen->port = port ? port : DEFAULT_PORT;
	listen->v6only = strchr(listen->host, ':') != NULL;
	return 0;
}

/* ---- words ---- */

static void listen_run(struct parser *parser, const struct statement *s)
{
	struct config_portal_group *group = s->frame->object;
	struct config_listen **last = &group->listens, *listen;
	struct err err;

	listen = arena_alloc(parser->config->arena, sizeof(*listen));
	listen->pos = s->args[0].pos;
	if (config_address_parse(parser->config->arena, s->args[0].text, listen, &err) != 0) {
		config_error(parser->config, s->args[0].pos, "listen: %s", err.text);
		/* It stands in for the right one, so that an advertise finds it. */
		listen->host = "";
		listen->port = "";
	}
	while (*last)
		last = &(*last)->next;
	*last = listen;
}

static const char *address_format(struct parser *parser, const struct config_listen *address)
{
	struct err text;

	snprintf(text.text, sizeof(text.text), address->v6only ? "[%s]:%s" : "%s:%s", address->host,
		 address->port);
	return arena_strdup(parser->config->arena, text.text);
}

static void advertise_run(struct parser *parser, const struct statement *s)
{
	struct config_portal_group *group = s->frame->object;
	struct config_listen *listen = group->listens, address = { 0 };
	struct err err;

	while (listen && listen->next)
		listen = listen->next;
	if (!listen) {
		config_error(parser->config, s->key.pos,
			     "advertise belongs to the listen before it: there is none");
		return;
	}
	if (listen->advertise) {
		config_error(parser->config, s->key.pos,
			     "advertise is already given for the listen at %s",
			     config_place(parser->config, listen->pos));
		return;
	}
	if (config_address_parse(parser->config->arena, s->args[0].text, &address, &err) != 0)
		config_error(parser->config, s->args[0].pos, "advertise: %s", err.text);
	else if (*address.host == '\0' || strcmp(address.host, "0.0.0.0") == 0 ||
		 strcmp(address.host, "::") == 0)
		config_error(parser->config, s->args[0].pos,
			     "advertise: initiators need an address that they can reach, not %s",
			     s->args[0].text);
	else
		listen->advertise = address_format(parser, &address);
}

static void found_discovery_auth(void *holder, void *object)
{
	((struct config_portal_group *)holder)->discovery_auth = object;
}

static void discovery_auth_group_run(struct parser *parser, const struct statement *s)
{
	config_refer(parser, NAME_AUTH_GROUP, &s->args[0], found_discovery_auth, s->frame->object);
}

static void discovery_filter_run(struct parser *parser, const struct statement *s)
{
	static const char *const filters[] = { "none", "portal", "portal-name", "portal-name-auth",
					       NULL };
	struct config_portal_group *group = s->frame->object;
	int filter = config_choice(parser, "discovery-filter", &s->args[0], filters);

	if (filter >= 0)
		group->discovery_filter = (uint8_t)(CONFIG_FILTER_NONE + filter);
}

static void discovery_portals_run(struct parser *parser, const struct statement *s)
{
	static const char *const choices[] = { "own", "all", NULL };
	struct config_portal_group *group = s->frame->object;

	group->discovery_all = config_choice(parser, "discovery-portals", &s->args[0], choices) ==
			       1;
}

static void tag_run(struct parser *parser, const struct statement *s)
{
	struct config_portal_group *group = s->frame->object;
	uint64_t tag;

	/* RFC 7143 4.2.8: 16 bits; 0 is a tag, too, but here it means none given. */
	if (!config_number(parser, "tag", &s->args[0], 1, 65535, &tag))
		return;
	group->tag = (uint16_t)tag;
	group->tag_pos = s->args[0].pos;
}

/* RFC 2474 4.2.2, RFC 2597 6, RFC 3246 2.8: the code points that have names. */
static const struct {
	const char *name;
	uint8_t value;
} dscp_names[] = {
	{ "be", 0 },	{ "ef", 46 },	{ "cs0", 0 },	{ "cs1", 8 },	{ "cs2", 16 },
	{ "cs3", 24 },	{ "cs4", 32 },	{ "cs5", 40 },	{ "cs6", 48 },	{ "cs7", 56 },
	{ "af11", 10 }, { "af12", 12 }, { "af13", 14 }, { "af21", 18 }, { "af22", 20 },
	{ "af23", 22 }, { "af31", 26 }, { "af32", 28 }, { "af33", 30 }, { "af41", 34 },
	{ "af42", 36 }, { "af43", 38 },
};

static bool hex_parse(const char *text, uint64_t *value)
{
	size_t len = strlen(text);

	if (len < 3 || len > 4 || strncasecmp(text, "0x", 2) != 0 ||
	    strspn(text + 2, "0123456789abcdefABCDEF") != len - 2)
		return false;
	*value = strtoul(text + 2, NULL, 16);
	return true;
}

static void dscp_run(struct parser *parser, const struct statement *s)
{
	struct config_portal_group *group = s->frame->object;
	const char *text = s->args[0].text;
	uint64_t value;

	for (size_t i = 0; i < sizeof(dscp_names) / sizeof(dscp_names[0]); i++) {
		if (strcasecmp(text, dscp_names[i].name) == 0) {
			group->dscp = dscp_names[i].value;
			return;
		}
	}
	if ((hex_parse(text, &value) || size_parse(text, &value) == 0) && value <= 63)
		group->dscp = (uint8_t)value;
	else
		config_error(parser->config, s->args[0].pos,
			     "dscp: %s is not 0..63, be, ef, cs0..cs7 or af11..af43", text);
}

/* ---- the section ---- */

struct config_portal_group *config_portal_group_make(struct parser *parser, const char *name,
						     struct config_pos pos)
{
	struct config_portal_group *group = arena_alloc(parser->config->arena, sizeof(*group));

	group->pos = pos;
	group->name = name;
	return group;
}

void config_portal_group_link(struct parser *parser, struct config_portal_group *group)
{
	struct config_portal_group **last = &parser->config->portal_groups;

	while (*last)
		last = &(*last)->next;
	*last = group;
}

void config_portal_group_run(struct parser *parser, const struct statement *s)
{
	const struct config_token *name = &s->args[0];
	struct config_portal_group *group = config_portal_group_make(parser, name->text, name->pos);
	struct frame frame = {
		.section = &config_section_portal_group,
		.pos = s->key.pos,
		.object = group,
	};

	if (config_name_add(parser, NAME_PORTAL_GROUP, name->text, name->pos, group))
		config_portal_group_link(parser, group);
	config_parse_block(parser, s, &frame);
}

static const struct section_word portal_group_words[] = {
	{ "listen", 1, 1, 0, "ADDRESS[:PORT]", listen_run },
	{ "advertise", 1, 1, 0, "ADDRESS[:PORT]", advertise_run },
	{ "discovery-auth-group", 1, 1, WORD_ONCE, "NAME", discovery_auth_group_run },
	{ "discovery-filter", 1, 1, WORD_ONCE, "none|portal|portal-name|portal-name-auth",
	  discovery_filter_run },
	{ "discovery-portals", 1, 1, WORD_ONCE, "own|all", discovery_portals_run },
	{ "tag", 1, 1, WORD_ONCE, "NUMBER", tag_run },
	{ "dscp", 1, 1, WORD_ONCE, "VALUE", dscp_run },
	{ "foreign", 0, 0, WORD_NO_EFFECT, "", config_run_no_effect },
	{ "listen-iser", 1, 1, WORD_NO_EFFECT, "ADDRESS[:PORT]", config_run_no_effect },
	{ "offload", 1, 1, WORD_NO_EFFECT, "DRIVER", config_run_no_effect },
	{ "option", 2, 2, WORD_NO_EFFECT, "NAME VALUE", config_run_no_effect },
	{ "pcp", 1, 1, WORD_NO_EFFECT, "PRIORITY", config_run_no_effect },
	{ "redirect", 1, 1, WORD_NO_EFFECT, "ADDRESS[:PORT]", config_run_no_effect },
	{ .name = NULL },
};

const struct section config_section_portal_group = {
	.name = "a portal-group",
	.words = portal_group_words,
};
