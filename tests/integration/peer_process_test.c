// SPDX-License-Identifier: MIT
/*
 * The peer is another process, which is killed, stopped and continued, or stopped and killed, in
 * each phase of a connection, in both roles. This end's calls each end in time with a status their
 * documents list; it is told once; a peer that was only stopped has changed nothing.
 *
 * The peer is this program again (`peer_process_test PHASE ROLE ADDRESS`), told and telling through
 * its standard input and output: a line when it has reached the phase, where it waits for a line.
 * The peer echoes a message once it is connected.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../support/modes.h"
#include "../support/regions.h"

#include <cmocka.h>

#define SIZE 100000u

enum action { KILL, STOP, STOP_KILL, ACTIONS };
static const char *const action_names[] = {"killed", "stopped", "stopped and killed"};

/* ---- the peer ------------------------------------------------------------------------------- */

static const char *peer_phase;

/* The phase is reached: tells so, and goes on when it is told. */
static void phase(const char *name)
{
    if (strcmp(name, peer_phase) != 0)
        return;
    printf("%s\n", name);
    fflush(stdout);
    if (getchar() == EOF)
        exit(3);
}

static void peer_serve_data(struct end *e, const struct memory *memory)
{
    phase("data");
    assert_int_equal(queue_next(&e->receive).Status, STATUS_SUCCESS);
    assert_int_equal(post_send(e, memory, SIZE, 0, e), STATUS_SUCCESS);
    assert_int_equal(queue_next(&e->initiator).Status, STATUS_SUCCESS);
}

static void peer_leave(struct end *e)
{
    struct wait w;

    if (!wait_event(&e->disconnected, WAIT_S * 1000))
        exit(4);
    phase("leaving");
    wait_init(&w);
    wait_end(&w, e->connector->Dispatch->NdkDisconnect(e->connector, wait_request, &w));
    CLOSE(e->connector, NdkCloseConnector);
    e->connector = NULL;
}

static int peer_listens(void)
{
    struct listening listening;
    struct end e;
    struct memory memory;
    struct wait w;
    NTSTATUS status;

    end_open(&e, NULL);
    make_memory(e.pd, SIZE, ALL_RIGHTS, &memory);
    listen_on(e.adapter, own_address(), &listening);
    printf("%s %u\n", own_address(), inet_port(&listening.address));
    fflush(stdout);
    phase("listening");
    e.connector = next_incoming(&listening);
    phase("deciding");
    post_receive(&e, &memory, SIZE, &e);
    wait_init(&w);
    status =
        wait_end(&w, e.connector->Dispatch->NdkAcceptEx(e.connector, e.qp, 1, 1, NULL, 0,
                                                        end_disconnected, &e, wait_request, &w));
    if (status != STATUS_SUCCESS)
        exit(5);
    peer_serve_data(&e, &memory);
    peer_leave(&e);
    CLOSE(listening.listener, NdkCloseListener);
    free_memory(&memory);
    end_close(&e);
    return 0;
}

static int peer_connects(const char *address, unsigned port)
{
    SOCKADDR_INET local = inet_address(address, 0), remote = inet_address(address, port);
    struct end e;
    struct memory memory;
    struct wait w;

    end_open(&e, NULL);
    make_memory(e.pd, SIZE, ALL_RIGHTS, &memory);
    puts("ready");
    fflush(stdout);
    post_receive(&e, &memory, SIZE, &e);
    e.connector = make_connector(e.adapter);
    wait_init(&w);
    if (wait_end(&w, e.connector->Dispatch->NdkConnect(e.connector, e.qp, (PSOCKADDR)&local,
                                                       sizeof local.Ipv4, (PSOCKADDR)&remote,
                                                       sizeof remote.Ipv4, 1, 1, NULL, 0,
                                                       wait_request, &w)) != STATUS_SUCCESS)
        exit(6);
    phase("completing");
    wait_init(&w);
    if (wait_end(&w, e.connector->Dispatch->NdkCompleteConnectEx(
                         e.connector, end_disconnected, &e, wait_request, &w)) != STATUS_SUCCESS)
        exit(7);
    peer_serve_data(&e, &memory);
    peer_leave(&e);
    free_memory(&memory);
    end_close(&e);
    return 0;
}

/* ---- this end ------------------------------------------------------------------------------- */

struct child {
    pid_t pid;
    FILE *in, *out; /* its standard output and input */
    enum action action;
};

