/*
 * Words of the configuration file and where they stand.
 *
 * A word ends at white space and at { } ; " and #; in quotes it may hold all of
 * these, with \" for a quote and \\ for a backslash, but no end of line.  # begins
 * a comment.  Lines end with LF or CR LF; a byte order mark is skipped.  Columns
 * count characters (UTF-8) from 1, a tab is one.
 *
 * What cannot be read is a message in the configuration, and reading goes on:
 * the lexer gives words without control characters whatever the input is.
 */
#ifndef CONFIG_LEXER_H
#define CONFIG_LEXER_H

#include "config/messages.h"

/* Longer than any path; a longer word is cut, with an error. */
#define CONFIG_WORD_LEN_MAX 4096

enum config_token_kind {
	TOKEN_END,
	TOKEN_WORD,
	TOKEN_OPEN,  /* { */
	TOKEN_CLOSE, /* } */
	TOKEN_SEMICOLON,
};

struct config_token {
	enum config_token_kind kind;
	bool quoted;
	const char *text; /* in the configuration's arena; NULL but for WORD */
	struct config_pos pos;
	const char *begin; /* in the source */
};

struct config_lexer {
	struct config *config;
	const char *file;
	const char *p, *end;
	uint32_t line, column; /* of p */
	bool complained;       /* about a byte that is no text: once is enough */
	bool has_ahead;
	struct config_token ahead;
};

/* file and text must live as long as config. */
void config_lexer_init(struct config_lexer *lexer, struct config *config, const char *file,
		       const char *text, size_t len);

/* What comes next, without taking it; valid until the next call. */
const struct config_token *config_lexer_peek(struct config_lexer *lexer);
struct config_token config_lexer_next(struct config_lexer *lexer);

/* The next token, a word, as the key of a statement: it ends before '=', too. */
struct config_token config_lexer_next_key(struct config_lexer *lexer);
/* Skips the '=' that may stand between a key and its value. */
void config_lexer_skip_equals(struct config_lexer *lexer);

#endif
