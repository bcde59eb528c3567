// SPDX-License-Identifier: MIT
/*
 * Memory windows; see spin.h. A window's step is IDLE when it is certainly not bound, BUSY while a
 * request of anybody's may change that, READY when it was bound: it still is, unless the connection
 * of its queue pair has ended since. That has its own mark (over->ended), set only when everything
 * of the connection is over; then a window is IDLE again (settle()).
 *
 * What is asked: a bind of an IDLE window succeeds, so does the invalidation of a bound one while
 * the connection is up; the token is known when the post returns, is another one each time, and
 * good for nothing after the end; a region is busy if, and only if, a window is bound to it.
 */
#include "message.h"

atomic_uint count_bound, count_unbound, count_taken, count_vain, count_through;

static NDK_MW *handle_of(const struct object *window)
{
    return (NDK_MW *)(void *)window->header;
}

static UINT32 token_of(const struct object *window)
{
    return handle_of(window)->Dispatch->NdkGetRemoteTokenFromMw(handle_of(window));
}

/* It is not bound: lock held. */
static void unbind(struct object *window, enum step step)
{
    if (window->counted)
        atomic_fetch_sub(&window->region->windows, 1);
    window->counted = false;
    window->taken = window->sent = false;
    window->step = step;
}

/* Lock held. With the connection the binding has ended, and what a Send was to end. */
static void settle(struct object *window)
{
    const struct object *over = window->over;

    if (over && atomic_load(&over->ended) &&
        (window->step == READY || (window->step == BUSY && window->taken && window->sent)))
        unbind(window, IDLE);
}

static bool claim(struct object *window, enum step from)
{
    bool is;

    pthread_mutex_lock(&window->lock);
    settle(window);
    is = window->step == from;
    if (is)
        window->step = BUSY;
    pthread_mutex_unlock(&window->lock);
    return is;
}

static void release(struct object *window, enum step step)
{
    pthread_mutex_lock(&window->lock);
    need(window->step == BUSY);
    window->step = step;
    pthread_mutex_unlock(&window->lock);
}

/* One that was bound over this queue pair, used; NULL: none was found. */
static struct object *pick_over(struct object *qp)
{
    for (int tries = 0; tries < 8; tries++) {
        struct object *window = object_pick(qp->world, MW, qp->pd);
        bool over;

        if (!window)
            return NULL;
        pthread_mutex_lock(&window->lock);
        over = window->over == qp && window->step == READY;
        pthread_mutex_unlock(&window->lock);
        if (over)
            return window;
        object_unuse(window);
    }
    return NULL;
}

/* ---- posts ---------------------------------------------------------------------------------- */

/* Some slices, and at times a part of those beside them, which nothing is sent to. */
static void choose(struct posting *p, struct object *window, const struct object *mr)
{
    unsigned first = draw(SLICES), slices = 1 + draw(SLICES - first);
    unsigned before = first && draw(2) ? draw(SLICE) : 0;
    unsigned behind = first + slices < SLICES && draw(2) ? draw(SLICE) : 0;
    unsigned rights = 1 + draw(3);

    p->address = (UINT64)(uintptr_t)slice_at(mr, first) - before;
    p->length = before + slices * SLICE + behind;
    p->flags = draw_flags() | (rights & 1 ? NDK_OP_FLAG_ALLOW_REMOTE_READ : 0) |
               (rights & 2 ? NDK_OP_FLAG_ALLOW_REMOTE_WRITE : 0);
    pthread_mutex_lock(&window->lock);
    window->at_octet = (UINT64)(uintptr_t)slice_at(mr, first);
    window->first = first;
    window->slices = slices;
    window->readable = rights & 1;
    window->writable = rights & 2;
    pthread_mutex_unlock(&window->lock);
}

static bool bind_it(struct object *qp, struct object *window, struct object *mr, unsigned moves)
{
    UINT32 before = token_of(window), after;
    struct posting p = {.request = request_make(&qp->queues[1], NdkOperationTypeBind)};
    struct request *r = p.request;

    if (!r)
        return false;
    r->mr = mr;
    r->window = window;
    r->moves = moves;
    r->before = before;
    choose(&p, window, mr);
    pthread_mutex_lock(&window->lock);
    window->region = mr;
    window->over = qp;
    window->counted = true;
    window->deregistered = false;
    pthread_mutex_unlock(&window->lock);
    atomic_fetch_add(&mr->binds, 1);
    atomic_fetch_add(&mr->windows, 1);
    if (!post(&p)) {
        need(token_of(window) == before);
        return false;
    }
    after = token_of(window);
    if (atomic_load(&r->completions) == 0 && !r->silent)
        atomic_store(&r->token, after);
    return true;
}

