/* SendTargets: see discovery.h. */
#include "target/iscsi/discovery.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/log.h"

/* Doubled when it is full: for a few targets, and for a few thousand. */
#define ANSWER_BEGIN 1024

/* ---- who sees what ---- */

/* Of the peer's own user, whose secret it has proved in this session. */
static bool has_user(const struct iscsi_auth_group *auth, const char *chap_user)
{
	if (auth->type == ISCSI_AUTH_NONE)
		return true;
	return *chap_user && iscsi_auth_user(auth, chap_user);
}

static bool is_visible(const struct iscsi_text_peer *peer, enum iscsi_discovery_filter filter,
		       const struct iscsi_auth_group *auth)
{
	if (filter == ISCSI_FILTER_NONE)
		return true;
	if (auth->type == ISCSI_AUTH_DENY || !iscsi_auth_address_matches(auth, &peer->peer))
		return false;
	if (filter == ISCSI_FILTER_PORTAL)
		return true;
	if (!iscsi_auth_name_matches(auth, peer->params->initiator_name))
		return false;
	return filter == ISCSI_FILTER_PORTAL_NAME || has_user(auth, peer->chap_user);
}

/* ---- addresses ---- */

static const struct in6_addr *in6_of(const struct sockaddr_storage *addr)
{
	return &((const struct sockaddr_in6 *)addr)->sin6_addr;
}

static in_addr_t in_of(const struct sockaddr_storage *addr)
{
	return ntohl(((const struct sockaddr_in *)addr)->sin_addr.s_addr);
}

static bool is_any(const struct sockaddr_storage *addr)
{
	if (addr->ss_family == AF_INET)
		return in_of(addr) == INADDR_ANY;
	return IN6_IS_ADDR_UNSPECIFIED(in6_of(addr));
}

static bool is_loopback(const struct sockaddr_storage *addr)
{
	if (addr->ss_family == AF_INET)
		return in_of(addr) >> 24 == 127;
	return IN6_IS_ADDR_LOOPBACK(in6_of(addr));
}

static bool is_link_local(const struct sockaddr_storage *addr)
{
	return addr->ss_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(in6_of(addr));
}

static bool is_same_address(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	if (a->ss_family != b->ss_family)
		return false;
	if (a->ss_family == AF_INET)
		return in_of(a) == in_of(b);
	return IN6_ARE_ADDR_EQUAL(in6_of(a), in6_of(b));
}

static unsigned int port_of(const struct sockaddr_storage *addr)
{
	if (addr->ss_family == AF_INET)
		return ntohs(((const struct sockaddr_in *)addr)->sin_port);
	return ntohs(((const struct sockaddr_in6 *)addr)->sin6_port);
}

/* The address at which the peer may reach a portal; NULL: at none that is
 * known. */
static const struct sockaddr_storage *reachable(const struct iscsi_portal *portal,
						const struct sockaddr_storage *local)
{
	const struct sockaddr_storage *addr = &portal->listen;

	if (is_any(addr))
		return addr->ss_family == local->ss_family ? local : NULL;
	if (is_loopback(addr) && !is_loopback(local))
		return NULL;
	if (is_link_local(addr) && !is_same_address(addr, local))
		return NULL;
	return addr;
}

/* "ADDR:PORT,TAG" or "[ADDR]:PORT,TAG"; false: it is not to be named. */
static bool address_format(const struct iscsi_portal *portal, uint16_t tag,
			   const struct sockaddr_storage *local, char *out, size_t cap)
{
	const struct sockaddr_storage *addr;
	char text[INET6_ADDRSTRLEN];
	bool v6;

	if (portal->advertise) {
		snprintf(out, cap, "%s,%u", portal->advertise, tag);
		return true;
	}
	addr = reachable(portal, local);
	if (!addr)
		return false;
	v6 = addr->ss_family == AF_INET6;
	inet_ntop(addr->ss_family,
		  v6 ? (const void *)in6_of(addr)
		     : (const void *)&((const struct sockaddr_in *)addr)->sin_addr,
		  text, sizeof(text));
	snprintf(out, cap, v6 ? "[%s]:%u,%u" : "%s:%u,%u", text, port_of(&portal->listen), tag);
	return true;
}

/* ---- the list ---- */

static int answer_reserve(struct iscsi_answer *answer, size_t len)
{
	uint32_t cap = answer->cap ? answer->cap : ANSWER_BEGIN;
	char *buf;

	if (len > ISCSI_TEXT_ANSWER_MAX - answer->len)
		return -ENOSPC;
	while (len > cap - answer->len)
		cap *= 2;
	if (cap == answer->cap)
		return 0;
	buf = realloc(answer->buf, cap);
	if (!buf)
		return -ENOMEM;
	answer->buf = buf;
	answer->cap = cap;
	return 0;
}

int iscsi_answer_add(struct iscsi_answer *answer, const char *key, const char *value)
{
	struct iscsi_text_out out;
	/* "=" and NUL */
	int rc = answer_reserve(answer, strlen(key) + strlen(value) + 2);

	if (rc != 0)
		return rc;
	out = (struct iscsi_text_out){ .buf = answer->buf, .cap = answer->cap, .len = answer->len };
	iscsi_text_add(&out, key, value);
	assert(!out.overflow);
	answer->len = out.len;
	return 0;
}

/* Control characters in what we send could be commands to a script; what the
 * configuration takes as names and addresses has none. */
static bool is_printable(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			return false;
	return true;
}

static int add_group(struct iscsi_answer *answer, const struct iscsi_portal_group *group,
		     const struct sockaddr_storage *local)
{
	char address[512];
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < group->nportals; i++)
		if (address_format(&group->portals[i], group->tag, local, address,
				   sizeof(address)) &&
		    is_printable(address))
			rc = iscsi_answer_add(answer, "TargetAddress", address);
	return rc;
}

/* All of one target, or an error and nothing of it. */
static int add_target(const struct iscsi_text_peer *peer, const struct iscsi_target_view *target,
		      const struct iscsi_portal_group *group, struct iscsi_answer *answer)
{
	uint32_t len = answer->len;
	int rc = iscsi_answer_add(answer, "TargetName", target->name);

	for (uint32_t i = 0; rc == 0 && i < target->nports; i++)
		if (target->ports[i].group == group || group->discovery_all)
			rc = add_group(answer, target->ports[i].group, &peer->local);
	if (rc != 0)
		answer->len = len;
	return rc;
}

int iscsi_discovery_list(const struct iscsi_text_peer *peer, const struct iscsi_view *view,
			 const char *name, struct iscsi_answer *answer)
{
	const struct iscsi_portal_group *group = iscsi_view_group(view, peer->portal_group);
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && group && i < view->ntargets; i++) {
		const struct iscsi_target_view *target = &view->targets[i];
		const struct iscsi_target_port *port = iscsi_target_port(target, group);

		if (!port || (name && strcasecmp(name, target->name) != 0) ||
		    !is_printable(target->name) ||
		    !is_visible(peer, group->discovery_filter, port->auth))
			continue;
		rc = add_target(peer, target, group, answer);
		if (rc == -ENOSPC)
			log_peer(LOG_LEVEL_WARNING,
				 "portal-group %s: SendTargets for %s is cut at %u of %u targets",
				 group->name, peer->params->initiator_name, i, view->ntargets);
	}
	return rc == -ENOSPC ? 0 : rc;
}
