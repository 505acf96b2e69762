/* Tags and relative ports are the same after a restart. */
#include "tests/unit/quintain_test.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "target/state.h"
#include "tests/unit/target/scratch.h"

static int assign(const char *name, struct state_group *groups, size_t ngroups,
		  struct state_port *ports, size_t nports, struct err *err)
{
	char directory[PATH_MAX];
	struct state *state = NULL;
	int rc;

	scratch_path(name, directory, sizeof(directory));
	CU_ASSERT_EQUAL_FATAL(state_open(directory, &state, NULL), 0);
	rc = state_ports_assign(state, groups, ngroups, ports, nports, err);
	state_close(state);
	return rc;
}

static void numbers_stay_when_others_come_and_go(void)
{
	struct state_group first[] = { { "a", 0 }, { "b", 0 } };
	struct state_group later[] = { { "new", 0 }, { "b", 0 } };
	struct state_port ports[] = { { "iqn.1", "a", 0 }, { "iqn.1", "b", 0 } };
	struct state_port ports_later[] = { { "iqn.0", "b", 0 }, { "iqn.1", "b", 0 } };

	CU_ASSERT_EQUAL(assign("stay", first, 2, ports, 2, NULL), 0);
	CU_ASSERT_EQUAL(assign("stay", later, 2, ports_later, 2, NULL), 0);
	CU_ASSERT_EQUAL(later[1].tag, first[1].tag);
	CU_ASSERT_EQUAL(ports_later[1].id, ports[1].id);
	CU_ASSERT_NOT_EQUAL(later[0].tag, first[0].tag);
	CU_ASSERT_NOT_EQUAL(ports_later[0].id, ports[0].id);
}

static void numbers_begin_at_one_and_differ(void)
{
	struct state_group groups[] = { { "a", 0 }, { "b", 0 } };
	struct state_port ports[] = { { "iqn.1", "a", 0 }, { "iqn.2", "a", 0 } };

	CU_ASSERT_EQUAL(assign("one", groups, 2, ports, 2, NULL), 0);
	CU_ASSERT_EQUAL(groups[0].tag, 1);
	CU_ASSERT_EQUAL(groups[1].tag, 2);
	CU_ASSERT_EQUAL(ports[0].id, 1);
	CU_ASSERT_EQUAL(ports[1].id, 2);
}

static void configured_tag_wins_over_a_chosen_one(void)
{
	struct state_group chosen[] = { { "a", 0 } };
	struct state_group both[] = { { "a", 0 }, { "fixed", 1 } };

	CU_ASSERT_EQUAL(assign("fixed", chosen, 1, NULL, 0, NULL), 0);
	CU_ASSERT_EQUAL(chosen[0].tag, 1);
	CU_ASSERT_EQUAL(assign("fixed", both, 2, NULL, 0, NULL), 0);
	CU_ASSERT_EQUAL(both[1].tag, 1);
	CU_ASSERT_NOT_EQUAL(both[0].tag, 1);
}

static void damaged_numbers_are_an_error(void)
{
	struct state_group groups[] = { { "a", 0 } };
	struct err err;

	CU_ASSERT_EQUAL(assign("bad", groups, 1, NULL, 0, NULL), 0);
	scratch_write("bad/ports.json", "{\"version\":1,\"tags\":{\"a\":65536},\"ports\":{}}");
	CU_ASSERT_EQUAL(assign("bad", groups, 1, NULL, 0, &err), -EBADMSG);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "ports.json"));
}

static const struct test tests[] = {
	TEST(numbers_stay_when_others_come_and_go),
	TEST(numbers_begin_at_one_and_differ),
	TEST(configured_tag_wins_over_a_chosen_one),
	TEST(damaged_numbers_are_an_error),
};
TEST_MAIN(tests)
