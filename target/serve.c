/*
 * quintain serve: from the command line to "ready", and to the end.
 *
 * The main thread is the control thread: it waits for signals (signalfd) and
 * for the control socket, and looks once a second after LUNs without a store.
 */
#include "target/command.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/log.h"
#include "target/clock.h"
#include "target/daemon.h"
#include "target/notify.h"
#include "target/pidfile.h"
#include "version.h"

#define TICK_MS 1000
/* The promise is 5 s from the signal to the end. */
#define STOP_MS 4000

/* ---- options ---- */

enum { OPT_LISTEN = 256, OPT_IQN, OPT_SIZE, OPT_BLOCK_SIZE, OPT_READ_ONLY, OPT_STATE_DIR };

static const struct option serve_options[] = {
	{ "config", required_argument, NULL, 'c' },
	{ "listen", required_argument, NULL, OPT_LISTEN },
	{ "iqn", required_argument, NULL, OPT_IQN },
	{ "size", required_argument, NULL, OPT_SIZE },
	{ "block-size", required_argument, NULL, OPT_BLOCK_SIZE },
	{ "read-only", no_argument, NULL, OPT_READ_ONLY },
	{ "state-dir", required_argument, NULL, OPT_STATE_DIR },
	{ 0 },
};

/* An option of IMAGE...; 0 or an exit code. */
static int image_option(const struct command *command, int option, struct serve_options *out)
{
	uint64_t bytes;

	switch (option) {
	case OPT_LISTEN: out->simple.listen = optarg; return 0;
	case OPT_IQN: out->simple.iqn = optarg; return 0;
	case OPT_READ_ONLY: out->simple.read_only = true; return 0;
	case OPT_STATE_DIR: out->state_dir = optarg; return 0;
	case OPT_SIZE:
		if (size_parse(optarg, &out->simple.size) == 0 && out->simple.size > 0)
			return 0;
		return command_usage(command, "--size: %s is not a size such as 512M, 10G or 1T",
				     optarg);
	default:
		if (size_parse(optarg, &bytes) == 0 && (bytes == 512 || bytes == 4096)) {
			out->simple.block_size = (uint32_t)bytes;
			return 0;
		}
		return command_usage(command, "--block-size: %s is not 512 or 4096", optarg);
	}
}

static int options_parse(const struct command *command, int argc, char **argv,
			 struct serve_options *out)
{
	const char *image_only = NULL;
	int option, code;

	memset(out, 0, sizeof(*out));
	out->simple.block_size = 512;
	while ((option = command_option(argc, argv, "c:", serve_options)) != -1) {
		if (option == '?')
			return command_bad_option(command, argv, serve_options);
		if (option == 'c') {
			out->file = optarg;
			continue;
		}
		image_only = serve_options[1 + option - OPT_LISTEN].name;
		code = image_option(command, option, out);
		if (code != 0)
			return code;
	}
	out->simple.images = (const char *const *)argv + optind;
	out->simple.nimages = (unsigned int)(argc - optind);
	if (!out->file && out->simple.nimages == 0)
		return command_usage(command, "-c FILE or IMAGE... is expected");
	if (out->file && out->simple.nimages > 0)
		return command_usage(command, "-c FILE and IMAGE... exclude each other");
	if (out->file && image_only)
		return command_usage(command, "--%s is for IMAGE..., FILE says this itself",
				     image_only);
	return 0;
}

/* ---- signals ---- */

