// SPDX-License-Identifier: MIT
/*
 * Where the processes of a user show what they have open: each as a socket PID.sock in a directory
 * that is the user's alone. Read by the server of a process and by ndkstat.
 *
 *   SOFTNDK_STAT=/DIRECTORY   that directory, made if its parent is there; no other
 *   SOFTNDK_STAT=0            none: this process does not show itself
 *   otherwise                 softndk in XDG_RUNTIME_DIR, if that is the user's; softndk-UID in
 *                             /tmp. A process takes the first that is good, ndkstat looks into
 * both, and into softndk in /run/user/UID, since not every process of a user has the variable
 *
 * No state, no lock.
 */
#ifndef SOFTNDK_STAT_PLACE_H
#define SOFTNDK_STAT_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STAT_PLACES   3
#define STAT_PATH_MAX 1024 /* octets; a longer one is left out */
#define STAT_NAME_MAX 32
#define STAT_WHY_MAX  200

struct stat_places {
    unsigned count; /* 0: none, by the wish of the user or for a wrong value */
    bool wrong;     /* SOFTNDK_STAT says neither */
    char path[STAT_PLACES][STAT_PATH_MAX];
};

/* From the texts of the environment, NULL where they are not set. all: those to look into. */
void stat_places(const char *chosen, const char *runtime, uint32_t user, bool all,
                 struct stat_places *out);
/* From the environment of this process. */
void stat_places_here(bool all, struct stat_places *out);

/* "4711.sock" */
void stat_name(uint32_t pid, char name[STAT_NAME_MAX]);
/* The process that a name stands for; 0: it is none of ours. *early: it is not listening yet. */
uint32_t stat_name_pid(const char *name, bool *early);
/* Removes what dead processes have left in a directory, looking at `most` names at most. */
void stat_tidy(int dir, unsigned most);

#endif
