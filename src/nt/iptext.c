// SPDX-License-Identifier: MIT
/*
 * See iptext.h. Text is a terminated string of any content; nothing is read past its terminator.
 */
#include "nt/iptext.h"

#include <stdio.h>
#include <string.h>

#include "base/red.h"

static int digit(char c, unsigned base)
{
    int value = -1;

    if (c >= '0' && c <= '9')
        value = c - '0';
    else if (c >= 'a' && c <= 'f')
        value = c - 'a' + 10;
    else if (c >= 'A' && c <= 'F')
        value = c - 'A' + 10;
    return value >= 0 && (unsigned)value < base ? value : -1;
}

static bool is_hex_prefix(const char *at)
{
    return at[0] == '0' && (at[1] == 'x' || at[1] == 'X');
}

static bool is_octal_prefix(const char *at)
{
    return at[0] == '0' && digit(at[1], 10) >= 0;
}

/* At least one digit, at most 32 bits. */
static bool read_digits(const char **at, unsigned base, uint32_t *out)
{
    const char *p = *at;
    uint64_t value = 0;
    int d;

    while ((d = digit(*p, base)) >= 0 && value <= UINT32_MAX) {
        value = value * base + (unsigned)d;
        p++;
    }
    if (p == *at || value > UINT32_MAX)
        return false;
    *at = p;
    *out = (uint32_t)value;
    return true;
}

static bool read_prefixed(const char **at, uint32_t *out)
{
    if (is_hex_prefix(*at)) {
        *at += 2;
        return read_digits(at, 16, out);
    }
    if (is_octal_prefix(*at)) {
        *at += 1;
        return read_digits(at, 8, out);
    }
    return read_digits(at, 10, out);
}

bool iptext_read_v4(const char **at, bool strict, uint8_t out[4])
{
    uint32_t part[4], address = 0;
    unsigned n = 0, bits;

    for (;;) {
        if (strict && (is_hex_prefix(*at) || is_octal_prefix(*at)))
            return false;
        if (!read_prefixed(at, &part[n++]))
            return false;
        if (**at != '.')
            break;
        if (n == 4)
            return false;
        ++*at;
    }
    if (strict && n != 4)
        return false;
    bits = 8 * (4 - (n - 1)); /* what the last part fills */
    for (unsigned i = 0; i + 1 < n; i++) {
        if (part[i] > 255)
            return false;
        address |= part[i] << (24 - 8 * i);
    }
    if (bits < 32 && part[n - 1] >> bits)
        return false;
    address |= part[n - 1];
    for (unsigned i = 0; i < 4; i++)
        out[i] = (uint8_t)(address >> (24 - 8 * i));
    return true;
}

/* "a.b.c.d" as the tail of an IPv6 address: one to three decimal digits a part. */
static bool read_quad(const char **at, uint8_t out[4])
{
    for (int i = 0; i < 4; i++) {
        const char *begin = *at;
        uint32_t value;

        if (!read_digits(at, 10, &value) || *at - begin > 3 || value > 255)
            return false;
        out[i] = (uint8_t)value;
        if (i < 3 && *(*at)++ != '.')
            return false;
    }
    return true;
}

/* Digits of the group at p; *quad: it is the first part of a dotted tail. */
static size_t group_digits(const char *p, bool *quad)
{
    size_t n = 0;

    *quad = true;
    while (digit(p[n], 16) >= 0) {
        *quad = *quad && digit(p[n], 10) >= 0;
        n++;
    }
    *quad = *quad && n > 0 && p[n] == '.';
    return n;
}

struct v6 {
    uint8_t octets[16];
    unsigned groups; /* read, without those that "::" stands for */
    int gap;         /* how many of them stand before "::"; -1: none yet */
};

static bool is_full(const struct v6 *v)
{
    return v->groups + (v->gap >= 0) >= 8;
}

/* One group, or the dotted tail, which ends the address; false: neither. */
static bool read_group(const char **at, struct v6 *v, bool *ended)
{
    unsigned room = 8 - v->groups - (v->gap >= 0); /* groups that may follow */
    bool quad, tail;
    size_t digits = group_digits(*at, &quad);
    uint32_t value;

    tail = quad && (v->gap >= 0 ? room >= 2 : room == 2);
    if (tail) {
        *ended = true;
        if (!read_quad(at, &v->octets[2 * v->groups]))
            return false;
        v->groups += 2;
        return true;
    }
    if (digits == 0 || digits > 4 || !read_digits(at, 16, &value))
        return false;
    v->octets[2 * v->groups] = (uint8_t)(value >> 8);
    v->octets[2 * v->groups + 1] = (uint8_t)value;
    v->groups++;
    return true;
}

