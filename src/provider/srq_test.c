// SPDX-License-Identifier: MIT
/*
 * The shared receive queue between a poster and receive owners of the test's own: depth, order, who
 * waits and whom a post wakes, and many owners at once. The connections are real ones without a
 * socket; only their receive directions are used, so a wake takes the way it takes in earnest.
 */
#include "object_test.h"

#include "conn/conn_internal.h"
#include "provider/srq.h"

#define ROOM 16u /* SGEs of a receive */

/* One connection's receive owner. */
struct owner {
    struct conn *conn;
    struct srq_waiter waiter;
    struct conn_queue into;
    atomic_uint looks; /* how often its direction worked */
    /* the crowd */
    struct crowd *crowd;
    atomic_uint wanted, served; /* messages; served by the owner alone */
    bool holding, over;
};

static const struct conn_ops no_ops;
static struct conn_counters counters;

static NDK_PD *pd;
static struct srq *srq;

static NDK_SRQ *face(void)
{
    return (NDK_SRQ *)(void *)srq;
}

static void open_srq(void **state, ULONG depth, ULONG sge)
{
    NDK_ADAPTER *ndk = (NDK_ADAPTER *)*state;
    NDK_SRQ *out = NULL;

    assert_int_equal(ndk->Dispatch->NdkCreatePd(ndk, test_create_done, NULL, &pd), STATUS_SUCCESS);
    assert_int_equal(pd->Dispatch->NdkCreateSrq(pd, depth, sge, 0, NULL, NULL, NULL,
                                                test_create_done, NULL, &out),
                     STATUS_SUCCESS);
    assert_int_equal(out->Header.ObjectType, NdkObjectTypeSrq);
    srq = srq_from(out);
}

static void close_srq(void)
{
    struct test_done done = {0};

    assert_int_equal(face()->Dispatch->NdkCloseSrq(&face()->Header, test_close_done, &done),
                     STATUS_SUCCESS);
    assert_int_equal(pd->Dispatch->NdkClosePd(&pd->Header, test_close_done, &done), STATUS_SUCCESS);
}

static NTSTATUS post(uintptr_t context)
{
    NDK_SGE sge = {.Length = (ULONG)context, .MemoryRegionToken = (UINT32)context};

    sge.VirtualAddress = (PVOID)(context * 4096);
    return srq_dispatch.NdkSrqReceive(face(), (PVOID)context, &sge, 1);
}

static bool owner_work(struct conn *conn)
{
    struct owner *owner = conn->up;

    atomic_fetch_add(&owner->looks, 1);
    return false;
}

static void owner_end(struct conn *conn)
{
    srq_leave(srq, &((struct owner *)conn->up)->waiter);
}

static void owner_open(struct owner *owner, unsigned shard)
{
    memset(owner, 0, sizeof *owner);
    owner->conn = conn_new(&no_ops, owner, &srq->object.adapter->options, &counters);
    assert_non_null(owner->conn);
    conn_dir_init(&owner->conn->rx.dir, owner->conn, owner_work, owner_end);
    atomic_store(&owner->conn->home, engine_shard_at(shard));
    conn_queue_init(&owner->into, 1, srq->max_sge, 0);
    assert_true(conn_queue_reserve(&owner->into));
}

static void owner_close(struct owner *owner)
{
    assert_int_equal(owner->waiter.state, SRQ_ELSEWHERE);
    conn_unref(owner->conn);
    conn_queue_destroy(&owner->into);
}

static bool take(struct owner *owner, bool wait)
{
    return srq_take(srq, &owner->waiter, owner->conn, &owner->into, wait);
}

/* The receive that was moved is used up. */
static uintptr_t use(struct owner *owner)
{
    struct conn_wr *wr = conn_queue_peek(&owner->into);
    uintptr_t context;

    assert_non_null(wr);
    context = (uintptr_t)wr->context;
    conn_queue_advance(&owner->into);
    conn_queue_release_head(&owner->into);
    return context;
}

static void expect_taken(struct owner *owner, uintptr_t context)
{
    assert_true(take(owner, false));
    assert_int_equal(use(owner), context);
}

static atomic_uint barriers;

static void barrier_run(struct engine_work *work)
{
    (void)work;
    atomic_fetch_add(&barriers, 1);
}

