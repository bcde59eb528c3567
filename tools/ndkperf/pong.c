// SPDX-License-Identifier: MIT
/*
 * lat: one request at a time.
 *
 *   send   the client sends, the server answers. Round robin: the next one goes over the next queue
 *          pair.
 *   write  the same with writes: each side looks at the last octet of what the peer writes, which
 * is placed last. A side writes again only when its write before has completed. read   the client
 * reads, the server does nothing.
 *
 * One look at the clock an iteration, at its end, which is the beginning of the next.
 */
#include "run.h"

#include <string.h>

bool pong_prepare(struct worker *worker)
{
    const struct plan *plan = &worker->run->plan;
    unsigned receives = plan_receives(plan);

    for (unsigned i = 0; i < worker->qp_count; i++) {
        if (plan->op == PERF_READ)
            pattern_fill(worker->qps[i].tx, plan->size, 0);
        for (unsigned k = 0; k < receives; k++)
            if (!perf_receive(&worker->qps[i]))
                return false;
    }
    return true;
}

static bool checked(struct perf_qp *qp, NTSTATUS status)
{
    struct run *run = qp->worker->run;

    if (status == STATUS_SUCCESS)
        return true;
    run_fail_call(run, &qp->qp->Header, perf_op_names[run->plan.op], status);
    return false;
}

/* ---- posts ---- */

static NDK_SGE piece(const struct perf_qp *qp, UCHAR *octets)
{
    const struct run *run = qp->worker->run;
    NDK_SGE sge = {.Length = run->plan.size, .MemoryRegionToken = run->memory.local};

    sge.VirtualAddress = octets;
    return sge;
}

/* A Send whose answer says that it has arrived needs no completion of its own. */
static bool send(struct perf_qp *qp)
{
    const struct plan *plan = &qp->worker->run->plan;
    NDK_SGE sge = piece(qp, qp->tx);
    ULONG flags = (qp->posted + 1) % plan->moderation != 0 ? NDK_OP_FLAG_SILENT_SUCCESS : 0;

    if (plan->verify)
        pattern_fill(qp->tx, plan->size, qp->posted);
    if (plan->size <= plan->inline_size)
        flags |= NDK_OP_FLAG_INLINE;
    qp->posted++;
    return checked(qp, qp->qp->Dispatch->NdkSend(qp->qp, qp->tx, &sge, 1, flags));
}

static bool write_octet(struct perf_qp *qp, uint8_t value)
{
    const struct run *run = qp->worker->run;
    NDK_SGE sge = piece(qp, qp->tx);
    ULONG flags = run->plan.size <= run->plan.inline_size ? NDK_OP_FLAG_INLINE : 0;

    /* The last octet is no part of the pattern: the end of one that is shorter is another. */
    if (run->plan.verify)
        pattern_fill(qp->tx, run->plan.size - 1, qp->posted);
    qp->tx[run->plan.size - 1] = value;
    qp->seen = value;
    qp->writing = true;
    qp->posted++;
    return checked(qp, qp->qp->Dispatch->NdkWrite(qp->qp, qp->tx, &sge, 1, qp->peer_rx,
                                                  run->peer_token, flags));
}

static bool read(struct perf_qp *qp)
{
    const struct run *run = qp->worker->run;
    NDK_SGE sge = piece(qp, qp->rx);

    if (run->plan.verify)
        memset(qp->rx, 0, run->plan.size);
    qp->posted++;
    return checked(
        qp, qp->qp->Dispatch->NdkRead(qp->qp, qp->rx, &sge, 1, qp->peer_tx, run->peer_token, 0));
}

/* ---- iterations ---- */

static bool post_next(struct perf_qp *qp)
{
    switch (qp->worker->run->plan.op) {
    case PERF_WRITE:
        return write_octet(qp, (uint8_t)(qp->seen + 1));
    case PERF_READ:
        return read(qp);
    default:
        return send(qp);
    }
}

/* The fences of all queue pairs. */
static bool finish(struct worker *worker)
{
    bool over = false;

    for (unsigned i = 0; i < worker->qp_count; i++) {
        worker->qps[i].limit = worker->qps[i].posted;
        over = perf_settle(&worker->qps[i]);
    }
    return over;
}

/* The client: an iteration has ended; the next begins, or the fences go. False: the run failed. */
static bool iterate(struct worker *worker)
{
    uint64_t now = run_now_ns();
    struct perf_qp *qp;

    worker->done++;
    if (worker->measuring)
        histogram_add(worker->figures.times, now - worker->last_ns);
    worker->last_ns = now;
    if (worker_count(worker)) {
        finish(worker);
        return true;
    }
    if (++worker->current == worker->qp_count)
        worker->current = 0;
    qp = &worker->qps[worker->current];
    return post_next(qp);
}

