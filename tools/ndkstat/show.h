// SPDX-License-Identifier: MIT
/* What was read, on stdout: as netstat -xan shows it, as counters by their names, as JSON. */
#ifndef SOFTNDK_NDKSTAT_SHOW_H
#define SOFTNDK_NDKSTAT_SHOW_H

#include "read.h"

/* The columns of Windows' netstat -xan; endpoints of all processes, by interface and kind. */
void show_endpoints(const struct read_process *processes, unsigned count);
void show_counters(const struct read_process *processes, unsigned count);
/* All of it, one line. */
void show_json(const struct read_process *processes, unsigned count);

#endif
