// SPDX-License-Identifier: MIT
/* See listener.h. The accept loop runs on the home shard; the consumer's calls on any thread. */
#include "provider/listener.h"

#include <ntstatus.h>

#include "base/red.h"
#include "provider/adapter.h"
#include "provider/address.h"

#define LISTEN_BACKLOG  1024
#define ACCEPT_BATCH    64      /* of one turn */
#define ACCEPT_AGAIN_US 100000  /* when descriptors had run out */
#define RESUME_AGAIN_US 1000000 /* when somebody else had taken the port meanwhile */

/* ---- startups ------------------------------------------------------------------------------- */

/* Leaves the reason at the listener: in words, and once until one is taken again. */
static void startup_refused(struct listener *listener, enum startups_verdict verdict,
                            const struct os_addr *peer)
{
    const struct options *o = &listener->object.adapter->options;
    char text[OS_ADDR_TEXT_MAX];

    if (verdict == STARTUPS_PEER_FULL)
        object_note(&listener->object,
                    "a connection of %s was reset: it has startups that are not over (have %u, "
                    "need < max_startups_per_peer %u)",
                    os_addr_text(peer, true, text), startups_per_peer(o), startups_per_peer(o));
    else if (verdict == STARTUPS_FULL)
        object_note(&listener->object,
                    "a connection of %s was reset: startups that are not over (have %u, need < "
                    "max_startups %u)",
                    os_addr_text(peer, true, text), o->max_startups, o->max_startups);
    else
        object_note(&listener->object, "a connection of %s was reset: no memory",
                    os_addr_text(peer, true, text));
}

bool listener_startup_add(struct listener *listener, struct connector *k,
                          const struct os_addr *peer)
{
    enum startups_verdict verdict = STARTUPS_TAKEN;
    bool listening;

    os_mutex_lock(&listener->lock);
    listening = listener->state == LISTENER_LISTENING && !listener->paused;
    if (listening)
        verdict = startups_add(&listener->startups, k, peer, &listener->object.adapter->options);
    os_mutex_unlock(&listener->lock);
    if (listening && verdict != STARTUPS_TAKEN)
        startup_refused(listener, verdict, peer);
    return listening && verdict == STARTUPS_TAKEN;
}

void listener_startup_remove(struct listener *listener, struct connector *k)
{
    os_mutex_lock(&listener->lock);
    startups_remove(&listener->startups, k);
    os_mutex_unlock(&listener->lock);
}

bool listener_may_deliver(struct listener *listener)
{
    bool may;

    os_mutex_lock(&listener->lock);
    may = listener->state == LISTENER_LISTENING && !listener->paused &&
          (atomic_load(&listener->undecided) <
               listener->object.adapter->options.max_pending_connects ||
           RED("listener-undecided-unbounded"));
    if (may)
        atomic_fetch_add(&listener->undecided, 1);
    os_mutex_unlock(&listener->lock);
    return may;
}

/* ---- the socket ----------------------------------------------------------------------------- */

/* The backlog is looked at again after us; nothing tells of it otherwise, since events are edges.
 */
static void listener_later(struct listener *listener, uint64_t us)
{
    if (!engine_timer_set(&listener->again, us))
        object_ref(&listener->object);
}

/* On the home shard. */
static void listener_accept(struct listener *listener)
{
    for (unsigned i = 0; i < ACCEPT_BATCH; i++) {
        struct os_addr peer;
        int fd = os_tcp_accept(listener->fd, &peer);

        if (fd == -EAGAIN)
            return;
        if (fd == -ECONNABORTED)
            continue;
        if (fd < 0) {
            if (fd == -EINVAL)
                return; /* paused or closed: the socket does not listen */
            object_fail(&listener->object, CALL_LISTEN, STATUS_INSUFFICIENT_RESOURCES,
                        "cannot accept an incoming connection (error %d)", -fd);
            if (!RED("listener-stalls"))
                listener_later(listener, ACCEPT_AGAIN_US);
            return;
        }
        connector_incoming(listener, fd, &peer);
    }
    listener_later(listener, 0); /* others get their turn */
}

static void listener_ready(struct engine_watch *watch, unsigned events)
{
    struct listener *listener = CONTAINING_RECORD(watch, struct listener, watch);

    (void)events;
    object_ref(&listener->object);
    listener_accept(listener);
    object_unref(&listener->object);
}

static void listener_again(struct engine_timer *timer)
{
    struct listener *listener = CONTAINING_RECORD(timer, struct listener, again);
    bool listening, waits;

    os_mutex_lock(&listener->lock);
    listening = listener->state == LISTENER_LISTENING && !listener->paused;
    if (listening && listener->resuming)
        listener->resuming = os_tcp_listen(listener->fd, LISTEN_BACKLOG) != 0;
    waits = listening && listener->resuming;
    os_mutex_unlock(&listener->lock);
    /* A close stops the socket on this thread, so the descriptor stays what it is meanwhile. */
    if (waits)
        listener_later(listener, RESUME_AGAIN_US);
    else if (listening)
        listener_accept(listener);
    object_unref(&listener->object);
}

