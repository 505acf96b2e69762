/*
 * What stands on a pool's device: every structure, with its offsets.
 *
 * docs/volume-format.md is the same in prose.  All integers are little-endian
 * types of base/be.h; a structure is judged whole by its vf_*_check() before a
 * field of it is used.  Addresses are in units of 64 bytes from the start of
 * the pool, LBAs and sectors are 512 bytes whatever the volume's block is,
 * regions are 1 MiB of a volume.
 *
 * Pure functions and layouts; nothing here does I/O.
 *
 * To add a structure: a type in enum vf_type, its struct with asserts, its
 * check, a section in docs/volume-format.md.  To add what older programs must
 * not touch: a bit in vf_features[] (format.c).
 */
#ifndef BACKING_VOLUME_FORMAT_H
#define BACKING_VOLUME_FORMAT_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/be.h"
#include "base/err.h"

#define VF_UNIT		  64u	/* bytes: what an address counts */
#define VF_BLOCK	  4096u /* bytes: what is written at once, and raw payloads' alignment */
#define VF_SECTOR	  512u	/* bytes: what an LBA counts */
#define VF_REGION_SECTORS 2048u /* sectors: 1 MiB, the longest record */
#define VF_RECORD_MAX	  (1u << 20)
#define VF_NAME_MAX	  63 /* bytes of a volume's name */
#define VF_DEVICES_MAX	  16 /* of a pool */
#define VF_RANGES_MAX	  64 /* range operations of a volume */
#define VF_VERSION	  1

enum vf_type {
	VF_SUPER = 1,
	VF_SEGMENT,
	VF_GROUP,
	VF_FOOTER,
	VF_ROOT,
	VF_DIR,
	VF_LEAF,
	VF_SEGTAB,
	VF_VOLUME,
};

struct vf_hash {
	uint8_t b[16]; /* XXH3-128, canonical */
};

/*
 * The beginning of every structure.  sum is the XXH3-128 of the len - 48 bytes
 * behind this head, seeded with the XXH3-64 of the 32 bytes before sum; for a
 * group what is behind is the rest of its header and its table.
 */
struct vf_head {
	le32 magic; /* VF_MAGIC */
	uint8_t type;
	uint8_t version; /* of this structure */
	le16 reserved;
	le32 len;	  /* bytes that sum covers */
	le32 features;	  /* reserved for unknown compatible parts: 0 */
	uint8_t uuid[16]; /* the pool's */
	struct vf_hash sum;
};
#define VF_MAGIC 0x4e495551u /* "QUIN" */
static_assert(sizeof(struct vf_head) == 48, "head");

/* ---- superblock: 16 slots of 4 KiB at 0 and at 1 MiB of each device ---- */

#define VF_SUPER_SLOTS	16
#define VF_SUPER_LEN	4096u
#define VF_SUPER_AREA	(VF_SUPER_SLOTS * VF_SUPER_LEN)
#define VF_SUPER_SECOND (1u << 20)

/* A page or a record as named from elsewhere. */
struct vf_ptr {
	le64 addr;   /* units; 0: none */
	le32 stored; /* units */
	le32 reserved;
	struct vf_hash hash; /* over the stored bytes */
};
static_assert(sizeof(struct vf_ptr) == 32, "ptr");

/* A place in the log: the group that begins there. */
struct vf_place {
	le64 seq;	     /* of the group */
	le32 segno;	     /* where it begins */
	le32 off;	     /* blocks of 4 KiB in the segment */
	struct vf_hash prev; /* sum of the group before; zeros: there is none */
};
static_assert(sizeof(struct vf_place) == 32, "place");

struct vf_device {
	uint8_t uuid[16]; /* zeros: no device */
	le64 nsegments;
	le32 state; /* 1: current */
	le32 reserved;
};
static_assert(sizeof(struct vf_device) == 32, "device");

