/*
 * The configuration file: the dialect of FreeBSD's ctl.conf(5), with our words.
 *
 * Purpose: reads a file whole, judges it whole, and gives one immutable struct
 * config in one arena; a reload parses anew, compares (config_diff) and lets go
 * of the old one.  Knows no sockets and no reactors: addresses stay words here
 * (checked for form), and target/apply.c makes the running objects.
 *
 * Where things are: lexer.c words and positions, parse.c statements and blocks,
 * global.c auth.c portal.c pool.c lun.c target.c the words of each block (one row a
 * word), load.c files, names.c what is defined and referred to, check*.c what can
 * be said only at the end, messages.c how a message is shown, images.c a
 * configuration without a file, diff.c the comparison.
 *
 * To add a word: a row in the table of its block, or where it only fills a struct
 * of a module, a row in that module's *_options table.  docs/quintain.conf.5 is
 * made of these rows and docs/quintain.conf.5.in: `make docs`.
 *
 * Control thread.
 */
#ifndef CONFIG_CONFIG_H
#define CONFIG_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "backing/settings.h"
#include "base/arena.h"
#include "base/job.h"
#include "target/iscsi/settings.h"
#include "target/scsi/settings.h"

/* Where a word stands: for messages, also of later stages (apply.c). */
struct config_pos {
	const char *file;
	uint32_t line, column; /* from 1; line 0: the file as a whole */
};

enum config_severity {
	CONFIG_WARNING,
	CONFIG_ERROR,
};

struct config_message {
	struct config_pos pos;
	uint8_t severity; /* enum config_severity */
	const char *text;
	const char *source; /* the line of the file, without its end, or NULL */
	struct config_message *next;
};

/* auth-type; the same values as enum iscsi_auth_type */
enum config_auth_type {
	CONFIG_AUTH_UNSET,
	CONFIG_AUTH_NONE,
	CONFIG_AUTH_DENY,
	CONFIG_AUTH_CHAP,
	CONFIG_AUTH_CHAP_MUTUAL,
};

struct config_chap {
	struct config_pos pos;
	const char *user, *secret;
	const char *mutual_user, *mutual_secret; /* NULL for chap */
	struct config_chap *next;
};

struct config_word {
	struct config_pos pos;
	const char *text;
	struct config_word *next;
};

struct config_auth_group {
	struct config_pos pos;
	/* Also "default" and "no-authentication"; a target's own: "target IQN". */
	const char *name;
	uint8_t type;			     /* enum config_auth_type, UNSET is resolved by check */
	struct config_pos type_pos;	     /* line 0: not given */
	struct config_chap *chaps;	     /* with those of secret-file */
	struct config_word *initiator_names; /* patterns, lower case */
	struct config_word *initiator_portals; /* "ADDR[/LEN]", [ADDR], checked */
	struct config_auth_group *next;
};

struct config_listen {
	struct config_pos pos;
	const char *host;      /* address or name without brackets; "" is any */
	const char *port;      /* "3260" when not given */
	bool v6only;	       /* the address was written in brackets */
	const char *advertise; /* "ADDR:PORT", or NULL */
	struct config_listen *next;
};

/* The same values as enum iscsi_discovery_filter */
enum config_discovery_filter {
	CONFIG_FILTER_NONE,
	CONFIG_FILTER_PORTAL,
	CONFIG_FILTER_PORTAL_NAME,
	CONFIG_FILTER_PORTAL_NAME_AUTH,
};

struct config_portal_group {
	struct config_pos pos; /* line 0: the predefined one */
	const char *name;
	struct config_listen *listens;			/* may be empty */
	const struct config_auth_group *discovery_auth; /* never NULL after check */
	uint8_t discovery_filter;
	bool discovery_all;
	uint8_t dscp; /* 0..63 */
	uint16_t tag; /* 0: to be chosen (apply.c keeps it stable) */
	struct config_pos tag_pos;
	unsigned int nports; /* how many targets name it */
	struct config_portal_group *next;
};

