// SPDX-License-Identifier: MIT
/*
 * What the tests of memory windows share: the calls that a QP makes, with two lists in the place of
 * two QPs, and a world with a registered region. One test includes it once.
 */
#ifndef SOFTNDK_PROVIDER_MW_TEST_H
#define SOFTNDK_PROVIDER_MW_TEST_H

#include "provider/invalidate.h"
#include "provider/mr_test_calls.h"
#include "provider/mw.h"

#define BOTH     (NDK_OP_FLAG_ALLOW_REMOTE_READ | NDK_OP_FLAG_ALLOW_REMOTE_WRITE)
#define WRITABLE NDK_MR_FLAG_ALLOW_LOCAL_WRITE

static struct mw_list here, elsewhere; /* qp: their own addresses */

/* ---- calls ---------------------------------------------------------------------------------- */

static inline NDK_MW *mw_open_in(NDK_PD *pd)
{
    struct outcome outcome = {0};
    NDK_MW *mw = NULL;
    NTSTATUS status = pd->Dispatch->NdkCreateMw(pd, outcome_create, &outcome, &mw);

    if (status == STATUS_PENDING) {
        assert_null(mw); /* not to be touched on the asynchronous path */
        status = outcome_of(&outcome, status);
        mw = (NDK_MW *)(void *)outcome.object;
    }
    assert_int_equal(status, STATUS_SUCCESS);
    assert_int_equal(mw->Header.ObjectType, NdkObjectTypeMw);
    return mw;
}

static inline NDK_MW *mw_open(void)
{
    return mw_open_in(the_pd);
}

/* The PD stands in for the QP at which reasons are left. */
static inline NTSTATUS prepare_over(struct mw_list *list, NDK_MR *mr, NDK_MW *mw, const void *at,
                                    SIZE_T length, ULONG flags, struct mw_bind **bind)
{
    *bind = NULL;
    return mw_bind_prepare(&pd_from(the_pd)->object, pd_from(the_pd), list, mr, mw,
                           (PVOID)(uintptr_t)at, length, flags, bind);
}

static inline NTSTATUS prepare(NDK_MR *mr, NDK_MW *mw, const void *at, SIZE_T length, ULONG flags,
                               struct mw_bind **bind)
{
    return prepare_over(&here, mr, mw, at, length, flags, bind);
}

/* A whole bind; its token. */
static inline uint32_t bind_over(struct mw_list *list, NDK_MR *mr, NDK_MW *mw, const void *at,
                                 SIZE_T length, ULONG flags)
{
    struct mw_bind *bind;

    assert_int_equal(prepare_over(list, mr, mw, at, length, flags, &bind), STATUS_SUCCESS);
    assert_int_equal(mw_bind_execute(bind), STATUS_SUCCESS);
    return mw->Dispatch->NdkGetRemoteTokenFromMw(mw);
}

static inline uint32_t bind(NDK_MR *mr, NDK_MW *mw, const void *at, SIZE_T length, ULONG flags)
{
    return bind_over(&here, mr, mw, at, length, flags);
}

static inline void must_not_be_called(void *context)
{
    (void)context;
    abort();
}

static inline void count_call(void *context)
{
    atomic_fetch_add((atomic_uint *)context, 1);
}

static inline NTSTATUS end_of(NDK_MW *mw, const struct mw_list *over, uint32_t token,
                              void (*done)(void *), void *context)
{
    struct object *object = &mw_from(mw)->object;

    return object->class->invalidate(object, over->qp, token, done, context);
}

static inline void invalidate(NDK_MW *mw)
{
    assert_int_equal(end_of(mw, &here, 0, must_not_be_called, NULL), STATUS_SUCCESS);
}

/* An access of the peer at the other end of this QP. */
static inline enum access_result reach_over(const struct mw_list *over, uint32_t token,
                                            const void *at, uint64_t length, uint32_t need)
{
    struct access access = {0};
    enum access_result result =
        mem_begin(tokens(), token, pd_from(the_pd), over->qp, (uintptr_t)at, length, need, &access);

    if (result == ACCESS_OK)
        mem_end(&access);
    return result;
}

static inline enum access_result reach(uint32_t token, const void *at, uint64_t length,
                                       uint32_t need)
{
    return reach_over(&here, token, at, length, need);
}

/* ---- a world with a registered region of four pages ------------------------------------------ */

#define PAGES 4u
#define SIZE  (PAGES * PAGE_SIZE - 300) /* from octet 100 of the first page */

static uint8_t *m, *first; /* the pages; the region's first octet */
static MDL *mdl;
static NDK_MR *mr;

static inline int up(void **state)
{
    world_up(state);
    mw_list_init(&here, &here);
    mw_list_init(&elsewhere, &elsewhere);
    m = memory_new(PAGES * PAGE_SIZE);
    first = m + 100;
    mdl = mdl_new(first, SIZE);
    mr = mr_open(FALSE);
    assert_int_equal(enrol(mr, mdl, SIZE, WRITABLE), STATUS_SUCCESS);
    return 0;
}

static inline int down(void **state)
{
    if (mr)
        close_object(&mr->Header);
    mr = NULL;
    mw_list_destroy(&here);
    mw_list_destroy(&elsewhere);
    IoFreeMdl(mdl);
    munmap(m, PAGES * PAGE_SIZE);
    return world_down(state);
}

#endif
