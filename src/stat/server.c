// SPDX-License-Identifier: MIT
/* See server.h. */
#include "stat/server.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/red.h"
#include "os/os.h"
#include "os/os_local.h"
#include "stat/place.h"

#define BACKLOG       16
#define TIDY_MOST     64      /* names that a start looks at */
#define ACCEPT_US     100000u /* until the next try, when descriptors have run out */
#define ROOM_FOR_MORE (STAT_CLIENTS + 2)

struct client {
    int fd; /* under the table lock; -1: none */
    struct stat_text text;
    size_t sent;
    uint64_t deadline_us;
};

_Atomic uint32_t stat_client_us = 2000000;

static os_mutex life = OS_MUTEX_INITIALIZER;
static os_mutex table = OS_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* life */
static unsigned count;
static bool running;
static struct os_thread *thread, *of_parent;
static char name[STAT_NAME_MAX];
static stat_write_fn write_text;

/* Changed under both locks, while no thread runs; the thread reads them. */
static int dir = -1, listener = -1, wake = -1;
static atomic_bool stop;

/* The thread's, but for fd. */
static struct client clients[STAT_CLIENTS];

/* ---- one client ----------------------------------------------------------------------------- */

static void client_end(struct client *c)
{
    os_mutex_lock(&table);
    os_local_close(c->fd);
    c->fd = -1;
    os_mutex_unlock(&table);
    free(c->text.at);
    c->text = (struct stat_text){0};
}

/* Sends what is taken; ends the client when that is all, or the client is gone. */
static void client_send(struct client *c)
{
    ssize_t n = 0;

    while (c->sent < c->text.length && n >= 0) {
        n = os_local_send(c->fd, c->text.at + c->sent, c->text.length - c->sent);
        if (n > 0)
            c->sent += (size_t)n;
    }
    if (n != -EAGAIN)
        client_end(c);
}

static struct client *client_free(void)
{
    for (unsigned i = 0; i < STAT_CLIENTS; i++)
        if (clients[i].fd < 0)
            return &clients[i];
    return NULL;
}

/* Takes one that waits. false: there is none, or no descriptor for it (*failed). */
static bool client_take(struct client *c, bool *failed)
{
    int fd;

    os_mutex_lock(&table);
    fd = os_local_accept(listener);
    c->fd = fd < 0 ? -1 : fd;
    os_mutex_unlock(&table);
    if (fd < 0) {
        *failed = fd != -EAGAIN && fd != -EPERM;
        return fd == -EPERM;
    }
    c->text = (struct stat_text){0};
    c->sent = 0;
    c->deadline_us = os_now_us() + atomic_load(&stat_client_us);
    write_text(&c->text);
    client_send(c);
    return true;
}

/* ---- the thread ----------------------------------------------------------------------------- */

/* What to wait for: the wake, the listener while there is room and descriptors, the clients. */
static int64_t fill(struct os_local_wait *list, uint64_t again_us)
{
    uint64_t now = os_now_us(), until = UINT64_MAX;

    list[0] = (struct os_local_wait){.fd = wake, .read = true};
    list[1] = (struct os_local_wait){.fd = -1};
    if (client_free()) {
        if (again_us <= now)
            list[1] = (struct os_local_wait){.fd = listener, .read = true};
        else
            until = again_us;
    }
    for (unsigned i = 0; i < STAT_CLIENTS; i++) {
        list[i + 2] = (struct os_local_wait){.fd = clients[i].fd, .write = true};
        if (clients[i].fd >= 0 && clients[i].deadline_us < until && !RED("stat-client-for-ever"))
            until = clients[i].deadline_us;
    }
    return until == UINT64_MAX ? -1 : until <= now ? 0 : (int64_t)(until - now);
}

static void serve_clients(const struct os_local_wait *list)
{
    uint64_t now = os_now_us();

    for (unsigned i = 0; i < STAT_CLIENTS; i++) {
        if (clients[i].fd < 0)
            continue;
        if (list[i + 2].ready)
            client_send(&clients[i]);
        if (clients[i].fd >= 0 && clients[i].deadline_us <= now && !RED("stat-client-for-ever"))
            client_end(&clients[i]);
    }
}

static void serve(void *unused)
{
    struct os_local_wait list[ROOM_FOR_MORE];
    uint64_t again_us = 0;
    struct client *c;

    (void)unused;
    for (;;) {
        bool failed = false;

        if (os_local_wait(list, ROOM_FOR_MORE, fill(list, again_us)) < 0)
            os_sleep_us(ACCEPT_US); /* no memory in the kernel */
        if (atomic_load(&stop))
            break;
        serve_clients(list);
        while (list[1].ready && (c = client_free()) != NULL && client_take(c, &failed))
            ;
        again_us = failed ? os_now_us() + ACCEPT_US : 0;
    }
    for (unsigned i = 0; i < STAT_CLIENTS; i++)
        if (clients[i].fd >= 0)
            client_end(&clients[i]);
}

/* ---- start and stop ------------------------------------------------------------------------- */