/* On the home shard: the socket leaves the poll set and goes. */
static void listener_stopped(struct engine_work *work)
{
    struct listener *listener = CONTAINING_RECORD(work, struct listener, stop);

    engine_watch_del(&listener->watch);
    os_tcp_close(listener->fd);
    if (engine_timer_cancel(&listener->again))
        object_unref(&listener->object);
    object_unref(&listener->object);
}

/* ---- the object ----------------------------------------------------------------------------- */

static void listener_cancel(struct object *object)
{
    struct listener *listener = CONTAINING_RECORD(object, struct listener, object);
    bool listening;

    os_mutex_lock(&listener->lock);
    listening = listener->state == LISTENER_LISTENING;
    listener->state = LISTENER_CLOSED;
    if (!RED("listener-row-stays"))
        adapter_row_clear(object->adapter, &listener->row);
    os_mutex_unlock(&listener->lock);
    if (listening) {
        os_tcp_shutdown_recv(listener->fd); /* refused from this moment on */
        object_ref(&listener->object);
        engine_run(object->home, &listener->stop);
    }
    /* What has not sent its Request yet has nobody to be shown to. */
    for (;;) {
        struct connector *k;

        os_mutex_lock(&listener->lock);
        k = listener->startups.first;
        if (k)
            object_ref(&k->object);
        os_mutex_unlock(&listener->lock);
        if (!k)
            break;
        listener_startup_remove(listener, k);
        conn_close(k->conn);
        object_unref(&k->object);
    }
}

static void listener_release(struct object *object)
{
    struct listener *listener = CONTAINING_RECORD(object, struct listener, object);

    endpoint_drop(listener->endpoint);
    os_mutex_destroy(&listener->lock);
}

static const struct object_class listener_class = {
    .type = NdkObjectTypeListener,
    .name = "listener",
    .size = sizeof(struct listener),
    .cancel = listener_cancel,
    .release = listener_release,
};

NTSTATUS listener_create(NDK_ADAPTER *ndk, NDK_FN_CONNECT_EVENT_CALLBACK event, PVOID event_context,
                         NDK_FN_CREATE_COMPLETION completion, PVOID context, NDK_LISTENER **out)
{
    struct object *parent = &adapter_from(ndk)->object;
    NTSTATUS status = object_injected(parent, CALL_CREATE_LISTENER);
    struct object *object = NULL;

    if (status != STATUS_SUCCESS) {
        ;
    } else if (!event) {
        status = object_fail(parent, CALL_CREATE_LISTENER, STATUS_INVALID_PARAMETER,
                             "ConnectEvent is NULL, rule NDKPI 6.6");
    } else {
        object = object_new(&listener_class, parent, &listener_dispatch);
        if (!object)
            status = object_fail(parent, CALL_CREATE_LISTENER, STATUS_INSUFFICIENT_RESOURCES,
                                 "no memory");
    }
    if (object) {
        struct listener *listener = CONTAINING_RECORD(object, struct listener, object);

        listener->event = event;
        listener->event_context = event_context;
        listener->fd = -1;
        listener->stop.run = listener_stopped;
        os_mutex_init(&listener->lock);
        startups_init(&listener->startups);
        object->home = adapter_listening_shard(parent->adapter);
        engine_timer_init(&listener->again, object->home, listener_again);
    }
    return create_answer(parent, CALL_CREATE_LISTENER, completion, context, status, object,
                         (void **)out);
}

/* ---- Listen --------------------------------------------------------------------------------- */

/* A listening socket on address; the descriptor or -errno. */
static int listen_socket(void *context, const struct os_addr *address)
{
    const struct listener *listener = context;
    int octets = (int)listener->object.adapter->options.tcp_buffer;
    int fd = os_tcp_socket((enum os_family)address->family);
    int err;

    if (fd < 0)
        return fd;
    /* Accepted sockets inherit them. */
    os_tcp_set_buffers(fd, octets, octets);
    if (!RED("listener-options-not-handed-on"))
        conn_socket_options(fd, &listener->object.adapter->options);
    err = os_tcp_bind(fd, address);
    if (err == 0)
        err = os_tcp_listen(fd, LISTEN_BACKLOG);
    if (err == 0)
        return fd;
    os_tcp_close(fd);
    return err;
}

/* Takes the endpoint and the socket; port 0: any of the range that nobody holds. */
static NTSTATUS listen_take(struct listener *listener, const struct os_addr *address)
{
    const struct options *o = &listener->object.adapter->options;
    char text[OS_ADDR_TEXT_MAX];

    listener->fd = endpoint_open(&listener->endpoint, address, o->port_low, o->port_high,
                                 listen_socket, listener);
    if (listener->fd >= 0)
        return STATUS_SUCCESS;
    if (listener->fd == -ERANGE)
        return object_fail(&listener->object, CALL_LISTEN, STATUS_TOO_MANY_ADDRESSES,
                           "no port is left in %u..%u, rule NDKPI 14.1", o->port_low, o->port_high);
    return object_fail(&listener->object, CALL_LISTEN, conn_status_from_bind(listener->fd),
                       "cannot listen on %s (error %d), rule NDKPI 14.1",
                       address_text(listener->object.adapter, address, true, text), -listener->fd);
}

