// SPDX-License-Identifier: MIT
/*
 * Connections over a shared endpoint: several at once from one port, IPv4 and IPv6; the retry with
 * MPA revision 1; who holds the port until when; endpoint and connectors closed in every order,
 * inside completions, and by several threads at once.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pthread.h>

#include <cmocka.h>

#include "os/os.h"
#include "peer.h"
#include "shared.h"

#define CROWD 64

/* ---- one connection of several -------------------------------------------------------------- */

struct lane {
    struct listening listening;
    NDK_QP *client_qp, *server_qp;
    NDK_CONNECTOR *client, *server;
    struct call connect, accept, complete, closing;
};

static void lane_open(struct end *c, struct end *s, const char *text, struct lane *lane)
{
    memset(lane, 0, sizeof *lane);
    listen_on(s->adapter, text, &lane->listening);
    lane->client_qp = make_qp(c);
    lane->server_qp = make_qp(s);
    lane->client = make_connector(c->adapter);
}

static void lane_dial(struct lane *lane, NDK_SHARED_ENDPOINT *endpoint)
{
    dial_over(lane->client, lane->client_qp, endpoint, &lane->listening.address, &lane->connect);
    assert_int_equal(lane->connect.returned, STATUS_PENDING);
}

static void lane_accept(struct lane *lane)
{
    lane->server = next_incoming(&lane->listening);
    wait_init(&lane->accept.wait);
    lane->accept.returned = lane->server->Dispatch->NdkAccept(
        lane->server, lane->server_qp, 8, 8, NULL, 0, NULL, NULL, wait_request, &lane->accept.wait);
}

static void lane_complete(struct lane *lane)
{
    assert_int_equal(ended(&lane->connect), STATUS_SUCCESS);
    wait_init(&lane->complete.wait);
    lane->complete.returned = lane->client->Dispatch->NdkCompleteConnect(
        lane->client, NULL, NULL, wait_request, &lane->complete.wait);
}

static void lane_up(struct lane *lane)
{
    assert_int_equal(ended(&lane->complete), STATUS_SUCCESS);
    assert_int_equal(ended(&lane->accept), STATUS_SUCCESS);
}

static void lane_connect(struct lane *lane, NDK_SHARED_ENDPOINT *endpoint)
{
    lane_dial(lane, endpoint);
    lane_accept(lane);
    lane_complete(lane);
    lane_up(lane);
}

/* An empty Send each way. */
static void lane_works(struct end *c, struct end *s, struct lane *lane)
{
    assert_int_equal(lane->server_qp->Dispatch->NdkReceive(lane->server_qp, lane, NULL, 0),
                     STATUS_SUCCESS);
    assert_int_equal(lane->client_qp->Dispatch->NdkReceive(lane->client_qp, lane, NULL, 0),
                     STATUS_SUCCESS);
    assert_int_equal(lane->client_qp->Dispatch->NdkSend(lane->client_qp, lane, NULL, 0, 0),
                     STATUS_SUCCESS);
    assert_ptr_equal(queue_next(&s->receive).RequestContext, lane);
    assert_int_equal(queue_next(&c->initiator).Status, STATUS_SUCCESS);
    assert_int_equal(lane->server_qp->Dispatch->NdkSend(lane->server_qp, lane, NULL, 0, 0),
                     STATUS_SUCCESS);
    assert_ptr_equal(queue_next(&c->receive).RequestContext, lane);
    assert_int_equal(queue_next(&s->initiator).Status, STATUS_SUCCESS);
}

static void lane_close_client(struct lane *lane)
{
    if (lane->client)
        CLOSE(lane->client, NdkCloseConnector);
    lane->client = NULL;
}

static void lane_close(struct lane *lane)
{
    lane_close_client(lane);
    if (lane->server)
        CLOSE(lane->server, NdkCloseConnector);
    CLOSE(lane->listening.listener, NdkCloseListener);
    CLOSE(lane->client_qp, NdkCloseQp);
    CLOSE(lane->server_qp, NdkCloseQp);
}

