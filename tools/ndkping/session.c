// SPDX-License-Identifier: MIT
/*
 * See session.h. The first receive is posted before the accept, as rping does: a client may send as
 * soon as it sees the accept.
 */
#include "session.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/tool_args.h"
#include "hello.h"
#include "rping.h"
#include "table.h"

struct service {
    const struct ping_options *options;
    struct link link;
    struct hello hello;
    struct rping rping;
    struct table table;
};

static void name_peer(struct link *link, NDK_CONNECTOR *connector)
{
    SOCKADDR_INET address;
    ULONG length = sizeof(address);

    if (connector->Dispatch->NdkGetPeerAddress(connector, (PSOCKADDR)&address, &length) ==
        STATUS_SUCCESS)
        softndk_address_to_text((const SOCKADDR *)&address, length, link->peer, sizeof(link->peer));
    else
        snprintf(link->peer, sizeof(link->peer), "client");
}

/* What the client wants. False: told, and the client is to be rejected. */
static bool hear(struct service *service, NDK_CONNECTOR *connector)
{
    struct link early = {.connector = connector};
    uint8_t octets[HELLO_OCTETS];
    ULONG length;

    name_peer(&early, connector);
    if (!link_private_data(&early, octets, sizeof(octets), &length))
        return false;
    if (hello_read(octets, length, &service->hello))
        return true;
    tool_say("%s: rejected: it asks for something this ndkping does not know", early.peer);
    return false;
}

static bool open_mode(struct service *service)
{
    const struct ping_options *options = service->options;
    struct rping *rping = &service->rping;

    service->table.link = &service->link;
    service->table.server = true;
    rping->link = &service->link;
    rping->server = true;
    rping->exact = service->hello.mode == HELLO_EXACT;
    rping->size = rping->exact ? service->hello.size : options->size;
    rping->count = options->count;
    rping->verify = options->verify;
    rping->verbose = options->verbose;
    return service->hello.mode == HELLO_TABLE ? table_open(&service->table) : rping_open(rping);
}

static enum link_result accept_client(struct service *service)
{
    struct link_terms terms = {1, 1, NULL, 0}; /* as rping */
    uint8_t octets[HELLO_OCTETS];

    if (service->hello.mode != HELLO_PLAIN) {
        hello_write(&service->hello, octets);
        terms.data = octets;
        terms.length = sizeof(octets);
    }
    if (service->hello.mode == HELLO_TABLE)
        terms.inbound_reads = terms.outbound_reads = TABLE_READS;
    return link_accept(&service->link, &terms);
}

static void report(const struct service *service)
{
    const struct rping *rping = &service->rping;

    if (service->hello.mode == HELLO_TABLE)
        printf("%s: table\n", service->link.peer);
    else
        printf("%s: %" PRIu64 " iterations of %s%u octets%s\n", service->link.peer,
               rping->iterations, rping->exact ? "" : "up to ", (unsigned)rping->size,
               rping->exact || rping->verify ? ", verified" : "");
    fflush(stdout);
}

/* A client that told how many iterations it means to do has done them. */
static bool is_complete(const struct service *service)
{
    const struct rping *rping = &service->rping;

    if (!rping->exact || rping->iterations >= service->hello.count)
        return true;
    tool_say("%s: the client left after %" PRIu64 " of %" PRIu64 " iterations", service->link.peer,
             rping->iterations, service->hello.count);
    return false;
}

static enum link_result serve(struct service *service, NDK_ADAPTER *adapter,
                              NDK_CONNECTOR *connector)
{
    bool table = service->hello.mode == HELLO_TABLE;
    enum link_result result = LINK_FAILED;

    if (link_open(&service->link, adapter, connector, table ? TABLE_WINDOW + 2 : 2,
                  table ? TABLE_REQUESTS : 4)) {
        name_peer(&service->link, connector);
        if (open_mode(service))
            result = accept_client(service);
    }
    if (result == LINK_GOOD)
        result = table ? table_server(&service->table) : rping_run(&service->rping);
    if (!link_end(&service->link, result == LINK_GOOD) && result == LINK_GOOD) {
        link_report_lost(&service->link);
        result = LINK_FAILED;
    }
    if (result == LINK_GOOD && !is_complete(service))
        result = LINK_FAILED;
    if (result == LINK_GOOD || result == LINK_STOPPED)
        report(service);
    rping_close(&service->rping);
    table_close(&service->table);
    link_close(&service->link);
    return result;
}

static void reject(NDK_CONNECTOR *connector)
{
    connector->Dispatch->NdkReject(connector, NULL, 0);
    tool_close(&connector->Header, connector->Dispatch->NdkCloseConnector);
}

static void *session_main(void *argument)
{
    struct session *session = argument;
    enum link_result result = LINK_FAILED;
    struct service service;

    memset(&service, 0, sizeof(service));
    service.options = session->options;
    if (hear(&service, session->connector))
        result = serve(&service, session->adapter, session->connector);
    else
        reject(session->connector);
    session->result = result == LINK_GOOD || result == LINK_STOPPED ? TOOL_GOOD : TOOL_FAILED;
    atomic_store(&session->ended, true);
    KeSetEvent(session->ended_event, IO_NO_INCREMENT, FALSE);
    return NULL;
}

bool session_start(struct session *session)
{
    session->started = pthread_create(&session->thread, NULL, session_main, session) == 0;
    return session->started;
}

void session_join(struct session *session)
{
    pthread_join(session->thread, NULL);
}
