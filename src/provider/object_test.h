// SPDX-License-Identifier: MIT
/*
 * What the tests of the object core share: an adapter on the loopback interface, an object class of
 * no other purpose, a log of what happened in which order, and completions that write to it.
 * Included by tests only.
 */
#ifndef SOFTNDK_PROVIDER_OBJECT_TEST_H
#define SOFTNDK_PROVIDER_OBJECT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "provider/adapter.h"
#include "provider/hooks.h"
#include "provider/object.h"
#include "provider/pd.h"

#define TEST_WAIT_US 10000000u /* longer than any answer takes, sanitizers included */

/* ---- what happened, in order ---- */

static os_mutex test_lock = OS_MUTEX_INITIALIZER;
static os_cond test_changed;
static char test_text[4096];

static void test_clear(void)
{
    os_mutex_lock(&test_lock);
    test_text[0] = '\0';
    os_mutex_unlock(&test_lock);
}

/* Appends "word ". */
static void test_note(const char *word)
{
    os_mutex_lock(&test_lock);
    assert_true(strlen(test_text) + strlen(word) + 2 < sizeof test_text);
    strcat(test_text, word);
    strcat(test_text, " ");
    os_cond_broadcast(&test_changed);
    os_mutex_unlock(&test_lock);
}

__attribute__((unused)) static bool test_noted(const char *word)
{
    bool found;

    os_mutex_lock(&test_lock);
    found = strstr(test_text, word) != NULL;
    os_mutex_unlock(&test_lock);
    return found;
}

/* Waits until exactly this has happened. A wrong log fails at the time limit or at once when it is
 * longer than expected. */
static void test_expect(const char *expected)
{
    uint64_t deadline = os_now_us() + TEST_WAIT_US;
    char seen[sizeof test_text];

    os_mutex_lock(&test_lock);
    while (strlen(test_text) < strlen(expected))
        if (!os_cond_wait_until(&test_changed, &test_lock, deadline))
            break;
    strcpy(seen, test_text);
    os_mutex_unlock(&test_lock);
    assert_string_equal(seen, expected);
}

/* Gives what must not happen the time to happen, then expects what did. */
__attribute__((unused)) static void test_expect_still(const char *expected)
{
    os_sleep_us(30000);
    test_expect(expected);
}

/* ---- completions ---- */

/* A context of any completion: what to note, how long to stay inside, what was delivered. */
struct test_done {
    const char *begin, *end;   /* noted on entry and before the return; NULL: not */
    uint64_t stay_us;          /* time spent between the two */
    os_mutex *take;            /* taken and released in between, or NULL */
    struct object *close;      /* closed in between, or NULL */
    struct test_done *closed;  /* context of that close */
    NTSTATUS close_status;     /* what that close returned */
    NTSTATUS status;           /* delivered */
    NDK_OBJECT_HEADER *object; /* delivered */
    KIRQL irql;
    struct engine_shard *shard;
    atomic_uint calls;
    atomic_uint returns;
};

static void test_close_done(PVOID context);

static void test_inside(struct test_done *done)
{
    atomic_fetch_add(&done->calls, 1);
    done->irql = KeGetCurrentIrql();
    done->shard = engine_self();
    if (done->begin)
        test_note(done->begin);
    if (done->take) {
        os_mutex_lock(done->take);
        os_mutex_unlock(done->take);
    }
    if (done->close) {
        struct object *object = done->close;

        done->close = NULL;
        done->close_status = object_close(&object->header, test_close_done, done->closed);
    }
    if (done->stay_us)
        os_sleep_us(done->stay_us);
    if (done->end)
        test_note(done->end);
    atomic_fetch_add(&done->returns, 1);
}

static void test_close_done(PVOID context)
{
    test_inside(context);
}

__attribute__((unused)) static void test_request_done(PVOID context, NTSTATUS status)
{
    struct test_done *done = context;

    done->status = status;
    test_inside(done);
}

__attribute__((unused)) static void test_create_done(PVOID context, NTSTATUS status,
                                                     NDK_OBJECT_HEADER *object)
{
    struct test_done *done = context;

    done->status = status;
    done->object = object;
    test_inside(done);
}

