// SPDX-License-Identifier: MIT
/*
 * Access checks between two connected ends: the first and last octet of a region and those beside
 * them, wrap, rights, stale and foreign tokens, for the peer's Writes and Reads (with the code of
 * the Terminate, at both ends) and for local use (with the exact status). The ends complete Sends
 * and Writes when they are placed, so that the initiator's status is exact.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "regions.h"

#define PAGE    4096u
#define SIZE    (3 * PAGE)
#define OPTIONS "completion=placed"
#define CTX(n)  ((void *)(uintptr_t)(n))

/* A region of PAGE + 17 octets that begins at octet 100 of a page, in one's own memory. */
#define INNER_AT   100u
#define INNER_SIZE (PAGE + 17u)

static void inner_register(struct memory *inner, ULONG flags)
{
    struct wait w;

    wait_init(&w);
    expect_call(wait_end(&w, inner->mr->Dispatch->NdkRegisterMr(inner->mr, inner->mdl, INNER_SIZE,
                                                                flags, wait_request, &w)),
                STATUS_SUCCESS, "NdkRegisterMr", &inner->mr->Header);
    inner->local = inner->mr->Dispatch->NdkGetLocalTokenFromMr(inner->mr);
    inner->remote = inner->mr->Dispatch->NdkGetRemoteTokenFromMr(inner->mr);
}

/* Registers some octets of memory that exists, in a domain of one's choice. */
static void inner_open(NDK_PD *pd, const struct memory *outer, ULONG flags, struct memory *out)
{
    struct wait w;
    NTSTATUS status;

    memset(out, 0, sizeof *out);
    out->data = outer->data + INNER_AT;
    out->size = INNER_SIZE;
    out->mdl = IoAllocateMdl(out->data, INNER_SIZE, FALSE, FALSE, NULL);
    MmBuildMdlForNonPagedPool(out->mdl);
    wait_init(&w);
    status = pd->Dispatch->NdkCreateMr(pd, FALSE, wait_create, &w, &out->mr);
    expect_call(wait_end(&w, status), STATUS_SUCCESS, "NdkCreateMr", &pd->Header);
    if (status == STATUS_PENDING)
        out->mr = (NDK_MR *)(void *)w.object;
    inner_register(out, flags);
}

static void inner_forget(struct memory *inner)
{
    struct wait w;

    wait_init(&w);
    expect_call(wait_end(&w, inner->mr->Dispatch->NdkDeregisterMr(inner->mr, wait_request, &w)),
                STATUS_SUCCESS, "NdkDeregisterMr", &inner->mr->Header);
}

static void inner_close(struct memory *inner)
{
    CLOSE(inner->mr, NdkCloseMr);
    IoFreeMdl(inner->mdl);
}

/* ---- the peer's accesses -------------------------------------------------------------------- */

enum token {
    GOOD,
    STALE,   /* deregistered */
    RENEWED, /* deregistered and registered again: the token of before */
    UNKNOWN,
    ZERO,
    FOREIGN,    /* another domain */
    LOCAL,      /* the region's local token */
    PRIVILEGED, /* the domain's */
};

#define WRITABLE NDK_MR_FLAG_ALLOW_REMOTE_WRITE
#define READABLE NDK_MR_FLAG_ALLOW_REMOTE_READ
#define BOTH     (WRITABLE | READABLE)

struct access_case {
    const char *name;
    enum token token;
    ULONG rights;
    INT64 at; /* from the region's first octet */
    ULONG length;
    iwarp_error write, read; /* IWARP_NO_ERROR: it succeeds */
};

#define WRAP (INT64_MIN + 8) /* stands for 8 octets before the end of all addresses */

