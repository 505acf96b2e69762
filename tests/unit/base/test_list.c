/* Intrusive lists. */
#include "base/list.h"

#include <string.h>

#include "tests/unit/quintain_test.h"

struct item {
	char name;
	struct list link;
};

static struct list head, other;
static struct item items[4] = {
	{ .name = 'a' }, { .name = 'b' }, { .name = 'c' }, { .name = 'd' }
};

static void setup(int n)
{
	list_init(&head);
	list_init(&other);
	for (int i = 0; i < 4; i++)
		list_init(&items[i].link);
	for (int i = 0; i < n; i++)
		list_add_tail(&head, &items[i].link);
}

static void expect(const struct list *list, const char *names)
{
	char got[8] = "";

	list_for_each(pos, list) {
		got[strlen(got)] = container_of(pos, struct item, link)->name;
	}
	CU_ASSERT_STRING_EQUAL(got, names);
}

static void list_keeps_the_order(void)
{
	setup(3);
	expect(&head, "abc");
	list_add_head(&head, &items[3].link);
	expect(&head, "dabc");
}

static void list_del_may_be_repeated(void)
{
	setup(3);
	list_del(&items[1].link);
	list_del(&items[1].link);
	expect(&head, "ac");
	CU_ASSERT_TRUE(list_empty(&items[1].link));
}

static void list_pop_takes_the_first(void)
{
	setup(2);
	CU_ASSERT_PTR_EQUAL(list_pop(&head), &items[0].link);
	CU_ASSERT_PTR_EQUAL(list_pop(&head), &items[1].link);
	CU_ASSERT_PTR_NULL(list_pop(&head));
	CU_ASSERT_TRUE(list_empty(&head));
}

static void list_splice_moves_all_to_the_end(void)
{
	setup(2);
	list_add_tail(&other, &items[2].link);
	list_add_tail(&other, &items[3].link);
	list_splice(&head, &other);
	expect(&head, "abcd");
	CU_ASSERT_TRUE(list_empty(&other));
	list_splice(&head, &other);
	expect(&head, "abcd");
}

static void list_for_each_safe_allows_removal(void)
{
	setup(4);
	list_for_each_safe(pos, &head) {
		if (container_of(pos, struct item, link)->name != 'c')
			list_del(pos);
	}
	expect(&head, "c");
}

static const struct test tests[] = {
	TEST(list_keeps_the_order),
	TEST(list_del_may_be_repeated),
	TEST(list_pop_takes_the_first),
	TEST(list_splice_moves_all_to_the_end),
	TEST(list_for_each_safe_allows_removal),
};

TEST_MAIN(tests)
