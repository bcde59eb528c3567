// SPDX-License-Identifier: MIT
/*
 * An end of a connection in each state of docs/connections.md, against a raw peer, and from there
 * on to an established one. That the state is the one meant is looked up in the connection itself.
 *
 * States that pass by themselves are held by stalling a shard: a notification on it does not return
 * until it is told to. CONNECTING: the shard that would see TCP come up; RETRYING: the one that
 * makes the new socket; MOVING: the one that the connection leaves.
 *
 * Include after ends.h and peer.h.
 */
#ifndef SOFTNDK_TESTS_MACHINE_H
#define SOFTNDK_TESTS_MACHINE_H

#include "conn/conn_internal.h"
#include "provider/cq.h"
#include "provider/listener.h"
#include "provider/qp.h"

/* ---- a shard that stands still -------------------------------------------------------------- */

struct stall {
    atomic_bool entered, go_on;
    struct queue queue;
    NDK_QP *qp;
};

static void stall_here(struct queue *queue, void *context)
{
    struct stall *s = context;

    (void)queue;
    atomic_store(&s->entered, true);
    while (!atomic_load(&s->go_on))
        test_sleep_ms(1);
}

/* A CQ of this shard: they are dealt in turn, so one of the next few is. */
static inline void queue_of(NDK_ADAPTER *adapter, const struct engine_shard *shard,
                            struct queue *out)
{
    for (unsigned i = 0; i < 64; i++) {
        make_queue(adapter, 4 * END_DEPTH, out);
        if (cq_from(out->cq)->object.home == shard)
            return;
        CLOSE(out->cq, NdkCloseCq);
    }
    test_fail("no CQ of the shard in 64");
}

static inline NDK_QP *qp_on(NDK_PD *pd, struct queue *receive, struct queue *initiator)
{
    struct wait w;
    NDK_QP *qp = NULL;
    NTSTATUS status;

    wait_init(&w);
    status = pd->Dispatch->NdkCreateQp(pd, receive->cq, initiator->cq, NULL, END_DEPTH, END_DEPTH,
                                       4, 4, 64, wait_create, &w, &qp);
    must(&w, status, "NdkCreateQp");
    return status == STATUS_PENDING ? (NDK_QP *)(void *)w.object : qp;
}

/* Returns once the shard stands still. */
static inline void stall_begin(struct stall *s, struct bench *b, const struct engine_shard *shard)
{
    atomic_store(&s->entered, false);
    atomic_store(&s->go_on, false);
    queue_of(b->adapter, shard, &s->queue);
    s->queue.in_callback = stall_here;
    s->queue.context = s;
    s->qp = qp_on(b->pd, &s->queue, &s->queue);
    s->queue.cq->Dispatch->NdkArmCq(s->queue.cq, NDK_CQ_NOTIFY_ANY);
    must(NULL, s->qp->Dispatch->NdkReceive(s->qp, s, NULL, 0), "NdkReceive");
    s->qp->Dispatch->NdkFlush(s->qp);
    wait_until(atomic_load(&s->entered), "the shard to stand still");
}

static inline void stall_end(struct stall *s)
{
    atomic_store(&s->go_on, true);
    CLOSE(s->qp, NdkCloseQp);
    CLOSE(s->queue.cq, NdkCloseCq);
}

/* ---- the machine ---------------------------------------------------------------------------- */

/* The completion mode, outside of a stall: no callback of a shard that stands still would come. */
static const char *machine_mode = "never";

struct machine {
    struct wire w;
    struct stall stall;
    bool stalled;
    struct wait connect, complete, accept, disconnect;
    NTSTATUS connecting, completing, accepting, disconnecting;
    struct peer_fpdu rtr; /* the ready-to-receive Read of the end */
    unsigned revision;    /* of the last Request */
};

static inline NDK_CONNECTOR *connector_of(struct machine *m)
{
    return m->w.link.end.connector;
}

static inline struct conn *conn_of(struct machine *m)
{
    return connector_from(connector_of(m))->conn;
}

/* The state of the one of which nobody was told yet; it may go once the lock is free. */
static inline enum conn_state state_of_incoming(struct machine *m)
{
    struct listener *listener = listener_from(m->w.bench.listening.listener);
    enum conn_state state = CONN_NEW;

    for (unsigned ms = 0; state == CONN_NEW; ms++) {
        if (ms == PEER_WAIT_MS)
            test_fail("no incoming connection");
        test_sleep_ms(1);
        os_mutex_lock(&listener->lock);
        if (listener->startups.first)
            state = atomic_load(&listener->startups.first->conn->state);
        os_mutex_unlock(&listener->lock);
    }
    return state;
}

static inline enum conn_state state_of(struct machine *m)
{
    return connector_of(m) ? atomic_load(&conn_of(m)->state) : state_of_incoming(m);
}

static inline void expect_state(struct machine *m, enum conn_state state)
{
    enum conn_state is = state_of(m);

    if (is != state)
        test_fail("the connection is in state %d, not %d", is, state);
}

