/* quintain reload: asks, and tells the outcome. */
#include "target/command.h"

#include "target/client.h"

static const struct option reload_options[] = {
	CLIENT_OPTIONS,
	{ 0 },
};

int command_reload(const struct command *command, int argc, char **argv)
{
	struct client_options options = { NULL, NULL };
	struct err err = { "" };
	json_t *answer = NULL, *message;
	int option, code = COMMAND_OK;
	size_t i;

	while ((option = command_option(argc, argv, "c:", reload_options)) != -1)
		if (!client_option(option, &options))
			return command_bad_option(command, argv, reload_options);
	if (optind < argc)
		return command_usage(command, "unexpected %s", argv[optind]);
	if (client_ask(&options, "reload", &answer, &err) < 0)
		return command_fail(command, "%s", err.text);
	json_array_foreach(json_object_get(answer, "messages"), i, message)
		fprintf(stderr, "%s\n", json_string_value(message));
	if (!json_is_true(json_object_get(answer, "ok")))
		code = command_fail(command, "refused, nothing has changed: %s",
				    json_string_value(json_object_get(answer, "error")));
	json_decref(answer);
	return code;
}
