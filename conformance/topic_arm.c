// SPDX-License-Identifier: MIT
/*
 * Arming and notification: the tables of lifetime 5.2 and 5.3, a case for each cell, and the races
 * of 5.1. The client watches its receive CQ; completions of each kind come into it:
 *
 *   ordinary   a receive met by a Send of the obedient server
 *   solicited  ... by a Send with NDK_OP_FLAG_SEND_AND_SOLICIT_EVENT
 *   error      a receive of a second QP at the same CQ, which is flushed here
 *
 * That nothing comes is looked at after the completion was polled, and a moment later.
 */
#include "kit.h"

enum event { NOTHING, ORDINARY, SOLICITED, ERROR };

#define LENGTH   16
#define RECEIVES 16

struct watched {
    struct kit *k;
    struct kit_end end;
    struct kit_qp *spare;
    struct kit_memory *memory;
};

static BOOLEAN post(struct kit_memory *memory, struct kit_qp *qp)
{
    NDK_SGE sge = kit_sge(memory, 0, LENGTH);

    return kit_ok(kit_receive(qp, &sge, 1));
}

static BOOLEAN watched_open(struct kit *k, struct watched **out)
{
    static const struct kit_end_options options = {.cq_depth = 64};
    struct watched *w = kit_alloc(k, sizeof *w);

    TRY_OR_FALSE(w != NULL);
    *out = w;
    w->k = k;
    TRY_OR_FALSE(kit_end_open(k, &options, &w->end));
    TRY_OR_FALSE(kit_memory_new(w->end.pd, PAGE_SIZE, NDK_MR_FLAG_ALLOW_LOCAL_WRITE, &w->memory));
    for (ULONG i = 0; i < RECEIVES; i++)
        TRY_OR_FALSE(post(w->memory, w->end.qp));
    return kit_end_connect(&w->end, &options);
}

/* Brings a completion of that kind about; it may come a little later. */
static BOOLEAN happen(struct watched *w, enum event event)
{
    switch (event) {
    case ORDINARY:
        return kit_order_send(w->k, 1, LENGTH, 0, 1);
    case SOLICITED:
        return kit_order_send(w->k, 1, LENGTH, NDK_OP_FLAG_SEND_AND_SOLICIT_EVENT, 1);
    case ERROR:
        TRY_OR_FALSE(kit_qp_new(w->end.pd, w->end.receive, w->end.initiator, NULL, &w->spare));
        TRY_OR_FALSE(post(w->memory, w->spare));
        kit_flush(w->spare);
        return TRUE;
    default:
        return TRUE;
    }
}

static BOOLEAN arrives(struct watched *w, enum event event)
{
    struct kit_result result;

    TRY_OR_FALSE(happen(w, event));
    TRY_OR_FALSE(kit_cq_poll_next(w->end.receive, &result));
    return kit_status(w->k, KIT_HERE, "the completion", result.status,
                      event == ERROR ? STATUS_CANCELLED : STATUS_SUCCESS);
}

static BOOLEAN satisfies(ULONG type, enum event event)
{
    if (type == NDK_CQ_NOTIFY_ANY)
        return event != NOTHING;
    return (BOOLEAN)(type == NDK_CQ_NOTIFY_SOLICITED && event >= SOLICITED);
}

#define CELL(first, second, event) ((LONG_PTR)((first) << 8 | (second) << 4 | (event)))
#define FIRST(k)                   ((ULONG)((k)->test->arg >> 8 & 15))
#define SECOND(k)                  ((ULONG)((k)->test->arg >> 4 & 15))
#define EVENT(k)                   ((enum event)((k)->test->arg & 15))

/* ---- 5.3: what satisfies what --------------------------------------------------------------- */

static VOID armed_then_event(struct kit *k)
{
    ULONG type = FIRST(k);
    LONG need = satisfies(type, EVENT(k));
    struct watched *w;

    TRY(watched_open(k, &w));
    kit_cq_arm(w->end.receive, type);
    TRY(arrives(w, EVENT(k)));
    if (need)
        TRY(kit_cq_wait_notified(w->end.receive, 1));
    TRY(kit_cq_notified_is(w->end.receive, need));
    CHECK_STATUS(k, "CqStatus", w->end.receive->status, STATUS_SUCCESS);
}

