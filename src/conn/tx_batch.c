// SPDX-License-Identifier: MIT
/* See tx_batch.h: the container of one system call's FPDUs. Used by the transmit owner alone. */
#include "conn/tx_batch.h"

#include <stdlib.h>
#include <string.h>

void tx_batch_init(struct conn_batch *b)
{
    b->octets = b->sent = 0;
    b->iov_count = b->iov_first = 0;
    b->arena_used = 0;
    b->mark_count = b->mark_first = 0;
    b->hold_count = 0;
    b->copy_count = 0;
    b->frame_count = 0;
    b->reuse.hold.slot = NULL;
    b->large.hold.slot = NULL;
    b->large_answer = false;
}

void tx_batch_release(struct conn_batch *b, struct conn *conn)
{
    for (unsigned i = 0; i < b->hold_count; i++)
        conn->ops->unmap(conn->qp, &b->holds[i]);
    b->hold_count = 0;
    for (unsigned i = 0; i < b->copy_count; i++)
        free(b->copies[i]);
    b->copy_count = 0;
}

void tx_batch_free(struct conn_batch *batch, struct conn *conn)
{
    tx_batch_release(batch, conn);
    free(batch);
}

/* Room for one more FPDU of any kind? */
bool tx_batch_full(const struct conn_batch *b)
{
    return b->octets >= BATCH_OCTETS || b->arena_used + 64 + COPY_MAX > BATCH_ARENA ||
           b->iov_count + FPDU_PIECES_MAX > BATCH_IOV || b->mark_count == BATCH_MARKS ||
           b->hold_count + FPDU_HOLDS_MAX > BATCH_HOLDS || b->copy_count + 2 > BATCH_COPIES ||
           b->frame_count == BATCH_FRAMES;
}

void tx_batch_reference(struct conn_batch *b, void *base, size_t len, bool answer)
{
    struct os_iov *last = b->iov_count ? &b->iov[b->iov_count - 1] : NULL;

    if (last && (uint8_t *)last->base + last->len == (uint8_t *)base &&
        b->answer[b->iov_count - 1] == answer && last->base >= (void *)b->arena &&
        (uint8_t *)base < b->arena + BATCH_ARENA) {
        last->len += len;
    } else {
        b->iov[b->iov_count].base = base;
        b->iov[b->iov_count].len = len;
        b->answer[b->iov_count++] = answer;
    }
    b->octets += len;
}

/* Takes `len` arena octets as part of the stream. */
uint8_t *tx_batch_take(struct conn_batch *b, size_t len)
{
    uint8_t *at = b->arena + b->arena_used;

    b->arena_used += (uint32_t)len;
    tx_batch_reference(b, at, len, false);
    return at;
}

void tx_frame_add(struct tx_frame *f, const void *data, size_t len)
{
    if (!f->with_crc)
        return;
    if (f->run_len && f->run + f->run_len == data) {
        f->run_len += len;
        return;
    }
    if (f->run_len)
        f->crc = iwarp_crc32c(f->crc, f->run, f->run_len);
    f->run = data;
    f->run_len = len;
}

/* Small payload: copied into the arena. */
static enum access_result payload_small(struct conn *conn, struct conn_batch *b, struct tx_frame *f,
                                        uint32_t token, uint64_t address, uint32_t length,
                                        uint32_t need)
{
    uint8_t *copy = b->arena + b->arena_used;
    enum access_result result = conn_reuse_get(conn, &b->reuse, token, address, length, need, copy);

    if (result != ACCESS_OK)
        return result;
    tx_batch_take(b, length);
    tx_frame_add(f, copy, length);
    return ACCESS_OK;
}

/* Octets by reference of a region that this batch holds already, for the same purpose. */
static bool payload_held(struct conn_batch *b, struct tx_frame *f, uint32_t token, uint64_t address,
                         uint32_t length, uint32_t need, bool answer)
{
    uint8_t *at = NULL;

    if (b->large_answer == answer)
        at = conn_reuse_at(&b->large, token, address, length, need);
    if (!at)
        return false;
    tx_frame_add(f, at, length);
    tx_batch_reference(b, at, length, answer);
    return true;
}

