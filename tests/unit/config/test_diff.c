/* What a reload has to do. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/diff.h"
#include "tests/unit/config/config_fixture.h"
#include "tests/unit/quintain_test.h"

#define PORTAL "portal-group p { listen 127.0.0.1 } "

static void print_change(FILE *out, const struct config_change *change)
{
	static const char *const objects[] = { "global", "auth-group", "portal-group", "pool",
					       "lun",	 "target",     "map" };
	static const char *const kinds[] = { "removed", "added", "changed" };
	static const char *const reloads[] = { "live", "new-logins", "reopen", "restart" };
	const struct config_lun_map *map = change->after ? change->after : change->before;

	fprintf(out, "%s %s", objects[change->object], change->name);
	if (change->object == CONFIG_OBJECT_LUN_MAP)
		fprintf(out, " %u", map->number);
	fprintf(out, " %s", kinds[change->kind]);
	if (change->kind == CONFIG_CHANGED)
		fprintf(out, " %s", reloads[change->reload]);
	for (const struct config_change_key *k = change->keys; k; k = k->next)
		fprintf(out, " %s", k->key);
	fputc('\n', out);
}

/* One line a change. */
static void check_diff(const char *before, const char *after, const char *expected)
{
	struct config *old = config_of(before), *new = config_of(after);
	struct config_diff *diff;
	char *all = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&all, &len);

	CHECK_ERRORS_OF(old, "");
	CHECK_ERRORS_OF(new, "");
	diff = config_diff(old, new);
	for (const struct config_change *c = diff->changes; c; c = c->next)
		print_change(out, c);
	fclose(out);
	if (strcmp(all, expected) != 0)
		printf("expected:\n%sfound:\n%s", expected, all);
	CU_ASSERT_STRING_EQUAL(all, expected);
	free(all);
	config_diff_free(diff);
	config_free(old);
	config_free(new);
}

static void equal_configurations_have_no_changes(void)
{
	check_diff("auth-group a { chap u secretsecret } " PORTAL
		   "target iqn.a { auth-group a portal-group p lun 0 { path /x } }",
		   "# another layout\n" PORTAL
		   "target IQN.A {\n portal-group p\n lun 0 { path \"/x\" }"
		   "\nauth-group a\n}\nauth-group a { chap \"u\" secretsecret }",
		   "");
}

static void objects_are_added_and_removed(void)
{
	check_diff(PORTAL "target iqn.a { portal-group p lun 0 { path /x } }",
		   PORTAL "portal-group q { listen 127.0.0.2 } auth-group a { auth-type none }"
			  "target iqn.b { portal-group p portal-group q lun 1 { path /y } }",
		   "auth-group a added\n"
		   "portal-group q added\n"
		   "lun iqn.a,lun,0 removed\n"
		   "lun iqn.b,lun,1 added\n"
		   "target iqn.a removed\n"
		   "target iqn.b added\n"
		   "map iqn.a 0 removed\n"
		   "map iqn.b 1 added\n");
}

static void lun_change_names_rows_and_strongest_class(void)
{
	check_diff("lun l { path /x size 1G }", "lun l { path /x size 2G }",
		   "lun l changed live size\n");
	check_diff("lun l { path /x size 1G }", "lun l { path /x size 2G read-only yes }",
		   "lun l changed reopen size read-only\n");
}

static void target_change_names_rows(void)
{
	check_diff(PORTAL "target iqn.a { portal-group p alias x }",
		   PORTAL "target iqn.a { portal-group p alias y queue-depth 3 "
			  "auth-group no-authentication }",
		   "target iqn.a changed new-logins alias auth-group queue-depth\n");
	check_diff(PORTAL "target iqn.a { portal-group p }",
		   PORTAL "target iqn.a { portal-group p no-authentication }",
		   "target iqn.a changed new-logins portal-group\n");
}

static void global_limit_changes_targets_that_inherit_it(void)
{
	check_diff(PORTAL "target iqn.a { portal-group p } target iqn.b { portal-group p "
			  "nop-interval 9 }",
		   PORTAL "nop-interval 7 target iqn.a { portal-group p } target iqn.b { "
			  "portal-group p nop-interval 9 } reactors 2",
		   "global the top level changed restart reactors nop-interval\n"
		   "target iqn.a changed new-logins nop-interval\n");
}

static void secret_changes_only_its_group(void)
{
	check_diff("auth-group a { chap u secretsecret } " PORTAL
		   "target iqn.a { auth-group a portal-group p }",
		   "auth-group a { chap u secretsecret1 initiator-name iqn.b } " PORTAL
		   "target iqn.a { auth-group a portal-group p }",
		   "auth-group a changed new-logins chap initiator-name\n");
}

static void portal_change_tells_what_reopens(void)
{
	check_diff(PORTAL,
		   "portal-group p { listen 127.0.0.1 advertise 192.0.2.1 "
		   "discovery-portals all }",
		   "portal-group p changed live advertise discovery-portals\n");
	check_diff(PORTAL, "portal-group p { listen 127.0.0.2 }",
		   "portal-group p changed reopen listen\n");
}

static void lun_number_that_gets_another_lun_changes(void)
{
	check_diff("lun l { path /x } lun m { path /y } target iqn.a { lun 0 l lun 2 l }",
		   "lun l { path /x } lun m { path /y } target iqn.a { lun 0 m lun 1 l }",
		   "map iqn.a 0 changed live lun\n"
		   "map iqn.a 1 added\n"
		   "map iqn.a 2 removed\n");
}

static const struct test tests[] = {
	TEST(equal_configurations_have_no_changes),
	TEST(objects_are_added_and_removed),
	TEST(lun_change_names_rows_and_strongest_class),
	TEST(target_change_names_rows),
	TEST(global_limit_changes_targets_that_inherit_it),
	TEST(secret_changes_only_its_group),
	TEST(portal_change_tells_what_reopens),
	TEST(lun_number_that_gets_another_lun_changes),
};
TEST_MAIN(tests)
