// SPDX-License-Identifier: MIT
/*
 * crc32c.c - three implementations of CRC-32C behind one incremental interface.
 *
 * Invariant: every implementation maps (state, octets) to the same state, so pieces of one FPDU may
 * go through different ones. No state is kept: what the processor can do is read from the
 * compiler's feature word at each call, which costs one load.
 */
#include "iwarp/crc32c.h"

#include <string.h>

#include "base/red.h"
#include "iwarp/wire.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define CRC32C_X86 1
#include <nmmintrin.h>
#include <wmmintrin.h>
#else
#define CRC32C_X86 0
#endif

#if defined(SOFTNDK_HAVE_ISAL)
#include <isa-l/crc.h>
#endif

/* ---- portable ------------------------------------------------------------------------------ */

/*
 * Table k holds the effect of one octet followed by k zero octets. The effect is linear in the
 * octet, so the eight values for the single bits define a table, and the compiler works out the
 * other 248.
 */
#define BIT(i, b, value) ((((i) >> (b)) & 1u) * (value))
#define ROW1(i, a, b, c, d, e, f, g, h)                                                            \
    (BIT(i, 0, a) ^ BIT(i, 1, b) ^ BIT(i, 2, c) ^ BIT(i, 3, d) ^ BIT(i, 4, e) ^ BIT(i, 5, f) ^     \
     BIT(i, 6, g) ^ BIT(i, 7, h))
#define ROW4(i, ...)                                                                               \
    ROW1(i, __VA_ARGS__), ROW1((i) + 1u, __VA_ARGS__), ROW1((i) + 2u, __VA_ARGS__),                \
        ROW1((i) + 3u, __VA_ARGS__)
#define ROW16(i, ...)                                                                              \
    ROW4(i, __VA_ARGS__), ROW4((i) + 4u, __VA_ARGS__), ROW4((i) + 8u, __VA_ARGS__),                \
        ROW4((i) + 12u, __VA_ARGS__)
#define ROW64(i, ...)                                                                              \
    ROW16(i, __VA_ARGS__), ROW16((i) + 16u, __VA_ARGS__), ROW16((i) + 32u, __VA_ARGS__),           \
        ROW16((i) + 48u, __VA_ARGS__)
#define TABLE(...)                                                                                 \
    {                                                                                              \
        ROW64(0u, __VA_ARGS__), ROW64(64u, __VA_ARGS__), ROW64(128u, __VA_ARGS__),                 \
            ROW64(192u, __VA_ARGS__)                                                               \
    }

static const uint32_t crc32c_table[8][256] = {
    TABLE(0xf26b8303u, 0xe13b70f7u, 0xc79a971fu, 0x8ad958cfu, 0x105ec76fu, 0x20bd8edeu, 0x417b1dbcu,
          0x82f63b78u),
    TABLE(0x13a29877u, 0x274530eeu, 0x4e8a61dcu, 0x9d14c3b8u, 0x3fc5f181u, 0x7f8be302u, 0xff17c604u,
          0xfbc3faf9u),
    TABLE(0xa541927eu, 0x4f6f520du, 0x9edea41au, 0x38513ec5u, 0x70a27d8au, 0xe144fb14u, 0xc76580d9u,
          0x8b277743u),
    TABLE(0xdd45aab8u, 0xbf672381u, 0x7b2231f3u, 0xf64463e6u, 0xe964b13du, 0xd725148bu, 0xaba65fe7u,
          0x52a0c93fu),
    TABLE(0x38116facu, 0x7022df58u, 0xe045beb0u, 0xc5670b91u, 0x8f2261d3u, 0x1ba8b557u, 0x37516aaeu,
          0x6ea2d55cu),
    TABLE(0xef306b19u, 0xdb8ca0c3u, 0xb2f53777u, 0x6006181fu, 0xc00c303eu, 0x85f4168du, 0x0e045bebu,
          0x1c08b7d6u),
    TABLE(0x68032cc8u, 0xd0065990u, 0xa5e0c5d1u, 0x4e2dfd53u, 0x9c5bfaa6u, 0x3d5b83bdu, 0x7ab7077au,
          0xf56e0ef4u),
    TABLE(0x493c7d27u, 0x9278fa4eu, 0x211d826du, 0x423b04dau, 0x847609b4u, 0x0d006599u, 0x1a00cb32u,
          0x34019664u),
};

