// SPDX-License-Identifier: MIT
/*
 * Tests of the status table: that it hangs together, and facts of it that are easy to get wrong.
 * tests/check-header-statuses.py compares it with the headers and the generated document.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/status.h"

static void names_and_values_lead_to_each_other(void **state)
{
    NTSTATUS status, found;
    size_t count = 0;
    char text[64];

    (void)state;
    for (; softndk_status_at(count, &status); count++) {
        const char *name = softndk_status_name(status);

        assert_non_null(name);
        assert_memory_equal(name, "STATUS_", 7);
        assert_true(softndk_status_by_name(name, &found));
        assert_int_equal(found, status);
        assert_true(softndk_status_by_name(name + 7, &found));
        assert_int_equal(found, status);
        snprintf(text, sizeof(text), "%s", name);
        for (char *c = text; *c; c++)
            *c = (char)(*c >= 'A' && *c <= 'Z' ? *c - 'A' + 'a' : *c);
        assert_true(softndk_status_by_name(text, &found));
        assert_int_equal(found, status);
        assert_true(softndk_status_text(status)[0]);
    }
    assert_true(count >= 32);
    assert_true(softndk_status_by_name("status_Invalid_Address", &found));
    assert_int_equal((uint32_t)found, 0xC0000141u);
}

static void what_is_no_name_is_refused(void **state)
{
    static const char *const wrong[] = {"",         "STATUS_", "STATUS",       "INVALID",
                                        "SUCCESS ", "BUFFER",  "NDIS_SUCCESS", "SUCCESSFUL"};
    NTSTATUS status = 42;

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_false(softndk_status_by_name(wrong[i], &status));
    assert_int_equal(status, 42);
    assert_null(softndk_status_name((NTSTATUS)0xC0000999));
    assert_null(softndk_status_causes((NTSTATUS)0xC0000999));
    assert_string_equal(softndk_status_text((NTSTATUS)0xC0000999),
                        "an error that NDK does not use");
    assert_string_equal(softndk_status_text((NTSTATUS)0x80000999),
                        "a warning that NDK does not use");
    assert_false(softndk_status_at(1000000, &status));
}

static void statuses_ndk_does_not_use_have_names_too(void **state)
{
    NTSTATUS status;

    (void)state;
    assert_true(softndk_status_by_name("no_memory", &status));
    assert_int_equal(status, STATUS_NO_MEMORY);
    assert_string_equal(softndk_status_name(STATUS_NO_MEMORY), "STATUS_NO_MEMORY");
    assert_false(softndk_status_is_used(STATUS_NO_MEMORY));
    assert_true(softndk_status_is_used(STATUS_IMPLEMENTATION_LIMIT));
    assert_true(softndk_status_by_name("STATUS_WAIT_0", &status));
    assert_int_equal(status, STATUS_SUCCESS);
    assert_string_equal(softndk_status_name(STATUS_WAIT_0), "STATUS_SUCCESS");
    for (size_t i = 0; softndk_status_at(i, &status); i++)
        assert_true(softndk_status_is_used(status));
}

static bool may_pend(const struct softndk_function *f)
{
    return f->model == SOFTNDK_MODEL_CREATE || f->model == SOFTNDK_MODEL_CLOSE ||
           f->model == SOFTNDK_MODEL_REQUEST;
}

/* One function: what its model says must show in its rows. */
static void check_function(const struct softndk_function *f)
{
    const struct softndk_function_status *row;
    bool returns_status = f->model != SOFTNDK_MODEL_VALUE && f->model != SOFTNDK_MODEL_VOID;
    enum softndk_status_how how = SOFTNDK_STATUS_BOTH;
    size_t rows = 0;

    assert_ptr_equal(softndk_function_by_name(f->name), f);
    assert_ptr_equal(softndk_function_by_name(f->type), f);
    assert_int_equal(softndk_function_open_ended(f, &how), returns_status);
    if (returns_status)
        assert_int_equal(how, may_pend(f) ? SOFTNDK_STATUS_ASYNC_POSSIBLE : SOFTNDK_STATUS_INLINE);
    for (; (row = softndk_function_status_at(f, rows)) != NULL; rows++) {
        assert_non_null(softndk_status_name(row->status));
        assert_ptr_equal(softndk_function_status(f, row->status), row); /* listed once */
        assert_true(row->when[0]);
        if (!may_pend(f) || NT_SUCCESS(row->status))
            assert_int_equal(row->how, SOFTNDK_STATUS_INLINE);
        else
            assert_int_not_equal(row->how, SOFTNDK_STATUS_INLINE);
        if (row->status == STATUS_PENDING)
            assert_true(may_pend(f));
    }
    assert_int_equal(rows > 0, returns_status);
    assert_int_equal(softndk_function_status(f, STATUS_SUCCESS) != NULL, returns_status);
    assert_int_equal(softndk_function_status(f, STATUS_PENDING) != NULL, may_pend(f));
}