#define wait_for(condition)                                                                        \
    do {                                                                                           \
        uint64_t wait_end_ = os_now_us() + 3 * TEST_WAIT_US;                                       \
        while (!(condition) && os_now_us() < wait_end_)                                            \
            os_sleep_us(50);                                                                       \
        assert_true(condition);                                                                    \
    } while (0)

/* Looks so far: what was pushed to the run lists before this has run. */
static unsigned looks(struct owner *owner)
{
    struct engine_work work = {.run = barrier_run};

    atomic_store(&barriers, 0);
    engine_run(atomic_load(&owner->conn->home), &work);
    wait_for(atomic_load(&barriers) == 1);
    return atomic_load(&owner->looks);
}

/* ---- the queue ------------------------------------------------------------------------------ */

static void the_oldest_is_taken_as_it_was_posted(void **state)
{
    struct owner a, b;
    NDK_SGE sges[ROOM];

    open_srq(state, 64, ROOM);
    owner_open(&a, 0);
    owner_open(&b, 1);
    assert_false(take(&a, false));
    for (unsigned count = 0; count <= ROOM; count++) {
        for (unsigned i = 0; i < count; i++) {
            sges[i].VirtualAddress = (PVOID)(uintptr_t)(count * 100000u + i);
            sges[i].Length = count * 7 + i;
            sges[i].MemoryRegionToken = count * 1000 + i;
        }
        assert_int_equal(
            srq_dispatch.NdkSrqReceive(face(), (PVOID)(uintptr_t)(count + 1), sges, count),
            STATUS_SUCCESS);
    }
    memset(sges, 0xee, sizeof sges);
    for (unsigned count = 0; count <= ROOM; count++) {
        struct owner *owner = count % 3 ? &a : &b;
        struct conn_wr *wr;
        ULONG length = 0;

        assert_true(take(owner, count % 2 == 0));
        wr = conn_queue_peek(&owner->into);
        assert_int_equal(wr->sge_count, count);
        assert_int_equal(wr->op, CONN_OP_RECEIVE);
        for (unsigned i = 0; i < count; i++) {
            assert_int_equal(wr->sge[i].address, count * 100000u + i);
            assert_int_equal(wr->sge[i].length, count * 7 + i);
            assert_int_equal(wr->sge[i].token, count * 1000 + i);
            length += wr->sge[i].length;
        }
        assert_int_equal(wr->length, length);
        assert_int_equal(use(owner), count + 1);
    }
    assert_false(take(&a, false));
    assert_int_equal(looks(&a) + looks(&b), 0);
    owner_close(&a);
    owner_close(&b);
    close_srq();
}

static void the_depth_counts_what_was_not_taken(void **state)
{
    static const ULONG depths[] = {1, 2, 15, 16, 17, 4096};

    for (size_t d = 0; d < sizeof depths / sizeof depths[0]; d++) {
        uintptr_t posted = 0, taken = 0;
        struct owner a;
        char text[256];

        open_srq(state, depths[d], 1);
        owner_open(&a, 0);
        while (posted < depths[d])
            assert_int_equal(post(++posted), STATUS_SUCCESS);
        for (unsigned turn = 0; turn < 100; turn++) {
            assert_int_equal(post(posted + 1), STATUS_NO_MORE_ENTRIES);
            expect_taken(&a, ++taken);
            assert_int_equal(post(++posted), STATUS_SUCCESS);
        }
        assert_int_equal(post(posted + 1), STATUS_NO_MORE_ENTRIES);
        assert_true(object_reason(&srq->object, text, sizeof text));
        assert_non_null(strstr(text, ": NdkSrqReceive: the shared receive queue is full (depth "));
        while (taken < posted)
            expect_taken(&a, ++taken);
        assert_false(take(&a, false));
        owner_close(&a);
        close_srq();
    }
}

