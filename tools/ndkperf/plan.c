// SPDX-License-Identifier: MIT
/* See plan.h. No state. */
#include "plan.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/tool_red.h"

#define MAGIC     "ndkperf-1"
#define LINE      64 /* octets: buffers begin at a cache line of their own */
#define MARKS     2  /* receives for the messages that end a run */
#define QUEUE_MAX 4096
#define PAGE      4096
#define PAGES_MAX 256

const char *const perf_op_names[PERF_OPS] = {"send", "write", "read", "send-inv", "fastreg"};
const char *const perf_mode_names[PERF_MODES] = {"bw", "lat", "rate", "conn"};
const char *const perf_wait_names[PERF_WAITS] = {"spin", "event"};

/* ---- derived ---- */

bool plan_is_exchange(const struct plan *plan)
{
    return plan->op == PERF_SEND_INV || plan->op == PERF_FASTREG;
}

bool plan_is_active(const struct plan *plan, bool server)
{
    return !server || plan->both_ways;
}

bool plan_polls(const struct plan *plan, bool server)
{
    return plan->wait == PERF_SPIN && (plan->op != PERF_WRITE || plan->mode == PERF_LAT ||
                                       plan_is_active(plan, server) || RED("ndkperf-target-polls"));
}

uint32_t plan_receives(const struct plan *plan)
{
    if (plan->mode == PERF_CONN)
        return 1;
    if (plan->op == PERF_WRITE || plan->op == PERF_READ)
        return MARKS;
    if (plan->mode == PERF_LAT)
        return 4 + MARKS;
    if (plan->verify || plan_is_exchange(plan))
        return plan->depth + MARKS;
    /* As consumers with credits do, the receiver always has one ready: octets of many small
     * messages wait in TCP, and would find none. */
    if (plan->qps <= 16 || 2 * plan->depth + MARKS > QUEUE_MAX)
        return QUEUE_MAX;
    return 2 * plan->depth + MARKS;
}

uint32_t plan_requests(const struct plan *plan)
{
    /* A fast registration is a request of its own; fence and acknowledgement end the run. */
    return plan->depth * (plan_is_exchange(plan) ? 2 : 1) + 4;
}

uint32_t plan_buffer(const struct plan *plan)
{
    return (plan->size + LINE - 1) / LINE * LINE;
}

uint64_t plan_stride(const struct plan *plan)
{
    return (uint64_t)plan_buffer(plan) * plan->buffers * 2 + 2 * LINE;
}

uint64_t plan_memory(const struct plan *plan)
{
    return plan_stride(plan) * plan->qps;
}

/* ---- checks ---- */

