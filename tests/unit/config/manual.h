/*
 * The manual page of the configuration file: docs/quintain.conf.5.in with a
 * paragraph for each option row where it says "@OPTIONS TABLE@" (global, server,
 * limits, backing, scsi) on a line of its own.
 */
#ifndef TESTS_CONFIG_MANUAL_H
#define TESTS_CONFIG_MANUAL_H

/* The page, to be freed; NULL when a line asks for a table that there is not. */
char *manual_make(const char *template);

/* A whole file, to be freed; NULL when it cannot be read. */
char *manual_read(const char *path);

#endif
