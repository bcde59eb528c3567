// SPDX-License-Identifier: MIT
/*
 * See adapters.h. The interfaces are those of ndis/interfaces.h: configured ones and the host's.
 */
#include "wsk/adapters.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "ndis/interfaces.h"
#include "os/os.h"
#include "provider/adapter.h"
#include "provider/adapter_left.h"
#include "provider/hooks.h"

enum { INTERFACES_MAX = 4096 };

/* The interface of that index; 0, or a negative errno value. */
static int find(NET_IFINDEX index, struct os_interface *out)
{
    struct os_interface *list = NULL;
    unsigned room = 64;
    int n, result = -ENODEV;

    for (;; room *= 2) {
        free(list);
        list = calloc(room, sizeof *list);
        if (!list)
            return -ENOMEM;
        n = interfaces_list(list, room);
        if (n <= (int)room || room > INTERFACES_MAX)
            break;
    }
    if (n < 0)
        result = n;
    for (int i = 0; i < n && i < (int)room; i++) {
        if (list[i].index == index) {
            *out = list[i];
            result = 0;
        }
    }
    free(list);
    return result;
}

NTSTATUS wsk_adapter_open(NET_IFINDEX index, NDK_VERSION version, NDK_ADAPTER **out, char *error,
                          size_t size)
{
    struct os_interface interface;
    struct options settings;
    struct adapter *adapter;
    NTSTATUS status;
    int found;

    if (!interfaces_ready(error, size))
        return STATUS_INVALID_PARAMETER;
    if (hooks_environment_error()) {
        snprintf(error, size, "%s", hooks_environment_error());
        return STATUS_INVALID_PARAMETER;
    }
    found = find(index, &interface);
    if (found == -ENODEV) {
        snprintf(error, size, "there is no interface of that index");
        return STATUS_NOT_SUPPORTED;
    }
    if (found < 0) {
        snprintf(error, size, "the interfaces of this host cannot be read, error %d", -found);
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    if (!interfaces_settings(interface.index, NULL, &settings, error, size))
        return STATUS_INVALID_PARAMETER;
    status = adapter_open(&interface, &settings, version, &adapter, error, size);
    if (NT_SUCCESS(status))
        *out = (NDK_ADAPTER *)(void *)adapter;
    return status;
}

void wsk_adapter_close(NDK_ADAPTER *adapter)
{
    adapter_close(adapter_from(adapter));
}

size_t wsk_adapter_tell(NDK_ADAPTER *adapter, void (*line)(void *context, const char *text),
                        void *context)
{
    return adapter_left_tell(adapter_from(adapter), line, context);
}
