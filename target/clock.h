/* The time of the control thread.  Any thread. */
#ifndef TARGET_CLOCK_H
#define TARGET_CLOCK_H

#include <stdint.h>

uint64_t clock_ms(void); /* CLOCK_MONOTONIC */

#endif
