/* Pools, through the daemon or not: see pool_access.h. */
#include "target/pool_access.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "backing/pool_internal.h"
#include "backing/volume/sync.h"
#include "target/pool_ops.h"

#define MEMORY_SHARE 8 /* of RAM, as the daemon takes it for all pools */
#define MEMORY_MAX   (1ull << 30)

/* ---- the configuration ---- */

int pool_access_config(const struct client_options *client, struct config **out, struct err *err)
{
	const char *file = client->file ? client->file : CONFIG_FILE_DEFAULT;

	*out = NULL;
	if (!client->file && access(file, F_OK) != 0)
		return 0;
	if (access(file, R_OK) != 0)
		return err_set(err, errno, "%s: %s", file, err_name(errno));
	*out = config_load(file, NULL);
	if ((*out)->nerrors == 0)
		return 0;
	config_free(*out);
	*out = NULL;
	return err_set(err, EINVAL, "%s has errors; `quintain check %s` shows them", file, file);
}

static const struct config_pool *config_pool_find(const struct config *config, const char *name)
{
	const struct config_pool *pool = config ? config->pools : NULL;

	while (pool && strcmp(pool->name, name) != 0)
		pool = pool->next;
	return pool;
}

static int path_set(struct pool_access *access, const char *path, struct err *err)
{
	if (snprintf(access->path, sizeof(access->path), "%s", path) < (int)sizeof(access->path))
		return 0;
	return err_set(err, ENAMETOOLONG, "%s: the path is too long", path);
}

/* ---- names ---- */

static int take_volume(struct pool_access *access, char *pool, size_t cap, const char *word,
		       struct err *err)
{
	const char *slash = strrchr(word, '/');

	if (!slash || slash == word || slash[1] == '\0')
		return err_set(err, EINVAL, "%s is not POOL/NAME", word);
	if (strlen(slash + 1) >= sizeof(access->volume) || (size_t)(slash - word) >= cap)
		return err_set(err, ENAMETOOLONG, "%s: the name is too long", word);
	snprintf(pool, cap, "%.*s", (int)(slash - word), word);
	snprintf(access->volume, sizeof(access->volume), "%s", slash + 1);
	return 0;
}

static int take_pool(struct pool_access *access, const char *word, struct err *err)
{
	const struct config_pool *pool;
	int rc;

	if (strchr(word, '/'))
		return path_set(access, word, err);
	if (word[0] == '\0' || strlen(word) >= sizeof(access->name))
		return err_set(err, EINVAL, "\"%s\" is no name of a pool", word);
	snprintf(access->name, sizeof(access->name), "%s", word);
	if (access->client.socket && !access->client.file)
		return 0; /* the daemon knows */
	rc = pool_access_config(&access->client, &access->config, err);
	if (rc)
		return rc;
	pool = config_pool_find(access->config, word);
	if (!pool)
		return 0; /* perhaps the daemon does */
	access->cache_memory = pool->settings.cache_memory;
	return path_set(access, pool->settings.path, err);
}

/* ---- the daemon ---- */

json_t *pool_access_daemon_pools(const struct client_options *client, struct err *err)
{
	json_t *answer = NULL, *pools = NULL;

	if (client_ask(client, "pool-status", &answer, err) == 0)
		pools = json_incref(json_object_get(answer, "pools"));
	if (answer && !pools)
		err_set(err, EPROTO, "the daemon is another version: it knows no pools");
	json_decref(answer);
	return pools;
}

static bool same_file(const char *a, const char *b)
{
	struct stat sa, sb;

	if (strcmp(a, b) == 0)
		return true;
	if (stat(a, &sa) != 0 || stat(b, &sb) != 0)
		return false;
	if (S_ISBLK(sa.st_mode) && S_ISBLK(sb.st_mode))
		return sa.st_rdev == sb.st_rdev;
	return sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}

static bool is_meant(const struct pool_access *access, const json_t *pool)
{
	const char *path = pool_request_text(pool, "path"), *name = pool_request_text(pool, "name");

	if (access->path[0] != '\0')
		return path && same_file(access->path, path);
	return name && strcmp(access->name, name) == 0;
}

static void ask_daemon(struct pool_access *access)
{
	struct err err = { "" };
	json_t *pools = pool_access_daemon_pools(&access->client, &err), *pool;
	const char *problem;
	size_t i;

	if (!pools) {
		snprintf(access->why, sizeof(access->why), "%s", err.text);
		return;
	}
	client_socket(&access->client, access->why, sizeof(access->why), NULL);
	json_array_foreach(pools, i, pool)
	{
		if (!is_meant(access, pool))
			continue;
		problem = pool_request_text(pool, "problem");
		access->online = problem == NULL;
		snprintf(access->name, sizeof(access->name), "%s", pool_request_text(pool, "name"));
		if (access->path[0] == '\0' && pool_request_text(pool, "path"))
			path_set(access, pool_request_text(pool, "path"), NULL);
	}
	json_decref(pools);
}

