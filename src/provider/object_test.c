// SPDX-License-Identifier: MIT
/* object_test.c - the rules C1 to C11 of closing, on a class of the test's own and on real PDs. */
#include "nt/nt.h"
#include "provider/object_test.h"

/* ---- C1: SUCCESS and no callback, or PENDING and one ---- */

static void a_close_without_references_is_done_inline(void **state)
{
    struct adapter *adapter = *state;
    struct test_object *object = test_object_new(&adapter->object, "released");
    struct test_done done = {.begin = "closed"};

    assert_int_equal(test_close(object, &done), STATUS_SUCCESS);
    test_expect_still("released ");
    assert_int_equal(atomic_load(&done.calls), 0);
}

static void every_mode_keeps_the_contract_of_close(void **state)
{
    static const char *const modes[] = {"never", "always", "early", "random:7"};
    struct adapter *adapter = *state;
    unsigned early = 0;

    for (unsigned i = 0; i < 4; i++) {
        assert_true(pend_set(modes[i]));
        for (int turn = 0; turn < 50; turn++) {
            struct test_object *object = test_object_new(&adapter->object, NULL);
            /* in mode early long enough that a call that did not wait would be back before it */
            struct test_done done = {.stay_us = i == 2 ? 2000 : 0};
            NTSTATUS status = test_close(object, &done);

            if (i == 0)
                assert_int_equal(status, STATUS_SUCCESS);
            if (i == 1 || i == 2)
                assert_int_equal(status, STATUS_PENDING);
            early += i == 2 && atomic_load(&done.returns) == 1;
            if (status == STATUS_PENDING) {
                test_wait_returns(&done, 1);
                assert_int_equal(done.irql, DISPATCH_LEVEL);
                assert_non_null(done.shard);
            } else {
                assert_int_equal(status, STATUS_SUCCESS);
            }
            os_sleep_us(status == STATUS_PENDING && turn < 3 ? 2000 : 0);
            assert_int_equal(atomic_load(&done.calls), status == STATUS_PENDING);
        }
    }
    assert_in_range(early, 25, 50); /* all, unless the machine is busy for 50 ms at a time */
}

/* ---- C3, C4a: pending requests ---- */

static void a_close_waits_for_the_return_of_a_request_callback(void **state)
{
    struct adapter *adapter = *state;
    struct test_object *object = test_object_new(&adapter->object, "released");
    struct test_done request_done = {.begin = "request", .end = "returned", .stay_us = 20000};
    struct test_done closed = {.begin = "closed"};
    struct request *request =
        request_new(&object->object, CALL_LISTEN, test_request_done, &request_done);

    assert_int_equal(test_close(object, &closed), STATUS_PENDING);
    test_expect_still("");
    request_complete(request, STATUS_IO_TIMEOUT);
    test_expect("request returned released closed ");
    assert_int_equal(request_done.status, STATUS_IO_TIMEOUT);
    test_wait_returns(&closed, 1);
}

static void a_close_cancels_what_pends(void **state)
{
    static const char *const modes[] = {"never", "always", "early"};
    struct adapter *adapter = *state;

    for (unsigned i = 0; i < 3; i++) {
        struct test_object *object = test_object_new(&adapter->object, "released");
        struct test_done request_done = {.begin = "request"};
        struct test_done closed = {.begin = "closed"};
        NTSTATUS status;

        test_clear();
        assert_true(pend_set(modes[i]));
        object->cancelled =
            request_new(&object->object, CALL_LISTEN, test_request_done, &request_done);
        status = test_close(object, &closed);
        if (status == STATUS_SUCCESS) {
            /* the callback has returned before the handle fell: all is over, and legal */
            assert_int_equal(i, 0);
            assert_int_equal(atomic_load(&request_done.returns), 1);
            test_expect_still("request released ");
            continue;
        }
        assert_int_equal(status, STATUS_PENDING);
        test_expect("request released closed ");
        assert_int_equal(request_done.status, STATUS_CANCELLED);
        test_wait_returns(&closed, 1);
    }
}

static void a_dropped_request_calls_nobody(void **state)
{
    struct adapter *adapter = *state;
    struct test_object *object = test_object_new(&adapter->object, "released");
    struct test_done request_done = {.begin = "request"};
    struct test_done closed = {.begin = "closed"};
    struct request *request =
        request_new(&object->object, CALL_LISTEN, test_request_done, &request_done);

    request_drop(request);
    assert_int_equal(test_close(object, &closed), STATUS_SUCCESS);
    test_expect_still("released ");
}