static inline void await_state(struct machine *m, enum conn_state state)
{
    wait_until(atomic_load(&conn_of(m)->state) == state, "the state");
}

/* An end whose QP is, or is not, on the listener's shard. */
static inline void machine_end(struct machine *m, bool apart)
{
    struct bench *b = &m->w.bench;
    struct end *end = &m->w.link.end;
    const struct engine_shard *there = listener_from(b->listening.listener)->object.home;

    memset(end, 0, sizeof *end);
    KeInitializeEvent(&end->disconnected, NotificationEvent, FALSE);
    if (apart) {
        do { /* at most once: there are two shards at least */
            make_queue(b->adapter, 4 * END_DEPTH, &end->receive);
            if (cq_from(end->receive.cq)->object.home != there)
                break;
            CLOSE(end->receive.cq, NdkCloseCq);
        } while (true);
    } else {
        queue_of(b->adapter, there, &end->receive);
    }
    make_queue(b->adapter, 4 * END_DEPTH, &end->initiator);
    end->qp = qp_on(b->pd, &end->receive, &end->initiator);
}

static inline void machine_stall(struct machine *m, const struct engine_shard *shard)
{
    softndk_set_pend("never");
    stall_begin(&m->stall, &m->w.bench, shard);
    m->stalled = true;
}

static inline void machine_go_on(struct machine *m)
{
    if (m->stalled) {
        stall_end(&m->stall);
        softndk_set_pend(machine_mode);
    }
    m->stalled = false;
}

/* The peer takes the connection and its Request. */
static inline void machine_request(struct machine *m)
{
    uint8_t frame[532];

    peer_accept(&m->w.link.peer);
    peer_frame(&m->w.link.peer, frame);
    m->revision = frame[17];
}

static inline void machine_reply(struct machine *m)
{
    if (m->revision == 1)
        peer_send(&m->w.link.peer, "MPA ID Rep Frame\x40\x01\x00\x00", 20);
    else
        peer_send_frame(&m->w.link.peer, true, 0x8008, 0x4008);
    must(&m->connect, m->connecting, "NdkConnect");
}

static inline void machine_complete(struct machine *m)
{
    m->completing = end_completes(&m->w.link.end, &m->complete);
    m->rtr = *peer_fpdu(&m->w.link.peer);
    if (m->rtr.opcode != 1)
        test_fail("no ready-to-receive Read");
}

static inline void machine_answer_rtr(struct machine *m)
{
    stream_response(&m->w.s, true, m->rtr.sink_stag, m->rtr.sink_to, NULL, 0);
    wire_send(&m->w);
    must(&m->complete, m->completing, "NdkCompleteConnectEx");
    m->w.link.read_msn = 1;
}

static inline void machine_accept(struct machine *m)
{
    m->accepting = end_accepts(&m->w.link.end, 8, 8, NULL, 0, &m->accept);
}

static inline void machine_speak(struct machine *m)
{
    peer_rtr_read(&m->w.link.peer);
    must(&m->accept, m->accepting, "NdkAcceptEx");
    m->w.link.read_msn = 2;
}

static inline void machine_expect_reply(struct machine *m)
{
    peer_expect_frame(&m->w.link.peer, "accepted",
                      "MPA ID Rep Frame\x50\x02\x00\x04\x80\x08\x40\x08", 24);
}

static inline void machine_disconnect(struct machine *m)
{
    wait_init(&m->disconnect);
    m->disconnecting =
        connector_of(m)->Dispatch->NdkDisconnect(connector_of(m), wait_request, &m->disconnect);
    if (peer_await_end(&m->w.link.peer) != PEER_FIN)
        test_fail("no FIN");
}

static inline bool machine_is_active(enum conn_state state)
{
    return state >= CONN_CONNECTING && state <= CONN_COMPLETING;
}

/* Has the peer's FIN, or its RST, arrived at the end's socket? The error of an RST is taken by
 * this. */
static inline void await_peers_end(struct machine *m)
{
    wait_until(os_tcp_peek(conn_of(m)->fd) != -EAGAIN, "the peer's end");
}

/* ---- bringing it there ---------------------------------------------------------------------- */

static inline void active_to(struct machine *m, enum conn_state state)
{
    struct bench *b = &m->w.bench;
    struct end *end = &m->w.link.end;
    struct peer *peer = &m->w.link.peer;

    if (state == CONN_NEW) {
        end->connector = make_connector(b->adapter);
        return;
    }
    if (state == CONN_CONNECTING)
        machine_stall(m, qp_from(end->qp)->object.home);
    m->connecting = end_connects(b, end, peer_listen(peer), 8, 8, NULL, 0, &m->connect);
    if (state == CONN_CONNECTING)
        return;
    machine_request(m);
    if (state == CONN_RETRYING) {
        machine_stall(m, qp_from(end->qp)->object.home);
        peer_hang_up(peer, false);
        await_peers_end(m);
        end->qp->Dispatch->NdkFlush(end->qp); /* this thread looks at the socket */
        return;
    }
    if (state == CONN_WAIT_REPLY)
        return;
    machine_reply(m);
    if (state == CONN_DECIDE)
        return;
    machine_complete(m);
    if (state == CONN_OPEN)
        machine_answer_rtr(m);
}

