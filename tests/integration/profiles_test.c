// SPDX-License-Identifier: MIT
/*
 * The profiles that come with the library: each limit they advertise is kept to the last number,
 * each flag means what it says, and what they do differently shows. The numbers themselves stand in
 * docs/profiles.md, which tests/check-profiles.py compares with what ndkinfo prints.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "regions.h"
#include "shared.h"

#define PROFILES 4
#define SGES_MAX 33
#define SIZE     8192u

static const struct {
    const char *options;
    bool holds;      /* a Send waits for a receive */
    bool sink_free;  /* any region is a read sink */
    bool scattered;  /* adapter pages never follow each other */
    ULONG container; /* of private data, 0: as long as what was sent */
    bool exact;      /* a larger buffer gets nothing */
    NDK_RDMA_TECHNOLOGY technology;
    UINT32 vendor;
} profiles[PROFILES] = {
    {"profile=default", true, true, false, 0, false, NdkiWarp, 0},
    {"profile=strict", false, false, true, 56, false, NdkiWarp, 0},
    {"profile=cx3", true, true, false, 56, true, NdkRoCE, 0x2c9},
    {"profile=iwarp-rnic", false, false, false, 0, false, NdkiWarp, 0},
};

/* ---- limits --------------------------------------------------------------------------------- */

static VOID ignore(PVOID context, NTSTATUS status)
{
    (void)context;
    (void)status;
}

static NTSTATUS create_cq(NDK_ADAPTER *adapter, ULONG depth)
{
    NDK_CQ *cq = NULL;
    struct wait w;
    NTSTATUS status;

    wait_init(&w);
    status =
        adapter->Dispatch->NdkCreateCq(adapter, depth, ignore, NULL, NULL, wait_create, &w, &cq);
    if (wait_end(&w, status) != STATUS_SUCCESS)
        return wait_end(&w, status);
    if (status == STATUS_PENDING)
        cq = (NDK_CQ *)(void *)w.object;
    CLOSE(cq, NdkCloseCq);
    return STATUS_SUCCESS;
}

static void cq_depth(void **state)
{
    (void)state;
    for (unsigned i = 0; i < PROFILES; i++) {
        NDK_ADAPTER *adapter = open_adapter(profiles[i].options);
        ULONG most = adapter_info(adapter).MaxCqDepth;

        assert_int_equal(create_cq(adapter, most), STATUS_SUCCESS);
        assert_int_equal(create_cq(adapter, most + 1), STATUS_INVALID_PARAMETER);
        softndk_close_adapter(adapter);
    }
}

/* What is advertised works, what is not is refused. */
static void cq_flags(void **state)
{
    (void)state;
    for (unsigned i = 0; i < PROFILES; i++) {
        NDK_ADAPTER *adapter = open_adapter(profiles[i].options);
        ULONG flags = adapter_info(adapter).AdapterFlags;
        bool resizes = (flags & NDK_ADAPTER_FLAG_CQ_RESIZE_SUPPORTED) != 0;
        bool moderates = (flags & NDK_ADAPTER_FLAG_CQ_INTERRUPT_MODERATION_SUPPORTED) != 0;
        struct queue queue;
        struct wait w;
        NTSTATUS status;

        make_queue(adapter, 8, &queue);
        for (int async = 0; async < 2; async++) {
            assert_int_equal(softndk_set_pend(async ? "always" : "never"), STATUS_SUCCESS);
            wait_init(&w);
            status = queue.cq->Dispatch->NdkResizeCq(queue.cq, 16, wait_request, &w);
            assert_int_equal(status == STATUS_PENDING, async);
            assert_int_equal(wait_end(&w, status), resizes ? STATUS_SUCCESS : STATUS_NOT_SUPPORTED);
        }
        assert_int_equal(softndk_set_pend("never"), STATUS_SUCCESS);
        assert_int_equal(queue.cq->Dispatch->NdkControlCqInterruptModeration(queue.cq, 100, 4),
                         moderates ? STATUS_SUCCESS : STATUS_NOT_SUPPORTED);
        CLOSE(queue.cq, NdkCloseCq);
        softndk_close_adapter(adapter);
    }
}

