/* Tables on a terminal: see table.h. */
#include "target/table.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

struct table {
	const char *const *titles;
	unsigned int ncolumns, right;
	char **cells;
	size_t ncells, room;
};

static void *must(void *p)
{
	if (!p) {
		fputs("quintain: no memory\n", stderr);
		exit(1);
	}
	return p;
}

struct table *table_create(const char *const *titles, unsigned int ncolumns, unsigned int right)
{
	struct table *table = must(calloc(1, sizeof(*table)));

	assert(ncolumns >= 1 && ncolumns <= TABLE_COLUMNS_MAX);
	table->titles = titles;
	table->ncolumns = ncolumns;
	table->right = right;
	return table;
}

void table_cell(struct table *table, const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vasprintf(&text, fmt, ap);
	va_end(ap);
	must(len < 0 ? NULL : text);
	for (char *c = text; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = '?';
	if (table->ncells == table->room) {
		table->room = table->room ? 2 * table->room : 64;
		table->cells = must(realloc(table->cells, table->room * sizeof(*table->cells)));
	}
	table->cells[table->ncells++] = text;
}

/* Characters on the screen: bytes that do not continue a UTF-8 sequence. */
static int text_width(const char *text)
{
	int width = 0;

	for (; *text; text++)
		width += ((unsigned char)*text & 0xc0) != 0x80;
	return width;
}

static void print_row(const struct table *table, const char *const *cells, const int *widths,
		      FILE *out)
{
	for (unsigned int i = 0; i < table->ncolumns; i++) {
		int pad = widths[i] - text_width(cells[i]);
		bool right = table->right & (1u << i), last = i + 1 == table->ncolumns;

		fprintf(out, "  %*s%s%*s", right ? pad : 0, "", cells[i], right || last ? 0 : pad,
			"");
	}
	fputc('\n', out);
}

void table_print(struct table *table, FILE *out)
{
	int widths[TABLE_COLUMNS_MAX];

	assert(table->ncells % table->ncolumns == 0);
	for (unsigned int i = 0; i < table->ncolumns; i++)
		widths[i] = text_width(table->titles[i]);
	for (size_t i = 0; i < table->ncells; i++) {
		int width = text_width(table->cells[i]);

		if (width > widths[i % table->ncolumns])
			widths[i % table->ncolumns] = width;
	}
	if (table->ncells == 0)
		fputs("  none\n", out);
	else
		print_row(table, table->titles, widths, out);
	for (size_t i = 0; i < table->ncells; i += table->ncolumns)
		print_row(table, (const char *const *)table->cells + i, widths, out);
	for (size_t i = 0; i < table->ncells; i++)
		free(table->cells[i]);
	free(table->cells);
	free(table);
}
