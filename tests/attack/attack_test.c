// SPDX-License-Identifier: MIT
/*
 * An attack: four hostile peers throw seeded malformed streams at a server, and at clients of ours
 * that connect to them, for as long as it is told, in rounds with options of their own. Beside it a
 * good connection goes on and newcomers are served (good.c). Asked of everybody else:
 *
 *  - every bad connection ends: at once, by the server's timers, or when its consumer gives it up
 *  - every request of a victim completes once, every call is answered
 *  - nothing but what was meant to be written is (the arena of peer.h)
 *  - descriptors and memory stay bounded meanwhile, and are back where they were after a round
 *
 * SOFTNDK_ATTACK_S: seconds, 3 by default. SOFTNDK_TEST_SEED: the choices of a run. On failure each
 * attacker's attack is named by a seed of its own: SOFTNDK_ATTACK_SEED repeats that attack alone,
 * over and over, in all of them. SOFTNDK_ATTACK_PATIENCE_S: how long a bad connection may last, 30.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>

#include "ends.h"

#include "attack.h"
#include "conn/conn.h"

#define ATTACKERS 4
#define FLOOD     16u /* connections of one attacker at once; more than one peer may have */
#define VICTIMS   96u
#define RING      1024u
#define ROUND_MS  1500u
#define IDLE_MS   300u /* the server gives up who does nothing */
#define DESCRIPTORS                                                                                \
    700u /* more than these are never open: sockets of both sides, bounded by caps */
#define GROWTH (96u << 20)  /* resident octets during an attack */
#define LEFT   (512u << 10) /* allocated octets that a round may leave behind: caches */

struct victim {
    struct end end;
    struct wait accept;
    NTSTATUS accepting;
    unsigned long long since;
    unsigned receives, requests; /* posted */
    bool used, worked, good;
};

struct attacker {
    pthread_t thread;
    unsigned index;
    _Atomic uint64_t seed; /* of the attack that goes on; 0: none */
    unsigned attacks;
    struct peer peers[FLOOD];
};

static struct bench bench;
static struct attack_target target;
static struct victim victims[VICTIMS];
static struct attacker attackers[ATTACKERS];
static NDK_CONNECTOR *ring[RING];
static atomic_uint ring_in, ring_out;
static atomic_bool stop_attacks, stop_server;
static uint64_t run_seed, one_seed;

/* ---- victims -------------------------------------------------------------------------------- */

static void victim_receives(struct end *end, unsigned *posted)
{
    for (unsigned i = 0; i < 4; i++) {
        NDK_SGE sge = memory_sge(&bench.inbox, inbox_at(i), RECEIVE_LENGTH);

        must(NULL, end->qp->Dispatch->NdkReceive(end->qp, end, &sge, 1), "NdkReceive");
        ++*posted;
    }
}

/* A Send and a Read, if it is still connected. */
static void victim_requests(struct end *end, unsigned *posted)
{
    NDK_SGE out = memory_sge(&bench.sink, 0, 700), in = memory_sge(&bench.sink, 4096, 700);

    if (end->qp->Dispatch->NdkSend(end->qp, end, &out, 1, 0) == STATUS_SUCCESS)
        ++*posted;
    if (end->qp->Dispatch->NdkRead(end->qp, end, &in, 1, 0x1000, 0x7700, 0) == STATUS_SUCCESS)
        ++*posted;
}

static void account(struct queue *queue, unsigned posted, const char *what)
{
    NDK_RESULT_EX result;
    unsigned got = 0;

    while (queue->cq->Dispatch->NdkGetCqResultsEx(queue->cq, &result, 1))
        got++;
    if (got != posted)
        test_fail("%u of %u %s of a victim completed", got, posted, what);
}

/* Its consumer has had enough; everything that was posted has completed by then. */
static void victim_ends(struct end *end, unsigned receives, unsigned requests)
{
    CLOSE(end->connector, NdkCloseConnector);
    end->connector = NULL;
    CLOSE(end->qp, NdkCloseQp);
    end->qp = NULL;
    account(&end->receive, receives, "receives");
    account(&end->initiator, requests, "requests");
    if (atomic_load(&end->disconnects) > 1)
        test_fail("%u disconnect events", atomic_load(&end->disconnects));
    end_close(end);
}

/* ---- the server ----------------------------------------------------------------------------- */

static void arrived(struct listening *listening, NDK_CONNECTOR *connector, void *context)
{
    unsigned in = atomic_load(&ring_in);

    (void)listening;
    (void)context;
    if (in - atomic_load(&ring_out) == RING)
        test_fail("more connectors than may be undecided");
    ring[in % RING] = connector;
    atomic_store(&ring_in, in + 1);
}