static void a_post_that_fails_posts_nothing(void **state)
{
    NDK_SGE sges[3] = {{.Length = 0x30000000}, {.Length = 0x10000000}, {.Length = 1}};
    struct owner a;
    char text[256];

    open_srq(state, 1, 2);
    owner_open(&a, 0);
    assert_int_equal(srq_dispatch.NdkSrqReceive(face(), NULL, sges, 3), STATUS_DATA_OVERRUN);
    assert_true(object_reason(&srq->object, text, sizeof text));
    assert_non_null(strstr(text, ": NdkSrqReceive: nSge (have 3, need <= 2)"));
    assert_int_equal(srq_dispatch.NdkSrqReceive(face(), NULL, NULL, 1), STATUS_INVALID_PARAMETER);
    sges[0].Length++;
    assert_int_equal(srq_dispatch.NdkSrqReceive(face(), NULL, sges, 2), STATUS_BUFFER_OVERFLOW);
    /* Injected: a failing malloc is not to be had here. */
    assert_true(fail_set("NdkSrqReceive:1:STATUS_INSUFFICIENT_RESOURCES"));
    assert_int_equal(post(1), STATUS_INSUFFICIENT_RESOURCES);
    assert_false(take(&a, false));
    sges[0].Length--;
    assert_int_equal(srq_dispatch.NdkSrqReceive(face(), (PVOID)1, sges, 2), STATUS_SUCCESS);
    assert_int_equal(srq_dispatch.NdkSrqReceive(face(), NULL, NULL, 0), STATUS_NO_MORE_ENTRIES);
    expect_taken(&a, 1);
    assert_int_equal(srq_dispatch.NdkSrqReceive(face(), (PVOID)2, NULL, 0), STATUS_SUCCESS);
    expect_taken(&a, 2);
    owner_close(&a);
    close_srq();
}

/* What is left when it is closed is gone. */
static void close_drops_what_is_queued(void **state)
{
    open_srq(state, 100, 1);
    for (uintptr_t i = 1; i <= 50; i++)
        assert_int_equal(post(i), STATUS_SUCCESS);
    close_srq();
}

/* ---- who waits ------------------------------------------------------------------------------ */

static void a_post_wakes_one_and_in_order(void **state)
{
    struct owner a, b, c;

    open_srq(state, 64, 1);
    owner_open(&a, 0);
    owner_open(&b, 1);
    owner_open(&c, 0);
    assert_false(take(&a, true));
    assert_false(take(&b, true));
    assert_false(take(&c, true));
    assert_false(take(&a, true)); /* asking again does not lose the place */
    assert_int_equal(looks(&a) + looks(&b) + looks(&c), 0);
    assert_int_equal(post(1), STATUS_SUCCESS);
    assert_int_equal(looks(&a), 1);
    assert_int_equal(looks(&b) + looks(&c), 0);
    assert_int_equal(post(2), STATUS_SUCCESS);
    assert_int_equal(looks(&b), 1);
    assert_int_equal(looks(&a) + looks(&c), 1);
    /* b comes first: it gets the oldest, and a has not lost its turn. */
    assert_true(take(&b, true));
    assert_int_equal(use(&b), 1);
    assert_false(take(&b, true)); /* again, behind c */
    assert_true(take(&a, true));
    assert_int_equal(use(&a), 2);
    assert_int_equal(post(3), STATUS_SUCCESS);
    assert_int_equal(looks(&c), 1);
    assert_int_equal(looks(&a) + looks(&b), 2);
    assert_int_equal(post(4), STATUS_SUCCESS);
    assert_int_equal(looks(&b), 2);
    expect_taken(&b, 3);
    expect_taken(&c, 4);
    assert_false(take(&a, false));
    owner_close(&a);
    owner_close(&b);
    owner_close(&c);
    close_srq();
}

/* A receive that was granted is not for one who comes by. */
static void nobody_overtakes(void **state)
{
    struct owner a, late;

    open_srq(state, 64, 1);
    owner_open(&a, 0);
    owner_open(&late, 1);
    assert_false(take(&a, true));
    assert_int_equal(post(1), STATUS_SUCCESS);
    assert_false(take(&late, false));
    assert_int_equal(post(2), STATUS_SUCCESS); /* nobody waits for this one */
    expect_taken(&late, 1);
    assert_false(take(&late, false));
    assert_false(take(&late, true));
    expect_taken(&a, 2);
    assert_int_equal(looks(&a), 1);
    assert_int_equal(looks(&late), 0);
    assert_int_equal(post(3), STATUS_SUCCESS);
    expect_taken(&late, 3);
    assert_int_equal(looks(&late), 1);
    owner_close(&a);
    owner_close(&late);
    close_srq();
}

