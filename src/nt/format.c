// SPDX-License-Identifier: MIT
/*
 * See format.h. Called by DbgPrint (debug.c) and by the RtlString... functions (strsafe.c), at any
 * level; allocates nothing.
 */
#include "nt/format.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <ntdef.h>

#include "base/red.h"

enum length { LENGTH_NONE, LENGTH_HH, LENGTH_H, LENGTH_L, LENGTH_64, LENGTH_POINTER, LENGTH_W };

struct spec {
    bool left, plus, space, alternate, zero;
    int width;
    int precision; /* < 0: none */
    enum length length;
    char type;
};

struct sink {
    char *out;
    size_t room; /* for text, the terminator left aside */
    size_t length;
};

static void put(struct sink *s, char c)
{
    if (s->length < s->room)
        s->out[s->length] = c;
    s->length++;
}

static void put_many(struct sink *s, char c, int count)
{
    for (int i = 0; i < count; i++)
        put(s, c);
}

static void put_text(struct sink *s, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        put(s, text[i]);
}

/* Text of known length in its field. */
static void put_field(struct sink *s, const struct spec *f, const char *text, size_t length)
{
    int pad = f->width > 0 && (size_t)f->width > length ? (int)((size_t)f->width - length) : 0;

    if (!f->left)
        put_many(s, f->zero ? '0' : ' ', pad);
    put_text(s, text, length);
    if (f->left)
        put_many(s, ' ', pad);
}

/* ---- numbers -------------------------------------------------------------------------------- */

static void put_number(struct sink *s, const struct spec *f, uint64_t value, bool negative)
{
    const char *digits = f->type == 'x' ? "0123456789abcdef" : "0123456789ABCDEF";
    unsigned base = f->type == 'o' ? 8 : f->type == 'x' || f->type == 'X' ? 16 : 10;
    bool is_signed = f->type == 'd' || f->type == 'i';
    char text[24], prefix[3];
    int n = 0, prefix_n = 0, zeros, pad;

    if (is_signed && (negative || f->plus || f->space))
        prefix[prefix_n++] = negative ? '-' : f->plus ? '+' : ' ';
    if (f->alternate && base == 16 && value) {
        prefix[prefix_n++] = '0';
        prefix[prefix_n++] = f->type;
    }
    for (uint64_t v = value; v; v /= base)
        text[n++] = digits[v % base];
    if (n == 0 && f->precision != 0)
        text[n++] = '0';
    zeros = f->precision > n ? f->precision - n : 0;
    if (f->alternate && base == 8 && zeros == 0 && (n == 0 || text[n - 1] != '0'))
        zeros = 1;
    pad = f->width > n + zeros + prefix_n ? f->width - n - zeros - prefix_n : 0;
    if (f->zero && !f->left && f->precision < 0) {
        zeros += pad;
        pad = 0;
    }
    if (!f->left)
        put_many(s, ' ', pad);
    put_text(s, prefix, (size_t)prefix_n);
    put_many(s, '0', zeros);
    while (n > 0)
        put(s, text[--n]);
    if (f->left)
        put_many(s, ' ', pad);
}

static bool is_64(enum length length)
{
    return length == LENGTH_64 || (length == LENGTH_POINTER && sizeof(void *) == 8);
}

static void put_signed(struct sink *s, const struct spec *f, va_list *ap)
{
    int64_t value = is_64(f->length) ? va_arg(*ap, int64_t) : va_arg(*ap, int);

    if (f->length == LENGTH_H)
        value = (short)value;
    if (f->length == LENGTH_HH)
        value = (signed char)value;
    put_number(s, f, value < 0 ? 0 - (uint64_t)value : (uint64_t)value, value < 0);
}

static void put_unsigned(struct sink *s, const struct spec *f, va_list *ap)
{
    bool wide = is_64(f->length) || (f->length == LENGTH_L && RED("nt-format-long-is-64"));
    uint64_t value = wide ? va_arg(*ap, uint64_t) : va_arg(*ap, unsigned);

    if (f->length == LENGTH_H)
        value = (unsigned short)value;
    if (f->length == LENGTH_HH)
        value = (unsigned char)value;
    put_number(s, f, value, false);
}

