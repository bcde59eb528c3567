// SPDX-License-Identifier: MIT
/*
 * Shared receive queues (NDKPI 8.3, 8.5, 11; lifetime 6.9, 11): who gets which receive, what
 * belongs to the queue and what to a QP, and when the notification is due.
 */
#include "kit_steps.h"

enum { LENGTH = 3000, PAIRS_MAX = 4 };

/* Active ends a, each connected with a QP of one passive adapter; all those share the SRQ. */
struct share {
    struct kit *k;
    struct kit_adapter *adapter;
    struct kit_pd *pd;
    struct kit_cq *receive, *initiator;
    struct kit_srq *srq;
    struct kit_listener *listener;
    SOCKADDR_INET address;
    struct kit_memory *in; /* LENGTH octets a receive */
    ULONG pairs, posted;
    struct kit_qp *qp[PAIRS_MAX];
    struct kit_connector *connector[PAIRS_MAX];
    struct kit_end a[PAIRS_MAX];
    struct kit_memory *out[PAIRS_MAX];
};

enum { RECEIVES = 64 };

/* One more pair. */
static BOOLEAN share_add(struct share *s)
{
    struct kit *k = s->k;
    ULONG i = s->pairs;
    struct kit_end *a = &s->a[i];
    struct kit_call *connect, *accept;

    TRY_OR_FALSE(kit_answer_is(
        kit_qp_start(s->pd, s->receive, s->initiator, s->srq, NULL, &s->qp[i]), STATUS_SUCCESS));
    TRY_OR_FALSE(kit_end_open(k, NULL, a));
    TRY_OR_FALSE(kit_connector_new(a->adapter, &a->connector));
    connect = kit_connect_start(a->connector, a->qp, &s->address, NULL);
    TRY_OR_FALSE(kit_incoming(s->listener, &s->connector[i]));
    accept = kit_accept_start(s->connector[i], s->qp[i], NULL);
    TRY_OR_FALSE(accept != NULL);
    TRY_OR_FALSE(kit_answer_is(connect, STATUS_SUCCESS));
    TRY_OR_FALSE(kit_answer_is(kit_complete_start(a->connector), STATUS_SUCCESS));
    TRY_OR_FALSE(kit_answer_is(accept, STATUS_SUCCESS));
    TRY_OR_FALSE(kit_memory_new(a->pd, LENGTH, 0, &s->out[i]));
    s->pairs++;
    return TRUE;
}

static BOOLEAN share_open(struct kit *k, ULONG pairs, ULONG depth, ULONG threshold, struct share *s)
{
    RtlZeroMemory(s, sizeof *s);
    s->k = k;
    TRY_OR_FALSE(kit_adapter_open(k, &s->adapter));
    TRY_OR_FALSE(kit_pd_new(s->adapter, &s->pd));
    TRY_OR_FALSE(kit_cq_new(s->adapter, 256, &s->receive));
    TRY_OR_FALSE(kit_cq_new(s->adapter, 64, &s->initiator));
    TRY_OR_FALSE(kit_answer_is(kit_srq_start(s->pd, depth, 1, threshold, &s->srq), STATUS_SUCCESS));
    TRY_OR_FALSE(kit_listener_new(s->adapter, &s->listener));
    TRY_OR_FALSE(kit_listen(s->listener, &s->address));
    TRY_OR_FALSE(kit_memory_new(s->pd, RECEIVES * LENGTH, NDK_MR_FLAG_ALLOW_LOCAL_WRITE, &s->in));
    while (s->pairs < pairs)
        TRY_OR_FALSE(share_add(s));
    return TRUE;
}

/* The next n receives. */
static BOOLEAN share_post(struct share *s, ULONG n)
{
    while (n--) {
        NDK_SGE sge = kit_sge(s->in, (SIZE_T)(s->posted++ % RECEIVES) * LENGTH, LENGTH);

        TRY_OR_FALSE(kit_ok(kit_srq_receive(s->srq, &sge, 1)));
    }
    return TRUE;
}

/* Pair i sends a message that is filled with seed, and sees it done. */
static BOOLEAN share_send(struct share *s, ULONG i, ULONG seed)
{
    NDK_SGE sge = kit_sge(s->out[i], 0, LENGTH);
    struct kit_request *send;

    kit_fill(s->out[i]->data, LENGTH, seed);
    TRY_OR_FALSE(kit_ok(send = kit_send(s->a[i].qp, &sge, 1, 0)));
    return kit_expect(send, STATUS_SUCCESS, NULL);
}

