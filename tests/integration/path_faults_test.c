// SPDX-License-Identifier: MIT
/*
 * Faults of the path: two ends with a proxy between them (tests/support/proxy.h) that splits,
 * gathers, delays, stalls, corrupts, half-closes or resets at a chosen octet. Crossed are every
 * fault, both directions, octets of each phase (startup, the request, what follows it) and every
 * kind of request.
 *
 * A first run without a fault tells where the phases end. Then, whatever happens on the path:
 * - each call ends once, with a status its document lists, and each request completes once;
 * - what succeeded with data has the right data; what only changes the timing changes nothing else;
 * - an established end that did not disconnect is told once that the connection is over;
 * - everything can be closed, and another connection goes on.
 *
 * To repeat one: SOFTNDK_PATH_CASE="REQUEST FAULT DIRECTION OCTET", as a failure
 * prints.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../support/modes.h"
#include "../support/proxy.h"
#include "../support/regions.h"

#include <cmocka.h>

#define SIZE 3000u /* four FPDUs at the option below */
#define ENDS "retry_v1=0,fpdu_max=1000,holdback_ms=60000,nudge_ms=0"
/* Startups that stall end soon. */
#define HASTY ",connect_ms=250,request_ms=250,establish_ms=250"

enum kind { SEND, SEND_INVALIDATE, WRITE, READ, BOTH, KINDS };
static const char *const kind_names[] = {"send", "send-invalidate", "write", "read", "both"};
static const char *const fault_names[] = {"none",  "split",   "gather",     "delay",
                                          "stall", "corrupt", "half-close", "reset"};

/* One end, and what became of its calls and requests. */
struct side {
    struct end end;
    struct memory memory; /* the first half is sent, read, written to; the second receives */
    struct wait disconnect;
    NTSTATUS disconnecting;
    atomic_bool disconnected;         /* NdkDisconnect was called, disconnecting is set */
    unsigned posted[2], completed[2]; /* initiator, receive */
    bool got;                         /* a message of SIZE octets */
};

static struct {
    struct side client, server;
    struct pair bystander;
    struct proxy *proxy;
    unsigned proxy_port;
    struct listening listening;
    struct wait connect, complete, accept, close;
    NTSTATUS connected, completed, accepting, accepted, closing;
    atomic_bool decided; /* NdkAcceptEx was called, accepting is set */
    struct region region;
    bool has_region;
    unsigned cases;
    bool hasty; /* a startup may take too long for its timers, whatever the path does */
    enum kind kind;
    struct proxy_plan plan;
    size_t up[PROXY_DIRECTIONS], all[PROXY_DIRECTIONS]; /* octets: of the startup, of the whole */
} t;

/* ---- what must hold ------------------------------------------------------------------------- */

static void wrong(const char *what) __attribute__((noreturn));
static void wrong(const char *what)
{
    test_fail("%s\n  SOFTNDK_PATH_CASE=\"%s %s %s %zu\"\n  connect %s, complete %s, accept %s",
              what, kind_names[t.kind], fault_names[t.plan.fault],
              t.plan.direction == PROXY_TO_TARGET ? "to" : "from", t.plan.at,
              softndk_status_name(t.connected), softndk_status_name(t.completed),
              softndk_status_name(t.accepted));
}

