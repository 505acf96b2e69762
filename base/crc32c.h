/*
 * CRC32C (Castagnoli), the digest of iSCSI (RFC 7143 13.1).
 *
 * crc = crc32c_update(CRC32C_INIT, ...) over any number of pieces, then
 * crc32c_final(crc) is the value that goes on the wire (by le32_put()).
 * Uses the processor's instruction where there is one, three streams at a
 * time for long inputs; a table elsewhere.  Pure; any thread.
 */
#ifndef BASE_CRC32C_H
#define BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

#define CRC32C_INIT 0xffffffffu

uint32_t crc32c_update(uint32_t crc, const void *data, size_t len);

static inline uint32_t crc32c_final(uint32_t crc)
{
	return ~crc;
}

/* The portable implementation, for tests that compare the two. */
uint32_t crc32c_update_table(uint32_t crc, const void *data, size_t len);

#endif
