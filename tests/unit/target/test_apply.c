/* A configuration is made to run, and again, and only what changed is touched. */
#include "tests/unit/quintain_test.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "target/running.h"
#include "tests/unit/target/fake_server.h"
#include "tests/unit/target/scratch.h"

#define IQN "iqn.2026-11.org.quintain.test:"
#define FRAME                                                                          \
	"state-dir \"%s/state\" reactors 1\n"                                          \
	"portal-group pg { discovery-auth-group no-authentication listen 127.0.0.1:1 " \
	"listen [::1]:2 advertise 192.0.2.1:3 }\n"

static struct running run;
static struct jobs *jobs;

/* The configuration of FRAME and body; @ in body is the scratch directory. */
static struct config *parsed(const char *body)
{
	static char text[8192];
	struct config *config;
	size_t len;

	log_set_level(LOG_LEVEL_ERROR);
	len = (size_t)snprintf(text, sizeof(text), FRAME, scratch_directory());
	for (; *body; body++)
		if (*body == '@')
			len += (size_t)snprintf(text + len, sizeof(text) - len, "%s",
						scratch_directory());
		else
			text[len++] = *body;
	config = config_parse("test.conf", text, len, false);
	config_print_messages(config, stdout);
	CU_ASSERT_EQUAL_FATAL(config->nerrors, 0);
	return config;
}

static void started(const char *body)
{
	struct config *config = parsed(body);
	struct err err = { "" };
	int rc;

	jobs = jobs_create();
	CU_ASSERT_PTR_NOT_NULL_FATAL(jobs);
	rc = running_start(&run, config, jobs, &err);
	if (rc < 0) {
		config_free(config);
		test_skip("%s", err.text);
	}
	CU_ASSERT_EQUAL_FATAL(running_apply(&run, config, &err), 0);
}

static int applied(const char *body)
{
	struct config *config = parsed(body);
	struct err err = { "" };
	int rc = running_apply(&run, config, &err);

	if (rc < 0)
		config_free(config);
	return rc;
}

static void stopped(void)
{
	CU_ASSERT(running_stop(&run, 2000));
	jobs_destroy(jobs);
	CU_ASSERT_EQUAL(fake_targets, 0);
	fake_view_refused = false;
	fake_sessions_ended = 0;
}

static struct target_run *target(const char *name)
{
	list_for_each(link, &run.targets) {
		struct target_run *t = container_of(link, struct target_run, link);

		if (strcmp(t->config->name, name) == 0)
			return t;
	}
	return NULL;
}

static struct scsi_lun *mapped(const char *name, uint16_t number)
{
	const struct target_run *t = target(name);

	return t ? scsi_target_lun(t->scsi, number) : NULL;
}

static uint64_t size(const struct scsi_lun *lun)
{
	return lun && scsi_lun_backing(lun) ? backing_size(scsi_lun_backing(lun)) : 0;
}

#define TARGET(name, luns) \
	"target " IQN name " { auth-group no-authentication portal-group pg " luns " }\n"

static void view_says_what_the_file_says(void)
{
	const struct iscsi_target_view *t;

	started("auth-group people { chap alice a-secret-of-16ch initiator-portal 192.0.2.0/24\n"
		"initiator-portal [2001:db8::]/32 initiator-name iqn.2026-11.*:x }\n"
		"target " IQN "b { alias B auth-group people portal-group pg\n"
		" lun 5 { backend ramdisk size 1M } }\n" TARGET("a", ""));
	CU_ASSERT_EQUAL_FATAL(fake_view->ntargets, 2);
	CU_ASSERT_STRING_EQUAL(fake_view->targets[0].name, IQN "a");
	t = iscsi_view_target(fake_view, IQN "b");
	CU_ASSERT_PTR_NOT_NULL_FATAL(t);
	CU_ASSERT_STRING_EQUAL(t->alias, "B");
	CU_ASSERT_EQUAL_FATAL(t->nports, 1);
	CU_ASSERT_EQUAL(t->ports[0].auth->type, ISCSI_AUTH_CHAP);
	CU_ASSERT_STRING_EQUAL(t->ports[0].auth->users[0].secret, "a-secret-of-16ch");
	CU_ASSERT_EQUAL(t->ports[0].auth->initiator_portals[0].prefix_len, 24);
	CU_ASSERT_EQUAL(t->ports[0].auth->initiator_portals[1].prefix_len, 32);
	CU_ASSERT_EQUAL(t->ports[0].auth->initiator_portals[1].addr.ss_family, AF_INET6);
	CU_ASSERT_STRING_EQUAL(t->ports[0].group->name, "pg");
	CU_ASSERT(t->ports[0].group->tag > 0);
	CU_ASSERT(t->ports[0].relative_port > 0);
	CU_ASSERT_PTR_EQUAL(t->target, target(IQN "b")->iscsi);
	CU_ASSERT_PTR_NOT_NULL(mapped(IQN "b", 5));
	stopped();
}

