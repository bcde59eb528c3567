// SPDX-License-Identifier: MIT
/*
 * A hostile peer, seeded: what it sends (streams.c, no NDK) and how it behaves; the server and the
 * client it attacks, and the good connection beside it, are in attack_test.c and good.c.
 */
#ifndef SOFTNDK_TESTS_ATTACK_H
#define SOFTNDK_TESTS_ATTACK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "peer.h"

struct bench;
struct end;

/* ---- chance --------------------------------------------------------------------------------- */

struct chance {
    uint64_t state;
};

uint64_t chance_next(struct chance *c);
/* 0 to n - 1. */
unsigned chance_of(struct chance *c, unsigned n);

/* ---- streams -------------------------------------------------------------------------------- */

/* What an attacker may know of its victim. */
struct attack_target {
    uint32_t writable, readable, foreign, stale; /* STags */
    uint64_t writable_to, readable_to, foreign_to;
    uint32_t writable_size, readable_size;
};

/* A Request or a Reply, good or not, into s; whole: it asks for nothing odd and is not damaged. */
void attack_startup(struct chance *c, struct stream *s, bool reply);
/* The FPDUs behind it, good ones and others, in any order. */
void attack_fpdus(struct chance *c, struct stream *s, const struct attack_target *target);
/* Damages the octets: bits, lengths, pieces lost, moved or doubled. */
void attack_damage(struct chance *c, struct stream *s);
/* Sends: in one piece, octet by octet, or in pieces with pauses. False: the end has ended it. */
bool attack_deliver(struct chance *c, struct peer *p, const uint8_t *octets, size_t length);
/* Reads until the end of the connection: it must come, in this time. */
extern unsigned attack_patience_ms;
void attack_await_end(struct peer *p);

/* ---- the good connections ------------------------------------------------------------------- */

struct good;

/* A pair that is connected through the bench's listener, before the attack begins. */
struct good *good_open(struct bench *b);
/* Works until stop; rounds and newcomers tell how often. */
void good_start(struct good *good);
void good_stop(struct good *good, unsigned *rounds, unsigned *newcomers);
void good_close(struct good *good);

/* ---- counts of the process ------------------------------------------------------------------ */

unsigned attack_descriptors(void);
size_t attack_resident(void); /* octets */
/* Octets that are allocated; 0: cannot be told here. */
size_t attack_allocated(void);

#endif
