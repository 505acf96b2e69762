/* Lines of the log, read back from a pipe in the place of stderr. */
#include "base/log.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/quintain_test.h"

static int read_end, saved_stderr;
static char output[16384];

static void capture(void)
{
	int fds[2];

	CU_ASSERT_EQUAL_FATAL(pipe(fds), 0);
	saved_stderr = dup(STDERR_FILENO);
	dup2(fds[1], STDERR_FILENO);
	close(fds[1]);
	read_end = fds[0];
}

/* What was written since capture(). */
static const char *release(void)
{
	size_t len = 0;
	ssize_t n;

	dup2(saved_stderr, STDERR_FILENO);
	close(saved_stderr);
	while ((n = read(read_end, output + len, sizeof(output) - 1 - len)) > 0)
		len += (size_t)n;
	output[len] = '\0';
	close(read_end);
	return output;
}

static void log_line_has_time_level_and_text(void)
{
	int year, month, day, hour, minute, second, ms, end = 0;

	capture();
	log_warning("lun %d: %s", 3, "gone");
	release();
	CU_ASSERT_EQUAL(sscanf(output, "%4d-%2d-%2dT%2d:%2d:%2d.%3dZ warning: lun 3: gone\n%n",
			       &year, &month, &day, &hour, &minute, &second, &ms, &end),
			7);
	CU_ASSERT_EQUAL((size_t)end, strlen(output));
	CU_ASSERT(year >= 2024);
}

static void log_drops_lines_above_its_level(void)
{
	capture();
	log_debug("unseen");
	log_line(LOG_LEVEL_TRACE, "unseen");
	log_set_level(LOG_LEVEL_ERROR);
	log_info("unseen");
	log_set_level(LOG_LEVEL_DEBUG);
	log_debug("seen");
	log_set_level(LOG_LEVEL_INFO);
	CU_ASSERT_PTR_NULL(strstr(release(), "unseen"));
	CU_ASSERT_PTR_NOT_NULL(strstr(output, "debug: seen\n"));
}

static void log_escapes_control_characters(void)
{
	capture();
	log_info("a\nb\x1b[2J\x7f\x9b\xc2\x9b"
		 "c");
	CU_ASSERT_PTR_NOT_NULL(strstr(release(), ": a\\x0ab\\x1b[2J\\x7f\\x9b\\xc2\\x9bc\n"));
}

static void log_keeps_well_formed_utf8(void)
{
	capture();
	log_info("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80 \xe2\x82 \xc0\xaf");
	CU_ASSERT_PTR_NOT_NULL(strstr(release(), ": caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80 "
						 "\\xe2\\x82 \\xc0\\xaf\n"));
}

static void expect_cut(const char *text)
{
	size_t len;

	capture();
	log_info("%s", text);
	len = strlen(release());
	CU_ASSERT(len <= 2048);
	CU_ASSERT_STRING_EQUAL(output + len - 7, " [cut]\n");
	CU_ASSERT_PTR_EQUAL(strchr(output, '\n'), output + len - 1);
}

static void log_cuts_long_lines_visibly(void)
{
	static char text[6000];

	memset(text, 'x', sizeof(text) - 1);
	expect_cut(text);
	memset(text, '\x01', sizeof(text) - 1);
	expect_cut(text);
	text[2040] = '\0';
	expect_cut(text);
}

static void log_gives_the_journal_its_priority(void)
{
	char stream[64];
	struct stat st;

	capture();
	fstat(STDERR_FILENO, &st);
	snprintf(stream, sizeof(stream), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
	setenv("JOURNAL_STREAM", stream, 1);
	log_init();
	log_error("e");
	log_warning("w");
	log_info("i");
	CU_ASSERT_STRING_EQUAL(release(), "<3>e\n<4>w\n<6>i\n");
}

static void log_ignores_the_journal_of_another_stderr(void)
{
	setenv("JOURNAL_STREAM", "1:1", 1);
	log_init();
	capture();
	log_info("i");
	CU_ASSERT_PTR_NOT_NULL(strstr(release(), "Z info: i\n"));
	unsetenv("JOURNAL_STREAM");
	log_init();
}

static void peer_says(int i)
{
	log_peer(LOG_LEVEL_INFO, "peer %d", i);
}

static uint32_t count_of(const char *word)
{
	uint32_t n = 0;

	for (const char *p = output; (p = strstr(p, word)); p++)
		n++;
	return n;
}

static void log_peer_passes_ten_lines_a_second(void)
{
	uint32_t lines, dropped = 0;

	capture();
	for (int i = 0; i < 200; i++)
		peer_says(i);
	poll(NULL, 0, 1100);
	peer_says(200);
	release();
	lines = count_of("peer ");
	/* The burst may meet the turn of a second. */
	CU_ASSERT(lines == LOG_PEER_BURST + 1 || lines == 2 * LOG_PEER_BURST + 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(output, "lines like the next one were not written\n"));
	for (const char *p = output; (p = strstr(p, "info: ")); p++) {
		uint32_t n;

		if (sscanf(p, "info: %" SCNu32 " lines", &n) == 1)
			dropped += n;
	}
	CU_ASSERT_EQUAL(lines + dropped, 201);
}

static const struct test tests[] = {
	TEST(log_line_has_time_level_and_text),
	TEST(log_drops_lines_above_its_level),
	TEST(log_escapes_control_characters),
	TEST(log_keeps_well_formed_utf8),
	TEST(log_cuts_long_lines_visibly),
	TEST(log_gives_the_journal_its_priority),
	TEST(log_ignores_the_journal_of_another_stderr),
	TEST(log_peer_passes_ten_lines_a_second),
};

TEST_MAIN(tests)