int pool_access_find(struct pool_access *access, const struct client_options *client,
		     const char *word, bool is_volume, struct err *err)
{
	char pool[PATH_MAX];
	int rc;

	*access = (struct pool_access){ .client = *client };
	if (snprintf(pool, sizeof(pool), "%s", word) >= (int)sizeof(pool))
		return err_set(err, ENAMETOOLONG, "%s: the path is too long", word);
	rc = is_volume ? take_volume(access, pool, sizeof(pool), word, err) : 0;
	if (!rc)
		rc = take_pool(access, pool, err);
	if (rc)
		return rc;
	ask_daemon(access);
	if (access->online || access->path[0] != '\0')
		return 0;
	return err_set(
		err, ENOENT,
		"there is no pool \"%s\" in %s, and no daemon has it; a path of a pool has a "
		"/ in it, such as ./%s",
		pool, access->config ? access->config->file : "a configuration", pool);
}

void pool_access_release(struct pool_access *access)
{
	config_free(access->config);
	access->config = NULL;
}

const char *pool_access_name(const struct pool_access *access)
{
	return access->name[0] != '\0' ? access->name : access->path;
}

int pool_access_refuse(const struct pool_access *access, const char *what, struct err *err)
{
	return err_set(err, EBUSY,
		       "pool %s is served by the daemon at %s: it cannot be %s meanwhile; take it "
		       "and the LUNs of it out of the configuration and reload, or stop the daemon",
		       pool_access_name(access), access->why, what);
}

static int run_online(struct pool_access *access, json_t *request, json_t **answer, struct err *err)
{
	int rc = client_request(&access->client, request, answer, err);

	if (rc || json_is_true(json_object_get(*answer, "ok")))
		return rc;
	err_set(err, EIO, "%s", json_string_value(json_object_get(*answer, "error")));
	json_decref(*answer);
	*answer = NULL;
	return -EIO;
}

/* ---- without it ---- */

static uint64_t memory_share(void)
{
	struct sysinfo info;
	uint64_t share = sysinfo(&info) == 0
				 ? (uint64_t)info.totalram * info.mem_unit / MEMORY_SHARE
				 : 0;

	if (share > MEMORY_MAX)
		return MEMORY_MAX;
	return share > POOL_CACHE_MEMORY_MIN ? share : POOL_CACHE_MEMORY_MIN;
}

int pool_session_open(const struct pool_access *access, bool writes, struct pool_session *session,
		      struct err *err)
{
	struct pool_open_args args = {
		.name = pool_access_name(access),
		.cache_memory = access->cache_memory ? access->cache_memory : memory_share(),
		.threshold = 100,
		.read_only = !writes,
		.quiet = true,
	};
	int rc;

	*session = (struct pool_session){ .fd = -1, .writes = writes };
	rc = pool_file_open(access->path, !writes, &session->fd, err);
	if (rc == -EBUSY)
		return err_set(
			err, EBUSY,
			"%s is in use, and no daemon tells that it serves it (%s): if it is "
			"quintain that has it, -c FILE or --socket PATH names that daemon; "
			"else the pool may just be opened or closed, or another program has it",
			access->path, access->why);
	if (rc)
		return rc;
	session->env = sync_env_open(session->fd, access->path, !writes, err);
	rc = session->env ? pool_open(session->env, &args, &session->engine, err) : -EINVAL;
	if (rc == 0)
		return 0;
	if (session->env)
		err_prefix(err, "%s", access->path);
	sync_env_close(session->env);
	close(session->fd);
	*session = (struct pool_session){ .fd = -1 };
	return rc;
}

int pool_session_close(struct pool_session *session, struct err *err)
{
	int rc = 0;

	if (session->engine) {
		rc = pool_quiesce(session->engine, err);
		pool_close(session->engine);
	}
	sync_env_close(session->env);
	if (session->fd >= 0)
		close(session->fd);
	*session = (struct pool_session){ .fd = -1 };
	return rc;
}

static int run_offline(struct pool_access *access, const struct pool_op *op, json_t *request,
		       json_t **answer, struct err *err)
{
	struct pool_session session;
	struct err closing = { "" };
	int rc = pool_session_open(access, op->writes, &session, err), closed;

	if (rc)
		return rc;
	*answer = json_object();
	rc = op->run(session.engine, request, *answer, err);
	closed = pool_session_close(&session, &closing);
	if (!rc && closed)
		rc = err_set(err, -closed, "%s", closing.text);
	if (rc) {
		json_decref(*answer);
		*answer = NULL;
	}
	return rc;
}

int pool_access_run(struct pool_access *access, const char *name, json_t *request, json_t **answer,
		    struct err *err)
{
	const struct pool_op *op = pool_op_find(name);
	int rc = 0;

	*answer = NULL;
	if (access->volume[0] != '\0')
		json_object_set_new(request, "volume", json_string(access->volume));
	if (access->online) {
		json_object_set_new(request, "command", json_string(name));
		json_object_set_new(request, "pool", json_string(access->name));
		return run_online(access, request, answer, err);
	}
	if (access->config)
		rc = pool_op_judge(op, access->config, access->name, access->volume, err);
	return rc ? rc : run_offline(access, op, request, answer, err);
}