/* Its time is over: off the list, unless it was granted one meanwhile. */
static void giving_up(void **state)
{
    struct owner a, b, c;

    open_srq(state, 64, 1);
    owner_open(&a, 0);
    owner_open(&b, 0);
    owner_open(&c, 0);
    assert_false(take(&a, true));
    assert_false(take(&b, true));
    assert_false(take(&c, true));
    assert_false(take(&b, false)); /* from the middle */
    assert_int_equal(post(1), STATUS_SUCCESS);
    expect_taken(&a, 1); /* at the last moment */
    assert_int_equal(post(2), STATUS_SUCCESS);
    assert_int_equal(looks(&c), 1);
    assert_int_equal(looks(&b), 0);
    assert_false(take(&a, false));
    expect_taken(&c, 2);
    assert_false(take(&a, true));
    assert_false(take(&b, true));
    assert_false(take(&b, false)); /* from the end */
    assert_false(take(&c, true));
    assert_false(take(&a, false)); /* from the front */
    assert_int_equal(post(3), STATUS_SUCCESS);
    assert_int_equal(looks(&c), 2);
    expect_taken(&c, 3);
    assert_int_equal(looks(&a), 1);
    assert_int_equal(looks(&b), 0);
    owner_close(&a);
    owner_close(&b);
    owner_close(&c);
    close_srq();
}

static void whoever_leaves_passes_the_grant_on(void **state)
{
    struct owner a, b, c;

    open_srq(state, 64, 1);
    owner_open(&a, 0);
    owner_open(&b, 1);
    owner_open(&c, 0);
    srq_leave(srq, &a.waiter); /* without having waited */
    assert_false(take(&a, true));
    assert_false(take(&b, true));
    assert_false(take(&c, true));
    assert_int_equal(post(1), STATUS_SUCCESS);
    assert_int_equal(looks(&a), 1);
    srq_leave(srq, &a.waiter);
    assert_int_equal(looks(&b), 1);
    assert_int_equal(looks(&c), 0);
    assert_false(take(&a, false)); /* it has gone */
    srq_leave(srq, &b.waiter);
    assert_int_equal(looks(&c), 1);
    srq_leave(srq, &c.waiter); /* nobody is left: the receive is anybody's */
    expect_taken(&a, 1);
    assert_false(take(&a, true));
    assert_false(take(&b, true));
    srq_leave(srq, &a.waiter); /* while it waits */
    assert_int_equal(post(2), STATUS_SUCCESS);
    assert_int_equal(looks(&b), 2);
    expect_taken(&b, 2);
    assert_int_equal(looks(&a), 1);
    owner_close(&a);
    owner_close(&b);
    owner_close(&c);
    close_srq();
}

/* ---- many at once --------------------------------------------------------------------------- */

#define OWNERS   6u
#define MESSAGES 400u
#define POSTS    (OWNERS * MESSAGES)
#define EPISODES 12u

struct crowd {
    struct owner owners[OWNERS];
    atomic_bool taken[POSTS + 1];
    atomic_uint takes, twice, unknown;
    unsigned random;
};

static unsigned draw(unsigned *random, unsigned below)
{
    *random = *random * 1664525u + 1013904223u;
    return (*random >> 8) % below;
}

static void count_taken(struct crowd *crowd, uintptr_t context)
{
    if (context == 0 || context > POSTS)
        atomic_fetch_add(&crowd->unknown, 1);
    else if (atomic_exchange(&crowd->taken[context], true))
        atomic_fetch_add(&crowd->twice, 1);
    atomic_fetch_add(&crowd->takes, 1);
}

/* What rx_send.c does: a message that meets no receive is held; each look either gets one, or goes
 * on holding, or (its time is over) gives up and the message is lost. */
static bool crowd_work(struct conn *conn)
{
    struct owner *owner = conn->up;
    unsigned look = atomic_fetch_add(&owner->looks, 1);

    while (atomic_load(&owner->served) < atomic_load(&owner->wanted)) {
        if (!owner->holding && take(owner, false)) {
            ;
        } else if (owner->holding && look % 64 == 63) {
            owner->holding = false;
            if (!take(owner, false)) {
                atomic_fetch_add(&owner->served, 1);
                continue;
            }
        } else if (!take(owner, true)) {
            owner->holding = true;
            return false;
        }
        owner->holding = false;
        count_taken(owner->crowd, use(owner));
        atomic_fetch_add(&owner->served, 1);
    }
    return false;
}

