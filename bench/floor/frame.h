// SPDX-License-Identifier: MIT
/*
 * frame.h - FPDUs as an iWARP connection has them, made and taken apart with the least work that
 * does the whole job: length, DDP and RDMAP header, payload, CRC.
 *
 * Transmit: FPDUs are collected and leave in one sendmsg. A short payload is copied beside its
 * header; a long one is an element of its own, and the trailer before it and the header after it
 * share one. Receive: one large recv() into a staging buffer that stays in the cache, then every
 * whole FPDU is parsed and its payload copied into place; what is left over moves to the front.
 *
 * Sizes are multiples of 4, so that no FPDU is padded (common/main.c checks).
 */
#ifndef SOFTNDK_BENCH_FRAME_H
#define SOFTNDK_BENCH_FRAME_H

#include <string.h>

#include "common/bench.h"
#include "iwarp/crc32c.h"

enum frame_op { FRAME_WRITE = 0, FRAME_READ_REQUEST = 1, FRAME_READ_RESPONSE = 2, FRAME_SEND = 3 };

#define FRAME_TAGGED      0x80u
#define FRAME_LAST        0x40u
#define FRAME_TAGGED_LEN  16u /* with the length in front */
#define FRAME_SEND_LEN    20u
#define FRAME_CRC_LEN     4u
#define FRAME_REQUEST_LEN 28u
#define FRAME_STAG        0x00c0ffeeu
#define FRAME_FLAT_MAX    512u /* payloads up to this are copied beside their header */
#define FRAME_IOV_MAX     1024u
#define FRAME_STAGING     (256u << 10)
#define FRAME_MAX         (66u << 10)

static inline void frame_put16(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
}

static inline void frame_put32(uint8_t *at, uint32_t value)
{
    value = __builtin_bswap32(value);
    memcpy(at, &value, 4);
}

static inline void frame_put64(uint8_t *at, uint64_t value)
{
    value = __builtin_bswap64(value);
    memcpy(at, &value, 8);
}

static inline uint32_t frame_get32(const uint8_t *at)
{
    uint32_t value;

    memcpy(&value, at, 4);
    return __builtin_bswap32(value);
}

static inline uint64_t frame_get64(const uint8_t *at)
{
    uint64_t value;

    memcpy(&value, at, 8);
    return __builtin_bswap64(value);
}

/* ---- transmit -------------------------------------------------------------------------------- */

struct frame_tx {
    const struct bench_plan *plan;
    int fd;
    uint8_t *area, *at; /* headers, trailers, short payloads */
    uint32_t area_len;
    uint32_t msn[2]; /* of Sends, of Read Requests */
    size_t octets;   /* collected */
    unsigned elements;
    struct iovec iov[FRAME_IOV_MAX];
};

void frame_tx_open(struct frame_tx *tx, const struct bench_plan *plan, int fd);

/*
 * One message; `to` is the tagged offset of its first octet, unused by untagged ones. A long
 * payload must stay as it is until frame_flush(). Whatever no longer fits is sent first. False:
 * peer gone.
 */
bool frame_message(struct frame_tx *tx, enum frame_op op, uint64_t to, const uint8_t *payload,
                   size_t len);
bool frame_flush(struct frame_tx *tx);

/* ---- receive --------------------------------------------------------------------------------- */

struct frame_rx {
    const struct bench_plan *plan;
    int fd;
    uint8_t *staging, *at, *end;
    uint64_t bad;
};

struct frame {
    enum frame_op op;
    bool last;
    const uint8_t *payload;
    size_t len;
    uint64_t to;      /* tagged */
    uint32_t msn, mo; /* untagged */
};

void frame_rx_open(struct frame_rx *rx, const struct bench_plan *plan, int fd);
bool frame_fill(struct frame_rx *rx); /* false: the peer has closed */

static inline bool frame_crc_good(const uint8_t *fpdu, size_t len)
{
    uint32_t crc = iwarp_crc32c_final(iwarp_crc32c(iwarp_crc32c_init(), fpdu, len));

    return memcmp(&crc, fpdu + len, FRAME_CRC_LEN) == 0;
}

/* The next whole FPDU of the staging buffer. False: there is none. */
static inline bool frame_next(struct frame_rx *rx, struct frame *frame)
{
    const uint8_t *fpdu = rx->at;
    size_t have = (size_t)(rx->end - rx->at), len, header;

    if (have < 2)
        return false;
    len = 2u + ((size_t)fpdu[0] << 8 | fpdu[1]);
    if (have < len + FRAME_CRC_LEN)
        return false;
    rx->at += len + FRAME_CRC_LEN;
    header = fpdu[2] & FRAME_TAGGED ? FRAME_TAGGED_LEN : FRAME_SEND_LEN;
    if (len < header || (fpdu[2] & 3) != 1 || fpdu[3] >> 6 != 1)
        bench_die("a header that nobody sent: %02x%02x%02x%02x", fpdu[0], fpdu[1], fpdu[2],
                  fpdu[3]);
    if (rx->plan->crc && !frame_crc_good(fpdu, len))
        rx->bad++;
    frame->op = fpdu[3] & 0xf;
    frame->last = fpdu[2] & FRAME_LAST;
    frame->to = 0;
    frame->msn = frame->mo = 0;
    if (fpdu[2] & FRAME_TAGGED) {
        rx->bad += frame_get32(fpdu + 4) != FRAME_STAG;
        frame->to = frame_get64(fpdu + 8);
    } else {
        frame->msn = frame_get32(fpdu + 12);
        frame->mo = frame_get32(fpdu + 16);
    }
    frame->payload = fpdu + header;
    frame->len = len - header;
    return true;
}

#endif
