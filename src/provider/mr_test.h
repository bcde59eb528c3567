// SPDX-License-Identifier: MIT
/*
 * What the tests of memory regions and of LAMs share: an adapter on the loopback interface, a PD,
 * calls that wait for their outcome in whatever mode, MDLs, and looks behind the dispatch tables.
 * One test includes it once.
 */
#ifndef SOFTNDK_PROVIDER_MR_TEST_H
#define SOFTNDK_PROVIDER_MR_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include <softndk.h>

#include "provider/adapter.h"
#include "provider/mr.h"

static const char *const modes[] = {"never", "always", "early", "random:11"};
#define MODES (sizeof modes / sizeof modes[0])

/* ---- completions ---- */

struct outcome {
    atomic_uint calls;
    NTSTATUS status;
    NDK_OBJECT_HEADER *object;
};

static void outcome_close(PVOID context)
{
    atomic_fetch_add(&((struct outcome *)context)->calls, 1);
}

static void outcome_request(PVOID context, NTSTATUS status)
{
    struct outcome *outcome = context;

    outcome->status = status;
    atomic_fetch_add(&outcome->calls, 1);
}

static void outcome_create(PVOID context, NTSTATUS status, NDK_OBJECT_HEADER *object)
{
    ((struct outcome *)context)->object = object;
    outcome_request(context, status);
}

static bool outcome_came(struct outcome *outcome)
{
    return atomic_load(&outcome->calls) != 0;
}

/* The status of a call: what it returned, or what its callback brings. */
static NTSTATUS outcome_of(struct outcome *outcome, NTSTATUS returned)
{
    uint64_t deadline = os_now_us() + 10000000;

    if (returned != STATUS_PENDING) {
        assert_int_equal(atomic_load(&outcome->calls), 0);
        return returned;
    }
    while (!outcome_came(outcome)) {
        if (os_now_us() > deadline)
            fail_msg("the completion never came");
        os_sleep_us(50);
    }
    assert_int_equal(atomic_load(&outcome->calls), 1);
    return outcome->status;
}

/* ---- adapter and PD ---- */

static NDK_ADAPTER *the_adapter;
static NDK_PD *the_pd;

static struct mem_table *tokens(void)
{
    return adapter_from(the_adapter)->tokens;
}

static void close_object(NDK_OBJECT_HEADER *header)
{
    struct outcome outcome = {0};

    outcome_of(&outcome, object_close(header, outcome_close, &outcome));
}

static NDK_PD *pd_open(void)
{
    struct outcome outcome = {0};
    NDK_PD *pd = NULL;
    NTSTATUS status =
        the_adapter->Dispatch->NdkCreatePd(the_adapter, outcome_create, &outcome, &pd);

    if (status == STATUS_PENDING) {
        status = outcome_of(&outcome, status);
        pd = (NDK_PD *)(void *)outcome.object;
    }
    assert_int_equal(status, STATUS_SUCCESS);
    return pd;
}

static void world_open(const char *options)
{
    NDK_VERSION version = {2, 0};
    char text[256];

    assert_true(pend_set("never"));
    assert_true(fail_set(NULL));
    if (softndk_open_adapter("lo", options, version, &the_adapter) != STATUS_SUCCESS) {
        softndk_open_error(text, sizeof text);
        fail_msg("%s", text);
    }
    the_pd = pd_open();
}

/* After a test that failed half-way there are objects left, and the adapter's close would wait for
 * them for ever: then it is left open. */
static void world_close(void)
{
    static struct outcome closed;
    uint64_t deadline = os_now_us() + 1000000;

    assert_true(pend_set("never"));
    assert_true(fail_set(NULL));
    atomic_store(&closed.calls, 0);
    if (object_close(&the_pd->Header, outcome_close, &closed) == STATUS_PENDING) {
        while (!outcome_came(&closed) && os_now_us() < deadline)
            os_sleep_us(50);
        if (!outcome_came(&closed))
            fail_msg("objects are left open in the domain");
    }
    softndk_close_adapter(the_adapter);
}

static int world_up(void **state)
{
    (void)state;
    world_open(NULL);
    return 0;
}

static int world_down(void **state)
{
    (void)state;
    world_close();
    return 0;
}

/* The last reason at an object says this, in the form of all reasons. */
static void assert_reason(const NDK_OBJECT_HEADER *object, const char *words)
{
    char text[512];

    softndk_reason(object, text, sizeof text);
    if (!strstr(text, words))
        fail_msg("reason \"%s\" lacks \"%s\"", text, words);
    if (!strstr(text, " #") || !strstr(text, "(have ") || !strstr(text, "need ") ||
        !strstr(text, "rule NDKPI "))
        fail_msg("reason \"%s\" is not of the usual form", text);
}

/* ---- memory ---- */

static uint8_t *memory_new(size_t octets)
{
    uint8_t *memory =
        mmap(NULL, octets, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_true(memory != MAP_FAILED);
    return memory;
}

static MDL *mdl_new(void *at, uint32_t octets)
{
    MDL *mdl = IoAllocateMdl(at, octets, FALSE, FALSE, NULL);

    assert_non_null(mdl);
    MmBuildMdlForNonPagedPool(mdl);
    return mdl;
}

#endif