static void crowd_end(struct conn *conn)
{
    struct owner *owner = conn->up;

    if (owner->holding)
        srq_leave(srq, &owner->waiter);
    owner->holding = false;
}

static void poster(void *context)
{
    struct crowd *crowd = context;
    unsigned random = crowd->random;

    for (uintptr_t i = 1; i <= POSTS; i++) {
        while (post(i) != STATUS_SUCCESS)
            os_sleep_us(20);
        if (draw(&random, 8) == 0)
            os_sleep_us(draw(&random, 40));
    }
}

/* Messages arrive, and some of the connections die in between. */
static void arrivals(void *context)
{
    struct crowd *crowd = context;
    unsigned random = crowd->random + 1;

    for (unsigned i = 0; i < POSTS; i++) {
        struct owner *owner = &crowd->owners[i % OWNERS];

        atomic_fetch_add(&owner->wanted, 1);
        if (draw(&random, 2))
            conn_kick(&owner->conn->rx.dir, 0);
        else
            conn_resume(owner->conn);
        if (i % OWNERS >= OWNERS / 2 && !owner->over && draw(&random, 2 * MESSAGES) == 0) {
            owner->over = true;
            conn_kick(&owner->conn->rx.dir, DIR_END);
        }
    }
}

static bool satisfied(const struct owner *owner)
{
    return owner->over || atomic_load(&owner->served) == MESSAGES;
}

static bool dead(const struct owner *owner)
{
    return (atomic_load(&owner->conn->rx.dir.word) & DIR_DEAD) != 0;
}

/* Every message of a connection that lives meets a receive, and each receive one message. */
static void a_crowd_loses_nothing(void **state)
{
    static struct crowd crowd;

    for (unsigned episode = 0; episode < EPISODES; episode++) {
        struct os_thread *threads[2];

        open_srq(state, episode % 2 ? 3 : 4096, 1);
        memset(&crowd, 0, sizeof crowd);
        crowd.random = episode * 7919u;
        for (unsigned i = 0; i < OWNERS; i++) {
            owner_open(&crowd.owners[i], i % 2);
            crowd.owners[i].crowd = &crowd;
            conn_dir_init(&crowd.owners[i].conn->rx.dir, crowd.owners[i].conn, crowd_work,
                          crowd_end);
        }
        assert_int_equal(os_thread_start(&threads[0], "arrivals", arrivals, &crowd), 0);
        assert_int_equal(os_thread_start(&threads[1], "poster", poster, &crowd), 0);
        os_thread_join(threads[0]);
        for (unsigned i = 0; i < OWNERS; i++)
            wait_for(satisfied(&crowd.owners[i]));
        /* The dead leave receives to the poster's queue; with a small depth it needs a taker. */
        while (atomic_load(&crowd.takes) + conn_queue_outstanding(&srq->queue) < POSTS)
            if (take(&crowd.owners[0], false))
                count_taken(&crowd, use(&crowd.owners[0]));
        os_thread_join(threads[1]);
        for (unsigned i = 0; i < OWNERS; i++) {
            wait_for(!crowd.owners[i].over || dead(&crowd.owners[i]));
            looks(&crowd.owners[i]); /* a wake that came too late has run */
        }
        assert_int_equal(atomic_load(&crowd.twice) + atomic_load(&crowd.unknown), 0);
        assert_int_equal(atomic_load(&crowd.takes) + conn_queue_outstanding(&srq->queue), POSTS);
        assert_int_equal(srq->granted, 0);
        assert_null(srq->first);
        for (unsigned i = 0; i < OWNERS; i++)
            owner_close(&crowd.owners[i]);
        close_srq();
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, test_setup, test_teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_oldest_is_taken_as_it_was_posted),
        TEST(the_depth_counts_what_was_not_taken),
        TEST(a_post_that_fails_posts_nothing),
        TEST(close_drops_what_is_queued),
        TEST(a_post_wakes_one_and_in_order),
        TEST(nobody_overtakes),
        TEST(giving_up),
        TEST(whoever_leaves_passes_the_grant_on),
        TEST(a_crowd_loses_nothing),
    };

    return cmocka_run_group_tests_name("srq", tests, test_group_setup, NULL);
}
