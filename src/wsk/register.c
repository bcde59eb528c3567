// SPDX-License-Identifier: MIT
/*
 * Registration and capture: the functions of <wsk.h> that consumers call by name.
 *
 * The provider is there at once; SOFTNDK_WSK_LATE_MS makes it come that many milliseconds after
 * each WskRegister, for drivers that must cope with a Winsock Kernel that is not up yet.
 *
 * Two threads, one client: a WskDeregister marks the client, wakes captures that wait (they answer
 * STATUS_DEVICE_NOT_READY) and waits until all counts are 0. A last WskReleaseProviderNPI waits for
 * adapters to be closed; a capture in the meantime ends that wait, since the release was then not
 * the last one.
 */
#include "wsk/wsk.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/red.h"
#include "nt/nt.h"

/* ReservedRegistrationState: what became of this memory, for the words of a complaint. */
#define STATE_REGISTERED   0x5753524547495354ull
#define STATE_DEREGISTERED 0x5753474f4e45ull

enum { LATE_MS_MAX = 3600000 };
#define MS_100NS 10000ull

static uint64_t late_100ns(void)
{
    const char *text = getenv("SOFTNDK_WSK_LATE_MS");
    unsigned long ms;
    char *end;

    if (!text)
        return 0;
    ms = strtoul(text, &end, 10);
    if (end == text || *end || ms > LATE_MS_MAX) {
        log_error("SOFTNDK_WSK_LATE_MS: milliseconds (have \"%s\", need 0 to %d)", text,
                  LATE_MS_MAX);
        return 0;
    }
    return ms * MS_100NS;
}

static void enter_report(void)
{
    nt_report_source(wsk_report);
}

/* A complaint of a registration that is not in the list. */
static void no_registration(const char *call, const WSK_REGISTRATION *registration,
                            const void *caller)
{
    if (!registration)
        nt_finding_from(caller, "%s: no registration (have NULL)", call);
    else if (registration->ReservedRegistrationState == STATE_DEREGISTERED)
        nt_finding_from(caller, "%s: the registration is gone, WskDeregister has ended it", call);
    else if (registration->ReservedRegistrationState == STATE_REGISTERED)
        nt_finding_from(caller, "%s: the registration is a copy, need the one of WskRegister",
                        call);
    else
        nt_finding_from(caller, "%s: the registration was not made by WskRegister", call);
}

NTSTATUS WSKAPI WskRegister(PWSK_CLIENT_NPI WskClientNpi, PWSK_REGISTRATION WskRegistration)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct wsk_client *client;
    bool twice;

    nt_irql_at_most(PASSIVE_LEVEL, "WskRegister", NT_CALLER);
    if (!WskClientNpi || !WskRegistration || !WskClientNpi->Dispatch) {
        nt_finding_from(NT_CALLER, "WskRegister: %s is NULL",
                        !WskClientNpi      ? "WskClientNpi"
                        : !WskRegistration ? "WskRegistration"
                                           : "WskClientNpi->Dispatch");
        return STATUS_INVALID_PARAMETER;
    }
    client = calloc(1, sizeof *client);
    if (!client) {
        log_error("WskRegister: no memory for a client");
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    pthread_once(&once, enter_report);
    wsk_stack_take(&client->by, NT_CALLER);
    client->registration = WskRegistration;
    client->version = WskClientNpi->Dispatch->Version;
    client->ready_at_100ns = os_mono_100ns() + late_100ns();
    os_mutex_lock(&wsk_lock);
    twice = wsk_client_of(WskRegistration) != NULL;
    if (!twice) {
        wsk_client_add(client);
        WskRegistration->ReservedRegistrationState = STATE_REGISTERED;
        WskRegistration->ReservedRegistrationContext = wsk_client_handle(client);
        WskRegistration->ReservedRegistrationLock = 0;
    }
    os_mutex_unlock(&wsk_lock);
    if (twice) {
        free(client);
        nt_finding_from(NT_CALLER, "WskRegister: this registration is in use, need one of its own");
        return STATUS_INVALID_PARAMETER;
    }
    return STATUS_SUCCESS;
}

/* Whether nothing holds the client any more; with wsk_lock. */
static bool at_rest(const struct wsk_client *client)
{
    return client->captures == 0 && client->calls == 0 && client->waiting == 0 &&
           client->open_count == 0;
}

VOID WSKAPI WskDeregister(PWSK_REGISTRATION WskRegistration)
{
    struct wsk_patience patience;
    struct wsk_client *client;
    bool twice;

    nt_irql_at_most(PASSIVE_LEVEL, "WskDeregister", NT_CALLER);
    os_mutex_lock(&wsk_lock);
    client = wsk_client_of(WskRegistration);
    twice = client && client->deregistering;
    if (client && !twice) {
        client->deregistering = true;
        os_cond_broadcast(&wsk_changed);
        wsk_patience_begin(&patience);
        while (!at_rest(client) && !RED("wsk-deregister-does-not-wait"))
            wsk_patience_wait(&patience, client, "WskDeregister");
        wsk_client_remove(client);
        WskRegistration->ReservedRegistrationState = STATE_DEREGISTERED;
        WskRegistration->ReservedRegistrationContext = NULL;
    }
    os_mutex_unlock(&wsk_lock);
    if (twice)
        nt_finding_from(NT_CALLER, "WskDeregister: another WskDeregister of it is waiting");
    else if (!client)
        no_registration("WskDeregister", WskRegistration, NT_CALLER);
    else
        free(client);
}

