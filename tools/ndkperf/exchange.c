// SPDX-License-Identifier: MIT
/*
 * send-inv and fastreg: the way drivers of storage work. The client registers pages by a fast
 * registration, sends a request that carries their token, and the server's answer invalidates it.
 * With --no-reg the same two messages without registration and invalidation.
 *
 * Each queue pair has `depth` exchanges in progress, each with a region and pages of its own.
 * Answers come in the order of the requests, so the nth answer belongs to exchange n modulo depth.
 * Requests complete silently: the answer says that they are done.
 */
#include "run.h"

#include <stdlib.h>
#include <string.h>

/* What a worker of the client has in own. */
struct exchange {
    UCHAR *pages;
    PMDL mdl;
    NDK_LOGICAL_ADDRESS_MAPPING *lam;
    unsigned count; /* of regions: queue pairs times depth */
    NDK_MR **regions;
    UINT32 *tokens;
};

/* ---- pages and regions ---- */

static bool build_lam(struct worker *worker, struct exchange *x, size_t octets)
{
    NDK_ADAPTER *adapter = worker->run->adapter;
    struct tool_wait wait;
    ULONG size = 0, fbo;
    NTSTATUS status;

    for (int turn = 0; turn < 2; turn++) { /* the size, then the mapping */
        tool_wait_begin(&wait);
        status = tool_wait_end(&wait, adapter->Dispatch->NdkBuildLAM(adapter, x->mdl, octets,
                                                                     tool_requested, &wait, x->lam,
                                                                     &size, &fbo));
        if (status == STATUS_SUCCESS)
            return true;
        if (status != STATUS_BUFFER_TOO_SMALL || x->lam || !(x->lam = malloc(size)))
            break;
    }
    free(x->lam);
    x->lam = NULL;
    run_fail_call(worker->run, &adapter->Header, "NdkBuildLAM", status);
    return false;
}

static bool make_region(struct worker *worker, NDK_MR **out)
{
    struct run *run = worker->run;
    struct tool_wait wait;
    NDK_MR *mr = NULL;
    NTSTATUS status;

    tool_wait_begin(&wait);
    status = run->pd->Dispatch->NdkCreateMr(run->pd, TRUE, tool_created, &wait, &mr);
    if (status == STATUS_PENDING) {
        status = tool_wait_end(&wait, status);
        mr = (NDK_MR *)wait.object;
    }
    if (status != STATUS_SUCCESS) {
        run_fail_call(run, &run->pd->Header, "NdkCreateMr", status);
        return false;
    }
    *out = mr;
    tool_wait_begin(&wait);
    status = tool_wait_end(&wait, mr->Dispatch->NdkInitializeFastRegisterMr(
                                      mr, run->plan.pages, TRUE, tool_requested, &wait));
    if (status == STATUS_SUCCESS)
        return true;
    run_fail_call(run, &mr->Header, "NdkInitializeFastRegisterMr", status);
    return false;
}

static bool make_regions(struct worker *worker)
{
    const struct plan *plan = &worker->run->plan;
    unsigned count = worker->qp_count * plan->depth;
    size_t octets = (size_t)count * plan->pages * PAGE_SIZE;
    struct exchange *x = calloc(1, sizeof(*x));

    worker->own = x;
    if (x) {
        x->regions = calloc(count, sizeof(NDK_MR *));
        x->tokens = calloc(count, sizeof(UINT32));
        x->pages = aligned_alloc(PAGE_SIZE, octets);
    }
    if (!x || !x->regions || !x->tokens || !x->pages ||
        !(x->mdl = IoAllocateMdl(x->pages, (ULONG)octets, FALSE, FALSE, NULL))) {
        run_fail(worker->run, "no memory for %zu octets to register", octets);
        return false;
    }
    memset(x->pages, 0, octets);
    MmBuildMdlForNonPagedPool(x->mdl);
    if (!build_lam(worker, x, octets))
        return false;
    for (; x->count < count; x->count++)
        if (!make_region(worker, &x->regions[x->count])) {
            x->count += x->regions[x->count] != NULL;
            return false;
        }
    return true;
}

/* When the queue pairs are closed: requests hold their regions. */
void exchange_close(struct worker *worker)
{
    struct exchange *x = worker->own;

    if (!x)
        return;
    for (unsigned i = 0; i < x->count; i++)
        tool_close(&x->regions[i]->Header, x->regions[i]->Dispatch->NdkCloseMr);
    if (x->lam)
        worker->run->adapter->Dispatch->NdkReleaseLAM(worker->run->adapter, x->lam);
    if (x->mdl)
        IoFreeMdl(x->mdl);
    free(x->lam);
    free(x->pages);
    free(x->tokens);
    free(x->regions);
    free(x);
    worker->own = NULL;
}

/* ---- posts ---- */

static bool checked(struct perf_qp *qp, const char *call, NTSTATUS status)
{
    if (status == STATUS_SUCCESS)
        return true;
    run_fail_call(qp->worker->run, &qp->qp->Header, call, status);
    return false;
}

/* The registration waits for the request behind it, so both go in one piece. */
static bool register_pages(struct perf_qp *qp, unsigned place)
{
    struct worker *worker = qp->worker;
    const uint32_t pages = worker->run->plan.pages;
    struct exchange *x = worker->own;
    NDK_MR *mr = x->regions[place];
    NTSTATUS status;

    status = qp->qp->Dispatch->NdkFastRegister(
        qp->qp, NULL, mr, pages, &x->lam->AdapterPageArray[(size_t)place * pages], 0,
        (SIZE_T)pages * PAGE_SIZE, x->pages + (size_t)place * pages * PAGE_SIZE,
        NDK_OP_FLAG_ALLOW_REMOTE_READ | NDK_OP_FLAG_ALLOW_REMOTE_WRITE | NDK_OP_FLAG_DEFER |
            NDK_OP_FLAG_SILENT_SUCCESS);
    x->tokens[place] = mr->Dispatch->NdkGetRemoteTokenFromMr(mr);
    return checked(qp, "NdkFastRegister", status);
}

