// SPDX-License-Identifier: MIT
/* See peer.h, its first part. This file sees the system's headers, so nothing of include/nt. */
#include "peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "iwarp/crc32c.h"
#include "iwarp/wire.h"

bool peer_ipv6;

/* ---- sockets -------------------------------------------------------------------------------- */

static int loopback_socket(const struct peer *p)
{
    int fd = socket(peer_ipv6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int on = 1;

    if (fd < 0)
        test_fail("peer: socket: %s", strerror(errno));
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (p->receive_room)
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &p->receive_room, sizeof p->receive_room);
    if (p->segment_size)
        setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &p->segment_size, sizeof p->segment_size);
    return fd;
}

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

static union address loopback(uint16_t port)
{
    union address address;

    memset(&address, 0, sizeof address);
    if (peer_ipv6) {
        address.v6.sin6_family = AF_INET6;
        address.v6.sin6_addr = in6addr_loopback;
        address.v6.sin6_port = htons(port);
    } else {
        address.v4.sin_family = AF_INET;
        address.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        address.v4.sin_port = htons(port);
    }
    return address;
}

static socklen_t loopback_length(void)
{
    return peer_ipv6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

/* poll() of one descriptor; a signal, libFuzzer's alarm for one, neither ends nor prolongs it. */
static bool is_ready(int fd, short events, unsigned ms)
{
    unsigned long long end = test_now_ms() + ms, now;
    struct pollfd wait = {.fd = fd, .events = events};
    int n;

    do {
        now = test_now_ms();
        n = poll(&wait, 1, now < end ? (int)(end - now) : 0);
    } while (n < 0 && errno == EINTR);
    return n == 1;
}

void peer_init(struct peer *p)
{
    memset(p, 0, sizeof *p);
    p->fd = p->listener = -1;
    p->crc = true;
}

uint16_t peer_listen(struct peer *p)
{
    union address address = loopback(0);
    socklen_t length = loopback_length();

    p->listener = loopback_socket(p);
    if (bind(p->listener, &address.any, length) != 0 || listen(p->listener, 8) != 0 ||
        getsockname(p->listener, &address.any, &length) != 0)
        test_fail("peer: listen: %s", strerror(errno));
    return ntohs(peer_ipv6 ? address.v6.sin6_port : address.v4.sin_port);
}

void peer_accept(struct peer *p)
{
    int on = 1;

    if (!is_ready(p->listener, POLLIN, PEER_WAIT_MS))
        test_fail("peer: nobody connected");
    do {
        p->fd = accept(p->listener, NULL, NULL);
    } while (p->fd < 0 && errno == EINTR);
    if (p->fd < 0)
        test_fail("peer: accept: %s", strerror(errno));
    setsockopt(p->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

bool peer_connect_arrives(struct peer *p, unsigned ms)
{
    return is_ready(p->listener, POLLIN, ms);
}

/* A connect() that a signal interrupts goes on by itself. */
static int connect_fully(int fd, const struct sockaddr *address, socklen_t length)
{
    socklen_t size = sizeof(int);
    int error = 0;

    if (connect(fd, address, length) == 0)
        return 0;
    if (errno != EINTR)
        return -1;
    if (!is_ready(fd, POLLOUT, PEER_WAIT_MS))
        error = ETIMEDOUT;
    else
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
    errno = error;
    return error ? -1 : 0;
}

void peer_connect(struct peer *p, uint16_t port)
{
    union address address = loopback(port);

    p->fd = loopback_socket(p);
    if (p->from) {
        union address from = loopback(0);

        if (inet_pton(AF_INET, p->from, &from.v4.sin_addr) != 1 ||
            bind(p->fd, &from.any, sizeof from.v4) != 0)
            test_fail("peer: bind to %s: %s", p->from, strerror(errno));
    }
    if (connect_fully(p->fd, &address.any, loopback_length()) != 0)
        test_fail("peer: connect: %s", strerror(errno));
}

void peer_close(struct peer *p)
{
    if (p->fd >= 0)
        close(p->fd);
    if (p->listener >= 0)
        close(p->listener);
    p->fd = p->listener = -1;
}

void peer_reset(struct peer *p)
{
    struct linger now = {.l_onoff = 1, .l_linger = 0};

    setsockopt(p->fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    peer_close(p);
}

void peer_hang_up(struct peer *p, bool reset)
{
    struct linger now = {.l_onoff = 1, .l_linger = 0};

    if (reset)
        setsockopt(p->fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close(p->fd);
    p->fd = -1;
}
void peer_half_close(struct peer *p)
{
    shutdown(p->fd, SHUT_WR);
}

bool peer_send(struct peer *p, const void *octets, size_t length)
{
    const uint8_t *at = octets;

    while (length) {
        ssize_t n = send(p->fd, at, length, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
            if (!is_ready(p->fd, POLLOUT, PEER_WAIT_MS))
                test_fail("peer: no octet was taken in %u ms", PEER_WAIT_MS);
            continue;
        }
        if (n < 0)
            return false;
        at += n;
        length -= (size_t)n;
    }
    return true;
}

bool peer_trickle(struct peer *p, const void *octets, size_t length)
{
    const uint8_t *at = octets;

    for (size_t i = 0; i < length; i++) {
        if (!peer_send(p, at + i, 1))
            return false;
        sched_yield();
    }
    return true;
}

enum peer_end peer_read(struct peer *p, void *octets, size_t length, unsigned ms)
{
    unsigned long long end = test_now_ms() + ms;
    uint8_t *at = octets;

    while (length) {
        unsigned long long now = test_now_ms();
        ssize_t n = recv(p->fd, at, length, MSG_DONTWAIT);

        if (n > 0) {
            at += n;
            length -= (size_t)n;
        } else if (n == 0) {
            return PEER_FIN;
        } else if (errno == EAGAIN || errno == EINTR) {
            if (now >= end)
                return PEER_QUIET;
            (void)is_ready(p->fd, POLLIN, (unsigned)(end - now));
        } else {
            return PEER_RST;
        }
    }
    return PEER_DATA;
}

bool peer_quiet(struct peer *p, unsigned ms)
{
    return !is_ready(p->fd, POLLIN, ms);
}

enum peer_end peer_await_end(struct peer *p)
{
    uint8_t octet;
    enum peer_end end = peer_read(p, &octet, 1, PEER_WAIT_MS);

    if (end == PEER_DATA)
        test_fail("peer: octet 0x%02x where the end was due", octet);
    if (end == PEER_QUIET)
        test_fail("peer: no end within %u ms", PEER_WAIT_MS);
    return end;
}

enum peer_end peer_drain(struct peer *p)
{
    static uint8_t octets[65536];

    for (;;) {
        ssize_t n = recv(p->fd, octets, sizeof octets, MSG_DONTWAIT);

        if (n == 0)
            return PEER_FIN;
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return PEER_RST;
        if (n < 0 && !is_ready(p->fd, POLLIN, PEER_WAIT_MS))
            return PEER_QUIET;
    }
}

/* ---- what the end sends --------------------------------------------------------------------- */

size_t peer_frame(struct peer *p, uint8_t *frame)
{
    size_t length;

    if (peer_read(p, frame, IWARP_MPA_HEADER_LEN, PEER_WAIT_MS) != PEER_DATA)
        test_fail("peer: no startup frame");
    length = iwarp_get_be16(frame + IWARP_MPA_OFF_PD_LENGTH);
    if (length > IWARP_MPA_PD_MAX)
        test_fail("peer: PD_Length is %zu", length);
    if (peer_read(p, frame + IWARP_MPA_HEADER_LEN, length, PEER_WAIT_MS) != PEER_DATA)
        test_fail("peer: private data is missing");
    return IWARP_MPA_HEADER_LEN + length;
}

void peer_expect_octets(const char *row, const char *what, const void *got, const void *want,
                        size_t length)
{
    const uint8_t *is = got, *due = want;

    for (size_t i = 0; i < length; i++)
        if (is[i] != due[i])
            test_fail("%s: octet 0x%zx of the %s is %02x, not %02x", row, i, what, is[i], due[i]);
}

void peer_expect_frame(struct peer *p, const char *row, const void *octets, size_t length)
{
    uint8_t frame[IWARP_MPA_FRAME_MAX];
    size_t have = peer_frame(p, frame);

    if (have != length)
        test_fail("%s: a startup frame of %zu octets, not %zu", row, have, length);
    peer_expect_octets(row, "startup frame", frame, octets, length);
}

/* What every message we send has: DV and RV 1, reserved bits zero, a known opcode. */
static void fpdu_judge(struct peer_fpdu *f)
{
    const uint8_t *u = f->octets + 2;
    bool tagged = (u[0] & IWARP_DDP_T) != 0;
    uint32_t header = tagged ? IWARP_TAGGED_LEN : IWARP_UNTAGGED_LEN;

    if (f->length < header)
        test_fail("peer: a ULPDU of %u octets", f->length);
    if ((u[0] & 0x3fu) != IWARP_DDP_VERSION || (u[1] & 0xf0u) != IWARP_RDMAP_VERSION)
        test_fail("peer: control octets %02x %02x", u[0], u[1]);
    f->tagged = tagged;
    f->last = (u[0] & IWARP_DDP_L) != 0;
    f->opcode = u[1] & IWARP_RDMAP_OPCODE_MASK;
    if (f->opcode > IWARP_OP_TERMINATE ||
        tagged != (f->opcode == IWARP_OP_WRITE || f->opcode == IWARP_OP_READ_RESPONSE))
        test_fail("peer: opcode %u with T=%d", f->opcode, tagged);
    f->payload = u + header;
    f->payload_length = f->length - header;
    if (tagged) {
        f->stag = iwarp_get_be32(u + IWARP_TAGGED_OFF_STAG);
        f->to = iwarp_get_be64(u + IWARP_TAGGED_OFF_TO);
        return;
    }
    f->ulp32 = iwarp_get_be32(u + IWARP_UNTAGGED_OFF_ULP32);
    f->qn = iwarp_get_be32(u + IWARP_UNTAGGED_OFF_QN);
    f->msn = iwarp_get_be32(u + IWARP_UNTAGGED_OFF_MSN);
    f->mo = iwarp_get_be32(u + IWARP_UNTAGGED_OFF_MO);
    if (f->ulp32 != 0 && f->opcode != IWARP_OP_SEND_INVALIDATE &&
        f->opcode != IWARP_OP_SEND_SE_INVALIDATE)
        test_fail("peer: opcode %u with 0x%08x in the place of an STag", f->opcode, f->ulp32);
    if (f->opcode == IWARP_OP_READ_REQUEST) {
        if (f->length != IWARP_READ_ULPDU_LEN || !f->last || f->mo != 0 || f->qn != 1)
            test_fail("peer: a malformed Read Request");
        f->sink_stag = iwarp_get_be32(f->payload);
        f->sink_to = iwarp_get_be64(f->payload + 4);
        f->size = iwarp_get_be32(f->payload + 12);
        f->source_stag = iwarp_get_be32(f->payload + 16);
        f->source_to = iwarp_get_be64(f->payload + 20);
    }
}

const struct peer_fpdu *peer_fpdu_or_end(struct peer *p, enum peer_end *end)
{
    struct peer_fpdu *f = &p->got;
    uint32_t rest, covered;

    memset(f, 0, offsetof(struct peer_fpdu, octets));
    *end = peer_read(p, f->octets, 2, PEER_WAIT_MS);
    if (*end != PEER_DATA)
        return NULL;
    f->length = iwarp_get_be16(f->octets);
    f->pad = (0u - (2u + f->length)) & 3u;
    rest = f->length + f->pad + 4;
    *end = peer_read(p, f->octets + 2, rest, PEER_WAIT_MS);
    if (*end != PEER_DATA)
        test_fail("peer: an FPDU of %u octets is cut", f->length);
    covered = 2 + f->length + f->pad;
    for (uint32_t i = 2 + f->length; i < covered; i++)
        if (f->octets[i] != 0)
            test_fail("peer: pad octet 0x%02x", f->octets[i]);
    if (p->crc && iwarp_crc32c_final(iwarp_crc32c(iwarp_crc32c_init(), f->octets, covered)) !=
                      iwarp_get_le32(f->octets + covered))
        test_fail("peer: wrong CRC in an FPDU of %u octets", f->length);
    fpdu_judge(f);
    return f;
}

const struct peer_fpdu *peer_fpdu(struct peer *p)
{
    enum peer_end end;
    const struct peer_fpdu *f = peer_fpdu_or_end(p, &end);

    if (!f)
        test_fail("peer: %s where an FPDU was due", end == PEER_QUIET ? "nothing"
                                                    : end == PEER_FIN ? "FIN"
                                                                      : "RST");
    return f;
}

/* ---- what the peer sends -------------------------------------------------------------------- */

static uint8_t *stream_more(struct stream *s, size_t length)
{
    uint8_t *at;

    if (s->length + length > s->room) {
        s->room = (s->length + length) * 2;
        s->octets = realloc(s->octets, s->room);
        if (!s->octets)
            test_fail("peer: no memory");
    }
    at = s->octets + s->length;
    s->length += length;
    return at;
}

void stream_init(struct stream *s, bool crc)
{
    memset(s, 0, sizeof *s);
    s->crc = crc;
}

void stream_free(struct stream *s)
{
    free(s->octets);
    memset(s, 0, sizeof *s);
}

void stream_reset(struct stream *s)
{
    s->length = 0;
}

void stream_raw(struct stream *s, const void *octets, size_t length)
{
    uint8_t *at = stream_more(s, length);

    if (length)
        memcpy(at, octets, length);
}

/* The CRC over what stands since `start`. */
static void stream_crc(struct stream *s, size_t start)
{
    uint32_t crc =
        iwarp_crc32c_final(iwarp_crc32c(iwarp_crc32c_init(), s->octets + start, s->length - start));

    iwarp_put_le32(stream_more(s, 4), s->crc ? crc : 0);
}

static void stream_close(struct stream *s, size_t start)
{
    static const uint8_t zeros[3];

    s->ulpdu_at = start + 2;
    s->ulpdu_length = (uint32_t)(s->length - s->ulpdu_at);
    iwarp_put_be16(s->octets + start, (uint16_t)s->ulpdu_length);
    stream_raw(s, s->pad ? s->pad : zeros, (0u - (2u + s->ulpdu_length)) & 3u);
    stream_crc(s, start);
}

void stream_fpdu(struct stream *s, const void *ulpdu, uint32_t length)
{
    size_t start = s->length;

    stream_more(s, 2);
    stream_raw(s, ulpdu, length);
    stream_close(s, start);
}

void stream_untagged(struct stream *s, uint8_t ddp, uint8_t rdmap, uint32_t ulp32, uint32_t qn,
                     uint32_t msn, uint32_t mo, const void *payload, uint32_t length)
{
    size_t start = s->length;
    uint8_t *at = stream_more(s, IWARP_FPDU_UNTAGGED_LEN) + 2;

    at[0] = ddp;
    at[1] = rdmap;
    iwarp_put_be32(at + IWARP_UNTAGGED_OFF_ULP32, ulp32);
    iwarp_put_be32(at + IWARP_UNTAGGED_OFF_QN, qn);
    iwarp_put_be32(at + IWARP_UNTAGGED_OFF_MSN, msn);
    iwarp_put_be32(at + IWARP_UNTAGGED_OFF_MO, mo);
    stream_raw(s, payload, length);
    stream_close(s, start);
}

void stream_tagged(struct stream *s, uint8_t ddp, uint8_t rdmap, uint32_t stag, uint64_t to,
                   const void *payload, uint32_t length)
{
    size_t start = s->length;
    uint8_t *at = stream_more(s, IWARP_FPDU_TAGGED_LEN) + 2;

    at[0] = ddp;
    at[1] = rdmap;
    iwarp_put_be32(at + IWARP_TAGGED_OFF_STAG, stag);
    iwarp_put_be64(at + IWARP_TAGGED_OFF_TO, to);
    stream_raw(s, payload, length);
    stream_close(s, start);
}

void stream_send(struct stream *s, uint32_t msn, const void *payload, uint32_t length)
{
    stream_untagged(s, 0x41, 0x43, 0, 0, msn, 0, payload, length);
}

void stream_write(struct stream *s, uint32_t stag, uint64_t to, const void *payload,
                  uint32_t length)
{
    stream_tagged(s, 0xc1, 0x40, stag, to, payload, length);
}

void stream_response(struct stream *s, bool last, uint32_t stag, uint64_t to, const void *payload,
                     uint32_t length)
{
    stream_tagged(s, last ? 0xc1 : 0x81, 0x42, stag, to, payload, length);
}

void stream_read_body(uint8_t *body, uint32_t sink_stag, uint64_t sink_to, uint32_t size,
                      uint32_t source_stag, uint64_t source_to)
{
    iwarp_put_be32(body, sink_stag);
    iwarp_put_be64(body + 4, sink_to);
    iwarp_put_be32(body + 12, size);
    iwarp_put_be32(body + 16, source_stag);
    iwarp_put_be64(body + 20, source_to);
}

void stream_read(struct stream *s, uint32_t msn, uint32_t sink_stag, uint64_t sink_to,
                 uint32_t size, uint32_t source_stag, uint64_t source_to)
{
    uint8_t body[IWARP_READ_BODY_LEN];

    stream_read_body(body, sink_stag, sink_to, size, source_stag, source_to);
    stream_untagged(s, 0x41, 0x41, 0, 1, msn, 0, body, sizeof body);
}

void stream_terminate(struct stream *s, const void *body, uint32_t length)
{
    stream_untagged(s, 0x41, 0x47, 0, 2, 1, 0, body, length);
}

/* ---- startup -------------------------------------------------------------------------------- */

void peer_send_frame(struct peer *p, bool reply, uint16_t ird_word, uint16_t ord_word)
{
    uint8_t frame[24];

    memcpy(frame, reply ? IWARP_MPA_KEY_REPLY : IWARP_MPA_KEY_REQUEST, IWARP_MPA_KEY_LEN);
    memcpy(frame + IWARP_MPA_KEY_LEN, "\x50\x02\x00\x04", 4);
    iwarp_put_be16(frame + 20, ird_word);
    iwarp_put_be16(frame + 22, ord_word);
    peer_send(p, frame, sizeof frame);
}

void peer_rtr_read(struct peer *p)
{
    struct stream s;
    const struct peer_fpdu *f;

    stream_init(&s, p->crc);
    stream_read(&s, 1, 0, 0, 0, 1, 0);
    peer_send(p, s.octets, s.length);
    stream_free(&s);
    f = peer_fpdu(p);
    if (f->opcode != IWARP_OP_READ_RESPONSE || f->payload_length != 0 || !f->last)
        test_fail("peer: no Response to the ready-to-receive Read");
}

void peer_answer_rtr_read(struct peer *p)
{
    const struct peer_fpdu *f = peer_fpdu(p);
    struct stream s;

    if (f->opcode != IWARP_OP_READ_REQUEST || f->size != 0 || f->sink_stag == 0 || f->msn != 1)
        test_fail("peer: no ready-to-receive Read");
    stream_init(&s, p->crc);
    stream_response(&s, true, f->sink_stag, f->sink_to, NULL, 0);
    peer_send(p, s.octets, s.length);
    stream_free(&s);
}

/* ---- Terminates ----------------------------------------------------------------------------- */

void peer_expect_terminate(struct peer *p, const char *row, unsigned error,
                           enum peer_headers headers, const uint8_t *ulpdu, uint32_t length)
{
    const struct peer_fpdu *f = peer_fpdu(p);
    uint8_t body[IWARP_TERM_BODY_MAX] = {(uint8_t)(error >> 8), (uint8_t)error, 0, 0};
    uint32_t want = IWARP_TERM_CONTROL_LEN;

    if (headers != PEER_BARE) {
        uint32_t header = ulpdu[0] & IWARP_DDP_T ? IWARP_TAGGED_LEN : IWARP_UNTAGGED_LEN;

        body[2] = IWARP_TERM_M | IWARP_TERM_D;
        iwarp_put_be16(body + want, (uint16_t)length);
        memcpy(body + want + 2, ulpdu, header);
        want += 2 + header;
        if (headers == PEER_DDP_READ) {
            body[2] |= IWARP_TERM_R;
            memcpy(body + want, ulpdu + header, IWARP_READ_BODY_LEN);
            want += IWARP_READ_BODY_LEN;
        }
    }
    if (f->opcode != IWARP_OP_TERMINATE)
        test_fail("%s: opcode %u where a Terminate was due", row, f->opcode);
    if (f->qn != IWARP_QN_TERMINATE || f->msn != 1 || f->mo != 0 || !f->last)
        test_fail("%s: Terminate with queue %u, MSN %u, MO %u, L=%d", row, f->qn, f->msn, f->mo,
                  f->last);
    if (f->payload_length < 2 || f->payload[0] != body[0] || f->payload[1] != body[1])
        test_fail("%s: Terminate %02x%02x, not %02x%02x", row, f->payload[0], f->payload[1],
                  body[0], body[1]);
    if (f->payload_length != want)
        test_fail("%s: Terminate %02x%02x with a body of %u octets, not %u", row, f->payload[0],
                  f->payload[1], f->payload_length, want);
    peer_expect_octets(row, "Terminate's body", f->payload, body, want);
}
