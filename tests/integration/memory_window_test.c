// SPDX-License-Identifier: MIT
/*
 * What the peer reaches through a memory window: its first and last octet and those beside them,
 * rights that are the window's own, tokens that name nothing any more, windows of another QP or
 * domain; each with the status at the initiator and the code of the Terminate at both ends. The
 * ends complete Sends and Writes when they are placed, so that the initiator's status is exact.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "windows.h"

#define PAGE    4096u
#define SIZE    (3 * PAGE)
#define OPTIONS "completion=placed"
#define CTX(n)  ((void *)(uintptr_t)(n))

/* The window: PAGE + 17 octets from octet 100 of the server's memory, over its first page's end. */
#define INNER_AT   100u
#define INNER_SIZE (PAGE + 17u)

#define READABLE NDK_OP_FLAG_ALLOW_REMOTE_READ
#define WRITABLE NDK_OP_FLAG_ALLOW_REMOTE_WRITE
#define BOTH     (READABLE | WRITABLE)
#define LOCAL    NDK_MR_FLAG_ALLOW_LOCAL_WRITE /* all that the region must have */

enum token {
    GOOD,
    NEVER,   /* created, never bound */
    STALE,   /* invalidated */
    REBOUND, /* bound again: the token of before */
    CLOSED,  /* the window is gone */
    OTHER,   /* bound over another QP of the domain */
    FOREIGN, /* in another domain, over a QP of that */
    REGION,  /* the region's own remote token */
};

struct access_case {
    const char *name;
    enum token token;
    ULONG registered, flags; /* rights of the region, and of the window */
    INT64 at;                /* from the window's first octet */
    ULONG length;
    iwarp_error write, read; /* IWARP_NO_ERROR: it succeeds */
};

#define WRAP (INT64_MIN + 8) /* stands for 8 octets before the end of all addresses */

static const struct access_case access_cases[] = {
    {"first octet", GOOD, LOCAL, BOTH, 0, 1, 0, 0},
    {"last octet", GOOD, LOCAL, BOTH, INNER_SIZE - 1, 1, 0, 0},
    {"all", GOOD, LOCAL, BOTH, 0, INNER_SIZE, 0, 0},
    {"before the first", GOOD, LOCAL, BOTH, -1, 1, IWARP_ERR_TAG_BOUNDS, IWARP_ERR_PROT_BOUNDS},
    {"into the first", GOOD, LOCAL, BOTH, -1, 2, IWARP_ERR_TAG_BOUNDS, IWARP_ERR_PROT_BOUNDS},
    {"behind the last", GOOD, LOCAL, BOTH, INNER_SIZE, 1, IWARP_ERR_TAG_BOUNDS,
     IWARP_ERR_PROT_BOUNDS},
    {"over the last", GOOD, LOCAL, BOTH, INNER_SIZE - 1, 2, IWARP_ERR_TAG_BOUNDS,
     IWARP_ERR_PROT_BOUNDS},
    {"one too many", GOOD, LOCAL, BOTH, 0, INNER_SIZE + 1, IWARP_ERR_TAG_BOUNDS,
     IWARP_ERR_PROT_BOUNDS},
    {"wrap", GOOD, LOCAL, BOTH, WRAP, 9, IWARP_ERR_TAG_WRAP, IWARP_ERR_PROT_WRAP},
    {"nothing, at the end", GOOD, LOCAL, BOTH, INNER_SIZE, 0, 0, 0},
    {"nothing, never bound", NEVER, LOCAL, BOTH, 0, 0, 0, 0},
    {"only readable", GOOD, LOCAL, READABLE, 0, 8, IWARP_ERR_TAG_STAG, 0},
    {"only writable", GOOD, LOCAL, WRITABLE, 0, 8, 0, IWARP_ERR_PROT_RIGHTS},
    {"a region that is only readable", GOOD, 0, READABLE, 0, 8, IWARP_ERR_TAG_STAG, 0},
    {"less than the region", GOOD, ALL_RIGHTS, READABLE, 0, 8, IWARP_ERR_TAG_STAG, 0},
    {"the region's own token", REGION, LOCAL, BOTH, 0, 8, IWARP_ERR_TAG_STAG,
     IWARP_ERR_PROT_RIGHTS},
    {"never bound", NEVER, LOCAL, BOTH, 0, 8, IWARP_ERR_TAG_STAG, IWARP_ERR_PROT_STAG},
    {"invalidated", STALE, LOCAL, BOTH, 0, 8, IWARP_ERR_TAG_STAG, IWARP_ERR_PROT_STAG},
    {"bound again", REBOUND, LOCAL, BOTH, 0, 8, IWARP_ERR_TAG_STAG, IWARP_ERR_PROT_STAG},
    {"closed", CLOSED, LOCAL, BOTH, 0, 8, IWARP_ERR_TAG_STAG, IWARP_ERR_PROT_STAG},
    {"another QP", OTHER, LOCAL, BOTH, 0, 8, IWARP_ERR_TAG_STREAM, IWARP_ERR_PROT_STREAM},
    {"another domain", FOREIGN, LOCAL, BOTH, 0, 8, IWARP_ERR_TAG_STREAM, IWARP_ERR_PROT_STREAM},
};

