// SPDX-License-Identifier: MIT
/*
 * A foreign iWARP peer for tests, and an end for it to speak to.
 *
 * First part: plain TCP on loopback that speaks MPA, DDP and RDMAP octet by octet, well or badly.
 * Every wait has a limit and fails the test when it is reached; what is received is always judged:
 * CRC, pad, versions, reserved bits. It is built by hand, not with the encoders under test (only
 * the CRC is shared), and includes nothing of include/nt.
 *
 * Second part, for a test that has included ends.h before: an adapter with guarded memory, a
 * listener, and links between an end of it and a peer, in either role.
 */
#ifndef SOFTNDK_TESTS_PEER_H
#define SOFTNDK_TESTS_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PEER_WAIT_MS 15000u /* the limit of each wait */

void test_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
unsigned long long test_now_ms(void);

/* ---- what the peer sends -------------------------------------------------------------------- */

/* Octets to be sent: FPDUs one behind the other. */
struct stream {
    bool crc;           /* false: the CRC fields are zero */
    const uint8_t *pad; /* three octets to pad with; NULL: zeros */
    uint8_t *octets;
    size_t length, room;
    /* the last FPDU's ULPDU */
    size_t ulpdu_at;
    uint32_t ulpdu_length;
};

void stream_init(struct stream *s, bool crc);
void stream_reset(struct stream *s);
void stream_free(struct stream *s);
void stream_raw(struct stream *s, const void *octets, size_t length);
/* One FPDU around a ULPDU, or around a header with these control octets and its payload. */
void stream_fpdu(struct stream *s, const void *ulpdu, uint32_t length);
void stream_untagged(struct stream *s, uint8_t ddp, uint8_t rdmap, uint32_t ulp32, uint32_t qn,
                     uint32_t msn, uint32_t mo, const void *payload, uint32_t length);
void stream_tagged(struct stream *s, uint8_t ddp, uint8_t rdmap, uint32_t stag, uint64_t to,
                   const void *payload, uint32_t length);
/* Whole messages in one segment. */
void stream_send(struct stream *s, uint32_t msn, const void *payload, uint32_t length);
void stream_write(struct stream *s, uint32_t stag, uint64_t to, const void *payload,
                  uint32_t length);
void stream_response(struct stream *s, bool last, uint32_t stag, uint64_t to, const void *payload,
                     uint32_t length);
void stream_read(struct stream *s, uint32_t msn, uint32_t sink_stag, uint64_t sink_to,
                 uint32_t size, uint32_t source_stag, uint64_t source_to);
void stream_read_body(uint8_t *body, uint32_t sink_stag, uint64_t sink_to, uint32_t size,
                      uint32_t source_stag, uint64_t source_to);
void stream_terminate(struct stream *s, const void *body, uint32_t length);

/* ---- the peer ------------------------------------------------------------------------------- */

/* An FPDU of the end, judged and decoded. */
struct peer_fpdu {
    uint32_t length, pad; /* octets of ULPDU and pad */
    bool tagged, last;
    unsigned opcode;
    uint32_t stag;
    uint64_t to;
    uint32_t ulp32, qn, msn, mo;
    const uint8_t *payload; /* behind the DDP header */
    uint32_t payload_length;
    uint32_t sink_stag, size, source_stag; /* Read Request */
    uint64_t sink_to, source_to;
    uint8_t octets[2 + 65535 + 3 + 4];
};

struct peer {
    int fd, listener;
    bool crc;         /* what is received must have a good CRC */
    int receive_room; /* octets of its receive buffer, 0: the system's; before listen or connect */
    const char *from; /* the IPv4 address it connects from, NULL: the system's; before connect */
    int segment_size; /* TCP_MAXSEG, 0: the system's; before listen or connect */
    struct peer_fpdu got;
};

enum peer_end {
    PEER_DATA,
    PEER_FIN,
    PEER_RST,
    PEER_QUIET /* neither octets nor an end in the given time */
};

/* Peers, and benches that are opened, speak over ::1 instead of 127.0.0.1 from now on. */
extern bool peer_ipv6;

