/*
 * The view of a configuration: words become addresses, names become pointers.
 *
 * Everything is copied into the view's own arena: it outlives the configuration
 * until the last reactor has let go of it.
 */
#include "target/running.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static_assert((int)CONFIG_AUTH_CHAP_MUTUAL == (int)ISCSI_AUTH_CHAP_MUTUAL, "one list");
static_assert((int)CONFIG_FILTER_PORTAL_NAME_AUTH == (int)ISCSI_FILTER_PORTAL_NAME_AUTH,
	      "one list");

/* Addresses of one `listen` word; a host name may have several. */
#define ADDRESSES_MAX 16

struct builder {
	struct running *run;
	struct arena *arena;
	const struct config *config;
	struct iscsi_portal_group *groups; /* in the order of config's */
	struct state_group *tags;
	struct state_port *ports; /* target by target, port by port */
	size_t ngroups, nports;
	/* Auth groups made so far, so that each is made once. */
	const struct config_auth_group **auth_from;
	const struct iscsi_auth_group **auth_to;
	size_t nauth, auth_room;
};

static const char *copy(struct builder *b, const char *s)
{
	return s ? arena_strdup(b->arena, s) : NULL;
}

/* ---- portals ---- */

static bool ipv6_available(void)
{
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return false;
	close(fd);
	return true;
}

static bool address_known(const struct sockaddr_storage *list, size_t n,
			  const struct sockaddr_storage *addr)
{
	for (size_t i = 0; i < n; i++)
		if (memcmp(&list[i], addr, sizeof(*addr)) == 0)
			return true;
	return false;
}

/* The addresses of a `listen`, in the order of the resolver; n or -errno. */
static int listen_resolve(const struct config_listen *listen, struct sockaddr_storage *list,
			  struct err *err)
{
	struct addrinfo hints = {
		.ai_family = listen->v6only ? AF_INET6 : AF_UNSPEC,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = AI_PASSIVE | AI_NUMERICSERV,
	};
	const char *host = listen->host[0] ? listen->host : NULL;
	struct addrinfo *found = NULL;
	int n = 0, rc;

	rc = getaddrinfo(host, listen->port, &hints, &found);
	if (rc != 0)
		return err_set(err, EADDRNOTAVAIL, "%s:%u:%u: listen: %s cannot be resolved: %s",
			       listen->pos.file, listen->pos.line, listen->pos.column, listen->host,
			       gai_strerror(rc));
	for (const struct addrinfo *a = found; a && n < ADDRESSES_MAX; a = a->ai_next) {
		struct sockaddr_storage addr = { 0 };

		if (a->ai_family != AF_INET && (a->ai_family != AF_INET6 || !ipv6_available()))
			continue;
		memcpy(&addr, a->ai_addr, a->ai_addrlen);
		if (!address_known(list, (size_t)n, &addr))
			list[n++] = addr;
	}
	freeaddrinfo(found);
	if (n == 0)
		return err_set(err, EADDRNOTAVAIL,
			       "%s:%u:%u: listen: %s has no address of a kind this host has",
			       listen->pos.file, listen->pos.line, listen->pos.column,
			       listen->host);
	return n;
}

static int group_portals(struct builder *b, const struct config_portal_group *config,
			 struct iscsi_portal_group *group, struct err *err)
{
	struct sockaddr_storage list[ADDRESSES_MAX];
	struct iscsi_portal *portals;
	size_t room = 0;

	for (const struct config_listen *l = config->listens; l; l = l->next)
		room += ADDRESSES_MAX;
	portals = arena_alloc(b->arena, (room + 1) * sizeof(*portals));
	for (const struct config_listen *l = config->listens; l; l = l->next) {
		int n = listen_resolve(l, list, err);

		if (n < 0)
			return n;
		for (int i = 0; i < n; i++)
			portals[group->nportals++] = (struct iscsi_portal){
				.listen = list[i],
				.advertise = copy(b, l->advertise),
			};
	}
	group->portals = portals;
	return 0;
}

/* ---- auth groups ---- */

static const struct iscsi_chap_user *auth_users(struct builder *b, const struct config_chap *list,
						uint32_t *n)
{
	struct iscsi_chap_user *users;

	*n = 0;
	for (const struct config_chap *c = list; c; c = c->next)
		++*n;
	users = arena_alloc(b->arena, (*n + 1) * sizeof(*users));
	*n = 0;
	for (const struct config_chap *c = list; c; c = c->next)
		users[(*n)++] = (struct iscsi_chap_user){
			.user = copy(b, c->user),
			.secret = copy(b, c->secret),
			.mutual_user = copy(b, c->mutual_user),
			.mutual_secret = copy(b, c->mutual_secret),
		};
	return users;
}

