/* Addresses that two portal groups want: see check.h. */
#include "config/check.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct endpoint {
	int family;		     /* AF_UNSPEC: a host name, or any address */
	char host[INET6_ADDRSTRLEN]; /* as inet_ntop(3) writes it; "" for a name */
	unsigned long port;
	struct config_portal_group *group;
	struct config_listen *listen;
};

static void endpoint_init(struct endpoint *e, struct config_portal_group *group,
			  struct config_listen *listen)
{
	unsigned char bytes[16];

	*e = (struct endpoint){
		.port = strtoul(listen->port, NULL, 10),
		.group = group,
		.listen = listen,
	};
	if (inet_pton(AF_INET, listen->host, bytes) == 1)
		e->family = AF_INET;
	else if (inet_pton(AF_INET6, listen->host, bytes) == 1)
		e->family = AF_INET6;
	if (e->family != AF_UNSPEC)
		inet_ntop(e->family, bytes, e->host, sizeof(e->host));
}

static bool endpoints_equal(const struct endpoint *a, const struct endpoint *b)
{
	if (a->port != b->port || a->family != b->family)
		return false;
	if (a->family == AF_UNSPEC)
		return strcasecmp(a->listen->host, b->listen->host) == 0;
	return strcmp(a->host, b->host) == 0;
}

/* Every address of a family is in a. */
static bool endpoint_covers(const struct endpoint *a, const struct endpoint *b)
{
	if (a->port != b->port)
		return false;
	if (*a->listen->host == '\0')
		return true;
	return a->family == b->family &&
	       (strcmp(a->host, "0.0.0.0") == 0 || strcmp(a->host, "::") == 0);
}

/* The place of the first target that is in group: the predefined group has none
 * of its own. */
static struct config_pos place_of(const struct parser *parser, const struct endpoint *e)
{
	if (e->listen->pos.line != 0)
		return e->listen->pos;
	for (const struct config_target *t = parser->config->targets; t; t = t->next)
		for (const struct config_target_port *p = t->ports; p; p = p->next)
			if (p->group == e->group)
				return p->pos;
	return e->listen->pos;
}

/*
 * Files of ctl.conf(5) that leave the predefined group to targets and listen on
 * its addresses in another group load all the same: the other group has them.
 */
static void yield_to(struct parser *parser, const struct endpoint *other,
		     struct endpoint *predefined)
{
	struct config_listen **p = &predefined->group->listens;

	config_warning(parser->config, place_of(parser, predefined),
		       "this target is in the predefined portal-group default, whose address %s "
		       "port %lu belongs to portal-group %s: it cannot be reached there",
		       predefined->host, predefined->port, other->group->name);
	while (*p != predefined->listen)
		p = &(*p)->next;
	*p = predefined->listen->next;
	predefined->port = 0;
}

static const char *host_shown(const struct endpoint *e)
{
	return *e->listen->host ? e->listen->host : "every address";
}

static void check_pair(struct parser *parser, const struct endpoint *a, struct endpoint *b)
{
	if (endpoints_equal(a, b) && b->listen->pos.line == 0) {
		yield_to(parser, a, b);
	} else if (endpoints_equal(a, b)) {
		config_error(parser->config, b->listen->pos,
			     "portal-group %s already listens on this address and port (%s)",
			     a->group->name, config_place(parser->config, a->listen->pos));
	} else if (endpoint_covers(a, b) || endpoint_covers(b, a)) {
		config_warning(parser->config, place_of(parser, b),
			       "%s port %lu of portal-group %s overlaps %s of portal-group %s "
			       "(%s): only one of them may be able to listen",
			       host_shown(b), b->port, b->group->name, host_shown(a),
			       a->group->name, config_place(parser->config, a->listen->pos));
	}
}

void config_check_listens(struct parser *parser)
{
	struct endpoint *all;
	size_t n = 0, i = 0;

	for (struct config_portal_group *g = parser->config->portal_groups; g; g = g->next)
		for (struct config_listen *l = g->listens; l; l = l->next)
			n++;
	all = arena_alloc(parser->config->arena, n * sizeof(*all));
	for (struct config_portal_group *g = parser->config->portal_groups; g; g = g->next)
		for (struct config_listen *l = g->listens; l; l = l->next)
			endpoint_init(&all[i++], g, l);
	/* Port 0: not understood, which has been said, or given up. */
	for (i = 0; i < n; i++)
		for (size_t j = i + 1; all[i].port != 0 && j < n; j++)
			if (all[j].port == all[i].port)
				check_pair(parser, &all[i], &all[j]);
}