static SOCKADDR_INET address_of_connector(NDK_CONNECTOR *connector, bool peer)
{
    const NDK_CONNECTOR_DISPATCH *slot = connector->Dispatch;
    SOCKADDR_INET address;
    ULONG length = sizeof address;

    memset(&address, 0, sizeof address);
    assert_int_equal(peer ? slot->NdkGetPeerAddress(connector, (PSOCKADDR)&address, &length)
                          : slot->NdkGetLocalAddress(connector, (PSOCKADDR)&address, &length),
                     STATUS_SUCCESS);
    return address;
}

static void expect_from(struct lane *lane, const SOCKADDR_INET *at)
{
    SOCKADDR_INET local = address_of_connector(lane->client, false);
    SOCKADDR_INET seen = address_of_connector(lane->server, true);

    assert_memory_equal(&local, at, length_of(at));
    assert_memory_equal(&seen, at, length_of(at));
    local = address_of_connector(lane->client, true);
    assert_memory_equal(&local, &lane->listening.address, length_of(at));
}

static NDK_SHARED_ENDPOINT *any_shared(NDK_ADAPTER *adapter, const char *text)
{
    SOCKADDR_INET any = at_port(text, 0);

    return make_shared(adapter, &any);
}

static void begin_close(NDK_OBJECT_HEADER *header, NDK_FN_CLOSE_OBJECT close, struct call *call)
{
    wait_init(&call->wait);
    call->returned = close(header, wait_close, &call->wait);
}

#define BEGIN_CLOSE(object, slot, call)                                                            \
    begin_close(&(object)->Header, (object)->Dispatch->slot, (call))

/* ---- several at once ------------------------------------------------------------------------ */

static void two_destinations_at_once_from(const char *text)
{
    struct end c, s;
    struct lane lanes[2];
    NDK_SHARED_ENDPOINT *endpoint;
    SOCKADDR_INET at;

    end_open(&c, NULL);
    end_open(&s, NULL);
    endpoint = any_shared(c.adapter, text);
    at = shared_address(endpoint);
    for (int i = 0; i < 2; i++) {
        lane_open(&c, &s, text, &lanes[i]);
        lane_dial(&lanes[i], endpoint);
    }
    for (int i = 0; i < 2; i++)
        lane_accept(&lanes[i]);
    for (int i = 0; i < 2; i++)
        lane_complete(&lanes[i]);
    for (int i = 0; i < 2; i++)
        lane_up(&lanes[i]);
    for (int i = 0; i < 2; i++) {
        expect_from(&lanes[i], &at);
        lane_works(&c, &s, &lanes[i]);
    }
    lane_close_client(&lanes[0]); /* its end is not the other's */
    lane_works(&c, &s, &lanes[1]);
    for (int i = 0; i < 2; i++)
        lane_close(&lanes[i]);
    CLOSE(endpoint, NdkCloseSharedEndpoint);
    end_close(&c);
    end_close(&s);
}

static void two_destinations_at_once(void **state)
{
    (void)state;
    two_destinations_at_once_from("127.0.0.1");
}

static void two_destinations_at_once_v6(void **state)
{
    (void)state;
    if (!have_ipv6()) {
        print_message("skipped: ::1 is not there\n");
        skip();
    }
    two_destinations_at_once_from("::1");
}

static void a_crowd(void **state)
{
    static struct lane lanes[CROWD];
    struct end c, s;
    NDK_SHARED_ENDPOINT *endpoint;
    SOCKADDR_INET at;

    (void)state;
    end_open(&c, NULL);
    end_open(&s, NULL);
    endpoint = any_shared(c.adapter, "127.0.0.1");
    at = shared_address(endpoint);
    for (int i = 0; i < CROWD; i++)
        lane_open(&c, &s, "127.0.0.1", &lanes[i]);
    for (int i = 0; i < CROWD; i++)
        lane_dial(&lanes[i], endpoint);
    for (int i = 0; i < CROWD; i++)
        lane_accept(&lanes[i]);
    for (int i = CROWD; i-- > 0;)
        lane_complete(&lanes[i]);
    for (int i = 0; i < CROWD; i++) {
        lane_up(&lanes[i]);
        expect_from(&lanes[i], &at);
    }
    for (int i = 0; i < CROWD; i += 7)
        lane_works(&c, &s, &lanes[i]);
    for (int i = 0; i < CROWD; i++)
        lane_close(&lanes[i]);
    CLOSE(endpoint, NdkCloseSharedEndpoint);
    end_close(&c);
    end_close(&s);
}