static inline void passive_to(struct machine *m, enum conn_state state)
{
    struct bench *b = &m->w.bench;
    struct end *end = &m->w.link.end;
    struct peer *peer = &m->w.link.peer;

    peer_connect(peer, port_of(&b->listening));
    if (state == CONN_WAIT_REQUEST)
        return;
    peer_send_frame(peer, false, 0x8008, 0xc008);
    end->connector = next_incoming(&b->listening);
    if (state == CONN_UNDECIDED)
        return;
    if (state == CONN_MOVING)
        machine_stall(m, listener_from(b->listening.listener)->object.home);
    machine_accept(m);
    if (state == CONN_MOVING)
        return;
    machine_expect_reply(m);
    if (state == CONN_OPEN)
        machine_speak(m);
}

/* active: of CONN_OPEN, the only state of both roles. Options on top of those of a bench. */
static inline void machine_open(struct machine *m, enum conn_state state, bool active,
                                const char *options)
{
    char all[200];

    for (unsigned tries = 0;; tries++) {
        memset(m, 0, sizeof *m);
        snprintf(all, sizeof all, "shards=2,holdback_ms=0,%s", options ? options : "");
        wire_bench(&m->w, all);
        m->w.link.send_msn = m->w.link.read_msn = 1;
        machine_end(m, state == CONN_MOVING);
        if (state == CONN_NEW || machine_is_active(state) || active)
            active_to(m, state);
        else
            passive_to(m, state);
        if (state != CONN_RETRYING || atomic_load(&conn_of(m)->state) == state)
            break;
        /* Later than a second after its Request: a slow machine. */
        if (tries == 20)
            test_fail("never a retry");
        machine_go_on(m);
        wire_close(&m->w);
    }
    expect_state(m, state);
}

/* From where it is to an established connection. */
static inline void machine_establish(struct machine *m)
{
    enum conn_state state = state_of(m);
    struct peer *peer = &m->w.link.peer;

    switch (state) {
    case CONN_NEW: {
        struct end *end = &m->w.link.end;

        CLOSE(end->connector, NdkCloseConnector);
        end->connector = NULL;
        active_to(m, CONN_OPEN);
        return;
    }
    case CONN_CONNECTING:
        machine_go_on(m);
        machine_request(m);
        machine_reply(m);
        break;
    case CONN_WAIT_REPLY:
        machine_reply(m);
        break;
    case CONN_RETRYING:
        machine_go_on(m);
        machine_request(m);
        if (m->revision != 1)
            test_fail("the second attempt has revision %u", m->revision);
        machine_reply(m);
        must(&m->complete, end_completes(&m->w.link.end, &m->complete), "NdkCompleteConnectEx");
        return;
    case CONN_WAIT_REQUEST:
        peer_send_frame(peer, false, 0x8008, 0xc008);
        m->w.link.end.connector = next_incoming(&m->w.bench.listening);
        break;
    case CONN_MOVING:
        machine_go_on(m);
        machine_expect_reply(m);
        machine_speak(m);
        return;
    default:
        break;
    }
    switch (state) {
    case CONN_CONNECTING:
    case CONN_WAIT_REPLY:
    case CONN_DECIDE:
        machine_complete(m);
        machine_answer_rtr(m);
        break;
    case CONN_COMPLETING:
        machine_answer_rtr(m);
        break;
    case CONN_WAIT_REQUEST:
    case CONN_UNDECIDED:
        machine_accept(m);
        machine_expect_reply(m);
        machine_speak(m);
        break;
    case CONN_WAIT_FIRST:
        machine_speak(m);
        break;
    default:
        break;
    }
}

static inline void machine_close(struct machine *m)
{
    machine_go_on(m);
    wire_close(&m->w);
}

/* ---- all tests of a program ----------------------------------------------------------------- */

/* With calls that answer inline and ones that pend, over IPv4, then over IPv6 where that is there;
 * up to the first failure. */
static inline int machine_run(const struct CMUnitTest *tests, size_t count)
{
    static const struct {
        const char *name, *mode;
        bool ipv6;
    } ways[] = {{"never", "never", false}, {"always", "always", false}, {"IPv6", "never", true}};
    int failed = 0;

    for (size_t i = 0; i < sizeof ways / sizeof ways[0] && !failed; i++) {
        if (ways[i].ipv6 && !have_ipv6()) {
            printf("IPv6 left out: ::1 is not there\n");
            continue;
        }
        peer_ipv6 = ways[i].ipv6;
        machine_mode = ways[i].mode;
        softndk_set_pend(machine_mode);
        failed += _cmocka_run_group_tests(ways[i].name, tests, count, NULL, NULL);
    }
    return failed;
}

#endif
