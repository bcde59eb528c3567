// SPDX-License-Identifier: MIT
/*
 * The only door to the operating system: sockets, polling, clock, threads, randomness, memory
 * probes, interfaces. Everything above is portable C; a second backend (a simulator with a virtual
 * clock and in-memory sockets, later Windows) implements this same header.
 *
 * Results: 0 or a count on success, a negative errno value on failure (never errno itself).
 * All sockets are non-blocking, close-on-exec, TCP_NODELAY and SO_REUSEADDR. EINTR never leaves
 * this floor. No call here takes a lock of an upper floor; none runs a callback.
 *
 * This floor never includes include/nt: AF_INET6 has another value there. Addresses cross in
 * struct os_addr.
 */
#ifndef SOFTNDK_OS_OS_H
#define SOFTNDK_OS_OS_H

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- addresses ------------------------------------------------------------------------------ */

enum os_family { OS_FAMILY_NONE = 0, OS_FAMILY_V4 = 4, OS_FAMILY_V6 = 6 };

struct os_addr {
    uint8_t family;    /* enum os_family */
    uint16_t port;     /* host byte order */
    uint32_t scope_id; /* IPv6 link-local only */
    uint8_t ip[16];    /* network byte order; the first 4 octets for IPv4 */
};

/* Equality of the IP part (family, octets, scope), ports left aside. */
bool os_addr_ip_equal(const struct os_addr *a, const struct os_addr *b);
bool os_addr_equal(const struct os_addr *a, const struct os_addr *b);
bool os_addr_is_wildcard(const struct os_addr *a);
bool os_addr_is_loopback(const struct os_addr *a);
/* "1.2.3.4:80", "[fe80::1%2]:80"; with_port false leaves the port away. Always terminates. */
#define OS_ADDR_TEXT_MAX 72
const char *os_addr_text(const struct os_addr *a, bool with_port, char buf[OS_ADDR_TEXT_MAX]);
/* Accepts "1.2.3.4", "1.2.3.4:80", "::1", "[::1]:80", "fe80::1%eth0". 0 or -EINVAL. */
int os_addr_parse(const char *text, struct os_addr *out);

/* ---- TCP ------------------------------------------------------------------------------------ */

struct os_iov { /* same layout as struct iovec (asserted in the Linux backend) */
    void *base;
    size_t len;
};
#define OS_IOV_MAX 1024

int os_tcp_socket(enum os_family family); /* descriptor or -errno; IPv6 sockets are v6-only */
int os_tcp_bind(int fd, const struct os_addr *local);
/*
 * An address that many sockets of this process connect from. The holder is bound, then held; from
 * then on only sockets that were shared before their bind can have the address: every other bind,
 * of whatever process and with whatever options of ours, gives -EADDRINUSE. The holder never
 * listens; the address is free when the holder and all that share it are closed. Sockets that share
 * must differ in their peer: connect gives -EADDRNOTAVAIL otherwise.
 */
int os_tcp_hold(int fd);
int os_tcp_share(int fd);
int os_tcp_connect(int fd, const struct os_addr *peer); /* 0, -EINPROGRESS or the failure */
int os_tcp_connect_result(int fd);                      /* pending socket error, cleared */
int os_tcp_listen(int fd, int backlog);
/* Descriptor, -EAGAIN, or the failure: without descriptors (-EMFILE) the connection stays queued,
 * and no further event tells of it. peer may be NULL. */
int os_tcp_accept(int fd, struct os_addr *peer);
/* A pending socket error (an RST above all) is told once, to whichever of send, recv, peek and
 * connect_result comes first; recv still hands out the queued octets before it, and 0 after it was
 * told elsewhere. */
ssize_t os_tcp_send(int fd, const struct os_iov *iov, int count); /* octets taken or -errno */
ssize_t os_tcp_recv(int fd, void *buf, size_t len);               /* octets, 0 at FIN, or -errno */
int os_tcp_peek(int fd);          /* 1: octets are there, 0: FIN, -EAGAIN, or the failure */
int os_tcp_shutdown_send(int fd); /* FIN behind what is queued */
/* On a listener: refuse new connections; the port stays if it was bound by number, and
 * os_tcp_listen() resumes. */
int os_tcp_shutdown_recv(int fd);
void os_tcp_close(int fd); /* orderly */
void os_tcp_abort(int fd); /* RST, whatever is queued is dropped */
int os_tcp_local(int fd, struct os_addr *out);
int os_tcp_peer(int fd, struct os_addr *out);
int os_tcp_mss(int fd);        /* present maximum segment size in octets */
bool os_tcp_is_closed(int fd); /* no connection any more: reset, or ended by both sides */
int os_tcp_unacked(int fd);    /* octets (and FIN) queued or in flight, not yet acknowledged */
int os_tcp_set_user_timeout_ms(int fd, unsigned ms);
int os_tcp_set_keepalive_s(int fd, unsigned idle_s);              /* 0: none */
int os_tcp_set_buffers(int fd, int send_octets, int recv_octets); /* <= 0 leaves one as it is */

/* ---- poll sets ------------------------------------------------------------------------------ */

/*
 * A set of descriptors, edge-triggered: an event is reported when something new happened, and the
 * owner reads or writes until -EAGAIN or a short count (but see OS_PEER_DONE). A set can stand in
 * another set. A socket is added after its connect or listen was called: one that is not under way
 * anywhere counts as hung up.
 */
struct os_poll;

#define OS_READABLE 0x1u /* octets, a connection, FIN or an error is to be had */
#define OS_WRITABLE 0x2u /* the socket takes octets again, or the connect ended */
#define OS_HANGUP   0x4u /* both directions are over, or an error is pending */
/* The peer's FIN, or an end for other reasons, is in: it may have come in the same event as octets,
 * so a short count is not the end of reading this time; read until 0 or a failure. */
