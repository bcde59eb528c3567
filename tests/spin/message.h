// SPDX-License-Identifier: MIT
/*
 * What is sent, so that who gets it can tell whether it is whole. A message carries whose it is,
 * its number and a pattern; a Read brings the pattern that every region begins with, or what a
 * Write in front of it wrote into a slice that is nobody else's.
 */
#ifndef SOFTNDK_TESTS_MESSAGE_H
#define SOFTNDK_TESTS_MESSAGE_H

#include "spin.h"

#define MESSAGE_MAGIC 0x6e697073u

struct head { /* of a message that is long enough for one */
    uint32_t magic, link, end, number, length, seed;
};

static inline uint8_t *slice_at(const struct object *mr, unsigned slice)
{
    return mr->buffer->data + (size_t)slice * SLICE;
}

/* ---- post.c: what window.c posts with ---- */

struct posting {
    struct request *request;
    NDK_SGE sges[2];
    ULONG count, flags;
    UINT64 address; /* at the peer; of a bind, here */
    UINT32 token;
    unsigned length; /* of a bind */
    bool invalidates;
};

struct request *request_make(struct queue_of *queue, NDK_OPERATION_TYPE type);
ULONG draw_flags(void);
bool post(struct posting *posting);
/* A region of this domain that is registered, used. */
struct object *region_pick(struct world *world, const struct object *pd, UINT32 *local,
                           UINT32 *remote);

static inline unsigned slice_number(unsigned bits)
{
    return bits ? (unsigned)__builtin_ctz(bits) : 0;
}

#endif