static bool is_good(NDK_CONNECTOR *connector)
{
    SOCKADDR_INET peer;
    ULONG length = sizeof peer;

    must(NULL, connector->Dispatch->NdkGetPeerAddress(connector, (PSOCKADDR)&peer, &length),
         "NdkGetPeerAddress");
    return peer.Ipv4.sin_addr.S_un.S_un_b.s_b4 == 1;
}

static void victim_begins(struct victim *v, NDK_CONNECTOR *connector)
{
    struct end *end = &v->end;

    memset(v, 0, sizeof *v);
    v->used = true;
    v->good = is_good(connector);
    v->since = test_now_ms();
    KeInitializeEvent(&end->disconnected, NotificationEvent, FALSE);
    make_queue(bench.adapter, 4 * END_DEPTH, &end->receive);
    make_queue(bench.adapter, 4 * END_DEPTH, &end->initiator);
    end_make_qp(end, bench.adapter, v->good ? bench.foreign_pd : bench.pd);
    end->connector = connector;
    if (!v->good)
        victim_receives(end, &v->receives);
    v->accepting = end_accepts(end, 8, 8, NULL, 0, &v->accept);
}

/* One look at it. */
static void victim_goes_on(struct victim *v)
{
    bool answered = v->accepting != STATUS_PENDING || atomic_load(&v->accept.calls);
    bool idle = test_now_ms() - v->since > (v->good ? WAIT_S * 1000u : IDLE_MS);
    NTSTATUS status;

    if (!answered)
        return;
    status = v->accepting != STATUS_PENDING ? v->accepting : v->accept.status;
    if (status == STATUS_SUCCESS && !v->worked && !v->good)
        victim_requests(&v->end, &v->requests);
    v->worked = true;
    if (status == STATUS_SUCCESS && !atomic_load(&v->end.disconnects) && !idle &&
        !atomic_load(&stop_server))
        return;
    victim_ends(&v->end, v->receives, v->requests);
    v->used = false;
}

static void server_takes(struct victim *v)
{
    unsigned out = atomic_load(&ring_out);

    if (out == atomic_load(&ring_in))
        return;
    victim_begins(v, ring[out % RING]);
    atomic_store(&ring_out, out + 1);
}

static void *server(void *context)
{
    bool idle;

    (void)context;
    do {
        idle = true;
        for (unsigned i = 0; i < VICTIMS; i++) {
            if (victims[i].used)
                victim_goes_on(&victims[i]);
            if (!victims[i].used && !atomic_load(&stop_server))
                server_takes(&victims[i]);
            idle = idle && !victims[i].used;
        }
        test_sleep_ms(1);
    } while (!atomic_load(&stop_server) || !idle);
    return NULL;
}

/* ---- attacks -------------------------------------------------------------------------------- */

static const char *address_of_attacker(const struct attacker *a)
{
    static const char *const addresses[ATTACKERS] = {"127.0.0.2", "127.0.0.3", "127.0.0.4",
                                                     "127.0.0.5"};

    return addresses[a->index];
}

static void dial_server(struct attacker *a, struct peer *p)
{
    peer_init(p);
    p->from = address_of_attacker(a);
    peer_connect(p, port_of(&bench.listening));
}

/* How a peer leaves; each time the end must follow. */
static void leave(struct chance *c, struct peer *p)
{
    switch (chance_of(c, 8)) {
    case 0:
    case 1:
        peer_reset(p);
        return;
    case 2:
    case 3:
        peer_half_close(p);
        attack_await_end(p);
        break;
    case 4: /* stalls: the end has to take the step */
        attack_await_end(p);
        break;
    default:
        break;
    }
    peer_close(p);
}

/* Takes the peer's startup frame, whatever it says, or the end of it all. */
static bool read_frame(struct peer *p)
{
    uint8_t frame[20 + 65535];

    return peer_read(p, frame, 20, PEER_WAIT_MS) == PEER_DATA &&
           peer_read(p, frame + 20, (size_t)frame[18] << 8 | frame[19], PEER_WAIT_MS) == PEER_DATA;
}

/* FPDUs, often damaged, and a way to leave. */
static void fpdus_and_leave(struct chance *c, struct peer *p, struct stream *s)
{
    stream_reset(s);
    attack_fpdus(c, s, &target);
    if (s->length && chance_of(c, 2))
        attack_damage(c, s);
    attack_deliver(c, p, s->octets, s->length);
    leave(c, p);
}

/* Against the server: a Request, perhaps damaged, and FPDUs behind its Reply or before. */
static void attack_server(struct attacker *a, struct chance *c, struct stream *s)
{
    struct peer *p = &a->peers[0];

    dial_server(a, p);
    attack_startup(c, s, false);
    if (chance_of(c, 4) == 0)
        attack_damage(c, s);
    if (chance_of(c, 10) == 0)
        attack_fpdus(c, s, &target);
    if (attack_deliver(c, p, s->octets, s->length) && chance_of(c, 12) && read_frame(p))
        fpdus_and_leave(c, p, s);
    else
        leave(c, p);
}