/* ---- C4b: event callbacks (covered by a reference), close from inside own callbacks ---- */

static void a_close_inside_its_own_callback_pends(void **state)
{
    static const char *const modes[] = {"never", "always", "early"};
    struct adapter *adapter = *state;

    for (unsigned i = 0; i < 3; i++) {
        struct test_object *object = test_object_new(&adapter->object, "released");
        struct test_done closed = {.begin = "closed"};
        struct test_done request_done = {.begin = "request",
                                         .end = "returned",
                                         .close = &object->object,
                                         .closed = &closed,
                                         .stay_us = 5000};
        struct request *request =
            request_new(&object->object, CALL_CONNECT, test_request_done, &request_done);

        test_clear();
        assert_true(pend_set(modes[i]));
        request_complete(request, STATUS_SUCCESS);
        test_expect("request returned released closed ");
        test_wait_returns(&closed, 1);
        assert_int_equal(request_done.close_status, STATUS_PENDING);
    }
}

static void other_references_hold_a_close_back(void **state)
{
    struct adapter *adapter = *state;
    struct test_object *object = test_object_new(&adapter->object, "released");
    struct test_done closed = {.begin = "closed"};

    object_ref(&object->object);
    object_ref(&object->object);
    assert_int_equal(test_close(object, &closed), STATUS_PENDING);
    object_unref(&object->object);
    test_expect_still("");
    object_unref(&object->object);
    test_expect("released closed ");
    test_wait_returns(&closed, 1);
}

/* ---- C4c, C6, C7: antecedents and successors ---- */

static void an_antecedent_can_be_closed_first(void **state)
{
    struct adapter *adapter = *state;
    struct test_object *parent = test_object_new(&adapter->object, "parent-released");
    struct test_object *child = test_object_new(&parent->object, "child-released");
    struct test_done parent_closed = {.begin = "parent-closed"}, child_closed = {0};

    assert_int_equal(test_close(parent, &parent_closed), STATUS_PENDING);
    test_expect_still("");
    assert_int_equal(test_close(child, &child_closed), STATUS_SUCCESS);
    test_expect("child-released parent-released parent-closed ");
    test_wait_returns(&parent_closed, 1);
    assert_int_equal(atomic_load(&child_closed.calls), 0);
}

static void an_antecedent_waits_for_the_return_of_its_successors_completion(void **state)
{
    struct adapter *adapter = *state;
    struct test_object *parent = test_object_new(&adapter->object, NULL);
    struct test_object *other = test_object_new(&adapter->object, NULL);
    struct test_object *child = test_object_new(&parent->object, NULL);
    struct test_done parent_closed = {.begin = "parent"}, other_closed = {.begin = "other"};
    struct test_done child_closed = {.begin = "child", .end = "child-returned", .stay_us = 30000};

    object_follow(&child->object, &other->object);
    assert_int_equal(test_close(parent, &parent_closed), STATUS_PENDING);
    assert_true(pend_set("always"));
    assert_int_equal(test_close(child, &child_closed), STATUS_PENDING);
    test_expect("child child-returned parent ");
    assert_true(pend_set("never"));
    /* the second antecedent is free again: an inline close */
    test_wait_returns(&parent_closed, 1);
    assert_int_equal(test_close(other, &other_closed), STATUS_SUCCESS);
}

static void a_chain_closed_from_the_top_ends_from_the_bottom(void **state)
{
    struct adapter *adapter = *state;
    struct test_object *a = test_object_new(&adapter->object, "a");
    struct test_object *b = test_object_new(&a->object, "b");
    struct test_object *c = test_object_new(&b->object, "c");
    struct test_done a_closed = {.begin = "A"}, b_closed = {.begin = "B"}, c_closed = {0};

    assert_int_equal(test_close(a, &a_closed), STATUS_PENDING);
    assert_int_equal(test_close(b, &b_closed), STATUS_PENDING);
    assert_int_equal(test_close(c, &c_closed), STATUS_SUCCESS);
    test_expect("c b B a A ");
    test_wait_returns(&a_closed, 1);
}

/*
 * A consumer closes the last successor with its lock held; the antecedent's close completion takes
 * the same lock. Inline completion would hang here for ever: the alarm ends the test then.
 */