static bool wrong(char *error, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Always false. */
static bool wrong(char *error, size_t size, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    vsnprintf(error, size, format, ap);
    va_end(ap);
    return false;
}

static bool in_range(const char *name, uint64_t value, uint64_t low, uint64_t high, char *error,
                     size_t size)
{
    return (value >= low && value <= high) ||
           wrong(error, size, "--%s: have %" PRIu64 ", need %" PRIu64 " to %" PRIu64, name, value,
                 low, high);
}

static bool check_ranges(const struct plan *p, char *error, size_t size)
{
    return in_range("size", p->size, 1, PLAN_SIZE_MAX, error, size) &&
           in_range("depth", p->depth, 1, PLAN_DEPTH_MAX, error, size) &&
           in_range("defer", p->chain, 1, PLAN_DEPTH_MAX, error, size) &&
           in_range("cq-mod", p->moderation, 1, PLAN_DEPTH_MAX, error, size) &&
           in_range("qps", p->qps, 1, PLAN_QPS_MAX, error, size) &&
           in_range("threads", p->threads, 1, PLAN_THREADS_MAX, error, size) &&
           in_range("buffers", p->buffers, 1, 2 * PLAN_DEPTH_MAX, error, size) &&
           in_range("inline", p->inline_size, 0, PAGE, error, size) &&
           in_range("reads", p->reads, 1, 128, error, size) &&
           in_range("pages", p->pages, 1, PAGES_MAX, error, size);
}

static bool check_lat(const struct plan *p, char *error, size_t size)
{
    if (p->both_ways)
        return wrong(error, size, "--mode lat: goes both ways by itself, without --bidirectional");
    if (p->chain > 1 || p->depth > 1)
        return wrong(error, size,
                     "--mode lat: one request is in flight; --depth and --defer are for bw and "
                     "rate");
    if (p->op == PERF_WRITE && (p->wait == PERF_EVENT || p->moderation > 1))
        return wrong(error, size,
                     "--op write --mode lat: looks at memory, since a write tells its target "
                     "nothing, and at each completion: need --wait spin and --cq-mod 1");
    if (p->round_robin && p->op != PERF_SEND)
        return wrong(error, size, "--round-robin: needs --op send (have %s)", perf_op_names[p->op]);
    if (!p->round_robin && p->qps != p->threads)
        return wrong(error, size,
                     "--mode lat: one queue pair a thread (have --qps %u, --threads %u), or "
                     "--round-robin over them",
                     p->qps, p->threads);
    return true;
}

static bool check_stream(const struct plan *p, char *error, size_t size)
{
    if (p->round_robin)
        return wrong(error, size, "--round-robin: needs --mode lat (have %s)",
                     perf_mode_names[p->mode]);
    if (p->chain + p->moderation - 1 > p->depth)
        return wrong(error, size,
                     "--depth: have %u, need --defer + --cq-mod - 1, which is %u: a chain would "
                     "wait for room that nothing makes",
                     p->depth, p->chain + p->moderation - 1);
    return true;
}

static bool check_exchange(const struct plan *p, char *error, size_t size)
{
    if (p->size < 4)
        return wrong(error, size,
                     "--size: have %u, need 4 with --op %s: the request carries a "
                     "token",
                     p->size, perf_op_names[p->op]);
    if (p->both_ways || p->verify || p->chain > 1 || p->moderation > 1)
        return wrong(error, size,
                     "--op %s: takes no --bidirectional, --verify, --defer or --cq-mod",
                     perf_op_names[p->op]);
    if ((uint64_t)p->qps * p->depth * p->pages * PAGE > PLAN_MEMORY_MAX)
        return wrong(error, size, "--pages: more than 1 GiB over all queue pairs and depths");
    return true;
}

static bool check_conn(const struct plan *p, char *error, size_t size)
{
    if (p->op != PERF_SEND)
        return wrong(error, size, "--mode conn: sends nothing, and takes no --op (have %s)",
                     perf_op_names[p->op]);
    if (p->both_ways || p->verify || p->round_robin || p->chain > 1 || p->moderation > 1 ||
        p->threads > 1 || p->depth > 1)
        return wrong(error, size,
                     "--mode conn: takes no --bidirectional, --verify, --round-robin, --defer, "
                     "--cq-mod, --threads or --depth");
    return true;
}

/* How many buffers a queue pair needs where what is in them matters: as many as requests that may
 * be in flight; messages are received into one each, the marks included. */
static uint32_t least_buffers(const struct plan *p)
{
    if (p->mode == PERF_LAT || p->mode == PERF_CONN)
        return 1;
    if (plan_is_exchange(p))
        return p->depth + MARKS;
    if (!p->verify)
        return 1;
    return p->op == PERF_SEND ? p->depth + MARKS : p->depth;
}

static bool check_buffers(const struct plan *p, char *error, size_t size)
{
    uint32_t least = least_buffers(p);

    return p->buffers >= least || RED("ndkperf-buffers-unchecked") ||
           wrong(error, size,
                 "--buffers: have %u, need %u with %s and --depth %u: what is in flight would be "
                 "overwritten",
                 p->buffers, least, plan_is_exchange(p) ? perf_op_names[p->op] : "--verify",
                 p->depth);
}

bool plan_check(const struct plan *p, char *error, size_t size)
{
    if (p->op >= PERF_OPS || p->mode >= PERF_MODES || p->wait >= PERF_WAITS)
        return wrong(error, size, "an operation, mode or way to wait that is not known here");
    if (!check_ranges(p, error, size))
        return false;
    if ((p->iterations == 0) == (p->seconds == 0))
        return wrong(error, size, "need a number of iterations or a duration, one of them");
    if (p->qps < p->threads)
        return wrong(error, size, "--qps: have %u, need --threads (%u) at least", p->qps,
                     p->threads);
    if (plan_memory(p) > PLAN_MEMORY_MAX)
        return wrong(error, size,
                     "--size, --buffers, --qps: %" PRIu64 " octets, need 1 GiB at most",
                     plan_memory(p));
    if (p->mode == PERF_CONN)
        return check_conn(p, error, size);
    if (plan_is_exchange(p) && !check_exchange(p, error, size))
        return false;
    if (!(p->mode == PERF_LAT ? check_lat(p, error, size) : check_stream(p, error, size)))
        return false;
    return check_buffers(p, error, size);
}

/* ---- the line ---- */

void plan_write(const struct plan *p, char text[PLAN_TEXT_MAX])
{
    snprintf(text, PLAN_TEXT_MAX,
             MAGIC " %d %d %d %u %u %u %u %u %u %u %u %u %u %" PRIu64 " %u %" PRIu64
                   " %d %d %d %d %d %s",
             (int)p->op, (int)p->mode, (int)p->wait, p->size, p->depth, p->chain, p->moderation,
             p->qps, p->threads, p->buffers, p->inline_size, p->reads, p->pages, p->iterations,
             p->seconds, p->warmup, p->both_ways, p->verify, p->round_robin, p->registers,
             p->spins_long, p->adapter);
}

bool plan_read(const char *text, struct plan *out, char *error, size_t size)
{
    struct plan p = {.op = PERF_SEND};
    unsigned op, mode, wait, flags[5];
    int taken = 0, fields;

    fields =
        sscanf(text,
               MAGIC " %u %u %u %u %u %u %u %u %u %u %u %u %u %" SCNu64 " %u %" SCNu64
                     " %u %u %u %u %u %n",
               &op, &mode, &wait, &p.size, &p.depth, &p.chain, &p.moderation, &p.qps, &p.threads,
               &p.buffers, &p.inline_size, &p.reads, &p.pages, &p.iterations, &p.seconds, &p.warmup,
               &flags[0], &flags[1], &flags[2], &flags[3], &flags[4], &taken);
    if (fields != 21 || taken == 0)
        return wrong(error, size, "not a plan of this version (" MAGIC ")");
    p.op = (enum perf_op)op;
    p.mode = (enum perf_mode)mode;
    p.wait = (enum perf_wait)wait;
    p.both_ways = flags[0];
    p.verify = flags[1];
    p.round_robin = flags[2];
    p.registers = flags[3];
    p.spins_long = flags[4];
    if (strlen(text + taken) >= sizeof(p.adapter))
        return wrong(error, size, "adapter options of more than %zu octets", sizeof(p.adapter) - 1);
    snprintf(p.adapter, sizeof(p.adapter), "%s", text + taken);
    if (!RED("ndkperf-plan-unchecked") && !plan_check(&p, error, size))
        return false;
    *out = p;
    return true;
}
