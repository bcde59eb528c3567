// SPDX-License-Identifier: MIT
/*
 * Moderation: an arm that is satisfied may be held, its notification waits until
 *
 *   - `count` completions are in the queue, or have come since (the satisfying one included), or
 *   - `interval` microseconds have passed since the satisfying one came, or
 *   - a request failed, the CQ died, or the settings or the depth say so.
 *
 * The interval never starts later than the completion: one that was there before the arm is given
 * the time of the oldest entry it may be (`fresh_us`). The timer belongs to the CQ's home shard; it
 * can fire for a hold that is over, so whoever it finds is judged by the clock, not by it.
 * Locks: the CQ's, then the shard's timer lock.
 */
#include <ntstatus.h>

#include "base/red.h"
#include "provider/adapter.h"
#include "provider/cq_internal.h"

static void interval_over(struct engine_timer *timer);

void cq_moderation_init(struct cq *cq)
{
    engine_timer_init(&cq->timer, cq->object.home, interval_over);
}

/* ---- the timer; a reference each time it is armed ---- */

static void timer_start(struct cq *cq, uint64_t delay_us)
{
    if (RED("cq-moderation-interval-ignored"))
        return;
    object_ref(&cq->object);
    if (engine_timer_set(&cq->timer, delay_us))
        object_unref(&cq->object);
}

void cq_moderation_unhold(struct cq *cq)
{
    if (engine_timer_cancel(&cq->timer))
        object_unref(&cq->object);
}

/* ---- judging; all locked ---- */

static bool interval_alone(const struct cq *cq)
{
    return cq->moderation.count > cq->depth && !RED("cq-moderation-count-above-depth");
}

static bool gathered(const struct cq *cq)
{
    const struct cq_moderation *m = &cq->moderation;
    uint32_t written = atomic_load_explicit(&cq->written, memory_order_relaxed);
    uint32_t read = atomic_load_explicit(&cq->read, memory_order_relaxed);

    if (interval_alone(cq) || RED("cq-moderation-count-ignored"))
        return false;
    return (written - m->from >= m->count && !RED("cq-moderation-polled-forgotten")) ||
           written - read >= m->count;
}

/* The arm is satisfied, `from` and `since_us` say by what; or it is held and things changed. */
static void hold_or_fire(struct cq *cq)
{
    struct cq_moderation *m = &cq->moderation;
    uint64_t now, due;

    if (!m->on || gathered(cq)) {
        cq_fire(cq);
        return;
    }
    cq_arm_set(cq, CQ_ARM_HELD);
    if (m->interval_us == MAXULONG) {
        cq_moderation_unhold(cq);
        return;
    }
    now = os_now_us();
    due = (RED("cq-moderation-postponed") ? now : m->since_us) + m->interval_us;
    if (now >= due)
        cq_fire(cq);
    else
        timer_start(cq, due - now);
}

static bool at_once(const struct cq_entry *entry)
{
    return !NT_SUCCESS(entry->status) && !RED("cq-moderation-delays-errors");
}

void cq_moderation_put(struct cq *cq, const struct cq_entry *entry, uint32_t at)
{
    struct cq_moderation *m = &cq->moderation;

    /* The first one that a poll or the last notification has not seen. */
    if (at == cq->seen || (at == atomic_load_explicit(&cq->read, memory_order_relaxed) &&
                           !RED("cq-moderation-old-begins")))
        m->fresh_us = os_now_us();
    if (!cq_satisfies(cq, entry))
        return;
    if (at_once(entry)) {
        cq_fire(cq);
    } else if (cq->arm == CQ_ARM_HELD) {
        if (gathered(cq))
            cq_fire(cq);
    } else {
        m->from = at;
        m->since_us = os_now_us();
        hold_or_fire(cq);
    }
}

void cq_moderation_arm(struct cq *cq, uint32_t from, bool error)
{
    struct cq_moderation *m = &cq->moderation;

    if (error && !RED("cq-moderation-delays-errors")) {
        cq_fire(cq);
        return;
    }
    m->from = from;
    m->since_us = RED("cq-moderation-arm-begins") ? os_now_us() : m->fresh_us;
    hold_or_fire(cq);
}

static void interval_over(struct engine_timer *timer)
{
    struct cq *cq = CONTAINING_RECORD(timer, struct cq, timer);
    const struct cq_moderation *m = &cq->moderation;

    os_mutex_lock(&cq->lock);
    if (cq->arm == CQ_ARM_HELD && m->interval_us != MAXULONG &&
        os_now_us() >= m->since_us + m->interval_us)
        cq_fire(cq);
    os_mutex_unlock(&cq->lock);
    object_unref(&cq->object);
}

/* ---- settings ---- */

void cq_moderation_apply(struct cq *cq)
{
    struct cq_moderation *m = &cq->moderation;
    bool never = m->interval_us == MAXULONG && interval_alone(cq);

    m->on = m->interval_us != 0 && m->count > 1 && !cq->closing &&
            (!never || RED("cq-moderation-for-ever"));
    if (cq->arm == CQ_ARM_HELD && !RED("cq-moderation-old-settings"))
        hold_or_fire(cq);
    else
        cq_arm_set(cq, cq->arm);
}

void cq_moderation_close(struct cq *cq)
{
    if (RED("cq-moderation-close-waits"))
        return;
    os_mutex_lock(&cq->lock);
    cq->closing = true;
    if (cq->arm == CQ_ARM_HELD) {
        cq_moderation_unhold(cq);
        cq_arm_set(cq, CQ_ARM_NONE);
    }
    cq_moderation_apply(cq);
    os_mutex_unlock(&cq->lock);
}

/* What the timer cannot do exactly it does sooner. */
static uint32_t round_down(ULONG interval_us)
{
    if (interval_us == MAXULONG || RED("cq-moderation-not-rounded"))
        return interval_us;
    return interval_us - interval_us % os_poll_grain_us();
}

NTSTATUS cq_control_moderation(NDK_CQ *ndk, ULONG interval_us, ULONG count)
{
    struct cq *cq = cq_from(ndk);
    struct object *object = &cq->object;
    NTSTATUS status = object_injected(object, CALL_CONTROL_MODERATION);
    uint32_t depth;

    if (status != STATUS_SUCCESS)
        return status;
    if (!object->adapter->options.cq_moderation && !RED("cq-moderation-not-advertised"))
        return object_fail(object, CALL_CONTROL_MODERATION, STATUS_NOT_SUPPORTED,
                           "moderation is not advertised (option cq_moderation), rule NDKPI 7.4");
    os_mutex_lock(&cq->lock);
    depth = cq->depth;
    if (interval_us == MAXULONG && count > depth && !RED("cq-moderation-mix-taken")) {
        os_mutex_unlock(&cq->lock);
        return object_fail(
            object, CALL_CONTROL_MODERATION, STATUS_INVALID_PARAMETER_MIX,
            "ModerationInterval MAXULONG leaves it to ModerationCount (have %u, need "
            "<= the depth %u), rule NDKPI 7.4",
            count, depth);
    }
    cq->moderation.interval_us = round_down(interval_us);
    cq->moderation.count = count;
    cq_moderation_apply(cq);
    os_mutex_unlock(&cq->lock);
    return STATUS_SUCCESS;
}