/* Appends length octets at address of the region token names. */
enum access_result tx_batch_payload(struct conn *conn, struct conn_batch *b, struct tx_frame *f,
                                    uint32_t token, uint64_t address, uint32_t length,
                                    uint32_t need, bool answer)
{
    struct os_iov pieces[PIECES_MAX];
    struct access hold;
    int count = PIECES_MAX;
    enum access_result result;
    uint8_t *copy = NULL;

    if (length == 0)
        return ACCESS_OK;
    if (length <= COPY_MAX && b->arena_used + length + 16 <= BATCH_ARENA)
        return payload_small(conn, b, f, token, address, length, need);
    if (payload_held(b, f, token, address, length, need, answer))
        return ACCESS_OK;
    result = conn->ops->map(conn->qp, token, address, length, need, &hold, pieces, &count);
    if (result != ACCESS_OK)
        return result;
    if (answer && conn->crc) {
        copy = malloc(length);
        if (!copy) {
            conn->ops->unmap(conn->qp, &hold);
            return ACCESS_INVALID_TOKEN;
        }
        b->copies[b->copy_count++] = copy;
        tx_batch_reference(b, copy, length, false);
    }
    if (copy) {
        uint8_t *at = copy;

        for (int i = 0; i < count; i++) {
            memcpy(at, pieces[i].base, pieces[i].len);
            at += pieces[i].len;
        }
        conn->ops->unmap(conn->qp, &hold);
        tx_frame_add(f, copy, length);
        return ACCESS_OK;
    }
    for (int i = 0; i < count; i++) {
        tx_frame_add(f, pieces[i].base, pieces[i].len);
        tx_batch_reference(b, pieces[i].base, pieces[i].len, answer);
    }
    b->large = (struct conn_reuse){hold, token, need};
    b->large_answer = answer;
    b->hold_answer[b->hold_count] = answer;
    b->holds[b->hold_count++] = hold;
    return ACCESS_OK;
}

struct tx_point tx_batch_point(const struct conn_batch *b)
{
    return (struct tx_point){b->octets, b->iov_count,
                             b->iov_count ? b->iov[b->iov_count - 1].len : 0, b->arena_used};
}

void tx_batch_back(struct conn_batch *b, struct tx_point p)
{
    b->octets = p.octets;
    b->iov_count = p.iov_count;
    if (p.iov_count)
        b->iov[p.iov_count - 1].len = p.last_len;
    b->arena_used = p.arena_used;
}

void tx_frame_close(struct conn *conn, struct conn_batch *b, struct tx_frame *f, uint32_t ulpdu)
{
    uint8_t *at = b->arena + b->arena_used;
    size_t n;

    if (f->run_len)
        f->crc = iwarp_crc32c(f->crc, f->run, f->run_len);
    n = iwarp_fpdu_put_trailer_state(at, ulpdu, f->with_crc, f->crc);
    tx_batch_take(b, n);
    b->ends[b->frame_count++] = b->octets;
    conn->tx.frames++;
}

/* The rest of a batch that TCP did not take, on the heap. Answers by reference are copied. */
bool tx_batch_keep(struct conn *conn, const struct conn_batch *b)
{
    struct conn_batch *kept = malloc(sizeof *kept);
    size_t answers = 0;
    uint8_t *copy = NULL;

    if (!kept)
        return false;
    memcpy(kept, b, offsetof(struct conn_batch, arena));
    memcpy(kept->arena, b->arena, b->arena_used);
    for (int i = kept->iov_first; i < kept->iov_count; i++)
        if (kept->answer[i])
            answers += kept->iov[i].len;
    if (answers) {
        copy = malloc(answers);
        if (!copy) {
            free(kept);
            return false;
        }
        kept->copies[kept->copy_count++] = copy;
    }
    for (int i = kept->iov_first; i < kept->iov_count; i++) {
        uint8_t *base = kept->iov[i].base;

        if (kept->answer[i]) {
            memcpy(copy, base, kept->iov[i].len);
            kept->iov[i].base = copy;
            copy += kept->iov[i].len;
            kept->answer[i] = false;
        } else if (base >= b->arena && base < b->arena + BATCH_ARENA) {
            kept->iov[i].base = kept->arena + (base - b->arena);
        }
    }
    conn->tx.pending = kept;
    return true;
}

/* Holds of answers' sources are not kept over a blocked socket. */
void tx_batch_release_answers(struct conn *conn, struct conn_batch *b)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < b->hold_count; i++) {
        if (b->hold_answer[i]) {
            conn->ops->unmap(conn->qp, &b->holds[i]);
        } else {
            b->hold_answer[kept] = false;
            b->holds[kept++] = b->holds[i];
        }
    }
    b->hold_count = kept;
}

/* The rest of the FPDU TCP took only a part of, so that the Terminate starts at a boundary. */
size_t tx_batch_fpdu_rest(const struct conn_batch *b)
{
    for (unsigned i = 0; i < b->frame_count; i++)
        if (b->ends[i] >= b->sent)
            return b->ends[i] - b->sent;
    return 0;
}
