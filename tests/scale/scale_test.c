// SPDX-License-Identifier: MIT
/*
 * scale [-n LINKS] [-r ROUNDS] [-m KIB] - LINKS connections between two processes, ROUNDS times:
 * each verified, all idle at once, all disconnected and closed. Prints times, and the user memory
 * that an idle connection takes at either end; more than KIB (16) fails. See scale.h.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../support/modes.h"
#include "scale.h"

/* What the sanitizers note beside each allocation counts as memory of the process. */
#if defined __SANITIZE_THREAD__ || defined __SANITIZE_ADDRESS__
#define MOST_KIB 512
#else
#define MOST_KIB 16
#endif

struct run {
    unsigned links, rounds;
    unsigned long most_kib; /* an idle connection, at one end */
    int from, to;           /* pipes to and from the other process */
    char address[32];
};

/* ---- the pipes ------------------------------------------------------------------------------ */

static void tell(const struct run *run, unsigned long value)
{
    if (write(run->to, &value, sizeof value) != sizeof value) {
        fprintf(stderr, "scale: the other process is gone\n");
        _exit(1);
    }
}

static unsigned long hear(const struct run *run)
{
    unsigned long value;

    if (read(run->from, &value, sizeof value) != sizeof value) {
        fprintf(stderr, "scale: the other process is gone\n");
        _exit(1);
    }
    return value;
}

/* ---- the two processes ---------------------------------------------------------------------- */

static int serve(const struct run *run)
{
    static struct server server;
    struct side *side = &server.side;
    size_t before;

    scale_open(side, run->links);
    before = scale_memory();
    for (unsigned round = 0; round < run->rounds; round++) {
        scale_begin(side);
        tell(run, server_listen(&server, run->address));
        scale_wait(side, &side->verified, "verified");
        hear(run); /* all are idle */
        tell(run, scale_memory() - before);
        scale_wait(side, &side->closed, "closed");
        server_unlisten(&server);
        scale_end(side);
    }
    scale_close(side);
    tell(run, softndk_finding_count());
    return 0;
}

/* Prints one end's share, and whether it is too much. */
static bool too_much(const struct run *run, const char *end, unsigned long octets)
{
    unsigned long each = octets / run->links;

    printf("  %s: %lu octets of user memory an idle connection\n", end, each);
    return each > run->most_kib * 1024;
}

static int connect_all(const struct run *run)
{
    static struct side side;
    size_t before;
    bool heavy = false;
    unsigned long findings;

    scale_open(&side, run->links);
    before = scale_memory();
    for (unsigned round = 0; round < run->rounds; round++) {
        unsigned long long begin = test_now_ms(), up;
        unsigned port;
        size_t mine;

        scale_begin(&side);
        port = (unsigned)hear(run);
        side.local = inet_address(run->address, 0);
        side.remote = inet_address(run->address, port);
        client_up(&side);
        up = test_now_ms();
        mine = scale_memory() - before;
        tell(run, round);
        printf("round %u: %u connections up and verified in %llu ms\n", round + 1, run->links,
               up - begin);
        heavy |= too_much(run, "connecting", mine);
        heavy |= too_much(run, "accepting", hear(run));
        begin = test_now_ms();
        client_down(&side);
        printf("  disconnected and closed in %llu ms\n", test_now_ms() - begin);
        scale_end(&side);
    }
    scale_close(&side);
    findings = hear(run) + softndk_finding_count();
    if (heavy)
        printf("scale: more than %lu KiB\n", run->most_kib);
    if (findings)
        printf("scale: %lu findings\n", findings);
    return heavy || findings;
}

/* ---- arguments ------------------------------------------------------------------------------ */

static unsigned long number(const char *text, unsigned long most)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);

    if (*end || value == 0 || value > most) {
        fprintf(stderr, "scale: %s: a number from 1 to %lu is expected\n", text, most);
        exit(2);
    }
    return value;
}

/* A descriptor a connection, and some. */
static bool raise_limit(unsigned links)
{
    struct rlimit limit;
    rlim_t need = links + 128;

    getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur >= need)
        return true;
    if (limit.rlim_max < need) {
        printf("SKIP: %u connections need %lu descriptors a process, the hard limit is %lu\n",
               links, (unsigned long)need, (unsigned long)limit.rlim_max);
        return false;
    }
    limit.rlim_cur = need;
    return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

int main(int argc, char **argv)
{
    struct run run = {.links = 500, .rounds = 2, .most_kib = MOST_KIB}, other;
    int there[2], back[2], option, status;
    pid_t child;

    while ((option = getopt(argc, argv, "n:r:m:")) != -1)
        switch (option) {
        case 'n':
            run.links = (unsigned)number(optarg, 25000);
            break;
        case 'r':
            run.rounds = (unsigned)number(optarg, 1000000);
            break;
        case 'm':
            run.most_kib = number(optarg, 1 << 20);
            break;
        default:
            fprintf(stderr, "usage: scale [-n LINKS] [-r ROUNDS] [-m KIB]\n");
            return 2;
        }
    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGPIPE, SIG_IGN);
    if (!raise_limit(run.links))
        return 77;
    snprintf(run.address, sizeof run.address, "%s", own_address());
    if (pipe(there) != 0 || pipe(back) != 0) {
        perror("scale: pipe");
        return 1;
    }
    other = run;
    run.from = back[0], run.to = there[1];
    other.from = there[0], other.to = back[1];
    child = fork();
    if (child == 0) {
        close(run.from);
        close(run.to);
        return serve(&other);
    }
    close(other.from);
    close(other.to);
    if (child < 0) {
        perror("scale: fork");
        return 1;
    }
    option = connect_all(&run);
    if (waitpid(child, &status, 0) != child || status != 0) {
        printf("scale: the accepting process ended with status 0x%x\n", (unsigned)status);
        return 1;
    }
    return option;
}
