// SPDX-License-Identifier: MIT
/*
 * Every end of a memory window and what it does to the MR: invalidation, closes in each order, the
 * end of the connection; then many threads at once.
 */
#include "provider/mw_test.h"

#include "os/os_testing.h"

/* ---- the end, and the MR -------------------------------------------------------------------- */

static void the_mr_is_busy(void **state)
{
    NDK_MW *a = mw_open(), *b = mw_open();
    struct mw_bind *posted;

    (void)state;
    for (size_t i = 0; i < MODES; i++) {
        uint32_t token;

        assert_true(pend_set(modes[i]));
        /* From the post of the bind on ... */
        assert_int_equal(prepare(mr, a, first, 10, BOTH, &posted), STATUS_SUCCESS);
        assert_int_equal(release(mr), STATUS_DEVICE_BUSY);
        assert_reason(&mr->Header, "windows are bound to it, or about to be (have 1, need 0)");
        mw_bind_discard(posted);
        token = bind(mr, a, first, 10, BOTH);
        bind(mr, b, first, 10, BOTH);
        assert_int_equal(release(mr), STATUS_DEVICE_BUSY);
        assert_reason(&mr->Header, "(have 2, need 0)");
        /* ... the registration is untouched ... */
        assert_int_equal(ask(local_of(mr), first, SIZE, ACCESS_LOCAL_WRITE), ACCESS_OK);
        assert_int_equal(reach(token, first, 10, ACCESS_REMOTE_WRITE), ACCESS_OK);
        invalidate(a);
        assert_int_equal(release(mr), STATUS_DEVICE_BUSY);
        /* ... until the last window has ended. */
        close_object(&b->Header);
        assert_int_equal(release(mr), STATUS_SUCCESS);
        assert_int_equal(enrol(mr, mdl, SIZE, WRITABLE), STATUS_SUCCESS);
        b = mw_open();
    }
    close_object(&a->Header);
    close_object(&b->Header);
}

static void an_invalidation_waits_for_accesses(void **state)
{
    NDK_MW *mw = mw_open();
    uint32_t token = bind(mr, mw, first, 10, BOTH);
    atomic_uint calls = 0;
    struct mw_bind *early;
    struct access access;

    (void)state;
    assert_true(mem_hold(tokens(), token, &access));
    assert_int_equal(end_of(mw, &here, 0, count_call, &calls), STATUS_PENDING);
    assert_int_equal(reach(token, first, 1, ACCESS_REMOTE_READ), ACCESS_INVALID_TOKEN);
    assert_int_equal(end_of(mw, &here, 0, must_not_be_called, NULL), STATUS_INVALID_DEVICE_REQUEST);
    assert_int_equal(prepare(mr, mw, first, 10, BOTH, &early), STATUS_SUCCESS);
    assert_int_equal(mw_bind_execute(early), STATUS_INVALID_DEVICE_REQUEST);
    assert_int_equal(release(mr), STATUS_DEVICE_BUSY);
    assert_int_equal(atomic_load(&calls), 0);
    mem_end(&access);
    assert_int_equal(atomic_load(&calls), 1);
    assert_int_equal(release(mr), STATUS_SUCCESS); /* before he was told, in fact */
    assert_int_equal(enrol(mr, mdl, SIZE, WRITABLE), STATUS_SUCCESS);
    /* A close, and the MR's, during a pending invalidation. */
    token = bind(mr, mw, first, 10, BOTH);
    assert_true(mem_hold(tokens(), token, &access));
    assert_int_equal(end_of(mw, &here, 0, count_call, &calls), STATUS_PENDING);
    {
        struct outcome window = {0}, region = {0};

        assert_int_equal(mw->Dispatch->NdkCloseMw(&mw->Header, outcome_close, &window),
                         STATUS_PENDING);
        assert_int_equal(mr->Dispatch->NdkCloseMr(&mr->Header, outcome_close, &region),
                         STATUS_PENDING);
        mr = NULL;
        os_sleep_us(2000);
        assert_false(outcome_came(&window));
        mem_end(&access);
        assert_int_equal(atomic_load(&calls), 2);
        outcome_of(&window, STATUS_PENDING);
        outcome_of(&region, STATUS_PENDING);
    }
}

