/* The log on stderr: see log.h. */
#include "base/log.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Bytes of a line with its newline; journald and terminals take more, but a
 * longer line helps nobody and a peer could ask for one. */
#define LINE_MAX_LEN 2048
static const char cut_mark[] = " [cut]";

static const struct {
	const char *name;
	char priority; /* syslog(3) severity, as the journal wants it */
} levels[] = {
	[LOG_LEVEL_ERROR] = { "error", '3' }, [LOG_LEVEL_WARNING] = { "warning", '4' },
	[LOG_LEVEL_INFO] = { "info", '6' },   [LOG_LEVEL_DEBUG] = { "debug", '7' },
	[LOG_LEVEL_TRACE] = { "trace", '7' },
};

static atomic_int current_level = LOG_LEVEL_INFO;
static atomic_bool to_journal;

void log_set_level(enum log_level level)
{
	atomic_store_explicit(&current_level, (int)level, memory_order_relaxed);
}

enum log_level log_level(void)
{
	return (enum log_level)atomic_load_explicit(&current_level, memory_order_relaxed);
}

void log_init(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	uintmax_t dev, ino;
	struct stat st;
	bool journal = false;

	/* systemd.exec(5): "DEVICE:INODE"; inherited by children whose stderr
	 * may go elsewhere, hence the comparison. */
	if (stream && sscanf(stream, "%ju:%ju", &dev, &ino) == 2 && fstat(STDERR_FILENO, &st) == 0)
		journal = st.st_dev == dev && st.st_ino == ino;
	atomic_store(&to_journal, journal);
}

/*
 * The length of the well-formed UTF-8 sequence at s, 0 if there is none.  C1
 * control characters (U+0080..U+009F) count as none: terminals obey them.
 */
static size_t utf8_len(const char *s)
{
	const unsigned char *b = (const unsigned char *)s;
	size_t n = b[0] < 0xc2 ? 0 : b[0] < 0xe0 ? 2 : b[0] < 0xf0 ? 3 : b[0] < 0xf5 ? 4 : 0;

	for (size_t i = 1; i < n; i++)
		if ((b[i] & 0xc0) != 0x80)
			return 0;
	if ((b[0] == 0xc2 && b[1] < 0xa0) || (b[0] == 0xe0 && b[1] < 0xa0) ||
	    (b[0] == 0xed && b[1] > 0x9f) || (b[0] == 0xf0 && b[1] < 0x90) ||
	    (b[0] == 0xf4 && b[1] > 0x8f))
		return 0;
	return n;
}

/*
 * Appends text to line at len, control characters escaped; returns the new
 * length.  Leaves room for the newline and marks what did not fit.
 */
static size_t append_escaped(char *line, size_t len, const char *text, bool cut)
{
	static const char hex[] = "0123456789abcdef";
	const size_t end = LINE_MAX_LEN - sizeof(cut_mark);

	while (*text) {
		unsigned char c = (unsigned char)*text;
		size_t n = c >= 0x20 && c < 0x7f ? 1 : c >= 0x80 ? utf8_len(text) : 0;

		if (end - len < (n ? n : 4)) {
			cut = true;
			break;
		}
		if (n) {
			memcpy(line + len, text, n);
			len += n;
			text += n;
			continue;
		}
		line[len++] = '\\';
		line[len++] = 'x';
		line[len++] = hex[c >> 4];
		line[len++] = hex[c & 15];
		text++;
	}
	if (cut) {
		memcpy(line + len, cut_mark, sizeof(cut_mark) - 1);
		len += sizeof(cut_mark) - 1;
	}
	return len;
}

/* "<4>" for the journal, which keeps its own time; else "TIME LEVEL: ". */
static size_t put_prefix(char *line, enum log_level level)
{
	struct timespec ts;
	struct tm tm;
	size_t len;

	if (atomic_load_explicit(&to_journal, memory_order_relaxed))
		return (size_t)snprintf(line, LINE_MAX_LEN, "<%c>", levels[level].priority);
	clock_gettime(CLOCK_REALTIME, &ts);
	gmtime_r(&ts.tv_sec, &tm);
	len = strftime(line, LINE_MAX_LEN, "%Y-%m-%dT%H:%M:%S", &tm);
	len += (size_t)snprintf(line + len, LINE_MAX_LEN - len,
				".%03ldZ %s: ", ts.tv_nsec / 1000000, levels[level].name);
	return len;
}

void log_line(enum log_level level, const char *fmt, ...)
{
	char text[LINE_MAX_LEN], line[LINE_MAX_LEN];
	va_list ap;
	size_t len;
	int want;

	if (level > log_level())
		return;
	va_start(ap, fmt);
	want = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (want < 0)
		return;
	len = put_prefix(line, level);
	len = append_escaped(line, len, text, (size_t)want >= sizeof(text));
	line[len++] = '\n';
	/* A log that cannot be written must not stop the service, and there
	 * is nobody left to tell. */
	if (write(STDERR_FILENO, line, len) < 0)
		return;
}

bool log_limit_pass(struct log_limit *limit)
{
	struct timespec ts;
	uint64_t second, seen;
	uint32_t dropped;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	second = (uint64_t)ts.tv_sec;
	seen = atomic_load_explicit(&limit->second, memory_order_relaxed);
	/* One thread opens the new second; the others count in it.  A line
	 * more or less at the turn does no harm. */
	if (seen != second && atomic_compare_exchange_strong(&limit->second, &seen, second)) {
		atomic_store(&limit->count, 0);
		dropped = atomic_exchange(&limit->dropped, 0);
		if (dropped)
			log_info("%" PRIu32 " lines like the next one were not written", dropped);
	}
	if (atomic_fetch_add(&limit->count, 1) < LOG_PEER_BURST)
		return true;
	atomic_fetch_add(&limit->dropped, 1);
	return false;
}
