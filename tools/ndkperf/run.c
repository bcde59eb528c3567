// SPDX-License-Identifier: MIT
/* See run.h: the objects of a run, and its consumer threads. */
#include "run.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Empty polls in a row before the processor is offered to others: a poll of a queue that shards
 * fill costs nanoseconds, one that looks at the sockets itself a system call. */
#define IDLE_POLLS        64
#define IDLE_POLLS_INLINE 1024

/* ---- failures ---- */

void run_fail(struct run *run, const char *format, ...)
{
    va_list ap;

    pthread_mutex_lock(&run->lock);
    if (run->error[0] == '\0') {
        va_start(ap, format);
        vsnprintf(run->error, sizeof(run->error), format, ap);
        va_end(ap);
    }
    pthread_mutex_unlock(&run->lock);
    atomic_store(&run->stop, true);
    KeSetEvent(&run->wake, IO_NO_INCREMENT, FALSE);
}

void run_fail_call(struct run *run, const NDK_OBJECT_HEADER *object, const char *call,
                   NTSTATUS status)
{
    char name[80], reason[240] = "";

    if (object)
        softndk_reason(object, reason, sizeof(reason));
    run_fail(run, "%s: %s: %s", call, tool_status(status, name, sizeof(name)),
             reason[0] ? reason : softndk_status_text(status));
}

bool run_failed(const struct run *run)
{
    return atomic_load(&run->stop);
}

bool worker_fail_result(struct worker *worker, const NDK_RESULT_EX *result)
{
    char name[80], text[240] = "";

    if (result->Status == STATUS_SUCCESS) {
        run_fail(worker->run, "a completion of kind %d that was not expected", (int)result->Type);
        return true;
    }
    if (result->ProviderErrorCode)
        softndk_reason_text(result->ProviderErrorCode, text, sizeof(text));
    run_fail(worker->run, "a request of kind %d: %s: %s", (int)result->Type,
             tool_status(result->Status, name, sizeof(name)),
             text[0] ? text : softndk_status_text(result->Status));
    return true;
}

struct perf_qp *run_qp_of(const NDK_RESULT_EX *result)
{
    return result->QPContext;
}

/* ---- what all queue pairs do ---- */

/* Writes and reads leave the lengths of messages to us, and the fence tells how many they were. */
ULONG run_mark_length(const struct plan *plan, bool fence)
{
    bool messages = plan->op != PERF_WRITE && plan->op != PERF_READ;

    if (fence)
        return !messages ? 8 : plan->size == 1 ? 2 : 1;
    return messages && plan->size <= 2 ? 3 : 2;
}

static bool posted(struct perf_qp *qp, const char *call, NTSTATUS status)
{
    if (status == STATUS_SUCCESS)
        return true;
    run_fail_call(qp->worker->run, &qp->qp->Header, call, status);
    return false;
}

bool perf_receive(struct perf_qp *qp)
{
    const struct run *run = qp->worker->run;
    bool messages = run->plan.op != PERF_WRITE && run->plan.op != PERF_READ;
    uint32_t length = messages ? plan_buffer(&run->plan) : 8;
    UCHAR *room =
        messages ? qp->rx + (size_t)qp->rx_next * length : qp->mark + 64 + 8 * (qp->marks++ % 8);
    NDK_SGE sge = {.Length = length, .MemoryRegionToken = run->memory.local};

    sge.VirtualAddress = room;
    if (messages && ++qp->rx_next == run->plan.buffers)
        qp->rx_next = 0;
    return posted(qp, "NdkReceive", qp->qp->Dispatch->NdkReceive(qp->qp, room, &sge, 1));
}

/* A fence completes loudly: everything before it has completed then, also what was silent. Reads
 * may be overtaken, so it waits for them. */
bool perf_send_mark(struct perf_qp *qp, bool fence)
{
    const struct run *run = qp->worker->run;
    NDK_SGE sge = {.Length = run_mark_length(&run->plan, fence),
                   .MemoryRegionToken = run->memory.local};
    ULONG flags = fence ? NDK_OP_FLAG_READ_FENCE : NDK_OP_FLAG_SILENT_SUCCESS;

    sge.VirtualAddress = fence ? qp->mark : qp->mark + 8;
    if (fence)
        memcpy(qp->mark, &qp->posted, 8); /* both ends are of one byte order, or do not verify */
    return posted(qp, "NdkSend", qp->qp->Dispatch->NdkSend(qp->qp, qp->mark, &sge, 1, flags));
}

