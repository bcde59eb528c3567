// SPDX-License-Identifier: MIT
/*
 * Two processes: a control connection over NDK between a client and a serving kit. Its messages are
 * Sends of one fixed structure:
 *
 *   HELLO          both ways, once; names the revision of this protocol
 *   RUN id         client: the server is to run its half of that case
 *   STEP           either half to the other: kit_tell()
 *   OVER outcome   each half has ended; a failure ends the wait of the other half at once
 *   BYE            client: the server may end
 *
 * A RUN follows the OVER of both halves of the case before, so that a step never meets another
 * case. Receiving happens in the CQ notification alone: it copies, posts the receive again, and
 * hands on. Sending happens in one thread at a time: the runner's before and after a half, the
 * half's between.
 */
#include "kit_internal.h"
#include "kit_run.h"

#define MAGIC    0x4b49544eu
#define REVISION 1
#define RECEIVES 32
#define HELLO    1
#define RUN      2
#define STEP     3
#define OVER     4
#define BYE      5

struct wire {
    ULONG magic, revision, kind, verdict;
    ULONG second_hand, length;
    char id[16];
    char step[32];
    union {
        UCHAR data[KIT_TELL_MAX];
        char text[512];
    } u;
};

struct control {
    struct control *next;
    struct wire wire;
};

struct kit_peer {
    struct kit *k; /* of the connection */
    struct kit_config config;
    struct kit_end end;
    struct kit_memory *in, *out;
    struct kit_request *receives[RECEIVES];
    struct kit_channel channel;
    KEVENT event; /* something for the runner */
    struct kit_os_lock lock;
    struct control *first, *last; /* for the runner: all but steps */
    struct kit *half;             /* that runs now, or NULL */
    volatile LONG gone;
};

/* ---- receiving ------------------------------------------------------------------------------ */

static BOOLEAN post_receive(struct kit_peer *peer, ULONG i)
{
    NDK_SGE sge = kit_sge(peer->in, i * sizeof(struct wire), sizeof(struct wire));

    peer->receives[i] = kit_receive(peer->end.qp, &sge, 1);
    return (BOOLEAN)(peer->receives[i] && peer->receives[i]->posted == STATUS_SUCCESS);
}

static VOID gone(struct kit_peer *peer)
{
    kit_os_lock(&peer->lock);
    kit_os_set(&peer->gone, 1);
    if (peer->half)
        kit_os_set(&peer->half->in->aborted, 1);
    kit_os_unlock(&peer->lock);
    KeSetEvent(&peer->event, IO_NO_INCREMENT, FALSE);
}

static VOID got_step(struct kit_peer *peer, const struct wire *wire)
{
    struct kit_message message;

    RtlZeroMemory(&message, sizeof message);
    RtlCopyMemory(message.step, wire->step, sizeof message.step);
    message.step[sizeof message.step - 1] = '\0';
    message.length = wire->length <= KIT_TELL_MAX ? wire->length : KIT_TELL_MAX;
    RtlCopyMemory(message.data, wire->u.data, message.length);
    if (!kit_channel_deliver(&peer->channel, &message))
        gone(peer);
}

static VOID got_control(struct kit_peer *peer, const struct wire *wire)
{
    struct control *control = kit_os_alloc(sizeof *control);

    if (!control) {
        gone(peer);
        return;
    }
    control->wire = *wire;
    control->wire.id[sizeof wire->id - 1] = '\0';
    control->wire.u.text[sizeof wire->u.text - 1] = '\0';
    if (wire->kind == RUN)
        kit_channel_empty(&peer->channel);
    kit_os_lock(&peer->lock);
    if (wire->kind == OVER && wire->verdict != KIT_PASS && peer->half)
        kit_os_set(&peer->half->in->aborted, 1);
    if (peer->last)
        peer->last->next = control;
    else
        peer->first = control;
    peer->last = control;
    kit_os_unlock(&peer->lock);
    KeSetEvent(&peer->event, IO_NO_INCREMENT, FALSE);
}

static VOID got(struct kit_peer *peer, const struct kit_result *result)
{
    struct wire wire;
    ULONG i;

    for (i = 0; i < RECEIVES && peer->receives[i] != result->request; i++)
        ;
    if (i == RECEIVES || result->status != STATUS_SUCCESS || result->bytes != sizeof wire) {
        gone(peer);
        return;
    }
    RtlCopyMemory(&wire, peer->in->data + i * sizeof wire, sizeof wire);
    if (!post_receive(peer, i) || wire.magic != MAGIC || wire.revision != REVISION)
        gone(peer);
    else if (wire.kind == STEP)
        got_step(peer, &wire);
    else
        got_control(peer, &wire);
}

