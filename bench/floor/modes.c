// SPDX-License-Identifier: MIT
/* modes.c - the modes of floor, each in the file of its kind. */
#include "floor/modes.h"

const char bench_program[] = "floor";

const struct bench_mode *const bench_modes[] = {
    &floor_pingpong, &floor_event,   &floor_robin, &floor_raw,     &floor_send, &floor_write,
    &floor_read,     &floor_connect, &floor_mpa,   &floor_machine, NULL,
};
