// SPDX-License-Identifier: MIT
/* See place.h. */
#define _GNU_SOURCE 1 /* secure_getenv */

#include "stat/place.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/red.h"
#include "os/os_local.h"

/* A process is between the two names of its socket for some microseconds. */
#define EARLY_S 60

static void add(struct stat_places *places, const char *parent, const char *own)
{
    char *path = places->path[places->count];
    int length = snprintf(path, STAT_PATH_MAX, "%s%s", parent, own);

    if (length < 0 || length >= STAT_PATH_MAX)
        return;
    for (unsigned i = 0; i < places->count; i++)
        if (strcmp(places->path[i], path) == 0)
            return;
    places->count++;
}

void stat_places(const char *chosen, const char *runtime, uint32_t user, bool all,
                 struct stat_places *out)
{
    char parent[64];

    *out = (struct stat_places){0};
    if (chosen && chosen[0]) {
        if (chosen[0] == '/')
            add(out, chosen, "");
        else if (strcmp(chosen, "0") != 0)
            out->wrong = true;
        return;
    }
    /* One that is relative is to be ignored. */
    if (runtime && runtime[0] == '/')
        add(out, runtime, "/softndk");
    if (all) {
        snprintf(parent, sizeof parent, "/run/user/%u", (unsigned)user);
        add(out, parent, "/softndk");
    }
    snprintf(parent, sizeof parent, "/tmp/softndk-%u", (unsigned)user);
    add(out, parent, "");
}

void stat_places_here(bool all, struct stat_places *out)
{
    const char *runtime = secure_getenv("XDG_RUNTIME_DIR");

    /* After su it may still be the other user's, who could not use what we made there. */
    if (runtime && !os_local_owned(runtime) && !RED("stat-runtime-of-anyone"))
        runtime = NULL;
    stat_places(secure_getenv("SOFTNDK_STAT"), runtime, os_user(), all, out);
}

void stat_name(uint32_t pid, char name[STAT_NAME_MAX])
{
    snprintf(name, STAT_NAME_MAX, "%u.sock", (unsigned)pid);
}

uint32_t stat_name_pid(const char *name, bool *early)
{
    uint64_t pid = 0;
    const char *at = name;

    while (*at >= '0' && *at <= '9' && pid <= INT32_MAX)
        pid = pid * 10 + (uint64_t)(*at++ - '0');
    *early = strcmp(at, ".sock.new") == 0;
    if (name[0] == '0' || pid > INT32_MAX || (strcmp(at, ".sock") != 0 && !*early))
        return 0;
    return (uint32_t)pid;
}

/* A process of another process namespace has a number that says nothing here, but it answers. */
static void tidy_one(void *context, const char *name)
{
    const int dir = *(const int *)context;
    bool early;
    uint32_t pid = stat_name_pid(name, &early);
    int fd;

    if (pid == 0 || (os_process_exists(pid) && !RED("stat-tidy-living")))
        return;
    if (early) {
        if (os_local_age_s(dir, name) > EARLY_S)
            os_local_remove(dir, name);
        return;
    }
    fd = os_local_connect(dir, name);
    if (fd >= 0)
        os_local_close(fd);
    else if (fd == -ECONNREFUSED && !RED("stat-stale-stays"))
        os_local_remove(dir, name);
}

void stat_tidy(int dir, unsigned most)
{
    os_local_names(dir, most, tidy_one, &dir);
}
