// SPDX-License-Identifier: MIT
/*
 * WskOpenNdkAdapter and WskCloseNdkAdapter: what WskControlClient hands out.
 */
#include "wsk/wsk.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/red.h"
#include "ndis/registry.h"
#include "nt/nt.h"

enum { REASON = 240 };

/* The last link of the client's opens, or the one to this adapter; with wsk_lock. */
static struct wsk_open **link_to(struct wsk_client *client, const NDK_ADAPTER *adapter)
{
    struct wsk_open **at = &client->opens;

    while (*at && (!adapter || (*at)->adapter != adapter))
        at = &(*at)->next;
    return at;
}

static NTSTATUS open_for(struct wsk_client *client, NDK_VERSION version, NET_IFINDEX index,
                         NDK_ADAPTER **out, const void *caller)
{
    struct wsk_open *open = calloc(1, sizeof *open);
    char reason[REASON] = "";
    NTSTATUS status;

    if (!open) {
        log_error("wsk client #%u: WskOpenNdkAdapter: no memory", client->number);
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    wsk_stack_take(&open->by, caller);
    open->index = index;
    open->asked = version;
    status = ndis_open_adapter(index, version, &open->adapter, reason, sizeof reason);
    if (!NT_SUCCESS(status)) {
        log_error("wsk client #%u: WskOpenNdkAdapter: interface %u, version %u.%u: %s (status "
                  "0x%08x)",
                  client->number, (unsigned)index, version.Major, version.Minor,
                  reason[0] ? reason : "the provider gives no reason", (unsigned)status);
        free(open);
        return status;
    }
    os_mutex_lock(&wsk_lock);
    *link_to(client, NULL) = open;
    client->open_count++;
    os_mutex_unlock(&wsk_lock);
    *out = open->adapter;
    return STATUS_SUCCESS;
}

static NTSTATUS WSKAPI open_adapter(PWSK_CLIENT Client, NDK_VERSION NdkVersion, NET_IFINDEX IfIndex,
                                    NDK_ADAPTER **ppNdkAdapter)
{
    struct wsk_client *client;
    NTSTATUS status;

    nt_irql_at_most(PASSIVE_LEVEL, "WskOpenNdkAdapter", NT_CALLER);
    if (!ppNdkAdapter) {
        nt_finding_from(NT_CALLER, "WskOpenNdkAdapter: ppNdkAdapter is NULL");
        return STATUS_INVALID_PARAMETER;
    }
    client = wsk_client_enter(Client, "WskOpenNdkAdapter", NT_CALLER, false);
    if (!client)
        return STATUS_INVALID_PARAMETER;
    status = open_for(client, NdkVersion, IfIndex, ppNdkAdapter, NT_CALLER);
    wsk_client_leave(client);
    return status;
}

/* Why an adapter that the client does not have open is not closed. */
static void not_open_here(const struct wsk_client *client, const NDK_ADAPTER *adapter,
                          const void *caller)
{
    unsigned other = 0;

    os_mutex_lock(&wsk_lock);
    for (struct wsk_client *c = wsk_client_first(); c; c = c->next)
        if (adapter && *link_to(c, adapter))
            other = c->number;
    os_mutex_unlock(&wsk_lock);
    if (other)
        nt_finding_from(caller,
                        "WskCloseNdkAdapter: client #%u did not open this adapter, client #%u did",
                        client->number, other);
    else
        nt_finding_from(caller,
                        "WskCloseNdkAdapter: client #%u has no such adapter open (have %p): closed "
                        "already, or never opened here",
                        client->number, (const void *)adapter);
}

static VOID WSKAPI close_adapter(PWSK_CLIENT Client, NDK_ADAPTER *pNdkAdapter)
{
    struct wsk_client *client;
    struct wsk_open *open, **at;
    bool twice = false;

    nt_irql_at_most(PASSIVE_LEVEL, "WskCloseNdkAdapter", NT_CALLER);
    client = wsk_client_enter(Client, "WskCloseNdkAdapter", NT_CALLER, true);
    if (!client)
        return;
    os_mutex_lock(&wsk_lock);
    open = pNdkAdapter ? *link_to(client, pNdkAdapter) : NULL;
    if (open && open->closing) {
        twice = true;
        open = NULL;
    }
    if (open) {
        open->closing = true;
        while (open->telling)
            os_cond_wait(&wsk_changed, &wsk_lock);
    }
    os_mutex_unlock(&wsk_lock);
    if (twice) {
        nt_finding_from(NT_CALLER, "WskCloseNdkAdapter: another close of this adapter is running");
    } else if (!open) {
        not_open_here(client, pNdkAdapter, NT_CALLER);
    } else {
        ndis_close_adapter(pNdkAdapter);
        os_mutex_lock(&wsk_lock);
        while (open->telling)
            os_cond_wait(&wsk_changed, &wsk_lock);
        for (at = &client->opens; *at != open; at = &(*at)->next)
            ;
        if (!RED("wsk-close-is-forgotten")) {
            *at = open->next;
            client->open_count--;
        }
        os_mutex_unlock(&wsk_lock);
        if (!RED("wsk-close-is-forgotten"))
            free(open);
    }
    wsk_client_leave(client);
}

const WSK_PROVIDER_NDK_DISPATCH wsk_ndk_dispatch = {
    .WskOpenNdkAdapter = open_adapter,
    .WskCloseNdkAdapter = close_adapter,
};
