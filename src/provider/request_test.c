// SPDX-License-Identifier: MIT
/* request_test.c - requests complete exactly once, where and when the mode says; strands. */
#include "provider/object_test.h"

static struct test_object *owner_new(void **state)
{
    struct adapter *adapter = *state;

    return test_object_new(&adapter->object, NULL);
}

static void owner_close(struct test_object *owner)
{
    struct test_done closed = {0};

    assert_true(pend_set("never"));
    if (test_close(owner, &closed) == STATUS_PENDING)
        test_wait_returns(&closed, 1);
}

/* ---- exactly once ---- */

static void a_request_completes_exactly_once(void **state)
{
    struct test_object *owner = owner_new(state);

    for (int i = 0; i < 100; i++) {
        struct test_done done = {0};
        struct request *request =
            request_new(&owner->object, CALL_CONNECT, test_request_done, &done);

        request_complete(request, STATUS_CONNECTION_REFUSED);
        test_wait_returns(&done, 1);
        if (i < 3)
            os_sleep_us(2000);
        assert_int_equal(atomic_load(&done.calls), 1);
        assert_int_equal(done.status, STATUS_CONNECTION_REFUSED);
        assert_int_equal(done.irql, DISPATCH_LEVEL);
    }
    owner_close(owner);
}

static void an_answer_is_inline_or_a_callback_never_both(void **state)
{
    static const char *const modes[] = {"never", "always", "early", "random:99"};
    static const NTSTATUS statuses[] = {STATUS_SUCCESS, STATUS_INVALID_PARAMETER,
                                        STATUS_BUFFER_OVERFLOW};
    struct test_object *owner = owner_new(state);
    unsigned inline_count = 0, callback_count = 0, early = 0;

    for (unsigned m = 0; m < 4; m++) {
        assert_true(pend_set(modes[m]));
        for (unsigned i = 0; i < 60; i++) {
            /* in mode early long enough that a call that did not wait would be back before it */
            struct test_done done = {.stay_us = m == 2 ? 2000 : 0};
            NTSTATUS expected = statuses[i % 3];
            NTSTATUS status =
                request_answer(&owner->object, CALL_RESIZE_CQ, test_request_done, &done, expected);

            if (status == STATUS_PENDING) {
                early += m == 2 && atomic_load(&done.returns) == 1;
                test_wait_returns(&done, 1);
                assert_int_equal(done.status, expected);
                callback_count += m == 3;
            } else {
                assert_int_equal(status, expected);
                assert_int_equal(atomic_load(&done.calls), 0);
                inline_count += m == 3;
            }
            if (m < 3)
                assert_int_equal(status == STATUS_PENDING, m != 0);
        }
    }
    assert_true(inline_count > 5 && callback_count > 20);
    assert_in_range(early, 30, 60); /* all, unless the machine is busy for 50 ms at a time */
    owner_close(owner);
}

static void a_create_writes_its_out_parameter_only_inline(void **state)
{
    static const char *const modes[] = {"never", "always", "early"};
    struct test_object *owner = owner_new(state);

    for (unsigned m = 0; m < 3; m++) {
        struct test_object *child = test_object_new(&owner->object, NULL);
        struct test_done done = {0}, closed = {0};
        int untouched;
        void *out = &untouched;
        NTSTATUS status;

        assert_true(pend_set(modes[m]));
        status = create_answer(&owner->object, CALL_CREATE_CQ, test_create_done, &done,
                               STATUS_SUCCESS, &child->object, &out);
        if (m == 0) {
            assert_int_equal(status, STATUS_SUCCESS);
            assert_ptr_equal(out, child);
        } else {
            assert_int_equal(status, STATUS_PENDING);
            test_wait_returns(&done, 1);
            assert_ptr_equal(out, &untouched);
            assert_ptr_equal(done.object, &child->object.header);
            assert_int_equal(done.status, STATUS_SUCCESS);
        }
        assert_true(pend_set("never"));
        assert_int_equal(test_close(child, &closed), STATUS_SUCCESS);

        out = &untouched;
        assert_true(pend_set(modes[m]));
        done = (struct test_done){.object = &owner->object.header};
        status = create_answer(&owner->object, CALL_CREATE_CQ, test_create_done, &done,
                               STATUS_INSUFFICIENT_RESOURCES, NULL, &out);
        if (m != 0) {
            assert_int_equal(status, STATUS_PENDING);
            test_wait_returns(&done, 1);
            assert_null(done.object);
            status = done.status;
        }
        assert_int_equal(status, STATUS_INSUFFICIENT_RESOURCES);
        assert_ptr_equal(out, &untouched);
    }
    owner_close(owner);
}