/* ---- 5.2: arming over queued completions ---------------------------------------------------- */

static VOID event_then_armed(struct kit *k)
{
    ULONG type = FIRST(k);
    LONG need = satisfies(type, EVENT(k));
    struct watched *w;

    TRY(watched_open(k, &w));
    TRY(happen(w, EVENT(k)));
    kit_settle(k); /* it mostly is there now; if not, the arm is satisfied later all the same */
    TRY(kit_cq_notified_is(w->end.receive, 0));
    kit_cq_arm(w->end.receive, type);
    if (need)
        TRY(kit_cq_wait_notified(w->end.receive, 1));
    TRY(kit_cq_notified_is(w->end.receive, need));
}

/* Notified once of a completion that nobody takes, then armed again: whether that is satisfied at
 * once is the provider's choice, but a new completion must not be missed. */
static VOID armed_without_draining(struct kit *k)
{
    struct watched *w;
    LONG before;

    TRY(watched_open(k, &w));
    kit_cq_arm(w->end.receive, NDK_CQ_NOTIFY_ANY);
    TRY(happen(w, ORDINARY));
    TRY(kit_cq_wait_notified(w->end.receive, 1));
    kit_cq_arm(w->end.receive, NDK_CQ_NOTIFY_ANY);
    kit_settle(k);
    before = kit_os_get(&w->end.receive->notified);
    CHECK(k, before <= 2, "%d notifications for two arms", (int)before);
    if (before == 2)
        kit_cq_arm(w->end.receive, NDK_CQ_NOTIFY_ANY);
    TRY(happen(w, ORDINARY));
    TRY(kit_cq_wait_notified(w->end.receive, before + 1));
}

static VOID one_arm_one_notification(struct kit *k)
{
    struct watched *w;

    TRY(watched_open(k, &w));
    kit_cq_arm(w->end.receive, NDK_CQ_NOTIFY_ANY);
    for (ULONG i = 0; i < 4; i++)
        TRY(arrives(w, ORDINARY));
    TRY(kit_cq_wait_notified(w->end.receive, 1));
    TRY(kit_cq_notified_is(w->end.receive, 1));
}

static VOID no_arm_no_notification(struct kit *k)
{
    struct watched *w;

    TRY(watched_open(k, &w));
    TRY(arrives(w, SOLICITED));
    TRY(arrives(w, ERROR));
    TRY(kit_cq_notified_is(w->end.receive, 0));
}

/* ---- 5.2: a second arm before the first fired ----------------------------------------------- */

static ULONG stronger(ULONG a, ULONG b)
{
    if (a == NDK_CQ_NOTIFY_ANY || b == NDK_CQ_NOTIFY_ANY)
        return NDK_CQ_NOTIFY_ANY;
    return a == NDK_CQ_NOTIFY_SOLICITED || b == NDK_CQ_NOTIFY_SOLICITED ? NDK_CQ_NOTIFY_SOLICITED
                                                                        : NDK_CQ_NOTIFY_ERRORS;
}

static VOID armed_twice(struct kit *k)
{
    ULONG result = stronger(FIRST(k), SECOND(k));
    LONG told = 0;
    struct watched *w;

    TRY(watched_open(k, &w));
    kit_cq_arm(w->end.receive, FIRST(k));
    kit_cq_arm(w->end.receive, SECOND(k));
    TRY(kit_cq_notified_is(w->end.receive, 0));
    for (ULONG event = ORDINARY; event <= ERROR; event++) {
        TRY(arrives(w, (enum event)event));
        if (!told && satisfies(result, (enum event)event)) {
            told = 1;
            TRY(kit_cq_wait_notified(w->end.receive, 1));
        }
        TRY(kit_cq_notified_is(w->end.receive, told)); /* one for both arms */
    }
}

/* ---- 5.3, 5.5: overrun ---------------------------------------------------------------------- */

#define NARROW 4
#define FLOOD  32

/* More flushed receives than the CQ has room for. Whatever was armed, the arm is told of it; ANY
 * and SOLICITED perhaps of the first flushes before, so the arm is renewed. */