/* What stands between two groups; *ended: no group follows. */
static void read_colons(const char **at, struct v6 *v, bool *ended)
{
    if (**at != ':' || is_full(v)) {
        *ended = true;
    } else if ((*at)[1] != ':') {
        ++*at;
    } else if (v->gap >= 0) {
        *ended = true;
    } else {
        v->gap = (int)v->groups;
        *at += 2;
        *ended = is_full(v) || digit(**at, 16) < 0;
    }
}

bool iptext_read_v6(const char **at, uint8_t out[16])
{
    struct v6 v = {.gap = -1};
    bool ended = false;
    size_t behind;

    if (**at == ':') {
        if ((*at)[1] != ':')
            return false;
        v.gap = 0;
        *at += 2;
        ended = digit(**at, 16) < 0;
    }
    while (!ended) {
        if (!read_group(at, &v, &ended))
            return false;
        if (!ended)
            read_colons(at, &v, &ended);
    }
    if (v.gap < 0 && v.groups != 8)
        return false;
    memset(out, 0, 16);
    if (v.gap < 0 || RED("nt-ip6-gap-at-end")) {
        memcpy(out, v.octets, 2 * v.groups);
        return true;
    }
    behind = 2 * (v.groups - (unsigned)v.gap);
    memcpy(out, v.octets, 2 * (size_t)v.gap);
    memcpy(out + 16 - behind, v.octets + 2 * v.gap, behind);
    return true;
}

bool iptext_read_port(const char **at, uint16_t *port)
{
    uint32_t value;

    if (!read_prefixed(at, &value) || value == 0 || value > 65535)
        return false;
    *port = (uint16_t)value;
    return true;
}

bool iptext_read_scope(const char **at, uint32_t *scope)
{
    return read_digits(at, 10, scope);
}

/* ---- writing -------------------------------------------------------------------------------- */

size_t iptext_write_v4(const uint8_t address[4], char out[IPTEXT_V4_MAX])
{
    return (size_t)snprintf(out, IPTEXT_V4_MAX, "%u.%u.%u.%u", address[0], address[1], address[2],
                            address[3]);
}

/* Whether the last 32 bits are an IPv4 address: mapped, translated, compatible, or ISATAP. */
static bool ends_in_v4(const unsigned group[8])
{
    bool high_zero = (group[0] | group[1] | group[2] | group[3]) == 0;

    if (group[5] == 0x5efe && (group[4] == 0 || group[4] == 0x200))
        return true;
    if (!high_zero || group[6] == 0)
        return false;
    return (group[4] == 0 && (group[5] == 0 || group[5] == 0xffff)) ||
           (group[4] == 0xffff && group[5] == 0);
}

/* The first of the longest runs of zero groups, two at least; its length, 0 if there is none. */
static unsigned longest_gap(const unsigned *group, unsigned groups, unsigned *begin)
{
    unsigned best = 1, run = 0;

    for (unsigned i = 0; i < groups; i++) {
        run = group[i] == 0 ? run + 1 : 0;
        if (run > best) {
            best = run;
            *begin = i + 1 - run;
        }
    }
    return best > 1 ? best : 0;
}

size_t iptext_write_v6(const uint8_t address[16], char out[IPTEXT_V6_MAX])
{
    unsigned group[8], groups, begin = 0, gap;
    size_t n = 0;
    bool v4;

    for (int i = 0; i < 8; i++)
        group[i] = (unsigned)address[2 * i] << 8 | address[2 * i + 1];
    v4 = ends_in_v4(group);
    groups = v4 ? 6 : 8;
    gap = longest_gap(group, groups, &begin);
    for (unsigned i = 0; i < groups; i++) {
        if (gap && i == begin) {
            n += (size_t)snprintf(out + n, IPTEXT_V6_MAX - n, "::");
            i += gap - 1;
            continue;
        }
        n += (size_t)snprintf(out + n, IPTEXT_V6_MAX - n, "%s%x",
                              i > 0 && !(gap && i == begin + gap) ? ":" : "", group[i]);
    }
    if (v4) {
        if (out[n - 1] != ':')
            out[n++] = ':';
        n += (size_t)snprintf(out + n, IPTEXT_V6_MAX - n, "%u.%u.%u.%u", address[12], address[13],
                              address[14], address[15]);
    }
    return n;
}