struct vf_super {
	struct vf_head head; /* len VF_SUPER_LEN */
	le64 generation;
	le64 features_compat, features_ro_compat, features_incompat; /* @56 */
	le32 incarnation;					     /* @80 */
	le32 segment_len;	  /* bytes, a power of two, 256 KiB..4 MiB */
	le64 nsegments;		  /* of all devices */
	struct vf_place end;	  /* @96: where the next group of the former incarnation
				 * would have been: nothing at or behind it counts */
	le64 durable_seq;	  /* @128 */
	le64 created_s;		  /* time(2) */
	uint8_t salt[16];	  /* @144: seeds the checks of records */
	struct vf_ptr root[2][2]; /* @160: newest and older checkpoint, two copies each */
	le64 root_seq[2];	  /* @288: their position c */
	le32 ndevices, device;	  /* @304: how many, and which this one is */
	le32 unit_shift;	  /* of an address, 6 */
	le32 reserved;
	struct vf_device devices[VF_DEVICES_MAX]; /* @320 */
	char label[VF_NAME_MAX + 1];		  /* @832 */
	uint8_t rest[VF_SUPER_LEN - 896];
};
static_assert(offsetof(struct vf_super, end) == 96 && offsetof(struct vf_super, root) == 160 &&
		      offsetof(struct vf_super, devices) == 320 &&
		      sizeof(struct vf_super) == VF_SUPER_LEN,
	      "super");

/* What a directory page holds of each page below it. */
struct vf_slot {
	le64 where;	     /* address 40 bits, units stored 15, flags 9 (0); 0: no page */
	struct vf_hash hash; /* over the stored bytes */
	le32 max_birth;
	le32 reserved;
	le64 merged_seq; /* of a leaf; 0 for other pages */
};
static_assert(sizeof(struct vf_slot) == 40, "slot");

/* ---- segments ---- */

enum vf_stream {
	VF_W,  /* the log: groups in order, chained */
	VF_G1, /* survivors of cleaning, young and old; bulk groups */
	VF_G2,
	VF_M, /* map pages; bulk groups */
	VF_NSTREAMS,
};

/* The first 4 KiB of a segment; groups follow. */
struct vf_segment {
	struct vf_head head; /* len sizeof(struct vf_segment) */
	le32 segno;
	le32 incarnation;
	le64 life;	     /* @56 random: ties groups and footer to this opening */
	le64 first_seq;	     /* W: of its first group */
	le32 before;	     /* @72 W: the segment before; 0: none */
	le32 successor;	     /* W: where the log goes on; reserved already */
	struct vf_hash prev; /* @80 W: sum of the last group before */
	uint8_t stream;	     /* @96 enum vf_stream */
	uint8_t rest[31];
};
static_assert(sizeof(struct vf_segment) == 128, "segment");

/*
 * A group: header, table, packed payloads at 64 bytes, raw payloads at 4 KiB.
 * Its whole length is a multiple of 4 KiB.  Bulk groups (of G1, G2, M) have
 * seq 0 and prev zeros: they are not ordered.
 */
struct vf_group {
	struct vf_head head; /* len: this header and the table */
	le64 seq;	     /* @48 */
	le64 durable_seq;    /* when it was written */
	le64 life;	     /* @64 of its segment */
	le32 len;	     /* blocks of 4 KiB in all */
	le32 ndescs;
	struct vf_hash prev; /* @80 sum of the group before it */
};
static_assert(sizeof(struct vf_group) == 96, "group");

enum vf_desc_type {
	VF_DATA = 1,
	VF_HOLE,
	VF_ROLLBACK, /* snapshots: not written yet */
	VF_MOVE,
	VF_LEAF_AT, /* a region's new leaf */
	VF_DIR_AT,  /* a directory page that left memory early */
	VF_SNAP,    /* snapshots: not written yet */
	VF_VOLOP,   /* a volume's record (struct vf_volume), whole, as its body */
	VF_META,    /* reserved */
	VF_PAGE,    /* bulk: any map page; for salvage and scrub */
};