static void every_function_is_there_once_and_consistent(void **state)
{
    const struct softndk_function *f, *g;
    size_t count = 0, passive = 0, since_1_2 = 0, since_2_1 = 0;

    (void)state;
    for (; (f = softndk_function_at(count)) != NULL; count++) {
        check_function(f);
        for (size_t k = 0; k < count; k++) {
            g = softndk_function_at(k);
            assert_string_not_equal(f->section, g->section);
            assert_string_not_equal(f->slot, g->slot);
        }
        passive += f->passive_only;
        since_1_2 += strcmp(f->since, "1.2") == 0;
        since_2_1 += strcmp(f->since, "2.1") == 0;
    }
    assert_int_equal(count, 53);
    assert_int_equal(passive, 1);
    assert_true(softndk_function_by_name("ndkqueryadapterinfo")->passive_only);
    assert_int_equal(since_1_2, 2);
    assert_int_equal(since_2_1, 2);
    assert_null(softndk_function_by_name("NdkCreate"));
}

static void check_row(const char *function, NTSTATUS status, enum softndk_status_how how)
{
    const struct softndk_function *f = softndk_function_by_name(function);
    const struct softndk_function_status *row;

    assert_non_null(f);
    row = softndk_function_status(f, status);
    assert_non_null(row);
    assert_int_equal(row->how, how);
    assert_int_equal(row->source, SOFTNDK_STATUS_NDKPI);
}

static void documented_facts_hold(void **state)
{
    (void)state;
    check_row("NdkConnect", STATUS_CONNECTION_REFUSED, SOFTNDK_STATUS_BOTH);
    check_row("NdkConnect", STATUS_TOO_MANY_ADDRESSES, SOFTNDK_STATUS_BOTH);
    check_row("NdkListen", STATUS_TOO_MANY_ADDRESSES, SOFTNDK_STATUS_ASYNC_POSSIBLE);
    check_row("NdkCreateSharedEndpoint", STATUS_INVALID_ADDRESS, SOFTNDK_STATUS_BOTH);
    check_row("NdkCompleteConnect", STATUS_IO_TIMEOUT, SOFTNDK_STATUS_BOTH);
    check_row("NdkAccept", STATUS_IO_TIMEOUT, SOFTNDK_STATUS_ASYNC_POSSIBLE);
    check_row("NdkBuildLAM", STATUS_BUFFER_TOO_SMALL, SOFTNDK_STATUS_ASYNC_POSSIBLE);
    check_row("NdkInitializeFastRegisterMr", STATUS_IMPLEMENTATION_LIMIT,
              SOFTNDK_STATUS_ASYNC_POSSIBLE);
    check_row("NdkFastRegister", STATUS_ACCESS_VIOLATION, SOFTNDK_STATUS_INLINE);
    check_row("NdkSend", STATUS_CONNECTION_INVALID, SOFTNDK_STATUS_INLINE);
    /* Receives may be posted before the connection is there: this is our word for a dead QP. */
    assert_int_equal(
        softndk_function_status(softndk_function_by_name("NdkReceive"), STATUS_CONNECTION_INVALID)
            ->source,
        SOFTNDK_STATUS_OURS);
    /* The local address of a shared endpoint was checked when it was created: what is left is our
     * word about the destination. */
    assert_null(softndk_function_status(softndk_function_by_name("NdkConnectWithSharedEndpoint"),
                                        STATUS_TOO_MANY_ADDRESSES));
    assert_int_equal(
        softndk_function_status(softndk_function_by_name("NdkConnectWithSharedEndpoint"),
                                STATUS_INVALID_ADDRESS)
            ->source,
        SOFTNDK_STATUS_OURS);
}

static void work_completions_are_listed(void **state)
{
    const struct softndk_work_status *w;
    unsigned overflow = 0, cancelled = 0;
    size_t count = 0;

    (void)state;
    for (; (w = softndk_work_status_at(count)) != NULL; count++) {
        assert_non_null(softndk_status_name(w->status));
        assert_true(w->kinds != 0 && w->kinds <= NDK_WORK_ALL);
        if (w->status == STATUS_BUFFER_OVERFLOW)
            overflow = w->kinds;
        if (w->status == STATUS_CANCELLED)
            cancelled = w->kinds;
    }
    assert_int_equal(count, 9);
    assert_int_equal(overflow, NDK_WORK_RECEIVE);
    assert_int_equal(cancelled, NDK_WORK_ALL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_values_lead_to_each_other),
        cmocka_unit_test(what_is_no_name_is_refused),
        cmocka_unit_test(statuses_ndk_does_not_use_have_names_too),
        cmocka_unit_test(every_function_is_there_once_and_consistent),
        cmocka_unit_test(documented_facts_hold),
        cmocka_unit_test(work_completions_are_listed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
