// SPDX-License-Identifier: MIT
/*
 * kit_work.h - steps that several topics on work requests and memory take. Made of what kit.h has.
 */
#ifndef KIT_WORK_H
#define KIT_WORK_H

#include "kit.h"

/* What every sink of a Read may have on every adapter. */
#define KIT_SINK (NDK_MR_FLAG_ALLOW_LOCAL_WRITE | NDK_MR_FLAG_RDMA_READ_SINK)

/* A post that a provider must refuse, with whatever status: no completion may come. */
BOOLEAN kit_refused(struct kit *k, struct kit_request *request, const char *what);
/* The next result of the request's CQ is that of this request, with one of these statuses (a list
 * that ends with STATUS_PENDING). status may be NULL. */
BOOLEAN kit_expect_among(struct kit_request *request, const NTSTATUS *need, NTSTATUS *status);
/*
 * A request that the peer could not do. Where the door says so (kit_exact), it completes with
 * exactly this status; otherwise a Read fails in some way, and a Send or Write may also have
 * completed with success before the peer looked at it. STATUS_PENDING: any of these, always.
 */
BOOLEAN kit_expect_remote_error(struct kit_request *request, NTSTATUS exact);
/* A request whose own SGE is wrong: refused when posted (*refused: the QP is as before), or it
 * completes with STATUS_ACCESS_VIOLATION. */
BOOLEAN kit_expect_local_error(struct kit_request *request, BOOLEAN *refused);
/* The disconnect event of this end comes. */
BOOLEAN kit_ends(struct kit_end *end);

/* Sends or receives length bytes at the start of memory. */
struct kit_request *kit_send_all(struct kit_end *end, const struct kit_memory *memory, ULONG length,
                                 ULONG flags);
struct kit_request *kit_receive_all(struct kit_end *end, const struct kit_memory *memory,
                                    ULONG length);
/* The end still carries a message to the obedient server, which had no receive left. */
BOOLEAN kit_still_works(struct kit_end *end);

/* A part of some memory, that begins and ends within pages, registered by itself. */
#define KIT_PART_AT     100u
#define KIT_PART_SIZE   (PAGE_SIZE + 17u)
#define KIT_PART_AROUND (3 * PAGE_SIZE)

struct kit_part {
    struct kit_memory *around;
    struct kit_mr *mr;
    PMDL mdl;
    PUCHAR data;
    UINT32 local, remote; /* after it was registered */
};
BOOLEAN kit_part_open(struct kit_pd *pd, struct kit_part *part);
BOOLEAN kit_part_register(struct kit_part *part, ULONG flags);

/* A region for fast-registers with its memory and its pages; base and length are those that
 * kit_fast_again() registers. */
struct kit_fast {
    struct kit_memory *memory;
    struct kit_mr *mr;
    struct kit_lam *lam;
    PUCHAR base;
    SIZE_T length;
    UINT32 local, remote; /* after a post */
};
/* Initialized for the pages of that length and with these remote rights; not registered yet. */
BOOLEAN kit_fast_open(struct kit_end *end, SIZE_T length, BOOLEAN remote, struct kit_fast *fast);
/* Posts a fast-register and reads the tokens. */
struct kit_request *kit_fast_again(struct kit_qp *qp, struct kit_fast *fast, ULONG flags);
/* ... and expects its success. */
BOOLEAN kit_fast_done(struct kit_qp *qp, struct kit_fast *fast, ULONG flags);
NDK_SGE kit_fast_sge(const struct kit_fast *fast, SIZE_T offset, ULONG length);

#endif /* KIT_WORK_H */
