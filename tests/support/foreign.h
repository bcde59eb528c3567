// SPDX-License-Identifier: MIT
/*
 * One end and a peer by hand (peer.h) that it connects to, call by call. For tests; all of it fails
 * the test when something does not come within its limit.
 */
#ifndef SOFTNDK_TESTS_FOREIGN_H
#define SOFTNDK_TESTS_FOREIGN_H

#include "ends.h"
#include "peer.h"

struct call {
    struct wait wait;
    NTSTATUS returned;
};

/* The answer of a call that had to wait. */
static inline NTSTATUS later(struct call *call)
{
    assert_int_equal(call->returned, STATUS_PENDING);
    return wait_end(&call->wait, call->returned);
}

static inline void dial(struct end *c, const SOCKADDR_INET *target, struct call *call)
{
    SOCKADDR_INET local = *target, peer = *target;

    local.Ipv4.sin_port = 0;
    if (!c->connector)
        c->connector = make_connector(c->adapter);
    wait_init(&call->wait);
    call->returned = c->connector->Dispatch->NdkConnect(
        c->connector, c->qp, (PSOCKADDR)&local, sizeof local.Ipv4, (PSOCKADDR)&peer,
        sizeof peer.Ipv4, 8, 8, NULL, 0, wait_request, &call->wait);
}

/* One end and a peer of no NDK consumer that it connects to. */
struct foreign {
    struct end end;
    struct peer peer;
    SOCKADDR_INET address;
};

static inline void foreign_open(struct foreign *f, const char *options)
{
    end_open(&f->end, options);
    peer_init(&f->peer);
    f->address = address_of(peer_listen(&f->peer));
}

static inline void foreign_close(struct foreign *f)
{
    end_close(&f->end);
    peer_close(&f->peer);
}

/* As far as the Request, and on until the complete connect may be called. */
static inline void foreign_dial(struct foreign *f, struct call *connect)
{
    uint8_t frame[532];

    dial(&f->end, &f->address, connect);
    peer_accept(&f->peer);
    peer_frame(&f->peer, frame);
}

static inline void foreign_reply(struct foreign *f, struct call *connect)
{
    peer_send_frame(&f->peer, true, 0x8008, 0x4008); /* A=1, 8 reads each way, RTR by a Read */
    assert_int_equal(later(connect), STATUS_SUCCESS);
}

#endif
