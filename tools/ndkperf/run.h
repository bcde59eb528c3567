// SPDX-License-Identifier: MIT
/*
 * One run at one end: the objects of its connections, and the consumer threads that drive them.
 *
 *   run.c      objects, workers        stream.c    bw, rate
 *   meet.c     connecting, ending      pong.c      lat
 *   control.c  the control connection  exchange.c  send-inv, fastreg
 *   conn.c     mode conn               clock.c     what counts
 *
 * Who owns what. A worker owns a completion queue and the queue pairs on it. While the run lasts,
 * one thread at a time works on them: the worker's own thread, which polls (wait spin), or whoever
 * runs the queue's notification (wait event), which polls, posts and arms again. The main thread
 * touches them before the run begins and when all workers have ended. What it may look at meanwhile
 * is atomic. There are no locks.
 *
 * How a run of messages ends, for each queue pair: a side that has posted all its requests sends a
 * fence, a Send of a length that no message has; whoever receives one acknowledges it by a Send of
 * another such length. A side is done when its own fence has completed and was acknowledged and it
 * has acknowledged the peer's. A side that posts nothing sends its fence after the peer's. So the
 * clock of the client stops when the server has everything, whatever a completion promises.
 */
#ifndef SOFTNDK_NDKPERF_RUN_H
#define SOFTNDK_NDKPERF_RUN_H

#include <softndk.h>

#include <pthread.h>
#include <stdatomic.h>

#include "common/tool_ndk.h"
#include "common/tool_stop.h"
#include "histogram.h"
#include "plan.h"

#define RUN_BATCH 64 /* results taken at once */

struct run;
struct worker;

/* One connection. */
struct perf_qp {
    NDK_QP *qp;
    struct worker *worker;
    /* Counts of requests of this queue pair, warm-up included. */
    uint64_t posted, completed;
    uint64_t limit;    /* how many may be posted in all */
    uint64_t gate;     /* how many now: until the warm-up has completed, its share of it */
    uint64_t received; /* messages of the peer; of writes, how many it says it posted */
    UCHAR *tx, *rx;
    uint32_t tx_next, rx_next; /* the buffers to use next */
    UINT64 peer_rx, peer_tx;   /* addresses at the peer */
    uint32_t token;            /* expected back: exchange */
    bool fence_sent, fence_done, fence_got, acknowledged;
    uint8_t marks; /* receives for marks that were posted: writes and reads */
    uint8_t seen;  /* lat by writes: the last value that we answered or sent */
    bool writing;  /* lat by writes: our write has not completed */

    unsigned index;
    UCHAR *mark; /* octets of the messages that end a run */
    NDK_CONNECTOR *connector;
    atomic_bool claimed; /* server: a connection has come for it */
    atomic_bool connected;
};

/* Results of a consumer thread, complete when it has ended. */
struct figures {
    uint64_t count; /* iterations that count */
    uint64_t began_ns, ended_ns;
    double peak; /* iterations a second */
    struct histogram *times;
};

/* Takes results, posts more. True: this worker's run is over. count may be 0 when polling. */
typedef bool worker_step(struct worker *worker, const NDK_RESULT_EX *results, ULONG count);

struct worker {
    struct run *run;
    NDK_CQ *cq;
    NDK_FN_GET_CQ_RESULTS_EX poll;
    worker_step *step;
    struct perf_qp *qps; /* qp_count of them */
    unsigned qp_count, current;
    unsigned over; /* queue pairs that are done */

    uint64_t goal;   /* iterations of this worker, warm-up included; UINT64_MAX: by time */
    uint64_t warmup; /* of them */
    uint64_t done;   /* iterations so far */
    uint64_t look;   /* the number of iterations at which to look at the clock */
    uint64_t slice;  /* iterations at the beginning of the slice */
    uint64_t slice_ns, deadline_ns, last_ns;
    uint32_t stride; /* iterations between two looks at the clock */
    bool measuring, expired;
    struct figures figures;

    _Atomic uint64_t progress; /* iterations, for whoever shows it */
    atomic_bool ended;
    pthread_t thread;
    bool thread_started;
    unsigned index;
    void *own; /* of the step's file */
};

struct run {
    struct plan plan;
    bool server;
    NDK_ADAPTER *adapter;
    NDK_PD *pd;
    struct tool_memory memory;
    struct perf_qp *qps;
    struct worker *workers;
    NDK_LISTENER *listener; /* server: of the data connections */
    struct tool_wait shutting;
    NTSTATUS shut_status;
    atomic_bool shut;
    atomic_uint in_event; /* connect events that run */
    unsigned port;
    UINT64 peer_address; /* of the peer's memory */
    UINT32 peer_token;

    KEVENT wake; /* a worker ended, something failed, a connection was made */
    atomic_bool stop;
    atomic_uint connected, parting, ended;
    pthread_mutex_t lock; /* of error */
    char error[400];
};

