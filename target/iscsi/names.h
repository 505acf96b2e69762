/*
 * iSCSI names (RFC 7143 4.2.7): one judgement for the configuration, which names
 * targets and initiators, and for the login, which hears them from peers.
 *
 * Pure; any thread.
 */
#ifndef ISCSI_NAMES_H
#define ISCSI_NAMES_H

#include <stddef.h>

#include "base/err.h"

/* A name has at most so many bytes (RFC 7143 4.2.7.1), without its NUL. */
#define ISCSI_NAME_LEN_MAX 223

/*
 * Writes the form in which names are compared and shown: lower case.  cap is
 * at least ISCSI_NAME_LEN_MAX + 1.
 *
 * 0, or -EINVAL with what is wrong: a name begins with "iqn.", "eui." (16 hex
 * digits) or "naa." (16 or 32), and holds letters, digits, '-', '.' and ':'.
 * Beyond the RFC '_' is taken, which other targets let people use.  Nothing else
 * is, as initiators make file names of it; nor are letters outside of ASCII, as
 * their lower case depends on who looks.
 */
int iscsi_name_normalize(const char *name, char *out, size_t cap, struct err *err);

#endif