static NTSTATUS status_of(iwarp_error error, bool read)
{
    if (error == IWARP_NO_ERROR)
        return STATUS_SUCCESS;
    return read && error == IWARP_ERR_PROT_BOUNDS ? STATUS_REMOTE_RESOURCES
                                                  : STATUS_ACCESS_VIOLATION;
}

/* The server, with what a case needs besides the bed. */
struct scene {
    struct bed bed;
    struct pair second;
    NDK_PD *foreign;
    struct memory inner; /* of the window's domain; the same octets */
    NDK_MW *mw;
    UINT32 token;
};

/* A second registration of the server's octets, in the window's domain. */
static void inner_open(struct scene *x, NDK_PD *pd, ULONG flags)
{
    struct wait w;
    NTSTATUS status;

    x->inner = x->bed.server;
    wait_init(&w);
    status = pd->Dispatch->NdkCreateMr(pd, FALSE, wait_create, &w, &x->inner.mr);
    expect_call(wait_end(&w, status), STATUS_SUCCESS, "NdkCreateMr", &pd->Header);
    if (status == STATUS_PENDING)
        x->inner.mr = (NDK_MR *)(void *)w.object;
    memory_register(&x->inner, flags);
}

static void scene_open(struct scene *x, const struct access_case *k)
{
    struct end *over;

    memset(x, 0, sizeof *x);
    bed_open(&x->bed, OPTIONS, SIZE, ALL_RIGHTS);
    over = &x->bed.pair.server;
    x->foreign = k->token == FOREIGN ? make_pd(over->adapter) : NULL;
    if (k->token == OTHER || k->token == FOREIGN) {
        second_open(&x->bed, x->foreign, &x->second);
        over = &x->second.server;
    }
    inner_open(x, over->pd, k->registered);
    x->mw = window_open(over->pd);
    x->token = window_token(x->mw);
    if (k->token != NEVER)
        x->token = window_bind(over, x->mw, &x->inner, INNER_AT, INNER_SIZE, k->flags);
    if (k->token == STALE || k->token == REBOUND)
        window_invalidate(over, x->mw);
    if (k->token == REBOUND)
        assert_int_not_equal(window_bind(over, x->mw, &x->inner, INNER_AT, INNER_SIZE, k->flags),
                             x->token);
    if (k->token == CLOSED)
        CLOSE(x->mw, NdkCloseMw);
    if (k->token == REGION)
        x->token = x->inner.remote;
}

static void scene_close(struct scene *x, const struct access_case *k)
{
    if (k->token != CLOSED)
        CLOSE(x->mw, NdkCloseMw);
    expect_call(memory_deregister(&x->inner), STATUS_SUCCESS, "NdkDeregisterMr",
                &x->inner.mr->Header);
    CLOSE(x->inner.mr, NdkCloseMr);
    if (x->second.server.qp) {
        synchronize(&x->second.client, &x->second.server); /* it has not suffered */
        second_close(&x->second);
    }
    if (x->foreign)
        CLOSE(x->foreign, NdkClosePd);
    bed_close(&x->bed);
}

static void server_holds(const struct bed *bed, const struct access_case *k, bool written)
{
    for (size_t i = 0; i < SIZE; i++) {
        size_t at = i - INNER_AT - (size_t)(written ? k->at : 0);

        if (written && i >= INNER_AT && at < k->length)
            assert_int_equal(bed->server.data[i], bed->client.data[at]);
        else if (bed->server.data[i] != GUARD)
            test_fail("%s: octet %zu changed", k->name, i);
    }
}

