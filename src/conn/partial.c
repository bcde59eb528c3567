// SPDX-License-Identifier: MIT
/*
 * Octets that the receive owner could not use yet: of an incomplete FPDU, or behind one that waits
 * for a receive or an invalidation. Between two of its turns they leave the thread's staging area
 * for a buffer of the connection. All these buffers together are capped (option staging_cap of the
 * adapter whose connection asks for room): when the cap would be passed, the connection that made
 * no progress for the longest time is reset, which may be the asking one. Progress is an FPDU that
 * was processed; a peer that sends an octet now and then makes none.
 *
 * While an FPDU is incomplete its octets stay in the buffer, and those that come are added to it:
 * the whole goes back to a staging area once, when its last octet is there. The buffer has room for
 * at most half as much again as stands in it; what is counted is what stands in it. Where a whole
 * FPDU waits, for a receive or an invalidation, those behind it are looked at where they stand, one
 * receive that is posted after the other, and never copied back: the buffer shrinks when less than
 * half of it is left.
 *
 * Invariants: every connection that holds octets stands in the list, the one without progress for
 * the longest time first; `total` is the sum of what they hold. One that is chosen leaves both at
 * once, though its buffer lives until its own receive owner lets go: that is what the process may
 * hold beyond the cap, for a moment. Who stands in the list has not ended its receive direction, so
 * it is alive while the lock is held.
 *
 * Lock: list_lock (leaf): the list, `total`, and the members of struct conn_partial behind `lock`.
 * Nobody is ended under it: the end of another connection takes that one's lock, and perhaps runs
 * its directions to their end on this thread.
 */
#include <ntstatus.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/red.h"
#include "conn/conn_internal.h"

static os_mutex list_lock = OS_MUTEX_INITIALIZER;
static struct conn *oldest, *newest;
static size_t total;
static atomic_ullong copied; /* octets, between buffers and staging areas */

size_t conn_staged(void)
{
    size_t octets;

    os_mutex_lock(&list_lock);
    octets = total;
    os_mutex_unlock(&list_lock);
    return octets;
}

/* Lock held, like the next ones. */
static void list_remove(struct conn *conn)
{
    struct conn_partial *p = &conn->rx.partial;

    if (!p->listed)
        return;
    *(p->older ? &p->older->rx.partial.newer : &oldest) = p->newer;
    *(p->newer ? &p->newer->rx.partial.older : &newest) = p->older;
    p->listed = false;
    total -= p->counted;
    p->counted = 0;
}

static void list_append(struct conn *conn)
{
    struct conn_partial *p = &conn->rx.partial;

    p->older = newest;
    p->newer = NULL;
    *(newest ? &newest->rx.partial.newer : &oldest) = conn;
    newest = conn;
    p->listed = true;
    p->since_us = os_now_us();
}

/* Takes the slowest out, with a reference for the caller. */
static struct conn *choose(struct conn *asking, uint32_t length, uint32_t cap)
{
    /* One that wants more than there is for all gains nothing by the end of others. */
    struct conn *slowest = length > cap || RED("partial-asking-one-goes") ? asking : oldest;
    struct conn_partial *p = &slowest->rx.partial;
    size_t before = total;

    conn_ref(slowest);
    p->chosen = true;
    p->chosen_total = total;
    list_remove(slowest);
    if (RED("partial-stays-counted"))
        total = before;
    return slowest;
}

/* conn holds length octets from now on. */
static void account(struct conn *conn, uint32_t length, bool progress)
{
    struct conn_partial *p = &conn->rx.partial;
    uint32_t cap = conn->options->staging_cap;

    os_mutex_lock(&list_lock);
    if (p->chosen) { /* it is about to end */
        os_mutex_unlock(&list_lock);
        return;
    }
    if (p->listed && (progress || RED("partial-trickle-is-progress")))
        list_remove(conn);
    if (!p->listed)
        list_append(conn);
    total = total - p->counted + length;
    p->counted = length;
    while (p->listed && total > cap) {
        struct conn *slowest = choose(conn, length, cap);

        os_mutex_unlock(&list_lock);
        conn_end(slowest, HOW_RST, R(LOCAL_FAULT, STAGING_CAP), STATUS_INSUFFICIENT_RESOURCES);
        conn_unref(slowest);
        os_mutex_lock(&list_lock);
    }
    os_mutex_unlock(&list_lock);
}

