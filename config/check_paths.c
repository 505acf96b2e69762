/* Paths of luns: see check.h. */
#include "config/check.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/job.h"

/* For all paths; the file system of one may hang. */
#define LOOK_MS 2000

/* A lun with a path, and what it leads to. */
struct store {
	struct arena *arena; /* of the configuration */
	const struct config_lun *lun;
	const char *path;  /* canonical, once seen; else as it stands */
	struct look *look; /* under way */
	bool seen;	   /* the rest is known */
	bool folder_exists;
	int code; /* 0, or why stat(2) failed */
	struct stat st;
};

/* ---- a look at a path ---- */

struct look {
	struct job job;
	struct store *store; /* NULL: nobody waits for it any more */
	char *path, *canonical;
	bool folder_exists;
	int code;
	struct stat st;
};

/* The folder that a path is in, without its name. */
static void folder_of(const char *path, char *out, size_t cap)
{
	const char *slash = strrchr(path, '/');

	snprintf(out, cap, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
}

/*
 * The path without symbolic links.  Of a file that does not exist its folder's,
 * and where there is none either the path as it stands.
 */
static char *canonical_path(const char *path)
{
	char real[PATH_MAX], folder[PATH_MAX];
	const char *slash = strrchr(path, '/');
	char *joined;

	if (realpath(path, real))
		return strdup(real);
	folder_of(path, folder, sizeof(folder));
	if (!realpath(folder, real))
		return strdup(path);
	if (asprintf(&joined, "%s/%s", strcmp(real, "/") == 0 ? "" : real,
		     slash ? slash + 1 : path) < 0)
		return NULL;
	return joined;
}

/* On a thread that may hang. */
static void look_run(struct job *job)
{
	struct look *look = container_of(job, struct look, job);
	char folder[PATH_MAX];

	look->code = stat(look->path, &look->st) == 0 ? 0 : errno;
	folder_of(look->path, folder, sizeof(folder));
	look->folder_exists = look->code == 0 || access(folder, F_OK) == 0;
	look->canonical = canonical_path(look->path);
}

static void look_free(struct look *look)
{
	free(look->canonical);
	free(look->path);
	free(look);
}

static void look_done(struct job *job)
{
	struct look *look = container_of(job, struct look, job);
	struct store *store = look->store;

	if (store) {
		store->look = NULL;
		store->seen = true;
		store->folder_exists = look->folder_exists;
		store->code = look->code;
		store->st = look->st;
		if (look->canonical)
			store->path = arena_strdup(store->arena, look->canonical);
	}
	look_free(look);
}

static void look_start(struct jobs *jobs, struct store *store)
{
	struct look *look = calloc(1, sizeof(*look));

	if (look)
		look->path = strdup(store->path);
	if (!look || !look->path) {
		free(look);
		return;
	}
	look->job = (struct job){ .subject = look->path, .run = look_run, .done = look_done };
	look->store = store;
	store->look = look;
	jobs_add(jobs, &look->job);
}

/* Looks at all of them at once, but not where another job hangs already. */
static void stores_look(struct jobs *jobs, struct store *stores, size_t n)
{
	for (size_t i = 0; i < n; i++)
		stores[i].seen = jobs_has(jobs, stores[i].path);
	for (size_t i = 0; i < n; i++)
		if (!stores[i].seen)
			look_start(jobs, &stores[i]);
		else
			stores[i].seen = false;
	jobs_wait(jobs, LOOK_MS);
	for (size_t i = 0; i < n; i++)
		if (stores[i].look)
			stores[i].look->store = NULL;
}

/* ---- one store, one lun ---- */

static int store_compare(const void *a, const void *b)
{
	const struct store *x = *(const struct store *const *)a;
	const struct store *y = *(const struct store *const *)b;
	int order = strcmp(x->path, y->path);

	return order != 0 ? order : x < y ? -1 : x > y;
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

static void check_twice(struct parser *parser, const struct store *stores, size_t n)
{
	const struct store **sorted = arena_alloc(parser->config->arena, n * sizeof(*sorted));

	for (size_t i = 0; i < n; i++)
		sorted[i] = &stores[i];
	if (n > 1)
		qsort(sorted, n, sizeof(*sorted), store_compare);
	for (size_t i = 1; i < n; i++)
		if (strcmp(sorted[i]->path, sorted[i - 1]->path) == 0)
			complain_twice(parser, sorted[i - 1]->lun, sorted[i]->lun);
}

/* ---- what is there ---- */

static void check_missing(struct parser *parser, const struct store *store)
{
	const struct config_lun *lun = store->lun;
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
	else if (!store->folder_exists)
		config_warning(parser->config, lun->path_pos,
			       "%s: its directory does not exist: the LUN is NOT READY until it "
			       "does",
			       path);
}

static void check_seen(struct parser *parser, const struct store *store)
{
	const struct config_lun *lun = store->lun;
	const char *path = lun->backing.path;
	const struct stat *st = &store->st;

	if (store->code == ENOENT || store->code == ENOTDIR)
		check_missing(parser, store);
	else if (store->code != 0)
		config_warning(parser->config, lun->path_pos, "%s cannot be looked at: %s", path,
			       err_name(store->code));
	else if (!S_ISREG(st->st_mode) && !S_ISBLK(st->st_mode))
		config_error(parser->config, lun->path_pos,
			     "%s is %s: a regular file or a block device can be served", path,
			     S_ISDIR(st->st_mode) ? "a directory" : "something else");
	else if (S_ISREG(st->st_mode) && st->st_size == 0 && lun->backing.size == 0)
		config_warning(parser->config, lun->path_pos,
			       "%s is empty and no size is given: the LUN has no capacity", path);
}

void config_check_paths(struct parser *parser)
{
	struct config *config = parser->config;
	struct store *stores;
	size_t n = 0;

	for (const struct config_lun *lun = config->luns; lun; lun = lun->next) {
		n += lun->backing.path != NULL;
		if (lun->nmaps == 0)
			config_warning(config, lun->pos, "lun %s is in no target", lun->name);
	}
	stores = arena_alloc(config->arena, n * sizeof(*stores));
	n = 0;
	for (const struct config_lun *lun = config->luns; lun; lun = lun->next)
		if (lun->backing.path)
			stores[n++] = (struct store){
				.arena = config->arena,
				.lun = lun,
				.path = lun->backing.path,
			};
	if (parser->jobs)
		stores_look(parser->jobs, stores, n);
	check_twice(parser, stores, n);
	for (size_t i = 0; parser->jobs && i < n; i++)
		if (stores[i].seen)
			check_seen(parser, &stores[i]);
		else
			config_warning(config, stores[i].lun->path_pos,
				       "%s cannot be looked at: its file system does not answer",
				       stores[i].lun->backing.path);
}