static void the_last_successor_can_be_closed_under_a_lock(void **state)
{
    struct adapter *adapter = *state;
    os_mutex lock = OS_MUTEX_INITIALIZER;
    static const char *const modes[] = {"never", "always", "early"};

    alarm(20);
    for (unsigned i = 0; i < 3; i++) {
        struct test_object *parent = test_object_new(&adapter->object, NULL);
        struct test_object *child = test_object_new(&parent->object, NULL);
        struct test_done parent_closed = {.begin = "parent", .take = &lock};
        struct test_done child_closed = {.begin = "child", .take = &lock};
        NTSTATUS status;

        test_clear();
        assert_int_equal(test_close(parent, &parent_closed), STATUS_PENDING);
        assert_true(pend_set(modes[i]));
        os_mutex_lock(&lock);
        status = test_close(child, &child_closed);
        test_note("unlocks");
        os_mutex_unlock(&lock);
        test_wait_returns(&parent_closed, 1);
        assert_int_equal(status, i == 0 ? STATUS_SUCCESS : STATUS_PENDING);
        assert_int_equal(atomic_load(&child_closed.calls), i != 0);
        assert_true(pend_set("never"));
    }
    alarm(0);
}

/* ---- create: L10 ---- */

static void a_pending_create_holds_the_parent(void **state)
{
    struct adapter *adapter = *state;
    struct test_object *parent = test_object_new(&adapter->object, NULL);
    struct test_done created = {.begin = "created", .end = "returned", .stay_us = 30000};
    struct test_done closed = {.begin = "closed"};
    void *out = NULL;

    assert_true(pend_set("always"));
    assert_int_equal(create_answer(&parent->object, CALL_CREATE_MR, test_create_done, &created,
                                   STATUS_INSUFFICIENT_RESOURCES, NULL, &out),
                     STATUS_PENDING);
    assert_int_equal(test_close(parent, &closed), STATUS_PENDING);
    test_expect("created returned closed ");
    test_wait_returns(&closed, 1);
    assert_null(created.object);
    assert_null(out);
}

/* ---- real PDs ---- */

static void a_pd_obeys_the_same_rules(void **state)
{
    struct adapter *adapter = *state;
    NDK_ADAPTER *ndk = (NDK_ADAPTER *)(void *)adapter;
    struct test_done created = {0}, closed = {.begin = "pd-closed"}, child_closed = {0};
    struct test_object *child;
    NDK_PD *pd = NULL;
    UINT32 token = 0;

    assert_int_equal(ndk->Dispatch->NdkCreatePd(ndk, test_create_done, &created, &pd),
                     STATUS_SUCCESS);
    assert_non_null(pd);
    assert_int_equal(pd->Header.ObjectType, NdkObjectTypePd);
    assert_int_equal(pd->Header.Version.Major, 2);
    assert_int_equal(pd->Header.Version.Minor, 1);
    for (unsigned i = 0; i < 4; i++)
        assert_null(pd->Header.NdkReserved.rf[i]);
    pd->Dispatch->NdkGetPrivilegedMemoryRegionToken(pd, &token);
    assert_int_not_equal(token, 0);
    child = test_object_new(&pd_from(pd)->object, NULL);
    assert_int_equal(pd->Dispatch->NdkClosePd(&pd->Header, test_close_done, &closed),
                     STATUS_PENDING);
    assert_int_equal(test_close(child, &child_closed), STATUS_SUCCESS);
    test_expect("pd-closed ");
    test_wait_returns(&closed, 1);
    assert_int_equal(atomic_load(&created.calls), 0);
}

static void a_pd_comes_through_its_callback_when_asked(void **state)
{
    struct adapter *adapter = *state;
    NDK_ADAPTER *ndk = (NDK_ADAPTER *)(void *)adapter;
    static const char *const modes[] = {"always", "early"};

    for (unsigned i = 0; i < 2; i++) {
        struct test_done created = {0}, closed = {0};
        NDK_PD *pd = (NDK_PD *)(void *)&created; /* must stay as it is */

        assert_true(pend_set(modes[i]));
        assert_int_equal(ndk->Dispatch->NdkCreatePd(ndk, test_create_done, &created, &pd),
                         STATUS_PENDING);
        test_wait_returns(&created, 1);
        assert_ptr_equal(pd, (void *)&created);
        assert_int_equal(created.status, STATUS_SUCCESS);
        pd = (NDK_PD *)(void *)created.object;
        assert_int_equal(pd->Header.ObjectType, NdkObjectTypePd);
        assert_int_equal(pd->Dispatch->NdkClosePd(&pd->Header, test_close_done, &closed),
                         STATUS_PENDING);
        test_wait_returns(&closed, 1);
    }
}

