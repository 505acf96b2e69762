/* Paths of luns: see check.h. */
#include "config/check.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- one store, one lun ---- */

struct store {
	const char *path;
	const struct config_lun *lun;
	size_t order;
};

/*
 * The path without symbolic links.  Of a file that does not exist its folder's,
 * and where there is none either the path as it stands.
 */
static const char *canonical_path(struct arena *arena, const char *path)
{
	char real[PATH_MAX], folder[PATH_MAX];
	const char *slash = strrchr(path, '/');
	struct err joined;

	if (realpath(path, real))
		return arena_strdup(arena, real);
	snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) + 1 : 1,
		 slash ? path : ".");
	if (!realpath(folder, real))
		return path;
	if (snprintf(joined.text, sizeof(joined.text), "%s/%s", strcmp(real, "/") == 0 ? "" : real,
		     slash ? slash + 1 : path) >= (int)sizeof(joined.text))
		return path;
	return arena_strdup(arena, joined.text);
}

static int store_compare(const void *a, const void *b)
{
	const struct store *x = a, *y = b;
	int order = strcmp(x->path, y->path);

	if (order != 0)
		return order;
	return x->order < y->order ? -1 : x->order > y->order;
}

static void complain_twice(struct parser *parser, const struct config_lun *first,
			   const struct config_lun *again)
{
	if (again->path_pos.line == 0) {
		config_error(parser->config, again->path_pos, "%s is given twice",
			     again->backing.path);
		return;
	}
	config_error(parser->config, again->path_pos,
		     "path %s is already that of lun %s at %s: define it once, as lun NAME { } at "
		     "the top level, and let each target have it by lun NUMBER NAME",
		     again->backing.path, first->name,
		     config_place(parser->config, first->path_pos));
}

static void check_twice(struct parser *parser)
{
	struct store *stores;
	size_t n = 0, i = 0;

	for (const struct config_lun *lun = parser->config->luns; lun; lun = lun->next)
		n += lun->backing.path != NULL;
	stores = arena_alloc(parser->config->arena, n * sizeof(*stores));
	for (const struct config_lun *lun = parser->config->luns; lun; lun = lun->next) {
		const char *path = lun->backing.path;

		if (!path)
			continue;
		if (!parser->no_files)
			path = canonical_path(parser->config->arena, path);
		stores[i] = (struct store){ path, lun, i };
		i++;
	}
	if (n > 1)
		qsort(stores, n, sizeof(*stores), store_compare);
	for (i = 1; i < n; i++)
		if (strcmp(stores[i].path, stores[i - 1].path) == 0)
			complain_twice(parser, stores[i - 1].lun, stores[i].lun);
}

/* ---- what is there ---- */

static bool folder_exists(const char *path)
{
	const char *slash = strrchr(path, '/');
	char folder[PATH_MAX];

	if (!slash)
		return true;
	snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path) + 1, path);
	return access(folder, F_OK) == 0;
}

static void check_missing(struct parser *parser, const struct config_lun *lun)
{
	const char *path = lun->backing.path;

	if (strncmp(path, "/dev/", 5) == 0)
		config_warning(parser->config, lun->path_pos,
			       "%s does not exist: the LUN is NOT READY until it does (no file "
			       "is made below /dev)",
			       path);
	else if (lun->backing.size == 0)
		config_warning(parser->config, lun->path_pos,
			       "%s does not exist and no size is given to make it: the LUN is "
			       "NOT READY until it appears",
			       path);
	else if (lun->backing.read_only)
		config_warning(parser->config, lun->path_pos,
			       "%s does not exist, and none is made for read-only yes: the LUN "
			       "is NOT READY until it appears",
			       path);
	else if (!folder_exists(path))
		config_warning(parser->config, lun->path_pos,
			       "%s: its directory does not exist: the LUN is NOT READY until it "
			       "does",
			       path);
}

static void check_store_file(struct parser *parser, const struct config_lun *lun)
{
	const char *path = lun->backing.path;
	struct stat st;

	if (stat(path, &st) != 0) {
		if (errno == ENOENT || errno == ENOTDIR)
			check_missing(parser, lun);
		else
			config_warning(parser->config, lun->path_pos, "%s cannot be looked at: %s",
				       path, err_name(errno));
		return;
	}
	if (!S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode))
		config_error(parser->config, lun->path_pos,
			     "%s is %s: a regular file or a block device can be served", path,
			     S_ISDIR(st.st_mode) ? "a directory" : "something else");
	else if (S_ISREG(st.st_mode) && st.st_size == 0 && lun->backing.size == 0)
		config_warning(parser->config, lun->path_pos,
			       "%s is empty and no size is given: the LUN has no capacity", path);
}

void config_check_paths(struct parser *parser)
{
	check_twice(parser);
	for (const struct config_lun *lun = parser->config->luns; lun; lun = lun->next) {
		if (lun->nmaps == 0)
			config_warning(parser->config, lun->pos, "lun %s is in no target",
				       lun->name);
		if (lun->backing.path && !parser->no_files)
			check_store_file(parser, lun);
	}
}
