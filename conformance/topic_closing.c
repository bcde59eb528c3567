// SPDX-License-Identifier: MIT
/*
 * Closing, rules C1 to C9 (lifetime 4): what a close waits for, what it cancels, and from where it
 * may be called. Most of the judging is done by what the kit always watches; the cases bring about
 * the situations. A callback that takes its time (linger) widens the moment in which a provider
 * that looks at calls instead of returns would be caught.
 */
#include "kit.h"

#define LINGER_MS 100

static VOID linger(struct kit_call *call, PVOID context)
{
    (void)call;
    (void)context;
    kit_os_stall_ms(LINGER_MS);
}

/* ---- antecedents first ---------------------------------------------------------------------- */

/*
 * The antecedent's close is called while the successor is open: it must pend, and be done after the
 * successor's close completion, which lingers, has returned (C6, C7).
 */
static VOID antecedent_first(struct kit *k, struct kit_object *antecedent,
                             struct kit_object *successor)
{
    struct kit_call *first = kit_close_start(antecedent), *second;

    TRY(first != NULL);
    CHECK_STATUS(k, "closing an object that others depend on", first->returned, STATUS_PENDING);
    kit_settle(k);
    second = kit_close_then(successor, linger, NULL);
    TRY(kit_answer_is(second, STATUS_SUCCESS));
    TRY(kit_answer_is(first, STATUS_SUCCESS));
}

enum pair { PD_MR, PD_MW, PD_SRQ, PD_QP, RECEIVE_CQ_QP, INITIATOR_CQ_QP, SRQ_QP };

static VOID pairs(struct kit *k)
{
    enum pair which = (enum pair)k->test->arg;
    struct kit_adapter *adapter;
    struct kit_cq *receive, *initiator;
    struct kit_pd *pd;
    struct kit_mr *mr;
    struct kit_mw *mw;
    struct kit_qp *qp;
    struct kit_srq *srq = NULL;

    TRY(kit_adapter_open(k, &adapter));
    TRY(kit_pd_new(adapter, &pd));
    if (which == PD_MR) {
        TRY(kit_mr_new(pd, FALSE, &mr));
        antecedent_first(k, &pd->object, &mr->object);
        return;
    }
    if (which == PD_MW) {
        TRY(kit_mw_new(pd, &mw));
        antecedent_first(k, &pd->object, &mw->object);
        return;
    }
    if (which == PD_SRQ || which == SRQ_QP)
        TRY(kit_answer_is(kit_srq_start(pd, 16, 1, 0, &srq), STATUS_SUCCESS));
    if (which == PD_SRQ) {
        antecedent_first(k, &pd->object, &srq->object);
        return;
    }
    TRY(kit_cq_new(adapter, 16, &receive));
    TRY(kit_cq_new(adapter, 16, &initiator));
    TRY(kit_answer_is(kit_qp_start(pd, receive, initiator, srq, NULL, &qp), STATUS_SUCCESS));
    antecedent_first(k,
                     which == PD_QP             ? &pd->object
                     : which == RECEIVE_CQ_QP   ? &receive->object
                     : which == INITIATOR_CQ_QP ? &initiator->object
                                                : &srq->object,
                     &qp->object);
}

static VOID qp_before_connector(struct kit *k)
{
    struct kit_pair pair;

    TRY(kit_pair_open(k, NULL, &pair));
    antecedent_first(k, &pair.a.qp->object, &pair.a.connector->object);
    antecedent_first(k, &pair.b.qp->object, &pair.b.connector->object);
}

static VOID listener_before_connector(struct kit *k)
{
    struct kit_pair pair;

    TRY(kit_pair_open(k, NULL, &pair));
    antecedent_first(k, &pair.b.listener->object, &pair.b.connector->object);
}

static VOID endpoint_before_connector(struct kit *k)
{
    struct kit_endpoint *endpoint;
    struct kit_call *connect;
    SOCKADDR_INET address;
    struct kit_pair pair;

    TRY(kit_pair_apart(k, &pair, &address));
    TRY(kit_answer_is(kit_endpoint_start(pair.a.adapter, &k->config->local, &endpoint),
                      STATUS_SUCCESS));
    connect = kit_connect_endpoint(pair.a.connector, pair.a.qp, endpoint, &address, NULL);
    TRY(kit_incoming(pair.b.listener, &pair.b.connector));
    TRY(kit_accept_start(pair.b.connector, pair.b.qp, NULL) != NULL);
    TRY(kit_answer_is(connect, STATUS_SUCCESS));
    antecedent_first(k, &endpoint->object, &pair.a.connector->object);
}

