// SPDX-License-Identifier: MIT
/*
 * Memory windows by the calls that a QP makes: what a bind is checked for, what a window shows and
 * to whom, its tokens, who may invalidate it.
 */
#include "provider/mw_test.h"

static void creation(void **state)
{
    struct outcome outcome = {0};
    NDK_MW *mw = NULL;
    GUID id = {0};
    NDK_EXTENSION_INTERFACE extension;
    NDK_VERSION version = {1, 0};

    (void)state;
    for (size_t i = 0; i < MODES; i++) {
        uint32_t token;

        assert_true(pend_set(modes[i]));
        mw = mw_open();
        token = mw->Dispatch->NdkGetRemoteTokenFromMw(mw);
        assert_int_not_equal(token, 0);
        assert_int_equal(reach(token, first, 1, 0), ACCESS_INVALID_TOKEN); /* created invalid */
        assert_int_equal(end_of(mw, &here, 0, must_not_be_called, NULL),
                         STATUS_INVALID_DEVICE_REQUEST);
        assert_int_equal(mw->Dispatch->NdkQueryExtension(&mw->Header, &id, version, &extension),
                         STATUS_NOT_SUPPORTED);
        close_object(&mw->Header);
    }
    assert_true(pend_set("never"));
    assert_true(fail_set("memory:1"));
    assert_int_equal(the_pd->Dispatch->NdkCreateMw(the_pd, outcome_create, &outcome, &mw),
                     STATUS_INSUFFICIENT_RESOURCES);
    assert_reason(&the_pd->Header, "NdkCreateMw: no new window");
    assert_true(pend_set("always"));
    assert_true(fail_set("memory:1"));
    assert_int_equal(the_pd->Dispatch->NdkCreateMw(the_pd, outcome_create, &outcome, &mw),
                     STATUS_PENDING);
    assert_int_equal(outcome_of(&outcome, STATUS_PENDING), STATUS_INSUFFICIENT_RESOURCES);
}

