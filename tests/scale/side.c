// SPDX-License-Identifier: MIT
/* What both processes share: objects, records, messages. See scale.h. */
#include "scale.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- failures and waiting ------------------------------------------------------------------- */

void link_fail(const struct link *link, const char *call, NTSTATUS status,
               const NDK_OBJECT_HEADER *at)
{
    char reason[256] = "";

    if (at)
        softndk_reason(at, reason, sizeof reason);
    fprintf(stderr, "scale: link %u: %s: %s%s%s\n", link->index, call, softndk_status_name(status),
            *reason ? ": " : "", reason);
    _exit(1);
}

void scale_wait(const struct side *side, const atomic_uint *count, const char *what)
{
    unsigned before = atomic_load(count), now;
    unsigned long long since = test_now_ms();

    while ((now = atomic_load(count)) != side->count) {
        if (now != before) {
            before = now;
            since = test_now_ms();
        } else if (test_now_ms() - since > SILENCE_S * 1000u) {
            fprintf(stderr, "scale: %u of %u links %s, and none for %u s\n", now, side->count, what,
                    SILENCE_S);
            _exit(1);
        }
        test_sleep_ms(2);
    }
}

size_t scale_memory(void)
{
    char line[128];
    size_t kib = 0;
    FILE *file;

    malloc_trim(0);
    file = fopen("/proc/self/smaps_rollup", "r");
    if (!file)
        return 0;
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "Anonymous: %zu", &kib) == 1)
            break;
    fclose(file);
    return kib * 1024;
}

/* ---- messages ------------------------------------------------------------------------------- */

static uint8_t *link_out(struct link *link)
{
    return link->side->memory.data + (size_t)link->index * 2 * MESSAGE;
}

uint8_t *link_in(struct link *link)
{
    return link_out(link) + MESSAGE;
}

void link_fill(uint8_t *data, unsigned index)
{
    memcpy(data, &index, sizeof index);
    for (unsigned i = sizeof index; i < MESSAGE; i++)
        data[i] = (uint8_t)(index * 31 + i * 7 + (index >> 8));
}

bool link_check(const uint8_t *data, unsigned *index)
{
    uint8_t expected[MESSAGE];

    memcpy(index, data, sizeof *index);
    link_fill(expected, *index);
    return memcmp(data, expected, MESSAGE) == 0;
}

static NDK_SGE link_sge(struct link *link, uint8_t *data)
{
    const struct memory *memory = &link->side->memory;

    return memory_sge(memory, (size_t)(data - memory->data), MESSAGE);
}

void link_post_receive(struct link *link)
{
    NDK_SGE sge = link_sge(link, link_in(link));
    NTSTATUS status = link->qp->Dispatch->NdkReceive(link->qp, link_in(link), &sge, 1);

    if (status != STATUS_SUCCESS)
        link_fail(link, "NdkReceive", status, &link->qp->Header);
}

void link_send(struct link *link, const uint8_t *data)
{
    NDK_SGE sge;
    NTSTATUS status;

    memcpy(link_out(link), data, MESSAGE);
    sge = link_sge(link, link_out(link));
    status = link->qp->Dispatch->NdkSend(link->qp, NULL, &sge, 1, 0);
    if (status != STATUS_SUCCESS)
        link_fail(link, "NdkSend", status, &link->qp->Header);
}

/* ---- objects -------------------------------------------------------------------------------- */

/* Results carry the link as the QP's context; a receive's request context is its buffer. */
static VOID cq_notified(PVOID context, NTSTATUS status)
{
    struct cq *cq = context;
    NDK_RESULT_EX results[16];
    ULONG n;

    if (status != STATUS_SUCCESS) {
        fprintf(stderr, "scale: a CQ ended with %s\n", softndk_status_name(status));
        _exit(1);
    }
    while ((n = cq->cq->Dispatch->NdkGetCqResultsEx(cq->cq, results, 16)) != 0)
        for (ULONG i = 0; i < n; i++)
            cq->side->result(results[i].QPContext, &results[i], results[i].RequestContext != NULL);
    cq->cq->Dispatch->NdkArmCq(cq->cq, NDK_CQ_NOTIFY_ANY);
}

NTSTATUS link_create_qp(struct link *link, NDK_FN_CREATE_COMPLETION created)
{
    NDK_CQ *cq = link->side->cqs[link->index / LINKS_A_CQ].cq;
    NDK_PD *pd = link->side->pd;

    return pd->Dispatch->NdkCreateQp(pd, cq, cq, link, 2, 2, 1, 1, 0, created, link, &link->qp);
}

static VOID part_closed(PVOID context)
{
    struct link *link = context;
    struct side *side = link->side;

    if (atomic_fetch_sub(&link->parts, 1) == 1)
        atomic_fetch_add(&side->closed, 1);
}

void link_close(struct link *link)
{
    NDK_CONNECTOR *connector = link->connector;
    NDK_QP *qp = link->qp;

    atomic_store(&link->parts, 2);
    if (connector->Dispatch->NdkCloseConnector(&connector->Header, part_closed, link) !=
        STATUS_PENDING)
        part_closed(link);
    if (qp->Dispatch->NdkCloseQp(&qp->Header, part_closed, link) != STATUS_PENDING)
        part_closed(link);
}

void scale_open(struct side *side, unsigned count)
{
    side->count = count;
    side->adapter = open_adapter(NULL);
    side->pd = make_pd(side->adapter);
    make_memory(side->pd, (size_t)count * 2 * MESSAGE, NDK_MR_FLAG_ALLOW_LOCAL_WRITE,
                &side->memory);
    side->links = calloc(count, sizeof *side->links);
    side->cqs = calloc(count / LINKS_A_CQ + 1, sizeof *side->cqs);
    if (!side->links || !side->cqs)
        test_fail("no memory for %u records", count);
}

void scale_begin(struct side *side)
{
    atomic_store(&side->next, 0);
    atomic_store(&side->verified, 0);
    atomic_store(&side->gone, 0);
    atomic_store(&side->closed, 0);
    for (unsigned i = 0; i < side->count; i++)
        side->links[i] = (struct link){.side = side, .index = i};
    for (unsigned i = 0; i * LINKS_A_CQ < side->count; i++) {
        struct cq *cq = &side->cqs[i];
        struct wait w;
        NTSTATUS status;

        wait_init(&w);
        cq->side = side;
        status = wait_end(&w, side->adapter->Dispatch->NdkCreateCq(side->adapter, LINKS_A_CQ * 4,
                                                                   cq_notified, cq, NULL,
                                                                   wait_create, &w, &cq->cq));
        if (status != STATUS_SUCCESS)
            link_fail(&side->links[i], "NdkCreateCq", status, &side->adapter->Header);
        if (w.object)
            cq->cq = (NDK_CQ *)(void *)w.object;
        cq->cq->Dispatch->NdkArmCq(cq->cq, NDK_CQ_NOTIFY_ANY);
    }
}

void scale_end(struct side *side)
{
    for (unsigned i = 0; i * LINKS_A_CQ < side->count; i++)
        CLOSE(side->cqs[i].cq, NdkCloseCq);
}

void scale_close(struct side *side)
{
    free_memory(&side->memory);
    CLOSE(side->pd, NdkClosePd);
    softndk_close_adapter(side->adapter);
    free(side->links);
    free(side->cqs);
}