static int signals_take(void)
{
	sigset_t set;

	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	/* Before there are threads, which inherit it. */
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void second_signal(int number)
{
	(void)number;
	_exit(COMMAND_FAILED);
}

/* From here on another SIGTERM or SIGINT ends the process at once. */
static void signals_release(void)
{
	struct sigaction action = { .sa_handler = second_signal };
	sigset_t set;

	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

/* Each connection and each file is a descriptor. */
static void files_raise(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
		log_warning("the limit of open files stays as it is: %s", err_name(errno));
}

/* ---- the control socket ---- */

static void control_start(struct daemon *daemon, const struct config *config)
{
	char path[PATH_MAX];
	struct err err;

	if (config->global.control_socket)
		snprintf(path, sizeof(path), "%s", config->global.control_socket);
	else
		snprintf(path, sizeof(path), "%s/control.sock",
			 state_directory(daemon->running.state));
	if (control_open(path, daemon_commands, daemon, &daemon->control, &err) < 0)
		log_warning("%s; this daemon runs without one", err.text);
}

/* ---- the loop ---- */

/* Reads the signals that came; true when one asks for the end. */
static bool signals_handle(struct daemon *daemon, int fd)
{
	struct signalfd_siginfo info;
	struct err err = { "" };
	bool reload = false;

	while (read(fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo != SIGHUP)
			return true;
		reload = true;
	}
	if (reload)
		daemon_reload(daemon, NULL, &err);
	return false;
}

static void loop(struct daemon *daemon, int signals)
{
	for (;;) {
		struct pollfd fds[] = {
			{ .fd = signals, .events = POLLIN },
			{ .fd = daemon->control ? control_fd(daemon->control) : -1,
			  .events = POLLIN },
			{ .fd = jobs_fd(daemon->jobs), .events = POLLIN },
		};
		int n = poll(fds, ARRAY_LEN(fds), TICK_MS);

		if (n > 0 && fds[0].revents && signals_handle(daemon, signals))
			return;
		/* Without an event too: idle clients are dropped there. */
		if (daemon->control)
			control_run(daemon->control);
		running_tick(&daemon->running);
	}
}

static int stop(struct daemon *daemon, const char *pidfile, int pid_fd)
{
	bool clean;

	log_info("stopping: initiators are asked to log out");
	notify_stopping();
	signals_release();
	control_close(daemon->control);
	clean = running_stop(&daemon->running, STOP_MS);
	pidfile_remove(pidfile, pid_fd);
	if (clean) {
		log_info("stopped: all stores are flushed and closed");
		return COMMAND_OK;
	}
	log_error("stopped, but not all stores are flushed: what was not is left to the kernel");
	/* Threads may still be stuck in the kernel on behalf of a store, which has
	 * been named; that the daemon ends is what was asked for. */
	_exit(COMMAND_OK);
}

/* ---- start ---- */

static int serve(const struct command *command, struct daemon *daemon, struct config *config,
		 int signals)
{
	char *pidfile = config->global.pidfile ? strdup(config->global.pidfile) : NULL;
	char summary[512];
	struct err err = { "" };
	bool stuck = false;
	int pid_fd = -1, code;

	if (pidfile) {
		pid_fd = pidfile_create(pidfile, &err);
		if (pid_fd < 0)
			goto fail;
	}
	if (running_start(&daemon->running, config, daemon->jobs, &err) < 0)
		goto fail;
	if (running_apply(&daemon->running, config, &err) < 0) {
		stuck = !running_stop(&daemon->running, STOP_MS);
		goto fail;
	}
	control_start(daemon, config);
	daemon_summary(daemon, summary, sizeof(summary));
	log_info("quintain %s is ready: %s", QUINTAIN_VERSION, summary);
	notify_ready(summary);
	loop(daemon, signals);
	code = stop(daemon, pidfile, pid_fd);
	free(pidfile);
	return code;
fail:
	command_fail(command, "%s", err.text);
	pidfile_remove(pidfile, pid_fd);
	if (stuck)
		_exit(COMMAND_FAILED);
	free(pidfile);
	config_free(config);
	return COMMAND_FAILED;
}

static int load_and_serve(const struct command *command, struct daemon *daemon)
{
	struct err err = { "" };
	struct config *config = daemon_load(daemon, &err);
	int signals, code;

	if (!config)
		return command_fail(command, "%s", err.text);
	config_print_messages(config, stderr);
	if (config->nerrors > 0) {
		config_free(config);
		return COMMAND_FAILED;
	}
	signals = signals_take();
	if (signals < 0) {
		config_free(config);
		return command_fail(command, "signalfd: %s", err_name(errno));
	}
	code = serve(command, daemon, config, signals);
	close(signals);
	return code;
}

int command_serve(const struct command *command, int argc, char **argv)
{
	struct serve_options options;
	struct daemon daemon = { .options = &options, .start_ms = clock_ms() };
	int code;

	code = options_parse(command, argc, argv, &options);
	if (code != 0)
		return code;
	log_init();
	files_raise();
	daemon.jobs = jobs_create();
	if (!daemon.jobs)
		return command_fail(command, "eventfd: %s", err_name(errno));
	code = load_and_serve(command, &daemon);
	jobs_destroy(daemon.jobs);
	return code;
}