static void child_start(struct child *c, const char *phase_name, const char *role,
                        const char *address, unsigned port)
{
    int down[2], up[2];
    char number[16];

    memset(c, 0, sizeof *c);
    snprintf(number, sizeof number, "%u", port);
    assert_int_equal(pipe(down), 0);
    assert_int_equal(pipe(up), 0);
    c->pid = fork();
    assert_true(c->pid >= 0);
    if (c->pid == 0) {
        dup2(down[0], 0);
        dup2(up[1], 1);
        for (int fd = 3; fd < 1024; fd++)
            close(fd);
        execl("/proc/self/exe", "peer_process_test", phase_name, role, address, number,
              (char *)NULL);
        _exit(8);
    }
    close(down[0]);
    close(up[1]);
    c->in = fdopen(up[0], "r");
    c->out = fdopen(down[1], "w");
}

static void child_says(struct child *c, char *line, size_t size)
{
    if (!fgets(line, (int)size, c->in))
        test_fail("the peer says nothing");
    line[strcspn(line, "\n")] = 0;
}

static void child_reaches(struct child *c, const char *name)
{
    char line[64];

    child_says(c, line, sizeof line);
    assert_string_equal(line, name);
}

static void child_go_on(struct child *c)
{
    fputs("\n", c->out);
    fflush(c->out);
}

/* A peer that is stopped is told to go on, which it does not before it continues. */
static void child_stop(struct child *c)
{
    int status;

    if (c->action == KILL)
        return;
    kill(c->pid, SIGSTOP);
    assert_int_equal(waitpid(c->pid, &status, WUNTRACED), c->pid);
    assert_true(WIFSTOPPED(status));
    child_go_on(c);
}

static void child_act(struct child *c)
{
    kill(c->pid, c->action == STOP ? SIGCONT : SIGKILL);
}

/* A peer that was not killed ends in order. */
static void child_end(struct child *c)
{
    int status;

    assert_int_equal(waitpid(c->pid, &status, 0), c->pid);
    if (c->action == STOP && status != 0)
        test_fail("the peer ended with status 0x%x", (unsigned)status);
    fclose(c->in);
    fclose(c->out);
}

static bool ended_one_of(NTSTATUS status, NTSTATUS one, NTSTATUS other, NTSTATUS third)
{
    return status == one || status == other || status == third;
}

/* The message and its echo, or what is left of them when the peer dies; act: in between. */
static void exchange(struct end *e, struct memory *memory, struct child *c, bool act)
{
    NTSTATUS sent, received;

    fill(memory->data, SIZE, 7);
    post_receive(e, memory, SIZE, e);
    assert_int_equal(post_send(e, memory, SIZE, 0, e), STATUS_SUCCESS);
    if (act)
        child_act(c);
    sent = queue_next(&e->initiator).Status;
    if (!act || c->action == STOP) {
        assert_int_equal(sent, STATUS_SUCCESS);
        assert_int_equal(queue_next(&e->receive).Status, STATUS_SUCCESS);
        assert_true(check(memory->data, SIZE, 7));
        return;
    }
    assert_true(ended_one_of(sent, STATUS_SUCCESS, STATUS_CANCELLED, STATUS_IO_TIMEOUT));
    assert_true(wait_event(&e->disconnected, WAIT_S * 1000));
    e->qp->Dispatch->NdkFlush(e->qp);
    received = queue_next(&e->receive).Status;
    assert_int_equal(received, STATUS_CANCELLED);
}

static void leave(struct end *e, struct child *c, bool act)
{
    struct wait w;
    NTSTATUS status;

    wait_init(&w);
    status = e->connector->Dispatch->NdkDisconnect(e->connector, wait_request, &w);
    if (act) {
        child_reaches(c, "leaving");
        child_stop(c);
        assert_int_equal(status, STATUS_PENDING);
        child_act(c);
    }
    status = wait_end(&w, status);
    assert_true(ended_one_of(status, STATUS_SUCCESS, STATUS_CONNECTION_ABORTED, STATUS_SUCCESS));
    assert_true(!act || c->action != STOP || status == STATUS_SUCCESS);
    assert_true(atomic_load(&e->disconnects) <= 1);
}

