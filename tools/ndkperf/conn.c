// SPDX-License-Identifier: MIT
/*
 * mode conn: connections come and go, so many at once, and nothing else happens on them. A cycle of
 * the client: create a queue pair and a connector, connect, complete the connect, disconnect, close
 * both. The server does the same with what comes. Everything happens in callbacks, no thread waits.
 *
 * Each episode, as a cycle in progress is called on either side, has one call under way at a time.
 * What completes it takes a turn: the next call is made by whoever ends the one before. `turns`
 * keeps two threads, and a callback within the call it belongs to, from doing so twice, and the
 * stack from growing: who comes second leaves the turn to who is there.
 *
 *   client episode  QP - CONNECTOR - CONNECT - COMPLETE - PART - LEAVE - CLOSE_QP - the next one
 *   server episode  QP - ACCEPT - STAY - PART - LEAVE - CLOSE_QP - freed
 *
 * A server's episode stays until the accept has ended and the peer has disconnected, whichever
 * comes last. A failed step goes on at LEAVE; the run is over then, and the other episodes end with
 * their cycle.
 */
#include "run.h"

#include <stdlib.h>
#include <string.h>

enum state { QP, CONNECTOR, CONNECT, COMPLETE, ACCEPT, STAY, PART, LEAVE, CLOSE_QP, OVER };

struct episode {
    struct conn *conn;
    enum state state; /* what the call under way is, and before the first, what it will be */
    NTSTATUS status;  /* how it ended */
    NDK_QP *qp;
    NDK_CONNECTOR *connector;
    uint64_t began_ns;
    atomic_uint turns;
    atomic_uint needed; /* server: what STAY waits for */
};

struct conn {
    struct run *run;
    struct episode *episodes; /* the client's */
    SOCKADDR_INET local, peer;
    ULONG local_length, peer_length;
    atomic_uint live;     /* episodes in progress */
    pthread_mutex_t lock; /* of what follows, and of the worker's figures */
    uint64_t started;     /* cycles */
    uint64_t allowed;     /* of them; until the warm-up is over, its own */
};

static void turn(struct episode *episode, NTSTATUS status);

/* ---- callbacks ---- */

static VOID on_request(PVOID context, NTSTATUS status)
{
    turn(context, status);
}

static VOID on_closed(PVOID context)
{
    turn(context, STATUS_SUCCESS);
}

/* Of the call under way: a queue pair or a connector. */
static VOID on_created(PVOID context, NTSTATUS status, NDK_OBJECT_HEADER *object)
{
    struct episode *episode = context;

    if (status == STATUS_SUCCESS && episode->state == QP)
        episode->qp = (NDK_QP *)object;
    else if (status == STATUS_SUCCESS)
        episode->connector = (NDK_CONNECTOR *)object;
    turn(episode, status);
}

static VOID on_gone_ex(PVOID context, ULONG reason)
{
    struct episode *episode = context;

    (void)reason;
    if (episode->conn->run->server && atomic_fetch_sub(&episode->needed, 1) == 1)
        turn(episode, STATUS_SUCCESS);
}

static VOID on_gone(PVOID context)
{
    on_gone_ex(context, 0);
}

/* ---- the calls ---- */

static NTSTATUS create_qp(struct episode *episode)
{
    struct run *run = episode->conn->run;
    NDK_CQ *cq = run->workers[0].cq;
    NDK_QP *qp = NULL;
    NTSTATUS status;

    status = run->pd->Dispatch->NdkCreateQp(run->pd, cq, cq, episode, 1, 1, 1, 1, 0, on_created,
                                            episode, &qp);
    if (status == STATUS_SUCCESS)
        episode->qp = qp;
    return status;
}

static NTSTATUS create_connector(struct episode *episode)
{
    NDK_ADAPTER *adapter = episode->conn->run->adapter;
    NDK_CONNECTOR *connector = NULL;
    NTSTATUS status;

    status = adapter->Dispatch->NdkCreateConnector(adapter, on_created, episode, &connector);
    if (status == STATUS_SUCCESS)
        episode->connector = connector;
    return status;
}

static NTSTATUS start_connect(struct episode *episode)
{
    struct conn *conn = episode->conn;
    NDK_CONNECTOR *connector = episode->connector;

    return connector->Dispatch->NdkConnect(connector, episode->qp, (PSOCKADDR)&conn->local,
                                           conn->local_length, (PSOCKADDR)&conn->peer,
                                           conn->peer_length, 1, 1, NULL, 0, on_request, episode);
}

static NTSTATUS complete_connect(struct episode *episode)
{
    NDK_CONNECTOR *connector = episode->connector;

    if (meet_has_extended(connector))
        return connector->Dispatch->NdkCompleteConnectEx(connector, on_gone_ex, episode, on_request,
                                                         episode);
    return connector->Dispatch->NdkCompleteConnect(connector, on_gone, episode, on_request,
                                                   episode);
}