enum vf_desc_flag {
	VF_DESC_RAW = 1u << 0,	 /* payload without prefix, whole blocks at a block */
	VF_DESC_WIDE = 1u << 1,	 /* struct vf_desc_wide */
	VF_DESC_RANGE = 1u << 2, /* HOLE: a range operation (whole regions) */
};

/* One entry of the table; a body of body_len bytes follows it directly. */
struct vf_desc {
	uint8_t type;
	uint8_t codec; /* DATA: of compress/codec.h */
	uint8_t flags;
	uint8_t reserved;
	le32 volume;
	le64 lba;      /* @8  DATA, HOLE, MOVE: first sector; LEAF_AT: region;
			* DIR_AT, PAGE: index in the tree */
	le64 nsectors; /* @16 DATA, HOLE; MOVE: old address; LEAF_AT: merged seq;
			* DIR_AT: applied seq; PAGE: vf_type << 8 | level */
	le32 off;      /* @24 DATA, PAGE: of the payload, in units, from the group */
	le32 stored;   /* DATA, PAGE, MOVE: units of the payload */
	le32 birth;    /* @32 epoch */
	le32 body_len; /* bytes, a multiple of 8 */
	le64 check;    /* @40 DATA, MOVE */
};
static_assert(sizeof(struct vf_desc) == 48, "desc");

struct vf_desc_wide {
	struct vf_desc desc;
	uint8_t digest[32]; /* whole SHA-256; its first 24 bytes are the check */
};
static_assert(sizeof(struct vf_desc_wide) == 80, "wide desc");

/* The body of MOVE. */
struct vf_move {
	le64 addr; /* the new one, units */
};

/* Changes of live counts: units of the records that die or are born. */
struct vf_change {
	le32 segno;
	le32 units; /* two's complement */
};
static_assert(sizeof(struct vf_change) == 8, "change");

/* The body of LEAF_AT. */
struct vf_leaf_at {
	struct vf_slot slot;	 /* the new leaf; where 0: the region is empty */
	le64 mapped;		 /* change of the volume's mapped sectors, two's complement */
	le32 nchanges, reserved; /* of live counts: the new leaf's birth, what died */
	struct vf_change changes[];
};

/* The body of DIR_AT. */
struct vf_dir_at {
	struct vf_slot slot;
	le64 level;
	struct vf_change changes[2]; /* the new page's birth, the old one's death */
};

/* Before every packed payload; the check covers it and the padding too. */
struct vf_prefix {
	le16 nsectors;
	uint8_t codec;
	uint8_t flags;
	le32 len; /* bytes after the prefix, without the padding */
};
static_assert(sizeof(struct vf_prefix) == 8, "prefix");

/* At the end of a sealed segment: all its tables once more. */
struct vf_footer {
	struct vf_head head; /* len: this and the tables */
	le32 segno;
	le32 incarnation;
	le64 life;		  /* @56 */
	le64 first_seq, last_seq; /* @64 W */
	struct vf_hash last;	  /* @80 W: sum of the last group */
	le32 ngroups;		  /* @96 */
	le32 reserved;		  /* per group: vf_footer_group, then its table */
};
static_assert(sizeof(struct vf_footer) == 104, "footer");

struct vf_footer_group {
	le64 seq;
	le32 off; /* blocks in the segment */
	le32 ndescs;
	le32 table_len; /* bytes */
	le32 reserved;
	struct vf_hash sum;
};
static_assert(sizeof(struct vf_footer_group) == 40, "footer group");

/* The last block of a sealed segment ends with this: where the footer begins. */
struct vf_tail {
	le64 life;
	le32 off;   /* blocks in the segment */
	le32 magic; /* VF_MAGIC */
};
static_assert(sizeof(struct vf_tail) == 16, "tail");

