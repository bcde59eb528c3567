// SPDX-License-Identifier: MIT
/* frame.c - FPDUs out and in; see frame.h. */
#include "floor/frame.h"

/* ---- transmit -------------------------------------------------------------------------------- */

void frame_tx_open(struct frame_tx *tx, const struct bench_plan *plan, int fd)
{
    tx->plan = plan;
    tx->fd = fd;
    tx->area_len = plan->batch + FRAME_IOV_MAX * 32 + FRAME_MAX;
    tx->area = tx->at = bench_alloc(tx->area_len);
    tx->msn[0] = tx->msn[1] = 1;
    tx->octets = 0;
    tx->elements = 0;
}

bool frame_flush(struct frame_tx *tx)
{
    bool sent = bench_sendv(tx->fd, tx->iov, tx->elements, tx->plan->spin);

    tx->at = tx->area;
    tx->octets = 0;
    tx->elements = 0;
    return sent;
}

/* The next `len` octets of the wire; those that follow the ones before in memory join them. */
static void append(struct frame_tx *tx, const void *data, size_t len)
{
    struct iovec *last = &tx->iov[tx->elements - 1];

    if (tx->elements > 0 && (const char *)last->iov_base + last->iov_len == data)
        last->iov_len += len;
    else
        tx->iov[tx->elements++] = (struct iovec){(void *)(uintptr_t)data, len};
    tx->octets += len;
}

static size_t put_header(uint8_t *at, enum frame_op op, bool last, uint64_t to, uint32_t mo,
                         uint32_t msn, size_t payload)
{
    bool tagged = op == FRAME_WRITE || op == FRAME_READ_RESPONSE;
    size_t header = tagged ? FRAME_TAGGED_LEN : FRAME_SEND_LEN;

    frame_put16(at, (uint32_t)(header - 2 + payload));
    at[2] = (uint8_t)((tagged ? FRAME_TAGGED : 0) | (last ? FRAME_LAST : 0) | 1);
    at[3] = (uint8_t)(0x40 | op);
    frame_put32(at + 4, tagged ? FRAME_STAG : 0);
    if (tagged) {
        frame_put64(at + 8, to + mo);
    } else {
        frame_put32(at + 8, op == FRAME_READ_REQUEST);
        frame_put32(at + 12, msn);
        frame_put32(at + 16, mo);
    }
    return header;
}

static void append_fpdu(struct frame_tx *tx, size_t header, const uint8_t *payload, size_t len)
{
    uint32_t crc = 0;

    if (len <= FRAME_FLAT_MAX) {
        memcpy(tx->at + header, payload, len);
        if (tx->plan->crc)
            crc = iwarp_crc32c(iwarp_crc32c_init(), tx->at, header + len);
        header += len;
        len = 0;
    } else if (tx->plan->crc) {
        crc = iwarp_crc32c(iwarp_crc32c_init(), tx->at, header);
        crc = iwarp_crc32c(crc, payload, len);
    }
    if (tx->plan->crc)
        crc = iwarp_crc32c_final(crc);
    append(tx, tx->at, header);
    tx->at += header;
    if (len)
        append(tx, payload, len);
    memcpy(tx->at, &crc, FRAME_CRC_LEN);
    append(tx, tx->at, FRAME_CRC_LEN);
    tx->at += FRAME_CRC_LEN;
}

bool frame_message(struct frame_tx *tx, enum frame_op op, uint64_t to, const uint8_t *payload,
                   size_t len)
{
    uint32_t msn = 0;

    if (op == FRAME_SEND || op == FRAME_READ_REQUEST)
        msn = tx->msn[op == FRAME_READ_REQUEST]++;
    for (size_t done = 0; done < len;) {
        size_t part = len - done < tx->plan->fpdu ? len - done : tx->plan->fpdu;

        if (tx->elements + 3 > FRAME_IOV_MAX || (tx->octets && tx->octets + part > tx->plan->batch))
            if (!frame_flush(tx))
                return false;
        append_fpdu(tx, put_header(tx->at, op, done + part == len, to, (uint32_t)done, msn, part),
                    payload + done, part);
        done += part;
    }
    return true;
}

/* ---- receive --------------------------------------------------------------------------------- */

void frame_rx_open(struct frame_rx *rx, const struct bench_plan *plan, int fd)
{
    rx->plan = plan;
    rx->fd = fd;
    rx->staging = rx->at = rx->end = bench_alloc(FRAME_STAGING + FRAME_MAX);
    rx->bad = 0;
}

bool frame_fill(struct frame_rx *rx)
{
    size_t left = (size_t)(rx->end - rx->at), n;

    memmove(rx->staging, rx->at, left);
    rx->at = rx->staging;
    rx->end = rx->staging + left;
    n = bench_recv(rx->fd, rx->end, FRAME_STAGING, rx->plan->spin);
    rx->end += n;
    return n > 0;
}