bool perf_take_mark(struct perf_qp *qp, const NDK_RESULT_EX *result)
{
    const struct plan *plan = &qp->worker->run->plan;

    if (result->BytesTransferred == run_mark_length(plan, true)) {
        qp->fence_got = true;
        if (plan->op == PERF_WRITE)
            memcpy(&qp->received, result->RequestContext, 8);
        perf_send_mark(qp, false);
        return true;
    }
    if (result->BytesTransferred == run_mark_length(plan, false)) {
        qp->acknowledged = true;
        return true;
    }
    return false;
}

bool perf_settle(struct perf_qp *qp)
{
    struct worker *worker = qp->worker;
    bool active = plan_is_active(&worker->run->plan, worker->run->server);

    if (!qp->fence_sent && qp->posted == qp->limit && (active || qp->fence_got)) {
        qp->fence_sent = true;
        perf_send_mark(qp, true);
    }
    if (qp->fence_done && qp->acknowledged && qp->fence_got) {
        qp->acknowledged = false; /* counted once */
        worker->over++;
    }
    return worker->over == worker->qp_count;
}

/* ---- objects ---- */

static VOID notified(PVOID context, NTSTATUS cq_status);

static bool create_qp(struct run *run, struct worker *worker, struct perf_qp *qp)
{
    const struct plan *plan = &run->plan;
    struct tool_wait wait;
    NDK_QP *made = NULL;
    NTSTATUS status;

    tool_wait_begin(&wait);
    status = run->pd->Dispatch->NdkCreateQp(run->pd, worker->cq, worker->cq, qp,
                                            plan_receives(plan), plan_requests(plan), 1, 1,
                                            plan->inline_size, tool_created, &wait, &made);
    if (tool_wait_end(&wait, status) != STATUS_SUCCESS) {
        run_fail_call(run, &run->pd->Header, "NdkCreateQp", wait.status);
        return false;
    }
    qp->qp = status == STATUS_PENDING ? (NDK_QP *)wait.object : made;
    return true;
}

static bool open_worker(struct run *run, unsigned index)
{
    const struct plan *plan = &run->plan;
    struct worker *worker = &run->workers[index];
    unsigned first = (unsigned)((uint64_t)plan->qps * index / plan->threads);
    unsigned behind = (unsigned)((uint64_t)plan->qps * (index + 1) / plan->threads);

    worker->run = run;
    worker->index = index;
    worker->qps = &run->qps[first];
    worker->qp_count = behind - first;
    worker->figures.times = calloc(1, sizeof(*worker->figures.times));
    if (!worker->figures.times) {
        run_fail(run, "no memory for a histogram");
        return false;
    }
    if (!tool_create_cq(run->adapter,
                        (plan_receives(plan) + plan_requests(plan)) * worker->qp_count, notified,
                        worker, &worker->cq)) {
        run_fail(run, "cannot create a completion queue");
        return false;
    }
    worker->poll = worker->cq->Dispatch->NdkGetCqResultsEx;
    for (unsigned i = first; i < behind && plan->mode != PERF_CONN; i++) {
        struct perf_qp *qp = &run->qps[i];
        UCHAR *base = run->memory.data + plan_stride(plan) * i;
        uint64_t half = (uint64_t)plan_buffer(plan) * plan->buffers;

        qp->index = i;
        qp->worker = worker;
        qp->tx = base;
        qp->rx = base + half;
        qp->mark = base + 2 * half;
        if (!create_qp(run, worker, qp))
            return false;
    }
    return true;
}

static bool open_adapter(struct run *run, const char *selector)
{
    static const NDK_VERSION two = {2, 0}, one = {1, 0};
    char reason[320] = "", name[80];
    NTSTATUS status;

    status = softndk_open_adapter(selector, run->plan.adapter, two, &run->adapter);
    if (status == (NTSTATUS)0xC0010004) /* that version is not offered */
        status = softndk_open_adapter(selector, run->plan.adapter, one, &run->adapter);
    if (status != STATUS_SUCCESS) {
        softndk_open_error(reason, sizeof(reason));
        run_fail(run, "softndk_open_adapter: %s: %s", tool_status(status, name, sizeof(name)),
                 reason);
        run->adapter = NULL;
        return false;
    }
    if (run->adapter->Header.Version.Major == 1 && run->adapter->Header.Version.Minor < 2) {
        run_fail(run, "the adapter runs NDKPI 1.1, need 1.2: extended results, deferred posts");
        return false;
    }
    return true;
}

