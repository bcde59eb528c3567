// SPDX-License-Identifier: MIT
/*
 * Adapters that are capped at an older version of NDKPI: what they report, what lies beyond their
 * tables, which flags they know, and that they work, against each other and the newest.
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

#define SIZE 20000u

static const struct {
    const char *options;
    unsigned major, minor;
} caps[] = {{"ndkpi=1.1", 1, 1}, {"ndkpi=1.2", 1, 2}, {"ndkpi=2.0", 2, 0}, {"ndkpi=2.1", 2, 1}};
#define CAPS (sizeof caps / sizeof caps[0])

#define BAD_VERSION ((NTSTATUS)0xC0010004)

static bool has(unsigned cap, unsigned major, unsigned minor)
{
    return caps[cap].major > major || (caps[cap].major == major && caps[cap].minor >= minor);
}

/* ---- what runs ------------------------------------------------------------------------------ */

static void expect_version(const NDK_OBJECT_HEADER *header, unsigned major, unsigned minor)
{
    assert_int_equal(header->Version.Major, major);
    assert_int_equal(header->Version.Minor, minor);
}

/* {1,0} runs the highest minor of 1 that is offered, {2,0} that of 2; more than that is refused. */
static void the_highest_minor_runs(void **state)
{
    (void)state;
    for (unsigned i = 0; i < CAPS; i++)
        for (unsigned major = 1; major <= 3; major++)
            for (unsigned minor = 0; minor <= 3; minor++) {
                unsigned highest = major > caps[i].major   ? 0
                                   : major < caps[i].major ? 2
                                                           : caps[i].minor;
                bool offered = major <= caps[i].major && minor <= highest;
                NDK_VERSION wanted = {(USHORT)major, (USHORT)minor};
                NDK_ADAPTER *adapter = NULL;
                NDK_ADAPTER_INFO info;
                ULONG size = sizeof info;
                NTSTATUS status = softndk_open_adapter("lo", caps[i].options, wanted, &adapter);

                if (!offered) {
                    assert_int_equal(status, BAD_VERSION);
                    continue;
                }
                assert_int_equal(status, STATUS_SUCCESS);
                expect_version(&adapter->Header, major, highest);
                assert_int_equal(adapter->Dispatch->NdkQueryAdapterInfo(adapter, &info, &size),
                                 STATUS_SUCCESS);
                assert_int_equal(info.Version.Major, major);
                assert_int_equal(info.Version.Minor, highest);
                assert_int_equal((info.AdapterFlags &
                                  NDK_ADAPTER_FLAG_RDMA_READ_LOCAL_INVALIDATE_SUPPORTED) != 0,
                                 major > 1 || highest >= 2); /* 1.2's */
                softndk_close_adapter(adapter);
            }
}

static void every_object_tells_it(void **state)
{
    (void)state;
    for (unsigned i = 0; i < CAPS; i++) {
        unsigned major = caps[i].major, minor = caps[i].minor;
        SOCKADDR_INET any = at_port("127.0.0.1", 0);
        NDK_SHARED_ENDPOINT *endpoint;
        struct memory m;
        struct pair p;

        pair_open(&p, "127.0.0.1", caps[i].options, caps[i].options);
        make_memory(p.client.pd, 4096, 0, &m);
        endpoint = make_shared(p.client.adapter, &any);
        expect_version(&p.client.adapter->Header, major, minor);
        expect_version(&p.client.pd->Header, major, minor);
        expect_version(&p.client.receive.cq->Header, major, minor);
        expect_version(&p.client.qp->Header, major, minor);
        expect_version(&p.client.connector->Header, major, minor);
        expect_version(&p.server.connector->Header, major, minor);
        expect_version(&p.listening.listener->Header, major, minor);
        expect_version(&m.mr->Header, major, minor);
        expect_version(&endpoint->Header, major, minor);
        CLOSE(endpoint, NdkCloseSharedEndpoint);
        free_memory(&m);
        pair_close(&p);
    }
}

