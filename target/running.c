/* Life and end of what is served: see running.h. */
#include "target/running.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "target/clock.h"
#include "target/flush.h"
#include "target/pool_run.h"

/* Submissions between two entries into the kernel; a power of two. */
#define RING_ENTRIES 4096
/* Of running_stop()'s time, what is kept for flushing and closing. */
#define STOP_FLUSH_SHARE 3
/* For a store that has hung long before: it may just go on. */
#define STOP_STUCK_MS 1000

/* ---- start ---- */

/* The CPUs that this process may use; their number. */
static unsigned int cpus_allowed(int cpus[REACTORS_MAX])
{
	unsigned int n = 0;
	cpu_set_t set;

	CPU_ZERO(&set);
	if (sched_getaffinity(0, sizeof(set), &set) == 0)
		for (int cpu = 0; cpu < CPU_SETSIZE && n < REACTORS_MAX; cpu++)
			if (CPU_ISSET(cpu, &set))
				cpus[n++] = cpu;
	if (n == 0) {
		cpus[0] = -1; /* more CPUs than the set holds: not pinned */
		n = 1;
	}
	return n;
}

static void reactors_stop(struct running *run)
{
	while (run->nreactors > 0)
		reactor_stop(run->reactors[--run->nreactors], 1000);
}

static int reactors_start(struct running *run, const struct config *config, struct err *err)
{
	int cpus[REACTORS_MAX];
	unsigned int ncpus = cpus_allowed(cpus), wanted = config->global.reactors;
	int rc;

	if (wanted == 0 || wanted > REACTORS_MAX)
		wanted = wanted == 0 ? ncpus : REACTORS_MAX;
	for (unsigned int i = 0; i < wanted; i++) {
		struct reactor_config one = {
			.index = i,
			.cpu = cpus[i % ncpus],
			.ring_entries = RING_ENTRIES,
			.buffer_bytes = config->global.buffer_memory,
			.spin_us = config->global.spin_us,
		};

		rc = reactor_start(&one, &run->reactors[i], err);
		if (rc < 0) {
			reactors_stop(run);
			return rc;
		}
		run->cpus[i] = one.cpu;
		run->nreactors = i + 1;
	}
	return 0;
}

int running_start(struct running *run, const struct config *config, struct jobs *jobs,
		  struct err *err)
{
	char directory[4096];
	int rc;

	memset(run, 0, sizeof(*run));
	run->jobs = jobs;
	list_init(&run->pools);
	list_init(&run->luns);
	list_init(&run->targets);
	rc = reactor_probe(err);
	if (rc == 0)
		rc = config_state_dir(config, directory, sizeof(directory), err);
	if (rc == 0)
		rc = state_open(directory, &run->state, err);
	if (rc < 0)
		return rc;
	rc = reactors_start(run, config, err);
	if (rc < 0)
		goto fail;
	rc = iscsi_server_create(&config->server, run->reactors, run->nreactors, &run->server, err);
	if (rc == 0)
		return 0;
	reactors_stop(run);
fail:
	state_close(run->state);
	return rc;
}

/* ---- from time to time ---- */

void running_tick(struct running *run)
{
	uint64_t now;

	jobs_reap(run->jobs);
	pools_tick(run);
	now = clock_ms();
	list_for_each(link, &run->luns) {
		struct lun_run *lun = container_of(link, struct lun_run, link);
		const struct backing *backing = scsi_lun_backing(lun->scsi);

		lun_run_look(run, lun);
		lun_run_resize(run, lun);
		if (now < lun->retry_at_ms)
			continue;
		if (!backing)
			lun_run_try(run, lun);
		else if (backing_broken(backing))
			lun_run_close(run, lun, "its store is gone");
	}
}

/* ---- stop ---- */

static unsigned int left_ms(uint64_t deadline_ms)
{
	uint64_t now = clock_ms();

	return now < deadline_ms ? (unsigned int)(deadline_ms - now) : 0;
}

static void objects_destroy(struct running *run)
{
	list_for_each_safe(link, &run->targets)
		target_run_destroy(run, container_of(link, struct target_run, link));
	list_for_each_safe(link, &run->luns)
		lun_run_destroy(run, container_of(link, struct lun_run, link));
}

static bool all_end(struct running *run, unsigned int timeout_ms)
{
	uint64_t deadline_ms = clock_ms() + timeout_ms;

	if (iscsi_server_stop(run->server, timeout_ms - timeout_ms / STOP_FLUSH_SHARE) < 0)
		return false;
	if (!luns_flush(run, left_ms(deadline_ms)))
		return false;
	objects_destroy(run);
	/* Pools after their volumes have been closed. */
	jobs_wait(run->jobs, left_ms(deadline_ms));
	pools_stop(run);
	if (!jobs_wait(run->jobs, left_ms(deadline_ms))) {
		unsigned int left = left_ms(deadline_ms);

		if (!jobs_drain(run->jobs, left < STOP_STUCK_MS ? left : STOP_STUCK_MS))
			return false;
	}
	return run->nstuck == 0 && list_empty(&run->pools);
}

static void stuck_log(const char *subject, void *arg)
{
	(void)arg;
	log_error("%s is stuck: its file system does not answer; it is left", subject);
}

bool running_stop(struct running *run, unsigned int timeout_ms)
{
	if (!all_end(run, timeout_ms)) {
		jobs_each(run->jobs, stuck_log, NULL);
		return false;
	}
	iscsi_server_destroy(run->server);
	reactors_stop(run);
	state_close(run->state);
	config_free(run->config);
	return true;
}
