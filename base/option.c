/* Parsing, comparing and printing the fields of option rows: see option.h. */
#include "base/option.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* A choice has an uint8_t of values; no table has nearly as many. */
#define CHOICES_MAX 64

struct option_ops {
	int (*set)(const struct option_spec *row, void *field, const char *value, struct err *err);
	bool (*equal)(const void *a, const void *b);
	void (*format)(const struct option_spec *row, const void *field, char *out, size_t cap);
	size_t size;
};

static const char *unit_of(const struct option_spec *row)
{
	return row->unit ? row->unit : "";
}

static bool in_bounds(const struct option_spec *row, uint64_t value)
{
	return value >= row->min && (row->max == 0 || value <= row->max);
}

/* ---- bool ---- */

static int bool_set(const struct option_spec *row, void *field, const char *value, struct err *err)
{
	static const struct {
		const char *word;
		bool value;
	} words[] = {
		{ "yes", true }, { "on", true },   { "true", true },   { "1", true },
		{ "no", false }, { "off", false }, { "false", false }, { "0", false },
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcasecmp(value, words[i].word) == 0) {
			*(bool *)field = words[i].value;
			return 0;
		}
	}
	return err_set(err, EINVAL, "%s: %s is not valid: yes or no", row->key, value);
}

static bool bool_equal(const void *a, const void *b)
{
	return *(const bool *)a == *(const bool *)b;
}

static void bool_format(const struct option_spec *row, const void *field, char *out, size_t cap)
{
	(void)row;
	snprintf(out, cap, "%s", *(const bool *)field ? "yes" : "no");
}

/* ---- numbers ---- */

static bool is_bytes(const struct option_spec *row)
{
	return row->type == OPTION_SIZE || strcmp(unit_of(row), "bytes") == 0;
}

static uint64_t type_max(const struct option_spec *row)
{
	return row->type == OPTION_UINT ? UINT32_MAX : UINT64_MAX;
}

/* What is valid, as "512..16777215 bytes"; large sizes as "1 MiB..8 PiB". */
static void bounds_format(const struct option_spec *row, char *out, size_t cap)
{
	uint64_t max = row->max ? row->max : type_max(row);
	bool whole = row->type == OPTION_SIZE && row->min % 1024 == 0 && max % 1024 == 0;
	char lo[32], hi[32];

	if (whole) {
		size_format(row->min, lo, sizeof(lo));
		size_format(max, hi, sizeof(hi));
		snprintf(out, cap, "%s..%s", lo, hi);
		return;
	}
	snprintf(out, cap, "%" PRIu64 "..%" PRIu64 "%s%s", row->min, max,
		 *unit_of(row)		    ? " "
		 : row->type == OPTION_SIZE ? " bytes"
					    : "",
		 unit_of(row));
}

static int number_parse(const struct option_spec *row, const char *value, uint64_t *out,
			struct err *err)
{
	char bounds[96];
	size_t digits = strspn(value, "0123456789");
	char number[24];
	int rc;

	/* Only what counts bytes has suffixes; a percentage may say that it is one. */
	if (digits && digits < sizeof(number) && strcmp(unit_of(row), "percent") == 0 &&
	    strcmp(value + digits, "%") == 0) {
		memcpy(number, value, digits);
		number[digits] = '\0';
		rc = size_parse(number, out);
	} else {
		rc = size_parse(value, out);
		if (rc == 0 && !is_bytes(row) && value[digits] != '\0')
			rc = -EINVAL;
	}
	if (rc == -EINVAL)
		return err_set(err, EINVAL, "%s: %s is not valid: %s%s%s%s", row->key, value,
			       is_bytes(row) ? "a size in bytes, such as 512 or 64K"
					     : "a whole number",
			       !is_bytes(row) && *unit_of(row) ? " (" : "",
			       is_bytes(row) ? "" : unit_of(row),
			       !is_bytes(row) && *unit_of(row) ? ")" : "");
	if (rc == 0 && in_bounds(row, *out) && *out <= type_max(row))
		return 0;
	bounds_format(row, bounds, sizeof(bounds));
	return err_set(err, EINVAL, "%s: %s is outside %s", row->key, value, bounds);
}

static int uint_set(const struct option_spec *row, void *field, const char *value, struct err *err)
{
	uint64_t number;
	int rc = number_parse(row, value, &number, err);

	if (rc == 0)
		*(uint32_t *)field = (uint32_t)number;
	return rc;
}

static bool uint_equal(const void *a, const void *b)
{
	return *(const uint32_t *)a == *(const uint32_t *)b;
}

static void uint_format(const struct option_spec *row, const void *field, char *out, size_t cap)
{
	(void)row;
	snprintf(out, cap, "%" PRIu32, *(const uint32_t *)field);
}

static int size_set(const struct option_spec *row, void *field, const char *value, struct err *err)
{
	uint64_t number;
	int rc = number_parse(row, value, &number, err);

	if (rc == 0)
		*(uint64_t *)field = number;
	return rc;
}

static bool size_equal(const void *a, const void *b)
{
	return *(const uint64_t *)a == *(const uint64_t *)b;
}

