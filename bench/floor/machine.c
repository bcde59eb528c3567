// SPDX-License-Identifier: MIT
/*
 * machine.c - what bounds everything else on this machine, in one process: a system call, waking a
 * thread on another processor, copying, the CRC. Printed as JSON; for the head of a table and for
 * the question why a row is where it is.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "floor/modes.h"
#include "iwarp/crc32c.h"

#define ROUNDS     200000u
#define HAND_OFFS  2000u
#define EACH_NS    20000000u /* of one size of the table */
#define SERVER_CPU 0
#define CLIENT_CPU 1

static double null_syscall_ns(void)
{
    uint64_t begin = bench_now_ns();

    for (unsigned i = 0; i < ROUNDS; i++)
        syscall(SYS_getppid);
    return (double)(bench_now_ns() - begin) / ROUNDS;
}

/* ---- waking a thread ------------------------------------------------------------------------- */

struct pair {
    int there, back;
    int cpu;
};

static void pass(int fd)
{
    uint64_t one = 1;

    if (write(fd, &one, sizeof one) != sizeof one)
        bench_die_errno("eventfd");
}

static void await(int fd)
{
    uint64_t value;

    if (read(fd, &value, sizeof value) != sizeof value)
        bench_die_errno("eventfd");
}

static void *other(void *argument)
{
    struct pair *pair = argument;

    bench_pin(pair->cpu);
    for (unsigned i = 0; i < HAND_OFFS; i++) {
        await(pair->there);
        pass(pair->back);
    }
    return NULL;
}

static double hand_off_us(int cpu)
{
    struct pair pair = {eventfd(0, EFD_CLOEXEC), eventfd(0, EFD_CLOEXEC), cpu};
    pthread_t thread;
    uint64_t begin;

    if (pthread_create(&thread, NULL, other, &pair) != 0)
        bench_die("no thread");
    begin = bench_now_ns();
    for (unsigned i = 0; i < HAND_OFFS; i++) {
        pass(pair.there);
        await(pair.back);
    }
    begin = bench_now_ns() - begin;
    pthread_join(thread, NULL);
    close(pair.there);
    close(pair.back);
    return (double)begin * 1e-3 / HAND_OFFS / 2;
}

/* ---- copying and the CRC --------------------------------------------------------------------- */

static void copy(uint8_t *to, const uint8_t *from, size_t len)
{
    memcpy(to, from, len);
    __asm__ volatile("" : : "r"(to) : "memory");
}

static void sum(uint8_t *to, const uint8_t *from, size_t len)
{
    uint32_t crc = iwarp_crc32c(iwarp_crc32c_init(), from, len);

    memcpy(to, &crc, sizeof crc);
}

static void both(uint8_t *to, const uint8_t *from, size_t len)
{
    copy(to, from, len);
    sum(to, to, len);
}

static double gigabytes(void (*work)(uint8_t *, const uint8_t *, size_t), uint8_t *to,
                        const uint8_t *from, size_t len)
{
    uint64_t begin = bench_now_ns(), now = begin, done = 0;
    unsigned turns = (unsigned)(1 + (64u << 10) / len);

    while (now - begin < EACH_NS) {
        for (unsigned i = 0; i < turns; i++)
            work(to, from, len);
        done += turns;
        now = bench_now_ns();
    }
    return (double)(done * len) / (double)(now - begin);
}

static void client(struct bench_end *end, struct bench_result *result)
{
    static const size_t sizes[] = {64, 1408, 4096, 65536, 1 << 20};
    uint8_t *to = bench_alloc(1 << 20), *from = bench_alloc(1 << 20);

    (void)end;
    (void)result;
    bench_pin(CLIENT_CPU < sysconf(_SC_NPROCESSORS_ONLN) ? CLIENT_CPU : 0);
    printf("{\"null_syscall_ns\": %.1f, \"hand_off_us\": %.2f, \"crc_by\": \"%s\", \"GBps\": {",
           null_syscall_ns(), hand_off_us(SERVER_CPU), iwarp_crc32c_impl_name());
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        printf("%s\"%zu\": {\"copy\": %.1f, \"crc\": %.1f, \"copy_crc\": %.1f}", i ? ", " : "",
               sizes[i], gigabytes(copy, to, from, sizes[i]), gigabytes(sum, to, from, sizes[i]),
               gigabytes(both, to, from, sizes[i]));
    printf("}}\n");
}

const struct bench_mode floor_machine = {"machine", client, NULL,
                                         "system call, wake-up, copy and CRC of this machine"};
