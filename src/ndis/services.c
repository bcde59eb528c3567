// SPDX-License-Identifier: MIT
/*
 * What NDIS does for a miniport driver besides: its keywords, work items. No state of its own.
 */
#include <stdlib.h>

#include "base/log.h"
#include "ndis/registry_internal.h"
#include "nt/nt.h"

/* ---- configuration ---- */

struct configuration {
    const struct ndis_instance *it;
    NDIS_CONFIGURATION_PARAMETER read; /* the last answer */
};

NDIS_STATUS NdisOpenConfigurationEx(PNDIS_CONFIGURATION_OBJECT object, PNDIS_HANDLE out)
{
    struct configuration *c;

    if (!object || !out || object->Header.Type != NDIS_OBJECT_TYPE_CONFIGURATION_OBJECT ||
        object->Header.Size < NDIS_SIZEOF_CONFIGURATION_OBJECT_REVISION_1 || !object->NdisHandle) {
        log_error("NdisOpenConfigurationEx: wrong header, or no handle of an adapter");
        return NDIS_STATUS_INVALID_PARAMETER;
    }
    c = calloc(1, sizeof *c);
    if (!c)
        return NDIS_STATUS_RESOURCES;
    c->it = object->NdisHandle;
    *out = c;
    return NDIS_STATUS_SUCCESS;
}

/* Keywords are ASCII, and no case is told apart. */
static bool is_keyword(const UNICODE_STRING *text, const char *keyword)
{
    unsigned i;

    for (i = 0; i < text->Length / sizeof(WCHAR) && keyword[i]; i++) {
        WCHAR c = text->Buffer[i];

        if ((c >= 'A' && c <= 'Z' ? c + 32 : c) != keyword[i])
            return false;
    }
    return i == text->Length / sizeof(WCHAR) && !keyword[i];
}

VOID NdisReadConfiguration(PNDIS_STATUS status, PNDIS_CONFIGURATION_PARAMETER *value,
                           NDIS_HANDLE configuration, PNDIS_STRING keyword,
                           NDIS_PARAMETER_TYPE type)
{
    static const UNICODE_STRING words[2] = {NDIS_STRING_CONST("0"), NDIS_STRING_CONST("1")};
    struct configuration *c = configuration;

    *status = NDIS_STATUS_FAILURE;
    if (!is_keyword(keyword, "*networkdirect"))
        return;
    if (type == NdisParameterString)
        c->read.ParameterData.StringData = words[c->it->allowed];
    else if (type == NdisParameterInteger || type == NdisParameterHexInteger)
        c->read.ParameterData.IntegerData = c->it->allowed;
    else
        return;
    c->read.ParameterType = type == NdisParameterString ? type : NdisParameterInteger;
    *value = &c->read;
    *status = NDIS_STATUS_SUCCESS;
}

VOID NdisCloseConfiguration(NDIS_HANDLE configuration)
{
    free(configuration);
}

/* ---- work items ---- */

struct work {
    PIO_WORKITEM item;
    NDIS_IO_WORKITEM_FUNCTION routine;
    PVOID context;
};

NDIS_HANDLE NdisAllocateIoWorkItem(NDIS_HANDLE object)
{
    struct work *work = calloc(1, sizeof *work);

    (void)object;
    if (work)
        work->item = IoAllocateWorkItem(NULL);
    if (!work || !work->item) {
        free(work);
        return NULL;
    }
    return work;
}

VOID NdisFreeIoWorkItem(NDIS_HANDLE handle)
{
    struct work *work = handle;

    IoFreeWorkItem(work->item);
    free(work);
}

/* Nothing of it is touched after the routine, which may free it. */
static VOID run(PDEVICE_OBJECT device, PVOID parameter)
{
    struct work *work = parameter;

    (void)device;
    work->routine(work->context, work);
}

VOID NdisQueueIoWorkItem(NDIS_HANDLE handle, NDIS_IO_WORKITEM_FUNCTION routine, PVOID context)
{
    struct work *work = handle;

    work->routine = routine;
    work->context = context;
    IoQueueWorkItem(work->item, run, DelayedWorkQueue, work);
}