static void a_close_waits_for_accesses(void **state)
{
    NDK_MW *mw = mw_open();
    uint32_t token = bind(mr, mw, first, 10, BOTH);
    struct outcome closed = {0};
    struct access access;

    (void)state;
    assert_true(mem_hold(tokens(), token, &access));
    assert_int_equal(mw->Dispatch->NdkCloseMw(&mw->Header, outcome_close, &closed), STATUS_PENDING);
    assert_int_equal(reach(token, first, 1, ACCESS_REMOTE_READ), ACCESS_INVALID_TOKEN);
    assert_int_equal(release(mr), STATUS_DEVICE_BUSY);
    os_sleep_us(2000);
    assert_false(outcome_came(&closed));
    mem_end(&access);
    outcome_of(&closed, STATUS_PENDING);
    assert_int_equal(release(mr), STATUS_SUCCESS);
}

/* The MR's close waits for its windows; what they show stays until then, its own tokens do not. */
static void the_close_of_the_mr_first(void **state)
{
    struct outcome closed = {0}, window = {0};
    NDK_MW *a = mw_open(), *b = mw_open(), *c = mw_open();
    uint32_t ta = bind(mr, a, first, 10, BOTH), local = local_of(mr);
    struct mw_bind *late;

    (void)state;
    bind(mr, b, first, 10, BOTH);
    assert_int_equal(prepare(mr, c, first, 10, BOTH, &late), STATUS_SUCCESS);
    memset(first, 0x77, 10);
    assert_int_equal(mr->Dispatch->NdkCloseMr(&mr->Header, outcome_close, &closed), STATUS_PENDING);
    assert_int_equal(ask(local, first, 1, ACCESS_LOCAL_READ), ACCESS_INVALID_TOKEN);
    {
        struct access access;
        struct os_iov iov;

        assert_int_equal(mem_begin(tokens(), ta, pd_from(the_pd), &here, (uintptr_t)first, 10,
                                   ACCESS_REMOTE_WRITE, &access),
                         ACCESS_OK);
        /* By way of the page list, as if the pages did not follow each other. */
        ((struct mem_region *)access.region)->flat = NULL;
        assert_int_equal(mem_pieces(&access, (uintptr_t)first, 10, &iov, 1), 1);
        assert_ptr_equal(iov.base, first);
        mem_end(&access);
    }
    assert_int_equal(mw_bind_execute(late), STATUS_INVALID_DEVICE_REQUEST); /* none from now on */
    invalidate(a);
    assert_int_equal(b->Dispatch->NdkCloseMw(&b->Header, outcome_close, &window), STATUS_SUCCESS);
    outcome_of(&closed, STATUS_PENDING);
    mr = NULL;
    close_object(&a->Header);
    close_object(&c->Header);
}

struct order {
    atomic_uint inside, wrong;
    struct outcome mr;
};

/* The close completion of a window: the MR's must not come while it runs. */
static void window_closed(void *context)
{
    struct order *order = context;

    atomic_fetch_add(&order->inside, 1);
    os_sleep_us(20000);
    if (outcome_came(&order->mr))
        atomic_fetch_add(&order->wrong, 1);
    atomic_fetch_add(&order->inside, 1);
}

static void the_mr_outlives_the_close_completion_of_its_window(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * MODES; i++) {
        struct order order = {0};
        NDK_MW *mw = mw_open();
        struct access access = {0};
        bool held = i < MODES; /* by an access, so that the end comes from elsewhere */
        uint32_t token = bind(mr, mw, first, 10, BOTH);
        NTSTATUS status;

        assert_true(pend_set(modes[i % MODES]));
        if (held)
            assert_true(mem_hold(tokens(), token, &access));
        status = mr->Dispatch->NdkCloseMr(&mr->Header, outcome_close, &order.mr);
        assert_int_equal(status, STATUS_PENDING);
        status = mw->Dispatch->NdkCloseMw(&mw->Header, window_closed, &order);
        if (held)
            assert_int_equal(status, STATUS_PENDING);
        mem_end(&access);
        outcome_of(&order.mr, STATUS_PENDING);
        assert_int_equal(atomic_load(&order.inside), status == STATUS_PENDING ? 2 : 0);
        assert_int_equal(atomic_load(&order.wrong), 0);
        assert_true(pend_set("never"));
        mr = mr_open(FALSE);
        assert_int_equal(enrol(mr, mdl, SIZE, WRITABLE), STATUS_SUCCESS);
    }
}

