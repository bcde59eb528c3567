// SPDX-License-Identifier: MIT
/*
 * What a post of each kind is refused with, and that a refusal posts nothing: no completion comes,
 * what was posted before is not hurt, and the next good post works. Posts never pend, so all of it
 * is inline.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "modes.h"
#include "regions.h"

#define PAGE     4096u
#define SIZE     (4 * PAGE)
#define CTX(n)   ((void *)(uintptr_t)(n))
#define BAD_FLAG 0x80000000u

enum kind { SEND, SEND_AND_INVALIDATE, RECEIVE, WRITE, READ, FAST_REGISTER, INVALIDATE, KINDS };

static const char *const names[KINDS] = {
    "NdkSend", "NdkSendAndInvalidate", "NdkReceive",   "NdkWrite",
    "NdkRead", "NdkFastRegister",      "NdkInvalidate"};

#define BIT(kind) (1u << (kind))
#define CARRIES                                                                                    \
    (BIT(SEND) | BIT(SEND_AND_INVALIDATE) | BIT(RECEIVE) | BIT(WRITE) | BIT(READ)) /* SGEs */
#define INLINES (BIT(SEND) | BIT(SEND_AND_INVALIDATE) | BIT(WRITE))

/* Two connected ends; the client posts. */
struct desk {
    struct bed bed;
    struct end *client, *server;
    struct region region;
    NDK_SGE sges[20];
};

static void desk_open(struct desk *d, const char *client_options, const char *server_options)
{
    bed_open_two(&d->bed, client_options, server_options, SIZE, ALL_RIGHTS);
    d->client = &d->bed.pair.client;
    d->server = &d->bed.pair.server;
    region_open(d->client, 0, PAGE, 0, TRUE, &d->region);
    for (size_t i = 0; i < sizeof d->sges / sizeof d->sges[0]; i++)
        d->sges[i] = memory_sge(&d->bed.client, 8 * i, 8);
}

static void desk_close(struct desk *d)
{
    region_close(&d->region);
    bed_close(&d->bed);
}

static NTSTATUS post(struct desk *d, enum kind kind, const NDK_SGE *sgl, ULONG sges, ULONG flags)
{
    NDK_QP *qp = d->client->qp;
    const NDK_QP_DISPATCH *slot = qp->Dispatch;
    UINT64 there = (uintptr_t)d->bed.server.data;
    UINT32 token = d->bed.server.remote;

    switch (kind) {
    case SEND:
        return slot->NdkSend(qp, CTX(1), sgl, sges, flags);
    case SEND_AND_INVALIDATE:
        return slot->NdkSendAndInvalidate(qp, CTX(1), sgl, sges, flags, token);
    case RECEIVE:
        return slot->NdkReceive(qp, CTX(1), sgl, sges);
    case WRITE:
        return slot->NdkWrite(qp, CTX(1), sgl, sges, there, token, flags);
    case READ:
        return slot->NdkRead(qp, CTX(1), sgl, sges, there, token, flags);
    case FAST_REGISTER:
        return region_post(&d->region, 0, flags, CTX(1));
    default:
        return slot->NdkInvalidate(qp, CTX(1), &d->region.mr->Header, flags);
    }
}

static void refused(struct desk *d, enum kind kind, NTSTATUS have, NTSTATUS need,
                    const char *reason)
{
    if (have != need)
        test_fail("%s: have %s, need %s", names[kind], softndk_status_name(have),
                  softndk_status_name(need));
    expect_reason(&d->client->qp->Header, names[kind]);
    expect_reason(&d->client->qp->Header, reason);
}

/* No refused post has left a completion, and the connection works. */
static void unhurt(struct desk *d)
{
    expect_nothing(&d->client->initiator, "refused posts", 5);
    expect_nothing(&d->client->receive, "refused receives", 5);
    synchronize(d->client, d->server);
    synchronize(d->server, d->client);
}

static void not_connected(void **state)
{
    struct desk d;

    (void)state;
    memset(&d, 0, sizeof d);
    d.client = &d.bed.pair.client;
    end_open(d.client, NULL);
    region_open(d.client, 0, PAGE, 0, TRUE, &d.region);
    for (enum kind kind = 0; kind < KINDS; kind++)
        if (kind != RECEIVE)
            refused(&d, kind, post(&d, kind, NULL, 0, 0), STATUS_CONNECTION_INVALID,
                    "not connected");
    assert_int_equal(post(&d, RECEIVE, NULL, 0, 0), STATUS_SUCCESS);
    expect_nothing(&d.client->initiator, "refused posts", 5);
    d.client->qp->Dispatch->NdkFlush(d.client->qp);
    expect_completion(&d.client->receive, "flushed", CTX(1), NdkOperationTypeReceive,
                      STATUS_CANCELLED);
    region_close(&d.region);
    end_close(d.client);
}