/* Everything of a connected pair, antecedents first, none waited for. */
static VOID upside_down(struct kit *k)
{
    struct kit_pair pair;
    struct kit_end *ends[2] = {&pair.a, &pair.b};
    struct kit_call *calls[16];
    ULONG count = 0;

    TRY(kit_pair_open(k, NULL, &pair));
    for (ULONG i = 0; i < 2; i++) {
        calls[count++] = kit_close_start(&ends[i]->pd->object);
        calls[count++] = kit_close_start(&ends[i]->receive->object);
        calls[count++] = kit_close_start(&ends[i]->initiator->object);
        calls[count++] = kit_close_start(&ends[i]->qp->object);
    }
    for (ULONG i = 0; i < count; i++)
        CHECK_STATUS(k, calls[i]->name, calls[i]->returned, STATUS_PENDING);
    calls[count++] = kit_close_start(&pair.b.listener->object);
    calls[count++] = kit_close_then(&pair.a.connector->object, linger, NULL);
    calls[count++] = kit_close_then(&pair.b.connector->object, linger, NULL);
    for (ULONG i = 0; i < count; i++)
        TRY(kit_answer_is(calls[i], STATUS_SUCCESS));
}

/* A QP whose CQs and PD are closing already still flushes into them until it is closed itself. */
static VOID successor_still_works(struct kit *k)
{
    struct kit_request *receive;
    struct kit_memory *memory;
    struct kit_call *pd, *cq;
    struct kit_end end;
    NDK_SGE sge;

    TRY(kit_end_open(k, NULL, &end));
    TRY(kit_memory_new(end.pd, 64, NDK_MR_FLAG_ALLOW_LOCAL_WRITE, &memory));
    pd = kit_close_start(&end.pd->object);
    sge = kit_sge(memory, 0, 64);
    TRY(kit_ok(receive = kit_receive(end.qp, &sge, 1)));
    kit_flush(end.qp);
    TRY(kit_expect(receive, STATUS_CANCELLED, NULL));
    cq = kit_close_start(&end.receive->object);
    TRY(kit_close(&end.qp->object));
    TRY(kit_answer_is(cq, STATUS_SUCCESS));
    TRY(kit_answer_is(kit_deregister_start(memory->mr), STATUS_SUCCESS));
    TRY(kit_close(&memory->mr->object));
    TRY(kit_answer_is(pd, STATUS_SUCCESS));
}

/* Regions are closed and forgotten; the domain's close is the barrier (lifetime 4.4). */
static VOID domain_is_the_barrier(struct kit *k)
{
    struct kit_adapter *adapter;
    struct kit_mr *regions[16];
    struct kit_pd *pd;

    TRY(kit_adapter_open(k, &adapter));
    TRY(kit_pd_new(adapter, &pd));
    for (ULONG i = 0; i < RTL_NUMBER_OF(regions); i++)
        TRY(kit_mr_new(pd, FALSE, &regions[i]));
    for (ULONG i = 0; i < RTL_NUMBER_OF(regions); i++)
        TRY(kit_close_then(&regions[i]->object, linger, NULL) != NULL);
    TRY(kit_close(&pd->object));
}