static void put_pointer(struct sink *s, const struct spec *f, va_list *ap)
{
    struct spec all = *f;

    all.type = 'X';
    all.precision = 2 * (int)sizeof(void *);
    all.alternate = f->alternate;
    put_number(s, &all, (uintptr_t)va_arg(*ap, void *), false);
}

/* The C library knows how; the arguments are the same on both sides. */
static void put_float(struct sink *s, const struct spec *f, va_list *ap)
{
    char format[16], text[400];
    int at = 0, n;

    format[at++] = '%';
    if (f->left)
        format[at++] = '-';
    if (f->plus)
        format[at++] = '+';
    if (f->space)
        format[at++] = ' ';
    if (f->alternate)
        format[at++] = '#';
    if (f->zero)
        format[at++] = '0';
    snprintf(format + at, sizeof format - (size_t)at, "*.*%c", f->type);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    n = snprintf(text, sizeof text, format, f->width, f->precision, va_arg(*ap, double));
#pragma GCC diagnostic pop
    put_text(s, text, n < 0 ? 0 : (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
}

/* ---- characters and strings ----------------------------------------------------------------- */

size_t nt_utf8_of_utf16(const unsigned short **at, const unsigned short *end, char out[4])
{
    uint32_t c = *(*at)++;

    if (c >= 0xd800 && c < 0xdc00 && *at < end && **at >= 0xdc00 && **at < 0xe000)
        c = 0x10000 + ((c - 0xd800) << 10) + (*(*at)++ - 0xdc00u);
    else if (c >= 0xd800 && c < 0xe000)
        c = 0xfffd;
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xc0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xe0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 0x3f));
        out[2] = (char)(0x80 | (c & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 0x3f));
    out[2] = (char)(0x80 | (c >> 6 & 0x3f));
    out[3] = (char)(0x80 | (c & 0x3f));
    return 4;
}

/* The octets of a wide string as UTF-8, not more than limit and no character in part; puts them
 * unless s is NULL. */
static size_t wide_text(struct sink *s, const unsigned short *at, size_t count, size_t limit)
{
    const unsigned short *end = at + count;
    size_t total = 0, n;
    char utf8[4];

    while (at < end) {
        n = nt_utf8_of_utf16(&at, end, utf8);
        if (n > limit - total)
            break;
        total += n;
        if (s)
            put_text(s, utf8, n);
    }
    return total;
}

static void put_wide(struct sink *s, const struct spec *f, const unsigned short *text, size_t count)
{
    size_t limit = f->precision < 0 ? SIZE_MAX : (size_t)f->precision;
    size_t length = wide_text(NULL, text, count, limit);
    int pad = f->width > 0 && (size_t)f->width > length ? (int)((size_t)f->width - length) : 0;

    if (!f->left)
        put_many(s, f->zero ? '0' : ' ', pad);
    (void)wide_text(s, text, count, limit);
    if (f->left)
        put_many(s, ' ', pad);
}

static void put_narrow(struct sink *s, const struct spec *f, const char *text, size_t length)
{
    if (f->precision >= 0 && (size_t)f->precision < length)
        length = (size_t)f->precision;
    put_field(s, f, text, length);
}

static bool is_wide(const struct spec *f)
{
    if (f->length == LENGTH_H)
        return false;
    return f->length == LENGTH_L || f->length == LENGTH_W || f->type == 'S' || f->type == 'C';
}

static void put_string(struct sink *s, const struct spec *f, va_list *ap)
{
    const void *text = va_arg(*ap, const void *);
    const unsigned short *wide = text;
    size_t count = 0, limit = f->precision < 0 ? SIZE_MAX : (size_t)f->precision;

    if (!text) {
        put_narrow(s, f, "(null)", 6);
    } else if (is_wide(f)) {
        while (count < limit && wide[count])
            count++;
        put_wide(s, f, wide, count);
    } else {
        put_narrow(s, f, text, strnlen(text, limit));
    }
}