static NTSTATUS create_srq(NDK_PD *pd, ULONG depth)
{
    NDK_SRQ *srq = NULL;
    struct wait w;
    NTSTATUS status;

    wait_init(&w);
    status = pd->Dispatch->NdkCreateSrq(pd, depth, 1, 0, ignore, NULL, NULL, wait_create, &w, &srq);
    if (wait_end(&w, status) != STATUS_SUCCESS)
        return wait_end(&w, status);
    if (status == STATUS_PENDING)
        srq = (NDK_SRQ *)(void *)w.object;
    CLOSE(srq, NdkCloseSrq);
    return STATUS_SUCCESS;
}

/* 0: there are none. */
static void srq_depth(void **state)
{
    (void)state;
    for (unsigned i = 0; i < PROFILES; i++) {
        NDK_ADAPTER *adapter = open_adapter(profiles[i].options);
        ULONG most = adapter_info(adapter).MaxSrqDepth;
        NDK_PD *pd = make_pd(adapter);

        if (most)
            assert_int_equal(create_srq(pd, most), STATUS_SUCCESS);
        assert_int_equal(create_srq(pd, most + 1), STATUS_INVALID_PARAMETER);
        CLOSE(pd, NdkClosePd);
        softndk_close_adapter(adapter);
    }
}

struct sizes {
    ULONG receives, requests, receive_sge, request_sge, octets;
};

static NTSTATUS create_qp(struct end *end, struct sizes sizes)
{
    NDK_QP *qp = NULL;
    struct wait w;
    NTSTATUS status;

    wait_init(&w);
    status = end->pd->Dispatch->NdkCreateQp(end->pd, end->receive.cq, end->initiator.cq, NULL,
                                            sizes.receives, sizes.requests, sizes.receive_sge,
                                            sizes.request_sge, sizes.octets, wait_create, &w, &qp);
    status = wait_end(&w, status);
    if (w.object)
        qp = (NDK_QP *)(void *)w.object;
    if (status == STATUS_SUCCESS)
        CLOSE(qp, NdkCloseQp);
    return status;
}

static void qp_sizes(void **state)
{
    (void)state;
    for (unsigned i = 0; i < PROFILES; i++) {
        NDK_ADAPTER_INFO info;
        struct sizes most, more;
        struct end end;

        end_open(&end, profiles[i].options);
        info = adapter_info(end.adapter);
        most = (struct sizes){info.MaxReceiveQueueDepth, info.MaxInitiatorQueueDepth,
                              info.MaxReceiveRequestSge, info.MaxInitiatorRequestSge,
                              info.MaxInlineDataSize};
        assert_int_equal(create_qp(&end, most), STATUS_SUCCESS);
        for (unsigned k = 0; k < 5; k++) {
            ULONG *const fields[] = {&more.receives, &more.requests, &more.receive_sge,
                                     &more.request_sge, &more.octets};

            more = most;
            ++*fields[k];
            assert_int_equal(create_qp(&end, more), STATUS_INVALID_PARAMETER);
        }
        end_close(&end);
    }
}

static NTSTATUS initialize(NDK_PD *pd, ULONG pages)
{
    NDK_MR *mr = NULL;
    struct wait w;
    NTSTATUS status;

    wait_init(&w);
    status = pd->Dispatch->NdkCreateMr(pd, TRUE, wait_create, &w, &mr);
    assert_int_equal(wait_end(&w, status), STATUS_SUCCESS);
    if (status == STATUS_PENDING)
        mr = (NDK_MR *)(void *)w.object;
    wait_init(&w);
    status =
        wait_end(&w, mr->Dispatch->NdkInitializeFastRegisterMr(mr, pages, FALSE, wait_request, &w));
    CLOSE(mr, NdkCloseMr);
    return status;
}