/* ---- beyond the tables ---------------------------------------------------------------------- */

static VOID never_event(PVOID context, ULONG reason)
{
    (void)reason;
    test_fail("a disconnect event of a call that does not exist, %p", context);
}

static VOID never_request(PVOID context, NTSTATUS status)
{
    (void)status;
    test_fail("a completion of a call that does not exist, %p", context);
}

static void expect_beyond(NTSTATUS status, const NDK_OBJECT_HEADER *object, ULONG *findings)
{
    char text[300];

    assert_int_equal(status, STATUS_NOT_SUPPORTED);
    softndk_reason(object, text, sizeof text);
    assert_non_null(strstr(text, "the adapter runs"));
    assert_int_equal(softndk_finding_count(), ++*findings);
}

static void slots_of_later_versions(void **state)
{
    (void)state;
    for (unsigned i = 0; i < CAPS; i++) {
        ULONG findings = softndk_finding_count();
        NDK_CONNECTOR *k;
        NDK_RESULT_EX result;
        struct pair p;

        pair_open(&p, "127.0.0.1", caps[i].options, caps[i].options);
        k = p.client.connector;
        assert_int_equal(softndk_finding_count(), findings);
        assert_int_equal(
            p.client.receive.cq->Dispatch->NdkGetCqResultsEx(p.client.receive.cq, &result, 1), 0);
        if (!has(i, 1, 2)) {
            assert_int_equal(softndk_finding_count(), ++findings);
            expect_beyond(
                p.client.qp->Dispatch->NdkSendAndInvalidate(p.client.qp, NULL, NULL, 0, 0, 1),
                &p.client.qp->Header, &findings);
        }
        if (!has(i, 2, 1)) {
            expect_beyond(
                k->Dispatch->NdkCompleteConnectEx(k, never_event, NULL, never_request, NULL),
                &k->Header, &findings);
            k = p.server.connector;
            expect_beyond(k->Dispatch->NdkAcceptEx(k, p.server.qp, 1, 1, NULL, 0, never_event, NULL,
                                                   never_request, NULL),
                          &k->Header, &findings);
        }
        assert_int_equal(softndk_finding_count(),
                         findings);        /* and what there is, is right to use */
        synchronize(&p.client, &p.server); /* nothing was changed by them */
        pair_close(&p);
    }
}

/* ---- flags ---------------------------------------------------------------------------------- */

static void flags_of_later_versions(void **state)
{
    (void)state;
    for (unsigned i = 0; i < CAPS; i++) {
        struct bed bed;
        NTSTATUS status;
        NDK_SGE sge;
        NDK_QP *qp;
        char text[300];

        bed_open_two(&bed, caps[i].options, NULL, SIZE, ALL_RIGHTS);
        qp = bed.pair.client.qp;
        sge = memory_sge(&bed.client, 0, 64);
        post_receive(&bed.pair.server, &bed.server, 64, bed.pair.server.qp);
        status = qp->Dispatch->NdkSend(qp, qp, &sge, 1, NDK_OP_FLAG_DEFER);
        assert_int_equal(status, has(i, 1, 2) ? STATUS_SUCCESS : STATUS_INVALID_PARAMETER);
        if (status != STATUS_SUCCESS) {
            softndk_reason(&qp->Header, text, sizeof text);
            assert_non_null(strstr(text, "in this version"));
            assert_int_equal(qp->Dispatch->NdkSend(qp, qp, &sge, 1, 0), STATUS_SUCCESS);
        } else {
            assert_int_equal(qp->Dispatch->NdkWrite(qp, qp, NULL, 0, 0, 0, 0), STATUS_SUCCESS);
            assert_int_equal(queue_next(&bed.pair.client.initiator).Status, STATUS_SUCCESS);
        }
        assert_int_equal(queue_next(&bed.pair.client.initiator).Status, STATUS_SUCCESS);
        assert_int_equal(queue_next(&bed.pair.server.receive).Status, STATUS_SUCCESS);
        /* A Read's LOCAL_INVALIDATE is ignored where it is not advertised. */
        if (!has(i, 1, 2))
            for (int again = 0; again < 2; again++) {
                assert_int_equal(post_read(&bed.pair.client, &bed.client, 64,
                                           (UINT64)(uintptr_t)bed.server.data, bed.server.remote,
                                           NDK_OP_FLAG_RDMA_READ_LOCAL_INVALIDATE, qp),
                                 STATUS_SUCCESS);
                assert_int_equal(queue_next(&bed.pair.client.initiator).Status, STATUS_SUCCESS);
            }
        bed_close(&bed);
    }
}

