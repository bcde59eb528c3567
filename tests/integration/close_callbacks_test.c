// SPDX-License-Identifier: MIT
/*
 * Closing from inside callbacks, and what a close waits for: an object closed in its own callback
 * pends until that callback has returned and is not called any more; a listener refuses from its
 * close on; the adapter close waits for the return of the last completion, and is refused inside a
 * callback; a consumer may close the last successor under a lock that the completion of the
 * antecedent takes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pthread.h>

#include <cmocka.h>

#include "ends.h"

static const char *const modes[] = {"never", "always", "early", "random:11"};

static void set_mode(const char *mode)
{
    assert_int_equal(softndk_set_pend(mode), STATUS_SUCCESS);
}

/* ---- an object that is closed inside a callback of its own ---- */

/* The callback stays a while after the close; `ended` tells when it is about to return. */
struct inside {
    NDK_OBJECT_HEADER *object; /* closed by the first callback */
    NDK_FN_CLOSE_OBJECT close;
    atomic_uint callbacks, ended, closed, after; /* after: callbacks after the close completion */
    atomic_bool closed_early; /* the completion ran before the callback had returned */
    NTSTATUS returned, status;
};

static VOID inside_closed(PVOID context)
{
    struct inside *in = context;

    if (atomic_load(&in->ended) != atomic_load(&in->callbacks))
        atomic_store(&in->closed_early, true);
    atomic_fetch_add(&in->closed, 1);
}

static void inside_run(struct inside *in)
{
    if (atomic_load(&in->closed))
        atomic_fetch_add(&in->after, 1);
    if (atomic_fetch_add(&in->callbacks, 1) == 0) {
        in->returned = in->close(in->object, inside_closed, in);
        test_sleep_ms(10);
    }
    atomic_fetch_add(&in->ended, 1);
}

static VOID inside_request(PVOID context, NTSTATUS status)
{
    struct inside *in = context;

    in->status = status;
    inside_run(in);
}

static VOID inside_disconnected(PVOID context, ULONG reason)
{
    (void)reason;
    inside_run(context);
}

static VOID inside_notified(PVOID context, NTSTATUS status)
{
    (void)status;
    inside_run(context);
}

static void expect_inside(struct inside *in, unsigned callbacks)
{
    wait_until(atomic_load(&in->closed) != 0, "the completion of a close inside a callback");
    assert_int_equal(in->returned, STATUS_PENDING);
    assert_false(atomic_load(&in->closed_early));
    assert_int_equal(atomic_load(&in->callbacks), callbacks);
}

/* After the adapter has gone. */
static void expect_silence(struct inside *in)
{
    assert_int_equal(atomic_load(&in->closed), 1);
    assert_int_equal(atomic_load(&in->after), 0);
}

static void ends_open(struct pair *pair)
{
    end_open(&pair->server, NULL);
    end_open(&pair->client, NULL);
    listen_on(pair->server.adapter, "127.0.0.1", &pair->listening);
}

static NTSTATUS start_connect(struct pair *pair, NDK_FN_REQUEST_COMPLETION completion,
                              PVOID context)
{
    SOCKADDR_INET local = local_of(&pair->listening);
    NDK_CONNECTOR *k = pair->client.connector;

    return k->Dispatch->NdkConnect(
        k, pair->client.qp, (PSOCKADDR)&local, pair->listening.address_length,
        (PSOCKADDR)&pair->listening.address, pair->listening.address_length, 1, 1, NULL, 0,
        completion, context);
}

/* Which completion or event of a connector closes it. */
enum where { IN_CONNECT, IN_ACCEPT, IN_COMPLETE, IN_DISCONNECT, IN_EVENT, WHERES };

