// SPDX-License-Identifier: MIT
/* See utf.h. The other direction, one character at a time, is nt_utf8_of_utf16() of format.h. */
#include "nt/utf.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/red.h"
#include "nt/format.h"

/* One character; moves *at on. Overlong forms, surrogates and strays are U+FFFD, an octet each. */
static uint32_t next_character(const unsigned char **at, const unsigned char *end)
{
    static const uint32_t least[4] = {0, 0x80, 0x800, 0x10000};
    const unsigned char *p = *at;
    unsigned more = p[0] < 0x80 ? 0 : p[0] >= 0xf0 ? 3 : p[0] >= 0xe0 ? 2 : 1;
    uint32_t c = more == 0 ? p[0] : p[0] & (0x3fu >> more);

    *at = p + 1;
    if (p[0] >= 0x80 && (p[0] < 0xc2 || p[0] > 0xf4))
        return 0xfffd;
    if ((size_t)(end - p) <= more)
        return 0xfffd;
    for (unsigned i = 1; i <= more; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0xfffd;
        c = c << 6 | (p[i] & 0x3f);
    }
    if (c < least[more] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        return 0xfffd;
    *at = p + 1 + more;
    return c;
}

WCHAR *nt_utf16_of_utf8(const char *text, size_t length, size_t *units)
{
    const unsigned char *at = (const unsigned char *)text, *end = at + length;
    WCHAR *out = malloc((length + 1) * sizeof *out); /* no character has more units than octets */
    size_t n = 0;

    if (!out)
        return NULL;
    while (at < end) {
        uint32_t c = next_character(&at, end);

        if (c >= 0x10000 && !RED("nt-utf16-no-surrogates")) {
            out[n++] = (WCHAR)(0xd800 + ((c - 0x10000) >> 10));
            c = 0xdc00 + ((c - 0x10000) & 0x3ff);
        }
        out[n++] = (WCHAR)c;
    }
    out[n] = 0;
    *units = n;
    return out;
}

char *nt_utf8_of_units(const WCHAR *text, size_t units)
{
    const WCHAR *end = text + units;
    char *out = malloc(3 * units + 1); /* a unit alone gives three octets at most */
    size_t n = 0;

    if (!out)
        return NULL;
    while (text < end)
        n += nt_utf8_of_utf16(&text, end, out + n);
    out[n] = '\0';
    return out;
}
