// SPDX-License-Identifier: MIT
/* main.c - arguments, the control connection, the line of JSON; see bench.h. */
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/bench.h"

static const struct bench_mode *find_mode(const char *name)
{
    for (size_t i = 0; bench_modes[i]; i++)
        if (strcmp(bench_modes[i]->name, name) == 0)
            return bench_modes[i];
    return NULL;
}

static _Noreturn void usage(FILE *out, int status)
{
    fprintf(out,
            "usage: %s -s [-a ADDRESS] [-p PORT] [--cpu N]\n"
            "       %s -c ADDRESS -p PORT [--cpu N] [options] MODE\n"
            "modes:\n",
            bench_program, bench_program);
    for (size_t i = 0; bench_modes[i]; i++)
        fprintf(out, "  %-9s %s\n", bench_modes[i]->name, bench_modes[i]->what);
    fprintf(out, "options:\n"
                 "  --wait spin|block    how both ends wait for octets (block)\n"
                 "  --size N             octets of a message (64)\n"
                 "  --fpdu N             most payload octets of an FPDU (65400)\n"
                 "  --gather N           messages a sendmsg (1)\n"
                 "  --batch N            most octets a sendmsg (1100000)\n"
                 "  --crc on|off         CRC of every FPDU (off)\n"
                 "  --sockets N          connections, or connects at once (1)\n"
                 "  --window N           requests in flight (1)\n"
                 "  --buffer N           SO_SNDBUF and SO_RCVBUF (0: left alone)\n"
                 "  --seconds X          measured time (1), or --iters N\n"
                 "  --warm-up X          seconds before that (0.1)\n");
    exit(status);
}

/* ---- the control connection ------------------------------------------------------------------ */

