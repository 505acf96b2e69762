/*
 * A view to log in to, for the tests and fuzzers of the login and of text: a
 * few portal groups and one target for each rule of authentication.
 *
 * Everything is constant but for the limits, which fixture_view() sets to the
 * defaults of the option rows.
 */
#ifndef TESTS_LOGIN_FIXTURE_H
#define TESTS_LOGIN_FIXTURE_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "base/list.h"
#include "target/iscsi/view.h"

#define IQN "iqn.2026-11.org.example:"

static const struct iscsi_chap_user fixture_users[] = {
	{ "alice", "alice-secret-1", NULL, NULL },
	{ "bob", "bob-secret-123", "target", "target-secret1" },
	{ "0x616c", "hexish-secret1", NULL, NULL },
	{ "0bYWw=", "base64-secret1", NULL, NULL },
};

static const struct iscsi_chap_user fixture_twins[] = {
	{ "twin", "twin-secret-12", "target", "twin-secret-12" },
};

static const char *const fixture_names[] = { "iqn.2026-11.org.example:h?st*" };

enum fixture_auth_index {
	FIXTURE_NONE,
	FIXTURE_DENY,
	FIXTURE_CHAP,
	FIXTURE_LISTED,
	FIXTURE_TWINS,
	FIXTURE_FAR,
};

static struct iscsi_address_range fixture_near = { .prefix_len = 8 };
static struct iscsi_address_range fixture_far = { .prefix_len = 24 };

static const struct iscsi_auth_group fixture_auth[] = {
	[FIXTURE_NONE] = { .name = "anybody", .type = ISCSI_AUTH_NONE },
	[FIXTURE_DENY] = { .name = "default", .type = ISCSI_AUTH_DENY },
	[FIXTURE_CHAP] = { .name = "people",
			   .type = ISCSI_AUTH_CHAP_MUTUAL,
			   .users = fixture_users,
			   .nusers = ARRAY_LEN(fixture_users) },
	[FIXTURE_LISTED] = { .name = "listed",
			     .type = ISCSI_AUTH_NONE,
			     .initiator_names = fixture_names,
			     .ninitiator_names = ARRAY_LEN(fixture_names),
			     .initiator_portals = &fixture_near,
			     .ninitiator_portals = 1 },
	[FIXTURE_TWINS] = { .name = "twins",
			    .type = ISCSI_AUTH_CHAP_MUTUAL,
			    .users = fixture_twins,
			    .nusers = ARRAY_LEN(fixture_twins) },
	[FIXTURE_FAR] = { .name = "far",
			  .type = ISCSI_AUTH_NONE,
			  .initiator_portals = &fixture_far,
			  .ninitiator_portals = 1 },
};

static struct iscsi_portal fixture_open_portals[1], fixture_wide_portals[2],
	fixture_mixed_portals[4];

enum fixture_group_index {
	FIXTURE_OPEN,	/* 127.0.0.1:3260, discovery for all */
	FIXTURE_LOCKED, /* 127.0.0.1:3260 too, discovery for people; filters by user */
	FIXTURE_WIDE,	/* 0.0.0.0:3261 and [::]:3261; names all groups */
	FIXTURE_MIXED,	/* advertised, link-local, loopback and plain addresses */
};

static struct iscsi_portal_group fixture_groups[] = {
	[FIXTURE_OPEN] = { .name = "open",
			   .tag = 1,
			   .portals = fixture_open_portals,
			   .nportals = ARRAY_LEN(fixture_open_portals),
			   .discovery_auth = &fixture_auth[FIXTURE_NONE] },
	[FIXTURE_LOCKED] = { .name = "locked",
			     .tag = 2,
			     .portals = fixture_open_portals,
			     .nportals = ARRAY_LEN(fixture_open_portals),
			     .discovery_auth = &fixture_auth[FIXTURE_CHAP],
			     .discovery_filter = ISCSI_FILTER_PORTAL_NAME_AUTH },
	[FIXTURE_WIDE] = { .name = "wide",
			   .tag = 3,
			   .portals = fixture_wide_portals,
			   .nportals = ARRAY_LEN(fixture_wide_portals),
			   .discovery_auth = &fixture_auth[FIXTURE_NONE],
			   .discovery_all = true },
	[FIXTURE_MIXED] = { .name = "mixed",
			    .tag = 4,
			    .portals = fixture_mixed_portals,
			    .nportals = ARRAY_LEN(fixture_mixed_portals),
			    .discovery_auth = &fixture_auth[FIXTURE_NONE] },
};

#define FIXTURE_PORT(g, a)                              \
	{                                               \
		&fixture_groups[g], &fixture_auth[a], 1 \
	}
#define FIXTURE_PORTS(name, ...) static const struct iscsi_target_port name[] = { __VA_ARGS__ }

