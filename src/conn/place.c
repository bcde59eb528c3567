// SPDX-License-Identifier: MIT
/*
 * Placement: octets from the staging area into memory that a token names. The check and the copies
 * are one critical section (map .. unmap), so nothing is written into a region after its
 * invalidation completed. Called by the receive owner; conn_reuse_...() by the transmit owner too.
 */
#include "base/red.h"
#include "base/usdt.h"
#include "conn/conn_internal.h"

/* Host pieces of one access; a region of scattered pages needs one per page. */
#define PIECES_MAX 20

enum access_result conn_reuse_take(struct conn *conn, struct conn_reuse *reuse, uint32_t token,
                                   uint64_t address, uint32_t length, uint32_t need,
                                   uint8_t *octets)
{
    bool write = (need & (ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE)) != 0;
    struct os_iov pieces[PIECES_MAX];
    int count = PIECES_MAX;
    enum access_result result;

    conn_reuse_drop(conn, reuse);
    result = conn->ops->map(conn->qp, token, address, length, need, &reuse->hold, pieces, &count);
    if (result != ACCESS_OK) {
        reuse->hold.slot = NULL;
        return result;
    }
    reuse->token = token;
    reuse->need = need;
    for (int i = 0; i < count; i++) {
        if (write)
            memcpy(pieces[i].base, octets, pieces[i].len);
        else
            memcpy(octets, pieces[i].base, pieces[i].len);
        octets += pieces[i].len;
    }
    return ACCESS_OK;
}

void conn_reuse_drop(struct conn *conn, struct conn_reuse *reuse)
{
    if (reuse->hold.slot && !RED("region-held-on"))
        conn->ops->unmap(conn->qp, &reuse->hold);
    reuse->hold.slot = NULL;
}

static enum access_result place_one(struct conn *conn, uint32_t token, uint64_t address,
                                    const uint8_t *data, uint32_t length, uint32_t need)
{
    enum access_result result =
        conn_reuse_put(conn, &conn->rx.reuse, token, address, length, need, data);

    if (result == ACCESS_OK)
        USDT(place, conn, token, address, length);
    return result;
}

enum access_result place_remote(struct conn *conn, uint32_t token, uint64_t address,
                                const uint8_t *data, uint32_t length)
{
    return place_one(conn, token, address, data, length, ACCESS_REMOTE_WRITE);
}

enum access_result place_scatter(struct conn *conn, const struct conn_wr *wr, uint32_t *sge,
                                 uint32_t *offset, const uint8_t *data, uint32_t length,
                                 uint32_t need)
{
    while (length) {
        const struct conn_sge *s = &wr->sge[*sge];
        uint32_t room = s->length - *offset;
        uint32_t n = length < room ? length : room;
        enum access_result result;

        if (n) {
            result = place_one(conn, s->token, s->address + *offset, data, n, need);
            if (result != ACCESS_OK)
                return result;
        }
        data += n;
        length -= n;
        *offset += n;
        if (*offset == s->length) {
            (*sge)++;
            *offset = 0;
        }
    }
    return ACCESS_OK;
}