/* Steps and counts of the workers. */
static void choose_steps(struct run *run)
{
    const struct plan *plan = &run->plan;

    for (unsigned i = 0; i < plan->threads; i++) {
        struct worker *worker = &run->workers[i];
        uint64_t share = plan->iterations / plan->threads;

        if (i < plan->iterations % plan->threads)
            share++;
        worker->warmup = plan->warmup / plan->threads;
        worker->goal = plan->seconds ? UINT64_MAX : share + worker->warmup;
        worker->look = worker->warmup;
        worker->stride = 4u << 20 >= plan->size * 64u ? 64 : (4u << 20) / plan->size;
        if (worker->stride == 0 || plan->mode == PERF_CONN)
            worker->stride = 1;
        worker->step = plan_is_exchange(plan)   ? exchange_step
                       : plan->mode != PERF_LAT ? stream_step
                       : plan->op == PERF_WRITE ? pong_write_step
                       : plan->op == PERF_READ  ? pong_read_step
                                                : pong_step;
    }
}

static bool prepare(struct run *run)
{
    if (run->plan.mode == PERF_CONN)
        return cycles_prepare(run);
    for (unsigned i = 0; i < run->plan.threads; i++) {
        struct worker *worker = &run->workers[i];
        bool good = plan_is_exchange(&run->plan) ? exchange_prepare(worker)
                    : run->plan.mode == PERF_LAT ? pong_prepare(worker)
                                                 : stream_prepare(worker);

        if (!good)
            return false;
    }
    return true;
}

bool run_open(struct run *run, const struct plan *plan, bool server, const char *selector)
{
    memset(run, 0, sizeof(*run));
    run->plan = *plan;
    run->server = server;
    KeInitializeEvent(&run->wake, SynchronizationEvent, FALSE);
    pthread_mutex_init(&run->lock, NULL);
    run->qps = calloc(plan->qps, sizeof(*run->qps));
    run->workers = calloc(plan->threads, sizeof(*run->workers));
    if (!run->qps || !run->workers) {
        run_fail(run, "no memory for %u queue pairs", plan->qps);
        return false;
    }
    if (!open_adapter(run, selector))
        return false;
    if (!tool_create_pd(run->adapter, &run->pd) ||
        !tool_memory_create(run->pd, (size_t)plan_memory(plan),
                            NDK_MR_FLAG_ALLOW_REMOTE_READ | NDK_MR_FLAG_ALLOW_REMOTE_WRITE |
                                NDK_MR_FLAG_RDMA_READ_SINK,
                            &run->memory)) {
        run_fail(run, "cannot register %llu octets", (unsigned long long)plan_memory(plan));
        return false;
    }
    for (unsigned i = 0; i < plan->threads; i++)
        if (!open_worker(run, i))
            return false;
    choose_steps(run);
    return prepare(run);
}

static void close_worker(struct worker *worker)
{
    NDK_RESULT_EX results[RUN_BATCH];

    for (unsigned i = 0; i < worker->qp_count; i++) {
        struct perf_qp *qp = &worker->qps[i];

        if (qp->connector)
            tool_close(&qp->connector->Header, qp->connector->Dispatch->NdkCloseConnector);
        if (qp->qp)
            tool_close(&qp->qp->Header, qp->qp->Dispatch->NdkCloseQp);
    }
    if (worker->run && plan_is_exchange(&worker->run->plan))
        exchange_close(worker);
    if (worker->cq) {
        while (worker->cq->Dispatch->NdkGetCqResultsEx(worker->cq, results, RUN_BATCH) > 0) {
            /* Flushed requests; nobody waits for them. */
        }
        tool_close(&worker->cq->Header, worker->cq->Dispatch->NdkCloseCq);
    }
    free(worker->figures.times);
}

void run_close(struct run *run)
{
    meet_shut(run);
    if (run->plan.mode == PERF_CONN && run->workers)
        cycles_close(run);
    for (unsigned i = 0; run->workers && i < run->plan.threads; i++)
        close_worker(&run->workers[i]);
    meet_shut_end(run);
    tool_memory_close(&run->memory);
    if (run->pd)
        tool_close(&run->pd->Header, run->pd->Dispatch->NdkClosePd);
    softndk_close_adapter(run->adapter);
    free(run->qps);
    free(run->workers);
    pthread_mutex_destroy(&run->lock);
    memset(run, 0, sizeof(*run));
}