static void closed_in(enum where where)
{
    struct inside in;
    struct wait connect, accept, complete;
    NTSTATUS accepting;
    struct pair pair;
    struct end *c = &pair.client, *s = &pair.server;
    NDK_CONNECTOR **closed = where == IN_ACCEPT ? &s->connector : &c->connector;

    memset(&in, 0, sizeof in);
    ends_open(&pair);
    c->connector = make_connector(c->adapter);
    in.close = c->connector->Dispatch->NdkCloseConnector;
    in.object = &c->connector->Header;
    wait_init(&connect);
    assert_int_equal(start_connect(&pair, where == IN_CONNECT ? inside_request : wait_request,
                                   where == IN_CONNECT ? (PVOID)&in : (PVOID)&connect),
                     STATUS_PENDING);
    s->connector = next_incoming(&pair.listening);
    if (where == IN_ACCEPT)
        in.object = &s->connector->Header;
    wait_init(&accept);
    accepting =
        s->connector->Dispatch->NdkAcceptEx(s->connector, s->qp, 1, 1, NULL, 0, end_disconnected, s,
                                            where == IN_ACCEPT ? inside_request : wait_request,
                                            where == IN_ACCEPT ? (PVOID)&in : (PVOID)&accept);
    assert_int_equal(accepting, STATUS_PENDING);
    if (where == IN_CONNECT) {
        expect_inside(&in, 1);
        assert_int_not_equal(wait_end(&accept, accepting), STATUS_SUCCESS);
    } else {
        NTSTATUS completing;

        assert_int_equal(wait_end(&connect, STATUS_PENDING), STATUS_SUCCESS);
        wait_init(&complete);
        completing = c->connector->Dispatch->NdkCompleteConnectEx(
            c->connector, where == IN_EVENT ? inside_disconnected : end_disconnected,
            where == IN_EVENT ? (PVOID)&in : (PVOID)c,
            where == IN_COMPLETE ? inside_request : wait_request,
            where == IN_COMPLETE ? (PVOID)&in : (PVOID)&complete);
        assert_int_equal(completing, STATUS_PENDING);
        if (where != IN_COMPLETE)
            wait_end(&complete, completing);
        if (where != IN_ACCEPT)
            wait_end(&accept, accepting);
        if (where == IN_DISCONNECT)
            assert_int_equal(
                c->connector->Dispatch->NdkDisconnect(c->connector, inside_request, &in),
                STATUS_PENDING);
        if (where == IN_EVENT || where == IN_DISCONNECT) {
            CLOSE(s->connector, NdkCloseConnector);
            s->connector = NULL;
        }
        expect_inside(&in, 1);
    }
    *closed = NULL;
    pair_close(&pair);
    expect_silence(&in);
}

static void a_connector_in_its_callbacks(void **state)
{
    (void)state;
    for (int m = 0; m < 4; m++)
        for (enum where where = IN_CONNECT; where < WHERES; where++)
            for (int turn = 0; turn < 3; turn++) {
                set_mode(modes[m]);
                closed_in(where);
            }
}

/* The connect event of a connector that is shown there: closing it is the implicit reject. */
static void close_incoming(struct listening *listening, NDK_CONNECTOR *connector, void *context)
{
    struct inside *in = context;

    (void)listening;
    in->object = &connector->Header;
    in->close = connector->Dispatch->NdkCloseConnector;
    inside_run(in);
}

static void close_listener(struct listening *listening, NDK_CONNECTOR *connector, void *context)
{
    struct inside *in = context;

    (void)connector;
    in->object = &listening->listener->Header;
    in->close = listening->listener->Dispatch->NdkCloseListener;
    inside_run(in);
}

static void in_the_connect_event(bool listener)
{
    struct inside in;
    struct wait connect;
    NTSTATUS connecting;
    struct pair pair;

    memset(&in, 0, sizeof in);
    ends_open(&pair);
    pair.listening.in_callback = listener ? close_listener : close_incoming;
    pair.listening.context = &in;
    pair.client.connector = make_connector(pair.client.adapter);
    wait_init(&connect);
    connecting = start_connect(&pair, wait_request, &connect);
    if (listener) {
        /* It pends on the connector that it has just delivered. */
        NDK_CONNECTOR *incoming = next_incoming(&pair.listening);

        test_sleep_ms(20);
        assert_int_equal(in.returned, STATUS_PENDING);
        assert_int_equal(atomic_load(&in.closed), 0);
        CLOSE(incoming, NdkCloseConnector);
    }
    expect_inside(&in, 1);
    assert_int_equal(wait_end(&connect, connecting), STATUS_CONNECTION_REFUSED);
    if (listener) {
        end_close(&pair.client);
        end_close(&pair.server);
    } else {
        pair_close(&pair);
    }
    expect_silence(&in);
}

