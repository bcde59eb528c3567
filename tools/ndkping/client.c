// SPDX-License-Identifier: MIT
/*
 * The client: finds the adapter by the route to the server, connects, runs, and ends the connection
 * by disconnecting, which is how a server of rping learns that it is over.
 */
#include "ndkping.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/tool_args.h"
#include "hello.h"
#include "rping.h"
#include "table.h"

/* One way to use the connection, behind one face. */
struct client {
    const struct ping_options *options;
    struct link link;
    struct rping rping;
    struct table table;
};

/* What to offer: nothing in plain mode, so that any server of rping understands us. */
static struct hello offer(const struct ping_options *options)
{
    struct hello hello = {HELLO_PLAIN, options->size, options->count};

    if (options->table)
        hello.mode = HELLO_TABLE;
    else if (options->verify || options->size < PING_TEXT_MIN)
        hello.mode = HELLO_EXACT;
    return hello;
}

static bool open_mode(struct client *client)
{
    const struct ping_options *options = client->options;

    client->table.link = &client->link;
    client->rping.link = &client->link;
    client->rping.size = options->size;
    client->rping.count = options->count;
    client->rping.verify = options->verify;
    client->rping.verbose = options->verbose;
    return options->table ? table_open(&client->table) : rping_open(&client->rping);
}

/* Did the server take the offer? Without an answer it is a server of rping. */
static bool settle(struct client *client, const struct hello *offered)
{
    uint8_t octets[HELLO_OCTETS];
    struct hello answer;
    ULONG length;

    if (offered->mode == HELLO_PLAIN)
        return true;
    if (!link_private_data(&client->link, octets, sizeof(octets), &length))
        return false;
    if (hello_read(octets, length, &answer) && answer.mode == offered->mode) {
        client->rping.exact = offered->mode == HELLO_EXACT;
        return true;
    }
    if (client->options->table || client->options->size < PING_TEXT_MIN) {
        tool_say("%s: this server speaks plain rping, which has no %s", client->link.peer,
                 client->options->table ? "--table" : "sizes below 23 octets");
        return false;
    }
    if (client->options->verbose)
        puts("the server speaks plain rping: only what it writes back is verified");
    return true;
}

static enum link_result connect_link(struct client *client, const char *source)
{
    const struct ping_options *options = client->options;
    struct hello offered = offer(options);
    uint8_t octets[HELLO_OCTETS];
    struct link_terms terms = {1, 1, NULL, 0}; /* as rping */
    SOCKADDR_INET local, peer;
    ULONG local_length = tool_address(source, 0, &local);
    ULONG peer_length = tool_address(options->address, options->port, &peer);
    enum link_result result;

    if (offered.mode != HELLO_PLAIN) {
        hello_write(&offered, octets);
        terms.data = octets;
        terms.length = sizeof(octets);
    }
    if (offered.mode == HELLO_TABLE)
        terms.inbound_reads = terms.outbound_reads = TABLE_READS;
    result = link_connect(&client->link, &local, local_length, &peer, peer_length, &terms);
    if (result != LINK_GOOD)
        return result;
    if (!settle(client, &offered))
        return LINK_FAILED;
    return link_complete_connect(&client->link);
}

static void report(const struct client *client, UINT64 ns)
{
    const struct rping *rping = &client->rping;

    printf("%" PRIu64 " iterations of %u octets%s, %.3f s\n", rping->iterations,
           (unsigned)rping->size,
           rping->exact    ? ", verified at both ends"
           : rping->verify ? ", verified here"
                           : "",
           (double)ns / 1e9);
}

static enum link_result run(struct client *client, const char *source)
{
    enum link_result result = connect_link(client, source);
    UINT64 began_ns = table_now_ns();

    if (result != LINK_GOOD)
        return result;
    if (client->options->table)
        return table_client(&client->table);
    result = rping_run(&client->rping);
    if (result == LINK_GOOD || result == LINK_STOPPED)
        report(client, table_now_ns() - began_ns);
    return result;
}

static int judge(const struct client *client, enum link_result result)
{
    const struct ping_options *options = client->options;

    if (result == LINK_GOOD)
        return TOOL_GOOD;
    if (result != LINK_STOPPED)
        return TOOL_FAILED;
    tool_say("interrupted");
    /* Without a number of iterations to reach, an interruption is the way to end. */
    return !options->table && options->count == 0 && client->rping.iterations > 0 ? TOOL_GOOD
                                                                                  : TOOL_FAILED;
}