static uint32_t crc32c_portable(uint32_t state, const uint8_t *p, size_t len)
{
    const uint32_t(*t)[256] = crc32c_table;

    for (; len >= 8; p += 8, len -= 8) {
        uint32_t low = state ^ iwarp_get_le32(p);
        uint32_t high = iwarp_get_le32(p + 4);

        state = t[7][low & 0xffu] ^ t[6][low >> 8 & 0xffu] ^ t[5][low >> 16 & 0xffu] ^
                t[4][low >> 24] ^ t[3][high & 0xffu] ^ t[2][high >> 8 & 0xffu] ^
                t[1][high >> 16 & 0xffu] ^ t[0][high >> 24];
    }
    for (; len > 0; p++, len--) {
        state = state >> 8 ^ t[0][(state ^ *p) & 0xffu];
    }
    return state;
}

/* ---- the x86-64 instruction ---------------------------------------------------------------- */

#define CRC32C_THREE_MIN (3u * 64u) /* from here on three streams */

#if CRC32C_X86

static uint64_t crc32c_load64(const uint8_t *p)
{
    uint64_t v;

    memcpy(&v, p, sizeof v);
    return v;
}

__attribute__((target("sse4.2"))) static uint32_t crc32c_one_stream(uint32_t state,
                                                                    const uint8_t *p, size_t len)
{
    uint64_t wide = state;

    for (; len >= 8; p += 8, len -= 8) {
        wide = _mm_crc32_u64(wide, crc32c_load64(p));
    }
    state = (uint32_t)wide;
    if (len >= 4) {
        uint32_t v;

        memcpy(&v, p, sizeof v);
        state = _mm_crc32_u32(state, v);
        p += 4;
        len -= 4;
    }
    for (; len > 0; p++, len--) {
        state = _mm_crc32_u8(state, *p);
    }
    return state;
}

/*
 * Three adjacent blocks of `block` octets (a multiple of 8) at once, since the instruction takes
 * three cycles but one can start in each. The first two results are then moved over the octets that
 * follow them: multiplied by x^(16*block) and x^(8*block). `far` and `near` are these powers less
 * 33, which the carry-less product and the reduction by the instruction itself add.
 */
__attribute__((target("sse4.2,pclmul"))) static uint32_t
crc32c_three_streams(uint32_t state, const uint8_t *p, size_t block, uint32_t far, uint32_t near)
{
    uint64_t a = state;
    uint64_t b = 0;
    uint64_t c = 0;
    __m128i moved_a;
    __m128i moved_b;

    for (size_t i = 0; i < block; i += 8) {
        a = _mm_crc32_u64(a, crc32c_load64(p + i));
        b = _mm_crc32_u64(b, crc32c_load64(p + block + i));
        c = _mm_crc32_u64(c, crc32c_load64(p + 2 * block + i));
    }
    moved_a =
        _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)a), _mm_cvtsi64_si128((long long)far), 0);
    moved_b = _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)b),
                                   _mm_cvtsi64_si128((long long)near), 0);
    return (uint32_t)c ^
           (uint32_t)_mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(_mm_xor_si128(moved_a, moved_b)));
}

static bool crc32c_has_sse42(void)
{
    return __builtin_cpu_supports("sse4.2");
}

static uint32_t crc32c_sse42(uint32_t state, const uint8_t *p, size_t len)
{
    static const struct {
        size_t block; /* octets of one of the three streams */
        uint32_t far;
        uint32_t near;
    } steps[] = {
        {4096, 0x54a86326u, 0x82f89c77u},
        {512, 0x170076fau, 0xdd7e3b0cu},
        {128, 0xb9e02b86u, 0x0d3b6092u},
        {64, 0x0d3b6092u, 0x9e4addf8u},
    };

    if (len >= CRC32C_THREE_MIN && __builtin_cpu_supports("pclmul")) {
        for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
            size_t step = 3 * steps[i].block;

            for (; len >= step; p += step, len -= step) {
                state = crc32c_three_streams(state, p, steps[i].block, steps[i].far, steps[i].near);
            }
        }
    }
    return crc32c_one_stream(state, p, len);
}