/* The next receive that completes belongs to pair i. */
static BOOLEAN share_received(struct share *s, ULONG i)
{
    struct kit_result result;

    TRY_OR_FALSE(kit_cq_next(s->receive, &result));
    TRY_OR_FALSE(kit_status(s->k, KIT_HERE, "a receive of the SRQ", result.status, STATUS_SUCCESS));
    TRY_OR_FALSE(kit_equal(s->k, KIT_HERE, "octets received", result.bytes, LENGTH));
    if (result.qp != s->qp[i])
        return kit_fail(s->k, KIT_HERE, "QPContext is that of another QP");
    return TRUE;
}

/* ---- data ----------------------------------------------------------------------------------- */

/* arg: pairs. Each message takes the oldest receive, whichever QP it comes over. */
static VOID in_turn(struct kit *k)
{
    struct share s;

    TRY(share_open(k, (ULONG)k->test->arg, RECEIVES, 0, &s));
    TRY(share_post(&s, 24));
    for (ULONG n = 0; n < 24; n++) {
        ULONG i = n % s.pairs;

        TRY(share_send(&s, i, n + 1));
        TRY(share_received(&s, i));
        TRY(kit_filled(k, "the oldest receive", s.in->data + (SIZE_T)n * LENGTH, LENGTH, n + 1));
    }
}

/* All at once: every message finds one receive, none is lost, none is there twice. */
static VOID all_at_once(struct kit *k)
{
    enum { EACH = 12 };
    struct kit_request *last[PAIRS_MAX] = {NULL};
    ULONG seen[PAIRS_MAX] = {0};
    struct share s;

    TRY(share_open(k, PAIRS_MAX, RECEIVES, 0, &s));
    TRY(share_post(&s, PAIRS_MAX * EACH));
    for (ULONG i = 0; i < PAIRS_MAX; i++)
        kit_fill(s.out[i]->data, LENGTH, i + 1);
    for (ULONG n = 0; n < EACH; n++)
        for (ULONG i = 0; i < PAIRS_MAX; i++) {
            NDK_SGE sge = kit_sge(s.out[i], 0, LENGTH);

            TRY(kit_ok(last[i] = kit_send(s.a[i].qp, &sge, 1,
                                          n + 1 < EACH ? NDK_OP_FLAG_SILENT_SUCCESS : 0)));
        }
    for (ULONG n = 0; n < PAIRS_MAX * EACH; n++) {
        struct kit_result result;

        TRY(kit_cq_next(s.receive, &result));
        CHECK_STATUS(k, "a receive of the SRQ", result.status, STATUS_SUCCESS);
        for (ULONG i = 0; i < PAIRS_MAX; i++)
            seen[i] += result.qp == s.qp[i];
    }
    for (ULONG i = 0; i < PAIRS_MAX; i++) {
        CHECK_EQUAL(k, "receives of one QP", seen[i], EACH);
        TRY(kit_expect(last[i], STATUS_SUCCESS, NULL));
    }
}

/* ---- what belongs to whom ------------------------------------------------------------------- */

enum end { FLUSH, DISCONNECT, CLOSE_CONNECTOR, CLOSE_QP };

/* Receives in the queue are the queue's: no end of a QP takes them along (lifetime 6.9). */
static VOID receives_stay(struct kit *k)
{
    struct share s;

    TRY(share_open(k, 1, RECEIVES, 0, &s));
    TRY(share_post(&s, 3));
    TRY(share_send(&s, 0, 1));
    TRY(share_received(&s, 0));
    switch ((enum end)k->test->arg) {
    case FLUSH:
        kit_flush(s.qp[0]);
        break;
    case DISCONNECT: {
        struct kit_call *first = kit_disconnect_start(s.connector[0]);

        TRY(kit_steps_disconnected(&s.a[0]));
        TRY(kit_answer_is(kit_disconnect_start(s.a[0].connector), STATUS_SUCCESS));
        TRY(kit_answer_is(first, STATUS_SUCCESS));
        break;
    }
    case CLOSE_QP:
    case CLOSE_CONNECTOR:
        TRY(kit_close(&s.connector[0]->object));
        if (k->test->arg == CLOSE_QP)
            TRY(kit_close(&s.qp[0]->object));
        break;
    }
    kit_settle(k);
    CHECK(k, kit_cq_is_empty(s.receive), "receives of the SRQ were flushed with a QP");
    TRY(share_add(&s));
    TRY(share_send(&s, 1, 2));
    TRY(share_received(&s, 1));
    TRY(kit_filled(k, "the receive that stayed", s.in->data + LENGTH, LENGTH, 2));
}

