/*
 * The descriptors of one segment: from its footer, else from its groups.
 *
 * For cleaning, scrubbing and checks of sealed segments; the log's own order is
 * recover.c's.  What is found here need not live: groups behind a recovered end
 * are met too.  Only the map says what lives.
 */
#ifndef BACKING_VOLUME_WALK_H
#define BACKING_VOLUME_WALK_H

#include "backing/volume/internal.h"

struct walk_desc {
	const struct vf_desc *desc;
	const void *body;
	const uint8_t *digest; /* DATA of wide volumes: 32 bytes; else NULL */
	uint64_t addr;	       /* units; of the payload of DATA and PAGE, else 0 */
	uint64_t seq;	       /* 0 in bulk */
};

/*
 * In a fiber: the footer that a sealed segment ends with, if it is of the opening
 * that header is of.  buf has cap bytes, aligned to 4 KiB.  1, 0: there is none,
 * -EIO.
 */
int walk_footer(struct pool *pool, const struct vf_segment *header, uint8_t *buf, uint32_t cap);

struct walk;

/* Its buffer is half a segment; NULL: no memory. */
struct walk *walk_open(struct pool *pool);
void walk_close(struct walk *walk);

/*
 * In a fiber: reads what describes the segment and begins at its first group.
 * 0, -EIO, -EUCLEAN (its header is not that of a segment), -ENOENT (it was
 * never written).
 */
int walk_begin(struct walk *walk, uint32_t segno);
/*
 * In a fiber: the next descriptor, valid until the next call.  1, 0 at the end
 * (without a footer: at the first group that does not check), or -EIO.
 */
int walk_next(struct walk *walk, struct walk_desc *out);
enum vf_stream walk_stream(const struct walk *walk);

#endif
