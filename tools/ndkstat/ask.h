// SPDX-License-Identifier: MIT
/*
 * Asks all processes of this user that show themselves, at once: whoever connects to the socket of
 * a process (stat/place.h) is sent an answer that ends with the connection.
 */
#ifndef SOFTNDK_NDKSTAT_ASK_H
#define SOFTNDK_NDKSTAT_ASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ASK_LIMIT_US 3000000u /* for all of them; one that runs answers in milliseconds */

struct answer {
    uint32_t pid; /* as this process sees it */
    char *text;   /* terminated; NULL: nothing came */
    size_t length;
    bool late; /* the rest did not come in time */
};

struct answers {
    struct answer *list;
    unsigned count;
    bool trouble; /* a directory could not be looked into, or memory ran out; said on stderr */
};

/* pid: that process alone; 0: all. Removes the sockets of dead processes. */
void ask_all(uint32_t pid, struct answers *out);
void ask_free(struct answers *answers);

#endif