/* The same destination again and again, one after the other: after RST, after a graceful end whose
 * wait state is at our side, after a refusal. */
static void the_same_destination_again(void **state)
{
    struct end c, s;
    struct listening l;
    NDK_SHARED_ENDPOINT *endpoint;

    (void)state;
    end_open(&c, NULL);
    end_open(&s, NULL);
    endpoint = any_shared(c.adapter, "127.0.0.1");
    listen_on(s.adapter, "127.0.0.1", &l);
    for (int i = 0; i < 6; i++) {
        struct lane lane;
        struct wait w;
        NTSTATUS status;

        memset(&lane, 0, sizeof lane);
        lane.listening = l;
        lane.client_qp = make_qp(&c);
        lane.server_qp = make_qp(&s);
        lane.client = make_connector(c.adapter);
        lane_dial(&lane, endpoint);
        lane.server = next_incoming(&l);
        if (i % 3 == 0) {
            assert_int_equal(lane.server->Dispatch->NdkReject(lane.server, NULL, 0),
                             STATUS_SUCCESS);
            assert_int_equal(ended(&lane.connect), STATUS_CONNECTION_REFUSED);
        } else {
            wait_init(&lane.accept.wait);
            lane.accept.returned = lane.server->Dispatch->NdkAcceptEx(
                lane.server, lane.server_qp, 8, 8, NULL, 0, end_disconnected, &s, wait_request,
                &lane.accept.wait);
            lane_complete(&lane);
            lane_up(&lane);
        }
        if (i % 3 == 1) { /* our FIN first */
            wait_init(&w);
            KeClearEvent(&s.disconnected);
            status = lane.client->Dispatch->NdkDisconnect(lane.client, wait_request, &w);
            assert_true(wait_event(&s.disconnected, WAIT_S * 1000));
            CLOSE(lane.server, NdkCloseConnector);
            lane.server = NULL;
            assert_int_equal(wait_end(&w, status), STATUS_SUCCESS);
        }
        lane_close_client(&lane);
        if (lane.server)
            CLOSE(lane.server, NdkCloseConnector);
        CLOSE(lane.client_qp, NdkCloseQp);
        CLOSE(lane.server_qp, NdkCloseQp);
    }
    CLOSE(l.listener, NdkCloseListener);
    CLOSE(endpoint, NdkCloseSharedEndpoint);
    end_close(&c);
    end_close(&s);
}

/* A peer that only knows revision 1: the second attempt comes from the endpoint's port, too, though
 * others connect from it meanwhile. */
static void the_retry_keeps_the_endpoint(void **state)
{
    struct end c, s;
    struct lane other;
    struct peer peer;
    struct call call;
    struct os_addr from;
    SOCKADDR_INET to, at;
    NDK_SHARED_ENDPOINT *endpoint;
    uint8_t frame[532];

    (void)state;
    end_open(&c, NULL);
    end_open(&s, NULL);
    endpoint = any_shared(c.adapter, "127.0.0.1");
    at = shared_address(endpoint);
    lane_open(&c, &s, "127.0.0.1", &other);
    lane_connect(&other, endpoint);
    peer_init(&peer);
    to = at_port("127.0.0.1", peer_listen(&peer));
    c.connector = make_connector(c.adapter);
    dial_over(c.connector, c.qp, endpoint, &to, &call);
    assert_int_equal(call.returned, STATUS_PENDING);
    for (unsigned revision = 2; revision > 0; revision--) {
        peer_accept(&peer);
        assert_int_equal(peer_frame(&peer, frame), revision == 2 ? 24 : 20);
        assert_int_equal(frame[17], revision);
        assert_int_equal(os_tcp_peer(peer.fd, &from), 0);
        assert_int_equal(from.port, RtlUshortByteSwap(at.Ipv4.sin_port));
        if (revision == 2)
            peer_hang_up(&peer, false);
    }
    assert_true(peer_send(&peer, "MPA ID Rep Frame\x40\x01\x00\x00", 20));
    assert_int_equal(ended(&call), STATUS_SUCCESS);
    lane_works(&c, &s, &other);
    CLOSE(c.connector, NdkCloseConnector);
    c.connector = NULL;
    peer_close(&peer);
    lane_close(&other);
    CLOSE(endpoint, NdkCloseSharedEndpoint);
    end_close(&c);
    end_close(&s);
}