void peer_init(struct peer *p);
uint16_t peer_listen(struct peer *p); /* the port */
void peer_accept(struct peer *p);
bool peer_connect_arrives(struct peer *p, unsigned ms); /* another connection to accept? */
void peer_connect(struct peer *p, uint16_t port);
void peer_close(struct peer *p);
void peer_reset(struct peer *p);               /* RST */
void peer_hang_up(struct peer *p, bool reset); /* this connection; it still listens */
void peer_half_close(struct peer *p);
/* False: the end has reset or closed the connection. Trickle: an octet a call, none held back. */
bool peer_send(struct peer *p, const void *octets, size_t length);
bool peer_trickle(struct peer *p, const void *octets, size_t length);
enum peer_end peer_read(struct peer *p, void *octets, size_t length, unsigned ms);
/* Nothing came and nothing ended for ms. */
bool peer_quiet(struct peer *p, unsigned ms);
/* FIN or RST with no octet before it; the same whatever comes before. */
enum peer_end peer_await_end(struct peer *p);
enum peer_end peer_drain(struct peer *p);
/* A startup frame of the end (room for 532 octets); the same, to have exactly these octets. */
size_t peer_frame(struct peer *p, uint8_t *frame);
void peer_expect_frame(struct peer *p, const char *row, const void *octets, size_t length);
void peer_expect_octets(const char *row, const char *what, const void *got, const void *want,
                        size_t length);
/* A startup frame of revision 2 with S and C, the two words, no private data: 24 octets. */
void peer_send_frame(struct peer *p, bool reply, uint16_t ird_word, uint16_t ord_word);
/* The ready-to-receive Read: sends one and gets its Response; or answers that of the end. */
void peer_rtr_read(struct peer *p);
void peer_answer_rtr_read(struct peer *p);
/* The next FPDU; it is valid until the next call. */
const struct peer_fpdu *peer_fpdu(struct peer *p);
const struct peer_fpdu *peer_fpdu_or_end(struct peer *p, enum peer_end *end);

enum peer_headers {
    PEER_BARE,    /* no header is copied */
    PEER_DDP,     /* the offender's DDP header and its length */
    PEER_DDP_READ /* the Read Request's body as well */
};
/* A Terminate for layer << 12 | type << 8 | code, about this ULPDU, octet for octet. */
void peer_expect_terminate(struct peer *p, const char *row, unsigned error,
                           enum peer_headers headers, const uint8_t *ulpdu, uint32_t length);

/* ---- the end it speaks to ------------------------------------------------------------------- */

#ifdef SOFTNDK_TESTS_ENDS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The arena: each part stands between pages that nobody may touch. */
#define PAGE           4096u
#define TARGET_AT      PAGE /* remote read and write */
#define TARGET_SIZE    (2 * PAGE)
#define INBOX_AT       (4 * PAGE) /* receives */
#define INBOX_SIZE     (2 * PAGE)
#define READABLE_AT    (7 * PAGE)  /* remote read only */
#define FOREIGN_AT     (9 * PAGE)  /* another PD, remote read and write */
#define SINK_AT        (11 * PAGE) /* sinks of the end's own Reads, and what it sends */
#define SINK_SIZE      (2 * PAGE)
#define ARENA_SIZE     (14 * PAGE)
#define RECEIVE_LENGTH 512u /* octets of each posted receive */

/* The call must end with success; w: NULL when it cannot pend. */
static inline void must(struct wait *w, NTSTATUS returned, const char *call)
{
    NTSTATUS status = w ? wait_end(w, returned) : returned;

    if (status != STATUS_SUCCESS)
        test_fail("%s: %s", call, softndk_status_name(status));
}

struct bench {
    NDK_ADAPTER *adapter;
    NDK_PD *pd, *foreign_pd;
    struct listening listening;
    uint8_t *arena, *before; /* before: what the arena must look like */
    struct memory target, inbox, readable, foreign, sink;
    uint32_t stale; /* a token whose region is gone */
};

/* One connection between an end of the bench and a peer. */
struct link {
    struct end end;
    struct peer peer;
    uint16_t reads;              /* the peer's IRD and ORD, 8 unless set after link_init() */
    uint32_t send_msn, read_msn; /* the peer's next ones on queues 0 and 1 */
};

