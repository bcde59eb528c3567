// SPDX-License-Identifier: MIT
/* See profile.h. One pass, a line at a time, on a copy of the options. */
#include "base/profile.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/red.h"

#define KEYS_MAX 128 /* rows of the options table */

struct reader {
    const char *where;
    unsigned line;
    const char *at, *end;
    struct options options;
    unsigned seen[KEYS_MAX]; /* the line that set the row of the table, 0: none */
    char *error;
    size_t size;
};

bool profile_name_is_good(const char *name, size_t length)
{
    if (length == 0 || length > PROFILE_NAME_MAX || name[0] == '.')
        return false;
    for (size_t i = 0; i < length; i++) {
        char c = name[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '-' || c == '_' || c == '.'))
            return false;
    }
    return true;
}

/* The next line without its end; false behind the last. */
static bool next_line(const char **at, const char *end, const char **line, size_t *length)
{
    const char *stop;

    if (*at == end)
        return false;
    *line = *at;
    stop = memchr(*at, '\n', (size_t)(end - *at));
    *at = stop ? stop + 1 : end;
    if (!stop)
        stop = end;
    if (stop > *line && stop[-1] == '\r')
        stop--;
    *length = (size_t)(stop - *line);
    return true;
}

static void trim(const char **text, size_t *length)
{
    while (*length && (**text == ' ' || **text == '\t')) {
        (*text)++;
        (*length)--;
    }
    while (*length && ((*text)[*length - 1] == ' ' || (*text)[*length - 1] == '\t'))
        (*length)--;
}

/* The octets before a comment, without blanks around them. */
static void without_comment(const char **text, size_t *length)
{
    const char *comment = memchr(*text, '#', *length);

    if (comment)
        *length = (size_t)(comment - *text);
    trim(text, length);
}

__attribute__((format(printf, 2, 3))) static bool wrong(struct reader *r, const char *format, ...)
{
    size_t used = (size_t)snprintf(r->error, r->size, "%s:%u: ", r->where, r->line);
    va_list ap;

    va_start(ap, format);
    if (used < r->size)
        vsnprintf(r->error + used, r->size - used, format, ap);
    va_end(ap);
    return false;
}

/* Octets that no setting has, and that no message should carry to a terminal. */
static bool check_octets(struct reader *r, const char *line, size_t length, size_t setting)
{
    if (length > PROFILE_LINE_MAX)
        return wrong(r, "the line is too long (have %zu octets, need <= %u)", length,
                     PROFILE_LINE_MAX);
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)line[i];

        if (c == '\0' || (i < setting && c != '\t' && (c < 0x20 || c > 0x7e)))
            return wrong(r, "octet 0x%02x in column %zu (need printable ASCII)", c, i + 1);
    }
    return true;
}

/* Not two lines for one key: whichever was meant, the other would be lost without a word. */
static bool check_first(struct reader *r, const char *key, size_t key_length)
{
    const struct option_info *info = option_find(key, key_length);
    size_t count;
    unsigned *seen = info ? &r->seen[info - options_table(&count)] : NULL;

    if (seen && *seen && !RED("profile-key-twice"))
        return wrong(r, "option %s: is given twice (first in line %u)", info->name, *seen);
    if (seen)
        *seen = r->line;
    return true;
}

static bool read_line(struct reader *r, const char *line, size_t length)
{
    const char *setting = line, *equals, *value;
    size_t setting_length = length, key_length, value_length;
    char text[300];

    without_comment(&setting, &setting_length);
    if (!check_octets(r, line, length, (size_t)(setting - line) + setting_length))
        return false;
    if (setting_length == 0)
        return true;
    equals = memchr(setting, '=', setting_length);
    if (!equals)
        return wrong(r, "have \"%.*s\", need key = value", (int)setting_length, setting);
    key_length = (size_t)(equals - setting);
    value = equals + 1;
    value_length = setting_length - key_length - 1;
    trim(&setting, &key_length);
    trim(&value, &value_length);
    if (!option_set(&r->options, setting, key_length, value, value_length, text, sizeof text))
        return wrong(r, "%s", text);
    return check_first(r, setting, key_length);
}

bool profile_apply(struct options *out, const char *where, const char *text, size_t length,
                   char *error, size_t size)
{
    struct reader r = {.where = where,
                       .at = text,
                       .end = text + length,
                       .options = *out,
                       .error = error,
                       .size = size};
    const char *line;
    size_t octets;
    char what[120];

    _Static_assert(sizeof(struct options) / sizeof(uint32_t) <= KEYS_MAX, "a line for each key");
    if (length > PROFILE_TEXT_MAX)
        return wrong(&r, "the text is too long (have %zu octets, need <= %u)", length,
                     PROFILE_TEXT_MAX);
    while (next_line(&r.at, r.end, &line, &octets)) {
        r.line++;
        if (!read_line(&r, line, octets)) {
            if (RED("profile-half-applied"))
                *out = r.options;
            return false;
        }
    }
    if (!options_check(&r.options, what, sizeof what))
        return wrong(&r, "%s", what);
    *out = r.options;
    return true;
}

void profile_about(const char *text, size_t length, char *about, size_t size)
{
    const char *at = text, *end = text + length, *line;
    size_t octets;

    if (size)
        about[0] = '\0';
    while (size && next_line(&at, end, &line, &octets)) {
        if (octets == 0 || line[0] != '#')
            continue;
        line++;
        octets--;
        trim(&line, &octets);
        if (octets == 0 || (octets >= 4 && memcmp(line, "SPDX", 4) == 0))
            continue;
        if (octets >= size)
            octets = size - 1;
        for (size_t i = 0; i < octets; i++) /* it may end on a terminal */
            about[i] = (unsigned char)line[i] < 0x20 || line[i] == 0x7f ? '?' : line[i];
        about[octets] = '\0';
        return;
    }
}
