// SPDX-License-Identifier: MIT
/*
 * See tool_args.h. No state but the program's name.
 */
#include "tool_args.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>

const char *tool_name = "softndk";

bool tool_number(const char *text, uint64_t lowest, uint64_t highest, uint64_t *out)
{
    uint64_t value = 0;

    if (!*text)
        return false;
    for (; *text; text++) {
        uint64_t digit = (uint64_t)(*text - '0');

        if (*text < '0' || *text > '9' || value > (UINT64_MAX - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    if (value < lowest || value > highest)
        return false;
    *out = value;
    return true;
}

static void say(const char *format, va_list ap, const char *tail)
{
    char text[800];

    vsnprintf(text, sizeof(text), format, ap);
    /* One call, so that lines of several threads do not mix. */
    fprintf(stderr, "%s: %s%s\n", tool_name, text, tail);
}

int tool_usage_error(const char *format, ...)
{
    char tail[80];
    va_list ap;

    snprintf(tail, sizeof(tail), " (try %s --help)", tool_name);
    va_start(ap, format);
    say(format, ap, tail);
    va_end(ap);
    return TOOL_USAGE;
}

int tool_option_error(int letter, char **argv)
{
    char option[4] = {'-', (char)optopt, 0, 0};
    /* A long option is the argument before optind; a short one may stand inside its argument. */
    const char *name =
        optopt > 0 && optopt < 256 && argv[optind - 1][1] != '-' ? option : argv[optind - 1];

    if (letter == ':')
        return tool_usage_error("%s: needs a value", name);
    return tool_usage_error("%s: no such option, or a value that it does not take", name);
}

void tool_say(const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    say(format, ap, "");
    va_end(ap);
}

int tool_finish(int result)
{
    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror(tool_name);
        return result == TOOL_GOOD ? TOOL_FAILED : result;
    }
    return result;
}
