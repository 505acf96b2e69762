/* The format of a pool: heads, sums, packed entries, sizes, names of features. */
#include "backing/volume/format.h"

#include <stdio.h>
#include <xxhash.h>

/*
 * Every bit that was ever given a meaning.  A program that knows one has it in
 * enum vf_features_known too; the others are here so that a message can say what
 * the pool uses.
 */
static const struct {
	enum vf_feature_mask mask;
	uint8_t bit;
	const char *name;
} vf_features[] = {
	{ VF_INCOMPAT, 0, "snapshots" },
	{ VF_INCOMPAT, 1, "clones" },
	{ VF_INCOMPAT, 2, "dedup" },
	{ VF_INCOMPAT, 3, "mirrors" },
	{ VF_INCOMPAT, 4, "several devices" },
	{ VF_INCOMPAT, 5, "encryption" },
	{ VF_INCOMPAT, 6, "longer addresses" },
};

void vf_features_name(enum vf_feature_mask mask, uint64_t bits, char *text, size_t cap)
{
	size_t len = 0;

	assert(cap > 0);
	text[0] = '\0';
	for (unsigned int bit = 0; bit < 64; bit++) {
		const char *name = NULL;
		int n;

		if (!(bits >> bit & 1))
			continue;
		for (size_t i = 0; i < sizeof(vf_features) / sizeof(vf_features[0]); i++)
			if (vf_features[i].mask == mask && vf_features[i].bit == bit)
				name = vf_features[i].name;
		n = name ? snprintf(text + len, cap - len, "%s%s", len ? ", " : "", name)
			 : snprintf(text + len, cap - len, "%snumber %u", len ? ", " : "", bit);
		if (n < 0 || (size_t)n >= cap - len)
			return;
		len += (size_t)n;
	}
}

/* ---- hashes ---- */

static struct vf_hash hash_of(XXH128_hash_t value)
{
	XXH128_canonical_t canonical;
	struct vf_hash hash;

	static_assert(sizeof(canonical) == sizeof(hash), "canonical XXH3-128");
	XXH128_canonicalFromHash(&canonical, value);
	memcpy(&hash, &canonical, sizeof(hash));
	return hash;
}

struct vf_hash vf_hash(const void *data, size_t len)
{
	return hash_of(XXH3_128bits(data, len));
}