static bool post_bind(struct object *qp)
{
    struct object *window = object_pick(qp->world, MW, qp->pd);
    struct object *mr = window ? object_pick(qp->world, MR, qp->pd) : NULL;
    bool posted = false;

    if (mr && !mr->fast && claim(window, IDLE)) {
        unsigned moves = atomic_load(&mr->moves);

        pthread_mutex_lock(&mr->lock);
        posted = mr->step == READY;
        pthread_mutex_unlock(&mr->lock);
        posted = posted && bind_it(qp, window, mr, moves);
        if (!posted) {
            pthread_mutex_lock(&window->lock);
            unbind(window, IDLE);
            pthread_mutex_unlock(&window->lock);
        }
    }
    if (mr)
        object_unuse(mr);
    if (window)
        object_unuse(window);
    return posted;
}

static bool post_unbind(struct object *qp)
{
    struct object *window = pick_over(qp);
    bool posted = false;

    if (!window)
        return false;
    if (claim(window, READY)) {
        struct posting p = {.request = request_make(&qp->queues[1], NdkOperationTypeInvalidate),
                            .flags = draw_flags()};

        if (window->over == qp && p.request) { /* nobody else binds it now */
            p.request->window = window;
            posted = post(&p);
        } else if (p.request) {
            request_release(p.request);
        }
        if (!posted)
            release(window, READY);
    }
    object_unuse(window);
    return posted;
}

bool post_a_bind(struct object *qp)
{
    bool up;

    pthread_mutex_lock(&qp->lock);
    up = qp->step == READY;
    pthread_mutex_unlock(&qp->lock);
    return up && (draw(3) ? post_bind(qp) : post_unbind(qp));
}

/* ---- completions ---------------------------------------------------------------------------- */

static void now_bound(struct object *window, const struct request *r)
{
    UINT32 token = token_of(window), posted = atomic_load(&r->token);

    if (posted && posted != token)
        spin_die("mw #%u: token 0x%x when its bind was posted, 0x%x when that has completed",
                 window->number, posted, token);
    if (token == r->before)
        spin_die("mw #%u is bound anew and has the same token", window->number);
    pthread_mutex_lock(&window->lock);
    need(window->step == BUSY);
    window->remote = token;
    window->step = READY;
    pthread_mutex_unlock(&window->lock);
    atomic_fetch_add(&count_bound, 1);
}

static void now_unbound(struct object *window)
{
    pthread_mutex_lock(&window->lock);
    need(window->step == BUSY);
    if (window->deregistered)
        spin_die("mw #%u was bound to mr #%u, which was deregistered", window->number,
                 window->region->number);
    unbind(window, IDLE);
    pthread_mutex_unlock(&window->lock);
    atomic_fetch_add(&count_unbound, 1);
}

/* A window that was not bound was not, or one that was bound was: only a close of what the bind
 * needs may come between. */
static void refused(struct object *window, const struct request *r)
{
    if (r->type == NdkOperationTypeBind && object_use(r->mr)) {
        object_unuse(r->mr);
        spin_die("mw #%u is not bound and its bind by qp #%u says so", window->number,
                 r->queue->owner->number);
    }
}

void window_completed(struct request *r, NTSTATUS status)
{
    struct object *window = r->window;

    if (r->stale) {
        if (status == STATUS_SUCCESS)
            spin_die("qp #%u read by the token of mw #%u, which was not bound",
                     r->queue->owner->number, window->number);
        window_tried(window);
        return;
    }
    if (!object_use(window))
        return; /* it is being closed */
    if (status == STATUS_INVALID_DEVICE_REQUEST)
        refused(window, r);
    if (status != STATUS_SUCCESS) { /* the connection ends, if it had not */
        pthread_mutex_lock(&window->lock);
        if (r->type == NdkOperationTypeBind)
            unbind(window, IDLE);
        else
            window->step = READY;
        pthread_mutex_unlock(&window->lock);
    } else if (r->type == NdkOperationTypeBind) {
        now_bound(window, r);
    } else {
        now_unbound(window);
    }
    object_unuse(window);
}