/* Waits for the provider as long as the caller will; with wsk_lock. */
static NTSTATUS wait_ready(struct wsk_client *client, ULONG ms)
{
    struct os_deadline until = {OS_MONO, client->ready_at_100ns};
    uint64_t end = os_mono_100ns() + ms * MS_100NS;

    if (ms != WSK_INFINITE_WAIT && end < until.at_100ns)
        until.at_100ns = end;
    while (!client->deregistering) {
        if (os_mono_100ns() >= client->ready_at_100ns)
            return STATUS_SUCCESS;
        if (ms == WSK_NO_WAIT || os_deadline_passed(&until))
            break;
        os_cond_wait_deadline(&wsk_changed, &wsk_lock, &until);
    }
    return STATUS_DEVICE_NOT_READY;
}

NTSTATUS WSKAPI WskCaptureProviderNPI(PWSK_REGISTRATION WskRegistration, ULONG WaitTimeout,
                                      PWSK_PROVIDER_NPI WskProviderNpi)
{
    struct wsk_client *client;
    struct wsk_stack by;
    USHORT version = WSK_VERSION_ONLY;
    NTSTATUS status;

    nt_irql_at_most(WaitTimeout == WSK_NO_WAIT ? DISPATCH_LEVEL : PASSIVE_LEVEL,
                    "WskCaptureProviderNPI", NT_CALLER);
    if (!WskProviderNpi) {
        nt_finding_from(NT_CALLER, "WskCaptureProviderNPI: WskProviderNpi is NULL");
        return STATUS_INVALID_PARAMETER;
    }
    wsk_stack_take(&by, NT_CALLER);
    os_mutex_lock(&wsk_lock);
    client = wsk_client_of(WskRegistration);
    if (client) {
        client->waiting++;
        version = client->version;
        status = wait_ready(client, WaitTimeout);
        if (NT_SUCCESS(status) && version != WSK_VERSION_ONLY)
            status = STATUS_NOINTERFACE;
        if (NT_SUCCESS(status)) {
            client->captures++;
            client->captured_by = by;
            WskProviderNpi->Client = wsk_client_handle(client);
            WskProviderNpi->Dispatch = &wsk_provider_dispatch;
        }
        client->waiting--;
        os_cond_broadcast(&wsk_changed);
    } else {
        status = STATUS_DEVICE_NOT_READY;
    }
    os_mutex_unlock(&wsk_lock);
    if (status == STATUS_NOINTERFACE)
        log_error("WskCaptureProviderNPI: Winsock Kernel %u.%u is not here (have 1.0, need %u.%u)",
                  WSK_MAJOR_VERSION(version), WSK_MINOR_VERSION(version),
                  WSK_MAJOR_VERSION(version), WSK_MINOR_VERSION(version));
    /* After WskDeregister it may be called as long as the memory is there. */
    if (!client &&
        !(WskRegistration && WskRegistration->ReservedRegistrationState == STATE_DEREGISTERED)) {
        no_registration("WskCaptureProviderNPI", WskRegistration, NT_CALLER);
        status = STATUS_INVALID_PARAMETER;
    }
    return status;
}

VOID WSKAPI WskReleaseProviderNPI(PWSK_REGISTRATION WskRegistration)
{
    struct wsk_patience patience;
    struct wsk_client *client;
    bool captured = false, waits = false;

    nt_irql_at_most(DISPATCH_LEVEL, "WskReleaseProviderNPI", NT_CALLER);
    os_mutex_lock(&wsk_lock);
    client = wsk_client_of(WskRegistration);
    captured = client && client->captures > 0;
    if (captured) {
        client->captures--;
        client->waiting++;
        waits = client->captures == 0 && (client->open_count || client->calls) &&
                !RED("wsk-release-does-not-wait");
        if (waits && KeGetCurrentIrql() > PASSIVE_LEVEL && KeGetCurrentIrql() <= DISPATCH_LEVEL) {
            os_mutex_unlock(&wsk_lock);
            nt_finding_from(NT_CALLER,
                            "WskReleaseProviderNPI: waits for adapters to be closed at IRQL %u, "
                            "need PASSIVE_LEVEL or all of them closed",
                            KeGetCurrentIrql());
            os_mutex_lock(&wsk_lock);
        }
        wsk_patience_begin(&patience);
        while (waits && client->captures == 0 && (client->open_count || client->calls))
            wsk_patience_wait(&patience, client, "WskReleaseProviderNPI");
        client->waiting--;
        os_cond_broadcast(&wsk_changed);
    }
    os_mutex_unlock(&wsk_lock);
    if (!client)
        no_registration("WskReleaseProviderNPI", WskRegistration, NT_CALLER);
    else if (!captured)
        nt_finding_from(NT_CALLER,
                        "WskReleaseProviderNPI: released more often than it was captured");
}

NTSTATUS WSKAPI WskQueryProviderCharacteristics(
    PWSK_REGISTRATION WskRegistration, PWSK_PROVIDER_CHARACTERISTICS WskProviderCharacteristics)
{
    struct wsk_client *client;
    NTSTATUS status = STATUS_INVALID_PARAMETER;

    nt_irql_at_most(DISPATCH_LEVEL, "WskQueryProviderCharacteristics", NT_CALLER);
    if (!WskProviderCharacteristics) {
        nt_finding_from(NT_CALLER, "WskQueryProviderCharacteristics: the result's place is NULL");
        return status;
    }
    os_mutex_lock(&wsk_lock);
    client = wsk_client_of(WskRegistration);
    if (client)
        status = wait_ready(client, WSK_NO_WAIT);
    os_mutex_unlock(&wsk_lock);
    if (!client)
        no_registration("WskQueryProviderCharacteristics", WskRegistration, NT_CALLER);
    if (NT_SUCCESS(status)) {
        WskProviderCharacteristics->HighestVersion = WSK_VERSION_ONLY;
        WskProviderCharacteristics->LowestVersion = WSK_VERSION_ONLY;
    }
    return status;
}
