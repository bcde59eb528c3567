// SPDX-License-Identifier: MIT
/*
 * What creating CQs, PDs, QPs and regions, registering and mapping memory, and the queries answer,
 * in each completion mode: inline in mode never, through the callback in the modes always and
 * early. A failure gives no object, leaves the out parameter alone and can be followed by a
 * success. "No memory" is the object core's allocation that fails (SOFTNDK_FAIL=memory:n), since
 * the memory of a machine does not run out on call.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "modes.h"

#define PAGE 4096u

/* ---- creates -------------------------------------------------------------------------------- */

/* What a create is made with; each field has a default that works. */
struct make {
    struct end *end;
    enum { MAKE_CQ, MAKE_PD, MAKE_QP, MAKE_MR } what;
    ULONG cq_depth;
    NDK_FN_CQ_NOTIFICATION_CALLBACK notification;
    NDK_CQ *receive_cq, *initiator_cq;
    ULONG sizes[5]; /* of a QP: receive and initiator depth, receive and initiator SGEs, inline */
    BOOLEAN fast;
};

static VOID no_notification(PVOID context, NTSTATUS status)
{
    (void)context;
    (void)status;
}

static struct make make_default(struct end *end, unsigned what)
{
    return (struct make){.end = end,
                         .what = what,
                         .cq_depth = 16,
                         .notification = no_notification,
                         .receive_cq = end->receive.cq,
                         .initiator_cq = end->initiator.cq,
                         .sizes = {8, 8, 2, 2, 16}};
}

static NTSTATUS make_call(const struct make *m, struct wait *w, void **out)
{
    NDK_ADAPTER *adapter = m->end->adapter;
    NDK_PD *pd = m->end->pd;

    switch (m->what) {
    case MAKE_CQ:
        return adapter->Dispatch->NdkCreateCq(adapter, m->cq_depth, m->notification, NULL, NULL,
                                              wait_create, w, (NDK_CQ **)out);
    case MAKE_PD:
        return adapter->Dispatch->NdkCreatePd(adapter, wait_create, w, (NDK_PD **)out);
    case MAKE_QP:
        return pd->Dispatch->NdkCreateQp(pd, m->receive_cq, m->initiator_cq, NULL, m->sizes[0],
                                         m->sizes[1], m->sizes[2], m->sizes[3], m->sizes[4],
                                         wait_create, w, (NDK_QP **)out);
    default:
        return pd->Dispatch->NdkCreateMr(pd, m->fast, wait_create, w, (NDK_MR **)out);
    }
}

static void make_refused(const struct make *m, NTSTATUS need, const char *reason)
{
    struct wait w;
    void *out = &w;
    NTSTATUS returned;

    wait_init(&w);
    returned = make_call(m, &w, &out);
    assert_int_equal(mode_refusal(&w, returned), need);
    assert_ptr_equal(out, &w);
    expect_reason(m->what == MAKE_QP || m->what == MAKE_MR ? &m->end->pd->Header
                                                           : &m->end->adapter->Header,
                  reason);
}

/* The object comes, one way only; it is closed again. */
static void make_works(const struct make *m)
{
    struct wait w;
    void *out = &w;
    NTSTATUS returned;
    NDK_OBJECT_HEADER *object;

    wait_init(&w);
    returned = make_call(m, &w, &out);
    assert_int_equal(mode_answer(&w, returned), STATUS_SUCCESS);
    if (returned == STATUS_PENDING)
        assert_ptr_equal(out, &w);
    object = returned == STATUS_PENDING ? w.object : out;
    assert_non_null(object);
    switch (m->what) {
    case MAKE_CQ:
        CLOSE((NDK_CQ *)(void *)object, NdkCloseCq);
        break;
    case MAKE_PD:
        CLOSE((NDK_PD *)(void *)object, NdkClosePd);
        break;
    case MAKE_QP:
        CLOSE((NDK_QP *)(void *)object, NdkCloseQp);
        break;
    default:
        CLOSE((NDK_MR *)(void *)object, NdkCloseMr);
        break;
    }
}