/* The order of Microsoft's sample consumer (lifetime 4.5). */
static VOID as_the_sample_does(struct kit *k)
{
    struct kit_memory *memory;
    struct kit_result result;
    struct kit_pair pair;
    struct kit_end *end = &pair.a;
    NDK_SGE sge;

    TRY(kit_pair_open(k, NULL, &pair));
    TRY(kit_memory_new(end->pd, 256, NDK_MR_FLAG_ALLOW_LOCAL_WRITE, &memory));
    for (ULONG i = 0; i < 4; i++) {
        sge = kit_sge(memory, 64 * i, 64);
        TRY(kit_ok(kit_receive(end->qp, &sge, 1)));
    }
    kit_flush(end->qp);
    TRY(kit_close(&end->connector->object));
    for (ULONG i = 0; i < 4; i++) {
        TRY(kit_cq_next(end->receive, &result));
        CHECK_STATUS(k, "a flushed receive", result.status, STATUS_CANCELLED);
    }
    TRY(kit_close(&end->qp->object));
    TRY(kit_close(&end->receive->object));
    TRY(kit_close(&end->initiator->object));
    TRY(kit_answer_is(kit_deregister_start(memory->mr), STATUS_SUCCESS));
    (void)kit_close_start(&memory->mr->object);
    TRY(kit_close(&end->pd->object));
    TRY(kit_adapter_close(end->adapter));
}

/* ---- what a close cancels ------------------------------------------------------------------- */

/* Four receives; the QP's close puts their flushes into the CQ before it is done (C3, L4). */
static VOID qp_close_flushes(struct kit *k)
{
    struct kit_request *receives[4];
    struct kit_memory *memory;
    struct kit_result result;
    struct kit_end end;
    NDK_SGE sge;

    TRY(kit_end_open(k, NULL, &end));
    TRY(kit_memory_new(end.pd, 256, NDK_MR_FLAG_ALLOW_LOCAL_WRITE, &memory));
    for (ULONG i = 0; i < 4; i++) {
        sge = kit_sge(memory, 64 * i, 64);
        TRY(kit_ok(receives[i] = kit_receive(end.qp, &sge, 1)));
    }
    TRY(kit_close(&end.qp->object));
    for (ULONG i = 0; i < 4; i++) {
        CHECK_EQUAL(k, "results in the CQ once the QP is closed",
                    kit_cq_poll(end.receive, &result, 1), 1);
        CHECK(k, result.request == receives[i], "the flushed receives come out of order");
        CHECK_STATUS(k, "a flushed receive", result.status, STATUS_CANCELLED);
    }
    TRY(kit_cq_is_empty(end.receive));
}

/* An armed CQ is told of the flushes of a close like of any completion. */
static VOID qp_close_notifies(struct kit *k)
{
    struct kit_memory *memory;
    struct kit_result result;
    struct kit_end end;
    NDK_SGE sge;

    TRY(kit_end_open(k, NULL, &end));
    TRY(kit_memory_new(end.pd, 64, NDK_MR_FLAG_ALLOW_LOCAL_WRITE, &memory));
    sge = kit_sge(memory, 0, 64);
    TRY(kit_ok(kit_receive(end.qp, &sge, 1)));
    kit_cq_arm(end.receive, NDK_CQ_NOTIFY_SOLICITED);
    TRY(kit_close_start(&end.qp->object) != NULL);
    TRY(kit_cq_wait_notified(end.receive, 1));
    CHECK_EQUAL(k, "results", kit_cq_poll(end.receive, &result, 1), 1);
    CHECK_STATUS(k, "a flushed receive", result.status, STATUS_CANCELLED);
}

/* The peer never decides; the close ends the connect first (C4a, L3). */
static VOID close_cancels_connect(struct kit *k)
{
    static const NTSTATUS allowed[] = {STATUS_CANCELLED, STATUS_CONNECTION_ABORTED, STATUS_PENDING};
    struct kit_call *connect, *close;
    SOCKADDR_INET address;
    struct kit_pair pair;

    TRY(kit_pair_apart(k, &pair, &address));
    kit_next_then(k, linger, NULL);
    connect = kit_connect_start(pair.a.connector, pair.a.qp, &address, NULL);
    TRY(connect != NULL);
    CHECK_STATUS(k, "NdkConnect that nobody has answered", connect->returned, STATUS_PENDING);
    TRY(kit_incoming(pair.b.listener, &pair.b.connector));
    close = kit_close_start(&pair.a.connector->object);
    TRY(close != NULL);
    CHECK_STATUS(k, "closing it meanwhile", close->returned, STATUS_PENDING);
    TRY(kit_answer_is(close, STATUS_SUCCESS));
    TRY(kit_status_among(k, KIT_HERE, "the cancelled connect", kit_answer(connect), allowed));
}