/* Exact, unlike size_format(): it is read back. */
static void size_write(const struct option_spec *row, const void *field, char *out, size_t cap)
{
	static const char suffixes[] = "\0KMGTP";
	uint64_t value = *(const uint64_t *)field;
	unsigned int unit = 0;

	(void)row;
	while (unit < 5 && value != 0 && value % 1024 == 0) {
		value /= 1024;
		unit++;
	}
	snprintf(out, cap, unit ? "%" PRIu64 "%c" : "%" PRIu64, value, suffixes[unit]);
}

/* ---- choice ---- */

static int choice_set(const struct option_spec *row, void *field, const char *value,
		      struct err *err)
{
	char list[512];
	size_t n, len = 0;
	const char *near;

	for (n = 0; row->choices[n]; n++) {
		assert(n < CHOICES_MAX);
		if (strcasecmp(value, row->choices[n]) == 0) {
			*(uint8_t *)field = (uint8_t)n;
			return 0;
		}
		len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%s", n ? ", " : "",
					row->choices[n]);
		assert(len < sizeof(list));
	}
	near = option_nearest(value, row->choices, n);
	if (near)
		return err_set(err, EINVAL, "%s: %s is not valid: one of %s (did you mean %s?)",
			       row->key, value, list, near);
	return err_set(err, EINVAL, "%s: %s is not valid: one of %s", row->key, value, list);
}

static bool choice_equal(const void *a, const void *b)
{
	return *(const uint8_t *)a == *(const uint8_t *)b;
}

static void choice_format(const struct option_spec *row, const void *field, char *out, size_t cap)
{
	snprintf(out, cap, "%s", row->choices[*(const uint8_t *)field]);
}

/* ---- string ---- */

static int string_set(const struct option_spec *row, void *field, const char *value,
		      struct err *err)
{
	uint64_t max = row->max ? row->max : ERR_TEXT_MAX;

	if (!in_bounds(row, strlen(value)))
		return err_set(err, EINVAL,
			       "%s: %s is not valid: a text of %" PRIu64 "..%" PRIu64 " characters",
			       row->key, *value ? value : "\"\"", row->min, max);
	*(const char **)field = value;
	return 0;
}

static bool string_equal(const void *a, const void *b)
{
	const char *s = *(const char *const *)a, *t = *(const char *const *)b;

	return s == t || (s && t && strcmp(s, t) == 0);
}

/* Quoted where the file needs it: a word of its own, with no syntax in it. */
static void string_format(const struct option_spec *row, const void *field, char *out, size_t cap)
{
	const char *s = *(const char *const *)field;
	size_t len = 0;

	(void)row;
	if (!s || (*s && !strpbrk(s, " \t\r\n\"\\#{}=;"))) {
		snprintf(out, cap, "%s", s ? s : "");
		return;
	}
	if (cap < 3) {
		snprintf(out, cap, "%s", "");
		return;
	}
	out[len++] = '"';
	for (; *s && len < cap - 3; s++) {
		if (*s == '"' || *s == '\\')
			out[len++] = '\\';
		out[len++] = *s;
	}
	out[len++] = '"';
	out[len] = '\0';
}

/* ---- the table of types ---- */

static const struct option_ops type_ops[] = {
	[OPTION_BOOL] = { bool_set, bool_equal, bool_format, sizeof(bool) },
	[OPTION_UINT] = { uint_set, uint_equal, uint_format, sizeof(uint32_t) },
	[OPTION_SIZE] = { size_set, size_equal, size_write, sizeof(uint64_t) },
	[OPTION_CHOICE] = { choice_set, choice_equal, choice_format, sizeof(uint8_t) },
	[OPTION_STRING] = { string_set, string_equal, string_format, sizeof(const char *) },
};

int option_set(const struct option_spec *row, void *object, const char *value, struct err *err)
{
	return type_ops[row->type].set(row, (char *)object + row->offset, value, err);
}

void option_defaults(const struct option_spec *table, void *object)
{
	for (const struct option_spec *row = table; row->key; row++) {
		if (row->def) {
			int rc = option_set(row, object, row->def, NULL);

			assert(rc == 0);
		} else {
			memset((char *)object + row->offset, 0, type_ops[row->type].size);
		}
	}
}

static bool row_has_name(const struct option_spec *row, const char *key)
{
	if (strcmp(row->key, key) == 0)
		return true;
	for (const char *const *alias = row->aliases; alias && *alias; alias++)
		if (strcmp(*alias, key) == 0)
			return true;
	return false;
}

const struct option_spec *option_find(const struct option_spec *table, const char *key)
{
	for (const struct option_spec *row = table; row->key; row++)
		if (row_has_name(row, key))
			return row;
	return NULL;
}

bool option_equal(const struct option_spec *row, const void *a, const void *b)
{
	return type_ops[row->type].equal((const char *)a + row->offset,
					 (const char *)b + row->offset);
}

void option_format(const struct option_spec *row, const void *object, char *out, size_t cap)
{
	type_ops[row->type].format(row, (const char *)object + row->offset, out, cap);
}