static void what_a_bind_is_checked_for(void **state)
{
    const NTSTATUS bad = STATUS_INVALID_PARAMETER;
    NDK_OBJECT_HEADER *qp = &the_pd->Header;
    NDK_PD *pd = pd_open();
    NDK_MR *idle = mr_open(FALSE), *fast = mr_open(TRUE), *foreign = mr_open_in(pd, FALSE);
    NDK_MW *mw = mw_open(), *stranger = mw_open_in(pd);
    struct mw_bind *bind;
    const uint32_t token = mw->Dispatch->NdkGetRemoteTokenFromMw(mw);

    (void)state;
    assert_int_equal(enrol(foreign, mdl, SIZE, WRITABLE), STATUS_SUCCESS);
    assert_int_equal(initialize(fast, 1, TRUE), STATUS_SUCCESS);
    assert_int_equal(prepare(NULL, mw, first, 1, BOTH, &bind), bad);
    assert_reason(qp, "pMr missing");
    assert_int_equal(prepare((NDK_MR *)(void *)mw, mw, first, 1, BOTH, &bind), bad);
    assert_reason(qp, "pMr is no MR");
    assert_int_equal(prepare(mr, NULL, first, 1, BOTH, &bind), bad);
    assert_reason(qp, "pMw missing");
    assert_int_equal(prepare(mr, (NDK_MW *)(void *)mr, first, 1, BOTH, &bind), bad);
    assert_reason(qp, "pMw is no MW");
    assert_int_equal(prepare(foreign, mw, first, 1, BOTH, &bind), bad);
    assert_reason(qp, "of another domain");
    assert_int_equal(prepare(mr, stranger, first, 1, BOTH, &bind), bad);
    assert_reason(qp, "of another domain");
    assert_int_equal(prepare(mr, mw, first, 1, 0, &bind), bad);
    assert_reason(qp, "allows nothing (have Flags 0x0");
    /* Remote write is two bits; neither alone asks for it, whatever stands beside it. */
    assert_int_equal(prepare(mr, mw, first, 1, 0x20, &bind), bad);
    assert_reason(qp, "have 0x20 alone, need 0x30");
    assert_int_equal(prepare(mr, mw, first, 1, 0x10 | NDK_OP_FLAG_ALLOW_REMOTE_READ, &bind), bad);
    assert_reason(qp, "have 0x10 alone, need 0x30");
    assert_int_equal(prepare(idle, mw, first, 1, BOTH, &bind), STATUS_INVALID_DEVICE_REQUEST);
    assert_reason(qp, "have no registration");
    assert_int_equal(prepare(fast, mw, first, 1, BOTH, &bind), STATUS_INVALID_DEVICE_REQUEST);
    assert_reason(qp, "have FastRegister TRUE");
    assert_int_equal(prepare(mr, mw, first, 0, BOTH, &bind), bad);
    assert_reason(qp, "an empty window");
    assert_int_equal(prepare(mr, mw, first - 1, 1, BOTH, &bind), bad);
    assert_reason(qp, "not inside the region");
    assert_int_equal(prepare(mr, mw, first - 1, 2, BOTH, &bind), bad);
    assert_int_equal(prepare(mr, mw, first + SIZE, 1, BOTH, &bind), bad);
    assert_int_equal(prepare(mr, mw, first + SIZE - 1, 2, BOTH, &bind), bad);
    assert_int_equal(prepare(mr, mw, first, SIZE + 1, BOTH, &bind), bad);
    assert_int_equal(prepare(mr, mw, first + 1, SIZE_MAX, BOTH, &bind), bad); /* wraps */
    assert_int_equal(prepare(mr, mw, NULL, 1, BOTH, &bind), bad);             /* 0-based */
    assert_true(fail_set("memory:1"));
    assert_int_equal(prepare(mr, mw, first, 1, BOTH, &bind), STATUS_INSUFFICIENT_RESOURCES);
    /* None of them counts as posted, and none used up a token. */
    assert_int_equal(mw->Dispatch->NdkGetRemoteTokenFromMw(mw), token);
    assert_int_equal(release(mr), STATUS_SUCCESS);
    assert_int_equal(enrol(mr, mdl, SIZE, NDK_MR_FLAG_ALLOW_REMOTE_READ), STATUS_SUCCESS);
    assert_int_equal(prepare(mr, mw, first, 1, NDK_OP_FLAG_ALLOW_REMOTE_WRITE, &bind),
                     STATUS_ACCESS_VIOLATION);
    assert_reason(qp, "registration without local write");
    assert_int_equal(prepare(mr, mw, first, 1, BOTH, &bind), STATUS_ACCESS_VIOLATION);
    assert_int_equal(release(mr), STATUS_SUCCESS);
    close_object(&mw->Header);
    close_object(&stranger->Header);
    close_object(&idle->Header);
    close_object(&fast->Header);
    close_object(&foreign->Header);
    close_object(&pd->Header);
}

/* A window's rights are its own: the region need not grant any remote one. */
static void what_a_window_grants(void **state)
{
    static const struct {
        ULONG registered, flags;
        uint32_t grants;
    } cases[] = {
        {0, NDK_OP_FLAG_ALLOW_REMOTE_READ, ACCESS_REMOTE_READ},
        {WRITABLE, NDK_OP_FLAG_ALLOW_REMOTE_READ, ACCESS_REMOTE_READ},
        {WRITABLE, NDK_OP_FLAG_ALLOW_REMOTE_WRITE, ACCESS_REMOTE_WRITE},
        {WRITABLE, BOTH, ACCESS_REMOTE_READ | ACCESS_REMOTE_WRITE},
        {NDK_MR_FLAG_ALLOW_REMOTE_WRITE, NDK_OP_FLAG_ALLOW_REMOTE_READ, ACCESS_REMOTE_READ},
    };
    NDK_MW *mw = mw_open();

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint32_t token;

        assert_int_equal(release(mr), STATUS_SUCCESS);
        assert_int_equal(enrol(mr, mdl, SIZE, cases[i].registered), STATUS_SUCCESS);
        token = bind(mr, mw, first + 8, 16, cases[i].flags);
        for (uint32_t need = 1; need < 32; need <<= 1) {
            assert_int_equal(reach(token, first + 8, 16, need),
                             cases[i].grants & need ? ACCESS_OK : ACCESS_NO_RIGHT);
            assert_int_equal(reach_over(&elsewhere, token, first + 8, 16, need),
                             ACCESS_WRONG_DOMAIN);
        }
        invalidate(mw);
    }
    close_object(&mw->Header);
}

