// SPDX-License-Identifier: MIT
/*
 * ndkstat - what the softndk processes of this user have open, in the columns of Windows' netstat
 * -xan, and what their interfaces have counted.
 *
 *   main.c  options, turns     ask.c   the processes' sockets
 *   read.c  their answers      show.c  the three ways to show them
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <softndk.h>

#include "ask.h"
#include "common/tool_args.h"
#include "read.h"
#include "show.h"

static const char usage[] =
    "usage: ndkstat [-e] [--json] [-w SECONDS] [--pid PID]\n"
    "\n"
    "Connections, listeners and shared endpoints of all softndk processes of this user, in the\n"
    "columns of Windows' netstat -xan.\n"
    "\n"
    "  -e, --counters         the counters of each process and interface instead\n"
    "      --json             both as JSON, one line\n"
    "  -w, --wait SECONDS     again every so many seconds, 1..86400, until interrupted\n"
    "      --pid PID          that process alone\n"
    "  -a, -n, -o, -x         as in netstat -xan: taken, and change nothing\n"
    "  -h, --help\n"
    "      --version\n"
    "\n"
    "Addresses are those that consumers use; --json has the host's as well. A process does not "
    "show\n"
    "itself when it was started with SOFTNDK_STAT=0.\n"
    "\n"
    "exit status: 0, 1 when a process did not answer or --pid is not there, 2 for wrong "
    "arguments\n";

enum { OPTION_JSON = 256, OPTION_PID, OPTION_VERSION };

static const struct option long_options[] = {
    {"counters", no_argument, NULL, 'e'},
    {"json", no_argument, NULL, OPTION_JSON},
    {"wait", required_argument, NULL, 'w'},
    {"pid", required_argument, NULL, OPTION_PID},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, OPTION_VERSION},
    {NULL, 0, NULL, 0},
};

struct wishes {
    bool counters, json;
    unsigned wait_s; /* 0: once */
    uint32_t pid;    /* 0: all */
};

/* -1: go on; otherwise the exit status. */
static int take_option(int letter, struct wishes *w)
{
    uint64_t number;

    switch (letter) {
    case 'a':
    case 'n':
    case 'o':
    case 'x':
        return -1;
    case 'e':
        w->counters = true;
        return -1;
    case OPTION_JSON:
        w->json = true;
        return -1;
    case 'w':
        if (!tool_number(optarg, 1, 86400, &number))
            return tool_usage_error("--wait '%s': need a number of seconds from 1 to 86400",
                                    optarg);
        w->wait_s = (unsigned)number;
        return -1;
    case OPTION_PID:
        if (!tool_number(optarg, 1, INT32_MAX, &number))
            return tool_usage_error("--pid '%s': need the number of a process", optarg);
        w->pid = (uint32_t)number;
        return -1;
    case 'h':
        fputs(usage, stdout);
        return TOOL_GOOD;
    case OPTION_VERSION:
        printf("ndkstat %s\n", softndk_version_string());
        return TOOL_GOOD;
    default:
        return TOOL_USAGE;
    }
}

static int read_options(int argc, char **argv, struct wishes *w)
{
    int letter, done;

    opterr = 0;
    while ((letter = getopt_long(argc, argv, ":anoxew:h", long_options, NULL)) != -1) {
        char option[3] = {'-', (char)optopt, '\0'};
        bool is_letter = optopt > 0 && optopt < 256 && argv[optind - 1][1] != '-';
        const char *name = is_letter ? option : argv[optind - 1];

        if (letter == ':')
            return tool_usage_error("%s: needs a value", name);
        if (letter == '?')
            return tool_usage_error("%s: no such option, or a value that it does not take", name);
        done = take_option(letter, w);
        if (done >= 0)
            return done;
    }
    if (optind < argc)
        return tool_usage_error("%s: unexpected argument", argv[optind]);
    return -1;
}

static int by_pid(const void *left, const void *right)
{
    const struct read_process *a = left, *b = right;

    return a->pid < b->pid ? -1 : a->pid > b->pid;
}

/* Reads the answers; how many could be. *result is that of the program. */
static unsigned read_all(struct answers *answers, struct read_process *processes, int *result)
{
    unsigned count = 0;

    for (unsigned i = 0; i < answers->count; i++) {
        struct answer *answer = &answers->list[i];
        char why[160];

        if (answer->late) {
            tool_say("process %u: does not answer (stopped, or busy)", (unsigned)answer->pid);
            *result = TOOL_FAILED;
        } else if (!read_answer(answer->text, &processes[count], why, sizeof why)) {
            tool_say("process %u: %s", (unsigned)answer->pid, why);
            *result = TOOL_FAILED;
        } else {
            processes[count].pid = answer->pid;
            if (!processes[count].complete) {
                tool_say("process %u: has more open than it could tell", (unsigned)answer->pid);
                *result = TOOL_FAILED;
            }
            count++;
        }
    }
    return count;
}

static int turn(const struct wishes *w)
{
    struct answers answers;
    struct read_process *processes;
    int result = TOOL_GOOD;
    unsigned count;

    ask_all(w->pid, &answers);
    if (answers.trouble)
        result = TOOL_FAILED;
    processes = calloc(answers.count + 1u, sizeof *processes);
    if (!processes) {
        tool_say("no memory");
        ask_free(&answers);
        return TOOL_FAILED;
    }
    count = read_all(&answers, processes, &result);
    if (w->pid && answers.count == 0) {
        tool_say("process %u: shows nothing (no softndk process of this user, or it has no adapter "
                 "open)",
                 (unsigned)w->pid);
        result = TOOL_FAILED;
    }
    qsort(processes, count, sizeof *processes, by_pid);
    if (w->json)
        show_json(processes, count);
    else if (w->counters)
        show_counters(processes, count);
    else
        show_endpoints(processes, count);
    for (unsigned i = 0; i < count; i++)
        read_free(&processes[i]);
    free(processes);
    ask_free(&answers);
    return result;
}

int main(int argc, char **argv)
{
    struct wishes w = {0};
    int result;

    tool_name = "ndkstat";
    result = read_options(argc, argv, &w);
    if (result >= 0)
        return tool_finish(result);
    for (;;) {
        result = tool_finish(turn(&w));
        if (w.wait_s == 0 || ferror(stdout))
            return result;
        sleep(w.wait_s);
    }
}