static void one_access(const struct access_case *k, bool read)
{
    const iwarp_error error = read ? k->read : k->write;
    struct scene x;
    struct bed *bed = &x.bed;
    struct end *c = &bed->pair.client, *s = &bed->pair.server;
    UINT64 to;

    scene_open(&x, k);
    memset(bed->server.data, GUARD, SIZE);
    fill(bed->client.data, SIZE, 5);
    to =
        k->at == WRAP ? UINT64_MAX - 7 : (UINT64)((INT64)memory_at(&bed->server, INNER_AT) + k->at);
    post_receive(s, &bed->server, PAGE, CTX(1));
    assert_int_equal(
        read ? post_read(c, &bed->client, k->length, to, x.token, NDK_OP_FLAG_DEFER, CTX(2))
             : post_write(c, &bed->client, k->length, to, x.token, NDK_OP_FLAG_DEFER, CTX(2)),
        STATUS_SUCCESS);
    assert_int_equal(c->qp->Dispatch->NdkSend(c->qp, CTX(3), NULL, 0, NDK_OP_FLAG_READ_FENCE),
                     STATUS_SUCCESS);
    expect_completion(&c->initiator, k->name, CTX(2),
                      read ? NdkOperationTypeRead : NdkOperationTypeWrite, status_of(error, read));
    expect_completion(&c->initiator, k->name, CTX(3), NdkOperationTypeSend,
                      error ? STATUS_CANCELLED : STATUS_SUCCESS);
    expect_completion(&s->receive, k->name, CTX(1), NdkOperationTypeReceive,
                      error ? STATUS_CANCELLED : STATUS_SUCCESS);
    if (error)
        expect_terminated(k->name, s, c, error);
    server_holds(bed, k, !error && !read);
    for (ULONG i = 0; read && !error && i < k->length; i++)
        assert_int_equal(bed->client.data[i], GUARD);
    scene_close(&x, k);
}

static void by_the_peer(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof access_cases / sizeof access_cases[0]; i++)
        for (int read = 0; read < 2; read++)
            one_access(&access_cases[i], read != 0);
}

/* ---- large, and scattered ------------------------------------------------------------------- */

/* A window of many pages: long messages both ways, in several segments. */
static void large_windows(void **state)
{
    static const char *const options[] = {OPTIONS, OPTIONS ",crc=0", OPTIONS ",scattered=1"};
    const size_t size = 1u << 20, at = 4000;
    const ULONG length = 900000;

    (void)state;
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        struct bed bed;
        struct end *c = &bed.pair.client, *s = &bed.pair.server;
        NDK_MW *mw;
        UINT32 token;

        bed_open(&bed, options[i], size, LOCAL | NDK_MR_FLAG_RDMA_READ_SINK);
        mw = window_open(s->pd);
        token = window_bind(s, mw, &bed.server, at, length, BOTH);
        fill(bed.client.data, length, (unsigned)i);
        assert_int_equal(
            post_write(c, &bed.client, length, memory_at(&bed.server, at), token, 0, CTX(1)),
            STATUS_SUCCESS);
        expect_completion(&c->initiator, "write", CTX(1), NdkOperationTypeWrite, STATUS_SUCCESS);
        assert_true(check(bed.server.data + at, length, (unsigned)i));
        memset(bed.client.data, 0, length);
        assert_int_equal(
            post_read(c, &bed.client, length, memory_at(&bed.server, at), token, 0, CTX(2)),
            STATUS_SUCCESS);
        expect_completion(&c->initiator, "read", CTX(2), NdkOperationTypeRead, STATUS_SUCCESS);
        assert_true(check(bed.client.data, length, (unsigned)i));
        window_invalidate(s, mw);
        CLOSE(mw, NdkCloseMw);
        bed_close(&bed);
    }
}

