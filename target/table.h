/*
 * Tables on a terminal: columns as wide as what is in them.
 *
 * Text of peers is shown without control characters.  Main thread.
 */
#ifndef TARGET_TABLE_H
#define TARGET_TABLE_H

#include <stdbool.h>
#include <stdio.h>

#define TABLE_COLUMNS_MAX 12

struct table;

/* titles[0..ncolumns); those in right (bit i: column i) are numbers.  Never
 * NULL: a command ends when there is no memory. */
struct table *table_create(const char *const *titles, unsigned int ncolumns, unsigned int right);
/* The next cell, from left to right, row by row. */
void table_cell(struct table *table, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Prints it, or "none" when it has no rows, and frees it. */
void table_print(struct table *table, FILE *out);

#endif
