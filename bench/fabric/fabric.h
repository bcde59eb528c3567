// SPDX-License-Identifier: MIT
/*
 * fabric.h - one message endpoint (FI_EP_MSG) of libfabric's tcp provider at each end, for the
 * modes of fabric. The fabtests do the same, but Debian has no package of them.
 *
 * Progress is manual: an end that waits for something reads its completion queue. `spin` reads it
 * again and again, otherwise it sleeps in fi_cq_sread().
 */
#ifndef SOFTNDK_BENCH_FABRIC_H
#define SOFTNDK_BENCH_FABRIC_H

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include "common/bench.h"

#define FABRIC_VERSION FI_VERSION(1, 15)
#define FABRIC_SLOTS   128u        /* receives that an end has posted, at most */
#define FABRIC_MEMORY  (16u << 20) /* octets for them, at most, if that is more than one */

struct fabric_link {
    struct bench_end *end;
    struct fi_info *info;
    struct fid_fabric *fabric;
    struct fid_eq *eq;
    struct fid_pep *pep; /* server only */
    struct fid_domain *domain;
    struct fid_cq *cq;
    struct fid_ep *ep;
    struct fid_mr *mr;
    uint8_t *memory; /* slots of `size` octets; the first is what is sent, written and read */
    unsigned slots;
    uint64_t posted; /* receives so far */
    bool over;       /* failures of what is still posted are expected */
    void *descriptor;
    uint64_t remote, key;    /* the peer's memory */
    uint64_t received, sent; /* completions so far */
};

/* Ends the program with a line when `rc` is an error. */
void fabric_must(const char *what, long rc);

void fabric_open_client(struct fabric_link *link, struct bench_end *end);
void fabric_open_server(struct fabric_link *link, struct bench_end *end);
void fabric_close(struct fabric_link *link);

/* Looks for completions and counts them; `wait`: may sleep a while. */
void fabric_progress(struct fabric_link *link, bool wait);
void fabric_post_receive(struct fabric_link *link);

#endif
