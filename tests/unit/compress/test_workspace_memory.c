/*
 * The memory of a workspace: as much as it says, and all of it on the control
 * path.  Counts what libc is asked for, by this program and by the libraries.
 */
#include <malloc.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "compress/codec.h"
#include "tests/unit/compress/patterns.h"
#include "tests/unit/quintain_test.h"

static uint8_t data[CODEC_LEN_MAX], back[CODEC_LEN_MAX], stored[CODEC_LEN_MAX + 65536];

static struct {
	size_t calls, bytes;
	size_t fail_at; /* this call fails; 0: none */
} count;

#if defined(__has_feature)
#define SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

#if SANITIZED

/* A sanitizer has its own. */
static const bool counts;

#else

static const bool counts = true;

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static bool count_call(size_t size)
{
	count.calls++;
	count.bytes += size;
	return count.calls != count.fail_at;
}

void *malloc(size_t size)
{
	return count_call(size) ? __libc_malloc(size) : NULL;
}

void *calloc(size_t n, size_t size)
{
	return count_call(n * size) ? __libc_calloc(n, size) : NULL;
}

void *aligned_alloc(size_t alignment, size_t size)
{
	return count_call(size) ? __libc_memalign(alignment, size) : NULL;
}

#endif

static void require_counting(void)
{
	if (!counts)
		test_skip("memory is counted in a build without sanitizers only");
}

static void count_begin(size_t fail_at)
{
	memset(&count, 0, sizeof(count));
	count.fail_at = fail_at;
}

static void compressing_and_expanding_allocates_nothing(void)
{
	static const size_t lens[] = { 512, CODEC_LEN_MAX, 16384, 131072 };
	struct codec_workspace *ws;

	require_counting();
	ws = workspace_for(NULL);
	for (size_t i = 0; i < CHOICES_COUNT; i++) {
		struct codec_choice choice = choice_at(i);

		for (size_t k = 0; k < 4; k++) {
			size_t n;

			pattern_fill(PATTERN_TEXT, data, lens[k], 1);
			count_begin(0);
			n = codec_compress(ws, &choice, stored, sizeof(stored), data, lens[k]);
			CU_ASSERT(codec_expand(ws, choice.id, back, lens[k], stored, n));
			stored[n / 2] ^= 1;
			codec_expand(ws, choice.id, back, lens[k], stored, n);
			CU_ASSERT_EQUAL(count.calls, 0);
		}
	}
	codec_workspace_close(ws);
}

static void a_workspace_takes_what_it_says(void)
{
	struct codec_workspace *ws;
	size_t own;

	require_counting();
	count_begin(0);
	ws = codec_workspace_open();
	own = count.bytes;
	CU_ASSERT_PTR_NOT_NULL_FATAL(ws);
	CU_ASSERT(own <= codec_workspace_size() && own > codec_workspace_size() / 2);
	for (size_t i = 0; i < CHOICES_COUNT; i++) {
		struct codec_choice choice = choice_at(i);

		count_begin(0);
		CU_ASSERT_EQUAL(codec_workspace_prepare(ws, &choice, NULL), 0);
		CU_ASSERT(count.bytes <= codec_choice_size(&choice));
		CU_ASSERT(count.bytes >= codec_choice_size(&choice) / 2);
		count_begin(0);
		CU_ASSERT_EQUAL(codec_workspace_prepare(ws, &choice, NULL), 0);
		CU_ASSERT_EQUAL(count.calls, 0);
	}
	codec_workspace_close(ws);
}

static void a_workspace_that_cannot_have_memory_is_none(void)
{
	struct codec_workspace *ws;
	size_t calls;

	require_counting();
	count_begin(0);
	ws = codec_workspace_open();
	calls = count.calls;
	CU_ASSERT(calls >= 3);
	codec_workspace_close(ws);
	for (size_t fail_at = 1; fail_at <= calls; fail_at++) {
		count_begin(fail_at);
		CU_ASSERT_PTR_NULL(codec_workspace_open());
	}
}

static void a_choice_that_cannot_have_memory_is_named(void)
{
	struct codec_workspace *ws;
	struct codec_choice zstd = choice_of("zstd-7"), lz4 = choice_of("lz4");
	struct err err = { "" };

	require_counting();
	ws = workspace_for("lz4");
	count_begin(1);
	CU_ASSERT(codec_workspace_prepare(ws, &zstd, &err) < 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "zstd-7"));
	CU_ASSERT(!codec_workspace_ready(ws, &zstd));
	CU_ASSERT(codec_workspace_ready(ws, &lz4));
	count_begin(0);
	/* And the others are as good as before. */
	pattern_fill(PATTERN_TEXT, data, 4096, 1);
	CU_ASSERT(codec_compress(ws, &lz4, stored, sizeof(stored), data, 4096) > 0);
	CU_ASSERT_EQUAL(codec_workspace_prepare(ws, &zstd, &err), 0);
	CU_ASSERT(codec_compress(ws, &zstd, stored, sizeof(stored), data, 4096) > 0);
	codec_workspace_close(ws);
}

static const struct test tests[] = {
	TEST(compressing_and_expanding_allocates_nothing),
	TEST(a_workspace_takes_what_it_says),
	TEST(a_workspace_that_cannot_have_memory_is_none),
	TEST(a_choice_that_cannot_have_memory_is_named),
};

TEST_MAIN(tests)