static const struct access_case access_cases[] = {
    {"first octet", GOOD, BOTH, 0, 1, 0, 0},
    {"last octet", GOOD, BOTH, INNER_SIZE - 1, 1, 0, 0},
    {"all", GOOD, BOTH, 0, INNER_SIZE, 0, 0},
    {"before the first", GOOD, BOTH, -1, 1, IWARP_ERR_TAG_BOUNDS, IWARP_ERR_PROT_BOUNDS},
    {"into the first", GOOD, BOTH, -1, 2, IWARP_ERR_TAG_BOUNDS, IWARP_ERR_PROT_BOUNDS},
    {"behind the last", GOOD, BOTH, INNER_SIZE, 1, IWARP_ERR_TAG_BOUNDS, IWARP_ERR_PROT_BOUNDS},
    {"over the last", GOOD, BOTH, INNER_SIZE - 1, 2, IWARP_ERR_TAG_BOUNDS, IWARP_ERR_PROT_BOUNDS},
    {"one too many", GOOD, BOTH, 0, INNER_SIZE + 1, IWARP_ERR_TAG_BOUNDS, IWARP_ERR_PROT_BOUNDS},
    {"far away", GOOD, BOTH, 1 << 30, 8, IWARP_ERR_TAG_BOUNDS, IWARP_ERR_PROT_BOUNDS},
    {"wrap", GOOD, BOTH, WRAP, 9, IWARP_ERR_TAG_WRAP, IWARP_ERR_PROT_WRAP},
    {"up to the wrap", GOOD, BOTH, WRAP, 8, IWARP_ERR_TAG_BOUNDS, IWARP_ERR_PROT_BOUNDS},
    {"nothing, at the end", GOOD, BOTH, INNER_SIZE, 0, 0, 0},
    {"nothing, anywhere", GOOD, BOTH, WRAP, 0, 0, 0},
    {"nothing, no token", UNKNOWN, BOTH, 0, 0, 0, 0},
    {"only readable", GOOD, READABLE, 0, 8, IWARP_ERR_TAG_STAG, 0},
    {"only writable", GOOD, WRITABLE, 0, 8, 0, IWARP_ERR_PROT_RIGHTS},
    {"only local", GOOD, NDK_MR_FLAG_ALLOW_LOCAL_WRITE, 0, 8, IWARP_ERR_TAG_STAG,
     IWARP_ERR_PROT_RIGHTS},
    {"stale", STALE, BOTH, 0, 8, IWARP_ERR_TAG_STAG, IWARP_ERR_PROT_STAG},
    {"renewed", RENEWED, BOTH, 0, 8, IWARP_ERR_TAG_STAG, IWARP_ERR_PROT_STAG},
    {"unknown", UNKNOWN, BOTH, 0, 8, IWARP_ERR_TAG_STAG, IWARP_ERR_PROT_STAG},
    {"zero", ZERO, BOTH, 0, 8, IWARP_ERR_TAG_STAG, IWARP_ERR_PROT_STAG},
    {"foreign", FOREIGN, BOTH, 0, 8, IWARP_ERR_TAG_STREAM, IWARP_ERR_PROT_STREAM},
    {"local token", LOCAL, BOTH, 0, 8, IWARP_ERR_TAG_STAG, IWARP_ERR_PROT_RIGHTS},
    {"privileged token", PRIVILEGED, BOTH, 0, 8, IWARP_ERR_TAG_STAG, IWARP_ERR_PROT_STAG},
};

static NTSTATUS status_of(iwarp_error error, bool read)
{
    if (error == IWARP_NO_ERROR)
        return STATUS_SUCCESS;
    return read && error == IWARP_ERR_PROT_BOUNDS ? STATUS_REMOTE_RESOURCES
                                                  : STATUS_ACCESS_VIOLATION;
}

static void outer_unchanged(const struct bed *bed, const struct access_case *k, bool written)
{
    for (size_t i = 0; i < SIZE; i++) {
        size_t at = i - INNER_AT - (size_t)(written ? k->at : 0);

        if (written && i >= INNER_AT && at < k->length)
            assert_int_equal(bed->server.data[i], bed->client.data[at]);
        else if (bed->server.data[i] != GUARD)
            test_fail("%s: octet %zu changed", k->name, i);
    }
}

/* The token of a case; what is to be reached has been made. */
static UINT32 token_of(const struct access_case *k, struct end *s, struct memory *inner)
{
    UINT32 token = inner->remote;

    switch (k->token) {
    case LOCAL:
        return inner->local;
    case PRIVILEGED:
        s->pd->Dispatch->NdkGetPrivilegedMemoryRegionToken(s->pd, &token);
        return token;
    case UNKNOWN:
        return 0x00abcdef;
    case ZERO:
        return 0;
    case STALE:
        inner_forget(inner);
        return token;
    case RENEWED:
        inner_forget(inner);
        inner_register(inner, k->rights);
        assert_int_not_equal(inner->remote, token);
        return token;
    default:
        return token;
    }
}

