// SPDX-License-Identifier: MIT
/*
 * Four threads make random legal calls on many objects of two adapters, on loopback, in rounds of
 * about a second with options and a completion mode of their own; see spin.h for how legality is
 * kept, account.c for what is asked at the end of a round.
 *
 * SOFTNDK_SPIN_S: seconds, 10 by default. SOFTNDK_TEST_SEED: repeats the choices of a run (not the
 * order in which threads make them). Printed at the start and on failure. SOFTNDK_SPIN_PATIENCE_S:
 * how long anything may take, 60.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dirent.h>

#include "spin.h"

#define THREADS 4

static atomic_ullong stop_at; /* of the round */

/* ---- operations: false when nothing was there to do it with --------------------------------- */

static bool op_create(struct world *world)
{
    static const enum kind kinds[] = {CQ,        CQ,        PD,        MR,       MR,      MR, MW,
                                      MW,        SRQ,       QP,        QP,       QP,      QP, QP,
                                      CONNECTOR, CONNECTOR, CONNECTOR, LISTENER, ENDPOINT};

    return create_something(world, kinds[draw(sizeof kinds / sizeof kinds[0])]);
}

/* Antecedents seldom: what stands on them goes with them. */
static bool op_close(struct world *world)
{
    static const unsigned seldom[KINDS] = {400, 400, 60, 300, 80, 60, 300, 60, 60};
    enum kind kind = (enum kind)draw(KINDS);
    struct object *object = draw(seldom[kind]) ? NULL : object_pick(world, kind, NULL);

    if (!object)
        return false;
    object_doom(object);
    object_unuse(object);
    return true;
}

/* What is of no use any more. */
static bool op_bury(struct world *world)
{
    static const enum kind kinds[] = {QP, CONNECTOR, MR};
    struct object *object = object_claim(world, kinds[draw(3)], DEAD, DEAD);

    if (!object)
        return false;
    object_doom(object);
    object_unuse(object);
    return true;
}

static bool on_any(struct world *world, enum kind kind, bool (*act)(struct object *))
{
    struct object *object = object_pick(world, kind, NULL);
    bool done = object && act(object);

    if (object)
        object_unuse(object);
    return done;
}

static bool receive_here(struct object *qp)
{
    bool any = false;

    for (unsigned i = 1 + draw(8); i && !qp->srq; i--)
        any |= post_a_receive(qp);
    return any;
}

static bool srq_receive_here(struct object *srq)
{
    bool any = false;

    for (unsigned i = 1 + draw(8); i; i--)
        any |= post_a_receive(srq);
    return any;
}

/* Mostly where it can succeed. */
static bool op_initiate(struct world *world)
{
    struct object *qp =
        draw(30) ? object_claim(world, QP, READY, READY) : object_pick(world, QP, NULL);
    bool any = false;

    for (unsigned i = qp ? 1 + draw(4) : 0; i; i--)
        any |= post_a_request(qp);
    if (qp)
        object_unuse(qp);
    return any;
}

static bool poll_here(struct object *cq)
{
    if (cq->by_callback)
        return false;
    note("poll", cq, 0);
    cq_poll(cq, (int)draw(4) - 1);
    return true;
}

static bool flush_here(struct object *qp)
{
    NDK_QP *handle = (NDK_QP *)(void *)qp->header;

    if (draw(60))
        return false;
    note("NdkFlush", qp, 0);
    handle->Dispatch->NdkFlush(handle);
    return true;
}

static void modified(struct call *call, NTSTATUS status)
{
    if (status != STATUS_SUCCESS && status != STATUS_INVALID_PARAMETER)
        spin_die("NdkModifySrq #%u: %s", call->object->number, softndk_status_name(status));
}

static bool modify_here(struct object *srq)
{
    NDK_SRQ *handle = (NDK_SRQ *)(void *)srq->header;
    struct call *call = call_begin("NdkModifySrq", srq, modified);

    call_end(call, handle->Dispatch->NdkModifySrq(handle, draw(2) ? 0 : 1 + draw(80), draw(10),
                                                  call_answered, call));
    return true;
}

