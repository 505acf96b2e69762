/* Looking things up in a view, and its addresses as text: see view.h. */
#include "target/iscsi/view.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

const struct iscsi_target_view *iscsi_view_target(const struct iscsi_view *view, const char *name)
{
	uint32_t low = 0, high = view->ntargets;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		int order = strcasecmp(name, view->targets[middle].name);

		if (order == 0)
			return &view->targets[middle];
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

const struct iscsi_portal_group *iscsi_view_group(const struct iscsi_view *view, const char *name)
{
	for (uint32_t i = 0; i < view->ngroups; i++)
		if (strcmp(view->groups[i].name, name) == 0)
			return &view->groups[i];
	return NULL;
}

const struct iscsi_target_port *iscsi_target_port(const struct iscsi_target_view *target,
						  const struct iscsi_portal_group *group)
{
	for (uint32_t i = 0; i < target->nports; i++)
		if (target->ports[i].group == group)
			return &target->ports[i];
	return NULL;
}

void iscsi_address_text(const struct sockaddr_storage *addr, char *out, size_t cap)
{
	char host[INET6_ADDRSTRLEN] = "?";

	if (addr->ss_family == AF_INET6) {
		const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)addr;

		inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof(host));
		snprintf(out, cap, "[%s]:%u", host, ntohs(in6->sin6_port));
	} else {
		const struct sockaddr_in *in = (const struct sockaddr_in *)addr;

		inet_ntop(AF_INET, &in->sin_addr, host, sizeof(host));
		snprintf(out, cap, "%s:%u", host, ntohs(in->sin_port));
	}
}