static void frmr_pages(void **state)
{
    (void)state;
    for (unsigned i = 0; i < PROFILES; i++) {
        NDK_ADAPTER *adapter = open_adapter(profiles[i].options);
        ULONG most = adapter_info(adapter).FRMRPageCount;
        NDK_PD *pd = make_pd(adapter);

        assert_true(most >= 16); /* NDKPI's least */
        assert_int_equal(initialize(pd, most), STATUS_SUCCESS);
        assert_int_equal(initialize(pd, most + 1), STATUS_IMPLEMENTATION_LIMIT);
        CLOSE(pd, NdkClosePd);
        softndk_close_adapter(adapter);
    }
}

/* A QP with all that the adapter has, connected to a default one. */
static void greatest_open(struct bed *bed, unsigned i, NDK_ADAPTER_INFO *info)
{
    struct end *c = &bed->pair.client;
    NDK_QP *small;
    struct wait w;
    NTSTATUS status;

    memset(bed, 0, sizeof *bed);
    end_open(&bed->pair.server, "max_read_sge=64,max_receive_sge=64");
    end_open(c, profiles[i].options);
    *info = adapter_info(c->adapter);
    small = c->qp;
    wait_init(&w);
    status = c->pd->Dispatch->NdkCreateQp(c->pd, c->receive.cq, c->initiator.cq, c, 16, 16,
                                          info->MaxReceiveRequestSge, info->MaxInitiatorRequestSge,
                                          info->MaxInlineDataSize, wait_create, &w, &c->qp);
    assert_int_equal(wait_end(&w, status), STATUS_SUCCESS);
    if (status == STATUS_PENDING)
        c->qp = (NDK_QP *)(void *)w.object;
    CLOSE(small, NdkCloseQp);
    listen_on(bed->pair.server.adapter, "127.0.0.1", &bed->pair.listening);
    pair_connect(&bed->pair);
    make_memory(c->pd, 1 << 20, ALL_RIGHTS, &bed->client);
    make_memory(bed->pair.server.pd, 1 << 20, ALL_RIGHTS, &bed->server);
}

/* One octet each, far from each other. */
static void spread(const struct memory *memory, NDK_SGE *sges, ULONG count)
{
    for (ULONG i = 0; i < count; i++)
        sges[i] = memory_sge(memory, i * 100, 1);
}

static void sges_of_a_request(void **state)
{
    (void)state;
    for (unsigned i = 0; i < PROFILES; i++) {
        NDK_SGE sges[SGES_MAX];
        NDK_ADAPTER_INFO info;
        struct bed bed;
        struct end *c = &bed.pair.client, *s = &bed.pair.server;

        greatest_open(&bed, i, &info);
        assert_in_range(info.MaxInitiatorRequestSge, 1, SGES_MAX - 1);
        spread(&bed.client, sges, SGES_MAX);
        for (ULONG k = 0; k < SGES_MAX; k++)
            bed.client.data[k * 100] = (uint8_t)(k + 1);
        post_receive(s, &bed.server, SIZE, c);
        assert_int_equal(
            c->qp->Dispatch->NdkSend(c->qp, c, sges, info.MaxInitiatorRequestSge + 1, 0),
            STATUS_DATA_OVERRUN);
        assert_int_equal(c->qp->Dispatch->NdkSend(c->qp, c, sges, info.MaxInitiatorRequestSge, 0),
                         STATUS_SUCCESS);
        assert_int_equal(queue_next(&c->initiator).Status, STATUS_SUCCESS);
        assert_int_equal(queue_next(&s->receive).BytesTransferred, info.MaxInitiatorRequestSge);
        for (ULONG k = 0; k < info.MaxInitiatorRequestSge; k++)
            assert_int_equal(bed.server.data[k], k + 1);
        /* Reads have a limit of their own. */
        assert_int_equal(c->qp->Dispatch->NdkRead(c->qp, c, sges, info.MaxReadRequestSge + 1,
                                                  (UINT64)(uintptr_t)bed.server.data,
                                                  bed.server.remote, 0),
                         STATUS_DATA_OVERRUN);
        assert_int_equal(c->qp->Dispatch->NdkRead(c->qp, c, sges, info.MaxReadRequestSge,
                                                  (UINT64)(uintptr_t)bed.server.data,
                                                  bed.server.remote, 0),
                         STATUS_SUCCESS);
        assert_int_equal(queue_next(&c->initiator).Status, STATUS_SUCCESS);
        assert_int_equal(c->qp->Dispatch->NdkReceive(c->qp, c, sges, info.MaxReceiveRequestSge + 1),
                         STATUS_DATA_OVERRUN);
        assert_int_equal(c->qp->Dispatch->NdkReceive(c->qp, c, sges, info.MaxReceiveRequestSge),
                         STATUS_SUCCESS);
        assert_int_equal(post_send(s, &bed.server, info.MaxReceiveRequestSge, 0, s),
                         STATUS_SUCCESS);
        assert_int_equal(queue_next(&c->receive).BytesTransferred, info.MaxReceiveRequestSge);
        bed_close(&bed);
    }
}