struct config_pool {
	struct config_pos pos;
	struct config_pos path_pos;
	const char *name;
	struct pool_settings settings;
	struct config_pool *next;
};

struct config_lun {
	struct config_pos pos;
	struct config_pos path_pos; /* of its path, or pos */
	unsigned int nmaps;	    /* how many targets' LUNs it is */
	const char *name;	    /* of a top-level lun; "IQN,lun,N" of one in a target */
	struct backing_settings backing;
	const struct config_pool *pool; /* of backing.volume; or NULL */
	struct scsi_lun_settings scsi;
	struct config_lun *next;
};

struct config_lun_map {
	struct config_pos pos;
	uint16_t number;
	const struct config_lun *lun;
	struct config_lun_map *next;
};

struct config_target_port {
	struct config_pos pos;
	const struct config_portal_group *group;
	const struct config_auth_group *auth; /* never NULL after check */
	struct config_target_port *next;
};

struct config_target {
	struct config_pos pos;
	const char *name; /* lower case */
	const char *alias;
	const struct config_auth_group *auth; /* never NULL after check */
	struct config_target_port *ports;     /* at least one after check */
	struct config_lun_map *luns;	      /* ascending */
	struct iscsi_limits limits;
	struct config_target *next;
};

/* Rows: config_global_options[] (global.c). */
struct config_global {
	uint32_t debug;		    /* 0 info, 1 debug, 2 and more trace */
	uint32_t reactors;	    /* 0: one for each CPU that we may use */
	uint64_t buffer_memory;	    /* bytes of data buffers per reactor */
	uint32_t spin_us;	    /* us to poll before sleeping */
	const char *state_dir;	    /* NULL: the default, see config_state_dir() */
	const char *control_socket; /* NULL: STATE-DIR/control.sock */
	const char *pidfile;	    /* or NULL */
};

extern const struct option_spec config_global_options[];

struct config_source; /* messages.h */

struct config {
	struct arena *arena;
	const char *file;
	struct config_source *sources; /* what was read, the last one first */
	struct config_global global;
	struct iscsi_server_settings server;
	struct iscsi_limits limits; /* defaults of the targets, and discovery */
	struct config_auth_group *auth_groups;
	struct config_portal_group *portal_groups;
	struct config_pool *pools;
	struct config_lun *luns; /* all of them, inline ones too */
	struct config_target *targets;
	struct config_message *messages; /* in the order of the file */
	unsigned int nerrors, nwarnings;
};

/*
 * Reads file and what it includes.  Never NULL: a file that cannot be read is
 * an error message too.  Use it only when nerrors is 0; free it in any case.
 *
 * jobs look at the stores of LUNs, whose file systems may hang: two seconds at
 * most, and not where a job hangs already.  NULL: they are not looked at.
 */
struct config *config_load(const char *file, struct jobs *jobs);

/* The same from memory, for tests and fuzzing; include and secret-file are
 * refused when no_files.  Stores are not looked at. */
struct config *config_parse(const char *name, const char *text, size_t len, bool no_files);

void config_free(struct config *config);

/* Each message as "FILE:LINE:COLUMN: error: TEXT", the line and a caret. */
void config_print_messages(const struct config *config, FILE *out);

/* A configuration without a file, for `quintain serve IMAGE...`. */
struct config_simple {
	const char *const *images;
	unsigned int nimages;
	const char *listen; /* "ADDR:PORT", NULL: 127.0.0.1:3260 */
	const char *iqn;    /* NULL: made from the host's name */
	uint64_t size;	    /* bytes, 0: as they are */
	uint32_t block_size;
	bool read_only;
};
struct config *config_from_images(const struct config_simple *simple, struct jobs *jobs,
				  struct err *err);

/* state-dir as given, or /var/lib/quintain for root, else
 * $XDG_STATE_HOME/quintain or ~/.local/state/quintain. */
int config_state_dir(const struct config *config, char *out, size_t cap, struct err *err);

#endif
