// SPDX-License-Identifier: MIT
/* A first NDK consumer. Only opening and closing the adapter look different on Windows. */
#include <softndk.h>
#include <stdio.h>

static KEVENT called; /* back, after a call returned STATUS_PENDING */
static NTSTATUS answer;

static VOID on_request(PVOID context, NTSTATUS status) /* also what a CQ would notify */
{
    answer = status;
    KeSetEvent(context, IO_NO_INCREMENT, FALSE);
}
static VOID on_create(PVOID place, NTSTATUS status, NDK_OBJECT_HEADER *object)
{
    *(NDK_OBJECT_HEADER **)place = object;
    on_request(&called, status);
}
static VOID on_close(PVOID context) /* nobody waits for these: the adapter's close does */
{
    (void)context;
}
static int good(NTSTATUS status)
{
    if (status == STATUS_PENDING) {
        KeWaitForSingleObject(&called, Executive, KernelMode, FALSE, NULL);
        status = answer;
    }
    return status == STATUS_SUCCESS;
}
int main(void)
{
    static char memory[65536];
    PMDL mdl = IoAllocateMdl(memory, sizeof(memory), FALSE, FALSE, NULL);
    NDK_ADAPTER *a;
    NDK_ADAPTER_INFO info;
    ULONG size = sizeof(info), rights = NDK_MR_FLAG_ALLOW_REMOTE_READ;
    NDK_CQ *cq;
    NDK_PD *pd;
    NDK_MR *mr;

    MmBuildMdlForNonPagedPool(mdl);
    KeInitializeEvent(&called, SynchronizationEvent, FALSE);
    if (!good(softndk_open_adapter("lo", NULL, (NDK_VERSION){2, 1}, &a)) ||
        !good(a->Dispatch->NdkQueryAdapterInfo(a, &info, &size)) ||
        !good(a->Dispatch->NdkCreateCq(a, 8, on_request, &called, NULL, on_create, &cq, &cq)) ||
        !good(a->Dispatch->NdkCreatePd(a, on_create, &pd, &pd)) ||
        !good(pd->Dispatch->NdkCreateMr(pd, FALSE, on_create, &mr, &mr)) ||
        !good(mr->Dispatch->NdkRegisterMr(mr, mdl, 65536, rights, on_request, &called)))
        return 1;
    printf("NDKPI %u.%u; a peer may read 64 KiB with token 0x%08x\n", info.Version.Major,
           info.Version.Minor, mr->Dispatch->NdkGetRemoteTokenFromMr(mr));
    mr->Dispatch->NdkCloseMr(&mr->Header, on_close, NULL);
    pd->Dispatch->NdkClosePd(&pd->Header, on_close, NULL);
    cq->Dispatch->NdkCloseCq(&cq->Header, on_close, NULL);
    softndk_close_adapter(a);
    IoFreeMdl(mdl);
    return 0;
}