static VOID no_receives_of_its_own(struct kit *k)
{
    struct kit_request *receive;
    struct share s;

    TRY(share_open(k, 1, RECEIVES, 0, &s));
    receive = kit_receive(s.qp[0], NULL, 0);
    TRY(receive != NULL);
    CHECK(k, !NT_SUCCESS(receive->posted), "NdkReceive of a QP with an SRQ: have %s",
          kit_status_name(receive->posted));
    TRY(share_post(&s, 1));
    TRY(share_send(&s, 0, 1));
    TRY(share_received(&s, 0));
}

/* ---- depth ---------------------------------------------------------------------------------- */

static VOID full(struct kit *k)
{
    struct kit_request *receive;
    struct share s;

    TRY(share_open(k, 1, 4, 0, &s));
    TRY(share_post(&s, 4));
    receive = kit_srq_receive(s.srq, NULL, 0);
    TRY(receive != NULL);
    CHECK(k, !NT_SUCCESS(receive->posted), "a fifth receive in an SRQ of depth 4: have %s",
          kit_status_name(receive->posted));
    TRY(share_send(&s, 0, 1));
    TRY(share_received(&s, 0));
    TRY(share_post(&s, 1));
}

static VOID other_depths(struct kit *k)
{
    struct kit_request *receive;
    struct share s;
    NTSTATUS status;

    TRY(share_open(k, 1, 4, 0, &s));
    TRY(share_post(&s, 4));
    TRY(kit_answer_is(kit_modify_srq_start(s.srq, 8, 0), STATUS_SUCCESS));
    TRY(share_post(&s, 4));
    TRY(kit_answer_is(kit_modify_srq_start(s.srq, 0, 0), STATUS_SUCCESS)); /* 0 keeps the depth */
    receive = kit_srq_receive(s.srq, NULL, 0);
    TRY(receive != NULL);
    CHECK(k, !NT_SUCCESS(receive->posted), "a ninth receive in an SRQ of depth 8: have %s",
          kit_status_name(receive->posted));
    status = s.adapter->info.MaxSrqDepth == MAXULONG
                 ? STATUS_INVALID_PARAMETER
                 : kit_answer(kit_modify_srq_start(s.srq, s.adapter->info.MaxSrqDepth + 1, 0));
    CHECK_STATUS(k, "NdkModifySrq above MaxSrqDepth", status, STATUS_INVALID_PARAMETER);
    for (ULONG n = 0; n < 8; n++) {
        TRY(share_send(&s, 0, n + 1));
        TRY(share_received(&s, 0));
        TRY(kit_filled(k, "a receive after the change", s.in->data + (SIZE_T)n * LENGTH, LENGTH,
                       n + 1));
    }
}

/* ---- the notification ----------------------------------------------------------------------- */

static BOOLEAN notified(struct share *s, LONG n)
{
    if (!kit_wait_number(s->k, &s->srq->notified, n, "the notification of the SRQ"))
        return FALSE;
    kit_settle(s->k);
    return kit_equal(s->k, KIT_HERE, "notifications of the SRQ", kit_os_get(&s->srq->notified), n);
}

static BOOLEAN takes_one(struct share *s)
{
    return share_send(s, 0, 1) && share_received(s, 0);
}