/* ---- the reference on the owner ---- */

static void the_owners_reference_falls_after_the_callback_returned(void **state)
{
    struct test_object *owner = owner_new(state);
    struct test_done done = {.begin = "request", .end = "returned", .stay_us = 20000};
    struct test_done closed = {.begin = "closed"};

    assert_true(pend_set("always"));
    assert_int_equal(
        request_answer(&owner->object, CALL_LISTEN, test_request_done, &done, STATUS_SUCCESS),
        STATUS_PENDING);
    assert_int_equal(test_close(owner, &closed), STATUS_PENDING);
    test_expect("request returned closed ");
    test_wait_returns(&closed, 1);
}

/* The documented scenario: the call fails at once, and its completion closes the object before the
 * call has returned. */
static void an_object_may_be_closed_in_its_early_completion(void **state)
{
    for (int i = 0; i < 30; i++) {
        struct test_object *owner = owner_new(state);
        struct test_done closed = {.begin = "closed"};
        struct test_done done = {
            .begin = "request", .end = "returned", .close = &owner->object, .closed = &closed};

        test_clear();
        assert_true(pend_set(i % 2 ? "early" : "always"));
        assert_int_equal(request_answer(&owner->object, CALL_CONNECT, test_request_done, &done,
                                        STATUS_CONNECTION_REFUSED),
                         STATUS_PENDING);
        test_expect("request returned closed ");
        test_wait_returns(&closed, 1);
        assert_int_equal(done.close_status, STATUS_PENDING);
    }
}

/* ---- early ---- */

struct nested {
    struct object *owner;
    struct test_done inner;
    struct engine_shard *shard;
    bool ran_before_return;
    uint64_t took_us;
};

/* A consumer that calls from inside a callback. */
static void call_again(PVOID context, NTSTATUS status)
{
    struct nested *nested = context;
    uint64_t begin = os_now_us();

    (void)status;
    nested->shard = engine_self();
    request_answer(nested->owner, CALL_LISTEN, test_request_done, &nested->inner, STATUS_SUCCESS);
    nested->ran_before_return = atomic_load(&nested->inner.returns) == 1;
    nested->took_us = os_now_us() - begin;
    test_note("outer");
}

/* Calls again from inside a callback until the answer came as wanted; a busy machine may need more
 * than one try. */
static bool nested_gives(struct test_object *owner, bool before_return, struct nested *nested)
{
    bool as_wanted = false;

    for (int i = 0; i < 10 && !as_wanted; i++) {
        *nested = (struct nested){.owner = &owner->object};
        test_clear();
        assert_true(pend_set("early"));
        request_complete(request_new(&owner->object, CALL_CONNECT, call_again, nested), 0);
        test_expect("outer ");
        test_wait_returns(&nested->inner, 1);
        as_wanted = nested->ran_before_return == before_return && nested->took_us < 45000;
    }
    return as_wanted;
}

static void early_runs_on_another_shard_than_the_callers(void **state)
{
    struct test_object *owner = owner_new(state);
    struct nested nested;

    assert_true(nested_gives(owner, true, &nested));
    assert_non_null(nested.inner.shard);
    assert_ptr_not_equal(nested.inner.shard, nested.shard);
    owner_close(owner);
}

