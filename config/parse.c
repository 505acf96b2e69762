/* Statements and blocks: see parser.h. */
#include "config/parser.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

/* ---- the words of a section ---- */

static const struct section *const sections[] = {
	&config_section_global, &config_section_auth_group, &config_section_portal_group,
	&config_section_lun,	&config_section_pool,	    &config_section_target,
};

static const struct section_word *word_find(const struct section *section, const char *name)
{
	for (const struct section_word *word = section->words; word->name; word++)
		if (strcmp(word->name, name) == 0)
			return word;
	return NULL;
}

static const struct option_spec *row_find(const struct section *section, const char *key,
					  const struct section_table **table)
{
	for (*table = section->tables; (*table)->rows; ++*table) {
		const struct option_spec *row = option_find((*table)->rows, key);

		if (row)
			return row;
	}
	return NULL;
}

static bool section_knows(const struct section *section, const char *key)
{
	const struct section_table *table;

	return word_find(section, key) || row_find(section, key, &table);
}

static const char *nearest_word(const struct section *section, const char *key)
{
	const char *names[160];
	size_t n = 0;

	for (const struct section_word *word = section->words; word->name; word++) {
		assert(n < sizeof(names) / sizeof(names[0]));
		names[n++] = word->name;
	}
	for (const struct section_table *table = section->tables; table->rows; table++) {
		for (const struct option_spec *row = table->rows; row->key; row++) {
			assert(n < sizeof(names) / sizeof(names[0]));
			names[n++] = row->key;
		}
	}
	return option_nearest(key, names, n);
}

static void complain_unknown(struct parser *parser, const struct section *section,
			     const struct config_token *key, bool same_line)
{
	const char *near = nearest_word(section, key->text);

	if (near) {
		config_error(parser->config, key->pos, "unknown word %s in %s: did you mean %s?",
			     key->text, section->name, near);
		return;
	}
	for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
		if (sections[i] != section && section_knows(sections[i], key->text)) {
			config_error(parser->config, key->pos, "%s does not belong in %s but in %s",
				     key->text, section->name, sections[i]->name);
			return;
		}
	}
	config_error(parser->config, key->pos, "unknown word %s in %s%s", key->text, section->name,
		     same_line ? ": a value with spaces needs quotes" : "");
}

/* ---- going on behind what is wrong ---- */

/* Behind the } of a block whose { has been taken. */
static void skip_block(struct parser *parser, struct config_lexer *lexer, struct config_pos open)
{
	unsigned int depth = 1;

	while (depth > 0) {
		struct config_token token = config_lexer_next(lexer);

		if (token.kind == TOKEN_OPEN)
			depth++;
		else if (token.kind == TOKEN_CLOSE)
			depth--;
		else if (token.kind == TOKEN_END)
			break;
	}
	if (depth > 0)
		config_error(parser->config, open, "this { is never closed");
}

/* Behind a statement that is wrong: its line, and its block if it has one. */
static void skip_statement(struct parser *parser, struct config_lexer *lexer, uint32_t line)
{
	for (;;) {
		const struct config_token *token = config_lexer_peek(lexer);

		if (token->kind == TOKEN_OPEN) {
			struct config_pos open = token->pos;

			config_lexer_next(lexer);
			skip_block(parser, lexer, open);
			return;
		}
		if (token->kind != TOKEN_WORD || token->pos.line != line)
			return;
		config_lexer_next(lexer);
	}
}

/* ---- options ---- */

const struct given *config_given(const struct frame *frame, const char *key)
{
	for (const struct given *given = frame->given; given; given = given->next)
		if (strcmp(given->key, key) == 0)
			return given;
	return NULL;
}

struct config_pos config_given_pos(const struct frame *frame, const char *key)
{
	const struct given *given = config_given(frame, key);

	return given ? given->pos : frame->pos;
}

/* False after an error when key has been given in this block before. */
static bool give(struct parser *parser, struct frame *frame, const char *key,
		 const struct option_spec *row, const char *text, struct config_pos pos)
{
	const struct given *before = config_given(frame, key);
	struct given *given;

	if (before) {
		config_error(parser->config, pos, "%s is already given at %s", key,
			     config_place(parser->config, before->pos));
		return false;
	}
	given = arena_alloc(parser->config->arena, sizeof(*given));
	*given = (struct given){ key, row, text, pos, frame->given };
	frame->given = given;
	return true;
}

bool config_set_option(struct parser *parser, struct frame *frame, const char *key,
		       const struct config_token *value)
{
	const struct section_table *table;
	const struct option_spec *row = row_find(frame->section, key, &table);
	struct err err;

	if (!row)
		return false;
	if (!give(parser, frame, row->key, row, value->text, value->pos))
		return true;
	if (option_set(row, (char *)frame->object + table->offset, value->text, &err) != 0)
		config_error(parser->config, value->pos, "%s", err.text);
	return true;
}

bool config_number(struct parser *parser, const char *key, const struct config_token *token,
		   uint64_t min, uint64_t max, uint64_t *out)
{
	uint64_t value;

	/* ctl.conf(5) takes suffixes for every number. */
	if (size_parse(token->text, &value) == 0 && value >= min && value <= max) {
		*out = value;
		return true;
	}
	config_error(parser->config, token->pos, "%s: %s is not a number of %llu..%llu", key,
		     token->text, (unsigned long long)min, (unsigned long long)max);
	return false;
}

