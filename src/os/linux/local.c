// SPDX-License-Identifier: MIT
/*
 * os_local.h by AF_UNIX sockets. A name in a directory is reached through /proc/self/fd, so that it
 * need not fit into a socket's address together with its path.
 */
#define _GNU_SOURCE 1

#include "os/os_local.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/red.h"

#define WAITS_MAX 64

_Atomic int64_t os_local_user = -1;

uint32_t os_user(void)
{
    return (uint32_t)geteuid();
}

/* For checks: whose this process is, or a test says it is. */
static uint32_t own_user(void)
{
    int64_t as = atomic_load(&os_local_user);

    return as < 0 ? os_user() : (uint32_t)as;
}

bool os_process_exists(uint32_t pid)
{
    return pid > 0 && pid <= INT_MAX && (kill((pid_t)pid, 0) == 0 || errno != ESRCH);
}

/* ---- directories ---------------------------------------------------------------------------- */

int os_local_dir(const char *path, bool make, char *why, size_t size)
{
    struct stat st;
    int fd, rc = 0;

    if (make && mkdir(path, 0700) < 0 && errno != EEXIST) {
        rc = -errno;
        snprintf(why, size, "cannot be made (%s)", strerror(-rc));
        return rc;
    }
    fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0) {
        rc = -errno;
        snprintf(why, size, "cannot be opened (%s)", strerror(-rc));
    } else if (st.st_uid != own_user() && !RED("stat-directory-of-anyone")) {
        rc = -EPERM;
        snprintf(why, size, "belongs to another user (have %u, need %u)", (unsigned)st.st_uid,
                 (unsigned)own_user());
    } else if ((st.st_mode & 0777) != 0700 && !RED("stat-directory-open")) {
        rc = -EPERM;
        snprintf(why, size, "is open to others (have mode %04o, need 0700)",
                 (unsigned)st.st_mode & 0777);
    }
    if (rc < 0 && fd >= 0)
        close(fd);
    return rc < 0 ? rc : fd;
}

bool os_local_owned(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == own_user();
}

int os_local_names(int dir, unsigned most, void (*fn)(void *context, const char *name),
                   void *context)
{
    /* A position of its own, at the beginning. */
    int own = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = own < 0 ? NULL : fdopendir(own);
    struct dirent *entry;

    if (!list) {
        int rc = -errno;

        if (own >= 0)
            close(own);
        return rc;
    }
    while (most > 0 && (entry = readdir(list)) != NULL) {
        if (entry->d_name[0] == '.')
            continue;
        fn(context, entry->d_name);
        most--;
    }
    closedir(list);
    return 0;
}

int os_local_remove(int dir, const char *name)
{
    return unlinkat(dir, name, 0) < 0 ? -errno : 0;
}

int64_t os_local_age_s(int dir, const char *name)
{
    struct stat st;

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    return (int64_t)time(NULL) - (int64_t)st.st_ctime;
}

/* ---- sockets -------------------------------------------------------------------------------- */

/* The address of a name; false: it is too long. */
static bool address_of(int dir, const char *name, struct sockaddr_un *out)
{
    int length;

    memset(out, 0, sizeof *out);
    out->sun_family = AF_UNIX;
    length = snprintf(out->sun_path, sizeof out->sun_path, "/proc/self/fd/%d/%s", dir, name);
    return length > 0 && (size_t)length < sizeof out->sun_path;
}

static int new_socket(void)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    return fd < 0 ? -errno : fd;
}

int os_local_listen(int dir, const char *name, int backlog)
{
    struct sockaddr_un address;
    char early[128];
    int fd, rc = 0;

    if ((size_t)snprintf(early, sizeof early, "%s.new", name) >= sizeof early ||
        !address_of(dir, early, &address))
        return -ENAMETOOLONG;
    fd = new_socket();
    if (fd < 0)
        return fd;
    unlinkat(dir, early, 0);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || listen(fd, backlog) < 0)
        rc = -errno;
    else if (renameat(dir, early, dir, name) < 0)
        rc = -errno;
    if (rc < 0) {
        unlinkat(dir, early, 0);
        close(fd);
    }
    return rc < 0 ? rc : fd;
}

int os_local_connect(int dir, const char *name)
{
    struct sockaddr_un address;
    int fd, rc;

    if (!address_of(dir, name, &address))
        return -ENAMETOOLONG;
    fd = new_socket();
    if (fd < 0)
        return fd;
    do {
        rc = connect(fd, (struct sockaddr *)&address, sizeof address);
    } while (rc < 0 && errno == EINTR);
    if (rc < 0) {
        rc = -errno;
        close(fd);
        return rc;
    }
    return fd;
}

int os_local_peer(int fd, uint32_t *user, uint32_t *process)
{
    struct ucred who = {0};
    socklen_t length = sizeof who;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &length) < 0)
        return -errno;
    *user = (uint32_t)who.uid;
    *process = who.pid > 0 ? (uint32_t)who.pid : 0;
    return 0;
}

int os_local_accept(int fd)
{
    uint32_t user = 0, process;
    int got;

    do {
        got = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    } while (got < 0 && (errno == EINTR || errno == ECONNABORTED));
    if (got < 0)
        return -errno;
    if ((os_local_peer(got, &user, &process) < 0 || user != own_user()) && !RED("stat-any-user")) {
        close(got);
        return -EPERM;
    }
    return got;
}

ssize_t os_local_send(int fd, const void *buf, size_t len)
{
    ssize_t n;

    do {
        n = send(fd, buf, len, MSG_NOSIGNAL);
    } while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

ssize_t os_local_recv(int fd, void *buf, size_t len)
{
    ssize_t n;

    do {
        n = recv(fd, buf, len, 0);
    } while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

void os_local_close(int fd)
{
    close(fd);
}

/* ---- waiting -------------------------------------------------------------------------------- */

int os_local_wake_new(void)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    return fd < 0 ? -errno : fd;
}

void os_local_wake(int fd)
{
    const uint64_t one = 1;

    while (write(fd, &one, sizeof one) < 0 && errno == EINTR)
        ;
}

int os_local_wait(struct os_local_wait *list, unsigned count, int64_t timeout_us)
{
    struct pollfd polled[WAITS_MAX];
    struct timespec limit = {.tv_sec = (time_t)(timeout_us / 1000000),
                             .tv_nsec = (long)(timeout_us % 1000000 * 1000)};
    int n;

    if (count > WAITS_MAX)
        return -EINVAL;
    for (unsigned i = 0; i < count; i++)
        polled[i] = (struct pollfd){
            .fd = list[i].fd,
            .events = (short)((list[i].read ? POLLIN : 0) | (list[i].write ? POLLOUT : 0))};
    n = ppoll(polled, count, timeout_us < 0 ? NULL : &limit, NULL);
    if (n < 0 && errno != EINTR)
        return -errno;
    for (unsigned i = 0; i < count; i++)
        list[i].ready = n > 0 && polled[i].revents != 0;
    return n < 0 ? 0 : n;
}
