/* Words of the configuration file: see lexer.h. */
#include "config/lexer.h"

#include <assert.h>
#include <string.h>

void config_lexer_init(struct config_lexer *lexer, struct config *config, const char *file,
		       const char *text, size_t len)
{
	*lexer = (struct config_lexer){
		.config = config,
		.file = file,
		.p = text,
		.end = text + len,
		.line = 1,
		.column = 1,
	};
	if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
		lexer->p += 3;
}

static struct config_pos here(const struct config_lexer *lexer)
{
	return (struct config_pos){ lexer->file, lexer->line, lexer->column };
}

static bool is_continuation(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

/* Takes one byte.  A character's column is that of its first byte. */
static void step(struct config_lexer *lexer)
{
	if (*lexer->p == '\n') {
		lexer->line++;
		lexer->column = 1;
		lexer->p++;
		return;
	}
	lexer->p++;
	if (lexer->p == lexer->end || !is_continuation(*lexer->p))
		lexer->column++;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool is_control(char c)
{
	return ((unsigned char)c < 0x20 && !is_blank(c)) || c == 0x7f;
}

static bool ends_word(char c)
{
	return is_blank(c) || is_control(c) || strchr("{};\"#", c) != NULL;
}

static void complain_byte(struct config_lexer *lexer)
{
	if (!lexer->complained)
		config_error(lexer->config, here(lexer), "byte 0x%02x is not text%s",
			     (unsigned char)*lexer->p,
			     *lexer->p == '\0' ? ": is this a configuration file?" : "");
	lexer->complained = true;
}

static void skip_blank(struct config_lexer *lexer)
{
	while (lexer->p < lexer->end) {
		if (*lexer->p == '#') {
			while (lexer->p < lexer->end && *lexer->p != '\n')
				step(lexer);
		} else if (is_blank(*lexer->p)) {
			step(lexer);
		} else if (is_control(*lexer->p)) {
			complain_byte(lexer);
			step(lexer);
		} else {
			return;
		}
	}
}

/* Bytes of the character that begins at s, or 0 (RFC 3629 4). */
static size_t utf8_len(const unsigned char *s, size_t len)
{
	static const struct {
		unsigned char lo, hi, second_lo, second_hi;
		size_t len;
	} forms[] = {
		{ 0x00, 0x7f, 0, 0, 1 },       { 0xc2, 0xdf, 0x80, 0xbf, 2 },
		{ 0xe0, 0xe0, 0xa0, 0xbf, 3 }, { 0xe1, 0xec, 0x80, 0xbf, 3 },
		{ 0xed, 0xed, 0x80, 0x9f, 3 }, { 0xee, 0xef, 0x80, 0xbf, 3 },
		{ 0xf0, 0xf0, 0x90, 0xbf, 4 }, { 0xf1, 0xf3, 0x80, 0xbf, 4 },
		{ 0xf4, 0xf4, 0x80, 0x8f, 4 },
	};

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		if (s[0] < forms[i].lo || s[0] > forms[i].hi)
			continue;
		if (forms[i].len > len)
			return 0;
		if (forms[i].len > 1 && (s[1] < forms[i].second_lo || s[1] > forms[i].second_hi))
			return 0;
		for (size_t j = 2; j < forms[i].len; j++)
			if (!is_continuation((char)s[j]))
				return 0;
		return forms[i].len;
	}
	return 0;
}

static bool is_utf8(const char *s, size_t len)
{
	while (len > 0) {
		size_t n = utf8_len((const unsigned char *)s, len);

		if (n == 0)
			return false;
		s += n;
		len -= n;
	}
	return true;
}

/* The text of a word is judged here, quoted or not. */
static void word_finish(struct config_lexer *lexer, struct config_token *token, const char *text,
			size_t len)
{
	if (!is_utf8(text, len))
		config_error(lexer->config, token->pos, "this word is not valid UTF-8");
	if (len > CONFIG_WORD_LEN_MAX) {
		config_error(lexer->config, token->pos, "a word of %zu bytes: it may have %d", len,
			     CONFIG_WORD_LEN_MAX);
		/* Enough to know it by in what else may be said about it. */
		len = 32;
	}
	token->text = arena_strndup(lexer->config->arena, text, len);
}

static void read_word(struct config_lexer *lexer, struct config_token *token)
{
	const char *begin = lexer->p;

	while (lexer->p < lexer->end && !ends_word(*lexer->p))
		step(lexer);
	word_finish(lexer, token, begin, (size_t)(lexer->p - begin));
	if (lexer->p < lexer->end && *lexer->p == '#')
		config_warning(lexer->config, here(lexer),
			       "# begins a comment: a word that holds one needs quotes");
}

static void read_quoted(struct config_lexer *lexer, struct config_token *token)
{
	char *text;
	size_t len = 0;
	const char *close;

	step(lexer);
	close = lexer->p;
	while (close < lexer->end && *close != '\n')
		close++;
	text = arena_alloc(lexer->config->arena, (size_t)(close - lexer->p) + 1);
	while (lexer->p < close && *lexer->p != '"') {
		if (*lexer->p == '\\' && lexer->p + 1 < close &&
		    (lexer->p[1] == '"' || lexer->p[1] == '\\'))
			step(lexer);
		if (is_control(*lexer->p))
			complain_byte(lexer);
		else
			text[len++] = *lexer->p;
		step(lexer);
	}
	if (lexer->p < close) {
		step(lexer);
	} else {
		config_error(lexer->config, token->pos, "the quote is not closed on this line");
		if (len > 0 && text[len - 1] == '\r')
			len--;
	}
	token->quoted = true;
	word_finish(lexer, token, text, len);
}

static struct config_token read_token(struct config_lexer *lexer)
{
	struct config_token token = { .kind = TOKEN_END };

	skip_blank(lexer);
	token.pos = here(lexer);
	token.begin = lexer->p;
	if (lexer->p == lexer->end)
		return token;
	switch (*lexer->p) {
	case '{':
		token.kind = TOKEN_OPEN;
		step(lexer);
		break;
	case '}':
		token.kind = TOKEN_CLOSE;
		step(lexer);
		break;
	case ';':
		token.kind = TOKEN_SEMICOLON;
		step(lexer);
		break;
	case '"':
		token.kind = TOKEN_WORD;
		read_quoted(lexer, &token);
		break;
	default: token.kind = TOKEN_WORD; read_word(lexer, &token);
	}
	assert(lexer->p > token.begin);
	return token;
}

const struct config_token *config_lexer_peek(struct config_lexer *lexer)
{
	if (!lexer->has_ahead) {
		lexer->ahead = read_token(lexer);
		lexer->has_ahead = true;
	}
	return &lexer->ahead;
}

struct config_token config_lexer_next(struct config_lexer *lexer)
{
	struct config_token token = *config_lexer_peek(lexer);

	lexer->has_ahead = false;
	return token;
}

/* Reads on from len bytes into the token that was read last. */
static void read_again(struct config_lexer *lexer, const struct config_token *token, size_t len)
{
	lexer->p = token->begin;
	lexer->line = token->pos.line;
	lexer->column = token->pos.column;
	lexer->has_ahead = false;
	while (lexer->p < token->begin + len)
		step(lexer);
}

struct config_token config_lexer_next_key(struct config_lexer *lexer)
{
	struct config_token token = config_lexer_next(lexer);
	size_t len;

	assert(token.kind == TOKEN_WORD);
	len = strcspn(token.text, "=");
	if (token.quoted || len == 0 || token.text[len] == '\0')
		return token;
	token.text = arena_strndup(lexer->config->arena, token.text, len);
	read_again(lexer, &token, len);
	return token;
}

void config_lexer_skip_equals(struct config_lexer *lexer)
{
	struct config_token token = *config_lexer_peek(lexer);

	if (token.kind == TOKEN_WORD && !token.quoted && token.text[0] == '=')
		read_again(lexer, &token, 1);
}
