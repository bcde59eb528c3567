// SPDX-License-Identifier: MIT
/* modes.h - what the files of floor contribute. */
#ifndef SOFTNDK_BENCH_FLOOR_MODES_H
#define SOFTNDK_BENCH_FLOOR_MODES_H

#include "common/bench.h"

extern const struct bench_mode floor_pingpong, floor_event, floor_robin, floor_raw, floor_send,
    floor_write, floor_read, floor_connect, floor_mpa, floor_machine;

#endif