/* The nth allocation of a create fails, for each n that it has; the first one cannot be missed. */
static void make_without_memory(const struct make *m)
{
    no_memory_for(1);
    make_refused(m, STATUS_INSUFFICIENT_RESOURCES, "no");
    for (unsigned nth = 2; nth < 8; nth++) {
        struct wait w;
        void *out = NULL;
        NTSTATUS returned, status;

        no_memory_for(nth);
        wait_init(&w);
        returned = make_call(m, &w, &out);
        status = wait_end(&w, returned); /* inline if the request was what failed */
        if (status != STATUS_SUCCESS) {
            assert_int_equal(status, STATUS_INSUFFICIENT_RESOURCES);
            assert_null(returned == STATUS_PENDING ? (void *)w.object : out);
            continue;
        }
        assert_int_equal(softndk_set_fail(NULL), STATUS_SUCCESS);
        close_object(returned == STATUS_PENDING ? w.object : out,
                     m->what == MAKE_CQ   ? m->end->receive.cq->Dispatch->NdkCloseCq
                     : m->what == MAKE_PD ? m->end->pd->Dispatch->NdkClosePd
                     : m->what == MAKE_QP ? m->end->qp->Dispatch->NdkCloseQp
                                          : NULL);
    }
    assert_int_equal(softndk_set_fail(NULL), STATUS_SUCCESS);
    make_works(m);
}

static void creating_a_cq(void **state)
{
    struct end end;
    struct make m;

    (void)state;
    end_open(&end, "max_cq_depth=256");
    m = make_default(&end, MAKE_CQ);
    m.cq_depth = 257;
    make_refused(&m, STATUS_INVALID_PARAMETER, "have 257, need 1..256");
    m.cq_depth = 0;
    make_refused(&m, STATUS_INVALID_PARAMETER, "have 0, need 1..256");
    m.cq_depth = 256;
    m.notification = NULL;
    make_refused(&m, STATUS_INVALID_PARAMETER, "CqNotification");
    m.notification = no_notification;
    make_works(&m);
    make_without_memory(&m);
    end_close(&end);
}

static void creating_a_pd(void **state)
{
    struct end end;
    struct make m;

    (void)state;
    end_open(&end, NULL);
    m = make_default(&end, MAKE_PD);
    make_works(&m);
    make_without_memory(&m);
    end_close(&end);
}

static void creating_a_qp(void **state)
{
    static const ULONG most[5] = {80, 81, 6, 7, 90};
    static const char *const sizes[5] = {"ReceiveQueueDepth", "InitiatorQueueDepth",
                                         "MaxReceiveRequestSge", "MaxInitiatorRequestSge",
                                         "InlineDataSize"};
    struct end end, other;
    struct make m;

    (void)state;
    end_open(&end, "max_receive_depth=80,max_initiator_depth=81,max_receive_sge=6,"
                   "max_initiator_sge=7,max_inline=90");
    end_open(&other, NULL);
    for (unsigned i = 0; i < 5; i++) {
        m = make_default(&end, MAKE_QP);
        m.sizes[i] = most[i] + 1;
        make_refused(&m, STATUS_INVALID_PARAMETER, sizes[i]);
        m.sizes[i] = most[i];
        make_works(&m);
    }
    m.receive_cq = NULL;
    make_refused(&m, STATUS_INVALID_PARAMETER, "a CQ is NULL");
    m.receive_cq = (NDK_CQ *)(void *)end.pd;
    make_refused(&m, STATUS_INVALID_PARAMETER, "no CQ");
    m = make_default(&end, MAKE_QP);
    m.initiator_cq = other.initiator.cq;
    make_refused(&m, STATUS_INVALID_PARAMETER, "of another adapter");
    m = make_default(&end, MAKE_QP);
    make_without_memory(&m);
    end_close(&end);
    end_close(&other);
}