/* A completion that says when it has begun, and then takes its time. */
static VOID begin_and_linger(struct kit_call *call, PVOID context)
{
    (void)call;
    KeSetEvent((PKEVENT)context, IO_NO_INCREMENT, FALSE);
    kit_os_stall_ms(LINGER_MS);
}

/* The object is closed while the completion of a request of it runs: until that has returned the
 * close pends (C4a). */
static VOID close_during(struct kit *k, struct kit_object *object, PKEVENT begun)
{
    struct kit_call *close;

    TRY(kit_wait(k, begun, "the completion to be under way"));
    close = kit_close_start(object);
    TRY(close != NULL);
    CHECK_STATUS(k, "closing an object while a completion of it runs", close->returned,
                 STATUS_PENDING);
    TRY(kit_answer_is(close, STATUS_SUCCESS));
}

static VOID region_during_completion(struct kit *k)
{
    struct kit_adapter *adapter;
    struct kit_memory *memory;
    struct kit_pd *pd;
    KEVENT *begun = kit_alloc(k, sizeof *begun);

    TRY(begun != NULL);
    KeInitializeEvent(begun, NotificationEvent, FALSE);
    TRY(kit_adapter_open(k, &adapter));
    TRY(kit_pd_new(adapter, &pd));
    TRY(kit_memory_bare(k, PAGE_SIZE, &memory));
    TRY(kit_mr_new(pd, FALSE, &memory->mr));
    TRY(kit_answer_mode(k, "always"));
    kit_next_then(k, begin_and_linger, begun);
    TRY(kit_register_start(memory->mr, memory->mdl, PAGE_SIZE, 0) != NULL);
    TRY(kit_wait(k, begun, "the completion of NdkRegisterMr"));
    TRY(kit_answer_mode(k, "never")); /* so that the close is done at once where it can be */
    close_during(k, &memory->mr->object, begun);
}

static VOID connector_during_completion(struct kit *k)
{
    SOCKADDR_INET address;
    struct kit_pair pair;
    KEVENT *begun = kit_alloc(k, sizeof *begun);

    TRY(begun != NULL);
    KeInitializeEvent(begun, NotificationEvent, FALSE);
    TRY(kit_pair_apart(k, &pair, &address));
    kit_next_then(k, begin_and_linger, begun);
    TRY(kit_connect_start(pair.a.connector, pair.a.qp, &address, NULL) != NULL);
    TRY(kit_incoming(pair.b.listener, &pair.b.connector));
    TRY(kit_accept_start(pair.b.connector, pair.b.qp, NULL) != NULL);
    close_during(k, &pair.a.connector->object, begun);
}

/* A registration that is left is ended with its region. */
static VOID close_deregisters(struct kit *k)
{
    struct kit_memory *memory, *again;
    struct kit_adapter *adapter;
    struct kit_pd *pd;

    TRY(kit_adapter_open(k, &adapter));
    TRY(kit_pd_new(adapter, &pd));
    TRY(kit_memory_new(pd, PAGE_SIZE, NDK_MR_FLAG_ALLOW_LOCAL_WRITE, &memory));
    TRY(kit_close(&memory->mr->object));
    TRY(kit_memory_new(pd, PAGE_SIZE, NDK_MR_FLAG_ALLOW_LOCAL_WRITE, &again));
}

/* ---- closing from inside callbacks ---------------------------------------------------------- */

/* C4b: the close pends, the callback still has its time, and then it is done. */
struct inside {
    struct kit_call *close;
    NTSTATUS returned;
    KEVENT closed; /* close was called */
};

static struct inside *inside_new(struct kit *k)
{
    struct inside *inside = kit_alloc(k, sizeof *inside);

    if (inside)
        KeInitializeEvent(&inside->closed, NotificationEvent, FALSE);
    return inside;
}

static VOID close_inside(struct kit_object *object, struct inside *inside)
{
    inside->close = kit_close_start(object);
    inside->returned = inside->close ? inside->close->returned : KIT_NO_ANSWER;
    KeSetEvent(&inside->closed, IO_NO_INCREMENT, FALSE);
    kit_os_stall_ms(LINGER_MS);
}