void bench_unblock(int fd)
{
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

void bench_expect(struct bench_end *end, uint64_t messages)
{
    end->expected = messages;
}

void bench_wait_report(struct bench_end *end)
{
    if (!end->has_report && !bench_recv_all(end->control, &end->report, sizeof end->report, false))
        bench_die("the server ended without a report");
    end->has_report = true;
}

static void check_report(struct bench_end *end)
{
    const struct bench_report *report = &end->report;

    bench_wait_report(end);
    if (report->bad || (end->expected && report->messages != end->expected))
        bench_die("the server has %lu messages (need %lu), %lu bad FPDUs",
                  (unsigned long)report->messages, (unsigned long)end->expected,
                  (unsigned long)report->bad);
}

static int serve(const char *address, unsigned port)
{
    struct bench_end end = {.address_text = address, .control = -1};
    struct bench_report report = {0};
    const struct bench_mode *mode;
    char text[128];

    end.listener = bench_listen(address, port, text, sizeof text);
    printf("listening on %s\n", text);
    fflush(stdout);
    end.control = bench_accept_one(&end);
    if (!bench_recv_all(end.control, &end.plan, sizeof end.plan, false) ||
        end.plan.magic != BENCH_MAGIC)
        bench_die("the client is not of this version");
    mode = find_mode(end.plan.mode);
    if (!mode || !mode->server)
        bench_die("no mode of that name");
    bench_raise_files(end.plan.sockets);
    mode->server(&end, &report);
    if (!bench_send(end.control, &report, sizeof report, false))
        bench_die("the client is gone");
    return 0;
}

/* ---- the client ------------------------------------------------------------------------------ */

static void print_result(const struct bench_plan *plan, const struct bench_result *result)
{
    printf("{\"mode\": \"%s\", \"wait\": \"%s\", \"size\": %u, \"fpdu\": %u, \"gather\": %u, "
           "\"crc\": \"%s\", \"sockets\": %u, \"window\": %u, "
           "\"iters\": %lu, \"seconds\": %.6f",
           plan->mode, plan->spin ? "spin" : "block", plan->size, plan->fpdu, plan->gather,
           plan->crc ? "on" : "off", plan->sockets, plan->window, (unsigned long)result->iters,
           result->seconds);
    if (result->has_latency)
        printf(", \"t_min_us\": %.3f, \"t_typical_us\": %.3f, \"t_avg_us\": %.3f, "
               "\"t_p99_us\": %.3f, \"t_max_us\": %.3f",
               result->min_us, result->typical_us, result->avg_us, result->p99_us, result->max_us);
    if (result->connections)
        printf(", \"conns_per_s\": %.1f", (double)result->iters / result->seconds);
    else if (!result->has_latency)
        printf(", \"MBps\": %.2f, \"rate_Mps\": %.5f", result->octets / result->seconds * 1e-6,
               (double)result->iters / result->seconds * 1e-6);
    printf("}\n");
}

/* What the modes rely on. */
static void check_plan(struct bench_plan *plan, const struct bench_mode *mode)
{
    if (plan->size == 0 || plan->size > 1u << 30 || plan->size % 4)
        bench_die("--size %u: a multiple of 4 from 4 to 1 GiB is needed", plan->size);
    if (plan->fpdu < 64 || plan->fpdu > 65500 || plan->fpdu % 4)
        bench_die("--fpdu %u: a multiple of 4 from 64 to 65500 is needed", plan->fpdu);
    if (plan->gather == 0 || plan->sockets == 0 || plan->window == 0)
        bench_die("--gather, --sockets and --window begin with 1");
    if (plan->batch < 4096 || plan->batch > 1u << 26)
        bench_die("--batch %u: from 4096 to 64 MiB is needed", plan->batch);
    if (plan->iters == 0 && plan->seconds <= 0)
        bench_die("--seconds or --iters must be more than 0");
    snprintf(plan->mode, sizeof plan->mode, "%s", mode->name);
    plan->magic = BENCH_MAGIC;
}

static int ask(const char *address, unsigned port, struct bench_plan *plan,
               const struct bench_mode *mode)
{
    struct bench_end end = {.address_text = address, .listener = -1};
    struct bench_result result = {0};

    check_plan(plan, mode);
    end.plan = *plan;
    bench_raise_files(plan->sockets);
    bench_resolve(address, port, &end.address, &end.address_len);
    end.control = bench_connect_one(&end);
    if (!bench_send(end.control, plan, sizeof *plan, false))
        bench_die("the server is gone");
    mode->client(&end, &result);
    check_report(&end);
    print_result(plan, &result);
    return 0;
}

/* ---- arguments ------------------------------------------------------------------------------- */

static double number(const char *name, const char *text)
{
    char *end;
    double value = strtod(text, &end);

    if (*text == '\0' || *end || !(value >= 0) || value > 4e9)
        bench_die("--%s %s: a number is needed", name, text);
    return value;
}

static bool either(const char *name, const char *text, const char *yes, const char *no)
{
    if (strcmp(text, yes) != 0 && strcmp(text, no) != 0)
        bench_die("--%s %s: %s or %s is needed", name, text, yes, no);
    return strcmp(text, yes) == 0;
}

enum {
    WAIT = 256,
    SIZE,
    FPDU,
    GATHER,
    BATCH,
    CRC,
    SOCKETS,
    WINDOW,
    BUFFER,
    SECONDS,
    ITERS,
    WARM_UP,
    CPU
};

static const struct option options[] = {
    {"wait", required_argument, NULL, WAIT},
    {"size", required_argument, NULL, SIZE},
    {"fpdu", required_argument, NULL, FPDU},
    {"gather", required_argument, NULL, GATHER},
    {"batch", required_argument, NULL, BATCH},
    {"crc", required_argument, NULL, CRC},
    {"sockets", required_argument, NULL, SOCKETS},
    {"window", required_argument, NULL, WINDOW},
    {"buffer", required_argument, NULL, BUFFER},
    {"seconds", required_argument, NULL, SECONDS},
    {"iters", required_argument, NULL, ITERS},
    {"warm-up", required_argument, NULL, WARM_UP},
    {"cpu", required_argument, NULL, CPU},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static void set_plan(struct bench_plan *plan, int option, const char *name, const char *text)
{
    uint32_t *const fields[] = {
        [SIZE - WAIT] = &plan->size,       [FPDU - WAIT] = &plan->fpdu,
        [GATHER - WAIT] = &plan->gather,   [BATCH - WAIT] = &plan->batch,
        [SOCKETS - WAIT] = &plan->sockets, [WINDOW - WAIT] = &plan->window,
        [BUFFER - WAIT] = &plan->buffer,
    };

    if (option == WAIT)
        plan->spin = either(name, text, "spin", "block");
    else if (option == CRC)
        plan->crc = either(name, text, "on", "off");
    else if (option == SECONDS)
        plan->seconds = number(name, text);
    else if (option == WARM_UP)
        plan->warm_up = number(name, text);
    else if (option == ITERS)
        plan->iters = (uint64_t)number(name, text);
    else
        *fields[option - WAIT] = (uint32_t)number(name, text);
}

int main(int argc, char **argv)
{
    struct bench_plan plan = {.size = 64,
                              .fpdu = 65400,
                              .gather = 1,
                              .batch = 1100000,
                              .sockets = 1,
                              .window = 1,
                              .seconds = 1,
                              .warm_up = 0.1};
    const char *address = NULL;
    const struct bench_mode *mode;
    unsigned port = 0;
    bool server = false;
    int option, index = 0;

    while ((option = getopt_long(argc, argv, "sc:a:p:h", options, &index)) != -1) {
        if (option == 's')
            server = true;
        else if (option == 'c' || option == 'a')
            address = optarg;
        else if (option == 'p')
            port = (unsigned)number("p", optarg);
        else if (option == CPU)
            bench_pin((int)number("cpu", optarg));
        else if (option == 'h')
            usage(stdout, 0);
        else if (option < WAIT)
            usage(stderr, 2);
        else
            set_plan(&plan, option, options[index].name, optarg);
    }
    signal(SIGPIPE, SIG_IGN);
    if (server && optind == argc)
        return serve(address ? address : "127.0.0.1", port);
    if (server || optind + 1 != argc)
        usage(stderr, 2);
    mode = find_mode(argv[optind]);
    if (!mode)
        bench_die("no mode '%s'", argv[optind]);
    if (!mode->server) {
        mode->client(NULL, NULL);
        return 0;
    }
    if (!address || port == 0)
        bench_die("-c ADDRESS and -p PORT are needed");
    return ask(address, port, &plan, mode);
}
