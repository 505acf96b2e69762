/*
 * What the files of `quintain volume` share.  Main thread.
 */
#ifndef TARGET_VOLUME_COMMAND_H
#define TARGET_VOLUME_COMMAND_H

#include <jansson.h>

#include "base/err.h"
#include "target/client.h"
#include "target/command.h"

enum {
	VOLUME_OPTION_SIZE = CLIENT_OPTION_SOCKET + 1,
	VOLUME_OPTION_BLOCK_SIZE,
	VOLUME_OPTION_RECORD_SIZE,
	VOLUME_OPTION_COMPRESSION,
	VOLUME_OPTION_CHECKSUM,
	VOLUME_OPTION_LAST, /* a file's own begin here */
};

#define VOLUME_OPTIONS_CHANGE                                                     \
	{ "record-size", required_argument, NULL, VOLUME_OPTION_RECORD_SIZE },    \
	{                                                                         \
		"compression", required_argument, NULL, VOLUME_OPTION_COMPRESSION \
	}
#define VOLUME_OPTIONS_NEW                                                           \
	VOLUME_OPTIONS_CHANGE,                                                       \
		{ "block-size", required_argument, NULL, VOLUME_OPTION_BLOCK_SIZE }, \
	{                                                                            \
		"checksum", required_argument, NULL, VOLUME_OPTION_CHECKSUM          \
	}

/* Takes an option of these into the request: 1; 0 when it was none; -EINVAL with
 * a text. */
int volume_option(int option, json_t *request, struct err *err);

/* volume_copy.c */
int volume_import_command(const struct command *command, int argc, char **argv);
int volume_export_command(const struct command *command, int argc, char **argv);

#endif