static VOID overrun(struct kit *k)
{
    ULONG type = FIRST(k), count = 0, n;
    struct kit_result results[FLOOD];
    struct kit_adapter *adapter;
    struct kit_cq *narrow, *other;
    struct kit_memory *memory;
    struct kit_pd *pd;
    struct kit_qp *qp;

    TRY(kit_adapter_open(k, &adapter));
    TRY(kit_pd_new(adapter, &pd));
    TRY(kit_cq_new(adapter, NARROW, &narrow));
    TRY(kit_cq_new(adapter, FLOOD, &other));
    TRY(kit_memory_new(pd, PAGE_SIZE, NDK_MR_FLAG_ALLOW_LOCAL_WRITE, &memory));
    TRY(kit_qp_new(pd, narrow, other, NULL, &qp));
    if (kit_qp_modest(adapter).receive_depth < FLOOD)
        TRY(kit_skip(k, "the adapter's receive queues are too short to overrun a CQ"));
    for (ULONG i = 0; i < FLOOD; i++)
        TRY(post(memory, qp));
    kit_cq_arm(narrow, type);
    kit_flush(qp);
    TRY(kit_close(&qp->object)); /* behind all flushes */
    for (;;) {
        kit_cq_arm(narrow, type);
        kit_settle(k);
        if (kit_os_get(&narrow->dead))
            break;
        n = kit_cq_poll(narrow, results, FLOOD);
        count += n;
        if (count == FLOOD)
            TRY(kit_skip(k, "the provider gives a CQ more room than it was asked for"));
        if (n == 0)
            TRY(kit_wait_number(k, &narrow->dead, 1, "the notification of an overrun"));
    }
    CHECK_STATUS(k, "CqStatus", narrow->status, STATUS_BUFFER_OVERFLOW);
}

/* ---- 5.1: serialization, and the race between empty and arm --------------------------------- */

struct slow {
    KEVENT begun;
};

static VOID slow_notification(struct kit_cq *cq, NTSTATUS status)
{
    struct slow *slow = cq->context;

    (void)status;
    KeSetEvent(&slow->begun, IO_NO_INCREMENT, FALSE);
    kit_os_stall_ms(100);
}

/* While the notification runs, completions come and the CQ is armed: the next notification waits
 * for this one's return (the kit sees an overlap), and it does come. */
static VOID armed_during_notification(struct kit *k)
{
    struct slow *slow = kit_alloc(k, sizeof *slow);
    struct watched *w;

    TRY(slow != NULL);
    KeInitializeEvent(&slow->begun, SynchronizationEvent, FALSE);
    TRY(watched_open(k, &w));
    w->end.receive->context = slow;
    w->end.receive->in_callback = slow_notification;
    kit_cq_arm(w->end.receive, NDK_CQ_NOTIFY_ANY);
    for (LONG i = 1; i <= 4; i++) {
        TRY(happen(w, ORDINARY));
        TRY(kit_wait(k, &slow->begun, "a notification"));
        kit_cq_arm(w->end.receive, NDK_CQ_NOTIFY_ANY); /* for the next one */
    }
    TRY(kit_cq_wait_notified(w->end.receive, 4));
}

/*
 * The same with completions from two connections, which a provider may serve on two processors: one
 * CQ takes the Reads of two QPs, by turns, each while the notification of the one before runs.
 */
struct twin {
    struct kit_end b; /* passive: listener, PD, CQ and the memory that is read */
    struct kit_memory *source, *sink;
    struct kit_qp *qps[2];
    struct kit_cq *shared;
};

static BOOLEAN twin_connect(struct twin *t, struct kit_qp *qp, struct kit_adapter *adapter,
                            const SOCKADDR_INET *address)
{
    struct kit_connector *active, *passive;
    struct kit_call *connect, *accept;
    struct kit_qp *other;

    TRY_OR_FALSE(kit_qp_new(t->b.pd, t->b.receive, t->b.initiator, NULL, &other));
    TRY_OR_FALSE(kit_connector_new(adapter, &active));
    connect = kit_connect_start(active, qp, address, NULL);
    TRY_OR_FALSE(kit_incoming(t->b.listener, &passive));
    accept = kit_accept_start(passive, other, NULL);
    TRY_OR_FALSE(kit_answer_is(connect, STATUS_SUCCESS));
    TRY_OR_FALSE(kit_answer_is(kit_complete_start(active), STATUS_SUCCESS));
    return kit_answer_is(accept, STATUS_SUCCESS);
}