static inline uint16_t port_of(const struct listening *listening)
{
    return (uint16_t)(listening->address.Ipv4.sin_port >> 8 | listening->address.Ipv4.sin_port
                                                                  << 8);
}

static inline SOCKADDR_INET address_of(uint16_t port)
{
    SOCKADDR_INET address;
    ULONG length;

    softndk_address_from_text(peer_ipv6 ? "::1" : "127.0.0.1", &address, &length);
    address.Ipv4.sin_port = (USHORT)(port >> 8 | port << 8); /* the same place in both families */
    return address;
}

static inline ULONG address_length(void)
{
    return peer_ipv6 ? sizeof(SOCKADDR_IN6) : sizeof(SOCKADDR_IN);
}

/* Registers memory that is there; the counterpart of bench_forget(). */
static inline void bench_register(NDK_PD *pd, void *data, size_t size, ULONG flags,
                                  struct memory *out)
{
    struct wait w;
    NTSTATUS status;

    memset(out, 0, sizeof *out);
    out->data = data;
    out->size = size;
    out->mdl = IoAllocateMdl(data, (ULONG)size, FALSE, FALSE, NULL);
    MmBuildMdlForNonPagedPool(out->mdl);
    wait_init(&w);
    status = pd->Dispatch->NdkCreateMr(pd, FALSE, wait_create, &w, &out->mr);
    must(&w, status, "NdkCreateMr");
    if (status == STATUS_PENDING)
        out->mr = (NDK_MR *)(void *)w.object;
    wait_init(&w);
    must(&w, out->mr->Dispatch->NdkRegisterMr(out->mr, out->mdl, size, flags, wait_request, &w),
         "NdkRegisterMr");
    out->local = out->mr->Dispatch->NdkGetLocalTokenFromMr(out->mr);
    out->remote = out->mr->Dispatch->NdkGetRemoteTokenFromMr(out->mr);
}

static inline void bench_forget(struct memory *memory)
{
    struct wait w;

    wait_init(&w);
    must(&w, memory->mr->Dispatch->NdkDeregisterMr(memory->mr, wait_request, &w),
         "NdkDeregisterMr");
    CLOSE(memory->mr, NdkCloseMr);
    IoFreeMdl(memory->mdl);
}

#define READ_RIGHT   NDK_MR_FLAG_ALLOW_REMOTE_READ
#define BOTH_RIGHTS  (READ_RIGHT | NDK_MR_FLAG_ALLOW_REMOTE_WRITE)
#define LOCAL_RIGHTS (NDK_MR_FLAG_ALLOW_LOCAL_WRITE | NDK_MR_FLAG_RDMA_READ_SINK)

/* A test that failed leaves its bench behind: those after it do not run on in its ruins. */
static bool bench_is_open;

static inline void bench_open(struct bench *b, const char *options)
{
    struct memory gone;
    char all[256];

    if (bench_is_open)
        test_fail("not run: an earlier test failed");
    bench_is_open = true;
    memset(b, 0, sizeof *b);
    /* Rows about missing receives want the end at once; and a slow machine no nudge in its rows. */
    snprintf(all, sizeof all, "nudge_ms=0,%s", options ? options : "holdback_ms=0");
    b->adapter = open_adapter(all);
    b->pd = make_pd(b->adapter);
    b->foreign_pd = make_pd(b->adapter);
    listen_on(b->adapter, peer_ipv6 ? "::1" : "127.0.0.1", &b->listening);
    b->arena = aligned_alloc(PAGE, ARENA_SIZE);
    b->before = malloc(ARENA_SIZE);
    fill(b->arena, ARENA_SIZE, 1);
    memcpy(b->before, b->arena, ARENA_SIZE);
    bench_register(b->pd, b->arena + TARGET_AT, TARGET_SIZE, BOTH_RIGHTS, &gone);
    b->stale = gone.remote;
    bench_forget(&gone);
    bench_register(b->pd, b->arena + TARGET_AT, TARGET_SIZE, BOTH_RIGHTS, &b->target);
    bench_register(b->pd, b->arena + INBOX_AT, INBOX_SIZE, LOCAL_RIGHTS, &b->inbox);
    bench_register(b->pd, b->arena + READABLE_AT, PAGE, READ_RIGHT, &b->readable);
    bench_register(b->foreign_pd, b->arena + FOREIGN_AT, PAGE, BOTH_RIGHTS, &b->foreign);
    bench_register(b->pd, b->arena + SINK_AT, SINK_SIZE, LOCAL_RIGHTS, &b->sink);
}

