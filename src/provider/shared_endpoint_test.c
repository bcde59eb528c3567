// SPDX-License-Identifier: MIT
/*
 * The bookkeeping of a shared endpoint, without a connection: which destinations are in use, and
 * what a connector that joined holds. The calls and the wire are tests/integration/shared_*_test.c.
 */
#include "provider/shared_endpoint.h"

#include "provider/object_test.h"
#include "provider/sockaddr.h"

static struct os_addr address(const char *text, unsigned port)
{
    struct os_addr out;

    assert_int_equal(os_addr_parse(text, &out), 0);
    out.port = (uint16_t)port;
    return out;
}

static struct shared_endpoint *make_shared(struct adapter *adapter)
{
    struct os_addr any = address("127.0.0.1", 0);
    NDK_SHARED_ENDPOINT *ndk = NULL;
    struct test_done done = {0};
    ULONG length = sizeof(SOCKADDR_INET);
    SOCKADDR_INET where;

    assert_int_equal(sockaddr_put(&any, 0, (PSOCKADDR)&where, &length), STATUS_SUCCESS);
    assert_int_equal(shared_endpoint_create((NDK_ADAPTER *)(void *)adapter, (PSOCKADDR)&where,
                                            length, test_create_done, &done, &ndk),
                     STATUS_SUCCESS);
    return shared_endpoint_of(ndk, adapter);
}

static struct connector *make_connector(struct adapter *adapter)
{
    NDK_CONNECTOR *ndk = NULL;
    struct test_done done = {0};

    assert_int_equal(
        connector_create((NDK_ADAPTER *)(void *)adapter, test_create_done, &done, &ndk),
        STATUS_SUCCESS);
    return connector_from(ndk);
}

/* In mode never: inline unless something holds the object. */
static NTSTATUS close_now(struct object *object)
{
    static struct test_done done;

    return object_close(&object->header, test_close_done, &done);
}

static void a_destination_has_one_connector(void **state)
{
    struct adapter *adapter = *state;
    struct shared_endpoint *shared = make_shared(adapter);
    struct connector *k[3] = {make_connector(adapter), make_connector(adapter),
                              make_connector(adapter)};
    struct os_addr to[3] = {address("127.0.0.1", 1000), address("127.0.0.1", 1001),
                            address("127.0.0.2", 1000)};

    for (int i = 0; i < 3; i++)
        assert_true(shared_endpoint_join(shared, k[i], &to[i])); /* port or IP differ */
    for (int i = 0; i < 3; i++) {
        struct connector *other = make_connector(adapter);

        assert_false(shared_endpoint_join(shared, other, &to[i]));
        assert_null(other->shared); /* nothing of it is left */
        assert_null(other->endpoint);
        assert_int_equal(other->object.antecedent_count, 1);
        /* From the front, the middle and the end of the list; again is fine. */
        shared_endpoint_leave(k[i]);
        shared_endpoint_leave(k[i]);
        assert_true(shared_endpoint_join(shared, other, &to[i]));
        assert_int_equal(close_now(&other->object), STATUS_SUCCESS); /* its socket is gone: left */
        assert_true(shared_endpoint_join(shared, k[i], &to[i]));
        /* joined twice: an antecedent and a reference more than in real life */
        object_unref(k[i]->object.antecedents[--k[i]->object.antecedent_count]);
        endpoint_drop(k[i]->endpoint);
    }
    for (int i = 0; i < 3; i++)
        assert_int_equal(close_now(&k[i]->object), STATUS_SUCCESS);
    assert_null(shared->over);
    assert_int_equal(close_now(&shared->object), STATUS_SUCCESS);
}

static void a_failed_start_leaves_nothing(void **state)
{
    struct adapter *adapter = *state;
    struct shared_endpoint *shared = make_shared(adapter);
    struct connector *k = make_connector(adapter);
    struct os_addr to = address("127.0.0.1", 1000);

    shared_endpoint_leave(k); /* never joined */
    assert_true(shared_endpoint_join(shared, k, &to));
    assert_ptr_equal(k->object.antecedents[1], &shared->object);
    shared_endpoint_leave_unused(k);
    assert_null(k->shared);
    assert_int_equal(k->object.antecedent_count, 1);
    assert_ptr_equal(k->endpoint, shared->endpoint); /* the caller's to drop */
    endpoint_drop(k->endpoint);
    k->endpoint = NULL;
    assert_int_equal(close_now(&shared->object), STATUS_SUCCESS);
    assert_int_equal(close_now(&k->object), STATUS_SUCCESS);
}

/* The address is taken until endpoint and connectors are closed, in either order. */
static void the_address_is_held_by_all(void **state)
{
    struct adapter *adapter = *state;

    for (int order = 0; order < 2; order++) {
        struct shared_endpoint *shared = make_shared(adapter);
        struct connector *k = make_connector(adapter);
        struct os_addr to = address("127.0.0.1", 1000), at = *endpoint_address(shared->endpoint);
        struct endpoint *taken;
        bool memory;

        assert_in_range(at.port, adapter->options.port_low, adapter->options.port_high);
        assert_true(shared_endpoint_join(shared, k, &to));
        assert_null(endpoint_take(&at, &memory));
        assert_int_equal(close_now(order ? &k->object : &shared->object),
                         order ? STATUS_SUCCESS : STATUS_PENDING);
        assert_null(endpoint_take(&at, &memory));
        assert_int_equal(close_now(order ? &shared->object : &k->object), STATUS_SUCCESS);
        taken = endpoint_take(&at, &memory);
        assert_non_null(taken);
        endpoint_drop(taken);
    }
}

static void what_is_no_shared_endpoint(void **state)
{
    struct adapter *adapter = *state, *other = test_adapter_with("shards=2");
    struct shared_endpoint *shared = make_shared(adapter);
    struct connector *k = make_connector(adapter);
    NDK_SHARED_ENDPOINT *ndk = (NDK_SHARED_ENDPOINT *)(void *)shared;

    assert_ptr_equal(shared_endpoint_of(ndk, adapter), shared);
    assert_null(shared_endpoint_of(ndk, other));
    assert_null(shared_endpoint_of(NULL, adapter));
    assert_null(shared_endpoint_of((NDK_SHARED_ENDPOINT *)(void *)k, adapter));
    assert_int_equal(close_now(&k->object), STATUS_SUCCESS);
    assert_int_equal(close_now(&shared->object), STATUS_SUCCESS);
    adapter_close(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_destination_has_one_connector, test_setup, test_teardown),
        cmocka_unit_test_setup_teardown(a_failed_start_leaves_nothing, test_setup, test_teardown),
        cmocka_unit_test_setup_teardown(the_address_is_held_by_all, test_setup, test_teardown),
        cmocka_unit_test_setup_teardown(what_is_no_shared_endpoint, test_setup, test_teardown),
    };

    return cmocka_run_group_tests_name("shared_endpoint", tests, test_group_setup, NULL);
}
