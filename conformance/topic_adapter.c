// SPDX-License-Identifier: MIT
/* The adapter: what it tells of itself, and the version it runs (NDKPI 6.1, 5.2, 0.3; ndkinfo 1).
 */
#include "kit.h"

/* ---- NdkQueryAdapterInfo -------------------------------------------------------------------- */

#define GUARD 0xa5

/* A buffer with room behind the structure, to see what is written. */
struct guarded {
    NDK_ADAPTER_INFO info;
    UCHAR behind[64];
};

static NTSTATUS query(struct kit_adapter *adapter, struct guarded *buffer, ULONG *size)
{
    RtlFillMemory(buffer, sizeof *buffer, GUARD);
    return adapter->table->NdkQueryAdapterInfo(adapter->ndk, &buffer->info, size);
}

static VOID info_is_written(struct kit *k)
{
    struct guarded first, second;
    struct kit_adapter *adapter;
    ULONG size = sizeof first.info;

    TRY(kit_adapter_open(k, &adapter));
    CHECK_STATUS(k, "NdkQueryAdapterInfo", query(adapter, &first, &size), STATUS_SUCCESS);
    CHECK(k, size > 0 && size <= sizeof first.info, "bytes written: have %u, need 1 to %u",
          (unsigned)size, (unsigned)sizeof first.info);
    for (ULONG i = 0; i < sizeof first.behind; i++)
        CHECK(k, first.behind[i] == GUARD, "byte %u behind the buffer was written", (unsigned)i);
    size = sizeof second.info;
    CHECK_STATUS(k, "NdkQueryAdapterInfo again", query(adapter, &second, &size), STATUS_SUCCESS);
    CHECK_BYTES(k, "the info asked for again", &second, &first, size);
}

static VOID info_of_size_zero(struct kit *k)
{
    struct kit_adapter *adapter;
    NDK_ADAPTER_INFO info;
    ULONG needed = 0, size;

    TRY(kit_adapter_open(k, &adapter));
    CHECK_STATUS(k, "NdkQueryAdapterInfo(NULL, 0)",
                 adapter->table->NdkQueryAdapterInfo(adapter->ndk, NULL, &needed),
                 STATUS_BUFFER_TOO_SMALL);
    CHECK(k, needed > 0 && needed <= sizeof info, "size needed: have %u, need 1 to %u",
          (unsigned)needed, (unsigned)sizeof info);
    size = needed;
    CHECK_STATUS(k, "NdkQueryAdapterInfo with the size it asked for",
                 adapter->table->NdkQueryAdapterInfo(adapter->ndk, &info, &size), STATUS_SUCCESS);
    CHECK_EQUAL(k, "bytes written", size, needed);
}

/* Half of it: a consumer of an older version may have a structure that is a little shorter. */
static VOID info_too_small(struct kit *k)
{
    struct guarded buffer;
    struct kit_adapter *adapter;
    ULONG needed = 0, size;

    TRY(kit_adapter_open(k, &adapter));
    (void)adapter->table->NdkQueryAdapterInfo(adapter->ndk, NULL, &needed);
    size = needed / 2;
    CHECK_STATUS(k, "NdkQueryAdapterInfo with half the size", query(adapter, &buffer, &size),
                 STATUS_BUFFER_TOO_SMALL);
    CHECK_EQUAL(k, "size needed", size, needed);
    CHECK_EQUAL(k, "the byte behind the buffer", ((UCHAR *)&buffer)[needed / 2], GUARD);
}

static VOID info_too_large(struct kit *k)
{
    struct guarded buffer;
    struct kit_adapter *adapter;
    ULONG needed = 0, size = sizeof buffer;

    TRY(kit_adapter_open(k, &adapter));
    (void)adapter->table->NdkQueryAdapterInfo(adapter->ndk, NULL, &needed);
    CHECK_STATUS(k, "NdkQueryAdapterInfo with a larger buffer", query(adapter, &buffer, &size),
                 STATUS_SUCCESS);
    CHECK_EQUAL(k, "bytes written", size, needed);
    for (ULONG i = needed; i < sizeof buffer; i++)
        CHECK(k, ((UCHAR *)&buffer)[i] == GUARD, "byte %u was written, beyond the %u told",
              (unsigned)i, (unsigned)needed);
}