static const char *const *auth_names(struct builder *b, const struct config_word *list, uint32_t *n)
{
	const char **names;

	*n = 0;
	for (const struct config_word *w = list; w; w = w->next)
		++*n;
	names = arena_alloc(b->arena, (*n + 1) * sizeof(*names));
	*n = 0;
	for (const struct config_word *w = list; w; w = w->next)
		names[(*n)++] = copy(b, w->text);
	return names;
}

/* "ADDR[/LEN]", "[ADDR][/LEN]": the form was checked by config/. */
static int range_parse(const struct config_word *word, struct iscsi_address_range *range,
		       struct err *err)
{
	char text[INET6_ADDRSTRLEN + sizeof("[]/128")], *slash, *addr = text, *close;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&range->addr;
	struct sockaddr_in *in = (struct sockaddr_in *)&range->addr;
	unsigned long max;

	snprintf(text, sizeof(text), "%s", word->text);
	slash = strchr(text, '/');
	if (slash)
		*slash++ = '\0';
	if (addr[0] == '[') {
		addr++;
		close = strchr(addr, ']');
		if (close)
			*close = '\0';
	}
	if (inet_pton(AF_INET6, addr, &in6->sin6_addr) == 1) {
		range->addr.ss_family = AF_INET6;
		max = 128;
	} else if (inet_pton(AF_INET, addr, &in->sin_addr) == 1) {
		range->addr.ss_family = AF_INET;
		max = 32;
	} else {
		return err_set(err, EINVAL, "%s:%u:%u: initiator-portal: %s is not an address",
			       word->pos.file, word->pos.line, word->pos.column, word->text);
	}
	range->prefix_len = (uint8_t)max;
	if (slash) {
		unsigned long len = strtoul(slash, NULL, 10);

		range->prefix_len = (uint8_t)(len < max ? len : max);
	}
	return 0;
}

static int auth_ranges(struct builder *b, const struct config_word *list,
		       struct iscsi_auth_group *group, struct err *err)
{
	struct iscsi_address_range *ranges;
	uint32_t n = 0;

	for (const struct config_word *w = list; w; w = w->next)
		n++;
	ranges = arena_alloc(b->arena, (n + 1) * sizeof(*ranges));
	group->initiator_portals = ranges;
	for (const struct config_word *w = list; w; w = w->next) {
		int rc = range_parse(w, &ranges[group->ninitiator_portals++], err);

		if (rc < 0)
			return rc;
	}
	return 0;
}

/* Room for one more auth group that was made. */
static void auth_remember(struct builder *b, const struct config_auth_group *from,
			  const struct iscsi_auth_group *to)
{
	if (b->nauth == b->auth_room) {
		size_t room = b->auth_room ? 2 * b->auth_room : 64;
		const struct config_auth_group **f = arena_alloc(b->arena, room * sizeof(*f));
		const struct iscsi_auth_group **t = arena_alloc(b->arena, room * sizeof(*t));

		if (b->nauth > 0) {
			memcpy(f, b->auth_from, b->nauth * sizeof(*f));
			memcpy(t, b->auth_to, b->nauth * sizeof(*t));
		}
		b->auth_from = f;
		b->auth_to = t;
		b->auth_room = room;
	}
	b->auth_from[b->nauth] = from;
	b->auth_to[b->nauth++] = to;
}

static int auth_get(struct builder *b, const struct config_auth_group *config,
		    const struct iscsi_auth_group **out, struct err *err)
{
	struct iscsi_auth_group *group;
	int rc;

	/* From the end: a target's own group was made for its first port. */
	for (size_t i = b->nauth; i > 0; i--)
		if (b->auth_from[i - 1] == config) {
			*out = b->auth_to[i - 1];
			return 0;
		}
	assert(config->type != CONFIG_AUTH_UNSET);
	group = arena_alloc(b->arena, sizeof(*group));
	group->name = copy(b, config->name);
	group->type = config->type;
	group->users = auth_users(b, config->chaps, &group->nusers);
	group->initiator_names = auth_names(b, config->initiator_names, &group->ninitiator_names);
	rc = auth_ranges(b, config->initiator_portals, group, err);
	if (rc < 0)
		return rc;
	auth_remember(b, config, group);
	*out = group;
	return 0;
}

/* ---- portal groups, targets, numbers ---- */

