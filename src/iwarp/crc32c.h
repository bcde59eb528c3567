// SPDX-License-Identifier: MIT
/*
 * crc32c.h - CRC-32C (reflected polynomial 0x82f63b78), the checksum of every FPDU.
 *
 * The state between calls is the raw register: start with iwarp_crc32c_init(), feed octets in as
 * many pieces as convenient, finish with iwarp_crc32c_final(). The result is the number that an
 * FPDU stores least significant octet first.
 *
 * All implementations give the same result. iwarp_crc32c() chooses by what this machine can do and
 * by length. Pure and safe from any thread. Called by iwarp/fpdu and by the transmit path.
 */
#ifndef SOFTNDK_IWARP_CRC32C_H
#define SOFTNDK_IWARP_CRC32C_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum iwarp_crc32c_impl {
    IWARP_CRC32C_PORTABLE, /* eight tables, any machine */
    IWARP_CRC32C_SSE42,    /* the x86-64 instruction; three streams at once for longer input */
    IWARP_CRC32C_ISAL,     /* the vector library, when compiled with SOFTNDK_HAVE_ISAL */
    IWARP_CRC32C_IMPL_COUNT
};

/*
 * From this many octets up the vector library is chosen: measured without AVX-512 it is faster than
 * the three-stream instruction from 256 octets up; with AVX-512 the gain above is larger still.
 */
#define IWARP_CRC32C_ISAL_MIN 256u

/* The state before the first octet. */
static inline uint32_t iwarp_crc32c_init(void)
{
    return 0xffffffffu;
}

/* The CRC value of everything fed into `state`. */
static inline uint32_t iwarp_crc32c_final(uint32_t state)
{
    return ~state;
}

/* Feeds `len` octets (any alignment; data may be NULL when len is 0). Returns the new state. */
uint32_t iwarp_crc32c(uint32_t state, const void *data, size_t len);

/* Whether `impl` was compiled in and this processor can run it. */
bool iwarp_crc32c_has(enum iwarp_crc32c_impl impl);

/* As iwarp_crc32c(), by one implementation; it must be available. For tests and benchmarks. */
uint32_t iwarp_crc32c_with(enum iwarp_crc32c_impl impl, uint32_t state, const void *data,
                           size_t len);

/* What iwarp_crc32c() uses here: "sse4.2+isa-l", "isa-l", "sse4.2" or "portable". */
const char *iwarp_crc32c_impl_name(void);

#endif