static NTSTATUS start_accept(struct episode *episode)
{
    NDK_CONNECTOR *connector = episode->connector;

    if (meet_has_extended(connector))
        return connector->Dispatch->NdkAcceptEx(connector, episode->qp, 1, 1, NULL, 0, on_gone_ex,
                                                episode, on_request, episode);
    return connector->Dispatch->NdkAccept(connector, episode->qp, 1, 1, NULL, 0, on_gone, episode,
                                          on_request, episode);
}

/* A peer that went first is none of our failures. */
static NTSTATUS part(struct episode *episode)
{
    return episode->connector->Dispatch->NdkDisconnect(episode->connector, on_request, episode);
}

static NTSTATUS leave(struct episode *episode)
{
    NDK_CONNECTOR *connector = episode->connector;

    episode->connector = NULL;
    return !connector
               ? STATUS_SUCCESS
               : connector->Dispatch->NdkCloseConnector(&connector->Header, on_closed, episode);
}

static NTSTATUS close_qp(struct episode *episode)
{
    NDK_QP *qp = episode->qp;

    episode->qp = NULL;
    return !qp ? STATUS_SUCCESS : qp->Dispatch->NdkCloseQp(&qp->Header, on_closed, episode);
}

static const struct {
    const char *name;
    NTSTATUS (*call)(struct episode *episode);
    enum state client, server; /* what follows */
} states[OVER] = {
    [QP] = {"NdkCreateQp", create_qp, CONNECTOR, ACCEPT},
    [CONNECTOR] = {"NdkCreateConnector", create_connector, CONNECT, OVER},
    [CONNECT] = {"NdkConnect", start_connect, COMPLETE, OVER},
    [COMPLETE] = {"NdkCompleteConnect", complete_connect, PART, OVER},
    [ACCEPT] = {"NdkAccept", start_accept, OVER, STAY},
    [STAY] = {"disconnect event", NULL, OVER, PART},
    [PART] = {"NdkDisconnect", part, LEAVE, LEAVE},
    [LEAVE] = {"NdkCloseConnector", leave, CLOSE_QP, CLOSE_QP},
    [CLOSE_QP] = {"NdkCloseQp", close_qp, OVER, OVER},
};

/* ---- cycles ---- */

/* The clock of a cycle stops when the connection is there for its consumer. */
static void count_connect(struct episode *episode)
{
    struct conn *conn = episode->conn;
    struct worker *worker = &conn->run->workers[0];
    uint64_t now = run_now_ns();

    pthread_mutex_lock(&conn->lock);
    if (worker->measuring)
        histogram_add(worker->figures.times, now - episode->began_ns);
    pthread_mutex_unlock(&conn->lock);
}

static void count_cycle(struct conn *conn)
{
    struct worker *worker = &conn->run->workers[0];

    pthread_mutex_lock(&conn->lock);
    worker->done++;
    worker_count(worker);
    pthread_mutex_unlock(&conn->lock);
}

/* Is there another one to begin? */
static bool claim_cycle(struct conn *conn)
{
    const struct worker *worker = &conn->run->workers[0];
    bool more;

    pthread_mutex_lock(&conn->lock);
    more = !worker->expired && conn->started < conn->allowed && !run_failed(conn->run);
    conn->started += more;
    pthread_mutex_unlock(&conn->lock);
    return more;
}

static void start_cycles(struct conn *conn);

/* For the only one that is left: is it the warm-up that is over? Then all that counts may begin. */
static bool warmup_over(struct conn *conn)
{
    struct worker *worker = &conn->run->workers[0];
    bool over;

    pthread_mutex_lock(&conn->lock);
    over = !conn->run->server && conn->allowed < worker->goal && !run_failed(conn->run);
    if (over) {
        conn->allowed = worker->goal;
        worker_begin_figures(worker, run_now_ns());
    }
    pthread_mutex_unlock(&conn->lock);
    return over;
}

/* An episode is over for good; the last of the warm-up has the others begin before it goes. */
static void end_episode(struct conn *conn)
{
    struct run *run = conn->run;
    struct worker *worker = &run->workers[0];
    unsigned live = atomic_load(&conn->live);

    do {
        if (live == 1 && warmup_over(conn)) {
            start_cycles(conn);
            live = atomic_load(&conn->live);
        }
    } while (!atomic_compare_exchange_weak(&conn->live, &live, live - 1));
    if (live != 1)
        return;
    if (!run->server) {
        worker_end_figures(worker);
        atomic_store(&run->ended, 1);
    }
    KeSetEvent(&run->wake, IO_NO_INCREMENT, FALSE);
}

static void fail(struct episode *episode)
{
    struct run *run = episode->conn->run;
    NDK_OBJECT_HEADER *object = episode->connector ? &episode->connector->Header : NULL;

    run_fail_call(run, object, states[episode->state].name, episode->status);
}

/* What follows the state whose call has ended. */
static enum state next_state(struct episode *episode)
{
    bool server = episode->conn->run->server;
    enum state state = episode->state;

