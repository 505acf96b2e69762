/*
 * Option rows: what a setting is called, what it may be, and where it goes.
 *
 * Purpose: one row gives parsing, bounds, the messages of `check` ("did you
 * mean"), the comparison in a reload, and the manual page.  A module that has
 * settings keeps a table of rows beside the struct that they fill and declares
 * it in its header; config/ lists the tables.
 *
 * To add a setting: one field in the struct and one row in its table.
 *
 * Pure functions; any thread.
 */
#ifndef BASE_OPTION_H
#define BASE_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum option_type {
	OPTION_BOOL,   /* bool: yes|no, on|off, true|false, 1|0 */
	OPTION_UINT,   /* uint32_t, min..max; unit "bytes" takes suffixes too */
	OPTION_SIZE,   /* uint64_t bytes; suffixes K M G T P are powers of 1024 */
	OPTION_CHOICE, /* uint8_t: the index in choices */
	OPTION_STRING, /* const char *, in the configuration's arena */
};

/* What a reload does for a changed value. */
enum option_reload {
	RELOAD_LIVE,	   /* taken over at once */
	RELOAD_NEW_LOGINS, /* sessions that log in from now on */
	RELOAD_REOPEN,	   /* the object is closed and opened again */
	RELOAD_RESTART,	   /* only at the next start of the daemon */
};

struct option_spec {
	const char *key; /* as in the file: lower case, hyphens */
	enum option_type type;
	enum option_reload reload;
	size_t offset;		    /* in the struct that the table fills */
	const char *def;	    /* the default, as it would be written; NULL: unset */
	uint64_t min, max;	    /* UINT, SIZE; string length for STRING; max 0: any */
	const char *const *choices; /* CHOICE: NULL-terminated */
	const char *unit;	    /* for messages and the manual: "ms", "bytes", "" */
	const char *summary;	    /* one line, no full stop */
	const char *doc;	    /* a paragraph for the manual page, or NULL */
	const char *const *aliases; /* other names of the key, NULL-terminated, or NULL */
};

/* The end of a table. */
#define OPTION_END          \
	{                   \
		.key = NULL \
	}

/*
 * Sets the field of row in *object from the word value.  0, or -EINVAL with
 * "KEY: VALUE is not valid: WHAT IS" in err.  STRING keeps the pointer: value
 * must live as long as the object.  Defaults are set by option_defaults().
 */
int option_set(const struct option_spec *row, void *object, const char *value, struct err *err);

/* Fills every field of the table with its default (unset: zero, NULL). */
void option_defaults(const struct option_spec *table, void *object);

/* The row of key (or of an alias), or NULL. */
const struct option_spec *option_find(const struct option_spec *table, const char *key);

/* The name nearest to word by edit distance among n names; NULL if none is near. */
const char *option_nearest(const char *word, const char *const *names, size_t n);

/* True when the field is equal in both objects. */
bool option_equal(const struct option_spec *row, const void *a, const void *b);

/* The field's value as it would be written in the file. */
void option_format(const struct option_spec *row, const void *object, char *out, size_t cap);

/* "10G" -> bytes; 0 or -EINVAL/-ERANGE.  Powers of 1024; no sign, no fraction. */
int size_parse(const char *word, uint64_t *bytes);
/* bytes -> "10 GiB", "1.5 TiB", "512 bytes": exact or rounded to 3 digits. */
void size_format(uint64_t bytes, char *out, size_t cap);

#endif