static void what_is_not_there_says_so(void **state)
{
    struct adapter *adapter = *state;
    NDK_ADAPTER *ndk = (NDK_ADAPTER *)(void *)adapter;
    struct test_done done = {0};
    NDK_EXTENSION_INTERFACE extension;
    NDK_VERSION version = {1, 0};
    NDK_PD *pd;
    NDK_QP *qp = NULL;
    GUID id = {0};

    assert_int_equal(ndk->Dispatch->NdkCreatePd(ndk, test_create_done, &done, &pd), STATUS_SUCCESS);
    assert_int_equal(pd->Dispatch->NdkQueryExtension(&pd->Header, &id, version, &extension),
                     STATUS_NOT_SUPPORTED);
    assert_int_equal(atomic_load(&done.calls), 0);
    assert_true(pend_set("always"));
    assert_int_equal(pd->Dispatch->NdkCreateQp(pd, NULL, NULL, NULL, 1, 1, 1, 1, 0,
                                               test_create_done, &done, &qp),
                     STATUS_PENDING);
    test_wait_returns(&done, 1);
    assert_int_equal(done.status, STATUS_INVALID_PARAMETER);
    assert_null(done.object);
    assert_true(pend_set("never"));
    TEST_CLOSED(&done, pd->Dispatch->NdkClosePd(&pd->Header, test_close_done, &done));
}

/* ---- reasons, findings ---- */

static void a_reason_names_object_and_call(void **state)
{
    struct adapter *adapter = *state;
    struct test_object *object = test_object_new(&adapter->object, NULL);
    struct test_done closed = {0};
    char expected[64], text[256] = "?";

    assert_false(object_reason(&object->object, text, sizeof text));
    assert_string_equal(text, "");
    assert_int_equal(object_fail(&object->object, CALL_CREATE_QP, STATUS_INVALID_PARAMETER,
                                 "depth (have %d, need <= %d)", 7, 5),
                     STATUS_INVALID_PARAMETER);
    snprintf(expected, sizeof expected, "fake #%u: NdkCreateQp: depth (have 7, need <= 5)",
             object->object.id);
    assert_true(object_reason(&object->object, text, sizeof text));
    assert_string_equal(text, expected);
    object_fail(&object->object, CALL_CREATE_QP, STATUS_INVALID_PARAMETER, "%0500d", 1);
    assert_true(object_reason(&object->object, text, 20));
    assert_int_equal(strlen(text), 19);
    assert_int_equal(test_close(object, &closed), STATUS_SUCCESS);
}

static void wrong_closes_are_findings(void **state)
{
    struct adapter *adapter = *state;
    struct test_object *object = test_object_new(&adapter->object, "released");
    unsigned before = nt_finding_count();

    object_ref(&object->object);
    assert_int_equal(object_close(&object->object.header, NULL, NULL), STATUS_PENDING);
    assert_int_equal(nt_finding_count(), before + 1);
    /* while someone still holds it, a second close is seen */
    assert_int_equal(object_close(&object->object.header, NULL, NULL), STATUS_SUCCESS);
    assert_int_equal(nt_finding_count(), before + 2);
    object_unref(&object->object);
    test_expect("released ");
}

static void stay_raised(PVOID context, NTSTATUS status)
{
    (void)status;
    nt_irql_set(PASSIVE_LEVEL);
    test_note("lowered");
    *(unsigned *)context = 1;
}

static void a_callback_that_changes_the_level_is_found(void **state)
{
    struct adapter *adapter = *state;
    unsigned before = nt_finding_count(), ran = 0;
    struct test_done done = {.begin = "next"};

    request_complete(request_new(&adapter->object, CALL_CREATE_CQ, stay_raised, &ran), 0);
    test_expect("lowered ");
    request_complete(request_new(&adapter->object, CALL_CREATE_CQ, test_request_done, &done), 0);
    test_expect("lowered next ");
    test_wait_returns(&done, 1);
    assert_int_equal(done.irql, DISPATCH_LEVEL);
    assert_int_equal(ran, 1);
    assert_int_equal(nt_finding_count(), before + 1);
}

static void ids_and_versions_are_set_at_birth(void **state)
{
    struct adapter *adapter = *state;
    struct test_object *a = test_object_new(&adapter->object, NULL);
    struct test_object *b = test_object_new(&a->object, NULL);
    struct test_done closed = {0};

    assert_int_not_equal(a->object.id, b->object.id);
    assert_int_equal(b->object.header.ObjectType, NdkObjectTypeCq);
    assert_int_equal(b->object.header.Version.Major, adapter->version.Major);
    assert_ptr_equal(b->object.adapter, adapter);
    assert_non_null(((NDK_CQ *)(void *)b)->Dispatch);
    object_discard(&b->object);
    assert_int_equal(test_close(a, &closed), STATUS_SUCCESS);
}