static int run_on(NDK_ADAPTER *adapter, const struct ping_options *options, const char *source)
{
    const bool table = options->table;
    enum link_result result = LINK_FAILED;
    struct client client;

    memset(&client, 0, sizeof(client));
    client.options = options;
    if (link_open(&client.link, adapter, NULL, table ? TABLE_WINDOW + 2 : 2,
                  table ? TABLE_REQUESTS : 4) &&
        open_mode(&client))
        result = run(&client, source);
    if (!link_end(&client.link, result == LINK_GOOD) && result == LINK_GOOD)
        result = LINK_FAILED;
    rping_close(&client.rping);
    table_close(&client.table);
    link_close(&client.link);
    return judge(&client, result);
}

/* An address of the family that the interface has, to connect from. */
static bool address_of(const struct softndk_adapter *interface, int family,
                       char source[SOFTNDK_ADDRESS_MAX])
{
    for (ULONG k = 0; k < interface->address_count && k < SOFTNDK_ADDRESSES_MAX; k++) {
        SOCKADDR_INET address;

        if (tool_address(interface->addresses[k], 0, &address) > 0 && address.si_family == family) {
            snprintf(source, SOFTNDK_ADDRESS_MAX, "%s", interface->addresses[k]);
            return true;
        }
    }
    return false;
}

/* The first address of the interface with this index that a peer of that family can be reached
 * from. false: told. */
static bool source_of(uint32_t index, int family, char source[SOFTNDK_ADDRESS_MAX])
{
    struct softndk_adapter *list = NULL;
    ULONG room = 0, count = 0;
    bool there = false, found = false;
    NTSTATUS status = softndk_adapter_list(NULL, 0, &room);

    if (status == STATUS_SUCCESS) {
        list = calloc(room ? room : 1, sizeof(*list));
        status = list ? softndk_adapter_list(list, room, &count) : STATUS_INSUFFICIENT_RESOURCES;
    }
    if (status != STATUS_SUCCESS) {
        tool_report_open("softndk_adapter_list", status);
        free(list);
        return false;
    }
    for (ULONG i = 0; i < count && i < room && !found; i++) {
        if (list[i].index != index)
            continue;
        there = true;
        found = address_of(&list[i], family, source);
    }
    free(list);
    if (!found)
        tool_say("interface %u: %s (ndkinfo shows interfaces)", index,
                 !there              ? "there is none"
                 : family == AF_INET ? "has no IPv4 address"
                                     : "has no IPv6 address");
    return found;
}

/* Which adapter to open, and where to connect from. false: told. */
static bool choose(const struct ping_options *options, char selector[SOFTNDK_ADDRESS_MAX],
                   char source[SOFTNDK_ADDRESS_MAX])
{
    SOCKADDR_INET peer;
    NTSTATUS status;

    ping_interface(options->interface, selector);
    if (options->local) {
        if (!selector[0])
            snprintf(selector, SOFTNDK_ADDRESS_MAX, "%s", options->local);
        snprintf(source, SOFTNDK_ADDRESS_MAX, "%s", options->local);
        return true;
    }
    if (selector[0])
        return tool_address(options->address, 0, &peer) > 0 &&
               source_of(options->interface, peer.si_family, source);
    status = softndk_adapter_for_route(options->address, selector, SOFTNDK_ADDRESS_MAX, source,
                                       SOFTNDK_ADDRESS_MAX);
    if (status != STATUS_SUCCESS)
        tool_report_open("softndk_adapter_for_route", status);
    return status == STATUS_SUCCESS;
}

int ping_client(const struct ping_options *options)
{
    char selector[SOFTNDK_ADDRESS_MAX], source[SOFTNDK_ADDRESS_MAX];
    NDK_ADAPTER *adapter;
    int result;

    if (!choose(options, selector, source) ||
        tool_open_adapter(selector, &adapter) != STATUS_SUCCESS)
        return TOOL_FAILED;
    result = run_on(adapter, options, source);
    softndk_close_adapter(adapter);
    return result;
}
