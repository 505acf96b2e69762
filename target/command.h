/*
 * Subcommands of the program.
 *
 * A command is a row of commands[] (commands.c): its name, one line for
 * `quintain --help`, its whole --help text, and what it does.  To add one: a
 * function in a file of its own, a row, and a section in docs/quintain.8 (a
 * test compares the manual page with the --help texts).  A command that has
 * commands of its own (`quintain pool create`) names their table instead of a
 * function; their names are "pool create" and so on, in the table of its file.
 *
 * Main thread.
 */
#ifndef TARGET_COMMAND_H
#define TARGET_COMMAND_H

#include <getopt.h>
#include <stdio.h>

enum exit_code {
	COMMAND_OK = 0,
	COMMAND_FAILED = 1, /* said why on stderr */
	COMMAND_USAGE = 2,  /* wrong words on the command line */
};

struct command {
	const char *name;
	const char *summary; /* one line, no full stop */
	const char *help;    /* "usage: ..." and the options */
	/* argv[0] is the command's name; returns an enum exit_code. */
	int (*run)(const struct command *command, int argc, char **argv);
	const struct command *subcommands; /* ends with a NULL name; run is NULL then */
};

extern const struct command commands[]; /* ends with a NULL name */

#define CONFIG_FILE_DEFAULT "/etc/quintain/quintain.conf"

/* Runs `quintain ARGS`; argv[0] is the program. */
int command_main(int argc, char **argv);

/* "quintain NAME: TEXT" and where help is, on stderr; returns COMMAND_USAGE. */
int command_usage(const struct command *command, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* "quintain NAME: TEXT" on stderr; returns COMMAND_FAILED. */
int command_fail(const struct command *command, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* getopt_long(3) without its own messages; options end with a zero row. */
int command_option(int argc, char **argv, const char *short_options, const struct option *options);
/* What getopt_long() refused, in our words; returns COMMAND_USAGE. */
int command_bad_option(const struct command *command, char **argv, const struct option *options);

int command_serve(const struct command *command, int argc, char **argv);   /* serve.c */
int command_check(const struct command *command, int argc, char **argv);   /* check.c */
int command_status(const struct command *command, int argc, char **argv);  /* status_command.c */
int command_reload(const struct command *command, int argc, char **argv);  /* reload_command.c */
int command_version(const struct command *command, int argc, char **argv); /* check.c */

extern const struct command pool_commands[];   /* pool_command.c */
extern const struct command volume_commands[]; /* volume_command.c */

#endif