static void octets_of_a_request(void **state)
{
    (void)state;
    for (unsigned i = 0; i < PROFILES; i++) {
        NDK_ADAPTER_INFO info;
        struct bed bed;
        struct end *c = &bed.pair.client, *s = &bed.pair.server;
        NDK_SGE sges[2];
        ULONG most;

        greatest_open(&bed, i, &info);
        /* Lengths alone are looked at by the post. */
        most = info.MaxTransferLength;
        sges[0] = memory_sge(&bed.client, 0, most);
        sges[1] = memory_sge(&bed.client, 0, 1);
        assert_int_equal(c->qp->Dispatch->NdkWrite(c->qp, c, sges, 2,
                                                   (UINT64)(uintptr_t)bed.server.data,
                                                   bed.server.remote, 0),
                         STATUS_BUFFER_OVERFLOW);
        if (most <= bed.client.size) {
            fill(bed.client.data, most, i);
            assert_int_equal(post_write(c, &bed.client, most, (UINT64)(uintptr_t)bed.server.data,
                                        bed.server.remote, 0, c),
                             STATUS_SUCCESS);
            assert_int_equal(queue_next(&c->initiator).Status, STATUS_SUCCESS);
            synchronize(c, s);
            assert_true(check(bed.server.data, most, i));
        }
        most = info.MaxInlineDataSize;
        sges[0].Length = most + 1;
        assert_int_equal(c->qp->Dispatch->NdkSend(c->qp, c, sges, 1, NDK_OP_FLAG_INLINE),
                         STATUS_BUFFER_OVERFLOW);
        sges[0].Length = most;
        post_receive(s, &bed.server, SIZE, c);
        assert_int_equal(c->qp->Dispatch->NdkSend(c->qp, c, sges, 1, NDK_OP_FLAG_INLINE),
                         STATUS_SUCCESS);
        assert_int_equal(queue_next(&c->initiator).Status, STATUS_SUCCESS);
        assert_int_equal(queue_next(&s->receive).BytesTransferred, most);
        bed_close(&bed);
    }
}

/* ---- connections ---------------------------------------------------------------------------- */

struct talk {
    struct pair pair;
    struct call connect, accept, complete;
};

static void talk_open(struct talk *t, const char *client, const char *server)
{
    memset(t, 0, sizeof *t);
    end_open(&t->pair.server, server);
    end_open(&t->pair.client, client);
    listen_on(t->pair.server.adapter, "127.0.0.1", &t->pair.listening);
    t->pair.client.connector = make_connector(t->pair.client.adapter);
}

