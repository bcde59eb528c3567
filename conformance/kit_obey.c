// SPDX-License-Identifier: MIT
/*
 * The obedient server: does what the client's orders say. An order is a message "order" with an
 * order structure; the server answers "done" with a result structure when it has done it. Its first
 * failure ends it, and with it the case.
 */
#include "kit_internal.h"

enum order_kind {
    ORDER_SEND,
    ORDER_RECEIVE,
    ORDER_RECEIVED,
    ORDER_SENT,
    ORDER_EXPOSE,
    ORDER_HOLDS,
    ORDER_DISCONNECT,
    ORDER_CLOSE,
    ORDER_DISCONNECTED,
    ORDER_END
};

struct order {
    ULONG kind, count, length, flags, seed, offset;
};

struct done {
    UINT64 address;
    UINT32 token;
    UINT32 reserved;
};

#define OBEY_MAX 64 /* requests of one kind at a time */

struct obedient {
    struct kit_end end;
    struct kit_memory *exposed;
    struct kit_request *sends[OBEY_MAX], *receives[OBEY_MAX];
    struct kit_memory *targets[OBEY_MAX];
    ULONG sent, received; /* posted, not looked at */
};

static BOOLEAN obey_send(struct obedient *o, const struct order *order)
{
    struct kit *k = o->end.k;
    struct kit_memory *memory;

    if (order->count > OBEY_MAX - o->sent)
        return kit_fail(k, KIT_HERE, "more than %u sends at a time", OBEY_MAX);
    for (ULONG i = 0; i < order->count; i++) {
        NDK_SGE sge;

        TRY_OR_FALSE(kit_memory_new(o->end.pd, order->length ? order->length : 1, 0, &memory));
        kit_fill(memory->data, order->length, order->seed + i);
        sge = kit_sge(memory, 0, order->length);
        TRY_OR_FALSE(kit_ok(o->sends[o->sent] = kit_send(o->end.qp, &sge, 1, order->flags)));
        if (!(order->flags & NDK_OP_FLAG_SILENT_SUCCESS))
            o->sent++;
    }
    return TRUE;
}

static BOOLEAN obey_sent(struct obedient *o)
{
    for (ULONG i = 0; i < o->sent; i++)
        TRY_OR_FALSE(kit_expect(o->sends[i], STATUS_SUCCESS, NULL));
    o->sent = 0;
    return TRUE;
}

static BOOLEAN obey_receive(struct obedient *o, const struct order *order)
{
    if (order->count > OBEY_MAX - o->received)
        return kit_fail(o->end.k, KIT_HERE, "more than %u receives at a time", OBEY_MAX);
    for (ULONG i = 0; i < order->count; i++) {
        struct kit_memory **target = &o->targets[o->received];
        NDK_SGE sge;

        TRY_OR_FALSE(kit_memory_new(o->end.pd, order->length ? order->length : 1,
                                    NDK_MR_FLAG_ALLOW_LOCAL_WRITE, target));
        sge = kit_sge(*target, 0, order->length);
        TRY_OR_FALSE(kit_ok(o->receives[o->received] = kit_receive(o->end.qp, &sge, 1)));
        o->received++;
    }
    return TRUE;
}

static BOOLEAN obey_received(struct obedient *o, const struct order *order)
{
    if (order->count > o->received)
        return kit_fail(o->end.k, KIT_HERE, "only %u receives are posted", (unsigned)o->received);
    for (ULONG i = 0; i < order->count; i++) {
        struct kit_result result;

        TRY_OR_FALSE(kit_expect(o->receives[i], STATUS_SUCCESS, &result));
        TRY_OR_FALSE(kit_equal(o->end.k, KIT_HERE, "bytes received", result.bytes, order->length));
        TRY_OR_FALSE(kit_filled(o->end.k, "the message received", o->targets[i]->data,
                                order->length, order->seed + i));
    }
    o->received -= order->count;
    for (ULONG i = 0; i < o->received; i++) {
        o->receives[i] = o->receives[i + order->count];
        o->targets[i] = o->targets[i + order->count];
    }
    return TRUE;
}

static BOOLEAN obey_expose(struct obedient *o, const struct order *order, struct done *done)
{
    TRY_OR_FALSE(kit_memory_new(o->end.pd, order->length, order->flags, &o->exposed));
    kit_fill(o->exposed->data, order->length, order->seed);
    done->address = (UINT64)(ULONG_PTR)o->exposed->data;
    done->token = o->exposed->remote;
    return TRUE;
}

