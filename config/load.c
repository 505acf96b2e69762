/* Files: the configuration, what it includes, and secrets: see parser.h. */
#include "config/parser.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "target/iscsi/names.h"

#define FILE_LEN_MAX	  (16u << 20)
#define INCLUDE_DEPTH_MAX 16

/* ---- life ---- */

void config_parser_init(struct parser *parser, struct config *config, bool no_files)
{
	struct config_auth_group *anybody;

	*parser = (struct parser){
		.config = config,
		.no_files = no_files,
		.luns_end = &config->luns,
		.pools_end = &config->pools,
		.targets_end = &config->targets,
		.entries_end = &parser->targets,
		.references_end = &parser->references,
		.top = { .section = &config_section_global, .object = config },
	};
	option_defaults(config_global_options, &config->global);
	option_defaults(iscsi_server_options, &config->server);
	option_defaults(iscsi_limits_options, &config->limits);
	anybody = config_auth_group_make(parser, "no-authentication", (struct config_pos){ 0 });
	anybody->type = CONFIG_AUTH_NONE;
	config_name_add(parser, NAME_AUTH_GROUP, anybody->name, anybody->pos, anybody);
	config_auth_group_link(parser, anybody);
}

void config_parser_release(struct parser *parser)
{
	config_names_release(parser);
}

static struct config *config_make(const char *file)
{
	struct arena *arena = arena_create();
	struct config *config = arena_alloc(arena, sizeof(*config));

	config->arena = arena;
	config->file = arena_strdup(arena, file);
	return config;
}

void config_free(struct config *config)
{
	if (config)
		arena_destroy(config->arena);
}

/* ---- reading ---- */

/* The whole file in the arena; 0 or -errno.  Not NUL-terminated. */
static int read_all(struct arena *arena, int fd, const char **text, size_t *len)
{
	size_t cap = 64u << 10, used = 0;
	char *buffer = arena_alloc(arena, cap);

	for (;;) {
		ssize_t n = read(fd, buffer + used, cap - used);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		used += (size_t)n;
		if (used < cap)
			continue;
		if (cap >= FILE_LEN_MAX)
			return -EFBIG;
		char *larger = arena_alloc(arena, 2 * cap);

		memcpy(larger, buffer, used);
		buffer = larger;
		cap *= 2;
	}
	*text = buffer;
	*len = used;
	return 0;
}

/* Opens and reads path; its mode in *st.  0 or -errno. */
static int read_file(struct arena *arena, const char *path, const char **text, size_t *len,
		     struct stat *st)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int rc;

	if (fd < 0)
		return -errno;
	rc = fstat(fd, st) == 0 ? 0 : -errno;
	if (rc == 0 && S_ISDIR(st->st_mode))
		rc = -EISDIR;
	if (rc == 0)
		rc = read_all(arena, fd, text, len);
	close(fd);
	return rc;
}

/* A path that is not absolute is meant from the folder of the file that names it. */
static const char *path_beside(struct parser *parser, const char *file, const char *path)
{
	const char *slash = strrchr(file, '/');
	size_t folder_len = slash ? (size_t)(slash - file) + 1 : 0;
	size_t len = strlen(path);
	char *joined;

	if (path[0] == '/' || folder_len == 0)
		return path;
	joined = arena_alloc(parser->config->arena, folder_len + len + 1);
	memcpy(joined, file, folder_len);
	memcpy(joined + folder_len, path, len);
	return joined;
}

/* ---- secrets and who can read them ---- */

/* Chap entries that were written in this very file. */
static const struct config_chap *secret_in(const struct config *config, const char *file)
{
	for (const struct config_auth_group *g = config->auth_groups; g; g = g->next)
		for (const struct config_chap *chap = g->chaps; chap; chap = chap->next)
			if (chap->pos.file == file)
				return chap;
	return NULL;
}

static void warn_readable(struct parser *parser, const char *file, const struct stat *st)
{
	const struct config_chap *chap;

	if (!(st->st_mode & S_IROTH))
		return;
	chap = secret_in(parser->config, file);
	if (chap)
		config_warning(parser->config, chap->pos,
			       "everybody on this machine can read this file and the secrets in "
			       "it: chmod o-r, or put them into a secret-file");
}

void config_read_secret_file(struct parser *parser, const struct config_token *path,
			     struct config_auth_group *group)
{
	struct config *config = parser->config;
	struct config_lexer lexer;
	struct frame frame = { .section = &config_section_secret_file, .object = group };
	const char *file, *text;
	size_t len;
	struct stat st;
	int rc;

