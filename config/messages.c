/* Messages about a configuration: see messages.h. */
#include "config/messages.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* A longer line is shown without its text: nobody wrote it by hand. */
#define SOURCE_LINE_MAX 1000

void config_source_add(struct config *config, const char *file, const char *text, size_t len)
{
	struct config_source *source = arena_alloc(config->arena, sizeof(*source));

	*source = (struct config_source){
		.file = file,
		.text = text,
		.len = len,
		.number = config->sources ? config->sources->number + 1 : 0,
		.next = config->sources,
	};
	config->sources = source;
}

static const struct config_source *source_find(const struct config *config, const char *file)
{
	const struct config_source *source = config->sources;

	while (source && (!file || strcmp(source->file, file) != 0))
		source = source->next;
	return source;
}

static const char *source_line(struct config *config, struct config_pos pos)
{
	const struct config_source *source = source_find(config, pos.file);
	const char *line, *end, *stop;

	if (!source || pos.line == 0)
		return NULL;
	line = source->text;
	end = source->text + source->len;
	for (uint32_t i = 1; i < pos.line; i++) {
		line = memchr(line, '\n', (size_t)(end - line));
		if (!line)
			return NULL;
		line++;
	}
	stop = memchr(line, '\n', (size_t)(end - line));
	if (!stop)
		stop = end;
	if (stop > line && stop[-1] == '\r')
		stop--;
	if (pos.line == 1 && stop - line >= 3 && memcmp(line, "\xef\xbb\xbf", 3) == 0)
		line += 3;
	if (stop - line > SOURCE_LINE_MAX)
		return NULL;
	return arena_strndup(config->arena, line, (size_t)(stop - line));
}

__attribute__((format(printf, 4, 0))) static void message_add(struct config *config,
							      enum config_severity severity,
							      struct config_pos pos,
							      const char *fmt, va_list args)
{
	struct config_message *message, **last = &config->messages;
	struct err text;

	if (severity == CONFIG_ERROR)
		config->nerrors++;
	else
		config->nwarnings++;
	if (config->nerrors + config->nwarnings > 4 * CONFIG_ERRORS_MAX &&
	    severity == CONFIG_WARNING)
		return;
	vsnprintf(text.text, sizeof(text.text), fmt, args);
	message = arena_alloc(config->arena, sizeof(*message));
	*message = (struct config_message){
		.pos = pos,
		.severity = (uint8_t)severity,
		.text = arena_strdup(config->arena, text.text),
		.source = source_line(config, pos),
	};
	while (*last)
		last = &(*last)->next;
	*last = message;
}

void config_error(struct config *config, struct config_pos pos, const char *fmt, ...)
{
	va_list args;

	if (config_has_too_many_errors(config))
		return;
	va_start(args, fmt);
	message_add(config, CONFIG_ERROR, pos, fmt, args);
	va_end(args);
}

void config_warning(struct config *config, struct config_pos pos, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	message_add(config, CONFIG_WARNING, pos, fmt, args);
	va_end(args);
}

bool config_has_too_many_errors(const struct config *config)
{
	return config->nerrors >= CONFIG_ERRORS_MAX;
}

static void place_format(struct config_pos pos, char *out, size_t cap)
{
	if (pos.line == 0)
		snprintf(out, cap, "%s", pos.file);
	else
		snprintf(out, cap, "%s:%u:%u", pos.file, pos.line, pos.column);
}

const char *config_place(struct config *config, struct config_pos pos)
{
	struct err text;

	place_format(pos, text.text, sizeof(text.text));
	return arena_strdup(config->arena, text.text);
}

/* ---- order ---- */

struct ordered {
	struct config_message *message;
	unsigned int source, number; /* number: the order in which they came */
};

static int ordered_compare(const void *a, const void *b)
{
	const struct ordered *x = a, *y = b;
	const struct config_pos *p = &x->message->pos, *q = &y->message->pos;

	if (x->source != y->source)
		return x->source < y->source ? -1 : 1;
	if (p->line != q->line)
		return p->line < q->line ? -1 : 1;
	if (p->column != q->column)
		return p->column < q->column ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

void config_sort_messages(struct config *config)
{
	struct config_message **last = &config->messages;
	struct ordered *order;
	unsigned int n = 0, i = 0;

	for (struct config_message *m = config->messages; m; m = m->next)
		n++;
	order = arena_alloc(config->arena, n * sizeof(*order));
	for (struct config_message *m = config->messages; m; m = m->next, i++) {
		const struct config_source *source = source_find(config, m->pos.file);

		order[i] = (struct ordered){ m, source ? source->number : 0, i };
	}
	if (n > 1)
		qsort(order, n, sizeof(*order), ordered_compare);
	for (i = 0; i < n; i++) {
		*last = order[i].message;
		last = &order[i].message->next;
	}
	*last = NULL;
}

/* ---- showing ---- */

/* Bytes that a terminal would obey are shown as '?'. */
static void line_print(const char *line, FILE *out)
{
	for (; *line; line++) {
		unsigned char c = (unsigned char)*line;

		fputc((c < 0x20 && c != '\t') || c == 0x7f ? '?' : c, out);
	}
	fputc('\n', out);
}

/* Tabs stand above the caret as in the line, so that it points to the place
 * whatever their width. */
static void caret_print(const char *line, uint32_t column, FILE *out)
{
	for (uint32_t at = 1; *line && at < column; line++) {
		if (((unsigned char)line[1] & 0xc0) != 0x80)
			at++;
		if (((unsigned char)*line & 0xc0) != 0x80)
			fputc(*line == '\t' ? '\t' : ' ', out);
	}
	fputs("^\n", out);
}

void config_print_messages(const struct config *config, FILE *out)
{
	static const char *const severities[] = {
		[CONFIG_WARNING] = "warning",
		[CONFIG_ERROR] = "error",
	};
	char place[ERR_TEXT_MAX];

	for (const struct config_message *m = config->messages; m; m = m->next) {
		place_format(m->pos, place, sizeof(place));
		fprintf(out, "%s: %s: ", place, severities[m->severity]);
		line_print(m->text, out);
		if (m->source) {
			line_print(m->source, out);
			caret_print(m->source, m->pos.column, out);
		}
	}
	if (config_has_too_many_errors(config))
		fprintf(out, "%s: too many errors: the rest was not read\n", config->file);
}
