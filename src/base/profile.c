// SPDX-License-Identifier: MIT
/* See profile.h. Read by base/config.h, into a copy of the options. */
#include "base/profile.h"

#include <string.h>

#include "base/config.h"
#include "base/red.h"

#define KEYS_MAX 128 /* rows of the options table */

struct reading {
    struct options options;
    unsigned seen[KEYS_MAX]; /* the line that set the row of the table, 0: none */
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

/* Not two lines for one key: whichever was meant, the other would be lost without a word. */
static bool check_first(struct config_reader *r, struct config_word key)
{
    struct reading *reading = r->context;
    const struct option_info *info = option_find(key.text, key.length);
    size_t count;
    unsigned *seen = info ? &reading->seen[info - options_table(&count)] : NULL;

    if (seen && *seen && !RED("profile-key-twice"))
        return config_wrong(r, "option %s: is given twice (first in line %u)", info->name, *seen);
    if (seen)
        *seen = r->line;
    return true;
}

static bool read_setting(struct config_reader *r, struct config_word key, struct config_word value)
{
    struct reading *reading = r->context;
    char text[300];

    if (!option_set(&reading->options, key.text, key.length, value.text, value.length, text,
                    sizeof text))
        return config_wrong(r, "%s", text);
    return check_first(r, key);
}

bool profile_apply(struct options *out, const char *where, const char *text, size_t length,
                   char *error, size_t size)
{
    struct reading reading = {.options = *out};
    struct config_reader r = {
        .where = where,
        .text_max = PROFILE_TEXT_MAX,
        .line_max = PROFILE_LINE_MAX,
        .setting = read_setting,
        .context = &reading,
        .error = error,
        .size = size,
    };
    char what[120];

    _Static_assert(sizeof(struct options) / sizeof(uint32_t) <= KEYS_MAX, "a line for each key");
    if (!config_read(&r, text, length)) {
        if (RED("profile-half-applied"))
            *out = reading.options;
        return false;
    }
    if (!options_check(&reading.options, what, sizeof what))
        return config_wrong(&r, "%s", what);
    *out = reading.options;
    return true;
}

void profile_about(const char *text, size_t length, char *about, size_t size)
{
    const char *at = text, *end = text + length;

    if (size)
        about[0] = '\0';
    while (size && at < end) {
        const char *line = at, *stop = memchr(at, '\n', (size_t)(end - at));
        size_t octets;

        at = stop ? stop + 1 : end;
        stop = stop ? stop : end;
        if (*line != '#')
            continue;
        for (line++; line < stop && (*line == ' ' || *line == '\t');)
            line++;
        while (stop > line && (stop[-1] == ' ' || stop[-1] == '\t' || stop[-1] == '\r'))
            stop--;
        octets = (size_t)(stop - line);
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
