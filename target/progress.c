#include "target/progress.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/option.h"
#include "target/clock.h"

#define SHOW_MS	  200
#define BAR_WIDTH 30

void progress_begin(struct progress *progress, const char *what, uint64_t first, uint64_t total)
{
	*progress = (struct progress){
		.what = what,
		.first = first,
		.total = total,
		.begun_ms = clock_ms(),
		.on = isatty(STDERR_FILENO) == 1,
	};
}

static uint64_t part_of(uint64_t at, uint64_t total, uint64_t of)
{
	return total ? (uint64_t)((double)at / (double)total * (double)of) : of;
}

void progress_at(struct progress *progress, uint64_t at)
{
	static const char full[] = "##############################";
	uint64_t now = clock_ms(), passed_ms = now - progress->begun_ms;
	char done[64], all[64];

	at = at < progress->total ? at : progress->total;
	if (!progress->on || (now - progress->shown_ms < SHOW_MS && at < progress->total))
		return;
	progress->shown_ms = now;
	size_format(at, done, sizeof(done));
	size_format(progress->total, all, sizeof(all));
	fprintf(stderr, "\r%s [%-*.*s] %3u%%  %s of %s, %.0f MB/s\033[K", progress->what, BAR_WIDTH,
		(int)part_of(at, progress->total, BAR_WIDTH), full,
		(unsigned int)part_of(at, progress->total, 100), done, all,
		passed_ms ? (double)(at - progress->first) / 1000.0 / (double)passed_ms : 0.0);
	fflush(stderr);
}

void progress_end(struct progress *progress)
{
	if (progress->on && progress->shown_ms != 0)
		fputs("\r\033[K", stderr);
	progress->on = false;
}