/* Many startups that do not come to an end, or to a Request that nobody asked for. */
static void attack_flood(struct attacker *a, struct chance *c, struct stream *s)
{
    unsigned count = 2 + chance_of(c, FLOOD - 1);

    for (unsigned i = 0; i < count; i++) {
        struct peer *p = &a->peers[i];

        dial_server(a, p);
        stream_reset(s);
        attack_startup(c, s, false);
        peer_send(p, s->octets, chance_of(c, 4) ? chance_of(c, 20) : s->length);
    }
    for (unsigned i = 0; i < count; i++)
        leave(c, &a->peers[i]);
}

/* Against a client: it connects to us. */
static void attack_client(struct attacker *a, struct chance *c, struct stream *s)
{
    struct peer *p = &a->peers[0];
    struct end end;
    struct wait connect, complete;
    NTSTATUS connecting, completing;
    unsigned receives = 0, requests = 0;
    bool connected;

    end_of_bench(&bench, &end);
    peer_init(p);
    connecting = end_connects(&bench, &end, peer_listen(p), 8, 8, NULL, 0, &connect);
    peer_accept(p);
    attack_startup(c, s, true);
    if (chance_of(c, 4) == 0)
        attack_damage(c, s);
    if (chance_of(c, 8) == 0)
        attack_fpdus(c, s, &target);
    if (chance_of(c, 8))
        read_frame(p);
    attack_deliver(c, p, s->octets, s->length);
    if (chance_of(c, 10) == 0)
        peer_hang_up(p, chance_of(c, 2));
    connected = wait_end(&connect, connecting) == STATUS_SUCCESS;
    if (connected) {
        victim_receives(&end, &receives);
        completing = end_completes(&end, &complete);
        stream_reset(s);
        if (chance_of(c, 5)) /* to the ready-to-receive Read */
            stream_response(s, true, 0x80000001u, 0, NULL, 0);
        attack_fpdus(c, s, &target);
        if (s->length && chance_of(c, 2))
            attack_damage(c, s);
        if (p->fd >= 0)
            attack_deliver(c, p, s->octets, s->length);
        if (p->fd >= 0 && chance_of(c, 2))
            peer_hang_up(p, chance_of(c, 2));
        if (wait_end(&complete, completing) == STATUS_SUCCESS)
            victim_requests(&end, &requests);
    }
    victim_ends(&end, receives, requests);
    if (p->fd >= 0)
        attack_await_end(p);
    peer_close(p);
}

static void *attack(void *context)
{
    struct attacker *a = context;
    struct chance of_run = {run_seed ^ (uint64_t)(a->index + 1) << 40 ^ a->attacks};
    struct stream s;

    stream_init(&s, true);
    while (!atomic_load(&stop_attacks)) {
        struct chance c = {one_seed ? one_seed : chance_next(&of_run) | 1};
        unsigned kind;

        atomic_store(&a->seed, c.state);
        kind = chance_of(&c, 10);
        stream_reset(&s);
        if (kind < 6)
            attack_server(a, &c, &s);
        else if (kind < 9)
            attack_client(a, &c, &s);
        else
            attack_flood(a, &c, &s);
        a->attacks++;
        atomic_store(&a->seed, 0);
    }
    stream_free(&s);
    return NULL;
}

/* ---- rounds --------------------------------------------------------------------------------- */

static void round_opens(struct chance *c)
{
    char options[200];

    snprintf(options, sizeof options,
             "request_ms=250,establish_ms=250,connect_ms=250,linger_ms=40,drain_ms=40,"
             "max_startups=64,max_startups_per_peer=12,retry_v1=%u,holdback_ms=%u,staging_cap=%u,"
             "crc=%u",
             chance_of(c, 4) == 0, chance_of(c, 2) * 40, chance_of(c, 2) ? 65544 : 1u << 20,
             chance_of(c, 3) != 0);
    bench_open(&bench, options);
    target = (struct attack_target){
        .writable = bench.target.remote,
        .readable = bench.readable.remote,
        .foreign = bench.foreign.remote,
        .stale = bench.stale,
        .writable_to = target_to(&bench, 0),
        .readable_to = (uint64_t)(uintptr_t)bench.readable.data,
        .foreign_to = (uint64_t)(uintptr_t)bench.foreign.data,
        .writable_size = TARGET_SIZE,
        .readable_size = PAGE,
    };
    atomic_store(&ring_in, 0);
    atomic_store(&ring_out, 0);
    atomic_store(&stop_attacks, false);
    atomic_store(&stop_server, false);
}