/* ---- consumer threads ---- */

static void worker_over(struct worker *worker)
{
    worker_end_figures(worker);
    atomic_store(&worker->ended, true);
    atomic_fetch_add(&worker->run->ended, 1);
    KeSetEvent(&worker->run->wake, IO_NO_INCREMENT, FALSE);
}

static bool begin(struct worker *worker)
{
    if (worker->warmup == 0)
        worker_count_slow(worker);
    if (plan_is_exchange(&worker->run->plan))
        return exchange_begin(worker);
    return worker->run->plan.mode == PERF_LAT ? pong_begin(worker) : stream_begin(worker);
}

static void *spin(void *argument)
{
    struct worker *worker = argument;
    struct run *run = worker->run;
    const unsigned patience = run->plan.spins_long ? IDLE_POLLS_INLINE : IDLE_POLLS;
    NDK_RESULT_EX results[RUN_BATCH];
    unsigned idle = 0;

    if (begin(worker)) {
        while (!atomic_load_explicit(&run->stop, memory_order_relaxed)) {
            ULONG count = worker->poll(worker->cq, results, RUN_BATCH);

            if (worker->step(worker, results, count))
                break;
            if (count > 0) {
                idle = 0;
            } else if (++idle == patience) {
                idle = 0;
                sched_yield();
            }
        }
    }
    worker_over(worker);
    return NULL;
}

/* wait event: the worker is whoever runs this; it is never run twice at once for one queue. */
static VOID notified(PVOID context, NTSTATUS cq_status)
{
    struct worker *worker = context;
    NDK_RESULT_EX results[RUN_BATCH];
    ULONG count;

    if (cq_status != STATUS_SUCCESS)
        run_fail_call(worker->run, &worker->cq->Header, "completion queue", cq_status);
    if (atomic_load(&worker->run->stop))
        return;
    while ((count = worker->poll(worker->cq, results, RUN_BATCH)) > 0)
        if (worker->step(worker, results, count)) {
            worker_over(worker);
            return;
        }
    worker->cq->Dispatch->NdkArmCq(worker->cq, NDK_CQ_NOTIFY_ANY);
}

bool run_start(struct run *run)
{
    for (unsigned i = 0; i < run->plan.threads; i++) {
        struct worker *worker = &run->workers[i];

        for (unsigned k = 0; k < worker->qp_count; k++) {
            struct perf_qp *qp = &worker->qps[k];

            qp->peer_tx = run->peer_address + plan_stride(&run->plan) * qp->index;
            qp->peer_rx = qp->peer_tx + (uint64_t)plan_buffer(&run->plan) * run->plan.buffers;
        }
        if (!plan_polls(&run->plan, run->server)) {
            /* No notification before the arm, so what begin() posts is not disturbed. */
            if (begin(worker))
                worker->cq->Dispatch->NdkArmCq(worker->cq, NDK_CQ_NOTIFY_ANY);
            continue;
        }
        worker->thread_started = pthread_create(&worker->thread, NULL, spin, worker) == 0;
        if (!worker->thread_started) {
            run_fail(run, "cannot start thread %u", i);
            return false;
        }
    }
    return !run_failed(run);
}

bool run_is_over(const struct run *run)
{
    return atomic_load(&run->stop) || atomic_load(&run->ended) == run->plan.threads;
}

/* A notification may still run when a run has failed; it ends before the queue's close does. */
void run_join(struct run *run)
{
    for (unsigned i = 0; i < run->plan.threads; i++)
        if (run->workers[i].thread_started)
            pthread_join(run->workers[i].thread, NULL);
}

void run_wait(struct run *run, unsigned milliseconds)
{
    LARGE_INTEGER step = {.QuadPart = -10000ll * milliseconds};
    uint64_t until = run_now_ns() + milliseconds * UINT64_C(1000000);
    NDK_RESULT_EX results[RUN_BATCH];

    if (!run->plan.spins_long) {
        KeWaitForSingleObject(&run->wake, Executive, KernelMode, FALSE, &step);
        return;
    }
    step.QuadPart = -1000; /* 0.1 ms */
    do {
        for (unsigned i = 0; i < run->plan.threads; i++)
            if (run->workers[i].poll)
                run->workers[i].poll(run->workers[i].cq, results, RUN_BATCH);
    } while (KeWaitForSingleObject(&run->wake, Executive, KernelMode, FALSE, &step) ==
                 STATUS_TIMEOUT &&
             run_now_ns() < until);
}