static bool request(struct perf_qp *qp)
{
    struct worker *worker = qp->worker;
    const struct run *run = worker->run;
    unsigned slot = (unsigned)(qp->posted % run->plan.depth);
    unsigned place = (unsigned)(qp - worker->qps) * run->plan.depth + slot;
    UCHAR *message = qp->tx + (size_t)slot * plan_buffer(&run->plan);
    NDK_SGE sge = {.Length = run->plan.size, .MemoryRegionToken = run->memory.local};
    ULONG flags = NDK_OP_FLAG_SILENT_SUCCESS;

    if (run->plan.registers) {
        if (!register_pages(qp, place))
            return false;
        memcpy(message, &((struct exchange *)worker->own)->tokens[place], sizeof(UINT32));
    }
    if (run->plan.size <= run->plan.inline_size)
        flags |= NDK_OP_FLAG_INLINE;
    sge.VirtualAddress = message;
    qp->posted++;
    return checked(qp, "NdkSend", qp->qp->Dispatch->NdkSend(qp->qp, message, &sge, 1, flags));
}

static bool answer(struct perf_qp *qp, const UCHAR *message)
{
    const struct run *run = qp->worker->run;
    NDK_SGE sge = {.Length = run->plan.size, .MemoryRegionToken = run->memory.local};
    ULONG flags = NDK_OP_FLAG_SILENT_SUCCESS;
    UINT32 token;

    sge.VirtualAddress = qp->tx;
    if (run->plan.size <= run->plan.inline_size)
        flags |= NDK_OP_FLAG_INLINE;
    if (!run->plan.registers)
        return checked(qp, "NdkSend", qp->qp->Dispatch->NdkSend(qp->qp, qp->tx, &sge, 1, flags));
    memcpy(&token, message, sizeof(token));
    return checked(qp, "NdkSendAndInvalidate",
                   qp->qp->Dispatch->NdkSendAndInvalidate(qp->qp, qp->tx, &sge, 1, flags, token));
}

/* ---- the run ---- */

bool exchange_prepare(struct worker *worker)
{
    for (unsigned i = 0; i < worker->qp_count; i++)
        for (unsigned k = plan_receives(&worker->run->plan); k > 0; k--)
            if (!perf_receive(&worker->qps[i]))
                return false;
    return worker->run->server || !worker->run->plan.registers || make_regions(worker);
}

/* As many as may be in progress. */
static bool request_all(struct worker *worker)
{
    for (unsigned i = 0; i < worker->qp_count; i++) {
        struct perf_qp *qp = &worker->qps[i];

        while (qp->posted < worker_allows(qp) &&
               qp->posted - qp->received < worker->run->plan.depth)
            if (!request(qp))
                return false;
        perf_settle(qp);
    }
    return true;
}

bool exchange_begin(struct worker *worker)
{
    worker->last_ns = run_now_ns();
    worker_share(worker, !worker->run->server);
    return worker->run->server || request_all(worker);
}

/* Is it the answer that invalidated this exchange's region? */
static bool good_answer(struct perf_qp *qp, const NDK_RESULT_EX *result)
{
    struct worker *worker = qp->worker;
    const struct plan *plan = &worker->run->plan;
    unsigned slot = (unsigned)(qp->received % plan->depth);
    const struct exchange *x = worker->own;
    UINT32 token;

    if (!plan->registers)
        return true;
    token = x->tokens[(unsigned)(qp - worker->qps) * plan->depth + slot];
    if (result->Type == NdkOperationTypeReceiveAndInvalidate &&
        (UINT32)result->TypeSpecificCompletionOutput == token)
        return true;
    run_fail(worker->run, "answer %llu: did not invalidate token 0x%08x",
             (unsigned long long)qp->received, token);
    return false;
}

static bool answered(struct perf_qp *qp, const NDK_RESULT_EX *result)
{
    struct worker *worker = qp->worker;

    if (!good_answer(qp, result))
        return false;
    qp->received++;
    worker->done++;
    if (worker->run->plan.mode == PERF_LAT) {
        uint64_t now = run_now_ns();

        if (worker->measuring)
            histogram_add(worker->figures.times, now - worker->last_ns);
        worker->last_ns = now;
    }
    if (worker_look(worker))
        return request_all(worker);
    if (worker->expired && qp->limit == UINT64_MAX)
        for (unsigned i = 0; i < worker->qp_count; i++) {
            worker->qps[i].limit = worker->qps[i].posted;
            perf_settle(&worker->qps[i]);
        }
    return qp->posted >= worker_allows(qp) || request(qp);
}

/* False: the worker is done. */
static bool take(struct perf_qp *qp, const NDK_RESULT_EX *result)
{
    struct run *run = qp->worker->run;
    bool good;

    if (result->Status != STATUS_SUCCESS)
        return !worker_fail_result(qp->worker, result);
    if (!(result->Type & NdkOperationTypeReceive)) {
        qp->fence_done = true; /* all others are silent */
    } else if (!perf_take_mark(qp, result)) {
        good = run->server ? answer(qp, result->RequestContext) : answered(qp, result);
        if (!good || !perf_receive(qp))
            return false;
    }
    return !perf_settle(qp);
}

bool exchange_step(struct worker *worker, const NDK_RESULT_EX *results, ULONG count)
{
    (void)worker;
    for (ULONG i = 0; i < count; i++)
        if (!take(run_qp_of(&results[i]), &results[i]))
            return true;
    return false;
}
