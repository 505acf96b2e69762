/* The words of the top level: see parser.h. */
#include "config/parser.h"

#define GLOBAL(name) .offset = offsetof(struct config_global, name)

const struct option_spec config_global_options[] = {
	{ .key = "debug",
	  .type = OPTION_UINT,
	  .reload = RELOAD_LIVE,
	  GLOBAL(debug),
	  .def = "0",
	  .summary = "how much is logged",
	  .doc = "0: sessions, reloads, and what is not served as asked. 1: negotiations and "
		 "errors that initiators expect, too. 2 and more: each PDU." },
	{ .key = "reactors",
	  .type = OPTION_UINT,
	  .reload = RELOAD_RESTART,
	  GLOBAL(reactors),
	  .def = "0",
	  .max = 256,
	  .summary = "threads that serve connections; 0: one for each CPU",
	  .doc = "Each has a CPU of its own, of those that the process may use, and keeps the "
		 "sessions that it was given." },
	{ .key = "buffer-memory",
	  .type = OPTION_SIZE,
	  .reload = RELOAD_RESTART,
	  GLOBAL(buffer_memory),
	  .def = "128M",
	  .min = 64u << 20,
	  .max = UINT64_C(1) << 40,
	  .unit = "bytes",
	  .summary = "memory for the data of commands, for each reactor",
	  .doc = "Set aside when the daemon starts and taken from the machine as it is used. "
		 "When it runs low, sockets are not read until some is free: commands wait, none "
		 "fails." },
	{ .key = "spin-us",
	  .type = OPTION_UINT,
	  .reload = RELOAD_RESTART,
	  GLOBAL(spin_us),
	  .def = "0",
	  .max = 1000000,
	  .unit = "us",
	  .summary = "time that a reactor looks for work before it sleeps",
	  .doc = "About 50 shortens the answer to a single command, and costs the CPU that the "
		 "daemon then never leaves idle between commands." },
	{ .key = "state-dir",
	  .type = OPTION_STRING,
	  .reload = RELOAD_RESTART,
	  GLOBAL(state_dir),
	  .min = 1,
	  .max = 4000,
	  .summary = "directory of what must outlive a restart",
	  .doc = "The identities of the disks and the numbers of the ports. Default: "
		 "/var/lib/quintain for root, else quintain below $XDG_STATE_HOME or "
		 "~/.local/state. It is made when it is missing, and daemons may share it." },
	{ .key = "control-socket",
	  .type = OPTION_STRING,
	  .reload = RELOAD_RESTART,
	  GLOBAL(control_socket),
	  .min = 1,
	  .max = 107,
	  .summary = "UNIX socket for quintain status and quintain reload",
	  .doc = "Default: control.sock in the state directory. Only its owner can use it." },
	{ .key = "pidfile",
	  .type = OPTION_STRING,
	  .reload = RELOAD_RESTART,
	  GLOBAL(pidfile),
	  .min = 1,
	  .max = 4095,
	  .summary = "file that holds the daemon's process number while it runs",
	  .doc = NULL },
	OPTION_END,
};

static const struct section_word global_words[] = {
	{ "auth-group", 1, 1, WORD_BLOCK, "NAME { ... }", config_auth_group_run },
	{ "portal-group", 1, 1, WORD_BLOCK, "NAME { ... }", config_portal_group_run },
	{ "pool", 1, 1, WORD_BLOCK, "NAME { ... }", config_pool_run },
	{ "lun", 1, 1, WORD_BLOCK, "NAME { ... }", config_lun_run },
	{ "target", 1, 1, WORD_BLOCK, "NAME { ... }", config_target_run },
	{ "include", 1, 1, 0, "PATH", config_run_include },
	{ "maxproc", 1, 1, WORD_NO_EFFECT, "NUMBER", config_run_no_effect },
	{ "isns-server", 1, 1, WORD_NO_EFFECT, "ADDRESS[:PORT]", config_run_no_effect },
	{ "isns-period", 1, 1, WORD_NO_EFFECT, "SECONDS", config_run_no_effect },
	{ "isns-timeout", 1, 1, WORD_NO_EFFECT, "SECONDS", config_run_no_effect },
	{ "transport-group", 1, 1, WORD_BLOCK | WORD_NO_EFFECT, "NAME { ... }",
	  config_run_no_effect },
	{ "controller", 1, 1, WORD_BLOCK | WORD_NO_EFFECT, "NAME { ... }", config_run_no_effect },
	{ .name = NULL },
};

const struct section config_section_global = {
	.name = "the top level",
	.words = global_words,
	.tables = {
		{ config_global_options, offsetof(struct config, global) },
		{ iscsi_server_options, offsetof(struct config, server) },
		{ iscsi_limits_options, offsetof(struct config, limits) },
	},
};
