// SPDX-License-Identifier: MIT
/*
 * Two ends of a connection in one process, for integration tests: each NDK call as a blocking one,
 * a CQ that collects its results, memory with its region, and a pair that is connected over
 * loopback. Every wait has the limit WAIT_S and fails the test when it is reached.
 *
 * Calls that may pend are given a struct wait; a call whose answer is to be tested uses the slots
 * directly with wait_request()/wait_create() as completion.
 */
#ifndef SOFTNDK_TESTS_ENDS_H
#define SOFTNDK_TESTS_ENDS_H

#include <softndk.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WAIT_S 30

/* ---- pending calls -------------------------------------------------------------------------- */

struct wait {
    KEVENT event;
    NTSTATUS status;
    NDK_OBJECT_HEADER *object;
    atomic_uint calls; /* how often the completion ran */
};

void wait_init(struct wait *w);
VOID wait_create(PVOID context, NTSTATUS status, NDK_OBJECT_HEADER *object);
VOID wait_request(PVOID context, NTSTATUS status);
VOID wait_close(PVOID context);
/* The final status of a call that returned `returned`. */
NTSTATUS wait_end(struct wait *w, NTSTATUS returned);
/* True when the event came within the given time. */
bool wait_event(KEVENT *event, unsigned ms);
/* Polls a condition until it is true; fails the test with what after WAIT_S. */
#define wait_until(condition, what)                                                                \
    do {                                                                                           \
        unsigned long long wait_until_end_ = test_now_ms() + WAIT_S * 1000u;                       \
        while (!(condition)) {                                                                     \
            if (test_now_ms() > wait_until_end_)                                                   \
                test_fail("waited in vain for: %s", (what));                                       \
            test_sleep_ms(1);                                                                      \
        }                                                                                          \
    } while (0)
unsigned long long test_now_ms(void);
void test_sleep_ms(unsigned ms);
/* Set by test_fail(): a test that waited in vain once need not do it in each further mode. */
extern atomic_bool test_has_failed;
void test_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* ---- objects -------------------------------------------------------------------------------- */

/* On "lo"; the newest version that the options allow. */
NDK_ADAPTER *open_adapter(const char *options);
NDK_ADAPTER_INFO adapter_info(NDK_ADAPTER *adapter);
bool runs_at_least(const NDK_OBJECT_HEADER *header, unsigned major, unsigned minor);
NDK_PD *make_pd(NDK_ADAPTER *adapter);
NDK_CONNECTOR *make_connector(NDK_ADAPTER *adapter);
void close_object(NDK_OBJECT_HEADER *header, NDK_FN_CLOSE_OBJECT close);
#define CLOSE(object, slot) close_object(&(object)->Header, (object)->Dispatch->slot)

/* A CQ whose notification sets an event and counts. */
struct queue {
    NDK_CQ *cq;
    KEVENT event;
    atomic_uint notified;
    NTSTATUS status; /* of the last notification */
    /* called in the notification, before the event is set; may be NULL */
    void (*in_callback)(struct queue *queue, void *context);
    void *context;
};
void make_queue(NDK_ADAPTER *adapter, ULONG depth, struct queue *out);
/* The next result, waiting for it (arms ANY and waits). */
NDK_RESULT_EX queue_next(struct queue *queue);
/* A result within ms, or false. */
bool queue_try(struct queue *queue, NDK_RESULT_EX *out, unsigned ms);

struct memory {
    uint8_t *data; /* page-aligned */
    size_t size;
    PMDL mdl;
    NDK_MR *mr;
    UINT32 local, remote;
};
void make_memory(NDK_PD *pd, size_t size, ULONG flags, struct memory *out);
void free_memory(struct memory *memory);
NDK_SGE memory_sge(const struct memory *memory, size_t offset, ULONG length);

/* ---- one end, and a pair -------------------------------------------------------------------- */

#define END_DEPTH 64

struct end {
    NDK_ADAPTER *adapter;
    NDK_PD *pd;
    struct queue receive, initiator;
    NDK_QP *qp;
    NDK_CONNECTOR *connector;
    /* disconnect events */
    KEVENT disconnected;
    atomic_uint disconnects;
    ULONG reason;
};

/* The QP, on the end's CQs: 4 SGEs and 64 octets inline, where the adapter has so many. */
void end_make_qp(struct end *end, NDK_ADAPTER *adapter, NDK_PD *pd);
/* Adapter, PD, CQs, QP; no connector. On "lo", or on another interface. */
void end_open(struct end *end, const char *options);
void end_open_on(struct end *end, const char *interface, const char *options);
/* Whatever is still there, connector first. */
void end_close(struct end *end);
VOID end_disconnected(PVOID context, ULONG reason); /* context: the end */
VOID end_disconnected_plain(PVOID context);

struct listening {
    NDK_LISTENER *listener;
    SOCKADDR_INET address; /* with the port in use */
    ULONG address_length;
    KEVENT event;
    NDK_CONNECTOR *incoming; /* the last one; the event is set for each */
    atomic_uint events;
    /* called instead of just keeping it; may be NULL */
    void (*in_callback)(struct listening *listening, NDK_CONNECTOR *connector, void *context);
    void *context;
};
/* Listens on text ("127.0.0.1", "::1"), an ephemeral port. */
void listen_on(NDK_ADAPTER *adapter, const char *text, struct listening *out);
NDK_CONNECTOR *next_incoming(struct listening *listening);

/* A local address of the listener's IP with port 0. */
SOCKADDR_INET local_of(const struct listening *listening);

struct pair {
    struct end client, server;
    struct listening listening;
};
/* Opens both ends and connects them on text; options go to both adapters (may be NULL). */
void pair_open(struct pair *pair, const char *text, const char *client_options,
               const char *server_options);
/* Starts the connect and accepts it, for ends that are open; both established. */
void pair_connect(struct pair *pair);
/* From an address of the client's adapter, of the listener's family. */
void pair_connect_from(struct pair *pair, const SOCKADDR_INET *local);
void pair_close(struct pair *pair);

/* Fills and checks a pattern that depends on seed and position. */
void fill(uint8_t *data, size_t size, unsigned seed);
bool check(const uint8_t *data, size_t size, unsigned seed);
/* Is ::1 there? */
bool have_ipv6(void);

#endif