/* ---- the port, and the order of closing ----------------------------------------------------- */

static void held_until_the_last(void **state)
{
    struct end c, s;
    struct lane up, failed;
    struct call closing;
    NDK_SHARED_ENDPOINT *endpoint;
    SOCKADDR_INET at;

    (void)state;
    end_open(&c, NULL);
    end_open(&s, NULL);
    endpoint = any_shared(c.adapter, "127.0.0.1");
    at = shared_address(endpoint);
    lane_open(&c, &s, "127.0.0.1", &up);
    lane_open(&c, &s, "127.0.0.1", &failed);
    lane_connect(&up, endpoint);
    lane_dial(&failed, endpoint);
    close_next(&failed.listening);
    assert_int_equal(ended(&failed.connect), STATUS_CONNECTION_REFUSED);
    BEGIN_CLOSE(endpoint, NdkCloseSharedEndpoint, &closing);
    assert_int_equal(closing.returned, STATUS_PENDING);
    lane_works(&c, &s, &up); /* a close of the object ends nothing */
    assert_int_equal(listen_status(c.adapter, &at), STATUS_SHARING_VIOLATION);
    lane_close_client(&up);
    assert_int_equal(listen_status(c.adapter, &at), STATUS_SHARING_VIOLATION);
    assert_int_equal(atomic_load(&closing.wait.calls), 0);
    lane_close_client(&failed); /* a failed attempt holds it as well */
    assert_int_equal(ended(&closing), STATUS_SUCCESS);
    assert_int_equal(listen_status(c.adapter, &at), STATUS_SUCCESS);
    lane_close(&up);
    lane_close(&failed);
    end_close(&c);
    end_close(&s);
}

/* Endpoint, an established and a connecting connector in all six orders, each close begun before
 * the one before has ended. */
static void every_order(void **state)
{
    static const char orders[6][4] = {"eud", "edu", "ued", "ude", "deu", "due"};
    struct end c, s;

    (void)state;
    end_open(&c, NULL);
    end_open(&s, NULL);
    for (int i = 0; i < 6; i++) {
        struct lane up, dialing;
        struct call closing;
        NDK_SHARED_ENDPOINT *endpoint = any_shared(c.adapter, "127.0.0.1");
        SOCKADDR_INET at = shared_address(endpoint);

        lane_open(&c, &s, "127.0.0.1", &up);
        lane_open(&c, &s, "127.0.0.1", &dialing);
        lane_connect(&up, endpoint);
        lane_dial(&dialing, endpoint);
        dialing.server = next_incoming(&dialing.listening);
        for (const char *which = orders[i]; *which; which++) {
            if (*which == 'e')
                BEGIN_CLOSE(endpoint, NdkCloseSharedEndpoint, &closing);
            else if (*which == 'u')
                BEGIN_CLOSE(up.client, NdkCloseConnector, &up.closing);
            else
                BEGIN_CLOSE(dialing.client, NdkCloseConnector, &dialing.closing);
        }
        up.client = dialing.client = NULL;
        assert_int_equal(ended(&dialing.connect), STATUS_CANCELLED);
        assert_int_equal(ended(&dialing.closing), STATUS_SUCCESS);
        assert_int_equal(ended(&up.closing), STATUS_SUCCESS);
        assert_int_equal(ended(&closing), STATUS_SUCCESS);
        assert_int_equal(listen_status(c.adapter, &at), STATUS_SUCCESS);
        lane_close(&up);
        lane_close(&dialing);
    }
    end_close(&c);
    end_close(&s);
}

/* The connector is closed inside its connect completion, the endpoint inside the completion of that
 * close: its own close completes once that has returned. */
struct inside {
    NDK_CONNECTOR *connector;
    NDK_SHARED_ENDPOINT *endpoint;
    struct call connector_closing, endpoint_closing;
    struct wait connected;
    atomic_bool in_callback, overlapped;
};

static VOID inside_endpoint_closed(PVOID context)
{
    struct inside *inside = context;

    if (atomic_load(&inside->in_callback))
        atomic_store(&inside->overlapped, true);
    wait_close(&inside->endpoint_closing.wait);
}

