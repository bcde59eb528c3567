// SPDX-License-Identifier: MIT
/* The 32-bit reason of base/reason.h in words. Pure. */
#ifndef SOFTNDK_CONN_REASON_TEXT_H
#define SOFTNDK_CONN_REASON_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "base/reason.h"

#define REASON_TEXT_MAX 400

/* Writes at most size octets, terminated; the length of the whole text. */
size_t reason_text(uint32_t code, char *text, size_t size);

#endif
