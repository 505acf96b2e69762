/* quintain pool create, status, check, grow. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backing/pool_internal.h"
#include "base/option.h"
#include "target/command.h"
#include "target/control.h"
#include "target/pool_access.h"
#include "target/pool_ops.h"
#include "target/pool_print.h"

/* The least, as the configuration has it. */
#define POOL_SIZE_MIN (16ull << 20)

enum {
	OPTION_JSON = CLIENT_OPTION_SOCKET + 1,
	OPTION_SIZE_OF,
	OPTION_FORCE,
	OPTION_QUICK,
	OPTION_DEEP,
};

/* ---- create ---- */

static const struct option create_options[] = {
	{ "size", required_argument, NULL, OPTION_SIZE_OF },
	{ "force", no_argument, NULL, OPTION_FORCE },
	{ 0 },
};

static int create_at(const char *path, uint64_t size, bool force, struct err *err)
{
	struct pool_settings settings = { .path = path, .size = size };
	struct stat st;

	if (stat(path, &st) != 0 && errno == ENOENT)
		return size ? pool_file_create(&settings, err)
			    : err_set(err, EINVAL,
				      "%s does not exist: --size says how large it is "
				      "to be",
				      path);
	return pool_file_take(path, size, force, err);
}

static int pool_create_command(const struct command *command, int argc, char **argv)
{
	uint64_t size = 0;
	bool force = false;
	struct err err;
	int option;

	while ((option = command_option(argc, argv, "", create_options)) != -1) {
		if (option == OPTION_FORCE)
			force = true;
		else if (option != OPTION_SIZE_OF)
			return command_bad_option(command, argv, create_options);
		else if (size_parse(optarg, &size) != 0 || size < POOL_SIZE_MIN)
			return command_usage(command, "--size %s is not a size of 16M or more",
					     optarg);
	}
	if (argc - optind != 1)
		return command_usage(command, "one PATH is expected");
	if (create_at(argv[optind], size, force, &err) != 0)
		return command_fail(command, "%s", err.text);
	return COMMAND_OK;
}

/* ---- status ---- */

static const struct option status_options[] = {
	CLIENT_OPTIONS,
	{ "json", no_argument, NULL, OPTION_JSON },
	{ 0 },
};

/* The status of one pool, added to the list; what is wrong with it is in it. */
static void status_add(const struct client_options *client, const char *word, json_t *list)
{
	json_t *request = json_object(), *answer = NULL, *pool = json_object();
	struct pool_access access;
	struct err err = { "" };
	int rc = pool_access_find(&access, client, word, false, &err);

	if (rc == 0)
		rc = pool_access_run(&access, "pool-info", request, &answer, &err);
	json_object_set_new(
		pool, "name",
		control_text(pool_access_name(&access)[0] ? pool_access_name(&access) : word));
	json_object_set_new(pool, "path", control_text(access.path));
	json_object_set_new(pool, "daemon", json_boolean(access.online));
	json_object_set_new(pool, "problem", rc ? control_text(err.text) : json_null());
	json_object_del(answer, "ok");
	json_object_update_missing(pool, answer);
	json_array_append_new(list, pool);
	json_decref(answer);
	json_decref(request);
	pool_access_release(&access);
}

/* All that the configuration, or else the daemon, has. */
static int status_all(const struct client_options *client, json_t *list, struct err *err)
{
	json_t *pools, *pool;
	struct config *config = NULL;
	size_t i;
	int rc = client->socket ? 0 : pool_access_config(client, &config, err);

	if (rc)
		return rc;
	if (config) {
		for (const struct config_pool *c = config->pools; c; c = c->next)
			status_add(client, c->name, list);
		config_free(config);
		return 0;
	}
	pools = pool_access_daemon_pools(client, err);
	if (!pools)
		return -ENOENT;
	json_array_foreach(pools, i, pool)
		status_add(client, pool_request_text(pool, "name"), list);
	json_decref(pools);
	return 0;
}

static bool has_problem(const json_t *list)
{
	const json_t *pool;
	size_t i;

	json_array_foreach(list, i, pool) if (pool_request_text(pool, "problem")) return true;
	return false;
}

static int pool_status_command(const struct command *command, int argc, char **argv)
{
	struct client_options client = { NULL, NULL };
	json_t *list;
	struct err err;
	bool json = false;
	int option, code;

	while ((option = command_option(argc, argv, "c:", status_options)) != -1) {
		if (option == OPTION_JSON)
			json = true;
		else if (!client_option(option, &client))
			return command_bad_option(command, argv, status_options);
	}
	list = json_array();
	if (optind == argc && status_all(&client, list, &err) != 0) {
		json_decref(list);
		return command_fail(command, "%s", err.text);
	}
	for (; optind < argc; optind++)
		status_add(&client, argv[optind], list);
	code = has_problem(list) ? COMMAND_FAILED : COMMAND_OK;
	if (json)
		print_json(json_pack("{s:O}", "pools", list));
	else
		print_pools(list);
	json_decref(list);
	return code;
}

/* ---- check ---- */

static const struct option check_options[] = {
	CLIENT_OPTIONS,
	{ "quick", no_argument, NULL, OPTION_QUICK },
	{ "deep", no_argument, NULL, OPTION_DEEP },
	{ 0 },
};

static void say_fault(void *arg, const char *line)
{
	(void)arg;
	puts(line);
}