/* ---- the map ---- */

enum vf_entry_flag {
	VF_ENTRY_HOLE = 1u << 0,    /* trimmed or zero; no record */
	VF_ENTRY_REF = 1u << 1,	    /* dedup: not written yet */
	VF_ENTRY_SPLIT = 1u << 2,   /* another entry names the record too */
	VF_ENTRY_THROUGH = 1u << 3, /* clones: not written yet */
};

/* An extent as the engine has it in memory; packed on disk to 24 or 40 bytes. */
struct vf_entry {
	uint64_t addr;	   /* units; 0 in a hole */
	uint16_t start;	   /* sector in the region */
	uint16_t nsectors; /* 1..2048 */
	uint16_t off;	   /* sectors into the record */
	uint16_t stored;   /* units of the record */
	uint8_t codec;
	uint8_t flags; /* enum vf_entry_flag */
	bool raw;      /* record without prefix: codec none, whole blocks */
	uint32_t birth;
	uint64_t check[3]; /* [0] alone unless the volume is wide */
};

#define VF_ENTRY_LEN	    24u
#define VF_ENTRY_WIDE_LEN   40u
#define VF_LEAF_ENTRIES_MAX 2048u

/* Packs and unpacks one entry; codec 15 on disk stands for a raw record. */
void vf_entry_put(void *to, const struct vf_entry *entry, bool wide);
void vf_entry_get(const void *from, struct vf_entry *entry, bool wide);

struct vf_leaf {
	struct vf_head head; /* len: all of the page */
	le32 volume;
	le16 count;
	uint8_t entry_len; /* VF_ENTRY_LEN or VF_ENTRY_WIDE_LEN */
	uint8_t reserved;
	le64 region;
	le64 merged_seq; /* every write of the region up to it is in here */
};
static_assert(sizeof(struct vf_leaf) == 72, "leaf");

#define VF_FANOUT 256u

/*
 * A directory page; level 1 is the lowest, which points to leaves (or pages of
 * the other trees).  Present slots (where is not 0) follow in order.
 */
struct vf_dir {
	struct vf_head head;
	le32 tree; /* a volume, or VF_TREE_* */
	uint8_t level;
	uint8_t reserved;
	le16 nslots;
	le64 index;	  /* of this page among those of its level */
	le64 applied_seq; /* descriptors up to it are in it */
	uint8_t present[VF_FANOUT / 8];
};
static_assert(sizeof(struct vf_dir) == 104, "dir");

#define VF_TREE_SEGTAB	 0xfffffff0u
#define VF_TREE_VOLTAB	 0xfffffff1u
#define VF_VOLUME_ID_MAX 0xffff0000u /* ids begin at 1 */
#define VF_LEVELS_MAX	 4

/* One segment in the segment table. */
struct vf_segrec {
	le32 live; /* units, descriptors counted: may be more than the segment has */
	uint8_t stream;
	uint8_t flags; /* reserved */
	le16 reserved;
	le64 last_seq; /* newest group (W), or seq at sealing (bulk); 0: never used */
	le64 kill_seq; /* of the newest LEAF_AT or checkpoint that freed something in it */
};
static_assert(sizeof(struct vf_segrec) == 24, "segrec");

#define VF_SEGTAB_RECS 160u
struct vf_segtab {
	struct vf_head head;
	le64 index; /* of the page: segments from index * VF_SEGTAB_RECS on */
	le64 applied_seq;
	struct vf_segrec recs[VF_SEGTAB_RECS];
};
static_assert(sizeof(struct vf_segtab) == 3904, "segtab");

/* A tree's root, as others name it. */
struct vf_tree {
	struct vf_slot slot;
	uint8_t level; /* of the page slot points to; 0: the tree is empty */
	uint8_t reserved[7];
};
static_assert(sizeof(struct vf_tree) == 48, "tree");

