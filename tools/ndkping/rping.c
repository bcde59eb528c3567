// SPDX-License-Identifier: MIT
/*
 * See rping.h. One iteration, as rping does it:
 *
 *   1  client: Send advert of its source buffer
 *   2  server: RDMA Read of it        3  server: Send, "go ahead"
 *   4  client: Send advert of its sink buffer
 *   5  server: RDMA Write to it       6  server: Send, "go ahead"
 *
 * Every Send is 16 octets: address 8, token 4, length 4, big-endian; the server's mean nothing but
 * "go ahead". Each side has one receive posted and posts it again as soon as it has completed,
 * always before the Send that makes the peer go on. The client never starts an RDMA operation.
 *
 * Plain: the buffers hold rping's text, the server writes the string and its zero back. Exact
 * (agreed by hello.h): the buffers hold octets of pattern.h, the Write is exactly `size` octets,
 * and both sides verify all of them.
 */
#include "rping.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/tool_args.h"
#include "hello.h"
#include "pattern.h"

#define MESSAGE_OCTETS 16
#define SHOWN_OCTETS   64 /* of the text, with -v */

struct advert {
    UINT64 address;
    UINT32 token, length;
};

bool rping_open(struct rping *rping)
{
    NDK_PD *pd = rping->link->pd;

    if (!tool_memory_create(pd, MESSAGE_OCTETS, NDK_MR_FLAG_ALLOW_LOCAL_WRITE, &rping->receive) ||
        !tool_memory_create(pd, MESSAGE_OCTETS, NDK_MR_FLAG_ALLOW_LOCAL_READ, &rping->send))
        return false;
    /* On iWARP the sink of a read is written by the peer. */
    if (rping->server &&
        !tool_memory_create(pd, rping->size,
                            NDK_MR_FLAG_ALLOW_REMOTE_WRITE | NDK_MR_FLAG_RDMA_READ_SINK,
                            &rping->sink))
        return false;
    if (!rping->server &&
        (!tool_memory_create(pd, rping->size, NDK_MR_FLAG_ALLOW_REMOTE_READ, &rping->source) ||
         !tool_memory_create(pd, rping->size, NDK_MR_FLAG_ALLOW_REMOTE_WRITE, &rping->sink)))
        return false;
    /* Nothing that the first iteration expects may be there already. */
    pattern_octets(rping->sink.data, rping->size, UINT64_MAX);
    return link_receive(rping->link, &rping->receive, 0, MESSAGE_OCTETS);
}

void rping_close(struct rping *rping)
{
    tool_memory_close(&rping->receive);
    tool_memory_close(&rping->send);
    tool_memory_close(&rping->source);
    tool_memory_close(&rping->sink);
}

/* ---- messages ---- */

/* Sends 16 octets and waits until they are sent: the buffer is used again. */
static enum link_result send_message(struct rping *rping, const struct advert *advert)
{
    uint8_t *out = rping->send.data;

    put_be(out, 8, advert->address);
    put_be(out + 8, 4, advert->token);
    put_be(out + 12, 4, advert->length);
    if (!link_send(rping->link, &rping->send, 0, MESSAGE_OCTETS))
        return LINK_FAILED;
    return link_wait(rping->link, LINK_SEND);
}

/* Takes the received message out and posts the receive again. */
static enum link_result take_message(struct rping *rping, struct advert *out)
{
    const uint8_t *in = rping->receive.data;

    if (rping->link->octets != MESSAGE_OCTETS) {
        tool_say("%s: a message of %u octets (need %u)", rping->link->peer,
                 (unsigned)rping->link->octets, MESSAGE_OCTETS);
        return LINK_FAILED;
    }
    out->address = get_be(in, 8);
    out->token = (UINT32)get_be(in + 8, 4);
    out->length = (UINT32)get_be(in + 12, 4);
    return link_receive(rping->link, &rping->receive, 0, MESSAGE_OCTETS) ? LINK_GOOD : LINK_FAILED;
}

/* Where a peer that goes is an error. */
static enum link_result inside(struct rping *rping, enum link_result result)
{
    if (result != LINK_GONE)
        return result;
    link_report_lost(rping->link);
    return LINK_FAILED;
}

static void show(const struct rping *rping, const uint8_t *data)
{
    size_t length;

    if (!rping->verbose)
        return;
    if (rping->exact) {
        printf("iteration %" PRIu64 ": %u octets verified\n", rping->iterations,
               (unsigned)rping->size);
        return;
    }
    length = strnlen((const char *)data, rping->size);
    printf("%sping data: ", rping->server ? "server " : "");
    for (size_t i = 0; i < length && i < SHOWN_OCTETS; i++)
        putchar(data[i] >= 32 && data[i] < 127 ? data[i] : '.');
    printf("%s\n", length > SHOWN_OCTETS ? "..." : "");
}

static enum link_result mismatch(const struct rping *rping, const char *what, size_t at,
                                 unsigned have, const char *need)
{
    tool_say("%s: iteration %" PRIu64 ": %s: octet %zu of %u is 0x%02x (need %s)",
             rping->link->peer, rping->iterations, what, at, (unsigned)rping->size, have, need);
    return LINK_FAILED;
}

static enum link_result check_octets(const struct rping *rping, const char *what,
                                     const struct tool_memory *memory)
{
    char need[8];
    size_t at;

    if (pattern_octets_good(memory->data, rping->size, rping->iterations, &at))
        return LINK_GOOD;
    snprintf(need, sizeof(need), "0x%02x", pattern_octet(at, rping->iterations));
    return mismatch(rping, what, at, memory->data[at], need);
}