#define must(condition)                                                                            \
    do {                                                                                           \
        if (!(condition))                                                                          \
            wrong("does not hold: " #condition);                                                   \
    } while (0)

#define must_come(condition)                                                                       \
    do {                                                                                           \
        unsigned long long must_end_ = test_now_ms() + WAIT_S * 1000u;                             \
        while (!(condition)) {                                                                     \
            if (test_now_ms() > must_end_)                                                         \
                wrong("does not come: " #condition);                                               \
            test_sleep_ms(1);                                                                      \
        }                                                                                          \
    } while (0)

static bool one_of(NTSTATUS status, const NTSTATUS *list)
{
    for (; *list != STATUS_PENDING; list++)
        if (*list == status)
            return true;
    return false;
}

#define ONE_OF(status, ...) one_of(status, (const NTSTATUS[]){__VA_ARGS__, STATUS_PENDING})

/* Only the timing is another. */
static bool harmless(void)
{
    return t.plan.fault < FAULT_CORRUPT || !proxy_has_struck(t.proxy);
}

/* A Read Request whose length was made greater is waited for, and nothing but the end of the
 * connection tells: TCP has acknowledged it. */
static bool stuck(void)
{
    return t.kind == READ && t.plan.fault == FAULT_CORRUPT && t.plan.at >= t.up[t.plan.direction] &&
           t.plan.at < t.up[t.plan.direction] + 2;
}

/* ---- one connection ------------------------------------------------------------------------- */

/* The accepting consumer answers an end with its own. */
static VOID server_disconnected(PVOID context, ULONG reason)
{
    struct side *s = context;
    NDK_CONNECTOR *connector = s->end.connector;

    wait_init(&s->disconnect);
    s->disconnecting = connector->Dispatch->NdkDisconnect(connector, wait_request, &s->disconnect);
    atomic_store(&s->disconnected, true);
    end_disconnected(&s->end, reason);
}

static void accept_here(struct listening *listening, NDK_CONNECTOR *connector, void *context)
{
    struct side *s = context;

    (void)listening;
    must(!atomic_load(&t.decided)); /* one connection, one event */
    s->end.connector = connector;
    t.accepting = connector->Dispatch->NdkAcceptEx(connector, s->end.qp, 8, 8, NULL, 0,
                                                   server_disconnected, s, wait_request, &t.accept);
    atomic_store(&t.decided, true);
}

static void receive_one(struct side *s)
{
    NDK_SGE sge = memory_sge(&s->memory, SIZE, SIZE);

    memset(s->memory.data + SIZE, 0, SIZE);
    must(s->end.qp->Dispatch->NdkReceive(s->end.qp, s, &sge, 1) == STATUS_SUCCESS);
    s->posted[1]++;
}

static void side_begin(struct side *s, unsigned seed)
{
    memset(s->posted, 0, sizeof s->posted);
    memset(s->completed, 0, sizeof s->completed);
    s->got = false;
    atomic_store(&s->disconnected, false);
    atomic_store(&s->end.disconnects, 0);
    KeClearEvent(&s->end.disconnected);
    end_make_qp(&s->end, s->end.adapter, s->end.pd);
    fill(s->memory.data, SIZE, seed);
    receive_one(s);
}

static void start(void)
{
    NDK_CONNECTOR *connector;
    SOCKADDR_INET local = inet_address(own_address(), 0);
    SOCKADDR_INET remote = inet_address(own_address(), t.proxy_port);

    t.cases++;
    t.connected = t.completed = t.accepted = STATUS_PENDING;
    atomic_store(&t.decided, false);
    wait_init(&t.accept);
    side_begin(&t.client, t.cases);
    side_begin(&t.server, t.cases + 1000);
    listen_on(t.server.end.adapter, own_address(), &t.listening);
    t.listening.context = &t.server;
    t.listening.in_callback = accept_here;
    proxy_aim(t.proxy, inet_port(&t.listening.address));
    proxy_plan(t.proxy, &t.plan);
    connector = t.client.end.connector = make_connector(t.client.end.adapter);
    wait_init(&t.connect);
    t.connected = wait_end(
        &t.connect,
        connector->Dispatch->NdkConnect(connector, t.client.end.qp, (PSOCKADDR)&local,
                                        sizeof local.Ipv4, (PSOCKADDR)&remote, sizeof remote.Ipv4,
                                        8, 8, NULL, 0, wait_request, &t.connect));
    must(ONE_OF(t.connected, STATUS_SUCCESS, STATUS_CONNECTION_REFUSED, STATUS_CONNECTION_ABORTED,
                STATUS_IO_TIMEOUT));
    if (t.connected != STATUS_SUCCESS)
        return;
    wait_init(&t.complete);
    t.completed = wait_end(
        &t.complete, connector->Dispatch->NdkCompleteConnectEx(
                         connector, end_disconnected, &t.client.end, wait_request, &t.complete));
    must(ONE_OF(t.completed, STATUS_SUCCESS, STATUS_CONNECTION_ABORTED, STATUS_IO_TIMEOUT));
    if (t.completed == STATUS_SUCCESS)
        must_come(atomic_load(&t.decided));
}

/* The accept's answer. The listener's close begins before, so that there is one or never will be;
 * it ends behind the accepted connector's. */
static void decide(void)
{
    NDK_LISTENER *listener = t.listening.listener;

    wait_init(&t.close);
    t.closing = listener->Dispatch->NdkCloseListener(&listener->Header, wait_close, &t.close);
    must_come(atomic_load(&t.decided) || t.closing == STATUS_SUCCESS ||
              wait_event(&t.close.event, 0));
    if (!atomic_load(&t.decided))
        return;
    t.accepted = wait_end(&t.accept, t.accepting);
    must(ONE_OF(t.accepted, STATUS_SUCCESS, STATUS_CONNECTION_REFUSED, STATUS_CONNECTION_ABORTED,
                STATUS_IO_TIMEOUT));
    /* The message that completes the connect is the accepting end's. */
    must(t.completed != STATUS_SUCCESS || t.accepted == STATUS_SUCCESS);
}

/* ---- requests ------------------------------------------------------------------------------- */

static void take(struct side *s, struct queue *queue, int which)
{
    NDK_RESULT_EX result;

    while (queue_try(queue, &result, 0)) {
        s->completed[which]++;
        must(s->completed[which] <= s->posted[which]);
        must(ONE_OF(result.Status, STATUS_SUCCESS, STATUS_CANCELLED, STATUS_IO_TIMEOUT,
                    STATUS_REMOTE_RESOURCES, STATUS_ACCESS_VIOLATION, STATUS_REMOTE_DISCONNECT,
                    STATUS_CONNECTION_ABORTED));
        if (which == 1 && result.Status == STATUS_SUCCESS && result.BytesTransferred == SIZE)
            s->got = true;
    }
}

static bool finished(struct side *s, int which)
{
    take(s, which ? &s->end.receive : &s->end.initiator, which);
    return s->completed[which] == s->posted[which];
}

static void sent(struct side *s, NTSTATUS status)
{
    must(ONE_OF(status, STATUS_SUCCESS, STATUS_CONNECTION_INVALID));
    if (status == STATUS_SUCCESS)
        s->posted[0]++;
}

/* What is received here is what was sent there. */
static void judge(const struct side *from, const struct side *at, bool came)
{
    if (came)
        must(memcmp(at->memory.data + SIZE, from->memory.data, SIZE) == 0);
}

static void post(struct side *c, struct side *s)
{
    const UINT64 there = (UINT64)(uintptr_t)(s->memory.data + SIZE);

    switch (t.kind) {
    case BOTH:
        sent(s, post_send(&s->end, &s->memory, SIZE, 0, s));
        /* fall through */
    case SEND:
        sent(c, post_send(&c->end, &c->memory, SIZE, 0, c));
        break;
    case SEND_INVALIDATE: {
        NDK_SGE sge = memory_sge(&c->memory, 0, SIZE);

        sent(c,
             c->end.qp->Dispatch->NdkSendAndInvalidate(c->end.qp, c, &sge, 1, 0, t.region.remote));
        break;
    }
    case WRITE:
        sent(c, post_write(&c->end, &c->memory, SIZE, there, s->memory.remote, 0, c));
        sent(c, post_send(&c->end, &c->memory, 0, 0, c));
        break;
    default:
        memset(c->memory.data + SIZE, 0, SIZE);
        {
            NDK_SGE sge = memory_sge(&c->memory, SIZE, SIZE);

            sent(c, c->end.qp->Dispatch->NdkRead(c->end.qp, c, &sge, 1,
                                                 (UINT64)(uintptr_t)s->memory.data,
                                                 s->memory.remote, 0));
        }
    }
}

/* For the invalidation: a region that the accepting end registers, if it still can. */
static bool prepare(void)
{
    struct side *s = &t.server;
    NTSTATUS status;

    if (t.kind != SEND_INVALIDATE)
        return true;
    region_open(&s->end, 0, SIZE, 0, TRUE, &t.region);
    t.has_region = true;
    status = region_post(&t.region, 0x10000, REMOTE_BOTH, s);
    sent(s, status);
    must_come(finished(s, 0));
    return status == STATUS_SUCCESS;
}

static void operate(void)
{
    struct side *c = &t.client, *s = &t.server;

    if (!prepare())
        return;
    post(c, s);
    if (t.plan.fault == FAULT_STALL) {
        must_come(proxy_has_struck(t.proxy) || (finished(c, 0) && finished(s, 0)));
        proxy_release(t.proxy);
    }
    if (stuck()) {
        must_come(proxy_has_struck(t.proxy));
        return;
    }
    must_come(finished(c, 0) && finished(s, 0));
    /* Whatever is fatal strikes, or the messages come. */
    must_come(!harmless() || t.kind == READ || finished(s, 1));
    must_come(!harmless() || t.kind != BOTH || finished(c, 1));
    if (!harmless())
        return;
    must(t.kind == READ || t.kind == WRITE || s->got);
    must(t.kind != BOTH || c->got);
    must(t.kind != READ || memcmp(c->memory.data + SIZE, s->memory.data, SIZE) == 0);
    must(t.kind != WRITE || memcmp(s->memory.data + SIZE, c->memory.data, SIZE) == 0);
}

/* ---- the end -------------------------------------------------------------------------------- */

static void side_end(struct side *s)
{
    if (s->end.connector)
        CLOSE(s->end.connector, NdkCloseConnector);
    CLOSE(s->end.qp, NdkCloseQp);
    s->end.connector = NULL;
    s->end.qp = NULL;
    must_come(finished(s, 0));
    must_come(finished(s, 1));
}

static void finish(void)
{
    struct side *c = &t.client, *s = &t.server;
    NDK_CONNECTOR *connector = c->end.connector;

    if (t.completed == STATUS_SUCCESS) {
        wait_init(&c->disconnect);
        c->disconnecting =
            wait_end(&c->disconnect,
                     connector->Dispatch->NdkDisconnect(connector, wait_request, &c->disconnect));
        must(
            ONE_OF(c->disconnecting, STATUS_SUCCESS, STATUS_CONNECTION_ABORTED, STATUS_IO_TIMEOUT));
        must(c->disconnecting == STATUS_SUCCESS || !harmless());
    }
    if (t.accepted == STATUS_SUCCESS) {
        must_come(atomic_load(&s->end.disconnects) == 1);
        s->disconnecting = wait_end(&s->disconnect, s->disconnecting);
        /* An end of file inside an FPDU, or between those of a message, is no orderly end. */
        must(t.plan.fault != FAULT_HALF_CLOSE || t.plan.direction != PROXY_TO_TARGET ||
             t.plan.at <= t.up[PROXY_TO_TARGET] || t.plan.at >= t.all[PROXY_TO_TARGET] ||
             t.kind == WRITE || t.kind == READ || reason_source(s->end.reason) != REASON_PEER_FIN);
        must(
            ONE_OF(s->disconnecting, STATUS_SUCCESS, STATUS_CONNECTION_ABORTED, STATUS_IO_TIMEOUT));
    }
    judge(c, s, s->got);
    judge(s, c, c->got);
    side_end(c);
    side_end(s);
    must(wait_end(&t.close, t.closing) == STATUS_SUCCESS);
    judge(c, s, s->got && t.kind != READ);
    must(atomic_load(&c->end.disconnects) <= 1);
    must(atomic_load(&s->end.disconnects) <= 1);
    if (t.has_region)
        region_close(&t.region);
    t.has_region = false;
}

static void expect_bystander(void)
{
    struct end *c = &t.bystander.client, *s = &t.bystander.server;

    must(s->qp->Dispatch->NdkReceive(s->qp, s, NULL, 0) == STATUS_SUCCESS);
    must(c->qp->Dispatch->NdkSend(c->qp, c, NULL, 0, 0) == STATUS_SUCCESS);
    must(queue_next(&s->receive).Status == STATUS_SUCCESS);
    must(queue_next(&c->initiator).Status == STATUS_SUCCESS);
}

static void run(enum kind kind, const struct proxy_plan *plan)
{
    t.kind = kind;
    t.plan = *plan;
    start();
    if (t.completed == STATUS_SUCCESS) {
        decide();
        operate();
    } else {
        proxy_release(t.proxy);
        decide();
    }
    if (harmless() && t.plan.fault != FAULT_STALL && !t.hasty)
        must(t.completed == STATUS_SUCCESS);
    finish();
    if (t.cases % 16 == 0)
        expect_bystander();
}

/* ---- the cross ------------------------------------------------------------------------------ */

struct phases {
    size_t up[PROXY_DIRECTIONS], all[PROXY_DIRECTIONS];
};

/* Where the phases end, from a run without a fault. */
static struct phases measure(enum kind kind)
{
    struct phases p;

    t.kind = kind;
    memset(&t.up, 0, sizeof t.up);
    memset(&t.plan, 0, sizeof t.plan);
    start();
    must(t.completed == STATUS_SUCCESS);
    decide();
    for (int d = 0; d < PROXY_DIRECTIONS; d++)
        t.up[d] = p.up[d] = proxy_carried(t.proxy, d);
    operate();
    finish();
    for (int d = 0; d < PROXY_DIRECTIONS; d++)
        t.all[d] = p.all[d] = proxy_carried(t.proxy, d);
    return p;
}

#define TIMELY                                                                                     \
    (1u << FAULT_STALL | 1u << FAULT_CORRUPT) /* of a startup: it may have to time out             \
                                               */
#define EVERY (~0u)

/* Each of the faults at octets of [from, to], in both directions. */
static void cross(enum kind kind, const size_t *from, const size_t *to, unsigned faults)
{
    for (int d = 0; d < PROXY_DIRECTIONS; d++) {
        size_t length = to[d] - from[d];
        const size_t places[] = {from[d],   from[d] + 1, from[d] + length / 3, from[d] + length / 2,
                                 to[d] - 1, to[d]};

        for (unsigned i = 0; i < sizeof places / sizeof places[0]; i++)
            for (unsigned fault = FAULT_SPLIT; fault < FAULTS; fault++) {
                struct proxy_plan plan = {fault, d, places[i]};

                if (faults & 1u << fault && places[i] >= from[d] && (length > 2 || i == 0))
                    run(kind, &plan);
            }
    }
}

static void open_sides(const char *extra)
{
    char options[160];

    snprintf(options, sizeof options, "%s%s", ENDS, extra);
    for (int i = 0; i < 2; i++) {
        struct side *s = i ? &t.server : &t.client;

        end_open(&s->end, options);
        CLOSE(s->end.qp, NdkCloseQp);
        s->end.qp = NULL;
        make_memory(s->end.pd, 2 * SIZE, ALL_RIGHTS, &s->memory);
    }
}

static void close_sides(void)
{
    for (int i = 0; i < 2; i++) {
        struct side *s = i ? &t.server : &t.client;

        free_memory(&s->memory);
        end_close(&s->end);
    }
}

static int open_all(void **state)
{
    (void)state;
    t.proxy = proxy_open(own_address(), &t.proxy_port);
    pair_open(&t.bystander, own_address(), NULL, NULL);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    expect_bystander();
    pair_close(&t.bystander);
    proxy_close(t.proxy);
    return 0;
}

static void in_startup(void **state)
{
    const size_t none[PROXY_DIRECTIONS] = {0, 0};
    struct phases p;

    (void)state;
    open_sides("");
    p = measure(SEND);
    cross(SEND, none, p.up, EVERY & ~TIMELY);
    close_sides();
    open_sides(HASTY);
    t.hasty = true;
    cross(SEND, none, p.up, TIMELY);
    t.hasty = false;
    close_sides();
}

static void in_request(enum kind kind)
{
    struct phases p;

    open_sides("");
    p = measure(kind);
    cross(kind, p.up, p.all, EVERY);
    close_sides();
}

static void in_send(void **state)
{
    (void)state;
    in_request(SEND);
}

static void in_send_invalidate(void **state)
{
    (void)state;
    in_request(SEND_INVALIDATE);
}

static void in_write(void **state)
{
    (void)state;
    in_request(WRITE);
}

static void in_read(void **state)
{
    (void)state;
    in_request(READ);
}

static void in_both(void **state)
{
    (void)state;
    in_request(BOTH);
}

/* SOFTNDK_PATH_CASE: that one alone. */
static void in_case(void **state)
{
    char kind[32], fault[32], direction[8];
    struct proxy_plan plan;
    unsigned k = 0, f = 0;

    (void)state;
    if (sscanf(getenv("SOFTNDK_PATH_CASE"), "%31s %31s %7s %zu", kind, fault, direction,
               &plan.at) != 4)
        test_fail("SOFTNDK_PATH_CASE: \"REQUEST FAULT to|from OCTET\" is expected");
    while (k < KINDS && strcmp(kind, kind_names[k]) != 0)
        k++;
    while (f < FAULTS && strcmp(fault, fault_names[f]) != 0)
        f++;
    if (k == KINDS || f == FAULTS)
        test_fail("SOFTNDK_PATH_CASE: no request \"%s\" or no fault \"%s\"", kind, fault);
    plan.fault = f;
    plan.direction = strcmp(direction, "from") == 0 ? PROXY_FROM_TARGET : PROXY_TO_TARGET;
    open_sides("");
    measure(k);
    run(k, &plan);
    close_sides();
}

int main(void)
{
    const struct CMUnitTest one[] = {cmocka_unit_test(in_case)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_startup),
        cmocka_unit_test(in_send),
        cmocka_unit_test(in_send_invalidate),
        cmocka_unit_test(in_write),
        cmocka_unit_test(in_read),
        cmocka_unit_test(in_both),
    };

    if (getenv("SOFTNDK_PATH_CASE"))
        return cmocka_run_group_tests_name("path_faults", one, open_all, close_all);
    return cmocka_run_group_tests_name("path_faults", tests, open_all, close_all);
}
