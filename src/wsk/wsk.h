// SPDX-License-Identifier: MIT
/*
 * wsk.h - the second door: Winsock Kernel's registration, through which consumers ask for adapters.
 *
 * A client is one registration. Its handle (PWSK_CLIENT) is a number that no later client gets, so
 * that one used too late is recognized. A client knows how often it is captured, which calls of its
 * are running, and every adapter that it has open, with the call stack of the open.
 *
 * Who calls: consumers, by the functions of <wsk.h> and the two tables. Below: the registry,
 * ndis/registry.h, opens and closes; nothing here knows what an adapter is.
 *
 * Ownership and lock. wsk_lock guards the list of clients and all that hangs on it; it is a leaf:
 * no call leaves this room with it held but those that trace a stack. wsk_changed is broadcast when
 * a count falls. A client is freed by WskDeregister alone, when nothing of it is in use: captures,
 * calls, waiting and opens are 0. An open is freed by its close alone, when nobody tells of it
 * (telling is 0): WskReleaseProviderNPI on one thread tells of an adapter, lock dropped, while
 * another thread closes that adapter; the close waits for the telling, which waits for nobody.
 * A thread that waits for adapters holds no reference that keeps a close from ending.
 */
#ifndef SOFTNDK_WSK_WSK_H
#define SOFTNDK_WSK_WSK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <wskndk.h>

#include "os/os_sync.h"

enum { WSK_FRAMES = 12, WSK_STACK_TEXT = 700 };

/* Who did something: return addresses, innermost first. */
struct wsk_stack {
    unsigned depth;
    void *frames[WSK_FRAMES];
};

/* One adapter that a client has open. */
struct wsk_open {
    struct wsk_open *next;
    NDK_ADAPTER *adapter;
    NET_IFINDEX index;
    NDK_VERSION asked;
    bool closing;     /* its close runs */
    unsigned telling; /* threads that read it and tell of its objects with wsk_lock dropped */
    struct wsk_stack by;
};

struct wsk_client {
    struct wsk_client *next;
    unsigned number; /* 1, 2, ... */
    PWSK_REGISTRATION registration;
    USHORT version; /* that the client asks for */
    uint64_t ready_at_100ns;
    bool deregistering;
    unsigned captures;
    unsigned waiting; /* in WskCaptureProviderNPI and WskReleaseProviderNPI */
    unsigned calls;   /* in functions of the two dispatch tables */
    unsigned open_count;
    struct wsk_open *opens; /* in the order of their opens */
    struct wsk_stack by;
    struct wsk_stack captured_by; /* the last capture */
};

extern os_mutex wsk_lock;
extern os_cond wsk_changed;

/* ---- clients (client.c); with wsk_lock ---- */

struct wsk_client *wsk_client_first(void);
struct wsk_client *wsk_client_of(const WSK_REGISTRATION *registration);
void wsk_client_add(struct wsk_client *client); /* numbers it */
void wsk_client_remove(struct wsk_client *client);
PWSK_CLIENT wsk_client_handle(const struct wsk_client *client);

/* Enters a function of a dispatch table, or complains of the handle: NULL. The client is there
 * until wsk_client_leave(). closing: also allowed while a release waits. Without wsk_lock. */
struct wsk_client *wsk_client_enter(PWSK_CLIENT handle, const char *call, const void *caller,
                                    bool closing);
void wsk_client_leave(struct wsk_client *client);

/* ---- what is open (tell.c) ---- */

void wsk_stack_take(struct wsk_stack *stack, const void *caller);
void wsk_stack_text(const struct wsk_stack *stack, char *text, size_t size);

/*
 * Waits on wsk_changed, which the caller does in a loop of its own with wsk_lock held. When call
 * has waited for SOFTNDK_WSK_TELL_S seconds, and again each time as long, the log tells what is
 * still captured, open or running; the lock is dropped meanwhile.
 */
struct wsk_patience {
    uint64_t since_100ns, tell_100ns;
    struct os_deadline until;
};
void wsk_patience_begin(struct wsk_patience *patience);
void wsk_patience_wait(struct wsk_patience *patience, struct wsk_client *client, const char *call);

/* A source of softndk_report(): registrations that are left. */
size_t wsk_report(void (*line)(void *context, const char *text), void *context);

/* ---- the tables (dispatch.c, ndk_door.c) ---- */

#define WSK_VERSION_ONLY MAKE_WSK_VERSION(1, 0)
extern const WSK_PROVIDER_DISPATCH wsk_provider_dispatch;
extern const WSK_PROVIDER_NDK_DISPATCH wsk_ndk_dispatch;

#endif
