/* Who may come in, by name and address: see view.h. */
#include "target/iscsi/view.h"

#include <netinet/in.h>
#include <string.h>

/* '*' is any run of characters, '?' any one; nothing else is special. */
static bool pattern_matches(const char *pattern, const char *name)
{
	const char *star = NULL, *from = NULL;

	while (*name) {
		if (*pattern == '*') {
			star = pattern++;
			from = name;
		} else if (*pattern && (*pattern == '?' || *pattern == *name)) {
			pattern++;
			name++;
		} else if (star) {
			/* The star takes one character more. */
			pattern = star + 1;
			name = ++from;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return *pattern == '\0';
}

bool iscsi_auth_name_matches(const struct iscsi_auth_group *group, const char *initiator)
{
	for (uint32_t i = 0; i < group->ninitiator_names; i++)
		if (pattern_matches(group->initiator_names[i], initiator))
			return true;
	return group->ninitiator_names == 0;
}

/* The bytes of an address; an IPv4 one that came through an IPv6 socket
 * (::ffff:a.b.c.d) counts as IPv4.  Their number, 0 for another family. */
static unsigned int address_bytes(const struct sockaddr_storage *addr, const uint8_t **bytes)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	if (addr->ss_family == AF_INET) {
		*bytes = (const uint8_t *)&((const struct sockaddr_in *)addr)->sin_addr;
		return 4;
	}
	if (addr->ss_family != AF_INET6)
		return 0;
	*bytes = ((const struct sockaddr_in6 *)addr)->sin6_addr.s6_addr;
	if (memcmp(*bytes, mapped, sizeof(mapped)) != 0)
		return 16;
	*bytes += sizeof(mapped);
	return 4;
}

static bool range_has(const struct iscsi_address_range *range, const struct sockaddr_storage *peer)
{
	const uint8_t *a, *b;
	unsigned int len = address_bytes(&range->addr, &a), prefix = range->prefix_len, whole, bits;

	if (len == 0 || address_bytes(peer, &b) != len)
		return false;
	if (range->addr.ss_family == AF_INET6 && len == 4)
		prefix = prefix > 96 ? prefix - 96 : 0;
	whole = prefix / 8;
	bits = prefix % 8;
	if (whole >= len)
		return memcmp(a, b, len) == 0;
	return memcmp(a, b, whole) == 0 && (a[whole] ^ b[whole]) >> (8 - bits) == 0;
}

bool iscsi_auth_address_matches(const struct iscsi_auth_group *group,
				const struct sockaddr_storage *peer)
{
	for (uint32_t i = 0; i < group->ninitiator_portals; i++)
		if (range_has(&group->initiator_portals[i], peer))
			return true;
	return group->ninitiator_portals == 0;
}

const struct iscsi_chap_user *iscsi_auth_user(const struct iscsi_auth_group *group,
					      const char *user)
{
	for (uint32_t i = 0; i < group->nusers; i++)
		if (strcmp(group->users[i].user, user) == 0)
			return &group->users[i];
	return NULL;
}