static void connects_to_peer(const char *at, enum action action)
{
    SOCKADDR_INET local, remote;
    struct child c;
    struct end e;
    struct memory memory;
    struct wait connect, complete;
    NTSTATUS status;
    char line[64], address[40];
    unsigned port;
    bool acted = false;

    child_start(&c, at, "listens", "-", 0);
    c.action = action;
    child_says(&c, line, sizeof line);
    assert_int_equal(sscanf(line, "%39s %u", address, &port), 2);
    local = inet_address(address, 0);
    remote = inet_address(address, port);
    end_open(&e, "retry_v1=0");
    make_memory(e.pd, SIZE, ALL_RIGHTS, &memory);
    e.connector = make_connector(e.adapter);
    wait_init(&connect);
    if (strcmp(at, "listening") == 0) {
        child_reaches(&c, at);
        child_stop(&c);
        acted = true;
        if (action == KILL) { /* nobody is there any more */
            child_act(&c);
            child_end(&c);
        }
    }
    status = e.connector->Dispatch->NdkConnect(
        e.connector, e.qp, (PSOCKADDR)&local, sizeof local.Ipv4, (PSOCKADDR)&remote,
        sizeof remote.Ipv4, 1, 1, NULL, 0, wait_request, &connect);
    if (strcmp(at, "deciding") == 0) {
        child_reaches(&c, at);
        child_stop(&c);
        acted = true;
    }
    if (acted && !(strcmp(at, "listening") == 0 && action == KILL)) {
        assert_int_equal(status, STATUS_PENDING);
        child_act(&c);
    }
    status = wait_end(&connect, status);
    if (acted && action != STOP) {
        assert_int_equal(status, STATUS_CONNECTION_REFUSED);
    } else {
        assert_int_equal(status, STATUS_SUCCESS);
        wait_init(&complete);
        assert_int_equal(
            wait_end(&complete, e.connector->Dispatch->NdkCompleteConnectEx(
                                    e.connector, end_disconnected, &e, wait_request, &complete)),
            STATUS_SUCCESS);
        if (strcmp(at, "data") == 0) {
            child_reaches(&c, at);
            child_stop(&c);
        }
        exchange(&e, &memory, &c, strcmp(at, "data") == 0);
        leave(&e, &c, strcmp(at, "leaving") == 0);
    }
    free_memory(&memory);
    end_close(&e);
    if (!(strcmp(at, "listening") == 0 && action == KILL))
        child_end(&c);
}

static void accepts_from_peer(const char *at, enum action action)
{
    struct listening listening;
    struct child c;
    struct end e;
    struct memory memory;
    struct wait accept;
    NTSTATUS status;

    end_open(&e, NULL);
    make_memory(e.pd, SIZE, ALL_RIGHTS, &memory);
    listen_on(e.adapter, own_address(), &listening);
    child_start(&c, at, "connects", own_address(), inet_port(&listening.address));
    c.action = action;
    child_reaches(&c, "ready");
    e.connector = next_incoming(&listening);
    wait_init(&accept);
    status = e.connector->Dispatch->NdkAcceptEx(e.connector, e.qp, 1, 1, NULL, 0, end_disconnected,
                                                &e, wait_request, &accept);
    if (strcmp(at, "completing") == 0) {
        child_reaches(&c, at);
        child_stop(&c);
        assert_int_equal(status, STATUS_PENDING);
        child_act(&c);
    }
    status = wait_end(&accept, status);
    if (strcmp(at, "completing") == 0 && action != STOP) {
        assert_true(ended_one_of(status, STATUS_CONNECTION_REFUSED, STATUS_CONNECTION_ABORTED,
                                 STATUS_CONNECTION_ABORTED));
    } else {
        assert_int_equal(status, STATUS_SUCCESS);
        if (strcmp(at, "data") == 0) {
            child_reaches(&c, at);
            child_stop(&c);
        }
        exchange(&e, &memory, &c, strcmp(at, "data") == 0);
        leave(&e, &c, strcmp(at, "leaving") == 0);
    }
    CLOSE(e.connector, NdkCloseConnector);
    e.connector = NULL;
    CLOSE(listening.listener, NdkCloseListener);
    free_memory(&memory);
    end_close(&e);
    child_end(&c);
}

static void each(void (*run)(const char *, enum action), const char *at)
{
    for (enum action action = 0; action < ACTIONS; action++) {
        print_message("%s: %s\n", at, action_names[action]);
        run(at, action);
    }
}

static void while_listening(void **state)
{
    (void)state;
    each(connects_to_peer, "listening");
}

static void while_deciding(void **state)
{
    (void)state;
    each(connects_to_peer, "deciding");
}

static void while_completing(void **state)
{
    (void)state;
    each(accepts_from_peer, "completing");
}

static void in_the_data(void **state)
{
    (void)state;
    each(connects_to_peer, "data");
    each(accepts_from_peer, "data");
}

static void while_leaving(void **state)
{
    (void)state;
    each(connects_to_peer, "leaving");
    each(accepts_from_peer, "leaving");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(while_listening),  cmocka_unit_test(while_deciding),
        cmocka_unit_test(while_completing), cmocka_unit_test(in_the_data),
        cmocka_unit_test(while_leaving),
    };

    signal(SIGPIPE, SIG_IGN);
    if (argc == 5) {
        peer_phase = argv[1];
        return strcmp(argv[2], "listens") == 0
                   ? peer_listens()
                   : peer_connects(argv[3], (unsigned)strtoul(argv[4], NULL, 10));
    }
    return cmocka_run_group_tests_name("peer_process", tests, NULL, NULL);
}
