/* See reactor_fixture.h. */
#include "tests/unit/base/reactor_fixture.h"

#include <stdatomic.h>
#include <time.h>

#include "tests/unit/quintain_test.h"

struct reactor *fixture_reactor(unsigned int index)
{
	struct reactor_config config = {
		.index = index,
		.cpu = -1,
		.ring_entries = 64,
		.buffer_bytes = BUFPOOL_BYTES_MIN,
	};
	struct reactor *reactor = NULL;
	struct err err;

	if (reactor_probe(&err) != 0)
		test_skip("%s", err.text);
	CU_ASSERT_EQUAL_FATAL(reactor_start(&config, &reactor, &err), 0);
	return reactor;
}

void fixture_stop(struct reactor *reactor)
{
	CU_ASSERT_EQUAL(reactor_stop(reactor, 10000), 0);
}

void fixture_sleep_ms(unsigned int ms)
{
	struct timespec ts = { ms / 1000, (long)(ms % 1000) * 1000000 };

	nanosleep(&ts, NULL);
}

bool fixture_reaches(_Atomic uint32_t *value, uint32_t want)
{
	for (int i = 0; i < 10000; i++) {
		if (atomic_load(value) >= want)
			return true;
		fixture_sleep_ms(1);
	}
	return false;
}
