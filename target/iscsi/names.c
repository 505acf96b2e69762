/* What an iSCSI name may be: see names.h. */
#include "target/iscsi/names.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#define PREFIX_LEN 4

static bool is_iqn_character(char c)
{
	return isascii((unsigned char)c) &&
	       (isalnum((unsigned char)c) || strchr("-.:_", c) != NULL);
}

static bool is_hex_digit(char c)
{
	return isascii((unsigned char)c) && isxdigit((unsigned char)c);
}

static int iqn_check(const char *name, struct err *err)
{
	for (size_t i = PREFIX_LEN; name[i]; i++) {
		unsigned char c = (unsigned char)name[i];

		if (is_iqn_character(name[i]))
			continue;
		if (isascii(c) && isprint(c))
			return err_set(err, EINVAL,
				       "\"%s\": '%c' may not stand in an iSCSI name: letters, "
				       "digits, '-', '.' and ':' may",
				       name, c);
		return err_set(err, EINVAL,
			       "byte 0x%02x may not stand in an iSCSI name: letters, digits, "
			       "'-', '.' and ':' may",
			       c);
	}
	return 0;
}

static int hex_check(const char *name, bool may_be_long, struct err *err)
{
	size_t n = 0;

	while (is_hex_digit(name[PREFIX_LEN + n]))
		n++;
	if (name[PREFIX_LEN + n] == '\0' && (n == 16 || (may_be_long && n == 32)))
		return 0;
	return err_set(err, EINVAL,
		       "\"%.*s\" is followed by %s hexadecimal digits (RFC 7143 4.2.7)", PREFIX_LEN,
		       name, may_be_long ? "16 or 32" : "16");
}

static int form_check(const char *name, struct err *err)
{
	if (strncasecmp(name, "iqn.", PREFIX_LEN) == 0 && name[PREFIX_LEN])
		return iqn_check(name, err);
	if (strncasecmp(name, "eui.", PREFIX_LEN) == 0)
		return hex_check(name, false, err);
	if (strncasecmp(name, "naa.", PREFIX_LEN) == 0)
		return hex_check(name, true, err);
	return err_set(err, EINVAL,
		       "an iSCSI name looks like iqn.2026-11.org.example:disk, or begins with "
		       "eui. or naa.");
}

int iscsi_name_normalize(const char *name, char *out, size_t cap, struct err *err)
{
	size_t len = strnlen(name, ISCSI_NAME_LEN_MAX + 1);
	int rc;

	assert(cap > ISCSI_NAME_LEN_MAX);
	if (len > ISCSI_NAME_LEN_MAX)
		return err_set(err, EINVAL, "an iSCSI name has at most %d bytes",
			       ISCSI_NAME_LEN_MAX);
	rc = form_check(name, err);
	if (rc != 0)
		return rc;
	for (size_t i = 0; i < len; i++)
		out[i] = (char)tolower((unsigned char)name[i]);
	out[len] = '\0';
	return 0;
}
