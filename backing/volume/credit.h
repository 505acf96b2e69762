/*
 * Admission: a write is accepted only when there will be room for it.
 *
 * live + charged <= 90 % of (segments - reserve).  The charge is what a write
 * may cost at worst (data uncompressed, descriptors, entries); what it did not
 * cost is given back when its group is laid out, the entries' part when its
 * region is merged.  See VOLUME format, "Space".
 */
#ifndef BACKING_VOLUME_CREDIT_H
#define BACKING_VOLUME_CREDIT_H

#include "backing/volume/internal.h"

int credit_open(struct pool *pool, struct err *err);
void credit_close(struct pool *pool);

/* Bytes of map that one delta may cost until merged: entry, split remainder,
 * history slice. */
#define CREDIT_DELTA 96u
/* And the first of a region. */
#define CREDIT_REGION 512u

/* At worst, for data of so many bytes in nrecords records. */
uint64_t credit_cost(const struct pool *pool, uint64_t bytes, uint32_t nrecords, uint32_t nregions);
/* Takes it; false: ENOSPC. */
bool credit_take(struct pool *pool, uint64_t bytes);
void credit_give(struct pool *pool, uint64_t bytes);
/* Without admission: what recovery finds to be charged already. */
void credit_force(struct pool *pool, uint64_t bytes);
uint64_t credit_charged(const struct pool *pool);
uint64_t credit_limit(const struct pool *pool); /* bytes */
uint64_t credit_available(const struct pool *pool);
/* Live counts changed: the threshold event, those who wait. */
void credit_update(struct pool *pool);

#endif
