// SPDX-License-Identifier: MIT
/* Calls on memory regions that wait for their outcome, and what tokens grant: shared by mr_test.c
 * and mr_fast_test.c. */
#ifndef SOFTNDK_PROVIDER_MR_TEST_CALLS_H
#define SOFTNDK_PROVIDER_MR_TEST_CALLS_H

#include "provider/mr_test.h"

/* ---- calls ---- */

static inline NDK_MR *mr_open_in(NDK_PD *pd, BOOLEAN fast)
{
    struct outcome outcome = {0};
    NDK_MR *mr = NULL;
    NTSTATUS status = pd->Dispatch->NdkCreateMr(pd, fast, outcome_create, &outcome, &mr);

    if (status == STATUS_PENDING) {
        assert_null(mr); /* not to be touched on the asynchronous path */
        status = outcome_of(&outcome, status);
        mr = (NDK_MR *)(void *)outcome.object;
    }
    assert_int_equal(status, STATUS_SUCCESS);
    assert_non_null(mr);
    return mr;
}

static inline NDK_MR *mr_open(BOOLEAN fast)
{
    return mr_open_in(the_pd, fast);
}

static inline NTSTATUS enrol(NDK_MR *mr, MDL *mdl, SIZE_T length, ULONG flags)
{
    struct outcome outcome = {0};

    return outcome_of(
        &outcome, mr->Dispatch->NdkRegisterMr(mr, mdl, length, flags, outcome_request, &outcome));
}

static inline NTSTATUS release(NDK_MR *mr)
{
    struct outcome outcome = {0};

    return outcome_of(&outcome, mr->Dispatch->NdkDeregisterMr(mr, outcome_request, &outcome));
}

static inline NTSTATUS initialize(NDK_MR *mr, ULONG pages, BOOLEAN remote)
{
    struct outcome outcome = {0};

    return outcome_of(&outcome, mr->Dispatch->NdkInitializeFastRegisterMr(
                                    mr, pages, remote, outcome_request, &outcome));
}

static inline uint32_t remote_of(NDK_MR *mr)
{
    return mr->Dispatch->NdkGetRemoteTokenFromMr(mr);
}

static inline uint32_t local_of(NDK_MR *mr)
{
    return mr->Dispatch->NdkGetLocalTokenFromMr(mr);
}

static inline enum access_result ask(uint32_t token, const void *at, uint64_t length, uint32_t need)
{
    struct access access = {0};
    enum access_result result =
        mem_begin(tokens(), token, the_pd, NULL, (uintptr_t)at, length, need, &access);

    if (result == ACCESS_OK)
        mem_end(&access);
    return result;
}

/* Everything that a token grants. */
static inline uint32_t grants(uint32_t token, const void *at)
{
    uint32_t rights = 0;

    for (uint32_t need = 1; need < 32; need <<= 1) {
        enum access_result result = ask(token, at, 1, need);

        if (result == ACCESS_OK)
            rights |= need;
        else
            assert_int_equal(result, ACCESS_NO_RIGHT);
    }
    return rights;
}

#endif