/* A trim of whole regions that is still to be worked off. */
struct vf_range {
	le64 region, nregions;
	le64 seq; /* of its HOLE */
	le32 birth;
	le32 reserved;
};
static_assert(sizeof(struct vf_range) == 32, "range");

enum vf_volume_flag {
	VF_VOLUME_DELETING = 1u << 0,
};

enum vf_checksum { VF_XXH3 = 0, VF_SHA256 = 1 };

/* A volume: a page of the volume table, whose index is its id. */
struct vf_volume {
	struct vf_head head; /* len: with nranges ranges */
	le32 id;
	le32 flags;
	uint8_t uuid[16];
	char name[VF_NAME_MAX + 1]; /* zero padded; printable ASCII, no space, no slash */
	le64 nsectors;		    /* capacity */
	le64 created_s;
	le64 applied_seq; /* descriptors up to it are in it */
	le32 block_len;	  /* 512 or 4096 */
	le32 record_len;  /* 4 KiB..1 MiB */
	uint8_t codec, checksum;
	uint8_t level; /* int8_t, see compress/codec.h */
	uint8_t reserved0;
	le32 parent; /* clones: not written yet */
	le32 parent_epoch;
	le32 nranges;
	le64 mapped; /* sectors that entries name; for statistics, not judged */
	struct vf_tree head_tree, history_tree;
	uint8_t reserved[64];
	struct vf_range ranges[];
};
static_assert(sizeof(struct vf_volume) == 352, "volume");

/* A checkpoint. */
struct vf_root {
	struct vf_head head;
	le64 number;		/* of checkpoints so far */
	le64 applied_seq;	/* @56 c: no page has descriptors beyond it */
	struct vf_place replay; /* @64 r: the first group to be read again */
	le32 epoch;		/* @96 current */
	le32 next_volume;	/* never given out before */
	le32 incarnation;
	le32 nchanges;
	struct vf_tree segtab, voltab; /* @112, @160 */
	le64 bulk_bytes;	       /* @208 written so far, for statistics */
	uint8_t reserved[40];
	struct vf_root_change {
		le32 segno;
		le32 units;    /* two's complement */
		le64 kill_seq; /* 0: only born */
	} changes[];	       /* of live counts by this checkpoint's own pages */
};
static_assert(sizeof(struct vf_root) == 256, "root");

/* ---- making and judging ---- */

/* Fills the head and the sum; len bytes. */
void vf_seal(void *structure, enum vf_type type, uint32_t len, const uint8_t uuid[16]);
/*
 * Judges magic, type, version, length (least..cap) and sum; uuid NULL: any.
 * Each vf_*_check() below does this and judges every field that its reader
 * relies on (counts against lengths, addresses and segments against the
 * geometry, order), so that nothing else has to.
 */
bool vf_check(const void *structure, enum vf_type type, uint32_t least, uint32_t cap,
	      const uint8_t *uuid);

struct vf_geometry {
	uint8_t uuid[16];
	uint32_t segment_len; /* bytes */
	uint64_t nsegments;
};

bool vf_super_check(const struct vf_super *super);
bool vf_segment_check(const struct vf_segment *segment, const struct vf_geometry *geometry,
		      uint32_t segno);
/* A group's header alone: its lengths are plausible for the room, the bytes from
 * it to the end of its segment; the sum is not looked at.  Then, with the table
 * behind it (head.len bytes are there), all of it but the payloads. */
bool vf_group_plausible(const struct vf_group *group, const struct vf_geometry *geometry,
			uint32_t room);
bool vf_group_check(const struct vf_group *group, const struct vf_geometry *geometry,
		    uint32_t room);
/* cap: bytes that are there.  That it is this life's, the caller compares with
 * the segment's header. */
bool vf_footer_check(const struct vf_footer *footer, uint32_t cap,
		     const struct vf_geometry *geometry);