bool vf_hash_equal(const struct vf_hash *a, const struct vf_hash *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

bool vf_hash_zero(const struct vf_hash *a)
{
	static const struct vf_hash zero;

	return vf_hash_equal(a, &zero);
}

/* ---- heads ---- */

static struct vf_hash head_sum(const void *structure, uint32_t len)
{
	const uint8_t *bytes = structure;

	return hash_of(XXH3_128bits_withSeed(bytes + sizeof(struct vf_head),
					     len - sizeof(struct vf_head),
					     XXH3_64bits(bytes, offsetof(struct vf_head, sum))));
}

void vf_seal(void *structure, enum vf_type type, uint32_t len, const uint8_t uuid[16])
{
	struct vf_head *head = structure;

	assert(len >= sizeof(*head));
	memset(head, 0, sizeof(*head));
	le32_put(&head->magic, VF_MAGIC);
	head->type = (uint8_t)type;
	head->version = VF_VERSION;
	le32_put(&head->len, len);
	memcpy(head->uuid, uuid, sizeof(head->uuid));
	head->sum = head_sum(structure, len);
}

bool vf_check(const void *structure, enum vf_type type, uint32_t least, uint32_t cap,
	      const uint8_t *uuid)
{
	const struct vf_head *head = structure;
	struct vf_hash sum;
	uint32_t len;

	assert(least >= sizeof(*head));
	if (cap < least || le32_get(&head->magic) != VF_MAGIC || head->type != type ||
	    head->version != VF_VERSION)
		return false;
	len = le32_get(&head->len);
	if (len < least || len > cap)
		return false;
	if (uuid && memcmp(head->uuid, uuid, sizeof(head->uuid)) != 0)
		return false;
	sum = head_sum(structure, len);
	return vf_hash_equal(&sum, &head->sum);
}

/* ---- entries of a leaf ---- */

/*
 * @0 le64: start 11 bits from bit 0, nsectors - 1 11, off 11, stored 15, codec 4,
 * flags 4, bits 32 to 39 of the address 8; @8 le32: its bits 0 to 31; @12 le32:
 * birth; @16 le64: check, or three of them.
 */
enum {
	SHIFT_NSECTORS = 11,
	SHIFT_OFF = 22,
	SHIFT_STORED = 33,
	SHIFT_CODEC = 48,
	SHIFT_FLAGS = 52,
	SHIFT_ADDR = 56,
	CODEC_ON_DISK_RAW = 15,
};

struct entry_on_disk {
	le64 bits;
	le32 addr;
	le32 birth;
	le64 check[3];
};
static_assert(sizeof(struct entry_on_disk) == VF_ENTRY_WIDE_LEN &&
		      offsetof(struct entry_on_disk, check[1]) == VF_ENTRY_LEN,
	      "entry");

void vf_entry_put(void *to, const struct vf_entry *entry, bool wide)
{
	struct entry_on_disk *disk = to;
	uint64_t codec = entry->raw ? CODEC_ON_DISK_RAW : entry->codec;

	assert(entry->start < VF_REGION_SECTORS && entry->off < VF_REGION_SECTORS);
	assert(entry->nsectors >= 1 && entry->nsectors <= VF_REGION_SECTORS);
	assert(entry->stored < 1u << 15 && entry->addr < 1ull << 40);
	assert(entry->flags < 16 && entry->codec < CODEC_ON_DISK_RAW);
	assert(!entry->raw || entry->codec == 0);
	le64_put(&disk->bits, entry->start | (uint64_t)(entry->nsectors - 1) << SHIFT_NSECTORS |
				      (uint64_t)entry->off << SHIFT_OFF |
				      (uint64_t)entry->stored << SHIFT_STORED |
				      codec << SHIFT_CODEC | (uint64_t)entry->flags << SHIFT_FLAGS |
				      entry->addr >> 32 << SHIFT_ADDR);
	le32_put(&disk->addr, (uint32_t)entry->addr);
	le32_put(&disk->birth, entry->birth);
	for (unsigned int i = 0; i < (wide ? 3 : 1); i++)
		le64_put(&disk->check[i], entry->check[i]);
}

void vf_entry_get(const void *from, struct vf_entry *entry, bool wide)
{
	const struct entry_on_disk *disk = from;
	uint64_t bits = le64_get(&disk->bits);
	uint8_t codec = bits >> SHIFT_CODEC & 15;

	*entry = (struct vf_entry){
		.addr = (uint64_t)le32_get(&disk->addr) | bits >> SHIFT_ADDR << 32,
		.start = bits & (VF_REGION_SECTORS - 1),
		.nsectors = (uint16_t)((bits >> SHIFT_NSECTORS & (VF_REGION_SECTORS - 1)) + 1),
		.off = bits >> SHIFT_OFF & (VF_REGION_SECTORS - 1),
		.stored = bits >> SHIFT_STORED & 0x7fff,
		.codec = codec == CODEC_ON_DISK_RAW ? 0 : codec,
		.flags = bits >> SHIFT_FLAGS & 15,
		.raw = codec == CODEC_ON_DISK_RAW,
		.birth = le32_get(&disk->birth),
	};
	for (unsigned int i = 0; i < (wide ? 3 : 1); i++)
		entry->check[i] = le64_get(&disk->check[i]);
}

/* ---- numbers ---- */

uint64_t vf_where(uint64_t addr, uint32_t stored)
{
	assert(addr < 1ull << 40 && stored < 1u << 15);
	return addr | (uint64_t)stored << 40;
}

bool vf_segment_is_super(uint32_t segment_len, uint64_t segno)
{
	return segno == 0 || segno == VF_SUPER_SECOND / segment_len;
}

uint32_t vf_segment_len_for(uint64_t bytes)
{
	if (bytes < 256ull << 20)
		return 256u << 10;
	return bytes < 4ull << 30 ? 1u << 20 : 4u << 20;
}

uint32_t vf_record_len_max(uint32_t segment_len)
{
	return segment_len / 4 < VF_RECORD_MAX ? segment_len / 4 : VF_RECORD_MAX;
}

static bool text_valid(const char text[VF_NAME_MAX + 1], bool label)
{
	size_t len = 0;

	while (len <= VF_NAME_MAX && text[len] != '\0') {
		if (text[len] < ' ' || text[len] > '~')
			return false;
		if (!label && (text[len] == ' ' || text[len] == '/'))
			return false;
		len++;
	}
	if (len > VF_NAME_MAX || (len == 0 && !label))
		return false;
	for (; len <= VF_NAME_MAX; len++)
		if (text[len] != '\0')
			return false;
	return true;
}

bool vf_name_valid(const char name[VF_NAME_MAX + 1])
{
	return text_valid(name, false);
}

bool vf_label_valid(const char label[VF_NAME_MAX + 1])
{
	return text_valid(label, true);
}