static inline void bench_close(struct bench *b)
{
    struct memory *all[] = {&b->target, &b->inbox, &b->readable, &b->foreign, &b->sink};

    for (int i = 0; i < 5; i++)
        bench_forget(all[i]);
    if (b->listening.listener) /* a test may have closed it */
        CLOSE(b->listening.listener, NdkCloseListener);
    CLOSE(b->foreign_pd, NdkClosePd);
    CLOSE(b->pd, NdkClosePd);
    softndk_close_adapter(b->adapter);
    free(b->arena);
    free(b->before);
    bench_is_open = false;
}

/* The arena is what it must be. */
static inline void bench_unchanged(struct bench *b, const char *row)
{
    peer_expect_octets(row, "arena", b->arena, b->before, ARENA_SIZE);
}

static inline uint64_t target_to(const struct bench *b, size_t offset)
{
    return (uint64_t)(uintptr_t)(b->arena + TARGET_AT + offset);
}

/* ---- links ---------------------------------------------------------------------------------- */

static inline void end_of_bench(struct bench *b, struct end *end)
{
    memset(end, 0, sizeof *end);
    KeInitializeEvent(&end->disconnected, NotificationEvent, FALSE);
    make_queue(b->adapter, 4 * END_DEPTH, &end->receive);
    make_queue(b->adapter, 4 * END_DEPTH, &end->initiator);
    end_make_qp(end, b->adapter, b->pd);
}

/* NdkConnect to port; the answer is in wait. */
static inline NTSTATUS end_connects(struct bench *b, struct end *end, uint16_t port, ULONG inbound,
                                    ULONG outbound, const void *data, ULONG length,
                                    struct wait *wait)
{
    SOCKADDR_INET local = address_of(0), peer = address_of(port);

    end->connector = make_connector(b->adapter);
    wait_init(wait);
    return end->connector->Dispatch->NdkConnect(
        end->connector, end->qp, (PSOCKADDR)&local, address_length(), (PSOCKADDR)&peer,
        address_length(), inbound, outbound, (PVOID)(uintptr_t)data, length, wait_request, wait);
}

static inline NTSTATUS end_completes(struct end *end, struct wait *wait)
{
    wait_init(wait);
    return end->connector->Dispatch->NdkCompleteConnectEx(end->connector, end_disconnected, end,
                                                          wait_request, wait);
}

static inline NTSTATUS end_accepts(struct end *end, ULONG inbound, ULONG outbound, const void *data,
                                   ULONG length, struct wait *wait)
{
    wait_init(wait);
    return end->connector->Dispatch->NdkAcceptEx(end->connector, end->qp, inbound, outbound,
                                                 (PVOID)(uintptr_t)data, length, end_disconnected,
                                                 end, wait_request, wait);
}

static inline void link_peer_connects(struct bench *b, struct link *l)
{
    uint8_t reply[25] = "MPA ID Rep Frame\x50\x02\x00\x04\x80\x08\x40\x08";
    struct wait w;
    NTSTATUS status;

    reply[21] = reply[23] = (uint8_t)l->reads;
    peer_connect(&l->peer, port_of(&b->listening));
    peer_send_frame(&l->peer, false, 0x8000 | l->reads, 0xc000 | l->reads);
    l->end.connector = next_incoming(&b->listening);
    status = end_accepts(&l->end, 8, 8, NULL, 0, &w);
    peer_expect_frame(&l->peer, "link", reply, 24);
    peer_rtr_read(&l->peer);
    must(&w, status, "NdkAcceptEx");
    l->read_msn = 2;
}