static void portals_are_resolved_with_their_advertised_names(void)
{
	const struct iscsi_portal_group *group;
	char address[64];

	started(TARGET("a", ""));
	group = iscsi_view_group(fake_view, "pg");
	CU_ASSERT_PTR_NOT_NULL_FATAL(group);
	iscsi_address_text(&group->portals[0].listen, address, sizeof(address));
	CU_ASSERT_STRING_EQUAL(address, "127.0.0.1:1");
	CU_ASSERT_PTR_NULL(group->portals[0].advertise);
	if (group->nportals > 1) {
		iscsi_address_text(&group->portals[1].listen, address, sizeof(address));
		CU_ASSERT_STRING_EQUAL(address, "[::1]:2");
		CU_ASSERT_STRING_EQUAL(group->portals[1].advertise, "192.0.2.1:3");
	}
	stopped();
}

static void unchanged_objects_stay_the_same(void)
{
	const char *body = TARGET("a", "lun 0 { path @/same size 1M }");
	struct scsi_lun *lun;
	struct iscsi_target *iscsi;
	struct backing *backing;

	started(body);
	lun = mapped(IQN "a", 0);
	iscsi = target(IQN "a")->iscsi;
	backing = scsi_lun_backing(lun);
	CU_ASSERT_EQUAL(applied(body), 0);
	CU_ASSERT_PTR_EQUAL(mapped(IQN "a", 0), lun);
	CU_ASSERT_PTR_EQUAL(target(IQN "a")->iscsi, iscsi);
	CU_ASSERT_PTR_EQUAL(scsi_lun_backing(lun), backing);
	CU_ASSERT_EQUAL(fake_sessions_ended, 0);
	stopped();
}

static void renamed_and_renumbered_lun_keeps_its_store(void)
{
	struct scsi_lun *lun;

	started("lun one { path @/moved size 1M }\n" TARGET("a", "lun 0 one"));
	lun = mapped(IQN "a", 0);
	CU_ASSERT_EQUAL(applied("lun two { path @/moved size 1M }\n" TARGET("a", "lun 9 two")), 0);
	CU_ASSERT_PTR_NULL(mapped(IQN "a", 0));
	CU_ASSERT_PTR_EQUAL(mapped(IQN "a", 9), lun);
	stopped();
}

static void raised_size_grows_the_lun_in_place(void)
{
	struct scsi_lun *lun;

	started(TARGET("a", "lun 0 { path @/grows size 1M }"));
	lun = mapped(IQN "a", 0);
	CU_ASSERT_EQUAL(applied(TARGET("a", "lun 0 { path @/grows size 3M }")), 0);
	CU_ASSERT_PTR_EQUAL(mapped(IQN "a", 0), lun);
	CU_ASSERT_EQUAL(size(lun), 3u << 20);
	stopped();
}

static void refused_portals_change_nothing(void)
{
	struct scsi_lun *lun;

	started(TARGET("a", "lun 0 { path @/kept size 1M }"));
	lun = mapped(IQN "a", 0);
	fake_view_refused = true;
	CU_ASSERT(applied(TARGET("b",
				 "lun 0 { path @/kept size 2M }\n lun 1 { path @/new size 1M }")) <
		  0);
	CU_ASSERT_PTR_EQUAL(mapped(IQN "a", 0), lun);
	CU_ASSERT_EQUAL(size(lun), 1u << 20);
	CU_ASSERT_PTR_NULL(target(IQN "b"));
	CU_ASSERT_EQUAL(fake_targets, 1);
	fake_view_refused = false;
	CU_ASSERT_EQUAL(applied(TARGET("a", "lun 0 { path @/kept size 1M }")), 0);
	CU_ASSERT_PTR_EQUAL(mapped(IQN "a", 0), lun);
	stopped();
}

static void removed_target_ends_its_sessions(void)
{
	started(TARGET("a", "") TARGET("b", "lun 0 { backend ramdisk size 1M }"));
	CU_ASSERT_EQUAL(applied(TARGET("a", "")), 0);
	CU_ASSERT_PTR_NULL(target(IQN "b"));
	CU_ASSERT_EQUAL(fake_sessions_ended, 1);
	CU_ASSERT(list_empty(&run.luns));
	stopped();
}

/* The session's commands are stuck in a LUN that the target does not map any
 * more: what the session points to stays in memory. */
