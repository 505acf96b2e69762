#include "tests/pdu/rig.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"

#define MEMORY_SIZE (64ull << 20)
#define FILE_SIZE   (8ull << 20)

static const struct iscsi_auth_group anybody = { .name = "anybody", .type = ISCSI_AUTH_NONE };

uint64_t rig_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

void rig_sleep_ms(unsigned int ms)
{
	struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };

	nanosleep(&t, NULL);
}

void rig_prepare(struct rig *rig)
{
	memset(rig, 0, sizeof(*rig));
	rig->nreactors = 2;
	rig->buffer_bytes = BUFPOOL_BYTES_MIN;
	option_defaults(iscsi_limits_options, &rig->limits);
	option_defaults(iscsi_server_options, &rig->settings);
	rig->settings.command_slots = 2048;
	rig->settings.max_connections = 4096;
	/* What peers of these tests do wrong is their business. */
	log_set_level(LOG_LEVEL_ERROR);
}

/* ---- LUNs ---- */

static struct backing *store_open(const char *path, uint64_t size)
{
	struct backing_settings settings = { .must_exist = false };
	struct backing *backing = NULL;
	struct err err = { "" };

	option_defaults(backing_options, &settings);
	settings.backend = path ? BACKING_KIND_BLOCK : BACKING_KIND_RAMDISK;
	settings.path = path;
	settings.size = size;
	settings.block_size = RIG_BLOCK;
	if (backing_open(&settings, &backing, &err) != 0)
		printf("%s\n", err.text);
	CU_ASSERT_PTR_NOT_NULL_FATAL(backing);
	return backing;
}

static void lun_start(struct rig *rig, enum rig_lun which, struct backing *backing,
		      struct scsi_target *target, uint16_t number)
{
	static const char *const names[] = { "memory", "fault", "file", "other" };
	struct scsi_identity identity = { { 0xa0, (uint8_t)which } };
	struct scsi_lun_settings settings;
	struct err err = { "" };

	option_defaults(scsi_lun_options, &settings);
	rig->backing[which] = backing;
	rig->lun[which] = scsi_lun_create(names[which], &settings, &identity);
	CU_ASSERT_EQUAL_FATAL(
		scsi_lun_set_backing(rig->lun[which], backing, rig->reactor, rig->nreactors, &err),
		0);
	CU_ASSERT_EQUAL_FATAL(scsi_target_map(target, number, rig->lun[which]), 0);
}

static void luns_start(struct rig *rig)
{
	const char *tmp = rig->file_dir ? rig->file_dir : getenv("TEST_TMP");
	static unsigned int serial;
	struct backing *fault = NULL;
	struct err err = { "" };

	snprintf(rig->path, sizeof(rig->path), "%s/quintain-pdu-%d-%u", tmp ? tmp : "/tmp",
		 (int)getpid(), serial++);
	/* Below /dev no store makes one. */
	close(open(rig->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600));
	rig->scsi[0] = scsi_target_create(RIG_DISK);
	rig->scsi[1] = scsi_target_create(RIG_OTHER);
	rig->scsi_extra = scsi_target_create(RIG_IQN "extra");
	CU_ASSERT_EQUAL_FATAL(fault_open(store_open(NULL, MEMORY_SIZE), NULL, 0, &fault, &err), 0);
	lun_start(rig, RIG_MEMORY, store_open(NULL, MEMORY_SIZE), rig->scsi[0], 0);
	lun_start(rig, RIG_FAULT, fault, rig->scsi[0], 1);
	lun_start(rig, RIG_FILE, store_open(rig->path, FILE_SIZE), rig->scsi[0], 2);
	lun_start(rig, RIG_OTHER_MEMORY, store_open(NULL, FILE_SIZE), rig->scsi[1], 0);
}

void rig_fault(struct rig *rig, uint32_t ops, enum fault_kind kind, uint32_t delay_ms)
{
	struct fault_rule rule = { .ops = ops,
				   .kind = (uint8_t)kind,
				   .nth = 1,
				   .for_ever = true,
				   .err = 5,
				   .delay_ms = delay_ms };

	fault_set(rig->backing[RIG_FAULT], &rule, 1);
}

void rig_release(struct rig *rig)
{
	fault_set(rig->backing[RIG_FAULT], NULL, 0);
	fault_release(rig->backing[RIG_FAULT]);
}

/* ---- the view ---- */

/* A port that was free a moment ago. */
static uint16_t free_port(void)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(addr);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	CU_ASSERT_FATAL(fd >= 0);
	CU_ASSERT_EQUAL_FATAL(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	CU_ASSERT_EQUAL_FATAL(getsockname(fd, (struct sockaddr *)&addr, &len), 0);
	close(fd);
	return ntohs(addr.sin_port);
}

static const struct iscsi_portal_group *view_group(struct rig *rig, struct iscsi_view *view)
{
	struct iscsi_portal_group *group = arena_alloc(view->arena, sizeof(*group));
	struct iscsi_portal *portal = arena_alloc(view->arena, sizeof(*portal));
	struct sockaddr_in *in = (struct sockaddr_in *)&portal->listen;

	in->sin_family = AF_INET;
	in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	in->sin_port = htons(rig->port);
	group->name = "loopback";
	group->tag = RIG_TAG;
	group->portals = portal;
	group->nportals = 1;
	group->discovery_auth = &anybody;
	view->groups = group;
	view->ngroups = 1;
	return group;
}