static VOID inside_connector_closed(PVOID context)
{
    struct inside *inside = context;

    atomic_store(&inside->in_callback, true);
    inside->endpoint_closing.returned = inside->endpoint->Dispatch->NdkCloseSharedEndpoint(
        &inside->endpoint->Header, inside_endpoint_closed, inside);
    test_sleep_ms(2);
    atomic_store(&inside->in_callback, false);
    wait_close(&inside->connector_closing.wait);
}

static VOID inside_connected(PVOID context, NTSTATUS status)
{
    struct inside *inside = context;

    inside->connector_closing.returned = inside->connector->Dispatch->NdkCloseConnector(
        &inside->connector->Header, inside_connector_closed, inside);
    wait_request(&inside->connected, status);
}

static void closed_inside_completions(void **state)
{
    struct end c;
    SOCKADDR_INET to = at_port("127.0.0.1", 0);
    struct os_addr closed;
    int fd;

    (void)state;
    end_open(&c, NULL);
    /* A port where nobody listens. */
    assert_int_equal(os_addr_parse("127.0.0.1", &closed), 0);
    fd = os_tcp_socket(OS_FAMILY_V4);
    assert_int_equal(os_tcp_bind(fd, &closed), 0);
    assert_int_equal(os_tcp_local(fd, &closed), 0);
    to.Ipv4.sin_port = RtlUshortByteSwap(closed.port);
    for (int i = 0; i < 10; i++) {
        static struct inside inside;
        SOCKADDR_INET peer = to;
        NTSTATUS returned;

        memset(&inside, 0, sizeof inside);
        wait_init(&inside.connected);
        wait_init(&inside.connector_closing.wait);
        wait_init(&inside.endpoint_closing.wait);
        inside.connector = make_connector(c.adapter);
        inside.endpoint = any_shared(c.adapter, "127.0.0.1");
        returned = inside.connector->Dispatch->NdkConnectWithSharedEndpoint(
            inside.connector, c.qp, inside.endpoint, (PSOCKADDR)&peer, sizeof peer.Ipv4, 1, 1, NULL,
            0, inside_connected, &inside);
        assert_int_equal(returned, STATUS_PENDING);
        assert_int_equal(wait_end(&inside.connected, returned), STATUS_CONNECTION_REFUSED);
        /* Within its own callback a close always pends, and so does that of what it holds. */
        assert_int_equal(ended(&inside.connector_closing), STATUS_SUCCESS);
        assert_int_equal(inside.connector_closing.returned, STATUS_PENDING);
        assert_int_equal(ended(&inside.endpoint_closing), STATUS_SUCCESS);
        assert_int_equal(inside.endpoint_closing.returned, STATUS_PENDING);
        assert_false(atomic_load(&inside.overlapped));
    }
    os_tcp_close(fd);
    end_close(&c);
}

/* ---- several threads ------------------------------------------------------------------------ */

#define THREADS 4
#define ROUNDS  12
#define EACH    4 /* attempts of a thread in a round */

/* Threads connect over one endpoint to two destinations, so that they are in each other's way, and
 * close what they have at once, after the outcome, or after the endpoint's close has begun. */
struct crowd {
    struct end client, server;
    struct listening listening[2];
    NDK_SHARED_ENDPOINT *endpoint;
    pthread_barrier_t dialed;
    atomic_uint connected, faults;
};

struct walker {
    struct crowd *crowd;
    pthread_t thread;
    unsigned random;
};

static unsigned draw(unsigned *random, unsigned below)
{
    *random = *random * 1664525u + 1013904223u;
    return (*random >> 16) % below;
}

static VOID ignore_close(PVOID context)
{
    (void)context;
}

/* Incoming: rejected, or closed undecided. */
static void refuse(struct listening *listening, NDK_CONNECTOR *connector, void *context)
{
    struct crowd *crowd = context;

    (void)listening;
    if (atomic_fetch_add(&crowd->connected, 1) % 2)
        connector->Dispatch->NdkReject(connector, NULL, 0);
    connector->Dispatch->NdkCloseConnector(&connector->Header, ignore_close, NULL);
}

static bool acceptable(NTSTATUS status)
{
    return status == STATUS_CONNECTION_REFUSED || status == STATUS_CANCELLED ||
           status == STATUS_ADDRESS_ALREADY_EXISTS;
}