static void early_waits_50_ms_and_no_longer(void **state)
{
    struct test_object *owner = owner_new(state);
    os_mutex lock = OS_MUTEX_INITIALIZER;
    struct test_done done = {.take = &lock};
    uint64_t begin;

    assert_true(pend_set("early"));
    os_mutex_lock(&lock); /* the callback cannot return while the call runs */
    begin = os_now_us();
    assert_int_equal(
        request_answer(&owner->object, CALL_LISTEN, test_request_done, &done, STATUS_SUCCESS),
        STATUS_PENDING);
    assert_in_range(os_now_us() - begin, 45000, 2000000);
    assert_int_equal(atomic_load(&done.returns), 0);
    os_mutex_unlock(&lock);
    test_wait_returns(&done, 1);
    owner_close(owner);
}

static void early_does_not_wait_where_it_could_not_end(void **state)
{
    struct test_object *owner = owner_new(state);
    struct nested nested;

    assert_non_null(object_strand(&owner->object));
    /* it stands behind this very callback in the strand */
    assert_true(nested_gives(owner, false, &nested));
    owner_close(owner);
}

static void one_shard_alone_is_no_deadlock(void **state)
{
    struct test_object *owner;
    struct nested nested;

    adapter_close(*state);
    *state = test_adapter_with("shards=1");
    assert_int_equal(engine_shard_count(), 1);
    owner = owner_new(state);
    assert_true(nested_gives(owner, false, &nested));
    owner_close(owner);
}

/* ---- without memory, without completion ---- */

static void without_memory_the_answer_is_inline(void **state)
{
    static const char *const modes[] = {"always", "early"};
    struct test_object *owner = owner_new(state);

    for (unsigned m = 0; m < 2; m++) {
        struct test_object *child = test_object_new(&owner->object, NULL);
        struct test_done done = {0}, closed = {0};
        void *out = NULL;

        assert_true(pend_set(modes[m]));
        assert_true(fail_set("memory:1:repeat"));
        assert_null(request_new(&owner->object, CALL_LISTEN, test_request_done, &done));
        assert_int_equal(request_answer(&owner->object, CALL_LISTEN, test_request_done, &done,
                                        STATUS_INVALID_ADDRESS),
                         STATUS_INVALID_ADDRESS);
        assert_int_equal(create_answer(&owner->object, CALL_CREATE_CQ, test_create_done, &done,
                                       STATUS_SUCCESS, &child->object, &out),
                         STATUS_SUCCESS);
        assert_ptr_equal(out, child);
        assert_int_equal(atomic_load(&done.calls), 0);
        /* a close needs no memory, except to wait in mode early */
        assert_int_equal(test_close(child, &closed), STATUS_PENDING);
        test_wait_returns(&closed, 1);
        assert_true(fail_set(NULL));
    }
    /* memory for the request but not for the wait: as in mode always */
    assert_true(fail_set("memory:2"));
    {
        struct test_done done = {0};

        assert_int_equal(
            request_answer(&owner->object, CALL_LISTEN, test_request_done, &done, STATUS_SUCCESS),
            STATUS_PENDING);
        test_wait_returns(&done, 1);
    }
    owner_close(owner);
}

static void without_completion_the_answer_is_inline(void **state)
{
    struct test_object *owner = owner_new(state);

    assert_true(pend_set("always"));
    assert_int_equal(request_answer(&owner->object, CALL_BUILD_LAM, NULL, NULL, STATUS_SUCCESS),
                     STATUS_SUCCESS);
    owner_close(owner);
}

/* ---- strands ---- */

#define ITEMS 400

struct numbered {
    struct engine_item item;
    struct object *owner;
    unsigned number;
};

static struct numbered items[ITEMS];
static atomic_uint running_now, ran;
static atomic_bool disorder;

