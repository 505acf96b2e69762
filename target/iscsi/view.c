/* Looking things up in a view: see view.h. */
#include "target/iscsi/view.h"

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
