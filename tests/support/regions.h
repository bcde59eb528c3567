// SPDX-License-Identifier: MIT
/*
 * Memory for integration tests, on top of ends.h: adapter pages of an MDL chain, fast-register
 * regions with guards around them, what completions and disconnect events must say, and each test
 * in both completion modes. Every wait has a limit; failures fail the test.
 */
#ifndef SOFTNDK_TESTS_REGIONS_H
#define SOFTNDK_TESTS_REGIONS_H

#include "base/reason.h"
#include "ends.h"
#include "iwarp/wire.h"

/* ---- modes ---------------------------------------------------------------------------------- */

int pend_never(void **state);
int pend_always(void **state);
/* Two entries of a struct CMUnitTest array. */
#define BOTH_MODES(test)                                                                           \
    {#test " (never)", test, pend_never, NULL, NULL},                                              \
    {                                                                                              \
#test " (always)", test, pend_always, NULL, NULL                                           \
    }

/* ---- what must have happened ---------------------------------------------------------------- */

/* The next completion is this one. */
void expect_completion(struct queue *queue, const char *what, void *context,
                       NDK_OPERATION_TYPE type, NTSTATUS status);
/* No completion is there, and none comes for ms. */
void expect_nothing(struct queue *queue, const char *what, unsigned ms);
/* The disconnect event comes (once) with this source and, if it carries one, this wire error. */
void expect_event(struct end *end, const char *what, enum reason_source source, iwarp_error error);
/* A call has returned this status; else its reason is shown. */
void expect_call(NTSTATUS status, NTSTATUS wanted, const char *what,
                 const NDK_OBJECT_HEADER *object);

/* ---- adapter pages -------------------------------------------------------------------------- */

struct lam {
    NDK_ADAPTER *adapter;
    NDK_LOGICAL_ADDRESS_MAPPING *map;
    ULONG fbo;
    SIZE_T length;
};
void lam_open(NDK_ADAPTER *adapter, MDL *mdl, SIZE_T length, struct lam *out);
void lam_close(struct lam *lam);
UINT64 lam_page(const struct lam *lam, ULONG index);
/* An SGE a page, with the PD's privileged token; the count, at most room. */
ULONG lam_sges(NDK_PD *pd, const struct lam *lam, NDK_SGE *sges, ULONG room);

/* ---- fast-register regions ------------------------------------------------------------------ */

#define GUARD 0xee /* what stands around data */

struct region {
    struct end *end;
    NDK_MR *mr;
    uint8_t *room, *data;
    size_t room_size, size;
    PMDL mdl;
    struct lam lam;
    UINT32 local, remote; /* remote: read again by each region_post() */
    UINT64 base;
};
/* size octets, the first one at offset in its page; an FRMR for capacity pages (0: as many as it
 * has), initialized. */
void region_open(struct end *end, size_t offset, size_t size, ULONG capacity, BOOLEAN remote,
                 struct region *out);
void region_close(struct region *r);
/* Posts a fast-register of all of it at this base. */
NTSTATUS region_post(struct region *r, UINT64 base, ULONG flags, void *context);
/* The same, and its completion. */
void region_register(struct region *r, UINT64 base, ULONG flags);
void region_invalidate(struct region *r);
/* Is every octet of the room that is not data untouched? */
bool region_guarded(const struct region *r);
NDK_SGE region_sge(const struct region *r, size_t offset, ULONG length);

#define REMOTE_BOTH (NDK_OP_FLAG_ALLOW_REMOTE_READ | NDK_OP_FLAG_ALLOW_REMOTE_WRITE)

/* ---- requests ------------------------------------------------------------------------------- */

NTSTATUS post_write(struct end *end, const struct memory *from, ULONG length, UINT64 to,
                    UINT32 token, ULONG flags, void *context);
NTSTATUS post_read(struct end *end, const struct memory *into, ULONG length, UINT64 from,
                   UINT32 token, ULONG flags, void *context);
NTSTATUS post_send(struct end *end, const struct memory *from, ULONG length, ULONG flags,
                   void *context);
void post_receive(struct end *end, const struct memory *into, ULONG length, void *context);
/* A zero-length Send from one end to the other, and both completions: what was sent before it is
 * placed. */
void synchronize(struct end *from, struct end *to);

/* A pair with these options at both ends and memory of each, of size octets. */
struct bed {
    struct pair pair;
    struct memory client, server;
};
void bed_open(struct bed *bed, const char *options, size_t size, ULONG flags);
void bed_open_two(struct bed *bed, const char *client_options, const char *server_options,
                  size_t size, ULONG flags);
void bed_close(struct bed *bed);

#define ALL_RIGHTS                                                                                 \
    (NDK_MR_FLAG_ALLOW_LOCAL_WRITE | NDK_MR_FLAG_ALLOW_REMOTE_READ |                               \
     NDK_MR_FLAG_ALLOW_REMOTE_WRITE | NDK_MR_FLAG_RDMA_READ_SINK)

#endif