int config_choice(struct parser *parser, const char *key, const struct config_token *token,
		  const char *const *choices)
{
	uint8_t index;
	struct err err;
	const struct option_spec row = {
		.key = key,
		.type = OPTION_CHOICE,
		.choices = choices,
	};

	if (option_set(&row, &index, token->text, &err) == 0)
		return index;
	config_error(parser->config, token->pos, "%s", err.text);
	return -1;
}

void config_run_no_effect(struct parser *parser, const struct statement *statement)
{
	config_warning(parser->config, statement->key.pos, "%s has no effect in quintain",
		       statement->key.text);
	if (statement->opens_block)
		skip_block(parser, statement->lexer, statement->key.pos);
}

/* ---- statements ---- */

/* A keyword at the beginning of a line is no argument of what stands before. */
static bool is_next_statement(const struct statement *s, const struct config_token *token,
			      uint32_t line)
{
	return !token->quoted && token->pos.line != line &&
	       section_knows(s->frame->section, token->text);
}

static bool is_optional_argument(const struct statement *s, const struct config_token *token,
				 uint32_t line)
{
	return token->pos.line == line &&
	       (token->quoted || !section_knows(s->frame->section, token->text));
}

/* Takes the arguments; the number of the last one's line. */
static uint32_t read_arguments(struct statement *s, unsigned int min, unsigned int max)
{
	uint32_t line = s->key.pos.line;

	assert(max <= CONFIG_ARGS_MAX);
	config_lexer_skip_equals(s->lexer);
	while (s->nargs < max) {
		const struct config_token *token = config_lexer_peek(s->lexer);

		if (token->kind != TOKEN_WORD)
			break;
		if (s->nargs < min ? is_next_statement(s, token, line)
				   : !is_optional_argument(s, token, line))
			break;
		line = token->pos.line;
		s->args[s->nargs++] = config_lexer_next(s->lexer);
	}
	return line;
}

/* Takes the { of a word that has a block; false after an error. */
static bool read_open(struct parser *parser, struct statement *s)
{
	const struct section_word *word = s->word;

	if (!(word->flags & WORD_BLOCK) ||
	    (word->min_args != word->max_args && s->nargs == word->max_args))
		return true;
	if (config_lexer_peek(s->lexer)->kind != TOKEN_OPEN) {
		config_error(parser->config, s->key.pos, "%s: a block { ... } is missing: %s %s",
			     word->name, word->name, word->usage);
		return false;
	}
	config_lexer_next(s->lexer);
	s->opens_block = true;
	return true;
}

static uint32_t parse_word(struct parser *parser, struct statement *s)
{
	const struct section_word *word = s->word;
	uint32_t line = read_arguments(s, word->min_args, word->max_args);

	if (s->nargs < word->min_args) {
		config_error(parser->config, s->key.pos, "%s: a value is missing: %s %s",
			     word->name, word->name, word->usage);
		skip_statement(parser, s->lexer, line);
		return line;
	}
	if (!read_open(parser, s)) {
		skip_statement(parser, s->lexer, line);
		return line;
	}
	if ((word->flags & WORD_ONCE) &&
	    !give(parser, s->frame, word->name, NULL, NULL, s->args[0].pos)) {
		if (s->opens_block)
			skip_block(parser, s->lexer, s->key.pos);
		return line;
	}
	word->run(parser, s);
	return line;
}

static uint32_t parse_option(struct parser *parser, struct statement *s)
{
	uint32_t line = read_arguments(s, 1, 1);

	if (s->nargs == 1) {
		config_set_option(parser, s->frame, s->key.text, &s->args[0]);
		return line;
	}
	config_error(parser->config, s->key.pos, "%s: its value is missing", s->key.text);
	skip_statement(parser, s->lexer, line);
	return line;
}

/* One statement; the line on which it ends (without its block). */
static uint32_t parse_statement(struct parser *parser, struct config_lexer *lexer,
				struct frame *frame, uint32_t last_line)
{
	struct statement s = {
		.key = config_lexer_next_key(lexer),
		.frame = frame,
		.lexer = lexer,
	};
	const struct section_table *table;

	s.word = word_find(frame->section, s.key.text);
	if (s.word)
		return parse_word(parser, &s);
	if (row_find(frame->section, s.key.text, &table))
		return parse_option(parser, &s);
	complain_unknown(parser, frame->section, &s.key, s.key.pos.line == last_line);
	skip_statement(parser, lexer, s.key.pos.line);
	return 0;
}

void config_parse_words(struct parser *parser, struct config_lexer *lexer, struct frame *frame)
{
	bool is_block = frame->pos.line != 0;
	uint32_t last_line = 0;

	while (!config_has_too_many_errors(parser->config)) {
		struct config_token token = *config_lexer_peek(lexer);

		if (token.kind == TOKEN_WORD) {
			last_line = parse_statement(parser, lexer, frame, last_line);
			continue;
		}
		config_lexer_next(lexer);
		if (token.kind == TOKEN_END) {
			if (is_block)
				config_error(parser->config, frame->pos,
					     "the block of this is never closed");
			return;
		}
		if (token.kind == TOKEN_CLOSE) {
			if (is_block)
				return;
			config_error(parser->config, token.pos, "this } closes nothing");
		} else if (token.kind == TOKEN_OPEN) {
			config_error(parser->config, token.pos, "this { belongs to no word");
			skip_block(parser, lexer, token.pos);
		}
	}
}

void config_parse_block(struct parser *parser, const struct statement *statement,
			struct frame *frame)
{
	assert(statement->opens_block);
	config_parse_words(parser, statement->lexer, frame);
}
