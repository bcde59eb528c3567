// SPDX-License-Identifier: MIT
/* See shared_endpoint.h. Joining happens in the consumer's call, leaving on the connection's shard
 * once its socket is gone; creation and close are any thread's. */
#include "provider/shared_endpoint.h"

#include <ntstatus.h>

#include "base/red.h"
#include "provider/adapter.h"
#include "provider/address.h"

static struct shared_endpoint *shared_endpoint_from(NDK_SHARED_ENDPOINT *ndk)
{
    return (struct shared_endpoint *)(void *)ndk;
}

/* ---- connectors over it --------------------------------------------------------------------- */

struct shared_endpoint *shared_endpoint_of(NDK_SHARED_ENDPOINT *ndk, const struct adapter *adapter)
{
    if (!ndk || ndk->Header.ObjectType != NdkObjectTypeSharedEndpoint)
        return NULL;
    return shared_endpoint_from(ndk)->object.adapter == adapter ? shared_endpoint_from(ndk) : NULL;
}

/* Lock held. */
static bool connects_to(const struct shared_endpoint *shared, const struct os_addr *peer)
{
    for (const struct connector *k = shared->over; k; k = k->shared_next)
        if (os_addr_equal(&k->shared_peer, peer))
            return !RED("shared-endpoint-tuple-twice");
    return false;
}

bool shared_endpoint_join(struct shared_endpoint *shared, struct connector *k,
                          const struct os_addr *peer)
{
    bool free;

    os_mutex_lock(&shared->lock);
    free = !connects_to(shared, peer);
    if (free) {
        k->shared_peer = *peer;
        k->shared_previous = NULL;
        k->shared_next = shared->over;
        if (shared->over)
            shared->over->shared_previous = k;
        shared->over = k;
        k->in_shared = true;
    }
    os_mutex_unlock(&shared->lock);
    if (!free)
        return false;
    k->shared = shared;
    object_follow(&k->object, RED("shared-endpoint-not-followed") ? &shared->object.adapter->object
                                                                  : &shared->object);
    k->endpoint = shared->endpoint;
    endpoint_ref(k->endpoint);
    return true;
}

void shared_endpoint_leave(struct connector *k)
{
    struct shared_endpoint *shared = k->shared;

    if (!shared)
        return;
    os_mutex_lock(&shared->lock);
    if (k->in_shared) {
        k->in_shared = false;
        if (k->shared_previous)
            k->shared_previous->shared_next = k->shared_next;
        else
            shared->over = k->shared_next;
        if (k->shared_next)
            k->shared_next->shared_previous = k->shared_previous;
    }
    os_mutex_unlock(&shared->lock);
}

void shared_endpoint_leave_unused(struct connector *k)
{
    shared_endpoint_leave(k);
    k->shared = NULL;
    object_unref(k->object.antecedents[--k->object.antecedent_count]);
}

/* ---- the object ----------------------------------------------------------------------------- */

static void shared_endpoint_release(struct object *object)
{
    struct shared_endpoint *shared = CONTAINING_RECORD(object, struct shared_endpoint, object);

    adapter_row_clear(object->adapter, &shared->row);
    if (shared->holder >= 0)
        os_tcp_close(shared->holder);
    endpoint_drop(shared->endpoint);
    os_mutex_destroy(&shared->lock);
}

static const struct object_class shared_endpoint_class = {
    .type = NdkObjectTypeSharedEndpoint,
    .name = "shared endpoint",
    .size = sizeof(struct shared_endpoint),
    .release = shared_endpoint_release,
};

/* A socket that keeps address for those that share it; the descriptor or -errno. */
static int hold_socket(void *context, const struct os_addr *address)
{
    int fd = os_tcp_socket((enum os_family)address->family);
    int err;

    (void)context;
    if (fd < 0)
        return fd;
    err = os_tcp_bind(fd, address);
    if (err == 0)
        err = os_tcp_hold(fd);
    if (err == 0)
        return fd;
    os_tcp_close(fd);
    return err;
}