/* From the first octet to the last, wherever it lies; in pages that do not follow each other. */
static void where_a_window_is(void **state)
{
    static const struct {
        uint32_t at, length;
    } cases[] = {
        {0, SIZE},
        {0, 1},
        {SIZE - 1, 1},
        {1, SIZE - 2},
        {PAGE_SIZE - 100, PAGE_SIZE},
        {PAGE_SIZE - 101, 2},
        {PAGE_SIZE - 100, 1},
        {3 * PAGE_SIZE - 101, 102},
    };
    NDK_MW *mw = mw_open();
    const unsigned order[PAGES] = {2, 0, 3, 1};

    (void)state;
    for (unsigned scattered = 0; scattered < 2; scattered++) {
        for (unsigned i = 0; scattered && i < PAGES; i++)
            MmGetMdlPfnArray(mdl)[i] = (PFN_NUMBER)((uintptr_t)m / PAGE_SIZE + order[i]);
        assert_int_equal(release(mr), STATUS_SUCCESS);
        assert_int_equal(enrol(mr, mdl, SIZE, WRITABLE), STATUS_SUCCESS);
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            const uint8_t *at = first + cases[i].at;
            const uint32_t length = cases[i].length, token = bind(mr, mw, at, length, BOTH);
            uint32_t octet = 0;
            struct access access;
            struct os_iov iov[PAGES];
            int count;

            assert_int_equal(reach(token, at, length, ACCESS_REMOTE_WRITE), ACCESS_OK);
            assert_int_equal(reach(token, at - 1, 1, ACCESS_REMOTE_WRITE), ACCESS_BOUNDS);
            assert_int_equal(reach(token, at - 1, 2, ACCESS_REMOTE_WRITE), ACCESS_BOUNDS);
            assert_int_equal(reach(token, at, length + 1, ACCESS_REMOTE_WRITE), ACCESS_BOUNDS);
            assert_int_equal(reach(token, at + length, 1, ACCESS_REMOTE_READ), ACCESS_BOUNDS);
            assert_int_equal(mem_begin(tokens(), token, pd_from(the_pd), &here, (uintptr_t)at,
                                       length, ACCESS_REMOTE_READ, &access),
                             ACCESS_OK);
            count = mem_pieces(&access, (uintptr_t)at, length, iov, PAGES);
            for (int piece = 0; piece < count; piece++)
                for (size_t n = 0; n < iov[piece].len; n++, octet++) {
                    size_t in = (size_t)(at - m) + octet;
                    size_t page = scattered ? order[in / PAGE_SIZE] : in / PAGE_SIZE;

                    assert_ptr_equal((uint8_t *)iov[piece].base + n,
                                     m + page * PAGE_SIZE + in % PAGE_SIZE);
                }
            assert_int_equal(octet, length);
            mem_end(&access);
            invalidate(mw);
        }
    }
    close_object(&mw->Header);
}