static BOOLEAN twin_open(struct kit *k, struct twin *t)
{
    struct kit_adapter *adapter;
    struct kit_cq *receive[2]; /* made one after the other, so that a provider deals them out */
    SOCKADDR_INET address;
    struct kit_pd *pd;

    TRY_OR_FALSE(kit_end_open(k, NULL, &t->b));
    TRY_OR_FALSE(kit_listener_new(t->b.adapter, &t->b.listener));
    TRY_OR_FALSE(kit_listen(t->b.listener, &address));
    TRY_OR_FALSE(kit_memory_new(t->b.pd, PAGE_SIZE, NDK_MR_FLAG_ALLOW_REMOTE_READ, &t->source));
    TRY_OR_FALSE(kit_adapter_open(k, &adapter));
    TRY_OR_FALSE(kit_pd_new(adapter, &pd));
    TRY_OR_FALSE(kit_cq_new(adapter, 16, &t->shared));
    TRY_OR_FALSE(kit_memory_new(
        pd, PAGE_SIZE, NDK_MR_FLAG_ALLOW_LOCAL_WRITE | NDK_MR_FLAG_RDMA_READ_SINK, &t->sink));
    for (ULONG i = 0; i < 2; i++)
        TRY_OR_FALSE(kit_cq_new(adapter, 16, &receive[i]));
    for (ULONG i = 0; i < 2; i++) {
        TRY_OR_FALSE(kit_qp_new(pd, receive[i], t->shared, NULL, &t->qps[i]));
        TRY_OR_FALSE(twin_connect(t, t->qps[i], adapter, &address));
    }
    return TRUE;
}

static VOID two_connections_one_cq(struct kit *k)
{
    struct slow *slow = kit_alloc(k, sizeof *slow);
    struct twin *t = kit_alloc(k, sizeof *t);
    NDK_SGE sge;

    TRY(slow && t);
    KeInitializeEvent(&slow->begun, SynchronizationEvent, FALSE);
    TRY(twin_open(k, t));
    t->shared->context = slow;
    t->shared->in_callback = slow_notification;
    kit_cq_arm(t->shared, NDK_CQ_NOTIFY_ANY);
    for (LONG i = 0; i < 6; i++) {
        sge = kit_sge(t->sink, 64 * (ULONG)i, 64);
        TRY(kit_ok(kit_read(t->qps[i % 2], &sge, 1, (UINT64)(ULONG_PTR)t->source->data,
                            t->source->remote, 0)));
        TRY(kit_wait(k, &slow->begun, "a notification"));
        kit_cq_arm(t->shared, NDK_CQ_NOTIFY_ANY);
    }
    TRY(kit_cq_wait_notified(t->shared, 6));
}

/* An arm inside the notification, over completions that came after it began. */
struct rearm {
    KEVENT begun;
    volatile LONG stage;
};

static VOID rearm_notification(struct kit_cq *cq, NTSTATUS status)
{
    struct rearm *rearm = cq->context;

    (void)status;
    if (kit_os_add(&rearm->stage, 1) != 1)
        return;
    KeSetEvent(&rearm->begun, IO_NO_INCREMENT, FALSE);
    kit_os_stall_ms(100); /* the second completion comes now */
    kit_cq_arm(cq, NDK_CQ_NOTIFY_ANY);
}

static VOID armed_inside_notification(struct kit *k)
{
    struct rearm *rearm = kit_alloc(k, sizeof *rearm);
    struct watched *w;

    TRY(rearm != NULL);
    KeInitializeEvent(&rearm->begun, NotificationEvent, FALSE);
    TRY(watched_open(k, &w));
    w->end.receive->context = rearm;
    w->end.receive->in_callback = rearm_notification;
    kit_cq_arm(w->end.receive, NDK_CQ_NOTIFY_ANY);
    TRY(happen(w, ORDINARY));
    TRY(kit_wait(k, &rearm->begun, "the first notification"));
    TRY(happen(w, ORDINARY));
    TRY(kit_cq_wait_notified(w->end.receive, 2));
}