static NTSTATUS talk_dial(struct talk *t, void *data, ULONG length)
{
    struct end *c = &t->pair.client;
    SOCKADDR_INET local = local_of(&t->pair.listening);

    wait_init(&t->connect.wait);
    t->connect.returned = c->connector->Dispatch->NdkConnect(
        c->connector, c->qp, (PSOCKADDR)&local, sizeof local.Ipv4,
        (PSOCKADDR)&t->pair.listening.address, sizeof local.Ipv4, 0xffff, 0xffff, data, length,
        wait_request, &t->connect.wait);
    return t->connect.returned;
}

static NTSTATUS talk_accept(struct talk *t, void *data, ULONG length)
{
    struct end *s = &t->pair.server;

    wait_init(&t->accept.wait);
    t->accept.returned =
        s->connector->Dispatch->NdkAccept(s->connector, s->qp, 0xffff, 0xffff, data, length, NULL,
                                          NULL, wait_request, &t->accept.wait);
    return t->accept.returned;
}

static void talk_complete(struct talk *t)
{
    NDK_CONNECTOR *k = t->pair.client.connector;

    assert_int_equal(ended(&t->connect), STATUS_SUCCESS);
    wait_init(&t->complete.wait);
    t->complete.returned =
        k->Dispatch->NdkCompleteConnect(k, NULL, NULL, wait_request, &t->complete.wait);
    assert_int_equal(ended(&t->complete), STATUS_SUCCESS);
    assert_int_equal(ended(&t->accept), STATUS_SUCCESS);
}

/* With a peer that takes whatever it is offered. */
static void read_limits(void **state)
{
    (void)state;
    for (unsigned i = 0; i < PROFILES; i++) {
        NDK_ADAPTER_INFO info;
        struct talk t;
        ULONG in, out;

        talk_open(&t, profiles[i].options, "max_inbound_reads=128,max_outbound_reads=128");
        info = adapter_info(t.pair.client.adapter);
        assert_int_equal(talk_dial(&t, NULL, 0), STATUS_PENDING);
        t.pair.server.connector = next_incoming(&t.pair.listening);
        talk_accept(&t, NULL, 0);
        talk_complete(&t);
        assert_int_equal(t.pair.client.connector->Dispatch->NdkGetConnectionData(
                             t.pair.client.connector, &in, &out, NULL, NULL),
                         STATUS_SUCCESS);
        assert_int_equal(in, info.MaxInboundReadLimit);
        assert_int_equal(out, info.MaxOutboundReadLimit);
        pair_close(&t.pair);
    }
}

/* What NdkGetConnectionData makes of `length` octets from the peer. */
static void expect_private(unsigned i, NDK_CONNECTOR *k, const uint8_t *sent, ULONG length)
{
    ULONG size = 0, whole = profiles[i].container > length ? profiles[i].container : length;
    uint8_t want[600] = {0}, got[600];

    memcpy(want, sent, length);
    assert_int_equal(k->Dispatch->NdkGetConnectionData(k, NULL, NULL, NULL, &size), STATUS_SUCCESS);
    assert_int_equal(size, whole);
    memset(got, 0xee, sizeof got);
    assert_int_equal(k->Dispatch->NdkGetConnectionData(k, NULL, NULL, got, &size), STATUS_SUCCESS);
    assert_int_equal(size, whole);
    assert_memory_equal(got, want, whole);
    assert_int_equal(got[whole], 0xee);
    memset(got, 0xee, sizeof got);
    size = sizeof got;
    assert_int_equal(k->Dispatch->NdkGetConnectionData(k, NULL, NULL, got, &size), STATUS_SUCCESS);
    assert_int_equal(size, profiles[i].exact ? 0 : whole);
    assert_int_equal(got[0], profiles[i].exact || whole == 0 ? 0xee : want[0]);
    if (whole) {
        size = whole - 1;
        memset(got, 0xee, sizeof got);
        assert_int_equal(k->Dispatch->NdkGetConnectionData(k, NULL, NULL, got, &size),
                         STATUS_BUFFER_TOO_SMALL);
        assert_int_equal(size, whole);
        assert_memory_equal(got, want, whole - 1);
        assert_int_equal(got[whole - 1], 0xee);
    }
}

