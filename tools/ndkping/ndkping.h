// SPDX-License-Identifier: MIT
/*
 * ndkping: what the command line asks for, and how the files of the program hang together.
 *
 *   main.c     options             client.c   route, connect, run, disconnect
 *   hello.c    private data        server.c   listeners; one thread a client, session.c
 *   link*.c    one connection      rping.c    the protocol of rping, both roles
 *   pattern.c  what buffers hold   table*.c   times and rates, both roles
 */
#ifndef SOFTNDK_NDKPING_NDKPING_H
#define SOFTNDK_NDKPING_NDKPING_H

#include <softndk.h>

#include <stdbool.h>
#include <stdint.h>

#include "link.h"

#define PING_PORT     7174
#define PING_SIZE     64          /* octets */
#define PING_SIZE_MAX (16u << 20) /* octets */
/* The text prefix of rping's pattern at its longest, with its terminating zero. */
#define PING_TEXT_MIN 23
#define PING_CLIENTS  64 /* served at once */
#define PING_WAIT_MAX 86400
/* NDKPing ends by itself, and its command line says nowhere when. */
#define PING_COUNT_OF_FORMS 10

struct ping_options {
    bool server, client, verbose, verify, persistent, table;
    const char *address, *local; /* NULL: not given */
    uint16_t port;
    uint32_t interface; /* index of our end's, 0: as the addresses give it */
    unsigned wait_s;    /* server: how long for a client, 0 without limit */
    uint64_t count;     /* iterations, 0 without limit */
    ULONG size;         /* octets */
};

/* Exit statuses of the program (tool_args.h). */
int ping_client(const struct ping_options *options);
int ping_server(const struct ping_options *options);

/* The selector of an interface that was named by its index. */
void ping_interface(uint32_t index, char text[SOFTNDK_ADDRESS_MAX]);

#endif