static BOOLEAN obey_one(struct obedient *o, const struct order *order, struct done *done)
{
    switch (order->kind) {
    case ORDER_SEND:
        return obey_send(o, order);
    case ORDER_RECEIVE:
        return obey_receive(o, order);
    case ORDER_RECEIVED:
        return obey_received(o, order);
    case ORDER_SENT:
        return obey_sent(o);
    case ORDER_EXPOSE:
        return obey_expose(o, order, done);
    case ORDER_HOLDS:
        return o->exposed &&
               kit_filled(o->end.k, "the exposed memory", o->exposed->data + order->offset,
                          order->length, order->seed);
    case ORDER_DISCONNECT:
        return kit_disconnect_start(o->end.connector) != NULL;
    case ORDER_CLOSE:
        return kit_close_start(&o->end.connector->object) != NULL;
    case ORDER_DISCONNECTED:
        return kit_wait(o->end.k, &o->end.connector->event, "the disconnect event");
    default:
        return kit_fail(o->end.k, KIT_HERE, "an unknown order %u", (unsigned)order->kind);
    }
}

/* The client's function has returned: kit_run.c says so in its name. */
VOID kit_obey_end(struct kit *k)
{
    struct order order;

    RtlZeroMemory(&order, sizeof order);
    order.kind = ORDER_END;
    if (k->in->channel && k->test->server == kit_obey)
        (void)kit_tell(k, "order", &order, sizeof order);
}

VOID kit_obey(struct kit *k)
{
    struct obedient *o = kit_alloc(k, sizeof *o);

    TRY(o != NULL);
    TRY(kit_end_open(k, k->test->row, &o->end));
    TRY(kit_end_connect(&o->end, k->test->row));
    for (;;) {
        struct order order;
        struct done done;

        RtlZeroMemory(&done, sizeof done);
        TRY(kit_hear(k, "order", &order, sizeof order));
        if (order.kind == ORDER_END)
            return;
        TRY(obey_one(o, &order, &done));
        TRY(kit_tell(k, "done", &done, sizeof done));
    }
}

/* ---- the client's side ---------------------------------------------------------------------- */

static BOOLEAN command(struct kit *k, const struct order *order, struct done *done)
{
    struct done own;

    TRY_OR_FALSE(kit_tell(k, "order", order, sizeof *order));
    return kit_hear(k, "done", done ? done : &own, sizeof own);
}

static BOOLEAN command_of(struct kit *k, enum order_kind kind)
{
    struct order order = {kind, 0, 0, 0, 0, 0};

    return command(k, &order, NULL);
}

BOOLEAN kit_order_send(struct kit *k, ULONG count, ULONG length, ULONG flags, ULONG seed)
{
    struct order order = {ORDER_SEND, count, length, flags, seed, 0};

    return command(k, &order, NULL);
}

BOOLEAN kit_order_receive(struct kit *k, ULONG count, ULONG length)
{
    struct order order = {ORDER_RECEIVE, count, length, 0, 0, 0};

    return command(k, &order, NULL);
}

BOOLEAN kit_order_received(struct kit *k, ULONG count, ULONG length, ULONG seed)
{
    struct order order = {ORDER_RECEIVED, count, length, 0, seed, 0};

    return command(k, &order, NULL);
}

BOOLEAN kit_order_sent(struct kit *k)
{
    return command_of(k, ORDER_SENT);
}

BOOLEAN kit_order_expose(struct kit *k, ULONG length, ULONG mr_flags, ULONG seed, UINT64 *address,
                         UINT32 *token)
{
    struct order order = {ORDER_EXPOSE, 0, length, mr_flags, seed, 0};
    struct done done;

    TRY_OR_FALSE(command(k, &order, &done));
    *address = done.address;
    *token = done.token;
    return TRUE;
}

BOOLEAN kit_order_holds(struct kit *k, ULONG offset, ULONG length, ULONG seed)
{
    struct order order = {ORDER_HOLDS, 0, length, 0, seed, offset};

    return command(k, &order, NULL);
}

BOOLEAN kit_order_disconnect(struct kit *k)
{
    return command_of(k, ORDER_DISCONNECT);
}

BOOLEAN kit_order_close(struct kit *k)
{
    return command_of(k, ORDER_CLOSE);
}

BOOLEAN kit_order_disconnected(struct kit *k)
{
    return command_of(k, ORDER_DISCONNECTED);
}
