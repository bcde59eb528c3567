// SPDX-License-Identifier: MIT
/*
 * left.h - what consumers have created and not given back, each with the call stack of its making.
 *
 * One record a thing, found by kind and address. The records are kept apart from the things, so
 * that a wild write into a block of pool does not destroy what is known of it. A hash table with a
 * lock a bucket; the locks are leaves and held for a few instructions. Any thread, any level.
 */
#ifndef SOFTNDK_NT_LEFT_H
#define SOFTNDK_NT_LEFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum nt_left_kind {
    NT_LEFT_POOL,
    NT_LEFT_MDL,
    NT_LEFT_WORK_ITEM,
    NT_LEFT_LOOKASIDE,
    NT_LEFT_RESOURCE,
    NT_LEFT_TIMER,
    NT_LEFT_THREAD,
    NT_LEFT_HANDLE,
    NT_LEFT_KINDS
};

struct nt_left {
    struct nt_left *next;
    const void *address;
    size_t size;     /* bytes, or 0 */
    uint64_t serial; /* rises with each record of the process */
    uint32_t tag;    /* of pool and lookaside lists, else 0 */
    uint16_t flags;  /* the owner's own */
    uint8_t kind;    /* enum nt_left_kind */
    uint8_t depth;   /* frames that are set */
    void *frames[];  /* return addresses, innermost first */
};

/* What one thing of the kind is called. */
const char *nt_left_kind_name(enum nt_left_kind kind);

/* Makes and enters a record; caller is the return address of the function that the consumer called.
 * NULL without memory. The record is the table's until it is taken. */
struct nt_left *nt_left_add(enum nt_left_kind kind, const void *address, size_t size, uint32_t tag,
                            unsigned flags, const void *caller);

/* Takes the record out; the caller frees it with nt_left_free(). NULL: there is no such thing. */
struct nt_left *nt_left_take(enum nt_left_kind kind, const void *address);
void nt_left_free(struct nt_left *record);

/* Takes out and frees; whether there was one. */
bool nt_left_drop(enum nt_left_kind kind, const void *address);

/* Whether the thing is there; its size and flags if wanted. */
bool nt_left_find(enum nt_left_kind kind, const void *address, size_t *size, unsigned *flags);

/* How many there are of a kind. */
size_t nt_left_count(enum nt_left_kind kind);

/* Copies of records in the order of their making, *count of them, for nt_left_list_free(). pick is
 * asked of each one, with the lock held, so that its thing stays as it is: 0 leaves it out,
 * anything else becomes the flags of the copy. pick NULL: all. NULL when there is none, or no
 * memory. */
struct nt_left **nt_left_list(unsigned (*pick)(const struct nt_left *record), size_t *count);
void nt_left_list_free(struct nt_left **list, size_t count);

/* The stack on one line: "inner <- outer <- ...". Always terminates. */
void nt_left_stack(const struct nt_left *record, char *text, size_t size);

#endif /* SOFTNDK_NT_LEFT_H */
