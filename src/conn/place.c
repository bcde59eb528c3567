// SPDX-License-Identifier: MIT
/*
 * Placement: octets from the staging area into memory that a token names. The check and the copies
 * are one critical section (map .. unmap), so nothing is written into a region after its
 * invalidation completed. Called by the receive owner; conn_reuse_...() by the transmit owner too.
 */
#include <string.h>

#include "base/red.h"
#include "base/usdt.h"
#include "conn/conn_internal.h"

/* Host pieces of one access; a region of scattered pages needs one per page. */
#define PIECES_MAX 20

enum access_result conn_reuse_map(struct conn *conn, struct conn_reuse *reuse, uint32_t token,
                                  uint64_t address, uint32_t length, uint32_t need,
                                  struct os_iov *pieces, int *count)
{
    enum access_result result;

    if (reuse->hold.slot && reuse->token == token && reuse->need == need &&
        conn->ops->map_again(&reuse->hold, address, length, pieces, count))
        return ACCESS_OK;
    conn_reuse_drop(conn, reuse);
    result = conn->ops->map(conn->qp, token, address, length, need, &reuse->hold, pieces, count);
    if (result != ACCESS_OK)
        reuse->hold.slot = NULL;
    reuse->token = token;
    reuse->need = need;
    return result;
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
    struct os_iov pieces[PIECES_MAX];
    int count = PIECES_MAX;
    enum access_result result =
        conn_reuse_map(conn, &conn->rx.reuse, token, address, length, need, pieces, &count);

    if (result != ACCESS_OK)
        return result;
    for (int i = 0; i < count; i++) {
        memcpy(pieces[i].base, data, pieces[i].len);
        data += pieces[i].len;
    }
    USDT(place, conn, token, address, length);
    return ACCESS_OK;
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