static void a_close_with_a_bind_posted(void **state)
{
    struct outcome closed = {0};
    NDK_MW *mw = mw_open();
    struct mw_bind *posted;
    struct access access;
    uint32_t token;

    (void)state;
    assert_int_equal(prepare(mr, mw, first, 10, BOTH, &posted), STATUS_SUCCESS);
    token = mw->Dispatch->NdkGetRemoteTokenFromMw(mw);
    assert_int_equal(mw->Dispatch->NdkCloseMw(&mw->Header, outcome_close, &closed), STATUS_PENDING);
    os_sleep_us(1000);
    assert_false(outcome_came(&closed));
    assert_int_equal(mw_bind_execute(posted), STATUS_INVALID_DEVICE_REQUEST);
    outcome_of(&closed, STATUS_PENDING);
    assert_false(mem_hold(tokens(), token, &access));
    assert_int_equal(release(mr), STATUS_SUCCESS);
}

/* The connection is over: its windows have ended, those of others have not. */
static void the_end_of_the_connection(void **state)
{
    NDK_MW *mw[3] = {mw_open(), mw_open(), mw_open()}, *other = mw_open();
    struct access access;
    uint32_t token, mine = 0;

    (void)state;
    for (unsigned i = 0; i < 3; i++)
        mine = bind(mr, mw[i], first, 10, BOTH);
    invalidate(mw[1]); /* from the middle of the list */
    token = bind_over(&elsewhere, mr, other, first, 10, BOTH);
    assert_true(mem_hold(tokens(), mine, &access)); /* somebody is just being refused */
    mw_list_end(&here);
    assert_null(here.first);
    assert_int_equal(reach(mine, first, 1, ACCESS_REMOTE_READ), ACCESS_INVALID_TOKEN);
    assert_int_equal(reach_over(&elsewhere, token, first, 1, ACCESS_REMOTE_READ), ACCESS_OK);
    mem_end(&access);
    mw_list_end(&elsewhere);
    assert_int_equal(release(mr), STATUS_SUCCESS);
    assert_int_equal(enrol(mr, mdl, SIZE, WRITABLE), STATUS_SUCCESS);
    for (unsigned i = 0; i < 3; i++) { /* and may be bound again */
        bind_over(&elsewhere, mr, mw[i], first, 10, BOTH);
        close_object(&mw[i]->Header);
    }
    close_object(&other->Header);
}

/* ---- many threads --------------------------------------------------------------------------- */

#define WINDOWS 4u

/* Bound again and again by one thread, ended by all; whoever was told of an end poisons the memory,
 * and it stays so. */
struct race {
    NDK_MW *mw[WINDOWS];
    _Atomic uint32_t token[WINDOWS];
    atomic_bool stop;
    atomic_ulong accesses, ends;
};

static void writer(void *argument)
{
    struct race *race = argument;

    for (unsigned i = 0; !atomic_load(&race->stop); i = (i + 1) % WINDOWS) {
        uint8_t *at = first + 64 * i;
        struct access access;
        struct os_iov iov;

        if (mem_begin(tokens(), atomic_load(&race->token[i]), pd_from(the_pd), &here, (uintptr_t)at,
                      64, ACCESS_REMOTE_WRITE, &access) != ACCESS_OK)
            continue;
        if (mem_pieces(&access, (uintptr_t)at, 64, &iov, 1) == 1)
            for (unsigned n = 0; n < 64; n++)
                __atomic_store_n((uint8_t *)iov.base + n, 1, __ATOMIC_RELAXED);
        mem_end(&access);
        atomic_fetch_add(&race->accesses, 1);
    }
}

/* The peer's Sends with Invalidate, and the end of the connection. */
static void ender(void *argument)
{
    struct race *race = argument;

    for (unsigned i = 0; !atomic_load(&race->stop); i++) {
        uint32_t token = atomic_load(&race->token[i % WINDOWS]);
        struct object *found;

        if (i % 50000 == 49999) {
            mw_list_end(&here);
            continue;
        }
        found = invalidate_find(tokens(), token, pd_from(the_pd), &here, MEM_BY_PEER);
        if (!found)
            continue;
        if (found->class->invalidate(found, &here, token, NULL, NULL) !=
            STATUS_INVALID_DEVICE_REQUEST)
            atomic_fetch_add(&race->ends, 1);
        object_unref(found);
    }
}

static void assert_poison(unsigned i)
{
    uint8_t *at = first + 64 * i;

    memset(at, 0xdd, 64);
    for (unsigned n = 0; n < 30; n++)
        os_cpu_relax();
    for (unsigned n = 0; n < 64; n++)
        assert_int_equal(at[n], 0xdd);
}