static void removed_target_whose_sessions_stay_is_left(void)
{
	struct scsi_target *scsi;

	started(TARGET("a", "") TARGET("b", ""));
	scsi = target(IQN "b")->scsi;
	fake_sessions_stay = true;
	CU_ASSERT_EQUAL(applied(TARGET("a", "")), 0);
	fake_sessions_stay = false;
	CU_ASSERT_PTR_NULL(target(IQN "b"));
	CU_ASSERT_EQUAL(run.nstuck, 1);
	run.nstuck = 0;
	scsi_target_destroy(scsi);
	stopped();
}

static void number_of_another_path_is_another_lun(void)
{
	started(TARGET("a", "lun 0 { path @/old size 1M }"));
	CU_ASSERT_EQUAL(applied(TARGET("a", "lun 0 { path @/other size 2M }")), 0);
	CU_ASSERT_EQUAL(size(mapped(IQN "a", 0)), 2u << 20);
	stopped();
}

static void missing_store_is_served_when_it_comes(void)
{
	char path[PATH_MAX];

	started(TARGET("a", "lun 0 { path @/late }"));
	CU_ASSERT_EQUAL(size(mapped(IQN "a", 0)), 0);
	scratch_write("late", "");
	scratch_path("late", path, sizeof(path));
	CU_ASSERT_EQUAL(truncate(path, 1 << 20), 0);
	container_of(run.luns.next, struct lun_run, link)->retry_at_ms = 0;
	running_tick(&run);
	CU_ASSERT(jobs_wait(jobs, 1000));
	CU_ASSERT_EQUAL(size(mapped(IQN "a", 0)), 1u << 20);
	stopped();
}

static void identity_is_the_same_after_a_restart(void)
{
	const char *body = TARGET("a", "lun 0 { path @/known size 1M }");
	struct scsi_identity before;

	started(body);
	before = container_of(run.luns.next, struct lun_run, link)->identity;
	stopped();
	started(body);
	CU_ASSERT_EQUAL(memcmp(&container_of(run.luns.next, struct lun_run, link)->identity,
			       &before, sizeof(before)),
			0);
	stopped();
}

static const struct scsi_identity *identity(void)
{
	return &container_of(run.luns.next, struct lun_run, link)->identity;
}

static void move(const char *from, const char *to)
{
	char a[PATH_MAX], b[PATH_MAX];

	scratch_path(from, a, sizeof(a));
	scratch_path(to, b, sizeof(b));
	CU_ASSERT_EQUAL(rename(a, b), 0);
}

static void identity_is_known_while_the_store_is_not_there(void)
{
	const char *body = TARGET("a", "lun 0 { path @/mount/disk size 1M }");
	struct scsi_identity before;
	char path[PATH_MAX];

	scratch_path("mount", path, sizeof(path));
	CU_ASSERT_EQUAL(mkdir(path, 0700), 0);
	started(body);
	before = *identity();
	stopped();
	move("mount", "unmounted");
	started(body);
	CU_ASSERT_EQUAL(size(mapped(IQN "a", 0)), 0);
	CU_ASSERT_EQUAL(memcmp(identity(), &before, sizeof(before)), 0);
	stopped();
}

static void path_that_leads_elsewhere_is_another_disk(void)
{
	const char *body = TARGET("a", "lun 0 { path @/turns size 1M }");
	struct scsi_identity before;
	char path[PATH_MAX];

	started(body);
	before = *identity();
	stopped();
	move("turns", "elsewhere");
	scratch_path("turns", path, sizeof(path));
	CU_ASSERT_EQUAL(symlink("elsewhere", path), 0);
	started(body);
	CU_ASSERT_EQUAL(size(mapped(IQN "a", 0)), 1u << 20);
	CU_ASSERT_NOT_EQUAL(memcmp(identity(), &before, sizeof(before)), 0);
	stopped();
}

static const struct test tests[] = {
	TEST(view_says_what_the_file_says),
	TEST(portals_are_resolved_with_their_advertised_names),
	TEST(unchanged_objects_stay_the_same),
	TEST(renamed_and_renumbered_lun_keeps_its_store),
	TEST(raised_size_grows_the_lun_in_place),
	TEST(refused_portals_change_nothing),
	TEST(removed_target_ends_its_sessions),
	TEST(removed_target_whose_sessions_stay_is_left),
	TEST(number_of_another_path_is_another_lun),
	TEST(missing_store_is_served_when_it_comes),
	TEST(identity_is_the_same_after_a_restart),
	TEST(identity_is_known_while_the_store_is_not_there),
	TEST(path_that_leads_elsewhere_is_another_disk),
};
TEST_MAIN(tests)
