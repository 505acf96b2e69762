/* The histogram: precision, quantiles, merging. */
#include "base/hist.h"

#include "tests/unit/quintain_test.h"

static struct hist h, other;

static void hist_quantile_of_nothing_is_zero(void)
{
	hist_init(&h);
	CU_ASSERT_EQUAL(hist_quantile(&h, 500000), 0);
}

static void hist_small_values_are_exact(void)
{
	hist_init(&h);
	for (uint64_t v = 1; v <= 100; v++)
		hist_add(&h, v);
	CU_ASSERT_EQUAL(hist_quantile(&h, 0), 1);
	CU_ASSERT_EQUAL(hist_quantile(&h, 500000), 50);
	CU_ASSERT_EQUAL(hist_quantile(&h, 990000), 99);
	CU_ASSERT_EQUAL(hist_quantile(&h, 1000000), 100);
	CU_ASSERT_EQUAL(h.sum, 5050);
}

static void hist_knows_a_value_to_one_64th(void)
{
	for (uint64_t v = 1; v < UINT64_C(1) << 39; v = v * 3 + 1) {
		uint64_t q;

		hist_init(&h);
		hist_add(&h, v);
		hist_add(&h, UINT64_C(1) << 40);
		q = hist_quantile(&h, 500000);
		CU_ASSERT(q >= v && q - v <= v / 64);
	}
}

static void hist_huge_values_land_in_the_last_bucket(void)
{
	hist_init(&h);
	hist_add(&h, UINT64_MAX);
	CU_ASSERT_EQUAL(h.bucket[HIST_NBUCKETS - 1], 1);
	CU_ASSERT_EQUAL(hist_quantile(&h, 999990), UINT64_MAX);
}

static void hist_buckets_rise_with_the_value(void)
{
	unsigned int last = 0;

	for (uint64_t v = 0; v < 100000; v++) {
		unsigned int i = 0;

		hist_init(&h);
		hist_add(&h, v);
		for (i = last; h.bucket[i] == 0 && i < HIST_NBUCKETS - 1; i++)
			continue;
		if (h.bucket[i] != 1 || i - last > 1) {
			CU_FAIL("bucket missing or skipped");
			return;
		}
		last = i;
		if (v > 2000)
			v += 15;
	}
}

static void hist_merge_adds_up(void)
{
	hist_init(&h);
	hist_init(&other);
	hist_merge(&h, &other);
	CU_ASSERT_EQUAL(h.count, 0);
	hist_add(&other, 7);
	hist_merge(&h, &other);
	hist_add(&other, 9);
	hist_merge(&h, &other);
	CU_ASSERT_EQUAL(h.count, 3);
	CU_ASSERT_EQUAL(h.sum, 23);
	CU_ASSERT_EQUAL(h.min, 7);
	CU_ASSERT_EQUAL(h.max, 9);
	CU_ASSERT_EQUAL(hist_quantile(&h, 600000), 7);
}

static const struct test tests[] = {
	TEST(hist_quantile_of_nothing_is_zero), TEST(hist_small_values_are_exact),
	TEST(hist_knows_a_value_to_one_64th),	TEST(hist_huge_values_land_in_the_last_bucket),
	TEST(hist_buckets_rise_with_the_value), TEST(hist_merge_adds_up),
};

TEST_MAIN(tests)
