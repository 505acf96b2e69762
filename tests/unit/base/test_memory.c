/* The arena and the slab. */
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/slab.h"
#include "tests/unit/quintain_test.h"

static void arena_memory_is_zero_aligned_and_apart(void)
{
	struct arena *arena = arena_create();
	char *last = NULL;
	size_t bad = 0;

	for (size_t size = 0; size < 9000; size += 111) {
		char *p = arena_alloc(arena, size);

		if ((uintptr_t)p % 16 != 0)
			bad++;
		for (size_t i = 0; i < size; i++)
			if (p[i] != 0)
				bad++;
		memset(p, 0xff, size);
		if (last && *last != 'l')
			bad++;
		last = arena_strdup(arena, "last");
	}
	CU_ASSERT_EQUAL(bad, 0);
	arena_destroy(arena);
	arena_destroy(NULL);
}

static void arena_strndup_ends_the_string(void)
{
	struct arena *arena = arena_create();

	CU_ASSERT_STRING_EQUAL(arena_strndup(arena, "portal-group", 6), "portal");
	CU_ASSERT_STRING_EQUAL(arena_strndup(arena, "ab", 6), "ab");
	CU_ASSERT_STRING_EQUAL(arena_strdup(arena, ""), "");
	arena_destroy(arena);
}

static void slab_gives_each_object_once(void)
{
	struct slab *slab = slab_create(100, 3);
	void *a = slab_get(slab), *b = slab_get(slab), *c = slab_get(slab);

	CU_ASSERT(a && b && c && a != b && b != c && a != c);
	CU_ASSERT_EQUAL((uintptr_t)b % 64, 0);
	CU_ASSERT_PTR_NULL(slab_get(slab));
	CU_ASSERT_EQUAL(slab_free_count(slab), 0);
	CU_ASSERT_EQUAL(slab_count(slab), 3);
	slab_put(slab, b);
	CU_ASSERT_EQUAL(slab_free_count(slab), 1);
	CU_ASSERT_PTR_EQUAL(slab_get(slab), b);
	slab_put(slab, c);
	slab_put(slab, b);
	slab_put(slab, a);
	slab_destroy(slab);
}

static void slab_keeps_what_an_object_holds(void)
{
	struct slab *slab = slab_create(64, 2);
	char *object = slab_get(slab);

	memset(object, 'k', 64);
	slab_put(slab, object);
	CU_ASSERT_PTR_EQUAL(slab_get(slab), object);
	for (int i = 0; i < 64; i++)
		CU_ASSERT_EQUAL(object[i], 'k');
	slab_put(slab, object);
	slab_destroy(slab);
}

static void slab_refuses_a_size_that_overflows(void)
{
	CU_ASSERT_PTR_NULL(slab_create(SIZE_MAX / 2, 4));
	CU_ASSERT_PTR_NULL(slab_create(SIZE_MAX, 1));
}

static const struct test tests[] = {
	TEST(arena_memory_is_zero_aligned_and_apart),
	TEST(arena_strndup_ends_the_string),
	TEST(slab_gives_each_object_once),
	TEST(slab_keeps_what_an_object_holds),
	TEST(slab_refuses_a_size_that_overflows),
};

TEST_MAIN(tests)