/* Lock held. */
static NTSTATUS listen_start(struct listener *listener, const struct os_addr *address)
{
    NTSTATUS status;
    int err;

    if (listener->state != LISTENER_IDLE)
        return object_fail(&listener->object, CALL_LISTEN, STATUS_INVALID_DEVICE_STATE,
                           "the listener is listening already");
    status = listen_take(listener, address);
    if (status != STATUS_SUCCESS)
        return status;
    listener->state = LISTENER_LISTENING;
    err = engine_watch_add(&listener->watch, listener->object.home, listener->fd, listener_ready);
    if (err == 0) {
        adapter_row_set(listener->object.adapter, &listener->row, ADAPTER_ROW_LISTENER,
                        endpoint_address(listener->endpoint), NULL);
        return STATUS_SUCCESS;
    }
    listener->state = LISTENER_IDLE;
    os_tcp_close(listener->fd);
    listener->fd = -1;
    endpoint_drop(listener->endpoint);
    listener->endpoint = NULL;
    return object_fail(&listener->object, CALL_LISTEN, STATUS_INSUFFICIENT_RESOURCES,
                       "cannot watch the socket (error %d)", -err);
}

static NTSTATUS listener_listen(NDK_LISTENER *ndk, CONST PSOCKADDR pointer, ULONG length,
                                NDK_FN_REQUEST_COMPLETION completion, PVOID context)
{
    struct listener *listener = listener_from(ndk);
    struct object *object = &listener->object;
    NTSTATUS status = object_injected(object, CALL_LISTEN);
    char text[ADDRESS_FOREIGN_MAX];
    struct address address;

    if (status != STATUS_SUCCESS) {
        ;
    } else if (!address_get(object->adapter, pointer, length, &address)) {
        status = object_fail(object, CALL_LISTEN, STATUS_INVALID_ADDRESS,
                             "pAddress is no IPv4 or IPv6 address (length %u)", length);
    } else if (!address_is_of(&object->adapter->interface, &address.ndk)) {
        status = object_fail(object, CALL_LISTEN, STATUS_INVALID_ADDRESS, "%s, rule NDKPI 14.1",
                             address_foreign(&object->adapter->interface, &address.ndk, text));
    } else {
        os_mutex_lock(&listener->lock);
        if (listener->state == LISTENER_IDLE)
            listener->family = address.family;
        status = listen_start(listener, &address.host);
        os_mutex_unlock(&listener->lock);
    }
    return request_answer(object, CALL_LISTEN, completion, context, status);
}

static NTSTATUS listener_get_local(NDK_LISTENER *ndk, PSOCKADDR address, ULONG *length)
{
    struct listener *listener = listener_from(ndk);
    NTSTATUS status = object_injected(&listener->object, CALL_GET_ADDRESS);

    if (status != STATUS_SUCCESS)
        return status;
    os_mutex_lock(&listener->lock);
    if (listener->state == LISTENER_LISTENING)
        status = address_put(listener->object.adapter, endpoint_address(listener->endpoint),
                             listener->family, address, length);
    else
        status = STATUS_INVALID_DEVICE_STATE;
    os_mutex_unlock(&listener->lock);
    if (status == STATUS_INVALID_DEVICE_STATE)
        object_fail(&listener->object, CALL_GET_ADDRESS, status, "the listener is not listening");
    return status;
}

static VOID listener_control(NDK_LISTENER *ndk, BOOLEAN pause)
{
    struct listener *listener = listener_from(ndk);
    int err = 0;

    if (RED("listener-pause-ignored"))
        return;
    os_mutex_lock(&listener->lock);
    if (listener->state == LISTENER_LISTENING && (pause != FALSE) != listener->paused) {
        listener->paused = pause != FALSE;
        /* As if nobody listened: refused at once, the port stays bound. */
        err = listener->paused ? os_tcp_shutdown_recv(listener->fd)
                               : os_tcp_listen(listener->fd, LISTEN_BACKLOG);
        listener->resuming = err && !listener->paused && !RED("listener-resume-gives-up");
        if (listener->resuming)
            listener_later(listener, RESUME_AGAIN_US);
    }
    os_mutex_unlock(&listener->lock);
    if (err)
        object_fail(&listener->object, CALL_LISTEN, STATUS_SHARING_VIOLATION,
                    "cannot listen again after a pause (error %d), tried again each second, "
                    "rule NDKPI 14.3",
                    -err);
}

const NDK_LISTENER_DISPATCH listener_dispatch = {
    .NdkCloseListener = object_close,
    .NdkQueryExtension = object_query_extension,
    .NdkListen = listener_listen,
    .NdkGetLocalAddress = listener_get_local,
    .NdkControlConnectEvents = listener_control,
};