static VOID check_inside(struct kit *k, struct inside *inside, const char *what)
{
    TRY(kit_wait(k, &inside->closed, what));
    CHECK_STATUS(k, what, inside->returned, STATUS_PENDING);
    TRY(kit_answer_is(inside->close, STATUS_SUCCESS));
}

static VOID notified_closes(struct kit_cq *cq, NTSTATUS status)
{
    (void)status;
    close_inside(&cq->object, cq->context);
}

static VOID cq_in_its_notification(struct kit *k)
{
    struct kit_memory *memory;
    struct inside *inside = inside_new(k);
    struct kit_end end;
    NDK_SGE sge;

    TRY(inside != NULL);
    TRY(kit_end_open(k, NULL, &end));
    TRY(kit_memory_new(end.pd, 64, NDK_MR_FLAG_ALLOW_LOCAL_WRITE, &memory));
    sge = kit_sge(memory, 0, 64);
    TRY(kit_ok(kit_receive(end.qp, &sge, 1)));
    TRY(kit_close(&end.qp->object));
    end.receive->context = inside;
    end.receive->in_callback = notified_closes;
    kit_cq_arm(end.receive, NDK_CQ_NOTIFY_ANY);
    check_inside(k, inside, "closing a CQ inside its notification");
}

static VOID incoming_closes(struct kit_listener *listener, struct kit_connector *connector)
{
    (void)kit_close_start(&connector->object);
    close_inside(&listener->object, listener->context);
}

static VOID listener_in_its_event(struct kit *k)
{
    struct inside *inside = inside_new(k);
    struct kit_call *connect;
    SOCKADDR_INET address;
    struct kit_pair pair;

    TRY(inside != NULL);
    TRY(kit_pair_apart(k, &pair, &address));
    kit_on_connect(pair.b.listener, incoming_closes, inside);
    connect = kit_connect_start(pair.a.connector, pair.a.qp, &address, NULL);
    check_inside(k, inside, "closing a listener inside its connect event");
    TRY(kit_answer_is(connect, STATUS_CONNECTION_REFUSED));
}

static VOID disconnected_closes(struct kit_connector *connector)
{
    close_inside(&connector->object, connector->context);
}

static VOID connector_in_its_event(struct kit *k)
{
    struct inside *inside = inside_new(k);
    struct kit_pair pair;

    TRY(inside != NULL);
    TRY(kit_pair_open(k, NULL, &pair));
    kit_on_disconnect(pair.b.connector, disconnected_closes, inside);
    TRY(kit_disconnect_start(pair.a.connector) != NULL);
    check_inside(k, inside, "closing a connector inside its disconnect event");
}

/* An object is closed in the completion that created it, if the create pends. */
static VOID created_closes(struct kit_call *call, PVOID context)
{
    (void)context;
    if (call->status == STATUS_SUCCESS)
        (void)kit_close_start(call->object);
}

static VOID object_in_its_creation(struct kit *k)
{
    static const char *const modes[] = {"always", "early"};
    struct kit_adapter *adapter;

    TRY(kit_adapter_open(k, &adapter));
    for (ULONG i = 0; i < RTL_NUMBER_OF(modes); i++) {
        struct kit_call *call;
        struct kit_pd *pd;

        TRY(kit_answer_mode(k, modes[i]));
        kit_next_then(k, created_closes, NULL);
        call = kit_pd_start(adapter, &pd);
        TRY(kit_answer_is(call, STATUS_SUCCESS));
        CHECK(k, call->returned == STATUS_PENDING,
              "mode %s: NdkCreatePd returned %s, need "
              "STATUS_PENDING",
              modes[i], kit_status_name(call->returned));
        TRY(kit_answer_is(pd->object.close, STATUS_SUCCESS));
    }
}

/* L10: a create is a request of its parent. */
static VOID parent_during_creation(struct kit *k)
{
    struct kit_adapter *adapter;
    struct kit_call *create, *close;
    struct kit_mr *mr;
    struct kit_pd *pd;

    TRY(kit_adapter_open(k, &adapter));
    TRY(kit_pd_new(adapter, &pd));
    TRY(kit_answer_mode(k, "always"));
    create = kit_mr_start(pd, FALSE, &mr);
    close = kit_close_start(&pd->object);
    TRY(kit_answer_is(create, STATUS_SUCCESS));
    TRY(kit_close(&mr->object));
    TRY(kit_answer_is(close, STATUS_SUCCESS));
}

