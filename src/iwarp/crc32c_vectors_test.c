// SPDX-License-Identifier: MIT
/*
 * crc32c_vectors_test.c - the upper halves of vector registers are clear behind a CRC.
 *
 * The vector library leaves them in use, and each SSE instruction behind it pays for that: writes
 * of 4 KiB in chains with CRC were a fifth slower. Skipped where that cannot be seen: without the
 * library, with one that uses no such registers on this processor, and on processors that do not
 * tell.
 */
#include "iwarp/crc32c.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define SKIPPED 77

#if defined(__x86_64__) && defined(__GNUC__) && defined(SOFTNDK_HAVE_ISAL)

#include <cpuid.h>
#include <isa-l/crc.h>

/* State components: of YMM registers (bit 2), of the ZMM ones (bit 6). */
#define UPPER_HALVES 0x44u

static uint8_t octets[4096];

static void clear(void)
{
    __asm__ volatile("vzeroupper" ::: "xmm0");
}

/* Which of them are in use: XGETBV with ECX 1. */
static uint32_t in_use(void)
{
    uint32_t low, high;

    __asm__ volatile(".byte 0x0f, 0x01, 0xd0" : "=a"(low), "=d"(high) : "c"(1));
    return low & UPPER_HALVES;
}

/* NULL: the library uses them here, and this processor tells. */
static const char *why_not(void)
{
    uint32_t a = 0, b = 0, c = 0, d = 0;

    if (!__builtin_cpu_supports("avx") || !__get_cpuid_count(0xd, 1, &a, &b, &c, &d) ||
        (a & 1u << 2) == 0)
        return "this processor does not tell which registers are in use";
    clear();
    if (in_use() != 0)
        return "this processor does not tell that registers are no longer in use";
    (void)crc32_iscsi(octets, (int)sizeof(octets), 0);
    return in_use() != 0 ? NULL : "the vector library leaves nothing in use on this processor";
}

static void upper_halves_are_left_clear(void **state)
{
    (void)state;
    for (size_t len = 1; len <= sizeof(octets); len = len * 3 + 1) {
        uint32_t after;

        clear();
        (void)iwarp_crc32c(iwarp_crc32c_init(), octets, len);
        after = in_use();
        assert_int_equal(after, 0);
    }
}

#else

static const char *why_not(void)
{
    return "built without the vector library";
}

static void upper_halves_are_left_clear(void **state)
{
    (void)state;
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(upper_halves_are_left_clear)};
    const char *reason = why_not();

    if (reason) {
        printf("skipped: %s\n", reason);
        return SKIPPED;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