static void connector_and_listener_in_the_connect_event(void **state)
{
    (void)state;
    for (int m = 0; m < 4; m++)
        for (int turn = 0; turn < 3; turn++) {
            set_mode(modes[m]);
            in_the_connect_event(false);
            in_the_connect_event(true);
        }
}

/* A CQ, and a QP, inside the notification of a flushed receive. */
static void in_a_notification(bool qp_too)
{
    struct inside in;
    struct wait w;
    NTSTATUS status;
    NDK_QP *qp = NULL;
    NDK_CQ *cq = NULL;
    NDK_ADAPTER *adapter = open_adapter(NULL);
    NDK_PD *pd = make_pd(adapter);

    memset(&in, 0, sizeof in);
    wait_init(&w);
    status = adapter->Dispatch->NdkCreateCq(adapter, 16, inside_notified, &in, NULL, wait_create,
                                            &w, &cq);
    assert_int_equal(wait_end(&w, status), STATUS_SUCCESS);
    if (status == STATUS_PENDING)
        cq = (NDK_CQ *)(void *)w.object;
    wait_init(&w);
    status = pd->Dispatch->NdkCreateQp(pd, cq, cq, NULL, 16, 16, 1, 1, 0, wait_create, &w, &qp);
    assert_int_equal(wait_end(&w, status), STATUS_SUCCESS);
    if (status == STATUS_PENDING)
        qp = (NDK_QP *)(void *)w.object;
    in.object = qp_too ? &qp->Header : &cq->Header;
    in.close = qp_too ? qp->Dispatch->NdkCloseQp : cq->Dispatch->NdkCloseCq;
    cq->Dispatch->NdkArmCq(cq, NDK_CQ_NOTIFY_ANY);
    assert_int_equal(qp->Dispatch->NdkReceive(qp, &in, NULL, 0), STATUS_SUCCESS);
    qp->Dispatch->NdkFlush(qp);
    wait_until(atomic_load(&in.ended) == 1, "the notification");
    if (!qp_too) {
        assert_int_equal(in.returned, STATUS_PENDING); /* of the QP, too */
        assert_int_equal(atomic_load(&in.closed), 0);
        CLOSE(qp, NdkCloseQp);
        expect_inside(&in, 1);
    } else {
        /* A notification is no callback of the QP: its close may be inline. */
        wait_until(in.returned == STATUS_SUCCESS || atomic_load(&in.closed), "the QP's close");
        CLOSE(cq, NdkCloseCq);
    }
    CLOSE(pd, NdkClosePd);
    softndk_close_adapter(adapter);
    assert_int_equal(atomic_load(&in.closed), in.returned == STATUS_PENDING);
    assert_int_equal(atomic_load(&in.callbacks), 1);
}

static void cq_and_qp_in_a_notification(void **state)
{
    (void)state;
    for (int m = 0; m < 4; m++)
        for (int turn = 0; turn < 5; turn++) {
            set_mode(modes[m]);
            in_a_notification(false);
            in_a_notification(true);
        }
}

