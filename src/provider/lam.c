// SPDX-License-Identifier: MIT
/*
 * Logical address mappings (LAMs): the adapter pages of an MDL chain. An adapter page is the
 * process's own page, so building one is checking and writing down, and releasing one is counting.
 * With the option `scattered` the pages get other names (pages.h).
 * Adapter slots NdkBuildLAM and NdkReleaseLAM; no lock but the table's, for the count.
 *
 * AdapterContext of a LAM is the adapter that built it, NULL once it was released: so a LAM that is
 * released twice, or was never built, is found.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/red.h"
#include "provider/adapter.h"
#include "provider/mr.h"
#include "provider/origin.h"
#include "provider/pages.h"

static NTSTATUS lam_fail(struct adapter *adapter, NTSTATUS status, const char *reason)
{
    return object_fail(&adapter->object, CALL_BUILD_LAM, status, "%s, rule NDKPI 6.7", reason);
}

/* Are the pages there, as far as is not known already? Readable is all that can be asked here:
 * whether anything will be written to them shows only with the requests that name them. */
static NTSTATUS lam_probe(struct adapter *adapter, const NDK_LOGICAL_ADDRESS_MAPPING *lam)
{
    const uint64_t *pages = (const uint64_t *)(const void *)lam->AdapterPageArray;
    uint64_t bad;

    if (pages_probe_once(mem_known(adapter->tokens), pages, lam->AdapterPageCount, false, &bad))
        return STATUS_SUCCESS;
    return object_fail(&adapter->object, CALL_BUILD_LAM, STATUS_ACCESS_VIOLATION,
                       "page 0x%" PRIx64 " is not there (have no mapping, need readable memory), "
                       "rule NDKPI 6.7",
                       bad);
}

/* From host addresses to what the adapter calls these pages. */
static void lam_translate(struct adapter *adapter, NDK_LOGICAL_ADDRESS_MAPPING *lam)
{
    uint64_t *pages = (uint64_t *)(void *)lam->AdapterPageArray;

    for (ULONG i = 0; adapter->options.scattered && i < lam->AdapterPageCount; i++)
        pages[i] = pages_to_logical(true, pages[i]);
}

/* One more that is not released. origin is the count's now, and may be NULL. */
static void lam_count(struct adapter *adapter, const NDK_LOGICAL_ADDRESS_MAPPING *lam,
                      struct origin *origin)
{
    struct lam_record *record = origin ? malloc(sizeof *record) : NULL;

    os_mutex_lock(&adapter->table_lock);
    adapter->outstanding_lams++;
    if (record) {
        *record = (struct lam_record){adapter->lams, lam, origin};
        adapter->lams = record;
    }
    os_mutex_unlock(&adapter->table_lock);
    if (!record)
        origin_free(origin);
}

static void lam_uncount(struct adapter *adapter, const NDK_LOGICAL_ADDRESS_MAPPING *lam)
{
    struct lam_record **at, *record;

    os_mutex_lock(&adapter->table_lock);
    adapter->outstanding_lams--;
    for (at = &adapter->lams; *at && (*at)->lam != lam;)
        at = &(*at)->next;
    record = *at;
    if (record)
        *at = record->next;
    os_mutex_unlock(&adapter->table_lock);
    if (record)
        origin_free(record->origin);
    free(record);
}

static NTSTATUS lam_now(struct adapter *adapter, MDL *mdl, SIZE_T length,
                        NDK_LOGICAL_ADDRESS_MAPPING *lam, ULONG *lam_size, ULONG *fbo)
{
    const uint64_t head = FIELD_OFFSET(NDK_LOGICAL_ADDRESS_MAPPING, AdapterPageArray);
    const ULONG have = lam ? *lam_size : 0;
    struct pages_extent extent;
    char reason[PAGES_REASON_MAX];
    NTSTATUS status;
    uint64_t need;

    if (!pages_measure(mdl, length, &extent, reason))
        return lam_fail(adapter, STATUS_INVALID_PARAMETER, reason);
    need = head + (uint64_t)extent.count * sizeof lam->AdapterPageArray[0];
    if (need > UINT32_MAX)
        return lam_fail(adapter, STATUS_INSUFFICIENT_RESOURCES,
                        "the mapping is too large (have >= 2^32 octets, need less)");
    if (have < need && !RED("lam-size-unchecked")) {
        *lam_size = (ULONG)need;
        if (have == 0) /* a query for the size, no mistake */
            return STATUS_BUFFER_TOO_SMALL;
        return object_fail(&adapter->object, CALL_BUILD_LAM, STATUS_BUFFER_TOO_SMALL,
                           "*pLAMSize too small (have %u, need >= %u), rule NDKPI 6.7",
                           (unsigned)have, (unsigned)need);
    }
    pages_fill(mdl, &extent, lam->AdapterPageArray);
    lam->AdapterPageCount = extent.count;
    lam->AdapterContext = NULL;
    status = lam_probe(adapter, lam);
    if (status != STATUS_SUCCESS)
        return status;
    lam_translate(adapter, lam);
    lam->AdapterContext = adapter;
    *lam_size = (ULONG)need;
    *fbo = RED("lam-fbo-zero") ? 0 : extent.fbo;
    lam_count(adapter, lam, origin_take());
    return STATUS_SUCCESS;
}

NTSTATUS lam_build(NDK_ADAPTER *ndk, MDL *mdl, SIZE_T length, NDK_FN_REQUEST_COMPLETION completion,
                   PVOID context, NDK_LOGICAL_ADDRESS_MAPPING *lam, ULONG *lam_size, ULONG *fbo)
{
    struct adapter *adapter = adapter_from(ndk);
    NTSTATUS status = object_injected(&adapter->object, CALL_BUILD_LAM);

    if (status == STATUS_SUCCESS) {
        /* Without a callback the answer can only be inline; NDKPI 18, row 10. */
        if (!completion && pend_choose() != PEND_NEVER && !RED("lam-null-completion-taken"))
            return lam_fail(adapter, STATUS_INVALID_PARAMETER,
                            "no RequestCompletion (have NULL, need one: this call would pend)");
        if (!lam_size || !fbo)
            status = lam_fail(adapter, STATUS_INVALID_PARAMETER,
                              "pLAMSize or pFBO missing (have NULL, need both)");
        else
            status = lam_now(adapter, mdl, length, lam, lam_size, fbo);
    }
    return request_answer(&adapter->object, CALL_BUILD_LAM, completion, context, status);
}

VOID lam_release(NDK_ADAPTER *ndk, NDK_LOGICAL_ADDRESS_MAPPING *lam)
{
    struct adapter *adapter = adapter_from(ndk);

    if (!lam || lam->AdapterContext != adapter) {
        log_error("%s #%u: NdkReleaseLAM: finding: not a mapping of this adapter (have context %p, "
                  "need %p; released twice?), rule NDKPI 6.8",
                  adapter->object.class->name, adapter->object.id, lam ? lam->AdapterContext : NULL,
                  (void *)adapter);
        return;
    }
    lam->AdapterContext = NULL;
    lam_uncount(adapter, lam);
}
