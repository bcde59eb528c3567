// SPDX-License-Identifier: MIT
/*
 * Progress by the consumer that polls (option progress=inline): a CQ has a group at its home shard,
 * in which the connections of its QPs stand that receive into it. An empty poll serves that group;
 * so does one of a CQ that a QP uses for its initiator requests alone: it knows the groups of up to
 * CQ_ALSO other CQs. More than those are left to their own polls and to the shards.
 *
 * `also` only grows; a reader takes the count first. Entries hold a reference on the group, not on
 * the CQ, so no CQ lives longer for it.
 */
#include "base/red.h"
#include "provider/adapter.h"
#include "provider/cq_internal.h"

bool cq_progress_open(struct cq *cq)
{
    if (cq->object.adapter->options.progress != PROGRESS_INLINE)
        return true;
    cq->group = engine_group_open(cq->object.home);
    return cq->group != NULL;
}

void cq_progress_close(struct cq *cq)
{
    if (cq->group)
        engine_group_close(cq->group);
    for (unsigned i = 0; i < atomic_load(&cq->also_count); i++)
        engine_group_close(cq->also[i]);
}

void cq_progress_also(struct cq *initiator, struct cq *receive)
{
    unsigned count;

    if (!initiator->group || !receive->group || initiator == receive)
        return;
    os_mutex_lock(&initiator->lock);
    count = atomic_load(&initiator->also_count);
    for (unsigned i = 0; i < count; i++)
        if (initiator->also[i] == receive->group) {
            os_mutex_unlock(&initiator->lock);
            return;
        }
    if (count < CQ_ALSO) {
        initiator->also[count] = engine_group_ref(receive->group);
        atomic_store(&initiator->also_count, count + 1);
    }
    os_mutex_unlock(&initiator->lock);
}

bool cq_progress_poll(struct cq *cq)
{
    unsigned also = atomic_load_explicit(&cq->also_count, memory_order_acquire);
    bool any = conn_group_poll(cq->group);

    for (unsigned i = 0; i < also && !RED("cq-progress-own-group-only"); i++)
        any = conn_group_poll(cq->also[i]) || any;
    return any;
}

void cq_progress_return(struct cq *cq)
{
    if (!cq->group || RED("cq-arm-keeps-lease"))
        return;
    atomic_store_explicit(&cq->polled, false, memory_order_relaxed);
    engine_group_return(cq->group);
    for (unsigned i = 0; i < atomic_load(&cq->also_count); i++)
        engine_group_return(cq->also[i]);
}