static void put_char(struct sink *s, const struct spec *f, va_list *ap)
{
    int value = va_arg(*ap, int);
    unsigned short wide = (unsigned short)value;
    struct spec one = *f;
    char c = (char)value;

    one.precision = -1;
    if (is_wide(f))
        put_wide(s, &one, &wide, 1);
    else
        put_narrow(s, &one, &c, 1);
}

static void put_counted(struct sink *s, const struct spec *f, va_list *ap)
{
    const void *arg = va_arg(*ap, const void *);
    const UNICODE_STRING *wide = arg;
    const ANSI_STRING *narrow = arg;

    if (!arg || !narrow->Buffer)
        put_narrow(s, f, "(null)", 6);
    else if (f->length == LENGTH_W || f->length == LENGTH_L)
        put_wide(s, f, wide->Buffer, wide->Length / sizeof(WCHAR));
    else
        put_narrow(s, f, narrow->Buffer, narrow->Length);
}

/* ---- the format ----------------------------------------------------------------------------- */

static const char *read_length(const char *at, struct spec *f)
{
    static const struct {
        const char text[4];
        enum length length;
    } all[] = {
        {"hh", LENGTH_HH},     {"h", LENGTH_H},      {"ll", LENGTH_64},     {"l", LENGTH_L},
        {"I64", LENGTH_64},    {"I32", LENGTH_NONE}, {"I", LENGTH_POINTER}, {"z", LENGTH_POINTER},
        {"t", LENGTH_POINTER}, {"j", LENGTH_64},     {"w", LENGTH_W},       {"L", LENGTH_NONE},
    };

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        size_t n = strlen(all[i].text);

        if (strncmp(at, all[i].text, n) == 0) {
            f->length = all[i].length;
            return at + n;
        }
    }
    return at;
}

static const char *read_count(const char *at, int *count, va_list *ap)
{
    if (*at == '*') {
        *count = va_arg(*ap, int);
        return at + 1;
    }
    for (*count = 0; *at >= '0' && *at <= '9'; at++)
        if (*count < 1000000)
            *count = 10 * *count + (*at - '0');
    return at;
}

/* From behind the % to behind the size. */
static const char *read_spec(const char *at, struct spec *f, va_list *ap)
{
    *f = (struct spec){.precision = -1};
    for (;; at++) {
        if (*at == '-')
            f->left = true;
        else if (*at == '+')
            f->plus = true;
        else if (*at == ' ')
            f->space = true;
        else if (*at == '#')
            f->alternate = true;
        else if (*at == '0')
            f->zero = true;
        else
            break;
    }
    at = read_count(at, &f->width, ap);
    if (f->width < 0) {
        f->left = true;
        f->width = f->width > -1000000 ? -f->width : 1000000;
    }
    if (*at == '.')
        at = read_count(at + 1, &f->precision, ap);
    return read_length(at, f);
}

static void put_spec(struct sink *s, const struct spec *f, va_list *ap)
{
    switch (f->type) {
    case 'd':
    case 'i':
        put_signed(s, f, ap);
        break;
    case 'u':
    case 'o':
    case 'x':
    case 'X':
        put_unsigned(s, f, ap);
        break;
    case 'p':
        put_pointer(s, f, ap);
        break;
    case 's':
    case 'S':
        put_string(s, f, ap);
        break;
    case 'c':
    case 'C':
        put_char(s, f, ap);
        break;
    case 'Z':
        put_counted(s, f, ap);
        break;
    case 'a':
    case 'A':
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
        put_float(s, f, ap);
        break;
    case 'n':
        (void)va_arg(*ap, void *);
        break;
    default:
        put(s, f->type);
    }
}

size_t nt_format(char *out, size_t size, const char *format, va_list ap)
{
    struct sink s = {.out = out, .room = size ? size - 1 : 0};
    struct spec f;
    va_list args; /* a copy, since an array type cannot be passed on by address */

    va_copy(args, ap);
    while (*format) {
        if (*format != '%') {
            put(&s, *format++);
            continue;
        }
        format = read_spec(format + 1, &f, &args);
        if (!*format)
            break;
        f.type = *format++;
        put_spec(&s, &f, &args);
    }
    va_end(args);
    if (size)
        out[s.length < s.room ? s.length : s.room] = '\0';
    return s.length;
}