static VOID on_receive(struct kit_cq *cq, NTSTATUS status)
{
    struct kit_peer *peer = cq->context;
    struct kit_result result;

    if (status != STATUS_SUCCESS) {
        gone(peer);
        return;
    }
    while (kit_cq_poll(cq, &result, 1) == 1)
        got(peer, &result);
    kit_cq_arm(cq, NDK_CQ_NOTIFY_ANY);
}

static VOID on_disconnect(struct kit_connector *connector)
{
    gone(connector->context);
}

/* The next message for the runner; the caller frees it. NULL: gone, or nothing within ms. */
static struct control *next_control(struct kit_peer *peer, ULONG ms)
{
    ULONGLONG end = kit_os_ms() + ms;

    for (;;) {
        ULONGLONG now = kit_os_ms();
        struct control *control;
        LARGE_INTEGER left;

        kit_os_lock(&peer->lock);
        control = peer->first;
        if (control) {
            peer->first = control->next;
            if (!peer->first)
                peer->last = NULL;
        }
        kit_os_unlock(&peer->lock);
        if (control || kit_os_get(&peer->gone) || now >= end)
            return control;
        left.QuadPart = -10000ll * (LONGLONG)(end - now);
        (void)KeWaitForSingleObject(&peer->event, Executive, KernelMode, FALSE, &left);
    }
}

/* ---- sending -------------------------------------------------------------------------------- */

static BOOLEAN send_wire(struct kit_peer *peer, struct wire *wire)
{
    NDK_SGE sge = kit_sge(peer->out, 0, sizeof *wire);

    wire->magic = MAGIC;
    wire->revision = REVISION;
    if (kit_os_get(&peer->gone))
        return FALSE;
    peer->k->in->deadline = kit_os_ms() + peer->config.limit_ms;
    RtlCopyMemory(peer->out->data, wire, sizeof *wire);
    return kit_expect(kit_send(peer->end.qp, &sge, 1, 0), STATUS_SUCCESS, NULL);
}

static BOOLEAN send_step(struct kit_channel *channel, const struct kit_message *message)
{
    struct wire wire;

    RtlZeroMemory(&wire, sizeof wire);
    wire.kind = STEP;
    wire.length = message->length;
    RtlCopyMemory(wire.step, message->step, sizeof wire.step);
    RtlCopyMemory(wire.u.data, message->data, message->length);
    return send_wire(channel->peer, &wire);
}

static BOOLEAN send_kind(struct kit_peer *peer, ULONG kind, const char *id)
{
    struct wire wire;

    RtlZeroMemory(&wire, sizeof wire);
    wire.kind = kind;
    kit_print_to(wire.id, sizeof wire.id, "%s", id);
    return send_wire(peer, &wire);
}

static BOOLEAN send_over(struct kit_peer *peer, const struct kit_outcome *outcome)
{
    struct wire wire;

    RtlZeroMemory(&wire, sizeof wire);
    wire.kind = OVER;
    wire.verdict = (ULONG)outcome->verdict;
    wire.second_hand = outcome->second_hand;
    kit_print_to(wire.u.text, sizeof wire.u.text, "%s", outcome->text);
    return send_wire(peer, &wire);
}

/* ---- the connection ------------------------------------------------------------------------- */

static struct kit_peer *peer_new(const struct kit_config *config)
{
    struct kit_peer *peer = kit_os_alloc(sizeof *peer);

    if (!peer)
        return NULL;
    peer->config = *config;
    kit_os_lock_init(&peer->lock);
    KeInitializeEvent(&peer->event, SynchronizationEvent, FALSE);
    kit_channel_init(&peer->channel);
    peer->channel.send = send_step;
    peer->channel.peer = peer;
    peer->k = kit_life_new(NULL, &peer->config, KIT_ALONE, NULL);
    if (peer->k)
        return peer;
    kit_os_free(peer);
    return NULL;
}

