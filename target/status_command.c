/* quintain status: the daemon's answer as tables. */
#include "target/command.h"

#include <inttypes.h>
#include <string.h>

#include "base/list.h"
#include "base/option.h"
#include "target/client.h"
#include "target/table.h"

#define OPTION_JSON (CLIENT_OPTION_SOCKET + 1)

static const struct option status_options[] = {
	CLIENT_OPTIONS,
	{ "json", no_argument, NULL, OPTION_JSON },
	{ 0 },
};

static const char *text_of(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

static json_int_t number_of(const json_t *object, const char *name)
{
	return json_integer_value(json_object_get(object, name));
}

static void size_cell(struct table *table, const json_t *object, const char *name)
{
	uint64_t bytes = (uint64_t)number_of(object, name);
	char text[64] = "-";

	if (bytes > 0)
		size_format(bytes, text, sizeof(text));
	table_cell(table, "%s", text);
}

/* "3 d 4 h", "5 min 2 s": the two largest units. */
static void age_format(json_int_t s, char *out, size_t cap)
{
	static const struct {
		const char *name;
		json_int_t s;
	} units[] = { { "d", 86400 }, { "h", 3600 }, { "min", 60 }, { "s", 1 } };
	size_t i = 0;

	while (i + 1 < ARRAY_LEN(units) && s < units[i].s)
		i++;
	if (i + 1 == ARRAY_LEN(units))
		snprintf(out, cap, "%lld s", (long long)s);
	else
		snprintf(out, cap, "%lld %s %lld %s", (long long)(s / units[i].s), units[i].name,
			 (long long)(s % units[i].s / units[i + 1].s), units[i + 1].name);
}

static void print_portals(const json_t *list)
{
	static const char *const titles[] = { "ADDRESS", "ADVERTISED", "PORTAL GROUP", "TAG" };
	struct table *table = table_create(titles, ARRAY_LEN(titles), 1u << 3);
	const json_t *one;
	size_t i;

	json_array_foreach(list, i, one)
	{
		const char *advertise = text_of(one, "advertise");

		table_cell(table, "%s", text_of(one, "address"));
		table_cell(table, "%s", advertise[0] ? advertise : "-");
		table_cell(table, "%s", text_of(one, "portal_group"));
		table_cell(table, "%lld", (long long)number_of(one, "tag"));
	}
	puts("Portals");
	table_print(table, stdout);
}

static void print_targets(const json_t *list)
{
	static const char *const titles[] = { "TARGET", "LUN", "NAME" };
	struct table *table = table_create(titles, ARRAY_LEN(titles), 1u << 1);
	const json_t *target, *lun;
	size_t i, k;

	json_array_foreach(list, i, target)
	{
		const json_t *luns = json_object_get(target, "luns");

		if (json_array_size(luns) == 0) {
			table_cell(table, "%s", text_of(target, "name"));
			table_cell(table, "-");
			table_cell(table, "no LUNs");
		}
		json_array_foreach(luns, k, lun)
		{
			table_cell(table, "%s", k == 0 ? text_of(target, "name") : "");
			table_cell(table, "%lld", (long long)number_of(lun, "number"));
			table_cell(table, "%s", text_of(lun, "name"));
		}
	}
	puts("\nTargets");
	table_print(table, stdout);
}

static void print_luns(const json_t *list)
{
	static const char *const titles[] = { "LUN",	"STATE",   "SIZE",   "BLOCK", "READS",
					      "WRITES", "FLUSHES", "ERRORS", "PATH" };
	struct table *table = table_create(titles, ARRAY_LEN(titles), 0xfc);
	const json_t *lun;
	size_t i;

	json_array_foreach(list, i, lun)
	{
		const char *path = text_of(lun, "path");

		table_cell(table, "%s", text_of(lun, "name"));
		table_cell(table, "%s", text_of(lun, "state"));
		size_cell(table, lun, "size_bytes");
		table_cell(table, "%lld", (long long)number_of(lun, "block_size"));
		table_cell(table, "%lld", (long long)number_of(lun, "reads"));
		table_cell(table, "%lld", (long long)number_of(lun, "writes"));
		table_cell(table, "%lld", (long long)number_of(lun, "flushes"));
		/* Not "errors": initiators probe for commands that are not there. */
		table_cell(table, "%lld",
			   (long long)(number_of(lun, "read_errors") +
				       number_of(lun, "write_errors")));
		table_cell(table, "%s", path[0] ? path : "(memory)");
	}
	puts("\nLUNs");
	table_print(table, stdout);
	json_array_foreach(list, i, lun) if (text_of(lun, "problem")[0])
		printf("  %s: %s\n", text_of(lun, "name"), text_of(lun, "problem"));
}

static const char *digests(const json_t *session)
{
	bool header = json_is_true(json_object_get(session, "header_digest"));
	bool data = json_is_true(json_object_get(session, "data_digest"));

	return header && data ? "both" : header ? "header" : data ? "data" : "none";
}

static void print_sessions(const json_t *list)
{
	static const char *const titles[] = { "INITIATOR", "PEER",	"TARGET", "AGE",
					      "REACTOR",   "IN FLIGHT", "WINDOW", "COMMANDS",
					      "READ",	   "WRITTEN",	"DIGESTS" };
	struct table *table = table_create(titles, ARRAY_LEN(titles), 0x3f8);
	const json_t *session;
	char age[64];
	size_t i;

	json_array_foreach(list, i, session)
	{
		const char *target = text_of(session, "target");

		age_format(number_of(session, "age_s"), age, sizeof(age));
		table_cell(table, "%s", text_of(session, "initiator"));
		table_cell(table, "%s", text_of(session, "peer"));
		table_cell(table, "%s", target[0] ? target : "(discovery)");
		table_cell(table, "%s", age);
		table_cell(table, "%lld", (long long)number_of(session, "reactor"));
		table_cell(table, "%lld", (long long)number_of(session, "commands_in_flight"));
		table_cell(table, "%lld", (long long)number_of(session, "window"));
		table_cell(table, "%lld", (long long)number_of(session, "commands"));
		size_cell(table, session, "read_bytes");
		size_cell(table, session, "write_bytes");
		table_cell(table, "%s", digests(session));
	}
	puts("\nSessions");
	table_print(table, stdout);
}

static void print_reactors(const json_t *list)
{
	static const char *const titles[] = { "REACTOR",     "CPU",	"BUSY",	 "ENTERS",
					      "COMPLETIONS", "BUFFERS", "IN USE" };
	struct table *table = table_create(titles, ARRAY_LEN(titles), 0x7f);
	const json_t *reactor;
	size_t i;

	json_array_foreach(list, i, reactor)
	{
		table_cell(table, "%lld", (long long)number_of(reactor, "index"));
		table_cell(table, "%lld", (long long)number_of(reactor, "cpu"));
		table_cell(table, "%lld ms", (long long)number_of(reactor, "busy_ns") / 1000000);
		table_cell(table, "%lld", (long long)number_of(reactor, "enters"));
		table_cell(table, "%lld", (long long)number_of(reactor, "completions"));
		size_cell(table, reactor, "buffer_bytes");
		size_cell(table, reactor, "buffer_bytes_used");
	}
	puts("\nReactors");
	table_print(table, stdout);
}

static void print_status(const json_t *answer)
{
	const char *file = text_of(answer, "file");
	char age[64];

	age_format(number_of(answer, "uptime_s"), age, sizeof(age));
	printf("quintain %s, process %lld, up %s, %s\n\n", text_of(answer, "version"),
	       (long long)number_of(answer, "pid"), age, file[0] ? file : "no configuration file");
	print_portals(json_object_get(answer, "portals"));
	print_targets(json_object_get(answer, "targets"));
	print_luns(json_object_get(answer, "luns"));
	print_sessions(json_object_get(answer, "sessions"));
	print_reactors(json_object_get(answer, "reactors"));
}

int command_status(const struct command *command, int argc, char **argv)
{
	struct client_options options = { NULL, NULL };
	struct err err = { "" };
	json_t *answer = NULL;
	bool json = false;
	int option, code = COMMAND_OK;

	while ((option = command_option(argc, argv, "c:", status_options)) != -1) {
		if (option == OPTION_JSON)
			json = true;
		else if (!client_option(option, &options))
			return command_bad_option(command, argv, status_options);
	}
	if (optind < argc)
		return command_usage(command, "unexpected %s", argv[optind]);
	if (client_ask(&options, "status", &answer, &err) < 0)
		return command_fail(command, "%s", err.text);
	if (!json_is_true(json_object_get(answer, "ok")))
		code = command_fail(command, "%s", text_of(answer, "error"));
	else if (json)
		json_dumpf(answer, stdout, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
	else
		print_status(answer);
	if (json)
		putchar('\n');
	json_decref(answer);
	return code;
}