#else

static bool crc32c_has_sse42(void)
{
    return false;
}

static uint32_t crc32c_one_stream(uint32_t state, const uint8_t *p, size_t len)
{
    return crc32c_portable(state, p, len);
}

static uint32_t crc32c_sse42(uint32_t state, const uint8_t *p, size_t len)
{
    return crc32c_portable(state, p, len);
}

#endif

/* ---- the vector library -------------------------------------------------------------------- */

#if defined(SOFTNDK_HAVE_ISAL)

/*
 * The vector library leaves the upper halves of vector registers in use. From then on each SSE
 * instruction of ours, and of whoever called us, has to merge with them and waits for their last
 * result, until something clears them.
 */
static inline void crc32c_leave_vectors(void)
{
#if CRC32C_X86
    if (__builtin_cpu_supports("avx") && !RED("iwarp-crc-vectors-left-in-use"))
        __asm__ volatile("vzeroupper" ::
                             : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7",
                               "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14",
                               "xmm15");
#endif
}

static uint32_t crc32c_isal(uint32_t state, const uint8_t *p, size_t len)
{
    const size_t piece_max = (size_t)1 << 30; /* the library takes an int */

    while (len > 0) {
        size_t piece = len < piece_max ? len : piece_max;

        /* The library's prototype lacks const; it does not write. */
        state = crc32_iscsi((unsigned char *)(uintptr_t)p, (int)piece, state);
        p += piece;
        len -= piece;
    }
    crc32c_leave_vectors();
    return state;
}

#define CRC32C_ISAL 1

#else

static uint32_t crc32c_isal(uint32_t state, const uint8_t *p, size_t len)
{
    return crc32c_portable(state, p, len);
}

#define CRC32C_ISAL 0

#endif

/* ---- choice -------------------------------------------------------------------------------- */

uint32_t iwarp_crc32c(uint32_t state, const void *data, size_t len)
{
    if (RED("iwarp-crc-skips-last-octet") && len > 0) {
        len--;
    }
    if (CRC32C_ISAL && len >= IWARP_CRC32C_ISAL_MIN) {
        return crc32c_isal(state, data, len);
    }
    if (crc32c_has_sse42()) {
        return len < CRC32C_THREE_MIN ? crc32c_one_stream(state, data, len)
                                      : crc32c_sse42(state, data, len);
    }
    return crc32c_portable(state, data, len);
}

bool iwarp_crc32c_has(enum iwarp_crc32c_impl impl)
{
    switch (impl) {
    case IWARP_CRC32C_PORTABLE:
        return true;
    case IWARP_CRC32C_SSE42:
        return crc32c_has_sse42();
    case IWARP_CRC32C_ISAL:
        return CRC32C_ISAL != 0;
    case IWARP_CRC32C_IMPL_COUNT:
        break;
    }
    return false;
}

uint32_t iwarp_crc32c_with(enum iwarp_crc32c_impl impl, uint32_t state, const void *data,
                           size_t len)
{
    if (RED("iwarp-crc-implementations-differ") && impl == IWARP_CRC32C_SSE42 && len > 400) {
        state ^= 1u;
    }
    if (impl == IWARP_CRC32C_SSE42) {
        return crc32c_sse42(state, data, len);
    }
    if (impl == IWARP_CRC32C_ISAL) {
        return crc32c_isal(state, data, len);
    }
    return crc32c_portable(state, data, len);
}

const char *iwarp_crc32c_impl_name(void)
{
    if (CRC32C_ISAL) {
        return crc32c_has_sse42() ? "sse4.2+isa-l" : "isa-l";
    }
    return crc32c_has_sse42() ? "sse4.2" : "portable";
}
