/*
 * A bar for what takes long, on stderr when that is a terminal; else nothing.
 *
 * Main thread of a command.
 */
#ifndef TARGET_PROGRESS_H
#define TARGET_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
	const char *what;
	uint64_t total, first; /* bytes; where it began */
	uint64_t begun_ms, shown_ms;
	bool on;
};

void progress_begin(struct progress *progress, const char *what, uint64_t first, uint64_t total);
void progress_at(struct progress *progress, uint64_t at);
/* Takes the bar away. */
void progress_end(struct progress *progress);

#endif