static bool op_receive(struct world *w)
{
    return on_any(w, QP, receive_here);
}
static bool op_srq_receive(struct world *w)
{
    return on_any(w, SRQ, srq_receive_here);
}
static bool op_poll(struct world *w)
{
    return on_any(w, CQ, poll_here);
}
static bool op_flush(struct world *w)
{
    return on_any(w, QP, flush_here);
}
static bool op_modify(struct world *w)
{
    return on_any(w, SRQ, modify_here);
}
static bool op_region(struct world *w)
{
    return on_any(w, MR, region_move);
}
static bool op_listener(struct world *w)
{
    return on_any(w, LISTENER, listener_move);
}
static bool op_fast(struct world *w)
{
    return on_any(w, QP, post_a_registration);
}
static bool op_bind(struct world *w)
{
    struct object *qp = object_claim(w, QP, READY, READY);
    bool done = qp && post_a_bind(qp);

    if (qp)
        object_unuse(qp);
    return done;
}
static bool op_resize(struct world *w)
{
    return on_any(w, CQ, queue_resize);
}
static bool op_moderate(struct world *w)
{
    return on_any(w, CQ, queue_moderate);
}
static bool op_connect(struct world *w)
{
    return connect_begin(w);
}
static bool op_decide(struct world *w)
{
    return on_any(w, CONNECTOR, connect_decide);
}
static bool op_disconnect(struct world *w)
{
    return !draw(40) && on_any(w, CONNECTOR, connect_disconnect);
}
static bool op_ask(struct world *w)
{
    return on_any(w, CONNECTOR, connect_ask);
}

static struct {
    bool (*act)(struct world *world);
    const char *name;
    unsigned weight;
    atomic_uint done;
} ops[] = {
    {op_initiate, "posts", 60, 0},
    {op_receive, "receives", 24, 0},
    {op_srq_receive, "SRQ receives", 8, 0},
    {op_poll, "polls", 20, 0},
    {op_create, "creates", 24, 0},
    {op_close, "closes", 12, 0},
    {op_bury, "burials", 12, 0},
    {op_flush, "flushes", 1, 0},
    {op_modify, "SRQ changes", 1, 0},
    {op_region, "registrations", 8, 0},
    {op_listener, "listens", 2, 0},
    {op_fast, "fast registrations", 6, 0},
    {op_bind, "window changes", 10, 0},
    {op_resize, "CQ resizes", 1, 0},
    {op_moderate, "CQ moderations", 1, 0},
    {op_connect, "connects", 12, 0},
    {op_decide, "decisions", 10, 0},
    {op_disconnect, "disconnects", 1, 0},
    {op_ask, "questions", 2, 0},
};
#define OPS (sizeof ops / sizeof ops[0])

static void *walk(void *context)
{
    unsigned sum = 0;

    draw_seed(*(unsigned *)context);
    watch_me(true);
    for (size_t i = 0; i < OPS; i++)
        sum += ops[i].weight;
    while (test_now_ms() < stop_at) {
        unsigned which = draw(sum), i = 0;

        while (which >= ops[i].weight)
            which -= ops[i++].weight;
        if (ops[i].act(&now.worlds[draw(2)]))
            atomic_fetch_add(&ops[i].done, 1);
        else
            note("nothing", NULL, i);
    }
    watch_me(false);
    return NULL;
}

/* ---- rounds --------------------------------------------------------------------------------- */