__attribute__((unused)) static void test_wait_returns(struct test_done *done, unsigned count)
{
    uint64_t deadline = os_now_us() + TEST_WAIT_US;

    while (atomic_load(&done->returns) < count && os_now_us() < deadline)
        os_sleep_us(200);
    assert_int_equal(atomic_load(&done->returns), count);
}

/* A close whose completion is test_close_done with `done`, to its end: it may pend, and the context
 * is mostly on the caller's stack. */
#define TEST_CLOSED(done, call)                                                                    \
    do {                                                                                           \
        unsigned before_ = atomic_load(&(done)->returns);                                          \
        NTSTATUS status_ = (call);                                                                 \
        if (status_ == STATUS_PENDING)                                                             \
            test_wait_returns((done), before_ + 1);                                                \
        else                                                                                       \
            assert_int_equal(status_, STATUS_SUCCESS);                                             \
    } while (0)

/* ---- an object class ---- */

struct test_object {
    struct object object;
    const char *released;      /* noted by release; NULL: not */
    struct request *cancelled; /* completed by cancel, or NULL */
};

static void test_object_cancel(struct object *object)
{
    struct test_object *self = CONTAINING_RECORD(object, struct test_object, object);
    struct request *request = self->cancelled;

    self->cancelled = NULL;
    if (request)
        request_complete(request, STATUS_CANCELLED);
}

static void test_object_release(struct object *object)
{
    struct test_object *self = CONTAINING_RECORD(object, struct test_object, object);

    if (self->released)
        test_note(self->released);
}

static const struct object_class test_class = {
    .type = NdkObjectTypeCq,
    .name = "fake",
    .size = sizeof(struct test_object),
    .cancel = test_object_cancel,
    .release = test_object_release,
};

__attribute__((unused)) static struct test_object *test_object_new(struct object *parent,
                                                                   const char *released)
{
    static const int table;
    struct object *object = object_new(&test_class, parent, &table);

    assert_non_null(object);
    CONTAINING_RECORD(object, struct test_object, object)->released = released;
    return CONTAINING_RECORD(object, struct test_object, object);
}

__attribute__((unused)) static NTSTATUS test_close(struct test_object *object,
                                                   struct test_done *done)
{
    return object_close(&object->object.header, test_close_done, done);
}

/* ---- the adapter ---- */

static void test_loopback(struct os_interface *out)
{
    struct os_interface list[64];
    int n = os_interfaces(list, 64);

    assert_true(n > 0);
    for (int i = 0; i < n && i < 64; i++)
        if (list[i].loopback) {
            *out = list[i];
            return;
        }
    fail_msg("no loopback interface");
}

static struct adapter *test_adapter_with(const char *options)
{
    struct os_interface interface;
    struct options settings;
    struct adapter *adapter = NULL;
    NDK_VERSION version = {2, 0};
    char error[256] = "";

    test_loopback(&interface);
    options_defaults(&settings);
    if (!options_apply(&settings, options, error, sizeof error) ||
        adapter_open(&interface, &settings, version, &adapter, error, sizeof error) != 0)
        fail_msg("%s", error);
    return adapter;
}

static int test_setup(void **state)
{
    assert_true(pend_set("never"));
    assert_true(fail_set(NULL));
    test_clear();
    *state = test_adapter_with("shards=2");
    return 0;
}

/* A test that failed may have left objects, for which the close would wait for ever. */
static int test_teardown(void **state)
{
    struct adapter *adapter = *state;
    uint64_t deadline = os_now_us() + 3000000;

    assert_true(pend_set("never"));
    assert_true(fail_set(NULL));
    while (atomic_load(&adapter->object.references) != 1) {
        if (os_now_us() > deadline) {
            fprintf(stderr, "objects or requests left behind: giving up\n");
            fflush(NULL);
            _exit(3);
        }
        os_sleep_us(500);
    }
    adapter_close(adapter);
    return 0;
}

__attribute__((unused)) static int test_group_setup(void **state)
{
    (void)state;
    os_cond_init(&test_changed);
    return 0;
}

#endif
