// SPDX-License-Identifier: MIT
/*
 * cxx.cpp - every public header in C++: it must compile, keep its layouts and link as C.
 */
#include <ndis.h>
#include <ndisndk.h>
#include <ndkinfo.h>
#include <ndkpi.h>
#include <netioapi.h>
#include <ntddk.h>
#include <ntddndis.h>
#include <ntdef.h>
#include <ntstatus.h>
#include <wdm.h>
#include <ws2def.h>
#include <ws2ipdef.h>
#include <wsk.h>
#include <wskndk.h>

static_assert(sizeof(WCHAR) == 2, "WCHAR has 2 bytes");
static_assert(sizeof(NDK_OBJECT_HEADER) == 8 + 4 * sizeof(void *), "object header");
static_assert(sizeof(NDK_CONNECTOR_DISPATCH) == 13 * sizeof(void *), "connector table");
static_assert(offsetof(NDK_SGE, Length) == 8, "SGE");

extern "C" VOID cxx_completed(PVOID Context, NTSTATUS Status)
{
    *static_cast<NTSTATUS *>(Context) = Status;
}

/* A consumer in C++: a callback, a call through a table, an MDL, an address, a keyword. */
extern "C" NTSTATUS cxx_consumer(NDK_MR *mr, PVOID buffer, ULONG length, PVOID context)
{
    PMDL mdl = IoAllocateMdl(buffer, length, FALSE, FALSE, nullptr);
    NTSTATUS status = STATUS_INSUFFICIENT_RESOURCES;

    if (mdl == nullptr)
        return status;
    MmBuildMdlForNonPagedPool(mdl);
    if (MmGetSystemAddressForMdlSafe(mdl, NormalPagePriority) == buffer) {
        status = mr->Dispatch->NdkRegisterMr(mr, mdl, length, NDK_MR_FLAG_ALLOW_LOCAL_WRITE,
                                             cxx_completed, context);
    }
    IoFreeMdl(mdl);
    return status;
}

NDIS_STRING cxx_keyword = NETWORK_DIRECT_KEYWORD;
SOCKADDR_INET cxx_address;
C_ASSERT(RTL_SIZEOF_THROUGH_FIELD(NDK_RESULT, BytesTransferred) == 8);