/* A refused access: its code is told from 2.1 on. */
static void provider_error_codes(void **state)
{
    (void)state;
    for (unsigned i = 0; i < CAPS; i++) {
        struct bed bed;
        NDK_RESULT_EX result;

        bed_open_two(&bed, caps[i].options, NULL, SIZE, ALL_RIGHTS);
        assert_int_equal(post_read(&bed.pair.client, &bed.client, 64,
                                   (UINT64)(uintptr_t)bed.server.data, bed.server.remote ^ 0xff, 0,
                                   &bed),
                         STATUS_SUCCESS);
        result = queue_next(&bed.pair.client.initiator);
        assert_int_equal(result.Status, STATUS_ACCESS_VIOLATION);
        assert_int_equal(result.ProviderErrorCode != 0, has(i, 2, 1));
        bed_close(&bed);
    }
}

/* ---- they work ------------------------------------------------------------------------------ */

/* Each version with the newest, both ways: every operation, and an invalidation that comes from a
 * peer which has NdkSendAndInvalidate. */
static void old_and_new_together(void **state)
{
    (void)state;
    for (unsigned i = 0; i < CAPS; i++) {
        struct bed bed;
        struct region region;
        struct end *c, *s;

        bed_open_two(&bed, caps[i].options, NULL, SIZE, ALL_RIGHTS);
        c = &bed.pair.client;
        s = &bed.pair.server;
        fill(bed.client.data, SIZE, i);
        assert_int_equal(post_write(c, &bed.client, SIZE, (UINT64)(uintptr_t)bed.server.data,
                                    bed.server.remote, 0, c),
                         STATUS_SUCCESS);
        assert_int_equal(queue_next(&c->initiator).Status, STATUS_SUCCESS);
        synchronize(c, s);
        assert_true(check(bed.server.data, SIZE, i));
        memset(bed.client.data, 0, SIZE);
        assert_int_equal(post_read(c, &bed.client, SIZE, (UINT64)(uintptr_t)bed.server.data,
                                   bed.server.remote, 0, c),
                         STATUS_SUCCESS);
        assert_int_equal(queue_next(&c->initiator).Status, STATUS_SUCCESS);
        assert_true(check(bed.client.data, SIZE, i));
        /* The old end offers a region, the new one invalidates it with its answer. */
        region_open(c, 0, 4096, 0, TRUE, &region);
        region_register(&region, 0x1000, REMOTE_BOTH);
        post_receive(c, &bed.client, 64, &region);
        assert_int_equal(s->qp->Dispatch->NdkSendAndInvalidate(s->qp, s, NULL, 0, 0, region.remote),
                         STATUS_SUCCESS);
        assert_int_equal(queue_next(&s->initiator).Status, STATUS_SUCCESS);
        assert_int_equal(queue_next(&c->receive).Status, STATUS_SUCCESS);
        region_register(&region, 0x2000, REMOTE_BOTH); /* it was invalid: it can be used again */
        region_close(&region);
        bed_close(&bed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_highest_minor_runs), cmocka_unit_test(every_object_tells_it),
        BOTH_MODES(slots_of_later_versions),      BOTH_MODES(flags_of_later_versions),
        BOTH_MODES(provider_error_codes),         BOTH_MODES(old_and_new_together),
    };

    return cmocka_run_group_tests_name("version", tests, NULL, NULL);
}
