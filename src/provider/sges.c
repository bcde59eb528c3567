// SPDX-License-Identifier: MIT
/* See sges.h. Called by qp_post.c and srq.c in the consumer's calls; no lock. */
#include "provider/sges.h"

#include <ntstatus.h>

#include "base/red.h"
#include "provider/adapter.h"
#include "provider/pages.h"

_Static_assert(sizeof(NDK_SGE) == sizeof(struct conn_sge), "one layout");
_Static_assert(offsetof(NDK_SGE, Length) == offsetof(struct conn_sge, length), "one layout");
_Static_assert(offsetof(NDK_SGE, MemoryRegionToken) == offsetof(struct conn_sge, token),
               "one layout");

/* With the option `scattered`: adapter pages that follow each other in memory do not for the
 * adapter. */
static NTSTATUS sges_in_pages(struct object *object, const struct pd *pd, enum call call,
                              CONST NDK_SGE *sgl, ULONG sges)
{
    for (ULONG i = 0; i < sges; i++) {
        uint64_t address = (uint64_t)sgl[i].LogicalAddress.QuadPart;

        if (sgl[i].MemoryRegionToken == pd->privileged_token &&
            !pages_in_one(address, sgl[i].Length) && !RED("scattered-crossing-unseen"))
            return object_fail(object, call, STATUS_ACCESS_VIOLATION,
                               "SGE %u crosses an adapter page (have 0x%llx with %u octets, need "
                               "one SGE a page: adapter pages are not contiguous), rule NDKPI 1.9",
                               i, (unsigned long long)address, sgl[i].Length);
    }
    return STATUS_SUCCESS;
}

static uint64_t sges_total(CONST NDK_SGE *sgl, ULONG sges)
{
    uint64_t total = 0;

    for (ULONG i = 0; i < sges; i++)
        total += sgl[i].Length;
    return total;
}

NTSTATUS sges_check(struct object *object, const struct pd *pd, enum call call, CONST NDK_SGE *sgl,
                    ULONG sges, ULONG most)
{
    const struct options *options = &object->adapter->options;
    uint64_t total;

    if (sges > most && !RED("post-sges-unlimited"))
        return object_fail(object, call, STATUS_DATA_OVERRUN,
                           "nSge (have %u, need <= %u), rule NDKPI 12", sges, most);
    if (sges && !sgl)
        return object_fail(object, call, STATUS_INVALID_PARAMETER, "pSgl is NULL with nSge %u",
                           sges);
    total = sges_total(sgl, sges);
    if (total > options->max_transfer && !RED("post-octets-unlimited"))
        return object_fail(object, call, STATUS_BUFFER_OVERFLOW,
                           "total length (have %llu, need <= MaxTransferLength %u), rule NDKPI 12",
                           (unsigned long long)total, options->max_transfer);
    return options->scattered ? sges_in_pages(object, pd, call, sgl, sges) : STATUS_SUCCESS;
}

void sges_copy(struct conn_wr *wr, CONST NDK_SGE *sgl, ULONG sges)
{
    uint32_t total = 0;

    for (ULONG i = 0; i < sges; i++) { /* mostly one: shorter than a call of memcpy() */
        wr->sge[i].address = (uint64_t)sgl[i].LogicalAddress.QuadPart;
        wr->sge[i].length = sgl[i].Length;
        wr->sge[i].token = sgl[i].MemoryRegionToken;
        total += sgl[i].Length;
    }
    wr->sge_count = (uint16_t)sges;
    wr->length = total;
}
