// SPDX-License-Identifier: MIT
/* See ask.h. One thread, no state. */
#include "ask.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/tool_args.h"
#include "os/os.h"
#include "os/os_local.h"
#include "stat/place.h"
#include "stat/text.h"

#define NAMES_MAX 4096
#define AT_ONCE   64
#define RETRY_US  10000

/* A socket that was found, and what came of it. */
struct one {
    char name[STAT_NAME_MAX];
    int dir;
    int fd; /* -1: not connected, or over */
    bool busy, over;
    struct answer answer;
};

struct asking {
    struct one *list;
    unsigned count, room;
    uint32_t pid;
    int dir; /* the one that is looked into */
    bool trouble;
};

static void no_memory(struct asking *a)
{
    if (!a->trouble)
        tool_say("no memory");
    a->trouble = true;
}

static void found(void *context, const char *name)
{
    struct asking *a = context;
    bool early;
    uint32_t pid = stat_name_pid(name, &early);

    if (pid == 0 || early)
        return;
    if (a->count == a->room) {
        unsigned room = a->room ? a->room * 2 : 64;
        struct one *list = realloc(a->list, room * sizeof *list);

        if (!list) {
            no_memory(a);
            return;
        }
        a->list = list;
        a->room = room;
    }
    a->list[a->count] = (struct one){.dir = a->dir, .fd = -1, .answer = {.pid = pid}};
    stat_name(pid, a->list[a->count++].name);
}

/* Connects; without anybody there the name goes, and with a full queue it is tried again. */
static void begin(struct asking *a, struct one *o)
{
    uint32_t user = 0, process = 0;

    o->fd = os_local_connect(o->dir, o->name);
    o->busy = o->fd == -EAGAIN;
    if (o->fd == -ECONNREFUSED)
        os_local_remove(o->dir, o->name);
    if (o->fd >= 0 && os_local_peer(o->fd, &user, &process) == 0 && process)
        o->answer.pid = process;
    o->over = o->fd < 0 && !o->busy;
    if ((o->fd >= 0 && user != os_user()) || (a->pid && o->answer.pid != a->pid)) {
        if (o->fd >= 0)
            os_local_close(o->fd);
        o->over = true;
    }
    if (o->over || o->busy)
        o->fd = -1;
}

/* Takes what has come. */
static void take(struct asking *a, struct one *o)
{
    struct answer *answer = &o->answer;
    ssize_t n;

    do {
        char octets[16384], *text;

        n = os_local_recv(o->fd, octets, sizeof octets);
        if (n <= 0)
            break;
        text = answer->length + (size_t)n > STAT_TEXT_MAX
                   ? NULL
                   : realloc(answer->text, answer->length + (size_t)n + 1);
        if (!text) {
            no_memory(a);
            n = 0;
            break;
        }
        answer->text = text;
        memcpy(text + answer->length, octets, (size_t)n);
        answer->length += (size_t)n;
        text[answer->length] = '\0';
    } while (n > 0);
    if (n == -EAGAIN)
        return;
    os_local_close(o->fd);
    o->fd = -1;
    o->over = true;
}

/* At most AT_ONCE of them, until all are over or the limit is reached. */
static void ask_some(struct asking *a, struct one *list, unsigned count)
{
    uint64_t deadline_us = os_now_us() + ASK_LIMIT_US;
    struct os_local_wait waits[AT_ONCE];

    for (unsigned i = 0; i < count; i++)
        begin(a, &list[i]);
    for (;;) {
        uint64_t now = os_now_us();
        bool open = false, busy = false;
        int64_t limit;

        for (unsigned i = 0; i < count; i++) {
            waits[i] = (struct os_local_wait){.fd = list[i].fd, .read = true};
            open = open || !list[i].over;
            busy = busy || list[i].busy;
        }
        if (!open || now >= deadline_us)
            break;
        limit = (int64_t)(deadline_us - now);
        os_local_wait(waits, count, busy && limit > RETRY_US ? RETRY_US : limit);
        for (unsigned i = 0; i < count; i++) {
            if (list[i].busy)
                begin(a, &list[i]);
            else if (waits[i].ready)
                take(a, &list[i]);
        }
    }
    for (unsigned i = 0; i < count; i++) {
        list[i].answer.late = !list[i].over;
        if (list[i].fd >= 0)
            os_local_close(list[i].fd);
    }
}

/* One process is wanted: whose name says so is asked alone, so that the others stay undisturbed.
 * Without such a name it may be one of another process namespace, whose name says nothing. */
static void only_named(struct asking *a)
{
    unsigned named = 0;

    for (unsigned i = 0; a->pid && i < a->count; i++)
        if (a->list[i].answer.pid == a->pid)
            a->list[named++] = a->list[i];
    if (named)
        a->count = named;
}

void ask_all(uint32_t pid, struct answers *out)
{
    struct asking a = {.pid = pid};
    struct stat_places places;
    int dirs[STAT_PLACES];
    char why[STAT_WHY_MAX];

    *out = (struct answers){0};
    stat_places_here(true, &places);
    if (places.count == 0) {
        tool_say("SOFTNDK_STAT: names no directory (need one, or none of the variable)");
        out->trouble = true;
        return;
    }
    for (unsigned i = 0; i < places.count; i++) {
        dirs[i] = a.dir = os_local_dir(places.path[i], false, why, sizeof why);
        if (a.dir >= 0)
            os_local_names(a.dir, NAMES_MAX, found, &a);
        else if (a.dir != -ENOENT && a.dir != -ENOTDIR) {
            tool_say("%s: %s", places.path[i], why);
            a.trouble = true;
        }
    }
    only_named(&a);
    for (unsigned i = 0; i < a.count; i += AT_ONCE)
        ask_some(&a, a.list + i, a.count - i < AT_ONCE ? a.count - i : AT_ONCE);
    for (unsigned i = 0; i < places.count; i++)
        if (dirs[i] >= 0) {
            stat_tidy(dirs[i], NAMES_MAX);
            os_local_close(dirs[i]);
        }
    out->list = calloc(a.count ? a.count : 1, sizeof *out->list);
    if (!out->list)
        no_memory(&a);
    for (unsigned i = 0; i < a.count; i++) {
        if (out->list && (a.list[i].answer.text || a.list[i].answer.late))
            out->list[out->count++] = a.list[i].answer;
        else
            free(a.list[i].answer.text);
    }
    out->trouble = a.trouble;
    free(a.list);
}

void ask_free(struct answers *answers)
{
    for (unsigned i = 0; i < answers->count; i++)
        free(answers->list[i].text);
    free(answers->list);
    *answers = (struct answers){0};
}