static void one_access(const struct access_case *k, bool read)
{
    struct bed bed;
    struct end *c, *s;
    struct memory inner;
    NDK_PD *foreign;
    UINT32 token;
    UINT64 to;
    iwarp_error error = read ? k->read : k->write;

    bed_open(&bed, OPTIONS, SIZE, ALL_RIGHTS);
    c = &bed.pair.client;
    s = &bed.pair.server;
    foreign = make_pd(s->adapter);
    inner_open(k->token == FOREIGN ? foreign : s->pd, &bed.server, k->rights, &inner);
    token = token_of(k, s, &inner);
    memset(bed.server.data, GUARD, SIZE);
    fill(bed.client.data, SIZE, 5);
    to = k->at == WRAP ? UINT64_MAX - 7 : (UINT64)((INT64)(uintptr_t)inner.data + k->at);
    post_receive(s, &bed.server, PAGE, CTX(1));
    assert_int_equal(
        read ? post_read(c, &bed.client, k->length, to, token, NDK_OP_FLAG_DEFER, CTX(2))
             : post_write(c, &bed.client, k->length, to, token, NDK_OP_FLAG_DEFER, CTX(2)),
        STATUS_SUCCESS);
    assert_int_equal(c->qp->Dispatch->NdkSend(c->qp, CTX(3), NULL, 0, NDK_OP_FLAG_READ_FENCE),
                     STATUS_SUCCESS);
    expect_completion(&c->initiator, k->name, CTX(2),
                      read ? NdkOperationTypeRead : NdkOperationTypeWrite, status_of(error, read));
    expect_completion(&c->initiator, k->name, CTX(3), NdkOperationTypeSend,
                      error ? STATUS_CANCELLED : STATUS_SUCCESS);
    expect_completion(&s->receive, k->name, CTX(1), NdkOperationTypeReceive,
                      error ? STATUS_CANCELLED : STATUS_SUCCESS);
    if (error) {
        expect_event(s, k->name, REASON_TERMINATE_SENT, error);
        expect_event(c, k->name, REASON_TERMINATE_RECEIVED, error);
    }
    outer_unchanged(&bed, k, !error && !read);
    for (ULONG i = 0; read && !error && i < k->length; i++)
        assert_int_equal(bed.client.data[i], GUARD);
    inner_close(&inner);
    CLOSE(foreign, NdkClosePd);
    bed_close(&bed);
}

static void by_the_peer(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof access_cases / sizeof access_cases[0]; i++)
        for (int read = 0; read < 2; read++)
            one_access(&access_cases[i], read != 0);
}

/* ---- local use ------------------------------------------------------------------------------ */

enum use { SENDS, WRITES, RECEIVES, READS_INTO };

struct local_case {
    const char *name;
    enum token token;
    ULONG rights; /* of the region */
    INT64 at;
    ULONG length;
    bool reads, fills, sinks; /* may it be sent from, received into, read into? */
};

#define FILLABLE NDK_MR_FLAG_ALLOW_LOCAL_WRITE
#define SINK     NDK_MR_FLAG_RDMA_READ_SINK

/* sinks: as it is with read_sink_not_required=0 */
static const struct local_case local_cases[] = {
    {"all", GOOD, FILLABLE | SINK, 0, INNER_SIZE, true, true, true},
    {"last octet", GOOD, FILLABLE | SINK, INNER_SIZE - 1, 1, true, true, true},
    {"before the first", GOOD, FILLABLE | SINK, -1, 2, false, false, false},
    {"over the last", GOOD, FILLABLE | SINK, INNER_SIZE - 1, 2, false, false, false},
    {"wrap", GOOD, FILLABLE | SINK, WRAP, 9, false, false, false},
    {"read only", GOOD, 0, 0, 8, true, false, false},
    {"no sink", GOOD, FILLABLE, 0, 8, true, true, false},
    {"remotely writable", GOOD, WRITABLE, 0, 8, true, true, false},
    {"sink that cannot be written", GOOD, SINK, 0, 8, true, false, false},
    {"stale", STALE, FILLABLE | SINK, 0, 8, false, false, false},
    {"renewed", RENEWED, FILLABLE | SINK, 0, 8, false, false, false},
    {"unknown", UNKNOWN, FILLABLE | SINK, 0, 8, false, false, false},
    {"foreign", FOREIGN, FILLABLE | SINK, 0, 8, false, false, false},
    {"remote token", LOCAL, BOTH | SINK, 0, 8, false, false, false},
};