static void windows_overlap_and_are_independent(void **state)
{
    NDK_MW *a = mw_open(), *b = mw_open();
    uint32_t ta = bind(mr, a, first, 100, NDK_OP_FLAG_ALLOW_REMOTE_READ);
    uint32_t tb = bind_over(&elsewhere, mr, b, first + 50, 100, NDK_OP_FLAG_ALLOW_REMOTE_WRITE);

    (void)state;
    assert_int_not_equal(ta, tb);
    assert_int_equal(reach(ta, first + 60, 10, ACCESS_REMOTE_READ), ACCESS_OK);
    assert_int_equal(reach(ta, first + 60, 10, ACCESS_REMOTE_WRITE), ACCESS_NO_RIGHT);
    assert_int_equal(reach_over(&elsewhere, tb, first + 60, 10, ACCESS_REMOTE_WRITE), ACCESS_OK);
    assert_int_equal(reach_over(&elsewhere, tb, first + 60, 10, ACCESS_REMOTE_READ),
                     ACCESS_NO_RIGHT);
    invalidate(a);
    assert_int_equal(reach(ta, first + 60, 10, ACCESS_REMOTE_READ), ACCESS_INVALID_TOKEN);
    assert_int_equal(reach_over(&elsewhere, tb, first + 60, 10, ACCESS_REMOTE_WRITE), ACCESS_OK);
    close_object(&a->Header);
    assert_int_equal(reach_over(&elsewhere, tb, first + 60, 10, ACCESS_REMOTE_WRITE), ACCESS_OK);
    close_object(&b->Header);
}

static void tokens_of_binds(void **state)
{
    NDK_MW *mw = mw_open();
    struct mw_bind *one, *two, *three;
    uint32_t t0, t1, t2;

    (void)state;
    /* Posted behind each other: bind, invalidate, bind, before the first is executed. */
    assert_int_equal(prepare(mr, mw, first, 10, BOTH, &one), STATUS_SUCCESS);
    t1 = mw->Dispatch->NdkGetRemoteTokenFromMw(mw);
    assert_int_equal(prepare(mr, mw, first, 20, BOTH, &two), STATUS_SUCCESS);
    t2 = mw->Dispatch->NdkGetRemoteTokenFromMw(mw);
    assert_int_not_equal(t1, t2);
    assert_int_equal(reach(t1, first, 1, ACCESS_REMOTE_READ), ACCESS_INVALID_TOKEN);
    assert_int_equal(mw_bind_execute(one), STATUS_SUCCESS);
    assert_int_equal(reach(t1, first, 10, ACCESS_REMOTE_READ), ACCESS_OK);
    assert_int_equal(reach(t2, first, 10, ACCESS_REMOTE_READ), ACCESS_INVALID_TOKEN);
    assert_int_equal(mw->Dispatch->NdkGetRemoteTokenFromMw(mw), t2);
    invalidate(mw);
    assert_int_equal(mw_bind_execute(two), STATUS_SUCCESS);
    assert_int_equal(reach(t1, first, 10, ACCESS_REMOTE_READ), ACCESS_INVALID_TOKEN);
    assert_int_equal(reach(t2, first, 20, ACCESS_REMOTE_READ), ACCESS_OK);
    /* Refused behind one that is queued: the answer is that one's again. */
    t0 = t2;
    assert_int_equal(prepare(mr, mw, first, 10, BOTH, &one), STATUS_SUCCESS);
    t1 = mw->Dispatch->NdkGetRemoteTokenFromMw(mw);
    assert_int_equal(prepare(mr, mw, first, 10, BOTH, &two), STATUS_SUCCESS);
    mw_bind_discard(two);
    assert_int_equal(mw->Dispatch->NdkGetRemoteTokenFromMw(mw), t1);
    /* Flushed, in the order of the posts: the answer is what is bound. */
    assert_int_equal(prepare(mr, mw, first, 10, BOTH, &three), STATUS_SUCCESS);
    assert_int_not_equal(mw->Dispatch->NdkGetRemoteTokenFromMw(mw), t1);
    mw_bind_discard(one);
    mw_bind_discard(three);
    assert_int_equal(mw->Dispatch->NdkGetRemoteTokenFromMw(mw), t0);
    assert_int_equal(reach(t0, first, 20, ACCESS_REMOTE_READ), ACCESS_OK);
    invalidate(mw);
    /* Tokens that were shown are used up. */
    t2 = bind(mr, mw, first, 10, BOTH);
    assert_int_not_equal(t2, t1);
    assert_int_not_equal(t2, t0);
    close_object(&mw->Header);
}

