#include "tests/unit/config/manual.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"

/* ---- rows ---- */

/* A hyphen is written so that it can be copied out of the page. */
static void text_print(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '-')
			fputs("\\-", out);
		else if (*text == '\\')
			fputs("\\e", out);
		else
			fputc(*text, out);
	}
}

/* A sentence a line, as manual pages have it. */
static void sentences_print(FILE *out, const char *text)
{
	char *copy = strdup(text);

	for (char *s = copy, *end; s; s = end) {
		end = strstr(s, ". ");
		if (end) {
			end[1] = '\0';
			end += 2;
		}
		text_print(out, s);
		fputc('\n', out);
	}
	free(copy);
}

static void value_print(FILE *out, const struct option_spec *row)
{
	static const char *const words[] = {
		[OPTION_UINT] = "NUMBER",
		[OPTION_SIZE] = "SIZE",
		[OPTION_STRING] = "TEXT",
	};

	if (row->type == OPTION_BOOL) {
		fputs("\\fByes\\fR|\\fBno\\fR", out);
		return;
	}
	if (row->type != OPTION_CHOICE) {
		fprintf(out, "\\fI%s\\fR", words[row->type]);
		return;
	}
	for (const char *const *choice = row->choices; *choice; choice++) {
		fputs(choice == row->choices ? "\\fB" : "\\fR|\\fB", out);
		text_print(out, *choice);
	}
	fputs("\\fR", out);
}

static const char *unit_of(const struct option_spec *row)
{
	return row->unit ? row->unit : "";
}

static void bounds_print(FILE *out, const struct option_spec *row)
{
	if (row->max == 0 || (row->type != OPTION_UINT && row->type != OPTION_SIZE))
		return;
	fprintf(out, "From %" PRIu64 " to %" PRIu64 "%s%s.\n", row->min, row->max,
		*unit_of(row) ? " " : "", unit_of(row));
}

static void default_print(FILE *out, const struct option_spec *row)
{
	if (!row->def)
		return;
	fputs("Default: ", out);
	text_print(out, row->def);
	fputs(".\n", out);
}

static void row_print(FILE *out, const struct option_spec *row)
{
	static const char *const reloads[] = {
		[RELOAD_LIVE] = "A reload takes it over at once.",
		[RELOAD_NEW_LOGINS] = "A reload takes it over for sessions that log in afterwards.",
		[RELOAD_REOPEN] = "A reload that changes it closes the store and opens it again.",
		[RELOAD_RESTART] = "Changes take effect when the daemon starts again.",
	};
	char summary[256];

	fputs(".TP\n\\fB", out);
	text_print(out, row->key);
	fputs("\\fR ", out);
	value_print(out, row);
	fputc('\n', out);
	snprintf(summary, sizeof(summary), "%s.", row->summary);
	if (summary[0] >= 'a' && summary[0] <= 'z')
		summary[0] = (char)(summary[0] - 'a' + 'A');
	text_print(out, summary);
	fputc('\n', out);
	if (row->doc)
		sentences_print(out, row->doc);
	bounds_print(out, row);
	default_print(out, row);
	fprintf(out, "%s\n", reloads[row->reload]);
}

/* ---- the page ---- */

static const struct {
	const char *name;
	const struct option_spec *rows;
} tables[] = {
	{ "global", config_global_options }, { "server", iscsi_server_options },
	{ "limits", iscsi_limits_options },  { "pool", pool_options },
	{ "backing", backing_options },	     { "scsi", scsi_lun_options },
};

/* 0 when the line asks for a table that there is not. */
static int line_print(FILE *out, const char *line)
{
	char name[32];

	if (sscanf(line, "@OPTIONS %31[a-z]@", name) != 1) {
		fputs(line, out);
		fputc('\n', out);
		return 1;
	}
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		if (strcmp(tables[i].name, name) != 0)
			continue;
		for (const struct option_spec *row = tables[i].rows; row->key; row++)
			row_print(out, row);
		return 1;
	}
	return 0;
}

char *manual_make(const char *template)
{
	char *page = NULL, *copy = strdup(template), *rest = copy, *line;
	size_t len = 0;
	FILE *out = open_memstream(&page, &len);
	int good = 1;

	while (good && (line = strsep(&rest, "\n")) && rest)
		good = line_print(out, line);
	fclose(out);
	free(copy);
	if (good)
		return page;
	free(page);
	return NULL;
}

char *manual_read(const char *path)
{
	FILE *file = fopen(path, "r");
	char *text = NULL;
	size_t cap = 0;
	ssize_t len = -1;

	if (!file)
		return NULL;
	len = getdelim(&text, &cap, '\0', file);
	fclose(file);
	if (len >= 0)
		return text;
	free(text);
	return NULL;
}