/* An end with its receives posted; what comes, comes to the notification. */
static BOOLEAN peer_open(struct kit_peer *peer)
{
    static const struct kit_end_options options = {.sizes = {RECEIVES, 4, 1, 1, 0},
                                                   .cq_depth = RECEIVES};

    TRY_OR_FALSE(kit_end_open(peer->k, &options, &peer->end));
    TRY_OR_FALSE(kit_memory_new(peer->end.pd, RECEIVES * sizeof(struct wire),
                                NDK_MR_FLAG_ALLOW_LOCAL_WRITE, &peer->in));
    TRY_OR_FALSE(kit_memory_new(peer->end.pd, sizeof(struct wire), 0, &peer->out));
    for (ULONG i = 0; i < RECEIVES; i++)
        TRY_OR_FALSE(post_receive(peer, i));
    peer->end.receive->context = peer;
    peer->end.receive->in_callback = on_receive;
    kit_cq_arm(peer->end.receive, NDK_CQ_NOTIFY_ANY);
    return TRUE;
}

static VOID peer_close(struct kit_peer *peer)
{
    struct control *control;

    kit_life_clean(peer->k);
    if (peer->k->in->abandoned)
        return;
    while ((control = next_control(peer, 0)) != NULL)
        kit_os_free(control);
    kit_channel_empty(&peer->channel);
    kit_life_bury(peer->k);
    /* The connection's record may still be asked for its config. */
}

static BOOLEAN hello(struct kit_peer *peer)
{
    struct control *control;
    BOOLEAN right;

    TRY_OR_FALSE(send_kind(peer, HELLO, "hello"));
    control = next_control(peer, peer->config.limit_ms);
    right = (BOOLEAN)(control && control->wire.kind == HELLO);
    kit_os_free(control);
    return right ? TRUE : kit_fail(peer->k, (struct kit_here){NULL, 0}, "no kit answers there");
}

static BOOLEAN peer_join(struct kit_peer *peer, const SOCKADDR_INET *address)
{
    struct kit_end *end = &peer->end;

    TRY_OR_FALSE(peer_open(peer));
    TRY_OR_FALSE(kit_connector_new(end->adapter, &end->connector));
    kit_on_disconnect(end->connector, on_disconnect, peer);
    TRY_OR_FALSE(
        kit_answer_is(kit_connect_start(end->connector, end->qp, address, NULL), STATUS_SUCCESS));
    TRY_OR_FALSE(kit_answer_is(kit_complete_start(end->connector), STATUS_SUCCESS));
    return hello(peer);
}

struct kit_peer *kit_peer_connect(const struct kit_config *config, const SOCKADDR_INET *address,
                                  char *text, SIZE_T size)
{
    struct kit_peer *peer = peer_new(config);

    kit_print_to(text, size, "the kit has no memory");
    if (!peer || peer_join(peer, address))
        return peer;
    kit_print_to(text, size, "%s", peer->k->in->text);
    peer_close(peer);
    return NULL;
}

VOID kit_peer_end(struct kit_peer *peer)
{
    /* The server closes when it has read this, so that it is not lost with the connection. */
    if (send_kind(peer, BYE, "bye"))
        kit_os_free(next_control(peer, peer->config.limit_ms));
    peer_close(peer);
}

/* Lock held. The other half has ended without success, before this one was there to be told. */
static BOOLEAN is_over(const struct kit_peer *peer)
{
    for (const struct control *c = peer->first; c; c = c->next)
        if (c->wire.kind == OVER && c->wire.verdict != KIT_PASS)
            return TRUE;
    return FALSE;
}

static VOID set_half(struct kit_peer *peer, struct kit *half)
{
    kit_os_lock(&peer->lock);
    peer->half = half;
    if (half && (kit_os_get(&peer->gone) || is_over(peer)))
        kit_os_set(&half->in->aborted, 1);
    kit_os_unlock(&peer->lock);
}

struct kit_channel *kit_peer_begin(struct kit_peer *peer, const struct kit_case *test,
                                   struct kit *half)
{
    kit_channel_empty(&peer->channel);
    set_half(peer, half);
    return send_kind(peer, RUN, test->id) ? &peer->channel : NULL;
}

BOOLEAN kit_peer_over(struct kit_peer *peer, const struct kit_outcome *mine,
                      struct kit_outcome *other)
{
    struct control *control;
    BOOLEAN right;

    set_half(peer, NULL);
    TRY_OR_FALSE(send_over(peer, mine));
    control = next_control(peer, 3 * peer->config.limit_ms);
    right = (BOOLEAN)(control && control->wire.kind == OVER);
    if (right) {
        other->verdict = (enum kit_verdict)control->wire.verdict;
        other->second_hand = (BOOLEAN)control->wire.second_hand;
        kit_print_to(other->text, sizeof other->text, "%s", control->wire.u.text);
    }
    kit_os_free(control);
    return right;
}

