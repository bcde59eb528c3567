// SPDX-License-Identifier: MIT
/*
 * Where something was made: the call stack of the consumer that asked for it, kept only when a
 * report is wanted (SOFTNDK_STACKS is set; softndk-run sets it), since unwinding costs
 * microseconds.
 *
 * The frames are those of the whole stack; the library's own are left out when it is told. Any
 * thread, no lock.
 */
#ifndef SOFTNDK_PROVIDER_ORIGIN_H
#define SOFTNDK_PROVIDER_ORIGIN_H

#include <stdbool.h>
#include <stddef.h>

struct origin;

/* The present stack, for origin_free(); NULL when nobody wants it, or without memory. */
struct origin *origin_take(void);
void origin_free(struct origin *origin);
/* Copies, so that it can be told without the lock of its owner. NULL gives NULL. */
struct origin *origin_copy(const struct origin *origin);
bool origin_same(const struct origin *a, const struct origin *b);
/* ", made by inner <- outer <- ...", or nothing when it is not known. Always terminates. Returns
 * what the whole text needs, as snprintf does. */
size_t origin_text(const struct origin *origin, char *text, size_t size);

#endif