static void a_bind_needs_an_invalidation_first(void **state)
{
    NDK_MW *mw = mw_open();
    uint32_t token = bind(mr, mw, first, 10, NDK_OP_FLAG_ALLOW_REMOTE_READ);
    struct mw_bind *again;

    (void)state;
    assert_int_equal(prepare(mr, mw, first, 20, BOTH, &again), STATUS_SUCCESS);
    assert_int_equal(mw_bind_execute(again), STATUS_INVALID_DEVICE_REQUEST);
    assert_int_equal(prepare_over(&elsewhere, mr, mw, first, 20, BOTH, &again), STATUS_SUCCESS);
    assert_int_equal(mw_bind_execute(again), STATUS_INVALID_DEVICE_REQUEST);
    /* It is as it was, and the answer is its token. */
    assert_int_equal(mw->Dispatch->NdkGetRemoteTokenFromMw(mw), token);
    assert_int_equal(reach(token, first, 10, ACCESS_REMOTE_READ), ACCESS_OK);
    assert_int_equal(reach(token, first, 11, ACCESS_REMOTE_READ), ACCESS_BOUNDS);
    invalidate(mw);
    assert_int_equal(end_of(mw, &here, 0, must_not_be_called, NULL), STATUS_INVALID_DEVICE_REQUEST);
    token = bind_over(&elsewhere, mr, mw, first, 20, BOTH); /* over another QP now */
    assert_int_equal(reach_over(&elsewhere, token, first, 20, ACCESS_REMOTE_READ), ACCESS_OK);
    close_object(&mw->Header);
}

/* Only over the QP of the bind, and by token only what the token names. */
static void who_may_invalidate(void **state)
{
    struct pd *pd = pd_from(the_pd), *other = pd_from(pd_open());
    NDK_MW *mw = mw_open();
    struct object *found;
    uint32_t token = bind(mr, mw, first, 10, NDK_OP_FLAG_ALLOW_REMOTE_READ);

    (void)state;
    assert_int_equal(end_of(mw, &elsewhere, 0, must_not_be_called, NULL),
                     STATUS_INVALID_DEVICE_REQUEST);
    assert_null(invalidate_find(tokens(), token, pd, &elsewhere, MEM_BY_PEER));
    assert_null(invalidate_find(tokens(), token, other, &here, MEM_BY_PEER));
    assert_null(invalidate_find(tokens(), token, pd, &here, MEM_BY_READ));
    assert_null(invalidate_find(tokens(), token ^ 1, pd, &here, MEM_BY_PEER));
    found = invalidate_find(tokens(), token, pd, &here, MEM_BY_PEER);
    assert_ptr_equal(found, mw);
    /* Meanwhile it is bound anew. */
    invalidate(mw);
    bind(mr, mw, first, 10, NDK_OP_FLAG_ALLOW_REMOTE_READ);
    assert_int_equal(end_of(mw, &here, token, must_not_be_called, NULL),
                     STATUS_INVALID_DEVICE_REQUEST);
    token = mw->Dispatch->NdkGetRemoteTokenFromMw(mw);
    assert_int_equal(end_of(mw, &here, token, must_not_be_called, NULL), STATUS_SUCCESS);
    assert_null(invalidate_find(tokens(), token, pd, &here, MEM_BY_PEER));
    object_unref(found);
    close_object(&mw->Header);
    close_object(&other->object.header);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)
    const struct CMUnitTest tests[] = {
        TEST(creation),
        TEST(what_a_bind_is_checked_for),
        TEST(what_a_window_grants),
        TEST(where_a_window_is),
        TEST(windows_overlap_and_are_independent),
        TEST(tokens_of_binds),
        TEST(a_bind_needs_an_invalidation_first),
        TEST(who_may_invalidate),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
