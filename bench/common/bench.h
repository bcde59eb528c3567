// SPDX-License-Identifier: MIT
/*
 * bench.h - what the programs of `make bench` share: floor, which is plain sockets and shows what
 * TCP itself gives here, and fabric, which does the same work on libfabric. Each does the job of a
 * measurement of ndkperf (same sizes, for floor the same framing and CRC) and nothing else;
 * bench/run.py compares them, docs/performance.md describes how.
 *
 * Two processes, one thread each. `floor -s` listens and serves one client; `floor -c` asks for a
 * mode over a control connection, opens the data connections, measures, and prints one line of
 * JSON. Both ends get the same struct bench_plan. Every mode has a client function and a server
 * function.
 *
 * These are no consumers of softndk: floor takes the CRC of src/iwarp and nothing more.
 */
#ifndef SOFTNDK_BENCH_BENCH_H
#define SOFTNDK_BENCH_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define BENCH_MAGIC 0x666c6f6f72303031ull

/* What both ends must know. It travels as it is: both are the same program. */
struct bench_plan {
    uint64_t magic;
    char mode[16];
    uint32_t spin;    /* receive without sleeping */
    uint32_t size;    /* octets of a message */
    uint32_t fpdu;    /* most payload octets of an FPDU */
    uint32_t gather;  /* messages a sendmsg */
    uint32_t batch;   /* most octets a sendmsg, unless one FPDU is more */
    uint32_t crc;     /* make and check the CRC of each FPDU */
    uint32_t sockets; /* connections, or connects in flight */
    uint32_t window;  /* read requests in flight */
    uint32_t buffer;  /* SO_SNDBUF and SO_RCVBUF; 0: what the system does by itself */
    uint64_t iters;   /* 0: as many as fit into the time */
    double seconds;   /* measured time, when iters is 0 */
    double warm_up;   /* seconds before that */
};

/* What the client found out. Fields that a mode has nothing for stay 0. */
struct bench_result {
    uint64_t iters;
    double seconds;
    double octets;    /* payload, in all */
    bool connections; /* an iteration is a whole life of a connection */
    bool has_latency; /* the half round trips, or the lives of connections, in microseconds */
    double min_us, typical_us, avg_us, p99_us, max_us;
};

/* What the server says on the control connection when its mode is over. */
struct bench_report {
    uint64_t messages;
    uint64_t octets;
    uint64_t bad; /* FPDUs that were not what was expected */
};

/* One end while it runs. */
struct bench_end {
    struct bench_plan plan;
    const char *address_text;
    int control;
    int listener;                    /* server only */
    struct sockaddr_storage address; /* client only: where the server is */
    socklen_t address_len;
    uint64_t expected; /* client only: messages that the server must report; 0: not compared */
    bool has_report;   /* client only */
    struct bench_report report;
};

struct bench_mode {
    const char *name;
    void (*client)(struct bench_end *end, struct bench_result *result);
    void (*server)(struct bench_end *end, struct bench_report *report);
    const char *what;
};

/* What the program is called and its modes; each program has its own table. */
extern const char bench_program[];
extern const struct bench_mode *const bench_modes[]; /* ends with NULL */

/* ---- main.c ---------------------------------------------------------------------------------- */

/* What the server must have counted; its report, which may be waited for early. */
void bench_expect(struct bench_end *end, uint64_t messages);
void bench_wait_report(struct bench_end *end);
void bench_unblock(int fd);

/* ---- net.c: sockets, clock, errors. Each ends the program with a line on failure. -------------
 */

_Noreturn void bench_die(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void bench_die_errno(const char *what);
void *bench_alloc(size_t size); /* page-aligned, zero, touched, never freed */
uint64_t bench_now_ns(void);
void bench_pin(int cpu); /* -1: leave it */
void bench_raise_files(unsigned sockets);

int bench_listen(const char *address, unsigned port, char *text, size_t text_len);
void bench_resolve(const char *address, unsigned port, struct sockaddr_storage *to, socklen_t *len);
int bench_connect_one(struct bench_end *end); /* a data connection, made as the plan says */
int bench_accept_one(struct bench_end *end);
void bench_shape(int fd, const struct bench_plan *plan); /* TCP_NODELAY, buffers */

/* All octets go out; a full socket is waited for as the plan says. False: the peer is gone. */
bool bench_send(int fd, const void *data, size_t len, bool spin);
bool bench_sendv(int fd, struct iovec *iov, unsigned count, bool spin); /* consumes iov */

/* Some octets, or exactly `len`. 0 or false: the peer has closed. */
size_t bench_recv(int fd, void *data, size_t len, bool spin);
bool bench_recv_all(int fd, void *data, size_t len, bool spin);

/* ---- samples.c: times of single iterations ----------------------------------------------------
 */

struct bench_samples {
    uint32_t *ns;
    size_t count, max;
    double sum_ns;
    uint64_t seen;
};

void bench_samples_open(struct bench_samples *samples);
void bench_samples_clear(struct bench_samples *samples);
void bench_samples_finish(struct bench_samples *samples, double divide,
                          struct bench_result *result);

/* Beyond the room only the sum goes on: the percentiles are then those of the first ones. */
static inline void bench_sample(struct bench_samples *samples, uint64_t ns)
{
    if (samples->count < samples->max)
        samples->ns[samples->count++] = ns > UINT32_MAX ? UINT32_MAX : (uint32_t)ns;
    samples->sum_ns += (double)ns;
    samples->seen++;
}

#endif
