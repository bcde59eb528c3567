// SPDX-License-Identifier: MIT
/* See attack.h. Octets only: this file sees the system's headers, nothing of include/nt. */
#include "attack.h"

#include <dirent.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* ---- chance --------------------------------------------------------------------------------- */

uint64_t chance_next(struct chance *c)
{
    uint64_t z = c->state += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

unsigned chance_of(struct chance *c, unsigned n)
{
    return (unsigned)(chance_next(c) >> 32) % n;
}

/* ---- startup frames ------------------------------------------------------------------------- */

void attack_startup(struct chance *c, struct stream *s, bool reply)
{
    uint8_t frame[20 + 512];
    unsigned revision = chance_of(c, 6) ? 2 : 1;
    size_t words = revision == 2 ? 4 : 0;
    size_t data = chance_of(c, 3) ? 0 : chance_of(c, 509);

    memcpy(frame, reply ? "MPA ID Rep Frame" : "MPA ID Req Frame", 16);
    frame[16] = revision == 2 ? 0x50 : 0x40; /* C, and S of revision 2 */
    if (chance_of(c, 12) == 0)
        frame[16] = (uint8_t)chance_next(c);
    frame[17] = chance_of(c, 40) ? (uint8_t)revision : (uint8_t)chance_next(c);
    frame[18] = (uint8_t)((words + data) >> 8);
    frame[19] = (uint8_t)(words + data);
    /* A and B of both words, C and D: sometimes anything, mostly the ready-to-receive Read. */
    memcpy(frame + 20, reply ? "\x80\x08\x40\x08" : "\x80\x08\xc0\x08", 4);
    for (size_t i = 0; i < words && chance_of(c, 8) == 0; i++)
        frame[20 + i] = (uint8_t)chance_next(c);
    for (size_t i = 0; i < data; i++)
        frame[20 + words + i] = (uint8_t)(i * 7);
    stream_raw(s, frame, 20 + words + data);
}

/* ---- FPDUs ---------------------------------------------------------------------------------- */

struct sender {
    struct chance *c;
    struct stream *s;
    const struct attack_target *t;
    uint32_t send_msn, read_msn;
    uint8_t octets[3000];
};

static uint32_t some_length(struct sender *x)
{
    return chance_of(x->c, 5) ? chance_of(x->c, 300) : chance_of(x->c, sizeof x->octets + 1);
}

static void a_send(struct sender *x)
{
    static const uint8_t opcodes[] = {0x43, 0x43, 0x43, 0x44, 0x45, 0x46};
    uint8_t opcode = opcodes[chance_of(x->c, sizeof opcodes)];
    uint32_t length = some_length(x), first = chance_of(x->c, length + 1);
    uint32_t msn = x->send_msn++, token = opcode & 1 ? 0 : x->t->writable;

    if (chance_of(x->c, 2)) {
        stream_untagged(x->s, 0x01, opcode, token, 0, msn, 0, x->octets, first);
        stream_untagged(x->s, 0x41, opcode, token, 0, msn, first, x->octets + first,
                        length - first);
    } else {
        stream_untagged(x->s, 0x41, opcode, token, 0, msn, 0, x->octets, length);
    }
}

static void a_write(struct sender *x)
{
    uint32_t length = some_length(x);
    uint32_t at = chance_of(x->c, x->t->writable_size - length + 1);

    switch (chance_of(x->c, 8)) {
    case 0: /* another domain's */
        stream_write(x->s, x->t->foreign, x->t->foreign_to, x->octets, length);
        break;
    case 1:
        stream_write(x->s, x->t->stale, x->t->writable_to + at, x->octets, length);
        break;
    case 2: /* read only */
        stream_write(x->s, x->t->readable, x->t->readable_to, x->octets, length);
        break;
    case 3: /* around its edges */
        stream_write(x->s, x->t->writable, x->t->writable_to - chance_of(x->c, 40), x->octets,
                     length);
        break;
    case 4:
        stream_write(x->s, x->t->writable, chance_next(x->c), x->octets, length);
        break;
    default:
        stream_write(x->s, x->t->writable, x->t->writable_to + at, x->octets, length);
        break;
    }
}

static void a_read(struct sender *x)
{
    uint32_t size = chance_of(x->c, x->t->readable_size + 1);
    bool bad = chance_of(x->c, 4) == 0;
    uint32_t stag = !bad ? x->t->readable : chance_of(x->c, 2) ? x->t->foreign : x->t->stale;

    stream_read(x->s, x->read_msn++, (uint32_t)chance_next(x->c), chance_next(x->c),
                bad && chance_of(x->c, 2) ? (uint32_t)chance_next(x->c) : size, stag,
                x->t->readable_to);
}

static void a_response(struct sender *x)
{
    stream_response(x->s, chance_of(x->c, 2), (uint32_t)chance_next(x->c), chance_next(x->c),
                    x->octets, some_length(x));
}

static void a_terminate(struct sender *x)
{
    for (unsigned i = 0; i < 60; i++)
        x->octets[i] = (uint8_t)chance_next(x->c);
    stream_terminate(x->s, x->octets, chance_of(x->c, 60));
}

/* Any header on any queue, and ULPDUs of any octets: each with a good CRC. */
static void anything(struct sender *x)
{
    uint8_t ulpdu[200];

    for (unsigned i = 0; i < sizeof ulpdu; i++)
        ulpdu[i] = (uint8_t)chance_next(x->c);
    switch (chance_of(x->c, 4)) {
    case 0:
        stream_untagged(x->s, 0x41, (uint8_t)(0x40 | chance_of(x->c, 16)), 0, chance_of(x->c, 6),
                        chance_of(x->c, 2) ? x->send_msn : (uint32_t)chance_next(x->c),
                        chance_of(x->c, 2) ? 0 : (uint32_t)chance_next(x->c), ulpdu,
                        chance_of(x->c, 100));
        break;
    case 1:
        stream_tagged(x->s, chance_of(x->c, 2) ? 0xc1 : 0x81, (uint8_t)(0x40 | chance_of(x->c, 16)),
                      x->t->writable, x->t->writable_to, ulpdu, chance_of(x->c, 100));
        break;
    default:
        if (chance_of(x->c, 2)) {
            ulpdu[0] = (uint8_t)(chance_of(x->c, 256) | 0x01);
            ulpdu[1] = (uint8_t)(0x40 | chance_of(x->c, 16));
        }
        stream_fpdu(x->s, ulpdu, chance_of(x->c, sizeof ulpdu));
        break;
    }
}

/* The last FPDU with bits wrong that its CRC covers. */
static void bend_last(struct sender *x)
{
    uint8_t ulpdu[4096];
    uint32_t length = x->s->ulpdu_length;
    size_t before = x->s->ulpdu_at - 2;

    if (length == 0 || length > sizeof ulpdu)
        return;
    memcpy(ulpdu, x->s->octets + x->s->ulpdu_at, length);
    for (unsigned n = 1 + chance_of(x->c, 3); n; n--)
        ulpdu[chance_of(x->c, length < 30 ? length : 30)] ^= (uint8_t)(1u << chance_of(x->c, 8));
    x->s->length = before;
    stream_fpdu(x->s, ulpdu, length);
}

void attack_fpdus(struct chance *c, struct stream *s, const struct attack_target *t)
{
    static void (*const kinds[])(struct sender *) = {
        a_send, a_send, a_send,     a_write,  a_write,     a_write,
        a_read, a_read, a_response, anything, a_terminate,
    };
    struct sender x = {.c = c, .s = s, .t = t, .send_msn = 1, .read_msn = 1};

    for (size_t i = 0; i < sizeof x.octets; i++)
        x.octets[i] = (uint8_t)(i * 13);
    s->crc = chance_of(c, 20) != 0;
    if (chance_of(c, 5)) /* the ready-to-receive Read */
        stream_read(s, x.read_msn++, 1, 0, 0, 1, 0);
    for (unsigned n = chance_of(c, 8); n; n--) {
        kinds[chance_of(c, sizeof kinds / sizeof kinds[0])](&x);
        if (chance_of(c, 6) == 0)
            bend_last(&x);
    }
}

/* ---- damage --------------------------------------------------------------------------------- */

static void one_damage(struct chance *c, struct stream *s)
{
    size_t at = chance_of(c, (unsigned)s->length), left = s->length - at;
    size_t piece = 1 + chance_of(c, (unsigned)(left < 64 ? left : 64));
    uint8_t copy[64];

    if (piece > left)
        piece = left;
    switch (chance_of(c, 7)) {
    case 0:
    case 1:
        s->octets[at] ^= (uint8_t)(1u << chance_of(c, 8));
        break;
    case 2:
        s->length = at + 1;
        break;
    case 3: /* a length, perhaps */
        s->octets[at] = (uint8_t)chance_next(c);
        if (left > 1)
            s->octets[at + 1] = (uint8_t)chance_next(c);
        break;
    case 4: /* lost */
        memmove(s->octets + at, s->octets + at + piece, left - piece);
        s->length -= piece;
        break;
    case 5: /* doubled at the end: room is there since stream_raw() makes it */
        memcpy(copy, s->octets + at, piece);
        stream_raw(s, copy, piece);
        break;
    default: /* in another order */
        memcpy(copy, s->octets + at, piece);
        memmove(s->octets + at, s->octets, piece < at ? piece : 0);
        memcpy(s->octets, copy, piece < at ? piece : 0);
        break;
    }
}

void attack_damage(struct chance *c, struct stream *s)
{
    for (unsigned n = 1 + chance_of(c, 3); n && s->length; n--)
        one_damage(c, s);
}

unsigned attack_patience_ms = 30000;

/* ---- delivery ------------------------------------------------------------------------------- */

static void pause_us(unsigned us)
{
    struct timespec t = {0, (long)us * 1000};

    nanosleep(&t, NULL);
}

bool attack_deliver(struct chance *c, struct peer *p, const uint8_t *octets, size_t length)
{
    unsigned way = chance_of(c, 4);

    if (way == 0 && length <= 700)
        return peer_trickle(p, octets, length);
    for (size_t at = 0; at < length;) {
        size_t piece = way < 2 ? length - at : 1 + chance_of(c, 400);

        if (piece > length - at)
            piece = length - at;
        if (!peer_send(p, octets + at, piece))
            return false;
        at += piece;
        if (way == 3)
            pause_us(chance_of(c, 1500));
    }
    return true;
}

void attack_await_end(struct peer *p)
{
    uint8_t octets[4096];
    unsigned long long limit = test_now_ms() + attack_patience_ms;

    for (;;) {
        enum peer_end end = peer_read(p, octets, sizeof octets, 1000);

        if (end == PEER_FIN || end == PEER_RST)
            return;
        if (test_now_ms() > limit)
            test_fail("a bad connection did not end within its bound");
    }
}

/* ---- counts --------------------------------------------------------------------------------- */

unsigned attack_descriptors(void)
{
    DIR *directory = opendir("/proc/self/fd");
    unsigned count = 0;

    if (!directory)
        test_fail("no /proc/self/fd");
    while (readdir(directory))
        count++;
    closedir(directory);
    return count - 3; /* . and .. and the directory itself */
}

size_t attack_resident(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    unsigned long size, resident;

    if (SANITIZED || !file || fscanf(file, "%lu %lu", &size, &resident) != 2)
        resident = 0;
    if (file)
        fclose(file);
    return (size_t)resident * (size_t)sysconf(_SC_PAGESIZE);
}

size_t attack_allocated(void)
{
    return SANITIZED ? 0 : mallinfo2().uordblks;
}
