/*
 * The daemon's log: one line an event on stderr.
 *
 * A line starts with the object it is about (target, peer, LUN), states facts
 * with units and says what happens next.  An error is logged once, where it is
 * handled.  Under systemd (JOURNAL_STREAM names our stderr) each line carries
 * the journal's "<N>" priority prefix and no time; elsewhere a time and the
 * level stand in front.
 *
 * Whatever a peer can cause goes through log_peer(), which passes a bounded
 * number of lines per second for each call site and counts the rest.
 * Any thread; a line is written with a single write(2).  Control characters
 * in a line are escaped, so that no peer can forge a line.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

enum log_level {
	LOG_LEVEL_ERROR,   /* something is not served */
	LOG_LEVEL_WARNING, /* served, but not as asked */
	LOG_LEVEL_INFO,	   /* sessions, reloads, start and stop */
	LOG_LEVEL_DEBUG,   /* negotiation, errors that initiators expect */
	LOG_LEVEL_TRACE,   /* each PDU */
};

/* Lines above this level are dropped; INFO at start. */
void log_set_level(enum log_level level);
enum log_level log_level(void);

/* Reads JOURNAL_STREAM; called once by main() before there are threads. */
void log_init(void);

void log_line(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...)	 log_line(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...)	 log_line(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...)                                          \
	do {                                                    \
		if (log_level() >= LOG_LEVEL_DEBUG)             \
			log_line(LOG_LEVEL_DEBUG, __VA_ARGS__); \
	} while (0)

/* Lines that one call site of log_peer() may write in a second. */
#define LOG_PEER_BURST 10

struct log_limit {
	_Atomic uint64_t second;  /* CLOCK_MONOTONIC, whole seconds */
	_Atomic uint32_t count;	  /* lines in that second */
	_Atomic uint32_t dropped; /* lines not written since the last one that was */
};

/* True when this line may be written; says on its own how many were dropped. */
bool log_limit_pass(struct log_limit *limit);

/* A line that a peer can cause: limited per call site. */
#define log_peer(level, ...)                                           \
	do {                                                           \
		static struct log_limit limit_;                        \
		if (log_level() >= (level) && log_limit_pass(&limit_)) \
			log_line((level), __VA_ARGS__);                \
	} while (0)

#endif
