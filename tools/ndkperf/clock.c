// SPDX-License-Identifier: MIT
/* See run.h: the clock of a worker, and what it may post by then. Called by its owner only. */
#include "run.h"

#include <time.h>

#define SLICE_NS 5000000

uint64_t run_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void worker_begin_figures(struct worker *worker, uint64_t now)
{
    worker->measuring = true;
    worker->figures.began_ns = worker->slice_ns = worker->last_ns = now;
    worker->figures.count = worker->slice = worker->done; /* until the end: what does not count */
    if (worker->run->plan.seconds)
        worker->deadline_ns = now + worker->run->plan.seconds * UINT64_C(1000000000);
}

void worker_end_figures(struct worker *worker)
{
    struct figures *figures = &worker->figures;
    double average;

    figures->ended_ns = run_now_ns();
    if (!worker->measuring)
        figures->began_ns = figures->ended_ns;
    figures->count = worker->measuring ? worker->done - figures->count : 0;
    if (figures->ended_ns > figures->began_ns) {
        average = (double)figures->count * 1e9 / (double)(figures->ended_ns - figures->began_ns);
        figures->peak = figures->peak > average ? figures->peak : average;
    }
}

/* Ends a slice of the run: the rate within it, and what one message took on average. */
static void end_slice(struct worker *worker, uint64_t now)
{
    uint64_t count = worker->done - worker->slice, ns = now - worker->slice_ns;
    double rate = (double)count * 1e9 / (double)ns;

    if (rate > worker->figures.peak)
        worker->figures.peak = rate;
    if (worker->run->plan.mode == PERF_BW || worker->run->plan.mode == PERF_RATE)
        histogram_add(worker->figures.times, ns / count);
    worker->slice = worker->done;
    worker->slice_ns = now;
}

void worker_count_slow(struct worker *worker)
{
    uint64_t now = run_now_ns();

    atomic_store_explicit(&worker->progress, worker->done, memory_order_relaxed);
    if (!worker->measuring && worker->done >= worker->warmup)
        worker_begin_figures(worker, now);
    if (worker->measuring && now - worker->slice_ns >= SLICE_NS && worker->done > worker->slice)
        end_slice(worker, now);
    if (worker->deadline_ns && now >= worker->deadline_ns)
        worker->expired = true;
    worker->look = worker->done + worker->stride;
    if (!worker->measuring && worker->look > worker->warmup)
        worker->look = worker->warmup;
}

static uint64_t share_of(uint64_t count, unsigned parts, unsigned index)
{
    return count == UINT64_MAX ? UINT64_MAX : count / parts + (index < count % parts);
}

void worker_share(struct worker *worker, bool active)
{
    for (unsigned i = 0; i < worker->qp_count; i++) {
        struct perf_qp *qp = &worker->qps[i];

        qp->limit = active ? share_of(worker->goal, worker->qp_count, i) : 0;
        qp->gate = worker->measuring ? UINT64_MAX : share_of(worker->warmup, worker->qp_count, i);
    }
}

uint64_t worker_allows(const struct perf_qp *qp)
{
    return qp->limit < qp->gate ? qp->limit : qp->gate;
}

bool worker_look(struct worker *worker)
{
    bool warm = worker->measuring;

    if (worker->done < worker->look)
        return false;
    worker_count_slow(worker);
    if (warm || !worker->measuring)
        return false;
    for (unsigned i = 0; i < worker->qp_count; i++)
        worker->qps[i].gate = UINT64_MAX;
    return true;
}

bool worker_count(struct worker *worker)
{
    if (worker->done >= worker->look)
        worker_count_slow(worker);
    return worker->expired || worker->done >= worker->goal;
}