/* Faults, or -errno with a text; a pool that had to be opened read-only has one. */
static int check_run(const struct pool_access *access, enum pool_check_depth depth, struct err *err)
{
	struct pool_check_report report = { .say = say_fault };
	struct pool_session session;
	struct pool_info info;
	int rc = pool_session_open(access, false, &session, err);

	if (rc)
		return rc;
	rc = pool_quiesce(session.engine, err);
	if (!rc)
		rc = pool_check(session.engine, depth, &report, err);
	pool_info(session.engine, &info);
	if (!rc && report.nerrors > 0)
		rc = 1;
	if (rc >= 0)
		printf("%s: %llu fault%s; %u volume%s, %llu map pages, %llu records, %llu MiB "
		       "read\n",
		       pool_access_name(access), (unsigned long long)report.nerrors,
		       report.nerrors == 1 ? "" : "s", info.nvolumes, info.nvolumes == 1 ? "" : "s",
		       (unsigned long long)report.nleaves, (unsigned long long)report.nrecords,
		       (unsigned long long)(report.bytes_read >> 20));
	pool_session_close(&session, NULL);
	return rc;
}

static int pool_check_command(const struct command *command, int argc, char **argv)
{
	enum pool_check_depth depth = POOL_CHECK_FULL;
	struct client_options client = { NULL, NULL };
	struct pool_access access;
	struct err err;
	int option, rc;

	while ((option = command_option(argc, argv, "c:", check_options)) != -1) {
		if (option == OPTION_QUICK)
			depth = POOL_CHECK_QUICK;
		else if (option == OPTION_DEEP)
			depth = POOL_CHECK_DEEP;
		else if (!client_option(option, &client))
			return command_bad_option(command, argv, check_options);
	}
	if (argc - optind != 1)
		return command_usage(command, "one POOL is expected");
	rc = pool_access_find(&access, &client, argv[optind], false, &err);
	if (!rc && access.online)
		rc = pool_access_refuse(&access, "checked", &err);
	if (!rc)
		rc = check_run(&access, depth, &err);
	pool_access_release(&access);
	if (rc < 0)
		return command_fail(command, "%s", err.text);
	return rc > 0 ? COMMAND_FAILED : COMMAND_OK;
}

/* ---- grow ---- */

static const struct option grow_options[] = {
	CLIENT_OPTIONS,
	{ 0 },
};

static int pool_grow_command(const struct command *command, int argc, char **argv)
{
	struct client_options client = { NULL, NULL };
	json_t *request, *answer = NULL;
	struct pool_access access;
	struct err err;
	uint64_t size;
	int option, rc;

	while ((option = command_option(argc, argv, "c:", grow_options)) != -1)
		if (!client_option(option, &client))
			return command_bad_option(command, argv, grow_options);
	if (argc - optind != 2)
		return command_usage(command, "POOL and SIZE are expected");
	if (size_parse(argv[optind + 1], &size) != 0)
		return command_usage(command, "%s is not a size such as 100G", argv[optind + 1]);
	request = json_pack("{s:I}", "size_bytes", (json_int_t)size);
	rc = pool_access_find(&access, &client, argv[optind], false, &err);
	if (!rc)
		rc = pool_access_run(&access, "pool-grow", request, &answer, &err);
	json_decref(request);
	json_decref(answer);
	pool_access_release(&access);
	return rc ? command_fail(command, "%s", err.text) : COMMAND_OK;
}

#define POOL_HELP "POOL is a name of the configuration, or a path with a / in it.\n"

const struct command pool_commands[] = {
	{
		.name = "pool create",
		.summary = "make a pool",
		.help = "usage: quintain pool create PATH [--size SIZE] [--force]\n"
			"\n"
			"Makes a pool in a file, which takes space on its host as it is used, or "
			"on a block\n"
			"device.  What holds something already is refused.\n"
			"\n"
			"      --size SIZE          such as 100G; of a device or file that is "
			"there: not all\n"
			"                           of it\n"
			"      --force              destroy what is there\n"
			"  -h, --help               this text\n",
		.run = pool_create_command,
	},
	{
		.name = "pool status",
		.summary = "show what pools hold and how full they are",
		.help = "usage: quintain pool status [POOL]... [--json] [--socket PATH | -c FILE]\n"
			"\n"
			"Shows the pools named, or all of the configuration.  " POOL_HELP
			"Exits with 1 when one of them cannot be had.\n"
			"\n"
			"      --json               for scripts: {\"pools\": [...]}\n"
			"      --socket PATH        the control socket of the daemon\n"
			"  -c, --config FILE        the configuration (" CONFIG_FILE_DEFAULT ")\n"
			"  -h, --help               this text\n",
		.run = pool_status_command,
	},
	{
		.name = "pool check",
		.summary = "look for damage",
		.help = "usage: quintain pool check POOL [--quick | --deep] [-c FILE]\n"
			"\n"
			"Reads the map and the log and shows each fault in one line; exits with 1 "
			"when there\n"
			"is one.  Changes nothing.  A pool that a daemon serves is "
			"refused.\n" POOL_HELP "\n"
			"      --quick              roots and tables only\n"
			"      --deep               also every record: all data is read\n"
			"      --socket PATH        the control socket of the daemon\n"
			"  -c, --config FILE        the configuration (" CONFIG_FILE_DEFAULT ")\n"
			"  -h, --help               this text\n",
		.run = pool_check_command,
	},
	{
		.name = "pool grow",
		.summary = "make a pool larger",
		.help = "usage: quintain pool grow POOL SIZE [--socket PATH | -c FILE]\n"
			"\n"
			"SIZE is what it has then, such as 200G.  A pool is never made "
			"smaller.\n" POOL_HELP "\n"
			"      --socket PATH        the control socket of the daemon\n"
			"  -c, --config FILE        the configuration (" CONFIG_FILE_DEFAULT ")\n"
			"  -h, --help               this text\n",
		.run = pool_grow_command,
	},
	{ .name = NULL },
};