static void open_world(struct world *world, unsigned number, const char *common)
{
    static const char *const completions[] = {"local", "placed", "acked"};
    static const char *const extras[] = {"",
                                         ",fpdu_max=1442",
                                         ",tcp_buffer=32768",
                                         ",p2p=0,nudge_ms=1",
                                         ",mpa_revision=1",
                                         ",staging_cap=65544",
                                         ",progress=inline",
                                         ",progress=inline,tcp_buffer=32768",
                                         ",max_pending_connects=2"};
    unsigned completion = draw(3), extra = draw(sizeof extras / sizeof extras[0]);
    char options[256];

    world->number = number;
    world->placed = completion == 1;
    pthread_mutex_init(&world->lock, NULL);
    snprintf(options, sizeof options, "%s,completion=%s,crc=%u,scattered=%u%s", common,
             completions[completion], draw(2), draw(2), extras[extra]);
    now.capped |= strstr(options, "staging_cap") != NULL;
    printf("  %s\n", options);
    world->adapter = open_adapter(options);
}

static void set_mode(void)
{
    static const char *const modes[] = {"never", "always", "early"};
    unsigned which = draw(6);
    char mode[32];

    if (which < 3)
        snprintf(mode, sizeof mode, "%s", modes[which]);
    else
        snprintf(mode, sizeof mode, "random:%u", draw(1u << 20));
    printf("  mode %s\n", mode);
    assert_int_equal(softndk_set_pend(mode), STATUS_SUCCESS);
}

static void play(unsigned ms)
{
    pthread_t threads[THREADS];
    unsigned seeds[THREADS];

    memset(&now, 0, sizeof now);
    pthread_mutex_init(&now.lock, NULL);
    pthread_mutex_init(&now.links_lock, NULL);
    set_mode();
    for (unsigned i = 0; i < 2; i++)
        open_world(&now.worlds[i], i,
                   "shards=3,connect_ms=1000,request_ms=500,establish_ms=500,disconnect_ms=200,"
                   "linger_ms=40,drain_ms=100,holdback_ms=60");
    fflush(stdout);
    stop_at = test_now_ms() + ms;
    for (int i = 0; i < THREADS; i++) {
        seeds[i] = draw(1u << 24);
        assert_int_equal(pthread_create(&threads[i], NULL, walk, &seeds[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    round_end();
}

/* Descriptors of the process. */
static unsigned descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    unsigned n = 0;

    assert_non_null(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

static void spin(void **state)
{
    const char *text = getenv("SOFTNDK_SPIN_S");
    unsigned seconds = text ? (unsigned)strtoul(text, NULL, 0) : 10, before = descriptors();
    unsigned long long end = test_now_ms() + seconds * 1000ull;

    (void)state;
    draw_seed(spin_seed);
    watch_begin();
    watch_me(true);
    for (unsigned round = 0; test_now_ms() < end; round++) {
        printf("round %u\n", round);
        play(300 + draw(1200));
        if (descriptors() != before)
            spin_die("%u descriptors are open, %u were", descriptors(), before);
    }
    watch_end();
    for (size_t i = 0; i < OPS; i++)
        printf("%s%u %s", i ? ", " : "", atomic_load(&ops[i].done), ops[i].name);
    printf("\n%u objects, %u calls, %u ends connected, %u requests, %u patterns checked\n",
           atomic_load(&count_objects), atomic_load(&count_calls), atomic_load(&count_connections),
           atomic_load(&count_requests), atomic_load(&count_checked));
    printf(
        "CQs %u times larger, %u smaller; windows %u times bound, %u invalidated, %u by the peer, "
        "%u transfers through them, %u Reads after their end\n",
        atomic_load(&count_grown), atomic_load(&count_shrunk), atomic_load(&count_bound),
        atomic_load(&count_unbound), atomic_load(&count_taken), atomic_load(&count_through),
        atomic_load(&count_vain));
    assert_true(atomic_load(&count_connections) > 0 && atomic_load(&count_checked) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(spin)};
    const char *text = getenv("SOFTNDK_TEST_SEED");

    spin_seed = text ? (unsigned)strtoul(text, NULL, 0) : (unsigned)test_now_ms();
    printf("SOFTNDK_TEST_SEED=%u\n", spin_seed);
    fflush(stdout);
    return cmocka_run_group_tests_name("spin", tests, NULL, NULL);
}
