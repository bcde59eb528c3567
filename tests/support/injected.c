// SPDX-License-Identifier: MIT
/* See injected.h. */
#include "injected.h"

#include <stdarg.h>
#include <setjmp.h>
#include <string.h>

#include <cmocka.h>

#include "base/status.h"

VOID injected_connect_event(PVOID context, NDK_CONNECTOR *connector)
{
    (void)context;
    CLOSE(connector, NdkCloseConnector);
}

VOID injected_notification(PVOID context, NTSTATUS status)
{
    (void)context;
    (void)status;
}

static void bench_open(struct injected *b)
{
    NDK_ADAPTER *adapter;
    struct wait w;
    NTSTATUS status;

    mode_set("never");
    memset(b, 0, sizeof *b);
    end_open(&b->end, NULL);
    adapter = b->end.adapter;
    make_memory(b->end.pd, 4096, NDK_MR_FLAG_ALLOW_LOCAL_WRITE, &b->memory);
    wait_init(&w);
    status = b->end.pd->Dispatch->NdkCreateMr(b->end.pd, TRUE, wait_create, &w, &b->fast);
    assert_int_equal(status, STATUS_SUCCESS);
    status = b->end.pd->Dispatch->NdkCreateMw(b->end.pd, wait_create, &w, &b->window);
    assert_int_equal(status, STATUS_SUCCESS);
    status = b->end.pd->Dispatch->NdkCreateSrq(b->end.pd, 4, 1, 0, NULL, NULL, NULL, wait_create,
                                               &w, &b->srq);
    assert_int_equal(status, STATUS_SUCCESS);
    b->connector = make_connector(adapter);
    status = adapter->Dispatch->NdkCreateListener(adapter, injected_connect_event, NULL,
                                                  wait_create, &w, &b->listener);
    assert_int_equal(status, STATUS_SUCCESS);
    assert_int_equal(softndk_address_from_text("127.0.0.1", &b->local, &b->address_length),
                     STATUS_SUCCESS);
    b->peer = b->local;
    b->peer.Ipv4.sin_port = 1;
    status = adapter->Dispatch->NdkCreateSharedEndpoint(
        adapter, (PSOCKADDR)&b->local, b->address_length, wait_create, &w, &b->shared);
    assert_int_equal(status, STATUS_SUCCESS);
}

/* No call has left anything, since the adapter closes; and none was answered twice. */
static void bench_close(struct injected *b)
{
    unsigned answers = 0;

    assert_int_equal(softndk_set_fail(NULL), STATUS_SUCCESS);
    mode_set("never");
    CLOSE(b->shared, NdkCloseSharedEndpoint);
    CLOSE(b->listener, NdkCloseListener);
    CLOSE(b->connector, NdkCloseConnector);
    CLOSE(b->srq, NdkCloseSrq);
    CLOSE(b->window, NdkCloseMw);
    CLOSE(b->fast, NdkCloseMr);
    free_memory(&b->memory);
    end_close(&b->end);
    for (unsigned i = 0; i < b->wait_count; i++)
        answers += atomic_load(&b->waits[i].calls);
    assert_int_equal(answers, b->pended);
}

static bool lists(const struct injected_entry *entry, NTSTATUS status)
{
    for (size_t i = 0; entry->statuses[i] != STATUS_SUCCESS; i++)
        if (entry->statuses[i] == status)
            return true;
    return false;
}

/* The list above is the documented one. */
static const struct softndk_function *documented(const struct injected_entry *entry)
{
    const struct softndk_function *function = softndk_function_by_name(entry->function);
    const struct softndk_function_status *row;

    if (!function)
        test_fail("%s is no function", entry->function);
    for (size_t i = 0; (row = softndk_function_status_at(function, i)) != NULL; i++) {
        if (row->status != STATUS_SUCCESS && row->status != STATUS_PENDING &&
            !lists(entry, row->status))
            test_fail("%s: %s is documented and not tested here", entry->function,
                      softndk_status_name(row->status));
    }
    return function;
}

static void one_call(struct injected *b, const struct injected_entry *entry, bool pends,
                     NTSTATUS status)
{
    static uint8_t untouched;
    const char *call = entry->call ? entry->call : entry->function;
    struct wait *w = &b->waits[b->wait_count++];
    NTSTATUS returned;

    assert_true(b->wait_count <= INJECTED_WAITS);
    wait_init(w);
    b->out = &untouched;
    fail_next(call, status);
    returned = entry->make(b, w);
    b->pended += returned == STATUS_PENDING;
    if (!pends && returned == STATUS_PENDING)
        test_fail("%s pends", entry->function);
    if (pends)
        returned = mode_refusal(w, returned);
    if (returned != status)
        test_fail("%s in mode %s: have %s, need %s", entry->function, mode,
                  softndk_status_name(returned), softndk_status_name(status));
    assert_ptr_equal(b->out, &untouched);
}

void injected_run(const struct injected_entry *entries)
{
    static const char *const modes[] = {"never", "always", "early"};
    static struct injected b;

    bench_open(&b);
    for (const struct injected_entry *entry = entries; entry->function; entry++) {
        const struct softndk_function *function = documented(entry);
        bool pends =
            function->model == SOFTNDK_MODEL_CREATE || function->model == SOFTNDK_MODEL_REQUEST;

        for (size_t i = 0; entry->statuses[i] != STATUS_SUCCESS; i++) {
            if (!softndk_function_status(function, entry->statuses[i]))
                test_fail("%s: %s is not documented", entry->function,
                          softndk_status_name(entry->statuses[i]));
            for (size_t m = 0; m < (pends ? 3 : 1); m++) {
                mode_set(modes[m]);
                one_call(&b, entry, pends, entry->statuses[i]);
            }
        }
    }
    bench_close(&b);
}