    if (episode->status != STATUS_SUCCESS && state < PART) {
        fail(episode);
        return LEAVE;
    }
    if (state == COMPLETE)
        count_connect(episode);
    if (state == CLOSE_QP && !server) {
        count_cycle(episode->conn);
        return claim_cycle(episode->conn) ? QP : OVER;
    }
    return server ? states[state].server : states[state].client;
}

/* Calls until one pends. True: the episode is over. */
static bool advance(struct episode *episode)
{
    for (;;) {
        NTSTATUS status;

        episode->state = next_state(episode);
        if (episode->state == OVER)
            return true;
        if (episode->state == QP)
            episode->began_ns = run_now_ns();
        if (episode->state == STAY)
            status = atomic_fetch_sub(&episode->needed, 1) == 1 ? STATUS_SUCCESS : STATUS_PENDING;
        else
            status = states[episode->state].call(episode);
        if (status == STATUS_PENDING)
            return false;
        episode->status = status;
    }
}

static void turn(struct episode *episode, NTSTATUS status)
{
    struct conn *conn = episode->conn;
    bool over = false;

    episode->status = status;
    if (atomic_fetch_add(&episode->turns, 1) != 0)
        return;
    do {
        over = advance(episode);
    } while (!over && atomic_fetch_sub(&episode->turns, 1) > 1);
    if (!over)
        return;
    if (conn->run->server)
        free(episode);
    end_episode(conn);
}

/* Makes its first call. */
static void begin_episode(struct episode *episode)
{
    NTSTATUS status;

    atomic_store(&episode->turns, 1); /* ours, until the call has returned */
    episode->state = QP;
    episode->began_ns = run_now_ns();
    status = create_qp(episode);
    if (status != STATUS_PENDING) {
        atomic_store(&episode->turns, 0);
        turn(episode, status);
    } else if (atomic_fetch_sub(&episode->turns, 1) > 1) {
        /* It ended meanwhile, and left the turn to us. */
        atomic_store(&episode->turns, 0);
        turn(episode, episode->status);
    }
}

/* The caller is counted among the live. */
static void start_cycles(struct conn *conn)
{
    for (unsigned i = 0; i < conn->run->plan.qps && claim_cycle(conn); i++) {
        conn->episodes[i].conn = conn;
        atomic_fetch_add(&conn->live, 1);
        begin_episode(&conn->episodes[i]);
    }
}

/* ---- the ends ---- */

static VOID on_connect(PVOID context, NDK_CONNECTOR *connector)
{
    struct run *run = context;
    struct conn *conn = run->workers[0].own;
    struct episode *episode;

    atomic_fetch_add(&run->in_event, 1);
    episode = atomic_load(&run->shut) ? NULL : calloc(1, sizeof(*episode));
    if (episode) {
        atomic_fetch_add(&conn->live, 1);
        episode->conn = conn;
        episode->connector = connector;
        atomic_store(&episode->needed, 2);
        begin_episode(episode);
    } else {
        connector->Dispatch->NdkReject(connector, NULL, 0);
        connector->Dispatch->NdkCloseConnector(&connector->Header, tool_closed_alone, NULL);
    }
    atomic_fetch_sub(&run->in_event, 1);
}

bool cycles_prepare(struct run *run)
{
    struct conn *conn = calloc(1, sizeof(*conn));

    run->workers[0].own = conn;
    if (!conn) {
        run_fail(run, "no memory");
        return false;
    }
    conn->run = run;
    pthread_mutex_init(&conn->lock, NULL);
    return true;
}

bool cycles_listen(struct run *run, const SOCKADDR_INET *local, ULONG length)
{
    return meet_listen(run, on_connect, local, length);
}

bool cycles_begin(struct run *run, const SOCKADDR_INET *local, ULONG local_length,
                  const SOCKADDR_INET *peer, ULONG peer_length)
{
    struct conn *conn = run->workers[0].own;

    conn->local = *local;
    conn->local_length = local_length;
    conn->peer = *peer;
    conn->peer_length = peer_length;
    conn->episodes = calloc(run->plan.qps, sizeof(*conn->episodes));
    if (!conn->episodes) {
        run_fail(run, "no memory for %u connections", run->plan.qps);
        return false;
    }
    if (run->workers[0].warmup == 0)
        worker_count_slow(&run->workers[0]);
    conn->allowed = run->workers[0].warmup ? run->workers[0].warmup : run->workers[0].goal;
    atomic_store(&conn->live, 1); /* one for this thread, so that 0 is the end */
    start_cycles(conn);
    end_episode(conn);
    return true;
}

void cycles_drain(struct run *run)
{
    struct conn *conn = run->workers[0].own;

    while (conn && atomic_load(&conn->live) > 0)
        run_wait(run, 100);
}

void cycles_close(struct run *run)
{
    struct conn *conn = run->workers[0].own;

    if (!conn)
        return;
    cycles_drain(run);
    pthread_mutex_destroy(&conn->lock);
    free(conn->episodes);
    free(conn);
    run->workers[0].own = NULL;
}
