/* "key=value" text in PDUs: see params.h. */
#include "target/iscsi/params.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* RFC 7143 6.1: a key name has 1 to 63 characters; no value is longer. */
#define KEY_NAME_MAX  63
#define KEY_VALUE_MAX 8192

void iscsi_text_add(struct iscsi_text_out *out, const char *key, const char *value)
{
	size_t key_len = strlen(key), value_len = strlen(value);
	uint32_t room = out->cap - out->len;
	char *p = out->buf + out->len;

	/* "=" and NUL */
	if (out->overflow || room < 2 || key_len > room - 2 || value_len > room - 2 - key_len) {
		out->overflow = true;
		return;
	}
	memcpy(p, key, key_len);
	p[key_len] = '=';
	memcpy(p + key_len + 1, value, value_len + 1);
	out->len += (uint32_t)(key_len + value_len + 2);
}

void iscsi_text_add_uint(struct iscsi_text_out *out, const char *key, uint32_t value)
{
	char number[16];

	snprintf(number, sizeof(number), "%" PRIu32, value);
	iscsi_text_add(out, key, number);
}

int iscsi_text_next(char *text, uint32_t len, uint32_t *pos, char **key, char **value)
{
	char *begin, *end, *equals;

	/* More than one NUL at the end is some initiators' padding. */
	while (*pos < len && text[*pos] == '\0')
		++*pos;
	if (*pos >= len)
		return 0;
	begin = text + *pos;
	end = memchr(begin, '\0', len - *pos);
	if (!end)
		return -EINVAL;
	equals = memchr(begin, '=', (size_t)(end - begin));
	if (!equals || equals == begin || equals - begin > KEY_NAME_MAX ||
	    end - equals - 1 > KEY_VALUE_MAX)
		return -EINVAL;
	*equals = '\0';
	*key = begin;
	*value = equals + 1;
	*pos = (uint32_t)(end + 1 - text);
	return 1;
}
