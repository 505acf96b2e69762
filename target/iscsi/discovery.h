/*
 * SendTargets: which targets a peer gets to see, and at which addresses
 * (RFC 7143 appendix C).
 *
 * A target is named when it has a port in the portal group that the peer came
 * in by and that group's discovery-filter lets the peer see it.  Its addresses
 * are those of that group, or of all its groups ("discovery-portals all"):
 * what the portal advertises; else its listen address; for a portal on all
 * addresses, the one that the peer has reached.  Link-local and loopback
 * addresses are for those only who came in by one.
 *
 * Owner: the text exchange; its reactor's thread.
 */
#ifndef ISCSI_DISCOVERY_H
#define ISCSI_DISCOVERY_H

#include <stdint.h>

#include "target/iscsi/text.h"

/* Text that grows, up to ISCSI_TEXT_ANSWER_MAX; the owner frees buf. */
struct iscsi_answer {
	char *buf;
	uint32_t len, cap;
};

/* 0, -ENOSPC at the bound, or -ENOMEM. */
int iscsi_answer_add(struct iscsi_answer *answer, const char *key, const char *value);

/*
 * Adds TargetName and TargetAddress of each target that peer sees: of all when
 * name is NULL, else of that one (which may be none).  0, or -ENOMEM.  What does
 * not fit into ISCSI_TEXT_ANSWER_MAX is left out, with a log line.
 */
int iscsi_discovery_list(const struct iscsi_text_peer *peer, const struct iscsi_view *view,
			 const char *name, struct iscsi_answer *answer);

#endif
