/* The control socket answers lines, and nobody can hold it up. */
#include "tests/unit/quintain_test.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "target/control.h"
#include "target/control_socket.h"
#include "tests/unit/target/scratch.h"

static int run_echo(void *owner, const json_t *request, json_t *answer, struct err *err)
{
	(void)owner;
	(void)err;
	json_object_set(answer, "echo", json_object_get(request, "word"));
	return 0;
}

static int run_large(void *owner, const json_t *request, json_t *answer, struct err *err)
{
	char *text = malloc((4u << 20) + 1);

	(void)owner;
	(void)request;
	(void)err;
	memset(text, 'x', 4u << 20);
	text[4u << 20] = '\0';
	json_object_set_new(answer, "text", json_string(text));
	free(text);
	return 0;
}

static int run_fails(void *owner, const json_t *request, json_t *answer, struct err *err)
{
	(void)owner;
	(void)request;
	(void)answer;
	return err_set(err, EINVAL, "because of \xff");
}

static struct control_reply *later; /* of the last request for it */

static int begin_later(void *owner, const json_t *request, struct control_reply *reply,
		       struct err *err)
{
	(void)owner;
	(void)request;
	(void)err;
	later = reply;
	return 0;
}

static const struct control_command commands[] = {
	{ .name = "echo", .run = run_echo },
	{ .name = "large", .run = run_large },
	{ .name = "fails", .run = run_fails },
	{ .name = "later", .begin = begin_later },
	{ .name = NULL },
};

static char path[PATH_MAX];

static struct control *opened(const char *name)
{
	struct control *control = NULL;
	struct err err = { "" };

	scratch_path(name, path, sizeof(path));
	CU_ASSERT_EQUAL_FATAL(control_open(path, commands, NULL, &control, &err), 0);
	return control;
}

static int connected(void)
{
	int fd = control_socket_connect(path, NULL);

	CU_ASSERT_FATAL(fd >= 0);
	return fd;
}

/* Lets the control loop run until fd has something, at most one second. */
static void served(struct control *control, int fd)
{
	struct pollfd wanted = { .fd = fd, .events = POLLIN };

	for (int i = 0; i < 100 && poll(&wanted, 1, 0) == 0; i++) {
		struct pollfd work = { .fd = control_fd(control), .events = POLLIN };

		poll(&work, 1, 10);
		control_run(control);
	}
}

