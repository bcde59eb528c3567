// SPDX-License-Identifier: MIT
/*
 * One run of ndkperf as both ends do it: what the client asks for and the server is told.
 *
 * A plan travels as a line of text over the control connection. The server checks it as the client
 * did: it may come from anybody.
 */
#ifndef SOFTNDK_NDKPERF_PLAN_H
#define SOFTNDK_NDKPERF_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum perf_op { PERF_SEND, PERF_WRITE, PERF_READ, PERF_SEND_INV, PERF_FASTREG, PERF_OPS };
enum perf_mode { PERF_BW, PERF_LAT, PERF_RATE, PERF_CONN, PERF_MODES };
enum perf_wait { PERF_SPIN, PERF_EVENT, PERF_WAITS };

#define PLAN_TEXT_MAX    512 /* octets of the line, with its terminating zero */
#define PLAN_ADAPTER_MAX 256 /* octets of the adapter's options, with their terminating zero */
#define PLAN_SIZE_MAX    (16u << 20)
#define PLAN_DEPTH_MAX   2000
#define PLAN_QPS_MAX     4096
#define PLAN_THREADS_MAX 64
#define PLAN_MEMORY_MAX  (1u << 30) /* octets that a run registers at each end */

struct plan {
    enum perf_op op;
    enum perf_mode mode;
    enum perf_wait wait;
    uint32_t size;       /* octets of a message */
    uint32_t depth;      /* requests in flight, each queue pair */
    uint32_t chain;      /* posts of a chain; all but its last are deferred */
    uint32_t moderation; /* requests for each that completes loudly */
    uint32_t qps, threads;
    uint32_t buffers;     /* message buffers that each queue pair goes through */
    uint32_t inline_size; /* octets; smaller messages are posted inline */
    uint32_t reads;       /* read limit of each queue pair */
    uint32_t pages;       /* of a fast registration */
    uint64_t iterations;  /* in all, over the queue pairs; 0: by time */
    uint32_t seconds;     /* 0: by count */
    uint64_t warmup;      /* iterations before them, which do not count */
    bool both_ways, verify, round_robin, registers;
    bool spins_long; /* progress is inline: an empty poll is not idle */
    char adapter[PLAN_ADAPTER_MAX];
};

/* What the modes and operations are called on the command line. */
extern const char *const perf_op_names[PERF_OPS];
extern const char *const perf_mode_names[PERF_MODES];
extern const char *const perf_wait_names[PERF_WAITS];

/* False: a sentence in error says what is wrong. */
bool plan_check(const struct plan *plan, char *error, size_t size);

void plan_write(const struct plan *plan, char text[PLAN_TEXT_MAX]);
/* False: not a plan, or one that does not pass plan_check(). */
bool plan_read(const char *text, struct plan *out, char *error, size_t size);

/* ---- what follows from a plan, the same at both ends ---- */

/* A fast registration or a send that invalidates: a request and its answer. */
bool plan_is_exchange(const struct plan *plan);
/* Does this side post the requests that are measured? */
bool plan_is_active(const struct plan *plan, bool server);
/*
 * Does this side poll, or wait for events? The target of writes has nothing to poll for before the
 * peer's fence comes: polls would only bring each piece by itself and hold the socket's lock
 * against the sender. (That of reads answers, and someone waits for the answers: it polls.)
 */
bool plan_polls(const struct plan *plan, bool server);
/* Queue depths, in entries. */
uint32_t plan_receives(const struct plan *plan);
uint32_t plan_requests(const struct plan *plan);

/*
 * The memory of a side: for each queue pair `buffers` buffers that it sends from, then as many that
 * it receives into, then 128 octets for the messages that end a run: what is sent, what comes.
 */
uint32_t plan_buffer(const struct plan *plan); /* octets of one */
uint64_t plan_stride(const struct plan *plan); /* octets of a queue pair */
uint64_t plan_memory(const struct plan *plan); /* octets of a side */

#endif