/* The pattern of every consumer: in the notification poll to empty, then arm (lifetime 5.1). */
struct drain {
    struct watched *w;
    volatile LONG results, bad;
};

static VOID draining_notification(struct kit_cq *cq, NTSTATUS status)
{
    struct drain *drain = cq->context;
    struct kit_result result;

    (void)status;
    while (kit_cq_poll(cq, &result, 1) == 1) {
        NDK_SGE sge = kit_sge(drain->w->memory, 0, LENGTH);
        struct kit_request *again;

        if (result.status != STATUS_SUCCESS) {
            kit_os_add(&drain->bad, 1);
            continue;
        }
        again = kit_receive(drain->w->end.qp, &sge, 1);
        if (!again || again->posted != STATUS_SUCCESS)
            kit_os_add(&drain->bad, 1);
        kit_os_add(&drain->results, 1);
    }
    kit_cq_arm(cq, NDK_CQ_NOTIFY_ANY);
}

#define ROUNDS 25
#define BURST  8

static VOID drained_in_notifications(struct kit *k)
{
    struct drain *drain = kit_alloc(k, sizeof *drain);
    struct watched *w;

    TRY(drain != NULL);
    TRY(watched_open(k, &w));
    drain->w = w;
    w->end.receive->context = drain;
    w->end.receive->in_callback = draining_notification;
    kit_cq_arm(w->end.receive, NDK_CQ_NOTIFY_ANY);
    for (LONG round = 1; round <= ROUNDS; round++) {
        TRY(kit_order_send(k, BURST, LENGTH, 0, 1));
        TRY(kit_order_sent(k));
        TRY(kit_wait_number(k, &drain->results, round * BURST, "the results of a burst"));
    }
    CHECK_EQUAL(k, "results with errors", kit_os_get(&drain->bad), 0);
}

/* Polled empty, a completion comes, armed: each of many completions is waited for by a notification
 * alone, so that a lost one ends the case. */
static VOID empty_then_armed(struct kit *k)
{
    struct kit_result result;
    struct watched *w;

    TRY(watched_open(k, &w));
    for (ULONG round = 0; round < ROUNDS; round++) {
        TRY(kit_order_send(k, BURST, LENGTH, 0, 1));
        for (ULONG i = 0; i < BURST; i++) {
            TRY(kit_cq_next(w->end.receive, &result));
            CHECK_STATUS(k, "a receive", result.status, STATUS_SUCCESS);
            TRY(post(w->memory, w->end.qp));
        }
        TRY(kit_order_sent(k));
    }
}

/* ---- the table ------------------------------------------------------------------------------ */

#define ANY     NDK_CQ_NOTIFY_ANY
#define ERRORS  NDK_CQ_NOTIFY_ERRORS
#define SOLICIT NDK_CQ_NOTIFY_SOLICITED

#define ROW(id_, title_, reference_, run_, ...)                                                    \
    KIT_CASE_TWO(id_, title_, reference_, "NdkArmCq", kit_obey, run_, __VA_ARGS__)
#define HITS(id_, title_, type_, event_)                                                           \
    ROW(id_, title_, "lifetime 5.3", armed_then_event, .arg = CELL(type_, 0, event_))
#define OVER(id_, title_, type_, event_)                                                           \
    ROW(id_, title_, "lifetime 5.2", event_then_armed, .arg = CELL(type_, 0, event_))
#define TWICE(id_, title_, first_, second_)                                                        \
    ROW(id_, title_, "lifetime 5.2", armed_twice, .arg = CELL(first_, second_, NOTHING))