/* An object with its address, or NULL and the reason at the adapter. */
static NTSTATUS make(struct object *parent, const struct os_addr *address, ADDRESS_FAMILY family,
                     struct object **out)
{
    const struct options *o = &parent->adapter->options;
    struct object *object = object_new(&shared_endpoint_class, parent, &shared_endpoint_dispatch);
    char text[OS_ADDR_TEXT_MAX];
    struct shared_endpoint *shared;
    int fd;

    *out = NULL;
    if (!object)
        return object_fail(parent, CALL_CREATE_SHARED_ENDPOINT, STATUS_INSUFFICIENT_RESOURCES,
                           "no memory");
    shared = CONTAINING_RECORD(object, struct shared_endpoint, object);
    os_mutex_init(&shared->lock);
    object->home = engine_shard_next();
    shared->family = family;
    fd = endpoint_open(&shared->endpoint, address, o->port_low, o->port_high, hold_socket, NULL);
    shared->holder = fd;
    if (fd >= 0) {
        adapter_row_set(parent->adapter, &shared->row, ADAPTER_ROW_SHARED,
                        endpoint_address(shared->endpoint), NULL);
        *out = object;
        return STATUS_SUCCESS;
    }
    object_discard(object);
    if (fd == -ERANGE)
        return object_fail(parent, CALL_CREATE_SHARED_ENDPOINT, STATUS_TOO_MANY_ADDRESSES,
                           "no port is left in %u..%u, rule NDKPI 6.4", o->port_low, o->port_high);
    return object_fail(parent, CALL_CREATE_SHARED_ENDPOINT, conn_status_from_bind(fd),
                       "cannot hold local address %s (error %d), rule NDKPI 6.4",
                       address_text(parent->adapter, address, true, text), -fd);
}

NTSTATUS shared_endpoint_create(NDK_ADAPTER *ndk, CONST PSOCKADDR pointer, ULONG length,
                                NDK_FN_CREATE_COMPLETION completion, PVOID context,
                                NDK_SHARED_ENDPOINT **out)
{
    struct object *parent = &adapter_from(ndk)->object;
    NTSTATUS status = object_injected(parent, CALL_CREATE_SHARED_ENDPOINT);
    struct object *object = NULL;
    char text[ADDRESS_FOREIGN_MAX];
    struct address address;

    if (status != STATUS_SUCCESS)
        ;
    else if (!address_get(parent->adapter, pointer, length, &address))
        status = object_fail(parent, CALL_CREATE_SHARED_ENDPOINT, STATUS_INVALID_ADDRESS,
                             "pAddress is no IPv4 or IPv6 address (length %u)", length);
    else if (!address_is_of(&parent->adapter->interface, &address.ndk))
        status = object_fail(parent, CALL_CREATE_SHARED_ENDPOINT, STATUS_INVALID_ADDRESS,
                             "%s, rule NDKPI 6.4",
                             address_foreign(&parent->adapter->interface, &address.ndk, text));
    else
        status = make(parent, &address.host, address.family, &object);
    return create_answer(parent, CALL_CREATE_SHARED_ENDPOINT, completion, context, status, object,
                         (void **)out);
}

static NTSTATUS shared_endpoint_get_local(NDK_SHARED_ENDPOINT *ndk, PSOCKADDR address,
                                          ULONG *length)
{
    struct shared_endpoint *shared = shared_endpoint_from(ndk);
    NTSTATUS status = object_injected(&shared->object, CALL_GET_ADDRESS);

    if (status != STATUS_SUCCESS)
        return status;
    status = address_put(shared->object.adapter, endpoint_address(shared->endpoint), shared->family,
                         address, length);
    if (status != STATUS_SUCCESS)
        object_fail(&shared->object, CALL_GET_ADDRESS, status,
                    "address buffer is too small (need %u octets)", length ? *length : 0);
    return status;
}

const NDK_SHARED_ENDPOINT_DISPATCH shared_endpoint_dispatch = {
    .NdkCloseSharedEndpoint = object_close,
    .NdkQueryExtension = object_query_extension,
    .NdkGetLocalAddress = shared_endpoint_get_local,
};
