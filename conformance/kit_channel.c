// SPDX-License-Identifier: MIT
/*
 * How the halves of a case speak: a box of messages for each half. In one process a message goes
 * from box to box; to another process kit_peer.c carries it.
 */
#include "kit_internal.h"

VOID kit_channel_init(struct kit_channel *channel)
{
    RtlZeroMemory(channel, sizeof *channel);
    kit_os_lock_init(&channel->lock);
    KeInitializeEvent(&channel->event, SynchronizationEvent, FALSE);
}

static struct kit_message *take(struct kit_channel *channel)
{
    struct kit_message *message;

    kit_os_lock(&channel->lock);
    message = channel->first;
    if (message) {
        channel->first = message->next;
        if (!channel->first)
            channel->last = NULL;
    }
    kit_os_unlock(&channel->lock);
    return message;
}

VOID kit_channel_empty(struct kit_channel *channel)
{
    struct kit_message *message;

    while ((message = take(channel)) != NULL)
        kit_os_free(message);
}

BOOLEAN kit_channel_deliver(struct kit_channel *channel, const struct kit_message *message)
{
    struct kit_message *copy = kit_os_alloc(sizeof *copy);

    if (!copy)
        return FALSE;
    *copy = *message;
    copy->next = NULL;
    kit_os_lock(&channel->lock);
    if (channel->last)
        channel->last->next = copy;
    else
        channel->first = copy;
    channel->last = copy;
    kit_os_unlock(&channel->lock);
    KeSetEvent(&channel->event, IO_NO_INCREMENT, FALSE);
    return TRUE;
}

static BOOLEAN send_here(struct kit_channel *channel, const struct kit_message *message)
{
    return kit_channel_deliver(channel->other, message);
}

VOID kit_channel_join(struct kit_channel *a, struct kit_channel *b)
{
    kit_channel_init(a);
    kit_channel_init(b);
    a->other = b;
    b->other = a;
    a->send = send_here;
    b->send = send_here;
}

BOOLEAN kit_tell(struct kit *k, const char *step, const VOID *data, ULONG length)
{
    struct kit_message message;

    if (!k->in->channel || length > KIT_TELL_MAX)
        return kit_fail(k, KIT_HERE, "kit_tell(%s): no other half, or too long", step);
    RtlZeroMemory(&message, sizeof message);
    kit_print_to(message.step, sizeof message.step, "%s", step);
    message.length = length;
    if (length)
        RtlCopyMemory(message.data, data, length);
    if (!k->in->channel->send(k->in->channel, &message)) {
        kit_second_hand(k, "the other half cannot be reached");
        return FALSE;
    }
    return TRUE;
}

/* A half waits longer for the other than the other for what keeps it, so that the right one fails.
 */
#define HEAR_MORE_MS 3000

struct kit_message *kit_hear_any(struct kit *k, const char *awaited)
{
    struct kit_message *message;
    char what[96];

    if (!k->in->channel) {
        kit_fail(k, KIT_HERE, "no other half to hear");
        return NULL;
    }
    kit_print_to(what, sizeof what, "\"%s\" from the other half", awaited);
    k->in->deadline += HEAR_MORE_MS;
    while ((message = take(k->in->channel)) == NULL)
        if (!kit_wait(k, &k->in->channel->event, what))
            break;
    k->in->deadline -= HEAR_MORE_MS;
    return message;
}

BOOLEAN kit_hear(struct kit *k, const char *step, PVOID data, ULONG length)
{
    struct kit_message *message = kit_hear_any(k, step);
    BOOLEAN right;

    TRY_OR_FALSE(message != NULL);
    right = kit_same(message->step, step) && message->length == length;
    if (right && length)
        RtlCopyMemory(data, message->data, length);
    if (!right)
        kit_fail(k, (struct kit_here){NULL, 0},
                 "heard \"%s\" with %u bytes from the other half, need \"%s\" with %u",
                 message->step, (unsigned)message->length, step, (unsigned)length);
    kit_os_free(message);
    return right;
}

BOOLEAN kit_meet(struct kit *k, const char *step)
{
    TRY_OR_FALSE(kit_tell(k, step, NULL, 0));
    return kit_hear(k, step, NULL, 0);
}
