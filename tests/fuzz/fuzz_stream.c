// SPDX-License-Identifier: MIT
/*
 * The whole receive path of a connected queue pair. The input is a script for a foreign peer:
 * messages with any fields, well or badly formed, cut anywhere. Whatever it does, every request of
 * the end completes once, the disconnect event comes once, nothing outside the regions that the
 * peer may write changes, and the end can be closed.
 *
 * The script, an octet an act and what the act takes: see act().
 */
#include "ends.h"
#include "fuzz.h"
#include "peer.h"

#define RECEIVES 4u
#define READS    2u
#define SENDS    3u

static struct bench bench;
static bool opened;
static struct link l;
static struct stream s;
static uint8_t octets[4096];
static uint32_t sink_stag;
static uint64_t sink_to;
static const struct memory *aimed; /* the region that the last token was of */

/* ---- the script ----------------------------------------------------------------------------- */

/* A token that is good, nearly good, or anything. */
static uint32_t token(struct input *in)
{
    static const struct memory *const all[] = {&bench.target, &bench.readable, &bench.foreign,
                                               &bench.sink};
    unsigned how = take(in, 1);

    aimed = all[how % 4];
    if (how < 0x80)
        return all[how % 4]->remote ^ (how & 0x40 ? 1 : 0);
    return how < 0xa0   ? bench.stale
           : how < 0xc0 ? sink_stag
           : how < 0xe0 ? all[how % 4]->local
                        : take(in, 4);
}

/* An address in or around that region, or anything. */
static uint64_t address(struct input *in)
{
    unsigned how = take(in, 1);

    return how < 0xc0   ? (uint64_t)(uintptr_t)aimed->data + take(in, 2) % (aimed->size + 64) - 32
           : how < 0xe0 ? sink_to + (how & 3)
                        : take64(in);
}

static uint32_t around(struct input *in, uint32_t expected)
{
    unsigned how = take(in, 1);

    return how < 0xe0 ? expected : how < 0xf8 ? expected + (how & 7) - 3 : take(in, 4);
}

static void flush_stream(void)
{
    peer_send(&l.peer, s.octets, s.length);
    stream_reset(&s);
}

static void act(struct input *in)
{
    unsigned what = take(in, 1), flags;
    size_t length;
    const uint8_t *raw;
    uint32_t stag, size;
    uint64_t to;

    switch (what & 0x0f) {
    case 0: /* a whole Send */
        stream_send(&s, l.send_msn++, octets, take(in, 2) % 600);
        break;
    case 1: /* a segment of a Send, any fields */
        flags = take(in, 1);
        size = take(in, 2) % 600;
        stag = what & 0x10 ? token(in) : 0;
        to = around(in, l.send_msn);
        l.send_msn += flags & 1;
        stream_untagged(&s, flags & 1 ? 0x41 : 0x01, (uint8_t)(0x43 + (flags >> 1 & 3)), stag, 0,
                        (uint32_t)to, around(in, flags & 8 ? size : 0), octets, size);
        break;
    case 2: /* a Write */
        stag = token(in);
        to = address(in);
        stream_write(&s, stag, to, octets, take(in, 2) % 2000);
        break;
    case 3: /* a Read Request, answered or not */
        stag = token(in);
        to = address(in);
        stream_read(&s, around(in, l.read_msn), take(in, 2), take(in, 2), take(in, 2) % 9000, stag,
                    to);
        l.read_msn++;
        break;
    case 4: /* a Response to the end's Read, right or wrong */
        size = take(in, 1) % 80;
        stag = what & 0x10 ? token(in) : sink_stag;
        to = what & 0x20 ? address(in) : sink_to;
        stream_response(&s, take(in, 1) & 1, stag, to, octets, size);
        sink_to += size;
        break;
    case 5:
        raw = take_octets(in, 4 + take(in, 1) % 60, &length);
        stream_terminate(&s, raw, (uint32_t)length);
        break;
    case 6: /* any tagged segment */
        flags = take(in, 2);
        stag = token(in);
        to = address(in);
        stream_tagged(&s, (uint8_t)(flags >> 8), (uint8_t)flags, stag, to, octets, take(in, 1));
        break;
    case 7: /* any untagged segment */
        flags = take(in, 2);
        stag = token(in);
        size = take(in, 1);
        stream_untagged(&s, (uint8_t)(flags >> 8), (uint8_t)flags, stag, size & 7,
                        around(in, l.send_msn), around(in, 0), octets, size);
        break;
    case 8: /* any ULPDU */
        raw = take_octets(in, take(in, 1), &length);
        stream_fpdu(&s, raw, (uint32_t)length);
        break;
    case 9: /* any octets */
        raw = take_octets(in, take(in, 1), &length);
        stream_raw(&s, raw, length);
        break;
    case 10: /* an octet of the last FPDU is damaged */
        if (s.length)
            s.octets[s.length - 1 - take(in, 1) % s.length] ^= (uint8_t)(1u << (what >> 4 & 7));
        break;
    case 11: /* cut short */
        size = take(in, 1);
        s.length -= size < s.length ? size : s.length;
        break;
    default: /* in two pieces */
        flush_stream();
        break;
    }
    if (s.length > 1 << 17)
        flush_stream();
}

