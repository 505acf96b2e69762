/* The values of `compression` in text: see codec_parse() in codec.h. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/option.h"
#include "compress/codec.h"

/*
 * A value is a name, or a name, a hyphen and a number.  The level of a codec is
 * `level` for the name alone (0 here: it needs a number), and `sign` times the
 * number, which is in min..max (0: none may be given).
 */
struct codec_name {
	const char *name;
	uint8_t id;
	int8_t level;
	int8_t sign;
	uint8_t min, max;
};

static const struct codec_name codec_names[] = {
	{ "none", CODEC_RAW, 0, 0, 0, 0 },	 { "lzjb", CODEC_LZJB, 0, 0, 0, 0 },
	{ "gzip", CODEC_DEFLATE, 6, 1, 1, 9 },	 { "lz4", CODEC_LZ4, 1, 0, 0, 0 },
	{ "lz4-fast", CODEC_LZ4, 0, -1, 2, 64 }, { "lz4hc", CODEC_LZ4, 9, 1, 3, 9 },
	{ "zstd", CODEC_ZSTD, 3, 1, 1, 19 },
};

#define NAMES (sizeof(codec_names) / sizeof(codec_names[0]))

const char codec_valid_values[] = "none, lzjb, gzip or gzip-1 to gzip-9, lz4, "
				  "lz4-fast-2 to lz4-fast-64, lz4hc or lz4hc-3 to lz4hc-9, "
				  "zstd or zstd-1 to zstd-19";

/* Two digits at most, without a leading zero; -1 otherwise. */
static int parse_number(const char *text)
{
	size_t len = strlen(text);

	if (len < 1 || len > 2 || !isdigit((unsigned char)text[0]) || text[0] == '0' ||
	    (len == 2 && !isdigit((unsigned char)text[1])))
		return -1;
	return len == 1 ? text[0] - '0' : (text[0] - '0') * 10 + text[1] - '0';
}

/* The level that text says under this row; false if it says none. */
static bool parse_level(const struct codec_name *row, const char *text, int8_t *level)
{
	size_t len = strlen(row->name);
	int number;

	if (strncasecmp(text, row->name, len) != 0)
		return false;
	text += len;
	if (*text == '\0') {
		*level = row->level;
		return row->level != 0 || row->sign == 0;
	}
	if (*text != '-' || row->sign == 0)
		return false;
	number = parse_number(text + 1);
	if (number < row->min || number > row->max)
		return false;
	*level = (int8_t)(row->sign * number);
	return true;
}

static void format_row(const struct codec_name *row, int number, char text[CODEC_TEXT_MAX])
{
	if (row->sign == 0)
		snprintf(text, CODEC_TEXT_MAX, "%s", row->name);
	else
		snprintf(text, CODEC_TEXT_MAX, "%s-%d", row->name, number);
}

/* The nearest value: "gzip-10" -> "gzip-1", "lz5" -> "lz4"; false: none is near. */
static bool nearest_value(const char *text, char near[CODEC_TEXT_MAX])
{
	enum { VALUES_MAX = 128 };
	char texts[VALUES_MAX][CODEC_TEXT_MAX];
	const char *values[VALUES_MAX], *found;
	size_t n = 0;

	for (size_t i = 0; i < NAMES; i++) {
		const struct codec_name *row = &codec_names[i];

		if (row->level != 0 && row->sign != 0)
			snprintf(texts[n++], CODEC_TEXT_MAX, "%s", row->name);
		for (int number = row->min; number <= row->max; number++)
			format_row(row, number, texts[n++]);
	}
	for (size_t i = 0; i < n; i++)
		values[i] = texts[i];
	found = option_nearest(text, values, n);
	if (found)
		snprintf(near, CODEC_TEXT_MAX, "%s", found);
	return found;
}

int codec_parse(const char *text, struct codec_choice *out, struct err *err)
{
	char near[CODEC_TEXT_MAX];
	bool hint;

	for (size_t i = 0; i < NAMES; i++) {
		if (parse_level(&codec_names[i], text, &out->level)) {
			out->id = codec_names[i].id;
			return 0;
		}
	}
	hint = nearest_value(text, near);
	return err_set(err, EINVAL, "%.64s is not valid: %s%s%s%s", text, codec_valid_values,
		       hint ? " (did you mean " : "", hint ? near : "", hint ? "?)" : "");
}

void codec_format(const struct codec_choice *choice, char text[CODEC_TEXT_MAX])
{
	for (size_t i = 0; i < NAMES; i++) {
		const struct codec_name *row = &codec_names[i];
		int number = row->sign * choice->level;

		if (row->id != choice->id)
			continue;
		if (row->sign == 0 ? row->level == choice->level
				   : number >= row->min && number <= row->max) {
			format_row(row, number, text);
			return;
		}
	}
	snprintf(text, CODEC_TEXT_MAX, "%u:%d", choice->id, choice->level);
}