static void private_data(void **state)
{
    uint8_t data[600];

    (void)state;
    fill(data, sizeof data, 7);
    data[0] = 1; /* never what the buffers are filled with */
    for (unsigned i = 0; i < PROFILES; i++)
        for (unsigned how = 0; how < 3; how++) {
            NDK_ADAPTER_INFO info;
            struct talk t;
            ULONG there, back;

            talk_open(&t, profiles[i].options, profiles[i].options);
            info = adapter_info(t.pair.client.adapter);
            there = how == 0 ? 0 : how == 1 ? 24 : info.MaxCallerData;
            back = how == 0 ? 0 : how == 1 ? 1 : info.MaxCalleeData;
            assert_int_equal(wait_end(&t.connect.wait, talk_dial(&t, data, info.MaxCallerData + 1)),
                             STATUS_INVALID_BUFFER_SIZE);
            assert_int_equal(talk_dial(&t, data, there), STATUS_PENDING);
            t.pair.server.connector = next_incoming(&t.pair.listening);
            expect_private(i, t.pair.server.connector, data, there);
            assert_int_equal(
                wait_end(&t.accept.wait, talk_accept(&t, data, info.MaxCalleeData + 1)),
                STATUS_INVALID_BUFFER_SIZE);
            talk_accept(&t, data, back);
            assert_int_equal(ended(&t.connect), STATUS_SUCCESS);
            expect_private(i, t.pair.client.connector, data, back);
            t.connect.returned = STATUS_SUCCESS;
            atomic_store(&t.connect.wait.calls, 0);
            talk_complete(&t);
            pair_close(&t.pair);
        }
}

/* A peer that sends more than the container holds: no octet is lost. */
static void private_data_beyond_the_container(void **state)
{
    uint8_t data[600];
    struct talk t;

    (void)state;
    fill(data, sizeof data, 8);
    data[0] = 2;
    talk_open(&t, "profile=default", profiles[1].options);
    assert_int_equal(talk_dial(&t, data, 251), STATUS_PENDING);
    t.pair.server.connector = next_incoming(&t.pair.listening);
    expect_private(1, t.pair.server.connector, data, 251);
    assert_int_equal(t.pair.server.connector->Dispatch->NdkReject(t.pair.server.connector, NULL, 0),
                     STATUS_SUCCESS);
    assert_int_equal(ended(&t.connect), STATUS_CONNECTION_REFUSED);
    pair_close(&t.pair);
}

/* ---- flags and ways ------------------------------------------------------------------------- */

static void told_to_be(void **state)
{
    (void)state;
    for (unsigned i = 0; i < PROFILES; i++) {
        NDK_ADAPTER *adapter = open_adapter(profiles[i].options);
        NDK_ADAPTER_INFO info = adapter_info(adapter);

        assert_int_equal(info.RdmaTechnology, profiles[i].technology);
        assert_int_equal(info.VendorId, profiles[i].vendor);
        assert_int_equal((info.AdapterFlags & NDK_ADAPTER_FLAG_RDMA_READ_SINK_NOT_REQUIRED) != 0,
                         profiles[i].sink_free);
        softndk_close_adapter(adapter);
    }
}

/* The sink of a Read without RDMA_READ_SINK: taken, or refused in words. */
static void read_sinks(void **state)
{
    (void)state;
    for (unsigned i = 0; i < PROFILES; i++) {
        struct bed bed;
        struct end *c = &bed.pair.client;
        char text[300];

        bed_open_two(&bed, profiles[i].options, NULL, SIZE,
                     NDK_MR_FLAG_ALLOW_LOCAL_WRITE | NDK_MR_FLAG_ALLOW_REMOTE_READ);
        assert_int_equal(post_read(c, &bed.client, 64, (UINT64)(uintptr_t)bed.server.data,
                                   bed.server.remote, 0, c),
                         STATUS_SUCCESS);
        assert_int_equal(queue_next(&c->initiator).Status,
                         profiles[i].sink_free ? STATUS_SUCCESS : STATUS_ACCESS_VIOLATION);
        if (!profiles[i].sink_free) {
            softndk_reason(&c->qp->Header, text, sizeof text);
            assert_non_null(strstr(text, "RDMA_READ_SINK"));
        }
        bed_close(&bed);
    }
}