/* For what other threads do; a breach must not make it last for ever. */
#define spin_while(condition)                                                                      \
    do {                                                                                           \
        uint64_t spin_end_ = os_now_us() + 10000000;                                               \
        while (condition) {                                                                        \
            if (os_now_us() > spin_end_)                                                           \
                fail_msg("waited in vain");                                                        \
            os_cpu_relax();                                                                        \
        }                                                                                          \
    } while (0)

static void race_run(struct race *race, bool others_end, void (*turn)(struct race *, unsigned),
                     unsigned turns)
{
    struct os_thread *threads[4];
    unsigned count = others_end ? 4 : 2;
    uint64_t begin = os_now_us();

    for (unsigned i = 0; i < WINDOWS; i++)
        race->mw[i] = mw_open();
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(os_thread_start(&threads[i], "window", i < 2 ? writer : ender, race), 0);
    for (unsigned i = 0; test_goes_on(i, turns, begin); i++)
        turn(race, i);
    atomic_store(&race->stop, true);
    for (unsigned i = 0; i < count; i++)
        os_thread_join(threads[i]);
    for (unsigned i = 0; i < WINDOWS; i++)
        close_object(&race->mw[i]->Header);
    print_message("%lu accesses, %lu ends by others\n", atomic_load(&race->accesses),
                  atomic_load(&race->ends));
}

/* One window: bound, met, ended by invalidation or close. */
static void turn_alone(struct race *race, unsigned n)
{
    unsigned i = n % WINDOWS;
    unsigned long before = atomic_load(&race->accesses);
    atomic_uint calls = 0;

    atomic_store(&race->token[i], bind(mr, race->mw[i], first + 64 * i, 64, BOTH));
    spin_while(atomic_load(&race->accesses) == before);
    if (n / WINDOWS % 2) {
        close_object(&race->mw[i]->Header);
        race->mw[i] = mw_open();
    } else if (end_of(race->mw[i], &here, 0, count_call, &calls) == STATUS_PENDING) {
        spin_while(atomic_load(&calls) == 0);
    }
    assert_poison(i);
    assert_int_equal(release(mr), STATUS_SUCCESS);
    assert_int_equal(enrol(mr, mdl, SIZE, WRITABLE), STATUS_SUCCESS);
}

static void the_end_of_a_window_is_the_end(void **state)
{
    static struct race race;

    (void)state;
    memset(&race, 0, sizeof race);
    race_run(&race, false, turn_alone, 2000);
}

/* Four windows with everybody at them: one end each, nobody meets a dead object, and in the end
 * nothing is counted at the MR. */
static void turn_among_others(struct race *race, unsigned n)
{
    unsigned i = n % WINDOWS;
    struct mw_bind *bind;

    assert_int_equal(prepare(mr, race->mw[i], first + 64 * i, 64, BOTH, &bind), STATUS_SUCCESS);
    atomic_store(&race->token[i], race->mw[i]->Dispatch->NdkGetRemoteTokenFromMw(race->mw[i]));
    if (n % 7 == 6)
        mw_bind_discard(bind);
    else
        mw_bind_execute(bind); /* it may still be bound */
    if (n % 4 == 0)            /* until somebody has ended it */
        spin_while(reach(atomic_load(&race->token[i]), first + 64 * i, 1, 0) == ACCESS_OK);
    for (unsigned k = 0; k < n % 40; k++)
        os_cpu_relax();
    if (n % 5 == 4) {
        close_object(&race->mw[i]->Header);
        race->mw[i] = mw_open();
    }
}

static void all_ends_at_once(void **state)
{
    static struct race race;

    (void)state;
    memset(&race, 0, sizeof race);
    race_run(&race, true, turn_among_others, 6000);
    assert_int_equal(release(mr), STATUS_SUCCESS);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)
    const struct CMUnitTest tests[] = {
        TEST(the_mr_is_busy),
        TEST(an_invalidation_waits_for_accesses),
        TEST(a_close_waits_for_accesses),
        TEST(the_close_of_the_mr_first),
        TEST(the_mr_outlives_the_close_completion_of_its_window),
        TEST(a_close_with_a_bind_posted),
        TEST(the_end_of_the_connection),
        TEST(the_end_of_a_window_is_the_end),
        TEST(all_ends_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