static void without_memory_there_is_no_object(void **state)
{
    struct adapter *adapter = *state;

    assert_true(fail_set("memory:1"));
    assert_null(object_new(&test_class, &adapter->object, NULL));
}

/* ---- many at once ---- */

#define WALKERS 4
#define WALKS   300

struct walker {
    struct adapter *adapter;
    unsigned seed;
    atomic_uint expected;
    struct test_done done[WALKS * 3];
};

static struct walker walkers[WALKERS];

/* Parents, children and requests, closed in an order of the seed's choosing. */
static void walk(void *argument)
{
    struct walker *self = argument;
    unsigned used = 0;

    for (unsigned i = 0; i < WALKS; i++) {
        struct test_object *parent = test_object_new(&self->adapter->object, NULL);
        struct test_object *child = test_object_new(&parent->object, NULL);
        struct test_object *order[2] = {parent, child};
        struct test_done *done = &self->done[used];
        unsigned draw = (self->seed = self->seed * 1103515245u + 12345u) >> 16;
        struct request *request = request_new(&child->object, CALL_LISTEN, test_request_done, done);

        used += 3;
        atomic_fetch_add(&self->expected, 1);
        if (draw & 1) {
            order[0] = child;
            order[1] = parent;
        }
        if (draw & 2)
            request_complete(request, STATUS_SUCCESS);
        else
            child->cancelled = request;
        for (unsigned k = 0; k < 2; k++)
            if (test_close(order[k], &done[1 + k]) == STATUS_PENDING)
                atomic_fetch_add(&self->expected, 1);
    }
}

static void many_threads_close_at_once(void **state)
{
    struct os_thread *threads[WALKERS];
    char mode[32];

    assert_true(pend_set("random:3"));
    for (unsigned i = 0; i < WALKERS; i++) {
        memset(&walkers[i], 0, sizeof walkers[i]);
        walkers[i].adapter = *state;
        walkers[i].seed = i + 1;
    }
    for (unsigned i = 0; i < WALKERS; i++) {
        snprintf(mode, sizeof mode, "walker-%u", i);
        assert_int_equal(os_thread_start(&threads[i], mode, walk, &walkers[i]), 0);
    }
    for (unsigned i = 0; i < WALKERS; i++)
        os_thread_join(threads[i]);
    assert_true(pend_set("never"));
    /* the blocking close is the barrier: nothing may come after it */
    adapter_close(*state);
    for (unsigned i = 0; i < WALKERS; i++) {
        unsigned calls = 0;

        for (unsigned k = 0; k < WALKS * 3; k++) {
            assert_true(atomic_load(&walkers[i].done[k].calls) <= 1);
            assert_int_equal(atomic_load(&walkers[i].done[k].calls),
                             atomic_load(&walkers[i].done[k].returns));
            calls += atomic_load(&walkers[i].done[k].calls);
        }
        assert_int_equal(calls, atomic_load(&walkers[i].expected));
    }
    *state = test_adapter_with("shards=2");
}

#define T(name) cmocka_unit_test_setup_teardown(name, test_setup, test_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_close_without_references_is_done_inline),
        T(every_mode_keeps_the_contract_of_close),
        T(a_close_waits_for_the_return_of_a_request_callback),
        T(a_close_cancels_what_pends),
        T(a_dropped_request_calls_nobody),
        T(a_close_inside_its_own_callback_pends),
        T(other_references_hold_a_close_back),
        T(an_antecedent_can_be_closed_first),
        T(an_antecedent_waits_for_the_return_of_its_successors_completion),
        T(a_chain_closed_from_the_top_ends_from_the_bottom),
        T(the_last_successor_can_be_closed_under_a_lock),
        T(a_pending_create_holds_the_parent),
        T(a_pd_obeys_the_same_rules),
        T(a_pd_comes_through_its_callback_when_asked),
        T(what_is_not_there_says_so),
        T(a_reason_names_object_and_call),
        T(wrong_closes_are_findings),
        T(a_callback_that_changes_the_level_is_found),
        T(ids_and_versions_are_set_at_birth),
        T(without_memory_there_is_no_object),
        T(many_threads_close_at_once),
    };

    return cmocka_run_group_tests(tests, test_group_setup, NULL);
}