/* Only what may be written was. */
static void round_judges_memory(void)
{
    memcpy(bench.arena + TARGET_AT, bench.before + TARGET_AT, TARGET_SIZE);
    memcpy(bench.arena + INBOX_AT, bench.before + INBOX_AT, INBOX_SIZE);
    memcpy(bench.arena + SINK_AT, bench.before + SINK_AT, SINK_SIZE);
    bench_unchanged(&bench, "attack");
    if (conn_staged())
        test_fail("%zu octets are still kept for FPDUs", conn_staged());
}

static unsigned most_descriptors;
static size_t most_resident;

static void round_watches(unsigned ms, size_t resident)
{
    unsigned long long end = test_now_ms() + ms;

    while (test_now_ms() < end) {
        unsigned descriptors = attack_descriptors();
        size_t now = attack_resident();

        if (descriptors > most_descriptors)
            most_descriptors = descriptors;
        if (now > most_resident)
            most_resident = now;
        if (descriptors > DESCRIPTORS)
            test_fail("%u descriptors are open", descriptors);
        if (resident && now > resident + GROWTH)
            test_fail("%zu octets are resident, %zu before", now, resident);
        test_sleep_ms(20);
    }
}

/* While the server still takes what was shown before; it completes when all that is gone. */
static void listener_closes(void)
{
    NDK_LISTENER *listener = bench.listening.listener;
    struct wait w;
    NTSTATUS closing;

    wait_init(&w);
    closing = listener->Dispatch->NdkCloseListener(&listener->Header, wait_close, &w);
    bench.listening.listener = NULL;
    if (wait_end(&w, closing) != STATUS_SUCCESS)
        test_fail("NdkCloseListener failed");
}

static void play_round(struct chance *c, unsigned ms, unsigned *rounds, unsigned *newcomers)
{
    size_t resident = attack_resident();
    struct good *good;
    pthread_t server_thread;

    round_opens(c);
    good = good_open(&bench);
    bench.listening.in_callback = arrived;
    assert_int_equal(pthread_create(&server_thread, NULL, server, NULL), 0);
    good_start(good);
    for (unsigned i = 0; i < ATTACKERS; i++) {
        attackers[i].index = i;
        assert_int_equal(pthread_create(&attackers[i].thread, NULL, attack, &attackers[i]), 0);
    }
    round_watches(ms, resident);
    atomic_store(&stop_attacks, true);
    for (unsigned i = 0; i < ATTACKERS; i++)
        pthread_join(attackers[i].thread, NULL);
    good_stop(good, rounds, newcomers);
    good_close(good);
    listener_closes();
    atomic_store(&stop_server, true);
    pthread_join(server_thread, NULL);
    round_judges_memory();
    bench_close(&bench);
}

static void report(void)
{
    for (unsigned i = 0; i < ATTACKERS; i++)
        if (atomic_load(&attackers[i].seed))
            fprintf(stderr, "attack: it happened during the attack SOFTNDK_ATTACK_SEED=0x%llx\n",
                    (unsigned long long)atomic_load(&attackers[i].seed));
}

static uint64_t number(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);

    return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

int main(void)
{
    unsigned seconds = (unsigned)number("SOFTNDK_ATTACK_S", 3), rounds = 0, newcomers = 0, n = 0;
    unsigned long long end = test_now_ms() + seconds * 1000ull;
    unsigned attacks = 0, before = 0;
    size_t allocated = 0;
    struct chance c;

    run_seed = number("SOFTNDK_TEST_SEED", test_now_ms());
    one_seed = number("SOFTNDK_ATTACK_SEED", 0);
    c.state = run_seed;
    printf("attack: %u s, SOFTNDK_TEST_SEED=%llu\n", seconds, (unsigned long long)run_seed);
    fflush(stdout);
    attack_patience_ms = (unsigned)number("SOFTNDK_ATTACK_PATIENCE_S", 30) * 1000;
    atexit(report);
    do {
        play_round(&c, ROUND_MS, &rounds, &newcomers);
        n++;
        if (n == 1) { /* what is made once is there now */
            before = attack_descriptors();
            allocated = attack_allocated();
        }
        if (attack_descriptors() != before)
            test_fail("%u descriptors are open after round %u, %u after the first",
                      attack_descriptors(), n, before);
        if (attack_allocated() > allocated + LEFT)
            test_fail("%zu octets are allocated after round %u, %zu after the first",
                      attack_allocated(), n, allocated);
    } while (test_now_ms() < end);
    for (unsigned i = 0; i < ATTACKERS; i++)
        attacks += attackers[i].attacks;
    printf(
        "attack: %u rounds, %u attacks; the good connection: %u rounds, %u newcomers; at most %u "
        "descriptors, %zu KiB resident; %zu octets allocated behind the first round, %zu behind "
        "the last\n",
        n, attacks, rounds, newcomers, most_descriptors, most_resident / 1024, allocated,
        attack_allocated());
    return attacks && rounds && newcomers ? 0 : 1;
}
