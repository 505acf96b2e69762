/*
 * The sections of a configuration: a kind of block, or the top level, as a table
 * of its words and the option tables whose rows it takes.  Read by the parser,
 * and by the manual page's generator.
 *
 * The tables are in global.c, auth.c, portal.c, lun.c and target.c.
 *
 * To add a word: a row in the section's table, with a function.  A word that only
 * sets a field is a row of an option table instead.
 */
#ifndef CONFIG_SECTIONS_H
#define CONFIG_SECTIONS_H

#include <stddef.h>
#include <stdint.h>

#include "base/option.h"

#define CONFIG_ARGS_MAX	   4
#define SECTION_TABLES_MAX 3

struct parser;
struct statement;

enum section_word_flag {
	WORD_ONCE = 1u << 0,	  /* only once in a block */
	WORD_BLOCK = 1u << 1,	  /* a block follows (after min_args; none after max_args
				 * where these differ) */
	WORD_NO_EFFECT = 1u << 2, /* of ctl.conf(5), not ours: skipped with a warning */
};

struct section_word {
	const char *name; /* NULL ends the table */
	uint8_t min_args, max_args;
	uint8_t flags;	   /* enum section_word_flag */
	const char *usage; /* the arguments, for messages: "USER SECRET" */
	void (*run)(struct parser *parser, const struct statement *statement);
};

struct section_table {
	const struct option_spec *rows; /* NULL ends */
	size_t offset;			/* of the struct that rows fill, in the frame's object */
};

struct section {
	const char *name; /* for messages: "target", "the top level" */
	const struct section_word *words;
	struct section_table tables[SECTION_TABLES_MAX + 1];
};

extern const struct section config_section_global, config_section_auth_group,
	config_section_portal_group, config_section_lun, config_section_pool, config_section_target,
	config_section_secret_file;

#endif