void window_passed(struct request *r)
{
    if (!object_use(r->window))
        return;
    if (r->type == NdkOperationTypeBind)
        now_bound(r->window, r);
    else
        now_unbound(r->window);
    object_unuse(r->window);
}

void window_left(struct request *r)
{
    pthread_mutex_lock(&r->window->lock);
    if (r->window->step == BUSY) /* not closed meanwhile */
        unbind(r->window, IDLE);
    pthread_mutex_unlock(&r->window->lock);
}

void window_gone(struct object *window)
{
    pthread_mutex_lock(&window->lock);
    unbind(window, DEAD);
    pthread_mutex_unlock(&window->lock);
}

/* ---- the peer ------------------------------------------------------------------------------- */

bool window_target(struct object *peer, struct target *out)
{
    struct object *window = pick_over(peer), *region = NULL;

    if (!window)
        return false;
    pthread_mutex_lock(&window->lock);
    if (window->step == READY && window->over == peer) {
        region = window->region;
        *out = (struct target){.token = window->remote,
                               .first = window->first,
                               .slices = window->slices,
                               .readable = window->readable,
                               .writable = window->writable};
    }
    pthread_mutex_unlock(&window->lock);
    object_unuse(window);
    out->mr = region && object_use(region) ? region : NULL;
    return out->mr != NULL;
}

struct object *window_take(struct object *peer, UINT32 *token, unsigned *take)
{
    struct object *window = pick_over(peer);
    bool taken;

    if (!window)
        return NULL;
    pthread_mutex_lock(&window->lock);
    taken = window->step == READY && window->over == peer;
    if (taken) {
        window->step = BUSY;
        window->taken = true;
        window->sent = false;
        *take = ++window->takes;
        *token = window->remote;
    }
    pthread_mutex_unlock(&window->lock);
    if (!taken)
        object_unuse(window);
    return taken ? window : NULL;
}

void window_sent(struct object *window, unsigned take, bool posted)
{
    pthread_mutex_lock(&window->lock);
    if (window->taken && window->takes == take) { /* it has not arrived yet */
        window->sent = posted;
        window->taken = posted;
        if (!posted)
            window->step = READY;
    }
    pthread_mutex_unlock(&window->lock);
}

void window_lost(struct world *world, UINT32 token)
{
    pthread_mutex_lock(&world->lock);
    for (unsigned i = 0; i < POOL; i++) {
        struct object *window = world->live[MW][i];

        if (!window)
            continue;
        pthread_mutex_lock(&window->lock);
        if (window->step == BUSY && window->taken && window->remote == token) {
            unbind(window, IDLE);
            atomic_fetch_add(&count_taken, 1);
        }
        pthread_mutex_unlock(&window->lock);
    }
    pthread_mutex_unlock(&world->lock);
}

struct object *window_stale(struct object *peer, UINT32 *token)
{
    struct object *window = object_pick(peer->world, MW, peer->pd);

    if (!window)
        return NULL;
    if (window->remote && claim(window, IDLE)) {
        *token = window->remote;
        atomic_fetch_add(&count_vain, 1);
        return window;
    }
    object_unuse(window);
    return NULL;
}

void window_tried(struct object *window)
{
    pthread_mutex_lock(&window->lock);
    if (window->step == BUSY) /* not closed meanwhile */
        window->step = IDLE;
    pthread_mutex_unlock(&window->lock);
}

/* ---- its region ----------------------------------------------------------------------------- */

struct object *window_hold(struct object *mr)
{
    struct object *window = object_pick(mr->world, MW, mr->pd);
    bool held;

    if (!window)
        return NULL;
    pthread_mutex_lock(&window->lock);
    held = window->step == READY && window->region == mr;
    if (held)
        window->step = BUSY;
    pthread_mutex_unlock(&window->lock);
    object_unuse(window);
    return held ? window : NULL;
}

void window_judge(struct object *window, bool deregistered)
{
    pthread_mutex_lock(&window->lock);
    if (window->step == BUSY) {
        window->step = READY;
        window->deregistered |= deregistered;
    }
    pthread_mutex_unlock(&window->lock);
}