/* Once, when fewer are queued than the threshold says; not while as many are. */
static VOID below_the_threshold(struct kit *k)
{
    struct share s;

    TRY(share_open(k, 1, RECEIVES, 2, &s));
    kit_settle(k);
    CHECK_EQUAL(k, "notifications of a new SRQ", kit_os_get(&s.srq->notified), 0);
    TRY(share_post(&s, 4));
    TRY(takes_one(&s));
    TRY(takes_one(&s));
    kit_settle(k);
    CHECK_EQUAL(k, "notifications at the threshold", kit_os_get(&s.srq->notified), 0);
    TRY(takes_one(&s));
    TRY(notified(&s, 1));
    TRY(takes_one(&s));
    TRY(kit_answer_is(kit_modify_srq_start(s.srq, 0, 0), STATUS_SUCCESS)); /* arms nothing */
    TRY(share_post(&s, 4));
    for (ULONG n = 0; n < 4; n++)
        TRY(takes_one(&s));
    TRY(notified(&s, 1)); /* it has not been armed again */
}

static VOID never(struct kit *k)
{
    struct share s;

    TRY(share_open(k, 1, RECEIVES, 0, &s));
    TRY(share_post(&s, 2));
    TRY(takes_one(&s));
    TRY(takes_one(&s));
    TRY(kit_answer_is(kit_modify_srq_start(s.srq, 16, 0), STATUS_SUCCESS));
    kit_settle(k);
    CHECK_EQUAL(k, "notifications of an SRQ without a threshold", kit_os_get(&s.srq->notified), 0);
}

/* A threshold arms; if fewer are there already the notification is due now (NDKPI 11.1). */
static VOID armed_again(struct kit *k)
{
    struct share s;

    TRY(share_open(k, 1, RECEIVES, 0, &s));
    TRY(share_post(&s, 3));
    TRY(kit_answer_is(kit_modify_srq_start(s.srq, 0, 4), STATUS_SUCCESS));
    TRY(notified(&s, 1));
    TRY(kit_answer_is(kit_modify_srq_start(s.srq, 0, 3), STATUS_SUCCESS));
    kit_settle(k);
    CHECK_EQUAL(k, "notifications with as many receives as the threshold",
                kit_os_get(&s.srq->notified), 1);
    TRY(kit_answer_is(kit_modify_srq_start(s.srq, 0, 0), STATUS_SUCCESS)); /* keeps the arm */
    TRY(takes_one(&s));
    TRY(notified(&s, 2));
}

#define SRQ .needs = KIT_NEEDS_LOOPBACK | KIT_NEEDS_SRQ
#define STAY(id_, title_, end_)                                                                    \
    KIT_CASE(id_, "receives stay in the queue: " title_, "lifetime 6.9", "NdkSrqReceive",          \
             receives_stay, SRQ, .arg = end_)

static const struct kit_case cases[] = {
    KIT_CASE("SRQ-001", "one QP takes the receives in turn", "NDKPI 11.2", "NdkSrqReceive", in_turn,
             SRQ, .arg = 1),
    KIT_CASE("SRQ-002", "three QPs take the receives in turn", "NDKPI 11.2", "NdkSrqReceive",
             in_turn, SRQ, .arg = 3),
    KIT_CASE("SRQ-003", "four QPs at once: each message has its receive", "NDKPI 8.5",
             "NdkCreateQpWithSrq", all_at_once, SRQ),
    STAY("SRQ-010", "NdkFlush", FLUSH),
    STAY("SRQ-011", "NdkDisconnect", DISCONNECT),
    STAY("SRQ-012", "the connector is closed", CLOSE_CONNECTOR),
    STAY("SRQ-013", "the QP is closed", CLOSE_QP),
    KIT_CASE("SRQ-014", "such a QP has no receive queue of its own", "NDKPI 8.5", "NdkReceive",
             no_receives_of_its_own, SRQ),
    KIT_CASE("SRQ-020", "one receive more than the depth", "NDKPI 8.3", "NdkSrqReceive", full, SRQ),
    KIT_CASE("SRQ-021", "the depth is changed", "NDKPI 11.1", "NdkModifySrq", other_depths, SRQ),
    KIT_CASE("SRQ-030", "one notification below the threshold", "lifetime 11",
             "NdkSrqNotificationCallback", below_the_threshold, SRQ),
    KIT_CASE("SRQ-031", "threshold 0: no notification", "lifetime 11", "NdkSrqNotificationCallback",
             never, SRQ),
    KIT_CASE("SRQ-032", "a threshold arms again, and at once", "NDKPI 11.1", "NdkModifySrq",
             armed_again, SRQ),
};

KIT_TOPIC(srq, "shared receive queues");
