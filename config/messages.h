/*
 * What is wrong with a configuration, and where: inside config/, and for
 * target/apply.c, which finds more when it makes the objects.
 *
 * Messages are kept with the line of the file that they speak about, in its
 * order.  After CONFIG_ERRORS_MAX errors reading stops: a file that is no
 * configuration would have one for each of its words.
 *
 * Control thread.
 */
#ifndef CONFIG_MESSAGES_H
#define CONFIG_MESSAGES_H

#include "config/config.h"

#define CONFIG_ERRORS_MAX 100

/* A file that was read; kept while the configuration lives, for its lines. */
struct config_source {
	const char *file;
	const char *text;
	size_t len;
	unsigned int number; /* in the order of reading, from 0 */
	struct config_source *next;
};

/* file and text must live as long as config. */
void config_source_add(struct config *config, const char *file, const char *text, size_t len);

/* pos.line 0: the message is about the file as a whole. */
void config_error(struct config *config, struct config_pos pos, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void config_warning(struct config *config, struct config_pos pos, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

bool config_has_too_many_errors(const struct config *config);

/* "FILE:LINE:COLUMN", for "first defined at ..."; in the configuration's arena. */
const char *config_place(struct config *config, struct config_pos pos);

/* Brings the messages into the order of the file. */
void config_sort_messages(struct config *config);

#endif
