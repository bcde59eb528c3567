// SPDX-License-Identifier: MIT
/*
 * What is printed: a heading with the conditions and the units, then a row for each run; or an
 * object of JSON a line. MB are 10^6 octets.
 */
#include "perf.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/tool_args.h"

static bool has_times(const struct plan *plan)
{
    return plan->mode == PERF_LAT || plan->mode == PERF_CONN;
}

/* A ping-pong of sends or writes is told by half, as perftest does; a read or an exchange is whole.
 */
static double part_of(const struct plan *plan)
{
    return plan->mode == PERF_LAT && (plan->op == PERF_SEND || plan->op == PERF_WRITE) ? 0.5 : 1.0;
}

static const char *or_default(const char *given, const char *otherwise)
{
    return given ? given : otherwise;
}

void report_heading(const struct perf_options *options, const char *peer)
{
    const struct plan *plan = &options->plan;
    char fpdu[40] = "by the segment size";

    if (options->json)
        return;
    if (options->fpdu)
        snprintf(fpdu, sizeof(fpdu), "up to %u octets", options->fpdu);
    printf("%s %s, %s: %u queue pair%s, depth %u, chains of %u, %u thread%s, wait %s%s%s\n",
           perf_op_names[plan->op], perf_mode_names[plan->mode], peer, plan->qps,
           plan->qps == 1 ? "" : "s", plan->depth, plan->chain, plan->threads,
           plan->threads == 1 ? "" : "s", perf_wait_names[plan->wait],
           plan->both_ways ? ", both ways" : "", plan->verify ? ", verified" : "");
    printf("completion %s, CRC %s, FPDUs %s, progress %s%s%s\n",
           or_default(options->completion, "local"), or_default(options->crc, "on"), fpdu,
           or_default(options->progress, "engine"), plan->adapter[0] ? "; options " : "",
           plan->adapter);
    if (plan->mode == PERF_CONN) {
        puts(
            "times are those from the creation of a queue pair to its connection, in microseconds");
        printf("%12s %12s %10s %15s %10s %12s %10s %10s %10s\n", "#connections", "connects/s",
               "t_min[us]", "t_typical[us]", "t_avg[us]", "t_stdev[us]", "99%[us]", "99.9%[us]",
               "t_max[us]");
    } else if (has_times(plan)) {
        printf("times are %s, in microseconds\n",
               part_of(plan) == 0.5 ? "half round trips" : "those of whole operations");
        printf("%8s %12s %10s %15s %10s %12s %10s %10s %10s\n", "#bytes", "#iterations",
               "t_min[us]", "t_typical[us]", "t_avg[us]", "t_stdev[us]", "99%[us]", "99.9%[us]",
               "t_max[us]");
    } else {
        puts("MB are 10^6 octets; the clock stops when the peer has everything");
        printf("%8s %12s %15s %18s %14s\n", "#bytes", "#iterations", "BW peak[MB/s]",
               "BW average[MB/s]", "MsgRate[Mpps]");
    }
    fflush(stdout);
}

/* ---- JSON ---- */

static void json_text(const char *key, const char *value)
{
    printf("\"%s\": \"", key);
    for (; *value; value++) {
        if (*value == '"' || *value == '\\')
            putchar('\\');
        if ((unsigned char)*value >= ' ')
            putchar(*value);
    }
    printf("\", ");
}

static void json_times(const struct outcome *outcome)
{
    const struct histogram *times = outcome->times;
    double us = part_of(&outcome->plan) / 1e3;

    printf("\"t_min_us\": %.3f, \"t_typical_us\": %.3f, \"t_avg_us\": %.3f, \"t_stdev_us\": %.3f, "
           "\"t_p99_us\": %.3f, \"t_p999_us\": %.3f, \"t_max_us\": %.3f}\n",
           (double)times->least * us, (double)histogram_percentile(times, 0.5) * us,
           histogram_average(times) * us, histogram_deviation(times) * us,
           (double)histogram_percentile(times, 0.99) * us,
           (double)histogram_percentile(times, 0.999) * us, (double)times->most * us);
}

