/*
 * The view: what the server offers to whom, as the configuration says.
 *
 * Purpose: one immutable object in one arena.  The control thread builds a new
 * one for each reload and swaps it in (iscsi_server_set_view()); it frees the
 * old one when the last reactor has answered.  So a reactor may use the view's
 * pointers within one callback and keeps none of them across callbacks: a
 * session copies what it needs.
 *
 * What lives longer (sessions, LUN maps) hangs on struct iscsi_target, which
 * the view only points to.
 */
#ifndef ISCSI_VIEW_H
#define ISCSI_VIEW_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/arena.h"
#include "target/iscsi/names.h"
#include "target/iscsi/settings.h"

struct iscsi_target; /* session.h: lives from its first view to its last session */

/* ctl.conf(5) auth-type; UNSET means: by what the group holds */
enum iscsi_auth_type {
	ISCSI_AUTH_UNSET,
	ISCSI_AUTH_NONE, /* anybody that name and address rules let in */
	ISCSI_AUTH_DENY,
	ISCSI_AUTH_CHAP,
	ISCSI_AUTH_CHAP_MUTUAL,
};

struct iscsi_chap_user {
	const char *user, *secret;
	const char *mutual_user, *mutual_secret; /* NULL: one-way */
};

struct iscsi_address_range {
	struct sockaddr_storage addr; /* port 0 */
	uint8_t prefix_len;
};

/*
 * Who may come in.  Names and addresses are each a list; an empty list lets
 * everybody through, else one entry must match, and both lists must be passed.
 */
struct iscsi_auth_group {
	const char *name;
	uint8_t type; /* enum iscsi_auth_type, never UNSET */
	const struct iscsi_chap_user *users;
	uint32_t nusers;
	const char *const *initiator_names; /* patterns with * and ?, lower case */
	uint32_t ninitiator_names;
	const struct iscsi_address_range *initiator_portals;
	uint32_t ninitiator_portals;
};

/* ctl.conf(5) discovery-filter */
enum iscsi_discovery_filter {
	ISCSI_FILTER_NONE,
	ISCSI_FILTER_PORTAL,	       /* targets whose address rules let the peer in */
	ISCSI_FILTER_PORTAL_NAME,      /* and whose name rules do */
	ISCSI_FILTER_PORTAL_NAME_AUTH, /* and whose CHAP users have the peer's */
};

struct iscsi_portal {
	struct sockaddr_storage listen;
	const char *advertise; /* "ADDR:PORT" to name in SendTargets instead, or NULL */
};

struct iscsi_portal_group {
	const char *name;
	uint16_t tag;
	const struct iscsi_portal *portals;
	uint32_t nportals;
	const struct iscsi_auth_group *discovery_auth; /* never NULL */
	uint8_t discovery_filter;
	bool discovery_all; /* SendTargets names the portals of all groups */
	uint8_t dscp;	    /* 0..63; sets the TOS or traffic class of its sockets */
};

/* A portal group of a target, with the auth group that holds there. */
struct iscsi_target_port {
	const struct iscsi_portal_group *group;
	const struct iscsi_auth_group *auth; /* never NULL */
	uint16_t relative_port;		     /* stable over restarts: VPD 83 */
};

struct iscsi_target_view {
	const char *name;  /* lower case */
	const char *alias; /* or NULL */
	const struct iscsi_target_port *ports;
	uint32_t nports;
	struct iscsi_limits limits;
	struct iscsi_target *target;
};

struct iscsi_view {
	struct arena *arena; /* everything here, and the view itself */
	const struct iscsi_portal_group *groups;
	uint32_t ngroups;
	const struct iscsi_target_view *targets; /* sorted by name */
	uint32_t ntargets;
	struct iscsi_limits limits; /* for discovery sessions */
	struct iscsi_server_settings server;
};

/* Names compare without regard to case; NULL when there is none. */
const struct iscsi_target_view *iscsi_view_target(const struct iscsi_view *view, const char *name);
const struct iscsi_portal_group *iscsi_view_group(const struct iscsi_view *view, const char *name);

/* The port of a target in a portal group, or NULL: not offered there. */
const struct iscsi_target_port *iscsi_target_port(const struct iscsi_target_view *target,
						  const struct iscsi_portal_group *group);

/* "ADDR:PORT" or "[ADDR]:PORT". */
void iscsi_address_text(const struct sockaddr_storage *addr, char *out, size_t cap);

/* ---- auth.c ---- */

bool iscsi_auth_name_matches(const struct iscsi_auth_group *group, const char *initiator);
bool iscsi_auth_address_matches(const struct iscsi_auth_group *group,
				const struct sockaddr_storage *peer);
/* The user of that name, or NULL.  Names of users are compared as they are. */
const struct iscsi_chap_user *iscsi_auth_user(const struct iscsi_auth_group *group,
					      const char *user);

#endif
