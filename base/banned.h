/*
 * Calls that are not used in this project: the compiler refuses them.
 * Included before everything else by the Makefile (-include).
 */
#ifndef BASE_BANNED_H
#define BASE_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef NDEBUG
#error "asserts check our own promises and are always compiled in"
#endif

#undef strcpy
#undef strcat
#undef sprintf
#undef strtok
#undef atoi
#undef gmtime
#undef alloca
#pragma GCC poison strcpy strcat sprintf strtok atoi gmtime alloca

#endif