/* Objects for the plan. The adapter is opened on the interface that the selector names. False: the
 * reason is in run->error. run_close() in any case. */
bool run_open(struct run *run, const struct plan *plan, bool server, const char *selector);
/* Requests that are left are flushed. */
void run_close(struct run *run);

/* Keeps the first sentence and stops the run. Any thread, any level. */
void run_fail(struct run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same with a status and the reason kept at an object. */
void run_fail_call(struct run *run, const NDK_OBJECT_HEADER *object, const char *call,
                   NTSTATUS status);
bool run_failed(const struct run *run);

/* Starts the consumer threads, or arms the queues. When workers have ended or not, run_join() makes
 * an end and may be called after run_start() only. */
bool run_start(struct run *run);
bool run_is_over(const struct run *run);
void run_join(struct run *run);
/* Waits for run->wake for some time, meanwhile taking results: connections whose progress is inline
 * go on only so. Before run_start() and after run_join() only. */
void run_wait(struct run *run, unsigned milliseconds);

/* ---- for the files of steps ---- */

uint64_t run_now_ns(void);
struct perf_qp *run_qp_of(const NDK_RESULT_EX *result);
/* A failed result, or one that does not belong here. Always true, which ends the worker. */
bool worker_fail_result(struct worker *worker, const NDK_RESULT_EX *result);

bool perf_receive(struct perf_qp *qp);
bool perf_send_mark(struct perf_qp *qp, bool fence);
/* A received message of the peer that ends the run. True: it was one, and is dealt with. */
bool perf_take_mark(struct perf_qp *qp, const NDK_RESULT_EX *result);
/* After anything changed that perf_take_mark() looks at: true if the worker's run is over. */
bool perf_settle(struct perf_qp *qp);
/* Octets of fence and acknowledgement. */
ULONG run_mark_length(const struct plan *plan, bool fence);

/* The worker has done so many iterations more; looks at the clock when it is time. True: no more.
 */
bool worker_count(struct worker *worker);
void worker_count_slow(struct worker *worker);
/*
 * bw, rate, exchanges: what counts begins when everything before has completed, with the first post
 * behind, so that a figure never stands for less than what it names. The first shares requests out
 * to the queue pairs; the second looks at the clock and opens the gates. True: they were closed,
 * and there is more to post.
 */
void worker_share(struct worker *worker, bool active);
bool worker_look(struct worker *worker);
/* How many this queue pair may have posted by now. */
uint64_t worker_allows(const struct perf_qp *qp);
void worker_begin_figures(struct worker *worker, uint64_t now);
void worker_end_figures(struct worker *worker);

/* The octets of message n. */
void pattern_fill(UCHAR *octets, size_t size, uint64_t n);
bool pattern_good(const UCHAR *octets, size_t size, uint64_t n);

/* The steps: prepare posts what must be there before the peer begins; begin posts the first
 * requests. */
bool stream_prepare(struct worker *worker);
bool stream_begin(struct worker *worker);
worker_step stream_step;
/* After all workers have ended: are the peer's writes there? False: run_fail() was called. */
bool stream_verify_end(struct run *run);
bool pong_prepare(struct worker *worker);
bool pong_begin(struct worker *worker);
worker_step pong_step, pong_write_step, pong_read_step;
bool exchange_prepare(struct worker *worker);
bool exchange_begin(struct worker *worker);
worker_step exchange_step;
void exchange_close(struct worker *worker);

/* ---- meet.c ---- */

/* Server: listens for the data connections; run->port is the one to tell the client. */
bool meet_listen(struct run *run, NDK_FN_CONNECT_EVENT_CALLBACK event, const SOCKADDR_INET *local,
                 ULONG length);
/* The connect event for the queue pairs of the run. */
VOID meet_event(PVOID run, NDK_CONNECTOR *connector);
bool meet_has_extended(const NDK_CONNECTOR *connector);
/* No connection comes any more. */
void meet_shut(struct run *run);
/* When the connectors are closed, for which the listener's close waits. */
void meet_shut_end(struct run *run);
/* Client: connects every queue pair, one after another. */
bool meet_connect(struct run *run, const SOCKADDR_INET *local, ULONG local_length,
                  const SOCKADDR_INET *peer, ULONG peer_length);
/* Both: all connections end in good order. */
void meet_part(struct run *run);

/* ---- conn.c: instead of all that, mode conn ---- */

bool cycles_prepare(struct run *run);
/* Server: from here on connections are served. */
bool cycles_listen(struct run *run, const SOCKADDR_INET *local, ULONG length);
/* Client: run_is_over() tells when the last cycle has ended. */
bool cycles_begin(struct run *run, const SOCKADDR_INET *local, ULONG local_length,
                  const SOCKADDR_INET *peer, ULONG peer_length);
/* Waits until no connection is left. */
void cycles_drain(struct run *run);
void cycles_close(struct run *run);

#endif
