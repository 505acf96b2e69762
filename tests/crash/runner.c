#include "tests/crash/runner.h"

#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static void start(struct task *task, pid_t *pid)
{
	fflush(stdout);
	*pid = fork();
	if (*pid < 0) {
		perror("fork");
		exit(1);
	}
	if (*pid == 0) {
		/* A pool is opened thousands of times: what it had is used again. */
		mallopt(M_MMAP_THRESHOLD, 1 << 20);
		mallopt(M_TRIM_THRESHOLD, 32 << 20);
		alarm(task->timeout_s);
		task->run(&task->plan);
		fflush(stdout);
		_Exit(0);
	}
}

static void judge(struct task *task, int status)
{
	struct outcome *out = task->plan.outcome;

	if (out->finished)
		return;
	out->nother++;
	if (out->text[0])
		return;
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		snprintf(out->text, sizeof(out->text), "%s: no end within %u s", out->where,
			 task->timeout_s);
	else if (WIFSIGNALED(status))
		snprintf(out->text, sizeof(out->text), "%s: %s", out->where,
			 strsignal(WTERMSIG(status)));
	else
		snprintf(out->text, sizeof(out->text), "%s: see above", out->where);
}

void runner_run(struct task *tasks, unsigned int ntasks, unsigned int at_once,
		void (*says)(const struct task *task))
{
	struct outcome *outcomes = mmap(NULL, ntasks * sizeof(*outcomes), PROT_READ | PROT_WRITE,
					MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t *pids = calloc(ntasks, sizeof(*pids));
	unsigned int begun = 0, running = 0;

	if (outcomes == MAP_FAILED || !pids) {
		perror("memory");
		exit(1);
	}
	while (begun < ntasks || running > 0) {
		int status;
		pid_t pid;

		if (begun < ntasks && running < at_once) {
			tasks[begun].plan.outcome = &outcomes[begun];
			start(&tasks[begun], &pids[begun]);
			begun++;
			running++;
			continue;
		}
		pid = wait(&status);
		for (unsigned int i = 0; i < begun; i++) {
			if (pids[i] != pid)
				continue;
			running--;
			judge(&tasks[i], status);
			says(&tasks[i]);
			fflush(stdout);
		}
	}
	free(pids);
}