/* Windows that overlap, with different rights; one is invalidated, the other stays. */
static void overlapping(void **state)
{
    struct bed bed;
    struct end *c = &bed.pair.client, *s = &bed.pair.server;
    NDK_MW *reads, *writes;
    UINT32 read_token, write_token;

    (void)state;
    bed_open(&bed, OPTIONS, SIZE, ALL_RIGHTS);
    reads = window_open(s->pd);
    writes = window_open(s->pd);
    read_token = window_bind(s, reads, &bed.server, 0, 2 * PAGE, READABLE);
    write_token = window_bind(s, writes, &bed.server, PAGE, 2 * PAGE, WRITABLE);
    for (unsigned round = 0; round < 10; round++) {
        fill(bed.client.data, PAGE, round);
        assert_int_equal(
            post_write(c, &bed.client, PAGE, memory_at(&bed.server, PAGE), write_token, 0, CTX(1)),
            STATUS_SUCCESS);
        expect_completion(&c->initiator, "write", CTX(1), NdkOperationTypeWrite, STATUS_SUCCESS);
        memset(bed.client.data, 0, PAGE);
        assert_int_equal(
            post_read(c, &bed.client, PAGE, memory_at(&bed.server, PAGE), read_token, 0, CTX(2)),
            STATUS_SUCCESS);
        expect_completion(&c->initiator, "read", CTX(2), NdkOperationTypeRead, STATUS_SUCCESS);
        assert_true(check(bed.client.data, PAGE, round));
        window_invalidate(s, reads);
        assert_int_equal(
            post_write(c, &bed.client, 8, memory_at(&bed.server, 2 * PAGE), write_token, 0, CTX(3)),
            STATUS_SUCCESS);
        expect_completion(&c->initiator, "write", CTX(3), NdkOperationTypeWrite, STATUS_SUCCESS);
        read_token = window_bind(s, reads, &bed.server, 0, 2 * PAGE, READABLE);
    }
    CLOSE(reads, NdkCloseMw);
    CLOSE(writes, NdkCloseMw);
    bed_close(&bed);
}

/* ---- local use ------------------------------------------------------------------------------ */

enum use { SENDS, WRITES, READS_INTO, RECEIVES };

/* A window is for the peer: in an SGE of one's own its token grants nothing. */
static void one_use(enum use use)
{
    struct bed bed;
    struct end *c = &bed.pair.client, *s = &bed.pair.server;
    struct memory through;
    NDK_MW *mw;
    NDK_OPERATION_TYPE type = NdkOperationTypeSend;
    const UINT64 peer = 0; /* never reached */
    NDK_SGE sge;

    bed_open(&bed, OPTIONS, SIZE, ALL_RIGHTS);
    mw = window_open(c->pd);
    through = bed.client;
    through.local = window_bind(c, mw, &bed.client, 0, SIZE, BOTH);
    sge = memory_sge(&through, 0, 8);
    switch (use) {
    case SENDS:
        assert_int_equal(c->qp->Dispatch->NdkSend(c->qp, CTX(2), &sge, 1, 0), STATUS_SUCCESS);
        break;
    case WRITES:
        type = NdkOperationTypeWrite;
        assert_int_equal(
            c->qp->Dispatch->NdkWrite(c->qp, CTX(2), &sge, 1, peer, bed.server.remote, 0),
            STATUS_SUCCESS);
        break;
    case READS_INTO:
        type = NdkOperationTypeRead;
        assert_int_equal(c->qp->Dispatch->NdkRead(c->qp, CTX(2), &sge, 1, memory_at(&bed.server, 0),
                                                  bed.server.remote, 0),
                         STATUS_SUCCESS);
        break;
    case RECEIVES:
        type = NdkOperationTypeReceive;
        assert_int_equal(c->qp->Dispatch->NdkReceive(c->qp, CTX(2), &sge, 1), STATUS_SUCCESS);
        assert_int_equal(post_send(s, &bed.server, 8, 0, CTX(1)), STATUS_SUCCESS);
        break;
    }
    expect_completion(use == RECEIVES ? &c->receive : &c->initiator, "local use", CTX(2), type,
                      STATUS_ACCESS_VIOLATION);
    expect_terminated("local use", c, s,
                      use == SENDS || use == WRITES ? IWARP_ERR_RDMAP_LOCAL : IWARP_ERR_DDP_LOCAL);
    CLOSE(mw, NdkCloseMw);
    bed_close(&bed);
}

static void by_oneself(void **state)
{
    (void)state;
    for (int use = SENDS; use <= RECEIVES; use++)
        one_use((enum use)use);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH_MODES(by_the_peer),
        BOTH_MODES(large_windows),
        BOTH_MODES(overlapping),
        BOTH_MODES(by_oneself),
    };

    return cmocka_run_group_tests_name("memory_window", tests, NULL, NULL);
}