static void more_sges_than_allowed(void **state)
{
    struct desk d;

    (void)state;
    desk_open(&d, "max_read_sge=6", NULL); /* the queue pair's are 4 and 4 */
    for (enum kind kind = 0; kind < KINDS; kind++)
        if (CARRIES & BIT(kind))
            refused(&d, kind, post(&d, kind, d.sges, kind == READ ? 7 : 5, 0), STATUS_DATA_OVERRUN,
                    kind == READ ? "have 7, need <= 6" : "have 5, need <= 4");
    unhurt(&d);
    assert_int_equal(post(&d, READ, d.sges, 6, 0), STATUS_SUCCESS);
    expect_completion(&d.client->initiator, "six SGEs", CTX(1), NdkOperationTypeRead,
                      STATUS_SUCCESS);
    desk_close(&d);
}

static void more_octets_than_allowed(void **state)
{
    struct desk d;

    (void)state;
    desk_open(&d, "max_transfer=4096", NULL);
    d.sges[0] = memory_sge(&d.bed.client, 0, PAGE);
    d.sges[1] = memory_sge(&d.bed.client, PAGE, 1);
    for (enum kind kind = 0; kind < KINDS; kind++) {
        if (CARRIES & BIT(kind))
            refused(&d, kind, post(&d, kind, d.sges, 2, 0), STATUS_BUFFER_OVERFLOW,
                    "have 4097, need <= MaxTransferLength 4096");
        if (INLINES & BIT(kind)) {
            d.sges[2] = memory_sge(&d.bed.client, 0, 65);
            refused(&d, kind, post(&d, kind, &d.sges[2], 1, NDK_OP_FLAG_INLINE),
                    STATUS_BUFFER_OVERFLOW, "have 65, need <= InlineDataSize 64");
        }
    }
    /* Lengths whose sum leaves 32 bits are no short request. */
    d.sges[0].Length = d.sges[1].Length = 0x80000000u;
    refused(&d, WRITE, post(&d, WRITE, d.sges, 2, 0), STATUS_BUFFER_OVERFLOW, "have 4294967296");
    unhurt(&d);
    d.sges[0].Length = PAGE;
    assert_int_equal(post(&d, WRITE, d.sges, 1, 0), STATUS_SUCCESS);
    expect_completion(&d.client->initiator, "a whole page", CTX(1), NdkOperationTypeWrite,
                      STATUS_SUCCESS);
    desk_close(&d);
}

static void wrong_arguments(void **state)
{
    struct desk d;
    NDK_QP *qp;

    (void)state;
    desk_open(&d, NULL, NULL);
    qp = d.client->qp;
    for (enum kind kind = 0; kind < KINDS; kind++) {
        if (kind != RECEIVE)
            refused(&d, kind, post(&d, kind, d.sges, 1, BAD_FLAG), STATUS_INVALID_PARAMETER,
                    "have 0x80000000");
        if (CARRIES & BIT(kind))
            refused(&d, kind, post(&d, kind, NULL, 1, 0), STATUS_INVALID_PARAMETER, "pSgl is NULL");
        if (INLINES & BIT(kind))
            refused(&d, kind, post(&d, kind, NULL, 1, NDK_OP_FLAG_INLINE), STATUS_INVALID_PARAMETER,
                    "pSgl is NULL");
    }
    refused(&d, INVALIDATE, qp->Dispatch->NdkInvalidate(qp, CTX(1), NULL, 0),
            STATUS_INVALID_PARAMETER, "no");
    refused(&d, INVALIDATE, qp->Dispatch->NdkInvalidate(qp, CTX(1), &d.bed.client.mr->Header, 0),
            STATUS_INVALID_PARAMETER, "fast-register");
    refused(&d, FAST_REGISTER,
            qp->Dispatch->NdkFastRegister(qp, CTX(1), NULL, 0, NULL, 0, 0, NULL, 0),
            STATUS_INVALID_PARAMETER, "pMr");
    unhurt(&d);
    desk_close(&d);
}

/* Regions that are not ready for a fast-register: of the other kind, and not initialized. */
static void regions_in_the_wrong_state(void **state)
{
    struct desk d;
    struct wait w;
    NDK_MR *fresh, *ready;
    NTSTATUS status;

    (void)state;
    desk_open(&d, NULL, NULL);
    wait_init(&w);
    status = d.client->pd->Dispatch->NdkCreateMr(d.client->pd, TRUE, wait_create, &w, &fresh);
    assert_int_equal(wait_end(&w, status), STATUS_SUCCESS);
    if (status == STATUS_PENDING)
        fresh = (NDK_MR *)(void *)w.object;
    ready = d.region.mr;
    d.region.mr = fresh;
    refused(&d, FAST_REGISTER, post(&d, FAST_REGISTER, NULL, 0, 0), STATUS_INVALID_DEVICE_STATE,
            "initialize");
    d.region.mr = d.bed.client.mr;
    refused(&d, FAST_REGISTER, post(&d, FAST_REGISTER, NULL, 0, 0), STATUS_INVALID_DEVICE_STATE,
            "FastRegister FALSE");
    d.region.mr = ready;
    unhurt(&d);
    assert_int_equal(post(&d, FAST_REGISTER, NULL, 0, 0), STATUS_SUCCESS);
    expect_completion(&d.client->initiator, "ready", CTX(1), NdkOperationTypeFastRegister,
                      STATUS_SUCCESS);
    CLOSE(fresh, NdkCloseMr);
    desk_close(&d);
}