/* The first place that is good. A descriptor, or -1 with the sentence for the log. */
static int open_place(const struct stat_places *places, char *path, char *why, size_t size)
{
    for (unsigned i = 0; i < places->count; i++) {
        int fd = os_local_dir(places->path[i], true, why, size);

        snprintf(path, STAT_PATH_MAX, "%s", places->path[i]);
        if (fd >= 0)
            return fd;
    }
    return -1;
}

/* Gives back all descriptors there are; both locks are held, and no thread runs. */
static void close_all(void)
{
    int *const all[] = {&wake, &listener, &dir};

    for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
        if (*all[i] >= 0)
            os_local_close(*all[i]);
        *all[i] = -1;
    }
}

/* Something failed: the line of the log. */
static void give_up(const char *path, const char *what, int rc)
{
    log_error("stat: %s/%s: %s (%s); ndkstat will not see this process", path, name, what,
              strerror(-rc));
    if (listener >= 0)
        os_local_remove(dir, name);
    os_mutex_lock(&table);
    close_all();
    os_mutex_unlock(&table);
}

/* 0 or -errno. -EADDRINUSE: a process of another process namespace has our number. */
static int listen_here(void)
{
    int rc = os_local_connect(dir, name);

    if (rc >= 0)
        os_local_close(rc);
    if (rc >= 0 || rc == -EAGAIN)
        return -EADDRINUSE;
    os_mutex_lock(&table);
    rc = os_local_listen(dir, name, BACKLOG);
    listener = rc < 0 ? -1 : rc;
    os_mutex_unlock(&table);
    return rc < 0 ? rc : 0;
}

/* life is held. */
static void start(stat_write_fn write)
{
    char path[STAT_PATH_MAX] = "", why[STAT_WHY_MAX] = "";
    struct stat_places places;
    int rc;

    stat_places_here(false, &places);
    if (places.wrong)
        log_error("stat: SOFTNDK_STAT is neither 0 nor a directory's path; "
                  "ndkstat will not see this process");
    if (places.count == 0)
        return;
    stat_name(os_pid(), name);
    os_mutex_lock(&table);
    dir = open_place(&places, path, why, sizeof why);
    if (dir >= 0)
        wake = os_local_wake_new();
    os_mutex_unlock(&table);
    if (dir < 0) {
        log_error("stat: %s: %s; ndkstat will not see this process", path, why);
        return;
    }
    if (wake < 0) {
        give_up(path, "no descriptor", wake);
        return;
    }
    stat_tidy(dir, TIDY_MOST);
    rc = listen_here();
    if (rc < 0) {
        give_up(path, "cannot listen", rc);
        return;
    }
    for (unsigned i = 0; i < STAT_CLIENTS; i++)
        clients[i] = (struct client){.fd = -1};
    write_text = write;
    atomic_store(&stop, false);
    rc = os_thread_start(&thread, "softndk-stat", serve, NULL);
    running = rc == 0;
    if (rc < 0)
        give_up(path, "no thread", rc);
}

/* life is held. */
static void end(void)
{
    if (!RED("stat-socket-stays"))
        os_local_remove(dir, name);
    atomic_store(&stop, true);
    os_local_wake(wake);
    os_thread_join(thread);
    thread = NULL;
    running = false;
    os_mutex_lock(&table);
    close_all();
    os_mutex_unlock(&table);
}

/* ---- what happens to the process ------------------------------------------------------------ */

static void before_fork(void)
{
    os_mutex_lock(&life);
    os_mutex_lock(&table);
}

static void after_fork(void)
{
    os_mutex_unlock(&table);
    os_mutex_unlock(&life);
}

/* The thread is not here, the socket and its clients are the parent's. The count stays, as the
 * adapters do: those that the child opens beside the parent's do not make it show itself. */
static void in_child(void)
{
    if (running && !RED("stat-child-keeps")) {
        for (unsigned i = 0; i < STAT_CLIENTS; i++)
            if (clients[i].fd >= 0)
                os_local_close(clients[i].fd);
        close_all();
        of_parent = thread; /* its memory, still known to a leak checker */
        running = false;
    }
    after_fork();
}

/* The process ends with adapters open: what others see of it goes. */
static void at_exit(void)
{
    os_mutex_lock(&life);
    if (running && !RED("stat-exit-leaves-socket"))
        os_local_remove(dir, name);
    os_mutex_unlock(&life);
}

static void prepare(void)
{
    (void)of_parent;
    if (pthread_atfork(before_fork, after_fork, in_child) != 0 || atexit(at_exit) != 0)
        log_error("stat: no memory to be told of fork and exit");
}

void stat_get(stat_write_fn write)
{
    pthread_once(&once, prepare);
    os_mutex_lock(&life);
    if (count++ == 0)
        start(write);
    os_mutex_unlock(&life);
}

void stat_put(void)
{
    os_mutex_lock(&life);
    if (--count == 0 && running)
        end();
    os_mutex_unlock(&life);
}