static void creating_a_region(void **state)
{
    struct end end;
    struct make m;

    (void)state;
    end_open(&end, NULL);
    for (int fast = 0; fast < 2; fast++) {
        m = make_default(&end, MAKE_MR);
        m.fast = fast != 0;
        no_memory_for(1);
        make_refused(&m, STATUS_INSUFFICIENT_RESOURCES, "no new region");
        make_works(&m);
    }
    end_close(&end);
}

/* ---- memory --------------------------------------------------------------------------------- */

struct land {
    struct end end;
    uint8_t *data; /* two pages, mapped by themselves */
    MDL *mdl;
    NDK_MR *plain, *fast;
};

static NDK_MR *region_of(struct end *end, BOOLEAN fast)
{
    struct wait w;
    NDK_MR *mr = NULL;
    NTSTATUS returned;

    wait_init(&w);
    returned = end->pd->Dispatch->NdkCreateMr(end->pd, fast, wait_create, &w, &mr);
    assert_int_equal(wait_end(&w, returned), STATUS_SUCCESS);
    return returned == STATUS_PENDING ? (NDK_MR *)(void *)w.object : mr;
}

static void land_open(struct land *l)
{
    end_open(&l->end, NULL);
    l->data = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(l->data != MAP_FAILED);
    l->mdl = IoAllocateMdl(l->data, 2 * PAGE, FALSE, FALSE, NULL);
    assert_non_null(l->mdl);
    MmBuildMdlForNonPagedPool(l->mdl);
    l->plain = region_of(&l->end, FALSE);
    l->fast = region_of(&l->end, TRUE);
}

static void land_close(struct land *l)
{
    CLOSE(l->plain, NdkCloseMr);
    CLOSE(l->fast, NdkCloseMr);
    IoFreeMdl(l->mdl);
    munmap(l->data, 2 * PAGE);
    end_close(&l->end);
}

static NTSTATUS enrol(struct land *l, NDK_MR *mr, SIZE_T length, ULONG flags)
{
    struct wait w;

    wait_init(&w);
    return mode_answer(&w,
                       mr->Dispatch->NdkRegisterMr(mr, l->mdl, length, flags, wait_request, &w));
}

static NTSTATUS release(NDK_MR *mr)
{
    struct wait w;

    wait_init(&w);
    return mode_answer(&w, mr->Dispatch->NdkDeregisterMr(mr, wait_request, &w));
}

static void registering(void **state)
{
    struct land l;

    (void)state;
    land_open(&l);
    assert_int_equal(enrol(&l, l.plain, 2 * PAGE + 1, 0), STATUS_INVALID_PARAMETER);
    assert_int_equal(enrol(&l, l.fast, PAGE, 0), STATUS_INVALID_DEVICE_REQUEST);
    /* A page that cannot be written, and one that is not there. */
    assert_int_equal(mprotect(l.data + PAGE, PAGE, PROT_READ), 0);
    assert_int_equal(enrol(&l, l.plain, 2 * PAGE, NDK_MR_FLAG_ALLOW_LOCAL_WRITE),
                     STATUS_ACCESS_VIOLATION);
    expect_reason(&l.plain->Header, "need writable memory");
    assert_int_equal(munmap(l.data + PAGE, PAGE), 0);
    assert_int_equal(enrol(&l, l.plain, 2 * PAGE, 0), STATUS_ACCESS_VIOLATION);
    expect_reason(&l.plain->Header, "need readable memory");
    no_memory_for(1);
    assert_int_equal(enrol(&l, l.plain, PAGE, 0), STATUS_INSUFFICIENT_RESOURCES);
    expect_reason(&l.plain->Header, "no page list");
    assert_int_equal(softndk_set_fail(NULL), STATUS_SUCCESS);
    assert_int_equal(enrol(&l, l.plain, PAGE, 0), STATUS_SUCCESS);
    assert_int_equal(enrol(&l, l.plain, PAGE, 0), STATUS_INVALID_DEVICE_REQUEST);
    assert_int_equal(release(l.plain), STATUS_SUCCESS);
    land_close(&l);
}

