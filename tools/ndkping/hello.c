// SPDX-License-Identifier: MIT
/*
 * See hello.h. Pure.
 */
#include "hello.h"

#include <string.h>

#include "ndkping.h"

#define HELLO_VERSION 1

static const uint8_t magic[4] = {'N', 'D', 'K', 'P'};

void put_be(uint8_t *out, unsigned octets, uint64_t value)
{
    while (octets-- > 0) {
        out[octets] = (uint8_t)value;
        value >>= 8;
    }
}

uint64_t get_be(const uint8_t *in, unsigned octets)
{
    uint64_t value = 0;

    while (octets-- > 0)
        value = value << 8 | *in++;
    return value;
}

void hello_write(const struct hello *hello, uint8_t octets[HELLO_OCTETS])
{
    memset(octets, 0, HELLO_OCTETS);
    memcpy(octets, magic, sizeof(magic));
    put_be(octets + 4, 1, HELLO_VERSION);
    put_be(octets + 5, 1, hello->mode);
    put_be(octets + 6, 2, HELLO_OCTETS);
    put_be(octets + 8, 4, hello->size);
    put_be(octets + 16, 8, hello->count);
}

bool hello_read(const uint8_t *octets, uint32_t length, struct hello *out)
{
    memset(out, 0, sizeof(*out));
    if (length < HELLO_OCTETS || memcmp(octets, magic, sizeof(magic)) != 0)
        return true;
    if (get_be(octets + 4, 1) != HELLO_VERSION || get_be(octets + 6, 2) != HELLO_OCTETS)
        return false;
    out->mode = (enum hello_mode)get_be(octets + 5, 1);
    out->size = (uint32_t)get_be(octets + 8, 4);
    out->count = get_be(octets + 16, 8);
    return out->mode == HELLO_TABLE ||
           (out->mode == HELLO_EXACT && out->size >= 1 && out->size <= PING_SIZE_MAX);
}
