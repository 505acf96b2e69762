/* CHAP's algorithms and its text forms: see chap.h. */
#include "target/iscsi/chap.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "base/list.h"

static const struct {
	const char *word; /* in CHAP_A */
	unsigned int algorithm;
	size_t len;
	const EVP_MD *(*md)(void);
} algorithms[] = {
	{ "5", CHAP_MD5, 16, EVP_md5 },
	{ "6", CHAP_SHA1, 20, EVP_sha1 },
	{ "7", CHAP_SHA256, 32, EVP_sha256 },
	{ "8", CHAP_SHA3_256, 32, EVP_sha3_256 },
};

/* A FIPS host has no MD5, and says so only when it is asked. */
static bool is_usable(size_t i)
{
	uint8_t digest[CHAP_DIGEST_MAX];

	return chap_digest(algorithms[i].algorithm, 0, "", digest, 0, digest) != 0;
}

unsigned int chap_choose(const char *list)
{
	for (;;) {
		size_t len = strcspn(list, ",");

		for (size_t i = 0; i < ARRAY_LEN(algorithms); i++)
			if (strlen(algorithms[i].word) == len &&
			    memcmp(algorithms[i].word, list, len) == 0 && is_usable(i))
				return algorithms[i].algorithm;
		if (list[len] == '\0')
			return 0;
		list += len + 1;
	}
}

size_t chap_digest_len(unsigned int algorithm)
{
	for (size_t i = 0; i < ARRAY_LEN(algorithms); i++)
		if (algorithms[i].algorithm == algorithm)
			return algorithms[i].len;
	return 0;
}

static const EVP_MD *md_of(unsigned int algorithm)
{
	for (size_t i = 0; i < ARRAY_LEN(algorithms); i++)
		if (algorithms[i].algorithm == algorithm)
			return algorithms[i].md();
	return NULL;
}

size_t chap_digest(unsigned int algorithm, uint8_t id, const char *secret, const uint8_t *challenge,
		   size_t challenge_len, uint8_t out[CHAP_DIGEST_MAX])
{
	const EVP_MD *md = md_of(algorithm);
	uint8_t digest[EVP_MAX_MD_SIZE];
	unsigned int len = 0;
	EVP_MD_CTX *ctx = NULL;

	if (!md)
		return 0;
	ctx = EVP_MD_CTX_new();
	if (!ctx)
		goto out;
	if (EVP_DigestInit_ex(ctx, md, NULL) != 1 || EVP_DigestUpdate(ctx, &id, 1) != 1 ||
	    EVP_DigestUpdate(ctx, secret, strlen(secret)) != 1 ||
	    EVP_DigestUpdate(ctx, challenge, challenge_len) != 1 ||
	    EVP_DigestFinal_ex(ctx, digest, &len) != 1) {
		len = 0;
		goto out;
	}
	assert(len == chap_digest_len(algorithm) && len <= CHAP_DIGEST_MAX);
	memcpy(out, digest, len);
out:
	EVP_MD_CTX_free(ctx);
	return len;
}

/* ---- text forms: RFC 7143 6.1 ---- */

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* An odd number of digits has its first byte in one of them. */
static int decode_hex(const char *digits, uint8_t *out, size_t cap)
{
	size_t n = strlen(digits), len = n / 2 + n % 2;
	unsigned int byte = 0;

	if (n == 0 || len > cap)
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		int digit = hex_digit(digits[i]);

		if (digit < 0)
			return -EINVAL;
		byte = byte << 4 | (unsigned int)digit;
		if ((n - i) % 2 == 1) {
			out[i / 2 + (n % 2 && i % 2)] = (uint8_t)byte;
			byte = 0;
		}
	}
	return (int)len;
}

static int base64_digit(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* RFC 4648: groups of four, the last one filled up with '='; some senders leave
 * those out. */
static int decode_base64(const char *digits, uint8_t *out, size_t cap)
{
	size_t n = strlen(digits), len = 0;
	unsigned int bits = 0, have = 0;

	while (n > 0 && digits[n - 1] == '=' && strlen(digits) - n < 2)
		n--;
	if (n == 0 || n % 4 == 1 || (digits[n] && strlen(digits) % 4 != 0))
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		int digit = base64_digit(digits[i]);

		if (digit < 0)
			return -EINVAL;
		bits = (bits << 6 | (unsigned int)digit) & 0xffff;
		have += 6;
		if (have < 8)
			continue;
		have -= 8;
		if (len == cap)
			return -EINVAL;
		out[len++] = (uint8_t)(bits >> have);
	}
	return (int)len;
}

int chap_decode(const char *value, uint8_t *out, size_t cap)
{
	if (value[0] != '0')
		return -EINVAL;
	if (value[1] == 'x' || value[1] == 'X')
		return decode_hex(value + 2, out, cap);
	if (value[1] == 'b' || value[1] == 'B')
		return decode_base64(value + 2, out, cap);
	return -EINVAL;
}

void chap_encode(const uint8_t *bytes, size_t len, char *out, size_t cap)
{
	static const char digits[] = "0123456789abcdef";

	assert(cap >= 3 && len <= (cap - 3) / 2);
	*out++ = '0';
	*out++ = 'x';
	for (size_t i = 0; i < len; i++) {
		*out++ = digits[bytes[i] >> 4];
		*out++ = digits[bytes[i] & 15];
	}
	*out = '\0';
}

bool chap_equal(const uint8_t *a, const uint8_t *b, size_t len)
{
	return CRYPTO_memcmp(a, b, len) == 0;
}
