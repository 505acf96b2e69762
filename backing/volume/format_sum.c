/*
 * The checks of records.
 *
 * libcrypto's SHA256_*() of old keep their state where the caller has it; the
 * EVP calls that replace them allocate in each, which the data path must not.
 */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "backing/volume/format.h"

#include <openssl/sha.h>
#include <xxhash.h>

/* What a record belongs to. */
struct identity {
	uint8_t salt[16];
	le32 volume;
	le64 lba;
};
static_assert(sizeof(struct identity) == 28, "identity");

void vf_record_sum(const uint8_t salt[16], uint32_t volume, uint64_t lba, const void *stored,
		   size_t len, bool wide, uint64_t check[3], uint8_t *digest)
{
	struct identity identity;
	uint8_t hash[SHA256_DIGEST_LENGTH];
	SHA256_CTX sha;

	memcpy(identity.salt, salt, sizeof(identity.salt));
	le32_put(&identity.volume, volume);
	le64_put(&identity.lba, lba);
	if (!wide) {
		check[0] = XXH3_64bits_withSeed(stored, len,
						XXH3_64bits(&identity, sizeof(identity)));
		check[1] = check[2] = 0;
		if (digest)
			memset(digest, 0, sizeof(hash));
		return;
	}
	SHA256_Init(&sha);
	SHA256_Update(&sha, &identity, sizeof(identity));
	SHA256_Update(&sha, stored, len);
	SHA256_Final(hash, &sha);
	for (unsigned int i = 0; i < 3; i++)
		check[i] = le64_get((const le64 *)(hash + 8 * i));
	if (digest)
		memcpy(digest, hash, sizeof(hash));
}
