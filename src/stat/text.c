// SPDX-License-Identifier: MIT
/* See text.h. */
#include "stat/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/red.h"

static bool make_room(struct stat_text *text, size_t more)
{
    size_t room = text->room ? text->room : 1024;
    char *at;

    if (text->full || more > stat_text_limit(text) - text->length) {
        text->full = true;
        return false;
    }
    while (room < text->length + more + 1)
        room *= 2;
    if (room == text->room)
        return true;
    at = realloc(text->at, room);
    if (!at) {
        text->full = true;
        return false;
    }
    text->at = at;
    text->room = room;
    return true;
}

static void add_octets(struct stat_text *text, const char *octets, size_t count)
{
    if (!make_room(text, count))
        return;
    memcpy(text->at + text->length, octets, count);
    text->length += count;
    text->at[text->length] = '\0';
}

void stat_text_add(struct stat_text *text, const char *format, ...)
{
    char line[512];
    va_list ap;
    int n;

    va_start(ap, format);
    n = vsnprintf(line, sizeof line, format, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= sizeof line)
        text->full = true;
    else
        add_octets(text, line, (size_t)n);
}

void stat_text_cut(struct stat_text *text, size_t length)
{
    text->length = length;
    text->full = false;
    if (text->at)
        text->at[length] = '\0';
}

/* How many octets the UTF-8 character at s has; 0: it is none. */
static size_t character(const unsigned char *s)
{
    size_t count = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;

    if (count == 0 || s[0] > 0xf4)
        return 0;
    for (size_t i = 1; i < count; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    /* Longer than need be, a surrogate, or beyond the last. */
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
        (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return count;
}

void stat_text_string(struct stat_text *text, const char *string)
{
    const unsigned char *s = (const unsigned char *)string;

    stat_text_add(text, "\"");
    while (*s) {
        size_t count = character(s);

        if (count == 0 && !RED("stat-text-octets"))
            stat_text_add(text, "\\ufffd");
        else if (*s == '"' || *s == '\\')
            stat_text_add(text, "\\%c", *s);
        else if (*s < 0x20)
            stat_text_add(text, "\\u%04x", *s);
        else
            add_octets(text, (const char *)s, count ? count : 1);
        s += count ? count : 1;
    }
    stat_text_add(text, "\"");
}