/* ---- C8: a listener's close refuses at once ------------------------------------------------- */

static VOID refuses_server(struct kit *k)
{
    struct kit_call *accept, *close;
    struct kit_end end;
    SOCKADDR_INET address;

    TRY(kit_end_open(k, NULL, &end));
    TRY(kit_listener_new(end.adapter, &end.listener));
    TRY(kit_listen(end.listener, &address));
    TRY(kit_tell(k, "listening", &address, sizeof address));
    TRY(kit_incoming(end.listener, &end.connector));
    accept = kit_accept_start(end.connector, end.qp, NULL);
    TRY(kit_answer_is(accept, STATUS_SUCCESS));
    close = kit_close_start(&end.listener->object);
    TRY(close != NULL);
    CHECK_STATUS(k, "closing a listener whose connector is open", close->returned, STATUS_PENDING);
    TRY(kit_tell(k, "closing", NULL, 0));
    TRY(kit_hear(k, "refused", NULL, 0));
    CHECK_EQUAL(k, "connect events", kit_os_get(&end.listener->events), 1);
    TRY(kit_close(&end.connector->object));
    TRY(kit_answer_is(close, STATUS_SUCCESS));
}

static VOID refuses_client(struct kit *k)
{
    struct kit_connector *second;
    struct kit_end end, other;
    SOCKADDR_INET address;

    TRY(kit_end_open(k, NULL, &end));
    TRY(kit_end_open(k, NULL, &other));
    TRY(kit_connector_new(end.adapter, &end.connector));
    TRY(kit_connector_new(other.adapter, &second));
    TRY(kit_hear(k, "listening", &address, sizeof address));
    TRY(kit_answer_is(kit_connect_start(end.connector, end.qp, &address, NULL), STATUS_SUCCESS));
    TRY(kit_answer_is(kit_complete_start(end.connector), STATUS_SUCCESS));
    TRY(kit_hear(k, "closing", NULL, 0));
    TRY(kit_answer_is(kit_connect_start(second, other.qp, &address, NULL),
                      STATUS_CONNECTION_REFUSED));
    TRY(kit_tell(k, "refused", NULL, 0));
}

/* A connector that came in and was not decided is rejected by the closes. */
static VOID undecided_server(struct kit *k)
{
    struct kit_end end;
    SOCKADDR_INET address;

    TRY(kit_end_open(k, NULL, &end));
    TRY(kit_listener_new(end.adapter, &end.listener));
    TRY(kit_listen(end.listener, &address));
    TRY(kit_tell(k, "listening", &address, sizeof address));
    TRY(kit_incoming(end.listener, &end.connector));
    TRY(kit_close(&end.connector->object));
    TRY(kit_close(&end.listener->object));
    TRY(kit_hear(k, "refused", NULL, 0));
}

static VOID undecided_client(struct kit *k)
{
    struct kit_end end;
    SOCKADDR_INET address;

    TRY(kit_end_open(k, NULL, &end));
    TRY(kit_connector_new(end.adapter, &end.connector));
    TRY(kit_hear(k, "listening", &address, sizeof address));
    TRY(kit_answer_is(kit_connect_start(end.connector, end.qp, &address, NULL),
                      STATUS_CONNECTION_REFUSED));
    TRY(kit_tell(k, "refused", NULL, 0));
}

#define PAIR(id_, what_, function_, which_, needs_)                                                \
    KIT_CASE(id_, what_, "lifetime C6, C7", function_, pairs, .arg = which_, .needs = needs_)