static void view_target(struct rig *rig, struct iscsi_view *view, struct iscsi_target_view *target,
			const char *name, struct iscsi_target *iscsi)
{
	struct iscsi_target_port *port = arena_alloc(view->arena, sizeof(*port));

	port->group = view->groups;
	port->auth = &anybody;
	port->relative_port = 1;
	target->name = arena_strdup(view->arena, name);
	target->ports = port;
	target->nports = 1;
	target->limits = rig->limits;
	target->target = iscsi;
}

/* Sorted by name: disk, extra..., other. */
static struct iscsi_view *view_create(struct rig *rig)
{
	struct arena *arena = arena_create();
	struct iscsi_view *view = arena_alloc(arena, sizeof(*view));
	struct iscsi_target_view *targets = arena_alloc(arena,
							(2 + rig->nextra) * sizeof(*targets));
	char name[64];

	view->arena = arena;
	view->limits = rig->limits;
	view->server = rig->settings;
	view_group(rig, view);
	view_target(rig, view, &targets[view->ntargets++], RIG_DISK, rig->target[0]);
	for (unsigned int i = 0; i < rig->nextra; i++) {
		snprintf(name, sizeof(name), RIG_IQN "extra%04u", i);
		view_target(rig, view, &targets[view->ntargets++], name, rig->extra);
	}
	view_target(rig, view, &targets[view->ntargets++], RIG_OTHER, rig->target[1]);
	view->targets = targets;
	return view;
}

/* ---- life ---- */

static void reactors_start(struct rig *rig)
{
	struct err err = { "" };

	if (reactor_probe(&err) != 0)
		test_skip("%s", err.text);
	for (unsigned int i = 0; i < rig->nreactors; i++) {
		struct reactor_config config = { .index = i,
						 .cpu = -1,
						 .ring_entries = 256,
						 .buffer_bytes = rig->buffer_bytes };

		CU_ASSERT_EQUAL_FATAL(reactor_start(&config, &rig->reactor[i], &err), 0);
	}
}

void rig_start(struct rig *rig)
{
	struct err err = { "" };
	struct iscsi_view *view;
	int rc = -1;

	reactors_start(rig);
	luns_start(rig);
	CU_ASSERT_EQUAL_FATAL(iscsi_server_create(&rig->settings, rig->reactor, rig->nreactors,
						  &rig->server, &err),
			      0);
	rig->target[0] = iscsi_target_create(rig->server, RIG_DISK, rig->scsi[0]);
	rig->target[1] = iscsi_target_create(rig->server, RIG_OTHER, rig->scsi[1]);
	rig->extra = iscsi_target_create(rig->server, RIG_IQN "extra", rig->scsi_extra);
	/* Somebody else may have taken the port in between. */
	for (int i = 0; i < 10 && rc != 0; i++) {
		rig->port = free_port();
		view = view_create(rig);
		rc = iscsi_server_set_view(rig->server, view, &err);
		if (rc != 0)
			arena_destroy(view->arena);
	}
	if (rc != 0)
		printf("%s\n", err.text);
	CU_ASSERT_EQUAL_FATAL(rc, 0);
}

void rig_open(struct rig *rig)
{
	rig_prepare(rig);
	rig_start(rig);
}

static void lun_stop(struct rig *rig, enum rig_lun which)
{
	struct err err;

	CU_ASSERT_EQUAL(scsi_lun_set_backing(rig->lun[which], NULL, NULL, 0, &err), 0);
	scsi_lun_destroy(rig->lun[which]);
	backing_close(rig->backing[which]);
}

void rig_free(struct rig *rig)
{
	iscsi_server_destroy(rig->server);
	for (int i = 0; i < 2; i++)
		iscsi_target_put(rig->target[i]);
	iscsi_target_put(rig->extra);
	for (uint16_t number = 0; number < 3; number++)
		CU_ASSERT_EQUAL(scsi_target_unmap(rig->scsi[0], number), 0);
	CU_ASSERT_EQUAL(scsi_target_unmap(rig->scsi[1], 0), 0);
	for (int i = 0; i < RIG_LUNS; i++)
		lun_stop(rig, (enum rig_lun)i);
	scsi_target_destroy(rig->scsi[0]);
	scsi_target_destroy(rig->scsi[1]);
	scsi_target_destroy(rig->scsi_extra);
	for (unsigned int i = 0; i < rig->nreactors; i++)
		CU_ASSERT_EQUAL(reactor_stop(rig->reactor[i], 5000), 0);
	unlink(rig->path);
}

void rig_stop(struct rig *rig)
{
	CU_ASSERT_TRUE(rig_wait_connections(rig, 0));
	CU_ASSERT_EQUAL_FATAL(iscsi_server_stop(rig->server, 4000), 0);
	rig_free(rig);
}

/* ---- looks ---- */

static bool wait_for(struct rig *rig, unsigned int n, bool sessions)
{
	struct iscsi_server_stats stats;
	uint64_t end = rig_now_ms() + 3000;

	do {
		iscsi_server_stats(rig->server, &stats);
		if ((sessions ? stats.sessions_now : stats.connections_now) == n)
			return true;
		rig_sleep_ms(2);
	} while (rig_now_ms() < end);
	printf("%u connections, %u sessions are left\n", stats.connections_now, stats.sessions_now);
	return false;
}

bool rig_wait_sessions(struct rig *rig, unsigned int n)
{
	return wait_for(rig, n, true);
}

bool rig_wait_connections(struct rig *rig, unsigned int n)
{
	return wait_for(rig, n, false);
}

static void take_window(const struct iscsi_session_info *info, void *arg)
{
	*(uint32_t *)arg = info->window;
}

uint32_t rig_window(struct rig *rig)
{
	uint32_t window = 0;

	iscsi_server_sessions(rig->server, take_window, &window);
	return window;
}