/* A region in the completion of its registration. */
static void an_mr_in_its_registration(void **state)
{
    (void)state;
    for (int m = 1; m < 3; m++) {
        NDK_ADAPTER *adapter;
        struct memory memory;
        struct inside in;
        struct wait w;
        NTSTATUS status;
        NDK_PD *pd;

        set_mode("never");
        adapter = open_adapter(NULL);
        pd = make_pd(adapter);
        make_memory(pd, 4096, NDK_MR_FLAG_ALLOW_LOCAL_WRITE, &memory);
        wait_init(&w);
        status = memory.mr->Dispatch->NdkDeregisterMr(memory.mr, wait_request, &w);
        assert_int_equal(wait_end(&w, status), STATUS_SUCCESS);
        memset(&in, 0, sizeof in);
        in.object = &memory.mr->Header;
        in.close = memory.mr->Dispatch->NdkCloseMr;
        set_mode(modes[m]);
        assert_int_equal(memory.mr->Dispatch->NdkRegisterMr(memory.mr, memory.mdl, 4096,
                                                            NDK_MR_FLAG_ALLOW_LOCAL_WRITE,
                                                            inside_request, &in),
                         STATUS_PENDING);
        expect_inside(&in, 1);
        CLOSE(pd, NdkClosePd);
        softndk_close_adapter(adapter);
        expect_silence(&in);
        IoFreeMdl(memory.mdl);
        free(memory.data);
    }
}

/* ---- C8: a listener refuses from its close on, also while it pends ---- */

static void a_closed_listener_refuses(void **state)
{
    (void)state;
    for (int m = 0; m < 4; m++) {
        struct wait first, second, closed;
        NTSTATUS connecting, closing;
        NDK_CONNECTOR *delivered, *again;
        struct pair pair;

        set_mode(modes[m]);
        ends_open(&pair);
        pair.client.connector = make_connector(pair.client.adapter);
        wait_init(&first);
        assert_int_equal(start_connect(&pair, wait_request, &first), STATUS_PENDING);
        delivered = next_incoming(&pair.listening);
        wait_init(&closed);
        closing = pair.listening.listener->Dispatch->NdkCloseListener(
            &pair.listening.listener->Header, wait_close, &closed);
        assert_int_equal(closing, STATUS_PENDING);
        /* Again, with another QP and connector. */
        again = pair.client.connector;
        pair.client.connector = make_connector(pair.client.adapter);
        CLOSE(again, NdkCloseConnector);
        assert_int_not_equal(wait_end(&first, STATUS_PENDING), STATUS_SUCCESS);
        wait_init(&second);
        connecting = start_connect(&pair, wait_request, &second);
        assert_int_equal(wait_end(&second, connecting), STATUS_CONNECTION_REFUSED);
        assert_int_equal(atomic_load(&closed.calls), 0);
        assert_int_equal(atomic_load(&pair.listening.events), 1);
        CLOSE(delivered, NdkCloseConnector);
        wait_end(&closed, closing);
        end_close(&pair.client);
        end_close(&pair.server);
        assert_int_equal(atomic_load(&closed.calls), 1);
    }
}

/* ---- C7, C9: the adapter close waits for callbacks to return ---- */

struct slow {
    KEVENT begun;
    atomic_bool returned;
};

static VOID slow_closed(PVOID context)
{
    struct slow *slow = context;

    KeSetEvent(&slow->begun, 0, FALSE); /* from here on the consumer may close and unload */
    test_sleep_ms(50);
    atomic_store(&slow->returned, true);
}

static void the_adapter_close_waits_for_returns(void **state)
{
    (void)state;
    for (int turn = 0; turn < 5; turn++) {
        NDK_ADAPTER *adapter;
        struct slow slow;
        NDK_PD *pd;

        set_mode("always");
        adapter = open_adapter(NULL);
        pd = make_pd(adapter);
        KeInitializeEvent(&slow.begun, NotificationEvent, FALSE);
        atomic_init(&slow.returned, false);
        assert_int_equal(pd->Dispatch->NdkClosePd(&pd->Header, slow_closed, &slow), STATUS_PENDING);
        assert_true(wait_event(&slow.begun, WAIT_S * 1000));
        softndk_close_adapter(adapter);
        assert_true(atomic_load(&slow.returned));
    }
}

/* ---- C10: in a child process, since it ends ---- */

