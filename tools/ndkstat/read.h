// SPDX-License-Identifier: MIT
/*
 * Reads the answer of a process: lines of flat JSON objects (docs/ndkstat.md). Lines and keys that
 * are not known are passed over, so that later versions may add some; what is no such line at all,
 * or a format of another number, is an error.
 */
#ifndef SOFTNDK_NDKSTAT_READ_H
#define SOFTNDK_NDKSTAT_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The counters of NDIS_NDK_PERFORMANCE_COUNTERS that there are, in its order. */
#define READ_COUNTERS 10
extern const char *const read_counter_names[READ_COUNTERS];

/* In the order in which they are shown. */
enum read_kind { READ_LISTENER, READ_SHARED, READ_CONNECTION };

/* Texts point into the answer. */
struct read_interface {
    uint32_t index;
    const char *name;
    uint64_t counters[READ_COUNTERS];
};

struct read_endpoint {
    enum read_kind kind;
    bool connecting;
    uint32_t index, adapter;
    const char *local, *foreign, *host_local, *host_foreign; /* foreign ones of connections only */
};

struct read_process {
    uint32_t pid;
    const char *program, *softndk;
    struct read_interface *interfaces;
    struct read_endpoint *endpoints;
    size_t interface_count, endpoint_count;
    bool complete; /* the process told all it has */
};

/* text is changed and must stay. false: why[size] says what is wrong; out is empty. */
bool read_answer(char *text, struct read_process *out, char *why, size_t size);
void read_free(struct read_process *process);

#endif