static const struct kit_case cases[] = {
    PAIR("CLO-001", "a PD waits for its MR", "NdkClosePd", PD_MR, 0),
    PAIR("CLO-002", "a PD waits for its MW", "NdkClosePd", PD_MW, KIT_NEEDS_MW),
    PAIR("CLO-003", "a PD waits for its SRQ", "NdkClosePd", PD_SRQ, KIT_NEEDS_SRQ),
    PAIR("CLO-004", "a PD waits for its QP", "NdkClosePd", PD_QP, 0),
    PAIR("CLO-005", "a receive CQ waits for its QP", "NdkCloseCq", RECEIVE_CQ_QP, 0),
    PAIR("CLO-006", "an initiator CQ waits for its QP", "NdkCloseCq", INITIATOR_CQ_QP, 0),
    PAIR("CLO-007", "an SRQ waits for its QP", "NdkCloseSrq", SRQ_QP, KIT_NEEDS_SRQ),
    KIT_CASE("CLO-008", "a QP waits for its connector", "lifetime C6, C7", "NdkCloseQp",
             qp_before_connector, .needs = KIT_NEEDS_LOOPBACK),
    KIT_CASE("CLO-009", "a listener waits for the connector it delivered", "lifetime C6, C7",
             "NdkCloseListener", listener_before_connector, .needs = KIT_NEEDS_LOOPBACK),
    KIT_CASE("CLO-010", "a shared endpoint waits for its connector", "lifetime C6, C7",
             "NdkCloseSharedEndpoint", endpoint_before_connector,
             .needs = KIT_NEEDS_LOOPBACK | KIT_NEEDS_ENDPOINT),
    KIT_CASE("CLO-011", "a connected pair closed antecedents first, none waited for",
             "lifetime C6, C7", "close", upside_down, .needs = KIT_NEEDS_LOOPBACK),
    KIT_CASE("CLO-012", "a QP still works while its antecedents are closing", "lifetime C6",
             "close", successor_still_works),
    KIT_CASE("CLO-013", "the close of a PD is the barrier for its MRs", "lifetime 4.4",
             "NdkClosePd", domain_is_the_barrier),
    KIT_CASE("CLO-014", "the order of the sample consumer", "lifetime 4.5", "close",
             as_the_sample_does, .needs = KIT_NEEDS_LOOPBACK),
    KIT_CASE("CLO-020", "a QP's close flushes its receives into the CQ", "lifetime C3",
             "NdkCloseQp", qp_close_flushes),
    KIT_CASE("CLO-021", "the flushes of a close satisfy an arm", "lifetime 5.3", "NdkCloseQp",
             qp_close_notifies),
    KIT_CASE("CLO-022", "a connector's close ends its connect first", "lifetime C3, C4a",
             "NdkCloseConnector", close_cancels_connect, .needs = KIT_NEEDS_LOOPBACK),
    KIT_CASE("CLO-023", "a region's close ends its registration", "lifetime 4.4", "NdkCloseMr",
             close_deregisters),
    KIT_CASE("CLO-024", "a region closed while a completion of it runs", "lifetime C4a",
             "NdkCloseMr", region_during_completion, .needs = KIT_NEEDS_ANSWER),
    KIT_CASE("CLO-025", "a connector closed while a completion of it runs", "lifetime C4a",
             "NdkCloseConnector", connector_during_completion, .needs = KIT_NEEDS_LOOPBACK),
    KIT_CASE("CLO-030", "a CQ closed inside its notification", "lifetime C4b", "NdkCloseCq",
             cq_in_its_notification),
    KIT_CASE("CLO-031", "a listener closed inside its connect event", "lifetime C4b",
             "NdkCloseListener", listener_in_its_event, .needs = KIT_NEEDS_LOOPBACK),
    KIT_CASE("CLO-032", "a connector closed inside its disconnect event", "lifetime C4b",
             "NdkCloseConnector", connector_in_its_event, .needs = KIT_NEEDS_LOOPBACK),
    KIT_CASE("CLO-033", "an object closed in the completion of its create", "lifetime 3",
             "NdkClosePd", object_in_its_creation, .needs = KIT_NEEDS_ANSWER),
    KIT_CASE("CLO-034", "a parent closed while a create is pending", "lifetime L10", "NdkClosePd",
             parent_during_creation, .needs = KIT_NEEDS_ANSWER),
    KIT_CASE_TWO("CLO-040", "a listener that is closing refuses at once", "lifetime C8",
                 "NdkCloseListener", refuses_server, refuses_client),
    KIT_CASE_TWO("CLO-041", "closing an undecided connector is a reject", "lifetime 4.4",
                 "NdkCloseConnector", undecided_server, undecided_client),
};

KIT_TOPIC(closing, "what a close waits for, cancels and refuses");
