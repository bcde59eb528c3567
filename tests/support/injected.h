// SPDX-License-Identifier: MIT
/*
 * Calls that are made to fail with every status they are documented to give (SOFTNDK_FAIL), for the
 * tests status_injected*. A call that may pend gives each inline, through the callback, and through
 * a callback that has run before the call returns; exactly once, without an object, with a reason,
 * and with nothing left behind: the objects close and the adapter goes.
 */
#ifndef SOFTNDK_TESTS_INJECTED_H
#define SOFTNDK_TESTS_INJECTED_H

#include "modes.h"

#define INJECTED_WAITS    256
#define INJECTED_STATUSES 24

/* One object of each kind that a call needs, and what its arguments point to. */
struct injected {
    struct end end;
    struct memory memory;
    NDK_MR *fast; /* created with FastRegister TRUE */
    NDK_MW *window;
    NDK_SRQ *srq;
    NDK_CONNECTOR *connector;
    NDK_LISTENER *listener;
    NDK_SHARED_ENDPOINT *shared;
    SOCKADDR_INET local, peer;
    ULONG address_length;
    void *out; /* of a create */
    struct wait waits[INJECTED_WAITS];
    unsigned wait_count, pended;
};

typedef NTSTATUS injected_call(struct injected *b, struct wait *w);

struct injected_entry {
    const char *function; /* as the table of statuses calls it */
    const char *call;     /* as SOFTNDK_FAIL does, if that differs */
    injected_call *make;
    NTSTATUS statuses[INJECTED_STATUSES]; /* ends with STATUS_SUCCESS */
};

/* A listener's and a CQ's callbacks that do nothing, but close what came. */
VOID injected_connect_event(PVOID context, NDK_CONNECTOR *connector);
VOID injected_notification(PVOID context, NTSTATUS status);

/* Every call of the list, up to the one without a function, with every one of its statuses; the
 * statuses listed are those documented. */
void injected_run(const struct injected_entry *entries);

#endif
