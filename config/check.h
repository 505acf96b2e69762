/*
 * The parts of config_check(): inside config/ only.  Control thread.
 */
#ifndef CONFIG_CHECK_H
#define CONFIG_CHECK_H

#include "config/parser.h"

/* Addresses that two portal groups want (check_listen.c). */
void config_check_listens(struct parser *parser);

/* Paths that two luns want, or that are not what they should be, and luns that
 * no target has (check_paths.c).  Looks at files when there are parser->jobs. */
void config_check_paths(struct parser *parser);

#endif
