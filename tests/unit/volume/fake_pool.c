/* The environments call a pool, which tests of what lies below it have not. */
#include "backing/volume/pool.h"

#pragma weak pool_run
#pragma weak pool_tick

void pool_run(struct pool *pool)
{
	(void)pool;
}

void pool_tick(struct pool *pool)
{
	(void)pool;
}
