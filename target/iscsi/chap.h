/*
 * CHAP (RFC 7143 12.1.3, RFC 1994) and its algorithms: numbers 5 MD5, 6 SHA-1,
 * 7 SHA-256, 8 SHA3-256 of the registry, through libcrypto.
 *
 * Values are hex ("0x") or base64 ("0b"); challenges come from getrandom() and
 * are CHAP_CHALLENGE_LEN bytes; responses are compared in constant time.
 * Shared with the embedded initiator.  Pure but for the random bytes.
 */
#ifndef ISCSI_CHAP_H
#define ISCSI_CHAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHAP_CHALLENGE_LEN 24
#define CHAP_DIGEST_MAX	   32
/* A peer's challenge may have so many bytes (RFC 7143 12.1.3). */
#define CHAP_VALUE_MAX 1024

enum chap_algorithm {
	CHAP_MD5 = 5,
	CHAP_SHA1 = 6,
	CHAP_SHA256 = 7,
	CHAP_SHA3_256 = 8,
};

/* The first of a list like "8,7,6,5" that we have; 0 when none. */
unsigned int chap_choose(const char *list);

/* Bytes of the digest; 0 for an algorithm that we do not have. */
size_t chap_digest_len(unsigned int algorithm);

/* digest(id, secret, challenge); its length, or 0 when libcrypto refuses the
 * algorithm (a FIPS host and MD5). */
size_t chap_digest(unsigned int algorithm, uint8_t id, const char *secret, const uint8_t *challenge,
		   size_t challenge_len, uint8_t out[CHAP_DIGEST_MAX]);

/* "0x..." or "0b..." -> bytes; the number of bytes or -EINVAL. */
int chap_decode(const char *value, uint8_t *out, size_t cap);
/* bytes -> "0x..."; cap is at least 2 * len + 3. */
void chap_encode(const uint8_t *bytes, size_t len, char *out, size_t cap);

/* Constant time. */
bool chap_equal(const uint8_t *a, const uint8_t *b, size_t len);

#endif