static void numbered_run(struct engine_item *item)
{
    struct numbered *self = CONTAINING_RECORD(item, struct numbered, item);

    if (atomic_fetch_add(&running_now, 1) != 0)
        atomic_store(&disorder, true);
    if (atomic_fetch_add(&ran, 1) != self->number)
        atomic_store(&disorder, true);
    if (self->number % 64 == 0)
        os_sleep_us(200);
    atomic_fetch_sub(&running_now, 1);
    object_unref(self->owner);
}

static void a_strand_keeps_the_order_and_never_overlaps(void **state)
{
    struct test_object *owner = owner_new(state);
    struct strand *strand = object_strand(&owner->object);
    struct test_done closed = {0};

    atomic_store(&ran, 0);
    for (unsigned i = 0; i < ITEMS; i++) {
        items[i] =
            (struct numbered){.item.run = numbered_run, .owner = &owner->object, .number = i};
        object_ref(&owner->object);
        strand_push_at(strand, &items[i].item, engine_shard_at(i % 2));
    }
    if (test_close(owner, &closed) == STATUS_PENDING)
        test_wait_returns(&closed, 1);
    assert_int_equal(atomic_load(&ran), ITEMS);
    assert_false(atomic_load(&disorder));
}

static void requests_of_a_stranded_object_come_in_order(void **state)
{
    struct test_object *owner = owner_new(state);
    struct test_done first = {.begin = "first", .end = "1", .stay_us = 20000};
    struct test_done second = {.begin = "second", .end = "2"}, closed = {.begin = "closed"};

    assert_non_null(object_strand(&owner->object));
    assert_ptr_equal(object_strand(&owner->object), owner->object.strand);
    request_complete(request_new(&owner->object, CALL_ACCEPT, test_request_done, &first), 0);
    assert_true(pend_set("early"));
    assert_int_equal(
        request_answer(&owner->object, CALL_DISCONNECT, test_request_done, &second, STATUS_SUCCESS),
        STATUS_PENDING);
    assert_true(pend_set("never"));
    test_wait_returns(&second, 1);
    if (test_close(owner, &closed) == STATUS_PENDING) {
        test_wait_returns(&closed, 1);
        test_expect("first 1 second 2 closed ");
    } else {
        test_expect("first 1 second 2 ");
    }
}

/* The last item drops the last reference: the strand ends with its object, on that very item. */
static void a_strand_may_end_with_its_last_item(void **state)
{
    for (int i = 0; i < 200; i++) {
        struct test_object *owner = owner_new(state);
        struct test_done done = {0}, closed = {0};
        struct request *request;

        assert_non_null(object_strand(&owner->object));
        request = request_new(&owner->object, CALL_ACCEPT, test_request_done, &done);
        assert_int_equal(test_close(owner, &closed), STATUS_PENDING);
        request_complete(request, STATUS_CANCELLED);
        test_wait_returns(&closed, 1);
        assert_int_equal(atomic_load(&done.returns), 1);
    }
}

#define T(name) cmocka_unit_test_setup_teardown(name, test_setup, test_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_request_completes_exactly_once),
        T(an_answer_is_inline_or_a_callback_never_both),
        T(a_create_writes_its_out_parameter_only_inline),
        T(the_owners_reference_falls_after_the_callback_returned),
        T(an_object_may_be_closed_in_its_early_completion),
        T(early_runs_on_another_shard_than_the_callers),
        T(early_waits_50_ms_and_no_longer),
        T(early_does_not_wait_where_it_could_not_end),
        T(one_shard_alone_is_no_deadlock),
        T(without_memory_the_answer_is_inline),
        T(without_completion_the_answer_is_inline),
        T(a_strand_keeps_the_order_and_never_overlaps),
        T(requests_of_a_stranded_object_come_in_order),
        T(a_strand_may_end_with_its_last_item),
    };

    return cmocka_run_group_tests(tests, test_group_setup, NULL);
}
