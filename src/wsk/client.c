// SPDX-License-Identifier: MIT
/*
 * The list of clients, and the way into the functions of the dispatch tables (see wsk.h).
 */
#include "wsk/wsk.h"

#include "base/red.h"
#include "nt/nt.h"

os_mutex wsk_lock = OS_MUTEX_INITIALIZER;
os_cond wsk_changed = OS_COND_INITIALIZER;

static struct wsk_client *first;
static unsigned last_number;

/* Handles look like no address of memory and tell their number to who reads them. */
enum { HANDLE_BASE = 0x3000, HANDLE_STEP = 0x10 };

struct wsk_client *wsk_client_first(void)
{
    return first;
}

struct wsk_client *wsk_client_of(const WSK_REGISTRATION *registration)
{
    struct wsk_client *client = first;

    while (client && client->registration != registration)
        client = client->next;
    return client;
}

void wsk_client_add(struct wsk_client *client)
{
    struct wsk_client **at = &first;

    while (*at)
        at = &(*at)->next;
    *at = client;
    client->number = ++last_number;
}

void wsk_client_remove(struct wsk_client *client)
{
    struct wsk_client **at = &first;

    while (*at != client)
        at = &(*at)->next;
    *at = client->next;
}

PWSK_CLIENT wsk_client_handle(const struct wsk_client *client)
{
    return (PWSK_CLIENT)(uintptr_t)(HANDLE_BASE + (uintptr_t)client->number * HANDLE_STEP);
}

struct wsk_client *wsk_client_enter(PWSK_CLIENT handle, const char *call, const void *caller,
                                    bool closing)
{
    struct wsk_client *client;
    bool released = false, gone;
    uintptr_t number = ((uintptr_t)handle - HANDLE_BASE) / HANDLE_STEP;

    os_mutex_lock(&wsk_lock);
    for (client = first; client && wsk_client_handle(client) != handle; client = client->next)
        ;
    gone = !client && (uintptr_t)handle > HANDLE_BASE && (uintptr_t)handle % HANDLE_STEP == 0 &&
           number <= last_number;
    if (client && client->captures == 0 && !(closing && client->open_count) &&
        !RED("wsk-released-client-works")) {
        released = true;
        client = NULL;
    }
    if (client)
        client->calls++;
    os_mutex_unlock(&wsk_lock);
    if (released)
        nt_finding_from(caller, "%s: client #%u was given back by WskReleaseProviderNPI", call,
                        (unsigned)number);
    else if (gone)
        nt_finding_from(caller, "%s: client #%u is gone, WskDeregister has ended it", call,
                        (unsigned)number);
    else if (!client)
        nt_finding_from(caller, "%s: no client (have %p, need WSK_PROVIDER_NPI.Client)", call,
                        (void *)handle);
    return client;
}

void wsk_client_leave(struct wsk_client *client)
{
    os_mutex_lock(&wsk_lock);
    client->calls--;
    os_cond_broadcast(&wsk_changed);
    os_mutex_unlock(&wsk_lock);
}
