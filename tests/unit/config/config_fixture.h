/*
 * Configurations from text, and their messages as text.  No files are read but
 * by config_write() and config_load().
 */
#ifndef TESTS_CONFIG_FIXTURE_H
#define TESTS_CONFIG_FIXTURE_H

#include "config/config.h"

/* Parses text; the caller frees it with config_free(). */
struct config *config_of(const char *text);

/*
 * Compares all errors, or all warnings, of text with expected: one line each,
 * "LINE:COLUMN: TEXT\n".  Prints both when they differ, and fails the test at
 * the caller's line.
 */
#define CHECK_ERRORS(text, expected) check_text(text, CONFIG_ERROR, expected, __LINE__, __FILE__)
#define CHECK_WARNINGS(text, expected) \
	check_text(text, CONFIG_WARNING, expected, __LINE__, __FILE__)
void check_text(const char *text, enum config_severity severity, const char *expected,
		unsigned int line, const char *file);

/* The same for a configuration that is there already. */
#define CHECK_ERRORS_OF(config, expected) \
	check_config(config, CONFIG_ERROR, expected, __LINE__, __FILE__)
#define CHECK_WARNINGS_OF(config, expected) \
	check_config(config, CONFIG_WARNING, expected, __LINE__, __FILE__)
void check_config(const struct config *config, enum config_severity severity, const char *expected,
		  unsigned int line, const char *file);

/* Writes NAME in the scratch directory with that mode; its path, static until
 * the fourth call after. */
const char *config_write(const char *name, const char *text, unsigned int mode);
/* A path in the scratch directory, likewise. */
const char *config_path(const char *name);

#endif