static void deregistering(void **state)
{
    struct land l;
    UINT32 token;

    (void)state;
    land_open(&l);
    assert_int_equal(release(l.plain), STATUS_INVALID_DEVICE_REQUEST);
    assert_int_equal(release(l.fast), STATUS_INVALID_DEVICE_REQUEST);
    assert_int_equal(enrol(&l, l.plain, PAGE, 0), STATUS_SUCCESS);
    token = l.plain->Dispatch->NdkGetLocalTokenFromMr(l.plain);
    /* Without memory for the request the region stays registered. */
    no_memory_for(1);
    assert_int_equal(release(l.plain), STATUS_INSUFFICIENT_RESOURCES);
    assert_int_equal(softndk_set_fail(NULL), STATUS_SUCCESS);
    assert_int_equal(l.plain->Dispatch->NdkGetLocalTokenFromMr(l.plain), token);
    assert_int_equal(enrol(&l, l.plain, PAGE, 0), STATUS_INVALID_DEVICE_REQUEST);
    assert_int_equal(release(l.plain), STATUS_SUCCESS);
    land_close(&l);
}

static NTSTATUS initialize(NDK_MR *mr, ULONG pages)
{
    struct wait w;

    wait_init(&w);
    return mode_answer(
        &w, mr->Dispatch->NdkInitializeFastRegisterMr(mr, pages, TRUE, wait_request, &w));
}

static void initializing(void **state)
{
    struct land l;

    (void)state;
    land_open(&l);
    assert_int_equal(initialize(l.plain, 4), STATUS_INVALID_DEVICE_REQUEST);
    assert_int_equal(initialize(l.fast, 0), STATUS_INVALID_PARAMETER);
    assert_int_equal(initialize(l.fast, 257), STATUS_IMPLEMENTATION_LIMIT);
    no_memory_for(1);
    assert_int_equal(initialize(l.fast, 256), STATUS_INSUFFICIENT_RESOURCES);
    expect_reason(&l.fast->Header, "no page list");
    assert_int_equal(softndk_set_fail(NULL), STATUS_SUCCESS);
    assert_int_equal(initialize(l.fast, 256), STATUS_SUCCESS);
    land_close(&l);
}

struct lam_room {
    _Alignas(NDK_LOGICAL_ADDRESS_MAPPING) uint8_t octets[256];
    ULONG size, fbo;
};

static NTSTATUS map(struct land *l, SIZE_T length, struct lam_room *room)
{
    struct wait w;

    wait_init(&w);
    return mode_answer(&w, l->end.adapter->Dispatch->NdkBuildLAM(
                               l->end.adapter, l->mdl, length, wait_request, &w,
                               (NDK_LOGICAL_ADDRESS_MAPPING *)(void *)room->octets, &room->size,
                               &room->fbo));
}

static void mapping(void **state)
{
    struct lam_room room;
    struct land l;

    (void)state;
    land_open(&l);
    room.size = sizeof room.octets;
    assert_int_equal(map(&l, 2 * PAGE + 1, &room), STATUS_INVALID_PARAMETER);
    room.size = 4;
    assert_int_equal(map(&l, 2 * PAGE, &room), STATUS_BUFFER_TOO_SMALL);
    assert_true(room.size > 4 && room.size <= sizeof room.octets);
    assert_int_equal(munmap(l.data + PAGE, PAGE), 0);
    assert_int_equal(map(&l, 2 * PAGE, &room), STATUS_ACCESS_VIOLATION);
    expect_reason(&l.end.adapter->Header, "is not there");
    assert_int_equal(map(&l, PAGE, &room), STATUS_SUCCESS);
    l.end.adapter->Dispatch->NdkReleaseLAM(l.end.adapter,
                                           (NDK_LOGICAL_ADDRESS_MAPPING *)(void *)room.octets);
    land_close(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(creating_a_cq), cmocka_unit_test(creating_a_pd),
        cmocka_unit_test(creating_a_qp), cmocka_unit_test(creating_a_region),
        cmocka_unit_test(registering),   cmocka_unit_test(deregistering),
        cmocka_unit_test(initializing),  cmocka_unit_test(mapping),
    };

    return RUN_IN_MODES(tests);
}
