// SPDX-License-Identifier: MIT
/* The end of a round: everything is closed, and what happened is held to account; see spin.h. */
#include <stdio.h>
#include <stdlib.h>

#include "spin.h"

static struct object *first_object(void)
{
    struct object *object;

    pthread_mutex_lock(&now.lock);
    object = now.objects;
    pthread_mutex_unlock(&now.lock);
    return object;
}

/* In the order of their creation or against it, by chance: antecedents come first, or last. */
static void doom_all(bool queues_too)
{
    for (struct object *o = first_object(); o; o = o->next)
        if (queues_too || o->kind != CQ)
            object_doom(o);
}

/* A CQ that only its notifications poll gets all there is of its QPs, which are closed. */
static bool drained(struct object *cq)
{
    bool all = true;

    pthread_mutex_lock(&cq->lock);
    for (struct queue_of *q = cq->attached; q && all; q = q->next) {
        struct request *request;

        if (q->owner->kind == SRQ || object_state(q->owner) != CLOSED)
            continue;
        pthread_mutex_lock(&q->lock);
        TAILQ_FOREACH(request, &q->list, link)
        all &= request->silent;
        pthread_mutex_unlock(&q->lock);
    }
    pthread_mutex_unlock(&cq->lock);
    return all;
}

static bool settled(struct object *o, bool queues_too)
{
    if (o->kind != CQ || queues_too)
        return object_state(o) >= CLOSED;
    return !o->by_callback || object_state(o) != OPEN || drained(o);
}

static void await_all(bool queues_too)
{
    unsigned long long limit = test_now_ms() + patience_s * 1000ull;
    static const char *const states[] = {"being created", "open", "closing", "closed", "failed"};

    for (;;) {
        struct object *left = NULL;

        doom_all(queues_too);
        for (struct object *o = first_object(); o && !left; o = o->next)
            if (!settled(o, queues_too))
                left = o;
        if (!left)
            return;
        if (test_now_ms() > limit) {
            for (struct object *o = first_object(); o; o = o->next)
                if (!settled(o, queues_too))
                    fprintf(stderr, "spin: left: kind %d #%u, %s, step %d, %u uses\n", o->kind,
                            o->number, states[object_state(o)], o->step, o->uses);
            spin_die("objects do not end");
        }
        note("waiting for", left, 0);
        test_sleep_ms(2);
    }
}

static void judge_link(const struct link *link)
{
    for (unsigned end = 0; end < 2; end++) {
        const struct object *from = link->qps[end], *to = link->qps[!end];
        const struct queue_of *receive;

        if (!from || !to || !from->world->placed || atomic_load(&link->blind[end]))
            continue;
        receive = to->srq ? &to->srq->queues[0] : &to->queues[0];
        if (receive->lossy)
            continue;
        for (unsigned i = 0; i < MESSAGES; i++)
            if (atomic_load(&link->succeeded[end][i]) && !atomic_load(&link->arrived[end][i]))
                spin_die("link %u: message %u of end %u completed as placed and was not received",
                         link->number, i, end);
    }
}

static void free_all(void)
{
    for (struct request *next, *r = now.requests; r; r = next) {
        next = r->next;
        free(r);
    }
    for (struct call *next, *c = now.calls; c; c = next) {
        next = c->next;
        free(c);
    }
    for (unsigned i = 0; i < now.link_count && i < LINKS; i++)
        free(now.links[i]);
}

static void account(struct object *o)
{
    for (int i = 0; i < 2; i++) {
        struct queue_of *q = &o->queues[i];
        struct request *request;

        if (!q->cq || o->state == FAILED)
            continue;
        need(q->reaped || q->lossy);
        TAILQ_FOREACH(request, &q->list, link)
        request_release(request); /* what nobody could learn the end of */
    }
    need(o->kind != CQ || atomic_load(&o->notified) <= atomic_load(&o->arms));
}

void round_end(void)
{
    atomic_store(&now.ending, true);
    await_all(false);
    await_all(true);
    for (struct object *o = now.objects; o; o = o->next)
        account(o);
    for (const struct call *call = now.calls; call; call = call->next)
        if (atomic_load(&call->answers) != (atomic_load(&call->pended) ? 1u : 0u))
            spin_die("%s #%u: answered %u times", call->name,
                     call->object ? call->object->number : 0, atomic_load(&call->answers));
    for (unsigned i = 0; i < now.link_count && i < LINKS; i++)
        judge_link(now.links[i]);
    for (int i = 0; i < 2; i++) {
        note("softndk_close_adapter", NULL, (unsigned)i);
        softndk_close_adapter(now.worlds[i].adapter);
    }
    for (struct object *next, *o = now.objects; o; o = next) {
        next = o->next;
        free(o);
    }
    free_all();
}