/* The queues are full: a Read that is never answered, since the peer holds back a Send before it,
 * keeps all that is posted behind it. */
static void full_queues(void **state)
{
    struct desk d;

    (void)state;
    desk_open(&d, NULL, "holdback_ms=3600000");
    assert_int_equal(post(&d, SEND, NULL, 0, 0), STATUS_SUCCESS); /* meets no receive */
    expect_completion(&d.client->initiator, "the Send", CTX(1), NdkOperationTypeSend,
                      STATUS_SUCCESS);
    assert_int_equal(post(&d, READ, d.sges, 1, 0), STATUS_SUCCESS);
    for (unsigned i = 1; i < END_DEPTH; i++)
        assert_int_equal(post(&d, WRITE, d.sges, 1, 0), STATUS_SUCCESS);
    for (unsigned i = 0; i < END_DEPTH; i++)
        assert_int_equal(post(&d, RECEIVE, NULL, 0, 0), STATUS_SUCCESS);
    for (enum kind kind = 0; kind < KINDS; kind++) {
        refused(&d, kind, post(&d, kind, d.sges, 1, 0), STATUS_NO_MORE_ENTRIES, "depth 64");
        if (kind != RECEIVE)
            refused(&d, kind, post(&d, kind, d.sges, 1, NDK_OP_FLAG_DEFER), STATUS_NO_MORE_ENTRIES,
                    "depth 64");
    }
    expect_nothing(&d.client->initiator, "held back", 5);
    /* The peer posts its receive: all that was posted completes, once, and there is room again. */
    post_receive(d.server, &d.bed.server, 0, CTX(2));
    expect_completion(&d.server->receive, "the Send", CTX(2), NdkOperationTypeReceive,
                      STATUS_SUCCESS);
    expect_completion(&d.client->initiator, "the Read", CTX(1), NdkOperationTypeRead,
                      STATUS_SUCCESS);
    for (unsigned i = 1; i < END_DEPTH; i++)
        expect_completion(&d.client->initiator, "a Write", CTX(1), NdkOperationTypeWrite,
                          STATUS_SUCCESS);
    expect_nothing(&d.client->initiator, "refused posts", 5);
    synchronize(d.client, d.server);
    assert_int_equal(post_send(d.server, &d.bed.server, 0, 0, CTX(3)), STATUS_SUCCESS);
    expect_completion(&d.client->receive, "a receive", CTX(1), NdkOperationTypeReceive,
                      STATUS_SUCCESS);
    assert_int_equal(post(&d, RECEIVE, NULL, 0, 0), STATUS_SUCCESS);
    desk_close(&d);
}

/* No memory for the queue: asked for (SOFTNDK_FAIL), since the memory of a machine does not run out
 * on call. The page list of a fast-register fails where it is allocated. */
static void no_memory(void **state)
{
    struct desk d;

    (void)state;
    desk_open(&d, NULL, NULL);
    for (enum kind kind = 0; kind < KINDS; kind++) {
        fail_next(names[kind], STATUS_INSUFFICIENT_RESOURCES);
        refused(&d, kind, post(&d, kind, d.sges, 1, 0), STATUS_INSUFFICIENT_RESOURCES,
                "on request");
    }
    no_memory_for(1);
    refused(&d, FAST_REGISTER, post(&d, FAST_REGISTER, NULL, 0, 0), STATUS_INSUFFICIENT_RESOURCES,
            "memory");
    assert_int_equal(softndk_set_fail(NULL), STATUS_SUCCESS);
    unhurt(&d);
    desk_close(&d);
}

/* Option scattered: an SGE of adapter addresses may not leave its page. */
static void over_an_adapter_page(void **state)
{
    struct desk d;
    struct lam lam;
    NDK_SGE sge;

    (void)state;
    desk_open(&d, "scattered=1", NULL);
    lam_open(d.client->adapter, d.bed.client.mdl, SIZE, &lam);
    assert_int_equal(lam_sges(d.client->pd, &lam, &sge, 1), 1);
    sge.LogicalAddress.QuadPart += PAGE - 1;
    sge.Length = 2;
    for (enum kind kind = 0; kind < KINDS; kind++)
        if (CARRIES & BIT(kind))
            refused(&d, kind, post(&d, kind, &sge, 1, 0), STATUS_ACCESS_VIOLATION,
                    "crosses an adapter page");
    unhurt(&d);
    lam_close(&lam);
    desk_close(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(not_connected),
        cmocka_unit_test(more_sges_than_allowed),
        cmocka_unit_test(more_octets_than_allowed),
        cmocka_unit_test(wrong_arguments),
        cmocka_unit_test(regions_in_the_wrong_state),
        cmocka_unit_test(full_queues),
        cmocka_unit_test(no_memory),
        cmocka_unit_test(over_an_adapter_page),
    };

    return cmocka_run_group_tests_name("status_post", tests, NULL, NULL);
}