static inline void link_end_connects(struct bench *b, struct link *l)
{
    struct wait w;
    NTSTATUS status = end_connects(b, &l->end, peer_listen(&l->peer), 8, 8, NULL, 0, &w);

    peer_accept(&l->peer);
    peer_expect_frame(&l->peer, "link", "MPA ID Req Frame\x50\x02\x00\x04\x80\x08\xc0\x08", 24);
    peer_send_frame(&l->peer, true, 0x8000 | l->reads, 0x4000 | l->reads);
    must(&w, status, "NdkConnect");
    status = end_completes(&l->end, &w);
    peer_answer_rtr_read(&l->peer);
    must(&w, status, "NdkCompleteConnectEx");
    l->read_msn = 1;
}

/* Connected and past the ready-to-receive Read. l->peer's sizes are set before, after link_init. */
static inline void link_init(struct link *l)
{
    memset(l, 0, sizeof *l);
    peer_init(&l->peer);
    l->reads = 8;
    l->send_msn = 1;
}

static inline void link_open(struct bench *b, struct link *l, bool active)
{
    end_of_bench(b, &l->end);
    if (active)
        link_end_connects(b, l);
    else
        link_peer_connects(b, l);
}

static inline void link_close(struct link *l)
{
    peer_close(&l->peer);
    end_close(&l->end);
}

/* Receive number i of a link: its part of the inbox. */
static inline size_t inbox_at(unsigned i)
{
    return (size_t)i * RECEIVE_LENGTH;
}

static inline void link_receive(struct bench *b, struct link *l, unsigned i)
{
    NDK_SGE sge = memory_sge(&b->inbox, inbox_at(i), RECEIVE_LENGTH);

    must(NULL, l->end.qp->Dispatch->NdkReceive(l->end.qp, (void *)(uintptr_t)(i + 1), &sge, 1),
         "NdkReceive");
}

/* A Read of the end into part i of the sink. */
static inline void link_read(struct bench *b, struct link *l, unsigned i, ULONG length)
{
    NDK_SGE sge = memory_sge(&b->sink, (size_t)i * 256, length);

    must(NULL,
         l->end.qp->Dispatch->NdkRead(l->end.qp, (void *)(uintptr_t)(i + 1), &sge, 1, 0x1000 * i,
                                      0x7700 + i, 0),
         "NdkRead");
}

/* The disconnect event came, once, with this reason's source and wire error. */
static inline void expect_event(struct end *end, const char *row, unsigned source, unsigned error)
{
    if (!wait_event(&end->disconnected, PEER_WAIT_MS))
        test_fail("%s: no disconnect event", row);
    if (atomic_load(&end->disconnects) != 1)
        test_fail("%s: %u disconnect events", row, atomic_load(&end->disconnects));
    if (end->reason >> 28 != source || (end->reason >> 12 & 0xffff) != error)
        test_fail("%s: disconnect reason 0x%08x, not 0x%x....", row, (unsigned)end->reason,
                  source << 16 | error);
}

/* The next result is for context and has this status. */
static inline NDK_RESULT_EX expect_result(struct queue *queue, const char *row, uintptr_t context,
                                          NTSTATUS want)
{
    NDK_RESULT_EX result = queue_next(queue);

    if (result.RequestContext != (void *)context || result.Status != want)
        test_fail("%s: result %s for request %p, not %s for %p", row,
                  softndk_status_name(result.Status), result.RequestContext,
                  softndk_status_name(want), (void *)context);
    return result;
}

static inline void expect_no_result(struct queue *queue, const char *row)
{
    NDK_RESULT_EX result;

    if (queue->cq->Dispatch->NdkGetCqResultsEx(queue->cq, &result, 1))
        test_fail("%s: a result too many: %s for request %p", row,
                  softndk_status_name(result.Status), result.RequestContext);
}