static const struct kit_case cases[] = {
    HITS("ARM-001", "ERRORS, an ordinary completion: nothing", ERRORS, ORDINARY),
    HITS("ARM-002", "ERRORS, a solicited completion: nothing", ERRORS, SOLICITED),
    HITS("ARM-003", "ERRORS, a failed request: nothing", ERRORS, ERROR),
    HITS("ARM-004", "SOLICITED, an ordinary completion: nothing", SOLICIT, ORDINARY),
    HITS("ARM-005", "SOLICITED, a solicited completion: notified", SOLICIT, SOLICITED),
    HITS("ARM-006", "SOLICITED, a failed request: notified", SOLICIT, ERROR),
    HITS("ARM-007", "ANY, an ordinary completion: notified", ANY, ORDINARY),
    HITS("ARM-008", "ANY, a solicited completion: notified", ANY, SOLICITED),
    HITS("ARM-009", "ANY, a failed request: notified", ANY, ERROR),
    KIT_CASE("ARM-010", "ERRORS, an overrun: notified with BUFFER_OVERFLOW", "lifetime 5.3",
             "NdkArmCq", overrun, .arg = CELL(ERRORS, 0, 0)),
    KIT_CASE("ARM-011", "SOLICITED, an overrun: notified with BUFFER_OVERFLOW", "lifetime 5.3",
             "NdkArmCq", overrun, .arg = CELL(SOLICIT, 0, 0)),
    KIT_CASE("ARM-012", "ANY, an overrun: notified with BUFFER_OVERFLOW", "lifetime 5.3",
             "NdkArmCq", overrun, .arg = CELL(ANY, 0, 0)),

    OVER("ARM-020", "ANY over an ordinary completion: at once", ANY, ORDINARY),
    OVER("ARM-021", "ANY over a failed request: at once", ANY, ERROR),
    OVER("ARM-022", "SOLICITED over a solicited completion: at once", SOLICIT, SOLICITED),
    OVER("ARM-023", "SOLICITED over a failed request: at once", SOLICIT, ERROR),
    OVER("ARM-024", "SOLICITED over an ordinary completion: nothing", SOLICIT, ORDINARY),
    OVER("ARM-025", "ERRORS over a failed request: nothing", ERRORS, ERROR),
    OVER("ARM-026", "ANY over an empty CQ: nothing", ANY, NOTHING),
    ROW("ARM-027", "armed without draining, a new completion is not missed", "lifetime 5.2",
        armed_without_draining),
    ROW("ARM-028", "an arm is good for one notification", "lifetime 5.2", one_arm_one_notification),
    ROW("ARM-029", "no arm, no notification", "lifetime 5.2", no_arm_no_notification),

    TWICE("ARM-030", "ANY and ANY make ANY", ANY, ANY),
    TWICE("ARM-031", "ANY and ERRORS make ANY", ANY, ERRORS),
    TWICE("ARM-032", "ANY and SOLICITED make ANY", ANY, SOLICIT),
    TWICE("ARM-033", "ERRORS and ANY make ANY", ERRORS, ANY),
    TWICE("ARM-034", "ERRORS and ERRORS make ERRORS", ERRORS, ERRORS),
    TWICE("ARM-035", "ERRORS and SOLICITED make SOLICITED", ERRORS, SOLICIT),
    TWICE("ARM-036", "SOLICITED and ANY make ANY", SOLICIT, ANY),
    TWICE("ARM-037", "SOLICITED and ERRORS make SOLICITED", SOLICIT, ERRORS),
    TWICE("ARM-038", "SOLICITED and SOLICITED make SOLICITED", SOLICIT, SOLICIT),

    ROW("ARM-040", "armed while its notification runs: the next one follows it", "lifetime 5.1",
        armed_during_notification),
    ROW("ARM-041", "armed inside its notification over what came meanwhile", "lifetime 5.2",
        armed_inside_notification),
    KIT_CASE("ARM-044", "one CQ of two connections: its notifications do not overlap",
             "lifetime 5.1", "NdkArmCq", two_connections_one_cq,
             .needs = KIT_NEEDS_LOOPBACK | KIT_NEEDS_READ),
    ROW("ARM-042", "each notification polls to empty and arms: all are received", "lifetime 5.1",
        drained_in_notifications),
    ROW("ARM-043", "polled empty, then armed: no completion is missed", "lifetime 5.2",
        empty_then_armed),
};

KIT_TOPIC(arm, "arming completion queues, and their notifications");