	if (parser->no_files) {
		config_error(config, path->pos, "secret-file: no files are read here");
		return;
	}
	file = path_beside(parser, path->pos.file, path->text);
	rc = read_file(config->arena, file, &text, &len, &st);
	if (rc != 0) {
		config_error(config, path->pos, "secret-file: %s: %s", file, err_name(-rc));
		return;
	}
	if (st.st_mode & (S_IROTH | S_IWOTH)) {
		config_error(config, path->pos,
			     "secret-file: others can read or write %s (mode %04o): chmod o-rw",
			     file, st.st_mode & 07777);
		return;
	}
	config_source_add(config, file, text, len);
	config_lexer_init(&lexer, config, file, text, len);
	config_parse_words(parser, &lexer, &frame);
}

/* ---- the configuration and what it includes ---- */

static void parse_text(struct parser *parser, const char *file, const char *text, size_t len)
{
	struct config_lexer lexer;

	config_source_add(parser->config, file, text, len);
	config_lexer_init(&lexer, parser->config, file, text, len);
	config_parse_words(parser, &lexer, &parser->top);
}

/* Reads file into the top level; errors of opening it stand at pos. */
static void parse_file(struct parser *parser, const char *file, struct config_pos pos)
{
	struct open_file open = {
		.includer = parser->open,
		.depth = parser->open ? parser->open->depth + 1 : 0,
	};
	char canonical[PATH_MAX];
	const char *text;
	size_t len;
	struct stat st;
	int rc;

	if (!realpath(file, canonical))
		snprintf(canonical, sizeof(canonical), "%s", file);
	open.path = canonical;
	for (const struct open_file *o = open.includer; o; o = o->includer) {
		if (strcmp(o->path, canonical) == 0) {
			config_error(parser->config, pos, "include: %s includes itself", file);
			return;
		}
	}
	if (open.depth > INCLUDE_DEPTH_MAX) {
		config_error(parser->config, pos, "include: more than %d files within each other",
			     INCLUDE_DEPTH_MAX);
		return;
	}
	rc = read_file(parser->config->arena, file, &text, &len, &st);
	if (rc != 0) {
		config_error(parser->config, pos, "%s%s%s", open.includer ? file : "",
			     open.includer ? ": " : "", err_name(-rc));
		return;
	}
	parser->open = &open;
	parse_text(parser, file, text, len);
	parser->open = open.includer;
	warn_readable(parser, file, &st);
}

static bool is_pattern(const char *path)
{
	return strpbrk(path, "*?[") != NULL;
}

/* A folder that is not there has no files, as one that is empty. */
static int glob_error(const char *path, int code)
{
	(void)path;
	return code != ENOENT && code != ENOTDIR;
}

void config_run_include(struct parser *parser, const struct statement *s)
{
	const struct config_token *path = &s->args[0];
	const char *pattern;
	glob_t found = { 0 };
	int rc;

	if (parser->no_files) {
		config_error(parser->config, path->pos, "include: no files are read here");
		return;
	}
	pattern = path_beside(parser, path->pos.file, path->text);
	if (!is_pattern(path->text)) {
		parse_file(parser, pattern, path->pos);
		return;
	}
	rc = glob(pattern, 0, glob_error, &found);
	if (rc != 0 && rc != GLOB_NOMATCH)
		config_error(parser->config, path->pos, "include: %s cannot be read", pattern);
	for (size_t i = 0; rc == 0 && i < found.gl_pathc; i++)
		parse_file(parser, arena_strdup(parser->config->arena, found.gl_pathv[i]),
			   path->pos);
	globfree(&found);
}

static void finish(struct parser *parser)
{
	config_check(parser);
	config_sort_messages(parser->config);
	config_parser_release(parser);
}

struct config *config_load(const char *file, struct jobs *jobs)
{
	struct config *config = config_make(file);
	struct parser parser;

	config_parser_init(&parser, config, false);
	parser.jobs = jobs;
	parse_file(&parser, config->file, (struct config_pos){ .file = config->file });
	finish(&parser);
	return config;
}

struct config *config_parse(const char *name, const char *text, size_t len, bool no_files)
{
	struct config *config = config_make(name);
	char *copy = arena_alloc(config->arena, len + 1);
	struct parser parser;

	if (len > 0)
		memcpy(copy, text, len);
	config_parser_init(&parser, config, no_files);
	parse_text(&parser, config->file, copy, len);
	finish(&parser);
	return config;
}
