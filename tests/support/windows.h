// SPDX-License-Identifier: MIT
/*
 * Memory windows in tests between two connected ends, and a second connection between the adapters
 * of a bed. Every wait has a limit; failures fail the test.
 */
#ifndef SOFTNDK_TESTS_WINDOWS_H
#define SOFTNDK_TESTS_WINDOWS_H

#include "regions.h"

NDK_MW *window_open(NDK_PD *pd);
UINT32 window_token(NDK_MW *mw);
/* Posts a bind to length octets from offset of the memory, over the end's QP. */
NTSTATUS window_post(struct end *end, NDK_MW *mw, const struct memory *memory, size_t offset,
                     SIZE_T length, ULONG flags, void *context);
/* The same, and its completion; the token. */
UINT32 window_bind(struct end *end, NDK_MW *mw, const struct memory *memory, size_t offset,
                   SIZE_T length, ULONG flags);
NTSTATUS window_post_invalidate(struct end *end, NDK_MW *mw, ULONG flags, void *context);
void window_invalidate(struct end *end, NDK_MW *mw);

/* NdkDeregisterMr, to its end. */
NTSTATUS memory_deregister(struct memory *memory);
/* NdkRegisterMr of memory that is not registered; new tokens. */
void memory_register(struct memory *memory, ULONG flags);
static inline UINT64 memory_at(const struct memory *memory, size_t offset)
{
    return (UINT64)(uintptr_t)memory->data + offset;
}

NTSTATUS post_send_invalidate(struct end *end, ULONG flags, UINT32 token, void *context);

/* The ends' connection has ended by this error, found by `finder`. */
void expect_terminated(const char *what, struct end *finder, struct end *other, iwarp_error error);

/* A second pair of QPs on the adapters of the bed, connected; server_pd: the server's domain, NULL:
 * the bed's. Closed before the bed; adapters and domains stay. */
void second_open(const struct bed *bed, NDK_PD *server_pd, struct pair *out);
void second_close(struct pair *second);

#endif