FIXTURE_PORTS(fixture_chap, FIXTURE_PORT(FIXTURE_OPEN, FIXTURE_CHAP),
	      FIXTURE_PORT(FIXTURE_LOCKED, FIXTURE_CHAP));
FIXTURE_PORTS(fixture_deny, FIXTURE_PORT(FIXTURE_OPEN, FIXTURE_DENY),
	      FIXTURE_PORT(FIXTURE_LOCKED, FIXTURE_DENY));
FIXTURE_PORTS(fixture_disk, FIXTURE_PORT(FIXTURE_OPEN, FIXTURE_NONE),
	      FIXTURE_PORT(FIXTURE_WIDE, FIXTURE_NONE), FIXTURE_PORT(FIXTURE_MIXED, FIXTURE_NONE));
FIXTURE_PORTS(fixture_far_ports, FIXTURE_PORT(FIXTURE_OPEN, FIXTURE_FAR),
	      FIXTURE_PORT(FIXTURE_LOCKED, FIXTURE_FAR));
FIXTURE_PORTS(fixture_listed, FIXTURE_PORT(FIXTURE_OPEN, FIXTURE_LISTED),
	      FIXTURE_PORT(FIXTURE_LOCKED, FIXTURE_LISTED));
FIXTURE_PORTS(fixture_strict, FIXTURE_PORT(FIXTURE_OPEN, FIXTURE_NONE));
FIXTURE_PORTS(fixture_twin_ports, FIXTURE_PORT(FIXTURE_OPEN, FIXTURE_TWINS),
	      FIXTURE_PORT(FIXTURE_LOCKED, FIXTURE_TWINS));

#define FIXTURE_TARGET(n, p, ...)                                              \
	{                                                                      \
		.name = IQN n, .ports = p, .nports = ARRAY_LEN(p), __VA_ARGS__ \
	}

static struct iscsi_target_view fixture_targets[] = {
	FIXTURE_TARGET("chap", fixture_chap),
	FIXTURE_TARGET("deny", fixture_deny),
	FIXTURE_TARGET("disk", fixture_disk, .alias = "First disk"),
	FIXTURE_TARGET("far", fixture_far_ports),
	FIXTURE_TARGET("listed", fixture_listed),
	FIXTURE_TARGET("strict", fixture_strict),
	FIXTURE_TARGET("twin", fixture_twin_ports),
};

/* text is an address of either family. */
static inline struct sockaddr_storage fixture_address(const char *text, uint16_t port)
{
	struct sockaddr_storage addr = { .ss_family = strchr(text, ':') ? AF_INET6 : AF_INET };
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&addr;
	struct sockaddr_in *in = (struct sockaddr_in *)&addr;

	if (addr.ss_family == AF_INET6) {
		inet_pton(AF_INET6, text, &in6->sin6_addr);
		in6->sin6_port = htons(port);
	} else {
		inet_pton(AF_INET, text, &in->sin_addr);
		in->sin_port = htons(port);
	}
	return addr;
}

static inline void fixture_portals(void)
{
	fixture_near.addr = fixture_address("127.0.0.0", 0);
	fixture_far.addr = fixture_address("192.0.2.0", 0);
	fixture_open_portals[0].listen = fixture_address("127.0.0.1", 3260);
	fixture_wide_portals[0].listen = fixture_address("0.0.0.0", 3261);
	fixture_wide_portals[1].listen = fixture_address("::", 3261);
	fixture_mixed_portals[0].listen = fixture_address("0.0.0.0", 3262);
	fixture_mixed_portals[0].advertise = "203.0.113.9:3260";
	fixture_mixed_portals[1].listen = fixture_address("fe80::1", 3262);
	fixture_mixed_portals[2].listen = fixture_address("127.0.0.1", 3262);
	fixture_mixed_portals[3].listen = fixture_address("2001:db8::5", 3262);
}

static inline void fixture_view(struct iscsi_view *view)
{
	*view = (struct iscsi_view){ .groups = fixture_groups,
				     .ngroups = ARRAY_LEN(fixture_groups),
				     .targets = fixture_targets,
				     .ntargets = ARRAY_LEN(fixture_targets) };
	fixture_portals();
	option_defaults(iscsi_limits_options, &view->limits);
	option_defaults(iscsi_server_options, &view->server);
	for (size_t i = 0; i < ARRAY_LEN(fixture_targets); i++) {
		struct iscsi_limits *limits = &fixture_targets[i].limits;

		*limits = view->limits;
		if (fixture_targets[i].ports != fixture_strict)
			continue;
		limits->header_digest = ISCSI_DIGEST_REQUIRED;
		limits->immediate_data = false;
		limits->initial_r2t = false;
		limits->max_burst_length = 65536;
		limits->first_burst_length = 16384;
	}
}

#endif