static void a_send_without_a_receive(void **state)
{
    (void)state;
    for (unsigned i = 0; i < PROFILES; i++) {
        struct bed bed;
        struct end *c = &bed.pair.client, *s = &bed.pair.server;

        bed_open_two(&bed, NULL, profiles[i].options, SIZE, ALL_RIGHTS);
        assert_int_equal(post_send(c, &bed.client, 64, 0, c), STATUS_SUCCESS);
        if (profiles[i].holds) {
            expect_nothing(&s->receive, "held", 50);
            post_receive(s, &bed.server, 64, s);
            assert_int_equal(queue_next(&s->receive).Status, STATUS_SUCCESS);
        } else {
            expect_event(s, "no receive", REASON_TERMINATE_SENT, IWARP_ERR_UNTAG_NO_BUFFER);
        }
        bed_close(&bed);
    }
}

static void adapter_pages(void **state)
{
    (void)state;
    for (unsigned i = 0; i < PROFILES; i++) {
        struct memory m;
        struct end end;
        struct lam lam;

        end_open(&end, profiles[i].options);
        make_memory(end.pd, 4 * 4096, 0, &m);
        lam_open(end.adapter, m.mdl, 4 * 4096, &lam);
        for (ULONG k = 1; k < 4; k++)
            assert_int_equal(lam_page(&lam, k) == lam_page(&lam, k - 1) + 4096,
                             !profiles[i].scattered);
        lam_close(&lam);
        free_memory(&m);
        end_close(&end);
    }
}

/* Both ends on one adapter, from an address to itself: LOOPBACK_CONNECTIONS_SUPPORTED. */
static void loopback(void **state)
{
    (void)state;
    for (unsigned i = 0; i < PROFILES; i++) {
        SOCKADDR_INET any = at_port("127.0.0.1", 0), at;
        NDK_SHARED_ENDPOINT *endpoint;
        struct listening l;
        struct call call;
        struct end end;

        end_open(&end, profiles[i].options);
        assert_true((adapter_info(end.adapter).AdapterFlags &
                     NDK_ADAPTER_FLAG_LOOPBACK_CONNECTIONS_SUPPORTED) != 0);
        listen_on(end.adapter, "127.0.0.1", &l);
        endpoint = make_shared(end.adapter, &any);
        end.connector = make_connector(end.adapter);
        dial_over(end.connector, end.qp, endpoint, &l.address, &call);
        at = shared_address(endpoint);
        assert_memory_equal(&at.Ipv4.sin_addr, &l.address.Ipv4.sin_addr, 4);
        close_next(&l);
        assert_int_equal(ended(&call), STATUS_CONNECTION_REFUSED);
        CLOSE(end.connector, NdkCloseConnector);
        end.connector = NULL;
        CLOSE(endpoint, NdkCloseSharedEndpoint);
        CLOSE(l.listener, NdkCloseListener);
        end_close(&end);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cq_depth),
        cmocka_unit_test(cq_flags),
        cmocka_unit_test(srq_depth),
        cmocka_unit_test(qp_sizes),
        cmocka_unit_test(frmr_pages),
        cmocka_unit_test(sges_of_a_request),
        cmocka_unit_test(octets_of_a_request),
        cmocka_unit_test(read_limits),
        cmocka_unit_test(private_data),
        cmocka_unit_test(private_data_beyond_the_container),
        cmocka_unit_test(told_to_be),
        cmocka_unit_test(read_sinks),
        cmocka_unit_test(a_send_without_a_receive),
        cmocka_unit_test(adapter_pages),
        cmocka_unit_test(loopback),
    };

    return cmocka_run_group_tests_name("profiles", tests, NULL, NULL);
}