/* ---- client ---- */

static enum link_result advertise(struct rping *rping, const struct tool_memory *memory)
{
    struct advert advert = {(UINT64)(ULONG_PTR)memory->data, memory->remote, rping->size}, reply;
    enum link_result result = send_message(rping, &advert);

    if (result == LINK_GOOD)
        result = link_wait(rping->link, LINK_RECEIVE);
    return result == LINK_GOOD ? take_message(rping, &reply) : result;
}

/* What came back must be what was offered. */
static enum link_result compare(const struct rping *rping)
{
    const uint8_t *need = rping->source.data, *have = rping->sink.data;
    char text[8];
    size_t at = 0;

    if (rping->exact)
        return check_octets(rping, "written by the server", &rping->sink);
    if (!rping->verify || memcmp(need, have, rping->size) == 0)
        return LINK_GOOD;
    while (need[at] == have[at])
        at++;
    snprintf(text, sizeof(text), "0x%02x", need[at]);
    return mismatch(rping, "written by the server", at, have[at], text);
}

static enum link_result client_iteration(struct rping *rping)
{
    enum link_result result;

    if (rping->exact)
        pattern_octets(rping->source.data, rping->size, rping->iterations);
    else
        pattern_text(rping->source.data, rping->size, rping->iterations);
    result = advertise(rping, &rping->source);
    if (result == LINK_GOOD)
        result = advertise(rping, &rping->sink);
    if (result == LINK_GOOD)
        result = compare(rping);
    if (result == LINK_GOOD)
        show(rping, rping->sink.data);
    return result;
}

static enum link_result run_client(struct rping *rping)
{
    while (rping->count == 0 || rping->iterations < rping->count) {
        enum link_result result;

        if (tool_stopped())
            return LINK_STOPPED;
        result = inside(rping, client_iteration(rping));
        if (result != LINK_GOOD)
            return result;
        rping->iterations++;
    }
    return LINK_GOOD;
}

/* ---- server ---- */

static enum link_result check_length(const struct rping *rping, const char *what,
                                     const struct advert *advert)
{
    if (rping->exact ? advert->length == rping->size : advert->length <= rping->size)
        return LINK_GOOD;
    tool_say("%s: iteration %" PRIu64 ": the %s is %u octets (need %u%s)", rping->link->peer,
             rping->iterations, what, (unsigned)advert->length, (unsigned)rping->size,
             rping->exact ? "" : ": both ends must be started with the same size");
    return LINK_FAILED;
}

static enum link_result read_source(struct rping *rping, const struct advert *advert)
{
    enum link_result result = check_length(rping, "source", advert);
    size_t at = 0;

    if (result != LINK_GOOD)
        return result;
    if (!link_read(rping->link, &rping->sink, advert->length, advert->address, advert->token))
        return LINK_FAILED;
    result = link_wait(rping->link, LINK_READ);
    if (result != LINK_GOOD)
        return result;
    if (rping->exact)
        return check_octets(rping, "read from the client", &rping->sink);
    if (rping->verify &&
        !pattern_text_good(rping->sink.data, advert->length, rping->iterations, &at))
        return mismatch(rping, "read from the client", at, rping->sink.data[at], "rping's text");
    return LINK_GOOD;
}

/* The string that was read and its zero, or all of it. */
static enum link_result write_sink(struct rping *rping, const struct advert *advert)
{
    enum link_result result = check_length(rping, "sink", advert);
    ULONG length = rping->size;

    if (result != LINK_GOOD)
        return result;
    if (!rping->exact) {
        length = (ULONG)strnlen((const char *)rping->sink.data, rping->size) + 1;
        if (length > advert->length)
            length = advert->length;
    }
    if (!link_write(rping->link, &rping->sink, length, advert->address, advert->token))
        return LINK_FAILED;
    return link_wait(rping->link, LINK_WRITE);
}

/* From the first advert, which is in, to the last "go ahead". */
static enum link_result server_iteration(struct rping *rping)
{
    static const struct advert go_ahead = {0, 0, 0};
    struct advert advert;
    enum link_result result = take_message(rping, &advert);

    if (result == LINK_GOOD)
        result = read_source(rping, &advert);
    if (result == LINK_GOOD)
        result = send_message(rping, &go_ahead);
    if (result == LINK_GOOD)
        result = link_wait(rping->link, LINK_RECEIVE);
    if (result == LINK_GOOD)
        result = take_message(rping, &advert);
    if (result == LINK_GOOD)
        result = write_sink(rping, &advert);
    if (result == LINK_GOOD)
        show(rping, rping->sink.data);
    if (result == LINK_GOOD)
        result = send_message(rping, &go_ahead);
    return result;
}

static enum link_result run_server(struct rping *rping)
{
    for (;;) {
        enum link_result result =
            tool_stopped() ? LINK_STOPPED : link_wait_idle(rping->link, LINK_RECEIVE);

        if (result == LINK_GONE)
            return LINK_GOOD;
        if (result == LINK_GOOD && rping->count && rping->iterations == rping->count) {
            tool_say("%s: goes on after %" PRIu64 " iterations", rping->link->peer, rping->count);
            result = LINK_FAILED;
        }
        if (result == LINK_GOOD)
            result = inside(rping, server_iteration(rping));
        if (result != LINK_GOOD)
            return result;
        rping->iterations++;
    }
}

enum link_result rping_run(struct rping *rping)
{
    return rping->server ? run_server(rping) : run_client(rping);
}
