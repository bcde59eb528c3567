// SPDX-License-Identifier: MIT
/*
 * Where in a driver's source the frames of a report are: "driver.so+0x17b9" gives function, file
 * and line by addr2line, where that is installed. Static functions have no other name.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/tool_args.h"
#include "run.h"

enum { PLACES_MAX = 8 };

/* Does the text at `at` end a path's last part, and begin with it? Its length, or 0. */
static size_t name_here(const char *text, const char *at, const char *path)
{
    const char *base = strrchr(path, '/');
    size_t length;

    base = base ? base + 1 : path;
    length = strlen(base);
    if (length == 0 || strncmp(at, base, length) != 0 || strncmp(at + length, "+0x", 3) != 0)
        return 0;
    return at == text || strchr(" (", at[-1]) ? length : 0;
}

/* The command that resolves the frames of this driver in the text; how many there are. */
static int command_for(const char *text, const char *path, char *command, size_t size)
{
    int count = 0;
    size_t used;

    if (strchr(path, '\'')) /* it stands between these */
        return 0;
    used = (size_t)snprintf(command, size, "LD_PRELOAD= addr2line -p -f -s -e '%s'", path);
    for (const char *at = text; *at && count < PLACES_MAX && used + 24 < size; at++) {
        size_t length = name_here(text, at, path);

        if (!length)
            continue;
        /* A return address may be the first of the next line: look one back. */
        used += (size_t)snprintf(command + used, size - used, " 0x%lx",
                                 strtoul(at + length + 1, NULL, 16) - 1);
        count++;
    }
    snprintf(command + used, used < size ? size - used : 0, " 2>/dev/null");
    return count;
}

void places_tell(const struct run *run, const char *text)
{
    char command[2048], line[512];

    for (int i = 0; i < run->driver_count; i++) {
        const struct driver *d = &run->drivers[i];
        FILE *lines;

        if (!command_for(text, d->copy[0] ? d->copy : d->path, command, sizeof command))
            continue;
        lines = popen(command, "r");
        while (lines && fgets(line, sizeof line, lines)) {
            line[strcspn(line, "\n")] = '\0';
            if (line[0] != '?')
                tool_say("    in %s", line);
        }
        if (lines)
            pclose(lines);
    }
}