/* An established connection still works in both directions; i: a part of the inbox for it. */
static inline void link_works(struct bench *b, struct link *l, const char *row, unsigned i)
{
    uint8_t octets[40], saved[40];
    const struct peer_fpdu *f;
    struct stream s;
    NDK_SGE sge = memory_sge(&b->sink, 0, sizeof octets);
    NDK_RESULT_EX result;

    memcpy(saved, b->arena + INBOX_AT + inbox_at(i), sizeof saved);
    fill(octets, sizeof octets, l->send_msn);
    link_receive(b, l, i);
    stream_init(&s, true);
    stream_send(&s, l->send_msn++, octets, sizeof octets);
    peer_send(&l->peer, s.octets, s.length);
    stream_free(&s);
    result = expect_result(&l->end.receive, row, i + 1, STATUS_SUCCESS);
    if (result.BytesTransferred != sizeof octets ||
        memcmp(b->arena + INBOX_AT + inbox_at(i), octets, sizeof octets) != 0)
        test_fail("%s: another connection got other octets", row);
    memcpy(b->arena + INBOX_AT + inbox_at(i), saved, sizeof saved);
    must(NULL, l->end.qp->Dispatch->NdkSend(l->end.qp, l, &sge, 1, 0), row);
    f = peer_fpdu(&l->peer);
    if (f->opcode != 3 || f->payload_length != sizeof octets ||
        memcmp(f->payload, b->arena + SINK_AT, sizeof octets) != 0)
        test_fail("%s: another connection sent other octets", row);
    expect_result(&l->end.initiator, row, (uintptr_t)l, STATUS_SUCCESS);
}

/* The role of the end in what follows: RUN_IN_ROLES() plays a program's tests in both. */
static bool role_active;

#define RUN_IN_ROLES(name, tests)                                                                  \
    (__extension__({                                                                               \
        int failed_ = 0;                                                                           \
        for (int i_ = 0; i_ < 2 && !failed_; i_++) {                                               \
            role_active = i_ != 0;                                                                 \
            failed_ = cmocka_run_group_tests_name(                                                 \
                i_ ? name ", the end connects" : name ", the end accepts", tests, NULL, NULL);     \
        }                                                                                          \
        failed_;                                                                                   \
    }))

/* ---- good input: a bench, one link and what its peer is about to send ------------------------ */

struct wire {
    struct bench bench;
    struct link link;
    struct stream s;
    uint8_t octets[4096]; /* a pattern to send */
};

/* Without the link: its settings follow, then link_open(). */
static inline void wire_bench(struct wire *w, const char *options)
{
    bench_open(&w->bench, options);
    link_init(&w->link);
    stream_init(&w->s, true);
    fill(w->octets, sizeof w->octets, 5);
}

static inline void wire_open(struct wire *w, const char *options, bool active)
{
    wire_bench(w, options);
    link_open(&w->bench, &w->link, active);
}

static inline void wire_send(struct wire *w)
{
    if (!peer_send(&w->link.peer, w->s.octets, w->s.length))
        test_fail("the end has gone");
    stream_reset(&w->s);
}

/* Sends, with an empty Send behind it that must arrive: everything before it is processed. */
static inline void wire_sync(struct wire *w, const char *row)
{
    link_receive(&w->bench, &w->link, 9);
    stream_send(&w->s, w->link.send_msn++, NULL, 0);
    wire_send(w);
    if (expect_result(&w->link.end.receive, row, 10, STATUS_SUCCESS).BytesTransferred != 0)
        test_fail("%s: an empty Send brought octets", row);
}

static inline void wire_close(struct wire *w)
{
    stream_free(&w->s);
    link_close(&w->link);
    bench_close(&w->bench);
}

/* ---- rows of malformed input ---------------------------------------------------------------- */

/* What a row's builder sees. */
struct row_run {
    struct bench *bench;
    struct link *link;
    struct stream stream; /* the last FPDU is the offender */
    uint8_t octets[4096]; /* a pattern to send */
    unsigned param;       /* of the row */
    uint32_t sink_stag;   /* of the end's first open Read */
    uint64_t sink_to;
};

enum row_end {
    ROW_TERMINATE,
    ROW_CLOSE, /* FIN or RST without a Terminate; the peer sends nothing more */
    ROW_FIN    /* the peer half-closes behind the stream: then as ROW_CLOSE */
};

struct row {
    const char *name;
    void (*build)(struct row_run *r);
    enum row_end end;
    unsigned error; /* layer << 12 | type << 8 | code, of the Terminate or of the reason */
    enum peer_headers headers;
    unsigned source;      /* of the reason; 0: a Terminate was sent */
    unsigned delivered;   /* receives that succeed before */
    NTSTATUS failed;      /* of the next receive; 0: cancelled */
    unsigned reads;       /* Reads of the end that are open before; they fail */
    unsigned no_receives; /* 1: none is posted */
    bool fills;           /* octets of a good beginning stand in the inbox or sink */
    NTSTATUS request;     /* of the first Read; 0: cancelled */
    unsigned param;       /* for the builder */
};