static VOID child_closes(PVOID context, NTSTATUS status, NDK_OBJECT_HEADER *object)
{
    (void)status;
    (void)object;
    softndk_close_adapter(context);
    _exit(42); /* it came back */
}

static int child(void)
{
    NDK_ADAPTER *adapter = open_adapter(NULL);
    NDK_PD *pd;

    softndk_set_pend("always");
    adapter->Dispatch->NdkCreatePd(adapter, child_closes, adapter, &pd);
    test_sleep_ms(WAIT_S * 1000);
    return 1;
}

/* The child's wait status; what it said is appended to text. */
static int run_child(const char *tolerant, char *text, size_t size)
{
    int pipes[2], status = -1;
    size_t used = 0;
    ssize_t n;
    pid_t pid;

    assert_int_equal(pipe(pipes), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dup2(pipes[1], 2);
        close(pipes[0]);
        setenv("SOFTNDK_TOLERANT", tolerant, 1);
        execl("/proc/self/exe", "close_callbacks_test", "child", (char *)NULL);
        _exit(99);
    }
    close(pipes[1]);
    while (used + 1 < size && (n = read(pipes[0], text + used, size - 1 - used)) > 0)
        used += (size_t)n;
    text[used] = '\0';
    close(pipes[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void an_adapter_close_in_a_callback_is_found(void **state)
{
    char text[4096];
    int status;

    (void)state;
    status = run_child("0", text, sizeof text);
    assert_non_null(strstr(text, "C10"));
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    status = run_child("1", text, sizeof text);
    assert_non_null(strstr(text, "C10"));
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 42);
}

/* ---- the last successor closed under a lock that the antecedent's completion takes ---- */

struct locked {
    pthread_mutex_t lock;
    atomic_uint completions;
};

static VOID locked_closed(PVOID context)
{
    struct locked *locked = context;

    pthread_mutex_lock(&locked->lock);
    atomic_fetch_add(&locked->completions, 1);
    pthread_mutex_unlock(&locked->lock);
}

static void a_lock_around_the_last_successor(void **state)
{
    (void)state;
    for (int m = 0; m < 4; m++)
        for (int turn = 0; turn < 20; turn++) {
            struct locked locked = {.lock = PTHREAD_MUTEX_INITIALIZER};
            struct queue queue;
            struct wait w;
            NDK_ADAPTER *adapter;
            NDK_QP *qp = NULL;
            NTSTATUS status;
            unsigned expected = 2;
            NDK_PD *pd;

            set_mode(modes[m]);
            adapter = open_adapter(NULL);
            pd = make_pd(adapter);
            make_queue(adapter, 16, &queue);
            wait_init(&w);
            status = pd->Dispatch->NdkCreateQp(pd, queue.cq, queue.cq, NULL, 4, 4, 1, 1, 0,
                                               wait_create, &w, &qp);
            assert_int_equal(wait_end(&w, status), STATUS_SUCCESS);
            if (status == STATUS_PENDING)
                qp = (NDK_QP *)(void *)w.object;
            assert_int_equal(pd->Dispatch->NdkClosePd(&pd->Header, locked_closed, &locked),
                             STATUS_PENDING);
            assert_int_equal(
                queue.cq->Dispatch->NdkCloseCq(&queue.cq->Header, locked_closed, &locked),
                STATUS_PENDING);
            pthread_mutex_lock(&locked.lock);
            if (qp->Dispatch->NdkCloseQp(&qp->Header, locked_closed, &locked) == STATUS_PENDING)
                expected++;
            assert_int_equal(atomic_load(&locked.completions), 0);
            pthread_mutex_unlock(&locked.lock);
            softndk_close_adapter(adapter);
            assert_int_equal(atomic_load(&locked.completions), expected);
            pthread_mutex_destroy(&locked.lock);
        }
}

/* ---- a Send posted in a callback that outlives its connection, its QP and its CQ ---- */

struct outliving {
    struct pair pair;
    struct memory memory;
    KEVENT posted;
    NTSTATUS status;
    atomic_bool go_on, waited_in_vain;
};

static VOID posts_closed(PVOID context)
{
    (void)context;
}

/* On the adapter's shard; the connection's is another. The Send is to go when this has returned. */
static VOID posts_and_stays(PVOID context, NTSTATUS status, NDK_OBJECT_HEADER *object)
{
    struct outliving *o = context;
    NDK_QP *qp = o->pair.client.qp;
    NDK_SGE sge = memory_sge(&o->memory, 0, 8);
    NDK_PD *pd = (NDK_PD *)(void *)object;

    o->status = status != STATUS_SUCCESS ? status : qp->Dispatch->NdkSend(qp, o, &sge, 1, 0);
    KeSetEvent(&o->posted, 0, FALSE);
    for (unsigned ms = 0; !atomic_load(&o->go_on); ms++) { /* at DISPATCH_LEVEL: no KEVENT */
        if (ms > WAIT_S * 1000) {
            atomic_store(&o->waited_in_vain, true);
            break;
        }
        test_sleep_ms(1);
    }
    if (status == STATUS_SUCCESS)
        pd->Dispatch->NdkClosePd(&pd->Header, posts_closed, NULL);
}

/* With queues_too nothing of the QP is there any more when the callback returns: its PD's close has
 * waited for that. */
static void a_post_outlives(bool queues_too)
{
    static struct outliving o;
    struct end *c = &o.pair.client;
    NDK_RESULT_EX result;
    NDK_PD *other;

    memset(&o, 0, sizeof o);
    KeInitializeEvent(&o.posted, NotificationEvent, FALSE);
    set_mode("never");
    /* Shards are dealt in turn, to the adapter and then to the CQ where the connection lives. */
    pair_open(&o.pair, "127.0.0.1", "shards=4", "shards=4");
    make_memory(c->pd, 4096, NDK_MR_FLAG_ALLOW_LOCAL_WRITE, &o.memory);
    set_mode("always");
    assert_int_equal(c->adapter->Dispatch->NdkCreatePd(c->adapter, posts_and_stays, &o, &other),
                     STATUS_PENDING);
    assert_true(wait_event(&o.posted, WAIT_S * 1000));
    set_mode("never");
    assert_int_equal(o.status, STATUS_SUCCESS);
    CLOSE(c->connector, NdkCloseConnector);
    c->connector = NULL;
    result = queue_next(&c->initiator);
    assert_int_equal(result.Status, STATUS_CANCELLED);
    assert_ptr_equal(result.RequestContext, &o);
    free_memory(&o.memory);
    if (queues_too) {
        CLOSE(c->qp, NdkCloseQp);
        CLOSE(c->pd, NdkClosePd);
        c->qp = NULL;
        c->pd = NULL;
    }
    atomic_store(&o.go_on, true);
    assert_false(queue_try(&c->initiator, &result, 10));
    pair_close(&o.pair); /* waits until the callback has returned */
    assert_false(atomic_load(&o.waited_in_vain));
}

static void a_post_outlives_its_queues(void **state)
{
    (void)state;
    a_post_outlives(false);
    a_post_outlives(true);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_connector_in_its_callbacks),
        cmocka_unit_test(connector_and_listener_in_the_connect_event),
        cmocka_unit_test(cq_and_qp_in_a_notification),
        cmocka_unit_test(an_mr_in_its_registration),
        cmocka_unit_test(a_closed_listener_refuses),
        cmocka_unit_test(the_adapter_close_waits_for_returns),
        cmocka_unit_test(an_adapter_close_in_a_callback_is_found),
        cmocka_unit_test(a_lock_around_the_last_successor),
        cmocka_unit_test(a_post_outlives_its_queues),
    };

    if (argc > 1 && strcmp(argv[1], "child") == 0)
        return child();
    return cmocka_run_group_tests_name("close_callbacks", tests, NULL, NULL);
}