/* ---- serving -------------------------------------------------------------------------------- */

static BOOLEAN serve_case(struct kit_peer *peer, const char *id)
{
    const struct kit_case *test = kit_find_case(id);
    struct kit_half *half = NULL;
    struct kit_outcome outcome, other;

    RtlZeroMemory(&outcome, sizeof outcome);
    RtlZeroMemory(&other, sizeof other);
    if (test && test->server)
        half = kit_half_new(test, &peer->config, KIT_SERVER, &peer->channel);
    if (half) {
        kit_os_stall_ms(peer->config.late_ms);
        set_half(peer, kit_half_kit(half));
        kit_half_start(half, NULL);
        kit_half_end(half, &outcome);
    } else {
        outcome.verdict = KIT_SKIP;
        kit_print_to(outcome.text, sizeof outcome.text, "the peer's kit does not have this case");
    }
    return (BOOLEAN)(kit_peer_over(peer, &outcome, &other) && !outcome.hangs);
}

/* TRUE: the client said that this is all. */
static BOOLEAN serve_client(struct kit_peer *peer, ULONG idle_ms)
{
    struct control *control;
    BOOLEAN on = TRUE, bye = FALSE;

    while (on && (control = next_control(peer, idle_ms)) != NULL) {
        if (control->wire.kind == RUN)
            on = serve_case(peer, control->wire.id);
        else if (control->wire.kind == HELLO)
            on = send_kind(peer, HELLO, "hello");
        else if (control->wire.kind == BYE)
            bye = TRUE;
        on = (BOOLEAN)(on && !bye);
        kit_os_free(control);
    }
    return bye;
}

static BOOLEAN serve_accept(struct kit_peer *peer, SOCKADDR_INET *address, ULONG idle_ms)
{
    struct kit_end *end = &peer->end;
    char text[96];
    ULONG length = sizeof *address;

    TRY_OR_FALSE(peer_open(peer));
    TRY_OR_FALSE(kit_listener_new(end->adapter, &end->listener));
    TRY_OR_FALSE(kit_answer_is(kit_listen_start(end->listener, address), STATUS_SUCCESS));
    TRY_OR_FALSE(kit_status(
        peer->k, KIT_HERE, "NdkGetLocalAddress",
        end->listener->table->NdkGetLocalAddress(end->listener->ndk, (PSOCKADDR)address, &length),
        STATUS_SUCCESS));
    kit_door.address_text(address, text, sizeof text);
    kit_os_print("ndkconform: serving on ");
    kit_os_print(text);
    kit_os_print("\n");
    peer->k->in->deadline = kit_os_ms() + idle_ms;
    TRY_OR_FALSE(kit_incoming(end->listener, &end->connector));
    kit_on_disconnect(end->connector, on_disconnect, peer);
    peer->k->in->deadline = kit_os_ms() + peer->config.limit_ms;
    return kit_answer_is(kit_accept_start(end->connector, end->qp, NULL), STATUS_SUCCESS);
}

int kit_serve(const struct kit_config *config, const SOCKADDR_INET *wanted, ULONG idle_ms)
{
    SOCKADDR_INET address = *wanted;

    for (;;) {
        struct kit_peer *peer = peer_new(config);
        BOOLEAN accepted, idle, bye = FALSE;

        if (!peer)
            return 2;
        accepted = serve_accept(peer, &address, idle_ms);
        idle = (BOOLEAN)(!accepted && peer->end.listener && !peer->end.connector &&
                         kit_time_left(peer->k) == 0);
        if (accepted)
            bye = serve_client(peer, idle_ms);
        else if (!idle && !peer->end.connector) {
            kit_os_complain("ndkconform: ");
            kit_os_complain(peer->k->in->text);
            kit_os_complain("\n");
        }
        if (accepted && !bye && kit_os_get(&peer->gone))
            kit_os_complain("ndkconform: the client is gone without a word; waiting for another\n");
        idle = (BOOLEAN)(idle || (accepted && !bye && !kit_os_get(&peer->gone)));
        accepted = (BOOLEAN)(peer->end.connector != NULL);
        peer_close(peer);
        if (bye || idle)
            return 0;
        if (!accepted)
            return 2;
    }
}