bool pong_begin(struct worker *worker)
{
    for (unsigned i = 0; i < worker->qp_count; i++)
        worker->qps[i].limit = worker->run->server ? 0 : UINT64_MAX;
    worker->last_ns = run_now_ns();
    if (worker->run->server)
        return true;
    return post_next(&worker->qps[0]);
}

static bool good_message(struct perf_qp *qp, const UCHAR *octets, size_t size, uint64_t n)
{
    if (!qp->worker->run->plan.verify || pattern_good(octets, size, n))
        return true;
    run_fail(qp->worker->run, "message %llu is not what was sent", (unsigned long long)n);
    return false;
}

/* The server's fence follows the client's, whatever it has posted itself. */
static bool settle(struct perf_qp *qp)
{
    if (qp->worker->run->server && qp->fence_got)
        qp->limit = qp->posted;
    return perf_settle(qp);
}

/* ---- send ---- */

/* True: the worker is done. */
static bool take_message(struct perf_qp *qp, const NDK_RESULT_EX *result)
{
    struct worker *worker = qp->worker;
    const struct plan *plan = &worker->run->plan;

    if (perf_take_mark(qp, result))
        return settle(qp);
    if (result->BytesTransferred != plan->size) {
        run_fail(worker->run, "a message of %u octets, need %u", (unsigned)result->BytesTransferred,
                 plan->size);
        return true;
    }
    if (!good_message(qp, result->RequestContext, plan->size, qp->received))
        return true;
    qp->received++;
    /* First the answer, then what the next message needs. */
    return !(worker->run->server ? send(qp) : iterate(worker)) || !perf_receive(qp);
}

bool pong_step(struct worker *worker, const NDK_RESULT_EX *results, ULONG count)
{
    for (ULONG i = 0; i < count; i++) {
        struct perf_qp *qp = run_qp_of(&results[i]);

        if (results[i].Status != STATUS_SUCCESS)
            return worker_fail_result(worker, &results[i]);
        if (results[i].Type & NdkOperationTypeReceive) {
            if (take_message(qp, &results[i]))
                return true;
        } else if (results[i].RequestContext == qp->mark) {
            qp->fence_done = true;
            if (settle(qp))
                return true;
        }
    }
    return false;
}

/* ---- write ---- */

/*
 * The octet is written by another thread, or by the process behind a connection whose progress is
 * inline; that it changes is the message. Nothing orders the two for a thread sanitizer.
 */
__attribute__((no_sanitize("thread"), noinline)) static uint8_t look(const UCHAR *octet)
{
    return __atomic_load_n(octet, __ATOMIC_ACQUIRE);
}

/* Marks and the completions of our own writes. */
static bool take_others(struct worker *worker, const NDK_RESULT_EX *results, ULONG count)
{
    for (ULONG i = 0; i < count; i++) {
        struct perf_qp *qp = run_qp_of(&results[i]);

        if (results[i].Status != STATUS_SUCCESS)
            return worker_fail_result(worker, &results[i]);
        if (results[i].Type & NdkOperationTypeReceive)
            perf_take_mark(qp, &results[i]);
        else if (results[i].RequestContext == qp->mark)
            qp->fence_done = true;
        else
            qp->writing = false;
        if (settle(qp))
            return true;
    }
    return false;
}

bool pong_write_step(struct worker *worker, const NDK_RESULT_EX *results, ULONG count)
{
    struct perf_qp *qp = &worker->qps[0];
    const size_t last = worker->run->plan.size - 1;
    uint8_t value;

    if (count > 0 && take_others(worker, results, count))
        return true;
    if (qp->writing || qp->fence_sent)
        return false;
    value = look(&qp->rx[last]);
    /* The client waits for its own value to come back, the server for the one behind. */
    if (value != (uint8_t)(worker->run->server ? qp->seen + 1 : qp->seen))
        return false;
    if (!good_message(qp, qp->rx, last, qp->received))
        return true;
    qp->received++;
    return !(worker->run->server ? write_octet(qp, value) : iterate(worker));
}

/* ---- read ---- */

bool pong_read_step(struct worker *worker, const NDK_RESULT_EX *results, ULONG count)
{
    for (ULONG i = 0; i < count; i++) {
        struct perf_qp *qp = run_qp_of(&results[i]);

        if (results[i].Status != STATUS_SUCCESS)
            return worker_fail_result(worker, &results[i]);
        if (results[i].Type == NdkOperationTypeRead) {
            if (!good_message(qp, qp->rx, worker->run->plan.size, 0) || !iterate(worker))
                return true;
        } else if (take_others(worker, &results[i], 1)) {
            return true;
        }
    }
    return false;
}