static void copy(void *to, const void *from, size_t length)
{
    memcpy(to, from, length);
    atomic_fetch_add_explicit(&copied, length, memory_order_relaxed);
}

unsigned long long conn_partial_copied(void)
{
    return atomic_load(&copied);
}

size_t partial_missing(const struct conn *conn)
{
    const struct conn_partial *p = &conn->rx.partial;
    struct iwarp_fpdu fpdu;

    if (p->length < IWARP_FPDU_LENGTH_LEN || RED("partial-copied-each-turn"))
        return 0;
    /* Without its CRC: only the size is asked for. */
    if (iwarp_fpdu_parse(p->octets + p->start, p->length, false, &fpdu) != IWARP_MORE)
        return 0;
    return fpdu.size - p->length;
}

/* The buffer grows by halves, up to the size of the FPDU: what a peer sends in single octets is not
 * copied once for each of them, and what it only announces takes no room. */
bool partial_append(struct conn *conn, const uint8_t *octets, size_t length)
{
    struct conn_partial *p = &conn->rx.partial;
    size_t whole = p->length + partial_missing(conn);

    if (p->room - p->start - p->length < length) {
        size_t room = p->length + length + p->length / 2 + 64;
        uint8_t *grown = malloc(room < whole ? room : whole);

        if (!grown) {
            conn_end_no_memory(conn);
            return false;
        }
        copy(grown, p->octets + p->start, p->length);
        free(p->octets);
        p->octets = grown;
        p->start = 0;
        p->room = (uint32_t)(room < whole ? room : whole);
    }
    copy(p->octets + p->start + p->length, octets, length);
    p->length += (uint32_t)length;
    account(conn, p->length, false);
    return true;
}

size_t partial_load(struct conn *conn, uint8_t *staging)
{
    struct conn_partial *p = &conn->rx.partial;
    size_t length = p->length;

    if (length)
        copy(staging, p->octets + p->start, length);
    free(p->octets);
    p->octets = NULL;
    p->start = p->length = p->room = 0;
    return RED("partial_fpdu_lost") ? 0 : length;
}

void partial_keep(struct conn *conn, const uint8_t *octets, size_t length, bool progress)
{
    struct conn_partial *p = &conn->rx.partial;

    if (length == 0) {
        partial_drop(conn);
        return;
    }
    p->octets = malloc(length);
    if (!p->octets) {
        if (RED("partial-no-memory-resets"))
            conn_end(conn, HOW_RST, R(LOCAL_FAULT, NO_MEMORY), STATUS_INSUFFICIENT_RESOURCES);
        conn_end_no_memory(conn);
        return;
    }
    copy(p->octets, octets, length);
    p->start = 0;
    p->length = p->room = (uint32_t)length;
    p->held = true;
    account(conn, (uint32_t)length, progress);
}

const uint8_t *partial_octets(const struct conn *conn, size_t *length)
{
    const struct conn_partial *p = &conn->rx.partial;

    *length = p->length;
    return p->length ? p->octets + p->start : NULL;
}

void partial_use(struct conn *conn, size_t used)
{
    struct conn_partial *p = &conn->rx.partial;
    uint8_t *fitting;

    p->start += (uint32_t)used;
    p->length -= (uint32_t)used;
    if (p->length == 0) {
        partial_drop(conn);
        return;
    }
    if (p->start > p->length) { /* each octet is moved once at most, all in all */
        copy(p->octets, p->octets + p->start, p->length);
        p->start = 0;
        fitting = realloc(p->octets, p->length);
        if (fitting) {
            p->octets = fitting;
            p->room = p->length;
        }
    }
    account(conn, p->length, used != 0);
}

void partial_drop(struct conn *conn)
{
    struct conn_partial *p = &conn->rx.partial;
    bool chosen;

    free(p->octets);
    p->octets = NULL;
    p->start = p->length = p->room = 0;
    if (!p->held)
        return;
    p->held = false;
    os_mutex_lock(&list_lock);
    chosen = p->chosen;
    list_remove(conn);
    os_mutex_unlock(&list_lock);
    if (chosen && !p->told) {
        char text[200];

        p->told = true;
        snprintf(text, sizeof text,
                 "reset: octets of incomplete FPDUs in this process (have %zu, need <= staging_cap "
                 "%u), and this connection has processed none for %llu ms",
                 p->chosen_total, conn->options->staging_cap,
                 (unsigned long long)(os_now_us() - p->since_us) / 1000);
        conn->ops->note(conn->qp, text);
    }
}