#define OS_PEER_DONE 0x8u

struct os_event {
    void *cookie;
    unsigned events;
};

int os_poll_create(struct os_poll **out);
void os_poll_destroy(struct os_poll *set);
int os_poll_add(struct os_poll *set, int fd, void *cookie);
int os_poll_del(struct os_poll *set, int fd);
int os_poll_add_set(struct os_poll *set, struct os_poll *inner, void *cookie); /* level-triggered */
int os_poll_del_set(struct os_poll *set, struct os_poll *inner);
/* What the descriptor is ready for now makes a new edge, in the set that it is in. */
void os_poll_rearm(int fd);
/* Waits up to timeout_us (0: does not wait, < 0: for ever); number of events. A wake is consumed
 * here and not reported as an event. */
int os_poll_wait(struct os_poll *set, struct os_event *events, int max, int64_t timeout_us);
/* How finely a wait's limit is kept, in us: 1, or 1000 (rounded up) where the kernel (before 5.11)
 * or a filter refuses the fine call. Known once a set was made. */
unsigned os_poll_grain_us(void);
void os_poll_wake(struct os_poll *set); /* any thread; makes the present or next wait return */

/* ---- clock, randomness, threads ------------------------------------------------------------- */

uint64_t os_now_us(void); /* monotonic */
void os_sleep_us(uint64_t us);
void os_random(void *buf, size_t len);
uint32_t os_pid(void);

typedef pthread_mutex_t os_mutex;
typedef pthread_cond_t os_cond;
#define OS_MUTEX_INITIALIZER PTHREAD_MUTEX_INITIALIZER
/* What no caller could go on after: a line in the log, and the end of the process. */
_Noreturn void os_fatal(const char *call, int err);
void os_mutex_init(os_mutex *m);
void os_mutex_destroy(os_mutex *m);
static inline void os_mutex_lock(os_mutex *m)
{
    int err = pthread_mutex_lock(m);

    if (__builtin_expect(err != 0, 0))
        os_fatal("mutex_lock", err);
}
static inline void os_mutex_unlock(os_mutex *m)
{
    int err = pthread_mutex_unlock(m);

    if (__builtin_expect(err != 0, 0))
        os_fatal("mutex_unlock", err);
}
void os_cond_init(os_cond *c); /* on the monotonic clock */
void os_cond_destroy(os_cond *c);
void os_cond_wait(os_cond *c, os_mutex *m);
bool os_cond_wait_until(os_cond *c, os_mutex *m, uint64_t deadline_us); /* false: timed out */
void os_cond_broadcast(os_cond *c);

struct os_thread;
int os_thread_start(struct os_thread **out, const char *name, void (*fn)(void *), void *arg);
void os_thread_join(struct os_thread *t);
/* This thread's waits end when their limit is there, not up to 50 us later (Linux's usual slack).
 */
void os_thread_wake_exactly(void);
unsigned os_cpu_count(void);
void os_cpu_relax(void);

/* ---- memory --------------------------------------------------------------------------------- */

#define OS_PAGE_SIZE 4096u
/* Are all pages of [addr, addr + len) mapped and readable (writable)? 0 or -EFAULT. Touches the
 * mapping (populates it), never the contents. */
int os_probe(const void *addr, size_t len, bool writable);

/* ---- interfaces ----------------------------------------------------------------------------- */

#define OS_IF_NAME_MAX 64 /* octets; the host's are shorter, a configuration may give others */
#define OS_IF_ADDR_MAX 16
struct os_interface {
    uint32_t index;
    uint32_t host_index; /* the host's number of it, in scopes too; upper floors may change index */
    char name[OS_IF_NAME_MAX];
    uint32_t mtu;   /* octets */
    uint8_t mac[6]; /* link address; zero: none */
    bool up, loopback;
    unsigned addr_count;
    struct os_addr addr[OS_IF_ADDR_MAX];
};
/* Fills at most max entries; the number of interfaces that exist, or -errno. */
int os_interfaces(struct os_interface *out, unsigned max);
/* The local address the host would use towards dest (port 0 in the result). */
int os_route_source(const struct os_addr *dest, struct os_addr *out);

/* ---- files ---------------------------------------------------------------------------------- */

/* The directory of the file, library or program, that this code was loaded from; 0 or -errno. */
int os_module_dir(char *out, size_t size);
/* A regular file of at most max octets, whole and terminated by a zero behind its *length, to be
 * freed. 0, -EFBIG when it is longer, -EINVAL when it is no regular file, or -errno. */
int os_file_read(const char *path, size_t max, char **out, size_t *length);
/* Names of the regular files in a directory, in order; those that begin with a dot or do not fit
 * are left out. How many of at most max, or -errno. */
#define OS_FILE_NAME_MAX 64
int os_dir_list(const char *path, char (*names)[OS_FILE_NAME_MAX], int max);

/* ---- fault hooks ---------------------------------------------------------------------------- */

/*
 * Makes the nth call (1 = next) of an operation fail once with -err, or all from the nth on when
 * repeat is set. Names: socket bind connect connect_result listen accept send recv shutdown
 * poll_add thread. From outside: SOFTNDK_OS_FAIL=op:n:ERRNO[:repeat][,...] with ERRNO a name or a
 * number. "send" also takes the pseudo error SHORT: the call takes one octet only. After SHORT, and
 * after -EAGAIN from send, recv or accept, the poll set reports the descriptor's readiness anew, as
 * it would after the real thing. os_fault_set: 0, -EINVAL, or -ENOSPC when 32 are armed.
 */
int os_fault_set(const char *op, unsigned nth, int err, bool repeat);
void os_fault_clear(void);
#define OS_FAULT_SHORT 10000

#endif