/* Pages of the map; len: bytes that are there, padding too. */
bool vf_leaf_check(const struct vf_leaf *leaf, uint32_t len, const struct vf_geometry *geometry,
		   uint32_t volume, uint64_t region);
bool vf_dir_check(const struct vf_dir *dir, uint32_t len, const struct vf_geometry *geometry,
		  uint32_t tree, uint8_t level, uint64_t index);
bool vf_segtab_check(const struct vf_segtab *page, uint32_t len, const struct vf_geometry *geometry,
		     uint64_t index);
bool vf_volume_check(const struct vf_volume *volume, uint32_t len,
		     const struct vf_geometry *geometry, uint32_t id);
bool vf_root_check(const struct vf_root *root, uint32_t len, const struct vf_geometry *geometry);

/* Walks a table of ndescs descriptors in len bytes, which was checked: the next
 * one and its body, false at the end. */
struct vf_table {
	const uint8_t *at;
	uint32_t left;	 /* bytes */
	uint32_t ndescs; /* to come */
	const struct vf_desc *desc;
	const void *body; /* desc->body_len bytes */
};
bool vf_table_next(struct vf_table *table);
/* Judges a table of hostile bytes without a geometry: every descriptor lies in it
 * whole, its fields and the length of its body suit its type. */
bool vf_table_check(const void *table, uint32_t len, uint32_t ndescs);

/* The 128-bit hash of map pages as stored. */
struct vf_hash vf_hash(const void *data, size_t len);
bool vf_hash_equal(const struct vf_hash *a, const struct vf_hash *b);
bool vf_hash_zero(const struct vf_hash *a);

/*
 * The check of a record over its stored bytes (units whole), seeded with what
 * it belongs to: the pool's salt, the volume and the record's first sector.
 * check[1] and [2] are 0 unless wide.  digest: 32 bytes or NULL.
 */
void vf_record_sum(const uint8_t salt[16], uint32_t volume, uint64_t lba, const void *stored,
		   size_t len, bool wide, uint64_t check[3], uint8_t *digest);

/* A slot's where. */
uint64_t vf_where(uint64_t addr, uint32_t stored);
static inline uint64_t vf_where_addr(uint64_t where)
{
	return where & ((1ull << 40) - 1);
}
static inline uint32_t vf_where_stored(uint64_t where)
{
	return (uint32_t)(where >> 40) & 0x7fff;
}

/* Segments that hold superblocks and nothing else. */
bool vf_segment_is_super(uint32_t segment_len, uint64_t segno);
/* What VOLUME.md says for a pool of so many bytes. */
uint32_t vf_segment_len_for(uint64_t bytes);
/* The longest record that a pool of this segment length takes, in bytes. */
uint32_t vf_record_len_max(uint32_t segment_len);

/* What a pool may use, by number; vf_features[] (format.c) has the names. */
enum vf_features_known {
	VF_FEATURE_COMPAT = 0,
	VF_FEATURE_RO_COMPAT = 0,
	VF_FEATURE_INCOMPAT = 0,
};

enum vf_feature_mask { VF_COMPAT, VF_RO_COMPAT, VF_INCOMPAT };
/* Names the bits for a message: "snapshots, number 7"; cut at cap. */
void vf_features_name(enum vf_feature_mask mask, uint64_t bits, char *text, size_t cap);

/* Longest volume: what four levels of directory reach, 4 PiB. */
#define VF_VOLUME_SECTORS_MAX (1ull << 43)
/* Largest pool: what an address reaches, 64 TiB. */
#define VF_POOL_LEN_MAX (1ull << 46)
/* Smallest pool. */
#define VF_POOL_LEN_MIN (16ull << 20)

/* A volume's name: printable ASCII without space and slash, NUL and zeros behind.
 * A pool's label may be empty and have spaces and slashes. */
bool vf_name_valid(const char name[VF_NAME_MAX + 1]);
bool vf_label_valid(const char label[VF_NAME_MAX + 1]);

#endif