static void json_row(const struct perf_options *options, const struct outcome *outcome)
{
    const struct plan *plan = &outcome->plan;
    double megabytes = plan->size / 1e6;

    putchar('{');
    json_text("op", perf_op_names[plan->op]);
    json_text("mode", perf_mode_names[plan->mode]);
    if (plan->mode != PERF_CONN)
        printf("\"size\": %u, ", plan->size);
    printf("\"iters\": %" PRIu64 ", \"qps\": %u, \"depth\": %u, \"defer\": %u, ",
           outcome->iterations, plan->qps, plan->depth, plan->chain);
    printf("\"threads\": %u, \"cq_mod\": %u, \"bidirectional\": %s, \"registers\": %s, ",
           plan->threads, plan->moderation, plan->both_ways ? "true" : "false",
           plan_is_exchange(plan) && plan->registers ? "true" : "false");
    json_text("wait", perf_wait_names[plan->wait]);
    json_text("crc", or_default(options->crc, "on"));
    printf("\"fpdu\": %u, ", options->fpdu);
    json_text("completion", or_default(options->completion, "local"));
    json_text("progress", or_default(options->progress, "engine"));
    if (plan->mode == PERF_CONN)
        printf("\"conns_per_s\": %.9g, ", outcome->rate);
    if (has_times(plan))
        json_times(outcome);
    else
        /* digits that count: few octets in a long time are not nothing */
        printf("\"bw_peak_MBps\": %.9g, \"bw_avg_MBps\": %.9g, \"rate_Mps\": %.9g}\n",
               outcome->peak * megabytes, outcome->rate * megabytes, outcome->rate / 1e6);
}

/* ---- rows ---- */

static void latency_row(const struct outcome *outcome)
{
    const struct histogram *times = outcome->times;
    double us = part_of(&outcome->plan) / 1e3;

    if (outcome->plan.mode == PERF_CONN)
        printf("%12" PRIu64 " %12.1f", outcome->iterations, outcome->rate);
    else
        printf("%8u %12" PRIu64, outcome->plan.size, outcome->iterations);
    printf(" %10.2f %15.2f %10.2f %12.2f %10.2f %10.2f %10.2f\n", (double)times->least * us,
           (double)histogram_percentile(times, 0.5) * us, histogram_average(times) * us,
           histogram_deviation(times) * us, (double)histogram_percentile(times, 0.99) * us,
           (double)histogram_percentile(times, 0.999) * us, (double)times->most * us);
}

void report_row(const struct perf_options *options, const struct outcome *outcome)
{
    double megabytes = outcome->plan.size / 1e6;

    if (options->json)
        json_row(options, outcome);
    else if (has_times(&outcome->plan))
        latency_row(outcome);
    else
        printf("%8u %12" PRIu64 " %15.2f %18.2f %14.6f\n", outcome->plan.size, outcome->iterations,
               outcome->peak * megabytes, outcome->rate * megabytes, outcome->rate / 1e6);
    fflush(stdout);
}

/* ---- the drawing ---- */

static bool draw(const struct perf_options *options, struct plot *plot,
                 const struct outcome *outcome, const char *title)
{
    const struct plan *plan = &outcome->plan;
    bool lat = plan->mode == PERF_LAT;

    if (options->size_count > 1)
        return plot_curve(options->plot, plot, title, "octets of a message",
                          lat                       ? "t_typical [us]"
                          : plan->mode == PERF_RATE ? "messages [M/s]"
                                                    : "BW average [MB/s]");
    return plot_histogram(options->plot, outcome->times, part_of(plan) / 1e3, title,
                          has_times(plan) ? "us" : "us a message, average of a slice of the run");
}

bool report_can_plot(const char *path)
{
    bool there = access(path, F_OK) == 0;
    FILE *file = fopen(path, "a");

    if (!file) {
        tool_say("--plot '%s': %s", path, strerror(errno));
        return false;
    }
    fclose(file);
    if (!there)
        unlink(path); /* a run that fails leaves nothing */
    return true;
}

bool report_plot(const struct perf_options *options, struct plot *plot,
                 const struct outcome *outcome)
{
    const struct plan *plan = &outcome->plan;
    char title[160];
    double y = outcome->rate / 1e6;

    if (plan->mode == PERF_LAT)
        y = (double)histogram_percentile(outcome->times, 0.5) * part_of(plan) / 1e3;
    else if (plan->mode != PERF_RATE)
        y *= plan->size;
    plot_add(plot, plan->size, y);
    snprintf(title, sizeof(title),
             "ndkperf: %s %s, %u queue pair%s, CRC %s, completion %s, progress %s",
             perf_op_names[plan->op], perf_mode_names[plan->mode], plan->qps,
             plan->qps == 1 ? "" : "s", or_default(options->crc, "on"),
             or_default(options->completion, "local"), or_default(options->progress, "engine"));
    if (draw(options, plot, outcome, title))
        return true;
    tool_say("--plot '%s': %s", options->plot, strerror(errno));
    return false;
}