/* What every provider that does anything at all must offer. */
static VOID info_makes_sense(struct kit *k)
{
    struct kit_adapter *adapter;
    const NDK_ADAPTER_INFO *info;

    TRY(kit_adapter_open(k, &adapter));
    info = &adapter->info;
    CHECK(k, info->RdmaTechnology > NdkUndefined && info->RdmaTechnology < NdkMaxTechnology,
          "RdmaTechnology: have %d, need %d to %d", (int)info->RdmaTechnology, NdkUndefined + 1,
          NdkMaxTechnology - 1);
    CHECK(k, info->MaxRegistrationSize >= PAGE_SIZE, "MaxRegistrationSize: have %llu, need a page",
          (unsigned long long)info->MaxRegistrationSize);
    CHECK(k, info->FRMRPageCount >= 16, "FRMRPageCount: have %u, need at least 16",
          (unsigned)info->FRMRPageCount);
    CHECK(k, info->MaxInitiatorRequestSge && info->MaxReceiveRequestSge && info->MaxReadRequestSge,
          "SGEs of sends, receives, reads: have %u, %u, %u, need at least 1",
          (unsigned)info->MaxInitiatorRequestSge, (unsigned)info->MaxReceiveRequestSge,
          (unsigned)info->MaxReadRequestSge);
    CHECK(k, info->MaxInitiatorQueueDepth && info->MaxReceiveQueueDepth && info->MaxCqDepth,
          "depths of initiator, receive, completion queues: have %u, %u, %u, need at least 1",
          (unsigned)info->MaxInitiatorQueueDepth, (unsigned)info->MaxReceiveQueueDepth,
          (unsigned)info->MaxCqDepth);
    CHECK(k, info->MaxTransferLength >= PAGE_SIZE, "MaxTransferLength: have %u, need a page",
          (unsigned)info->MaxTransferLength);
}

/* ---- versions ------------------------------------------------------------------------------- */

static VOID version_everywhere(struct kit *k)
{
    struct kit_adapter *adapter;
    NDK_VERSION header;

    TRY(kit_adapter_open(k, &adapter));
    header = adapter->ndk->Header.Version;
    CHECK_EQUAL(k, "Version.Major of the info", adapter->info.Version.Major, header.Major);
    CHECK_EQUAL(k, "Version.Minor of the info", adapter->info.Version.Minor, header.Minor);
}

#define MINORS 10

/* Who asks for the lowest minor that will do gets the highest there is; which that is, those tell
 * that insist on it. */
static VOID version_is_the_highest(struct kit *k)
{
    struct kit_adapter *adapter;
    NDK_VERSION asked;
    NTSTATUS status;
    USHORT highest;
    char why[256] = "";

    TRY(kit_adapter_open(k, &adapter));
    asked.Major = adapter->info.Version.Major;
    for (highest = MINORS; highest > 0; highest--) {
        asked.Minor = highest;
        status = kit_adapter_try(k, asked, &adapter, why, sizeof why);
        CHECK(k, status != KIT_NO_ANSWER, "the adapter opened, but cannot be used");
        if (status == STATUS_SUCCESS)
            break;
    }
    asked.Minor = 0;
    status = kit_adapter_try(k, asked, &adapter, why, sizeof why);
    CHECK(k, status == STATUS_SUCCESS, "opening with version %u.0: %s %s", asked.Major,
          kit_status_name(status), why);
    CHECK_EQUAL(k, "the major version", adapter->info.Version.Major, asked.Major);
    CHECK_EQUAL(k, "the minor version run for a consumer that needs 0", adapter->info.Version.Minor,
                highest);
}

static VOID version_unknown(struct kit *k)
{
    struct kit_adapter *adapter;
    NDK_VERSION asked;
    NTSTATUS status;
    char why[256] = "";

    asked.Major = 99;
    asked.Minor = 0;
    status = kit_adapter_try(k, asked, &adapter, why, sizeof why);
    CHECK_STATUS(k, "opening with version 99.0", status, (NTSTATUS)0xC0010004);
}

static VOID version_minor_too_high(struct kit *k)
{
    struct kit_adapter *adapter;
    NDK_VERSION asked;
    NTSTATUS status;
    char why[256] = "";

    TRY(kit_adapter_open(k, &adapter));
    asked.Major = adapter->info.Version.Major;
    asked.Minor = 99;
    status = kit_adapter_try(k, asked, &adapter, why, sizeof why);
    CHECK_STATUS(k, "opening with a minor version that is not there", status, (NTSTATUS)0xC0010004);
}

