// SPDX-License-Identifier: MIT
/*
 * Small messages that follow each other from and into one region, which is looked up once for all
 * of them: each is still checked for its own range, and nothing holds the region once the last of
 * them has completed.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "ends.h"
#include "modes.h"

#define SIZE     4096u
#define MESSAGE  48u
#define MESSAGES 40u
#define EVERY                                                                                      \
    (NDK_MR_FLAG_ALLOW_LOCAL_WRITE | NDK_MR_FLAG_ALLOW_REMOTE_READ | NDK_MR_FLAG_ALLOW_REMOTE_WRITE)

static void post_send(struct end *end, NDK_SGE sge, bool more)
{
    assert_int_equal(
        end->qp->Dispatch->NdkSend(end->qp, NULL, &sge, 1, more ? NDK_OP_FLAG_DEFER : 0),
        STATUS_SUCCESS);
}

static void post_write(struct end *end, NDK_SGE sge, const struct memory *to, size_t offset,
                       bool more)
{
    assert_int_equal(end->qp->Dispatch->NdkWrite(end->qp, NULL, &sge, 1,
                                                 (UINT64)(uintptr_t)(to->data + offset), to->remote,
                                                 more ? NDK_OP_FLAG_DEFER : 0),
                     STATUS_SUCCESS);
}

static void expect(struct queue *queue, NTSTATUS status)
{
    NTSTATUS have = queue_next(queue).Status;

    if (have != status)
        test_fail("completion: have %s, need %s", softndk_status_name(have),
                  softndk_status_name(status));
}

/* Deregisters; that ends although connections live on. */
static void expect_unheld(struct memory *memory)
{
    struct wait w;
    NTSTATUS status;

    wait_init(&w);
    status = memory->mr->Dispatch->NdkDeregisterMr(memory->mr, wait_request, &w);
    if (status == STATUS_PENDING) {
        if (!wait_event(&w.event, 3000))
            test_fail("NdkDeregisterMr pends: the region is held on");
        status = w.status;
    }
    assert_int_equal(status, STATUS_SUCCESS);
    CLOSE(memory->mr, NdkCloseMr);
    IoFreeMdl(memory->mdl);
    free(memory->data);
}

/* A chain of Sends, each from and into a place of its own; then both regions go. */
static void nothing_is_held_behind_a_chain(void **state)
{
    struct pair pair;
    struct memory from, to;

    (void)state;
    pair_open(&pair, own_address(), NULL, NULL);
    make_memory(pair.client.pd, SIZE, EVERY, &from);
    make_memory(pair.server.pd, SIZE, EVERY, &to);
    fill(from.data, SIZE, 7);
    for (unsigned i = 0; i < MESSAGES; i++) {
        NDK_SGE sge = memory_sge(&to, i * MESSAGE, MESSAGE);

        assert_int_equal(pair.server.qp->Dispatch->NdkReceive(pair.server.qp, NULL, &sge, 1),
                         STATUS_SUCCESS);
    }
    for (unsigned i = 0; i < MESSAGES; i++)
        post_send(&pair.client, memory_sge(&from, i * MESSAGE, MESSAGE), i + 1 < MESSAGES);
    for (unsigned i = 0; i < MESSAGES; i++) {
        expect(&pair.client.initiator, STATUS_SUCCESS);
        expect(&pair.server.receive, STATUS_SUCCESS);
    }
    assert_memory_equal(from.data, to.data, MESSAGES * MESSAGE);
    expect_unheld(&from);
    expect_unheld(&to);
    pair_close(&pair);
}

/* The second of two Sends of a chain ends behind its region: it fails, by its own range. */
static void each_send_is_checked(void **state)
{
    struct pair pair;
    struct memory from, to;
    NDK_SGE sge;

    (void)state;
    if (atomic_load(&test_has_failed))
        skip();
    pair_open(&pair, own_address(), NULL, NULL);
    make_memory(pair.client.pd, SIZE, EVERY, &from);
    make_memory(pair.server.pd, SIZE, EVERY, &to);
    for (unsigned i = 0; i < 2; i++) {
        sge = memory_sge(&to, i * MESSAGE, MESSAGE);
        assert_int_equal(pair.server.qp->Dispatch->NdkReceive(pair.server.qp, NULL, &sge, 1),
                         STATUS_SUCCESS);
    }
    post_send(&pair.client, memory_sge(&from, SIZE - MESSAGE, MESSAGE), true);
    post_send(&pair.client, memory_sge(&from, SIZE - MESSAGE + 1, MESSAGE), false);
    expect(&pair.client.initiator, STATUS_SUCCESS);
    expect(&pair.client.initiator, STATUS_ACCESS_VIOLATION);
    free_memory(&from);
    free_memory(&to);
    pair_close(&pair);
}

/* The peer writes within a region, then beyond its end: the octets there stay as they were. */
static void each_write_of_the_peer_is_checked(void **state)
{
    struct pair pair;
    struct memory from, to;

    (void)state;
    if (atomic_load(&test_has_failed))
        skip();
    pair_open(&pair, own_address(), NULL, NULL);
    make_memory(pair.client.pd, SIZE, EVERY, &from);
    make_memory(pair.server.pd, SIZE - 2 * MESSAGE, EVERY, &to); /* of a whole page */
    memset(from.data, 0x5a, SIZE);
    post_write(&pair.client, memory_sge(&from, 0, MESSAGE), &to, to.size - MESSAGE, true);
    post_write(&pair.client, memory_sge(&from, 0, MESSAGE), &to, to.size, false);
    if (!wait_event(&pair.server.disconnected, WAIT_S * 1000))
        test_fail("a Write beyond the region did not end the connection");
    assert_int_equal(to.data[to.size - 1], 0x5a);
    for (unsigned i = 0; i < 2 * MESSAGE; i++)
        assert_int_equal(to.data[to.size + i], 0);
    free_memory(&from);
    free_memory(&to);
    pair_close(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_held_behind_a_chain),
        cmocka_unit_test(each_send_is_checked),
        cmocka_unit_test(each_write_of_the_peer_is_checked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