#define ROW_RECEIVES 3u

static inline void row_check(const struct row *row, struct row_run *r)
{
    struct link *l = r->link;
    const char *name = row->name;
    unsigned source = row->source ? row->source : 3;

    if (row->end == ROW_TERMINATE) {
        peer_expect_terminate(&l->peer, name, row->error, row->headers,
                              r->stream.octets + r->stream.ulpdu_at, r->stream.ulpdu_length);
        if (peer_await_end(&l->peer) != PEER_FIN)
            test_fail("%s: RST behind the Terminate", name);
    } else {
        peer_await_end(&l->peer);
    }
    expect_event(&l->end, name, source, row->error);
    for (unsigned i = 0; i < ROW_RECEIVES && !row->no_receives; i++)
        expect_result(&l->end.receive, name, i + 1,
                      i < row->delivered                   ? STATUS_SUCCESS
                      : i == row->delivered && row->failed ? row->failed
                                                           : STATUS_CANCELLED);
    for (unsigned i = 0; i < row->reads; i++)
        expect_result(&l->end.initiator, name, i + 1,
                      i == 0 && row->request ? row->request : STATUS_CANCELLED);
    if (row->fills) {
        memcpy(r->bench->arena + INBOX_AT, r->bench->before + INBOX_AT, INBOX_SIZE);
        memcpy(r->bench->arena + SINK_AT, r->bench->before + SINK_AT, SINK_SIZE);
    }
    bench_unchanged(r->bench, name);
}

/* One row: a fresh connection, the stream in one piece or octet by octet, everything that follows,
 * and another connection that goes on. */
static inline void row_play(struct bench *b, struct link *other, const struct row *row, bool active,
                            bool trickle)
{
    static struct row_run r;
    static struct link l;

    memset(&r, 0, sizeof r);
    r.bench = b;
    r.link = &l;
    r.param = row->param;
    fill(r.octets, sizeof r.octets, 99);
    stream_init(&r.stream, true);
    link_init(&l);
    link_open(b, &l, active);
    for (unsigned i = 0; i < ROW_RECEIVES && !row->no_receives; i++)
        link_receive(b, &l, i);
    for (unsigned i = 0; i < row->reads; i++) {
        const struct peer_fpdu *f;

        link_read(b, &l, i, 64);
        f = peer_fpdu(&l.peer);
        if (f->opcode != 1 || f->size != 64 || f->source_stag != 0x7700 + i)
            test_fail("%s: no Read Request", row->name);
        if (i == 0) {
            r.sink_stag = f->sink_stag;
            r.sink_to = f->sink_to;
        }
    }
    row->build(&r);
    if (trickle)
        peer_trickle(&l.peer, r.stream.octets, r.stream.length);
    else
        peer_send(&l.peer, r.stream.octets, r.stream.length);
    if (row->end == ROW_FIN)
        peer_half_close(&l.peer);
    row_check(row, &r);
    expect_no_result(&l.end.receive, row->name);
    expect_no_result(&l.end.initiator, row->name);
    link_works(b, other, row->name, ROW_RECEIVES);
    link_close(&l);
    if (atomic_load(&l.end.disconnects) > 1)
        test_fail("%s: a second disconnect event", row->name);
    stream_free(&r.stream);
}

/* Every row, whole and octet by octet, with the peer as initiator and as responder. */
static inline void rows_play(const struct row *rows, size_t count, const char *options)
{
    static struct bench bench;
    static struct link other;

    if (role_active)
        return; /* both were played */
    bench_open(&bench, options);
    link_init(&other);
    link_open(&bench, &other, false);
    for (size_t i = 0; i < count; i++) {
        row_play(&bench, &other, &rows[i], false, false);
        row_play(&bench, &other, &rows[i], false, true);
        row_play(&bench, &other, &rows[i], true, false);
        row_play(&bench, &other, &rows[i], true, true);
    }
    link_close(&other);
    bench_close(&bench);
}

#endif
#endif