/* ---- adapters as such ----------------------------------------------------------------------- */

static VOID adapters_are_worlds(struct kit *k)
{
    struct kit_adapter *first, *second;
    struct kit_pd *pd;
    struct kit_cq *cq;

    TRY(kit_adapter_open(k, &first));
    TRY(kit_adapter_open(k, &second));
    TRY(kit_pd_new(first, &pd));
    TRY(kit_cq_new(second, 4, &cq));
    TRY(kit_close(&cq->object));
    TRY(kit_adapter_close(second));
    TRY(kit_cq_new(first, 4, &cq));
    TRY(kit_close(&pd->object));
}

static VOID linger(struct kit_call *call, PVOID context)
{
    (void)call;
    (void)context;
    kit_os_stall_ms(100);
}

/*
 * Closes are begun and not waited for; the completion of each that pends takes its time. The
 * adapter's close is the barrier: the kit looks at all completions when it has returned.
 */
static VOID close_waits(struct kit *k)
{
    struct kit_object *objects[8];
    struct kit_adapter *adapter;
    struct kit_cq *cq;
    struct kit_pd *pd;

    TRY(kit_adapter_open(k, &adapter));
    for (ULONG i = 0; i < RTL_NUMBER_OF(objects); i += 2) {
        TRY(kit_cq_new(adapter, 4, &cq));
        TRY(kit_pd_new(adapter, &pd));
        objects[i] = &cq->object;
        objects[i + 1] = &pd->object;
    }
    for (ULONG i = 0; i < RTL_NUMBER_OF(objects); i++)
        TRY(kit_close_then(objects[i], linger, NULL) != NULL);
    TRY(kit_adapter_close(adapter));
}

static VOID query_fails(struct kit *k)
{
    struct guarded buffer;
    struct kit_adapter *adapter;
    ULONG size = sizeof buffer.info;

    TRY(kit_adapter_open(k, &adapter));
    TRY(kit_make_fail(k, "NdkQueryAdapterInfo", STATUS_INSUFFICIENT_RESOURCES));
    CHECK_STATUS(k, "NdkQueryAdapterInfo", query(adapter, &buffer, &size),
                 STATUS_INSUFFICIENT_RESOURCES);
    size = sizeof buffer.info;
    CHECK_STATUS(k, "NdkQueryAdapterInfo afterwards", query(adapter, &buffer, &size),
                 STATUS_SUCCESS);
}

static const struct kit_case cases[] = {
    KIT_CASE("ADP-001", "the info is written, and nothing behind it", "NDKPI 6.1",
             "NdkQueryAdapterInfo", info_is_written),
    KIT_CASE("ADP-002", "NULL with size 0 asks for the size", "NDKPI 6.1", "NdkQueryAdapterInfo",
             info_of_size_zero),
    KIT_CASE("ADP-003", "half the size: BUFFER_TOO_SMALL and the size needed", "NDKPI 6.1",
             "NdkQueryAdapterInfo", info_too_small),
    KIT_CASE("ADP-004", "with a larger buffer the size is what was written", "NDKPI 6.1",
             "NdkQueryAdapterInfo", info_too_large),
    KIT_CASE("ADP-005", "limits and technology that a consumer can work with", "ndkinfo 1.3",
             "NdkQueryAdapterInfo", info_makes_sense),
    KIT_CASE("ADP-006", "a query that fails for want of resources", "NDKPI 6.1",
             "NdkQueryAdapterInfo", query_fails, .needs = KIT_NEEDS_FAIL),
    KIT_CASE("ADP-010", "header and info tell the same version", "NDKPI 6.1", "NdkQueryAdapterInfo",
             version_everywhere),
    KIT_CASE("ADP-011", "who needs minor 0 gets the highest minor", "NDKPI 0.3", "open",
             version_is_the_highest),
    KIT_CASE("ADP-012", "an unknown major version is refused", "ndkinfo 3.3", "open",
             version_unknown),
    KIT_CASE("ADP-013", "a minor version that is not there is refused", "ndkinfo 3.3", "open",
             version_minor_too_high),
    KIT_CASE("ADP-020", "two adapters of one address are two worlds", "lifetime 4.1", "open",
             adapters_are_worlds),
    KIT_CASE("ADP-021", "its close returns when every close completion has", "lifetime C9", "close",
             close_waits),
};

KIT_TOPIC(adapter, "the adapter, its info and its version");
