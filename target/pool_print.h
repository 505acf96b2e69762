/*
 * Pools and volumes as an operator reads them: from the answers of pool_ops.h.
 *
 * Main thread of a command.
 */
#ifndef TARGET_POOL_PRINT_H
#define TARGET_POOL_PRINT_H

#include <jansson.h>

/* As it is, with a newline; takes the reference. */
void print_json(json_t *value);

/* An array of pools, of volumes; one volume in full. */
void print_pools(const json_t *list);
void print_volumes(const json_t *list);
void print_volume(const json_t *volume);

#endif
