// SPDX-License-Identifier: MIT
/*
 * modes.c - half round trips of Sends; windows of Sends, RMA writes and RMA reads.
 *
 * The server of a window is told over the control connection that the client is through, and looks
 * there when nothing comes. For RMA it has only its queue to read: that is what makes progress.
 */
#include <errno.h>
#include <string.h>

#include "fabric/fabric.h"

#define IDLE_LOOK 64u /* empty looks at the queue between two at the control connection */

/* ---- half round trips ------------------------------------------------------------------------ */

/* The shortest way that the provider has for a message of this size. */
static long try_send(struct fabric_link *link)
{
    size_t size = link->end->plan.size;
    long rc;

    if (size > link->info->tx_attr->inject_size)
        return fi_send(link->ep, link->memory, size, link->descriptor, 0, NULL);
    rc = fi_inject(link->ep, link->memory, size, 0);
    if (rc == 0)
        link->sent++; /* has no completion */
    return rc;
}

static void send_one(struct fabric_link *link)
{
    long rc;

    while ((rc = try_send(link)) == -FI_EAGAIN)
        fabric_progress(link, false);
    fabric_must("fi_send", rc);
}

static void exchange(struct fabric_link *link)
{
    uint64_t have = link->received;

    send_one(link);
    while (link->received == have)
        fabric_progress(link, true);
    fabric_post_receive(link);
}

/* The server closes first, when it has everything. */
static void finish(struct fabric_link *link, uint64_t sends)
{
    if (!bench_send(link->end->control, &sends, sizeof sends, false))
        bench_die("the server is gone");
    bench_wait_report(link->end);
    link->over = true;
    fabric_close(link);
}

static void latency_client(struct bench_end *end, struct bench_result *result)
{
    const struct bench_plan *plan = &end->plan;
    struct bench_samples samples;
    struct fabric_link link;
    uint64_t begin, last, stop;

    bench_samples_open(&samples);
    fabric_open_client(&link, end);
    begin = last = bench_now_ns();
    while ((double)(last - begin) < plan->warm_up * 1e9) {
        exchange(&link);
        last = bench_now_ns();
    }
    begin = last = bench_now_ns();
    stop = begin + (uint64_t)(plan->seconds * 1e9);
    while (plan->iters ? result->iters < plan->iters : last < stop) {
        uint64_t now;

        exchange(&link);
        now = bench_now_ns();
        bench_sample(&samples, now - last);
        last = now;
        result->iters++;
    }
    result->seconds = (double)(last - begin) * 1e-9;
    bench_samples_finish(&samples, 2, result);
    finish(&link, 0);
}

/* Whether the client has said that it is through, and after how many Sends. */
static bool is_over(struct bench_end *end, uint64_t *sends)
{
    ssize_t n = recv(end->control, sends, sizeof *sends, MSG_DONTWAIT);

    if (n < 0 && errno != EAGAIN && errno != EINTR)
        bench_die_errno("control");
    if (n >= 0 && n != sizeof *sends)
        bench_die("the client is gone");
    return n >= 0;
}

static void latency_server(struct bench_end *end, struct bench_report *report)
{
    struct fabric_link link;
    uint64_t sends;
    unsigned idle = 0;

    fabric_open_server(&link, end);
    for (;;) {
        uint64_t have = link.received;

        fabric_progress(&link, true);
        if (link.received == have && (!end->plan.spin || ++idle % IDLE_LOOK == 0) &&
            is_over(end, &sends))
            break;
        for (; have < link.received; have++) {
            send_one(&link);
            fabric_post_receive(&link);
            report->messages++;
        }
    }
    link.over = true;
    fabric_close(&link);
}

/* ---- windows --------------------------------------------------------------------------------- */

static long post(struct fabric_link *link, const char *mode)
{
    size_t size = link->end->plan.size;

    if (strcmp(mode, "send") == 0)
        return try_send(link);
    if (strcmp(mode, "write") == 0)
        return fi_write(link->ep, link->memory, size, link->descriptor, 0, link->remote, link->key,
                        NULL);
    return fi_read(link->ep, link->memory, size, link->descriptor, 0, link->remote, link->key,
                   NULL);
}

/* Posts and waits until all is complete. Returns how many there were. */
static uint64_t run(struct fabric_link *link, uint64_t iters, double seconds)
{
    const struct bench_plan *plan = &link->end->plan;
    uint64_t begin = bench_now_ns(), stop = begin + (uint64_t)(seconds * 1e9);
    uint64_t first = link->sent, posted = 0, in_flight;
    bool more = true;

    while (more || link->sent - first < posted) {
        more = more && (iters ? posted < iters : bench_now_ns() < stop);
        /* What is injected is complete at once: the clock is looked at after a window at most. */
        for (unsigned i = 0; more && i < plan->window && (!iters || posted < iters); i++) {
            long rc = -FI_EAGAIN;

            if (posted - (link->sent - first) < plan->window)
                rc = post(link, plan->mode);
            if (rc == -FI_EAGAIN)
                break;
            fabric_must("post", rc);
            posted++;
        }
        in_flight = posted - (link->sent - first);
        fabric_progress(link, in_flight > 0 && (!more || in_flight == plan->window));
    }
    return posted;
}

static void window_client(struct bench_end *end, struct bench_result *result)
{
    const struct bench_plan *plan = &end->plan;
    struct fabric_link link;
    uint64_t begin, warm;

    fabric_open_client(&link, end);
    warm = plan->warm_up > 0 ? run(&link, 0, plan->warm_up) : 0;
    begin = bench_now_ns();
    result->iters = run(&link, plan->iters, plan->seconds);
    result->seconds = (double)(bench_now_ns() - begin) * 1e-9;
    result->octets = (double)result->iters * plan->size;
    if (strcmp(plan->mode, "send") == 0)
        bench_expect(end, result->iters + warm);
    finish(&link, result->iters + warm);
}

static void window_server(struct bench_end *end, struct bench_report *report)
{
    bool send = strcmp(end->plan.mode, "send") == 0, over = false;
    struct fabric_link link;
    uint64_t sends = 0;
    unsigned idle = 0;

    fabric_open_server(&link, end);
    while (!over || (send && link.received < sends)) {
        uint64_t have = link.received;

        fabric_progress(&link, true);
        for (idle = link.received == have ? idle + 1 : 0; have < link.received; have++)
            fabric_post_receive(&link);
        if (!over && idle && (!end->plan.spin || idle % IDLE_LOOK == 0))
            over = is_over(end, &sends);
    }
    report->messages = link.received;
    report->octets = link.received * end->plan.size;
    link.over = true;
    fabric_close(&link);
}

static const struct bench_mode latency = {"latency", latency_client, latency_server,
                                          "half round trip of one Send"};
static const struct bench_mode sends = {"send", window_client, window_server,
                                        "Sends, --window in flight"};
static const struct bench_mode writes = {"write", window_client, window_server, "RMA writes"};
static const struct bench_mode reads = {"read", window_client, window_server, "RMA reads"};

const char bench_program[] = "fabric";
const struct bench_mode *const bench_modes[] = {&latency, &sends, &writes, &reads, NULL};