/* ---- before and after ----------------------------------------------------------------------- */

static void post_all(void)
{
    NDK_SGE sge = memory_sge(&bench.sink, 4096, 64);

    for (unsigned i = 0; i < RECEIVES; i++)
        link_receive(&bench, &l, i);
    for (unsigned i = 0; i < READS; i++) {
        const struct peer_fpdu *f;

        link_read(&bench, &l, i, 64);
        f = peer_fpdu(&l.peer);
        need(f->opcode == 1 && f->size == 64);
        if (i == 0) {
            sink_stag = f->sink_stag;
            sink_to = f->sink_to;
        }
    }
    for (unsigned i = 0; i < SENDS; i++)
        must(NULL,
             l.end.qp->Dispatch->NdkSend(l.end.qp, (void *)(uintptr_t)(READS + i + 1), &sge, 1, 0),
             "NdkSend");
}

/* As many results as requests, in order, and no more. Returns how many receives succeeded. */
static void collect(struct queue *queue, unsigned count, bool receives)
{
    NDK_RESULT_EX result;

    for (unsigned i = 0; i < count; i++) {
        result = queue_next(queue);
        need(result.RequestContext == (void *)(uintptr_t)(i + 1));
        need(result.Status != STATUS_PENDING);
        if (receives && result.Status == STATUS_SUCCESS)
            need(result.BytesTransferred <= RECEIVE_LENGTH);
    }
    need(queue->cq->Dispatch->NdkGetCqResultsEx(queue->cq, &result, 1) == 0);
}

/* Outside of what the peer may fill nothing has changed. */
static void look_at_memory(void)
{
    memcpy(bench.arena + TARGET_AT, bench.before + TARGET_AT, TARGET_SIZE);
    memcpy(bench.arena + INBOX_AT, bench.before + INBOX_AT, RECEIVES * RECEIVE_LENGTH);
    memcpy(bench.arena + SINK_AT, bench.before + SINK_AT, 64);
    memcpy(bench.arena + SINK_AT + 256, bench.before + SINK_AT + 256, 64);
    need(memcmp(bench.arena, bench.before, ARENA_SIZE) == 0);
}

static void at_end(void)
{
    bench_close(&bench);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size};
    bool active = take(&in, 1) & 1;

    if (!opened) {
        opened = true;
        atexit(at_end);
        bench_open(&bench, "holdback_ms=0,linger_ms=100,drain_ms=100");
        fill(octets, sizeof octets, 4);
        stream_init(&s, true);
    }
    link_init(&l);
    link_open(&bench, &l, active);
    post_all();
    while (in.left)
        act(&in);
    flush_stream();
    peer_half_close(&l.peer);
    need(wait_event(&l.end.disconnected, 60000));
    CLOSE(l.end.connector, NdkCloseConnector);
    l.end.connector = NULL;
    CLOSE(l.end.qp, NdkCloseQp);
    l.end.qp = NULL;
    collect(&l.end.receive, RECEIVES, true);
    collect(&l.end.initiator, READS + SENDS, false);
    need(atomic_load(&l.end.disconnects) == 1);
    need(softndk_reason_text(l.end.reason, NULL, 0) > 0);
    link_close(&l);
    stream_reset(&s);
    look_at_memory();
    return 0;
}