static int groups_build(struct builder *b, struct err *err)
{
	for (const struct config_portal_group *c = b->config->portal_groups; c; c = c->next)
		b->ngroups++;
	b->groups = arena_alloc(b->arena, (b->ngroups + 1) * sizeof(*b->groups));
	b->tags = arena_alloc(b->arena, (b->ngroups + 1) * sizeof(*b->tags));
	b->ngroups = 0;
	for (const struct config_portal_group *c = b->config->portal_groups; c; c = c->next) {
		struct iscsi_portal_group *group = &b->groups[b->ngroups];
		int rc;

		b->tags[b->ngroups++] = (struct state_group){ .name = c->name, .tag = c->tag };
		group->name = copy(b, c->name);
		group->discovery_filter = c->discovery_filter;
		group->discovery_all = c->discovery_all;
		group->dscp = c->dscp;
		rc = group_portals(b, c, group, err);
		if (rc == 0)
			rc = auth_get(b, c->discovery_auth, &group->discovery_auth, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static const struct iscsi_portal_group *group_find(const struct builder *b, const char *name)
{
	for (size_t i = 0; i < b->ngroups; i++)
		if (strcmp(b->groups[i].name, name) == 0)
			return &b->groups[i];
	return NULL;
}

/* Tags and relative ports, which the state directory keeps. */
static int numbers_assign(struct builder *b, struct err *err)
{
	size_t n = 0;
	int rc;

	for (const struct config_target *t = b->config->targets; t; t = t->next)
		for (const struct config_target_port *p = t->ports; p; p = p->next)
			b->nports++;
	b->ports = arena_alloc(b->arena, (b->nports + 1) * sizeof(*b->ports));
	for (const struct config_target *t = b->config->targets; t; t = t->next)
		for (const struct config_target_port *p = t->ports; p; p = p->next)
			b->ports[n++] = (struct state_port){ t->name, p->group->name, 0 };
	rc = state_ports_assign(b->run->state, b->tags, b->ngroups, b->ports, b->nports, err);
	for (size_t i = 0; i < b->ngroups; i++)
		b->groups[i].tag = b->tags[i].tag;
	return rc;
}

static int target_build(struct builder *b, const struct config_target *config,
			const struct state_port *numbers, struct iscsi_target_view *view,
			struct err *err)
{
	struct iscsi_target_port *ports;
	uint32_t n = 0;

	for (const struct config_target_port *p = config->ports; p; p = p->next)
		n++;
	ports = arena_alloc(b->arena, (n + 1) * sizeof(*ports));
	view->name = copy(b, config->name);
	view->alias = copy(b, config->alias);
	view->ports = ports;
	view->limits = config->limits;
	for (const struct config_target_port *p = config->ports; p; p = p->next) {
		struct iscsi_target_port *port = &ports[view->nports];
		int rc = auth_get(b, p->auth, &port->auth, err);

		if (rc < 0)
			return rc;
		port->group = group_find(b, p->group->name);
		port->relative_port = numbers[view->nports++].id;
		assert(port->group);
	}
	return 0;
}

static int view_compare(const void *a, const void *b)
{
	const struct iscsi_target_view *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static int targets_build(struct builder *b, struct iscsi_view *view, struct err *err)
{
	const struct state_port *numbers = b->ports;
	struct iscsi_target_view *targets;
	size_t room = 0;

	list_for_each(link, &b->run->targets)
		room++;
	targets = arena_alloc(b->arena, (room + 1) * sizeof(*targets));
	/* In the order of the configuration, as their numbers are. */
	for (const struct config_target *c = b->config->targets; c; c = c->next) {
		struct iscsi_target_view *target = &targets[view->ntargets++];
		int rc = target_build(b, c, numbers, target, err);

		if (rc < 0)
			return rc;
		numbers += target->nports;
	}
	qsort(targets, view->ntargets, sizeof(*targets), view_compare);
	list_for_each(link, &b->run->targets) {
		const struct target_run *run = container_of(link, struct target_run, link);
		struct iscsi_target_view wanted, *found;

		if (!run->wanted)
			continue;
		wanted.name = run->wanted->name;
		found = bsearch(&wanted, targets, view->ntargets, sizeof(wanted), view_compare);
		assert(found);
		found->target = run->iscsi;
	}
	view->targets = targets;
	return 0;
}

int view_build(struct running *run, const struct config *config, struct iscsi_view **out,
	       struct err *err)
{
	struct builder b = { .run = run, .arena = arena_create(), .config = config };
	struct iscsi_view *view = arena_alloc(b.arena, sizeof(*view));
	int rc;

	view->arena = b.arena;
	view->limits = config->limits;
	view->server = config->server;
	rc = groups_build(&b, err);
	if (rc == 0)
		rc = numbers_assign(&b, err);
	if (rc == 0)
		rc = targets_build(&b, view, err);
	if (rc < 0) {
		arena_destroy(b.arena);
		return rc;
	}
	view->groups = b.groups;
	view->ngroups = (uint32_t)b.ngroups;
	*out = view;
	return 0;
}