/* Uses one SGE of the client's; the peer does its part. The client's status must be this one. */
static void use_one(struct bed *bed, const struct local_case *k, enum use use, NDK_SGE *sge,
                    NTSTATUS status)
{
    struct end *c = &bed->pair.client, *s = &bed->pair.server;
    const UINT64 peer = (UINT64)(uintptr_t)bed->server.data;
    bool failed = status != STATUS_SUCCESS;

    switch (use) {
    case SENDS:
        post_receive(s, &bed->server, SIZE, CTX(1));
        assert_int_equal(c->qp->Dispatch->NdkSend(c->qp, CTX(2), sge, 1, 0), STATUS_SUCCESS);
        expect_completion(&c->initiator, k->name, CTX(2), NdkOperationTypeSend, status);
        expect_completion(&s->receive, k->name, CTX(1), NdkOperationTypeReceive,
                          failed ? STATUS_CANCELLED : STATUS_SUCCESS);
        break;
    case WRITES:
        assert_int_equal(
            c->qp->Dispatch->NdkWrite(c->qp, CTX(2), sge, 1, peer, bed->server.remote, 0),
            STATUS_SUCCESS);
        expect_completion(&c->initiator, k->name, CTX(2), NdkOperationTypeWrite, status);
        break;
    case READS_INTO:
        assert_int_equal(
            c->qp->Dispatch->NdkRead(c->qp, CTX(2), sge, 1, peer, bed->server.remote, 0),
            STATUS_SUCCESS);
        expect_completion(&c->initiator, k->name, CTX(2), NdkOperationTypeRead, status);
        break;
    case RECEIVES:
        assert_int_equal(c->qp->Dispatch->NdkReceive(c->qp, CTX(2), sge, 1), STATUS_SUCCESS);
        assert_int_equal(post_send(s, &bed->server, sge->Length, 0, CTX(1)), STATUS_SUCCESS);
        expect_completion(&c->receive, k->name, CTX(2), NdkOperationTypeReceive, status);
        /* To the sender this is a fault of the other end, not of its own access. */
        expect_completion(&s->initiator, k->name, CTX(1), NdkOperationTypeSend,
                          failed ? STATUS_REMOTE_RESOURCES : STATUS_SUCCESS);
        break;
    }
    if (failed) {
        iwarp_error error =
            use == SENDS || use == WRITES ? IWARP_ERR_RDMAP_LOCAL : IWARP_ERR_DDP_LOCAL;

        expect_event(c, k->name, REASON_TERMINATE_SENT, error);
        expect_event(s, k->name, REASON_TERMINATE_RECEIVED, error);
    }
}

static void one_use(const struct local_case *k, enum use use, bool strict)
{
    const struct access_case token = {.token = k->token, .rights = k->rights};
    struct bed bed;
    struct memory inner;
    NDK_PD *foreign;
    NDK_SGE sge;
    bool good = use == RECEIVES               ? k->fills
                : use == READS_INTO && strict ? k->sinks
                : use == READS_INTO           ? k->fills
                                              : k->reads;

    bed_open(&bed, strict ? OPTIONS ",read_sink_not_required=0" : OPTIONS, SIZE, ALL_RIGHTS);
    foreign = make_pd(bed.pair.client.adapter);
    inner_open(k->token == FOREIGN ? foreign : bed.pair.client.pd, &bed.client, k->rights, &inner);
    if (k->token != LOCAL) /* which means the remote one here; all others the local one */
        inner.remote = inner.local;
    memset(&sge, 0, sizeof sge);
    sge.VirtualAddress =
        (PVOID)(k->at == WRAP ? (uintptr_t)0 - 8 : (uintptr_t)inner.data + (uintptr_t)k->at);
    sge.Length = k->length;
    sge.MemoryRegionToken =
        k->token == LOCAL ? inner.remote : token_of(&token, &bed.pair.client, &inner);
    memset(bed.client.data, GUARD, SIZE);
    fill(bed.server.data, SIZE, 8);
    use_one(&bed, k, use, &sge, good ? STATUS_SUCCESS : STATUS_ACCESS_VIOLATION);
    for (size_t i = 0; i < SIZE; i++) { /* what came in, and nothing else */
        size_t at = i - INNER_AT - (size_t)k->at;
        bool in = good && (use == RECEIVES || use == READS_INTO) && i >= INNER_AT && at < k->length;

        assert_int_equal(bed.client.data[i], in ? bed.server.data[at] : GUARD);
    }
    inner_close(&inner);
    CLOSE(foreign, NdkClosePd);
    bed_close(&bed);
}

static void by_oneself(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof local_cases / sizeof local_cases[0]; i++)
        for (int use = SENDS; use <= READS_INTO; use++)
            one_use(&local_cases[i], (enum use)use, false);
}

/* Without the waiver a sink needs its flag; nothing else changes. */
static void by_oneself_strict_sinks(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof local_cases / sizeof local_cases[0]; i++) {
        one_use(&local_cases[i], RECEIVES, true);
        one_use(&local_cases[i], READS_INTO, true);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH_MODES(by_the_peer),
        BOTH_MODES(by_oneself),
        BOTH_MODES(by_oneself_strict_sinks),
    };

    return cmocka_run_group_tests_name("memory_access", tests, NULL, NULL);
}