/* What the daemon answers to text; "" when it hangs up. */
static const char *answer(struct control *control, const char *text)
{
	static char line[4096];
	ssize_t n;
	int fd = connected();

	CU_ASSERT_EQUAL(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
	served(control, fd);
	n = recv(fd, line, sizeof(line) - 1, MSG_DONTWAIT);
	line[n > 0 ? n : 0] = '\0';
	close(fd);
	return line;
}

static void command_is_answered_in_one_line(void)
{
	struct control *control = opened("one");

	CU_ASSERT_STRING_EQUAL(answer(control, "{\"command\":\"echo\",\"word\":\"hi\"}\n"),
			       "{\"ok\":true,\"echo\":\"hi\"}\n");
	control_close(control);
}

static void bad_requests_are_answered_with_an_error(void)
{
	struct control *control = opened("bad");

	CU_ASSERT_PTR_NOT_NULL(strstr(answer(control, "nonsense\n"), "\"ok\":false"));
	CU_ASSERT_PTR_NOT_NULL(strstr(answer(control, "[]\n"), "\"ok\":false"));
	CU_ASSERT_PTR_NOT_NULL(strstr(answer(control, "{\"command\":7}\n"), "\"ok\":false"));
	CU_ASSERT_PTR_NOT_NULL(
		strstr(answer(control, "{\"command\":\"ecko\"}\n"), "did you mean echo"));
	control_close(control);
}

static void failed_command_says_why(void)
{
	struct control *control = opened("fails");

	CU_ASSERT_STRING_EQUAL(answer(control, "{\"command\":\"fails\"}\n"),
			       "{\"ok\":false,\"error\":\"because of ?\"}\n");
	control_close(control);
}

static void later_answer_comes_when_it_is_ready(void)
{
	static const char wanted[] = "{\"ok\":false,\"error\":\"too late\"}\n";
	struct control *control = opened("later");
	struct err err = { "too late" };
	char line[128] = "";
	int fd = connected();

	CU_ASSERT_EQUAL(send(fd, "{\"command\":\"later\"}\n", 20, MSG_NOSIGNAL), 20);
	CU_ASSERT_EQUAL(shutdown(fd, SHUT_WR), 0);
	for (int i = 0; i < 100 && !later; i++)
		control_run(control);
	CU_ASSERT_PTR_NOT_NULL_FATAL(later);
	CU_ASSERT_STRING_EQUAL(answer(control, "{\"command\":\"echo\",\"word\":1}\n"),
			       "{\"ok\":true,\"echo\":1}\n"); /* others are served meanwhile */
	control_reply_end(later, NULL, -ETIMEDOUT, &err);
	later = NULL;
	served(control, fd);
	CU_ASSERT_EQUAL(recv(fd, line, sizeof(line) - 1, MSG_DONTWAIT),
			(ssize_t)sizeof(wanted) - 1);
	CU_ASSERT_STRING_EQUAL(line, wanted);
	close(fd);
	control_close(control);
}

static void later_answer_may_come_after_the_client(void)
{
	struct control *control = opened("gone");
	int fd = connected();

	CU_ASSERT_EQUAL(send(fd, "{\"command\":\"later\"}\n", 20, MSG_NOSIGNAL), 20);
	for (int i = 0; i < 100 && !later; i++)
		control_run(control);
	CU_ASSERT_PTR_NOT_NULL_FATAL(later);
	close(fd);
	for (int i = 0; i < 10; i++)
		control_run(control);
	control_close(control);
	control_reply_end(later, NULL, 0, NULL);
	later = NULL;
}

static void overlong_line_is_hung_up_on(void)
{
	struct control *control = opened("long");
	char text[CONTROL_LINE_MAX + 1];

	memset(text, 'a', sizeof(text));
	text[CONTROL_LINE_MAX] = '\0';
	CU_ASSERT_STRING_EQUAL(answer(control, text), "");
	control_close(control);
}

static void client_that_does_not_read_holds_up_nobody(void)
{
	struct control *control = opened("slow");
	const char *request = "{\"command\":\"large\"}\n";
	int fd = connected();

	CU_ASSERT_EQUAL(send(fd, request, strlen(request), 0), (ssize_t)strlen(request));
	served(control, fd);
	CU_ASSERT_STRING_EQUAL(answer(control, "{\"command\":\"echo\",\"word\":1}\n"),
			       "{\"ok\":true,\"echo\":1}\n");
	close(fd);
	control_close(control);
}

static void clients_above_the_limit_wait_for_one_to_leave(void)
{
	struct control *control = opened("many");
	const char *request = "{\"command\":\"echo\"}\n";
	int fds[CONTROL_CLIENTS_MAX + 1];

	for (int i = 0; i <= CONTROL_CLIENTS_MAX; i++)
		fds[i] = connected();
	for (int i = 0; i <= CONTROL_CLIENTS_MAX; i++)
		control_run(control);
	CU_ASSERT_EQUAL(send(fds[CONTROL_CLIENTS_MAX], request, strlen(request), 0),
			(ssize_t)strlen(request));
	close(fds[0]);
	served(control, fds[CONTROL_CLIENTS_MAX]);
	for (int i = 1; i <= CONTROL_CLIENTS_MAX; i++) {
		char line[64];

		if (i == CONTROL_CLIENTS_MAX)
			CU_ASSERT(recv(fds[i], line, sizeof(line), MSG_DONTWAIT) > 0);
		close(fds[i]);
	}
	control_close(control);
}

static void socket_is_for_its_owner_only(void)
{
	struct control *control = opened("mode");
	struct stat st;

	CU_ASSERT_EQUAL(stat(path, &st), 0);
	CU_ASSERT_EQUAL(st.st_mode & 07777, 0600);
	control_close(control);
	CU_ASSERT_EQUAL(stat(path, &st), -1);
}

static void socket_of_a_living_daemon_is_left_to_it(void)
{
	struct control *control = opened("taken"), *second = NULL;
	struct stat st;
	struct err err;

	CU_ASSERT_EQUAL(control_open(path, commands, NULL, &second, &err), -EADDRINUSE);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "another daemon"));
	CU_ASSERT_EQUAL(stat(path, &st), 0);
	control_close(control);
}

static void stale_socket_is_replaced(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	struct control *control;

	scratch_path("stale", path, sizeof(path));
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%.100s", path);
	CU_ASSERT_EQUAL(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	close(fd);
	control = opened("stale");
	CU_ASSERT_PTR_NOT_NULL(strstr(answer(control, "{\"command\":\"echo\"}\n"), "\"ok\":true"));
	control_close(control);
}

static void file_that_is_no_socket_is_left_alone(void)
{
	struct control *control = NULL;
	struct err err;

	scratch_write("plain", "precious");
	scratch_path("plain", path, sizeof(path));
	CU_ASSERT_EQUAL(control_open(path, commands, NULL, &control, &err), -EEXIST);
	CU_ASSERT_EQUAL(access(path, F_OK), 0);
}

static const struct test tests[] = {
	TEST(command_is_answered_in_one_line),
	TEST(bad_requests_are_answered_with_an_error),
	TEST(failed_command_says_why),
	TEST(later_answer_comes_when_it_is_ready),
	TEST(later_answer_may_come_after_the_client),
	TEST(overlong_line_is_hung_up_on),
	TEST(client_that_does_not_read_holds_up_nobody),
	TEST(clients_above_the_limit_wait_for_one_to_leave),
	TEST(socket_is_for_its_owner_only),
	TEST(socket_of_a_living_daemon_is_left_to_it),
	TEST(stale_socket_is_replaced),
	TEST(file_that_is_no_socket_is_left_alone),
};
TEST_MAIN(tests)