static void *walk(void *context)
{
    struct walker *walker = context;
    struct crowd *crowd = walker->crowd;
    struct {
        NDK_CONNECTOR *connector;
        NDK_QP *qp;
        struct call call;
    } tries[EACH];

    for (int i = 0; i < EACH; i++) {
        struct listening *to = &crowd->listening[draw(&walker->random, 2)];
        NTSTATUS status;

        tries[i].connector = make_connector(crowd->client.adapter);
        tries[i].qp = make_qp(&crowd->client);
        dial_over(tries[i].connector, tries[i].qp, crowd->endpoint, &to->address, &tries[i].call);
        if (draw(&walker->random, 3) == 0)
            continue; /* closed while it connects */
        status = ended(&tries[i].call);
        tries[i].call.returned = STATUS_SUCCESS;
        if (!acceptable(status))
            atomic_fetch_add(&crowd->faults, 1);
        if (draw(&walker->random, 2)) {
            CLOSE(tries[i].connector, NdkCloseConnector);
            tries[i].connector = NULL;
        }
    }
    pthread_barrier_wait(&crowd->dialed); /* nobody calls with the endpoint any more */
    for (int i = 0; i < EACH; i++) {
        if (tries[i].connector)
            CLOSE(tries[i].connector, NdkCloseConnector);
        if (tries[i].call.returned != STATUS_SUCCESS && !acceptable(ended(&tries[i].call)))
            atomic_fetch_add(&crowd->faults, 1);
        CLOSE(tries[i].qp, NdkCloseQp);
    }
    return NULL;
}

static void closed_by_several_threads(void **state)
{
    static struct crowd crowd;
    struct walker walkers[THREADS];

    (void)state;
    memset(&crowd, 0, sizeof crowd);
    end_open(&crowd.client, "retry_v1=0,shards=3");
    end_open(&crowd.server, "shards=3");
    for (int i = 0; i < 2; i++) {
        listen_on(crowd.server.adapter, "127.0.0.1", &crowd.listening[i]);
        crowd.listening[i].context = &crowd;
        crowd.listening[i].in_callback = refuse;
    }
    for (int round = 0; round < ROUNDS; round++) {
        SOCKADDR_INET at;
        struct call closing;

        crowd.endpoint = any_shared(crowd.client.adapter, "127.0.0.1");
        at = shared_address(crowd.endpoint);
        pthread_barrier_init(&crowd.dialed, NULL, THREADS + 1);
        for (unsigned i = 0; i < THREADS; i++) {
            walkers[i].crowd = &crowd;
            walkers[i].random = (unsigned)round * 101 + i * 7919 + 1;
            assert_int_equal(pthread_create(&walkers[i].thread, NULL, walk, &walkers[i]), 0);
        }
        pthread_barrier_wait(&crowd.dialed);
        BEGIN_CLOSE(crowd.endpoint, NdkCloseSharedEndpoint, &closing);
        for (unsigned i = 0; i < THREADS; i++)
            pthread_join(walkers[i].thread, NULL);
        assert_int_equal(ended(&closing), STATUS_SUCCESS);
        assert_int_equal(listen_status(crowd.client.adapter, &at), STATUS_SUCCESS);
        pthread_barrier_destroy(&crowd.dialed);
    }
    assert_int_equal(atomic_load(&crowd.faults), 0);
    assert_true(atomic_load(&crowd.connected) > 0);
    for (int i = 0; i < 2; i++)
        CLOSE(crowd.listening[i].listener, NdkCloseListener);
    end_close(&crowd.client);
    end_close(&crowd.server);
}

int main(void)
{
    static const char *const modes[] = {"never", "always", "early", "random:41"};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_destinations_at_once),
        cmocka_unit_test(two_destinations_at_once_v6),
        cmocka_unit_test(a_crowd),
        cmocka_unit_test(the_same_destination_again),
        cmocka_unit_test(the_retry_keeps_the_endpoint),
        cmocka_unit_test(held_until_the_last),
        cmocka_unit_test(every_order),
        cmocka_unit_test(closed_inside_completions),
        cmocka_unit_test(closed_by_several_threads),
    };
    int failed = 0;

    for (size_t i = 0; i < sizeof modes / sizeof modes[0] && !failed; i++) {
        softndk_set_pend(modes[i]);
        failed += cmocka_run_group_tests_name(modes[i], tests, NULL, NULL);
    }
    return failed;
}
