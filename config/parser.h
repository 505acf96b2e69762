/*
 * The walk over the words of a configuration: inside config/ only.
 *
 * parse.c reads statements (a key, its arguments, a block where the word has
 * one), knows where each ends, and goes on behind one that is wrong.  The words'
 * functions (sections.h) fill the configuration.  What names something else (an
 * auth-group, a lun) is kept as a reference, as it may be defined later in the
 * file; check.c resolves them at the end.
 *
 *	global.c    the top level		auth.c	 auth-group
 *	portal.c    portal-group		lun.c	 lun
 *	target.c    target			pool.c	 pool
 *	load.c	    files
 *
 * Control thread.
 */
#ifndef CONFIG_PARSER_H
#define CONFIG_PARSER_H

#include "base/job.h"
#include "config/lexer.h"
#include "config/messages.h"
#include "config/sections.h"

/* What was set in a block, and where. */
struct given {
	const char *key;
	const struct option_spec *row; /* NULL for words that are no options */
	const char *text;	       /* the value, for rows */
	struct config_pos pos;	       /* of the value */
	struct given *next;
};

/* A block while it is read. */
struct frame {
	const struct section *section;
	struct config_pos pos; /* of its key; line 0 for a file */
	void *object;	       /* struct config_target and so on */
	struct given *given;   /* the last one first */

	/* of a target: its own auth group, once it has one */
	struct config_auth_group *own_auth;
};

struct statement {
	struct config_token key;
	const struct section_word *word;
	struct config_token args[CONFIG_ARGS_MAX];
	unsigned int nargs;
	bool opens_block; /* the { has been taken */
	struct frame *frame;
	struct config_lexer *lexer;
};

enum name_kind {
	NAME_AUTH_GROUP,
	NAME_PORTAL_GROUP,
	NAME_LUN,
	NAME_TARGET,
	NAME_POOL,
	NAME_PATH,   /* of a pool */
	NAME_VOLUME, /* POOL/NAME, of a lun */
};

struct reference {
	uint8_t kind; /* enum name_kind */
	struct config_token token;
	void (*found)(void *holder, void *object);
	void *holder;
	struct reference *next;
};

/* A target's own words, kept until the global defaults are known. */
struct target_entry {
	struct config_target *target;
	struct given *given;
	struct config_auth_group *own_auth;
	struct target_entry *next;
};

/* A file that is being read, and the one that includes it. */
struct open_file {
	const char *path; /* canonical */
	const struct open_file *includer;
	unsigned int depth;
};

struct parser {
	struct config *config;
	bool no_files;	   /* to be read */
	struct jobs *jobs; /* look at the files of luns; NULL: not looked at */
	void *names;	   /* tsearch(3) tree of struct name */
	struct reference *references;
	struct target_entry *targets;
	const struct open_file *open;
	struct config_lun **luns_end;
	struct config_pool **pools_end;
	struct config_target **targets_end;
	struct target_entry **entries_end;
	struct reference **references_end;
	struct frame top;
};

/* ---- parse.c ---- */

void config_parse_words(struct parser *parser, struct config_lexer *lexer, struct frame *frame);
/* The block of a statement that opens one. */
void config_parse_block(struct parser *parser, const struct statement *statement,
			struct frame *frame);
/* Sets the option KEY of the frame's tables, once.  False: there is none. */
bool config_set_option(struct parser *parser, struct frame *frame, const char *key,
		       const struct config_token *value);
const struct given *config_given(const struct frame *frame, const char *key);
/* The place of KEY's value, or of the block when it was not given. */
struct config_pos config_given_pos(const struct frame *frame, const char *key);
/* A whole number of at most max; false after an error message. */
bool config_number(struct parser *parser, const char *key, const struct config_token *token,
		   uint64_t min, uint64_t max, uint64_t *out);
/* The index of the token in choices (NULL-terminated); -1 after a message. */
int config_choice(struct parser *parser, const char *key, const struct config_token *token,
		  const char *const *choices);
/* A row that has no effect: the warning. */
void config_run_no_effect(struct parser *parser, const struct statement *statement);

/* ---- names.c ---- */

/* False after an error message when the name is taken. */
bool config_name_add(struct parser *parser, enum name_kind kind, const char *name,
		     struct config_pos pos, void *object);
void *config_name_find(struct parser *parser, enum name_kind kind, const char *name);
void config_refer(struct parser *parser, enum name_kind kind, const struct config_token *token,
		  void (*found)(void *holder, void *object), void *holder);
void config_resolve_references(struct parser *parser);
void config_names_release(struct parser *parser);

/* ---- load.c ---- */

void config_parser_init(struct parser *parser, struct config *config, bool no_files);
void config_parser_release(struct parser *parser);
void config_run_include(struct parser *parser, const struct statement *statement);
/* Reads the chap lines of a secret-file into group. */
void config_read_secret_file(struct parser *parser, const struct config_token *path,
			     struct config_auth_group *group);

/* ---- sections ---- */

void config_auth_group_run(struct parser *parser, const struct statement *statement);
void config_portal_group_run(struct parser *parser, const struct statement *statement);
void config_lun_run(struct parser *parser, const struct statement *statement);
void config_pool_run(struct parser *parser, const struct statement *statement);
void config_target_run(struct parser *parser, const struct statement *statement);

/* auth.c; in an auth-group's block and in a target's */
void config_auth_type_run(struct parser *parser, const struct statement *statement);
void config_chap_run(struct parser *parser, const struct statement *statement);
void config_chap_mutual_run(struct parser *parser, const struct statement *statement);
void config_initiator_name_run(struct parser *parser, const struct statement *statement);
void config_initiator_portal_run(struct parser *parser, const struct statement *statement);
/* A group that is not linked into the configuration yet. */
struct config_auth_group *config_auth_group_make(struct parser *parser, const char *name,
						 struct config_pos pos);
void config_auth_group_link(struct parser *parser, struct config_auth_group *group);

/* portal.c */
struct config_portal_group *config_portal_group_make(struct parser *parser, const char *name,
						     struct config_pos pos);
void config_portal_group_link(struct parser *parser, struct config_portal_group *group);
/* Reads "ADDR[:PORT]" into listen; 0 or -EINVAL with what is wrong. */
int config_address_parse(struct arena *arena, const char *text, struct config_listen *listen,
			 struct err *err);

/* lun.c: a lun whose block is still to be read, and what is said about it when
 * that has been done. */
struct config_lun *config_lun_make(struct parser *parser, const char *name, struct config_pos pos);
void config_lun_finish(struct parser *parser, struct frame *frame);

/* pool.c: a lun's words about volumes, when its block has been read. */
void config_volume_finish(struct parser *parser, const struct frame *frame);

/* target.c */
struct target_entry *config_target_make(struct parser *parser, const char *name,
					struct config_pos pos);
void config_target_link(struct parser *parser, struct target_entry *entry);
struct config_lun_map *config_target_map(struct parser *parser, struct config_target *target,
					 uint16_t number, struct config_pos pos);

/* ---- check.c ---- */

/* References, defaults and everything that spans blocks. */
void config_check(struct parser *parser);

#endif
